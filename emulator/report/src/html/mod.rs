//! `report.html`: one page that needs nothing else, or has the cells of a large sweep in files beside it.
//!
//! | module | part of the page |
//! |---|---|
//! | `page` | the whole page, its contents, header, policies and footer; the cells in the page, compressed or in files beside it |
//! | `overview` | verdicts, warnings, the sweep at a glance, which policy when |
//! | `cell` | one point of the sweep |
//! | `table`, `policy` | the tables of a cell |
//! | `view` | anchors, titles and values that the parts share |

mod cell;
mod overview;
mod page;
mod policy;
mod table;
mod view;

pub use page::render;

#[cfg(test)]
mod tests;
