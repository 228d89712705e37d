//! Big-C, which suspends long jobs for short ones, the second baseline of the Kairos paper.

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::heartbeats::Heartbeats;
use crate::roles::yarn::{ContainerNode, Reclaiming, ResourceManager, YarnOptions};

parameters! {
    /// Parameters of Big-C.
    struct BigC {
        /// Period of a node's heartbeats; a node is allocated containers only at its heartbeats (YARN: 1 s).
        heartbeat: Span = Span::from_secs(1) => period,
        /// Whether an application master keeps a container for the life of its job, as under `yarn-fifo`. This
        /// container is never taken back, and the shares are fractions of the other containers.
        am: bool = false,
        /// The share of the containers that is guaranteed to short jobs; the rest is for long jobs. A queue may use
        /// more than its share while the other has no demand. The Kairos paper has 0.95, and 0.7 for its uniform
        /// workload.
        #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
        short_share: f64 = 0.95,
        /// Period at which the queues are compared with their shares (3 s in Hadoop).
        monitor: Span = Span::from_secs(3) => period,
        /// Excess over its share above which containers are taken back from a queue, as a fraction of the share.
        over: f64 = 0.1 => 0.0..=1000.0,
        /// Largest fraction of all containers that is taken back in one comparison, but at least one container.
        round: f64 = 0.1 => 0.0..=1.0,
        /// Fraction of a queue's excess that is taken back in one comparison; some of the containers become free by
        /// themselves.
        damping: f64 = 0.2 => 0.0..=1.0,
        /// Whether containers are killed, and their tasks start again, as in plain YARN. Otherwise containers are
        /// suspended.
        kill: bool = false,
    }
}

impl Policy for BigC {
    const ABOUT: &'static str = "Big-C (Chen, Rao and Zhou, USENIX ATC 2017, as in the Kairos paper)\n\
        YARN with a queue each for short and for long jobs. Each has a share, and may use what the other leaves. When \
        the other wants its share, containers of the newest jobs are suspended, a few at a time; they resume on their \
        nodes before their queue gets new ones there. Short jobs do not preempt short ones. Suspension is one step: in \
        the authors' code a container gives up its cores a few at a time, and resumes after some heartbeats without \
        demand for them.";

    fn traits(&self) -> Traits<'_> {
        Traits {
            binds: Binds::Central,
            one_scheduler: true,
            needs_long: Some("short_share"),
            ..Traits::default()
        }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        if self.short_share > 0.0 && self.short_share < 1.0 {
            return Ok(());
        }
        Err(format!(
            "short_share: must be above 0 and below 1, not {}; long jobs get the remaining share",
            self.short_share
        ))
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let reclaiming = Reclaiming {
            short_share: self.short_share,
            every: self.monitor,
            over: self.over,
            round: self.round,
            damping: self.damping,
            kill: self.kill,
        };
        let options = YarnOptions { masters: self.am, reclaiming: Some(reclaiming) };
        Box::new(ResourceManager::new(options, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let beats = Heartbeats::new(self.heartbeat, context.index, context.layout.nodes());
        Box::new(ContainerNode::new(Some(beats), context.layout.cores(context.index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, CopyId, JobId, Time};
    use crate::harness::{Harness, sends};
    use crate::machine::{Effect, Input, Note, Timer};
    use crate::message::{Core, Launch, Message, NodeReport, Preemption, TaskRange};

    const LONG: JobId = JobId(0);

    /// A cluster with half of the containers for each class, where everything is taken back at once; job 0 is long.
    fn bench(config: BigC, cores: &[u32], tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, cores.iter().copied());
        let config = BigC { short_share: 0.5, round: 1.0, damping: 1.0, ..config };
        config.bench(&layout, layout.scheduler(0), tasks).with_long(&[LONG])
    }

    fn beat(bench: &mut Harness, node: u32, slots: u32) -> Vec<(ActorId, Message)> {
        let node = bench.layout.node(node);
        bench.receive(node, NodeReport::Room { slots, at: Time::ZERO })
    }

    fn task(bench: &Harness, copy: CopyId) -> (ActorId, Message) {
        (bench.layout.node(0), Launch::Task { copy, at: bench.now }.into())
    }

    fn copy(job: u32, task: u32) -> CopyId {
        JobId(job).task(task).copy(0)
    }

    #[test]
    fn long_jobs_use_free_containers_and_are_suspended_for_short_ones() {
        let mut bench = bench(BigC::default(), &[4], 4);
        let node = bench.layout.node(0);
        let look = Effect::Arm { timer: Timer::Tick(0), after: Span::from_secs(3) };
        assert_eq!(bench.submit(0), [look]);
        assert_eq!(beat(&mut bench, 0, 4).len(), 4, "short jobs want no container");
        bench.submit(1);
        let suspended = sends(&bench.step(Input::Fire(Timer::Tick(0))));
        let order = |task| (node, Preemption::Suspend { copy: copy(0, task), turn: 1 }.into());
        assert_eq!(suspended, [order(3), order(2)], "the last two, which exceed the share, are suspended");
        let given = beat(&mut bench, 0, 2);
        assert_eq!(given, [task(&bench, copy(1, 0)), task(&bench, copy(1, 1))]);
        // Both queues use equal shares: the short queue is next by its number, then the long one.
        bench.receive(node, Launch::Completed { copy: copy(0, 0) });
        let resume = |task| (node, Message::from(Preemption::Resume { copy: copy(0, task), turn: 2 }));
        assert_eq!(beat(&mut bench, 0, 1), [resume(2)], "the long queue has one container, the other two");
        let again = bench.step(Input::Undelivered { to: node, msg: resume(2).1 });
        assert_eq!(sends(&again), [resume(2)]);
        let old = Preemption::Suspend { copy: copy(0, 2), turn: 1 }.into();
        assert_eq!(sends(&bench.step(Input::Undelivered { to: node, msg: old })), [], "the order is void");
    }

    /// The master of a long job leaves three of four containers. The master of a short job, too, leaves two, one for
    /// each queue.
    #[test]
    fn masters_keep_a_container_and_queues_share_the_rest() {
        let mut bench = bench(BigC { am: true, ..BigC::default() }, &[4], 3);
        let node = bench.layout.node(0);
        bench.submit(0);
        assert_eq!(beat(&mut bench, 0, 4).len(), 3);
        bench.submit(1);
        let look = |bench: &mut Harness| sends(&bench.step(Input::Fire(Timer::Tick(0))));
        let order = |task| (node, Preemption::Suspend { copy: copy(0, task), turn: 1 }.into());
        assert_eq!(look(&mut bench), [order(2)], "the share is half of three containers");
        assert_eq!(beat(&mut bench, 0, 1), [], "the master of the short job");
        assert_eq!(look(&mut bench), [order(1)], "the share is half of two containers");
        assert_eq!(beat(&mut bench, 0, 1), [task(&bench, copy(1, 0))]);
        assert_eq!(look(&mut bench), []);
    }

    /// At most one of the two containers can hold a master. The short job waits until the long job, which continues,
    /// gives up its container.
    #[test]
    fn a_job_without_a_possible_master_does_not_block_the_other_queue() {
        let mut bench = bench(BigC { am: true, ..BigC::default() }, &[2], 2);
        bench.submit(0);
        assert_eq!(beat(&mut bench, 0, 2).len(), 1, "the node gets a master and a task");
        bench.submit(1);
        let node = bench.layout.node(0);
        bench.receive(node, Launch::Completed { copy: copy(0, 0) });
        assert_eq!(beat(&mut bench, 0, 1), [task(&bench, copy(0, 1))]);
    }

    #[test]
    fn killed_tasks_start_again() {
        let mut bench = bench(BigC { kill: true, ..BigC::default() }, &[2], 2);
        let node = bench.layout.node(0);
        bench.submit(0);
        beat(&mut bench, 0, 2);
        bench.submit(1);
        let killed = sends(&bench.step(Input::Fire(Timer::Tick(0))));
        assert_eq!(killed, [(node, Launch::Drop(TaskRange::one(LONG.task(1), 1)).into())]);
        assert_eq!(beat(&mut bench, 0, 1), [task(&bench, copy(1, 0))]);
        bench.receive(node, Launch::Completed { copy: copy(1, 0) });
        assert_eq!(beat(&mut bench, 0, 1), [task(&bench, copy(1, 1))]);
        bench.receive(node, Launch::Completed { copy: copy(1, 1) });
        assert_eq!(beat(&mut bench, 0, 1), [task(&bench, LONG.task(1).copy(1))]);
    }

    /// Orders can overtake each other and the tasks that they concern.
    #[test]
    fn a_node_carries_out_the_newest_order() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = BigC::default().bench(&layout, me, 2);
        let [a, b] = [0, 1].map(|task| LONG.task(task).copy(0));
        let (suspend, resume) =
            (|copy, turn| Preemption::Suspend { copy, turn }, |copy, turn| Preemption::Resume { copy, turn });
        let order = |order: Core| (worker, Message::from(order));
        assert_eq!(node.receive(scheduler, suspend(a, 1)), [], "the copy has not arrived");
        assert_eq!(
            node.receive(scheduler, Launch::Task { copy: a, at: Time::ZERO }),
            [],
            "the copy is suspended on arrival"
        );
        assert_eq!(node.receive(scheduler, resume(a, 2)), [order(Core::run(a))]);
        assert_eq!(node.receive(scheduler, suspend(a, 3)), [order(Core::Suspend { copy: a })]);
        let left = Span::from_secs(2);
        node.receive(worker, Core::Suspended { copy: a, left });
        assert_eq!(node.receive(scheduler, Launch::Task { copy: b, at: Time::ZERO }), [order(Core::run(b))]);
        assert_eq!(node.receive(scheduler, resume(a, 2)), [], "the order is older than the last one");
        assert_eq!(node.receive(scheduler, resume(a, 4)), [], "the copy waits for the core");
        let end = node.ended(b);
        assert_eq!(end[1], order(Core::Resume { copy: a, left }));
        assert_eq!(node.receive(scheduler, resume(a, 6)), [], "the copy runs already");
        assert_eq!(node.receive(scheduler, suspend(a, 5)), [], "the newer order came first");
        assert_eq!(node.receive(scheduler, suspend(a, 7)), [order(Core::Suspend { copy: a })]);
        // The copy ended just as it was suspended, so no work is left; it is resumed so that it can report its end.
        let sent = node.receive(worker, Core::Suspended { copy: a, left: Span::ZERO });
        assert_eq!(sent, [order(Core::Resume { copy: a, left: Span::ZERO })]);
        let drop = |task| Launch::Drop(TaskRange::one(LONG.task(task), 1));
        assert_eq!(node.receive(scheduler, drop(0)), [order(Core::Stop { copy: a })]);
    }

    #[test]
    fn a_node_drops_copies_that_have_not_arrived_and_suspended_ones() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = BigC::default().bench(&layout, me, 2);
        let [a, b] = [0, 1].map(|task| LONG.task(task).copy(0));
        let drop = |task| Launch::Drop(TaskRange::one(LONG.task(task), 1));
        let launch = |copy| Launch::Task { copy, at: Time::ZERO };
        assert_eq!(node.receive(scheduler, drop(0)), []);
        assert_eq!(node.receive(scheduler, launch(a)), [], "the drop has overtaken the copy");
        node.receive(scheduler, launch(b));
        node.receive(scheduler, Preemption::Suspend { copy: b, turn: 1 });
        node.receive(worker, Core::Suspended { copy: b, left: Span::from_secs(1) });
        let from = scheduler;
        let effects = node.step(Input::Deliver { from, msg: drop(1).into() });
        assert_eq!(effects, [Effect::Note(Note::Discarded { copy: b })]);
        let sent = node.receive(scheduler, Preemption::Resume { copy: b, turn: 2 });
        assert_eq!(sent, [], "the copy is gone");
    }
}
