//! The injections into the current run: checked, ordered from the agents, and recorded.

use std::time::Duration;

use tokio::time::timeout_at;
use volary_actors::base::CoreSet;
use volary_actors::base::Time;
use volary_engine::cores::Injection;
use volary_engine::results::{Applied, Injected, run_name};
use volary_engine::world::World;
use volary_engine::world::finalize::InjectionRecord;
use volary_experiment::control::StudyControl;
use volary_netem::Target;

use super::host_pool::{HostPool, RepeatedInjection, RunClock};
use super::injectors::{Injector, InjectorEvent, Injectors};
use crate::cluster::protocol::{
    ControllerMessage, InjectOrder, InjectReply, InjectRequest, InjectionPlan, InjectionShare, MESSAGE_FRAME,
    RUN_OVER, Refusal, load_profile,
};
use crate::cluster::timing::at_least;

/// Maximum number of injections into one run. Cores evaluate each injection whenever a copy begins, and some profiles
/// keep state per core.
const MAX_INJECTIONS: usize = 100;
/// Maximum number of targets of an injection, and of bytes per target, because resolving them delays reports of hosts.
const MAX_TARGETS: usize = 1000;
const MAX_TARGET_BYTES: usize = 200;
/// Maximum number of runs without the injection that are reported to an injector.
const MAX_LACKING: usize = 100;
/// Time from a request to the start of an injection, and from the order that ends it to its end: at least this long,
/// and at least this many round trips to the furthest host. All hosts thus begin and end at the same emulated time.
const LEAD: (Duration, u32) = (Duration::from_millis(100), 4);
/// Maximum time within which injectors must disconnect after the last reply, at the end of a run.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The injections into a run, in the order in which they were ordered.
pub(super) struct Injections<'a> {
    world: &'a World,
    /// The cores of each host.
    held: Vec<CoreSet>,
    clock: RunClock,
    entries: Vec<RunInjection>,
    pub(super) injectors: &'a mut Injectors,
}

struct RunInjection {
    id: u64,
    request: InjectRequest,
    /// `None` if the controller repeats an injection into an earlier run.
    injector: Option<Injector>,
    /// The state of the injection as last reported to the injector.
    phase: Phase,
    /// Whether the hosts have been ordered to end the injection.
    lifted: bool,
    /// Nodes, cores and hosts as requested, for the record.
    targets: Vec<String>,
    plan: InjectionPlan,
    injection: Injection,
    shares: Vec<Share>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Requested,
    Begun,
    Over,
}

/// The part of an injection that one host carries out.
pub(super) struct Share {
    host: usize,
    cores: CoreSet,
    /// Start, once the host has confirmed it.
    pub(super) from: Option<Time>,
    /// End, once the host has confirmed it.
    pub(super) until: Option<Time>,
    /// Reason why the host ended its part.
    pub(super) ended: Option<String>,
}

impl RunInjection {
    /// The injection as one host carried it out. If the host was lost, or the ordered end was after the run, the
    /// injection ended with the run, at `end`.
    fn of_share(&self, share: &Share, end: Time) -> Injection {
        let from = share.from.unwrap_or(self.injection.from);
        let until = share.until.unwrap_or(self.injection.until).min(end).max(from);
        Injection { cores: share.cores.clone(), from, until, ..self.injection.clone() }
    }

    /// The injection to repeat in later runs, with the ordered length unless the injector ended it earlier. `None` if
    /// the injection is only for this run, or did not begin on all hosts.
    fn repetition(&self) -> Option<RepeatedInjection> {
        if !self.request.all_policies
            || self.injector.is_none()
            || self.shares.iter().any(|share| share.from.is_none())
        {
            return None;
        }
        // The latest start and end of all hosts, because an order may have reached a host too late.
        let from = self.shares.iter().filter_map(|share| share.from).max()?;
        let ended = self.shares.iter().filter_map(|share| share.until).max().filter(|_| self.lifted);
        let until = ended.map_or(self.injection.until, |ended| ended.min(self.injection.until));
        Some(RepeatedInjection { request: self.request.clone(), from, until })
    }

    fn begun(&self) -> impl Iterator<Item = &Share> {
        self.shares.iter().filter(|share| share.from.is_some())
    }

    /// Whether the two injections applied to a common core at the same time.
    fn overlaps(&self, other: &Injection, end: Time) -> bool {
        self.begun().map(|share| self.of_share(share, end)).any(|mine| {
            let cores = mine.cores.intersection(&other.cores);
            mine.from < other.until && other.from < mine.until && !cores.is_empty()
        })
    }

    fn share(&mut self, host: usize) -> Option<&mut Share> {
        self.shares.iter_mut().find(|share| share.host == host)
    }

    /// The shares in the form sent to the injector.
    fn report(&self, pool: &HostPool) -> Vec<InjectionShare> {
        let report = |share: &Share| InjectionShare {
            host: pool.members[share.host].name.clone(),
            cores: share.cores.clone(),
            from: share.from.unwrap_or(self.injection.from),
            until: share.until,
            ended: share.ended.clone().unwrap_or_default(),
        };
        self.shares.iter().map(report).collect()
    }
}

impl<'a> Injections<'a> {
    pub(super) fn new(
        world: &'a World,
        held: Vec<CoreSet>,
        clock: RunClock,
        injectors: &'a mut Injectors,
    ) -> Self {
        Self { world, held, clock, entries: Vec::new(), injectors }
    }

    /// Repeats the injections of earlier runs that were requested for all runs.
    pub(super) async fn repeat(&mut self, pool: &HostPool) {
        for RepeatedInjection { request, from, until } in &pool.repeated {
            match self.plan(pool, request, *from, *until) {
                Ok((injection, plan)) => self.begin(pool, None, request, injection, plan).await,
                Err((_, why)) => {
                    tracing::warn!("an injection into all policies is not repeated in this run: {why}");
                }
            }
        }
    }

    /// Handles a message of an injector.
    pub(super) async fn on_injector(&mut self, pool: &HostPool, event: InjectorEvent) {
        match event {
            // The injector sent its request between two runs and has disconnected since.
            InjectorEvent::Request(injector, _) if injector.is_gone() => {}
            InjectorEvent::Request(injector, request) => self.request(pool, injector, &request).await,
            InjectorEvent::End(number) => self.lift(pool, number, "ended by the injector").await,
            InjectorEvent::Gone(number) => self.lift(pool, number, "the injector disconnected").await,
        }
    }

    /// The ordered start of an injection; zero if no injection has this number.
    pub(super) fn begin_of(&self, id: u64) -> Time {
        self.entries.iter().find(|entry| entry.id == id).map_or(Time::ZERO, |entry| entry.injection.from)
    }

    /// Handles the confirmation that a host has begun an injection, or ended it, or could not begin it.
    pub(super) async fn on_confirmed(
        &mut self,
        pool: &HostPool,
        host: usize,
        id: u64,
        confirm: impl FnOnce(&mut Share),
    ) {
        let Some(i) = self.entries.iter().position(|entry| entry.id == id) else { return };
        if let Some(share) = self.entries[i].share(host) {
            confirm(share);
        }
        self.update(pool, i).await;
    }

    /// Handles the loss of a host, which ends the host's parts of injections.
    pub(super) async fn on_lost(&mut self, pool: &HostPool, host: usize) {
        for share in self.entries.iter_mut().filter_map(|entry| entry.share(host)) {
            share.ended.get_or_insert_with(|| "the host was lost".to_owned());
        }
        self.update_all(pool).await;
    }

    /// Sends the last replies at the end of a run, and waits for their arrival, since the process may end right after.
    pub(super) async fn finish(&mut self, pool: &mut HostPool) {
        for share in self.entries.iter_mut().flat_map(|entry| &mut entry.shares) {
            share.ended.get_or_insert_with(|| RUN_OVER.to_owned());
        }
        self.update_all(pool).await;
        pool.repeated.extend(self.entries.iter().filter_map(RunInjection::repetition));
        pool.over.push((self.world.point().cell.clone(), self.name()));
        let late = tokio::time::Instant::now() + DISCONNECT_TIMEOUT;
        for injector in self.entries.iter().filter_map(|entry| entry.injector.as_ref()) {
            let _ = timeout_at(late, injector.gone()).await;
        }
    }

    /// Reports to the observers the injections that hosts have confirmed, in a run that is over at `end`; a run in
    /// progress has no end yet.
    pub(super) fn show(&self, pool: &HostPool, control: &StudyControl, end: Time) {
        for entry in &self.entries {
            let share = |share: &Share| (pool.members[share.host].name.clone(), entry.of_share(share, end));
            let shares: Vec<_> = entry.begun().map(share).collect();
            control.report(|observer| observer.inject(entry.id, &shares));
        }
    }

    /// The injections that took effect in a run that was over at `end`, for the record.
    pub(super) fn record(&self, pool: &HostPool, end: Time) -> InjectionRecord {
        let mut disturbed = InjectionRecord::default();
        for (i, entry) in self.entries.iter().enumerate() {
            let mut hosts = Vec::new();
            for share in entry.begun() {
                let injection = entry.of_share(share, end);
                let overruled = self.entries[i + 1..].iter().any(|later| later.overlaps(&injection, end));
                let effect = if overruled { None } else { injection.effect(&self.world.machines().cores) };
                let ended = share.ended.as_deref().unwrap_or_default();
                let note = if overruled { "; a later injection replaced it on some cores" } else { "" };
                hosts.push(Applied {
                    host: pool.members[share.host].name.clone(),
                    cores: injection.cores.to_string(),
                    from_s: injection.from.as_secs_f64(),
                    until_s: injection.until.as_secs_f64(),
                    ended: format!("{ended}{note}"),
                    cut: ended == RUN_OVER || share.until.is_none_or(|until| until > end),
                    degraded: effect.map(|effect| effect.degraded),
                });
                disturbed.injections.push(injection);
            }
            if hosts.is_empty() {
                continue;
            }
            let profile = serde_json::to_value(&entry.injection.profile.table).unwrap_or_default();
            disturbed.results.push(Injected {
                id: format!("{:016x}", entry.id),
                profile: serde_json::from_value(profile).unwrap_or_default(),
                seed: entry.injection.seed,
                targets: entry.targets.clone(),
                hosts,
            });
        }
        disturbed
    }

    /// Checks a request and orders the injection, or answers at once with a refusal or with the plan of a dry run.
    async fn request(&mut self, pool: &HostPool, injector: Injector, request: &InjectRequest) {
        let from = self.clock.after(at_least(LEAD, pool.round_trip()));
        let until = request.lasting.map_or(Time::MAX, |lasting| from + lasting);
        let reply = match self.plan(pool, request, from, until) {
            Err((refusal, why)) => InjectReply::Refused(refusal, why),
            Ok((_, plan)) if request.dry_run => InjectReply::Planned(Box::new(plan)),
            Ok((injection, plan)) => return self.begin(pool, Some(injector), request, injection, plan).await,
        };
        injector.reply(reply);
    }

    /// The name of the run.
    fn name(&self) -> String {
        let point = self.world.point();
        run_name(&point.label, &point.cell, self.world.seed())
    }

    /// The injection that a request describes, if it began at `from` and ended at `until`.
    fn plan(
        &self,
        pool: &HostPool,
        request: &InjectRequest,
        from: Time,
        until: Time,
    ) -> Result<(Injection, InjectionPlan), (Refusal, String)> {
        let invalid = |why| (Refusal::Invalid, why);
        if request.profile.len() > MESSAGE_FRAME / 2 {
            let most = MESSAGE_FRAME >> 21;
            return Err(invalid(format!(
                "the profile is longer than {most} MiB: hosts accept only shorter profiles"
            )));
        }
        let profile = load_profile(&request.profile).map_err(|why| invalid(format!("the profile: {why}")))?;
        let cores = self.cores(pool, request).map_err(invalid)?;
        if self.entries.len() >= MAX_INJECTIONS && !request.dry_run {
            return Err((Refusal::Failed, format!("this run has {MAX_INJECTIONS} injections, the maximum")));
        }
        let (point, run_seed) = (self.world.point(), self.world.seed());
        let plan = InjectionPlan {
            run: pool.run_id.clone(),
            policy: point.label.clone(),
            run_seed,
            seed: request.seed.unwrap_or(run_seed),
            cores: cores.clone(),
            from,
            until,
            lacking: {
                let over = pool.over.iter().filter(|(cell, _)| *cell == point.cell);
                over.map(|(_, name)| name.clone()).take(MAX_LACKING).collect()
            },
            outline: self.world.machines().cores.outline(),
        };
        Ok((Injection { profile, seed: plan.seed, cores, from, until }, plan))
    }

    /// The cores that a request names.
    fn cores(&self, pool: &HostPool, request: &InjectRequest) -> Result<CoreSet, String> {
        let all = self.world.layout().workers();
        if let Some(last) = request.cores.last().filter(|&last| last >= all) {
            let most = all.saturating_sub(1);
            return Err(format!("--core {last}: the cluster has {all} cores, 0 to {most}"));
        }
        if request.targets.is_empty() && request.cores.is_empty() && request.hosts.is_empty() {
            return Ok(CoreSet::below(all));
        }
        let mut cores = request.cores.union(&self.cores_of_targets(&request.targets)?);
        for name in &request.hosts {
            let Some(host) = pool.index(name) else {
                let known: Vec<_> = pool.members.iter().map(|member| member.name.as_str()).collect();
                return Err(format!("--host {name}: the run has only {}", known.join(", ")));
            };
            cores = cores.union(&self.held[host]);
        }
        Ok(cores)
    }

    fn cores_of_targets(&self, targets: &[String]) -> Result<CoreSet, String> {
        if targets.len() > MAX_TARGETS || targets.iter().any(|target| target.len() > MAX_TARGET_BYTES) {
            return Err(format!(
                "more than {MAX_TARGETS} targets, or a target above {MAX_TARGET_BYTES} bytes: name ranges or racks"
            ));
        }
        let mut cores = CoreSet::default();
        for text in targets {
            let wrong = |why: String| format!("`{text}` names no node of this cluster: {why}");
            let target: Target = text.parse().map_err(wrong)?;
            let named = self.world.machines().cores_at(&target)?;
            cores = cores.union(&named);
        }
        Ok(cores)
    }

    /// Orders an injection from the hosts that hold its cores.
    async fn begin(
        &mut self,
        pool: &HostPool,
        injector: Option<Injector>,
        request: &InjectRequest,
        injection: Injection,
        plan: InjectionPlan,
    ) {
        let named = (!request.cores.is_empty()).then(|| format!("cores {}", request.cores));
        let hosts = request.hosts.iter().map(|host| format!("host {host}"));
        let targets = request.targets.iter().cloned().chain(named).chain(hosts).collect();
        let id = pool.run.rotate_left(8) ^ self.entries.len() as u64;
        let mut shares = Vec::new();
        for (host, held) in self.held.iter().enumerate() {
            let cores = held.intersection(&injection.cores);
            if cores.is_empty() || pool.hosts[host].lost.is_some() {
                continue;
            }
            let order = InjectOrder {
                id,
                profile: request.profile.clone(),
                seed: injection.seed,
                cores: cores.clone(),
                from: injection.from,
                until: injection.until,
            };
            pool.hosts[host].send(ControllerMessage::Inject(Box::new(order))).await;
            shares.push(Share { host, cores, from: None, until: None, ended: None });
        }
        if shares.is_empty() {
            let why = "no host of the run holds any of these cores".to_owned();
            return answer(injector.as_ref(), InjectReply::Refused(Refusal::Failed, why));
        }
        self.entries.push(RunInjection {
            id,
            request: request.clone(),
            injector,
            phase: Phase::Requested,
            lifted: false,
            targets,
            plan,
            injection,
            shares,
        });
    }

    /// Orders the hosts to end the injection of an injector.
    async fn lift(&mut self, pool: &HostPool, injector: u64, why: &str) {
        let is_its = |entry: &RunInjection| entry.injector.as_ref().is_some_and(|its| its.number == injector);
        let found = self.entries.iter().position(|entry| is_its(entry) && !entry.lifted);
        if let Some(found) = found {
            let at = self.clock.after(at_least(LEAD, pool.round_trip()));
            self.lift_entry(pool, found, at, why).await;
        }
    }

    /// Orders the hosts to end the injection of entry `i` at a time, or at once if the time has passed.
    async fn lift_entry(&mut self, pool: &HostPool, i: usize, at: Time, why: &str) {
        let entry = &mut self.entries[i];
        entry.lifted = true;
        for share in entry.shares.iter().filter(|share| share.ended.is_none()) {
            let lift = ControllerMessage::Lift { id: entry.id, at, why: why.to_owned() };
            pool.hosts[share.host].send(lift).await;
        }
    }

    async fn update_all(&mut self, pool: &HostPool) {
        for i in 0..self.entries.len() {
            self.update(pool, i).await;
        }
    }

    /// Sends the injector of entry `i` the changes since the last report.
    async fn update(&mut self, pool: &HostPool, i: usize) {
        let entry = &mut self.entries[i];
        let injector = entry.injector.clone();
        if entry.phase == Phase::Requested {
            let failed = entry.shares.iter().find(|share| share.from.is_none() && share.ended.is_some());
            if let Some(Share { host, ended, .. }) = failed {
                let host = &pool.members[*host].name;
                let why = format!("host {host}: {}", ended.as_deref().unwrap_or_default());
                entry.phase = Phase::Over;
                answer(injector.as_ref(), InjectReply::Refused(Refusal::Failed, why.clone()));
                return self.lift_entry(pool, i, Time::ZERO, &why).await;
            }
            if entry.begun().count() < entry.shares.len() {
                return;
            }
            entry.phase = Phase::Begun;
            answer(injector.as_ref(), InjectReply::Begun(Box::new(entry.plan.clone()), entry.report(pool)));
        }
        if entry.phase == Phase::Begun && entry.shares.iter().all(|share| share.ended.is_some()) {
            entry.phase = Phase::Over;
            answer(injector.as_ref(), InjectReply::Over(entry.report(pool)));
        }
    }
}

/// Answers the injector of an injection; a repeated injection has no injector.
fn answer(to: Option<&Injector>, reply: InjectReply) {
    match to {
        Some(injector) => injector.reply(reply),
        None => {
            if let InjectReply::Refused(_, why) = reply {
                tracing::warn!("an injection into all policies is not repeated in this run: {why}");
            }
        }
    }
}
