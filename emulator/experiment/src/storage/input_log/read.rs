//! The format of a log, and its reader: one pass finds the sections and checks every frame, then each section is read
//! independently.
//!
//! The module also has the digests of effects, and the fingerprint of the list of message types.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use volary_actors::base::{Span, Time};
use volary_actors::machine::Effect;
use volary_actors::message::kinds;
use volary_engine::replay::{Digest, LogEntry};

use crate::codec;
use crate::storage::frames::{self, HEADER, NextFrame, PREFIX, next_frame, read_prefix};

/// Position and length of a payload in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    length: u32,
}

/// A section of a log.
#[derive(Clone, Debug)]
pub struct LogSection {
    pub header: Header,
    /// Index of the experiment to which the section belongs.
    pub experiment: usize,
    number: u32,
    frames: Vec<Place>,
}

impl LogSection {
    /// The start of the section.
    pub fn cursor(&self) -> LogCursor {
        let mut frames = self.frames.clone();
        frames.reverse();
        LogCursor { frames, number: 0, at: 0, payload: Vec::new(), used: 0, last: Time::ZERO }
    }
}

/// The state of the file after the last whole frame.
#[derive(Clone, PartialEq, Eq, Debug)]
enum FileEnd {
    Whole,
    /// The file ends within a frame.
    Cut,
    /// A frame is corrupt.
    Damaged(String),
}

/// A log opened for reading.
#[derive(Debug)]
pub struct InputLog<R> {
    file: BufReader<R>,
    experiments: Vec<Place>,
    found: Vec<LogSection>,
    /// Offset of the end of the last whole frame.
    end: u64,
    tail: FileEnd,
}

impl<R: Read + Seek> InputLog<R> {
    /// Finds the sections. Frames after a truncated or corrupt frame are ignored.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Version`], or an error of reading the file.
    pub fn new(file: R) -> Result<Self, Error> {
        let mut file = BufReader::with_capacity(1 << 16, file);
        let size = file.seek(SeekFrom::End(0)).map_err(failed("read"))?;
        file.rewind().map_err(failed("read"))?;
        match read_prefix(&mut file, size, MAGIC).map_err(failed("read"))? {
            None => return Err(Error::Foreign),
            Some(found) if found == (FORMAT, vocabulary()) => {}
            Some((format, words)) => return Err(Error::Version { found: version_text(format, words) }),
        }
        let (found, tail) = (Vec::new(), FileEnd::Whole);
        let mut log = Self { file, experiments: Vec::new(), found, end: PREFIX, tail };
        let mut sections = BTreeMap::new();
        let mut payload = Vec::new();
        while log.end < size && log.tail == FileEnd::Whole {
            log.tail = log.scan(size, &mut sections, &mut payload).map_err(failed("read"))?;
        }
        Ok(log)
    }

    /// Processes the next frame; returns the state of the file after this frame.
    fn scan(
        &mut self,
        size: u64,
        sections: &mut BTreeMap<u32, usize>,
        payload: &mut Vec<u8>,
    ) -> io::Result<FileEnd> {
        let number = match next_frame(&mut self.file, size - self.end, payload)? {
            NextFrame::Whole(section) => section,
            NextFrame::Cut => return Ok(FileEnd::Cut),
            NextFrame::Damaged => return Ok(FileEnd::Damaged("a checksum does not match".to_owned())),
        };
        let place = Place { at: self.end + HEADER, length: payload.len() as u32 };
        if number == EXPERIMENT {
            self.experiments.push(place);
        } else if let Some(&i) = sections.get(&number) {
            self.found[i].frames.push(place);
        } else {
            let header = codec::take(payload).map(|(header, _)| header);
            match (header, self.experiments.len().checked_sub(1)) {
                (Ok(header), Some(experiment)) => {
                    sections.insert(number, self.found.len());
                    self.found.push(LogSection { header, experiment, number, frames: Vec::new() });
                }
                (Err(why), _) => return Ok(FileEnd::Damaged(why.to_string())),
                (Ok(_), None) => {
                    return Ok(FileEnd::Damaged("a section comes before its experiment".to_owned()));
                }
            }
        }
        self.end = place.at + u64::from(place.length);
        Ok(FileEnd::Whole)
    }

    /// The sections, in the order in which they began.
    pub fn found(&self) -> &[LogSection] {
        &self.found
    }

    /// Whether the file ends within a frame, as after a killed run.
    pub fn is_cut(&self) -> bool {
        self.tail == FileEnd::Cut
    }

    /// The damage of the file; `None` if the file is whole or only truncated.
    pub fn damage(&self) -> Option<Error> {
        match &self.tail {
            FileEnd::Damaged(why) => Some(Error::Damaged { at: self.end, why: why.clone() }),
            FileEnd::Whole | FileEnd::Cut => None,
        }
    }

    /// Offset of the end of the last whole frame.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// A number greater than those of all sections and attempts.
    pub(super) fn next_section(&self) -> u32 {
        let used = self.found.iter().map(|found| found.number.max(found.header.attempt));
        used.max().unwrap_or(0).saturating_add(1)
    }

    /// Reads the experiment with this index.
    ///
    /// # Errors
    /// When the experiment cannot be read.
    pub fn experiment<T: DeserializeOwned>(&mut self, index: usize) -> Result<T, Error> {
        let place = self.experiments[index];
        let mut payload = Vec::new();
        self.load(place, &mut payload)?;
        codec::take(&payload)
            .map(|(experiment, _)| experiment)
            .map_err(|why| Error::Damaged { at: place.at, why: why.to_string() })
    }

    /// The next entry of a section; `None` after the last.
    ///
    /// # Errors
    /// When the file cannot be read, or has no valid entry at this position; [`Error::Missing`] when a frame is
    /// missing.
    pub fn next(&mut self, cursor: &mut LogCursor) -> Result<Option<LogEntry>, Error> {
        while cursor.used == cursor.payload.len() {
            let Some(place) = cursor.frames.pop() else { return Ok(None) };
            self.load(place, &mut cursor.payload)?;
            cursor.open(place.at)?;
        }
        let at = cursor.at + cursor.used as u64;
        let (entry, used): (LogEntry, _) = codec::take(&cursor.payload[cursor.used..])
            .map_err(|why| Error::Damaged { at, why: why.to_string() })?;
        cursor.used += used;
        cursor.last += Span(entry.at.0);
        Ok(Some(LogEntry { at: cursor.last, ..entry }))
    }

    fn load(&mut self, place: Place, payload: &mut Vec<u8>) -> Result<(), Error> {
        payload.clear();
        self.file.seek(SeekFrom::Start(place.at)).map_err(failed("read"))?;
        let read = (&mut self.file).take(u64::from(place.length)).read_to_end(payload);
        read.map(|_| ()).map_err(failed("read"))
    }
}

/// The position of a reader in a section.
#[derive(Debug)]
pub struct LogCursor {
    /// Unread frames in reverse order: the next frame is the last element.
    frames: Vec<Place>,
    /// Number of the next frame of the section.
    number: u32,
    /// Position of the payload in the file.
    at: u64,
    payload: Vec<u8>,
    used: usize,
    last: Time,
}

impl LogCursor {
    /// Opens the payload of a frame. The frame must be the next one of the section.
    fn open(&mut self, at: u64) -> Result<(), Error> {
        let Some(number) = self.payload.first_chunk() else {
            return Err(Error::Damaged { at, why: "a frame has no number".to_owned() });
        };
        let (expected, found) = (self.number, u32::from_le_bytes(*number));
        if found != expected {
            return Err(Error::Missing { at, expected, found });
        }
        (self.at, self.used, self.last) = (at, NUMBER, Time::ZERO);
        self.number += 1;
        Ok(())
    }
}

/// Name of the log in a study directory.
pub const FILE: &str = "inputs.log";
/// The first bytes of the file.
pub(super) const MAGIC: [u8; 8] = *b"volaryin";
/// Version of the format, raised whenever frames or entries change.
pub const FORMAT: u32 = 7;
/// Bytes of a frame's number within its section.
pub(super) const NUMBER: usize = size_of::<u32>();
/// Number of the section that holds experiments.
pub(super) const EXPERIMENT: u32 = 0;

/// The shard and run to which a section belongs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    pub run: String,
    /// Number of the attempt at the run; `volary replay` uses the last attempt.
    pub attempt: u32,
    /// Label of the policy, shown in messages.
    pub policy: String,
    pub seed: u64,
    pub shard: u16,
    /// Number of shards.
    pub shards: u16,
}

/// The reason why a log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {doing} the input log: {source}; check the folder's permissions and space")]
    Io { doing: &'static str, source: io::Error },
    /// The experiment's files are too large to be stored with it.
    #[error(
        "the files of the experiment have {mib} MiB, but the input log holds at most {} MiB; use a part of the trace",
        crate::codec::LARGEST_FRAME >> 20
    )]
    Large {
        /// Size of the files, MiB.
        mib: usize,
    },
    /// The file is not an input log.
    #[error(
        "{FILE} is not an input log of volary; to record a log, run with run.record.inputs = true into another folder"
    )]
    Foreign,
    /// The file was written by another version.
    #[error(
        "{FILE} is of format {found}, and this volary reads {ours}; use the volary that wrote it, or another folder",
        ours = version_text(FORMAT, vocabulary())
    )]
    Version {
        /// Format and vocabulary of the file.
        found: String,
    },
    /// Frames were lost in transmission.
    #[error(
        "{FILE} is incomplete: frames are missing before byte {at} (frame {found} follows where {expected} should); \
         to record a whole log, run into another folder"
    )]
    Missing {
        at: u64,
        /// Number of the missing frame.
        expected: u32,
        /// Number of the frame found in its place.
        found: u32,
    },
    /// The content is inconsistent.
    #[error("{FILE} is damaged at byte {at}: {why}; to record a whole log, run into another folder")]
    Damaged { at: u64, why: String },
}

fn version_text(format: u32, vocabulary: u32) -> String {
    format!("{format} (messages {vocabulary:08x})")
}

pub(super) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}

/// Fingerprint of the list of message types. The log states a message type by its position in the list.
pub(super) fn vocabulary() -> u32 {
    frames::vocabulary(kinds().map(|(name, _)| name))
}

/// Computes digests of effects with a reused buffer.
#[derive(Debug, Default)]
pub struct Digester(Vec<u8>);

impl Digester {
    /// The digest of a step's effects.
    pub fn digest(&mut self, effects: &[Effect]) -> Digest {
        self.0.clear();
        for effect in effects {
            // Effects are plain numbers and can always be encoded.
            let _ = codec::append(effect, &mut self.0);
        }
        let mut crc = Crc::new();
        crc.update(&self.0);
        Digest { count: effects.len() as u32, crc: crc.sum().to_le_bytes() }
    }
}
