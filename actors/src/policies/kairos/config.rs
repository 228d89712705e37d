//! Parameters of Kairos.

use crate::base::{Span, parameters};
use crate::roles::las::{AttainedMeasure, LasGuard, LasOptions};

parameters! {
    /// Parameters of Kairos.
    struct Kairos {
        /// W: time for which a core runs a copy before it compares it with the suspended ones (section 3.2). The test
        /// bed has 50 s, the simulations 100 s (Yahoo) and 10,000 s (Google).
        quantum: Span = Span::from_secs(50),
        /// Q: number of copies that a node takes beyond its number of cores N (section 3.3). The test bed has 4, the
        /// simulations 2.
        queue: u32 = 4,
        /// Δ: period at which the central scheduler deals tasks and nodes with copies report their attained service.
        /// The paper gives none; YARN's heartbeats come every second.
        interval: Span = Span::from_secs(1),
        /// Times at which the central scheduler deals tasks, and the number that a node gets at once.
        pass: KairosPass = KairosPass::One,
        /// Choice among the nodes with the fewest copies for the next task (sections 3.3.3 and 5.3.2).
        pick: KairosPick = KairosPick::Var,
        /// Minimum lead in attained service with which a suspended copy takes the core at the end of a quantum; zero:
        /// any positive lead (algorithm 1 also accepts a tie). The authors' YARN code has half a quantum.
        hysteresis: Span = Span::ZERO,
        /// Protection of copies from waiting for ever behind newer ones.
        guard: LasGuard = LasGuard::Promote,
        /// Quanta passed over (`promote`) or suspensions (`running`) before the guard protects a copy (section 6.2: 3).
        missed: u32 = 3 => 1..=1000000,
        /// Quanta for which the guard protects it (section 3.2: a multiple of W).
        stretch: f64 = 1.0 => 1.0..=1000000.0,
        /// Measure of attained service: time on cores, which a node can measure, or work done, which the emulated cores
        /// report. They differ where cores are degraded or of unequal speed. The paper has time.
        attained: AttainedMeasure = AttainedMeasure::Time,
        /// Nodes report only after a task came or ended, for clusters in which a report of every node in every
        /// interval costs too much. What their copies have attained is then known as of the last of these events.
        silent: bool = false,
    }

    /// Times at which tasks are dealt, always to the nodes with the fewest copies first.
    enum KairosPass {
        /// At multiples of `interval`, at most one task to each node (algorithm 2; the authors' YARN does the same).
        #[default]
        One,
        /// At multiples of `interval`, until no task waits or all nodes are full.
        Levels,
        /// As `levels`, but as soon as the scheduler learns that a task ended or a job arrived.
        Eager,
    }

    /// The tie-break among nodes with equally many copies, relative to their cores.
    enum KairosPick {
        /// The least variance of the attained service of a node's copies, as last reported; copies dealt since count as
        /// zero.
        #[default]
        Var,
        /// The least total attained service of a node's copies, as last reported.
        Sum,
        /// A random choice.
        Random,
    }
}

impl Kairos {
    pub(super) const fn las(&self) -> LasOptions {
        LasOptions {
            quantum: self.quantum,
            hysteresis: self.hysteresis,
            guard: self.guard,
            missed: self.missed,
            stretch: self.stretch,
            attained: self.attained,
        }
    }
}
