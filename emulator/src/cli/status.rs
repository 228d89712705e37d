//! The `volary status` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use volary_hosts::cluster::status::status;

use super::output::show;

/// Show the state of the agents of a hosts file.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The hosts file, as `volary certs` writes it.
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// Print a JSON array instead of lines.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let states = status(&options.hosts)?;
    let lines = || states.iter().map(|state| format!("{state}\n")).collect();
    let status = show(options.json, || &states, lines)?;
    let well = states.iter().all(|state| state.error.is_none());
    Ok(if well { status } else { ExitCode::from(3) })
}
