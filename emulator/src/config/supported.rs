//! The checks that a runtime supports what an experiment asks for; errors point at the key in question.

use super::document::Document;
use super::error::ConfigError;
use super::file::RunSection;

/// Supported emulated seconds per real second. Beyond them a nanosecond of one clock is less than the resolution of
/// the other, or a timer exceeds the range of the system's timers.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Checks that the runtime of an experiment supports its other settings.
pub(super) fn runtime_supported(document: &Document<'_>, run: &RunSection) -> Result<(), ConfigError> {
    // NaN is in no range.
    if !SPEEDS.contains(&run.speed) {
        let (least, most) = (SPEEDS.start(), SPEEDS.end());
        return Err(document
            .error_at(
                &["run", "speed"],
                format!("`run.speed` must lie between {least} and {most}, not be {}", run.speed),
            )
            .help("write emulated seconds per real second, such as 1.0"));
    }
    Ok(())
}
