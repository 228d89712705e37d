//! The replay of the logs of all shards of a run.

use serde::Serialize;
use volary_actors::base::Time;
use volary_actors::machine::Effect;

use super::actors::ReplayedActors;
use super::results::{Difference, ReplayRecorder, compare};
use super::{Digest, LogEntry, LogEvent};
use crate::results::{Injected, Summary};
use crate::virtual_time::RunConfig;
use crate::world::{EngineError, World};

/// The result of a replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replayed {
    /// Id of the run.
    pub run: String,
    /// Label of its policy.
    pub policy: String,
    /// Its seed.
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
    pub const fn is_identical(&self) -> bool {
        self.divergence.is_none()
    }

    /// Whether the results are the recorded ones, as far as they can be compared.
    pub fn is_equal(&self) -> bool {
        self.measured.iter().all(Difference::is_none)
    }
}

/// The early end of a shard's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cut {
    /// The shard.
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

/// An entry of a log, or the reason for which it cannot be read.
type LogRead = Result<LogEntry, String>;

/// The log of a shard, and its next entry.
struct Section<I> {
    shard: u16,
    entries: I,
    next: Option<LogEntry>,
    /// Time of the last entry.
    last: Option<Time>,
    ended: bool,
}

impl<I: Iterator<Item = LogRead>> Section<I> {
    fn advance(&mut self) -> Result<(), EngineError> {
        self.next = self.entries.next().transpose().map_err(EngineError::Refused)?;
        Ok(())
    }
}

/// The run whose logs are replayed.
#[derive(Debug)]
pub struct Logged<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Its time limit, and what it recorded.
    pub config: RunConfig,
    /// Whether it was in real time.
    pub real_time: bool,
    /// Number of shards.
    pub shards: u16,
    /// The results of the run, if it has any.
    pub recorded: Option<&'a Summary>,
}

/// Replays the logs of one run of `world`, each with the number of its shard. `digest` computes the digest of the
/// effects of a step.
///
/// # Errors
/// [`EngineError::Refused`] for a log that is damaged or belongs to another world, or a world that cannot be built.
///
/// # Panics
/// On a bug in a policy that stopped the recorded run as well.
pub fn replay<I: Iterator<Item = LogRead>>(
    world: &World,
    logged: &Logged<'_>,
    logs: impl IntoIterator<Item = (u16, I)>,
    mut digest: impl FnMut(&[Effect]) -> Digest,
) -> Result<Replayed, EngineError> {
    let shards = logged.shards;
    let mut sections = open(logs, shards)?;
    let mut actors = ReplayedActors::new(world, logged.config.recording.observes_caches(), logged.real_time)?;
    let mut recorder = ReplayRecorder::new(world, &logged.config, shards, logged.real_time);
    let mut divergence = None;
    while let Some(section) = earliest(&mut sections) {
        let Some(entry) = section.next else { break };
        actors.check(&entry).map_err(EngineError::Refused)?;
        section.last = Some(entry.at);
        match entry.what {
            LogEvent::Step { who, input, effects: expected } => {
                let effects = actors.step(entry.at, who, input);
                if digest(effects) != expected {
                    let effects = effects.iter().map(|effect| format!("{effect:?}")).collect();
                    divergence = Some(Divergence {
                        step: actors.steps(),
                        at_s: entry.at.as_secs_f64(),
                        actor: who.0,
                        role: format!("{:?}", world.layout().role(who)),
                        input: format!("{input:?}"),
                        effects_logged: expected.count,
                        effects,
                    });
                    break;
                }
                recorder.notes(section.shard, entry.at, who, effects);
            }
            LogEvent::Crashed(core) => recorder.crashed(section.shard, entry.at, core),
            LogEvent::Restarted { who, epoch } => actors.restart(who, epoch),
            LogEvent::End => {
                section.ended = true;
                recorder.end(section.shard, entry.at);
            }
        }
        section.advance()?;
    }
    let cuts = cuts(&sections, shards);
    let whole = cuts.is_empty() && divergence.is_none();
    let recorded = logged.recorded.filter(|_| whole);
    Ok(Replayed {
        run: logged.run.to_owned(),
        policy: world.point().label.clone(),
        seed: world.seed(),
        shards,
        steps: actors.steps(),
        cut: !cuts.is_empty(),
        cuts,
        divergence,
        injections: Vec::new(),
        measured: recorded.map_or_else(Vec::new, |recorded| compare(&recorder.close(), recorded)),
    })
}

/// Reads the first entry of each log.
fn open<I: Iterator<Item = LogRead>>(
    logs: impl IntoIterator<Item = (u16, I)>,
    shards: u16,
) -> Result<Vec<Section<I>>, EngineError> {
    let mut sections: Vec<Section<I>> = Vec::new();
    for (shard, entries) in logs {
        if shard >= shards || sections.iter().any(|section| section.shard == shard) {
            return Err(EngineError::Refused(format!(
                "the log is damaged: it has shard {shard} of {shards} twice"
            )));
        }
        let mut section = Section { shard, entries, next: None, last: None, ended: false };
        section.advance()?;
        sections.push(section);
    }
    sections.sort_by_key(|section| section.shard);
    Ok(sections)
}

/// The shards whose logs end early; a shard may have no section at all.
fn cuts<I: Iterator<Item = LogRead>>(parts: &[Section<I>], shards: u16) -> Vec<Cut> {
    let part = |shard| parts.iter().find(|part| part.shard == shard);
    let cut = |shard| match part(shard) {
        Some(part) if part.ended => None,
        part => Some(Cut { shard, host: None, at_s: part.and_then(|part| Some(part.last?.as_secs_f64())) }),
    };
    (0..shards).filter_map(cut).collect()
}

/// The shard with the earliest next entry.
fn earliest<I: Iterator<Item = LogRead>>(parts: &mut [Section<I>]) -> Option<&mut Section<I>> {
    let waiting = parts.iter_mut().filter_map(|part| Some((part.next?.at, part)));
    waiting.min_by_key(|(at, _)| *at).map(|(_, part)| part)
}
