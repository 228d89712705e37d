//! Parameters of Sparrow, which other policies that bind late share.

use crate::base::{Span, parameters};

parameters! {
    /// Parameters of Sparrow.
    #[schemars(rename = "Sparrow")]
    struct ProbeOptions {
        /// Reservations (or samples) per task, d. The papers use 2; the authors' daemon defaults to 1.05.
        probe_ratio: f64 = 2.0 => 1.0..=1000.0,
        /// Least number of reservations of a job. The paper has none; the simulators of Eagle and Murmuration use 20.
        min_probes: u32 = 0 => 0..=65536,
        /// Whether a node can be sampled more than once for a job, as in the simulators of Eagle and Murmuration.
        replacement: bool = false,
        /// Sampling of nodes.
        form: SamplingForm = SamplingForm::Batch,
        /// Number of tasks, and of servers, of a group in the `pairs` form.
        #[schemars(range(min = 1))]
        group: u32 = 2,
        /// Whether the remaining reservations of a job are cancelled at the nodes once its last task is launched.
        cancellation: bool = true,
        /// First wait before a reservation or sample that may have been lost is sent again; the wait doubles each time.
        /// It is used only where the network can lose datagrams.
        probe_timeout: Span = Span::from_secs(1) => period,
    }

    /// Sampling of nodes.
    enum SamplingForm {
        /// d·f reservations on distinct nodes for the f tasks of a job, bound late (batch sampling).
        #[default]
        Batch,
        /// Groups of `group` tasks, bound late. Each group has `group` random servers, with d reservations on each, as
        /// in the latin-square paper's simulator.
        Pairs,
        /// d samples for each task, which is bound at once to the shortest queue (power of d choices).
        PerTask,
    }
}

impl ProbeOptions {
    /// d·m: the number of reservations for `tasks` tasks.
    pub fn places(&self, tasks: u32) -> usize {
        (f64::from(tasks) * self.probe_ratio).ceil() as usize
    }

    /// Number of reservations for a job of `tasks` tasks.
    pub fn reserved_for(&self, tasks: u32) -> u64 {
        (self.places(tasks) as u64).max(self.min_probes.into())
    }
}
