//! The `volary compare` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use volary_experiment::storage::{self, Study};

use super::args::SelectionArgs;
use super::output::{print_folded, print_json, width};
use crate::comparison::compare;

/// Compare two studies by policy and cell, with paired intervals where their seeds agree.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A study directory.
    first: PathBuf,
    /// Another study directory.
    second: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let selection = options.selection.selection();
    let selected = |run: &Path| -> anyhow::Result<Study> {
        let mut study = storage::load(run)?;
        selection.keep(&mut study).with_context(|| run.display().to_string())?;
        Ok(study)
    };
    let comparison = compare(&selected(&options.first)?, &selected(&options.second)?);
    if options.json {
        print_json(&comparison)?;
    }
    anyhow::ensure!(
        !comparison.points.is_empty(),
        "the studies have no policy and cell in common, and cannot be compared\n{}",
        comparison.text(None).trim_end()
    );
    if !options.json {
        print_folded(&comparison.text(width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
