//! The replay of a run: its actors process logged inputs again and must produce the same effects.
//!
//! Time is taken from the log, so a replay is only as long as the computation; network, cores and clocks are not
//! involved, because their effects are part of the inputs. There are no shards either: [`replay`] steps the actors
//! of a run in order of time through the entries of the logs of all shards, and its results are compared with those
//! of the run.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use volary_actors::base::{ActorId, Rng, Time};
use volary_actors::layout::Role;
use volary_actors::machine::{Effect, Effects, Input, Machine, Oracle};

use crate::metrics::{Accounts, Aggregator, Recorder, Recording, RunConfig};
use crate::parcel::{Observation, Seen};
use crate::results::{Injected, PolicySections, Summary};
use crate::shard::{Parts, Placement};
use crate::world::{EngineError, World};

/// The result of a replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replayed {
    /// Id of the run.
    pub run: String,
    /// Label of the run's policy.
    pub policy: String,
    /// Seed of the run.
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
    /// The measurements of the replay and of the recorded run; empty if the run has no result, or the log does not
    /// reach its end.
    pub measured: Vec<Difference>,
}

impl Replayed {
    /// Whether every step had the logged effects.
    pub const fn is_identical(&self) -> bool {
        self.divergence.is_none()
    }

    /// Whether the results equal the recorded results, for all results that can be compared.
    pub fn is_equal(&self) -> bool {
        self.measured.iter().all(Difference::is_none)
    }
}

/// The early end of a shard's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cut {
    /// Number of the shard.
    pub shard: u16,
    /// The shard's host, in a run on hosts.
    pub host: Option<String>,
    /// Time of the shard's last entry, in emulated seconds; null for an empty log.
    pub at_s: Option<f64>,
}

/// A step whose effects differ from the logged effects.
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
    /// The input of the step, as text.
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

    /// Reads the `count` logged effects of a step, which is the next entry; `None` if the log ends within them.
    /// Afterwards the last effect is the next entry.
    fn effects(&mut self, count: u32) -> Result<Option<Vec<Effect>>, EngineError> {
        let mut effects = Vec::new();
        for _ in 0..count {
            self.advance()?;
            match self.next {
                Some(LogEntry { what: LogEvent::Effect(effect), .. }) => effects.push(effect),
                None => return Ok(None),
                Some(_) => {
                    let why = "the log is damaged: it lacks effects of a step that a program decided";
                    return Err(EngineError::Refused(why.to_owned()));
                }
            }
        }
        Ok(Some(effects))
    }
}

/// The run whose logs are replayed.
#[derive(Debug)]
pub struct Logged<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Time limit of the run, and the data that it recorded.
    pub config: RunConfig,
    /// Whether the run was in real time.
    pub real_time: bool,
    /// Number of shards.
    pub shards: u16,
    /// The results of the run; `None` for a run without results.
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
    // The replay of a run in two passes uses the window that the run's first pass found.
    let found = logged.recorded.and_then(|run| run.window).filter(|_| world.window().is_none());
    let window = found.map(|found| world.since(found.warm_up as u32)).transpose()?;
    let recording = Recording { window, ..logged.config.recording };
    let recorder = world.recorder(recording);
    let mut recorder = ReplayRecorder::new(world, recorder, logged);
    let asked = world.asked();
    let mut divergence = None;
    while let Some(section) = earliest(&mut sections) {
        let Some(entry) = section.next else { break };
        actors.check(&entry).map_err(EngineError::Refused)?;
        section.last = Some(entry.at);
        match entry.what {
            LogEvent::Step { who, input, effects: expected } => {
                let effects = if asked.contains(&who.0) {
                    // The log can end within a step.
                    let Some(effects) = section.effects(expected.count)? else { continue };
                    actors.repeat(effects)
                } else {
                    actors.step(entry.at, who, input)
                };
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
            LogEvent::Effect(_) => {
                let why = "the log is damaged: it has an effect of an actor that no program decides for";
                return Err(EngineError::Refused(why.to_owned()));
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

/// An event on a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// Time of the event. A file stores the difference from the previous entry; a frame's first entry counts from zero.
    pub at: Time,
    /// The kind of event.
    pub what: LogEvent,
}

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LogEvent {
    /// An actor processed an input.
    Step {
        /// The actor that processed the input.
        who: ActorId,
        /// The processed input.
        input: Input,
        /// The digest of the effects.
        effects: Digest,
    },
    /// An effect of the step before, which a program decided.
    Effect(Effect),
    /// The node of a core crashed.
    Crashed(u32),
    /// An endpoint restarted without state, and a node's workers with it.
    Restarted {
        /// The endpoint that restarted.
        who: ActorId,
        /// Number of the endpoint's crashes so far.
        epoch: u32,
    },
    /// The shard ended normally; nothing follows.
    End,
}

/// The digest of the effects of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// Number of effects.
    pub count: u32,
    /// CRC-32 of their encoding.
    pub crc: [u8; 4],
}

/// The state machine of every actor that has had a step, with its random stream.
struct ReplayedActors<'a> {
    parts: Parts<'a>,
    actors: Vec<Option<(Box<dyn Machine>, Rng)>>,
    effects: Vec<Effect>,
    oracle: Option<Oracle>,
    steps: u64,
}

impl<'a> ReplayedActors<'a> {
    fn new(world: &'a World, observed: bool, real_time: bool) -> Result<Self, EngineError> {
        let actors = (0..world.layout().actors()).map(|_| None).collect();
        let parts = Parts { oracle: !real_time, ..world.parts(Placement::ALONE, observed)? };
        let oracle = parts.oracle();
        Ok(Self { parts, actors, effects: Vec::new(), oracle, steps: 0 })
    }

    /// Checks that an entry can belong to this world; the error is the reason.
    fn check(&self, entry: &LogEntry) -> Result<(), String> {
        let layout = self.parts.layout;
        let (what, id, most) = match entry.what {
            LogEvent::Step { who, .. } => ("actor", who.0, layout.actors()),
            LogEvent::Restarted { who, .. } => ("endpoint", who.0, layout.endpoints()),
            LogEvent::Crashed(core) => ("core", core, layout.workers()),
            LogEvent::Effect(_) | LogEvent::End => return Ok(()),
        };
        if id < most {
            return Ok(());
        }
        Err(format!("the log is damaged: it names {what} {id}, but the run has only {most}"))
    }

    /// Steps an actor and returns its effects.
    fn step(&mut self, at: Time, who: ActorId, input: Input) -> &[Effect] {
        let Parts { workload, layout, seed, .. } = self.parts;
        let fresh = || (self.parts.machine(who), Rng::new(seed, who.0, 0));
        let (machine, rng) = self.actors[who.index()].get_or_insert_with(fresh);
        self.effects.clear();
        let fx = Effects::new(at, who, rng, &mut self.effects, workload, layout);
        machine.step(input, &mut fx.with_oracle(self.oracle.as_ref()));
        if let Some(oracle) = &mut self.oracle {
            for effect in &self.effects {
                if let Effect::Run { copy, left: None, .. } = effect {
                    oracle.begin(copy.task.job);
                }
            }
        }
        self.steps += 1;
        &self.effects
    }

    /// Counts a step whose effects a program decided, and returns these logged effects.
    fn repeat(&mut self, effects: Vec<Effect>) -> &[Effect] {
        self.steps += 1;
        self.effects = effects;
        &self.effects
    }

    /// Restarts an endpoint without state. As in a shard, the workers of a node are new; they draw nothing.
    fn restart(&mut self, who: ActorId, epoch: u32) {
        let layout = self.parts.layout;
        let stored = self.actors[who.index()].take().and_then(|(mut machine, _)| machine.stored());
        let mut fresh = self.parts.machine(who);
        if let Some(stored) = stored {
            fresh.restore(stored);
        }
        self.actors[who.index()] = Some((fresh, Rng::new(self.parts.seed, who.0, epoch)));
        let Role::Node(node) = layout.role(who) else { return };
        for worker in (0..layout.cores(node)).map(|core| layout.worker(node, core)) {
            let fresh = self.parts.machine(worker);
            if let Some((machine, _)) = &mut self.actors[worker.index()] {
                *machine = fresh;
            }
        }
    }

    /// The number of steps so far.
    const fn steps(&self) -> u64 {
        self.steps
    }
}

/// Records results as the run did: in virtual time as events occur, in real time from the reports of shards.
enum ReplayRecorder<'a> {
    Virtual { recorder: Box<Recorder<'a>>, now: Time, until: Option<Time> },
    Real(Box<Aggregator<'a>>),
}

impl<'a> ReplayRecorder<'a> {
    fn new(world: &'a World, recorder: Recorder<'a>, logged: &Logged<'_>) -> Self {
        let limit = world.limit(logged.config.until);
        if logged.real_time {
            let heals_at = world.faults().heals_at();
            Self::Real(Box::new(Aggregator::new(recorder, logged.shards as usize, limit, heals_at)))
        } else {
            let until = limit.map(|span| Time::ZERO + span);
            Self::Virtual { recorder: Box::new(recorder), now: Time::ZERO, until }
        }
    }

    fn notes(&mut self, shard: u16, at: Time, who: ActorId, effects: &[Effect]) {
        let notes = effects
            .iter()
            .filter_map(|effect| if let Effect::Note(note) = effect { Some(*note) } else { None });
        match self {
            Self::Virtual { recorder, .. } => notes.for_each(|note| recorder.note(at, who, note)),
            Self::Real(aggregator) => {
                let seen = |note| Observation { at, what: Seen::Note(who, note) };
                aggregator.report(shard as usize, notes.map(seen), at).unwrap_or_else(|report| report.bug());
            }
        }
    }

    fn crashed(&mut self, shard: u16, at: Time, core: u32) {
        match self {
            Self::Virtual { recorder, .. } => recorder.crashed(at, core),
            Self::Real(aggregator) => {
                let crashed = Observation { at, what: Seen::Crashed(core) };
                aggregator.report(shard as usize, [crashed], at).unwrap_or_else(|report| report.bug());
            }
        }
    }

    /// Records the end of a shard.
    fn end(&mut self, shard: u16, at: Time) {
        match self {
            Self::Virtual { now, .. } => *now = at,
            Self::Real(aggregator) => aggregator.end(shard as usize).unwrap_or_else(|report| report.bug()),
        }
    }

    fn close(self) -> Accounts {
        match self {
            Self::Virtual { recorder, now, until } if until == Some(now) => recorder.cut(now),
            Self::Virtual { recorder, now, .. } => recorder.close(now),
            Self::Real(aggregator) => aggregator.close().0,
        }
    }
}

/// A quantity measured in both runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// A key of the summary.
    pub what: String,
    /// The value in the replay; `null` if nothing was measured.
    pub replayed: Value,
    /// The value in the recorded run.
    pub recorded: Value,
}

impl Difference {
    /// Whether both values are equal.
    pub fn is_none(&self) -> bool {
        self.replayed == self.recorded
    }
}

/// Compares every number that the summary takes from the recorder.
fn compare(accounts: &Accounts, recorded: &Summary) -> Vec<Difference> {
    let mut replayed = json!({
        "jobs": accounts.measured.jobs, "tasks": accounts.measured.tasks, "copies": accounts.measured.copies,
        "classes": accounts.classes,
        "makespan_s": accounts.makespan, "drain_s": accounts.drain, "throughput_per_s": accounts.throughput,
        "utilization": accounts.utilization, "goodput": accounts.goodput, "deadlines": accounts.deadlines,
        "graphs": accounts.graphs,
        "values": accounts.policy.values,
    });
    let to_value = |sections: PolicySections| serde_json::to_value(sections).unwrap_or_default();
    let mut sections = to_value(PolicySections::every());
    let measured = to_value(accounts.policy.sections);
    for (key, section) in sections.as_object_mut().into_iter().flatten() {
        *section = measured.get(key).cloned().unwrap_or_default();
    }
    for section in [serde_json::to_value(accounts.times.times).unwrap_or_default(), sections] {
        if let (Some(all), Value::Object(section)) = (replayed.as_object_mut(), section) {
            all.extend(section);
        }
    }
    let recorded = serde_json::to_value(recorded).unwrap_or_default();
    let mut all = Vec::new();
    for (key, value) in replayed.as_object().into_iter().flatten() {
        let recorded = recorded.get(key).cloned().unwrap_or_default();
        match value.as_object() {
            // The recorder of a replay sees no messages.
            Some(parts) => {
                all.extend(parts.iter().filter(|(part, _)| *part != "messages").map(|(part, value)| {
                    Difference {
                        what: format!("{key}.{part}"),
                        replayed: value.clone(),
                        recorded: recorded.get(part).cloned().unwrap_or_default(),
                    }
                }))
            }
            None => all.push(Difference { what: key.clone(), replayed: value.clone(), recorded }),
        }
    }
    all
}
