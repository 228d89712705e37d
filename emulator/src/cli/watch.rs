//! The `volary watch` command.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use volary_report::dashboard::RunFolder;

use super::live::{port, serve};
use super::output::control;

/// Interval of the check whether to stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// Show a study directory on a page for browsers of this machine, whether its run has ended or goes on, until Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The study directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The port; any free one if absent.
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true, value_parser = port)]
    port: u16,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let folder = RunFolder::open(&options.run)?;
    let control = control(true, None)?;
    let server = serve("--port", options.port, Arc::new(folder))?;
    while !control.stopped() {
        std::thread::sleep(STOP_CHECK);
    }
    server.end("`volary watch` has ended");
    Ok(ExitCode::SUCCESS)
}
