//! What copies and interference came to on real cores, where a run has some: asked against achieved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CoreRow;

/// The real cores of a run, and what they did.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RealWork {
    /// What copies did with their cores: `hash`, `memory` or `cache`.
    pub kernel: String,
    /// What slowed cores down: `threads`.
    pub degrade: String,
    /// The cores, by number.
    pub cores: Vec<RealCore>,
    /// Degraded stretches in which a core had work for three quarters of the time, those of about one slowdown and
    /// length together.
    pub slots: Vec<Slots>,
    /// Time that copies kept their cores, over the time they were to for what they did: 1 is as asked.
    pub copies: Samples,
    /// Time they were to keep them, all together, in emulated seconds.
    pub asked_s: f64,
    /// Time they kept them.
    pub achieved_s: f64,
}

/// What is measured of real cores, in sum and stretch by stretch.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Worked {
    /// In sum.
    pub work: RealWork,
    /// Stretches of every core from the run's start, by core and time; [so many](MOST_STRETCHES) at most.
    pub stretches: Vec<CoreRow>,
    /// Whether there were more of them.
    pub cut: bool,
}

/// Stretches that a host keeps of all its cores, each an equal part: two cores' forty minutes of health, or four of
/// slots of 10 ms. They must fit into what a host may say at once.
pub const MOST_STRETCHES: usize = 50_000;

/// An emulated core on a CPU of its own.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RealCore {
    /// Which core of the cluster.
    pub core: u32,
    /// The host it was on.
    pub host: String,
    /// The CPU it had there.
    pub cpu: u32,
    /// Rounds of the kernel that it does per second of its CPU's time, as calibrated: copies are measured by it.
    pub rounds_per_s: f64,
    /// Work it did while it was to be healthy, over what that CPU does when it is left alone: 1 is as asked.
    pub healthy: Samples,
}

/// The slowdown that is said of a core that did next to nothing.
pub const STILL: f64 = 1e6;

/// Degraded stretches that are alike: slowdowns differ by a fifth at most, lengths by a factor of two.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Slots {
    /// The slowdown that was asked, in the mean.
    pub asked: f64,
    /// The slowdown that was achieved, in all of them together; a million at most.
    pub achieved: f64,
    /// How long they were, in the mean, in emulated seconds.
    pub length_s: f64,
    /// Work that was done in each, over what a healthy core would have done: one over the slowdown.
    pub pace: Samples,
}

/// How many there were, their mean, and by how much they differ.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// Mean; zero if there is none.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
}

impl Worked {
    /// Adds what other cores did.
    pub fn merge(&mut self, other: &Self) {
        self.work.merge(&other.work);
        self.stretches.extend_from_slice(&other.stretches);
        // Those of a core come in order.
        self.stretches.sort_by_key(|stretch| stretch.core);
        self.cut |= other.cut;
    }
}

impl RealWork {
    /// Counts a stretch of a core that was to be degraded by `asked` for `length_s` emulated seconds, and in which it
    /// did so much of what a healthy one would have done.
    pub fn slot(&mut self, asked: f64, length_s: f64, pace: f64) {
        self.alike(&Slots { asked, achieved: (1.0 / pace).min(STILL), length_s, pace: Samples::one(pace) });
    }

    /// Counts a copy that was to keep its core for `asked_s` and kept it for `achieved_s` emulated seconds.
    pub fn copy(&mut self, asked_s: f64, achieved_s: f64) {
        if asked_s > 0.0 {
            self.copies.add(&Samples::one(achieved_s / asked_s));
            self.asked_s += asked_s;
            self.achieved_s += achieved_s;
        }
    }

    /// Adds what other cores did.
    pub fn merge(&mut self, other: &Self) {
        let Self { kernel, degrade, cores, slots, copies, asked_s, achieved_s } = other;
        (self.kernel, self.degrade) = (kernel.clone(), degrade.clone());
        self.cores.extend_from_slice(cores);
        self.cores.sort_by_key(|core| core.core);
        slots.iter().for_each(|slots| self.alike(slots));
        self.copies.add(copies);
        self.asked_s += asked_s;
        self.achieved_s += achieved_s;
    }

    /// All degraded stretches, and the largest share by which the mean of some that are alike is off.
    #[must_use]
    pub fn degraded(&self) -> (u64, f64) {
        let off = self.slots.iter().map(|slots| slots.off().abs()).fold(0.0, f64::max);
        (self.slots.iter().map(|slots| slots.pace.count).sum(), off)
    }

    /// The largest share by which a healthy core is off.
    #[must_use]
    pub fn unhealthy(&self) -> f64 {
        let known = self.cores.iter().filter(|core| core.healthy.count > 0);
        known.map(|core| (core.healthy.mean - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Whether every number is one.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        let samples = |samples: &Samples| samples.mean.is_finite() && samples.std.is_finite();
        let cores = self.cores.iter().all(|core| core.rounds_per_s.is_finite() && samples(&core.healthy));
        let slot = |slots: &Slots| {
            let sizes = [slots.asked, slots.achieved, slots.length_s]
                .iter()
                .all(|size| size.is_finite() && *size > 0.0);
            sizes && samples(&slots.pace)
        };
        let times = self.asked_s.is_finite() && self.achieved_s.is_finite();
        cores && times && samples(&self.copies) && self.slots.iter().all(slot)
    }

    /// Adds stretches to those that are alike.
    fn alike(&mut self, more: &Slots) {
        let class = |slots: &Slots| (class(slots.asked, 4.0), class(slots.length_s, 1.0));
        match self.slots.binary_search_by_key(&class(more), class) {
            Ok(at) => self.slots[at].add(more),
            Err(at) => self.slots.insert(at, *more),
        }
    }
}

/// Equal for values that are about the same: so many classes there are to an octave.
fn class(value: f64, per_octave: f64) -> i64 {
    (per_octave * value.log2()).round() as i64
}

impl Slots {
    /// By which share more slowdown was achieved than asked.
    #[must_use]
    pub fn off(&self) -> f64 {
        self.achieved / self.asked - 1.0
    }

    fn add(&mut self, more: &Self) {
        let share = more.pace.count as f64 / (self.pace.count + more.pace.count).max(1) as f64;
        self.asked += share * (more.asked - self.asked);
        self.length_s += share * (more.length_s - self.length_s);
        self.pace.add(&more.pace);
        // Nothing done at all is no number.
        self.achieved = (1.0 / self.pace.mean).min(STILL);
    }
}

impl Samples {
    /// One value.
    #[must_use]
    pub const fn one(value: f64) -> Self {
        Self { count: 1, mean: value, std: 0.0 }
    }

    /// Adds others: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm", 1979.
    pub fn add(&mut self, other: &Self) {
        let (n, m) = (self.count as f64, other.count as f64);
        if n + m == 0.0 {
            return;
        }
        let square = |samples: &Self| samples.std.powi(2) * (samples.count as f64 - 1.0).max(0.0);
        let apart = other.mean - self.mean;
        let all = square(self) + square(other) + apart.powi(2) * n * m / (n + m);
        self.count += other.count;
        self.mean += apart * m / (n + m);
        self.std = if n + m > 1.0 { (all / (n + m - 1.0)).sqrt() } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_add_up_in_any_order() {
        let values = [1.9, 2.1, 2.0, 2.4, 1.7];
        let mut all = Samples::default();
        values.iter().for_each(|value| all.add(&Samples::one(*value)));
        let (mut first, mut rest) = (Samples::default(), Samples::default());
        values[..2].iter().for_each(|value| first.add(&Samples::one(*value)));
        values[2..].iter().for_each(|value| rest.add(&Samples::one(*value)));
        rest.add(&first);
        // By hand: mean 2.02, squares 0.0144 + 0.0064 + 0.0004 + 0.1444 + 0.1024 = 0.268.
        for samples in [all, rest] {
            assert_eq!(samples.count, 5);
            assert!((samples.mean - 2.02).abs() < 1e-12 && (samples.std - 0.067_f64.sqrt()).abs() < 1e-12);
        }
        all.add(&Samples::default());
        assert_eq!(all.count, 5);
    }

    #[test]
    fn hosts_add_up_core_by_core() {
        let of = |cores: [u32; 2], cut| {
            let stretch = |core, start| CoreRow { core, start, end: 9.0, asked: 1.0, had: 1.0, done: 1.0 };
            let stretches =
                cores.into_iter().flat_map(|core| [stretch(core, 0.5), stretch(core, 0.7)]).collect();
            Worked { stretches, cut, ..Worked::default() }
        };
        let mut all = of([2, 5], false);
        all.merge(&of([1, 3], true));
        let order: Vec<_> = all.stretches.iter().map(|row| (row.core, row.start)).collect();
        let due = [(1, 0.5), (1, 0.7), (2, 0.5), (2, 0.7), (3, 0.5), (3, 0.7), (5, 0.5), (5, 0.7)];
        assert!(order == due && all.cut, "{order:?}");
    }

    #[test]
    fn stretches_that_are_alike_are_counted_together() {
        let mut work = RealWork::default();
        for (asked, length, pace) in [
            (2.0, 0.02, 0.4),
            (1.5, 0.01, 2.0 / 3.0),
            (2.0, 0.01, 0.5),
            (2.01, 0.0101, 0.5),
            (4.0, 0.01, 0.25),
        ] {
            work.slot(asked, length, pace);
        }
        let mut sum = RealWork::default();
        sum.merge(&work);
        sum.merge(&work);
        let rows: Vec<_> = sum.slots.iter().map(|s| (s.pace.count, s.asked)).collect();
        assert_eq!(rows, [(2, 1.5), (4, 2.005), (2, 2.0), (2, 4.0)]);
        let (count, off) = sum.degraded();
        assert!(count == 10 && (off - 0.25).abs() < 1e-9, "{off}");
        sum.slot(8.0, 0.01, 0.0);
        assert!(sum.is_finite(), "a core that does nothing at all");
        sum.slot(f64::NAN, 1.0, 1.0);
        assert!(!sum.is_finite());
    }

    #[test]
    fn copies_are_compared_with_what_they_were_to_take() {
        let mut work = RealWork::default();
        work.copy(0.1, 0.11);
        work.copy(0.3, 0.3);
        work.copy(0.0, 1.0);
        assert_eq!((work.copies.count, work.asked_s), (2, 0.4));
        assert!((work.copies.mean - 1.05).abs() < 1e-12 && (work.achieved_s - 0.41).abs() < 1e-12);
    }
}
