//! Use of shared nodes: the section on use and requests of tasks, its checks, and the draws of a run.
//!
//! A name has a mean CPU, a mean memory, and factors between these means and the requests of its user. A job without a
//! name has means and factors of its own. The use of a task changes from segment to segment around the means of its
//! job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Amount;
use volary_actors::base::{Address, DistributionSpec, JobId, Purpose, Span, TaskId};
use volary_actors::catalog::Usage;

use super::trace::WorkloadError;

/// Ids that narrow the address of a name to single draws.
const CPU: u64 = 0;
const MEMORY: u64 = 1;
const CPU_REQUEST: u64 = 2;
const MEMORY_REQUEST: u64 = 3;
/// Ids that narrow the address of a job to single draws.
const CPU_SPREAD: u64 = 4;
const MEMORY_SPREAD: u64 = 5;
/// Id that narrows the address of a job to the segments of its tasks.
const SEGMENTS: u64 = 1 << 32;
/// Offset of the ids of jobs without a name. Ids of names are smaller.
const UNNAMED: u64 = 1 << 33;

const GIB: f64 = (1u64 << 30) as f64;
/// The default of `segment`.
const SEGMENT: Span = Span::from_secs(15);
/// The shortest segment, because each segment costs an event of the copy.
const SHORTEST: Span = Span::from_millis(1);
/// Number of samples for the estimate of the CPU cut off at the largest node.
const CLIPPED_SAMPLES: u64 = 20_000;

/// `[service.usage]`: the use of a shared node by a task that is not throttled, and the request of its user. Without
/// the section each task uses and requests one core and no memory.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UsageSection {
    /// Mean CPU of the tasks of a job, in cores; 1 if absent. Samples above the CPU of the largest node are lowered to
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<DistributionSpec<f64>>,
    /// Mean memory of the tasks of a job, GiB; none if absent. A task whose memory would pass the threshold of every
    /// node uses as much as the largest node allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<DistributionSpec<f64>>,
    /// Variation with time, from 0 to below 1: CPU and memory of a segment are the means of the job times factors drawn
    /// uniformly between 1 - variation and 1 + variation. 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variation: Option<f64>,
    /// Length of a segment, as the time that a task takes if it is not slowed down; "15s" if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Span>,
    /// In place of `cpu`, `memory`, `variation` and `segment`: the use of every task as a list of
    /// \[duration, cores, GiB\]. If the work of a task takes longer, the last use holds until its end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<(Span, f64, f64)>,
    /// Requested over mean use, a factor each for CPU and memory; 1 if absent. With a series the mean is that of the
    /// job's longest task. Requests above the capacity of the largest node are lowered to it; a factor with which every
    /// task would request more is refused. For the requests of Google's trace (Park's thesis, figure 5.1: 74 % above
    /// the use, 20 % within a factor of two) write { lognormal = { median = 4.2, sigma = 2.23 } }. Requests that a
    /// trace states for its tasks take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<DistributionSpec<f64>>,
    /// Spread among jobs of a name, from 0 to below 1: means of a job are those of its name times factors drawn
    /// uniformly between 1 - spread and 1 + spread. 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

/// The maximum capacity of a node of a cluster, by resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargestNode {
    /// CPU, in thousandths of a core.
    pub cpu: u64,
    /// Memory up to which the node does not evict, bytes; `u64::MAX` if memory is not limited.
    pub memory: u64,
    /// Whether any node limits memory.
    pub evicts: bool,
}

/// A stretch of a task's work in which its use is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// CPU that the task would use, thousandths of a core, at least 1.
    pub cpu: u32,
    /// Memory that the task uses, bytes.
    pub memory: u64,
    /// Work that is done when the segment ends; [`Span::MAX`] for the last segment.
    pub until: Span,
}

impl UsageSection {
    /// Checks everything that does not depend on the seed, for nodes of these sizes.
    pub(super) fn check(&self, largest: LargestNode) -> Result<(), WorkloadError> {
        let refuse = |key: &str, why: String| Err(WorkloadError::config(format!("service.usage.{key}"), why));
        let cores = largest.cpu as f64 / 1000.0;
        for (key, distribution) in [("cpu", &self.cpu), ("memory", &self.memory), ("request", &self.request)]
        {
            let Some(distribution) = distribution else { continue };
            if distribution.is_unread() {
                return refuse(
                    key,
                    "the file of this distribution was not read; give its `values`".to_owned(),
                );
            }
            if distribution.mean().is_nan() || distribution.mean() <= 0.0 {
                return refuse(
                    key,
                    "is always zero; write a positive number, or leave the key out".to_owned(),
                );
            }
        }
        self.check_series(largest)?;
        let (used, memory) = self.least();
        if self.series.is_empty() && used > cores {
            let why = format!(
                "no node has {used} cores, the largest has {cores}; lower the key, or raise cluster.cpu"
            );
            return refuse("cpu", why);
        }
        let factor = self.request.as_ref().and_then(|distribution| distribution.bounds().0).unwrap_or(0.0);
        if used * factor > cores {
            let why = format!(
                "every task would request {} cores, more than any node has ({cores}); lower the factor, or raise \
                 cluster.cpu",
                used * factor
            );
            return refuse("request", why);
        }
        let limit = largest.memory as f64 / GIB;
        if memory <= limit && memory * factor > limit {
            let why = format!(
                "every task would request {} GiB, more than any node lets copies use ({limit}); lower the factor, or \
                 raise cluster.memory",
                memory * factor
            );
            return refuse("request", why);
        }
        if self.series.is_empty() && memory > limit {
            let why = format!(
                "every task would use {memory} GiB, and no node lets copies use more than {limit} GiB; lower it, or \
                 raise cluster.memory"
            );
            return refuse("memory", why);
        }
        for (key, value) in [("variation", self.variation), ("spread", self.spread)] {
            if let Some(value) = value.filter(|value| !(0.0..1.0).contains(value)) {
                return refuse(key, format!("must be from 0 to below 1, not {value}; write for example 0.3"));
            }
        }
        if let Some(segment) = self.segment.filter(|segment| *segment < SHORTEST) {
            return refuse("segment", format!("must be {SHORTEST} or longer, not {segment}"));
        }
        Ok(())
    }

    /// Whether tasks use memory.
    pub(super) fn uses_memory(&self) -> bool {
        self.memory.is_some() || self.series.iter().any(|(_, _, memory)| *memory > 0.0)
    }

    fn check_series(&self, largest: LargestNode) -> Result<(), WorkloadError> {
        if self.series.is_empty() {
            return Ok(());
        }
        let refuse = |why: String| Err(WorkloadError::config("service.usage.series", why));
        let given = [
            ("cpu", self.cpu.is_some()),
            ("memory", self.memory.is_some()),
            ("variation", self.variation.is_some()),
            ("segment", self.segment.is_some()),
            ("spread", self.spread.is_some()),
        ];
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
            return refuse(format!("states the use of every task, as `{key}` does; keep one of the two"));
        }
        for (i, &(length, cpu, memory)) in self.series.iter().enumerate() {
            let cores = largest.cpu as f64 / 1000.0;
            if length < SHORTEST {
                return refuse(format!("entry {i} lasts {length}; write {SHORTEST} or longer"));
            }
            if !(0.001..=cores).contains(&cpu) {
                return refuse(format!(
                    "entry {i} uses {cpu} cores; write 0.001 to {cores}, the CPU of the largest node"
                ));
            }
            if !(memory >= 0.0 && memory * GIB <= largest.memory as f64) {
                let why =
                    format!("entry {i} uses {memory} GiB, which is below 0 or more than any node allows");
                return refuse(format!("{why}; write GiB such as 1.5, or raise cluster.memory"));
            }
        }
        Ok(())
    }

    /// Mean CPU of a task in cores, with samples above the CPU of the largest node lowered to it; `None` if it depends
    /// on the work of the task.
    pub fn mean_cpu(&self, largest: LargestNode) -> Option<f64> {
        if !self.series.is_empty() {
            return None;
        }
        let Some(distribution) = &self.cpu else { return Some(1.0) };
        let (cores, spread) = (largest.cpu as f64 / 1000.0, self.spread.unwrap_or(0.0));
        let mut draw = Address::new(0, Purpose::Usage).draw();
        let sample = |i| distribution.sample(&mut draw) * even(spread, Address::new(i, Purpose::Usage));
        let samples: Vec<f64> = (0..CLIPPED_SAMPLES).map(sample).collect();
        let mean = |of: &dyn Fn(f64) -> f64| {
            samples.iter().map(|&sample| of(sample)).sum::<f64>() / CLIPPED_SAMPLES as f64
        };
        // If the mean is known, only the part cut off is estimated.
        let all = distribution.mean();
        Some(if all.is_finite() { all - mean(&|x| (x - cores).max(0.0)) } else { mean(&|x| x.min(cores)) })
    }

    /// The least CPU that a task can use, in cores, and the least memory, in GiB.
    fn least(&self) -> (f64, f64) {
        let least = |distribution: &Option<DistributionSpec<f64>>, absent: f64| {
            distribution.as_ref().map_or(absent, |distribution| distribution.bounds().0.unwrap_or(0.0))
        };
        let stated = |of: fn(&(Span, f64, f64)) -> f64| self.series.iter().map(of).reduce(f64::min);
        let cpu = stated(|(_, cpu, _)| *cpu).unwrap_or_else(|| least(&self.cpu, 1.0));
        (cpu, stated(|(_, _, memory)| *memory).unwrap_or_else(|| least(&self.memory, 0.0)))
    }
}

/// Use and requests of the tasks of a run.
#[derive(Debug)]
pub(super) struct Uses {
    section: UsageSection,
    largest: LargestNode,
    root: Address,
    /// The uses of a stated series, with the work done at the end of each.
    series: Vec<Segment>,
}

/// The inputs of the draws of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawee {
    /// The number under which the job is drawn.
    pub(super) job: JobId,
    /// The number of the job's name, 0 for a job without a name.
    pub(super) name: u32,
    /// Request of each task of the job as stated by a trace: CPU in cores, and memory in GiB.
    pub(super) requested: [Option<f64>; 2],
}

impl Uses {
    pub(super) fn new(section: &UsageSection, largest: LargestNode, seed: u64) -> Self {
        let mut end = Span::ZERO;
        let stated = |&(length, cpu, memory): &(Span, f64, f64)| {
            end += length;
            Segment { cpu: millicores(cpu), memory: (memory * GIB) as u64, until: end }
        };
        let mut series: Vec<_> = section.series.iter().map(stated).collect();
        if let Some(last) = series.last_mut() {
            last.until = Span::MAX;
        }
        Self { section: section.clone(), largest, root: Address::new(seed, Purpose::Usage), series }
    }

    /// Length of a stated series, whose last use holds beyond it; `None` if none is stated.
    pub(super) fn stated_length(&self) -> Option<Span> {
        let lengths = self.section.series.iter().map(|(length, ..)| *length);
        (!self.series.is_empty()).then(|| lengths.fold(Span::ZERO, |sum, length| sum + length))
    }

    /// Use of each task of a job whose longest task has `longest` work.
    pub(super) fn usage(&self, job: Drawee, longest: impl FnOnce() -> Span) -> Usage {
        if self.series.is_empty() {
            let mean = self.mean(job);
            let most = 1.0 + self.variation();
            let max = Amount {
                cpu: ((mean.cpu as f64 * most) as u64).clamp(1, self.largest.cpu),
                memory: ((mean.memory as f64 * most) as u64).min(self.largest.memory),
            };
            return Usage { mean, max };
        }
        let work = longest();
        let cpu = self.stated(work, |segment| u64::from(segment.cpu));
        let memory = self.stated(work, |segment| segment.memory);
        Usage { mean: Amount { cpu: cpu.0, memory: memory.0 }, max: Amount { cpu: cpu.1, memory: memory.1 } }
    }

    /// Mean and maximum of a quantity of a stated series, over the part of the series that `work` reaches.
    fn stated(&self, work: Span, of: impl Fn(&Segment) -> u64) -> (u64, u64) {
        let (mut begun, mut sum, mut most) = (Span::ZERO, 0.0, 0);
        for segment in &self.series {
            let ends = segment.until.min(work);
            sum += ends.saturating_sub(begun).as_secs_f64() * of(segment) as f64;
            most = most.max(of(segment));
            begun = ends;
            if segment.until >= work {
                break;
            }
        }
        let first = self.series.first().map_or(0, &of);
        (if work > Span::ZERO { (sum / work.as_secs_f64()).round() as u64 } else { first }, most)
    }

    /// CPU-time of a task of a job with this much work, core-seconds.
    pub(super) fn cpu_time(&self, job: Drawee, work: Span) -> f64 {
        self.usage(job, || work).mean.cpu as f64 / 1000.0 * work.as_secs_f64()
    }

    /// Request of each task of a job whose longest task has `longest` work.
    pub(super) fn request(&self, job: Drawee, longest: impl FnOnce() -> Span) -> Amount {
        let (mean, name) = (self.usage(job, longest).mean, self.name(job));
        let factor = |at: u64| {
            self.section
                .request
                .as_ref()
                .map_or(1.0, |distribution| distribution.sample(&mut name.at(at).draw()))
        };
        let [cpu, memory] = job.requested;
        let cpu = cpu.map_or_else(|| mean.cpu as f64 * factor(CPU_REQUEST), |cores| cores * 1000.0);
        let memory = memory.map_or_else(|| mean.memory as f64 * factor(MEMORY_REQUEST), |gib| gib * GIB);
        Amount {
            cpu: (cpu.round() as u64).clamp(1, self.largest.cpu),
            memory: (memory.round() as u64).min(self.largest.memory),
        }
    }

    /// The use of a task when `done` of its work is done.
    pub(super) fn segment(&self, task: TaskId, job: Drawee, done: Span) -> Segment {
        if !self.series.is_empty() {
            let at = self.series.partition_point(|segment| segment.until <= done);
            return self.series[at.min(self.series.len() - 1)];
        }
        let mean = self.mean(job);
        let variation = self.variation();
        if variation == 0.0 {
            return Segment { cpu: mean.cpu as u32, memory: mean.memory, until: Span::MAX };
        }
        let length = self.section.segment.unwrap_or(SEGMENT).0;
        let number = done.0 / length;
        let address = self.job(job).at(SEGMENTS).at(u64::from(task.index)).at(number);
        let varied = |mean: u64, at: u64| mean as f64 * even(variation, address.at(at));
        Segment {
            cpu: (varied(mean.cpu, CPU).round() as u32).clamp(1, self.largest.cpu as u32),
            memory: (varied(mean.memory, MEMORY) as u64).min(self.largest.memory),
            until: Span((number + 1).saturating_mul(length)),
        }
    }

    /// Mean use of the tasks of a job.
    fn mean(&self, job: Drawee) -> Amount {
        let (name, spread) = (self.name(job), self.section.spread.unwrap_or(0.0));
        let distribution = |distribution: &Option<DistributionSpec<f64>>, absent: f64, at: u64, own: u64| {
            let mean = distribution
                .as_ref()
                .map_or(absent, |distribution| distribution.sample(&mut name.at(at).draw()));
            if spread == 0.0 { mean } else { mean * even(spread, self.job(job).at(own)) }
        };
        let cpu = distribution(&self.section.cpu, 1.0, CPU, CPU_SPREAD);
        let memory = distribution(&self.section.memory, 0.0, MEMORY, MEMORY_SPREAD) * GIB;
        // Even at its peak a copy alone on the largest node is not evicted.
        let most = self.largest.memory as f64 / (1.0 + self.variation());
        Amount { cpu: u64::from(millicores(cpu)).min(self.largest.cpu), memory: memory.min(most) as u64 }
    }

    fn variation(&self) -> f64 {
        self.section.variation.unwrap_or(0.0)
    }

    /// The address of the draws that jobs of a name share.
    fn name(&self, job: Drawee) -> Address {
        if job.name == 0 { self.job(job) } else { self.root.at(u64::from(job.name)) }
    }

    fn job(&self, job: Drawee) -> Address {
        self.root.at(UNNAMED + u64::from(job.job.0))
    }
}

/// A factor drawn uniformly between 1 - `spread` and 1 + `spread`.
fn even(spread: f64, address: Address) -> f64 {
    1.0 + spread * (2.0 * address.unit() - 1.0)
}

fn millicores(cores: f64) -> u32 {
    (cores * 1000.0).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: LargestNode = LargestNode { cpu: 16_000, memory: 64 << 30, evicts: true };

    const LONGEST: Span = Span::from_secs(100);

    fn usage(uses: &Uses, job: Drawee) -> Usage {
        uses.usage(job, || LONGEST)
    }

    fn request(uses: &Uses, job: Drawee) -> Amount {
        uses.request(job, || LONGEST)
    }

    fn uses(text: &str) -> Uses {
        let section: UsageSection = toml::from_str(text).unwrap();
        section.check(LARGEST).unwrap();
        Uses::new(&section, LARGEST, 1)
    }

    const fn named(job: u32, name: u32) -> Drawee {
        Drawee { job: JobId(job), name, requested: [None; 2] }
    }

    /// Figure 5.1: 74 % of requests are above the use, and 20 % are within a factor of two of the use.
    #[test]
    fn requests_deviate_from_the_use_as_published() {
        let distribution = "cpu = 0.001\nrequest = { lognormal = { median = 4.2, sigma = 2.23 } }";
        let section: UsageSection = toml::from_str(distribution).unwrap();
        let largest = LargestNode { cpu: u64::from(u32::MAX), memory: u64::MAX, evicts: false };
        let uses =
            Uses::new(&UsageSection { cpu: Some(DistributionSpec::Constant(1.0)), ..section }, largest, 7);
        let factors: Vec<f64> =
            (0..20_000).map(|job| request(&uses, named(job, 0)).cpu as f64 / 1000.0).collect();
        let share = |of: fn(f64) -> bool| factors.iter().filter(|f| of(**f)).count() as f64 / 20_000.0;
        // Three standard deviations of a share are below 0.01.
        assert!((share(|f| f > 1.0) - 0.74).abs() < 0.01, "{}", share(|f| f > 1.0));
        assert!((share(|f| (0.5..=2.0).contains(&f)) - 0.20).abs() < 0.01);
    }

    #[test]
    fn jobs_of_a_name_have_similar_use() {
        let distributions = "cpu = { uniform = { low = 1, high = 8 } }\nmemory = { exponential = { mean = 4 } }\n\
                    request = { uniform = { low = 0.5, high = 9 } }\n";
        let same = uses(distributions);
        assert_eq!(request(&same, named(1, 5)), request(&same, named(2, 5)));
        assert_ne!(request(&same, named(1, 5)), request(&same, named(1, 6)));
        assert_ne!(usage(&same, named(1, 0)), usage(&same, named(2, 0)), "without a name each has its own");
        let near = uses(&format!("{distributions}spread = 0.1"));
        let cpu = |job| usage(&near, named(job, 5)).mean.cpu as f64;
        let mean = usage(&same, named(1, 5)).mean.cpu as f64;
        assert!((1..500).all(|job| (cpu(job) / mean - 1.0).abs() <= 0.101));
        assert!((1..500).any(|job| (cpu(job) / mean - 1.0).abs() > 0.09));
    }

    /// Segments are contiguous, vary around the mean of the job, and never exceed its maximum.
    #[test]
    fn segments_vary_around_the_mean() {
        let uses = uses("cpu = 4\nmemory = 8\nvariation = 0.5\nsegment = \"10s\"");
        let (job, task) = (named(3, 0), JobId(3).task(2));
        let usage = usage(&uses, job);
        assert_eq!((usage.mean.cpu, usage.max.cpu), (4000, 6000));
        let (mut done, mut cpu, mut least) = (Span::ZERO, 0.0, u32::MAX);
        for number in 1..=5000u64 {
            let segment = uses.segment(task, job, done);
            assert_eq!(segment, uses.segment(task, job, done + Span(9_999_999_999)));
            assert_eq!(segment.until, Span::from_secs(10 * number));
            assert!(u64::from(segment.cpu) <= usage.max.cpu && segment.memory <= usage.max.memory);
            (done, cpu, least) = (segment.until, cpu + f64::from(segment.cpu), least.min(segment.cpu));
        }
        // The standard deviation of the mean is 4000 / √(12 · 5000).
        assert!((cpu / 5000.0 - 4000.0).abs() < 50.0, "{}", cpu / 5000.0);
        assert!((2000..2010).contains(&least), "{least}");
        assert_ne!(uses.segment(task, job, done), uses.segment(JobId(3).task(1), job, done));
    }

    #[test]
    fn the_last_use_of_a_series_holds_until_the_task_ends() {
        let uses = uses("series = [[\"15s\", 4, 1], [\"5s\", 1, 3]]");
        let at = |s| {
            let Segment { cpu, memory, until } =
                uses.segment(JobId(0).task(0), named(0, 0), Span::from_secs(s));
            (cpu, memory >> 30, until)
        };
        let [first, last] = [(4000, 1, Span::from_secs(15)), (1000, 3, Span::MAX)];
        assert_eq!([0, 14, 15, 19, 99].map(at), [first, first, last, last, last]);
        let of_work = |s| {
            let usage = uses.usage(named(0, 0), || Span::from_secs(s));
            (usage.mean.cpu, usage.mean.memory, usage.max.cpu, usage.max.memory >> 30)
        };
        assert_eq!(of_work(20), (3250, (3 << 30) / 2, 4000, 3));
        assert_eq!(of_work(10), (4000, 1 << 30, 4000, 1), "the second use is not reached");
        assert_eq!(of_work(150).0, 1300, "15 s of 4 cores and 135 of one");
        assert!((uses.cpu_time(named(0, 0), Span::from_secs(150)) - 195.0).abs() < 1e-9);
        assert_eq!(uses.stated_length(), Some(Span::from_secs(20)));
    }

    /// An exponential distribution with mean m, cut off at L, has the mean m (1 - exp(-L/m)).
    #[test]
    fn the_mean_counts_samples_beyond_the_largest_node_as_its_capacity() {
        let mean = |text: &str| {
            let section: UsageSection = toml::from_str(text).unwrap();
            section.mean_cpu(LARGEST)
        };
        assert_eq!(mean("cpu = 3\nspread = 0.5"), Some(3.0), "nothing is cut off");
        let cut = mean("cpu = { exponential = { mean = 16 } }").unwrap();
        let expected = 16.0 * (1.0 - (-1.0_f64).exp());
        assert!((cut / expected - 1.0).abs() < 0.02, "{cut} instead of {expected}");
        assert_eq!(mean("series = [[\"1s\", 1, 1]]"), None);
    }

    /// Neither the use of a task, at its peak, nor a request exceeds the largest node.
    #[test]
    fn use_and_requests_never_exceed_the_largest_node() {
        let uses = uses(
            "cpu = { exponential = { mean = 16 } }\nmemory = { exponential = { mean = 64 } }\nvariation = 0.9\n\
             request = { lognormal = { median = 4.2, sigma = 2.23 } }",
        );
        for job in (0..1000).map(|job| named(job, 0)) {
            let (usage, request) = (usage(&uses, job), request(&uses, job));
            assert!(usage.max.cpu <= LARGEST.cpu && usage.max.memory <= LARGEST.memory, "{usage:?}");
            assert!(request.cpu <= LARGEST.cpu && request.memory <= LARGEST.memory, "{request:?}");
            let segment = uses.segment(job.job.task(0), job, Span::from_secs(100));
            assert!(segment.memory <= usage.max.memory);
        }
        let stated = request(&uses, Drawee { requested: [Some(2.5), Some(1.5)], ..named(1, 0) });
        assert_eq!((stated.cpu, stated.memory), (2500, 3 << 29));
    }

    #[test]
    fn the_request_factor_of_a_series_applies_to_its_use() {
        let small = LARGEST;
        let section: UsageSection = toml::from_str("series = [[\"15s\", 0.1, 1]]\nrequest = 20").unwrap();
        assert!(section.check(small).is_ok(), "two cores of 16");
        let half: UsageSection = toml::from_str("series = [[\"15s\", 0.5, 0]]").unwrap();
        assert!(half.check(LargestNode { cpu: 500, ..small }).is_ok());
    }

    #[test]
    fn invalid_keys_of_the_usage_section_are_refused() {
        for (text, key, why) in [
            ("cpu = 17", "cpu", "no node has 17 cores"),
            ("cpu = 0", "cpu", "always zero"),
            ("cpu = 4\nrequest = 5", "request", "request 20 cores, more than any node"),
            ("memory = 20\nrequest = 4", "request", "request 80 GiB, more than any node"),
            ("series = [[\"15s\", 8, 1]]\nrequest = 3", "request", "request 24 cores, more than any node"),
            ("memory = 65", "memory", "no node lets copies use more than 64 GiB"),
            ("variation = 1", "variation", "from 0 to below 1"),
            ("spread = -0.1", "spread", "from 0 to below 1"),
            ("segment = \"1us\"", "segment", "1ms or longer"),
            ("series = [[\"15s\", 4, 1]]\ncpu = 1", "series", "keep one of the two"),
            ("series = [[\"0s\", 4, 1]]", "series", "1ms or longer"),
            ("series = [[\"15s\", 20, 1]]", "series", "the CPU of the largest node"),
            ("series = [[\"15s\", 4, 99]]", "series", "more than any node allows"),
        ] {
            let section: UsageSection = toml::from_str(text).unwrap();
            let error = section.check(LARGEST).unwrap_err().to_string();
            assert!(
                error.contains(&format!("service.usage.{key}")) && error.contains(why),
                "{text}: {error}"
            );
        }
    }
}
