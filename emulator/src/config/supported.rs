//! What a runtime cannot do: refused when an experiment is planned, at the key that asks for it.

use super::document::Document;
use super::error::ConfigError;
use super::file::RunSection;

/// Emulated seconds per real second that a real-time run may be asked for. Beyond these a nanosecond of the one
/// clock is lost on the other, or a timer lasts longer than the machine.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Checks that the runtime an experiment asks for can do what else it asks for.
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
