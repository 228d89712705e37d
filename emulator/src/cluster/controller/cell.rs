//! A unit on the hosts, as the controller sees it.

use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use volary_actors::base::{Span, Time};

use super::host_connection::HostEvent;
use super::host_pool::{HostPool, ROUND};
use super::injections::Injections;
use crate::cluster::allowing;
use crate::cluster::check::{FAR, believable, possible};
use crate::cluster::placement::{cores, doomed, slowest};
use crate::cluster::protocol::{AgentMessage, Assignment, ControllerMessage, FinalReport, Member};
use crate::config::{RunSection, id_under};
use crate::parcel::Observation;
use crate::runtime::error::UnitError;
use crate::runtime::live::aggregator::{Aggregator, EndReason};
use crate::runtime::watch::Watch;
use crate::storage::input_log;
use volary_engine::world::World;

/// From the decision to start until the start, at least, and in round trips: half of one takes the order there, the
/// rest is for one that is lost and sent again.
const LEAD: (Duration, u32) = (Duration::from_millis(100), 4);
/// How long hosts may take for their last word, at least, and in round trips: it can be some megabytes on a path that
/// was quiet.
const CLOSING: (Duration, u32) = (Duration::from_secs(15), 20);
/// Observations that wait at most until every host has come as far; all of them take some hundred megabytes.
const WAITING: usize = 16_000_000;

/// A unit on its way, and when it is over.
pub(crate) struct ControllerCell<'a> {
    world: &'a World,
    pub(crate) aggregator: Aggregator<'a>,
    pub(crate) over: EndReason,
    /// The last words of the hosts, by shard.
    pub(crate) last: Vec<Option<Last>>,
    /// Why it could not go on.
    pub(crate) broken: Option<String>,
    /// The host that is said to be why, if only others said so.
    accused: Option<usize>,
    /// What was injected.
    pub(crate) injected: Injections,
    /// From when on nothing on a host is to live, by shard.
    doomed: Vec<Option<Time>>,
    begun: Instant,
    /// Emulated seconds per real second.
    speed: f64,
}

/// The last word of a host on a unit.
pub(crate) enum Last {
    FinalReport(Box<FinalReport>),
    /// It could not go on, but is ready for the next one.
    Refused,
}

impl Last {
    pub(crate) fn account(self) -> Option<Box<FinalReport>> {
        match self {
            Self::FinalReport(account) => Some(account),
            Self::Refused => None,
        }
    }
}

impl ControllerCell<'_> {
    /// The run's time by our clock, or a little later.
    fn now(&self) -> Time {
        Time::ZERO + Span::from_secs_f64(self.begun.elapsed().as_secs_f64() * self.speed)
    }

    /// Takes in a report of a host, if what it says can be. Otherwise says why, and which host is to blame if it
    /// is not the one that reports.
    fn report(
        &mut self,
        host: usize,
        notes: Vec<Observation>,
        mark: Time,
    ) -> Result<(), (Option<usize>, String)> {
        let now = self.now();
        let can_be = |note: &Observation| note.at <= now + FAR && possible(self.world, note);
        if mark > now + FAR || !notes.iter().all(can_be) {
            return Err((None, "it reports what cannot be".to_owned()));
        }
        self.aggregator.report(host, notes, mark);
        if self.aggregator.waiting() > WAITING {
            let why = format!(
                "it has reported nothing since {:.3} s of the run, and more than {WAITING} observations of the \
                 others wait for it",
                self.aggregator.complete().as_secs_f64()
            );
            return Err((Some(self.aggregator.slowest()), why));
        }
        Ok(())
    }

    /// A host tells of an injection, or of what is of no interest here. Fails if that cannot be.
    fn inject(&mut self, host: usize, word: AgentMessage, members: &[Member]) -> Result<(), String> {
        match word {
            AgentMessage::Injected(notice) => {
                let held = cores(self.world, members, host as u16).collect();
                self.injected.begin(host, *notice, &held)
            }
            AgentMessage::Lifted { id, until, why } => {
                self.injected.end(host, id, until, why);
                Ok(())
            }
            AgentMessage::State(_)
            | AgentMessage::Loaded
            | AgentMessage::Ready { .. }
            | AgentMessage::Refused { .. }
            | AgentMessage::Ping { .. }
            | AgentMessage::Notes { .. }
            | AgentMessage::Log(_)
            | AgentMessage::Inputs(_)
            | AgentMessage::Lost { .. }
            | AgentMessage::FinalReport(_) => Ok(()),
        }
    }

    /// A host said why it cannot go on: that is worth more than what others say of it.
    fn refused(&mut self, host: usize, name: &str, why: &str) {
        self.last[host] = Some(Last::Refused);
        if self.broken.is_none() || self.accused == Some(host) {
            (self.broken, self.accused) = (Some(format!("host {name}: {why}")), None);
        }
    }

    /// Whether nothing lives on a host any more: then it may go as well.
    fn is_dead(&self, host: usize) -> bool {
        self.doomed[host].is_some_and(|at| self.aggregator.complete() >= at)
    }
}

impl HostPool {
    /// Runs a unit.
    pub(crate) async fn unit<'a>(
        &mut self,
        world: &'a World,
        point: usize,
        run: &RunSection,
        log: Option<&input_log::Unit>,
        watch: &Watch,
    ) -> Result<ControllerCell<'a>, UnitError> {
        if let Some(i) = self.hosts.iter().position(|host| host.lost.is_some()) {
            let why = self.hosts[i].lost.as_ref().map_or("", |lost| &lost.why);
            let name = &self.members[i].name;
            return Err(UnitError::Refused(format!("host {name} is gone since an earlier run: {why}")));
        }
        let heals_at = world.faults().heals_at();
        let doomed = doomed(world, &self.members);
        self.run += 1;
        self.cell = id_under(world.point(), world.seed(), run);
        for (me, host) in self.hosts.iter().enumerate() {
            let assignment = Assignment {
                run: self.run,
                point: point as u32,
                seed: world.seed(),
                id: self.cell.clone(),
                members: self.members.clone(),
                me: me as u16,
            };
            host.tell(ControllerMessage::Prepare(Box::new(assignment))).await;
        }
        let this = self.run;
        let ready = |word: &AgentMessage| matches!(word, AgentMessage::Ready { run, .. } if *run == this);
        if let Err(unsaid) = self.all(self.run, "prepare a run", ready, watch).await {
            self.order(&ControllerMessage::Stop).await;
            return Err(unsaid.into());
        }
        // Hosts send inputs as soon as they start.
        self.archive.begin(log, self.hosts.len());
        let mut cell = ControllerCell {
            world,
            aggregator: Aggregator::new(
                world.recorder(run.recording()),
                self.hosts.len(),
                run.until,
                heals_at,
            ),
            over: EndReason::Interrupted,
            last: self.hosts.iter().map(|_| None).collect(),
            broken: None,
            accused: None,
            injected: Injections::default(),
            doomed,
            begun: Instant::now(),
            speed: run.speed,
        };
        let lead = allowing(LEAD, self.round_trip());
        self.order(&ControllerMessage::Start { at: self.ticks.now() + lead.as_nanos() as i64 }).await;
        cell.over = self.attend(&mut cell, watch).await;
        self.order(&ControllerMessage::Stop).await;
        self.collect(&mut cell).await;
        self.archive.end();
        Ok(cell)
    }

    /// Keeps the books until the run is over.
    async fn attend(&mut self, cell: &mut ControllerCell<'_>, watch: &Watch) -> EndReason {
        let mut progress = vec![Time::ZERO; self.hosts.len()];
        let mut round = tokio::time::interval(ROUND);
        loop {
            let heard = tokio::select! {
                heard = self.heard.recv() => heard,
                _ = round.tick() => {
                    let slowest = slowest(&progress, &cell.doomed);
                    self.order(&ControllerMessage::Progress { slowest }).await;
                    if let Some(over) = cell.aggregator.end_reason(watch) {
                        return over;
                    }
                    continue;
                }
            };
            let Some((i, heard)) = heard else {
                cell.broken = Some("no host is left".to_owned());
                return EndReason::Broken;
            };
            let (host, why) = match heard {
                HostEvent::Message(AgentMessage::Notes { notes, mark, progress: at }) => {
                    match cell.report(i, notes, mark) {
                        Ok(()) => {
                            progress[i] = at;
                            continue;
                        }
                        Err((host, why)) => (host.unwrap_or(i), why),
                    }
                }
                HostEvent::Message(AgentMessage::Refused { run, why }) if run == self.run => {
                    cell.refused(i, &self.members[i].name, &why);
                    return EndReason::Broken;
                }
                HostEvent::Message(AgentMessage::Lost { peer, why }) => match self.index(&peer) {
                    // It was to die. Whether it has, our own line to it says.
                    Some(lost) if cell.is_dead(lost) => continue,
                    Some(lost) => {
                        cell.accused = Some(lost);
                        (lost, format!("{} lost it: {why}", self.members[i].name))
                    }
                    None => (i, format!("it says that it lost {peer}, which is no host of this run")),
                },
                HostEvent::Message(word) => match cell.inject(i, word, &self.members) {
                    Ok(()) => continue,
                    Err(why) => (i, why),
                },
                HostEvent::Gone(why) => {
                    if self.does_without(cell, i, &why) {
                        progress[i] = Time::MAX;
                        continue;
                    }
                    (i, why)
                }
            };
            let name = &self.members[host].name;
            cell.broken = Some(format!("host {name} was lost in mid-run: {why}"));
            return EndReason::Broken;
        }
    }

    /// Waits for the last word of every host that is there.
    async fn collect(&mut self, cell: &mut ControllerCell<'_>) {
        let late = tokio::time::Instant::now() + allowing(CLOSING, self.round_trip());
        let missing = |pool: &Self, cell: &ControllerCell<'_>| {
            pool.hosts.iter().zip(&cell.last).position(|(host, last)| host.lost.is_none() && last.is_none())
        };
        while let Some(slowest) = missing(self, cell) {
            // However much there is to hear: one that talks on and on does not hold up the end.
            let heard = match tokio::time::Instant::now() < late {
                true => timeout_at(late, self.heard.recv()).await.ok().flatten(),
                false => None,
            };
            let (host, why) = match heard {
                Some((i, HostEvent::Message(AgentMessage::FinalReport(account)))) => {
                    cell.aggregator.end(i);
                    let held = cores(cell.world, &self.members, i as u16).collect();
                    match believable(&account, &held, self.members.len(), cell.now().as_secs_f64()) {
                        true => cell.last[i] = Some(Last::FinalReport(account)),
                        false => cell.refused(i, &self.members[i].name, "its account is of what cannot be"),
                    }
                    continue;
                }
                Some((i, HostEvent::Message(AgentMessage::Refused { run, why }))) if run == self.run => {
                    cell.refused(i, &self.members[i].name, &why);
                    continue;
                }
                Some((i, HostEvent::Message(AgentMessage::Notes { notes, mark, .. }))) => {
                    match cell.report(i, notes, mark) {
                        Ok(()) => continue,
                        Err((host, why)) => (host.unwrap_or(i), why),
                    }
                }
                Some((i, HostEvent::Message(word))) => match cell.inject(i, word, &self.members) {
                    Ok(()) => continue,
                    Err(why) => (i, why),
                },
                Some((i, HostEvent::Gone(why))) => (i, why),
                None => (slowest, "no last word".to_owned()),
            };
            if !self.does_without(cell, host, &why) {
                let name = &self.members[host].name;
                cell.broken.get_or_insert_with(|| format!("host {name} was lost in the end: {why}"));
            }
        }
    }

    /// A host is gone. Says whether the run can do without it: nothing on it was to live any more, or it is known.
    fn does_without(&mut self, cell: &mut ControllerCell<'_>, host: usize, why: &str) -> bool {
        if self.hosts[host].lost.is_some() {
            return true; // both halves of its line tell
        }
        let expected = cell.is_dead(host);
        self.lose(host, why, expected);
        if expected && let Some(lost) = &self.hosts[host].lost {
            tracing::warn!("{}; the run goes on", lost.note(&self.members[host].name));
            cell.aggregator.end(host);
        }
        expected
    }
}
