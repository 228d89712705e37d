//! The `volary validate` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::hosts::executor::free_cpus;
use clap::Args;
use volary_experiment::config::{ConfigError, Experiment, Overrides, RuntimeKind, describe};
use volary_experiment::control::Fleet;
use volary_experiment::storage::{self, NewFolder};

use super::args;
use super::args::{ExperimentArgs, FleetArgs, argv, runtime as kind};
use super::output::{RENDER, control, print_folded, print_json, write_file};
pub(super) use crate::comparison::Error;
use crate::comparison::{RunVariant, ValidateOptions, validate};
use crate::runtime::RunOptions;

/// Name of the file in the results folder that has the output of `--json`.
const KEPT: &str = "validation.json";

/// Number of agents started if no hosts are given.
const AGENTS: u16 = 3;

/// Run one experiment in several runtimes, and report how far and why their results diverge.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// The runtimes. The first runtime that can run here is the reference for the others. If copies burn real cores
    /// (`run.real`), each real-time runtime runs twice: with timed copies, and with copies that burn.
    #[arg(long, value_delimiter = ',', default_value = "virtual,local,hosts", value_parser = kind)]
    runtimes: Vec<RuntimeKind>,
    /// Emulated seconds per real second, for `local` and `hosts`.
    #[arg(long, value_name = "X")]
    speed: Option<f64>,
    /// Number of runs in each real-time runtime, all with the same seed. With three or more runs, their spread is
    /// measured.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Folder of the study directories and of `validation.json`; `runs/validate-<experiment>` if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the runs in the folder of --out, and run only what is missing.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Number of threads of a run; if absent, one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress bar.
    #[arg(long)]
    quiet: bool,
    /// Exit with status 1 if a faithful run diverges by more than 5 % in a quantile, if a run had other jobs or final
    /// counts than the reference, or if all runs are degraded.
    #[arg(long)]
    check: bool,
}

impl Options {
    fn load(&self, variant: RunVariant) -> Result<Experiment, ConfigError> {
        let mut overrides = Overrides { runtime: Some(variant.runtime), ..self.experiment.overrides() };
        overrides.set.extend(variant.set().map(str::to_owned));
        // Actors on hosts expect losses, so all others must too: compared runs may differ only in their runtime.
        if self.runtimes.contains(&RuntimeKind::Hosts) {
            overrides.set.push("network.expect_loss=true".to_owned());
        }
        overrides.set.extend(self.speed.map(|speed| format!("run.speed={speed}")));
        Experiment::load(&self.experiment.experiment, &overrides)
    }
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let experiment = options.load(RunVariant { runtime: RuntimeKind::Virtual, real: None })?;
    let overload = describe::overload(&experiment);
    experiment.warnings.iter().chain(&overload).for_each(|warning| tracing::warn!("{warning}"));
    let out = options.out.clone();
    if let Some(absent) = out.as_ref().filter(|out| options.resume && !out.exists()) {
        anyhow::bail!(
            "--resume: there is no folder {}; to begin a validation there, leave out --resume",
            absent.display()
        );
    }
    // Only foreign content is refused here; runs of an earlier validation are checked one by one.
    if let Some(Err(foreign @ storage::Error::Foreign { .. })) =
        out.as_ref().map(|out| storage::check_own(out, &[]))
    {
        return Err(foreign.into());
    }
    // If no run can start, a new folder is removed again.
    let name = format!("validate-{}", experiment.name);
    let made = out.is_none().then(|| NewFolder::make(Path::new("runs"), &name)).transpose()?;
    let plan = ValidateOptions {
        variants: RunVariant::all(&experiment, &options.runtimes),
        repeat: options.repeat,
        run: RunOptions {
            out: out.or_else(|| Some(made.as_ref()?.path().to_owned())).unwrap_or_default(),
            resume: options.resume,
            threads: options.threads.map(usize::from),
            // Agents on this machine show the effects of the network and of several processes, but not those of several
            // machines.
            fleet: options.fleet.fleet().or_else(|| Some(Fleet::Spawn(agents(&experiment)))),
            render: RENDER,
            argv: argv(),
            ..RunOptions::default()
        },
    };
    let control = control(options.quiet, None, None)?;
    let validation = validate(&|variant| options.load(variant), &plan, &control).inspect_err(|error| {
        if matches!(error, Error::Broken { .. }) {
            tracing::error!("to run what is missing: {}", args::command(&plan.run.argv, &plan.run.out));
        }
    })?;
    let kept = plan.run.out.join(KEPT);
    write_file(&kept, (serde_json::to_string(&validation)? + "\n").as_bytes())?;
    if options.json {
        print_json(&validation)?;
    } else {
        print_folded(&validation.text())?;
        print_folded(&format!("results: {}, this comparison: {}", plan.run.out.display(), kept.display()))?;
    }
    let failed = options.check && (validation.is_void() || !validation.holds());
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The number of agents to start without hosts: if each agent needs its own CPU, at most the number of CPUs.
fn agents(experiment: &Experiment) -> u16 {
    match experiment.run.real {
        Some(_) => AGENTS.min(free_cpus().len() as u16).max(1),
        None => AGENTS,
    }
}
