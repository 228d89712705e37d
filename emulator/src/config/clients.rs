//! The refusal of faults that crash clients. Clients generate the jobs and are not part of what is measured.

use volary_netem::{FaultSpec, Groups, Places};

use super::document::Document;
use super::error::ConfigError;

/// Refuses crashes that include a client; clients are the first `schedulers` endpoints.
pub(super) fn spare(
    document: &Document<'_>,
    faults: &[FaultSpec],
    groups: &Groups,
    schedulers: u32,
) -> Result<(), ConfigError> {
    for (i, fault) in faults.iter().enumerate() {
        let FaultSpec::Crash(crash) = fault else { continue };
        for target in &crash.who {
            // Unknown names were refused when the faults were resolved.
            if groups.resolve(target).is_ok_and(|hit| hit.iter().any(|endpoint| endpoint.0 < schedulers)) {
                let at = ["network", "fault", &i.to_string(), "crash", "who"];
                return Err(document
                    .error_at(&at, format!("`network.fault`: \"{target}\" would crash a client"))
                    .help(
                        "clients are the source of jobs, outside the experiment; aim at \"nodes\", \
                         \"schedulers\" or single ones such as \"node:3\"",
                    ));
            }
        }
    }
    Ok(())
}
