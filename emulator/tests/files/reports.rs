//! Tests of reports of hosts in a run: valid streams are accepted, and false reports do not make the controller panic.

use std::cell::RefCell;
use std::rc::Rc;
use std::{env, fs};

use proptest::prelude::*;
use volary_actors::base::{ActorId, CopyId, JobId, Time};
use volary_actors::machine::{CacheNote, Note};
use volary_engine::metrics::RunConfig;
use volary_engine::parcel::{Observation, Seen};
use volary_engine::shard::Observer;
use volary_engine::virtual_time::measure_with;
use volary_engine::world::World;
use volary_experiment::codec;
use volary_hosts::cluster::protocol::{AgentMessage, MESSAGE_FRAME};
use volary_hosts::real_time::placement::place;

use crate::corpus::targets::{fold_reports, report_worlds};

/// Observer that collects the notes of all actors, in order of time.
#[derive(Clone, Default)]
struct Notes(Rc<RefCell<Vec<Observation>>>);

impl Observer for Notes {
    fn note(&mut self, at: Time, who: ActorId, note: Note) {
        self.0.borrow_mut().push(Observation { at, what: Seen::Note(who, note) });
    }

    fn crashed(&mut self, at: Time, core: u32) {
        self.0.borrow_mut().push(Observation { at, what: Seen::Crashed(core) });
    }
}

/// The observations of a run of `world`, each with one of two hosts.
fn observed(world: &World) -> Vec<(usize, Observation)> {
    let (notes, layout, homes) = (Notes::default(), world.layout(), place(world.machines(), &[1.0, 1.0]));
    measure_with("test", world, &RunConfig::default(), notes.clone(), &()).unwrap();
    let home = |what: &Seen| match *what {
        Seen::Note(who, _) => homes[layout.endpoint(who).index()],
        Seen::Crashed(core) => homes[layout.endpoint(layout.worker_of_core(core)).index()],
        Seen::Delivered(_) => unreachable!("not observed"),
    };
    notes.0.take().into_iter().map(|seen| (usize::from(home(&seen.what)), seen)).collect()
}

/// Messages that report a few observations each.
fn messages(observed: &[(usize, Observation)]) -> Vec<(usize, AgentMessage)> {
    let mut messages = Vec::new();
    for part in observed.chunks(7) {
        let end = part.last().unwrap().1.at;
        for host in 0..2 {
            let notes: Vec<_> = part.iter().filter(|(of, _)| *of == host).map(|(_, seen)| *seen).collect();
            let mark = notes.iter().map(|seen| seen.at).fold(end, Time::max);
            messages.push((host, AgentMessage::Notes { notes, mark, progress: end }));
        }
    }
    messages
}

/// The input of the fuzzer: the world, then host, length and frame of each message.
fn encoded(world: u8, messages: &[(usize, AgentMessage)]) -> Vec<u8> {
    let mut bytes = vec![world];
    for (host, message) in messages {
        let mut frame = Vec::new();
        codec::encode(message, MESSAGE_FRAME, &mut frame).unwrap();
        let frame = &frame[codec::PREFIX..];
        bytes.push(*host as u8);
        bytes.extend(u16::try_from(frame.len()).unwrap().to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}

/// The fuzzer's seeds must equal the messages tested here; `VOLARY_UPDATE_CORPUS=1` writes the seeds again.
#[test]
fn valid_reports_of_hosts_are_accepted() {
    for (number, world) in (0..).zip(report_worlds()) {
        let messages = messages(&observed(world));
        let seed = encoded(number, &messages);
        let (refused, accounts) = fold_reports(world, messages.into_iter());
        assert_eq!(refused, [None, None], "{}", world.point().label);
        assert_eq!((accounts.submitted, accounts.finished), (6, 6), "{}", world.point().label);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/reports");
        let path = format!("{path}/{}", world.point().label);
        if env::var_os("VOLARY_UPDATE_CORPUS").is_some() {
            fs::write(&path, &seed).unwrap();
        }
        assert_eq!(fs::read(&path).ok(), Some(seed), "{path}: run this with VOLARY_UPDATE_CORPUS=1");
    }
}

/// A change of a valid stream.
#[derive(Clone, Copy, Debug)]
enum Change {
    Drop,
    Twice,
    Swap(usize),
    Elsewhere,
    At(u64),
    Who(u32),
    Job(u32),
    Attempt(u8),
    Resumed,
    Suspended,
}

fn change() -> impl Strategy<Value = Change> {
    use Change::*;
    let small = prop_oneof![4 => 0..30_u32, 1 => any::<u32>()];
    prop_oneof![
        Just(Drop),
        Just(Twice),
        any::<usize>().prop_map(Swap),
        Just(Elsewhere),
        prop_oneof![0..10_000_000_000_u64, any::<u64>()].prop_map(At),
        small.clone().prop_map(Who),
        small.prop_map(Job),
        any::<u8>().prop_map(Attempt),
        Just(Resumed),
        Just(Suspended),
    ]
}

/// The copy that a note concerns.
fn copy_of(note: &mut Note) -> Option<&mut CopyId> {
    match note {
        Note::Started { copy, .. }
        | Note::Completed { copy }
        | Note::Preempted { copy }
        | Note::Suspended { copy }
        | Note::Discarded { copy }
        | Note::Cache(CacheNote::Placed { copy, .. } | CacheNote::Reached { copy })
        | Note::Bound { copy }
        | Note::Evicted { copy } => Some(copy),
        Note::Arrived { .. }
        | Note::Resubmitted { .. }
        | Note::Finished { .. }
        | Note::Killed { .. }
        | Note::Cache(_)
        | Note::Planned { .. }
        | Note::Enacted { .. }
        | Note::Predicted { .. }
        | Note::Informed { .. }
        | Note::Regards { .. }
        | Note::Value { .. }
        | Note::Unexpected { .. } => None,
    }
}

fn apply(observed: &mut Vec<(usize, Observation)>, at: usize, change: Change) {
    let at = at % observed.len();
    let count = observed.len();
    if let Change::Swap(other) = change {
        let (a, b) = (observed[at].1.what, observed[other % count].1.what);
        (observed[at].1.what, observed[other % count].1.what) = (b, a);
        return;
    }
    let (host, seen) = &mut observed[at];
    match change {
        Change::Drop if count > 1 => drop(observed.remove(at)),
        Change::Drop | Change::Swap(_) => {}
        Change::Twice => {
            let again = observed[at];
            observed.insert(at, again);
        }
        Change::Elsewhere => *host = 1 - *host,
        Change::At(time) => seen.at = Time(time),
        Change::Who(who) => match &mut seen.what {
            Seen::Note(of, _) => *of = ActorId(who),
            Seen::Crashed(core) => *core = who,
            Seen::Delivered(_) => {}
        },
        Change::Job(id) => match &mut seen.what {
            Seen::Note(_, Note::Arrived { job } | Note::Finished { job }) => *job = JobId(id),
            Seen::Note(_, note) => {
                if let Some(copy) = copy_of(note) {
                    copy.task = JobId(id).task(id % 3);
                }
            }
            Seen::Crashed(_) | Seen::Delivered(_) => {}
        },
        Change::Attempt(attempt) => {
            if let Seen::Note(_, note) = &mut seen.what
                && let Some(copy) = copy_of(note)
            {
                copy.attempt = attempt.into();
            }
        }
        Change::Resumed => {
            if let Seen::Note(_, Note::Started { resumed, .. }) = &mut seen.what {
                *resumed = !*resumed;
            }
        }
        Change::Suspended => {
            if let Seen::Note(_, note) = &mut seen.what
                && let Note::Completed { copy } = *note
            {
                *note = Note::Suspended { copy };
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A false report always leads to an error that blames its host.
    #[test]
    fn false_reports_are_refused_and_never_panic(
        world in 0..report_worlds().len(),
        changes in prop::collection::vec((any::<usize>(), change()), 1..6),
    ) {
        let world = &report_worlds()[world];
        let mut observed = observed(world);
        changes.into_iter().for_each(|(at, change)| apply(&mut observed, at, change));
        fold_reports(world, messages(&observed).into_iter());
    }
}
