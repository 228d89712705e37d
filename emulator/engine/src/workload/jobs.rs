//! The jobs of one run as clients submit them, with deadlines and preferences; the jobs of history; and the assignment
//! of chains of jobs to clients.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use volary_actors::base::Amount;
use volary_actors::base::{CopyId, Feature, JobId, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec, Links, PastJob, Preference, Usage};

use super::by::Split;
use super::config::Kinds;
use super::drawn::{Drawn, Shapes};
use super::graph::Staging;
use super::mix::Stages;
use super::slo::Goals;
use super::usage::{Drawee, Segment, Uses};

/// The jobs of one run.
///
/// Results count *chains*: a job of a mix or a trace with all its stages, each of which is a job of the
/// [catalog](Catalog). Jobs of other workloads are chains of one.
///
/// Ids of jobs and chains count from the first job that arrives; the jobs before it are history.
#[derive(Debug)]
pub struct Workload {
    pub(super) drawn: Drawn,
    pub(super) past: Past,
    /// Number of steps of a job. Without stages in the drawn jobs each step is a job of the catalog.
    pub(super) steps: u32,
    /// Arrival times of chains.
    pub(super) arrivals: Vec<Time>,
    pub(super) goals: Goals,
    /// Use of shared nodes by tasks; `None` if nodes are not shared.
    pub(super) uses: Option<Uses>,
    pub(super) cutoff: Option<Span>,
    pub(super) classes: Vec<Arc<str>>,
    /// Sensitivity of the classes to interference, by index of the class; empty if no class states any.
    pub(super) sensitivity: Arc<[Kinds]>,
    /// The classes by a feature of the jobs, if results are split by one.
    pub(super) split: Option<Split>,
    /// Whether the classes are jobs with and without a deadline.
    pub(super) by_goal: bool,
    pub(super) schedulers: u32,
    /// The chains of each client, computed on the first query.
    pub(super) homes: OnceLock<Homes>,
    pub(super) warnings: Vec<String>,
}

/// Numbers of drawn chains and jobs that are history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) chains: u32,
    pub(super) jobs: u32,
}

impl Workload {
    /// The work of a copy on a healthy core of a node that its job prefers: a pure function of the seed and the copy's
    /// ids.
    pub fn work(&self, copy: CopyId) -> Span {
        self.part(self.drawn.work(self.of(copy.task.job).task(copy.task.index).copy(copy.attempt)))
    }

    /// The work of a copy on a healthy core of a node of this kind. `elsewhere` says that another task of its gang runs
    /// on a node that the job does not prefer.
    pub fn work_on(&self, copy: CopyId, kind: u8, elsewhere: bool) -> Span {
        let work = self.work(copy);
        if !self.prefers() {
            return work;
        }
        let preference = self.preference(copy.task.job);
        if elsewhere || !preference.includes(kind) { work.scale(preference.slowdown) } else { work }
    }

    /// The use of a shared node by a task when `done` of its work is done: one core, if nodes are not shared.
    pub fn segment(&self, task: TaskId, done: Span) -> Segment {
        let drawn = self.of(task.job);
        let segment = |uses: &Uses| uses.segment(task, self.drawee(drawn), done);
        self.uses.as_ref().map_or(Segment { cpu: 1000, memory: 0, until: Span::MAX }, segment)
    }

    /// The inputs of the draws of use and requests of a job.
    fn drawee(&self, job: JobId) -> Drawee {
        let feature = |feature| self.drawn.feature(job, feature);
        let name = match feature(Feature::LogicalName) {
            0 => feature(Feature::Name),
            name => name,
        };
        Drawee { job, name, requested: self.drawn.requested(job) }
    }

    fn used(&self, drawn: JobId) -> Usage {
        let longest = || self.part(self.drawn.longest(drawn));
        self.uses.as_ref().map_or(Usage::CORE, |uses| uses.usage(self.drawee(drawn), longest))
    }

    /// Whether some job prefers some nodes.
    pub const fn prefers(&self) -> bool {
        self.goals.prefer()
    }

    /// Whether jobs have deadlines, some or all.
    pub fn has_deadlines(&self) -> bool {
        (0..self.chains()).any(|chain| self.deadline(chain).is_some())
    }

    /// The deadline of a chain.
    pub fn deadline(&self, chain: u32) -> Option<Time> {
        self.goals.deadline(chain)
    }

    /// The number under which a job, or the job of a step, is drawn.
    const fn of(&self, job: JobId) -> JobId {
        JobId(job.0 / self.steps + self.past.jobs)
    }

    /// The part of a time that belongs to one step.
    const fn part(&self, whole: Span) -> Span {
        Span(whole.0 / self.steps as u64)
    }

    const fn staging(&self) -> Option<&Staging> {
        self.drawn.shapes.staging()
    }

    /// The stages of a mix.
    const fn of_mix(&self) -> Option<&Stages> {
        if let Shapes::Staged(stages) = &self.drawn.shapes { Some(stages) } else { None }
    }

    /// Number of chains.
    pub const fn chains(&self) -> u32 {
        self.arrivals.len() as u32
    }

    /// The chain that a job belongs to.
    pub fn chain(&self, job: JobId) -> u32 {
        self.drawn.shapes.chain(self.of(job)) - self.past.chains
    }

    /// Ids of the jobs of a chain. A job follows the jobs that it waits for.
    pub fn jobs_of(&self, chain: u32) -> Range<u32> {
        let Range { start, end } = self.drawn.shapes.jobs_of(chain + self.past.chains);
        (start - self.past.jobs) * self.steps..(end - self.past.jobs) * self.steps
    }

    /// Number of tasks of the stages before a job in its chain.
    pub fn tasks_before(&self, job: JobId) -> u32 {
        let in_steps = job.0 % self.steps * self.tasks(job);
        self.staging().map_or(0, |staging| staging.tasks_before(self.of(job))) + in_steps
    }

    /// The response time of a job alone in the cluster, if the workload states it.
    pub fn alone(&self, job: JobId) -> Option<Span> {
        self.of_mix()?.alone(self.of(job))
    }

    /// The critical path of a chain: the least time that it needs on healthy cores of the reference speed, counting
    /// attempt 0 of each task.
    pub fn critical_path(&self, chain: u32) -> Span {
        let run = self.drawn.run(chain + self.past.chains);
        // The part of each step is rounded down.
        Span(self.part(run).0 * u64::from(self.steps))
    }

    /// Number of stages and steps on the longest path of a chain; 1 without either.
    pub fn depth(&self, chain: u32) -> u32 {
        let depth = self.staging().map_or(1, |staging| staging.graph(chain + self.past.chains).depth());
        depth * self.steps
    }

    /// Whether some job has stages that wait for others.
    pub fn has_dependencies(&self) -> bool {
        let staged = |staging: &Staging| {
            (self.past.chains..staging.chains()).any(|chain| staging.graph(chain).has_links())
        };
        self.steps > 1 || self.staging().is_some_and(staged)
    }

    /// The class of a job in results: an index of [`classes`](Self::classes).
    pub fn class_index(&self, job: JobId) -> usize {
        if self.by_goal {
            return self.deadline(self.chain(job)).is_none().into();
        }
        if let Some(split) = &self.split {
            return split.class(Catalog::feature(self, job, split.feature));
        }
        self.of_mix()
            .map_or_else(|| usize::from(Catalog::class(self, job)), |stages| stages.class(self.of(job)))
    }

    /// The work of the job's longest task, counting attempt 0 of each task.
    pub fn longest(&self, job: JobId) -> Span {
        self.part(self.drawn.longest(self.of(job)))
    }

    /// Work of attempt 0 of every task, in core-seconds; on shared nodes, CPU-time. Iterates over all tasks.
    pub fn total_work(&self) -> f64 {
        let attempts = |job: u32| {
            let drawn = self.of(JobId(job));
            let uses = self.uses.as_ref().map(|uses| (uses, self.drawee(drawn)));
            let cpu_time = move |work: Span| match uses {
                Some((uses, drawee)) => uses.cpu_time(drawee, work),
                None => work.as_secs_f64(),
            };
            self.drawn.attempts(drawn).map(|work| self.part(work)).map(cpu_time)
        };
        (0..self.jobs()).flat_map(attempts).sum()
    }

    /// Warnings for the user: a generator that replaces a missing trace, skipped rows of a trace.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Labels of the classes of jobs: with and without a deadline, values of a feature, the classes of a mix, or short
    /// and long. Without a cutoff all jobs are of the first class.
    pub fn classes(&self) -> &[Arc<str>] {
        &self.classes
    }

    /// Sensitivity of the classes to each kind of interference; empty if no class states any.
    pub fn sensitivity(&self) -> Arc<[Kinds]> {
        Arc::clone(&self.sensitivity)
    }

    /// Classes of a mix or a cutoff that have no job. Classes by deadline may be empty.
    pub fn empty_classes(&self) -> Vec<&str> {
        if self.by_goal {
            return Vec::new();
        }
        let mut used = vec![false; self.classes.len()];
        for chain in 0..self.chains() {
            used[self.class_index(JobId(self.jobs_of(chain).start))] = true;
        }
        let empty = self.classes.iter().zip(used).filter(|(_, used)| !used);
        empty.map(|(label, _)| &**label).collect()
    }

    /// Number of tasks of a job.
    pub fn tasks(&self, job: JobId) -> u32 {
        self.drawn.shapes.tasks(self.of(job))
    }

    /// Number of tasks of all jobs.
    pub fn total_tasks(&self) -> u64 {
        (0..self.jobs()).map(|job| u64::from(self.tasks(JobId(job)))).sum()
    }

    /// The client a chain arrives at.
    fn home(&self, chain: u32) -> u32 {
        self.drawn.home(chain + self.past.chains, self.schedulers)
    }
}

impl Catalog for Workload {
    fn jobs(&self) -> u32 {
        (self.drawn.shapes.len() as u32 - self.past.jobs) * self.steps
    }

    fn job(&self, job: JobId) -> JobSpec {
        let chain = self.chain(job);
        JobSpec {
            arrival: self.arrivals[chain as usize],
            tasks: self.tasks(job),
            client: self.home(chain),
            class: self.class(job),
            deadline: self.deadline(chain),
        }
    }

    fn next_of(&self, client: u32, from: u32) -> Option<JobId> {
        if from >= self.jobs() {
            return None;
        }
        // Job `from` may be inside a chain. Later stages without predecessors arrive at the same time as the first.
        let chain = self.chain(JobId(from));
        let begins = |job: &JobId| self.links(*job).predecessors.is_empty();
        let rest = (from..self.jobs_of(chain).end).map(JobId).find(begins);
        if let Some(next) = rest.filter(|_| self.schedulers == 1 || self.home(chain) == client) {
            return Some(next);
        }
        let next = if self.schedulers == 1 {
            (chain + 1 < self.chains()).then_some(chain + 1)
        } else {
            let homes = || Homes::new(self.schedulers, self.chains(), |chain| self.home(chain));
            self.homes.get_or_init(homes).next(client, chain + 1)
        };
        next.map(|chain| JobId(self.jobs_of(chain).start))
    }

    fn links(&self, job: JobId) -> Links<'_> {
        if self.steps > 1 {
            let step = job.0 % self.steps;
            let [predecessors, successors] =
                [step > 0, step + 1 < self.steps].map(|other| if other { &[1][..] } else { &[] });
            return Links { job, predecessors, successors };
        }
        let links = self.staging().map(|staging| staging.links(self.of(job)));
        links.map_or(Links { job, predecessors: &[], successors: &[] }, |links| Links { job, ..links })
    }

    fn tasks(&self, job: JobId) -> u32 {
        Self::tasks(self, job)
    }

    fn class(&self, job: JobId) -> u8 {
        match &self.drawn.shapes {
            Shapes::Staged(stages) => stages.is_long(self.of(job)).into(),
            Shapes::Drawn(_) | Shapes::Like(_) | Shapes::Traced(..) => {
                self.cutoff.is_some_and(|cutoff| self.drawn.chain_estimate(self.of(job)) >= cutoff).into()
            }
        }
    }

    fn feature(&self, job: JobId, feature: Feature) -> u32 {
        self.drawn.feature(self.of(job), feature)
    }

    fn requested(&self, job: JobId) -> Option<Span> {
        self.drawn.requested_time(self.of(job)).map(|requested| self.part(requested))
    }

    fn is_gang(&self, _: JobId) -> bool {
        self.drawn.gang
    }

    fn preference(&self, job: JobId) -> Preference {
        self.goals.preference(self.chain(job))
    }

    fn request(&self, job: JobId) -> Amount {
        let drawn = self.of(job);
        let longest = || self.part(self.drawn.longest(drawn));
        self.uses.as_ref().map_or(Amount::CORE, |uses| uses.request(self.drawee(drawn), longest))
    }

    fn usage(&self, job: JobId) -> Usage {
        self.used(self.of(job))
    }

    fn past(&self) -> u32 {
        self.past.jobs
    }

    fn past_job(&self, number: u32) -> PastJob {
        assert!(number < self.past.jobs, "there is no past job {number}");
        let job = JobId(number);
        let features = Feature::ALL.map(|feature| self.drawn.feature(job, feature));
        PastJob { features, run: self.part(self.drawn.longest(job)), usage: self.used(job) }
    }

    fn estimate(&self, task: TaskId) -> Span {
        self.part(self.drawn.estimate(self.of(task.job).task(task.index)))
    }

    fn job_estimate(&self, job: JobId) -> Span {
        self.part(self.drawn.job_estimate(self.of(job)))
    }
}

/// The chains of each client in order of arrival, one client after another: 4 bytes for each chain and each client.
#[derive(Debug)]
pub(super) struct Homes {
    /// Index of each client's first chain, and the total at the end.
    first: Vec<u32>,
    chains: Vec<u32>,
}

impl Homes {
    /// Sorts `chains` chains by the client, below `clients`, that `home` returns. Linear in both numbers.
    pub(super) fn new(clients: u32, chains: u32, home: impl Fn(u32) -> u32) -> Self {
        let mut first = vec![0; clients as usize + 1];
        for chain in 0..chains {
            first[home(chain) as usize + 1] += 1;
        }
        for client in 0..clients as usize {
            first[client + 1] += first[client];
        }
        let mut next = first.clone();
        let mut sorted = vec![0; chains as usize];
        for chain in 0..chains {
            let place = &mut next[home(chain) as usize];
            sorted[*place as usize] = chain;
            *place += 1;
        }
        Self { first, chains: sorted }
    }

    /// The first chain with a number of at least `from` that arrives at a client.
    pub(super) fn next(&self, client: u32, from: u32) -> Option<u32> {
        let client = client as usize;
        let own = &self.chains[self.first[client] as usize..self.first[client + 1] as usize];
        own.get(own.partition_point(|&chain| chain < from)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_finds_its_own_chains_in_order() {
        let home = |chain: u32| [3, 0, 3, 1][chain as usize % 4];
        let homes = Homes::new(4, 10, home);
        for client in 0..4 {
            let mut found = Vec::new();
            while let Some(chain) = homes.next(client, found.last().map_or(0, |last: &u32| last + 1)) {
                found.push(chain);
            }
            let own: Vec<_> = (0..10).filter(|&chain| home(chain) == client).collect();
            assert_eq!(found, own);
        }
        assert_eq!((homes.next(3, 1), homes.next(2, 0), homes.next(0, 10)), (Some(2), None, None));
    }
}
