//! Jobs and policies for the tests of whole systems.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

mod variants;

use variants::variants;
use volary_actors::base::{Address, CopyId, DistributionSpec, JobId, Purpose, Span, TaskId, Time};
use volary_actors::catalog::{Catalog, JobSpec, Links};
use volary_actors::harness::{SINGLE, StageGraph, links};
use volary_actors::layout::{GossipGroup, Layout, Neighbours, Origin};
use volary_actors::policies::{Card, Gossips, PolicySpec};

/// A Poisson stream of jobs, each with `tasks` exponential tasks of mean one second.
pub struct Load {
    pub jobs: u32,
    pub tasks: u32,
    schedulers: u32,
    /// The stages of each chain; the jobs of a chain have consecutive ids.
    stages: StageGraph,
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
        Self { jobs, tasks, schedulers, stages: SINGLE, arrivals }
    }

    /// Makes the jobs chains of these stages; the stages of a chain have the arrival of its first job.
    pub fn in_stages(self, stages: StageGraph) -> Self {
        Self { stages, ..self }
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
        let stages = self.stages.len() as u32;
        let chain = job.0 / stages;
        let arrival = self.arrivals[(chain * stages) as usize];
        let (client, class) = (chain % self.schedulers, (chain % 5 == 4).into());
        JobSpec { arrival, tasks: self.tasks, client, class, deadline: None }
    }
    fn links(&self, job: JobId) -> Links<'_> {
        links(self.stages, job)
    }
    fn estimate(&self, _: TaskId) -> Span {
        Span::from_secs(1)
    }
    fn job_estimate(&self, _: JobId) -> Span {
        Span::from_secs(1)
    }
}

/// Every registered policy with each of its variants, for a cluster of at least `servers` nodes. Time constants suit
/// tasks of a second.
pub fn policies(servers: u32) -> Vec<PolicySpec> {
    let parse = |name: &str, table: &str| {
        let text = format!("{name} = {}", table.replace('#', &servers.to_string()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let all =
        |card: &Card| variants(card.name).iter().map(|table| parse(card.name, table)).collect::<Vec<_>>();
    // This variant needs nodes of one core, so randomised clusters cannot have it.
    let silent = parse("yaq-d", "{ heartbeat = \"8ms\", silent = true }");
    let cards = PolicySpec::cards();
    let alone = cards.iter().filter(|card| card.runs_alone);
    alone.flat_map(all).chain(PolicySpec::defaults()).chain([silent]).collect()
}

/// Every registered policy that gossips. A member contacts two others in each period; all periods begin together.
pub fn gossiping() -> Vec<PolicySpec> {
    let detects = "aligned = true, suspicion = 2.0, indirect = 1, reconnect = \"2s\"";
    [
        "push = { fan_out = 2, aligned = true }".to_owned(),
        "pull = { fan_out = 2, aligned = true }".to_owned(),
        "push-pull = { fan_out = 2, aligned = true, rounds = 2 }".to_owned(),
        "flood = {}".to_owned(),
        format!("swim = {{ {detects} }}"),
        format!("lifeguard = {{ {detects}, slowest = 2.0, confirmations = 1, health = 2 }}"),
    ]
    .iter()
    .map(|text| toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}")))
    .collect()
}

/// A group for a policy that gossips. Member 0 originates an update every two seconds, unless the policy detects
/// failures.
pub fn group(policy: &PolicySpec, members: u32) -> Layout {
    let detects = policy.traits().gossips == Some(Gossips::Failures);
    let origin = if detects { Origin::Nowhere } else { Origin::Member(0) };
    let every = DistributionSpec::Constant(Span::from_secs(2));
    let group = GossipGroup::new(members, Neighbours::Complete, every, origin, Time::MAX, 1);
    Layout::new(1, 0, vec![0; members as usize]).with_gossip(group)
}
