//! The execution of one run on the hosts: reports merged, hosts lost, and the end.
//!
//! The silence of a host is the time that it has been connected without a report. A host in a run reports twenty times
//! a second, whether or not anything happens. A host that is stopped or cut off is given up after its lease. A host
//! whose machine answers but that does not report is given up too, because it would hold up the run for ever.

use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use volary_actors::base::{CoreSet, Time};
use volary_engine::metrics::{Aggregator, EndReason, FalseReport};
use volary_engine::world::World;
use volary_experiment::config::{RunSection, id_under};
use volary_experiment::control::{RunError, StudyControl};
use volary_experiment::storage::input_log;

use super::host_pool::{HostEvent, HostPool, PROGRESS_INTERVAL, RunClock};
use super::injections::{Injections, Share};
use super::injectors::Injectors;
use crate::cluster::HostsError;
use crate::cluster::placement::{cores_of, dead_from, homes, slowest};
use crate::cluster::protocol::{AgentMessage, Assignment, ControllerMessage, FinalReport};
use crate::cluster::report_check::ReportCheck;
use crate::cluster::timing::at_least;
use crate::real_time::monitor::Monitor;

/// Time from the decision to start to the start: at least this long, and this many round trips. The message takes half
/// a round trip; the rest allows for its loss and retransmission.
const LEAD: (Duration, u32) = (Duration::from_millis(100), 4);
/// Timeout for the final report of a host, which can be several megabytes on a path that was idle: at least this long,
/// and this many round trips.
const CLOSING: (Duration, u32) = (Duration::from_secs(15), 20);
/// Timeout for the final report of an interrupted run, shorter because the user waits.
const INTERRUPTED: (Duration, u32) = (Duration::from_millis(1500), 20);
/// Maximum number of observations that wait for reports of slower hosts; they take several hundred megabytes.
const MAX_WAITING_OBSERVATIONS: usize = 16_000_000;

/// A run in progress, and its outcome.
pub(super) struct ControlledRun<'a> {
    pub(super) pool: &'a mut HostPool,
    world: &'a World,
    homes: Vec<u16>,
    pub(super) aggregator: Aggregator<'a>,
    pub(super) over: EndReason,
    /// Whether each host has sent its last message on this run, by shard.
    done: Vec<bool>,
    /// The final reports, by shard, of the hosts that sent one.
    pub(super) reports: Vec<Option<Box<FinalReport>>>,
    /// The reason why the run could not continue.
    pub(super) broken: Option<String>,
    /// The host that `broken` names, if its loss was reported only by other hosts.
    accused: Option<usize>,
    pub(super) injections: Injections<'a>,
    /// Time at which the experiment's own faults have crashed everything on a host for good, by shard.
    dead_from: Vec<Option<Time>>,
    progress: Vec<Time>,
    reports_check: ReportCheck<'a>,
    silence: Silence,
    /// Whether the hosts have been ordered to stop.
    stopping: bool,
    monitor: Monitor<'a>,
    control: &'a StudyControl,
    clock: RunClock,
}

/// A host without which the run cannot continue, and the reason.
type Lost = (usize, String);

impl<'a> ControlledRun<'a> {
    /// Orders the hosts to build a run, and runs it to its end.
    pub(super) async fn run(
        pool: &'a mut HostPool,
        injectors: &'a mut Injectors,
        world: &'a World,
        point: usize,
        run: &RunSection,
        log: Option<&input_log::RunLog>,
        control: &'a StudyControl,
    ) -> Result<Self, RunError> {
        prepare(pool, world, point, run, control).await?;
        // Hosts send inputs as soon as they start.
        pool.archive.begin(log, &pool.slots());
        let (hosts, homes) = (pool.hosts.len(), homes(world, &pool.members));
        let cores = (0..hosts as u16).map(|host| cores_of(world, &homes, host).collect());
        let names = || pool.members.iter().map(|member| member.name.clone());
        let held: Vec<(String, CoreSet)> = names().zip(cores).collect();
        control.report(|observer| observer.placed(&held));
        let lead = at_least(LEAD, pool.round_trip());
        let start = pool.ticks.now() + lead.as_nanos() as i64;
        let clock = RunClock { ticks: pool.ticks, start, speed: run.speed };
        let mut run = Self {
            monitor: Monitor::new(control, &pool.run_id, world, names()),
            control,
            world,
            aggregator: Aggregator::new(
                world.recorder(run.recording()),
                hosts,
                world.limit(run.until),
                world.faults().heals_at(),
            ),
            over: EndReason::Interrupted,
            done: vec![false; hosts],
            reports: vec![None; hosts],
            broken: None,
            accused: None,
            injections: Injections::new(
                world,
                held.into_iter().map(|(_, cores)| cores).collect(),
                clock,
                injectors,
            ),
            dead_from: dead_from(world, &homes, hosts),
            progress: vec![Time::ZERO; hosts],
            reports_check: ReportCheck::new(world, &pool.members, run.speed),
            silence: Silence::new(hosts, Instant::now()),
            stopping: false,
            clock,
            homes,
            pool,
        };
        run.pool.broadcast(&ControllerMessage::Start { at: start }).await;
        run.injections.repeat(run.pool).await;
        run.over = run.until_over(control).await;
        run.stopping = true;
        run.pool.broadcast(&ControllerMessage::Stop).await;
        let limit = if run.over == EndReason::Interrupted { INTERRUPTED } else { CLOSING };
        run.collect_reports(at_least(limit, run.pool.round_trip())).await;
        run.pool.archive.end();
        run.injections.finish(run.pool).await;
        Ok(run)
    }

    /// Records the copies that were lost with unexpectedly lost hosts. Copies on a host whose loss was expected had
    /// crashed before.
    pub(super) fn lose_copies(&mut self) {
        let lost: Vec<_> = self.pool.lost_in(&self.pool.run_id).filter(|(_, lost)| !lost.expected).collect();
        for (host, _) in lost {
            self.aggregator.lose(cores_of(self.world, &self.homes, host as u16));
        }
    }

    /// Handles events until the run is over.
    async fn until_over(&mut self, control: &StudyControl) -> EndReason {
        let mut interval = tokio::time::interval(PROGRESS_INTERVAL);
        loop {
            let event = tokio::select! {
                event = self.pool.next_event() => event,
                event = self.injections.injectors.next() => {
                    self.injections.on_injector(self.pool, event).await;
                    continue;
                }
                _ = interval.tick() => {
                    let slowest = slowest(&self.progress, &self.dead_from);
                    let finished = self.aggregator.finished_jobs();
                    for host in self.pool.hosts.iter().filter(|host| host.lost.is_none()) {
                        host.send_if_idle(ControllerMessage::Progress { slowest, finished });
                    }
                    if let Err(lost) = self.give_up_silent().await {
                        self.break_off(lost);
                        return EndReason::Broken;
                    }
                    if let Some(over) = self.monitor.end_reason(&self.aggregator, control) {
                        return over;
                    }
                    continue;
                }
            };
            let Some((host, event)) = event else {
                self.broken = Some("no host of the run is left".to_owned());
                return EndReason::Broken;
            };
            if let Err(lost) = self.on_event(host, event).await {
                self.break_off(lost);
            }
            if self.broken.is_some() {
                return EndReason::Broken;
            }
        }
    }

    /// Records the reason why the run cannot continue.
    fn break_off(&mut self, (host, why): Lost) {
        let name = &self.pool.members[host].name;
        self.broken = Some(format!("host {name} was lost during the run: {why}"));
    }

    /// Gives up a host that is connected but has not reported for too long.
    async fn give_up_silent(&mut self) -> Result<(), Lost> {
        let received = self.pool.hosts.iter().map(|host| host.lost.is_none().then(|| host.received()));
        let Some(host) = self.silence.look(Instant::now(), received) else { return Ok(()) };
        let why = format!("it is connected and has reported nothing for {} s", REPORT_LIMIT.as_secs());
        self.on_gone(host, &why).await
    }

    /// Waits for the last message of every host that is not lost, for no longer than `limit`.
    async fn collect_reports(&mut self, limit: Duration) {
        let late = tokio::time::Instant::now() + limit;
        while let Some(slowest) = self.next_missing() {
            // The deadline also holds for a host that keeps sending other messages.
            let event = match tokio::time::Instant::now() < late {
                true => timeout_at(late, self.pool.next_event()).await.ok().flatten(),
                false => None,
            };
            let handled = match event {
                Some((host, event)) => self.on_event(host, event).await,
                // The user waits and no run follows, so the host is given up; it notices when the controller
                // disconnects.
                None if self.over == EndReason::Interrupted => {
                    let name = &self.pool.members[slowest].name;
                    return tracing::warn!("host {name} has not stopped in time: its counts are missing");
                }
                None => self.on_gone(slowest, "it sent no final report in time").await,
            };
            if let Err((host, why)) = handled {
                if self.pool.hosts[host].lost.is_none() {
                    self.pool.lose(host, &why, false);
                    self.injections.on_lost(self.pool, host).await;
                }
                let name = &self.pool.members[host].name;
                self.broken.get_or_insert_with(|| format!("host {name} was lost at the end: {why}"));
            }
        }
    }

    fn next_missing(&self) -> Option<usize> {
        let mut hosts = self.pool.hosts.iter().zip(&self.done);
        hosts.position(|(host, done)| host.lost.is_none() && !done)
    }

    async fn on_event(&mut self, host: usize, event: HostEvent) -> Result<(), Lost> {
        let message = match event {
            HostEvent::Message(_) if self.pool.hosts[host].lost.is_some() => return Ok(()),
            HostEvent::Message(message) => message,
            HostEvent::Gone(why) => return self.on_gone(host, &why).await,
        };
        // Hosts confirm an injection as soon as it is ordered, so the confirmed start may be in the future.
        let mut now = self.clock.after(Duration::ZERO);
        if let AgentMessage::Injected { id, .. } = message {
            now = now.max(self.injections.begin_of(id));
        }
        if let Err(why) = self.reports_check.check(host, &message, now) {
            return Err(self.distrust(host, why).await);
        }
        match message {
            AgentMessage::Notes { notes, mark, progress } => {
                self.silence.reported(host, mark);
                let merged = self.aggregator.report(host, notes, mark);
                self.on_merged(merged)?;
                self.progress[host] = progress;
            }
            AgentMessage::FinalReport(report) => {
                (self.done[host], self.reports[host]) = (true, Some(report));
                let merged = self.aggregator.end(host);
                self.on_merged(merged)?;
            }
            AgentMessage::Refused { run, why } if run == self.pool.run => self.on_refusal(host, &why),
            AgentMessage::Lost { peer, why } if !self.stopping => self.on_broken_link(host, &peer, &why)?,
            AgentMessage::Injected { id, from } => {
                let begin = |share: &mut Share| share.from = Some(from);
                self.injections.on_confirmed(self.pool, host, id, begin).await;
                self.show_injections();
            }
            AgentMessage::Lifted { id, until, why } => {
                let end = |share: &mut Share| (share.until, share.ended) = (Some(until), Some(why));
                self.injections.on_confirmed(self.pool, host, id, end).await;
                self.show_injections();
            }
            AgentMessage::Sample(sample) => self.monitor.sampled(host, *sample),
            AgentMessage::Loaded
            | AgentMessage::Busy { .. }
            | AgentMessage::Ready { .. }
            | AgentMessage::Refused { .. }
            | AgentMessage::Ping { .. }
            | AgentMessage::Log(_)
            | AgentMessage::Inputs(_)
            | AgentMessage::Lost { .. } => {}
        }
        Ok(())
    }

    fn show_injections(&self) {
        self.injections.show(self.pool, self.control, Time::MAX);
    }

    /// Gives up a host that sent an impossible report; the host takes no part in further runs.
    async fn distrust(&mut self, host: usize, why: String) -> Lost {
        self.pool.lose(host, &why, false);
        self.injections.on_lost(self.pool, host).await;
        (host, why)
    }

    /// Records that the run cannot go on if the observations of the hosts contradict each other. Fails if too many
    /// observations wait for a silent host.
    fn on_merged(&mut self, merged: Result<(), FalseReport>) -> Result<(), Lost> {
        if let Err(FalseReport { shard, why }) = merged {
            let name = &self.pool.members[shard].name;
            self.broken.get_or_insert_with(|| {
                format!(
                    "host {name}: {why}. Either its report is false, or the policy has a bug: run the same seed in virtual \
                     time, where a bug shows too"
                )
            });
        }
        if self.aggregator.waiting() > MAX_WAITING_OBSERVATIONS {
            let why = format!(
                "it has reported nothing since {:.3} s of the run, and more than {MAX_WAITING_OBSERVATIONS} \
                 observations of the others wait for it",
                self.aggregator.complete().as_secs_f64()
            );
            return Err((self.aggregator.slowest(), why));
        }
        Ok(())
    }

    /// Records the reason why a host cannot continue. The host's own reason replaces the reasons reported by other
    /// hosts.
    fn on_refusal(&mut self, host: usize, why: &str) {
        (self.done[host], self.reports[host]) = (true, None);
        if self.broken.is_none() || self.accused == Some(host) {
            let name = &self.pool.members[host].name;
            (self.broken, self.accused) = (Some(format!("host {name}: {why}")), None);
        }
    }

    fn on_broken_link(&mut self, host: usize, peer: &str, why: &str) -> Result<(), Lost> {
        match self.pool.index(peer) {
            // Faults have crashed all actors of the peer, so the run continues; the controller's own connection shows
            // whether the peer is lost.
            Some(peer) if self.is_dead(peer) => Ok(()),
            Some(peer) => {
                self.accused = Some(peer);
                Err((peer, format!("{} lost it: {why}", self.pool.members[host].name)))
            }
            None => Err((host, format!("it reports the loss of {peer}, which is not a host of this run"))),
        }
    }

    /// Records the loss of a host. Fails unless the run can continue because no actor on the host was alive, or because
    /// the loss was already recorded.
    async fn on_gone(&mut self, host: usize, why: &str) -> Result<(), Lost> {
        if self.pool.hosts[host].lost.is_some() {
            return Ok(()); // both tasks of its connection report
        }
        let expected = self.is_dead(host);
        self.pool.lose(host, why, expected);
        self.injections.on_lost(self.pool, host).await;
        if !expected {
            return Err((host, why.to_owned()));
        }
        if let Some(lost) = &self.pool.hosts[host].lost {
            tracing::warn!("{}; the run goes on", lost.note(&self.pool.members[host].name));
        }
        self.progress[host] = Time::MAX;
        self.monitor.ended(host);
        let merged = self.aggregator.end(host);
        self.on_merged(merged)
    }

    /// Whether the experiment's own faults have crashed everything on a host for good.
    fn is_dead(&self, host: usize) -> bool {
        self.dead_from[host].is_some_and(|at| self.aggregator.complete() >= at)
    }
}

/// Has every host build its shard of a run and connect to the other hosts.
async fn prepare(
    pool: &mut HostPool,
    world: &World,
    point: usize,
    run: &RunSection,
    control: &StudyControl,
) -> Result<(), RunError> {
    // Lost hosts have been removed before, unless no host would have remained.
    for (host, member) in pool.hosts.iter().zip(&pool.members) {
        if let Some(lost) = &host.lost {
            let why = format!("host {} was lost in an earlier run: {}", member.name, lost.why);
            return Err(RunError::Refused(why));
        }
    }
    pool.run += 1;
    pool.run_id = id_under(world.point(), world.seed(), run);
    for (me, host) in pool.hosts.iter().enumerate() {
        let assignment = Assignment {
            run: pool.run,
            point: point as u32,
            seed: world.seed(),
            id: pool.run_id.clone(),
            members: pool.members.clone(),
            me: me as u16,
        };
        host.send(ControllerMessage::Prepare(Box::new(assignment))).await;
    }
    let this = pool.run;
    let ready = |message: &AgentMessage| matches!(message, AgentMessage::Ready { run, .. } if *run == this);
    if let Err(error) = pool.wait_all(this, "prepare a run", ready, control).await {
        pool.broadcast(&ControllerMessage::Stop).await;
        let interrupted = matches!(error, HostsError::Interrupted);
        return Err(if interrupted {
            RunError::Interrupted(None)
        } else {
            RunError::Refused(error.to_string())
        });
    }
    Ok(())
}

/// Silence after which a host is given up, while its machine answers.
const REPORT_LIMIT: Duration = Duration::from_secs(20);
/// Interval of checks. If this process was suspended (SIGSTOP), the longer pause counts as one interval.
const LOOK: Duration = Duration::from_secs(1);

/// The silence of each host.
#[derive(Debug)]
struct Silence {
    hosts: Vec<SilentHost>,
    looked: Instant,
}

#[derive(Clone, Default, Debug)]
struct SilentHost {
    /// UDP datagrams received from the host at the last check.
    received: u64,
    /// The emulated time up to which the host has reported.
    mark: Time,
    silence: Duration,
}

impl Silence {
    pub(super) fn new(hosts: usize, now: Instant) -> Self {
        Self { hosts: vec![SilentHost::default(); hosts], looked: now }
    }

    /// Records that a host has reported up to `mark`. A report that goes no further than the previous one is ignored.
    fn reported(&mut self, host: usize, mark: Time) {
        let host = &mut self.hosts[host];
        if mark > host.mark {
            (host.mark, host.silence) = (mark, Duration::ZERO);
        }
    }

    /// The host that has been silent for too long, if a check is due; its silence then starts anew. `received` is the
    /// number of UDP datagrams that came from each host, `None` for a lost host.
    fn look(&mut self, now: Instant, received: impl Iterator<Item = Option<u64>>) -> Option<usize> {
        if now.saturating_duration_since(self.looked) < LOOK {
            return None;
        }
        self.looked = now;
        for (host, received) in self.hosts.iter_mut().zip(received) {
            if let Some(received) = received.filter(|received| *received != host.received) {
                (host.received, host.silence) = (received, host.silence + LOOK);
            }
        }
        let silent = self.hosts.iter().position(|host| host.silence > REPORT_LIMIT)?;
        self.hosts[silent].silence = Duration::ZERO;
        Some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_whose_machine_answers_is_given_up_for_its_silence() {
        let begin = Instant::now();
        let (looks, mut silence) = (REPORT_LIMIT.as_secs() as u32 + 1, Silence::new(4, begin));
        let look = |silence: &mut Silence, i: u32| {
            silence.reported(0, Time(i.into()));
            silence.reported(3, Time(7));
            let packets = u64::from(i);
            // The second host has stopped, the third was lost, and the last one repeats the same report.
            silence.look(begin + LOOK * i, [Some(packets), Some(1), None, Some(packets)].into_iter())
        };
        for i in 1..looks {
            assert_eq!(look(&mut silence, i), None, "after {i} s");
        }
        let found = [looks, looks + 1, looks + 2].map(|i| look(&mut silence, i));
        assert_eq!(found, [Some(3), None, None]);
    }

    #[test]
    fn a_controller_that_was_suspended_gives_up_no_host() {
        let begin = Instant::now();
        let mut silence = Silence::new(1, begin);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(9)].into_iter()), None);
        assert_eq!(silence.look(begin + 10 * REPORT_LIMIT, [Some(10)].into_iter()), None, "no look is due");
    }
}
