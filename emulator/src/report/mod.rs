//! Results for people: the report page, the terminal's table, and the statistics behind both.
//!
//! | module | what it makes |
//! |---|---|
//! | [`study`] | the cells of one experiment, from one run directory or several |
//! | [`stats`] | means over replications and paired differences with 95 % intervals |
//! | [`number`] | numbers as people read them |
//! | [`table`] | the table at the end of a run, and the JSON lines |
//! | [`html()`] | `report.html` |

pub mod number;
pub mod stats;
pub mod study;
pub mod table;

mod html;

pub use html::html;
pub use study::{MergeError, Study, cell_name, merge};
