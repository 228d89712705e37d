//! The `volary export` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::print;
use crate::storage;
use crate::storage::export::{ExportFormat, ExportTable, export};

/// Write flat tables of a run directory for other programs: runs, with a column for each figure, jobs, tasks, and what
/// else was sampled.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The run directory.
    run: PathBuf,
    /// The format of the tables.
    #[arg(long, value_enum, default_value = "csv")]
    format: ExportFormat,
    /// Only this table, several times for several: runs, jobs, tasks, staleness, decisions, cores. If absent the first
    /// three.
    #[arg(long, value_name = "TABLE", value_parser = table)]
    table: Vec<ExportTable>,
    /// The folder of the tables.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

fn table(name: &str) -> Result<ExportTable, String> {
    ExportTable::all().find(|table| table.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ExportTable::all().map(ExportTable::name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let study = storage::load(&options.run)?;
    if let Some(share) = &study.manifest.share {
        tracing::warn!("{}", share.says());
    }
    if study.missing > 0 {
        tracing::warn!("{} of the runs are missing: {}", study.missing, study.manifest.state);
    }
    let tables = if options.table.is_empty() { &ExportTable::USUAL[..] } else { &options.table };
    for file in export(&study, tables, options.format, &options.out)? {
        print(&file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
