//! Parameters of Peacock.

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Peacock.
    struct Peacock {
        /// The published form that is run.
        form: PeacockForm = PeacockForm::Elastic,
        /// `elastic` form: period at which a worker passes on the probes it could not keep. The default of 1 s is that
        /// of the authors' code: a probe makes one hop in that time, which is far too slow for tasks of about a second.
        /// Set a small fraction of the mean task time.
        interval: Span = Span::from_secs(1),
        /// `threshold` form: time from its job's arrival for which a probe may wait before it stops moving. The
        /// latin-square paper does not publish the value it used; 1 s, its mean task, is a guess.
        threshold: Span = Span::from_secs(1),
        /// `threshold` form: the work that counts as a probe's wait.
        wait: PeacockWait = PeacockWait::Ahead,
    }

    /// The published forms of Peacock.
    enum PeacockForm {
        /// The authors': queues bounded by cluster-wide state, probes reordered, rotated at intervals.
        #[default]
        Elastic,
        /// The latin-square paper's simulator: shortest job first, one constant threshold, rotated at once.
        Threshold,
    }

    /// The work that a probe compares with the time for which it may still wait.
    enum PeacockWait {
        /// The work served before it: the rest of the running task and the probes ahead.
        #[default]
        Ahead,
        /// As in the latin-square authors' simulator (kcexn/simulation on GitHub): also its own task, but not a running
        /// task with a longer estimate, so that short probes never move on behind a long task.
        NoLonger,
    }
}
