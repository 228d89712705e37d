//! Parameters of Peacock.

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Peacock.
    struct Peacock {
        /// Published form of the policy.
        form: PeacockForm = PeacockForm::Elastic,
        /// `elastic` form: period at which a worker passes on the probes that it could not keep. The default of 1 s is
        /// that of the authors' code. A probe makes one hop in that time, which is far too slow for tasks of about a
        /// second. Set a small fraction of the mean task time.
        interval: Span = Span::from_secs(1) => period,
        /// `threshold` form: time from its job's arrival for which a probe may wait before it stops moving. The
        /// latin-square paper does not publish its value; 1 s, its mean task time, is a guess.
        threshold: Span = Span::from_secs(1),
        /// `threshold` form: the work that counts as a probe's wait.
        wait: PeacockWait = PeacockWait::Ahead,
    }

    /// The published forms of Peacock.
    enum PeacockForm {
        /// The authors' form: queues bounded by cluster-wide state; probes are reordered, and rotated at intervals.
        #[default]
        Elastic,
        /// The form of the latin-square paper's simulator: shortest job first, one constant threshold, probes rotated
        /// at once.
        Threshold,
    }

    /// The work that a probe compares with the time for which it may still wait.
    enum PeacockWait {
        /// The work served before the probe: the rest of the running task and the probes ahead.
        #[default]
        Ahead,
        /// As in the latin-square authors' simulator (kcexn/simulation on GitHub): also the probe's own task, but not a
        /// running task with a longer estimate, so short probes never move on behind a long task.
        NoLonger,
    }
}
