//! The `volary status` command.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use volary_actors::base::Span;
use volary_experiment::storage::manifest::utc_now;
use volary_hosts::cluster::status::status;

use super::output::{print_exact, show};

/// Show the state of the agents of a hosts file.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The hosts file, as `volary certs` writes it.
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// Repeat at this interval until Ctrl-C, with one line per host and the time (UTC); 2s if no value is given.
    #[arg(long, value_name = "PERIOD", num_args = 0..=1, default_missing_value = "2s", value_parser = period)]
    watch: Option<Span>,
    /// Print a JSON array instead of lines; with --watch, on one line each time.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    loop {
        let code = once(options)?;
        let Some(period) = options.watch else { return Ok(code) };
        std::thread::sleep(Duration::from_nanos(period.0));
    }
}

fn period(text: &str) -> Result<Span, String> {
    let period = text.parse::<Span>()?;
    if period < Span::from_millis(100) { Err("the shortest period is 100ms".to_owned()) } else { Ok(period) }
}

/// Shows the states once.
fn once(options: &Options) -> anyhow::Result<ExitCode> {
    let states = status(&options.hosts)?;
    let lines = || match options.watch {
        Some(_) => {
            let now = utc_now();
            let time = now.get(11..19).unwrap_or(&now);
            states.iter().map(|state| format!("{time} {}\n", state.line())).collect()
        }
        None => states.iter().map(|state| format!("{state}\n")).collect(),
    };
    let status = if options.json && options.watch.is_some() {
        print_exact(&format!("{}\n", serde_json::to_string(&states)?))?;
        ExitCode::SUCCESS
    } else {
        show(options.json, || &states, lines)?
    };
    let well = states.iter().all(|state| state.error.is_none());
    Ok(if well { status } else { ExitCode::from(3) })
}
