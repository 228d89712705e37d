//! The report of a study in its folder: the page, and the cells that it loads when they are opened.

use std::fs;
use std::path::Path;

use super::error::{Error, io};
use super::files::{remove, write};
use super::paths::{REPORT, REPORT_CELLS};
use super::study::Study;

/// Renders the report of a study. The renderer is in a module that depends on this one.
pub type Render = fn(&Study) -> RenderedReport;

/// A report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RenderedReport {
    /// The page.
    pub page: String,
    /// Scripts with the cells for which the page has no room, each for the file `report/<n>.js` from 0; empty if the
    /// page holds all of them.
    pub cells: Vec<String>,
}

impl RenderedReport {
    /// Writes the report to a study directory, where it replaces an earlier one; a report without a page only removes
    /// it.
    pub(super) fn write(&self, root: &Path) -> Result<(), Error> {
        let folder = root.join(REPORT_CELLS);
        let file = |number: usize| folder.join(format!("{number}.js"));
        if !self.cells.is_empty() {
            fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        }
        for (number, script) in self.cells.iter().enumerate() {
            write(&file(number), script.as_bytes())?;
        }
        let page = root.join(REPORT);
        if self.page.is_empty() {
            remove(&page)?
        } else {
            write(&page, self.page.as_bytes())?
        }
        for old in (self.cells.len()..).map(file).take_while(|old| old.exists()) {
            remove(&old)?;
        }
        if self.cells.is_empty() {
            // It stays if there is something else in it.
            let _ = fs::remove_dir(&folder);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let report = |page: &str, cells: &[&str]| RenderedReport {
            page: page.to_owned(),
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
        };
        let text = |name: &str| fs::read_to_string(root.join(name)).ok();
        report("wide", &["a", "b", "c"]).write(root).unwrap();
        assert_eq!((text(REPORT).as_deref(), text("report/2.js").as_deref()), (Some("wide"), Some("c")));
        report("less", &["d"]).write(root).unwrap();
        assert_eq!((text("report/0.js").as_deref(), text("report/1.js")), (Some("d"), None));
        report("small", &[]).write(root).unwrap();
        assert!(text(REPORT).as_deref() == Some("small") && !root.join(REPORT_CELLS).exists());
    }
}
