//! Results for people: the report page and the terminal's table.
//!
//! | module | what it makes |
//! |---|---|
//! | [`style`] | whether text has colours |
//! | [`table`] | the table at the end of a run |
//! | `wide` | the policies over all cells of a wide sweep |
//! | [`markdown`] | claims and verdicts of several experiments as a Markdown table |
//! | [`choice`] | which policy is best in which cell |
//! | [`fidelity`] | the text of certificates |
//! | [`columns`] | the columns of summary tables |
//! | [`figures`] | figures of the report and of `volary plot` |
//! | [`selection`] | the policies and cells that `volary plot` and `volary compare` show |
//! | [`render`] | `report.html` |
//! | `traces` | the page of `volary trace describe` and `compare` |

pub mod choice;
pub mod columns;
pub mod fidelity;
pub mod figures;
pub mod markdown;
pub mod selection;
pub mod style;
pub mod table;

mod claims;
mod html;
mod traces;
mod wide;

pub use html::render;
pub use traces::traces_page;
