//! `volary completions`

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, print};

/// Print a script that completes volary's command line in a shell.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which shell.
    shell: Shell,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "volary", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
