//! The file, cut to a size that viewers can load.

use std::io::{self, BufWriter, Write};

use prost::Message;

use super::events::{Event, events, flows};
use super::proto::{Data, Trace, TracePacket, TrackEvent, Type};
use super::tracks::{Tracks, process};
use crate::storage::run_record::RunRecord;

/// Size above which the trace is cut: viewers load traces into memory.
pub const CAP_BYTES: usize = 50_000_000;

/// Limit on the runs that are shown. The share of more would be a moment of each.
pub(in crate::storage) const RUNS: usize = 500;

/// Writes the timelines of `records`, at most `cap` bytes; returns whether something was cut.
///
/// Each run gets the same share of the cap, plus the unused parts of other shares; a run that does not fit is cut at
/// the end. Runs behind the first 500 are left out.
///
/// # Errors
/// `to` cannot be written.
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
            "the file of timelines is not whole: its {cap_mb} MB are shared out among the runs, and the record of a run \
             has a limit; choose fewer runs, shorten run.record.timeline, or leave it out with 0s"
        );
    }
    Ok(cut)
}

/// The packets of one run as bytes of the trace, at most `share`, and whether all of them fit. Its flows are numbered
/// from `flow` on.
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
pub(super) fn append(bytes: &mut Vec<u8>, pid: u32, timestamp: u64, data: Data) {
    let packet =
        TracePacket { timestamp: Some(timestamp), trusted_packet_sequence_id: Some(pid), data: Some(data) };
    bytes.extend(Trace { packet: vec![packet] }.encode_to_vec());
}
