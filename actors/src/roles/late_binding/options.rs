//! Options of a scheduler that binds late.

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Sparrow.
    #[schemars(rename = "Sparrow")]
    struct ProbeOptions {
        /// Reservations (or samples) per task, d. The papers use 2; the authors' daemon defaults to 1.05.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// Least number of reservations of a job. The paper has none; the simulators of Eagle and Murmuration use 20.
        min_probes: u32 = 0 => 0..=65536,
        /// Whether a node can be drawn more than once for a job, as the simulators of Eagle and Murmuration do.
        replacement: bool = false,
        /// Sampling of nodes.
        form: SamplingForm = SamplingForm::Batch,
        /// Tasks and servers of a group in the `pairs` form.
        #[schemars(range(min = 1))]
        group: u32 = 2,
        /// Cancel reservations at the nodes once the last task is launched.
        cancellation: bool = true,
        /// First wait before a reservation or sample that may have been lost is sent again; doubles each time.
        /// Armed only where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1),
    }

    /// Sampling of nodes.
    enum SamplingForm {
        /// d·f reservations on distinct nodes for the f tasks of a job, bound late (batch sampling).
        #[default]
        Batch,
        /// Groups of `group` tasks, each on as many random servers with d reservations apiece, bound late: the
        /// latin-square paper's simulator.
        Pairs,
        /// d samples for each task; it is bound at once to the shorter queue (power of d choices).
        PerTask,
    }
}

impl ProbeOptions {
    /// Number of reservations for a job of `tasks` tasks.
    pub fn reserved_for(&self, tasks: u32) -> u64 {
        ((f64::from(tasks) * self.probe_ratio).ceil() as u64).max(self.min_probes.into())
    }
}
