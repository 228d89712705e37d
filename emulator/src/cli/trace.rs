//! The `volary trace` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use volary_actors::base::Span;
use volary_engine::workload::Trace;

use super::output::{print, show};
use crate::files::Files;
use crate::number::plural;
use crate::workload::{self, Reference, Traces, describe};

/// Describe or convert workload traces.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Describe a trace: jobs, fan-outs, durations, arrivals, and a comparison with published figures.
    Describe {
        /// The trace; also looked for in the folders of VOLARY_TRACES.
        file: PathBuf,
        /// Published trace to compare with.
        #[arg(long)]
        reference: Option<Reference>,
        /// Boundary between short and long jobs.
        #[arg(long)]
        cutoff: Option<Span>,
        /// Only the first N jobs.
        #[arg(long, value_name = "N")]
        jobs: Option<u32>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Convert a trace to the .tr format, packed as the new name says (.tr, .tr.xz, .tr.zst, .tr.gz).
    Convert {
        /// The trace; also looked for in the folders of VOLARY_TRACES.
        file: PathBuf,
        /// The new file.
        to: PathBuf,
        /// Only the first N jobs.
        #[arg(long, value_name = "N")]
        jobs: Option<u32>,
    },
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.command {
        Command::Describe { file, reference, cutoff, jobs, json } => {
            let description = describe(&read(file, *jobs)?, *reference, *cutoff);
            show(*json, || &description, || description.to_string())
        }
        Command::Convert { file, to, jobs } => {
            let trace = read(file, *jobs)?;
            for note in trace.notes() {
                tracing::warn!("{note}");
            }
            workload::write(&trace, to)?;
            let (jobs, tasks) = (trace.jobs().len() as u64, trace.tasks());
            print(&format!("{}, {}: {}", plural(jobs, "job"), plural(tasks, "task"), to.display()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn read(file: &Path, jobs: Option<u32>) -> anyhow::Result<Trace> {
    anyhow::ensure!(
        !file.is_dir(),
        "{} is a folder; name a trace in it: .tr, .swf or .csv, plain or as .xz, .zst or .gz",
        file.display()
    );
    let found = Traces::beside(&Files::of_disk(), Path::new("")).find(file)?;
    Ok(workload::read(&found, jobs)?)
}
