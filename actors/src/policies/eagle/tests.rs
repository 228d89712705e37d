use super::*;
use crate::base::{ActorId, JobId};
use crate::message::{Blocks, Core, Job, Launch, Message, Probe, Row, Share, Stamp};
use crate::scripts::Bench;

const SHORT: JobId = JobId(0);
const LONG: JobId = JobId(1);

fn layout(nodes: usize) -> Layout {
    Layout::new(1, 0, vec![1; nodes])
}

fn scheduler(config: &Eagle, tasks: u32, nodes: usize) -> Bench {
    let layout = layout(nodes);
    let me = layout.scheduler(0);
    let machine = config.scheduler(Seat { me, index: 0, layout: &layout, lossy: false, watched: false });
    Bench::new(layout, me, tasks, machine).with_long(&[LONG])
}

fn node(tasks: u32) -> Bench {
    let layout = layout(4);
    let me = layout.node(0);
    let machine = Eagle::default().node(Seat { me, index: 0, layout: &layout, lossy: false, watched: false });
    Bench::new(layout, me, tasks, machine).with_long(&[LONG])
}

fn submit(bench: &mut Bench, job: JobId) -> Vec<(ActorId, Message)> {
    bench.hear(bench.layout.client(0), Job::Submit { job, round: 0 })
}

fn probe(job: JobId, last: bool) -> Message {
    let known = Stamp::from(crate::base::Time::ZERO);
    Share::Probe { job, count: 1, round: 0, last, repair: false, known }.into()
}

fn bits(first: u32) -> Blocks {
    Blocks { first: 0, len: 1, bits: [first, 0, 0], at: crate::base::Time(1).into() }
}

/// Nodes that were probed, with round and whether they must accept.
fn probes(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u16, bool)> {
    let is_probe = |&(to, msg): &(ActorId, Message)| match msg {
        Message::Share(Share::Probe { round, last, .. }) => Some((to, round, last)),
        _ => None,
    };
    sent.iter().filter_map(is_probe).collect()
}

/// 98 % of 100 nodes, two tasks: one each on two idle nodes; then the third and fourth; never on the last two.
#[test]
fn long_tasks_go_to_the_least_wait_of_the_big_partition() {
    let mut central = scheduler(&Eagle::default(), 120, 100);
    let rows: Vec<_> =
        submit(&mut central, LONG).into_iter().filter(|s| s.1.name() == "launch.row").collect();
    assert_eq!(rows.len(), 120);
    let mut count = [0; 100];
    rows.iter().for_each(|(to, _)| count[central.layout.node_number(*to) as usize] += 1);
    assert_eq!(count[98..], [0, 0]);
    assert!(count[..98].iter().all(|&n| n == 1 || n == 2), "idle nodes first: {count:?}");
}

/// With the task goes the bitmap: of nodes 0 to 3, those that have got one by then.
#[test]
fn a_long_task_takes_the_bitmap_along() {
    let mut central = scheduler(&Eagle { big_partition: 0.75, ..Eagle::default() }, 2, 4);
    central.now = crate::base::Time(1);
    let sent = submit(&mut central, LONG);
    let of = |msg: Message| match msg {
        Message::Share(Share::Bits(Blocks { bits, .. })) => Some(bits[0]),
        _ => None,
    };
    let [a, b] = [sent[0].0, sent[2].0].map(|node| central.layout.node_number(node));
    assert_eq!(of(sent[1].1), Some(1 << a));
    assert_eq!(of(sent[3].1), Some(1 << a | 1 << b));
    assert!(a != b && a < 3 && b < 3);
    // Its long backlog is worked off: the bit is clear in what the next one hears.
    let done = Launch::Completed { copy: LONG.task(0).copy(0) };
    assert_eq!(central.hear(sent[0].0, done), []);
    let again = Bench::hear(&mut central, sent[2].0, Launch::Completed { copy: LONG.task(1).copy(0) });
    assert_eq!(again.last().map(|s| s.1.name()), Some("job.finished"));
}

#[test]
fn a_node_with_long_work_turns_probes_away_and_says_what_it_knows() {
    let mut node = node(3);
    let scheduler = node.layout.scheduler(0);
    let long = LONG.task(0).copy(0);
    node.hear(scheduler, Launch::Row(Row::single(long)));
    node.hear(scheduler, Share::Bits(bits(0b101)));
    let rejected = Share::Rejected { job: SHORT, count: 1, round: 0, repair: false };
    let sent = node.hear(scheduler, probe(SHORT, false));
    assert_eq!(sent, [(scheduler, Share::Bits(bits(0b101)).into()), (scheduler, rejected.into())]);
    // One that knows as much hears no more than that.
    let known = bits(0).at;
    let informed = Share::Probe { job: SHORT, count: 1, round: 0, last: false, repair: false, known };
    assert_eq!(node.hear(scheduler, informed), [(scheduler, rejected.into())]);
    // What must be taken is.
    let taken = node.hear(scheduler, probe(SHORT, true));
    assert_eq!(taken.last().map(|s| s.1.name()), Some("share.accepted"));
    let sent = node.ended(long);
    assert_eq!(sent[1].1, Probe::Claim { job: SHORT, group: 0, repair: false }.into());
}

/// Round 1 goes where the bitmap says there is no long work; what is turned away again, out of the big
/// partition, where it must be taken.
#[test]
fn probes_turned_away_go_elsewhere() {
    let config = Eagle { big_partition: 0.75, min_probes: 0, ..Eagle::default() };
    let mut scheduler = scheduler(&config, 1, 4);
    let first = probes(&submit(&mut scheduler, SHORT));
    assert_eq!(first.len(), 2);
    assert!(first.iter().all(|&(_, round, last)| round == 0 && !last));
    let node = first[0].0;
    assert_eq!(scheduler.hear(node, Share::Bits(bits(0b1011))), []);
    let rejected = |round| Share::Rejected { job: SHORT, count: 1, round, repair: false };
    let second = probes(&scheduler.hear(node, rejected(0)));
    let free = scheduler.layout.node(2);
    assert_eq!(second, [(free, 1, false)], "the only node whose bit is clear");
    let third = probes(&scheduler.hear(free, rejected(1)));
    assert_eq!(third, [(scheduler.layout.node(3), 2, true)]);
    assert_eq!(scheduler.hear(scheduler.layout.node(2), rejected(1)), [], "it has none of ours any more");
}

/// The node asks the same scheduler again, until there is nothing; then the next job's.
#[test]
fn probes_stick_until_nothing_is_left() {
    let mut node = node(3);
    let (scheduler, worker) = (node.layout.scheduler(0), node.layout.worker(0, 0));
    let claim = |job| Message::from(Probe::Claim { job, group: 0, repair: false });
    let grant = |task: u32| Probe::Grant { row: Row::single(SHORT.task(task).copy(0)), group: 0 };
    node.hear(scheduler, probe(SHORT, false));
    node.hear(scheduler, probe(JobId(2), false));
    for task in [0, 2] {
        let run = Core::Run { copy: SHORT.task(task).copy(0) };
        assert_eq!(node.hear(scheduler, grant(task)), [(worker, run.into())]);
        let sent = node.ended(SHORT.task(task).copy(0));
        assert_eq!(sent[1], (scheduler, claim(SHORT)), "it has less work left than the other job");
    }
    let next = node.hear(scheduler, Probe::Nothing { job: SHORT, group: 0 });
    assert_eq!(next, [(scheduler, claim(JobId(2)))]);
}
