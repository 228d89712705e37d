//! Logs that are written, cut, damaged and continued.

use std::io::Cursor as Bytes;
use std::{fs, io};

use volary_actors::base::{ActorId, JobId, Span, Time};
use volary_actors::machine::{Effect, Input, Timer};
use volary_actors::message::Probe;
use volary_engine::replay::{LogEntry, LogEvent};

use super::format::*;
use super::*;

/// Effects that depend on `n`.
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
    section.step(Time(n * 300_000_000), ActorId(n as u32 % 5), Input::Start { epoch: n as u32 }, &effects(n));
}

/// A log of two shards of one run and one of another, which ends early.
fn sample(path: &std::path::Path) {
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

fn entries<R: io::Read + io::Seek>(log: &mut InputLog<R>, index: usize) -> Vec<LogEntry> {
    let mut cursor = log.found()[index].cursor();
    std::iter::from_fn(|| log.next(&mut cursor).unwrap()).collect()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    sample(&path);
    let mut log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
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
    assert_ne!(digester.digest(&effects(1)), digester.digest(&effects(4)), "effects differ in their content");
    let two = entries(&mut log, 1);
    assert_eq!(two[2000].what, LogEvent::Crashed(4));
    assert_eq!(two[2001].what, LogEvent::Restarted { who: ActorId(1), epoch: 1 });
    assert_eq!(entries(&mut log, 2).len(), 2000, "a section that broke off keeps what it had");
}

#[test]
fn a_cut_log_is_read_up_to_the_cut_and_can_go_on() {
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
    let mut log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
    assert!(!log.is_cut() && log.damage().is_none());
    let last = log.found().len() - 1;
    let found = log.found()[last].clone();
    assert_eq!((last, found.experiment, found.header.run.as_str()), (3, 1, "bb"));
    assert!(log.found()[..last].iter().all(|f| f.header.attempt < found.header.attempt));
    assert_eq!(log.experiment::<String>(1).unwrap(), "again");
    assert_eq!(entries(&mut log, last).len(), 1);
}

/// A log that is damaged, or of another version, does not keep a run from going on.
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
        let log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
        assert!(log.damage().is_none() && log.found().len() == 1, "{at}");
        assert_eq!(fs::read(path.with_extension("log.damaged")).unwrap(), bytes, "{at}");
    }
}

#[test]
fn a_frame_that_is_not_there_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let frames = || {
        let (mut section, carried) = Section::carried();
        (0..4).for_each(|n| step(&mut section, n * 10));
        drop(section);
        std::iter::from_fn(move || carried.next()).collect::<Vec<_>>()
    };
    assert_eq!(frames().len(), 4, "each second has its own");
    for lost in 0..3 {
        let sink = Sink::create(&path, &"the experiment").unwrap();
        let relay = sink.attempt("aa", "sparrow", 5).relay(0, 1);
        frames().into_iter().enumerate().filter(|(n, _)| *n != lost).for_each(|(_, f)| assert!(relay.put(f)));
        drop(relay);
        sink.close().unwrap();
        let mut log = InputLog::new(fs::File::open(&path).unwrap()).unwrap();
        assert!(log.damage().is_none() && !log.is_cut());
        let mut cursor = log.found()[0].cursor();
        (0..lost).for_each(|_| assert!(log.next(&mut cursor).unwrap().is_some()));
        let error = log.next(&mut cursor).unwrap_err();
        let there = matches!(error, Error::Missing { expected, found, .. } if (expected as usize, found as usize) == (lost, lost + 1));
        assert!(there && error.to_string().contains("frames are missing"), "{error}");
    }
}

#[test]
fn every_flipped_byte_is_found() {
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
