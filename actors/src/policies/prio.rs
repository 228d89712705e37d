//! Prio: SLO jobs strictly before best-effort jobs, without run times. The thesis has only the strict priority. The
//! order within a class, the choice of victims, and the rule that a job without room does not block the next one are
//! ours.

use std::cmp::Reverse;

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::base::{JobId, Span, parameters};
use crate::catalog::Preference;
use crate::machine::{Effects, Machine};
use crate::roles::planning::{Decision, LaunchOrder, Planner, PlanningScheduler, Situation, TaskPlaces};

parameters! {
    /// Parameters of Prio.
    struct Prio {
        /// Period at which the scheduler decides, as for 3Sigma (thesis, section 4.3.3).
        cycle: Span = Span::from_secs(2) => period,
        /// Whether best-effort jobs are preempted for SLO jobs; their work is lost.
        preempt: bool = true,
    }
}

impl Policy for Prio {
    const ABOUT: &'static str = "Prio (Park's thesis, table 4.1: a priority scheduler like Borg)\n\
        Jobs with a deadline come strictly before best-effort jobs, the oldest first. A job that finds no room does \
        not block the next one. All tasks of a job start together on free cores, on preferred nodes if enough of \
        them are free and else on any. Best-effort jobs are preempted for jobs with a deadline, the newest first. \
        Prio does not use run times.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Plans, one_scheduler: true, ..Traits::default() }
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let planner = PriorityOrder { preempt: self.preempt };
        Box::new(PlanningScheduler::new(self.cycle, planner, context.layout))
    }
}

#[derive(Clone, Debug)]
struct PriorityOrder {
    preempt: bool,
}

/// The free cores, and the jobs to preempt, during a decision.
struct CoreBudget {
    /// Free cores by kind of nodes.
    free: Vec<u32>,
    /// Best-effort jobs that can be preempted, the oldest first, with their cores by kind.
    victims: Vec<(JobId, Vec<u32>)>,
    /// Jobs that this decision preempts, with their cores by kind.
    preempted: Vec<(JobId, Vec<u32>)>,
}

impl CoreBudget {
    fn of(situation: &mut Situation<'_>, preempt: bool) -> Self {
        let pool = situation.pool;
        let free = (0..pool.kinds()).map(|kind| pool.free(kind)).collect();
        let mut victims: Vec<_> = situation
            .jobs
            .iter_mut()
            .filter(|(_, job)| preempt && job.open.spec.deadline.is_none() && !job.held.is_empty())
            .map(|(id, job)| (job.open.spec.arrival, id, job.held_by_kind(pool)))
            .collect();
        victims.sort_unstable();
        let victims = victims.into_iter().map(|(_, id, held)| (id, held)).collect();
        Self { free, victims, preempted: Vec::new() }
    }

    /// Takes cores on the preferred kinds if these have enough, else on any kind; `None` if there are too few.
    fn take(&mut self, tasks: u32, preference: Preference) -> Option<Vec<u32>> {
        let usable = |any: bool| {
            let free = (0..).zip(&self.free);
            free.map(|(kind, free)| if any || preference.includes(kind) { *free } else { 0 })
                .collect::<Vec<_>>()
        };
        let enough = |usable: &Vec<u32>| usable.iter().sum::<u32>() >= tasks;
        let usable = [usable(false), usable(true)].into_iter().find(enough)?;
        let mut left = tasks;
        let taken: Vec<u32> = usable
            .iter()
            .map(|usable| {
                let taken = left.min(*usable);
                left -= taken;
                taken
            })
            .collect();
        self.free.iter_mut().zip(&taken).for_each(|(free, taken)| *free -= taken);
        Some(taken)
    }

    /// Like [`take`](Self::take), but preempts the newest best-effort jobs if there are too few free cores.
    fn take_urgently(&mut self, tasks: u32, preference: Preference) -> Option<Vec<u32>> {
        let held = self.victims.iter().flat_map(|(_, held)| held);
        if self.free.iter().chain(held).sum::<u32>() < tasks {
            return None;
        }
        let before = self.preempted.len();
        loop {
            if let Some(taken) = self.take(tasks, preference) {
                self.spare_unneeded(before);
                return Some(taken);
            }
            let (job, held) = self.victims.pop()?;
            self.free.iter_mut().zip(&held).for_each(|(free, held)| *free += held);
            self.preempted.push((job, held));
        }
    }

    /// Revokes the preemptions from index `from` on that turned out to be unneeded, those of the oldest jobs first.
    /// Otherwise the cores of these jobs would go to other best-effort jobs.
    fn spare_unneeded(&mut self, from: usize) {
        for at in (from..self.preempted.len()).rev() {
            let unneeded = self.free.iter().zip(&self.preempted[at].1).all(|(free, held)| free >= held);
            if unneeded {
                let victim = self.preempted.remove(at);
                self.free.iter_mut().zip(&victim.1).for_each(|(free, held)| *free -= held);
                self.victims.push(victim);
            }
        }
    }
}

impl Planner for PriorityOrder {
    fn decide(&mut self, mut situation: Situation<'_>, fx: &mut Effects<'_>) -> Decision {
        let mut cores = CoreBudget::of(&mut situation, self.preempt);
        let up = situation.pool.up_cores();
        let mut waiting: Vec<_> = situation
            .jobs
            .iter_mut()
            .filter(|(_, job)| !job.waiting.is_empty())
            .map(|(id, job)| {
                let spec = &job.open.spec;
                (Reverse(spec.deadline.is_some()), spec.arrival, id, up.min(job.waiting.len() as u32))
            })
            .collect();
        waiting.sort_unstable();
        let mut launches = Vec::new();
        for (Reverse(urgent), _, job, tasks) in waiting.into_iter().filter(|entry| entry.3 > 0) {
            let preference = fx.catalog().preference(job);
            let taken =
                if urgent { cores.take_urgently(tasks, preference) } else { cores.take(tasks, preference) };
            launches.extend(taken.map(|tasks| LaunchOrder { job, places: TaskPlaces::Kinds(tasks) }));
        }
        let victims = cores.preempted.into_iter().map(|(job, _)| job).collect();
        Decision { launches, victims, ..Decision::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, CopyId, Time};
    use crate::harness::{Harness, sends};
    use crate::layout::Layout;
    use crate::machine::{Effect, Input, Timer};
    use crate::message::{Launch, Message};

    fn bench(nodes: usize) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        Prio::default().bench(&layout, layout.scheduler(0), 1)
    }

    fn cycle(bench: &mut Harness) -> Vec<Effect> {
        bench.now = Time(bench.now.0 / 2_000_000_000 * 2_000_000_000) + Span::from_secs(2);
        bench.step(Input::Fire(Timer::Tick(0)))
    }

    /// The jobs that were launched (true) and dropped, in this order.
    fn done(effects: &[Effect]) -> Vec<(bool, u32)> {
        let order = |(_, msg): (ActorId, Message)| match msg {
            Message::Launch(Launch::Row(row)) => Some((true, row.job.0)),
            Message::Launch(Launch::Drop(tasks)) => Some((false, tasks.job.0)),
            _ => None,
        };
        sends(effects).into_iter().filter_map(order).collect()
    }

    fn copy(job: u32) -> CopyId {
        JobId(job).task(0).copy(0)
    }

    #[test]
    fn jobs_with_a_deadline_preempt_the_newest_best_effort_job() {
        let mut bench = bench(2).with_deadline(JobId(3), Span::from_secs(1));
        for job in [0, 1, 2] {
            bench.submit(job);
        }
        assert_eq!(done(&cycle(&mut bench)), [(true, 0), (true, 1)], "the oldest job comes first");
        bench.submit(3);
        assert_eq!(done(&cycle(&mut bench)), [(false, 1), (true, 3)]);
        let node = bench.layout.node(0);
        bench.deliver(node, Launch::Completed { copy: copy(0) });
        assert_eq!(done(&cycle(&mut bench)), [(true, 1)], "job 1 is older than the third job");
    }

    /// The only node could not be reached recently. No job can be launched on it, and the job that runs on it is not
    /// preempted.
    #[test]
    fn no_job_is_preempted_on_a_node_that_cannot_be_reached() {
        let layout = Layout::new(1, 0, [2]);
        let mut bench = Prio::default().bench(&layout, layout.scheduler(0), 1);
        bench = bench.with_deadline(JobId(3), Span::from_secs(1));
        bench.submit(0);
        bench.submit(1);
        let (node, msg) = sends(&cycle(&mut bench))[1];
        bench.step(Input::Undelivered { to: node, msg });
        bench.submit(3);
        assert_eq!(done(&cycle(&mut bench)), []);
        bench.step(Input::Fire(Timer::Node(0)));
        assert_eq!(done(&cycle(&mut bench)), [(true, 3)], "job 3 gets the free core");
    }

    /// A node that an order to stop a copy did not reach is avoided, and gets the order again.
    #[test]
    fn a_copy_that_could_not_be_stopped_is_stopped_again() {
        let mut bench = bench(1).with_deadline(JobId(1), Span::from_secs(1));
        bench.submit(0);
        cycle(&mut bench);
        bench.submit(1);
        let sent = sends(&cycle(&mut bench));
        let (node, drop) = sent[0];
        assert!(matches!(drop, Message::Launch(Launch::Drop(_))));
        let again = sends(&bench.step(Input::Undelivered { to: node, msg: drop }));
        assert_eq!(again, [(node, drop)]);
        bench.step(Input::Down { actor: node });
        assert_eq!(sends(&bench.step(Input::Undelivered { to: node, msg: drop })), [], "the copy is gone");
    }

    #[test]
    fn preferred_nodes_come_first_if_they_have_enough_cores() {
        let cores =
            |free: &[u32]| CoreBudget { free: free.to_vec(), victims: Vec::new(), preempted: Vec::new() };
        let last = Preference { kinds: 0b100, slowdown: 1.5 };
        assert_eq!(cores(&[5, 5, 5]).take(4, last), Some(vec![0, 0, 4]));
        assert_eq!(cores(&[5, 5, 3]).take(4, last), Some(vec![4, 0, 0]), "all nodes count then");
        assert_eq!(cores(&[1, 1, 1]).take(4, last), None);
        assert_eq!(cores(&[1, 1, 1]).take(3, Preference::NONE), Some(vec![1, 1, 1]));
        let mut short = cores(&[0, 0, 1]);
        short.victims = vec![(JobId(0), vec![1, 0, 0]), (JobId(1), vec![0, 1, 1])];
        assert_eq!(short.take_urgently(9, last), None);
        assert_eq!(short.preempted, [], "a preemption would be in vain");
        assert_eq!(short.take_urgently(2, last), Some(vec![0, 0, 2]));
        assert_eq!(short.preempted, [(JobId(1), vec![0, 1, 1])]);
    }

    #[test]
    fn a_victim_whose_cores_are_not_taken_is_spared() {
        let second = Preference { kinds: 0b10, slowdown: 1.5 };
        let victims = vec![(JobId(0), vec![0, 2]), (JobId(1), vec![1, 0])];
        let mut cores = CoreBudget { free: vec![0, 0], victims, preempted: Vec::new() };
        assert_eq!(cores.take_urgently(2, second), Some(vec![0, 2]));
        assert_eq!(cores.preempted, [(JobId(0), vec![0, 2])]);
        assert_eq!((cores.victims, cores.free), (vec![(JobId(1), vec![1, 0])], vec![0, 0]));
    }
}
