//! The codec of frames and parcels between machines, and of the log of inputs; the only file that uses bincode.
//!
//! A frame is `u32` length (little endian), `u8` version, value. A batch of parcels is `u8` version, `u64` sequence
//! number, parcels to its end: in a frame on a stream, and without a frame in a datagram. On a stream, sequence numbers
//! count batches; the number of a datagram is the number of its first parcel. The length is checked before anything
//! else is read, so a faulty peer cannot cause an allocation larger than a small multiple of the frame's limit. Encoded
//! types must not hold sequences of zero-sized elements: their length would cost no bytes.

use bincode::config::{Config, Configuration, Fixint, LittleEndian, standard};
use bincode::error::DecodeError;
use bincode::serde::{decode_from_slice, encode_into_std_write};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use volary_actors::base::{ActorId, Time};
use volary_actors::message::Message;
use volary_engine::parcel::Parcel;

/// Version of the encodings in this module and of the order of messages between peers; both peers need the same
/// version.
pub const PROTOCOL: u32 = 18;
/// Limit of a frame of parcels, bytes, without its length prefix.
pub const PARCEL_FRAME: usize = 64 << 10;
/// Limit of any frame, bytes. The largest frame holds an experiment with its traces.
pub const LARGEST_FRAME: usize = 64 << 20;
/// Bytes of a frame's length prefix.
pub const PREFIX: usize = 4;

/// Typical length of an encoded parcel, bytes: 29 for its fields and 16 for its message. Most parcels are at least as
/// long.
const USUAL_PARCEL: usize = 29 + 16;
const VERSION: u8 = PROTOCOL as u8;
const _: () = assert!(VERSION as u32 == PROTOCOL);
/// Limit for bincode, which counts the size of integers in memory: up to eight times their size on the wire.
const SMALL_LIMIT: usize = 8 * PARCEL_FRAME;
const LARGE_LIMIT: usize = 8 * LARGEST_FRAME;

/// The reason why bytes could not be decoded, or a value could not be encoded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CodecError {
    #[error("a frame has {bytes} bytes, more than the limit of {limit}")]
    Oversize { bytes: usize, limit: usize },
    /// The frame ends before its value does.
    #[error("a frame ends before its value does")]
    Truncated,
    /// The bytes encode no value.
    #[error("a frame is malformed ({0})")]
    Garbage(String),
    /// The frame continues after its value.
    #[error("a frame has {0} bytes after the end of its value")]
    Trailing(usize),
    /// The frame has another protocol version.
    #[error(
        "a frame has protocol {0}, but this volary has {PROTOCOL}: install the same version on all hosts"
    )]
    Version(u8),
    /// A batch is duplicated or missing.
    #[error("batch {found} arrived, but batch {expected} was due")]
    Sequence { found: u64, expected: u64 },
    /// The parcel is well formed, but violates the receiver's check.
    #[error("a parcel is invalid: {0}")]
    Refused(String),
    #[error("a value cannot be encoded: {0}")]
    Encode(String),
}

/// Appends `value` as a frame of at most `limit` bytes (and [`LARGEST_FRAME`]); on error `out` is unchanged.
pub fn encode<T: Serialize>(value: &T, limit: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    out.push(VERSION);
    let written = append(value, out);
    let bytes = out.len() - start - PREFIX;
    let limit = limit.min(LARGEST_FRAME);
    if let Err(error) = written {
        out.truncate(start);
        return Err(error);
    }
    if bytes > limit {
        out.truncate(start);
        return Err(CodecError::Oversize { bytes, limit });
    }
    out[start..start + PREFIX].copy_from_slice(&(bytes as u32).to_le_bytes());
    Ok(())
}

/// The frame length in a prefix; an error if the length exceeds the limit.
pub fn length(prefix: [u8; PREFIX], limit: usize) -> Result<usize, CodecError> {
    let bytes = u32::from_le_bytes(prefix) as usize;
    let limit = limit.min(LARGEST_FRAME);
    if bytes > limit { Err(CodecError::Oversize { bytes, limit }) } else { Ok(bytes) }
}

/// Decodes a frame without its prefix; the value must use all of the frame.
pub fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, CodecError> {
    let rest = versioned(frame)?;
    let (value, used) = take(rest)?;
    if used < rest.len() { Err(CodecError::Trailing(rest.len() - used)) } else { Ok(value) }
}

/// Appends batch `sequence` with the first `parcels` that fit into `room` bytes; returns their number. If no parcel
/// fits, nothing is appended.
pub fn encode_batch(sequence: u64, parcels: &[Parcel], room: usize, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.push(VERSION);
    out.extend_from_slice(&sequence.to_le_bytes());
    let mut taken = 0;
    for parcel in parcels {
        let before = out.len();
        let Parcel { sent, due, from, count, to, returned, ref msg } = *parcel;
        let encoded: Encoded<&Message> = (sent.0, due.0, from.0, count, to.0, returned, msg);
        // Every message can be encoded, and writing to a vector cannot fail.
        write(&encoded, PARCEL, out).unwrap_or_else(|error| unreachable!("{error}"));
        if out.len() - start > room {
            out.truncate(before);
            break;
        }
        taken += 1;
    }
    if taken == 0 {
        out.truncate(start);
    }
    taken
}

/// Appends a batch (see [`encode_batch`]) as a frame of at most [`PARCEL_FRAME`] bytes.
pub fn encode_batch_frame(sequence: u64, parcels: &[Parcel], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    let taken = encode_batch(sequence, parcels, PARCEL_FRAME, out);
    let bytes = out.len() - start - PREFIX;
    out[start..start + PREFIX].copy_from_slice(&(bytes as u32).to_le_bytes());
    taken
}

/// A batch whose parcels are not decoded yet.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Sequence number, from 0 on every link and in each direction: the number of the batch on a stream, the number of
    /// the first parcel in a datagram.
    pub sequence: u64,
    parcels: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Decodes the header of a batch.
    pub fn open(frame: &'a [u8]) -> Result<Self, CodecError> {
        let rest = versioned(frame)?;
        let (sequence, parcels) = rest.split_first_chunk::<8>().ok_or(CodecError::Truncated)?;
        Ok(Self { sequence: u64::from_le_bytes(*sequence), parcels })
    }

    /// An estimate of the number of parcels from their usual size, for the capacity of a vector.
    pub fn estimated_len(&self) -> usize {
        self.parcels.len().div_ceil(USUAL_PARCEL)
    }

    /// Appends the parcels to `into`; on an error nothing is appended. A batch without a parcel is an error, and so is
    /// a parcel for which `check` is false.
    pub fn read(self, check: impl Fn(&Parcel) -> bool, into: &mut Vec<Parcel>) -> Result<(), CodecError> {
        let before = into.len();
        let read = self.append(check, into);
        if read.is_err() {
            into.truncate(before);
        }
        read
    }

    fn append(self, check: impl Fn(&Parcel) -> bool, into: &mut Vec<Parcel>) -> Result<(), CodecError> {
        if self.parcels.is_empty() {
            return Err(CodecError::Truncated);
        }
        let mut rest = self.parcels;
        while !rest.is_empty() {
            let (parcel, used): (Encoded<Message>, _) = decode_from_slice(rest, PARCEL).map_err(broken)?;
            let (sent, due, from, count, to, returned, msg) = parcel;
            let (sent, due, from, to) = (Time(sent), Time(due), ActorId(from), ActorId(to));
            let parcel = Parcel { sent, due, from, count, to, msg, returned };
            if !check(&parcel) {
                return Err(CodecError::Refused(format!("{parcel:?}")));
            }
            into.push(parcel);
            rest = &rest[used..];
        }
        Ok(())
    }
}

/// The encoded form of a parcel: sent, due, from, count, to, returned, message.
type Encoded<M> = (u64, u64, u32, u32, u32, bool, M);

/// Encoding of a parcel. A parcel holds no sequence, so decoding needs no limit. Integers of fixed length make a parcel
/// a third longer than integers of variable length, and coding it a quarter faster.
const PARCEL: Configuration<LittleEndian, Fixint> = standard().with_fixed_int_encoding();

fn versioned(frame: &[u8]) -> Result<&[u8], CodecError> {
    match frame.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((&other, _)) => Err(CodecError::Version(other)),
        None => Err(CodecError::Truncated),
    }
}

/// Decodes a value without prefix and version from the start of `bytes`; also returns its encoded length.
pub fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    let taken = if bytes.len() <= PARCEL_FRAME {
        decode_from_slice(bytes, standard().with_limit::<SMALL_LIMIT>())
    } else {
        decode_from_slice(bytes, standard().with_limit::<LARGE_LIMIT>())
    };
    taken.map_err(broken)
}

/// Appends a value without prefix and version.
pub fn append<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    write(value, standard(), out)
}

#[inline]
fn write<T: Serialize>(value: &T, config: impl Config, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let written = encode_into_std_write(value, out, config);
    written.map(|_| ()).map_err(|error| CodecError::Encode(error.to_string()))
}

fn broken(error: DecodeError) -> CodecError {
    if let DecodeError::UnexpectedEnd { .. } = error {
        CodecError::Truncated
    } else {
        CodecError::Garbage(error.to_string())
    }
}

#[cfg(test)]
#[path = "../../../actors/tests/common/forged.rs"]
mod forged;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use volary_actors::base::{ActorId, JobId, Rng, Time};
    use volary_actors::message::{HEADERS, Job, Launch, Message, Probe, Row, TaskRange, kinds, wire_bytes};

    use super::forged::Forger;
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
            let row = Row {
                job: JobId(a),
                base: b,
                len,
                turn,
                width: len ^ turn,
                attempt: c,
                elsewhere: len > turn,
            };
            match kind {
                0 => Job::Submit { job: JobId(a), round: b }.into(),
                1 => Launch::Drop(TaskRange { job: JobId(a), base: b, len: c, below: d }).into(),
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

    /// A frame without its prefix.
    fn body(bytes: &[u8]) -> &[u8] {
        let prefix = *bytes.first_chunk().unwrap();
        assert_eq!(length(prefix, LARGEST_FRAME), Ok(bytes.len() - PREFIX));
        &bytes[PREFIX..]
    }

    proptest! {
        #[test]
        fn frames_round_trip_and_other_lengths_are_refused(frame in frames(), cut in any::<prop::sample::Index>()) {
            let mut bytes = vec![7];
            encode(&frame, LARGEST_FRAME, &mut bytes).unwrap();
            prop_assert_eq!(bytes[0], 7);
            let body = body(&bytes[1..]);
            prop_assert_eq!(decode::<Frame>(body), Ok(frame));
            let cut = cut.index(body.len());
            prop_assert_eq!(decode::<Frame>(&body[..cut]), Err(CodecError::Truncated));
            prop_assert_eq!(decode::<Frame>(&[body, &[0, 0]].concat()), Err(CodecError::Trailing(2)));
        }

        #[test]
        fn batches_round_trip_in_order(parcels in vec(parcels(), 1..3000), sequence in any::<u64>()) {
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

        /// Any bytes are decoded or rejected without a panic; after an error nothing is appended.
        #[test]
        fn arbitrary_bytes_are_decoded_or_refused_without_a_panic(mut bytes in vec(any::<u8>(), 0..400), versioned in any::<bool>()) {
            if let (true, Some(first)) = (versioned, bytes.first_mut()) {
                *first = PROTOCOL as u8;
            }
            let _ = decode::<Frame>(&bytes);
            let mut into = Vec::new();
            if Batch::open(&bytes).and_then(|batch| batch.read(|_| true, &mut into)).is_err() {
                prop_assert!(into.is_empty());
            }
        }

        /// The smallest datagram that QUIC allows has room for 15 parcels of any kind.
        #[test]
        fn the_smallest_datagram_has_room_for_fifteen_parcels_of_any_kind(parcel in parcels()) {
            let mut bytes = Vec::new();
            prop_assert_eq!(encode_batch(u64::MAX, &[parcel; 20], 1100, &mut bytes).min(15), 15);
            prop_assert!(bytes.len() <= 1100);
        }
    }

    #[test]
    fn a_frame_above_the_limit_is_neither_encoded_nor_decoded() {
        let frame =
            Frame::Bundle { name: "x".repeat(1000), files: Vec::new(), numbers: Vec::new(), share: 0.0 };
        let mut bytes = b"kept".to_vec();
        assert!(matches!(
            encode(&frame, 100, &mut bytes),
            Err(CodecError::Oversize { bytes: 1.., limit: 100 })
        ));
        assert_eq!(bytes, b"kept");
        assert_eq!(length(100_u32.to_le_bytes(), 100), Ok(100));
        assert_eq!(length(101_u32.to_le_bytes(), 100), Err(CodecError::Oversize { bytes: 101, limit: 100 }));
        assert!(length([255; PREFIX], usize::MAX).is_err(), "no limit exceeds LARGEST_FRAME");
    }

    /// The announced length of a string is limited before memory is allocated.
    #[test]
    fn an_announced_length_above_the_limit_is_refused() {
        let huge = [&[VERSION, 1, 253][..], &(1_u64 << 40).to_le_bytes(), b"abc"].concat();
        assert!(matches!(decode::<Frame>(&huge), Err(CodecError::Garbage(_))));
        let many = [&[VERSION, 253][..], &u64::MAX.to_le_bytes()].concat();
        assert_eq!(decode::<Vec<u64>>(&many), Err(CodecError::Truncated));
    }

    #[test]
    fn frames_of_other_versions_and_impossible_parcels_are_refused() {
        let mut bytes = Vec::new();
        let parcel = Parcel {
            sent: Time(1),
            due: Time(2),
            from: ActorId(3),
            count: 4,
            to: ActorId(5),
            msg: Job::Finished { job: JobId(6), killed: false }.into(),
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
            matches!(read(|parcel| parcel.to.0 < 5), (Err(CodecError::Refused(why)), 1) if why.contains("ActorId(5)"))
        );
        assert_eq!(Batch::open(&[]).unwrap_err(), CodecError::Truncated);
        assert_eq!(Batch::open(&[VERSION, 0, 0]).unwrap_err(), CodecError::Truncated);
        bytes[0] = VERSION + 1;
        let error = Batch::open(&bytes).unwrap_err();
        assert_eq!(error, CodecError::Version(VERSION + 1));
        assert!(error.to_string().contains("install the same version"));
        assert_eq!(encode_batch(9, &[parcel], 10, &mut bytes), 0, "no room for a parcel");
    }

    #[test]
    fn the_stated_bytes_of_a_message_kind_are_its_longest_encoding_plus_headers() {
        let mut forger = Forger { dice: Rng::new(1, 0, 0), now: Time::ZERO, jobs: 3, tasks: 3 };
        let mut longest = BTreeMap::new();
        for _ in 0..100_000 {
            let (msg, mut bytes) = (forger.nonsense(), Vec::new());
            write(&msg, PARCEL, &mut bytes).unwrap();
            let most = longest.entry(msg.kind()).or_insert(0);
            *most = bytes.len().max(*most);
        }
        let stated: BTreeMap<_, _> =
            longest.keys().map(|&kind| (kind, (wire_bytes(kind) - HEADERS) as usize)).collect();
        assert_eq!(stated, longest);
        assert_eq!(longest.len(), kinds().filter(|(name, _)| !name.starts_with("core.")).count());
    }

    /// Compares the encoded bytes with committed ones. Other bytes need a higher [`PROTOCOL`].
    #[test]
    fn the_bytes_of_a_batch_stay_the_same() {
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
            &[59, 0, 0, 0, VERSION, 5, 0, 0, 0, 0, 0, 0, 0][..], // length, version, sequence
            &[44, 1, 0, 0, 0, 0, 0, 0, 45, 1, 0, 0, 0, 0, 0, 0], // sent, due
            &[7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 1],            // from, count, to, returned
            &[3, 0, 0, 0, 0, 0, 0, 0],                           // probe, reserve
            &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0],            // job, group, count, repair
        ];
        assert_eq!(bytes, expected.concat());
    }
}
