use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, JobId, Time};
use volary_actors::message::{Job, Launch, Message, Probe, Row, Tasks};

use super::*;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Frame {
    Ping,
    Bundle { name: String, files: Vec<(String, Vec<u8>)>, numbers: Vec<u64>, share: f64 },
}

fn frames() -> impl Strategy<Value = Frame> {
    let files = vec((".{0,20}", vec(any::<u8>(), 0..300)), 0..5);
    let bundle = (".{0,40}", files, vec(any::<u64>(), 0..200), -1e9..1e9_f64);
    prop_oneof![
        Just(Frame::Ping),
        bundle.prop_map(|(name, files, numbers, share)| Frame::Bundle { name, files, numbers, share }),
    ]
}

fn messages() -> impl Strategy<Value = Message> {
    (0..4, any::<[u32; 4]>(), any::<[u16; 2]>()).prop_map(|(kind, [a, b, c, d], [len, turn])| {
        let row = Row { job: JobId(a), base: b, len, turn, width: len ^ turn, attempt: c };
        match kind {
            0 => Job::Submit { job: JobId(a), round: b }.into(),
            1 => Launch::Drop(Tasks { job: JobId(a), base: b, len: c, below: d }).into(),
            2 => Probe::Grant { row, group: d }.into(),
            _ => Probe::Length { task: JobId(a).task(b), length: c.cast_signed() }.into(),
        }
    })
}

fn parcels() -> impl Strategy<Value = Parcel> {
    (any::<[u64; 2]>(), any::<[u32; 3]>(), messages(), any::<bool>()).prop_map(
        |([sent, due], [from, count, to], msg, returned)| {
            let (sent, due, from, to) = (Time(sent), Time(due), ActorId(from), ActorId(to));
            Parcel { sent, due, from, count, to, msg, returned }
        },
    )
}

/// Everything of a frame without its length.
fn body(bytes: &[u8]) -> &[u8] {
    let prefix = *bytes.first_chunk().unwrap();
    assert_eq!(length(prefix, LARGEST_FRAME), Ok(bytes.len() - PREFIX));
    &bytes[PREFIX..]
}

proptest! {
    #[test]
    fn frames_come_back_and_no_other_length_does(frame in frames(), cut in any::<prop::sample::Index>()) {
        let mut bytes = vec![7];
        encode(&frame, LARGEST_FRAME, &mut bytes).unwrap();
        prop_assert_eq!(bytes[0], 7);
        let body = body(&bytes[1..]);
        prop_assert_eq!(decode::<Frame>(body), Ok(frame));
        let cut = cut.index(body.len());
        prop_assert_eq!(decode::<Frame>(&body[..cut]), Err(WireError::Truncated));
        prop_assert_eq!(decode::<Frame>(&[body, &[0, 0]].concat()), Err(WireError::Trailing(2)));
    }

    #[test]
    fn batches_come_back_in_order(parcels in vec(parcels(), 1..3000), sequence in any::<u64>()) {
        let (mut bytes, mut back, mut rest, mut number) = (Vec::new(), Vec::new(), &parcels[..], sequence);
        while !rest.is_empty() {
            bytes.clear();
            let taken = encode_batch_frame(number, rest, &mut bytes);
            prop_assert!(taken > 0 && bytes.len() <= PREFIX + PARCEL_FRAME);
            let batch = Batch::open(body(&bytes)).unwrap();
            prop_assert_eq!(batch.sequence, number);
            batch.read(|_| true, &mut back).unwrap();
            rest = &rest[taken..];
            number = number.wrapping_add(1);
        }
        prop_assert_eq!(back, parcels);
    }

    /// Whatever comes in is a value or an error, never a panic; and what is refused leaves nothing behind.
    #[test]
    fn garbage_is_refused(mut bytes in vec(any::<u8>(), 0..400), versioned in any::<bool>()) {
        if let (true, Some(first)) = (versioned, bytes.first_mut()) {
            *first = PROTOCOL as u8;
        }
        let _ = decode::<Frame>(&bytes);
        let mut into = Vec::new();
        if Batch::open(&bytes).and_then(|batch| batch.read(|_| true, &mut into)).is_err() {
            prop_assert!(into.is_empty());
        }
    }

    /// The smallest datagrams that QUIC allows hold any parcel.
    #[test]
    fn a_parcel_fits_into_any_datagram(parcel in parcels()) {
        let mut bytes = Vec::new();
        prop_assert_eq!(encode_batch(u64::MAX, &[parcel; 20], 1100, &mut bytes).min(15), 15);
        prop_assert!(bytes.len() <= 1100);
    }
}

#[test]
fn limits_hold_on_both_sides() {
    let frame = Frame::Bundle { name: "x".repeat(1000), files: Vec::new(), numbers: Vec::new(), share: 0.0 };
    let mut bytes = b"kept".to_vec();
    assert!(matches!(encode(&frame, 100, &mut bytes), Err(WireError::Oversize { bytes: 1.., limit: 100 })));
    assert_eq!(bytes, b"kept");
    assert_eq!(length(100_u32.to_le_bytes(), 100), Ok(100));
    assert_eq!(length(101_u32.to_le_bytes(), 100), Err(WireError::Oversize { bytes: 101, limit: 100 }));
    assert!(length([255; PREFIX], usize::MAX).is_err(), "no limit is above the largest");
}

/// The length of a string is believed only up to the limit of a small frame.
#[test]
fn an_announced_length_is_not_believed() {
    let huge = [&[VERSION, 1, 253][..], &(1_u64 << 40).to_le_bytes(), b"abc"].concat();
    assert!(matches!(decode::<Frame>(&huge), Err(WireError::Garbage(_))));
    let many = [&[VERSION, 253][..], &u64::MAX.to_le_bytes()].concat();
    assert_eq!(decode::<Vec<u64>>(&many), Err(WireError::Truncated));
}

#[test]
fn other_versions_and_impossible_parcels_are_refused() {
    let mut bytes = Vec::new();
    let parcel = Parcel {
        sent: Time(1),
        due: Time(2),
        from: ActorId(3),
        count: 4,
        to: ActorId(5),
        msg: Job::Finished { job: JobId(6) }.into(),
        returned: false,
    };
    assert_eq!(encode_batch(9, &[parcel, parcel], 1000, &mut bytes), 2);
    let read = |check: fn(&Parcel) -> bool| {
        let mut into = vec![parcel];
        let read = Batch::open(&bytes).unwrap().read(check, &mut into);
        (read, into.len())
    };
    assert_eq!(read(|parcel| parcel.to.0 < 6), (Ok(()), 3));
    assert!(
        matches!(read(|parcel| parcel.to.0 < 5), (Err(WireError::Refused(why)), 1) if why.contains("ActorId(5)"))
    );
    assert_eq!(Batch::open(&[]).unwrap_err(), WireError::Truncated);
    assert_eq!(Batch::open(&[VERSION, 0, 0]).unwrap_err(), WireError::Truncated);
    bytes[0] = VERSION + 1;
    let error = Batch::open(&bytes).unwrap_err();
    assert_eq!(error, WireError::Version(VERSION + 1));
    assert!(error.to_string().contains("install the same version"));
    assert_eq!(encode_batch(9, &[parcel], 10, &mut bytes), 0, "no room for a parcel");
}

/// The bytes themselves: a change here is a change of [`PROTOCOL`].
#[test]
fn the_layout_is_pinned() {
    let mut bytes = Vec::new();
    let parcel = Parcel {
        sent: Time(300),
        due: Time(301),
        from: ActorId(7),
        count: 8,
        to: ActorId(9),
        msg: Probe::Reserve { job: JobId(1), group: 0, count: 2, repair: false }.into(),
        returned: true,
    };
    assert_eq!(encode_batch_frame(5, &[parcel], &mut bytes), 1);
    let expected = [
        &[59, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0][..], // length, version, sequence
        &[44, 1, 0, 0, 0, 0, 0, 0, 45, 1, 0, 0, 0, 0, 0, 0], // sent, due
        &[7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 1],      // from, count, to, returned
        &[3, 0, 0, 0, 0, 0, 0, 0],                     // probe, reserve
        &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0],      // job, group, count, repair
    ];
    assert_eq!(bytes, expected.concat());
}
