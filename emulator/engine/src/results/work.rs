//! The work of copies and interference on real cores: requested against achieved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CoreRow;

/// The real cores of a run, and their work.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RealWork {
    /// The kernel that copies ran: `hash`, `memory` or `cache`.
    pub kernel: String,
    /// The mechanism that slowed cores down: `threads`.
    pub degrade: String,
    /// The cores, by number.
    pub cores: Vec<RealCore>,
    /// Degraded stretches in which a core had work for at least three quarters of the time, grouped by similar slowdown
    /// and length.
    pub slots: Vec<Slots>,
    /// Achieved over requested core time of copies; 1 is exact.
    pub copies: Samples,
    /// Sum of the requested core times, in emulated seconds.
    pub asked_s: f64,
    /// Sum of the achieved core times, in emulated seconds.
    pub achieved_s: f64,
}

/// Measurements of real cores, in total and by interval.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Worked {
    /// Measurements of all cores together.
    pub work: RealWork,
    /// Stretches of every core from the start of the run, by core and time; at most [`MOST_STRETCHES`].
    pub stretches: Vec<CoreRow>,
    /// Whether further stretches were dropped.
    pub cut: bool,
}

/// Maximum number of stretches that a host keeps, divided equally among its cores: enough for forty minutes of two
/// healthy cores, or for four minutes with slots of 10 ms. They must fit into one report of a host.
pub const MOST_STRETCHES: usize = 50_000;

/// An emulated core on a CPU of its own.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RealCore {
    /// Number of the core in the cluster.
    pub core: u32,
    /// The host that ran it.
    pub host: String,
    /// The CPU of the host that it used.
    pub cpu: u32,
    /// Calibrated rounds of the kernel per second of CPU time; the unit of the work of copies.
    pub rounds_per_s: f64,
    /// Work done while the core was meant to be healthy, relative to an undisturbed CPU; 1 is exact.
    pub healthy: Samples,
}

/// Maximum slowdown reported, for a core that did almost no work.
pub const STILL: f64 = 1e6;

/// Similar degraded stretches: slowdowns differ by a fifth at most, lengths by a factor of two.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Slots {
    /// Mean requested slowdown.
    pub asked: f64,
    /// Achieved slowdown over all stretches; at most a million.
    pub achieved: f64,
    /// Mean length, in emulated seconds.
    pub length_s: f64,
    /// Work done in each stretch, relative to a healthy core: one over the slowdown.
    pub pace: Samples,
}

/// Number, mean and standard deviation of values.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Samples {
    /// Number of values.
    pub count: u64,
    /// Mean of the values; zero without values.
    pub mean: f64,
    /// Standard deviation of the values.
    pub std: f64,
}

impl Worked {
    /// Adds the measurements of other cores.
    pub fn merge(&mut self, other: &Self) {
        self.work.merge(&other.work);
        self.stretches.extend_from_slice(&other.stretches);
        // The stretches of one core are in order of time.
        self.stretches.sort_by_key(|stretch| stretch.core);
        self.cut |= other.cut;
    }
}

impl RealWork {
    /// Counts a stretch in which a core was to be degraded by `asked` for `length_s` emulated seconds, and did the
    /// share `pace` of the work of a healthy core.
    pub fn slot(&mut self, asked: f64, length_s: f64, pace: f64) {
        self.alike(&Slots { asked, achieved: (1.0 / pace).min(STILL), length_s, pace: Samples::one(pace) });
    }

    /// Counts a copy that was meant to occupy its core for `asked_s` and occupied it for `achieved_s` emulated seconds.
    pub fn copy(&mut self, asked_s: f64, achieved_s: f64) {
        if asked_s > 0.0 {
            self.copies.add(&Samples::one(achieved_s / asked_s));
            self.asked_s += asked_s;
            self.achieved_s += achieved_s;
        }
    }

    /// Adds the measurements of other cores.
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

    /// Number of degraded stretches, and the largest relative error of the mean of any class.
    pub fn degraded(&self) -> (u64, f64) {
        let off = self.slots.iter().map(|slots| slots.off().abs()).fold(0.0, f64::max);
        (self.slots.iter().map(|slots| slots.pace.count).sum(), off)
    }

    /// The largest relative error of a healthy core.
    pub fn unhealthy(&self) -> f64 {
        let known = self.cores.iter().filter(|core| core.healthy.count > 0);
        known.map(|core| (core.healthy.mean - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Whether every number is finite.
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

    /// Adds stretches to the class of similar stretches.
    fn alike(&mut self, more: &Slots) {
        let class = |slots: &Slots| (class(slots.asked, 4.0), class(slots.length_s, 1.0));
        match self.slots.binary_search_by_key(&class(more), class) {
            Ok(at) => self.slots[at].add(more),
            Err(at) => self.slots.insert(at, *more),
        }
    }
}

/// Class of a value, on a logarithmic scale with `per_octave` classes per factor of two.
fn class(value: f64, per_octave: f64) -> i64 {
    (per_octave * value.log2()).round() as i64
}

impl Slots {
    /// Relative excess of the achieved slowdown over the requested slowdown.
    pub fn off(&self) -> f64 {
        self.achieved / self.asked - 1.0
    }

    fn add(&mut self, more: &Self) {
        let share = more.pace.count as f64 / (self.pace.count + more.pace.count).max(1) as f64;
        self.asked += share * (more.asked - self.asked);
        self.length_s += share * (more.length_s - self.length_s);
        self.pace.add(&more.pace);
        // No work at all would give an infinite slowdown.
        self.achieved = (1.0 / self.pace.mean).min(STILL);
    }
}

impl Samples {
    /// A sample of one value.
    pub const fn one(value: f64) -> Self {
        Self { count: 1, mean: value, std: 0.0 }
    }

    /// Merges other samples: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm", 1979.
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
    fn samples_merge_to_the_same_values_in_any_order() {
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
    fn stretches_of_several_hosts_are_merged_in_the_order_of_cores() {
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
    fn similar_stretches_are_counted_in_one_class() {
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
    fn copies_are_compared_with_their_requested_core_time() {
        let mut work = RealWork::default();
        work.copy(0.1, 0.11);
        work.copy(0.3, 0.3);
        work.copy(0.0, 1.0);
        assert_eq!((work.copies.count, work.asked_s), (2, 0.4));
        assert!((work.copies.mean - 1.05).abs() < 1e-12 && (work.achieved_s - 0.41).abs() < 1e-12);
    }
}
