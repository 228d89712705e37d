//! Sparrow: batch sampling with late binding and cancellation, its pair form, and per-task sampling.

mod per_task;

use per_task::PerTaskSampling;

use super::policy::{Binds, BuildContext, Policy, Traits};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::dispatcher::Dispatcher;
use crate::roles::late_binding::LateBinding;
pub use crate::roles::late_binding::{ProbeOptions as Sparrow, SamplingForm};

impl Policy for Sparrow {
    const ABOUT: &'static str = "Sparrow (Ousterhout et al., SOSP 2013)\n\
        A job's scheduler places d reservations per task on random nodes. A node whose core is free when a \
        reservation reaches the head of its FIFO queue asks the scheduler, which hands out its tasks first \
        come first served; the core is held for the round trip. Left-over reservations are cancelled.";

    fn traits(&self) -> Traits<'_> {
        Traits { binds: Binds::Late, reservations: self.clone(), ..Traits::default() }
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.form == SamplingForm::Pairs && (self.group == 0 || self.group > layout.nodes()) {
            return Err(format!(
                "group: must be between 1 and the {} servers, not {}",
                layout.nodes(),
                self.group
            ));
        }
        Ok(())
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let BuildContext { layout, lossy, .. } = context;
        match self.form {
            SamplingForm::PerTask => Box::new(Dispatcher::with(PerTaskSampling::new(self, lossy), layout)),
            SamplingForm::Batch | SamplingForm::Pairs => {
                Box::new(Dispatcher::with(LateBinding::new(self.clone(), None, lossy), layout))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{ActorId, JobId};
    use crate::harness::{Harness, sends};
    use crate::machine::{Effect, Input};
    use crate::message::{Launch, Message, Probe, Row};

    const JOB: JobId = JobId(0);

    fn bench(config: &Sparrow, tasks: u32, nodes: usize) -> Harness {
        let layout = Layout::new(1, 0, vec![1; nodes]);
        config.bench(&layout, layout.scheduler(0), tasks)
    }

    fn reservations(sent: &[(ActorId, Message)]) -> Vec<(ActorId, u32, u32)> {
        sent.iter()
            .filter_map(|&(to, msg)| match msg {
                Message::Probe(Probe::Reserve { group, count, .. }) => Some((to, group, count)),
                _ => None,
            })
            .collect()
    }

    fn grant(task: u32) -> Message {
        Probe::Grant { row: Row::single(JOB.task(task).copy(0)), group: 0 }.into()
    }

    #[test]
    fn tasks_go_to_the_first_claims_and_other_reservations_are_cancelled() {
        let mut bench = bench(&Sparrow::default(), 3, 10);
        let reserved = reservations(&sends(&bench.submit(0)));
        let nodes: Vec<_> = reserved.iter().map(|r| r.0).collect();
        assert_eq!(nodes.len(), 6, "a job gets d·f reservations");
        assert!(nodes.iter().enumerate().all(|(i, node)| !nodes[..i].contains(node)), "nodes are distinct");
        let claim = Probe::Claim { job: JOB, group: 0, repair: false };
        assert_eq!(bench.receive(nodes[4], claim), [(nodes[4], grant(0))]);
        assert_eq!(bench.receive(nodes[1], claim), [(nodes[1], grant(1))]);
        let last = bench.receive(nodes[0], claim);
        assert_eq!(last[0], (nodes[0], grant(2)));
        let mut cancelled: Vec<_> = last[1..].iter().map(|&(to, msg)| (to, msg.name())).collect();
        cancelled.sort_unstable();
        let mut expected: Vec<_> = [2, 3, 5].map(|i| (nodes[i], "probe.cancel")).to_vec();
        expected.sort_unstable();
        assert_eq!(cancelled, expected);
        let nothing = Probe::Nothing { job: JOB, group: 0 }.into();
        assert_eq!(bench.receive(nodes[2], claim), [(nodes[2], nothing)]);
    }

    #[test]
    fn pairs_hold_d_reservations_for_each_of_two_tasks() {
        let config = Sparrow { form: SamplingForm::Pairs, ..Sparrow::default() };
        let reserved = reservations(&sends(&bench(&config, 5, 10).submit(0)));
        let shape: Vec<_> = reserved.iter().map(|&(_, group, count)| (group, count)).collect();
        assert_eq!(shape, [(0, 2), (0, 2), (1, 2), (1, 2), (2, 2)], "100 tasks would make 50 pairs");
        assert_ne!(reserved[0].0, reserved[1].0);
    }

    /// Probes are sampled with replacement, as in the simulators of Eagle and Murmuration.
    #[test]
    fn a_node_sampled_twice_gets_one_message_for_both_reservations() {
        let config = Sparrow { min_probes: 20, replacement: true, ..Sparrow::default() };
        let reserved = reservations(&sends(&bench(&config, 3, 4).submit(0)));
        assert!(reserved.len() <= 4, "{reserved:?}");
        let nodes: std::collections::BTreeSet<_> = reserved.iter().map(|r| r.0).collect();
        assert_eq!(nodes.len(), reserved.len());
        assert_eq!(reserved.iter().map(|r| r.2).sum::<u32>(), 20, "min_probes exceeds 2 · 3");
    }

    #[test]
    fn with_fewer_nodes_than_reservations_each_node_holds_several() {
        let reserved = reservations(&sends(&bench(&Sparrow::default(), 5, 4).submit(0)));
        let mut counts: Vec<_> = reserved.iter().map(|r| r.2).collect();
        counts.sort_unstable();
        assert_eq!(counts, [2, 2, 3, 3]);
    }

    #[test]
    fn sampled_tasks_go_to_the_shorter_queue_and_ties_to_the_first_answer() {
        let config = Sparrow { form: SamplingForm::PerTask, ..Sparrow::default() };
        let mut bench = bench(&config, 1, 10);
        let asked: Vec<_> = sends(&bench.submit(0)).iter().map(|s| s.0).collect();
        assert_eq!(asked.len(), 2);
        let length = |length| Probe::Length { task: JOB.task(0), length };
        assert_eq!(bench.receive(asked[0], length(3)), []);
        let row = Message::from(Launch::Row(Row::single(JOB.task(0).copy(0))));
        assert_eq!(bench.receive(asked[1], length(3)), [(asked[0], row)]);
        assert_eq!(bench.receive(asked[1], length(-1)), [], "a late or repeated answer changes nothing");
    }

    #[test]
    fn reservations_of_a_dead_node_are_replaced_on_other_nodes() {
        let mut bench = bench(&Sparrow::default(), 1, 3);
        let nodes: Vec<_> = reservations(&sends(&bench.submit(0))).iter().map(|r| r.0).collect();
        bench.receive(nodes[0], Probe::Claim { job: JOB, group: 0, repair: false });
        let again = reservations(&sends(&bench.step(Input::Down { actor: nodes[0] })));
        assert_eq!(again.len(), 2);
        assert!(again.iter().all(|r| r.0 != nodes[0]));
        let sent = bench.receive(again[0].0, Probe::Claim { job: JOB, group: 0, repair: false });
        let row = Row::single(JOB.task(0).copy(1));
        assert_eq!(
            sent[0],
            (again[0].0, Probe::Grant { row, group: 0 }.into()),
            "the grant has a fresh attempt"
        );
    }

    /// The scheduler samples three queues. A duplicate of the first answer does not count as the second.
    #[test]
    fn a_duplicate_answer_counts_once() {
        let config = Sparrow { form: SamplingForm::PerTask, probe_ratio: 3.0, ..Sparrow::default() };
        let mut bench = bench(&config, 1, 10);
        let asked: Vec<_> = sends(&bench.submit(0)).iter().map(|s| s.0).collect();
        let length = |length| Probe::Length { task: JOB.task(0), length };
        assert_eq!(bench.receive(asked[0], length(3)), []);
        assert_eq!(bench.receive(asked[0], length(3)), []);
        assert_eq!(bench.receive(asked[1], length(2)), [], "the third node has not answered yet");
        let row = Message::from(Launch::Row(Row::single(JOB.task(0).copy(0))));
        assert_eq!(bench.receive(asked[2], length(1)), [(asked[2], row)]);
    }

    /// Messages that repair a loss are marked as repairs, from the reservation to the refusal.
    #[test]
    fn repairs_are_marked_from_the_reservation_to_the_refusal() {
        let layout = Layout::new(1, 0, [1, 1, 1]);
        let repairs = |effects: &[Effect]| -> Vec<_> {
            let recovery = |effect: &Effect| match *effect {
                Effect::Send { recovery, .. } => Some(recovery),
                _ => None,
            };
            effects.iter().filter_map(recovery).collect()
        };
        let mut scheduler = bench(&Sparrow::default(), 1, 3);
        let nodes: Vec<_> = reservations(&sends(&scheduler.submit(0))).iter().map(|r| r.0).collect();
        let again = scheduler.step(Input::Down { actor: nodes[0] });
        let Some(&Effect::Send { to, msg, recovery: true }) = again.first() else { panic!("{again:?}") };
        // This node gets the new reservation.
        let machine = Box::new(crate::roles::NodeManager::new(1));
        let mut node = Harness::new(layout.clone(), to, 1, machine);
        let claim = node.deliver(layout.scheduler(0), msg);
        assert_eq!(repairs(&claim), [true], "{claim:?}");
        // The task goes to the node that still holds a reservation, and the new claim gets no task.
        let first = Input::Deliver { from: nodes[1], msg: claim_of(false).into() };
        assert!(!repairs(&scheduler.step(first))[0], "this grant is not a repair");
        let late = Input::Deliver { from: to, msg: claim_of(true).into() };
        assert_eq!(repairs(&scheduler.step(late)), [true]);
    }

    fn claim_of(repair: bool) -> Probe {
        Probe::Claim { job: JOB, group: 0, repair }
    }
}
