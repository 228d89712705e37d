//! Replay: the machines of a run are stepped again through what they were told, as its log has it, and must
//! answer the same. Time is the log's, so it takes no longer than the steps do; network, cores and clocks
//! have no part in it, because all that they did is in the inputs.

mod books;
mod cast;
mod run;

use serde::Serialize;
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::{Effect, Input};

pub use books::Difference;
pub use run::{Error, Source, run};

use crate::results::{Injected, Summary};
use crate::storage::input_log::{self, Digest, Header, InputLog, LogCursor, LogEntry, LogEvent, LogSection};
use books::Ledger;
use cast::Cast;

use super::error::UnitError;
use crate::config::RunSection;
use volary_engine::world::World;

/// What a replay found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replayed {
    /// The cell's id.
    pub cell: String,
    /// Label of its policy.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Shards that wrote the log.
    pub shards: u16,
    /// Steps replayed.
    pub steps: u64,
    /// Whether the log ends before the run did: the run was killed or interrupted, or the file was cut.
    pub cut: bool,
    /// The shards whose logs end before the run did, and where.
    pub cuts: Vec<Cut>,
    /// The first step whose effects differ.
    pub divergence: Option<Divergence>,
    /// What was injected into the run: its inputs tell what that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Injected>,
    /// What the replayed run and the recorded one measured; empty if the run has no result, or the replay no end.
    pub measured: Vec<Difference>,
}

impl Replayed {
    /// Whether every step had the effects that it had.
    #[must_use]
    pub const fn is_identical(&self) -> bool {
        self.divergence.is_none()
    }

    /// Whether the results are those that were recorded, as far as they can be compared.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.measured.iter().all(Difference::is_none)
    }
}

/// Where the log of a shard ends early.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cut {
    /// Which shard.
    pub shard: u16,
    /// The host that it was on, of a run on hosts.
    pub host: Option<String>,
    /// Time of its last entry, in emulated seconds; null if it has none.
    pub at_s: Option<f64>,
}

/// A step whose effects are not those that were logged.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Divergence {
    /// Which step of the replay, from one.
    pub step: u64,
    /// When, in emulated seconds.
    pub at_s: f64,
    /// Who was stepped.
    pub actor: u32,
    /// What it is.
    pub role: String,
    /// What it was told.
    pub input: String,
    /// How many effects it had.
    pub effects_logged: u32,
    /// Those that it has now.
    pub effects: Vec<String>,
}

/// A shard's section, and its next entry.
struct Part {
    shard: u16,
    cursor: LogCursor,
    next: Option<LogEntry>,
    /// Time of the last entry.
    last: Option<Time>,
    ended: bool,
}

/// Steps the machines of `world` through the sections of one attempt at it.
///
/// # Errors
/// [`UnitError::Refused`] for a log that is damaged or of something else, or a world that cannot be.
///
/// # Panics
/// On a bug in a policy, where the recorded run stopped as well.
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

/// The shards that did not end in order; one may have no section at all.
fn cuts(parts: &[Part], shards: u16) -> Vec<Cut> {
    let part = |shard| parts.iter().find(|part| part.shard == shard);
    let cut = |shard| match part(shard) {
        Some(part) if part.ended => None,
        part => Some(Cut { shard, host: None, at_s: part.and_then(|part| Some(part.last?.as_secs_f64())) }),
    };
    (0..shards).filter_map(cut).collect()
}

/// The shard whose next entry comes first.
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
