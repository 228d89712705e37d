//! `report.html`.

use super::Study;

/// The report of a study: one page that needs nothing else.
#[must_use]
pub fn html(study: &Study) -> String {
    study.manifest.title.clone()
}
