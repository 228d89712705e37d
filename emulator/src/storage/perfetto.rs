//! The file `timeline.perfetto-trace`: executions and degraded intervals for <https://ui.perfetto.dev>.
//!
//! One process per cell, policy and seed; in it one track per core with a slice for each execution, and below it a
//! track of the core's degraded intervals. The messages are the required subset of Perfetto's `trace.proto`, with its
//! field numbers.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use prost::Message;
use volary_engine::results::cell_name;

use super::tables::end_name;
use crate::storage::cell::CellRecord;

/// Size above which the trace is cut: viewers load traces into memory.
pub const CAP_BYTES: usize = 50_000_000;

/// Writes the timelines of `records`, at most `cap` bytes; returns whether something was cut.
///
/// Each run gets the same share of the cap, plus the unused parts of other shares; a run that does not fit is cut at
/// the end.
///
/// # Errors
/// `to` cannot be written.
pub fn write<'a, W: Write>(
    to: W,
    records: impl Iterator<Item = &'a CellRecord>,
    cap: usize,
) -> io::Result<bool> {
    let records: Vec<&CellRecord> = records.filter(|record| !record.timeline.is_empty()).collect();
    let mut to = BufWriter::new(to);
    let (mut left, mut cut) = (cap, false);
    if records.is_empty() {
        // Viewers refuse an empty file.
        let mut bytes = Vec::new();
        append(&mut bytes, 1, 0, process(1, "nothing was recorded".to_owned(), None));
        to.write_all(&bytes)?;
    }
    for (i, record) in records.iter().enumerate() {
        let share = left / (records.len() - i);
        let (bytes, whole) = encode(record, i as u32 + 1, share);
        to.write_all(&bytes)?;
        left = left.saturating_sub(bytes.len());
        cut |= !whole;
    }
    to.flush()?;
    if cut {
        tracing::warn!(
            cap_mb = cap / 1_000_000,
            "the timeline was cut to stay small; run fewer cells for longer ones"
        );
    }
    Ok(cut)
}

/// The packets of one run as bytes of the trace, at most `share`, and whether all of them fit.
fn encode(record: &CellRecord, pid: u32, share: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    describe(record, pid, &mut bytes);
    let mut slices = slices(record, pid);
    slices.sort_by_key(|(begin, ..)| *begin);
    for (begin, end, event) in slices {
        let (track_uuid, kept) = (event.track_uuid, bytes.len());
        append(&mut bytes, pid, begin, Data::TrackEvent(event));
        let event = TrackEvent { r#type: Some(Type::SliceEnd as i32), track_uuid, ..TrackEvent::default() };
        append(&mut bytes, pid, end, Data::TrackEvent(event));
        if bytes.len() > share {
            bytes.truncate(kept);
            return (bytes, false);
        }
    }
    (bytes, !record.cut)
}

/// Appends a packet. A trace is a sequence of packets, so it can be written incrementally.
fn append(bytes: &mut Vec<u8>, pid: u32, timestamp: u64, data: Data) {
    let packet =
        TracePacket { timestamp: Some(timestamp), trusted_packet_sequence_id: Some(pid), data: Some(data) };
    bytes.extend(Trace { packet: vec![packet] }.encode_to_vec());
}

fn process(pid: u32, name: String, child_ordering: Option<i32>) -> Data {
    let process = Some(ProcessDescriptor { pid: Some(pid as i32), process_name: Some(name) });
    let uuid = Some(process_uuid(pid));
    Data::TrackDescriptor(TrackDescriptor { uuid, process, child_ordering, ..TrackDescriptor::default() })
}

/// Appends the process and its tracks.
fn describe(record: &CellRecord, pid: u32, bytes: &mut Vec<u8>) {
    let summary = &record.summary;
    let words = [summary.policy.clone(), cell_name(&summary.cell), format!("seed {}", summary.seed)];
    let name = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" · ");
    append(bytes, pid, 0, process(pid, name, Some(EXPLICIT)));
    let mut cores: BTreeMap<u32, bool> = record.timeline.iter().map(|slice| (slice.0.core, false)).collect();
    cores.extend(record.bursts.iter().map(|burst| (burst.0, true)));
    for (core, degraded) in cores {
        let mut track = |kind: u32, name: String| {
            let descriptor = TrackDescriptor {
                uuid: Some(track_uuid(pid, core, kind)),
                name: Some(name),
                parent_uuid: Some(process_uuid(pid)),
                sibling_order_rank: Some((2 * core + kind) as i32),
                ..TrackDescriptor::default()
            };
            append(bytes, pid, 0, Data::TrackDescriptor(descriptor));
        };
        track(COPIES, format!("core {core}"));
        if degraded {
            track(DEGRADED, format!("core {core} degraded"));
        }
    }
}

const COPIES: u32 = 0;
const DEGRADED: u32 = 1;

/// Track ids are global to the trace: pid in the high bits, then 1 + twice the core + kind.
const fn track_uuid(pid: u32, core: u32, kind: u32) -> u64 {
    ((pid as u64) << 34) + 1 + 2 * core as u64 + kind as u64
}

const fn process_uuid(pid: u32) -> u64 {
    (pid as u64) << 34
}

/// All slices as begin, end (ns) and the event that begins them.
fn slices(record: &CellRecord, pid: u32) -> Vec<(u64, u64, TrackEvent)> {
    let begin = |core, kind, name: String, category: &str, notes: Vec<DebugAnnotation>| TrackEvent {
        r#type: Some(Type::SliceBegin as i32),
        track_uuid: Some(track_uuid(pid, core, kind)),
        categories: vec![category.to_owned()],
        name: Some(name),
        debug_annotations: notes,
    };
    let copies = record.timeline.iter().map(|slice| {
        let row = &slice.0;
        let name = format!("{}/{}/{}", row.job, row.task, row.attempt);
        let notes = [("job", row.job), ("task", row.task), ("attempt", row.attempt)];
        let notes = notes.map(|(name, value)| note(name, Value::Uint(u64::from(value)))).to_vec();
        (row.start, row.end, begin(row.core, COPIES, name, end_name(row.end_kind), notes))
    });
    let bursts = record.bursts.iter().map(|&(core, start, end, factor)| {
        let notes = vec![note("slowdown", Value::Double(factor))];
        (start, end, begin(core, DEGRADED, format!("slowdown ×{factor}"), "degraded", notes))
    });
    let in_ns = |(start, end, event): (f64, f64, _)| (nanoseconds(start), nanoseconds(end), event);
    copies.chain(bursts).map(in_ns).collect()
}

fn note(name: &str, value: Value) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(value) }
}

/// A negative or absent time counts as the start.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`: children in order of their rank.
const EXPLICIT: i32 = 3;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    /// ns.
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    /// Begin and end of a slice must come from one sequence.
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(oneof = "Data", tags = "11, 60")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Data {
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "Type", optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum Type {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
    #[prost(oneof = "Value", tags = "3, 5")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(uint64, tag = "3")]
    Uint(u64),
    #[prost(double, tag = "5")]
    Double(f64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

    fn records(count: u64) -> Vec<CellRecord> {
        (0..count).map(|seed| CellRecord::new(&seed.to_string(), &measured("a", &[], seed, 1.0, 5))).collect()
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
    fn slices_decode_to_what_was_measured() {
        let records = records(2);
        let mut bytes = Vec::new();
        assert!(!write(&mut bytes, records.iter(), CAP_BYTES).unwrap());
        let (tracks, events) = decode(&bytes);
        let processes: Vec<_> = tracks.iter().filter_map(|track| track.process.as_ref()).collect();
        assert_eq!(processes[1].process_name.as_deref(), Some("a · seed 1"));
        let slices: usize = records.iter().map(|record| record.timeline.len() + record.bursts.len()).sum();
        assert_eq!(events.len(), 2 * slices);

        let second = tracks.iter().find(|track| track.process.as_ref() == Some(processes[1])).unwrap();
        let named = |track: &&TrackDescriptor| track.name.as_deref() == Some("core 3");
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

    /// The first bytes by hand, from the field numbers of the published protocol.
    #[test]
    fn bytes_are_those_of_the_protocol() {
        let event = TrackEvent { r#type: Some(2), track_uuid: Some(5), ..TrackEvent::default() };
        let mut bytes = Vec::new();
        append(&mut bytes, 7, 300, Data::TrackEvent(event));
        // Packet (1) of 11 bytes: timestamp(8) 300, sequence(10) 7, track_event(11) of 4: type(9) 2, track(11) 5.
        assert_eq!(bytes, [0x0a, 11, 0x40, 0xac, 0x02, 0x50, 7, 0x5a, 4, 0x48, 2, 0x58, 5]);
    }

    #[test]
    fn a_trace_of_nothing_is_a_trace() {
        let mut bytes = Vec::new();
        assert!(!write(&mut bytes, std::iter::empty(), CAP_BYTES).unwrap());
        let (tracks, events) = decode(&bytes);
        assert_eq!((tracks.len(), events.len()), (1, 0));
        assert!(tracks[0].process.as_ref().unwrap().process_name.as_deref() == Some("nothing was recorded"));
    }

    #[test]
    fn a_long_timeline_keeps_its_beginning() {
        let records = records(3);
        let mut bytes = Vec::new();
        let cap = 20_000;
        assert!(write(&mut bytes, records.iter(), cap).unwrap(), "it says that it was cut");
        assert!(bytes.len() <= cap && bytes.len() > cap / 2, "{}", bytes.len());
        let (tracks, events) = decode(&bytes);
        let begun = |record: &CellRecord| record.timeline.iter().filter(|slice| slice.0.start == 0.0).count();
        let at_start = events.iter().filter(|(time, event)| *time == 0 && event.r#type == Some(1)).count();
        assert!(at_start >= records.iter().map(begun).sum(), "every run kept its first slices");
        assert_eq!(tracks.iter().filter(|track| track.process.is_some()).count(), 3);
    }
}
