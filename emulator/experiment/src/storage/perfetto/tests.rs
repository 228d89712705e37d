//! Traces that are written, decoded and compared with what was measured.

use prost::Message as _;

use super::events::nanoseconds;
use super::proto::{Data, Trace, TrackDescriptor, TrackEvent, Type};
use super::write::RUNS;
use super::write::append;
use super::{CAP_BYTES, write};
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
fn slices_decode_to_what_was_measured() {
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
    let cap = 40_000;
    assert!(write(&mut bytes, records.iter(), cap).unwrap(), "it says that it was cut");
    assert!(bytes.len() <= cap && bytes.len() > cap / 2, "{}", bytes.len());
    let (tracks, events) = decode(&bytes);
    let begun = |record: &RunRecord| record.timeline.iter().filter(|slice| slice.0.start == 0.0).count();
    let at_start = events.iter().filter(|(time, event)| *time == 0 && event.r#type == Some(1)).count();
    assert!(at_start >= records.iter().map(begun).sum(), "every run kept its first slices");
    assert_eq!(tracks.iter().filter(|track| track.process.is_some()).count(), 3);
}

#[test]
fn of_many_runs_the_first_are_shown() {
    let record = records(1).remove(0);
    let short = RunRecord { timeline: record.timeline[..1].to_vec(), ..record };
    let shown = |runs: usize| {
        let mut bytes = Vec::new();
        let cut = write(&mut bytes, std::iter::repeat_n(&short, runs), usize::MAX).unwrap();
        (cut, decode(&bytes).0.iter().filter(|track| track.process.is_some()).count())
    };
    assert_eq!([shown(RUNS), shown(RUNS + 1)], [(false, RUNS), (true, RUNS)]);
}

/// Every flow begins and ends once, on tracks that exist, and not before its cause.
fn check_flows(events: &[(u64, TrackEvent)]) -> usize {
    let begins = events.iter().flat_map(|(at, event)| event.flow_ids.iter().map(move |id| (*id, *at)));
    let begins: std::collections::BTreeMap<u64, u64> = begins.collect();
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
    // A flow for each message, one from its launch to each copy, one from each copy to the report of its end.
    assert_eq!((messages, check_flows(&events)), (2 * copies, 4 * copies));

    let name =
        |id: Option<u64>| tracks.iter().find(|track| track.uuid == id).and_then(|track| track.name.clone());
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
    let (at, report) = events.iter().find(|(_, event)| event.terminating_flow_ids.contains(&report)).unwrap();
    assert_eq!(report.name.as_deref(), Some("launch.completed"));
    assert_eq!(*at, nanoseconds(records[0].timeline[0].0.end));
    let more =
        events.iter().filter(|(_, event)| event.name.as_deref() == Some("3 later messages are not shown"));
    assert_eq!(more.count(), 2);
}

#[test]
fn counters_take_the_values_that_were_sampled() {
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
    let degraded = values("cores degraded, of 8 drawn");
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
