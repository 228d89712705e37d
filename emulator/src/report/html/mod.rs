//! `report.html`: one page that needs nothing else.
//!
//! | module | part of the page |
//! |---|---|
//! | `page` | the whole page, its contents, header and footer |
//! | `overview` | verdicts, warnings, the sweep at a glance |
//! | `choice` | which policy when |
//! | `cell` | one point of the sweep |
//! | `table`, `policy`, `fidelity` | the tables of a cell |
//! | `view` | anchors, titles and values that the parts share |
//! | `style` | style sheet and the few lines of script |

mod cell;
mod choice;
mod fidelity;
mod overview;
mod page;
mod policy;
mod style;
mod table;
mod view;

pub use page::html;

#[cfg(test)]
mod tests;
