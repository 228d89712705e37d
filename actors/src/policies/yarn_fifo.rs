//! YARN's FIFO scheduler, the baseline of the Kairos paper.

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::{Span, parameters};
use crate::machine::Machine;
use crate::roles::heartbeats::Heartbeats;
use crate::roles::yarn::{ContainerNode, ResourceManager, YarnOptions};

parameters! {
    /// Parameters of YARN's FIFO scheduler.
    struct YarnFifo {
        /// Period of a node's heartbeats; a node is allocated containers only at its heartbeats (YARN: 1 s).
        heartbeat: Span = Span::from_secs(1) => period,
        /// Whether an application master keeps a container for the life of its job, from before the job's first task
        /// on. Each stage of a job with stages has its own master. Jobs have no masters while the cluster has a
        /// single container.
        am: bool = false,
    }
}

impl Policy for YarnFifo {
    const ABOUT: &'static str = "YARN FIFO (Hadoop 2.7, as in the Kairos paper, section 5.1)\n\
        Nodes report to a resource manager with every heartbeat how many containers fit. It answers with tasks of the \
        oldest jobs, as many as fit. Nothing queues at nodes and nothing is preempted, so a core is idle from the end \
        of a task to the node's next heartbeat.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Central, one_scheduler: true, ..Traits::default() }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let options = YarnOptions { masters: self.am, reclaiming: None };
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
    use crate::layout::Layout;
    use crate::machine::{Effect, Input, Timer};
    use crate::message::{Core, Launch, Message, NodeReport};

    fn bench(config: &YarnFifo, cores: &[u32], tasks: u32) -> Harness {
        let layout = Layout::new(1, 0, cores.iter().copied());
        config.bench(&layout, layout.scheduler(0), tasks)
    }

    fn beat(bench: &mut Harness, node: u32, slots: u32) -> Vec<CopyId> {
        let node = bench.layout.node(node);
        launched(&bench.receive(node, NodeReport::Room { slots, at: Time::ZERO }))
    }

    fn launched(sent: &[(ActorId, Message)]) -> Vec<CopyId> {
        let task = |&(_, msg): &(ActorId, Message)| match msg {
            Message::Launch(Launch::Task { copy, .. }) => Some(copy),
            _ => None,
        };
        sent.iter().filter_map(task).collect()
    }

    fn copy(job: u32, task: u32) -> CopyId {
        JobId(job).task(task).copy(0)
    }

    #[test]
    fn the_oldest_job_gets_the_containers_that_fit() {
        let mut bench = bench(&YarnFifo::default(), &[2, 4], 3);
        assert_eq!(sends(&bench.submit(0)), [], "tasks wait for a heartbeat");
        bench.submit(1);
        assert_eq!(beat(&mut bench, 0, 2), [copy(0, 0), copy(0, 1)]);
        assert_eq!(beat(&mut bench, 0, 2), [], "the heartbeat is older than the given containers");
        assert_eq!(beat(&mut bench, 1, 4), [copy(0, 2), copy(1, 0), copy(1, 1), copy(1, 2)]);
        let node = bench.layout.node(0);
        assert_eq!(bench.receive(node, Launch::Completed { copy: copy(0, 0) }), []);
        bench.submit(2);
        assert_eq!(beat(&mut bench, 0, 1), [copy(2, 0)]);
        assert_eq!(sends(&bench.step(Input::Down { actor: node })), []);
        let node = bench.layout.node(1);
        bench.receive(node, Launch::Completed { copy: copy(0, 2) });
        assert_eq!(beat(&mut bench, 1, 1), [JobId(0).task(1).copy(1)], "the oldest lost task comes first");
    }

    /// With three containers, two jobs of a task have room for one master beside a task, and never for masters only.
    #[test]
    fn a_master_keeps_its_container_until_its_job_ends() {
        let mut bench = bench(&YarnFifo { am: true, ..YarnFifo::default() }, &[3], 2);
        bench.submit(0);
        bench.submit(1);
        assert_eq!(beat(&mut bench, 0, 3), [copy(0, 0), copy(0, 1)]);
        let node = bench.layout.node(0);
        bench.receive(node, Launch::Completed { copy: copy(0, 0) });
        assert_eq!(beat(&mut bench, 0, 1), [], "the container goes to the other job's master");
        bench.receive(node, Launch::Completed { copy: copy(0, 1) });
        assert_eq!(beat(&mut bench, 0, 3), [copy(1, 0), copy(1, 1)], "the first master is gone");
    }

    /// An end at 1.2 s is reported with the heartbeat at 2 s, and a full node is silent.
    #[test]
    fn nodes_with_room_send_heartbeats() {
        let layout = Layout::new(1, 0, [1]);
        let (me, scheduler, worker) = (layout.node(0), layout.scheduler(0), layout.worker(0, 0));
        let mut node = YarnFifo::default().bench(&layout, me, 1);
        let second = Effect::Arm { timer: Timer::Beat, after: Span::from_secs(1) };
        assert_eq!(node.step(Input::Start { epoch: 0 }), [second]);
        let room = |slots, at| (scheduler, NodeReport::Room { slots, at }.into());
        node.now = Time::ZERO + Span::from_secs(1);
        let beat = node.step(Input::Fire(Timer::Beat));
        assert_eq!((sends(&beat), beat.last()), (vec![room(1, node.now)], Some(&second)));
        let task = Launch::Task { copy: copy(0, 0), at: node.now };
        assert_eq!(node.receive(scheduler, task), [(worker, Core::run(copy(0, 0)).into())]);
        assert_eq!(
            node.receive(scheduler, Launch::Task { copy: copy(0, 1), at: node.now }),
            [],
            "the copy waits"
        );
        node.now += Span::from_secs(1);
        let last = node.step(Input::Fire(Timer::Beat));
        assert_eq!((sends(&last), last.len()), (vec![room(0, node.now)], 1), "a full node is silent");
        node.now += Span::from_millis(200);
        assert_eq!(node.ended(copy(0, 0)).len(), 2);
        let end = node.deliver(worker, Core::Ended { copy: copy(0, 1) });
        let rest = Effect::Arm { timer: Timer::Beat, after: Span::from_millis(800) };
        assert_eq!(end.last(), Some(&rest));
    }
}
