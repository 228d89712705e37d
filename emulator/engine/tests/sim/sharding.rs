//! Several shards under one clock, compared with one shard.

use volary_actors::base::{ActorId, Class, Rng, Time};
use volary_actors::machine::Note;
use volary_actors::policies::PolicySpec;
use volary_engine::metrics::{Recorder, Recording};
use volary_engine::parcel::{Observation, Seen};
use volary_engine::results::JobRow;
use volary_engine::shard::{Observer, Placement, Shard};
use volary_engine::world::World;

use crate::common::{FAULTY, poisson, run, with, world};

/// The observations of one shard in order, for a recorder that all shards share.
#[derive(Default)]
struct Log(Vec<Observation>);

impl Observer for Log {
    fn note(&mut self, at: Time, who: ActorId, note: Note) {
        self.0.push(Observation { at, what: Seen::Note(who, note) });
    }
    fn crashed(&mut self, at: Time, core: u32) {
        self.0.push(Observation { at, what: Seen::Crashed(core) });
    }
}

/// Crashes of masters. The standby of `master:1` takes over; a worker takes over the group whose masters stay down.
const MASTERS: &str = r#"
[[network.fault]]
crash = { who = ["master:1"], at = "1200ms", for = "800ms" }
[[network.fault]]
crash = { who = ["master:0", "master:4"], at = "1300ms" }
"#;

/// Steps the shard whose next event is due first, and hands parcels over at once.
pub(crate) fn lockstep(world: &World, shards: u16, recorder: Recorder<'_>) -> (Vec<JobRow>, u64) {
    step_together(world, shards, recorder, |_| false)
}

/// Events after which a run on lossy hosts counts as endless.
const MOST_EVENTS: u64 = 1 << 27;

/// Steps two hosts like [`lockstep`]. The real network between them loses this percentage of datagrams.
pub(crate) fn lossy_lockstep(world: &World, percent: u32) -> Vec<JobRow> {
    let mut dice = Rng::new(world.seed(), 0, 7);
    let lost = |class| class == Class::Datagram && dice.below(100) < percent;
    step_together(world, 2, world.recorder(Recording::default()), lost).0
}

fn step_together(
    world: &World,
    shards: u16,
    mut recorder: Recorder<'_>,
    mut is_lost: impl FnMut(Class) -> bool,
) -> (Vec<JobRow>, u64) {
    let layout = world.layout();
    // Clients are on the shard of their scheduler, all other actors on any shard.
    let homes: Vec<u16> = (0..layout.endpoints())
        .map(|e| if e < 2 * layout.schedulers() { e % layout.schedulers() } else { e } as u16 % shards)
        .collect();
    let mut all: Vec<_> = (0..shards)
        .map(|me| Shard::new(world.parts(Placement::new(&homes, me, shards), true).unwrap(), Log::default()))
        .collect();
    all.iter_mut().for_each(Shard::start);
    let mut crossed = 0;
    for _ in 0..MOST_EVENTS {
        for from in 0..all.len() {
            let mut parcels = Vec::new();
            all[from].outbox().flush(|to, class, some| {
                parcels.extend(some.drain(..).filter(|_| !is_lost(class)).map(|p| (to, p)));
            });
            crossed += parcels.len() as u64;
            for (to, parcel) in parcels {
                all[to as usize].receive(Time::ZERO, &parcel);
            }
            for Observation { at, what } in std::mem::take(&mut all[from].observer.0) {
                match what {
                    Seen::Note(who, note) => {
                        recorder
                            .check(who, note)
                            .unwrap_or_else(|why| panic!("{who:?} reports at {at}: {why}"));
                        recorder.note(at, who, note);
                    }
                    Seen::Crashed(core) => recorder.crashed(at, core),
                    Seen::Delivered(what) => recorder.delivered(at, what),
                }
            }
        }
        let next = all.iter().enumerate().filter_map(|(i, shard)| Some((shard.next()?, i))).min();
        match next {
            Some((_, first)) if !recorder.all_finished() => all[first].advance(),
            Some(_) | None => break,
        };
    }
    let now = all.iter().map(Shard::now).max().unwrap();
    (recorder.close(now).rows, crossed)
}

#[test]
fn several_shards_give_the_results_of_one_shard() {
    let set = ["cluster.schedulers=3", "workload.synthetic.jobs=150"];
    let timeout = "network.peer_timeout=300ms";
    let pigeon = "pigeon = { group = 6, standby = true, push = \"20ms\", declare_after = \"400ms\" }";
    for (policy, faults, set) in [
        ("latin-square = { order = 2 }", "", &set[..]),
        ("sparrow = {}", "", &set),
        ("peacock = {}", "", &set),
        ("murmuration = {}", "", &set),
        ("random = {}", "", &set),
        (pigeon, MASTERS, &[set[0], set[1], timeout]),
    ] {
        let text = with(&format!("{FAULTY}{faults}[[policy]]\n{policy}\n"), set);
        let (world, alone) = (world(&text), run(&text));
        assert_eq!(alone.summary.jobs.finished, 150, "{policy}");
        for shards in [1, 2, 5] {
            let (rows, crossed) = lockstep(&world, shards, world.recorder(Recording::default()));
            assert_eq!(rows, alone.jobs, "{policy} on {shards} shards");
            assert_eq!(crossed > 0, shards > 1, "{policy} on {shards} shards: {crossed} parcels crossed");
        }
    }
}

/// The emulated network loses nothing, so actors can expect losses only because of the number of hosts.
#[test]
fn every_policy_finishes_when_the_network_between_hosts_loses_datagrams() {
    for card in PolicySpec::cards().into_iter().filter(|card| card.runs_alone) {
        let text = poisson(8, 60, 3, 0.8, &format!("{} = {{}}", card.name));
        let schedulers = format!("cluster.schedulers={}", if card.one_scheduler { 1 } else { 2 });
        let set = [&*schedulers, "workload.synthetic.cutoff=\"1s\"", "network.one_way=\"10ms\""];
        let rows = lossy_lockstep(&world(&with(&text, &set)).on_hosts(2), 25);
        let open: Vec<_> = rows.iter().filter(|row| row.response.is_nan()).map(|row| row.job).collect();
        assert_eq!((rows.len(), open), (60, Vec::new()), "{}", card.name);
    }
    // Actors that do not expect loss leave jobs open, so the test above can fail.
    let open = |hosts| {
        let sparrow = world(&poisson(8, 60, 1, 0.8, "sparrow = {}")).on_hosts(hosts);
        lossy_lockstep(&sparrow, 90).iter().filter(|row| row.response.is_nan()).count()
    };
    assert!(open(1) > 0 && open(2) == 0, "{} jobs are left open by actors that expect no loss", open(1));
}

/// Actors repair losses on several hosts, and in one process only if the experiment expects loss.
#[test]
fn actors_expect_loss_on_more_than_one_host() {
    let text = poisson(8, 60, 3, 0.8, "sparrow = {}");
    let lossy = |world: World| world.parts(Placement::ALONE, false).unwrap().lossy;
    assert_eq!([0, 1, 2, 9].map(|hosts| lossy(world(&text).on_hosts(hosts))), [false, false, true, true]);
    assert!(!lossy(world(&text)) && lossy(world(&with(&text, &["network.expect_loss=true"]))));
}
