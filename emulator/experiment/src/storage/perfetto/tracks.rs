//! The tracks of a run, in the order in which they are shown.

use std::collections::BTreeMap;

use super::proto::{COUNT, CounterDescriptor, EXPLICIT, ProcessDescriptor, TrackDescriptor};
use crate::storage::run_record::RunRecord;

/// What a track shows, in the order of tracks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TrackKey {
    /// The number of waiting tasks.
    Waiting,
    /// The number of cores that run a copy.
    Busy,
    /// The number of degraded cores among those that are drawn.
    Degraded,
    /// The group of tracks with messages.
    Messages,
    /// The messages of an actor, by its rank in the group.
    Actor(usize),
    /// The executions of a core.
    Copies(u32),
    /// The degraded intervals of a core.
    Bursts(u32),
}

/// The tracks of a run: a process, and what it contains.
#[derive(Debug)]
pub(super) struct Tracks {
    pid: u32,
    process: TrackDescriptor,
    all: BTreeMap<TrackKey, u64>,
    /// Names of actors by rank.
    actors: Vec<String>,
    /// Nodes of cores.
    nodes: Vec<u32>,
    drawn: usize,
}

/// Ids are global to the trace: the pid is in the upper bits, and the process has zero in the lower ones.
const fn uuid(pid: u32, number: usize) -> u64 {
    ((pid as u64) << 34) + number as u64
}

/// The track of a process.
pub(super) fn process(pid: u32, name: String) -> TrackDescriptor {
    let process = Some(ProcessDescriptor { pid: Some(pid as i32), process_name: Some(name) });
    let child_ordering = Some(EXPLICIT);
    TrackDescriptor { uuid: Some(uuid(pid, 0)), process, child_ordering, ..TrackDescriptor::default() }
}

impl Tracks {
    /// The tracks that a run needs.
    pub(super) fn new(record: &RunRecord, pid: u32) -> Self {
        let summary = &record.summary;
        let name = summary.name();
        let activity = &record.activity;
        let mut actors = activity.actors.clone();
        actors.sort_by_cached_key(|name| rank(name));
        let cores = record.timeline.iter().map(|slice| slice.0.core);
        let mut keys: Vec<TrackKey> =
            cores.chain(record.bursts.iter().map(|burst| burst.0)).map(TrackKey::Copies).collect();
        keys.extend(record.bursts.iter().map(|burst| TrackKey::Bursts(burst.0)));
        if !record.bursts.is_empty() {
            keys.push(TrackKey::Degraded);
        }
        if !activity.load.is_empty() {
            keys.extend([TrackKey::Waiting, TrackKey::Busy]);
        }
        if !actors.is_empty() {
            keys.push(TrackKey::Messages);
            keys.extend((0..actors.len()).map(TrackKey::Actor));
        }
        keys.sort_unstable();
        keys.dedup();
        let shown = keys.iter().filter(|key| matches!(key, TrackKey::Copies(_))).count();
        let drawn = activity.nodes.len().max(shown);
        let all = keys.into_iter().enumerate().map(|(at, key)| (key, uuid(pid, at + 1))).collect();
        Self { pid, process: process(pid, name), all, actors, nodes: activity.nodes.clone(), drawn }
    }

    /// The id of a track; `None` if the run has none such.
    pub(super) fn of(&self, key: TrackKey) -> Option<u64> {
        self.all.get(&key).copied()
    }

    /// The id of the track of an actor.
    pub(super) fn of_actor(&self, name: &str) -> Option<u64> {
        self.of(TrackKey::Actor(self.actors.iter().position(|actor| actor == name)?))
    }

    /// The name of the node of a core.
    pub(super) fn node_of(&self, core: u32) -> Option<String> {
        Some(format!("node {}", self.nodes.get(core as usize)?))
    }

    /// The process, then its tracks.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = TrackDescriptor> {
        let track = |(rank, (key, id)): (usize, (&TrackKey, &u64))| {
            let group = matches!(key, TrackKey::Actor(_)).then(|| self.of(TrackKey::Messages)).flatten();
            let counts = matches!(key, TrackKey::Waiting | TrackKey::Busy | TrackKey::Degraded);
            TrackDescriptor {
                uuid: Some(*id),
                name: Some(self.name(*key)),
                parent_uuid: Some(group.unwrap_or_else(|| uuid(self.pid, 0))),
                counter: counts.then_some(CounterDescriptor { unit: Some(COUNT) }),
                child_ordering: (*key == TrackKey::Messages).then_some(EXPLICIT),
                sibling_order_rank: Some(rank as i32),
                ..TrackDescriptor::default()
            }
        };
        std::iter::once(self.process.clone()).chain(self.all.iter().enumerate().map(track))
    }

    fn name(&self, key: TrackKey) -> String {
        match key {
            TrackKey::Waiting => "tasks waiting".to_owned(),
            TrackKey::Busy => "cores busy".to_owned(),
            TrackKey::Degraded => format!("cores degraded, of {} drawn", self.drawn),
            TrackKey::Messages => "messages of the drawn nodes".to_owned(),
            TrackKey::Actor(rank) => self.actors[rank].clone(),
            TrackKey::Copies(core) => match self.node_of(core) {
                Some(node) => format!("core {core}, {node}"),
                None => format!("core {core}"),
            },
            TrackKey::Bursts(core) => format!("core {core} degraded"),
        }
    }
}

/// The order of actors: nodes behind all others, equal roles by number.
fn rank(name: &str) -> (bool, String, u32) {
    let (role, number) = name.rsplit_once(' ').unwrap_or((name, ""));
    (role == "node", role.to_owned(), number.parse().unwrap_or(u32::MAX))
}
