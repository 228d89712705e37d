//! Results for people: tables on a terminal, charts, the report page and the live page.
//!
//! | module | what it makes |
//! |---|---|
//! | [`columns`] | the columns of summary tables |
//! | [`style`] | colours and width of text |
//! | [`table`] | the table at the end of a run |
//! | [`claims`] | claims and their verdicts, as text and as a Markdown table |
//! | [`choice`] | the best policy of each cell, and a ranking of policies over all cells |
//! | [`fidelity`] | the text of certificates |
//! | [`chart`] | charts, as SVG |
//! | [`figures`] | figures of the report and of `volary plot` |
//! | [`selection`] | the policies and cells that `volary plot` and `volary compare` show |
//! | [`render`] | `report.html` |
//! | `traces` | the page of `volary trace describe` and `compare` |
//! | [`dashboard`] | the live page |
//! | [`shell`] | command lines that can be pasted |

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "public for the program only")]

#[cfg(feature = "figures")]
pub mod chart;
pub mod choice;
pub mod columns;
#[cfg(feature = "figures")]
pub mod dashboard;
pub mod fidelity;
#[cfg(feature = "figures")]
pub mod figures;
pub mod selection;
pub mod shell;
pub mod style;
pub mod table;

pub mod claims;
#[cfg(feature = "figures")]
mod html;
#[cfg(feature = "figures")]
mod traces;

#[cfg(feature = "figures")]
pub use html::render;
#[cfg(feature = "figures")]
pub use traces::traces_page;
