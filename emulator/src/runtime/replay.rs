//! Replay: the actors of a run process the inputs in its log again and must produce the same effects. Time is taken
//! from the log, so a replay is only as long as the computation; network, cores and clocks are not involved, because
//! their effects are part of the inputs.

mod books;
mod cast;
mod run;

use serde::Serialize;
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::{Effect, Input};

pub use books::Difference;
pub use run::{Error, Source, run};

use crate::storage::input_log::{self, Digest, Header, InputLog, LogCursor, LogEntry, LogEvent, LogSection};
use books::Ledger;
use cast::Cast;
use volary_engine::results::{Injected, Summary};

use super::error::UnitError;
use crate::config::RunSection;
use volary_engine::world::World;

/// The result of a replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replayed {
    pub cell: String,
    /// Label of its policy.
    pub policy: String,
    pub seed: u64,
    /// Number of shards that wrote the log.
    pub shards: u16,
    /// Number of steps replayed.
    pub steps: u64,
    /// Whether the log ends before the run did: the run was killed or interrupted, or the file was truncated.
    pub cut: bool,
    /// The shards whose logs end before the run did, with the position.
    pub cuts: Vec<Cut>,
    /// The first step whose effects differ.
    pub divergence: Option<Divergence>,
    /// Injections into the run. Their effects are part of the inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Injected>,
    /// The measurements of the replay and of the recorded run; empty if the run has no result, or the replay has no
    /// end.
    pub measured: Vec<Difference>,
}

impl Replayed {
    /// Whether every step had the logged effects.
    #[must_use]
    pub const fn is_identical(&self) -> bool {
        self.divergence.is_none()
    }

    /// Whether the results are the recorded ones, as far as they can be compared.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.measured.iter().all(Difference::is_none)
    }
}

/// The early end of a shard's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cut {
    pub shard: u16,
    /// The shard's host, in a run on hosts.
    pub host: Option<String>,
    /// Time of its last entry, in emulated seconds; null if it has none.
    pub at_s: Option<f64>,
}

/// A step whose effects differ from the logged ones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Divergence {
    /// Number of the step in the replay, from 1.
    pub step: u64,
    /// Time of the step, in emulated seconds.
    pub at_s: f64,
    /// The actor that processed the input.
    pub actor: u32,
    /// The actor's role.
    pub role: String,
    /// The input.
    pub input: String,
    /// Number of effects in the log.
    pub effects_logged: u32,
    /// The effects in the replay.
    pub effects: Vec<String>,
}

/// The section of a shard, and its next entry.
struct Part {
    shard: u16,
    cursor: LogCursor,
    next: Option<LogEntry>,
    /// Time of the last entry.
    last: Option<Time>,
    ended: bool,
}

/// Replays the sections of one attempt at `world`.
///
/// # Errors
/// [`UnitError::Refused`] for a log that is damaged or belongs to another world, or a world that cannot be built.
///
/// # Panics
/// On a bug in a policy that stopped the recorded run as well.
pub fn replay<R: std::io::Read + std::io::Seek>(
    world: &World,
    run: &RunSection,
    log: &mut InputLog<R>,
    sections: &[LogSection],
    recorded: Option<&Summary>,
) -> Result<Replayed, UnitError> {
    let refused = |error: input_log::Error| UnitError::Refused(error.to_string());
    let Some(Header { cell, policy, seed, shards, .. }) = sections.first().map(|found| found.header.clone())
    else {
        return Err(UnitError::Refused("the log has no section of it".to_owned()));
    };
    let mut parts = Vec::new();
    for found in sections {
        let shard = found.header.shard;
        if shard >= shards || parts.iter().any(|part: &Part| part.shard == shard) {
            return Err(UnitError::Refused(format!(
                "the log is damaged: it has shard {shard} of {shards} twice"
            )));
        }
        let mut cursor = found.cursor();
        let next = log.next(&mut cursor).map_err(refused)?;
        parts.push(Part { shard, cursor, next, last: None, ended: false });
    }
    parts.sort_by_key(|part| part.shard);
    let mut cast = Cast::new(world)?;
    let mut ledger = Ledger::new(world, run, shards)?;
    let mut divergence = None;
    while let Some(part) = earliest(&mut parts) {
        let Some(entry) = part.next else { break };
        cast.check(&entry).map_err(UnitError::Refused)?;
        part.last = Some(entry.at);
        match entry.what {
            LogEvent::Step { who, input, effects } => {
                divergence = cast.step(entry.at, who, input, effects);
                if divergence.is_some() {
                    break;
                }
                ledger.notes(part.shard, entry.at, who, cast.effects());
            }
            LogEvent::Crashed(core) => ledger.crashed(part.shard, entry.at, core),
            LogEvent::Restarted { who, epoch } => cast.restart(who, epoch),
            LogEvent::End => {
                part.ended = true;
                ledger.end(part.shard, entry.at);
            }
        }
        part.next = log.next(&mut part.cursor).map_err(refused)?;
    }
    let cuts = cuts(&parts, shards);
    let cut = !cuts.is_empty();
    let whole = !cut && divergence.is_none();
    let measured = match recorded {
        Some(recorded) if whole => books::compare(&ledger.close(), recorded),
        Some(_) | None => Vec::new(),
    };
    let (steps, injections) = (cast.steps(), Vec::new());
    Ok(Replayed { cell, policy, seed, shards, steps, cut, cuts, divergence, injections, measured })
}

/// The shards whose logs end early; a shard may have no section at all.
fn cuts(parts: &[Part], shards: u16) -> Vec<Cut> {
    let part = |shard| parts.iter().find(|part| part.shard == shard);
    let cut = |shard| match part(shard) {
        Some(part) if part.ended => None,
        part => Some(Cut { shard, host: None, at_s: part.and_then(|part| Some(part.last?.as_secs_f64())) }),
    };
    (0..shards).filter_map(cut).collect()
}

/// The shard with the earliest next entry.
fn earliest(parts: &mut [Part]) -> Option<&mut Part> {
    let waiting = parts.iter_mut().filter_map(|part| Some((part.next?.at, part)));
    waiting.min_by_key(|(at, _)| *at).map(|(_, part)| part)
}

fn divergence(
    step: u64,
    at: Time,
    (actor, role): (ActorId, String),
    input: Input,
    logged: Digest,
    effects: &[Effect],
) -> Divergence {
    Divergence {
        step,
        at_s: at.as_secs_f64(),
        actor: actor.0,
        role,
        input: format!("{input:?}"),
        effects_logged: logged.count,
        effects: effects.iter().map(|effect| format!("{effect:?}")).collect(),
    }
}
