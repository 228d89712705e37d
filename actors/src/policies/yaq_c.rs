//! Yaq-c: one scheduler that counts the work it has sent to every node.

use super::eagle::LeastWait;
use super::policy::{BuildContext, Policy, Traits, check_bypass, partitions, plain};
use crate::base::parameters;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::client::CentralJobs;
use crate::roles::early_binding::EarlyBinding;

parameters! {
    /// Parameters of Yaq-c.
    struct YaqC {
        /// Whether nodes serve the job with the least work first (SRPT, by all tasks of the job); otherwise in FIFO
        /// order.
        srpt: bool = true,
        /// SRPT: total estimate of the tasks that may overtake a waiting task, as a multiple of the waiting task's
        /// estimate.
        #[schemars(range(min = 0.0))]
        bypass: f64 = 5.0,
    }
}

impl Policy for YaqC {
    const ABOUT: &'static str = "Yaq-c (Rasley et al., EuroSys 2016)\n\
        All jobs go to the first scheduler that is up, which sends each task to the node with the least wait: \
        the estimates of what it sent there, less what has run. Nodes queue.";

    fn traits(&self) -> Traits<'_> {
        Traits { central_jobs: CentralJobs::All, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_bypass(self.bypass)
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let place = LeastWait::new(context, partitions(1.0, context.layout), false);
        Box::new(EarlyBinding::new(place, context.layout))
    }

    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(plain(self.srpt, self.bypass, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{JobId, Span, Time};
    use crate::harness::sends;
    use crate::message::{Core, Launch, Message, Row};

    /// Each of two nodes gets one of three tasks, estimated at a second, and the third waits behind either. The next
    /// job goes to the other node, and to an idle node as soon as the scheduler knows of one.
    #[test]
    fn tasks_go_to_the_least_wait() {
        let layout = Layout::new(1, 0, [1, 1]);
        let mut central = YaqC::default().bench(&layout, layout.scheduler(0), 3);
        let rows = sends(&central.submit(0));
        assert_ne!(rows[0].0, rows[1].0);
        let (long, other) = (rows[2].0, if rows[2].0 == rows[0].0 { rows[1].0 } else { rows[0].0 });
        central.now = Time::ZERO + Span::from_millis(500);
        let done = rows.iter().find(|row| row.0 == other).map(|row| row.1);
        let Some(Message::Launch(Launch::Row(row))) = done else { panic!("{rows:?}") };
        central.receive(other, Launch::Completed { copy: row.copy(0) });
        let next = sends(&central.submit(1));
        assert_eq!([next[0].0, next[1].0], [other, other], "idle, then 1 s against 1.5 s");
        assert_eq!(next[2].0, long, "the node has 1.5 s, the other 2 s");
    }

    /// The job with less work overtakes another if its work is at most five times the other job's estimate.
    #[test]
    fn nodes_serve_the_smaller_job_first() {
        let layout = Layout::new(1, 0, [1]);
        let mut node = YaqC::default().bench(&layout, layout.node(0), 1);
        let (scheduler, worker) = (layout.scheduler(0), layout.worker(0, 0));
        let copy = |job| JobId(job).task(0).copy(0);
        for job in [9, 8, 2] {
            node.receive(scheduler, Launch::Row(Row::single(copy(job))));
        }
        let run = |job| Message::from(Core::run(copy(job)));
        assert_eq!(node.ended(copy(9))[1], (worker, run(2)));
        assert_eq!(node.ended(copy(2))[1], (worker, run(8)));
    }
}
