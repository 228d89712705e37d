//! The results of a replay, and their comparison with those of the run.

use serde::Serialize;
use serde_json::{Value, json};
use volary_actors::base::{ActorId, Time};
use volary_actors::machine::Effect;

use crate::metrics::{Accounts, Aggregator, Recorder};
use crate::parcel::{Observation, Seen};
use crate::results::{PolicySections, Summary};
use crate::virtual_time::RunConfig;
use crate::world::World;

/// Records results as the run did: in virtual time as events occur, in real time from the reports of shards.
pub(super) enum ReplayRecorder<'a> {
    Virtual { recorder: Box<Recorder<'a>>, now: Time, until: Option<Time> },
    Real(Box<Aggregator<'a>>),
}

impl<'a> ReplayRecorder<'a> {
    pub(super) fn new(world: &'a World, config: &RunConfig, shards: u16, real_time: bool) -> Self {
        let recorder = world.recorder(config.recording);
        if real_time {
            let heals_at = world.faults().heals_at();
            Self::Real(Box::new(Aggregator::new(recorder, shards as usize, config.until, heals_at)))
        } else {
            let until = config.until.map(|span| Time::ZERO + span);
            Self::Virtual { recorder: Box::new(recorder), now: Time::ZERO, until }
        }
    }

    pub(super) fn notes(&mut self, shard: u16, at: Time, who: ActorId, effects: &[Effect]) {
        let notes = effects.iter().filter_map(|effect| match effect {
            Effect::Note(note) => Some(*note),
            Effect::Send { .. }
            | Effect::Broadcast { .. }
            | Effect::Arm { .. }
            | Effect::Run { .. }
            | Effect::Halt { .. }
            | Effect::QueryProgress { .. } => None,
        });
        match self {
            Self::Virtual { recorder, .. } => notes.for_each(|note| recorder.note(at, who, note)),
            Self::Real(aggregator) => {
                let seen = |note| Observation { at, what: Seen::Note(who, note) };
                aggregator.report(shard as usize, notes.map(seen), at).unwrap_or_else(|report| report.bug());
            }
        }
    }

    pub(super) fn crashed(&mut self, shard: u16, at: Time, core: u32) {
        match self {
            Self::Virtual { recorder, .. } => recorder.crashed(at, core),
            Self::Real(aggregator) => {
                let crashed = Observation { at, what: Seen::Crashed(core) };
                aggregator.report(shard as usize, [crashed], at).unwrap_or_else(|report| report.bug());
            }
        }
    }

    /// Records the end of a shard.
    pub(super) fn end(&mut self, shard: u16, at: Time) {
        match self {
            Self::Virtual { now, .. } => *now = at,
            Self::Real(aggregator) => aggregator.end(shard as usize).unwrap_or_else(|report| report.bug()),
        }
    }

    pub(super) fn close(self) -> Accounts {
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
pub(super) fn compare(accounts: &Accounts, recorded: &Summary) -> Vec<Difference> {
    let mut replayed = json!({
        "jobs": accounts.jobs, "tasks": accounts.tasks, "copies": accounts.copies, "classes": accounts.classes,
        "makespan_s": accounts.makespan, "drain_s": accounts.drain, "throughput_per_s": accounts.throughput,
        "utilization": accounts.utilization, "goodput": accounts.goodput, "deadlines": accounts.deadlines,
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
            Some(parts) => all.extend(parts.iter().map(|(part, value)| Difference {
                what: format!("{key}.{part}"),
                replayed: value.clone(),
                recorded: recorded.get(part).cloned().unwrap_or_default(),
            })),
            None => all.push(Difference { what: key.clone(), replayed: value.clone(), recorded }),
        }
    }
    all
}
