//! The page `report.html`: it needs no other file, except the files with the cells of a large sweep.
//!
//! | module | part of the page |
//! |---|---|
//! | `page` | the whole page, its contents, header, policies and footer; the cells in the page, compressed or in files beside it |
//! | `overview` | verdicts, warnings, the sweep at a glance, the best policy of each cell |
//! | `cell` | one point of the sweep |
//! | `table`, `policy` | the tables of a cell |
//! | `view` | anchors, titles and values shared by the parts |

mod cell;
mod overview;
mod page;
mod policy;
mod table;
mod view;

pub use page::render;

#[cfg(test)]
mod tests;
