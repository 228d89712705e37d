//! `report.html`: one page that needs nothing else.
//!
//! | module | part of the page |
//! |---|---|
//! | `page` | the whole page, its contents, header and footer |
//! | `overview` | verdicts, warnings, the sweep at a glance |
//! | `choice` | which policy when |
//! | `cell` | one point of the sweep |
//! | `table`, `policy`, `shared`, `fidelity` | the tables of a cell |
//! | `view` | anchors, titles and values that the parts share |

mod cell;
mod choice;
mod fidelity;
mod overview;
mod page;
mod policy;
mod shared;
mod table;
mod view;

pub use page::html;

#[cfg(test)]
mod tests;
