//! Parameters of Kubernetes.

use super::pending::{Pending, Retry};
use super::scheduler::KubernetesScheduler;
use crate::base::{Span, parameters};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::policies::policy::{BuildContext, Policy, Traits};
use crate::policies::shared::check_period;
use crate::roles::client::CentralJobs;

parameters! {
    /// Parameters of Kubernetes.
    struct Kubernetes {
        /// What becomes of a task for which there is no room.
        retry: Retry = Retry::Timer,
        /// `timer`: how long it waits. 30 s by default in the Murmuration paper, and 1 s (section 2.3.2).
        retry_after: Span = Span::from_secs(30),
        /// `timer`: a task that comes back is tried in the order of its return, as kube-scheduler does, and not in that
        /// in which jobs arrived, as the Murmuration paper says.
        restamp: bool = false,
        /// Time of one attempt to place a task, one after the other: 5 ms in the Murmuration paper's prototype
        /// (sections 6.1 and 6.2.4).
        attempt: Span = Span::from_millis(5),
    }
}

impl Policy for Kubernetes {
    const ABOUT: &'static str = "Kubernetes, default scheduler (1.23; as in the Murmuration paper, section 2.3)\n\
        All jobs go to the first scheduler that is up. It takes one task after the other, looks for nodes with \
        room for it now, and binds it to the one with the best score: least allocated, and evenly between CPU \
        and memory. A task for which there is no room is tried again later, and others may find some before \
        it. Nodes do not queue.";

    const VARIANTS: &'static [&'static str] = &[
        r#"{ retry_after = "1s" }"#,
        r#"{ retry = "tail", attempt = "20ms" }"#,
        r#"{ retry = "events", attempt = "0s" }"#,
    ];

    fn traits(&self) -> Traits<'_> {
        Traits { central_jobs: CentralJobs::All, ..Traits::default() }
    }

    fn check(&self, _: &Layout) -> Result<(), String> {
        check_period("retry_after", self.retry_after)?;
        // Tries for ever.
        if self.retry == Retry::Tail { check_period("attempt", self.attempt) } else { Ok(()) }
    }

    fn remarks(&self, layout: &Layout, _: usize) -> Vec<String> {
        let shared = layout.sharing().is_some();
        let remark =
            "scores nodes as if each task requested a core: it does not read the requests of shared nodes";
        shared.then(|| remark.to_owned()).into_iter().collect()
    }

    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        let pending = Pending::new(self.retry, self.retry_after, self.restamp);
        Box::new(KubernetesScheduler::new(self.attempt, pending, context.layout))
    }
}
