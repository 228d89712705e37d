//! Parsers of traces, streamed line by line, with errors that name file, line and field.

mod csv;
mod lines;
mod parse;
mod swf;
mod tr;

#[cfg(test)]
mod tests;
