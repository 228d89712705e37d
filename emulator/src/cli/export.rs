//! The `volary export` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::print;
use crate::storage;
use crate::storage::export::{ExportFormat, export};

/// Write flat tables of a run directory for other programs: runs, with a column for each figure, jobs, and tasks.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The run directory.
    run: PathBuf,
    /// The format of the tables.
    #[arg(long, value_enum, default_value = "csv")]
    format: ExportFormat,
    /// The folder of the tables.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let study = storage::load(&options.run)?;
    if let Some(share) = &study.manifest.share {
        tracing::warn!("{}", share.says());
    }
    if study.missing > 0 {
        tracing::warn!("{} of the runs are missing: {}", study.missing, study.manifest.state);
    }
    for file in export(&study, options.format, &options.out)? {
        print(&file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
