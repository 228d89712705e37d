//! The `volary plan` command.

use std::process::ExitCode;

use clap::Args;
use volary_experiment::config::describe;
use volary_experiment::storage::slices::SweepSlice;

use super::args::RunArgs;
use super::output::show;

/// Check an experiment file and show it resolved, without running it.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    experiment: RunArgs,
    /// Show only every N-th run, beginning with run I.
    #[arg(long, visible_alias = "shard", value_name = "I/N")]
    slice: Option<SweepSlice>,
    /// Print the resolved experiment as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let experiment = options.experiment.load()?;
    if options.json {
        experiment.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    let (json, text) = (describe::json, describe::text);
    show(options.json, || json(&experiment, options.slice), || text(&experiment, options.slice))
}
