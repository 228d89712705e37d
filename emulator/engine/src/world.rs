//! The world: one point of an experiment under one seed, from which shards are built.

pub mod finalize;

use std::ops::Range;
use std::sync::Arc;

use volary_actors::base::{Endpoint, Span, Time};
use volary_actors::layout::Layout;
use volary_actors::policies::Caches;
use volary_actors::program::{Launcher, Programs};
use volary_netem::{Fabric, Faults, Windows};

use crate::cores::{Cores, Injection, Profile};
use crate::metrics::{Recorder, Recording};
use crate::results::{JobRow, Measured};
use crate::scenario::quiet::{SHORTEST, longest};
use crate::scenario::{Machines, Point};
use crate::shard::{Parts, Placement, Stopwatch, ThreadClock};
use crate::workload::{Gossip, TraceSource, Window, Workload};

/// The reason why a scenario has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum EngineError {
    /// The run was interrupted, with these measurements so far.
    #[error("interrupted")]
    Interrupted(Box<Measured>),
    /// The scenario cannot be run with this seed, or cannot be run to its end.
    #[error("{0}")]
    Refused(String),
}

/// The world that all shards of a run share.
#[derive(Debug)]
pub struct World {
    point: Point,
    seed: u64,
    machines: Machines,
    workload: Workload,
    /// The measured window; `None` if a first pass has to find it.
    window: Option<Window>,
    faults: Faults,
    /// The injections that the experiment schedules.
    scheduled: Vec<Injection>,
    clock: Option<ThreadClock>,
    /// Starts the programs of a policy in another language.
    launcher: Option<Arc<dyn Launcher>>,
    /// Number of hosts that hold the actors.
    hosts: u16,
}

impl World {
    /// Builds the jobs of a point and resolves it under a seed.
    ///
    /// # Errors
    /// [`EngineError::Refused`] for errors that only appear under this seed, and for traces that cannot be read.
    pub fn build(point: &Point, seed: u64, traces: &dyn TraceSource) -> Result<Self, EngineError> {
        let resolved = &point.resolved;
        let site = resolved.cluster.under(&point.policy).site();
        let workload = Workload::build(&resolved.workload, &resolved.service, seed, site, traces)
            .map_err(|error| EngineError::Refused(error.to_string()))?;
        Self::new(point, seed, workload)
    }

    /// Resolves a point under a seed.
    ///
    /// # Errors
    /// [`EngineError::Refused`] for errors that only appear under this seed, and for faults without a target.
    pub fn new(point: &Point, seed: u64, workload: Workload) -> Result<Self, EngineError> {
        point.resolved.cluster.check(seed).map_err(EngineError::Refused)?;
        let window =
            point.resolved.measure.map_or(Ok(Some(Window::WHOLE)), |measure| measure.window(&workload));
        let window = window.map_err(|error| EngineError::Refused(error.to_string()))?;
        let machines = point.resolved.cluster.machines(&point.policy, seed);
        let faults = &point.resolved.network.fault;
        let faults = Faults::resolve(faults, &machines.groups, machines.layout.endpoints())
            .map_err(|error| EngineError::Refused(error.to_string()))?;
        let scheduled = machines
            .scheduled(&point.resolved.injections, seed)
            .map_err(|error| EngineError::Refused(error.to_string()))?;
        Ok(Self {
            machines,
            point: point.clone(),
            seed,
            workload,
            window,
            faults,
            scheduled,
            clock: None,
            launcher: None,
            hosts: 1,
        })
    }

    /// Measures the CPU time that planning takes.
    pub fn with_clock(mut self, clock: ThreadClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the starter of programs of policies in other languages.
    pub fn with_launcher(mut self, launcher: Arc<dyn Launcher>) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// Sets the number of hosts of the actors. The real network between hosts can lose datagrams even if the emulated
    /// network does not, so actors on several hosts always repair losses.
    pub fn on_hosts(mut self, hosts: u16) -> Self {
        self.hosts = hosts;
        self
    }

    /// Replaces the interference, scheduled injections included, and multiplies the time that cores take for all work
    /// by `factor`.
    pub fn with_cores(mut self, profile: Profile, factor: f64) -> Self {
        self.machines.cores = self.machines.cores.slower(factor);
        let resolved = Arc::make_mut(&mut self.point.resolved);
        (resolved.interference, resolved.injections) = (Some(profile), Vec::new());
        self.scheduled.clear();
        self
    }

    /// Returns the parts from which a shard that owns some of the actors is built; `observed` says whether caches are
    /// observed.
    ///
    /// # Errors
    /// [`EngineError::Refused`] for a network that does not fit this cluster.
    pub fn parts<'a>(&'a self, placement: Placement<'a>, observed: bool) -> Result<Parts<'a>, EngineError> {
        let resolved = &self.point.resolved;
        let layout = &self.machines.layout;
        let pauses =
            (0..layout.endpoints()).any(|endpoint| !self.faults.pauses(Endpoint(endpoint)).is_empty());
        let cores = self.cores();
        let fabric = Fabric::new(
            &resolved.network,
            self.machines.links.clone(),
            layout.endpoints(),
            2 * layout.schedulers(),
            self.faults.clone(),
            self.seed,
        )
        .map_err(|error| EngineError::Refused(error.to_string()))?;
        Ok(Parts {
            layout,
            workload: &self.workload,
            actors: resolved.actors.as_ref(),
            policy: &self.point.policy,
            seed: self.seed,
            lossy: self.hosts > 1 || resolved.network.expect_loss || fabric.loses_datagrams(),
            pauses,
            peer_timeout: resolved.network.peer_timeout,
            fabric,
            cores,
            observed,
            shared: false,
            window: self.window.unwrap_or(Window::WHOLE),
            oracle: placement.shards() == 1,
            placement,
            programs: self.programs(),
            stopwatch: self.clock.map(Stopwatch::new),
        })
    }

    /// The actors for which a program decides; none under a policy in Rust. The effects of their steps are logged,
    /// because a replay has no program.
    pub fn asked(&self) -> Range<u32> {
        let (traits, layout) = (self.point.policy.traits(), self.layout());
        let first = layout.scheduler(0).0;
        let nodes = if traits.one_scheduler { 0 } else { layout.nodes() };
        if traits.program.is_some() { first..first + layout.schedulers() + nodes } else { 0..0 }
    }

    /// The programs of a shard, none of which is running yet; `None` for a policy in Rust.
    fn programs(&self) -> Option<Arc<Programs>> {
        self.point.policy.traits().program?;
        self.launcher.as_ref().map(|launcher| Arc::new(Programs::new(Arc::clone(launcher))))
    }

    /// The injections that the experiment schedules.
    pub fn scheduled(&self) -> &[Injection] {
        &self.scheduled
    }

    /// The time without a copy after which a run is given up, once all jobs have arrived and all faults have healed.
    pub fn longest_quiet(&self) -> Span {
        if let Some(gossip) = self.point.resolved.workload.gossip() {
            return gossip.lasts();
        }
        // A network that does not fit this cluster is refused before anything runs.
        longest(&self.point, &self.workload, &self.machines, &self.faults).unwrap_or(SHORTEST)
    }

    /// The emulated time limit of a run: `until` of the experiment, or the end of a run without jobs.
    pub fn limit(&self, until: Option<Span>) -> Option<Span> {
        let lasts = self.point.resolved.workload.gossip().map(Gossip::lasts);
        until.into_iter().chain(lasts).min()
    }

    /// The fault schedule.
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Remarks about faults aimed at actors that this policy does not have, and about faults and scheduled injections
    /// that had not begun when the run ended, at `now`.
    pub fn unmet(&self, now: Time) -> impl Iterator<Item = String> + '_ {
        let resolved = &self.point.resolved;
        let specs = &resolved.network.fault;
        let skipped = self.faults.skipped().iter().map(move |&at| {
            let fault = &specs[at];
            let whom: Vec<_> = fault.targets().flat_map(|(_, whom)| whom).map(ToString::to_string).collect();
            format!(
                "network.fault[{at}], a {} of {}, did not concern this policy, which has no such actors",
                fault.kind(),
                whom.join(", ")
            )
        });
        let late = resolved.disturbances().filter(move |&(_, at)| Time::ZERO + at >= now);
        skipped.chain(late.map(|(key, at)| format!("{key}, at {at}, did not begin: the run had ended")))
    }

    /// The cores, all idle.
    pub fn cores(&self) -> Cores {
        let layout = self.layout();
        let pauses = (0..layout.nodes()).flat_map(|node| {
            let windows = self.faults.pauses(Endpoint(layout.node(node).0));
            windows.iter().map(move |&(from, until)| (node, from, until))
        });
        let interference = self.point.resolved.interference.as_ref();
        let pauses = Windows::new(pauses, layout.nodes());
        let mut cores = Cores::new(interference, self.machines.cores.clone(), pauses, self.seed)
            .with_preemption(self.point.resolved.service.preemption)
            .with_sensitivity(self.workload.sensitivity());
        for injection in &self.scheduled {
            cores.inject(injection);
        }
        if layout.sharing().is_none() {
            return cores;
        }
        let cpu = |node| u32::try_from(layout.room(node).cpu).unwrap_or(u32::MAX);
        cores.with_shares((0..layout.nodes()).map(cpu).collect())
    }

    /// Creates a recorder for this world.
    pub fn recorder(&self, recording: Recording) -> Recorder<'_> {
        let gossip = self.point.resolved.workload.gossip().map(Gossip::measured);
        let window = recording.window.or(self.window);
        let mut recording = Recording { quiet: self.longest_quiet(), window, gossip, ..recording };
        if let Caches::Snapshots { nodes, .. } = self.point.policy.traits().caches {
            (recording.cached_nodes, recording.snapshots) = (Some(self.layout().nodes_in(nodes)), true);
        }
        Recorder::new(self.layout(), &self.workload, &self.faults, recording, self.seed)
    }

    /// The measured window; `None` if a first pass has to find it.
    pub const fn window(&self) -> Option<Window> {
        self.window
    }

    /// The measured window, found in a first pass with these jobs.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if too few of them finished, or all arrived at once.
    pub fn settled(&self, jobs: &[JobRow]) -> Result<Window, EngineError> {
        let finished = || jobs.iter().filter(|job| job.response.is_finite());
        let responses: Vec<f64> = finished().map(|job| job.response).collect();
        let begin =
            Window::truncation(&responses).map(|place| finished().nth(place).map_or(0, |job| job.job));
        begin.map_err(|error| EngineError::Refused(error.to_string())).and_then(|chain| self.since(chain))
    }

    /// The measured window from the arrival of a chain of jobs on.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if no job arrives later.
    pub fn since(&self, chain: u32) -> Result<Window, EngineError> {
        Window::since(chain, &self.workload).map_err(|error| EngineError::Refused(error.to_string()))
    }

    /// Ids and roles of the actors.
    pub const fn layout(&self) -> &Layout {
        &self.machines.layout
    }

    /// The machines of the run.
    pub const fn machines(&self) -> &Machines {
        &self.machines
    }

    /// The jobs of the run.
    pub const fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The point that the world was built from.
    pub const fn point(&self) -> &Point {
        &self.point
    }

    /// The seed of the run.
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}
