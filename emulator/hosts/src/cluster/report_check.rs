//! The validation of the reports of hosts in the current run, before they are used.
//!
//! Each host must report about its own actors, in order of time, about existing objects, and in finite numbers. Whether
//! the reports of all hosts are consistent is checked where they are merged
//! ([`Aggregator::report`](volary_engine::metrics::Aggregator::report)).

use volary_actors::base::{ActorId, CopyId, JobId, Span, Time};
use volary_actors::catalog::Catalog;
use volary_actors::layout::Role;
use volary_actors::machine::Note;
use volary_actors::message::KINDS;
use volary_engine::cores::SharedUse;
use volary_engine::handling::ROLES;
use volary_engine::parcel::{Delivered, Observation, Seen};
use volary_engine::results::{ClockError, CoreRow, HostVitals, MOST_STRETCHES, TimerProbe, Worked};
use volary_engine::world::World;
use volary_engine::world::finalize::Counters;
use volary_experiment::control::{LateSoFar, ShardSample, VitalsSample};
use volary_netem::{ClassStats, Stats};

use super::net::Host;
use super::placement::homes;
use super::protocol::{AgentMessage, Datagrams, FinalReport};

/// The largest count accepted from a host, so that sums over all hosts fit into 64 bits.
const MOST: u64 = 1 << 47;
/// The largest sum of time that a host may report in a unit finer than nanoseconds.
const MOST_FINE: u128 = 1 << 96;
/// Maximum lead of a report over the controller's clock, s of real time, because clocks and delays differ.
const AHEAD_S: f64 = 5.0;

/// Checks the messages of all hosts in one run.
#[derive(Debug)]
pub struct ReportCheck<'a> {
    world: &'a World,
    /// The host of each endpoint.
    homes: Vec<u16>,
    /// Each host has reported everything before this emulated time.
    marks: Vec<Time>,
    ahead: Span,
}

impl<'a> ReportCheck<'a> {
    /// A check of a run on `members` at `speed` emulated seconds per real second.
    pub fn new(world: &'a World, members: &[Host], speed: f64) -> Self {
        let ahead = Span::from_secs_f64(AHEAD_S * speed);
        Self { world, homes: homes(world, members), marks: vec![Time::ZERO; members.len()], ahead }
    }

    /// Checks a message of a host. `now` is the emulated time of its arrival, or the ordered start of an injection if
    /// that is later.
    ///
    /// # Errors
    /// The error in the message, as a text about the host.
    pub fn check(&mut self, host: usize, message: &AgentMessage, now: Time) -> Result<(), String> {
        let latest = now + self.ahead;
        match message {
            AgentMessage::Notes { notes, mark, progress } => {
                if latest < (*mark).max(*progress) {
                    return Err(format!(
                        "it reports up to {}, but the time is {now}",
                        (*mark).max(*progress)
                    ));
                }
                self.notes(host, notes, *mark)
            }
            AgentMessage::Sample(sample) => sampled(sample).then_some(()).ok_or_else(|| wrong("a sample")),
            AgentMessage::FinalReport(report) => self.final_report(host, report),
            AgentMessage::Injected { from: at, .. } | AgentMessage::Lifted { until: at, .. } => (*at
                <= latest)
                .then_some(())
                .ok_or_else(|| format!("it reports an injection at {at}, but the time is {now}")),
            // These messages name no actor and contain no number.
            AgentMessage::Loaded
            | AgentMessage::Ready { .. }
            | AgentMessage::Busy { .. }
            | AgentMessage::Refused { .. }
            | AgentMessage::Ping { .. }
            | AgentMessage::Log(_)
            | AgentMessage::Inputs(_)
            | AgentMessage::Lost { .. } => Ok(()),
        }
    }

    fn notes(&mut self, host: usize, notes: &[Observation], mark: Time) -> Result<(), String> {
        let mut last = self.marks[host];
        for note in notes {
            if note.at < last || note.at > mark {
                let at = note.at;
                return Err(format!("its report is not in order of time: {at} is not in {last} to {mark}"));
            }
            last = note.at;
            self.note(host, note)?;
        }
        self.marks[host] = last.max(mark);
        Ok(())
    }

    /// Checks that the actors, jobs, cores and nodes of an observation exist, because the recorder uses them as
    /// indices, and that the host holds the actor or core that the observation is from.
    fn note(&self, host: usize, observation: &Observation) -> Result<(), String> {
        if !self.exists(observation) {
            return Err("its report names an actor, job, core or node that does not exist".to_owned());
        }
        let layout = self.world.layout();
        let (who, fits) = match observation.what {
            Seen::Crashed(core) => (layout.worker_of_core(core), true),
            Seen::Delivered(Delivered { to, .. }) => (to, true),
            Seen::Note(who, note) => (who, is_of(layout.role(who), &note)),
        };
        if !fits {
            return Err(format!("it reports {:?} of the wrong kind of actor", observation.what));
        }
        if usize::from(self.home(who)) != host {
            return Err(format!("it reports about actor {}, which another host holds", who.0));
        }
        Ok(())
    }

    fn home(&self, who: ActorId) -> u16 {
        self.homes[self.world.layout().endpoint(who).index()]
    }

    fn exists(&self, observation: &Observation) -> bool {
        let (layout, jobs) = (self.world.layout(), self.world.workload());
        let job = |job: JobId| job.0 < jobs.jobs();
        let copy = |copy: CopyId| job(copy.task.job) && copy.task.index < jobs.job(copy.task.job).tasks;
        match observation.what {
            Seen::Crashed(core) => core < layout.workers(),
            Seen::Delivered(Delivered { sent, from, to, kind, job: about }) => {
                let ends = from.0.max(to.0) < layout.endpoints();
                ends && sent <= observation.at && usize::from(kind) < KINDS.len() && about.is_none_or(job)
            }
            Seen::Note(who, _) if who.0 >= layout.actors() => false,
            Seen::Note(_, note) => match note {
                Note::Arrived { job: id }
                | Note::Resubmitted { job: id }
                | Note::Finished { job: id }
                | Note::Killed { job: id }
                | Note::Predicted { job: id, .. } => job(id),
                Note::Started { copy: id, .. }
                | Note::Completed { copy: id }
                | Note::Preempted { copy: id }
                | Note::Evicted { copy: id }
                | Note::Suspended { copy: id }
                | Note::Discarded { copy: id }
                | Note::Bound { copy: id } => copy(id),
                Note::Cache(note) => note.exists(layout, copy),
                // Updates are checked by the recorder.
                Note::Planned { .. } | Note::Enacted { .. } | Note::Informed { .. } => true,
                Note::Regards { member, .. } => member < layout.nodes(),
                Note::Value { name, bits } => {
                    let value = f64::from_bits(bits);
                    name.as_str().is_some() && value.is_finite() && value >= 0.0
                }
                Note::Unexpected { kind } => usize::from(kind) < KINDS.len(),
            },
        }
    }

    fn final_report(&self, host: usize, report: &FinalReport) -> Result<(), String> {
        let FinalReport { tally, reading, vitals, datagrams, cores } = report;
        let paths = |&Datagrams { sent, dropped, received, missing }: &Datagrams| {
            in_range(&[sent, dropped, received, missing])
        };
        let whole = [
            ("counters", counted(tally)),
            ("lateness", in_range(&reading.counts().collect::<Vec<_>>())),
            ("vitals", vital(vitals)),
            ("datagrams", datagrams.len() <= self.marks.len() && datagrams.iter().all(paths)),
            ("real cores", cores.as_ref().is_none_or(|cores| self.worked(host, cores))),
        ];
        match whole.iter().find(|(_, is_right)| !is_right) {
            Some((what, _)) => Err(wrong(&format!("the {what} of its final report"))),
            None => Ok(()),
        }
    }

    /// Whether measurements of real cores are finite numbers about cores of the host.
    fn worked(&self, host: usize, worked: &Worked) -> bool {
        let layout = self.world.layout();
        let held = |core: u32| {
            core < layout.workers() && usize::from(self.home(layout.worker_of_core(core))) == host
        };
        let stretch = |&CoreRow { core, start, end, asked, had, done }: &CoreRow| {
            held(core) && positive(&[start, end, asked, had, done])
        };
        worked.work.is_finite()
            && worked.work.cores.iter().all(|core| held(core.core))
            && worked.stretches.len() <= MOST_STRETCHES
            && worked.stretches.iter().all(stretch)
    }
}

/// Whether actors of this role produce notes of this kind.
const fn is_of(role: Role, note: &Note) -> bool {
    let of_client = matches!(
        note,
        Note::Arrived { .. } | Note::Resubmitted { .. } | Note::Finished { .. } | Note::Killed { .. }
    );
    let of_worker = matches!(
        note,
        Note::Started { .. } | Note::Completed { .. } | Note::Preempted { .. } | Note::Suspended { .. }
    );
    (!of_client || matches!(role, Role::Client(_))) && (!of_worker || matches!(role, Role::Worker { .. }))
}

fn wrong(what: &str) -> String {
    format!("a number in {what} is not finite, or out of range")
}

fn in_range(counts: &[u64]) -> bool {
    counts.iter().all(|count| *count <= MOST)
}

/// Whether all numbers are finite and not negative.
fn positive(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| number.is_finite() && *number >= 0.0)
}

fn counted(counters: &Counters) -> bool {
    let Counters {
        events,
        hash: _,
        by_kind,
        recovery,
        dropped,
        retransmissions,
        // This sum saturates and is converted to floating point, so it needs no check.
        bytes: _,
        network: Stats { datagram, stream },
        planning,
        loads,
        shared,
    } = counters;
    let class = |stats: &ClassStats| {
        let ClassStats {
            sent,
            delivered,
            dropped,
            unreachable,
            lost,
            duplicated,
            reordered,
            retransmissions,
            held,
            degraded,
            // The sums of these counters saturate and are converted to floating point, so they need no check.
            propagation_ns: _,
            queueing_ns: _,
            retransmission_ns: _,
            paused_ns: _,
            bytes: _,
        } = stats;
        in_range(&[*sent, *delivered, *duplicated, *reordered, *retransmissions, *held, *degraded])
            && [dropped, unreachable, lost].iter().all(|causes| in_range(*causes))
    };
    let is_use = |&SharedUse { time, throttled, throttles, used, useful, in_progress, given }: &SharedUse| {
        let fine = [time, throttled, used, useful, in_progress, given];
        throttles <= MOST && fine.iter().all(|sum| *sum <= MOST_FINE) && throttled <= time
    };
    in_range(&[*events, *recovery, *dropped, *retransmissions])
        && *planning <= 1 << 60
        && by_kind.len() <= KINDS.len()
        && in_range(by_kind)
        && class(datagram)
        && class(stream)
        && loads.len() <= ROLES.len()
        // The sums of times saturate and are converted to floating point, so they need no check.
        && in_range(&loads.iter().map(|load| load.handled).collect::<Vec<_>>())
        && shared.as_ref().is_none_or(is_use)
}

fn vital(vitals: &HostVitals) -> bool {
    let HostVitals {
        name: _,
        wall_s,
        cpu_s,
        cores: _,
        cpu_share,
        machine_share,
        steal_share,
        peak_rss_bytes: _,
        involuntary_switches,
        timer,
        datagrams_sent,
        datagrams_lost,
        lost_to: _,
        parcels_late,
        clock: ClockError { offset_s, bound_s, drift_ppm },
        awake: _,
        awake_refused: _,
    } = vitals;
    let probe = |&TimerProbe { count, p50_s, p99_s, max_s }: &TimerProbe| {
        in_range(&[count]) && positive(&[p50_s, p99_s, max_s])
    };
    let shares = [machine_share, steal_share];
    positive(&[*wall_s, *cpu_s, *cpu_share, *bound_s])
        && offset_s.is_finite()
        && drift_ppm.is_finite()
        && shares.iter().all(|share| share.is_none_or(|share| positive(&[share])))
        && timer.as_ref().is_none_or(probe)
        && in_range(&[*involuntary_switches, *datagrams_sent, *datagrams_lost, *parcels_late])
}

fn sampled(sample: &ShardSample) -> bool {
    let ShardSample { by_kind, dropped, pending, deliveries, timers, vitals } = sample;
    let late = |&LateSoFar { p50_s, p99_s, max_s }: &LateSoFar| positive(&[p50_s, p99_s, max_s]);
    let vital = |vitals: &VitalsSample| {
        let VitalsSample { cpu_share, machine_share, steal_share, peak_rss_bytes: _ } = vitals;
        let shares = [machine_share, steal_share];
        positive(&[*cpu_share]) && shares.iter().all(|share| share.is_none_or(|share| positive(&[share])))
    };
    by_kind.len() <= KINDS.len()
        && in_range(by_kind)
        && in_range(&[*dropped, *pending])
        && late(deliveries)
        && late(timers)
        && vitals.as_ref().is_none_or(vital)
}
