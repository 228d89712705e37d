//! Every policy in the smallest world that can run it, with a heap of events, constant delays and no losses. This
//! world does not use the emulator, so a disagreement shows that one of the two is wrong.

mod common;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use common::{Load, policies};
use volary_actors::base::{ActorId, JobId, Rng, Score, Span, TaskId, Time};
use volary_actors::catalog::Catalog;
use volary_actors::harness::{JOIN, SINGLE};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effect, Effects, Input, Machine, Note};
use volary_actors::message::{Gossip, Message};
use volary_actors::policies::PolicySpec;

struct World<'a> {
    layout: &'a Layout,
    load: &'a Load,
    delay: Span,
    machines: Vec<Box<dyn Machine>>,
    rngs: Vec<Rng>,
    /// Events by due time and number: receiver, generation of the run, input, and whether it is the delivery of a
    /// broadcast.
    queue: BTreeMap<(Time, u64), (ActorId, u32, Input, bool)>,
    pushed: u64,
    /// End of the copy on each core, with the generation of the run.
    cores: Vec<(Time, u32)>,
    now: Time,
    finished: BTreeSet<JobId>,
    completed: BTreeSet<TaskId>,
    response_s: f64,
}

impl<'a> World<'a> {
    fn new(policy: &PolicySpec, layout: &'a Layout, load: &'a Load, delay: Span) -> Self {
        Self {
            layout,
            load,
            delay,
            machines: (0..layout.actors())
                .map(|id| policy.machine(ActorId(id), layout, false, false))
                .collect(),
            rngs: (0..layout.actors()).map(|id| Rng::new(9, id, 0)).collect(),
            queue: BTreeMap::new(),
            pushed: 0,
            cores: vec![(Time::ZERO, 0); layout.workers() as usize],
            now: Time::ZERO,
            finished: BTreeSet::new(),
            completed: BTreeSet::new(),
            response_s: 0.0,
        }
    }

    fn push(&mut self, passive: bool, due: Time, to: ActorId, stamp: u32, input: Input) {
        self.pushed += 1;
        self.queue.insert((due, self.pushed), (to, stamp, input, passive));
    }

    fn dispatch(&mut self, to: ActorId, input: Input, passive: bool) {
        let mut queue = VecDeque::from([(to, input)]);
        while let Some((me, input)) = queue.pop_front() {
            let mut out = Vec::new();
            let rng = &mut self.rngs[me.index()];
            let mut fx = Effects::new(self.now, me, rng, &mut out, self.load, self.layout);
            if passive {
                fx = fx.passive();
            }
            self.machines[me.index()].step(input, &mut fx);
            for effect in out {
                self.carry_out(me, effect, &mut queue);
            }
        }
    }

    fn carry_out(&mut self, me: ActorId, effect: Effect, local: &mut VecDeque<(ActorId, Input)>) {
        match effect {
            Effect::Send { to, msg, recovery } => {
                let periodic = matches!(msg, Message::Gossip(Gossip::Backlog(_)));
                assert!(
                    !recovery || periodic,
                    "nothing is lost in this world, yet {msg:?} repairs something"
                );
                let input = Input::Deliver { from: me, msg };
                if self.layout.local(me, to) {
                    local.push_back((to, input));
                } else {
                    assert!(msg.check(me, to, self.layout, self.load), "{msg:?} from {me} to {to}");
                    self.push(false, self.now + self.delay, to, 0, input);
                }
            }
            Effect::Broadcast { msg } => {
                for other in (0..self.layout.schedulers()).map(|i| self.layout.scheduler(i)) {
                    if other != me {
                        assert!(msg.check(me, other, self.layout, self.load), "{msg:?} from {me} to {other}");
                        self.push(true, self.now + self.delay, other, 0, Input::Deliver { from: me, msg });
                    }
                }
            }
            Effect::Arm { timer, after } => self.push(false, self.now + after, me, 0, Input::Fire(timer)),
            Effect::Run { copy, left, .. } => {
                let core = self.layout.core_index(me) as usize;
                let end = self.now + left.unwrap_or_else(|| self.load.work(copy));
                self.cores[core].0 = end;
                self.push(false, end, me, self.cores[core].1, Input::Done { copy });
            }
            Effect::Halt { copy } => {
                let core = &mut self.cores[self.layout.core_index(me) as usize];
                core.1 += 1;
                local.push_front((me, Input::Halted { copy, left: core.0.since(self.now) }));
            }
            Effect::QueryProgress { copy } => {
                let left = self.cores[self.layout.core_index(me) as usize].0.since(self.now);
                let work = self.load.work(copy);
                let (score, done) = (Score::of(work, left), work.saturating_sub(left));
                local.push_front((me, Input::Progress { copy, score, done }));
            }
            Effect::Note(Note::Finished { job }) => {
                assert!(self.finished.insert(job), "{job:?} finished twice");
                for task in 0..self.load.tasks {
                    assert!(self.completed.contains(&job.task(task)), "{job:?} finished without task {task}");
                }
                self.response_s += self.now.since(self.load.job(job).arrival).as_secs_f64();
            }
            Effect::Note(Note::Started { copy, .. }) => {
                let mut awaited = self.load.links(copy.task.job).predecessors();
                assert!(awaited.all(|job| self.finished.contains(&job)), "{copy} starts before its stage");
            }
            Effect::Note(Note::Completed { copy }) => {
                self.completed.insert(copy.task);
            }
            Effect::Note(Note::Unexpected { kind }) => panic!("unexpected message of kind {kind}"),
            Effect::Note(_) => {}
        }
    }

    /// Runs until every job has finished. Returns the mean response time in seconds.
    fn run(mut self) -> f64 {
        for id in 0..self.layout.actors() {
            self.dispatch(ActorId(id), Input::Start { epoch: 0 }, false);
        }
        while self.finished.len() < self.load.jobs as usize {
            let Some(((due, _), (to, stamp, input, passive))) = self.queue.pop_first() else {
                panic!("only {} of {} jobs finished", self.finished.len(), self.load.jobs)
            };
            self.now = due;
            let void = matches!(input, Input::Done { .. })
                && self.cores[self.layout.core_index(to) as usize].1 != stamp;
            if !void {
                self.dispatch(to, input, passive);
            }
        }
        self.response_s / f64::from(self.load.jobs)
    }
}

#[test]
fn every_policy_finishes_every_job_exactly_once() {
    for (nodes, cores, tasks, delay_ms) in [(6, 1, 4, 0), (5, 3, 7, 10), (40, 1, 11, 50)] {
        for policy in policies(3) {
            for schedulers in [1, 3] {
                let layout = Layout::new(schedulers, 0, vec![cores; nodes]);
                if policy.check(&layout).is_err() {
                    continue;
                }
                let layout = policy.layout(layout);
                eprintln!("{policy:?} on {nodes} nodes of {cores} cores");
                let gap = 1.8 * f64::from(tasks) / (nodes as u32 * cores) as f64;
                for stages in [SINGLE, JOIN] {
                    let load = Load::new(152, tasks, schedulers, gap).in_stages(stages);
                    let mean = World::new(&policy, &layout, &load, Span::from_millis(delay_ms)).run();
                    assert!(mean > 0.2, "{policy:?}: mean response {mean}");
                }
            }
        }
    }
}

/// Random placement on single-core nodes is one M/M/1 queue per node: E[D] = 1 / (1 − ρ).
#[test]
fn random_placement_gives_m_m_1_queues() {
    let layout = Layout::new(1, 0, vec![1; 10]);
    let load = Load::new(60_000, 1, 1, 0.2);
    let random: PolicySpec = toml::from_str("random = {}").unwrap();
    let mean = World::new(&random, &layout, &load, Span::ZERO).run();
    assert!((mean - 2.0).abs() < 0.1, "mean response {mean}, M/M/1 at one half gives 2");
}
