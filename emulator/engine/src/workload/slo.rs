//! SLO jobs, which have a deadline and may prefer nodes: their section, its checks, and the draws of a run.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use volary_actors::base::{Address, DistributionSpec, Span, Time};
use volary_actors::catalog::Preference;

use super::work::Share;

/// Maximum number of kinds of nodes: a preference has one bit for each kind.
const MOST_KINDS: u32 = 32;

/// Ids that narrow a job's address of purpose `Shape` to single draws. The modules `work`, `mix` and `names` use the
/// other ids up to 8.
pub(super) const SLACK: u64 = 3;
const OBJECTIVE: u64 = 9;
const KINDS: u64 = 10;

/// `[workload.….slo]`: the SLO jobs, which have a deadline (Park's thesis, section 4.4.1). Other jobs are best-effort.
/// Results have the classes `slo` and `be` in place of other classes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Share of the jobs that are SLO jobs: each job is one with this probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// In place of `share`: the share of the work of all jobs that SLO jobs have. Jobs become SLO jobs in random order
    /// until their work reaches this share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Share>,
    /// In place of `share`: the load that SLO jobs offer, as a share of the cores' time like `load` of the workload.
    /// Their share of the work is this load over the load of all jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Slack of deadlines: a number, a list from which each job draws a value with equal probability, or a
    /// distribution. The deadline of a job is its arrival plus (1 + slack) times the run time of its longest task on
    /// nodes that it prefers. With a slack below 0 no job can meet its deadline on cores of the reference speed.
    pub slack: Slack,
    /// The nodes that SLO jobs prefer; if absent they prefer no nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<PreferenceDraw>,
}

/// `preference`: nodes alternate between `kinds` kinds, of which each SLO job prefers `of` random ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreferenceDraw {
    /// Number of kinds of nodes, at most 32. Node i is of kind i modulo `kinds`.
    pub kinds: u32,
    /// Number of kinds that a job prefers.
    pub of: u32,
    /// A job takes this many times as long if any of its tasks runs on a node of another kind (the thesis: 1.5). Under
    /// the policies `3sigma`, `prio` and `distsched` all of its tasks are slowed down, otherwise only the tasks on such
    /// nodes.
    pub slowdown: f64,
}

/// Slack of a deadline: (deadline − arrival − run time) / run time of the job.
#[derive(Clone, PartialEq, Debug)]
pub enum Slack {
    /// A list of values, each with the same probability.
    Set(Vec<f64>),
    /// A sample of a distribution.
    Distribution(DistributionSpec<f64>),
}

impl Slack {
    fn sample(&self, address: Address) -> f64 {
        match self {
            Self::Set(values) => values[below(values.len() as u32, address) as usize],
            Self::Distribution(distribution) => distribution.sample(&mut address.draw()),
        }
    }

    /// Whether the slack is a distribution whose values were not read with the experiment.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self, Self::Distribution(distribution) if distribution.is_unread())
    }
}

/// The deadline of a job that arrives at `arrival` and has this run time.
pub(super) fn due(arrival: Time, run: Span, slack: f64) -> Time {
    // The last instant stands for no deadline.
    (arrival + run.scale(1.0 + slack)).min(Time(Time::MAX.0 - 1))
}

/// A uniform number below `bound`.
fn below(bound: u32, address: Address) -> u32 {
    ((address.unit() * f64::from(bound)) as u32).min(bound - 1)
}

/// An error in a key of the section: the key, and the reason with the remedy.
type Refused = (&'static str, String);

impl Slo {
    /// Checks everything that does not depend on the cluster.
    pub(super) fn check(&self) -> Result<(), Refused> {
        let given = [self.share.is_some(), self.work.is_some(), self.load.is_some()];
        match (given.iter().filter(|given| **given).count(), self.load) {
            (0, _) => {
                let why =
                    "no key states which jobs have deadlines; write for example share = 0.5, or true for all";
                return Err((".share", why.to_owned()));
            }
            (1, Some(load)) if !(load.is_finite() && load > 0.0) => {
                return Err((
                    ".load",
                    format!("must be a positive number, not {load}; write for example 0.4"),
                ));
            }
            (1, _) => {}
            _ => {
                let key = if self.load.is_some() { ".load" } else { ".work" };
                let why = "`share`, `work` and `load` each state which jobs have deadlines; keep one of them";
                return Err((key, why.to_owned()));
            }
        }
        self.check_slack()?;
        self.preference.map_or(Ok(()), PreferenceDraw::check)
    }

    fn check_slack(&self) -> Result<(), Refused> {
        let Slack::Set(values) = &self.slack else { return Ok(()) };
        if values.is_empty() {
            return Err((".slack", "the list is empty; write for example [0.2, 0.4, 0.6, 0.8]".to_owned()));
        }
        let odd = values.iter().find(|slack| !(slack.is_finite() && **slack >= -1.0));
        odd.map_or(Ok(()), |odd| {
            let why = "is not a finite number of at least -1, so the deadline would lie before the arrival";
            Err((".slack", format!("{odd} {why}; write for example 0.6")))
        })
    }

    /// Number of kinds of nodes.
    pub fn kinds(&self) -> u32 {
        self.preference.map_or(1, |preference| preference.kinds)
    }

    /// Draws the goals of the jobs of a run.
    pub(super) fn draw(&self, jobs: &Arrived<'_>) -> Goals {
        let chosen = self.choose(jobs);
        let slowdown = self.preference.map_or(1.0, |preference| preference.slowdown);
        let mut goals = Goals { deadlines: Vec::new(), kinds: Vec::new(), slowdown };
        for (i, (&arrival, objective)) in jobs.arrivals.iter().zip(chosen).enumerate() {
            let address = jobs.address(i);
            goals.deadlines.push(if objective {
                let slack = self.slack.sample(address.at(SLACK));
                due(arrival, (jobs.run)(i as u32), slack)
            } else {
                Time::MAX
            });
            if let Some(preference) = self.preference {
                let kinds = if objective { preference.draw(address.at(KINDS)) } else { 0 };
                goals.kinds.push(kinds);
            }
        }
        goals
    }

    /// Whether each job is an SLO job.
    fn choose(&self, jobs: &Arrived<'_>) -> Vec<bool> {
        let count = jobs.arrivals.len();
        let unit = |i: usize| jobs.address(i).at(OBJECTIVE).unit();
        if let Some(share) = self.share {
            return (0..count).map(|i| share.includes(unit(i))).collect();
        }
        let work: Vec<f64> = (0..count as u32).map(&jobs.work).collect();
        let wanted = self.work.map_or(0.0, Share::part) * work.iter().sum::<f64>();
        let mut order: Vec<(f64, usize)> = (0..count).map(|i| (unit(i), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut chosen, mut sum) = (vec![false; count], 0.0);
        for (_, i) in order {
            // The job that crosses the target is included if the sum is then closer to it.
            if sum + work[i] / 2.0 > wanted {
                break;
            }
            chosen[i] = true;
            sum += work[i];
        }
        chosen
    }

    /// A remark for the user if no job has drawn a deadline.
    pub(super) fn remark(&self, section: &str, goals: &Goals) -> Option<String> {
        goals.deadlines.iter().all(|deadline| *deadline == Time::MAX).then(|| {
            format!(
                "no job has drawn a deadline, so all are best-effort: raise {section}.slo.share, or the \
                 number of jobs"
            )
        })
    }
}

impl PreferenceDraw {
    fn check(self) -> Result<(), Refused> {
        let Self { kinds, of, slowdown } = self;
        if !(1..=MOST_KINDS).contains(&kinds) {
            let why =
                format!("{kinds} kinds of nodes are not between 1 and {MOST_KINDS}; write for example 4");
            return Err((".preference.kinds", why));
        }
        if !(1..=kinds).contains(&of) {
            let why = format!("a job cannot prefer {of} of {kinds} kinds; write a number from 1 to {kinds}");
            return Err((".preference.of", why));
        }
        if !(slowdown.is_finite() && slowdown >= 1.0) {
            let why = format!("must be at least 1, not {slowdown}; write 1.5 for half as long again");
            return Err((".preference.slowdown", why));
        }
        Ok(())
    }

    /// Draws `of` different kinds, as a set of bits.
    fn draw(self, address: Address) -> u32 {
        let mut kinds: Vec<u32> = (0..self.kinds).collect();
        let mut bits = 0;
        for i in 0..self.of {
            let at = i + below(self.kinds - i, address.at(u64::from(i)));
            kinds.swap(i as usize, at as usize);
            bits |= 1 << kinds[i as usize];
        }
        bits
    }
}

/// The jobs of a run, for the draw of their goals.
pub(super) struct Arrived<'a> {
    pub(super) arrivals: &'a [Time],
    /// The number under which the first job is drawn.
    pub(super) first: u32,
    /// The root of draws of purpose `Shape`.
    pub(super) shape: Address,
    /// The run time of a job: the work of the longest task of each of its stages.
    pub(super) run: &'a dyn Fn(u32) -> Span,
    /// The work of all tasks of a job, core-seconds.
    pub(super) work: &'a dyn Fn(u32) -> f64,
}

impl Arrived<'_> {
    fn address(&self, job: usize) -> Address {
        self.shape.at(u64::from(self.first) + job as u64)
    }
}

/// Deadlines and preferences of the jobs of a run. Takes no memory without deadlines and preferences.
#[derive(Debug)]
pub(super) struct Goals {
    /// The deadline of each chain, [`Time::MAX`] for no deadline; empty if no job has a deadline.
    deadlines: Vec<Time>,
    /// Preferred kinds of nodes by chain, a bit each; empty if no job prefers some nodes.
    kinds: Vec<u32>,
    slowdown: f64,
}

impl Goals {
    /// Deadlines of all jobs, and no preferences.
    pub(super) const fn new(deadlines: Vec<Time>) -> Self {
        Self { deadlines, kinds: Vec::new(), slowdown: 1.0 }
    }

    /// The deadline of a chain.
    pub(super) fn deadline(&self, chain: u32) -> Option<Time> {
        self.deadlines.get(chain as usize).copied().filter(|deadline| *deadline < Time::MAX)
    }

    /// The kinds of nodes that a chain prefers.
    pub(super) fn preference(&self, chain: u32) -> Preference {
        let Some(&kinds) = self.kinds.get(chain as usize) else { return Preference::NONE };
        let slowdown = if kinds == 0 { 1.0 } else { self.slowdown };
        Preference { kinds, slowdown }
    }

    /// Whether some job prefers some nodes.
    pub(super) const fn prefer(&self) -> bool {
        !self.kinds.is_empty()
    }
}

impl Serialize for Slack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(values) if values.len() == 1 => values[0].serialize(serializer),
            Self::Set(values) => values.serialize(serializer),
            Self::Distribution(distribution) => distribution.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Slack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Slack;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, a list of numbers, or a distribution such as { uniform = { low = 0.2, high = 0.8 } }",
                )
            }
            fn visit_f64<E: de::Error>(self, slack: f64) -> Result<Slack, E> {
                Ok(Slack::Set(vec![slack]))
            }
            fn visit_i64<E: de::Error>(self, slack: i64) -> Result<Slack, E> {
                self.visit_f64(slack as f64)
            }
            fn visit_u64<E: de::Error>(self, slack: u64) -> Result<Slack, E> {
                self.visit_f64(slack as f64)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<Slack, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(list)).map(Slack::Set)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Slack, A::Error> {
                Deserialize::deserialize(de::value::MapAccessDeserializer::new(map)).map(Slack::Distribution)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Slack {
    fn schema_name() -> Cow<'static, str> {
        "Slack".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "number, list of numbers, or a distribution of one",
            "anyOf": [
                { "type": "number", "minimum": -1 },
                { "type": "array", "items": { "type": "number", "minimum": -1 }, "minItems": 1 },
                { "type": "object" }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use volary_actors::base::{Feature, JobId};
    use volary_actors::catalog::Catalog;

    use super::*;
    use crate::workload::{NoTraces, Service, Site, Synthetic, Workload, WorkloadError, WorkloadSpec};

    const SET: &str = "slack = [0.2, 0.4, 0.6, 0.8]";

    fn spec(jobs: u32, keys: &str, slo: &str) -> (WorkloadSpec, Service) {
        let slo = if slo.is_empty() { String::new() } else { format!("[slo]\n{slo}\n") };
        let tasks = "{ uniform = { low = 1, high = 9 } }";
        let text = format!("jobs = {jobs}\ntasks = {tasks}\ninterarrival = \"1s\"\n{keys}\n{slo}");
        let spec: Synthetic = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let service = toml::from_str("demand = { exponential = { mean = \"9s\" } }");
        (WorkloadSpec::Synthetic(spec), service.unwrap())
    }

    fn of(site: Site, jobs: u32, keys: &str, slo: &str) -> Result<Workload, WorkloadError> {
        let (spec, service) = spec(jobs, keys, slo);
        Workload::build(&spec, &service, 3, site, &NoTraces)
    }

    fn build(jobs: u32, keys: &str, slo: &str) -> Workload {
        of(2.into(), jobs, keys, slo).unwrap()
    }

    fn jobs(workload: &Workload) -> impl Iterator<Item = JobId> + use<> {
        (0..workload.jobs()).map(JobId)
    }

    /// The slack of a job with a deadline.
    fn slack(workload: &Workload, job: JobId) -> Option<f64> {
        let spec = workload.job(job);
        let run = workload.longest(job).as_secs_f64();
        Some((spec.deadline? - spec.arrival).as_secs_f64() / run - 1.0)
    }

    #[test]
    fn a_share_of_the_jobs_has_deadlines_from_the_list_of_slacks() {
        let n = 20_000;
        let workload = build(n, "", &format!("share = 0.3\n{SET}"));
        let drawn: Vec<f64> = jobs(&workload).filter_map(|job| slack(&workload, job)).collect();
        let expected = 0.3 * f64::from(n);
        assert!((drawn.len() as f64 - expected).abs() < 5.0 * (expected * 0.7).sqrt(), "{}", drawn.len());
        for value in [0.2, 0.4, 0.6, 0.8] {
            let as_much = drawn.iter().filter(|slack| (*slack - value).abs() < 1e-6).count() as f64;
            let part = as_much / drawn.len() as f64;
            assert!((part - 0.25).abs() < 0.03, "{part} have a slack of {value}");
        }
        assert_eq!(workload.classes().iter().map(|label| &**label).collect::<Vec<_>>(), ["slo", "be"]);
        let classed = |job| workload.class_index(job) == usize::from(workload.job(job).deadline.is_none());
        assert!(jobs(&workload).all(classed));
    }

    #[test]
    fn the_share_of_slo_work_is_exact_to_half_a_job() {
        let spec: Slo = toml::from_str(&format!("work = 0.7\n{SET}")).unwrap();
        let (arrivals, work) = (vec![Time::ZERO; 500], |job: u32| f64::from(job % 17) + 0.5);
        for part in [0.0, 0.01, 0.5, 0.99, 1.0] {
            let slo = Slo { work: Share::new(part), ..spec.clone() };
            let jobs = Arrived {
                arrivals: &arrivals,
                first: 0,
                shape: Address::new(1, volary_actors::base::Purpose::Shape),
                run: &|_| Span::from_secs(1),
                work: &work,
            };
            let goals = slo.draw(&jobs);
            let of = |chosen: &dyn Fn(u32) -> bool| (0..500).filter(|&i| chosen(i)).map(work).sum::<f64>();
            let (slo, all) = (of(&|job| goals.deadline(job).is_some()), of(&|_| true));
            assert!((slo - part * all).abs() <= 8.5, "{slo} of {all} for {part}");
        }
    }

    #[test]
    fn slo_jobs_prefer_the_given_number_of_random_kinds() {
        let preference = "preference = { kinds = 4, of = 3, slowdown = 1.5 }";
        let workload = build(4_000, "", &format!("share = 0.5\n{SET}\n{preference}"));
        let mut seen = [0u32; 16];
        for job in jobs(&workload) {
            let Preference { kinds, slowdown } = workload.preference(job);
            let copy = job.task(0).copy(0);
            let work = workload.work(copy);
            if workload.job(job).deadline.is_none() {
                assert_eq!((kinds, slowdown), (0, 1.0), "best-effort jobs prefer none");
                assert_eq!(workload.work_on(copy, 3, true), work);
                continue;
            }
            assert_eq!((kinds.count_ones(), slowdown), (3, 1.5));
            seen[kinds as usize] += 1;
            for kind in 0..4 {
                let slowed = kinds & 1 << kind == 0;
                let factor = if slowed { 1.5 } else { 1.0 };
                assert_eq!(workload.work_on(copy, kind, false), work.scale(factor));
                assert_eq!(workload.work_on(copy, kind, true), work.scale(1.5));
            }
        }
        for bits in [0b0111, 0b1011, 0b1101, 0b1110] {
            assert!((430..570).contains(&seen[bits]), "{bits:b}: {seen:?}");
        }
    }

    /// Deadlines, preferences and work of jobs that arrive later do not depend on the number of jobs in history. Time
    /// begins at the last job of history.
    #[test]
    fn jobs_after_history_do_not_depend_on_its_length() {
        let preference = "preference = { kinds = 8, of = 2, slowdown = 2 }";
        let slo = format!("share = 0.5\n{SET}\n{preference}");
        let (all, later) = (build(300, "", &slo), build(300, "pretrain = 100", &slo));
        assert_eq!((later.past(), later.jobs(), later.chains()), (100, 200, 200));
        assert_eq!(all.past(), 0);
        let begin = all.job(JobId(99)).arrival;
        for job in jobs(&later) {
            let drawn = JobId(job.0 + 100);
            let (a, b) = (all.job(drawn), later.job(job));
            assert_eq!(
                (a.arrival.since(begin), a.tasks, a.client),
                (b.arrival.since(Time::ZERO), b.tasks, b.client)
            );
            assert_eq!(a.deadline.map(|d| d - a.arrival), b.deadline.map(|d| d - b.arrival));
            assert_eq!(all.preference(drawn), later.preference(job));
            let copy = |job: JobId| job.task(0).copy(1);
            assert_eq!(all.work(copy(drawn)), later.work(copy(job)));
            assert_eq!(all.job_estimate(drawn), later.job_estimate(job));
        }
        for number in 0..100 {
            let (past, job) = (later.past_job(number), JobId(number));
            assert_eq!((past.run, past.feature(Feature::Size)), (all.longest(job), all.tasks(job)));
        }
        let mut found = BTreeSet::new();
        for client in 0..2 {
            let mut from = 0;
            while let Some(job) = later.next_of(client, from) {
                assert!(found.insert(job) && later.job(job).client == client);
                from = job.0 + 1;
            }
        }
        assert_eq!(found.len(), 200);
    }

    #[test]
    fn gangs_larger_than_the_cluster_are_refused_or_filtered() {
        let site = Site { schedulers: 1, cores: 6, largest: None };
        let error = of(site, 50, "gang = true", "").unwrap_err().to_string();
        let words = "tasks that start together, and the cluster has 6 cores; add cores, make tasks independent by \
                     workload.synthetic.gang = false, or leave such jobs out by workload.synthetic.filter = true";
        assert!(error.starts_with("workload.synthetic.gang: job ") && error.ends_with(words), "{error}");
        let workload = of(site, 50, "gang = true\nfilter = true", "").unwrap();
        let kept = workload.jobs();
        assert!((20..45).contains(&kept) && jobs(&workload).all(|job| workload.tasks(job) <= 6));
        let said = format!("{} of 50 jobs have more tasks than the 6 cores", 50 - kept);
        assert!(workload.warnings()[0].starts_with(&said), "{:?}", workload.warnings());
        assert_eq!(of(site, 50, "", "").unwrap().jobs(), 50, "they are no gangs");
        let none =
            of(Site { cores: 0, ..site }, 50, "gang = true\nfilter = true", "").unwrap_err().to_string();
        assert!(none.contains("every job has more tasks than the 0 cores"), "{none}");
    }

    #[test]
    fn suspicious_slack_and_shares_give_warnings() {
        let early = build(50, "", "share = true\nslack = -0.5");
        assert!(early.warnings()[0].contains("slo.slack leaves 50 of 50 jobs no time"));
        assert!(jobs(&early).all(|job| (slack(&early, job).unwrap() + 0.5).abs() < 1e-6));
        let none = build(50, "", "share = 0\nslack = 1");
        assert!(none.warnings()[0].starts_with("no job has drawn a deadline"), "{:?}", none.warnings());
        let distribution = build(50, "", "share = true\nslack = { uniform = { low = 1, high = 2 } }");
        assert!(
            jobs(&distribution).all(|job| (1.0..2.0).contains(&slack(&distribution, job).unwrap())),
            "{:?}",
            distribution.warnings()
        );
        let endless = build(50, "", "share = true\nslack = 1e300");
        assert!(jobs(&endless).all(|job| endless.job(job).deadline.is_some()));
    }
}
