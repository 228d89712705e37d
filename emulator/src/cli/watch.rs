//! The `volary watch` command.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use volary_report::dashboard::RunFolder;

use super::live::{port, serve};
use super::output::control;

/// Interval between checks of the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// Show a study directory on a page for browsers of this machine, during its run or afterwards, until Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The study directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The port; if absent, any free port.
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true, value_parser = port)]
    port: u16,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let folder = RunFolder::open(&options.run)?;
    let control = control(true, None, None)?;
    let server = serve("--port", options.port, Arc::new(folder))?;
    while !control.stopped() {
        std::thread::sleep(STOP_CHECK);
    }
    server.end("`volary watch` has ended");
    Ok(ExitCode::SUCCESS)
}
