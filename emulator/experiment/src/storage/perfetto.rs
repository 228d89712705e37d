//! The file `timeline.perfetto-trace` for <https://ui.perfetto.dev>.
//!
//! Each cell, policy and seed is a process. It contains counters (waiting tasks, busy cores, degraded cores among the
//! plotted ones), a group with a track for each actor that exchanged a message with a plotted node, and two tracks for
//! each plotted core: one with a slice for every copy, and one with its degraded intervals. A message is an instant on
//! the track of its sender and an instant on that of its receiver, joined by a flow. Flows also lead from the message
//! that brought a copy to the copy, and from the copy to the message that reports its end.
//!
//! The file is cut to a size that viewers can load. `proto` has the required subset of Perfetto's `trace.proto`.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use prost::Message;
use volary_engine::results::CopyRow;

use super::activity::{Activity, Arrow};
use super::perfetto::proto::{
    COUNT, CounterDescriptor, Data, DebugAnnotation, EXPLICIT, ProcessDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Type, Value,
};
use super::run_record::RunRecord;
use super::tables::end_name;

mod proto;

/// Size above which the trace is cut, since viewers load traces into memory.
pub const CAP_BYTES: usize = 50_000_000;

/// Limit on the runs that are shown. With more runs, the share of each run would be too small to be useful.
pub(in crate::storage) const RUNS: usize = 500;

/// Writes the timelines of `records`, at most `cap` bytes; returns whether the file is incomplete.
///
/// Each run gets the same share of the cap, plus the unused parts of other shares; a run that exceeds its share is cut
/// at the end. Runs after the first 500 are left out.
///
/// # Errors
/// When `to` cannot be written.
pub fn write<'a, W: Write>(
    to: W,
    records: impl Iterator<Item = &'a RunRecord>,
    cap: usize,
) -> io::Result<bool> {
    let shown = |record: &&RunRecord| !record.timeline.is_empty() || !record.activity.messages.is_empty();
    let mut records: Vec<&RunRecord> = records.filter(shown).collect();
    let (mut left, mut cut) = (cap, records.len() > RUNS);
    records.truncate(RUNS);
    let mut to = BufWriter::new(to);
    if records.is_empty() {
        // Viewers refuse an empty file.
        let mut bytes = Vec::new();
        append(&mut bytes, 1, 0, Data::TrackDescriptor(process(1, "nothing was recorded".to_owned())));
        to.write_all(&bytes)?;
    }
    let mut flow = 1;
    for (i, record) in records.iter().enumerate() {
        let share = left / (records.len() - i);
        let (bytes, whole) = encode(record, i as u32 + 1, flow, share);
        to.write_all(&bytes)?;
        left = left.saturating_sub(bytes.len());
        cut |= !whole;
        flow += flows(record);
    }
    to.flush()?;
    if cut {
        let cap_mb = cap / 1_000_000;
        tracing::warn!(
            "the file of timelines is incomplete: the runs share its {cap_mb} MB, and the record of a run \
             has a limit; choose fewer runs, shorten run.record.timeline, or set it to 0s to leave timelines out"
        );
    }
    Ok(cut)
}

/// The packets of one run as bytes of the trace, at most `share`, and whether all of them fit. Ids of flows begin at
/// `flow`.
fn encode(record: &RunRecord, pid: u32, flow: u64, share: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let tracks = Tracks::new(record, pid);
    for track in tracks.descriptors() {
        append(&mut bytes, pid, 0, Data::TrackDescriptor(track));
    }
    if bytes.len() > share {
        return (Vec::new(), false);
    }
    for Event { at, end, what } in events(record, &tracks, flow) {
        let (track_uuid, kept) = (what.track_uuid, bytes.len());
        append(&mut bytes, pid, at, Data::TrackEvent(what));
        if let Some(end) = end {
            let event =
                TrackEvent { r#type: Some(Type::SliceEnd as i32), track_uuid, ..TrackEvent::default() };
            append(&mut bytes, pid, end, Data::TrackEvent(event));
        }
        if bytes.len() > share {
            bytes.truncate(kept);
            return (bytes, false);
        }
    }
    (bytes, !record.cut)
}

/// Appends a packet.
fn append(bytes: &mut Vec<u8>, pid: u32, timestamp: u64, data: Data) {
    let packet =
        TracePacket { timestamp: Some(timestamp), trusted_packet_sequence_id: Some(pid), data: Some(data) };
    bytes.extend(Trace { packet: vec![packet] }.encode_to_vec());
}

/// An event on a track; times in ns.
#[derive(Debug)]
struct Event {
    at: u64,
    /// End time of a slice; `None` for other events.
    end: Option<u64>,
    what: TrackEvent,
}

/// All events of a run by time; at equal times, causes come before their consequences.
fn events(record: &RunRecord, tracks: &Tracks, first_flow: u64) -> Vec<Event> {
    let activity = &record.activity;
    let links = Links::of(record, tracks);
    let mut events = Vec::new();
    for (number, arrow) in activity.messages.iter().enumerate() {
        events.extend(message(activity, tracks, arrow, first_flow + number as u64));
    }
    let first_link = first_flow + activity.messages.len() as u64;
    for (number, slice) in record.timeline.iter().enumerate() {
        let [brought, reported] = [2 * number as u64, 2 * number as u64 + 1].map(|flow| first_link + flow);
        let Some(track) = tracks.of(TrackKey::Copies(slice.0.core)) else { continue };
        let mut copy = copy(slice.0, track);
        // Each message has two events, sent and delivered.
        if let Some(by) = links.brought_by[number] {
            copy.what.terminating_flow_ids.push(brought);
            events[2 * by + 1].what.flow_ids.push(brought);
        }
        if let Some(by) = links.reported_by[number] {
            copy.what.flow_ids.push(reported);
            events[2 * by].what.terminating_flow_ids.push(reported);
        }
        events.push(copy);
    }
    events.extend(left_out(activity, tracks));
    events.extend(record.bursts.iter().filter_map(|burst| degraded(burst, tracks)));
    events.extend(load(activity, tracks));
    events.extend(degraded_cores(record, tracks));
    events.sort_by_key(|event| event.at);
    events
}

/// The number of flows of a run.
fn flows(record: &RunRecord) -> u64 {
    record.activity.messages.len() as u64 + 2 * record.timeline.len() as u64
}

/// Indices of the messages that brought each copy, and of the messages that reported its end.
struct Links {
    /// For each copy, the latest message about its job that its node had handled when the copy began.
    brought_by: Vec<Option<usize>>,
    /// For each copy, the message about its job that its node sent when the copy ended.
    reported_by: Vec<Option<usize>>,
}

/// Rounding error of message times, ns, since delays are rounded to microseconds.
const ROUNDING: u64 = 1_000;

impl Links {
    fn of(record: &RunRecord, tracks: &Tracks) -> Self {
        let activity = &record.activity;
        let actor = |name: String| activity.actors.iter().position(|actor| *actor == name);
        // Times of messages by receiver and job, and by sender and job, each in order.
        let (mut to, mut from) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for (number, arrow) in activity.messages.iter().enumerate() {
            let Some(job) = arrow.job else { continue };
            to.entry((arrow.to, job)).or_default().push((nanoseconds(arrow.delivered), number));
            from.entry((arrow.from, job)).or_default().push((nanoseconds(arrow.sent), number));
        }
        from.values_mut().for_each(|sent| sent.sort_unstable());
        let (mut brought_by, mut reported_by) = (Vec::new(), Vec::new());
        for slice in &record.timeline {
            let row = slice.0;
            let of = tracks.node_of(row.core).and_then(actor).map(|node| (node, row.job));
            let [start, end] = [row.start, row.end].map(nanoseconds);
            let came = of.and_then(|of| to.get(&of)).and_then(|came| {
                came.partition_point(|(at, _)| *at <= start).checked_sub(1).map(|last| came[last].1)
            });
            let sent = of.and_then(|of| from.get_mut(&of)).and_then(|sent| {
                let first = sent.partition_point(|(at, _)| *at < end);
                // A message reports only one copy, so copies that end at the same time are linked to different
                // messages.
                sent.get(first).filter(|(at, _)| *at <= end + ROUNDING)?;
                Some(sent.remove(first).1)
            });
            brought_by.push(came);
            reported_by.push(sent);
        }
        Self { brought_by, reported_by }
    }
}

/// The two events of a message, joined by a flow.
fn message(activity: &Activity, tracks: &Tracks, arrow: &Arrow, flow: u64) -> [Event; 2] {
    let [from, to, kind] = activity.named(arrow).unwrap_or_default();
    let event = |seconds: f64, own: &str, word: &str, other: &str| {
        let job = arrow.job.map(|job| note("job", Value::Uint(u64::from(job))));
        let other = note(word, Value::Text(other.to_owned()));
        let event = TrackEvent {
            r#type: Some(Type::Instant as i32),
            track_uuid: tracks.of_actor(own),
            categories: vec!["message".to_owned()],
            name: Some(kind.to_owned()),
            debug_annotations: std::iter::once(other).chain(job).collect(),
            ..TrackEvent::default()
        };
        Event { at: nanoseconds(seconds), end: None, what: event }
    };
    let mut sent = event(arrow.sent, from, "to", to);
    sent.what.flow_ids.push(flow);
    let mut delivered = event(arrow.delivered, to, "from", from);
    delivered.what.terminating_flow_ids.push(flow);
    [sent, delivered]
}

/// The slice of a copy.
fn copy(row: CopyRow, track: u64) -> Event {
    let notes = [("job", row.job), ("task", row.task), ("attempt", row.attempt)];
    let what = TrackEvent {
        r#type: Some(Type::SliceBegin as i32),
        track_uuid: Some(track),
        categories: vec![end_name(row.end_kind).to_owned()],
        name: Some(format!("{}/{}/{}", row.job, row.task, row.attempt)),
        debug_annotations: notes.map(|(name, value)| note(name, Value::Uint(u64::from(value)))).to_vec(),
        ..TrackEvent::default()
    };
    Event { at: nanoseconds(row.start), end: Some(nanoseconds(row.end)), what }
}

/// The slice of a degraded interval.
fn degraded(&(core, start, end, factor): &(u32, f64, f64, f64), tracks: &Tracks) -> Option<Event> {
    let what = TrackEvent {
        r#type: Some(Type::SliceBegin as i32),
        track_uuid: Some(tracks.of(TrackKey::Bursts(core))?),
        categories: vec!["degraded".to_owned()],
        name: Some(format!("slowdown ×{factor}")),
        debug_annotations: vec![note("slowdown", Value::Double(factor))],
        ..TrackEvent::default()
    };
    Some(Event { at: nanoseconds(start), end: Some(nanoseconds(end)), what })
}

/// The event that states the number of later messages that are left out.
fn left_out(activity: &Activity, tracks: &Tracks) -> Option<Event> {
    let last = activity.messages.last().filter(|_| activity.left_out > 0)?;
    let what = TrackEvent {
        r#type: Some(Type::Instant as i32),
        track_uuid: tracks.of(TrackKey::Messages),
        name: Some(format!("{} later messages are not shown", activity.left_out)),
        ..TrackEvent::default()
    };
    Some(Event { at: nanoseconds(last.delivered), end: None, what })
}

/// An event that sets a counter to a value.
fn counter(seconds: f64, track: Option<u64>, value: i64) -> Option<Event> {
    let what = TrackEvent {
        r#type: Some(Type::Counter as i32),
        track_uuid: Some(track?),
        counter_value: Some(value),
        ..TrackEvent::default()
    };
    Some(Event { at: nanoseconds(seconds), end: None, what })
}

/// The counters of waiting tasks and busy cores.
fn load(activity: &Activity, tracks: &Tracks) -> impl Iterator<Item = Event> {
    let [waiting, busy] = [TrackKey::Waiting, TrackKey::Busy].map(|key| tracks.of(key));
    activity.load.iter().flat_map(move |&(time, tasks, cores)| {
        let tasks = i64::try_from(tasks).unwrap_or(i64::MAX);
        [counter(time, waiting, tasks), counter(time, busy, i64::from(cores))].into_iter().flatten()
    })
}

/// The counter of degraded cores.
fn degraded_cores(record: &RunRecord, tracks: &Tracks) -> Vec<Event> {
    let track = tracks.of(TrackKey::Degraded);
    let mut edges = vec![(0.0, 0)];
    edges.extend(record.bursts.iter().flat_map(|&(_, start, end, _)| [(start, 1), (end, -1)]));
    edges.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut count = 0;
    let at_once = edges.chunk_by(|a, b| a.0 == b.0);
    let value = |edges: &[(f64, i64)]| {
        count += edges.iter().map(|edge| edge.1).sum::<i64>();
        counter(edges[0].0, track, count)
    };
    at_once.filter_map(value).collect()
}

fn note(name: &str, value: Value) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(value) }
}

/// Seconds in nanoseconds; 0 for a negative or missing time.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// The content of a track, in the order of tracks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum TrackKey {
    /// The number of waiting tasks.
    Waiting,
    /// The number of cores that run a copy.
    Busy,
    /// The number of degraded cores among those that are plotted.
    Degraded,
    /// The group of tracks with messages.
    Messages,
    /// The messages of the actor with this rank in the group.
    Actor(usize),
    /// The copies on a core.
    Copies(u32),
    /// The degraded intervals of a core.
    Bursts(u32),
}

/// The tracks of a run, which belong to one process.
#[derive(Debug)]
struct Tracks {
    pid: u32,
    process: TrackDescriptor,
    all: BTreeMap<TrackKey, u64>,
    /// Names of actors by rank.
    actors: Vec<String>,
    /// Node of each core.
    nodes: Vec<u32>,
    drawn: usize,
}

/// The unique id of a track: the pid in the upper bits; in the lower bits its number, zero for the process.
const fn uuid(pid: u32, number: usize) -> u64 {
    ((pid as u64) << 34) + number as u64
}

/// The track of a process.
fn process(pid: u32, name: String) -> TrackDescriptor {
    let process = Some(ProcessDescriptor { pid: Some(pid as i32), process_name: Some(name) });
    let child_ordering = Some(EXPLICIT);
    TrackDescriptor { uuid: Some(uuid(pid, 0)), process, child_ordering, ..TrackDescriptor::default() }
}

impl Tracks {
    /// The tracks that a run needs.
    fn new(record: &RunRecord, pid: u32) -> Self {
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

    /// The id of a track; `None` if the run does not have this track.
    fn of(&self, key: TrackKey) -> Option<u64> {
        self.all.get(&key).copied()
    }

    /// The id of the track of an actor.
    fn of_actor(&self, name: &str) -> Option<u64> {
        self.of(TrackKey::Actor(self.actors.iter().position(|actor| actor == name)?))
    }

    /// The name of a core's node.
    fn node_of(&self, core: u32) -> Option<String> {
        Some(format!("node {}", self.nodes.get(core as usize)?))
    }

    /// The descriptor of the process, then those of its tracks.
    fn descriptors(&self) -> impl Iterator<Item = TrackDescriptor> {
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
            TrackKey::Degraded => format!("cores degraded, of {} shown", self.drawn),
            TrackKey::Messages => "messages of the nodes shown".to_owned(),
            TrackKey::Actor(rank) => self.actors[rank].clone(),
            TrackKey::Copies(core) => match self.node_of(core) {
                Some(node) => format!("core {core}, {node}"),
                None => format!("core {core}"),
            },
            TrackKey::Bursts(core) => format!("core {core} degraded"),
        }
    }
}

/// The sort key of actors: nodes come last, actors of one role are sorted by number.
fn rank(name: &str) -> (bool, String, u32) {
    let (role, number) = name.rsplit_once(' ').unwrap_or((name, ""));
    (role == "node", role.to_owned(), number.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::proto::{Data, Trace, TrackDescriptor, TrackEvent, Type};
    use super::*;
    use crate::storage::activity::Activity;
    use crate::storage::fixture::measured;
    use crate::storage::run_record::RunRecord;
    use crate::storage::tables::end_name;

    fn records(count: u64) -> Vec<RunRecord> {
        (0..count).map(|seed| RunRecord::new(&seed.to_string(), &measured("a", &[], seed, 1.0, 5))).collect()
    }

    fn decode(bytes: &[u8]) -> (Vec<TrackDescriptor>, Vec<(u64, TrackEvent)>) {
        let (mut tracks, mut events) = (Vec::new(), Vec::new());
        for packet in Trace::decode(bytes).unwrap().packet {
            match packet.data.unwrap() {
                Data::TrackDescriptor(track) => tracks.push(track),
                Data::TrackEvent(event) => events.push((packet.timestamp.unwrap(), event)),
            }
        }
        (tracks, events)
    }

    #[test]
    fn slices_decode_to_the_measured_copies() {
        let records = records(2);
        let mut bytes = Vec::new();
        assert!(!write(&mut bytes, records.iter(), CAP_BYTES).unwrap());
        let (tracks, events) = decode(&bytes);
        let processes: Vec<_> = tracks.iter().filter_map(|track| track.process.as_ref()).collect();
        assert_eq!(processes[1].process_name.as_deref(), Some("a, seed 1"));
        let slices: usize = records.iter().map(|record| record.timeline.len() + record.bursts.len()).sum();
        let of_type = |kind: Type| events.iter().filter(move |(_, event)| event.r#type == Some(kind as i32));
        assert_eq!(of_type(Type::SliceBegin).count(), slices);
        assert_eq!(of_type(Type::SliceEnd).count(), slices);

        let second = tracks.iter().find(|track| track.process.as_ref() == Some(processes[1])).unwrap();
        let named = |track: &&TrackDescriptor| track.name.as_deref() == Some("core 3, node 1");
        let core = tracks.iter().filter(named).find(|track| track.parent_uuid == second.uuid).unwrap();
        let on_core: Vec<_> = events.iter().filter(|(_, event)| event.track_uuid == core.uuid).collect();
        let expected: Vec<_> =
            records[1].timeline.iter().map(|slice| slice.0).filter(|row| row.core == 3).collect();
        assert_eq!(on_core.len(), 2 * expected.len());
        for (pair, row) in on_core.chunks(2).zip(&expected) {
            let [(begin, first), (end, last)] = pair else { panic!("a slice has two ends") };
            assert_eq!((*begin, *end), (nanoseconds(row.start), nanoseconds(row.end)));
            assert_eq!((first.r#type, last.r#type), (Some(1), Some(2)));
            assert_eq!(first.categories, [end_name(row.end_kind)]);
            assert_eq!(first.name, Some(format!("{}/{}/{}", row.job, row.task, row.attempt)));
        }
        let uuids: std::collections::BTreeSet<_> = tracks.iter().map(|track| track.uuid).collect();
        assert_eq!(uuids.len(), tracks.len(), "track ids are unique");
    }

    /// The expected bytes are written by hand from the field numbers of the published protocol.
    #[test]
    fn encoded_bytes_follow_the_published_protocol() {
        let event = TrackEvent { r#type: Some(2), track_uuid: Some(5), ..TrackEvent::default() };
        let mut bytes = Vec::new();
        append(&mut bytes, 7, 300, Data::TrackEvent(event));
        // Packet (1) of 11 bytes: timestamp(8) 300, sequence(10) 7, track_event(11) of 4: type(9) 2, track(11) 5.
        assert_eq!(bytes, [0x0a, 11, 0x40, 0xac, 0x02, 0x50, 7, 0x5a, 4, 0x48, 2, 0x58, 5]);
    }

    #[test]
    fn a_trace_without_runs_is_valid() {
        let mut bytes = Vec::new();
        assert!(!write(&mut bytes, std::iter::empty(), CAP_BYTES).unwrap());
        let (tracks, events) = decode(&bytes);
        assert_eq!((tracks.len(), events.len()), (1, 0));
        assert!(tracks[0].process.as_ref().unwrap().process_name.as_deref() == Some("nothing was recorded"));
    }

    #[test]
    fn a_timeline_that_is_cut_keeps_its_beginning() {
        let records = records(3);
        let mut bytes = Vec::new();
        let cap = 40_000;
        assert!(write(&mut bytes, records.iter(), cap).unwrap(), "the result states that the trace was cut");
        assert!(bytes.len() <= cap && bytes.len() > cap / 2, "{}", bytes.len());
        let (tracks, events) = decode(&bytes);
        let begun = |record: &RunRecord| record.timeline.iter().filter(|slice| slice.0.start == 0.0).count();
        let at_start = events.iter().filter(|(time, event)| *time == 0 && event.r#type == Some(1)).count();
        assert!(at_start >= records.iter().map(begun).sum(), "every run kept its first slices");
        assert_eq!(tracks.iter().filter(|track| track.process.is_some()).count(), 3);
    }

    #[test]
    fn a_trace_of_many_runs_shows_only_the_first_ones() {
        let record = records(1).remove(0);
        let short = RunRecord { timeline: record.timeline[..1].to_vec(), ..record };
        let shown = |runs: usize| {
            let mut bytes = Vec::new();
            let cut = write(&mut bytes, std::iter::repeat_n(&short, runs), usize::MAX).unwrap();
            (cut, decode(&bytes).0.iter().filter(|track| track.process.is_some()).count())
        };
        assert_eq!([shown(RUNS), shown(RUNS + 1)], [(false, RUNS), (true, RUNS)]);
    }

    /// Checks that every flow begins and ends once, on tracks that exist, and not before its cause.
    fn check_flows(events: &[(u64, TrackEvent)]) -> usize {
        let begins = events.iter().flat_map(|(at, event)| event.flow_ids.iter().map(move |id| (*id, *at)));
        let begins: BTreeMap<u64, u64> = begins.collect();
        let ends =
            events.iter().flat_map(|(at, event)| event.terminating_flow_ids.iter().map(move |id| (*id, *at)));
        let ends: Vec<(u64, u64)> = ends.collect();
        assert_eq!(begins.len(), ends.len(), "each flow has two ends");
        for (id, at) in &ends {
            assert!(begins[id] <= *at, "flow {id} ends before it begins");
        }
        let distinct: std::collections::BTreeSet<u64> = ends.iter().map(|(id, _)| *id).collect();
        assert_eq!(distinct.len(), ends.len(), "no number is used twice");
        ends.len()
    }

    #[test]
    fn messages_are_flows_from_sender_to_receiver() {
        let records = records(2);
        let mut bytes = Vec::new();
        write(&mut bytes, records.iter(), CAP_BYTES).unwrap();
        let (tracks, events) = decode(&bytes);
        let messages: usize = records.iter().map(|record| record.activity.messages.len()).sum();
        let copies: usize = records.iter().map(|record| record.timeline.len()).sum();
        // There is a flow for each message, from the launch to each copy, and from each copy to the report of its end.
        assert_eq!((messages, check_flows(&events)), (2 * copies, 4 * copies));

        let name = |id: Option<u64>| {
            tracks.iter().find(|track| track.uuid == id).and_then(|track| track.name.clone())
        };
        let (copy, brought) = {
            let (_, copy) = events.iter().find(|(_, event)| event.name.as_deref() == Some("0/0/0")).unwrap();
            let [flow] = copy.terminating_flow_ids[..] else { panic!("a copy has one cause") };
            (copy, events.iter().find(|(_, event)| event.flow_ids.contains(&flow)).unwrap())
        };
        assert_eq!(name(copy.track_uuid).as_deref(), Some("core 0, node 0"));
        let (at, launch) = brought;
        assert_eq!((launch.name.as_deref(), *at), (Some("launch.row"), 0));
        assert_eq!(name(launch.track_uuid).as_deref(), Some("node 0"));
        let sent = events.iter().find(|(_, event)| event.flow_ids == launch.terminating_flow_ids).unwrap();
        assert_eq!(name(sent.1.track_uuid).as_deref(), Some("scheduler 0"));
        let [report] = copy.flow_ids[..] else { panic!("a copy has one report") };
        let (at, report) =
            events.iter().find(|(_, event)| event.terminating_flow_ids.contains(&report)).unwrap();
        assert_eq!(report.name.as_deref(), Some("launch.completed"));
        assert_eq!(*at, nanoseconds(records[0].timeline[0].0.end));
        let more = events
            .iter()
            .filter(|(_, event)| event.name.as_deref() == Some("3 later messages are not shown"));
        assert_eq!(more.count(), 2);
    }

    #[test]
    fn counters_have_the_sampled_values() {
        let records = records(1);
        let mut bytes = Vec::new();
        write(&mut bytes, records.iter(), CAP_BYTES).unwrap();
        let (tracks, events) = decode(&bytes);
        let values = |name: &str| -> Vec<(u64, i64)> {
            let track = tracks.iter().find(|track| track.name.as_deref() == Some(name)).unwrap();
            assert!(track.counter.is_some(), "{name} is a counter");
            let own = events.iter().filter(|(_, event)| event.track_uuid == track.uuid);
            own.map(|(at, event)| (*at, event.counter_value.unwrap())).collect()
        };
        let load = &records[0].activity.load;
        let expected: Vec<_> = load.iter().map(|row| (nanoseconds(row.0), row.1 as i64)).collect();
        assert_eq!(values("tasks waiting"), expected);
        let expected: Vec<_> = load.iter().map(|row| (nanoseconds(row.0), i64::from(row.2))).collect();
        assert_eq!(values("cores busy"), expected);
        let degraded = values("cores degraded, of 8 shown");
        assert_eq!(degraded.last().unwrap().1, 0);
        for (at, count) in degraded {
            let within =
                |burst: &&(u32, f64, f64, f64)| (nanoseconds(burst.1)..nanoseconds(burst.2)).contains(&at);
            assert_eq!(count, records[0].bursts.iter().filter(within).count() as i64, "at {at} ns");
        }
    }

    #[test]
    fn a_record_without_activity_has_a_trace_without_messages() {
        let record = RunRecord { activity: Activity::default(), ..records(1)[0].clone() };
        let mut bytes = Vec::new();
        write(&mut bytes, [&record].into_iter(), CAP_BYTES).unwrap();
        let (tracks, events) = decode(&bytes);
        assert_eq!(check_flows(&events), 0);
        let names: Vec<_> = tracks.iter().filter_map(|track| track.name.as_deref()).collect();
        assert!(names.contains(&"core 3") && !names.contains(&"tasks waiting"), "{names:?}");
    }
}
