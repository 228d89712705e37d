//! Whether a message from another process makes sense, before a machine is stepped with it.
//!
//! A frame that decodes can still name a job that does not exist, or come from somebody who cannot say such a
//! thing. Machines index their tables with what they are told and assert what only a bug of their own could
//! break, so whoever takes messages from a network asks here first. What is said may still be untrue: a result
//! of a copy that never ran is believed, as it is from any node.

use crate::base::{ActorId, JobId, TaskId};
use crate::catalog::Catalog;
use crate::layout::{Layout, Role};
use crate::message::{Message, Row, Tasks};

/// Who says something to whom, in a run where such actors and jobs exist.
pub(crate) struct Envelope<'a> {
    pub from: Role,
    pub to: Role,
    pub layout: &'a Layout,
    pub catalog: &'a dyn Catalog,
}

impl Envelope<'_> {
    /// From a scheduler to a node.
    pub(crate) const fn downwards(&self) -> bool {
        matches!((self.from, self.to), (Role::Scheduler(_), Role::Node(_)))
    }

    /// From a node to a scheduler.
    pub(crate) const fn upwards(&self) -> bool {
        matches!((self.from, self.to), (Role::Node(_), Role::Scheduler(_)))
    }

    /// From a node to a node.
    pub(crate) const fn along(&self) -> bool {
        matches!((self.from, self.to), (Role::Node(_), Role::Node(_)))
    }

    /// Whether the job exists and `client` is its home.
    pub(crate) fn home(&self, job: JobId, client: u32) -> bool {
        self.has_job(job) && self.catalog.job(job).client == client
    }

    pub(crate) fn has_task(&self, task: TaskId) -> bool {
        self.has_job(task.job) && task.index < self.catalog.tasks(task.job)
    }

    pub(crate) fn has_row(&self, row: &Row) -> bool {
        row.turn < row.len
            && (1..=row.len).contains(&row.width)
            && self.has_range(row.job, row.base, u32::from(row.len))
    }

    pub(crate) fn has_tasks(&self, tasks: Tasks) -> bool {
        self.has_range(tasks.job, tasks.base, tasks.len)
    }

    fn has_job(&self, job: JobId) -> bool {
        job.0 < self.catalog.jobs()
    }

    fn has_range(&self, job: JobId, base: u32, len: u32) -> bool {
        let end = base.checked_add(len);
        len > 0 && self.has_job(job) && end.is_some_and(|end| end <= self.catalog.tasks(job))
    }
}

impl Message {
    /// Whether `from` may say this to `to` over a network, and everything it names exists in a run of this
    /// layout and catalog. A message that comes back undelivered is held against the same two actors, its
    /// sender first. Costs a few comparisons and one look at the job.
    #[must_use]
    pub fn check(&self, from: ActorId, to: ActorId, layout: &Layout, catalog: &dyn Catalog) -> bool {
        // Workers have no endpoint of their own: only their node speaks with them.
        let known = |actor: ActorId| actor.0 < layout.endpoints();
        from != to && known(from) && known(to) && {
            let (from, to) = (layout.role(from), layout.role(to));
            self.allowed(&Envelope { from, to, layout, catalog })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Score, Span, Time};
    use crate::message::{
        Blocks, Core, Ended, Form, Gang, Gossip, Heartbeat, Job, Launch, Placed, Probe, Progress, Ring,
        Share, Stamp, Steal, Visitor,
    };
    use crate::scripts::Jobs;

    /// Two schedulers and two nodes of one and two cores; 1000 jobs of four tasks, all of client 0.
    struct World(Layout);

    impl World {
        fn new() -> Self {
            Self(Layout::new(2, 1, [1, 2]))
        }

        fn says(&self, from: ActorId, to: ActorId, msg: impl Into<Message>) -> bool {
            msg.into().check(from, to, &self.0, &Jobs { tasks: 4, long: Vec::new() })
        }

        /// Allowed from `from` to `to`, and between no others that differ in kind.
        fn only(&self, from: &[ActorId], to: &[ActorId], msg: impl Into<Message> + Copy) {
            for a in (0..self.0.actors()).map(ActorId) {
                for b in (0..self.0.actors()).map(ActorId) {
                    let may = a != b && from.contains(&a) && to.contains(&b);
                    assert_eq!(self.says(a, b, msg), may, "{:?} from {a} to {b}", msg.into());
                }
            }
        }

        fn schedulers(&self) -> [ActorId; 2] {
            [0, 1].map(|i| self.0.scheduler(i))
        }

        fn nodes(&self) -> [ActorId; 2] {
            [0, 1].map(|i| self.0.node(i))
        }
    }

    /// A job that exists, and one that does not.
    const JOB: JobId = JobId(999);
    const NONE: JobId = JobId(1000);

    fn row(base: u32, len: u16, turn: u16) -> Row {
        Row { job: JOB, base, len, turn, width: len, attempt: u32::MAX }
    }

    #[test]
    fn jobs_go_between_their_client_and_schedulers() {
        let world = World::new();
        world.only(&[world.0.client(0)], &world.schedulers(), Job::Submit { job: JOB, round: u32::MAX });
        world.only(&world.schedulers(), &[world.0.client(0)], Job::Finished { job: JOB });
        world.only(&[], &[], Job::Submit { job: NONE, round: 0 });
        world.only(&[], &[], Job::Finished { job: NONE });
    }

    #[test]
    fn launches_name_tasks_that_exist() {
        let world = World::new();
        let (up, down) = (world.schedulers(), world.nodes());
        world.only(&up, &down, Launch::Row(row(0, 4, 3)));
        world.only(&up, &down, Launch::Drop(Tasks { job: JOB, base: 1, len: 3, below: 0 }));
        world.only(&down, &up, Launch::Completed { copy: JOB.task(3).copy(7) });
        for bad in [row(0, 0, 0), row(0, 2, 2), row(0, 5, 0), row(4, 1, 0), row(u32::MAX, 2, 0)] {
            world.only(&[], &[], Launch::Row(bad));
            world.only(&[], &[], Probe::Grant { row: bad, group: 0 });
        }
        world.only(&[], &[], Launch::Row(Row { job: NONE, ..row(0, 1, 0) }));
        let task = |index| Launch::Task { copy: JOB.task(index).copy(0), at: Time(u64::MAX) };
        world.only(&up, &down, task(3));
        world.only(&[], &[], task(4));
        for width in [0, 3, u16::MAX] {
            world.only(&[], &[], Launch::Row(Row { width, ..row(0, 2, 0) }));
        }
        for (job, base, len) in [(JOB, 0, 0), (JOB, 3, 2), (JOB, u32::MAX, u32::MAX), (NONE, 0, 1)] {
            world.only(&[], &[], Launch::Drop(Tasks { job, base, len, below: 1 }));
        }
        world.only(&[], &[], Launch::Completed { copy: JOB.task(4).copy(0) });
    }

    #[test]
    fn probes_name_groups_that_can_exist() {
        let world = World::new();
        let (up, down) = (world.schedulers(), world.nodes());
        let (job, group, task) = (JOB, 3, JOB.task(3));
        world.only(&up, &down, Probe::Reserve { job, group, count: 1, repair: false });
        world.only(&up, &down, Probe::Grant { row: row(3, 1, 0), group });
        world.only(&up, &down, Probe::Nothing { job, group });
        world.only(&up, &down, Probe::Cancel { job, group });
        world.only(&up, &down, Probe::Sample { task, repair: true });
        world.only(&down, &up, Probe::Claim { job, group, repair: true });
        world.only(&down, &up, Probe::Length { task, length: i32::MIN });
        world.only(&[], &[], Probe::Reserve { job, group, count: 0, repair: false });
        for (job, group) in [(JOB, 4), (NONE, 0)] {
            let row = row(0, 1, 0);
            let task = job.task(group);
            world.only(&[], &[], Probe::Reserve { job, group, count: 1, repair: false });
            world.only(&[], &[], Probe::Claim { job, group, repair: true });
            world.only(&[], &[], Probe::Grant { row, group: group + 4 });
            world.only(&[], &[], Probe::Nothing { job, group });
            world.only(&[], &[], Probe::Cancel { job, group });
            world.only(&[], &[], Probe::Sample { task, repair: true });
            world.only(&[], &[], Probe::Length { task, length: 0 });
        }
    }

    #[test]
    fn visitors_come_from_their_scheduler_or_along_the_ring() {
        let world = World::new();
        let ([first, second], nodes) = (world.schedulers(), world.nodes());
        let visitor = Visitor {
            task: JOB.task(0),
            scheduler: 1,
            limit: u8::MAX,
            hops: u16::MAX,
            repair: true,
            max_wait: Span(1),
        };
        world.only(&[second, nodes[0], nodes[1]], &nodes, visitor);
        world.only(&[], &[], Visitor { scheduler: 2, ..visitor });
        world.only(&[], &[], Visitor { task: JOB.task(4), ..visitor });
        let state = Ring::State { limit: u32::MAX, load: Span(u64::MAX), at: Time(u64::MAX) };
        world.only(&[first, second, nodes[0], nodes[1]], &nodes, state);
        let load = Ring::Load { report: u64::MAX, active: u32::MAX, work: Span(u64::MAX) };
        world.only(&[first, second], &[first, second], load);
    }

    #[test]
    fn state_is_shared_between_schedulers_and_nodes() {
        let world = World::new();
        let (up, down) = (world.schedulers(), world.nodes());
        let known = Stamp::from(Time(u64::MAX));
        let probe =
            |job, count| Share::Probe { job, count, round: u16::MAX, last: true, repair: true, known };
        world.only(&up, &down, probe(JOB, u32::MAX));
        world.only(&[], &[], probe(JOB, 0));
        world.only(&[], &[], probe(NONE, 1));
        world.only(&down, &up, Share::Accepted { job: JOB });
        world.only(&[], &[], Share::Accepted { job: NONE });
        let rejected = |job| Share::Rejected { job, count: 0, round: 0, repair: false };
        world.only(&down, &up, rejected(JOB));
        world.only(&[], &[], rejected(NONE));
        let bits = |first, len| Share::Bits(Blocks { first, len, bits: [u32::MAX; 3], at: known });
        let all = [up, down].concat();
        for (a, b) in [(up[0], down[1]), (down[0], up[1])] {
            assert!(world.says(a, b, bits(0, 1)), "two nodes are one block");
        }
        for (first, len) in [(0, 0), (0, 2), (1, 1), (u16::MAX, u16::MAX)] {
            world.only(&[], &all, bits(first, len));
        }
    }

    #[test]
    fn hearts_beat_upwards() {
        let world = World::new();
        let beat = Heartbeat::Wait { wait: Span(u64::MAX), passing: Span(1), at: Time(u64::MAX) };
        world.only(&world.nodes(), &world.schedulers(), beat);
    }

    #[test]
    fn progress_is_told_upwards_and_ends_at_all() {
        let world = World::new();
        let report = |task, score| {
            let copy = JOB.task(task).copy(u32::MAX);
            Progress::Report { copy, score: Score(score), at: Time(u64::MAX) }
        };
        world.only(&world.nodes(), &world.schedulers(), report(3, Score::ALL.0));
        world.only(&[], &[], report(3, Score::ALL.0 + 1));
        world.only(&[], &[], report(4, 0));
    }

    #[test]
    fn nodes_steal_from_each_other() {
        let world = World::new();
        let nodes = world.nodes();
        let loot = |scheduler, job, count| Steal::Loot { scheduler, job, count, repair: false };
        world.only(&nodes, &nodes, Steal::Ask);
        world.only(&nodes, &nodes, Steal::Nothing);
        world.only(&nodes, &nodes, loot(1, JOB, 1));
        for bad in [loot(2, JOB, 1), loot(0, NONE, 1), loot(0, JOB, 0)] {
            world.only(&[], &[], bad);
        }
    }

    #[test]
    fn slices_change_on_cores_that_exist() {
        let world = World::new();
        let (up, [one, two]) = (world.schedulers(), world.nodes());
        let switch = |core, copy| Gang::Switch { core, copy, epoch: u16::MAX, order: u32::MAX };
        world.only(&up, &[one, two], switch(0, None));
        world.only(&up, &[two], switch(1, Some(JOB.task(3).copy(0))));
        world.only(&[], &[], switch(2, None));
        world.only(&[], &[], switch(0, Some(JOB.task(4).copy(0))));
    }

    #[test]
    fn gossip_is_about_nodes_and_makers_that_exist() {
        let world = World::new();
        let (all, [one, two]) = (world.schedulers(), world.nodes());
        let placed = Placed {
            at: Time(u64::MAX),
            job: JOB,
            nodes: [1, Placed::NOBODY],
            number: u32::MAX,
            maker: 1,
            form: Form::Rest,
            rumour: false,
        };
        world.only(&[all[1]], &all, Gossip::Placed(placed));
        world.only(&all, &all, Gossip::Placed(Placed { rumour: true, ..placed }));
        for bad in [Placed { nodes: [0, 2], ..placed }, Placed { job: NONE, ..placed }] {
            world.only(&[], &[], Gossip::Placed(bad));
        }
        world.only(&[], &[], Gossip::Placed(Placed { maker: 2, rumour: true, ..placed }));
        let ended = Ended { node: 1, number: 0, estimate: Span(u64::MAX), since: Time(u64::MAX) };
        world.only(&[two], &all, Gossip::Ended(ended));
        world.only(&[all[0], all[1], two], &all, Gossip::EndedRumour(ended));
        world.only(&[], &[], Gossip::EndedRumour(Ended { node: 2, ..ended }));
        world.only(&all, &all, Gossip::Ask { round: 3 });
        world.only(&all, &all, Gossip::Answer { round: 3, parts: 2 });
        world.only(&[], &[], Gossip::Answer { round: 3, parts: 1 });
        let entry = |node| Gossip::Entry { round: 3, node, wait: i64::MIN, since: Time(0) };
        world.only(&all, &all, entry(1));
        world.only(&[], &[], entry(2));
        world.only(&all, &all, Gossip::Heard { round: 3, maker: 3, number: 0 });
        world.only(&[], &[], Gossip::Heard { round: 3, maker: 4, number: 0 });
        world.only(
            &[one, two],
            &all,
            Gossip::Backlog { work: Span(u64::MAX), at: Time(u64::MAX), number: u32::MAX, came: u32::MAX },
        );
    }

    #[test]
    fn nobody_orders_cores_about_from_elsewhere() {
        let world = World::new();
        let copy = JOB.task(0).copy(0);
        for order in [Core::Run { copy }, Core::Stop { copy }, Core::Suspend { copy }, Core::Ended { copy }] {
            world.only(&[], &[], order);
        }
        let none = ActorId(u32::MAX);
        let submit = Job::Submit { job: JOB, round: 0 };
        assert!(
            !world.says(none, world.0.scheduler(0), submit) && !world.says(world.0.client(0), none, submit)
        );
    }
}
