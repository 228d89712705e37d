//! Parameters of Yaq-d.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::HeartbeatNode;
use super::snapshot::Snapshot;
use crate::base::Span;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy};
use crate::policies::shared::{check_bypass, plain, positive};
use crate::roles::early_binding::EarlyBinding;

/// Parameters of Yaq-d.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct YaqD {
    /// Period at which a node reports its wait. 8 s are recommended; the Murmuration paper divides that by the speed-up
    /// of its arrivals and has 8 ms (section 6.2).
    pub heartbeat: Span,
    /// All nodes report at the same instants, as in the simulators; otherwise evenly spread.
    pub together: bool,
    /// Heartbeats that report only the passing of time are not sent, as long as no datagram can be lost; schedulers
    /// account for them all the same. For periods too short to send all heartbeats; needs nodes of one core.
    pub silent: bool,
    /// Adds up to one period, drawn for each heartbeat, to the wait that schedulers expect, as in the simulators.
    pub jitter: bool,
    /// A scheduler counts what it placed until the node's next heartbeat; otherwise only within a job, as in the
    /// simulators: each job starts from the last heartbeats as if nothing had been placed since.
    pub remembers: bool,
    /// Share of the nodes that are used, the first ones. The Murmuration paper's scripts have 0.98.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
    pub nodes: f64,
    /// Nodes serve the job with the least work first (SRPT, by all tasks of the job: which of them run
    /// elsewhere a node does not know); otherwise in turn.
    pub srpt: bool,
    /// SRPT: a task lets others past up to this many times its own estimate.
    #[schemars(range(min = 0.0))]
    pub bypass: f64,
}

impl Default for YaqD {
    fn default() -> Self {
        Self {
            heartbeat: Span::from_secs(8),
            together: false,
            silent: false,
            jitter: false,
            remembers: true,
            nodes: 1.0,
            srpt: true,
            bypass: 5.0,
        }
    }
}

impl Policy for YaqD {
    const ABOUT: &'static str = "Yaq-d (Rasley et al., EuroSys 2016, as in the Murmuration paper)\n\
        Nodes queue tasks and tell all schedulers from time to time how long one would wait. A scheduler sends \
        each task of a job to the node with the least wait, counting what it placed itself since it last heard \
        of the node, and nothing of what others did.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ heartbeat = "500ms" }"#,
        r#"{ heartbeat = "2s", together = true, jitter = true, remembers = false, nodes = 0.5 }"#,
    ];

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.silent && layout.workers() != layout.nodes() {
            return Err("silent: needs nodes of one core; set cluster.cores = 1, or silent = false".into());
        }
        positive("heartbeat", self.heartbeat)?;
        if !(self.nodes > 0.0 && self.nodes <= 1.0) {
            return Err(format!("nodes: must be above 0 and at most 1, not {}", self.nodes));
        }
        check_bypass(self.bypass)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(EarlyBinding::new(Snapshot::new(self, context.layout), context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(HeartbeatNode::new(self, plain(self.srpt, self.bypass, context), context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, JobId, Time};
    use crate::harness::{Harness, sends};
    use crate::machine::{Effect, Input, Timer};
    use crate::message::{Heartbeat, Job, Launch, Message, Row};

    const JOB: JobId = JobId(0);

    fn context(layout: &Layout, me: ActorId, index: u32) -> BuildContext<'_> {
        BuildContext { me, index, layout, lossy: false, watched: false }
    }

    fn scheduler(tasks: u32) -> Harness {
        let layout = Layout::new(2, 0, [1, 1, 1]);
        let me = layout.scheduler(0);
        let machine = YaqD::default().scheduler(context(&layout, me, 0));
        Harness::new(layout, me, tasks, machine)
    }

    fn placed(bench: &mut Harness, job: JobId) -> Vec<u32> {
        let sent = bench.receive(bench.layout.client(0), Job::Submit { job, round: 0 });
        sent.iter().map(|s| bench.layout.node_number(s.0)).collect()
    }

    fn beat(wait: u64, at: u64) -> Message {
        Heartbeat::Wait { wait: Span::from_secs(wait), passing: Span::ZERO, at: Time(at) }.into()
    }

    /// Waits of 0, 2 and 9 s, tasks of 1 s: the first node takes tasks until it is as long as the second.
    #[test]
    fn tasks_go_to_the_least_wait_of_the_last_heartbeats() {
        let mut scheduler = scheduler(5);
        let [a, b, c] = [0, 1, 2].map(|i| scheduler.layout.node(i));
        for (node, wait) in [(a, 0), (b, 2), (c, 9)] {
            assert_eq!(scheduler.receive(node, beat(wait, 1)), []);
        }
        let nodes = placed(&mut scheduler, JOB);
        assert_eq!(nodes[..2], [0, 0]);
        let count = |node| nodes.iter().filter(|&&n| n == node).count();
        assert!(count(2) == 0 && count(1) >= 1, "{nodes:?}");
        // The next heartbeat replaces what was counted; an older one that comes late does not.
        scheduler.receive(a, beat(30, 3));
        scheduler.receive(b, beat(30, 3));
        scheduler.receive(a, beat(0, 2));
        assert_eq!(placed(&mut scheduler, JobId(1)), [2; 5]);
    }

    /// Two jobs of one task before the next heartbeat: both go to the idle node if the first is forgotten.
    #[test]
    fn a_scheduler_that_forgets_starts_each_job_from_the_heartbeats() {
        for (remembers, second) in [(true, 1), (false, 0)] {
            let layout = Layout::new(1, 0, [1, 1]);
            let (me, config) = (layout.scheduler(0), YaqD { remembers, ..YaqD::default() });
            let machine = config.scheduler(context(&layout, me, 0));
            let mut scheduler = Harness::new(layout, me, 1, machine);
            let wait = Span::from_millis(500);
            let late = Heartbeat::Wait { wait, passing: Span::ZERO, at: Time(1) };
            scheduler.receive(scheduler.layout.node(1), late);
            assert_eq!(placed(&mut scheduler, JOB), [0], "0 s against half of one");
            assert_eq!(placed(&mut scheduler, JobId(1)), [second], "1 s, or again none, against half of one");
        }
    }

    #[test]
    fn a_node_that_cannot_be_reached_is_left_alone_for_a_while() {
        let mut scheduler = scheduler(1);
        let a = scheduler.layout.node(0);
        for node in [1, 2] {
            scheduler.receive(scheduler.layout.node(node), beat(50, 1));
        }
        assert_eq!(placed(&mut scheduler, JOB), [0]);
        let row = Launch::Row(Row::single(JOB.task(0).copy(0))).into();
        let again = scheduler.step(Input::Undelivered { to: a, msg: row });
        assert_ne!(sends(&again)[0].0, a);
        assert!(again.contains(&Effect::Arm { timer: Timer::Tick(0), after: Span::from_secs(1) }));
        scheduler.step(Input::Fire(Timer::Tick(0)));
        assert_eq!(placed(&mut scheduler, JobId(1)), [0], "its one second is the least again");
    }

    /// A row that comes back after its node was reported down, and was placed again since, changes nothing.
    #[test]
    fn a_late_refusal_is_of_another_attempt() {
        let mut scheduler = scheduler(1);
        let [a, b, c] = [0, 1, 2].map(|i| scheduler.layout.node(i));
        assert_eq!(scheduler.receive(b, beat(50, 1)), []);
        assert_eq!(scheduler.receive(c, beat(50, 1)), []);
        assert_eq!(placed(&mut scheduler, JOB), [0]);
        scheduler.step(Input::Down { actor: b });
        scheduler.step(Input::Down { actor: c });
        assert_eq!(scheduler.step(Input::Down { actor: a }), []);
        let again = Launch::Row(Row::single(JOB.task(0).copy(1))).into();
        assert_eq!(sends(&scheduler.step(Input::Up { actor: a })), [(a, again)]);
        let row = Launch::Row(Row::single(JOB.task(0).copy(0))).into();
        assert_eq!(scheduler.step(Input::Undelivered { to: a, msg: row }), []);
    }

    /// Two tasks estimated at 1 s: 1 s and a half after half a second, then silence from an idle node.
    #[test]
    fn a_node_tells_all_schedulers_while_it_has_something_to_tell() {
        let layout = Layout::new(2, 0, [1, 1]);
        let me = layout.node(0);
        let config = YaqD { heartbeat: Span::from_millis(500), ..YaqD::default() };
        let mut node = Harness::new(layout.clone(), me, 2, config.node(context(&layout, me, 0)));
        assert_eq!(node.step(Input::Start { epoch: 0 }), [], "all is as schedulers believe");
        let rows = [0, 1].map(|i| Launch::Row(Row::single(JOB.task(i).copy(0))));
        let armed = node.step(Input::Deliver { from: layout.scheduler(0), msg: rows[0].into() });
        let beats = Effect::Arm { timer: Timer::Tick(0), after: Span::from_millis(500) };
        assert!(armed.contains(&beats));
        node.receive(layout.scheduler(0), rows[1]);
        node.now = Time::ZERO + Span::from_millis(500);
        let told = node.step(Input::Fire(Timer::Tick(0)));
        let wait = Span::from_millis(1500);
        let wait = Heartbeat::Wait { wait, passing: Span::from_millis(500), at: node.now };
        let all = [layout.scheduler(0), layout.scheduler(1)].map(|to| (to, Message::from(wait)));
        assert_eq!((sends(&told), told.last()), (all.to_vec(), Some(&beats)));
        node.ended(JOB.task(0).copy(0));
        node.ended(JOB.task(1).copy(0));
        assert_eq!(node.step(Input::Fire(Timer::Tick(0))).len(), 2, "it says that it is idle, once");
    }

    /// The same node when nothing happens to it: it is silent, and schedulers see its wait pass, but no more of
    /// it than what runs there was estimated at.
    #[test]
    fn time_can_pass_silently() {
        let config = YaqD { silent: true, heartbeat: Span::from_millis(500), ..YaqD::default() };
        let layout = Layout::new(2, 0, [1, 1]);
        let me = layout.node(0);
        let mut node = Harness::new(layout.clone(), me, 2, config.node(context(&layout, me, 0)));
        node.receive(layout.scheduler(0), Launch::Row(Row::single(JOB.task(0).copy(0))));
        assert_eq!(node.step(Input::Fire(Timer::Tick(0))).len(), 2, "two schedulers, and no further beat");
        let me = layout.scheduler(0);
        let mut scheduler = Harness::new(layout.clone(), me, 1, config.scheduler(context(&layout, me, 0)));
        let beat = |wait, passing| Heartbeat::Wait {
            wait: Span::from_secs(wait),
            passing: Span::from_secs(passing),
            at: Time(1),
        };
        scheduler.receive(layout.node(0), beat(9, 9));
        scheduler.receive(layout.node(1), beat(6, 2));
        scheduler.now = Time::ZERO + Span::from_secs(4);
        assert_eq!(placed(&mut scheduler, JOB), [1], "4 against 5");
        assert_eq!(placed(&mut scheduler, JobId(1)).len(), 1, "5 against 5");
        scheduler.now = Time::ZERO + Span::from_secs(9);
        assert_eq!(placed(&mut scheduler, JobId(2)), [0], "0 or 1 against 5 or 6");
    }
}
