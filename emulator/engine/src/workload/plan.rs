//! The plan of a workload: sections of an experiment file after checks, files and defaults, ready to draw jobs under a
//! seed.

use std::sync::{Arc, OnceLock};

use volary_actors::base::{Address, JobId, Law, Purpose, Span, Time};

use super::config::{Estimate, Like, Model, Service, Synthetic, TraceSpec, WorkloadSpec};
use super::error::WorkloadError;
use super::generate::{LikeJob, Published};
use super::jobs::{Addresses, Means, Shapes, Workload};
use super::trace::{MOST_TASKS, Trace, TraceSource};
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
        check_tasks(&spec.tasks)?;
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
            speedup: 1.0,
            cutoff: spec.cutoff,
            deadline_slack: spec.deadline_slack.clone(),
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
        for (unread, key) in [
            (tasks, format!("{section}.tasks")),
            (self.gap.as_ref().is_some_and(Law::is_unread), format!("{section}.interarrival")),
            (self.deadline_slack.as_ref().is_some_and(Law::is_unread), format!("{section}.deadline_slack")),
            (self.service.demand.as_ref().is_some_and(Law::is_unread), "service.demand".into()),
            (error, "service.estimate".into()),
        ] {
            if unread {
                return Err(WorkloadError::config(
                    key,
                    "the file of this law was not read; give its `values`",
                ));
            }
        }
        Ok(())
    }

    /// Checks that involve several keys.
    fn check(&self) -> Result<(), WorkloadError> {
        if !(self.speedup.is_finite() && self.speedup > 0.0) {
            let why =
                format!("must be a positive number, not {}; write 1 for the trace's own pace", self.speedup);
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
        match &self.service.demand {
            None if !correlated => Err(WorkloadError::config(
                "service.correlated",
                "copies of a task can only differ under a law of work: the trace gives each task one duration; set \
                 service.demand, or leave `correlated` true",
            )),
            Some(law) if law.mean() == 0.0 => Err(WorkloadError::config(
                "service.demand",
                "no copy would have any work; write for example { exponential = { mean = \"1s\" } }",
            )),
            Some(law) if !correlated && !law.mean().is_finite() => Err(WorkloadError::config(
                "service.demand",
                "uncorrelated copies need a law with a finite mean; give a pareto a shape above 1",
            )),
            _ => Ok(()),
        }
    }

    /// Draws the jobs under `seed`.
    pub(super) fn draw(self, seed: u64, schedulers: u32) -> Result<Workload, WorkloadError> {
        let shape = Address::new(seed, Purpose::Shape);
        let estimate = self.service.estimate.unwrap_or(match self.service.demand {
            Some(_) => Estimate::Exact,
            None => Estimate::Mean,
        });
        let (homogeneous, correlated) = (self.service.homogeneous, self.service.correlated);
        let demand = self.service.demand.map(|law| Demand::new(law, homogeneous, correlated, seed));
        let (shapes, own) = match self.jobs {
            Jobs::Synthetic { jobs, tasks } => {
                let count = |job| task_count(&tasks, job, shape);
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
        let jobs = shapes.len();
        let arrivals = arrivals(self.gap.as_ref(), own, jobs, self.speedup, seed);
        if arrivals.last() == Some(&Time::MAX) {
            let why = "the last job would arrive after the 584 years a run can last; shorten the gaps";
            let key = if self.gap.is_some() { "interarrival" } else { "speedup" };
            return Err(WorkloadError::config(format!("{}.{key}", self.section), why));
        }
        let mut workload = Workload {
            // Homogeneous jobs under a law of demand need no mean over tasks.
            means: Means::new(if demand.is_some() && homogeneous.part() >= 1.0 { 0 } else { jobs }),
            shapes,
            arrivals,
            deadlines: None,
            demand,
            estimate,
            classes: CLASSES[..1 + usize::from(self.cutoff.is_some())].iter().map(|&c| c.into()).collect(),
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

fn check_jobs(section: &str, jobs: u32) -> Result<(), WorkloadError> {
    if (1..=MOST_JOBS).contains(&jobs) {
        return Ok(());
    }
    let why = format!("{jobs} jobs are not between 1 and {MOST_JOBS}; write for example 10_000");
    Err(WorkloadError::config(format!("{section}.jobs"), why))
}

/// Refuses a law whose bounds state that jobs have less than one task. Where only the tail of a law is below one,
/// samples are rounded and count as at least one.
fn check_tasks(law: &Law<f64>) -> Result<(), WorkloadError> {
    let written: &[f64] = match law {
        Law::Constant(tasks) => std::slice::from_ref(tasks),
        Law::Empirical(observed) => &observed.values,
        Law::Uniform(_)
        | Law::Normal(_)
        | Law::Lognormal(_)
        | Law::Exponential(_)
        | Law::Gamma(_)
        | Law::Erlang(_)
        | Law::Pareto(_)
        | Law::Weibull(_)
        | Law::Hyperexponential(_) => &[],
    };
    let error = |what: f64| {
        let why = format!("a job cannot have {what} tasks; write whole numbers of at least 1");
        Err(WorkloadError::config("workload.synthetic.tasks", why))
    };
    if let Some(&part) = written.iter().find(|tasks| tasks.fract() != 0.0) {
        return error(part);
    }
    match law.bounds().0.unwrap_or_else(|| law.mean()) {
        least if least < 1.0 => error(least),
        _ => Ok(()),
    }
}

impl Shapes {
    fn len(&self) -> usize {
        match self {
            Self::Drawn(tasks) => tasks.len(),
            Self::Like(jobs) => jobs.len(),
            Self::Traced(trace) => trace.jobs().len(),
        }
    }
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

/// Number of tasks of a drawn job.
fn task_count(law: &Law<f64>, job: u32, shape: Address) -> Result<u32, WorkloadError> {
    let tasks = law.sample(&mut shape.at(u64::from(job)).draw()).round().max(1.0);
    if tasks > f64::from(MOST_TASKS) {
        let why =
            format!("job {job} drew {tasks:.0} tasks, more than {MOST_TASKS}; give the law a lighter tail");
        return Err(WorkloadError::config("workload.synthetic.tasks", why));
    }
    Ok(tasks as u32)
}

fn deadlines(workload: &Workload, slack: &Law<f64>, shape: Address) -> Vec<Time> {
    let deadline = |job: u32| {
        let slack = slack.sample(&mut shape.at(u64::from(job)).at(SLACK).draw());
        workload.arrivals[job as usize] + workload.longest(JobId(job)).scale(1.0 + slack)
    };
    (0..workload.arrivals.len() as u32).map(deadline).collect()
}
