//! The plan of a workload: sections of an experiment file after checks, files and defaults, ready to draw jobs under a
//! seed.

use std::sync::{Arc, OnceLock};

use volary_actors::base::{Address, DistributionSpec, Purpose, Span, Time};

use super::by::{By, Split};
use super::config::{Estimate, Like, Mix, Model, Service, Synthetic, TraceSpec, WorkloadSpec};
use super::drawn::{Addresses, Drawn, LikeJob, Means, Published, Shapes};
use super::gossip::Gossip;
use super::jobs::{Past, Workload};
use super::read::TraceSource;
use super::slo::{Arrived, Goals, SLACK, Slo, due};
use super::trace::{Format, Trace, WorkloadError};
use super::usage::{LargestNode, Uses};
use super::work::{Demand, MOST_JOBS, check_demand, check_jobs, check_tasks, task_count};

/// A workload whose files are read and whose defaults are filled in; only the seed is missing.
pub(super) struct Plan {
    /// Dotted key of its section, for errors.
    section: &'static str,
    jobs: Jobs,
    /// Gap before each arrival; `None` keeps the gaps of the trace.
    gap: Option<DistributionSpec<Span>>,
    speedup: f64,
    cutoff: Option<Span>,
    deadline_slack: Option<DistributionSpec<f64>>,
    slo: Option<Slo>,
    gang: bool,
    filter: bool,
    pretrain: u32,
    /// The feature by which results are split.
    by: Option<By>,
    /// Number of steps of a job.
    steps: u32,
    /// Whether tasks wait for the tasks that a trace names.
    dependencies: bool,
    service: Service,
    warnings: Vec<String>,
}

/// The properties of a cluster on which its workload depends.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Number of schedulers, and of clients.
    pub schedulers: u32,
    /// Number of cores, on which a gang must fit.
    pub cores: u64,
    /// Capacity of the largest shared node.
    pub largest: Option<LargestNode>,
}

impl From<u32> for Site {
    /// A cluster of any size with this many schedulers.
    fn from(schedulers: u32) -> Self {
        Self { schedulers, cores: u64::MAX, largest: None }
    }
}

enum Jobs {
    Synthetic { jobs: u32, tasks: DistributionSpec<f64> },
    Like { jobs: u32, model: Model, facts: Published },
    Traced(Arc<Trace>),
    Mix(Mix),
}

impl Workload {
    /// Builds the jobs that `spec` and `service` describe under `seed`, for the clients of `site`. Traces come
    /// from `traces` and are shared between runs.
    ///
    /// # Errors
    /// When a trace is missing or malformed, or a key is invalid; the message names the remedy.
    pub fn build(
        spec: &WorkloadSpec,
        service: &Service,
        seed: u64,
        site: impl Into<Site>,
        traces: &dyn TraceSource,
    ) -> Result<Self, WorkloadError> {
        let site = site.into();
        if site.schedulers == 0 {
            return Err(WorkloadError::config("cluster.schedulers", "must be at least 1"));
        }
        Plan::new(spec, service, traces)?.draw(seed, site)
    }

    /// Checks that the gangs of further seeds fit the cluster; [`build`](Self::build) checks the gangs of its own seed.
    /// Only numbers of tasks are drawn.
    ///
    /// # Errors
    /// When the gangs of a seed do not fit; the message names the first such seed.
    pub fn check_gangs(
        spec: &WorkloadSpec,
        service: &Service,
        seeds: impl Iterator<Item = u64>,
        site: Site,
        traces: &dyn TraceSource,
    ) -> Result<(), (u64, WorkloadError)> {
        for seed in seeds {
            let checked = Plan::new(spec, service, traces).and_then(|mut plan| {
                // A trace has the same jobs under each seed.
                if !plan.gang || matches!(plan.jobs, Jobs::Traced(_)) {
                    return Ok(false);
                }
                let (mut shapes, _) = plan.shapes(Address::new(seed, Purpose::Shape), seed)?;
                plan.fitting(&mut shapes, site).map(|_| true)
            });
            if !checked.map_err(|error| (seed, error))? {
                break;
            }
        }
        Ok(())
    }
}

/// Labels of the classes of jobs below a cutoff, and at or above it.
const CLASSES: [&str; 2] = ["short", "long"];

/// Labels of the classes of jobs with and without a deadline.
const GOALS: [&str; 2] = ["slo", "be"];

impl Plan {
    /// Checks the sections, fills in defaults and reads the files they name.
    pub(super) fn new(
        spec: &WorkloadSpec,
        service: &Service,
        traces: &dyn TraceSource,
    ) -> Result<Self, WorkloadError> {
        let mut plan = match spec {
            WorkloadSpec::Synthetic(spec) => Self::synthetic(spec, service)?,
            WorkloadSpec::Mix(spec) => Self::mix(spec, service)?,
            WorkloadSpec::Trace(spec) => Self::trace(spec, service, traces)?,
            WorkloadSpec::YahooLike(spec) => {
                Self::like("workload.yahoo-like", Model::YahooLike, spec, service)?
            }
            WorkloadSpec::ClouderaLike(spec) => {
                Self::like("workload.cloudera-like", Model::ClouderaLike, spec, service)?
            }
            WorkloadSpec::Gossip(spec) => return Self::gossip(spec, service),
        };
        plan.steps = spec.steps();
        plan.check_distributions()?;
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
            gap: Some(spec.interarrival.clone()),
            speedup: spec.speedup,
            cutoff: spec.cutoff,
            deadline_slack: spec.deadline_slack.clone(),
            slo: spec.slo.clone(),
            gang: spec.gang,
            filter: spec.filter,
            pretrain: spec.pretrain,
            ..Self::base(
                "workload.synthetic",
                Jobs::Synthetic { jobs: spec.jobs, tasks: spec.tasks.clone() },
                service,
            )
        })
    }

    /// A plan without options, whose jobs keep their own arrival times.
    fn base(section: &'static str, jobs: Jobs, service: &Service) -> Self {
        Self {
            section,
            jobs,
            gap: None,
            speedup: 1.0,
            cutoff: None,
            deadline_slack: None,
            slo: None,
            gang: false,
            filter: false,
            pretrain: 0,
            by: None,
            steps: 1,
            dependencies: true,
            service: service.clone(),
            warnings: Vec::new(),
        }
    }

    /// The plan of a run without jobs.
    fn gossip(spec: &Gossip, service: &Service) -> Result<Self, WorkloadError> {
        if *service != Service::default() {
            let why = "gossip runs no copies, so this has no effect; leave [service] out";
            return Err(WorkloadError::config("service", why));
        }
        Ok(Self {
            gap: spec.updates.as_ref().map(|updates| updates.every.clone()),
            ..Self::base(
                "workload.gossip",
                Jobs::Synthetic { jobs: 0, tasks: DistributionSpec::Constant(1.0) },
                service,
            )
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
            gap: Some(spec.interarrival.clone()),
            speedup: spec.speedup,
            slo: spec.slo.clone(),
            gang: spec.gang,
            filter: spec.filter,
            pretrain: spec.pretrain,
            ..Self::base("workload.mix", Jobs::Mix(spec.clone()), service)
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
        let is_swf = matches!(&jobs, Jobs::Traced(trace) if trace.format() == Format::Swf);
        Self {
            gap: spec.interarrival,
            speedup: spec.speedup,
            cutoff: spec.cutoff,
            deadline_slack: spec.deadline_slack,
            slo: spec.slo,
            gang: spec.gang.unwrap_or(is_swf),
            filter: spec.filter,
            pretrain: spec.pretrain,
            ..Self::base(section, jobs, service)
        }
    }

    fn trace(spec: &TraceSpec, service: &Service, traces: &dyn TraceSource) -> Result<Self, WorkloadError> {
        check_jobs("workload.trace", spec.jobs.unwrap_or(1))?;
        let trace = match (traces.open(&spec.file, &spec.reading()), spec.fallback) {
            (Err(WorkloadError::Missing { .. }), Some(model)) => return Self::stand_in(model, spec, service),
            (trace, _) => trace?,
        };
        let mut warnings = trace.notes().to_vec();
        if let Some(asked) = spec.jobs.filter(|&asked| (trace.jobs().len() as u64) < u64::from(asked)) {
            let has = trace.jobs().len();
            warnings.push(format!("`{}` has only {has} of the {asked} requested jobs", spec.file.display()));
        }
        if spec.interarrival.is_none() && trace.early() > 0 {
            warnings.push(format!(
                "{} jobs of `{}` were submitted before that trace began, at unknown times: all of them arrive at the \
                 start of the run; to leave them out, delete that many lines at the start of the file and of \
                 its features",
                trace.early(),
                spec.file.display()
            ));
        }
        let mut plan = Self::following("workload.trace", spec.like(), Jobs::Traced(trace), service);
        plan.dependencies = spec.dependencies;
        plan.by = spec.by;
        plan.gang |= spec.size.is_some() && spec.gang.is_none();
        if plan.gang && spec.gang.is_none() {
            let why = if spec.size.is_some() {
                "since `size` counts their tasks"
            } else {
                "as in every .swf trace"
            };
            warnings.push(format!(
                "jobs are gangs, {why}; workload.trace.gang = false makes their tasks independent"
            ));
        }
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
            "trace `{}` was not found: all results are of jobs of the {name} generator, which replaces it; its \
             load differs from the trace's, cells that differ only in the trace are equal, and `by` is not used",
            spec.file.display()
        ));
        Ok(plan)
    }

    /// Checks that the values of `empirical` distributions were read with the experiment.
    fn check_distributions(&self) -> Result<(), WorkloadError> {
        let section = self.section;
        let tasks = matches!(&self.jobs, Jobs::Synthetic { tasks, .. } if tasks.is_unread());
        let error =
            matches!(&self.service.estimate, Some(Estimate::Error(distribution)) if distribution.is_unread());
        let requested = self.service.requested.as_ref().is_some_and(DistributionSpec::is_unread);
        let mut distributions = vec![
            (tasks, format!("{section}.tasks")),
            (self.gap.as_ref().is_some_and(DistributionSpec::is_unread), format!("{section}.interarrival")),
            (
                self.deadline_slack.as_ref().is_some_and(DistributionSpec::is_unread),
                format!("{section}.deadline_slack"),
            ),
            (error, "service.estimate".into()),
            (requested, "service.requested".into()),
            (self.slo.as_ref().is_some_and(|slo| slo.slack.is_unread()), format!("{section}.slo.slack")),
        ];
        distributions
            .extend(self.demands().into_iter().map(|(key, distribution)| (distribution.is_unread(), key)));
        if let Jobs::Mix(mix) = &self.jobs {
            let stages = mix.stages().into_iter();
            distributions
                .extend(stages.map(|(key, stage)| (stage.tasks.is_unread(), format!("{key}.tasks"))));
        }
        for (unread, key) in distributions {
            if unread {
                return Err(WorkloadError::config(
                    key,
                    "the file of this distribution was not read; give its `values`",
                ));
            }
        }
        Ok(())
    }

    /// The distributions of work, each with its dotted key.
    fn demands(&self) -> Vec<(String, &DistributionSpec<Span>)> {
        match &self.jobs {
            Jobs::Mix(mix) => {
                let stages = mix.stages().into_iter();
                stages.map(|(key, stage)| (format!("{key}.demand"), &stage.demand)).collect()
            }
            Jobs::Synthetic { .. } | Jobs::Like { .. } | Jobs::Traced(_) => self
                .service
                .demand
                .iter()
                .map(|distribution| ("service.demand".to_owned(), distribution))
                .collect(),
        }
    }

    /// Checks that involve several keys.
    fn check(&self) -> Result<(), WorkloadError> {
        if !(self.speedup.is_finite() && self.speedup > 0.0) {
            let why = format!(
                "must be a positive number, not {}; write 1 to leave the gaps as they are",
                self.speedup
            );
            return Err(WorkloadError::config(format!("{}.speedup", self.section), why));
        }
        self.check_goals()?;
        self.check_gang()?;
        let is_zero = |factor: &DistributionSpec<f64>| factor.mean().is_nan() || factor.mean() <= 0.0;
        if matches!(&self.service.estimate, Some(Estimate::Error(factor)) if is_zero(factor)) {
            return Err(WorkloadError::config(
                "service.estimate",
                "every estimate would be zero; write a factor around 1, such as { error = { uniform = { low = 0.5, \
                 high = 1.5 } } }",
            ));
        }
        if self.service.requested.as_ref().is_some_and(is_zero) {
            let why = "every requested time would be zero; write a factor, such as { uniform = { low = 1, high = 5 } }";
            return Err(WorkloadError::config("service.requested", why));
        }
        let correlated = self.service.correlated.part() >= 1.0;
        let demands = self.demands();
        if demands.is_empty() && !correlated {
            return Err(WorkloadError::config(
                "service.correlated",
                "copies of a task can only differ under a distribution of work: the trace gives each task one duration; set \
                 service.demand, or leave `correlated` true",
            ));
        }
        demands.into_iter().try_for_each(|(key, distribution)| check_demand(key, distribution, correlated))
    }

    /// Checks the section about SLO jobs.
    fn check_goals(&self) -> Result<(), WorkloadError> {
        let Some(slo) = &self.slo else { return Ok(()) };
        let section = self.section;
        if self.deadline_slack.is_some() {
            let why = format!("`{section}.slo` states deadlines as well; keep one of the two");
            return Err(WorkloadError::config(format!("{section}.deadline_slack"), why));
        }
        if self.by.is_some() {
            let why = format!("`{section}.slo` splits results into slo and be; keep one of the two");
            return Err(WorkloadError::config(format!("{section}.by"), why));
        }
        slo.check().map_err(|(key, why)| WorkloadError::config(format!("{section}.slo{key}"), why))
    }

    /// Checks that no other key contradicts the equal work of the tasks of a gang.
    fn check_gang(&self) -> Result<(), WorkloadError> {
        let section = self.section;
        if !self.gang {
            let why =
                "leaves out gangs that are too large, but jobs are not gangs; write gang = true beside it";
            let lone = self.filter.then(|| WorkloadError::config(format!("{section}.filter"), why));
            return lone.map_or(Ok(()), Err);
        }
        let shares = [("homogeneous", self.service.homogeneous), ("correlated", self.service.correlated)];
        let differ = shares.into_iter().find(|(_, share)| share.part() < 1.0);
        differ.map_or(Ok(()), |(key, _)| {
            let why = format!(
                "the tasks of a gang have equal work; leave the key out, or write {section}.gang = false"
            );
            Err(WorkloadError::config(format!("service.{key}"), why))
        })
    }

    /// Draws the jobs under `seed`.
    pub(super) fn draw(mut self, seed: u64, site: Site) -> Result<Workload, WorkloadError> {
        let shape = Address::new(seed, Purpose::Shape);
        let with_distribution = !self.demands().is_empty();
        let (mut shapes, own) = self.shapes(shape, seed)?;
        let kept = self.fitting(&mut shapes, site)?;
        self.check_steps(&shapes)?;
        let own = own.map(|own| match kept {
            Some(kept) => kept.into_iter().map(|chain| own[chain as usize]).collect(),
            None => own,
        });
        let arrivals = self.arrivals(own, shapes.chains(), seed)?;
        let past = self.past(&shapes)?;
        let estimate = self.service.estimate.clone().unwrap_or(if with_distribution {
            Estimate::Exact
        } else {
            Estimate::Mean
        });
        let (homogeneous, correlated) = (self.service.homogeneous, self.service.correlated);
        let demand = self.service.demand.take();
        let drawn = Drawn {
            // Homogeneous jobs under a distribution of demand need no mean over tasks.
            means: Means::new(if with_distribution && homogeneous.part() >= 1.0 { 0 } else { shapes.len() }),
            demand: demand.map(|distribution| Demand::new(distribution, homogeneous, correlated, seed)),
            shapes,
            estimate,
            estimate_unit: self.service.estimate_unit,
            requested: self.service.requested.clone(),
            gang: self.gang,
            addresses: Addresses::new(seed),
        };
        let arrivals = since(arrivals, past.chains);
        let goals = self.goals(&drawn, past.chains, &arrivals, shape);
        let uses = self.uses(&drawn, seed, site)?;
        let split = match (self.by, &drawn.shapes) {
            (Some(by), Shapes::Traced(trace, _)) => Some(Split::of(by, trace, past.chains)?),
            _ => None,
        };
        let classes = split.as_ref().map_or_else(|| self.labels(&drawn.shapes), |split| split.labels.clone());
        Ok(Workload {
            sensitivity: self.service.sensitivities(&classes)?,
            classes,
            split,
            by_goal: self.slo.is_some(),
            drawn,
            past,
            steps: self.steps,
            arrivals,
            goals,
            uses,
            cutoff: self.cutoff,
            schedulers: site.schedulers,
            homes: OnceLock::new(),
            warnings: self.warnings,
        })
    }

    /// Draws the shapes of all jobs; also their arrivals, if a trace states them.
    fn shapes(&self, shape: Address, seed: u64) -> Result<(Shapes, Option<Vec<Time>>), WorkloadError> {
        Ok(match &self.jobs {
            Jobs::Mix(mix) => (Shapes::Staged(mix.draw(&self.service, seed)?), None),
            Jobs::Synthetic { jobs, tasks } => {
                let refused = |why| WorkloadError::config("workload.synthetic.tasks", why);
                let count = |job| task_count(tasks, job, shape).map_err(refused);
                (Shapes::Drawn((0..*jobs).map(count).collect::<Result<_, _>>()?), None)
            }
            Jobs::Like { jobs, model, facts } => {
                let like = |job| model.shape(facts, &mut shape.at(u64::from(job)).draw());
                (Shapes::Like((0..*jobs).map(like).collect::<Vec<LikeJob>>()), None)
            }
            Jobs::Traced(trace) => {
                let arrivals: Vec<Time> = trace.jobs().iter().map(|job| job.arrival).collect();
                let staging = if self.dependencies { trace.staging() } else { None };
                (Shapes::Traced(Arc::clone(trace), staging), Some(arrivals))
            }
        })
    }

    /// Refuses gangs with more tasks than there are cores, or leaves them out and returns the numbers of the chains
    /// that remain. Gangs of history may have any size.
    fn fitting(&mut self, shapes: &mut Shapes, site: Site) -> Result<Option<Vec<u32>>, WorkloadError> {
        if !self.gang {
            return Ok(None);
        }
        let (section, cores) = (self.section, site.cores);
        let fits = |chain: u32| chain < self.pretrain || u64::from(shapes.most_tasks(chain)) <= cores;
        let Some(first) = (0..shapes.chains()).find(|&chain| !fits(chain)) else { return Ok(None) };
        if !self.filter {
            let why = format!(
                "job {first} has {} tasks that start together, and the cluster has {cores} cores; add cores, make \
                 tasks independent by {section}.gang = false, or leave such jobs out by {section}.filter = true",
                shapes.most_tasks(first)
            );
            return Err(WorkloadError::config(format!("{section}.gang"), why));
        }
        let kept: Vec<u32> = (0..shapes.chains()).filter(|&chain| fits(chain)).collect();
        let left_out = shapes.chains() - kept.len() as u32;
        if kept.len() as u32 <= self.pretrain {
            let which = if self.pretrain > 0 { " that is not history" } else { "" };
            let why =
                format!("every job{which} has more tasks than the {cores} cores of the cluster; add cores");
            return Err(WorkloadError::config(format!("{section}.filter"), why));
        }
        self.warnings.push(format!(
            "{left_out} of {} jobs have more tasks than the {cores} cores of the cluster and were left out, as \
             {section}.filter asks for",
            shapes.chains() - self.pretrain
        ));
        shapes.keep(&kept);
        Ok(Some(kept))
    }

    /// Checks the number of steps of the drawn jobs.
    fn check_steps(&self, shapes: &Shapes) -> Result<(), WorkloadError> {
        let (steps, jobs) = (self.steps, shapes.chains());
        let why = if steps == 0 {
            "a job without steps would have no work; write the number of steps, or leave the key out"
                .to_owned()
        } else if u64::from(steps) * u64::from(jobs) > u64::from(MOST_JOBS) {
            format!("{jobs} jobs of {steps} steps are more than {MOST_JOBS} steps; lower one of the numbers")
        } else if steps > 1 && shapes.len() as u32 > jobs {
            "jobs have stages that wait for others already; give each job one stage (of a trace: dependencies = \
             false), or leave the key out"
                .to_owned()
        } else if (0..jobs).any(|chain| steps.checked_mul(shapes.most_tasks(chain)).is_none()) {
            format!("a job has over {} tasks in {steps} steps; lower one of the numbers", u32::MAX)
        } else {
            return Ok(());
        };
        Err(WorkloadError::config(format!("{}.synchronous", self.section), why))
    }

    /// Arrival times of jobs; `own` holds the arrival times that a trace states.
    fn arrivals(&self, own: Option<Vec<Time>>, chains: u32, seed: u64) -> Result<Vec<Time>, WorkloadError> {
        let arrivals = arrivals(self.gap.as_ref(), own, chains as usize, self.speedup, seed);
        if arrivals.last() == Some(&Time::MAX) {
            let why = "the last job would arrive after the 584 years a run can last; shorten the gaps";
            let key = if self.gap.is_some() { "interarrival" } else { "speedup" };
            return Err(WorkloadError::config(format!("{}.{key}", self.section), why));
        }
        Ok(arrivals)
    }

    /// Numbers of drawn chains and jobs that are history.
    fn past(&self, shapes: &Shapes) -> Result<Past, WorkloadError> {
        let (chains, all) = (self.pretrain, shapes.chains());
        if chains == 0 {
            return Ok(Past { chains, jobs: 0 });
        }
        if chains >= all {
            let why =
                format!("{chains} of {all} jobs are history, so none would run; lower the key, or add jobs");
            return Err(WorkloadError::config(format!("{}.pretrain", self.section), why));
        }
        Ok(Past { chains, jobs: shapes.jobs_of(chains).start })
    }

    /// Draws deadlines and preferences of the jobs that arrive. Their first job is number `first` of the drawn jobs.
    fn goals(&mut self, drawn: &Drawn, first: u32, arrivals: &[Time], shape: Address) -> Goals {
        let run = |chain| drawn.run(first + chain);
        let (goals, key) = if let Some(slo) = &self.slo {
            let work = |chain| drawn.total_work(first + chain);
            let goals = slo.draw(&Arrived { arrivals, first, shape, run: &run, work: &work });
            self.warnings.extend(slo.remark(self.section, &goals));
            (goals, "slo.slack")
        } else {
            let Some(slack) = &self.deadline_slack else { return Goals::new(Vec::new()) };
            let deadline = |(chain, &arrival): (u32, &Time)| {
                let slack = slack.sample(&mut shape.at(u64::from(first + chain)).at(SLACK).draw());
                due(arrival, run(chain), slack)
            };
            (Goals::new((0..).zip(arrivals).map(deadline).collect()), "deadline_slack")
        };
        let jobs = (0..).zip(arrivals).filter_map(|(chain, &arrival)| {
            goals.deadline(chain).map(|deadline| (deadline, arrival + run(chain)))
        });
        let tight = jobs.clone().filter(|(deadline, earliest)| deadline <= earliest).count();
        let jobs = jobs.count();
        if tight > 0 {
            self.warnings.push(format!(
                "{}.{key} leaves {tight} of {jobs} jobs no time but their run time until the deadline: on cores of the \
                 reference speed they miss it unless they start as soon as they arrive",
                self.section
            ));
        }
        goals
    }

    /// Use of shared nodes by tasks; `None` if nodes are not shared.
    fn uses(&mut self, drawn: &Drawn, seed: u64, site: Site) -> Result<Option<Uses>, WorkloadError> {
        let section = self.service.usage.take();
        let Some(largest) = site.largest else {
            let why = "is about shared nodes; write cluster.shared = true, or leave the key out";
            let lone = section.map(|_| WorkloadError::config("service.usage", why));
            return lone.map_or(Ok(None), Err);
        };
        let section = section.unwrap_or_default();
        section.check(largest)?;
        let uses = Uses::new(&section, largest, seed);
        let run = |chain| Span(drawn.run(chain).0 / u64::from(self.steps));
        let longest = || (0..drawn.shapes.chains()).map(run).max().unwrap_or_default();
        if let Some(length) = uses.stated_length().filter(|length| *length < longest()) {
            self.warnings.push(format!(
                "service.usage.series ends after {length}, before the longest task does ({}): its last use holds until \
                 the end of the task",
                longest()
            ));
        }
        if section.uses_memory() && !largest.evicts {
            let nothing =
                "service.usage states memory, and nodes have none: nothing is evicted without cluster.memory";
            self.warnings.push(nothing.to_owned());
        }
        Ok(Some(uses))
    }

    /// Labels of the classes of jobs.
    fn labels(&self, shapes: &Shapes) -> Vec<Arc<str>> {
        if self.slo.is_some() {
            return GOALS.map(Into::into).to_vec();
        }
        if let Shapes::Staged(stages) = shapes {
            return stages.labels();
        }
        CLASSES[..1 + usize::from(self.cutoff.is_some())].iter().map(|&class| class.into()).collect()
    }
}

/// Arrivals by the distribution of gaps, or else the arrivals of the trace relative to its first, so that an excerpt of
/// a long log does not begin with days of idle time. Both are divided by `speedup`.
fn arrivals(
    gap: Option<&DistributionSpec<Span>>,
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

/// The arrivals after the first `past` jobs, counted from the arrival of the last of these jobs.
fn since(mut arrivals: Vec<Time>, past: u32) -> Vec<Time> {
    if past > 0 {
        let mut after = arrivals.split_off(past as usize);
        let begin = arrivals.last().copied().unwrap_or_default();
        after.iter_mut().for_each(|arrival| *arrival = Time(arrival.since(begin).0));
        return after;
    }
    arrivals
}
