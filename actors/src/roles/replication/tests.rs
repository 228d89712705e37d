//! Tests that step replication, and tests of the choice of servers.

use super::*;
use crate::harness::{Harness, sends};

const LATIN: Design = Design {
    order: 3,
    columns: 3,
    staggered: true,
    drops: Drops::PerTask,
    choices: 1,
    late: false,
    patience: Span::from_secs(1),
};
const JOB: JobId = JobId(0);

fn bench(design: Design, tasks: u32, nodes: usize) -> Harness {
    let layout = Layout::new(1, 0, vec![1; nodes]);
    let me = layout.scheduler(0);
    let machine = Box::new(Replication::new(design, &layout, false));
    Harness::new(layout, me, tasks, machine)
}

fn rows(sent: &[(ActorId, Message)]) -> Vec<(ActorId, Row)> {
    sent.iter()
        .filter_map(
            |&(to, msg)| if let Message::Launch(Launch::Row(row)) = msg { Some((to, row)) } else { None },
        )
        .collect()
}

fn submit(bench: &mut Harness) -> Vec<(ActorId, Row)> {
    rows(&sends(&bench.submit(0)))
}

/// Table II of the paper has the order of tasks on each server, and the messages that the servers get when tasks 0, 1
/// and 2 complete on s1, s2 and s3.
#[test]
fn servers_get_the_orders_and_messages_of_table_ii() {
    let mut bench = bench(LATIN, 3, 9);
    let square = submit(&mut bench);
    let order = |row: Row| (0..3).map(|j| row.copy(j).task.index).collect::<Vec<_>>();
    let orders: Vec<_> = square.iter().map(|&(_, row)| order(row)).collect();
    assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    let servers: Vec<_> = square.iter().map(|&(server, _)| server).collect();
    for done in 0..3u32 {
        let on = servers[done as usize];
        let copy = square[done as usize].1.copy(0);
        assert_eq!(copy.task.index, done);
        let sent = bench.receive(on, Launch::Completed { copy });
        let drop = Message::from(Launch::Drop(TaskRange::one(copy.task, 3)));
        let others: Vec<_> = servers.iter().filter(|&&s| s != on).map(|&s| (s, drop)).collect();
        assert_eq!(sent[..2], others[..]);
        assert_eq!(
            sent[2..],
            if done == 2 {
                vec![(bench.layout.client(0), Job::Finished { job: JOB, killed: false }.into())]
            } else {
                vec![]
            }
        );
        assert_eq!(bench.receive(on, Launch::Completed { copy }), [], "a late duplicate changes nothing");
    }
}

#[test]
fn tasks_that_the_order_does_not_divide_get_a_smaller_square() {
    let mut bench = bench(LATIN, 7, 9);
    let rows = submit(&mut bench);
    let shape: Vec<_> = rows.iter().map(|(_, row)| (row.base, row.len, row.turn)).collect();
    assert_eq!(shape, [(0, 3, 0), (0, 3, 1), (0, 3, 2), (3, 3, 0), (3, 3, 1), (3, 3, 2), (6, 1, 0)]);
    for group in [&rows[..3], &rows[3..6]] {
        assert!(group[0].0 != group[1].0 && group[1].0 != group[2].0 && group[0].0 != group[2].0);
    }
}

/// With three tasks and two columns each row holds two tasks, and only the two servers of a task drop it.
#[test]
fn in_a_youden_rectangle_only_the_servers_of_a_task_drop_it() {
    let mut bench = bench(Design { columns: 2, ..LATIN }, 3, 4);
    let rows = submit(&mut bench);
    let held = |row: Row| (0..row.width).map(|j| row.copy(j).task.index).collect::<Vec<_>>();
    assert_eq!(rows.iter().map(|&(_, row)| held(row)).collect::<Vec<_>>(), [[0, 1], [1, 2], [2, 0]]);
    let drop = Message::from(Launch::Drop(TaskRange::one(JOB.task(0), 3)));
    assert_eq!(bench.receive(rows[0].0, Launch::Completed { copy: rows[0].1.copy(0) }), [(rows[2].0, drop)]);
    // The first server has task 1 left, so a lost row is sent again without its finished tasks.
    let after = sends(&bench.step(Input::Down { actor: rows[0].0 }));
    assert_eq!(after[1].1, Launch::Drop(TaskRange::one(JOB.task(0), 4)).into());
    bench.receive(rows[1].0, Launch::Completed { copy: rows[1].1.copy(0) });
    assert_eq!(sends(&bench.step(Input::Down { actor: after[0].0 })), [], "no task of the row is open");
}

/// Two nodes are available for three rows of one task each, and each row still has a server.
#[test]
fn a_rectangle_needs_a_server_for_every_row() {
    for (choices, late) in [(1, false), (2, false), (2, true)] {
        let mut bench = bench(Design { columns: 1, choices, late, ..LATIN }, 3, 2);
        let mut sent = sends(&bench.submit(0));
        let mut rows = 0;
        while let Some((node, msg)) = sent.pop() {
            let more = match msg {
                Message::Probe(Probe::Sample { task, .. }) => {
                    bench.receive(node, Probe::Length { task, length: 0 })
                }
                Message::Probe(Probe::Reserve { job, group, repair, .. }) => {
                    bench.receive(node, Probe::Claim { job, group, repair })
                }
                Message::Probe(Probe::Grant { .. }) | Message::Launch(Launch::Row(_)) => {
                    rows += 1;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            sent.extend(more);
        }
        assert_eq!(rows, 3, "{choices} choices, late: {late}");
    }
}

/// Two of four nodes get the group: the nodes with the shortest queues, in any order of their answers.
#[test]
fn the_shortest_of_the_sampled_queues_are_chosen() {
    let mut bench = bench(Design { order: 2, columns: 2, choices: 2, ..LATIN }, 2, 9);
    let asked = sends(&bench.submit(0));
    let question = Message::from(Probe::Sample { task: JOB.task(0), repair: false });
    assert!(asked.len() == 4 && asked.iter().all(|&(_, msg)| msg == question));
    let answer = |length| Probe::Length { task: JOB.task(0), length };
    assert_eq!(bench.receive(asked[2].0, answer(4)), []);
    assert_eq!(bench.receive(asked[0].0, answer(1)), []);
    assert_eq!(bench.receive(asked[0].0, answer(1)), [], "a duplicate answer changes nothing");
    assert_eq!(bench.receive(asked[3].0, answer(0)), []);
    let sent = rows(&bench.receive(asked[1].0, answer(3)));
    let servers: Vec<_> = sent.iter().map(|&(server, row)| (server, row.turn, row.attempt)).collect();
    assert_eq!(servers, [(asked[3].0, 0, 0), (asked[0].0, 1, 1)]);
    assert_eq!(bench.receive(asked[1].0, answer(3)), [], "a late answer changes nothing");
}

/// One node answers, one dies, and two are silent. After a while the group goes to the remaining nodes.
#[test]
fn missing_answers_are_given_up_after_a_timeout() {
    let mut bench = bench(Design { order: 2, columns: 2, choices: 2, ..LATIN }, 2, 4);
    let asked = sends(&bench.submit(0));
    bench.receive(asked[3].0, Probe::Length { task: JOB.task(0), length: 9 });
    assert_eq!(sends(&bench.step(Input::Down { actor: asked[0].0 })), [], "nothing is lost yet");
    let over = Input::Fire(Timer::Recheck { job: JOB, attempt: 0 });
    let servers: Vec<_> = rows(&sends(&bench.step(over))).iter().map(|&(server, _)| server).collect();
    assert_eq!(servers, [asked[3].0, asked[1].0]);
    assert_eq!(bench.step(over), []);
}

/// Four nodes have a reservation for a group of two. The first two nodes that claim get its rows, the others nothing.
#[test]
fn rows_go_to_the_nodes_that_are_free_first() {
    let mut bench = bench(Design { order: 2, columns: 2, choices: 2, late: true, ..LATIN }, 2, 9);
    let asked = sends(&bench.submit(0));
    let place = Message::from(Probe::Reserve { job: JOB, group: 0, count: 1, repair: false });
    assert!(asked.len() == 4 && asked.iter().all(|&(_, msg)| msg == place));
    let claim = Probe::Claim { job: JOB, group: 0, repair: false };
    let row = |turn, attempt| Row { job: JOB, base: 0, len: 2, turn, width: 2, attempt, elsewhere: false };
    let grant = |turn| Message::from(Probe::Grant { row: row(turn, u32::from(turn)), group: 0 });
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| asked[i].0);
    assert_eq!(bench.receive(c, claim), [(c, grant(0))]);
    // Node c finishes the first task before another node is free.
    assert_eq!(bench.receive(c, Launch::Completed { copy: JOB.task(0).copy(0) }), []);
    // Node d dies, which leaves enough reservations.
    assert_eq!(sends(&bench.step(Input::Down { actor: d })), []);
    let late = bench.receive(a, claim);
    let done = Launch::Drop(TaskRange::one(JOB.task(0), 2)).into();
    let cancel = Probe::Cancel { job: JOB, group: 0 }.into();
    assert_eq!(late, [(a, grant(1)), (a, done), (b, cancel)]);
    assert_eq!(bench.receive(b, claim), [(b, Probe::Nothing { job: JOB, group: 0 }.into())]);
}

/// All nodes crash, one of them with a row. When that node is back, it gets the row again, and a reservation for the
/// other row.
#[test]
fn a_row_lost_with_all_nodes_is_launched_when_a_node_is_back() {
    let mut bench = bench(Design { order: 2, columns: 1, choices: 2, late: true, ..LATIN }, 2, 2);
    let asked = sends(&bench.submit(0));
    let [a, b] = [asked[0].0, asked[1].0];
    bench.receive(a, Probe::Claim { job: JOB, group: 0, repair: false });
    bench.step(Input::Down { actor: b });
    assert_eq!(sends(&bench.step(Input::Down { actor: a })), [], "no node is left");
    let sent = sends(&bench.step(Input::Up { actor: a }));
    let place = Probe::Reserve { job: JOB, group: 0, count: 1, repair: true }.into();
    let row = Row { job: JOB, base: 0, len: 2, turn: 0, width: 1, attempt: 2, elsewhere: false };
    assert_eq!(sent, [(a, Launch::Row(row).into()), (a, place)]);
}

/// The last node with a reservation dies, and other nodes are asked. The end of a group voids its reservations.
#[test]
fn lost_reservations_are_replaced_on_other_nodes() {
    let mut bench = bench(Design { order: 2, columns: 2, choices: 2, late: true, ..LATIN }, 2, 2);
    let asked = sends(&bench.submit(0));
    let [a, b] = [asked[0].0, asked[1].0];
    let claim = Probe::Claim { job: JOB, group: 0, repair: false };
    bench.receive(a, claim);
    let again = Probe::Reserve { job: JOB, group: 0, count: 1, repair: true }.into();
    assert_eq!(sends(&bench.step(Input::Down { actor: b })), [(a, again)]);
    bench.receive(a, Launch::Completed { copy: JOB.task(0).copy(0) });
    let end = bench.receive(a, Launch::Completed { copy: JOB.task(1).copy(0) });
    assert!(end.contains(&(a, Probe::Cancel { job: JOB, group: 0 }.into())), "{end:?}");
}

#[test]
fn full_repetition_drops_a_branch_at_its_end() {
    let design = Design { order: 2, columns: 2, staggered: false, drops: Drops::PerGroup, ..LATIN };
    let mut bench = bench(design, 2, 4);
    let rows = submit(&mut bench);
    assert_eq!(rows.iter().map(|(_, row)| row.turn).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(bench.receive(rows[0].0, Launch::Completed { copy: rows[0].1.copy(0) }), []);
    let sent = bench.receive(rows[1].0, Launch::Completed { copy: rows[1].1.copy(1) });
    assert_eq!(sent.len(), 3, "both servers drop the branch, and the client is notified");
}

#[test]
fn a_dead_server_is_replaced_by_a_server_outside_the_branch() {
    let mut bench = bench(LATIN, 3, 4);
    let before = submit(&mut bench);
    bench.receive(before[1].0, Launch::Completed { copy: before[1].1.copy(0) });
    let after = sends(&bench.step(Input::Down { actor: before[0].0 }));
    let row = rows(&after);
    assert_eq!(row.len(), 1);
    assert!(before.iter().all(|(server, _)| *server != row[0].0));
    assert_eq!((row[0].1.turn, row[0].1.attempt), (0, 3), "the row is the same, with a fresh attempt");
    assert_eq!(after[1].1, Launch::Drop(TaskRange::one(JOB.task(1), 4)).into(), "the task stays finished");
}

#[test]
fn nodes_are_sorted_by_queue_length_and_silent_nodes_come_last() {
    let mut choice = Choice::new(6, &[1, 2, 3, 4].map(ActorId));
    for (node, length) in [(3, 2), (4, -1), (9, -7), (3, 5), (2, 5)] {
        assert!(!choice.answer(ActorId(node), length));
    }
    let order: Vec<_> = choice.by_length().map(|node| node.0).collect();
    assert_eq!(order, [4, 2, 3, 1]);
    let mut all = Choice::new(0, &[1, 2].map(ActorId));
    assert!(!all.answer(ActorId(1), i32::MAX) && all.answer(ActorId(2), i32::MIN));
}
