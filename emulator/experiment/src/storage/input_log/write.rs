//! The writer: shards fill frames, and one thread appends the frames to the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use serde::Serialize;
use volary_actors::base::{ActorId, Span, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_engine::replay::{LogEntry, LogEvent};
use volary_engine::shard::Observer;

use super::read::{Digester, EXPERIMENT, Error, FORMAT, Header, InputLog, MAGIC, NUMBER, failed, vocabulary};
use crate::codec;
use crate::guard::guard;
use crate::storage::frames::{self, frame};

/// Number of bytes at which a frame is sent.
const FULL: usize = 1 << 16;
/// Emulated time after which a frame is sent even if it is small. This limits the loss of a killed run.
const OLD: Span = Span::from_secs(1);
/// Limit on the frames of a shard that wait for the disk; at the limit the shard waits.
const WAITING: usize = 64;

/// Largest frame, bytes: a frame that is not yet full, and one more entry.
const LARGEST: usize = FULL + (1 << 12);

/// A section, and a payload to append to it.
type Frame = (u32, Vec<u8>);

/// The section number of a flush request, which is not written, but answered once all frames before it are written.
const FLUSH: u32 = u32::MAX;

/// A log opened for writing.
#[derive(Debug)]
pub struct Sink {
    frames: Sender<Frame>,
    /// Number of the next section or attempt.
    next: Arc<AtomicU32>,
    /// Receives an answer for each [`FLUSH`]. Only one thread at a time sends requests.
    flushed: Mutex<Receiver<()>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Sink {
    /// Creates a log with its experiment, replacing an existing file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, experiment: &impl Serialize) -> Result<Self, Error> {
        let mut file = File::create(path).map_err(failed("create"))?;
        file.write_all(&prefix()).map_err(failed("write"))?;
        Self::start(file, 1, experiment)
    }

    /// Continues a log after its last whole frame; creates a missing log. A file that is damaged, or is not a log of
    /// this version, is set aside.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn append(path: &Path, experiment: &impl Serialize) -> Result<Self, Error> {
        // A file shorter than its prefix was cut by a full disk.
        if path.metadata().is_ok_and(|file| file.len() < prefix().len() as u64) || !path.exists() {
            return Self::create(path, experiment);
        }
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed("open"))?;
        let opened = InputLog::new(&file).and_then(|log| match log.damage() {
            Some(damage) => Err(damage),
            None => Ok((log.end(), log.next_section())),
        });
        let (end, next) = match opened {
            Ok(opened) => opened,
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(unusable) => {
                let aside = path.with_extension("log.damaged");
                tracing::warn!(
                    "{unusable}; the file is kept as {}, and a new log begins without the finished runs",
                    aside.display()
                );
                fs::rename(path, aside).map_err(failed("rename"))?;
                return Self::create(path, experiment);
            }
        };
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
        let (answer, flushed) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("inputs".into())
            .spawn(move || write(file, &receive, &answer))
            .map_err(failed("write"))?;
        // If sending fails, `close` returns the error.
        let _ = frames.send((EXPERIMENT, payload));
        Ok(Self { frames, next: Arc::new(AtomicU32::new(next)), flushed: Mutex::new(flushed), thread })
    }

    /// Starts the sections of all shards for one attempt at a run.
    pub fn attempt(&self, run: &str, policy: &str, seed: u64) -> RunLog {
        let attempt = self.next.fetch_add(1, Ordering::Relaxed);
        let header =
            Header { run: run.to_owned(), attempt, policy: policy.to_owned(), seed, shard: 0, shards: 1 };
        RunLog { header, frames: self.frames.clone(), next: Arc::clone(&self.next) }
    }

    /// Waits until all logged steps are in the file, and returns true. If writing has failed, returns false: later
    /// steps are lost too, and `close` returns the error.
    pub fn is_whole(&self) -> bool {
        let flushed = guard(&self.flushed);
        self.frames.send((FLUSH, Vec::new())).is_ok() && flushed.recv().is_ok()
    }

    /// Waits until all frames are written. Every [`Section`] must have been dropped before.
    ///
    /// # Errors
    /// When a frame could not be written: the end of the log is then missing.
    pub fn close(self) -> Result<(), Error> {
        drop(self.frames);
        let written = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
        written.map_err(failed("write"))
    }
}

/// Appends frames until all senders are dropped.
fn write(file: File, frames: &Receiver<Frame>, flushed: &Sender<()>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    for (section, payload) in frames {
        if section == FLUSH {
            file.flush()?;
            // The thread that asked may have ended.
            let _ = flushed.send(());
            continue;
        }
        frame(section, &payload, &mut file)?;
        // While no frames wait, the buffered frames are flushed to the file.
        if frames.is_empty() {
            file.flush()?;
        }
    }
    file.flush()
}

/// The first bytes of a log.
pub fn prefix() -> Vec<u8> {
    frames::prefix(MAGIC, FORMAT, vocabulary())
}

/// One attempt at a run.
#[derive(Clone, Debug)]
pub struct RunLog {
    header: Header,
    frames: Sender<Frame>,
    next: Arc<AtomicU32>,
}

impl RunLog {
    /// The section of a shard.
    pub fn section(&self, shard: u16, shards: u16) -> Section {
        Section::to(self.relay(shard, shards))
    }

    /// The section of a shard on another machine, for frames from its [`Carried`].
    pub fn relay(&self, shard: u16, shards: u16) -> Relay {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut payload = Vec::new();
        // A header can always be encoded.
        let _ = codec::append(&Header { shard, shards, ..self.header.clone() }, &mut payload);
        let relay = Relay { number, frames: self.frames.clone() };
        relay.send(payload);
        relay
    }
}

/// The receiver of the frames of a section.
#[derive(Clone, Debug)]
pub struct Relay {
    number: u32,
    frames: Sender<Frame>,
}

impl Relay {
    /// Adds a frame of entries; blocks while the queue for the disk is full. Returns whether the size is valid; the
    /// reader checks the content.
    pub fn put(&self, payload: Vec<u8>) -> bool {
        let fits = payload.len() <= LARGEST;
        if fits {
            self.send(payload);
        }
        fits
    }

    fn send(&self, payload: Vec<u8>) {
        // Sending fails only after the writer has failed; closing the sink returns the error.
        let _ = self.frames.send((self.number, payload));
    }
}

/// The frames of a section whose log is on another machine. They are sent to a [`Relay`] on that machine.
#[derive(Debug)]
pub struct Carried(Receiver<Frame>);

impl Carried {
    /// The next frame, if one waits.
    pub fn next(&self) -> Option<Vec<u8>> {
        self.0.try_recv().ok().map(|(_, payload)| payload)
    }

    /// Number of waiting frames.
    pub fn waiting(&self) -> usize {
        self.0.len()
    }
}

/// The log of one shard. Dropping it writes the buffered entries, so the log of a failed run contains the steps up to
/// the failure.
#[derive(Debug)]
pub struct Section {
    relay: Relay,
    /// Number of the current frame.
    number: u32,
    /// The current frame: its number, then its entries.
    payload: Vec<u8>,
    /// Time of the first entry in the payload.
    since: Time,
    /// Time of the latest entry.
    last: Time,
    digester: Digester,
    /// The actors whose effects are logged.
    asked: Range<u32>,
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
            asked: 0..0,
        }
    }

    /// Also logs the effects of the steps of these actors, for which [a program
    /// decides](volary_engine::world::World::asked).
    #[must_use]
    pub const fn with_effects_of(mut self, asked: Range<u32>) -> Self {
        self.asked = asked;
        self
    }

    /// The section of a shard whose log is on another machine. It never blocks; the sender of its frames must limit the
    /// number of [waiting](Carried::waiting) frames.
    pub fn carried() -> (Self, Carried) {
        let (frames, carried) = unbounded();
        // The other machine assigns the number.
        (Self::to(Relay { number: EXPERIMENT, frames }), Carried(carried))
    }

    /// Logs a step of an actor.
    pub fn step(&mut self, at: Time, who: ActorId, input: Input, effects: &[Effect]) {
        let digest = self.digester.digest(effects);
        self.put(at, LogEvent::Step { who, input, effects: digest });
        if self.asked.contains(&who.0) {
            effects.iter().for_each(|effect| self.put(at, LogEvent::Effect(*effect)));
        }
    }

    /// Logs an event that is not a step.
    pub fn put(&mut self, at: Time, what: LogEvent) {
        if self.payload.len() >= FULL || (!self.is_empty() && at.since(self.since) > OLD) {
            self.flush();
        }
        if self.is_empty() {
            (self.since, self.last) = (at, Time::ZERO);
        }
        let after = at.since(self.last);
        self.last += after;
        // Entries are plain numbers and can always be encoded.
        let _ = codec::append(&LogEntry { at: Time(after.0), what }, &mut self.payload);
    }

    const fn is_empty(&self) -> bool {
        self.payload.len() == NUMBER
    }

    fn flush(&mut self) {
        // The frame number overflows only in a section of 281 TB.
        self.number += 1;
        self.relay.send(std::mem::replace(&mut self.payload, empty(self.number)));
    }
}

/// A payload with the number of a frame and no entries.
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

    /// All schedulers are watched, since the log contains every step.
    #[inline]
    fn watches(&self, _scheduler: u32) -> bool {
        true
    }

    fn reads_by(&self) -> Time {
        Time::ZERO
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Cursor as Bytes};

    use volary_actors::base::{ActorId, JobId, Span, Time};
    use volary_actors::machine::{Effect, Input, Timer};
    use volary_actors::message::Probe;
    use volary_engine::replay::{LogEntry, LogEvent};

    use super::*;
    use crate::storage::input_log::read::*;

    #[test]
    fn closing_a_log_on_a_full_disk_returns_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("log")).unwrap();
        let whole = Sink::start(file, 1, &"experiment").unwrap();
        drop(whole.attempt("run", "policy", 1).section(0, 1));
        assert!(whole.is_whole() && whole.is_whole());
        whole.close().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let broken = Sink::start(full, 1, &"experiment").unwrap();
        drop(broken.attempt("run", "policy", 1).section(0, 1));
        assert!(!broken.is_whole() && !broken.is_whole());
        assert!(broken.close().is_err());
    }

    /// Effects that differ for each `n`.
    fn effects(n: u64) -> Vec<Effect> {
        let send = Effect::Send {
            to: ActorId(n as u32),
            msg: Probe::Claim { job: JobId(7), group: 1, repair: false }.into(),
            recovery: false,
        };
        let arm = Effect::Arm { timer: Timer::Tick(3), after: Span(n) };
        [send, arm][..n as usize % 3].to_vec()
    }

    fn step(section: &mut Section, n: u64) {
        section.step(
            Time(n * 300_000_000),
            ActorId(n as u32 % 5),
            Input::Start { epoch: n as u32 },
            &effects(n),
        );
    }

    /// Writes a log of two complete shards of one run, and of an interrupted shard of another run.
    fn sample(path: &Path) {
        let sink = Sink::create(path, &"the experiment").unwrap();
        let unit = sink.attempt("aa", "sparrow", 5);
        let (mut one, mut two) = (unit.section(0, 2), unit.section(1, 2));
        let mut broken = sink.attempt("bb", "random", 6).section(0, 1);
        for n in 0..2000 {
            step(&mut one, n);
            step(&mut two, n + 1);
            step(&mut broken, n);
        }
        two.put(Time(601_000_000_000), LogEvent::Crashed(4));
        two.put(Time(602_000_000_000), LogEvent::Restarted { who: ActorId(1), epoch: 1 });
        for mut section in [one, two] {
            section.put(Time(u64::MAX), LogEvent::End);
        }
        drop((broken, unit));
        sink.close().unwrap();
    }

    fn entries<R: io::Read + Seek>(log: &mut InputLog<R>, index: usize) -> Vec<LogEntry> {
        let mut cursor = log.found()[index].cursor();
        std::iter::from_fn(|| log.next(&mut cursor).unwrap()).collect()
    }

    #[test]
    fn a_written_log_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        sample(&path);
        let mut log = InputLog::new(File::open(&path).unwrap()).unwrap();
        assert!(!log.is_cut() && log.damage().is_none());
        assert_eq!(log.experiment::<String>(0).unwrap(), "the experiment");
        let headers: Vec<_> = log.found().iter().map(|found| found.header.clone()).collect();
        let shards: Vec<_> = headers.iter().map(|h| (h.run.as_str(), h.seed, h.shard, h.shards)).collect();
        assert_eq!(shards, [("aa", 5, 0, 2), ("aa", 5, 1, 2), ("bb", 6, 0, 1)]);
        assert!(headers[0].attempt == headers[1].attempt && headers[0].attempt != headers[2].attempt);

        let one = entries(&mut log, 0);
        assert_eq!((one.len(), one[2000].at, one[2000].what), (2001, Time(u64::MAX), LogEvent::End));
        let mut digester = Digester::default();
        for (n, entry) in one[..2000].iter().enumerate() {
            let n = n as u64;
            let input = Input::Start { epoch: n as u32 };
            let what =
                LogEvent::Step { who: ActorId(n as u32 % 5), input, effects: digester.digest(&effects(n)) };
            assert_eq!(*entry, LogEntry { at: Time(n * 300_000_000), what });
        }
        assert_ne!(
            digester.digest(&effects(1)),
            digester.digest(&effects(4)),
            "effects differ in their content"
        );
        let two = entries(&mut log, 1);
        assert_eq!(two[2000].what, LogEvent::Crashed(4));
        assert_eq!(two[2001].what, LogEvent::Restarted { who: ActorId(1), epoch: 1 });
        assert_eq!(entries(&mut log, 2).len(), 2000, "an interrupted section keeps its entries");
    }

    #[test]
    fn a_cut_log_is_read_up_to_the_cut_and_can_be_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        sample(&path);
        let whole = fs::read(&path).unwrap();
        let all: usize = {
            let mut log = InputLog::new(Bytes::new(&whole)).unwrap();
            (0..3).map(|i| entries(&mut log, i).len()).sum()
        };
        let mut before = 0;
        for length in (16..whole.len()).step_by(997) {
            let mut log = InputLog::new(Bytes::new(&whole[..length])).unwrap();
            assert!(log.damage().is_none(), "cut at {length}");
            let count = (0..log.found().len()).map(|i| entries(&mut log, i).len()).sum();
            assert!(count >= before && count < all, "cut at {length}: {count} after {before} of {all}");
            before = count;
        }
        assert!(before > all / 2, "{before} of {all}");

        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let sink = Sink::append(&path, &"again").unwrap();
        let mut section = sink.attempt("bb", "random", 6).section(0, 1);
        section.put(Time(1), LogEvent::End);
        drop(section);
        sink.close().unwrap();
        let mut log = InputLog::new(File::open(&path).unwrap()).unwrap();
        assert!(!log.is_cut() && log.damage().is_none());
        let last = log.found().len() - 1;
        let found = log.found()[last].clone();
        assert_eq!((last, found.experiment, found.header.run.as_str()), (3, 1, "bb"));
        assert!(log.found()[..last].iter().all(|f| f.header.attempt < found.header.attempt));
        assert_eq!(log.experiment::<String>(1).unwrap(), "again");
        assert_eq!(entries(&mut log, last).len(), 1);
    }

    /// A log that is damaged, or of another version, does not prevent a run from continuing.
    #[test]
    fn a_log_that_cannot_be_continued_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for at in [0, 9, 14, 40, 2000] {
            sample(&path);
            let mut bytes = fs::read(&path).unwrap();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let sink = Sink::append(&path, &"again").unwrap();
            let mut section = sink.attempt("bb", "random", 6).section(0, 1);
            section.put(Time(1), LogEvent::End);
            drop(section);
            sink.close().unwrap();
            let log = InputLog::new(File::open(&path).unwrap()).unwrap();
            assert!(log.damage().is_none() && log.found().len() == 1, "{at}");
            assert_eq!(fs::read(path.with_extension("log.damaged")).unwrap(), bytes, "{at}");
        }
    }

    #[test]
    fn reading_a_log_without_one_of_its_frames_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let frames = || {
            let (mut section, carried) = Section::carried();
            (0..4).for_each(|n| step(&mut section, n * 10));
            drop(section);
            std::iter::from_fn(move || carried.next()).collect::<Vec<_>>()
        };
        assert_eq!(frames().len(), 4, "each second has a frame of its own");
        for lost in 0..3 {
            let sink = Sink::create(&path, &"the experiment").unwrap();
            let relay = sink.attempt("aa", "sparrow", 5).relay(0, 1);
            frames()
                .into_iter()
                .enumerate()
                .filter(|(n, _)| *n != lost)
                .for_each(|(_, f)| assert!(relay.put(f)));
            drop(relay);
            sink.close().unwrap();
            let mut log = InputLog::new(File::open(&path).unwrap()).unwrap();
            assert!(log.damage().is_none() && !log.is_cut());
            let mut cursor = log.found()[0].cursor();
            (0..lost).for_each(|_| assert!(log.next(&mut cursor).unwrap().is_some()));
            let error = log.next(&mut cursor).unwrap_err();
            let there = matches!(error, Error::Missing { expected, found, .. } if (expected as usize, found as usize) == (lost, lost + 1));
            assert!(there && error.to_string().contains("frames are missing"), "{error}");
        }
    }

    #[test]
    fn a_flipped_byte_in_a_log_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        sample(&path);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(331).chain(0..64) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            match InputLog::new(Bytes::new(&bytes)) {
                Err(Error::Foreign) => assert!(at < 8, "{at}"),
                Err(Error::Version { .. }) => assert!((8..16).contains(&at), "{at}"),
                Err(error) => panic!("{at}: {error}"),
                // A wrong length may point beyond the end.
                Ok(log) => assert!(log.damage().is_some() || log.is_cut(), "a flip at {at} went unnoticed"),
            }
        }
    }
}
