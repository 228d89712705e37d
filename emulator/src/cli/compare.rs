//! The `volary compare` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::show;
use crate::comparison::compare;
use crate::storage;

/// Compare two runs by policy and cell, with paired intervals where their seeds agree.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A run directory.
    first: PathBuf,
    /// Another run directory.
    second: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let comparison = compare(&storage::load(&options.first)?, &storage::load(&options.second)?);
    anyhow::ensure!(
        !comparison.points.is_empty(),
        "the runs have no policy and cell in common, so there is nothing to compare\n{}",
        comparison.text().trim_end()
    );
    show(options.json, || &comparison, || comparison.text())
}
