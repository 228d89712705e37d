//! Parsers of traces, streamed line by line, with errors that name file, line and field.

mod alibaba;
mod cells;
mod csv;
mod features;
mod google;
mod lines;
mod parse;
mod swf;
mod table;
mod time;
mod time_unit;
mod tr;

pub(crate) use cells::{cells, other_separator};
pub use features::{GOOGLE, TASKS_UNKNOWN, ZONE};
pub use google::Part;
pub use parse::Reading;
pub use table::ColumnNames;

#[cfg(test)]
mod tests;
