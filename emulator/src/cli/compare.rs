//! The `volary compare` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::{print, print_json};
use crate::comparison::compare;
use crate::storage;

/// Set two runs side by side: policy by policy, cell by cell, with paired intervals where seeds agree.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A run directory.
    first: PathBuf,
    /// Another.
    second: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let comparison = compare(&storage::load(&options.first)?, &storage::load(&options.second)?);
    if options.json {
        print_json(&comparison)?;
    } else {
        print(&comparison.text())?;
    }
    Ok(ExitCode::SUCCESS)
}
