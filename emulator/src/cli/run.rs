//! The `volary run` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, ValueEnum};
use volary_engine::results::{Verdict, run_id};
use volary_experiment::config::error::nearest;
use volary_experiment::config::{Experiment, RuntimeKind};
use volary_experiment::control::Fleet;
use volary_experiment::files::Files;
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::run_record::RunRecord;
use volary_experiment::storage::slices::SweepSlice;
use volary_experiment::storage::{self, NewFolder, study};
use volary_experiment::{cost, number};
use volary_report::{columns, table};

use super::args;
use super::args::{FleetArgs, RunArgs, TableArgs, argv};
use super::live::{LiveArgs, LivePage};
use super::output::{RENDER, control, print, print_exact, print_folded};
use crate::hosts::as_recorded;
use crate::runtime::{self, Outcome, RunOptions, StudyError};

/// Run an experiment and write its results to a study directory.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    experiment: RunArgs,
    /// The study directory; if absent, `runs/<experiment>`, with a number if that folder exists.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the results in the study directory, and run only what is missing. Without --out, continue the latest study
    /// of the experiment. With --resume=auto, begin a new study if there is none: this suits jobs that are started
    /// repeatedly.
    #[arg(long, value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "there", hide_possible_values = true)]
    resume: Option<Resume>,
    /// Number of runs in parallel; if absent, one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Run only every N-th run (cell, policy and replication), beginning with number I, counted from 1. If a job index
    /// J counts from 0, write J+1/N.
    #[arg(long, visible_alias = "shard", value_name = "I/N")]
    slice: Option<SweepSlice>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Give the nodes of each host the interference that `volary profile record` recorded on it: DIR/NAME.csv for the
    /// host NAME. The cores of these nodes take the CPUs of the recording in turn.
    #[arg(long, value_name = "DIR")]
    as_recorded: Option<PathBuf>,
    #[command(flatten)]
    table: TableArgs,
    /// Print one JSON object per cell, policy and seed, then the claims, instead of a table.
    #[arg(long)]
    json: bool,
    /// Show no progress bar, and print no table.
    #[arg(long)]
    quiet: bool,
    /// Do not write report.html. `volary report` writes it later, for example for all slices of a sweep.
    #[arg(long)]
    no_report: bool,
    /// Exit with status 1 if a claim fails.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    live: LiveArgs,
    /// Emulated seconds per real second in virtual time, such as 5, so that an audience can follow with --live. All
    /// policies of a cell run side by side. Results do not change.
    #[arg(long, value_name = "FACTOR", value_parser = pace)]
    pace: Option<f64>,
}

fn pace(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| format!("`{text}` is not a number from 0.000001 to 1000000"))
}

/// The condition for continuing an earlier study.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Resume {
    /// Continue an earlier study, which must exist.
    There,
    /// Continue an earlier study if there is one; otherwise begin a new one.
    Auto,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let Some(style) = options.table.style()? else {
        print_folded(&columns::help())?;
        return Ok(ExitCode::SUCCESS);
    };
    let experiment = options.prepare()?;
    if let Some(unknown) = style.unknown_classes(&experiment.classes.iter().map(String::as_str).collect()) {
        anyhow::bail!(unknown);
    }
    if options.pace.is_some() && experiment.run.runtime != RuntimeKind::Virtual {
        anyhow::bail!("--pace applies only to runs in virtual time; for real time set run.speed");
    }
    // If the study cannot start, a new folder is removed again.
    let (out, _made) = folder(options, &experiment.name)?;
    let run = RunOptions {
        out,
        resume: options.resume.is_some(),
        threads: threads(options, &experiment),
        slice: options.slice,
        fleet: options.fleet.fleet(),
        render: (!options.no_report).then_some(RENDER).flatten(),
        argv: argv(),
    };
    let live = options.live.open(&experiment, &run)?;
    let control = control(options.quiet, live.as_ref().map(LivePage::observer), options.pace)?;
    let outcome = runtime::run(&experiment, &run, &control).inspect_err(|error| {
        if matches!(error, StudyError::StudyDir(_) | StudyError::Inputs(_)) {
            tracing::error!(
                "the study stops early; finished runs are in {}; to run the rest: {}",
                run.out.display(),
                args::command(&run.argv, &run.out)
            );
        }
    })?;
    if let Some(live) = live {
        live.end(outcome.state, &run.out)?;
    }
    if options.json {
        print_exact(&study::json_lines(&outcome.study))?;
    } else if !options.quiet {
        print(&table::text(&outcome.study, &style))?;
        print(&summary(&outcome, &run.out))?;
        if experiment.run.runtime == RuntimeKind::Virtual && options.pace.is_none() {
            print(&threads_used(&outcome, begun))?;
        }
    }
    if control.stopped() && outcome.state == RunState::Finished {
        tracing::warn!("stopped after the last run: all results are complete");
    }
    if options.check {
        warn_untested(&outcome, options);
    }
    Ok(status(&outcome, &run, &experiment, options.check))
}

/// The number of parallel runs. A paced run mostly waits, so the policies of a cell can share processors.
fn threads(options: &Options, experiment: &Experiment) -> Option<usize> {
    let policies = options.pace.map(|_| experiment.labels().len());
    options.threads.map(usize::from).or(policies)
}

impl Options {
    /// Loads the experiment.
    fn prepare(&self) -> anyhow::Result<Experiment> {
        let change = |folder: &PathBuf| {
            let fleet = self.fleet.fleet().ok_or_else(|| {
                anyhow::anyhow!(
                    "--as-recorded needs hosts: add --runtime hosts with --hosts FILE or --spawn N, or write \
                     [[interference.injection]]"
                )
            })?;
            anyhow::Ok(as_recorded(&self.experiment.load()?, &fleet, folder)?)
        };
        let change = self.as_recorded.as_ref().map(change).transpose()?;
        Ok(self.experiment.prepare(change)?)
    }
}

/// The study directory, with a guard. The guard removes a directory that was made here and is still empty.
fn folder(options: &Options, name: &str) -> anyhow::Result<(PathBuf, Option<NewFolder>)> {
    if let Some(out) = &options.out {
        if options.resume == Some(Resume::There) && !out.join(storage::MANIFEST).exists() {
            anyhow::bail!(nothing_to_resume(out));
        }
        return Ok((out.clone(), None));
    }
    let runs = Path::new("runs");
    let latest = options.resume.and_then(|_| storage::latest(runs, name));
    if latest.is_none() && options.resume == Some(Resume::There) {
        anyhow::bail!(
            "--resume: there is no study of `{name}` in {}; name its folder with --out, or leave out --resume",
            runs.display()
        );
    }
    if let Some(latest) = latest {
        return Ok((latest, None));
    }
    let made = NewFolder::make(runs, name)?;
    Ok((made.path().to_owned(), Some(made)))
}

/// The error for `--resume` without a study directory. A misspelt name must not start a study from the beginning.
fn nothing_to_resume(out: &Path) -> String {
    let beside = Files::of_disk().beside(out).unwrap_or_default();
    let runs = beside.iter().filter(|name| out.with_file_name(name).join(storage::MANIFEST).exists());
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let meant = match nearest(&name, runs.map(String::as_str)) {
        Some(run) => format!("did you mean {}? To", out.with_file_name(run).display()),
        None => "to".to_owned(),
    };
    format!("--resume: there is no study in {}; {meant} begin one there, leave out --resume", out.display())
}

/// Warns of claims that `--check` could not test. An untested claim has not failed.
fn warn_untested(outcome: &Outcome, options: &Options) {
    let open: Vec<_> = outcome.claims.iter().filter(|claim| claim.verdict == Verdict::NotTested).collect();
    if open.is_empty() {
        return;
    }
    let why = if options.experiment.of.narrows() || options.slice.is_some() {
        "--policy, --set or --slice leaves out runs that these claims compare"
    } else if open.iter().any(|claim| claim.has_stand_in()) {
        "a generator replaces the trace of these claims"
    } else {
        "a number in these claims was not measured"
    };
    let all = number::plural(outcome.claims.len() as u64, "claim");
    tracing::warn!("{} of {all} could not be tested: {why}", open.len());
}

/// The summary of a study: number and cost of its runs, its directory, and the hash that identifies equal results.
fn summary(outcome: &Outcome, out: &Path) -> String {
    let engine = outcome.summaries.iter().map(|summary| &summary.engine);
    let (events, cpu) = engine.clone().fold((0, 0.0), |(n, s), e| (n + e.events, s + e.cpu_s));
    let hashes: Vec<_> = engine.map(|e| e.order_hash.as_str()).collect();
    let (events, cpu) = (number::plural(events, "event"), number::seconds(cpu));
    let cost = match outcome.summaries.len() as u64 {
        0 => "no run has finished".to_owned(),
        runs => format!(
            "{}, {events} in {cpu} of CPU time, order hash {}",
            number::plural(runs, "run"),
            run_id(&hashes.into())
        ),
    };
    let report = out.join(storage::REPORT);
    let report = if report.exists() { format!("\nreport:  {}", report.display()) } else { String::new() };
    format!("{cost}\nresults: {}{report}", out.display())
}

/// The use of the threads as text: the share of their time in which they computed, and the time before the first run
/// and after the last.
fn threads_used(Outcome { threads, span: [first, last], .. }: &Outcome, begun: Instant) -> String {
    let (all, cpu) = (begun.elapsed().as_secs_f64(), cost::process_cpu_s());
    let [before, after] = [*first - begun, last.elapsed()].map(|span| number::seconds(span.as_secs_f64()));
    let busy = number::percent((cpu / (all * *threads as f64)).min(1.0));
    format!(
        "threads: {threads}, {busy} busy in {} ({before} before the first run, {after} after the last)",
        number::seconds(all)
    )
}

fn status(outcome: &Outcome, run: &RunOptions, experiment: &Experiment, check: bool) -> ExitCode {
    let (section, asks_programs) = (&experiment.run, experiment.has_programs());
    let (runtime, bounded) = (section.runtime, section.until.is_some());
    let broken = match outcome.state {
        RunState::Finished => false,
        RunState::Running | RunState::Interrupted => {
            let (out, kept) =
                (run.out.display(), outcome.study.failures.iter().filter(|run| run.interrupted));
            let nothing = outcome.summaries.is_empty() && kept.clone().next().is_none();
            let there =
                if nothing { "nothing was measured yet" } else { &format!("the measurements are in {out}") };
            for failure in kept {
                let file = storage::failure_path(&run.out, &failure.id);
                tracing::error!("{} was {}; its log is {}", failure.name(), failure.reason(), file.display());
            }
            tracing::error!("interrupted; {there}; to run the rest: {}", args::command(&run.argv, &run.out));
            true
        }
        RunState::Failed => {
            for failure in &outcome.failures {
                let kept = storage::failure_path(&run.out, &failure.id);
                let kept = failure.summary.as_ref().map_or_else(String::new, |_| {
                    format!("; the measurements until then are in {}", kept.display())
                });
                tracing::error!("{} failed: {}{kept}", failure.name(), failure.log);
            }
            let first = if matches!(run.fleet, Some(Fleet::Hosts { .. })) {
                "where a host was lost, start its agent again or leave it out of the hosts file; "
            } else {
                ""
            };
            if runtime == RuntimeKind::Virtual && asks_programs {
                tracing::error!(
                    "correct the program of the policy; then, to run what failed: {}",
                    args::command(&run.argv, &run.out)
                );
            } else if runtime == RuntimeKind::Virtual {
                tracing::error!(
                    "in virtual time a run fails again under the same seed: change the experiment, and run it into another folder"
                );
            } else {
                tracing::error!("{first}to run what failed: {}", args::command(&run.argv, &run.out));
            }
            true
        }
    };
    let mut stuck = outcome.summaries.iter().filter(|s| s.unfinished() > 0).peekable();
    let failed = outcome.claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count();
    if broken {
        ExitCode::from(3)
    } else if let (Some(&first), false) = (stuck.peek(), bounded) {
        let same = |run: &&RunRecord| {
            let run = &run.summary;
            (&run.policy, &run.cell, run.seed) == (&first.policy, &first.cell, first.seed)
        };
        let notes = outcome.study.records().find(same).map_or(&[][..], |run| &run.notes);
        let notes: String = notes.iter().map(|note| format!("\n  {note}")).collect();
        tracing::error!(
            "{} left jobs unfinished; the first run is {}: {} of {}{notes}",
            number::plural(stuck.count() as u64, "run"),
            first.name(),
            number::count(first.unfinished()),
            number::plural(first.arrived(), "job")
        );
        ExitCode::from(3)
    } else if check && failed > 0 {
        tracing::error!("{failed} of {} failed", number::plural(outcome.claims.len() as u64, "claim"));
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}
