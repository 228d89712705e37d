//! `report.html`: one page that needs nothing else, or has the cells of a large sweep in files beside it.
//!
//! | module | part of the page |
//! |---|---|
//! | `page` | the whole page, its contents, header and footer |
//! | `overview` | verdicts, warnings, the sweep at a glance |
//! | `choice` | which policy when |
//! | `cell` | one point of the sweep |
//! | `bodies` | the cells in the page, compressed or in files beside it |
//! | `parameters` | the policies with their parameters |
//! | `table`, `policy`, `shared`, `fidelity` | the tables of a cell |
//! | `view` | anchors, titles and values that the parts share |

mod bodies;
mod cell;
mod choice;
mod fidelity;
mod overview;
mod page;
mod parameters;
mod policy;
mod shared;
mod table;
mod view;

pub use page::render;

#[cfg(test)]
mod tests;
