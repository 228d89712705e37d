//! The stored form of one run: its summary, and the data that its charts need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use volary_engine::results::{CacheRow, CopyEnd, CopyRow, JobRow, MOST_BURSTS, Measured, RunLine, Summary};

use super::run_rows::RunRows;
use crate::storage::activity::Activity;

/// Limit on the points of a stored distribution.
pub const SKETCH_POINTS: usize = 2_000;

/// Limit on the copies of a stored timeline. A longer timeline is cut at the end and marked as cut.
pub const TIMELINE_ROWS: usize = 10_000;

/// The stored form of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id of the run: the hash of everything its result depends on.
    #[serde(rename = "run")]
    pub id: String,
    /// Offered load of the run's cell, if it is known.
    pub load: Option<f64>,
    pub summary: Summary,
    /// Response times of finished jobs, s.
    pub response: Sketch,
    /// Slowdowns of finished jobs: response time over the work of the longest task, or over the response time alone in
    /// the cluster if the workload states it.
    pub slowdown: Sketch,
    /// Response times of finished jobs of each class, by label; empty if there is one class.
    pub classes: BTreeMap<String, Sketch>,
    /// Copies on the first few cores, in order of core and start.
    pub timeline: Vec<Slice>,
    /// Degraded intervals of the timeline's cores: (core, start s, end s, slowdown factor).
    pub bursts: Vec<(u32, f64, f64, f64)>,
    /// Messages of the nodes of the timeline's cores, and the load of the cluster.
    pub activity: Activity,
    /// Whether copies or intervals were left out to limit the size of the record.
    pub cut: bool,
    /// One job in this many is sampled into `tasks.parquet`.
    pub sampled_one_in: u32,
    /// Samples of schedulers' caches, each averaged over schedulers.
    #[serde(rename = "staleness")]
    pub looks: Vec<Look>,
    /// Times from the creation of an update until a member had it, s.
    #[serde(default)]
    pub deliveries: Sketch,
    pub notes: Vec<String>,
    /// The rows of the run's tables, which stay in the file.
    #[serde(skip)]
    pub rows: RunRows,
}

impl RunRecord {
    /// Extracts the data for charts from `measured`.
    pub fn new(id: &str, measured: &Measured) -> Self {
        let counted = || measured.jobs.iter().filter(|job| measured.summary.measures(job.job));
        let finished = || counted().filter(|job| job.response.is_finite());
        let slowdown = counted().filter_map(JobRow::slowdown);
        let of_class = |label: &String| {
            let responses = finished().filter(|job| *job.class == **label).map(|job| job.response);
            (label.clone(), Sketch::new(responses.collect()))
        };
        let mut timeline: Vec<Slice> = measured.timeline.iter().copied().map(Slice).collect();
        timeline.sort_by(|a, b| a.0.start.total_cmp(&b.0.start));
        let mut bursts = measured.bursts.clone();
        bursts.sort_by(|a, b| a.1.total_cmp(&b.1));
        let cut = timeline.len() > TIMELINE_ROWS || bursts.len() > MOST_BURSTS;
        timeline.truncate(TIMELINE_ROWS);
        bursts.truncate(MOST_BURSTS);
        timeline.sort_by(|a, b| (a.0.core).cmp(&b.0.core).then(a.0.start.total_cmp(&b.0.start)));
        bursts.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Self {
            id: id.to_owned(),
            load: None,
            summary: measured.summary.clone(),
            response: Sketch::new(finished().map(|job| job.response).collect()),
            slowdown: Sketch::new(slowdown.collect()),
            classes: measured.summary.classes.keys().map(of_class).collect(),
            timeline,
            bursts,
            activity: Activity::of(measured),
            cut,
            sampled_one_in: measured.sampled_one_in,
            looks: looks(&measured.looks),
            deliveries: Sketch::of_counts(&measured.deliveries),
            notes: measured.notes.clone(),
            rows: RunRows::default(),
        }
    }

    /// Start of the first copy or interval that was left out, s.
    pub fn cut_at(&self) -> Option<f64> {
        let latest = |starts: &mut dyn Iterator<Item = f64>| starts.fold(0.0, f64::max);
        let rows = (self.timeline.len() >= TIMELINE_ROWS)
            .then(|| latest(&mut self.timeline.iter().map(|slice| slice.0.start)));
        let bursts =
            (self.bursts.len() >= MOST_BURSTS).then(|| latest(&mut self.bursts.iter().map(|burst| burst.1)));
        self.cut.then(|| rows.into_iter().chain(bursts).reduce(f64::min)).flatten()
    }

    /// Drops the timeline. It takes most of the memory, and only charts of single runs use it.
    pub(super) fn drop_timeline(&mut self) {
        (self.timeline, self.bursts, self.activity) = (Vec::new(), Vec::new(), Activity::default());
    }

    /// Whether copies of the run burned real cores.
    pub fn has_burnt(&self) -> bool {
        self.summary.fidelity.as_ref().is_some_and(|certificate| certificate.cores.is_some())
    }

    /// The line of the run in `summary.jsonl`.
    pub fn line(&self) -> RunLine<'_> {
        let Self { id, sampled_one_in, load, summary, .. } = self;
        RunLine { run: id, sampled_one_in: *sampled_one_in, load: *load, summary }
    }
}

/// The part of a record that a line of `summary.jsonl` contains.
#[derive(Clone, Debug, Deserialize)]
pub struct RunHead {
    /// Id of the run.
    #[serde(rename = "run")]
    pub id: String,
    pub(super) sampled_one_in: u32,
    pub(super) load: Option<f64>,
    pub summary: Summary,
}

impl RunHead {
    /// The line of the run in `summary.jsonl`.
    pub(super) fn line(&self) -> RunLine<'_> {
        let Self { id, sampled_one_in, load, summary } = self;
        RunLine { run: id, sampled_one_in: *sampled_one_in, load: *load, summary }
    }
}

/// A sample of the receivers' caches, serialized as a short JSON array in this order. A measure that the policy does
/// not have is NaN, and null in JSON.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "[Option<f64>; 6]", into = "[Option<f64>; 6]")]
pub struct Look {
    /// Time of the sample, s.
    pub time: f64,
    /// Mean age of synchronisation, s.
    pub age: f64,
    /// Mean size of the error, s of work.
    pub error: f64,
    /// Number of updates that a receiver lacks.
    pub in_flight: f64,
    /// Mean version age.
    pub versions: f64,
    /// Mean age of information, s.
    pub information: f64,
}

impl From<[Option<f64>; 6]> for Look {
    fn from(numbers: [Option<f64>; 6]) -> Self {
        let [time, age, error, in_flight, versions, information] =
            numbers.map(|number| number.unwrap_or(f64::NAN));
        Self { time, age, error, in_flight, versions, information }
    }
}

impl From<Look> for [Option<f64>; 6] {
    fn from(look: Look) -> Self {
        [look.time, look.age, look.error, look.in_flight, look.versions, look.information]
            .map(|number| Some(number).filter(|n| n.is_finite()))
    }
}

/// The means over the receivers that were sampled at the same time.
pub fn looks(rows: &[CacheRow]) -> Vec<Look> {
    let at_once = rows.chunk_by(|a, b| a.time == b.time);
    let mean =
        |looks: &[CacheRow], of: fn(&CacheRow) -> f64| looks.iter().map(of).sum::<f64>() / looks.len() as f64;
    let informed = |looks: &[CacheRow]| {
        let ages = || looks.iter().map(|look| look.information).filter(|age| age.is_finite());
        ages().sum::<f64>() / ages().count() as f64
    };
    let look = |looks: &[CacheRow]| Look {
        time: looks[0].time,
        age: mean(looks, |look| look.age),
        error: mean(looks, |look| look.error),
        in_flight: mean(looks, |look| look.in_flight as f64),
        versions: mean(looks, |look| look.versions),
        information: informed(looks),
    };
    at_once.map(look).collect()
}

/// A distribution, represented by at most [`SKETCH_POINTS`] of its order statistics.
///
/// A small sample is kept whole. Otherwise half of the kept ranks are evenly spaced, and half become denser towards the
/// maximum, where schedulers differ. Kept values are exact, not averaged.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sketch {
    /// Number of values represented.
    pub count: u64,
    /// Zero-based ranks that were kept, ascending.
    pub rank: Vec<u64>,
    /// The values at these ranks.
    pub value: Vec<f64>,
}

impl Sketch {
    /// The sketch of values in any order; they must not be NaN.
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let rank = ranks(values.len());
        let value = rank.iter().map(|&rank| values[rank as usize]).collect();
        Self { count: values.len() as u64, rank, value }
    }

    /// The sketch of values in ascending order, each given with the number of its occurrences.
    pub fn of_counts(counts: &[(f64, u64)]) -> Self {
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let (rank, mut values, mut above) = (ranks(count as usize), counts.iter(), 0);
        let mut last = 0.0;
        let value = rank.iter().map(|&rank| {
            while above <= rank
                && let Some((value, count)) = values.next()
            {
                (last, above) = (*value, above + count);
            }
            last
        });
        let value = value.collect();
        Self { count, rank, value }
    }

    /// The sketch reduced to about `most` evenly spaced points and the last point.
    pub fn thinned(&self, most: usize) -> Self {
        let step = self.rank.len().div_ceil(most.max(1)).max(1);
        let last = self.rank.len().saturating_sub(1);
        let kept = (0..self.rank.len()).filter(|at| at % step == 0 || *at == last);
        let (rank, value) = kept.map(|at| (self.rank[at], self.value[at])).unzip();
        Self { count: self.count, rank, value }
    }

    /// The quantile at `p`, interpolated between kept ranks; `None` if empty.
    ///
    /// The result is exact (linear interpolation between order statistics) if neighbouring ranks were kept.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let (&first, &last) = (self.value.first()?, self.value.last()?);
        let at = p.clamp(0.0, 1.0) * self.count.saturating_sub(1) as f64;
        let upper = self.rank.partition_point(|&rank| (rank as f64) < at);
        if upper == 0 {
            return Some(first);
        }
        if upper == self.rank.len() {
            return Some(last);
        }
        let (low, high) = (self.rank[upper - 1] as f64, self.rank[upper] as f64);
        let share = (at - low) / (high - low);
        Some(self.value[upper - 1] + share * (self.value[upper] - self.value[upper - 1]))
    }
}

/// The ranks that are kept of `count` sorted values.
fn ranks(count: usize) -> Vec<u64> {
    if count <= SKETCH_POINTS {
        return (0..count as u64).collect();
    }
    let last = (count - 1) as f64;
    let half = SKETCH_POINTS / 2;
    let even = (0..half).map(|i| last * i as f64 / (half - 1) as f64);
    // Distance from the maximum grows from 1 to `last` by a constant factor.
    let crowded = (0..half).map(|i| last - last.powf(i as f64 / (half - 1) as f64));
    let mut ranks: Vec<u64> = even.chain(crowded).map(|rank| rank.round().max(0.0) as u64).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// A copy, serialized as a short JSON array: job, task, attempt, core, start s, end s, kind of end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Tuple", into = "Tuple")]
pub struct Slice(pub CopyRow);

type Tuple = (u32, u32, u32, u32, f64, f64, CopyEnd);

impl From<Tuple> for Slice {
    fn from((job, task, attempt, core, start, end, end_kind): Tuple) -> Self {
        Self(CopyRow { job, task, attempt, core, start, end, end_kind })
    }
}

impl From<Slice> for Tuple {
    fn from(Slice(row): Slice) -> Self {
        (row.job, row.task, row.attempt, row.core, row.start, row.end, row.end_kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::{Draws, measured};
    use volary_engine::results::percentile;

    #[test]
    fn a_sketch_of_few_values_has_exact_quantiles() {
        let sketch = Sketch::new(vec![4.0, 1.0, 3.0, 2.0]);
        for (p, expected) in [(0.0, 1.0), (0.5, 2.5), (0.9, 3.7), (1.0, 4.0)] {
            assert!((sketch.quantile(p).unwrap() - expected).abs() < 1e-12, "{p}");
        }
        assert_eq!(Sketch::new(Vec::new()).quantile(0.5), None);
        let counted = Sketch::of_counts(&[(1.0, 2), (2.0, 1), (5.0, 3)]);
        assert_eq!(counted, Sketch::new(vec![1.0, 1.0, 2.0, 5.0, 5.0, 5.0]));
        assert_eq!(Sketch::of_counts(&[]), Sketch::default());
        assert_eq!(Sketch::new(vec![7.0]).quantile(0.99), Some(7.0));
    }

    #[test]
    fn a_sketch_of_many_values_keeps_the_tail_exact() {
        let mut draws = Draws::new(5);
        let mut values: Vec<f64> = (0..200_000).map(|_| -(1.0 - draws.next()).ln()).collect();
        let sketch = Sketch::new(values.clone());
        values.sort_by(f64::total_cmp);
        assert!(sketch.rank.len() <= SKETCH_POINTS && sketch.count == 200_000);
        assert_eq!(sketch.quantile(1.0), values.last().copied());
        for p in [0.01, 0.5, 0.9, 0.99, 0.999, 0.999_9] {
            let (kept, exact) = (sketch.quantile(p).unwrap(), percentile(&values, p));
            assert!((kept - exact).abs() < 0.005 * exact, "{p}: {kept} for {exact}");
        }
        let last: Vec<u64> = sketch.rank.iter().rev().take(20).copied().collect();
        assert_eq!(
            last,
            (0..20).map(|i| 199_999 - i).collect::<Vec<u64>>(),
            "all of the slowest jobs are kept"
        );
    }

    #[test]
    fn a_record_is_equal_after_a_round_trip_through_json() {
        let mut measured = measured("a", &[], 3, 1.0, 3_000);
        measured.jobs[5].response = f64::NAN;
        measured.summary.times.wait_s.p99 = f64::NAN;
        let mut record = RunRecord::new("id", &measured);
        record.looks[0].error = f64::NAN;
        assert_eq!(record.response.count, 2_999, "an unfinished job has no response time");
        let json = serde_json::to_string(&record).unwrap();
        let mut back: RunRecord = serde_json::from_str(&json).unwrap();
        assert!(back.summary.times.wait_s.p99.is_nan(), "an unmeasured value stays NaN");
        assert!(back.looks[0].error.is_nan(), "a missing measure stays NaN");
        for record in [&mut back, &mut record] {
            (record.summary.times.wait_s.p99, record.looks[0].error) = (0.0, 0.0);
        }
        assert_eq!(back, record);
    }

    #[test]
    fn long_timelines_keep_their_beginning_on_every_core() {
        let mut measured = measured("a", &[], 3, 1.0, 10);
        let slice = |core: u32, start: f64| CopyRow { core, start, end: start + 1.0, ..measured.timeline[0] };
        measured.timeline = (0..4)
            .flat_map(|core| (0..10_000).map(move |i| (core, f64::from(i))))
            .map(|(c, s)| slice(c, s))
            .collect();
        let record = RunRecord::new("id", &measured);
        assert!(record.cut && record.timeline.len() == TIMELINE_ROWS);
        let of_core = |core| record.timeline.iter().filter(|slice| slice.0.core == core).count();
        assert_eq!((of_core(0), of_core(3)), (2_500, 2_500));
        assert_eq!(record.cut_at(), Some(2_499.0));
        measured.timeline.truncate(5);
        assert_eq!(RunRecord::new("id", &measured).cut_at(), None);
    }
}
