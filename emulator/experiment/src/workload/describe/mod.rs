//! Descriptions of traces: the characteristics that Park's thesis (chapter 3) compares, and published facts about the
//! traces used in papers.
//!
//! A job's *duration* is the duration of its longest task, which is the job's run time without waiting. Its *size* is
//! its number of tasks. The thesis groups jobs by user; a trace without users has only the spread within jobs.

mod arrivals;
mod description;
mod measure;
mod quantiles;
mod render;

pub use arrivals::Hour;
pub use description::{Description, OutcomeShare, Outcomes, Period, Reference};
pub use measure::describe;
pub use quantiles::Quantiles;
pub use render::{TraceComparison, compare};
