//! The writer: shards fill frames, one thread appends them to the file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use serde::Serialize;
use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_engine::shard::Observer;

use super::check::{Digester, checksum, vocabulary};
use super::format::{EXPERIMENT, Error, FORMAT, Header, LogEntry, LogEvent, MAGIC, NUMBER, failed};
use super::read::InputLog;
use crate::codec;

/// Bytes after which a frame is sent off.
const FULL: usize = 1 << 16;
/// Emulated time after which it is sent off however little it holds: what a killed run may lose.
const OLD: Span = Span::from_secs(1);
/// Frames that wait for the disk at most; a shard that has more to say waits.
const WAITING: usize = 64;

/// Bytes of a frame at most: what it had when it was not full yet, and one entry.
const LARGEST: usize = FULL + (1 << 12);

/// Payload for the end of the file, and its section.
type Frame = (u32, Vec<u8>);

/// A log that is being written.
#[derive(Debug)]
pub struct Sink {
    frames: Sender<Frame>,
    /// The next section, or attempt.
    next: Arc<AtomicU32>,
    thread: JoinHandle<io::Result<()>>,
}

impl Sink {
    /// Begins a log with the experiment it is of, in the place of an earlier one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, experiment: &impl Serialize) -> Result<Self, Error> {
        let mut file = File::create(path).map_err(failed("create"))?;
        file.write_all(&prefix()).map_err(failed("write"))?;
        Self::start(file, 1, experiment)
    }

    /// Goes on with a log, after its last whole frame, or [`create`](Self::create)s it.
    ///
    /// # Errors
    /// When the file is no log of this version, or cannot be written.
    pub fn append(path: &Path, experiment: &impl Serialize) -> Result<Self, Error> {
        if !path.exists() {
            return Self::create(path, experiment);
        }
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed("open"))?;
        let log = InputLog::new(&file)?;
        if let Some(damage) = log.damage() {
            return Err(damage);
        }
        let (end, next) = (log.end(), log.next_section());
        file.set_len(end).map_err(failed("write"))?;
        file.seek(SeekFrom::Start(end)).map_err(failed("write"))?;
        Self::start(file, next, experiment)
    }

    fn start(file: File, next: u32, experiment: &impl Serialize) -> Result<Self, Error> {
        let mut payload = Vec::new();
        codec::append(experiment, &mut payload).map_err(|why| failed("write")(io::Error::other(why)))?;
        if payload.len() > codec::LARGEST_FRAME {
            return Err(Error::Large { mib: payload.len() >> 20 });
        }
        let (frames, receive) = bounded(WAITING);
        let thread = std::thread::Builder::new()
            .name("inputs".into())
            .spawn(move || write(file, &receive))
            .map_err(failed("write"))?;
        // If it fails, `close` says why.
        let _ = frames.send((EXPERIMENT, payload));
        Ok(Self { frames, next: Arc::new(AtomicU32::new(next)), thread })
    }

    /// Where the shards of one attempt at a cell begin their sections.
    #[must_use]
    pub fn unit(&self, cell: &str, policy: &str, seed: u64) -> CellLog {
        let attempt = self.next.fetch_add(1, Ordering::Relaxed);
        let header =
            Header { cell: cell.to_owned(), attempt, policy: policy.to_owned(), seed, shard: 0, shards: 1 };
        CellLog { header, frames: self.frames.clone(), next: Arc::clone(&self.next) }
    }

    /// Waits until everything is on its way to the disk; every [`Section`] must be gone.
    ///
    /// # Errors
    /// When something could not be written: the log then lacks its end.
    pub fn close(self) -> Result<(), Error> {
        drop(self.frames);
        let written = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
        written.map_err(failed("write"))
    }
}

/// Appends frames until nobody sends any more.
fn write(file: File, frames: &Receiver<Frame>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    for (section, payload) in frames {
        frame(section, &payload, &mut file)?;
        // While the shards have nothing to say, the file is up to date.
        if frames.is_empty() {
            file.flush()?;
        }
    }
    file.flush()
}

/// How a log begins.
#[must_use]
pub fn prefix() -> Vec<u8> {
    [&MAGIC[..], &FORMAT.to_le_bytes(), &vocabulary().to_le_bytes()].concat()
}

/// Appends one frame.
///
/// # Errors
/// When it cannot be written, or is longer than 4 GiB.
pub fn frame(section: u32, payload: &[u8], out: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&checksum(section, payload).to_le_bytes())?;
    out.write_all(&section.to_le_bytes())?;
    out.write_all(payload)
}

/// One attempt at a cell.
#[derive(Clone, Debug)]
pub struct CellLog {
    header: Header,
    frames: Sender<Frame>,
    next: Arc<AtomicU32>,
}

impl CellLog {
    /// The section of one of the shards.
    #[must_use]
    pub fn section(&self, shard: u16, shards: u16) -> Section {
        Section::to(self.relay(shard, shards))
    }

    /// The section of a shard of another machine, for what [`Carried`] brings from there.
    #[must_use]
    pub fn relay(&self, shard: u16, shards: u16) -> Relay {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut payload = Vec::new();
        // A header has nothing that cannot be encoded.
        let _ = codec::append(&Header { shard, shards, ..self.header.clone() }, &mut payload);
        let relay = Relay { number, frames: self.frames.clone() };
        relay.send(payload);
        relay
    }
}

/// Where the frames of a section go.
#[derive(Clone, Debug)]
pub struct Relay {
    number: u32,
    frames: Sender<Frame>,
}

impl Relay {
    /// Adds a frame of entries; waits while the disk is behind. Returns whether it was one by its size: what is in it
    /// is for whoever reads the log to judge.
    #[must_use]
    pub fn put(&self, payload: Vec<u8>) -> bool {
        let fits = payload.len() <= LARGEST;
        if fits {
            self.send(payload);
        }
        fits
    }

    fn send(&self, payload: Vec<u8>) {
        // Fails only if the writer gave up: closing the sink says why.
        let _ = self.frames.send((self.number, payload));
    }
}

/// The frames of a section whose log is on another machine, for whoever brings them to a [`Relay`] there.
#[derive(Debug)]
pub struct Carried(Receiver<Frame>);

impl Carried {
    /// The next frame, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<Vec<u8>> {
        self.0.try_recv().ok().map(|(_, payload)| payload)
    }

    /// How many frames wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.len()
    }
}

/// What one shard logs. What it holds when it is dropped still reaches the file, so the log of a run that
/// breaks off has the steps that led there.
#[derive(Debug)]
pub struct Section {
    relay: Relay,
    /// Number of the frame that is being filled.
    number: u32,
    /// Its entries, behind its number.
    payload: Vec<u8>,
    /// Time of the first entry of the payload.
    since: Time,
    /// Time of the last.
    last: Time,
    digester: Digester,
}

impl Section {
    fn to(relay: Relay) -> Self {
        Self {
            relay,
            number: 0,
            payload: empty(0),
            since: Time::ZERO,
            last: Time::ZERO,
            digester: Digester::default(),
        }
    }

    /// The section of a shard whose log is on another machine. It never waits: whoever carries its frames must
    /// see to it that not too many [wait](Carried::waiting).
    #[must_use]
    pub fn carried() -> (Self, Carried) {
        let (frames, carried) = unbounded();
        // The other machine has the number.
        (Self::to(Relay { number: EXPERIMENT, frames }), Carried(carried))
    }

    /// An actor was stepped.
    pub fn step(&mut self, at: Time, who: ActorId, input: Input, effects: &[Effect]) {
        let effects = self.digester.digest(effects);
        self.put(at, LogEvent::Step { who, input, effects });
    }

    /// Anything else.
    pub fn put(&mut self, at: Time, what: LogEvent) {
        if self.payload.len() >= FULL || (!self.is_empty() && at.since(self.since) > OLD) {
            self.flush();
        }
        if self.is_empty() {
            (self.since, self.last) = (at, Time::ZERO);
        }
        let after = at.since(self.last);
        self.last += after;
        // Entries are plain numbers: they always have an encoding.
        let _ = codec::append(&LogEntry { at: Time(after.0), what }, &mut self.payload);
    }

    const fn is_empty(&self) -> bool {
        self.payload.len() == NUMBER
    }

    fn flush(&mut self) {
        // A section of so many frames would fill 281 TB.
        self.number += 1;
        self.relay.send(std::mem::replace(&mut self.payload, empty(self.number)));
    }
}

/// A payload without entries.
fn empty(number: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(FULL);
    payload.extend_from_slice(&number.to_le_bytes());
    payload
}

impl Drop for Section {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.flush();
        }
    }
}

impl Observer for Section {
    #[inline]
    fn note(&mut self, _now: Time, _who: ActorId, _note: Note) {}

    fn crashed(&mut self, now: Time, core: u32) {
        self.put(now, LogEvent::Crashed(core));
    }

    /// The log has everything in order.
    #[inline]
    fn watches(&self, _scheduler: u32) -> bool {
        true
    }

    #[inline]
    fn stepped(&mut self, now: Time, who: ActorId, input: &Input, effects: &[Effect]) {
        self.step(now, who, *input, effects);
    }

    fn restarted(&mut self, now: Time, who: ActorId, epoch: u32) {
        self.put(now, LogEvent::Restarted { who, epoch });
    }

    fn ended(&mut self, now: Time) {
        self.put(now, LogEvent::End);
    }
}
