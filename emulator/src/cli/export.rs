//! The `volary export` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use volary_experiment::storage;
use volary_experiment::storage::export::{ExportFormat, ExportTable, export};

use super::output::{print, warn_of_gaps};

/// Write flat tables of study directories for other programs: runs (with a column for each number), jobs and tasks, or
/// the tables that --table names. Directories with slices of one experiment are merged.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Study directories, or folders with study directories.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The format of the tables.
    #[arg(long, value_enum, default_value = "csv")]
    format: ExportFormat,
    #[arg(long, value_name = "TABLE", value_parser = table, help = about_tables())]
    table: Vec<ExportTable>,
    /// The folder to which the tables are written.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

fn table(name: &str) -> Result<ExportTable, String> {
    let found = ExportTable::all().find(|table| table.name() == name);
    found.ok_or_else(|| format!("expected one of {}", tables()))
}

fn about_tables() -> String {
    format!("Write this table only; can be repeated: {}. If absent, the first three are written", tables())
}

/// The names of all tables.
fn tables() -> String {
    ExportTable::all().map(ExportTable::name).collect::<Vec<_>>().join(", ")
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let runs = options.runs.iter().map(|run| storage::run_dirs(run, None)).collect::<Result<Vec<_>, _>>()?;
    let study = storage::merge(&runs.concat())?;
    warn_of_gaps(&study)?;
    let tables = if options.table.is_empty() { &ExportTable::USUAL[..] } else { &options.table };
    for file in export(&study, tables, options.format, &options.out)? {
        print(&file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
