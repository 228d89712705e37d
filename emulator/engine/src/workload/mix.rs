//! Jobs of several classes, each a graph of stages: their checks, their means, and the stages of a run.

use std::sync::Arc;

use volary_actors::base::{Address, Feature, JobId, Purpose, Span};

use super::config::{Mix, MixClass, MixStage, Service};
use super::graph::{StageGraph, Staging};
use super::names::{self, Names};
use super::trace::WorkloadError;
use super::work::{Demand, JobDemand, check_tasks, draws_of, task_count};

/// Maximum number of classes: each has histograms of its own.
const MOST_CLASSES: usize = 256;
/// Maximum number of stages of a job.
const MOST_STAGES: usize = 1 << 10;

/// Id that narrows a job's address of purpose `Shape` to the draw of its class. The modules `work` and `slo` use the
/// ids 1 to 3.
const CLASS: u64 = 4;

/// The dotted key of a class, or of a value of the class.
fn class_key(class: usize, rest: &str) -> String {
    format!("workload.mix.class[{class}]{rest}")
}

/// The dotted key of a stage.
fn stage_key(class: usize, stage: usize) -> String {
    class_key(class, &format!(".stages[{stage}]"))
}

impl Mix {
    /// Mean work of a job, core-seconds, for one copy of each task of all its stages.
    pub fn mean_work(&self) -> f64 {
        self.mean(|stage| stage.tasks.mean().max(1.0) * stage.demand.mean())
    }

    /// Mean number of tasks of a job, of all its stages.
    pub fn mean_tasks(&self) -> f64 {
        self.mean(|stage| stage.tasks.mean().max(1.0))
    }

    /// The stages of all classes, each with its dotted key.
    pub fn stages(&self) -> Vec<(String, &MixStage)> {
        let mut found = Vec::new();
        for (i, class) in self.class.iter().enumerate() {
            found.extend(class.stages.iter().enumerate().map(|(s, stage)| (stage_key(i, s), stage)));
        }
        found
    }

    fn mean(&self, of: impl Fn(&MixStage) -> f64) -> f64 {
        let class = |class: &MixClass| class.weight * class.stages.iter().map(&of).sum::<f64>();
        self.class.iter().map(class).sum::<f64>() / self.weights()
    }

    /// The most stages that a job can have.
    pub(super) fn most_stages(&self) -> u64 {
        self.class.iter().map(|class| class.stages.len() as u64).max().unwrap_or(0)
    }

    fn weights(&self) -> f64 {
        self.class.iter().map(|class| class.weight).sum()
    }

    /// Checks every key that does not depend on the seed.
    pub(super) fn check(&self, service: &Service) -> Result<(), WorkloadError> {
        if service.demand.is_some() {
            let why = "the stages of a mix state their own `demand`; leave the key out here";
            return Err(WorkloadError::config("service.demand", why));
        }
        if let Some(file) = &self.classes {
            let why = format!("{} was not read; write the classes as [[workload.mix.class]]", file.display());
            return Err(WorkloadError::config("workload.mix.classes", why));
        }
        if !(1..=MOST_CLASSES).contains(&self.class.len()) {
            let why = format!(
                "{} classes are not between 1 and {MOST_CLASSES}; write for example [[workload.mix.class]]",
                self.class.len()
            );
            return Err(WorkloadError::config("workload.mix.class", why));
        }
        (0..self.class.len()).try_for_each(|i| self.check_class(i))?;
        let weights = self.weights();
        if !(weights > 0.0 && weights.is_finite()) {
            let why = format!(
                "the weights sum to {weights}, so no job would have a class; give the classes shares such as 0.3"
            );
            return Err(WorkloadError::config(class_key(0, ".weight"), why));
        }
        Ok(())
    }

    fn check_class(&self, i: usize) -> Result<(), WorkloadError> {
        let MixClass { name, weight, stages, alone, .. } = &self.class[i];
        let refuse = |rest, why: String| Err(WorkloadError::config(class_key(i, rest), why));
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(letter) {
            let why = "is not a valid class name; write letters, digits, `-` and `_`, beginning with a letter: claims \
                       refer to it";
            return refuse(".name", format!("`{name}` {why}"));
        }
        if self.class[..i].iter().any(|other| other.name == *name) {
            return refuse(
                ".name",
                format!("two classes are called `{name}`; give one of them another name"),
            );
        }
        if !(weight.is_finite() && *weight >= 0.0) {
            return refuse(
                ".weight",
                format!("must be at least zero, not {weight}; write a share such as 0.3"),
            );
        }
        if *alone == Some(Span::ZERO) {
            let why = "must be above 0, because a slowdown over 0 is undefined; write the response time of the job \
                       alone in the cluster, or leave it out";
            return refuse(".alone", why.to_owned());
        }
        if !(1..=MOST_STAGES).contains(&stages.len()) {
            let why = format!(
                "{} stages are not between 1 and {MOST_STAGES}; write for example [{{ tasks = 10, demand = \"1s\" }}]",
                stages.len()
            );
            return refuse(".stages", why);
        }
        if let Err((key, why)) = names::check(&self.class[i], self.jobs) {
            return refuse(key, why);
        }
        let key = |s| format!("{}.tasks", stage_key(i, s));
        stages.iter().enumerate().try_for_each(|(s, stage)| {
            check_tasks(&key(s), &stage.tasks)?;
            stage
                .check_after(s)
                .map_err(|why| WorkloadError::config(format!("{}.after", stage_key(i, s)), why))
        })
    }

    /// Draws the stages of a run.
    pub(super) fn draw(&self, service: &Service, seed: u64) -> Result<Stages, WorkloadError> {
        let mut drawn = Stages {
            staging: Staging::new(self.class.iter().map(MixClass::graph).collect()),
            classes: self.kinds(service, seed),
            names: Names::new(self, seed),
        };
        let (shape, weights) = (Address::new(seed, Purpose::Shape), self.weights());
        for chain in 0..self.jobs {
            let class = self.pick(shape.at(u64::from(chain)).at(CLASS).unit() * weights);
            let stages = &self.class[class].stages;
            let tasks = |(s, stage): (usize, &MixStage)| {
                let tasks = task_count(&stage.tasks, chain, draws_of(s, seed, Purpose::Shape));
                tasks.map_err(|why| WorkloadError::config(format!("{}.tasks", stage_key(class, s)), why))
            };
            let tasks = stages.iter().enumerate().map(tasks).collect::<Result<Vec<_>, _>>()?;
            drawn.staging.add(class as u32, tasks);
            drawn.names.add(class, stages);
        }
        Ok(drawn)
    }

    /// The class at a point on the cumulative weights; rounding may carry the point past the last weight.
    fn pick(&self, point: f64) -> usize {
        let mut end = 0.0;
        let ends = self.class.iter().map(|class| {
            end += class.weight;
            end
        });
        let last = self.class.iter().rposition(|class| class.weight > 0.0).unwrap_or(0);
        ends.enumerate().find(|(_, end)| point < *end).map_or(last, |(class, _)| class)
    }

    fn kinds(&self, service: &Service, seed: u64) -> Vec<ClassRow> {
        let demand = |(s, stage): (usize, &MixStage)| {
            Demand::for_stage(s, stage.demand.clone(), service.homogeneous, service.correlated, seed)
        };
        let kind = |class: &MixClass| ClassRow {
            label: class.name.as_str().into(),
            alone: class.alone,
            long: class.long,
            demands: class.stages.iter().enumerate().map(demand).collect(),
        };
        self.class.iter().map(kind).collect()
    }
}

impl MixClass {
    /// The dependencies between the stages. A stage that does not state them waits for the stage before it.
    fn graph(&self) -> StageGraph {
        let after = |(s, stage): (usize, &MixStage)| match &stage.after {
            Some(after) => after.clone(),
            None => s.checked_sub(1).map(|before| before as u32).into_iter().collect(),
        };
        StageGraph::new(&self.stages.iter().enumerate().map(after).collect::<Vec<_>>())
    }
}

impl MixStage {
    /// Checks the stages that stage number `own` waits for.
    fn check_after(&self, own: usize) -> Result<(), String> {
        let after = self.after.as_deref().unwrap_or_default();
        if let Some(late) = after.iter().find(|&&other| other as usize >= own) {
            let why = "a stage can wait only for stages above it, which are numbered from 0";
            return Err(format!(
                "stage {own} waits for stage {late}, but {why}; list the stages in the order in which they run"
            ));
        }
        match after.iter().enumerate().find(|(at, other)| after[..*at].contains(other)) {
            Some((_, twice)) => Err(format!("names stage {twice} twice; name it once")),
            None => Ok(()),
        }
    }
}

/// The stages of a run by job id.
#[derive(Debug)]
pub(super) struct Stages {
    /// Chains and their graphs; a class has the graph of its number.
    pub(super) staging: Staging,
    classes: Vec<ClassRow>,
    names: Names,
}

/// A class of jobs.
#[derive(Debug)]
struct ClassRow {
    label: Arc<str>,
    alone: Option<Span>,
    long: bool,
    /// The work of each stage.
    demands: Vec<Demand>,
}

impl Stages {
    /// Keeps some of the chains, given their numbers in order. They are numbered anew.
    pub(super) fn keep(&mut self, chains: &[u32]) {
        let kept: Vec<u32> = chains.iter().flat_map(|&chain| self.staging.stages_of(chain)).collect();
        self.names.keep(chains, &kept);
        self.staging.keep(chains);
    }

    /// The index of a stage's class.
    pub(super) fn class(&self, job: JobId) -> usize {
        self.staging.kind(self.staging.chain(job)) as usize
    }

    /// Whether policies treat a stage as long.
    pub(super) fn is_long(&self, job: JobId) -> bool {
        self.classes[self.class(job)].long
    }

    /// The stated response time of the job's chain alone in the cluster.
    pub(super) fn alone(&self, job: JobId) -> Option<Span> {
        self.classes[self.class(job)].alone
    }

    /// The work of a stage.
    pub(super) fn demand(&self, job: JobId) -> JobDemand<'_> {
        let demand = &self.classes[self.class(job)].demands[self.staging.place(job) as usize];
        demand.for_job(JobId(self.staging.chain(job)), self.names.mean(job))
    }

    /// The value of a job's feature, zero if it is unknown. Users and names are numbered across all classes.
    pub(super) fn feature(&self, job: JobId, feature: Feature) -> u32 {
        match feature {
            Feature::User => self.names.label(self.staging.chain(job)).user,
            Feature::Name => self.names.label(self.staging.chain(job)).name,
            Feature::Class => self.class(job) as u32 + 1,
            Feature::Size => self.staging.tasks(job),
            Feature::LogicalName
            | Feature::Queue
            | Feature::Application
            | Feature::Priority
            | Feature::Requested
            | Feature::Hour
            | Feature::Cores
            | Feature::Gpus
            | Feature::Memory => 0,
        }
    }

    /// Labels of the classes.
    pub(super) fn labels(&self) -> Vec<Arc<str>> {
        self.classes.iter().map(|class| Arc::clone(&class.label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::catalog::Catalog;

    use super::*;
    use crate::workload::{Estimate, NoTraces, Synthetic, Workload, WorkloadSpec};

    /// Two classes: jobs of two stages with a probability of 0.3, and jobs of one stage with a probability of 0.7.
    const TWO: &str = r#"
        jobs = 4000
        interarrival = { exponential = { mean = "1s" } }
        [[class]]
        name = "pair"
        weight = 3
        stages = [
            { tasks = { uniform = { low = 2, high = 9 } }, demand = { exponential = { mean = "2s" } } },
            { tasks = 3, demand = "500ms" },
        ]
        alone = "7s"
        [[class]]
        name = "single"
        weight = 7
        stages = [{ tasks = 1, demand = { exponential = { mean = "9s" } } }]
        long = true
    "#;

    fn mix(text: &str) -> Mix {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn build(text: &str, service: &str, clients: u32) -> Workload {
        let service: Service = toml::from_str(service).unwrap();
        Workload::build(&WorkloadSpec::Mix(mix(text)), &service, 5, clients, &NoTraces).unwrap()
    }

    fn stages(workload: &Workload, chain: u32) -> Vec<JobId> {
        workload.jobs_of(chain).map(JobId).collect()
    }

    #[test]
    fn stages_follow_each_other_in_their_chain() {
        let workload = build(TWO, "homogeneous = false", 3);
        let (chains, mut next) = (workload.chains(), 0);
        assert_eq!(chains, 4000);
        for chain in 0..chains {
            let ids = stages(&workload, chain);
            assert_eq!(ids[0].0, next, "ids are dense, in order of arrival");
            next += ids.len() as u32;
            let class = workload.class_index(ids[0]);
            assert_eq!(ids.len(), [2, 1][class]);
            let mut tasks = 0;
            for (s, &job) in ids.iter().enumerate() {
                let spec = workload.job(job);
                assert_eq!(
                    (spec.arrival, spec.client),
                    (workload.job(ids[0]).arrival, workload.job(ids[0]).client)
                );
                assert_eq!((workload.chain(job), workload.tasks_before(job)), (chain, tasks));
                let links = workload.links(job);
                assert!(links.predecessors().eq(s.checked_sub(1).map(|before| ids[before])));
                assert!(links.successors().eq(ids.get(s + 1).copied()));
                assert_eq!(
                    (workload.class_index(job), spec.class),
                    (class, class as u8),
                    "only `single` is long"
                );
                tasks += spec.tasks;
            }
            assert_eq!(workload.alone(ids[0]), [Some(Span::from_secs(7)), None][class]);
        }
        assert_eq!(workload.jobs(), next);
        assert_eq!(workload.classes().iter().map(|label| &**label).collect::<Vec<_>>(), ["pair", "single"]);
    }

    #[test]
    fn clients_receive_only_the_first_stages() {
        for clients in [1, 3] {
            let workload = build(TWO, "", clients);
            let mut arrived = Vec::new();
            for client in 0..clients {
                let mut from = 0;
                while let Some(job) = workload.next_of(client, from) {
                    assert_eq!(
                        (workload.job(job).client, workload.links(job).predecessors),
                        (client, &[][..])
                    );
                    arrived.push(job);
                    from = job.0 + 1;
                }
            }
            arrived.sort();
            let first: Vec<_> = (0..workload.chains()).map(|chain| stages(&workload, chain)[0]).collect();
            assert_eq!(arrived, first, "{clients} clients");
        }
    }

    #[test]
    fn classes_have_the_configured_shares_and_means() {
        let workload = build(TWO, "homogeneous = false", 1);
        let n = f64::from(workload.chains());
        let pairs =
            (0..workload.chains()).filter(|&chain| stages(&workload, chain).len() == 2).count() as f64;
        assert!((pairs - 0.3 * n).abs() < 4.0 * (n * 0.21).sqrt(), "{pairs} of {n}");
        // 0.3 × (5.5 × 2 s + 3 × 0.5 s) + 0.7 × 9 s, and 0.3 × 8.5 + 0.7 tasks.
        let two = mix(TWO);
        assert!((two.mean_work() - 10.05).abs() < 1e-9 && (two.mean_tasks() - 3.25).abs() < 1e-9);
        let drawn = (workload.total_work() / n, workload.total_tasks() as f64 / n);
        assert!((drawn.0 / 10.05 - 1.0).abs() < 0.05 && (drawn.1 / 3.25 - 1.0).abs() < 0.03, "{drawn:?}");
        let never = mix(&TWO.replace("weight = 7", "weight = 0"));
        assert!((0..1000).all(|point| never.pick(f64::from(point) * 0.003) == 0));
        assert_eq!(never.pick(3.0), 0, "rounding never reaches a class without weight");
    }

    /// The work of a stage follows its own distribution, and two stages share no draw.
    #[test]
    fn stages_draw_independently() {
        let alike = TWO.replace(
            "{ tasks = 3, demand = \"500ms\" }",
            "{ tasks = 4, demand = { exponential = { mean = \"2s\" } } }",
        );
        let (workload, shorter) =
            (build(&alike, "homogeneous = false", 1), build(TWO, "homogeneous = false", 1));
        let pairs = (0..workload.chains()).map(|chain| stages(&workload, chain)).filter(|ids| ids.len() == 2);
        let mut sum = 0.0;
        for ids in pairs {
            let work = |job: JobId| workload.work(job.task(0).copy(0));
            assert_ne!(work(ids[0]), work(ids[1]));
            assert_eq!(
                work(ids[0]),
                shorter.work(ids[0].task(0).copy(0)),
                "another second stage changes no other draw"
            );
            assert_eq!(workload.estimate(ids[1].task(2)), workload.work(ids[1].task(2).copy(3)));
            sum += work(ids[0]).as_secs_f64() * work(ids[1]).as_secs_f64() / 4.0;
        }
        // The mean product of two independent draws of mean 2 s; five standard errors of sqrt(3 / 1200).
        assert!((sum / 1200.0 - 1.0).abs() < 0.3, "{sum}");
    }

    /// A mix of one class of one stage draws the same jobs as a synthetic workload.
    #[test]
    fn a_mix_of_one_stage_equals_a_synthetic_workload() {
        let distributions = "tasks = { uniform = { low = 1, high = 9 } }";
        let (gap, demand) = (
            "interarrival = { exponential = { mean = \"1s\" } }",
            "demand = { exponential = { mean = \"2s\" } }",
        );
        for rest in [
            "homogeneous = false",
            "homogeneous = 0.5\ncorrelated = 0.5",
            "estimate = \"mean\"\nhomogeneous = false",
        ] {
            let one = format!(
                "jobs = 300\n{gap}\n[[class]]\nname = \"a\"\nweight = 0.2\nstages = [{{ {distributions}, {demand} }}]"
            );
            let one = build(&one, rest, 3);
            let spec: Synthetic = toml::from_str(&format!("jobs = 300\n{gap}\n{distributions}")).unwrap();
            let service: Service = toml::from_str(&format!("{demand}\n{rest}")).unwrap();
            let other = Workload::build(&WorkloadSpec::Synthetic(spec), &service, 5, 3, &NoTraces).unwrap();
            for job in (0..300).map(JobId) {
                assert_eq!(one.job(job), other.job(job), "{rest}");
                assert_eq!(one.job_estimate(job), other.job_estimate(job), "{rest}");
                for task in (0..one.tasks(job)).map(|index| job.task(index)) {
                    assert_eq!(one.estimate(task), other.estimate(task), "{rest}");
                    assert_eq!(one.work(task.copy(1)), other.work(task.copy(1)), "{rest}");
                }
            }
        }
    }

    #[test]
    fn all_stages_of_a_job_have_the_same_estimation_error() {
        let distribution = "estimate = { error = { uniform = { low = 0.5, high = 1.5 } } }";
        let (wrong, right) = (build(TWO, distribution, 1), build(TWO, "", 1));
        assert!(
            matches!(wrong.drawn.estimate, Estimate::Error(_))
                && matches!(right.drawn.estimate, Estimate::Exact)
        );
        for ids in (0..100).map(|chain| stages(&wrong, chain)).filter(|ids| ids.len() == 2) {
            let factor =
                |job: JobId| wrong.job_estimate(job).as_secs_f64() / right.job_estimate(job).as_secs_f64();
            assert!((factor(ids[0]) - factor(ids[1])).abs() < 1e-6 && (0.5..=1.5).contains(&factor(ids[0])));
        }
    }

    #[test]
    fn impossible_classes_and_stages_are_refused() {
        for (from, to, key, words) in [
            ("weight = 3", "weight = -1", "class[0].weight", "at least zero, not -1"),
            ("weight = 3", "weight = nan", "class[0].weight", "at least zero"),
            ("name = \"single\"", "name = \"pair\"", "class[1].name", "two classes are called `pair`"),
            ("name = \"pair\"", "name = \"a.b\"", "class[0].name", "`a.b` is not a valid"),
            ("alone = \"7s\"", "alone = \"0s\"", "class[0].alone", "slowdown over 0"),
            ("tasks = 3", "tasks = 0", "class[0].stages[1].tasks", "cannot have 0 tasks"),
            ("tasks = 3", "tasks = { empirical = { file = \"n\" } }", "class[0].stages[1].tasks", "not read"),
            (
                "demand = \"500ms\"",
                "demand = \"0s\"",
                "class[0].stages[1].demand",
                "no copy would have any work",
            ),
            (
                "demand = \"500ms\"",
                "demand = \"1s\", after = [1]",
                "class[0].stages[1].after",
                "waits for stage 1",
            ),
            (
                "demand = \"500ms\"",
                "demand = \"1s\", after = [0, 0]",
                "class[0].stages[1].after",
                "stage 0 twice",
            ),
            ("jobs = 4000", "jobs = 0", "jobs", "0 jobs"),
            ("jobs = 4000", "jobs = 4000\nsynchronous = 2", "synchronous", "give each job one stage"),
            ("jobs = 4000", "jobs = 60_000_000", "jobs", "of up to 2 stages"),
        ] {
            assert!(TWO.contains(from));
            let text = TWO.replacen(from, to, 1);
            let error = Workload::build(&WorkloadSpec::Mix(mix(&text)), &Service::default(), 5, 1, &NoTraces);
            let error = error.err().unwrap_or_else(|| panic!("{to} was accepted")).to_string();
            assert!(
                error.starts_with(&format!("workload.mix.{key}: ")) && error.contains(words),
                "{to}: {error}"
            );
        }
        let refused = |mix: Mix, service: &str| {
            let service: Service = toml::from_str(service).unwrap();
            Workload::build(&WorkloadSpec::Mix(mix), &service, 5, 1, &NoTraces).unwrap_err().to_string()
        };
        let gone = |change: fn(&mut Mix)| {
            let mut mix = mix(TWO);
            change(&mut mix);
            refused(mix, "")
        };
        assert!(gone(|mix| mix.class.clear()).starts_with("workload.mix.class: 0 classes"));
        assert!(
            gone(|mix| mix.class[1].stages.clear()).starts_with("workload.mix.class[1].stages: 0 stages")
        );
        let none = gone(|mix| mix.class.iter_mut().for_each(|class| class.weight = 0.0));
        assert!(none.starts_with("workload.mix.class[0].weight: the weights sum to 0"), "{none}");
        let own = refused(mix(TWO), "demand = \"1s\"");
        assert!(own.starts_with("service.demand: the stages of a mix"), "{own}");
        let heavy = TWO
            .replace("{ exponential = { mean = \"9s\" } }", "{ pareto = { scale = \"1s\", shape = 0.9 } }");
        let heavy = refused(mix(&heavy), "correlated = false");
        assert!(heavy.starts_with("workload.mix.class[1].stages[0].demand: uncorrelated"), "{heavy}");
    }
}
