//! The `volary report` command.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use volary_engine::results::{Cell, Summary};
use volary_experiment::config::claims::{self, Claim};
use volary_experiment::storage::manifest::{PlannedPoint, RunState};
use volary_experiment::storage::study::{Study, json_lines};
use volary_experiment::storage::{self, Error, LockedDir, RenderedReport};
use volary_report::claims::claims_table;
use volary_report::{columns, table};

use super::args;
use super::args::{TableArgs, argv};
use super::output::{RENDER, print, print_exact, print_folded};

/// Show the results of study directories, and write their report. Directories with slices of one experiment are merged.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Study directories, or folders with study directories.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Make this folder a study directory with all results: manifest, runs, summary, tables, timeline and report.html.
    /// If absent, the files that are made from the runs of a single study directory are written to that directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Refuse if a run of the experiment is missing: name the slices and folders that lack runs, write nothing, and
    /// exit with status 3.
    #[arg(long, conflicts_with = "markdown")]
    complete: bool,
    /// Print JSON lines instead of a table.
    #[arg(long)]
    json: bool,
    /// Print no table.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    quiet: bool,
    /// Print the claims and verdicts of all runs as one Markdown table; the runs may belong to different experiments.
    #[arg(long, conflicts_with_all = ["json", "out"])]
    markdown: bool,
    #[command(flatten)]
    table: TableArgs,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let Some(style) = options.table.style()? else {
        print_folded(&columns::help())?;
        return Ok(ExitCode::SUCCESS);
    };
    if options.markdown {
        let studies: Result<Vec<_>, _> = run_dirs(options)?.iter().map(|run| storage::load(run)).collect();
        let mut studies = studies?;
        studies.iter_mut().for_each(judge_lost);
        print(claims_table(&studies).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = run_dirs(options)?;
    let own = match (&options.out, runs.as_slice()) {
        (None, [run]) => {
            storage::load_manifest(run)?; // fails for a folder without a run
            Some(run)
        }
        _ => None,
    };
    // The folder is locked while it is read, so that a run that ends at the same time does not change it.
    let held = own.map(|own| LockedDir::take(own, &[]));
    let mut study = storage::merge(&runs)?;
    if matches!(held, Some(Ok(_))) {
        study.manifest.state = study.manifest.state.without_its_process();
    }
    let gaps = storage::gaps(&study)?;
    if options.complete && !gaps.is_empty() {
        gaps.iter().for_each(|gap| tracing::error!("{gap}"));
        tracing::error!("--complete: no file was written, because runs are missing");
        return Ok(ExitCode::from(3));
    }
    if runs.len() > 1 {
        judge_again(&mut study);
    }
    // For a single folder, the table names the missing runs.
    if runs.len() > 1 || options.quiet {
        gaps.iter().for_each(|gap| tracing::warn!("{gap}"));
    }
    if options.out.is_some() {
        study.manifest.argv = argv();
    }
    judge_lost(&mut study);
    let folder = held.or_else(|| options.out.as_ref().map(|out| LockedDir::take(out, &study.folders)));
    let written = write(folder, own, &study);
    // Results are shown even if the files cannot be written.
    let unwritten = matches!(written, Err(Error::Io { .. } | Error::Rows { .. }));
    if !unwritten && let Err(refused) = written {
        return Err(refused.into());
    }
    if options.json {
        print_exact(&json_lines(&study))?;
    } else if !options.quiet {
        print_folded(&table::warnings(&study))?;
        print(&table::text(&study, &style))?;
    }
    if let Some(note) = written?
        && !options.json
        && !options.quiet
    {
        print(&note)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files that are made from runs to the folder locked for them; returns a note for the user. `own` is the
/// study directory if the files are written to it.
fn write(
    folder: Option<Result<LockedDir, Error>>,
    own: Option<&PathBuf>,
    study: &Study,
) -> Result<Option<String>, Error> {
    let folder = match folder {
        None => return Ok(Some("name a folder with --out to write a report".to_owned())),
        // A run in progress writes its report at its end. A lock of another folder is an error.
        Some(Err(Error::Locked { pid, .. })) if own.is_some() => {
            tracing::warn!(
                "no report was written, because process {pid} uses the folder; name another folder with --out"
            );
            return Ok(None);
        }
        // Users with only read access can still see the results.
        Some(Err(Error::Io { source, .. })) if own.is_some() && is_read_only(source.kind()) => {
            tracing::warn!(
                "no report was written, because the folder is read-only; name another folder with --out"
            );
            return Ok(None);
        }
        Some(folder) => folder?,
    };
    if let Some(own) = own
        && study.missing > 0
    {
        tracing::warn!("to run what is missing: {}", args::command(&study.manifest.argv, own));
    }
    folder.write(study, RENDER.unwrap_or(|_| RenderedReport::default()))?;
    Ok(RENDER.map(|_| format!("report: {}", folder.root().join(storage::REPORT).display())))
}

const fn is_read_only(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The named study directories, without the one that is to be written.
fn run_dirs(options: &Options) -> Result<Vec<PathBuf>, Error> {
    let found = options.runs.iter().map(|run| storage::run_dirs(run, options.out.as_deref()));
    Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Judges the claims of a finished study that has no verdicts.
fn judge_lost(study: &mut Study) {
    if study.claims.is_empty() && study.manifest.state == RunState::Finished {
        judge_again(study);
    }
}

/// Judges claims again on the results of all slices, since claims may compare results of different slices. Verdicts are
/// kept if a manifest lacks the planned experiment.
fn judge_again(study: &mut Study) {
    let read = || -> Option<(Vec<Claim>, Vec<Cell>, Vec<Cell>)> {
        let manifest = &study.manifest;
        let claims = serde_json::from_value(manifest.spec.get("claims")?.clone()).ok()?;
        let mut cells: Vec<Cell> = manifest.points().map(PlannedPoint::cell).collect();
        cells.dedup();
        let stand_ins = manifest.points().filter(|point| point.has_stand_in()).map(PlannedPoint::cell);
        Some((claims, cells, stand_ins.collect()))
    };
    if let Some((claims, cells, stand_ins)) = read() {
        let summaries: Vec<Summary> = study.records().map(|record| record.summary.clone()).collect();
        study.claims = claims::judge(&claims, &cells, &stand_ins, &summaries);
    }
}
