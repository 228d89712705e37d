//! The `volary profile` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use volary_actors::base::Span;
use volary_engine::cores::Interference;
use volary_engine::cores::config::BurstTrace;
use volary_engine::cores::show::Show;
use volary_experiment::config;
use volary_experiment::config::presets::{PRESETS, Preset};
use volary_experiment::files::Files;
use volary_experiment::fit;

use super::output;

/// Show interference profiles: presets, which are built in, and files.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

/// Limit on the number of slots shown.
const MOST: f64 = 1e7;

#[derive(Debug, Subcommand)]
enum Command {
    /// List the presets: the profiles that experiments and commands can name without a file.
    List {
        /// Print the names and whole texts as JSON: sources, assumptions and keys.
        #[arg(long)]
        json: bool,
    },
    #[cfg(feature = "hosts")]
    Record(super::record::RecordOptions),
    /// Fit the on/off model, in which gaps and bursts of random lengths alternate, to a trace of bursts. The output is
    /// a profile; its comment states the quality of the fit.
    Fit {
        /// The trace, in a format that `[interference.trace]` reads.
        trace: PathBuf,
    },
    /// Show the times at which a profile slows down each core in a run with this seed.
    Show {
        /// The name of a preset, or a profile file.
        profile: PathBuf,
        /// Number of cores, or of nodes or racks if these are the scope of the profile.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        cores: u32,
        /// End of the shown time.
        #[arg(long, default_value = "10s")]
        until: Span,
        /// Seed of the run.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print every burst as JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.command {
        #[cfg(feature = "hosts")]
        Command::Record(options) => super::record::main(options),
        Command::Fit { trace } => {
            let table = BurstTrace { file: Some(trace.clone()), ..BurstTrace::default() };
            let table = Interference { trace: Some(table), ..Interference::default() };
            let profile = table.load(Path::new(""), |path| Files::of_disk().whole(path))?;
            let model = fit::fit(&profile).map_err(|why| anyhow!("{}: {why}", trace.display()))?;
            // Refuses a model that experiments would refuse.
            model.profile()?;
            output::print(&model.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::List { json } => output::show(*json, list_json, list),
        Command::Show { profile, cores, until, seed, json } => {
            let profile = config::profile(profile)?;
            let show = Show { units: *cores, until: *until, seed: *seed };
            if show.until == Span::ZERO || show.size(&profile) > MOST {
                return Err(anyhow!(
                    "--until {until}: {:.0} slots on {cores} cores are not between 1 and {MOST:e}\n  = help: show a \
                     shorter or longer time, or fewer cores",
                    show.size(&profile)
                ));
            }
            output::show(*json, || show.json(&profile), || show.text(&profile))
        }
    }
}

/// The presets, a line each.
fn list() -> String {
    let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let line = |preset: &Preset| format!("{:width$}  {}\n", preset.name, preset.title());
    PRESETS.iter().map(line).collect()
}

fn list_json() -> Value {
    PRESETS.iter().map(|preset| json!({ "name": preset.name, "text": preset.text })).collect()
}
