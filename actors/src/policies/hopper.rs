//! Hopper: jobs are served by virtual sizes, which have room for second copies, and schedulers may refuse cores.
//!
//! The full paper was not available. The protocol follows its abstract and our memory of it. These parts are left out:
//! the learning of the tail index β, which is a parameter; the factor for the communication of jobs of several phases,
//! which the emulator does not have (it is one); ε-fairness, for which a scheduler would have to know the number of
//! jobs of all others (ε is one); and cores that are kept free for future second copies.

mod node;

use super::late::{LatePolicy, Longest};
use super::policy::{BuildContext, Policy, Traits, check_scaled, reporting, standard_node};
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::late_binding::ProbeOptions;
use crate::roles::node::ProgressErrors;
use crate::roles::speculation::{CopyBinding, Reservations, SpeculatingScheduler};
use node::OfferingNode;

parameters! {
    /// Parameters of Hopper.
    struct Hopper {
        /// Number of reservations per task, on random nodes (the paper, from memory: 4). Sparrow has two; here second
        /// copies use reservations, too.
        probes: f64 = 4.0 => 1.0..=1000.0,
        /// Number of refusals after which a node's offer cannot be refused. The offer then goes to the smallest job
        /// that a refusal named, or, if none did, to a job sampled in proportion to virtual sizes (the paper, from
        /// memory: 2).
        refusals: u32 = 2,
        /// Tail index β of the Pareto distribution of task times. A job with n unfinished tasks has the virtual size
        /// 2 n / β.
        beta: f64 = 1.5 => 1.0..=2.0,
        /// Time for which a copy runs before it can be a straggler, as in LATE.
        running: Span = Span::from_secs(60),
        /// SlowNodeThreshold of LATE: the quantile of nodes, by work done, below which a node gets no backups.
        slow_node: f64 = 0.25 => 0.0..=1.0,
        /// SlowTaskThreshold of LATE: the quantile of a job's tasks, by progress per second, below which a task is
        /// backed up.
        slow_task: f64 = 0.25 => 0.0..=1.0,
        /// Period at which nodes report the progress of their copies, and the scheduler looks for stragglers of a job.
        report: Span = Span::from_secs(3),
        /// Errors of the reported progress.
        progress: ProgressErrors = ProgressErrors::default(),
        /// Factor on all durations above, which suit tasks of minutes; use 0.01 for tasks of a second.
        scale: f64 = 1.0 => 1e-6..=1e6,
    }
}

impl Policy for Hopper {
    const ABOUT: &'static str = "Hopper (Ren, Ananthanarayanan, Wierman and Yu, SIGCOMM 2015), from its abstract and from memory\n\
        A job with n unfinished tasks has a virtual size of 2 n / β cores, more than n for second copies. Its scheduler \
        places four reservations per task on random nodes. A node offers a free core to the job in its queue with the \
        least virtual size. The scheduler gives the next task, or a second copy that LATE's rule has named, if the job \
        has fewer cores than its virtual size, and refuses otherwise; a refusal names its smallest job that wants a \
        core, and messages tell nodes the present sizes. A job with nothing to run on the node loses its place there. \
        After two refusals the smallest job that was named, or if none was a job drawn in proportion to virtual sizes, \
        takes the core for any task or copy that it has. Fairness between jobs, the learning of β, \
        and communication between phases are left out.";

    fn traits(&self) -> Traits<'_> {
        let patience = self.running.max(self.report);
        let reporting = reporting(self.report, patience, &self.progress, self.scale, CopyBinding::Sparrow);
        Traits { reservations: self.reservations(), ..reporting }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_scaled(&self.progress, self.scale, &[("report", self.report)])
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let BuildContext { layout, lossy, .. } = context;
        let &Self { running, slow_node, slow_task, report, scale, .. } = self;
        // Second copies are limited only by virtual sizes and by the scheduler's share of the cores.
        let late =
            LatePolicy { running, slow_node, slow_task, report, scale, cap: 1.0, ..LatePolicy::default() };
        let binding = Reservations::sized(self.reservations(), self.beta, layout, lossy);
        Box::new(SpeculatingScheduler::new(Box::new(Longest::new(&late, layout.nodes())), binding, false))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(OfferingNode::new(standard_node(&self.traits(), context), self.refusals))
    }
}

impl Hopper {
    fn reservations(&self) -> ProbeOptions {
        ProbeOptions { probe_ratio: self.probes, ..ProbeOptions::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, JobId};
    use crate::harness::{Harness, sends};
    use crate::machine::{Input, Timer};
    use crate::message::{Core, Launch, Message, Offer, Probe, Row, SizedJob};

    const fn sized(job: u32, group: u32, size: u32) -> SizedJob {
        SizedJob { job: JobId(job), group, size }
    }

    fn core(job: u32) -> Message {
        Offer::Core { job: JobId(job), group: 0, repair: false }.into()
    }

    /// A node with reservations of jobs of these virtual sizes, while a copy of job 0 runs on its only core.
    fn node(terms: &Hopper, sizes: &[u32]) -> (Harness, ActorId) {
        let layout = Layout::new(2, 0, [1]);
        let scheduler = layout.scheduler(0);
        let mut node = terms.bench(&layout, layout.node(0), 9);
        let reserve = |of| Offer::Reserve { of, count: 1, repair: false };
        node.receive(scheduler, Launch::Row(Row::single(JobId(0).task(0).copy(0))));
        for (job, &size) in (1..).zip(sizes) {
            assert_eq!(node.receive(scheduler, reserve(sized(job, 0, size))), [], "no core is free");
        }
        (node, scheduler)
    }

    /// The jobs to which the node offers its core when the copy of job 0 has ended, if all jobs refuse the core or have
    /// nothing to run.
    fn offers(terms: &Hopper, sizes: &[u32]) -> Vec<(u32, bool)> {
        let (mut node, scheduler) = node(terms, sizes);
        let mut sent = node.ended(JobId(0).task(0).copy(0));
        let mut offers = Vec::new();
        while let Some(&(_, msg)) = sent.iter().find(|(_, msg)| !matches!(msg, Message::Launch(_))) {
            let job = msg.job().unwrap();
            let may_refuse = matches!(msg, Message::Offer(_));
            offers.push((job.0, may_refuse));
            let of = sized(job.0, 0, sizes[job.0 as usize - 1]);
            sent = if may_refuse {
                node.receive(scheduler, Offer::Refuse { job: of, smallest: of })
            } else {
                node.receive(scheduler, Probe::Nothing { job, group: 0 })
            };
        }
        offers
    }

    /// For some virtual sizes and limits on refusals: offers that may be refused go to the smallest jobs, and later
    /// offers go to all jobs one after the other.
    #[test]
    fn a_core_is_offered_to_the_smallest_jobs_and_then_to_sampled_ones() {
        for (refusals, sizes, refusable) in [
            (2, &[5000, 2000, 3000][..], &[2, 3][..]),
            (2, &[1000, 1000, 1000], &[1, 2]),
            (1, &[5000, 2000, 3000], &[2]),
            (0, &[5000, 2000, 3000], &[]),
            (3, &[5000, 2000, 3000], &[2, 3, 1]),
            (9, &[5000, 2000], &[2, 1]),
        ] {
            let made = offers(&Hopper { refusals, ..Hopper::default() }, sizes);
            let (first, drawn) = made.split_at(refusable.len());
            assert_eq!(first, refusable.iter().map(|&job| (job, true)).collect::<Vec<_>>(), "{sizes:?}");
            let mut drawn = drawn.to_vec();
            drawn.sort_unstable();
            let all: Vec<_> = (1..=sizes.len() as u32).map(|job| (job, false)).collect();
            assert_eq!(drawn, all, "every job is asked once, and then the core stays free");
        }
    }

    /// A job of nine times the size is sampled nine times as often, although the other job has reservations of nine
    /// groups.
    #[test]
    fn a_job_is_sampled_in_proportion_to_its_virtual_size() {
        let (mut node, scheduler) = node(&Hopper { refusals: 0, ..Hopper::default() }, &[1000, 9000]);
        let reserve = |of, repair| Offer::Reserve { of, count: 1, repair };
        for group in 1..9 {
            node.receive(scheduler, reserve(sized(1, group, 1000), false));
        }
        let mut large = 0;
        for round in 0..2000 {
            let ended = JobId(0).task(0).copy(round);
            let sent = node.ended(ended);
            let Some(&(_, Message::Probe(Probe::Claim { job, group, .. }))) = sent.last() else {
                panic!("{sent:?}")
            };
            large += u32::from(job == JobId(2));
            let size = if job == JobId(2) { 9000 } else { 1000 };
            node.receive(scheduler, reserve(SizedJob { job, group, size }, true));
            let copy = JobId(0).task(0).copy(round + 1);
            // The core is busy again, by a copy that arrives without an offer.
            node.receive(scheduler, Launch::Row(Row::single(copy)));
            node.receive(scheduler, Probe::Nothing { job, group });
        }
        assert!((1740..1860).contains(&large), "{large} of 2000");
    }

    /// The refusal names a job that has no reservation on the node and is smaller than the job that has one.
    #[test]
    fn the_job_that_a_refusal_names_is_offered_the_core_next() {
        let (mut node, scheduler) = node(&Hopper::default(), &[2000, 7000]);
        node.ended(JobId(0).task(0).copy(0));
        let refuse = Offer::Refuse { job: sized(1, 0, 8000), smallest: sized(3, 2, 4000) };
        let next = Offer::Core { job: JobId(3), group: 2, repair: false }.into();
        assert_eq!(node.receive(scheduler, refuse), [(scheduler, next)]);
        let copy = JobId(3).task(4).copy(1);
        let worker = node.layout.worker(0, 0);
        let run = (worker, Message::from(Core::run(copy)));
        assert_eq!(node.receive(scheduler, Offer::Grant { copy, group: 2, size: 3000 }), [run]);
        let ended = node.ended(copy);
        assert_eq!(ended.last(), Some(&(scheduler, core(2))), "job 1 has grown to 8000");
    }

    /// Job 1 of one scheduler and job 2 of another one refuse a core. For some virtual sizes of jobs 3 and 4, which the
    /// refusals name, the table has the job that gets the core next and cannot refuse it. Job 5 is smaller, but was not
    /// named.
    #[test]
    fn after_enough_refusals_the_smallest_named_job_gets_the_core() {
        for (named, expected) in [
            ([Some(9000), Some(7000)], 4),
            ([Some(7000), Some(9000)], 3),
            ([Some(7000), Some(7000)], 3),
            ([Some(9000), None], 3),
            ([None, Some(9000)], 4),
        ] {
            let (mut node, _) = node(&Hopper::default(), &[]);
            let of = [1, 2].map(|job| sized(job, 0, 1000 * job));
            let schedulers = [0, 1].map(|number| node.layout.scheduler(number));
            for (from, of) in
                [(schedulers[0], of[0]), (schedulers[1], of[1]), (schedulers[0], sized(5, 0, 3000))]
            {
                node.receive(from, Offer::Reserve { of, count: 1, repair: false });
            }
            let mut sent = node.ended(JobId(0).task(0).copy(0));
            for i in 0..2 {
                let job = of[i].job.0;
                assert_eq!(sent.last(), Some(&(schedulers[i], core(job))), "{named:?}");
                let smallest = named[i].map_or(of[i], |size| sized(2 + job, 1, size));
                sent = node.receive(schedulers[i], Offer::Refuse { job: of[i], smallest });
            }
            let claim = Probe::Claim { job: JobId(expected), group: 1, repair: false }.into();
            assert_eq!(sent, [(schedulers[expected as usize - 3], claim)], "{named:?}");
        }
    }

    /// Job 3 is named and then refuses too, because it has received its cores meanwhile. The job that it names gets
    /// the core.
    #[test]
    fn a_named_job_that_refuses_is_passed_over() {
        let (mut node, scheduler) = node(&Hopper::default(), &[1000]);
        node.ended(JobId(0).task(0).copy(0));
        let named = |job, size| sized(job, 0, size);
        let refuse = |job, smallest| Offer::Refuse { job, smallest };
        let sent = node.receive(scheduler, refuse(named(1, 1000), named(3, 2000)));
        assert_eq!(sent, [(scheduler, core(3))]);
        let claim = Probe::Claim { job: JobId(4), group: 0, repair: false }.into();
        let sent = node.receive(scheduler, refuse(named(3, 2000), named(4, 9000)));
        assert_eq!(sent, [(scheduler, claim)]);
    }

    /// A scheduler of jobs of three tasks among twenty nodes.
    fn scheduler(beta: f64) -> Harness {
        let terms = Hopper { beta, running: Span::ZERO, slow_task: 1.0, slow_node: 0.0, ..Hopper::default() };
        let layout = Layout::new(1, 0, [1; 20]);
        terms.bench(&layout, layout.scheduler(0), 3)
    }

    fn grant(job: u32, task: u32, attempt: u32, group: u32, size: u32) -> Message {
        Offer::Grant { copy: JobId(job).task(task).copy(attempt), group, size }.into()
    }

    fn refuse(job: SizedJob, smallest: SizedJob) -> Message {
        Offer::Refuse { job, smallest }.into()
    }

    fn nothing(job: u32) -> Message {
        Probe::Nothing { job: JobId(job), group: 0 }.into()
    }

    fn claim(job: u32) -> Message {
        Probe::Claim { job: JobId(job), group: 0, repair: false }.into()
    }

    /// Submits a job; its three tasks get nodes, and the first task ends. Returns the nodes of the job's reservations.
    fn running(bench: &mut Harness, job: u32) -> Vec<ActorId> {
        let reserved = sends(&bench.submit(job));
        let of = reserved[0].1;
        assert!(
            matches!(of, Message::Offer(Offer::Reserve { of, count: 1, repair: false }) if of.job == JobId(job))
        );
        assert!(
            reserved.len() == 12 && reserved.iter().all(|&(_, msg)| msg == of),
            "four a task: {reserved:?}"
        );
        let nodes: Vec<_> = reserved.iter().map(|sent| sent.0).collect();
        for (task, &node) in (0..3).zip(&nodes) {
            let sent = bench.receive(node, core(job));
            let [(to, Message::Offer(Offer::Grant { copy, group: 0, .. }))] = sent[..] else {
                panic!("{sent:?}")
            };
            assert_eq!((to, copy), (node, JobId(job).task(task).copy(0)));
        }
        bench.now += Span::from_secs(1);
        bench.receive(nodes[0], Launch::Completed { copy: JobId(job).task(0).copy(0) });
        nodes
    }

    /// Like [`running`]; after a minute the rule also names both running tasks as slow.
    fn slow(bench: &mut Harness, job: u32, check: u32) -> Vec<ActorId> {
        let nodes = running(bench, job);
        bench.now += Span::from_secs(60);
        let looked = sends(&bench.step(Input::Fire(Timer::Recheck { job: JobId(job), attempt: check })));
        assert_eq!(looked.len(), 8, "two copies are wanted, with four reservations each: {looked:?}");
        nodes
    }

    /// A job has a core for each task and nothing else to run. Any offer, refusable or not, ends its reservation, so
    /// that the job does not use up refusals.
    #[test]
    fn a_job_with_nothing_to_run_loses_its_reservation() {
        let mut bench = scheduler(1.0);
        let nodes = running(&mut bench, 0);
        assert_eq!(bench.receive(nodes[3], core(0)), [(nodes[3], nothing(0))]);
        assert_eq!(bench.receive(nodes[4], claim(0)), [(nodes[4], nothing(0))]);
        let copy = JobId(0).task(1).copy(0);
        bench.receive(nodes[1], Launch::Completed { copy });
        let cancelled = bench.receive(nodes[2], Launch::Completed { copy: JobId(0).task(2).copy(0) });
        let cancel = Message::from(Probe::Cancel { job: JobId(0), group: 0 });
        let left: Vec<_> =
            cancelled.iter().filter(|(_, msg)| *msg == cancel).map(|(node, _)| *node).collect();
        assert_eq!(left.len(), 7, "of twelve reservations three were used and two have gone");
        assert!(!left.contains(&nodes[3]) && !left.contains(&nodes[4]));
    }

    /// With β = 2 a job's size is the number of its unfinished tasks. One of three tasks has ended, and the rule
    /// names the others as slow. The job has as many cores as its size, two. It accepts a third core only if it
    /// cannot refuse the offer, whichever of its reservations the offer uses.
    #[test]
    fn a_job_refuses_cores_beyond_its_size_and_names_the_smallest_job_that_wants_one() {
        let mut bench = scheduler(2.0);
        let nodes = slow(&mut bench, 0, 1);
        let of = sized(0, 0, 2000);
        assert_eq!(bench.receive(nodes[5], core(0)), [(nodes[5], refuse(of, of))]);
        sends(&bench.submit(1));
        assert_eq!(bench.receive(nodes[5], core(0)), [(nodes[5], refuse(of, sized(1, 0, 3000)))]);
        assert_eq!(bench.receive(nodes[5], claim(0)), [(nodes[5], grant(0, 1, 1, 0, 2000))]);
        let sent = bench.receive(nodes[5], Launch::Completed { copy: JobId(0).task(1).copy(1) });
        let [(stopped, Message::Launch(Launch::Drop(_)))] = sent[..] else { panic!("{sent:?}") };
        assert_eq!(stopped, nodes[1]);
    }

    /// Two jobs have two cores each and want second copies of both tasks. With β = 1.5 their sizes are 8/3, so that job
    /// 0 takes one core and refuses others. For each node, the table has the group of job 1 that the refusal names: a
    /// group with a copy of a task other than the one that the node runs.
    #[test]
    fn a_refusal_names_a_copy_that_the_node_can_run() {
        let mut bench = scheduler(1.5);
        let nodes = slow(&mut bench, 0, 1);
        let others = slow(&mut bench, 1, 3);
        let of = sized(0, 0, 2667);
        assert_eq!(bench.receive(nodes[5], core(0)), [(nodes[5], grant(0, 1, 1, 0, 2667))]);
        let idle =
            *nodes.iter().find(|node| !nodes[..3].contains(node) && !others[..3].contains(node)).unwrap();
        for (node, group) in [(idle, 1), (others[1], 2), (others[2], 1)] {
            assert_eq!(bench.receive(node, core(0)), [(node, refuse(of, sized(1, group, 2667)))]);
        }
    }

    /// Job 1 waits for a core for a task whose copy was lost with its node, until the result of this copy arrives after
    /// all. The job still has fewer cores than its virtual size then.
    #[test]
    fn a_refusal_names_no_copy_of_a_finished_task() {
        let mut bench = scheduler(1.5);
        let nodes = slow(&mut bench, 0, 1);
        let others = running(&mut bench, 1);
        let of = sized(0, 0, 2667);
        let lost = others[1];
        let asked = *nodes[3..].iter().find(|node| **node != lost).unwrap();
        assert_eq!(bench.receive(asked, core(0)), [(asked, grant(0, 1, 1, 0, 2667))]);
        sends(&bench.step(Input::Down { actor: lost }));
        assert_eq!(bench.receive(asked, core(0)), [(asked, refuse(of, sized(1, 1, 2667)))]);
        bench.receive(lost, Launch::Completed { copy: JobId(1).task(1).copy(0) });
        assert_eq!(bench.receive(asked, core(0)), [(asked, refuse(of, of))]);
    }

    /// A grant that does not arrive frees the core that was held for it, and its task gets new reservations.
    #[test]
    fn the_task_of_an_undelivered_grant_gets_new_reservations() {
        let mut bench = scheduler(2.0);
        let node = sends(&bench.submit(0))[0].0;
        let granted = bench.receive(node, core(0));
        let sent = sends(&bench.step(Input::Undelivered { to: node, msg: granted[0].1 }));
        assert_eq!(sent[0], (node, Probe::Nothing { job: JobId(0), group: 0 }.into()));
        let of = sized(0, 1, 3000);
        let again = Message::from(Offer::Reserve { of, count: 1, repair: true });
        assert!(sent.len() == 5 && sent[1..].iter().all(|&(_, msg)| msg == again), "{sent:?}");
    }
}
