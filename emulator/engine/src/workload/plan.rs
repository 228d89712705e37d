//! The plan of a workload: sections of an experiment file after checks, files and defaults, ready to draw jobs under a
//! seed.

use std::sync::{Arc, OnceLock};

use volary_actors::base::{Address, JobId, Law, Purpose, Span, Time};

use super::config::{Estimate, Like, Mix, Model, Service, Synthetic, TraceSpec, WorkloadSpec};
use super::error::WorkloadError;
use super::generate::{LikeJob, Published};
use super::jobs::{Addresses, Means, Shapes, Workload};
use super::tasks::{check_tasks, task_count};
use super::trace::{Trace, TraceSource};
use super::work::Demand;

/// A workload whose files are read and whose defaults are filled in; only the seed is missing.
pub(super) struct Plan {
    /// Dotted key of its section, for errors.
    section: &'static str,
    jobs: Jobs,
    /// Gap before each arrival; `None` keeps the trace's.
    gap: Option<Law<Span>>,
    speedup: f64,
    cutoff: Option<Span>,
    deadline_slack: Option<Law<f64>>,
    service: Service,
    warnings: Vec<String>,
}

enum Jobs {
    Synthetic { jobs: u32, tasks: Law<f64> },
    Like { jobs: u32, model: Model, facts: Published },
    Traced(Arc<Trace>),
    Mix(Mix),
}

impl Workload {
    /// Builds the jobs that `spec` and `service` describe under `seed`, for `schedulers` clients. Traces come from
    /// `traces` and are shared between runs.
    ///
    /// # Errors
    /// When a trace is missing or malformed, or a key is invalid; the message names the remedy.
    pub fn build(
        spec: &WorkloadSpec,
        service: &Service,
        seed: u64,
        schedulers: u32,
        traces: &dyn TraceSource,
    ) -> Result<Self, WorkloadError> {
        if schedulers == 0 {
            return Err(WorkloadError::config("cluster.schedulers", "must be at least 1"));
        }
        Plan::new(spec, service, traces)?.draw(seed, schedulers)
    }
}

/// Address of the draw of this trait of a job, below the job's own address of purpose `Shape`; `work` uses 1 and 2.
const SLACK: u64 = 3;

/// Maximum number of jobs of a generated workload: each costs memory, and a larger number is a mistake.
const MOST_JOBS: u32 = 100_000_000;

/// Labels of the classes below and from a cutoff.
const CLASSES: [&str; 2] = ["short", "long"];

impl Plan {
    /// Checks the sections, fills in defaults and reads the files they name.
    pub(super) fn new(
        spec: &WorkloadSpec,
        service: &Service,
        traces: &dyn TraceSource,
    ) -> Result<Self, WorkloadError> {
        let plan = match spec {
            WorkloadSpec::Synthetic(spec) => Self::synthetic(spec, service)?,
            WorkloadSpec::Mix(spec) => Self::mix(spec, service)?,
            WorkloadSpec::Trace(spec) => Self::trace(spec, service, traces)?,
            WorkloadSpec::YahooLike(spec) => {
                Self::like("workload.yahoo-like", Model::YahooLike, spec, service)?
            }
            WorkloadSpec::ClouderaLike(spec) => {
                Self::like("workload.cloudera-like", Model::ClouderaLike, spec, service)?
            }
        };
        plan.check_laws()?;
        plan.check()?;
        Ok(plan)
    }

    fn synthetic(spec: &Synthetic, service: &Service) -> Result<Self, WorkloadError> {
        check_jobs("workload.synthetic", spec.jobs)?;
        check_tasks("workload.synthetic.tasks", &spec.tasks)?;
        if service.demand.is_none() {
            return Err(WorkloadError::config(
                "service.demand",
                "a synthetic workload needs it; write for example demand = { exponential = { mean = \"1s\" } }",
            ));
        }
        Ok(Self {
            section: "workload.synthetic",
            jobs: Jobs::Synthetic { jobs: spec.jobs, tasks: spec.tasks.clone() },
            gap: Some(spec.interarrival.clone()),
            speedup: spec.speedup,
            cutoff: spec.cutoff,
            deadline_slack: spec.deadline_slack.clone(),
            service: service.clone(),
            warnings: Vec::new(),
        })
    }

    fn mix(spec: &Mix, service: &Service) -> Result<Self, WorkloadError> {
        check_jobs("workload.mix", spec.jobs)?;
        spec.check(service)?;
        let most = spec.most_stages();
        if u64::from(spec.jobs) * most > u64::from(MOST_JOBS) {
            let why = format!(
                "{} jobs of up to {most} stages are more than {MOST_JOBS} stages; lower their number",
                spec.jobs
            );
            return Err(WorkloadError::config("workload.mix.jobs", why));
        }
        Ok(Self {
            section: "workload.mix",
            jobs: Jobs::Mix(spec.clone()),
            gap: Some(spec.interarrival.clone()),
            speedup: spec.speedup,
            cutoff: None,
            deadline_slack: None,
            service: service.clone(),
            warnings: Vec::new(),
        })
    }

    fn like(
        section: &'static str,
        model: Model,
        spec: &Like,
        service: &Service,
    ) -> Result<Self, WorkloadError> {
        let facts = model.published();
        let jobs = spec.jobs.unwrap_or(facts.jobs);
        check_jobs(section, jobs)?;
        let (gap, cutoff) = (facts.gap.clone(), facts.cutoff);
        let plan = Self::following(section, spec.clone(), Jobs::Like { jobs, model, facts }, service);
        Ok(Self { gap: plan.gap.or(Some(gap)), cutoff: plan.cutoff.or(Some(cutoff)), ..plan })
    }

    /// Plans the jobs of a trace, or of a generator like it, with the changes of the section.
    fn following(section: &'static str, spec: Like, jobs: Jobs, service: &Service) -> Self {
        Self {
            section,
            jobs,
            gap: spec.interarrival,
            speedup: spec.speedup,
            cutoff: spec.cutoff,
            deadline_slack: spec.deadline_slack,
            service: service.clone(),
            warnings: Vec::new(),
        }
    }

    fn trace(spec: &TraceSpec, service: &Service, traces: &dyn TraceSource) -> Result<Self, WorkloadError> {
        check_jobs("workload.trace", spec.jobs.unwrap_or(1))?;
        let trace = match (traces.open(&spec.file, spec.jobs), spec.fallback) {
            (Err(WorkloadError::Missing { .. }), Some(model)) => return Self::stand_in(model, spec, service),
            (trace, _) => trace?,
        };
        let mut warnings = trace.notes().to_vec();
        if let Some(asked) = spec.jobs.filter(|&asked| (trace.jobs().len() as u64) < u64::from(asked)) {
            let has = trace.jobs().len();
            warnings.push(format!("`{}` has only {has} of the {asked} jobs asked for", spec.file.display()));
        }
        let plan = Self::following("workload.trace", spec.like(), Jobs::Traced(trace), service);
        Ok(Self { warnings, ..plan })
    }

    /// The generator that a trace section names as a fallback for a missing file.
    fn stand_in(model: Model, spec: &TraceSpec, service: &Service) -> Result<Self, WorkloadError> {
        let mut plan = Self::like("workload.trace", model, &spec.like(), service)?;
        let name = match model {
            Model::YahooLike => "yahoo-like",
            Model::ClouderaLike => "cloudera-like",
        };
        plan.warnings.push(format!(
            "trace `{}` was found nowhere: the {name} generator stands in for it, so numbers will be like the \
             trace's, not equal to them",
            spec.file.display()
        ));
        Ok(plan)
    }

    /// Checks that the values of `empirical` laws were read with the experiment.
    fn check_laws(&self) -> Result<(), WorkloadError> {
        let section = self.section;
        let tasks = matches!(&self.jobs, Jobs::Synthetic { tasks, .. } if tasks.is_unread());
        let error = matches!(&self.service.estimate, Some(Estimate::Error(law)) if law.is_unread());
        let mut laws = vec![
            (tasks, format!("{section}.tasks")),
            (self.gap.as_ref().is_some_and(Law::is_unread), format!("{section}.interarrival")),
            (self.deadline_slack.as_ref().is_some_and(Law::is_unread), format!("{section}.deadline_slack")),
            (error, "service.estimate".into()),
        ];
        laws.extend(self.demands().into_iter().map(|(key, law)| (law.is_unread(), key)));
        if let Jobs::Mix(mix) = &self.jobs {
            let stages = mix.stages().into_iter();
            laws.extend(stages.map(|(key, stage)| (stage.tasks.is_unread(), format!("{key}.tasks"))));
        }
        for (unread, key) in laws {
            if unread {
                return Err(WorkloadError::config(
                    key,
                    "the file of this law was not read; give its `values`",
                ));
            }
        }
        Ok(())
    }

    /// The laws of work, each with its dotted key.
    fn demands(&self) -> Vec<(String, &Law<Span>)> {
        match &self.jobs {
            Jobs::Mix(mix) => {
                let stages = mix.stages().into_iter();
                stages.map(|(key, stage)| (format!("{key}.demand"), &stage.demand)).collect()
            }
            Jobs::Synthetic { .. } | Jobs::Like { .. } | Jobs::Traced(_) => {
                self.service.demand.iter().map(|law| ("service.demand".to_owned(), law)).collect()
            }
        }
    }

    /// Checks that involve several keys.
    fn check(&self) -> Result<(), WorkloadError> {
        if !(self.speedup.is_finite() && self.speedup > 0.0) {
            let why = format!(
                "must be a positive number, not {}; write 1 for the pace of the gaps as they are",
                self.speedup
            );
            return Err(WorkloadError::config(format!("{}.speedup", self.section), why));
        }
        if let Some(Estimate::Error(law)) = &self.service.estimate
            && (law.mean().is_nan() || law.mean() <= 0.0)
        {
            return Err(WorkloadError::config(
                "service.estimate",
                "every estimate would be zero; write a factor around 1, such as { error = { uniform = { low = 0.5, \
                 high = 1.5 } } }",
            ));
        }
        let correlated = self.service.correlated.part() >= 1.0;
        let demands = self.demands();
        if demands.is_empty() && !correlated {
            return Err(WorkloadError::config(
                "service.correlated",
                "copies of a task can only differ under a law of work: the trace gives each task one duration; set \
                 service.demand, or leave `correlated` true",
            ));
        }
        demands.into_iter().try_for_each(|(key, law)| check_demand(key, law, correlated))
    }

    /// Draws the jobs under `seed`.
    pub(super) fn draw(self, seed: u64, schedulers: u32) -> Result<Workload, WorkloadError> {
        let shape = Address::new(seed, Purpose::Shape);
        let drawn = !self.demands().is_empty();
        let estimate =
            self.service.estimate.clone().unwrap_or(if drawn { Estimate::Exact } else { Estimate::Mean });
        let (homogeneous, correlated) = (self.service.homogeneous, self.service.correlated);
        let (shapes, own) = match self.jobs {
            Jobs::Mix(mix) => (Shapes::Staged(mix.draw(&self.service, seed)?), None),
            Jobs::Synthetic { jobs, tasks } => {
                let refused = |why| WorkloadError::config("workload.synthetic.tasks", why);
                let count = |job| task_count(&tasks, job, shape).map_err(refused);
                (Shapes::Drawn((0..jobs).map(count).collect::<Result<_, _>>()?), None)
            }
            Jobs::Like { jobs, model, facts } => {
                let like = |job| model.shape(&facts, &mut shape.at(u64::from(job)).draw());
                (Shapes::Like((0..jobs).map(like).collect::<Vec<LikeJob>>()), None)
            }
            Jobs::Traced(trace) => {
                let arrivals: Vec<Time> = trace.jobs().iter().map(|job| job.arrival).collect();
                (Shapes::Traced(trace), Some(arrivals))
            }
        };
        let demand = self.service.demand.map(|law| Demand::new(law, homogeneous, correlated, seed));
        let arrivals = arrivals(self.gap.as_ref(), own, shapes.chains(), self.speedup, seed);
        if arrivals.last() == Some(&Time::MAX) {
            let why = "the last job would arrive after the 584 years a run can last; shorten the gaps";
            let key = if self.gap.is_some() { "interarrival" } else { "speedup" };
            return Err(WorkloadError::config(format!("{}.{key}", self.section), why));
        }
        let mut workload = Workload {
            // Homogeneous jobs under a law of demand need no mean over tasks.
            means: Means::new(if drawn && homogeneous.part() >= 1.0 { 0 } else { shapes.len() }),
            classes: labels(&shapes, self.cutoff),
            shapes,
            arrivals,
            deadlines: None,
            demand,
            estimate,
            cutoff: self.cutoff,
            schedulers,
            homes: OnceLock::new(),
            addresses: Addresses::new(seed),
            warnings: self.warnings,
        };
        workload.deadlines = self.deadline_slack.map(|slack| deadlines(&workload, &slack, shape));
        Ok(workload)
    }
}

/// Checks a law of work, `correlated` if the copies of a task are alike.
fn check_demand(key: String, law: &Law<Span>, correlated: bool) -> Result<(), WorkloadError> {
    if law.mean() == 0.0 {
        let why = "no copy would have any work; write for example { exponential = { mean = \"1s\" } }";
        return Err(WorkloadError::config(key, why));
    }
    if !correlated && !law.mean().is_finite() {
        let why = "uncorrelated copies need a law with a finite mean; give a pareto a shape above 1";
        return Err(WorkloadError::config(key, why));
    }
    Ok(())
}

fn check_jobs(section: &str, jobs: u32) -> Result<(), WorkloadError> {
    if (1..=MOST_JOBS).contains(&jobs) {
        return Ok(());
    }
    let why = format!("{jobs} jobs are not between 1 and {MOST_JOBS}; write for example 10_000");
    Err(WorkloadError::config(format!("{section}.jobs"), why))
}

/// Labels of the classes of jobs.
fn labels(shapes: &Shapes, cutoff: Option<Span>) -> Vec<Arc<str>> {
    if let Shapes::Staged(stages) = shapes {
        return stages.labels();
    }
    CLASSES[..1 + usize::from(cutoff.is_some())].iter().map(|&class| class.into()).collect()
}

/// Arrivals by the law of gaps, or else those of the trace relative to its first, so that an excerpt of a long log does
/// not begin with days of idle time; both divided by `speedup`.
fn arrivals(
    gap: Option<&Law<Span>>,
    own: Option<Vec<Time>>,
    jobs: usize,
    speedup: f64,
    seed: u64,
) -> Vec<Time> {
    // A speed-up of one must not convert nanoseconds to a float.
    let faster = |time: Time| {
        if speedup == 1.0 { time } else { Time(Span(time.0).scale(1.0 / speedup).0) }
    };
    let Some(gap) = gap else {
        let own = own.unwrap_or_default();
        let first = own.first().copied().unwrap_or_default();
        return own.into_iter().map(|time| faster(Time(time.since(first).0))).collect();
    };
    let base = Address::new(seed, Purpose::Arrival);
    let step = |now: &mut Time, job| {
        *now += gap.sample(&mut base.at(job as u64).draw());
        Some(faster(*now))
    };
    (0..jobs).scan(Time::ZERO, step).collect()
}

fn deadlines(workload: &Workload, slack: &Law<f64>, shape: Address) -> Vec<Time> {
    let deadline = |job: u32| {
        let slack = slack.sample(&mut shape.at(u64::from(job)).at(SLACK).draw());
        workload.arrivals[job as usize] + workload.longest(JobId(job)).scale(1.0 + slack)
    };
    (0..workload.arrivals.len() as u32).map(deadline).collect()
}
