//! Options of the recorder: the data kept beyond the summary.

use volary_actors::base::Span;

use crate::scenario::quiet::SHORTEST;
use crate::workload::{MeasuredPart, Window};

/// The data recorded beyond the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Approximate number of executions to sample over the whole run.
    pub copies: u32,
    /// If set, one job in this many is sampled instead; 0 for no samples.
    pub one_in: Option<u32>,
    /// Number of cores plotted on the timeline.
    pub timeline_cores: u32,
    /// Length of the timeline from the start of the run.
    pub timeline: Span,
    /// Maximum number of executions kept for the timeline.
    pub timeline_copies: u32,
    /// Maximum number of messages kept for the timeline; 0 for no messages.
    pub timeline_messages: u32,
    /// Interval between observations of caches; zero for no observations.
    pub cache_interval: Span,
    /// A job is unqueued if it takes at most this much longer than its longest task; `None` if not measured.
    pub unqueued: Option<Span>,
    /// Lower bound of run times in bounded slowdowns.
    pub slowdown_bound: Span,
    /// Number of nodes that caches cover, from node 0 on; all if `None`.
    pub cached_nodes: Option<u32>,
    /// Whether entries of caches are snapshots of nodes.
    pub snapshots: bool,
    /// The measured window of a run with jobs; `None` for the window of its world.
    pub window: Option<Window>,
    /// The measured part of a run without jobs, in which updates spread.
    pub gossip: Option<MeasuredPart>,
    /// The time without a copy after which the run is given up, once all jobs have arrived and all faults have healed.
    pub quiet: Span,
}

impl Recording {
    /// The usual lower bound of run times in bounded slowdowns (Feitelson, Metrics for parallel job scheduling and
    /// their convergence, JSSPP 2001).
    pub const SLOWDOWN_BOUND: Span = Span::from_secs(10);

    /// The measured window.
    pub fn measured(&self) -> Window {
        self.window.unwrap_or(Window::WHOLE)
    }

    /// Whether caches are observed.
    pub fn observes_caches(&self) -> bool {
        self.cache_interval > Span::ZERO
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            copies: 5_000,
            one_in: None,
            timeline_cores: 64,
            timeline: Span::from_secs(10),
            timeline_copies: 20_000,
            timeline_messages: 2_000,
            cache_interval: Span::from_secs(1),
            unqueued: None,
            slowdown_bound: Self::SLOWDOWN_BOUND,
            cached_nodes: None,
            snapshots: false,
            window: None,
            gossip: None,
            quiet: SHORTEST,
        }
    }
}
/// The time limit of a run, and the extent of its recording.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RunConfig {
    /// Emulated time at which the run ends, finished or not.
    pub until: Option<Span>,
    /// The data kept beyond the summary.
    pub recording: Recording,
}
