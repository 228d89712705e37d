//! What the fuzzer and the replay of its corpus feed: every parser that reads what a user wrote, a disk may
//! have spoilt or a peer sent. Errors are fine, panics are not.

use std::io::Cursor;
use std::path::Path;

use volary::cluster::protocol::{InjectReply, InjectorMessage};
use volary::codec::{self, Batch};
use volary::config::claims::Check;
use volary::config::{Bundle, Experiment, Overrides};
use volary::files::Pack;
use volary::storage::input_log::{InputLog, frame, prefix};
use volary::workload::decompress;
use volary_engine::cores::CoreTable;
use volary_engine::parcel::Parcel;
use volary_engine::workload::Trace;
use volary_netem::TopologyFile;

/// An experiment file, as it comes in a bundle: whatever it names, no file of this machine is opened.
pub(crate) fn experiment(data: &[u8]) {
    let name = "fuzz.toml";
    let files = Pack { folders: Vec::new(), files: [(name.into(), data.to_vec())].into() };
    let bundle = Bundle { experiment: name.into(), overrides: Overrides::default(), files };
    let _ = Experiment::from_bundle(&bundle).map_err(|e| e.to_string());
}

/// A trace; its first byte chooses the format.
pub(crate) fn trace(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let name = ["t.tr", "t.swf", "t.csv", "t"][usize::from(kind) % 4];
    if let Ok(input) = decompress(Cursor::new(rest.to_vec())) {
        let _ = Trace::parse(Path::new(name), input, Some(1000)).map_err(|e| e.to_string());
    }
}

/// A topology file.
pub(crate) fn topology(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(file) = toml::from_str::<TopologyFile>(&text) {
        let _ = file.resolve(1).map(|topology| topology.describe()).map_err(|e| e.to_string());
    }
}

/// A comparison of a claim.
pub(crate) fn claim(data: &[u8]) {
    let _ = Check::parse(&String::from_utf8_lossy(data)).map_err(|e| e.message);
}

/// A frame from a peer: a prefix, a value of some type, and a batch of parcels, which comes back as it was.
pub(crate) fn wire(data: &[u8]) {
    let _ = data.first_chunk().map(|prefix| codec::length(*prefix, codec::PARCEL_FRAME));
    let _ = codec::decode::<(String, Vec<(u32, Option<f64>)>, Vec<u8>)>(data).map_err(|e| e.to_string());
    let _ = codec::decode::<InjectorMessage>(data).map_err(|e| e.to_string());
    if let Ok(InjectReply::Planned(plan)) = codec::decode(data) {
        let _ = CoreTable::of_outline(&plan.outline).map(|table| table.outline());
    }
    let mut parcels: Vec<Parcel> = Vec::new();
    let Ok(batch) = Batch::open(data) else { return };
    if batch.read(|parcel| parcel.to.0 < u32::MAX, &mut parcels).is_err() {
        assert!(parcels.is_empty());
        return;
    }
    let mut bytes = Vec::new();
    assert_eq!(codec::encode_batch(batch.sequence, &parcels, usize::MAX, &mut bytes), parcels.len());
    if !parcels.is_empty() {
        let mut again = Vec::new();
        assert_eq!(Batch::open(&bytes).and_then(|batch| batch.read(|_| true, &mut again)), Ok(()));
        assert_eq!(again, parcels);
    }
}

/// An `[interference]` table.
pub(crate) fn interference(data: &[u8]) {
    let table = String::from_utf8_lossy(data);
    experiment(
        format!(
            "title = \"f\"\n[cluster]\nnodes = 2\n[workload.synthetic]\njobs = 1\ntasks = 1\n\
             interarrival = \"1s\"\n[service]\ndemand = \"1s\"\n[[policy]]\nrandom = {{}}\n[interference]\n{table}\n"
        )
        .as_bytes(),
    );
}

/// A log of inputs: as it is, and once more as payloads of frames whose checksums are right, each preceded by
/// its section and its length.
pub(crate) fn inputs(data: &[u8]) {
    read(data);
    let (mut log, mut rest) = (prefix(), data);
    while let [section, length, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let _ = frame(u32::from(*section), payload, &mut log);
        rest = tail;
    }
    read(&log);
}

fn read(data: &[u8]) {
    let Ok(mut log) = InputLog::new(Cursor::new(data)) else { return };
    for found in log.found().to_vec() {
        let _ = log.experiment::<Bundle>(found.experiment).map_err(|e| e.to_string());
        let mut cursor = found.cursor();
        while let Ok(Some(entry)) = log.next(&mut cursor) {
            std::hint::black_box(entry);
        }
    }
    let _ = log.damage().map(|e| e.to_string());
}
