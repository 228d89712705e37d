//! What the tests of whole systems share: jobs to run, and policies to run them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use volary_actors::base::{Address, CopyId, JobId, Purpose, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec};
use volary_actors::policies::{
    Binding, Dolly, Eagle, FullRepetition, Hadoop2, Hawk, Hedged, Kubernetes, Late, LatinSquare, Mantri,
    Murmuration, MurmurationOrder, MurmurationSpread, MurmurationWait, Naive, Peacock, PeacockForm,
    PolicySpec, Retry, Sparrow, SparrowForm, YaqC, YaqD,
};

/// Jobs of `tasks` exponential tasks of mean one second, a Poisson stream of them.
pub struct Load {
    pub jobs: u32,
    pub tasks: u32,
    schedulers: u32,
    pub arrivals: Vec<Time>,
}

impl Load {
    pub fn new(jobs: u32, tasks: u32, schedulers: u32, gap: f64) -> Self {
        let mut now = 0.0;
        let draw = |job: u32| -(1.0 - Address::new(5, Purpose::Arrival).at(u64::from(job)).unit()).ln();
        let arrivals = (0..jobs)
            .map(|job| {
                now += gap * draw(job);
                Time::ZERO + Span::from_secs_f64(now)
            })
            .collect();
        Self { jobs, tasks, schedulers, arrivals }
    }

    /// The work of a copy.
    pub fn work(&self, copy: CopyId) -> Span {
        let at = Address::new(5, Purpose::Work).at(u64::from(copy.task.job.0)).at(u64::from(copy.task.index));
        Span::from_secs_f64(-(1.0 - at.at(u64::from(copy.attempt)).unit()).ln())
    }
}

impl Catalog for Load {
    fn jobs(&self) -> u32 {
        self.jobs
    }
    fn job(&self, job: JobId) -> JobSpec {
        let arrival = self.arrivals[job.index()];
        let (client, class) = (job.0 % self.schedulers, (job.0 % 5 == 4).into());
        JobSpec { arrival, tasks: self.tasks, client, class, deadline: None }
    }
    fn estimate(&self, _: TaskId) -> Span {
        Span::from_secs(1)
    }
    fn job_estimate(&self, _: JobId) -> Span {
        Span::from_secs(1)
    }
}

/// Every registered policy, and the forms its defaults do not use.
pub fn policies() -> Vec<PolicySpec> {
    let mut all = PolicySpec::defaults();
    all.extend([
        PolicySpec::LatinSquare(LatinSquare { order: 5, ..LatinSquare::default() }),
        PolicySpec::LatinSquare(LatinSquare { order: 3, preemption: false, ..LatinSquare::default() }),
        PolicySpec::LatinSquare(LatinSquare {
            order: 5,
            columns: Some(2),
            choices: 2,
            ..LatinSquare::default()
        }),
        PolicySpec::LatinSquare(LatinSquare {
            order: 3,
            choices: 2,
            binding: Binding::Late,
            ..LatinSquare::default()
        }),
        PolicySpec::FullRepetition(FullRepetition { order: 3, ..FullRepetition::default() }),
        PolicySpec::Sparrow(Sparrow { form: SparrowForm::Pairs, ..Sparrow::default() }),
        PolicySpec::Sparrow(Sparrow { form: SparrowForm::PerTask, ..Sparrow::default() }),
        PolicySpec::Sparrow(Sparrow { probe_ratio: 1.05, cancellation: false, ..Sparrow::default() }),
        PolicySpec::Sparrow(Sparrow { min_probes: 20, replacement: true, ..Sparrow::default() }),
        PolicySpec::Hawk(Hawk { big_partition: 0.5, replacement: true, ..Hawk::default() }),
        PolicySpec::Eagle(Eagle { big_partition: 0.5, cancellation: true, ..Eagle::default() }),
        PolicySpec::Eagle(Eagle { retry_rounds: 3, sticky: false, srpt: false, ..Eagle::default() }),
        PolicySpec::Kubernetes(Kubernetes { retry: Retry::Tail, ..Kubernetes::default() }),
        PolicySpec::Kubernetes(Kubernetes { retry: Retry::Events, ..Kubernetes::default() }),
        PolicySpec::YaqD(YaqD {
            heartbeat: Span::from_millis(300),
            together: true,
            jitter: true,
            ..YaqD::default()
        }),
        PolicySpec::YaqD(YaqD { heartbeat: Span::from_millis(8), silent: true, ..YaqD::default() }),
        PolicySpec::YaqD(YaqD { nodes: 0.6, srpt: false, ..YaqD::default() }),
        PolicySpec::YaqC(YaqC { srpt: false, ..YaqC::default() }),
        PolicySpec::Peacock(Peacock { form: PeacockForm::Threshold, ..Peacock::default() }),
        PolicySpec::Murmuration(Murmuration {
            order: MurmurationOrder::Srjf,
            batch: false,
            decision_per_job: Span::from_millis(20),
            decision_per_task: Span::from_millis(2),
            update_delay: Span::from_millis(50),
            ..Murmuration::default()
        }),
        PolicySpec::Murmuration(Murmuration {
            wait: MurmurationWait::Clock,
            spread: MurmurationSpread::Epidemic,
            ..Murmuration::default()
        }),
        // Their time constants are for tasks of minutes.
        PolicySpec::Naive(Naive { scale: 0.01, behind: 0.0, ..Naive::default() }),
        PolicySpec::Late(Late { scale: 0.005, slow_task: 1.0, cap: 1.0, ..Late::default() }),
        PolicySpec::Hadoop2(Hadoop2 { scale: 0.02, slow: 0.0, ..Hadoop2::default() }),
        PolicySpec::Mantri(Mantri { scale: 0.01, delta: 0.0, ..Mantri::default() }),
        PolicySpec::Dolly(Dolly { straggler: 0.3, budget: 1.0, load: 1.0, ..Dolly::default() }),
        PolicySpec::Hedged(Hedged { quantile: 0.5, window: 20, ..Hedged::default() }),
    ]);
    all
}
