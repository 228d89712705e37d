//! Slices, instants, counters and flows of a run.

use std::collections::BTreeMap;

use volary_engine::results::CopyRow;

use super::proto::{DebugAnnotation, TrackEvent, Type, Value};
use super::tracks::{TrackKey, Tracks};
use crate::storage::activity::{Activity, Arrow};
use crate::storage::run_record::RunRecord;
use crate::storage::tables::end_name;

/// An event on a track, ns.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) at: u64,
    /// The end of a slice; `None` for others.
    pub(super) end: Option<u64>,
    pub(super) what: TrackEvent,
}

/// All events of a run in order of time; of those at one time, causes before what follows from them.
pub(super) fn events(record: &RunRecord, tracks: &Tracks, first_flow: u64) -> Vec<Event> {
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
        // Of a message there are two events, sent and delivered.
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
pub(super) fn flows(record: &RunRecord) -> u64 {
    record.activity.messages.len() as u64 + 2 * record.timeline.len() as u64
}

/// Which messages concern which executions, by index.
struct Links {
    /// The latest message about its job that the node of an execution had handled when it began.
    brought_by: Vec<Option<usize>>,
    /// The message about its job that the node sent when it ended.
    reported_by: Vec<Option<usize>>,
}

/// How much later than its cause a message may seem to be sent, ns: delays are known to the microsecond.
const ROUNDING: u64 = 1_000;

impl Links {
    fn of(record: &RunRecord, tracks: &Tracks) -> Self {
        let activity = &record.activity;
        let actor = |name: String| activity.actors.iter().position(|actor| *actor == name);
        // By actor and job: times of messages to it and from it, each in order.
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
                // Each message is about one of the copies that end at once.
                sent.get(first).filter(|(at, _)| *at <= end + ROUNDING)?;
                Some(sent.remove(first).1)
            });
            brought_by.push(came);
            reported_by.push(sent);
        }
        Self { brought_by, reported_by }
    }
}

/// The two events of a message, which a flow joins.
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

/// The slice of an execution.
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

/// What says that later messages were left out.
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

/// A counter takes a value.
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

/// A negative or absent time counts as the start.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
