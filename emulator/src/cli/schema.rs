//! `volary schema`

use std::process::ExitCode;

use clap::Args;

use super::print_json;
use crate::spec::schema::{What, schema};

/// Print the JSON Schema of a file format, for editors and checks.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which format.
    what: What,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    print_json(&schema(options.what))?;
    Ok(ExitCode::SUCCESS)
}
