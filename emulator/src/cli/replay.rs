//! The `volary replay` command.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use volary_experiment::number;

use super::output::print;
use crate::runtime::replay::{self, Cut, Difference, Divergence, Replayed};

/// Step the actors of each run through its logged inputs, and compare their effects and the results.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The study directory of an experiment with `run.record.inputs = true`.
    study: PathBuf,
    /// Replay only this run; if absent, all runs of the log.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let mut source = replay::open(&options.study)?;
    let runs = options.run.clone().map_or_else(|| source.runs(), |run| vec![run]);
    let mut status = 0;
    for run in &runs {
        match source.replay(run) {
            Ok(replayed) => {
                let text = if options.json { serde_json::to_string(&replayed)? } else { text(&replayed) };
                print(&text)?;
                status = status.max(verdict(&replayed));
            }
            Err(replay::Error::Run { run, why }) => {
                tracing::error!("run {run}: {why}");
                status = 3;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(damage) = source.damage() {
        tracing::error!("{damage}; everything before that was replayed");
        status = 3;
    } else if source.is_cut() {
        tracing::error!("the log ends within a frame: the run was killed, or the file was truncated");
        status = 3;
    } else if runs.is_empty() {
        tracing::error!("the log has no run: no run began while the log was written");
        status = 3;
    }
    if let Some(why) = source.ends_early().filter(|_| options.run.is_none()) {
        tracing::error!("{why}");
        status = if status == 0 { 3 } else { status };
    }
    Ok(ExitCode::from(status))
}

/// The exit status: 1 if the replay differs, 3 if the log ends before the run does.
fn verdict(replayed: &Replayed) -> u8 {
    let same = replayed.is_identical() && replayed.is_equal();
    if !same { 1 } else { 3 * u8::from(replayed.cut) }
}

fn text(replayed: &Replayed) -> String {
    let Replayed { run, policy, seed, shards, steps, .. } = replayed;
    let mut text = format!("{policy}, seed {seed}, run {run}, {shards} shards\n  ");
    let steps = number::count(*steps);
    let _ = match (&replayed.divergence, replayed.cut) {
        (Some(divergence), _) => write!(text, "{}", differs(divergence)),
        (None, true) => write!(text, "{steps} steps replayed up to where the log ends, effects identical"),
        (None, false) => write!(text, "{steps} steps replayed, effects identical"),
    };
    if replayed.divergence.is_none() {
        replayed.cuts.iter().for_each(|cut| text.push_str(&ends(cut, *shards)));
    }
    for injected in &replayed.injections {
        let _ = write!(text, "\n  {}", injected.describe());
    }
    if !replayed.measured.is_empty() {
        results(&replayed.measured, &mut text);
    } else if replayed.divergence.is_none() {
        text.push_str("\n  the run has no result to compare with");
    }
    text
}

/// The text about the shard whose log ends early, with the time of its end.
fn ends(cut: &Cut, shards: u16) -> String {
    let Cut { shard, host, at_s } = cut;
    let host = host.as_ref().map(|host| format!(", host {host},")).unwrap_or_default();
    let place = at_s.map_or_else(|| "has no entry".to_owned(), |at_s| format!("ends early, at {at_s:.9} s"));
    format!("\n  the log of shard {shard} of {shards}{host} {place}")
}

fn differs(divergence: &Divergence) -> String {
    let Divergence { step, at_s, actor, role, input, effects_logged, effects } = divergence;
    let mut text = format!(
        "step {} differs, at {at_s:.9} s: actor {actor} ({role})\n    input    {input}\n    \
         effects  {effects_logged} in the log, {} in the replay",
        number::count(*step),
        effects.len()
    );
    for effect in effects {
        let _ = write!(text, "\n              {effect}");
    }
    text
}

/// Metrics that are always shown; other metrics are shown only if they differ.
const SHOWN: [&str; 6] = [
    "jobs.finished",
    "response_s.mean",
    "response_s.p50",
    "response_s.p90",
    "response_s.p99",
    "response_s.max",
];

fn results(measured: &[Difference], text: &mut String) {
    let _ = write!(text, "\n  {:<24} {:>22} {:>22}", "", "replayed", "recorded");
    for line in measured.iter().filter(|line| SHOWN.contains(&line.what.as_str()) || !line.is_none()) {
        let mark = if line.is_none() { "" } else { "  differs" };
        let (replayed, recorded) = (plain(&line.replayed), plain(&line.recorded));
        let _ = write!(text, "\n  {:<24} {replayed:>22} {recorded:>22}{mark}", line.what);
    }
    let equal = measured.iter().filter(|line| line.is_none()).count();
    let _ = write!(text, "\n  {equal} of {} numbers of the summary are equal", measured.len());
}

fn plain(value: &Value) -> String {
    if value.is_null() { "unmeasured".to_owned() } else { value.to_string() }
}
