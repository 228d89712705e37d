//! The `volary schema` command.

use std::process::ExitCode;

use clap::Args;

use super::output::show;
use crate::config::reference;
use crate::config::schema::{What, schema};

/// Print the JSON Schema of a file format, for editors and checks, or explain it for readers.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which format.
    what: What,
    /// For readers: every key with its meaning, unit and default; of experiments also the laws, the numbers that
    /// claims can compare, and the grammar of claims.
    #[arg(long)]
    text: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    show(!options.text, || schema(options.what), || reference::text(options.what))
}
