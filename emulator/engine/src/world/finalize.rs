//! The result of a run, from the totals of its recorder and the counters of its shards.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use volary_actors::base::{ActorId, Span, Time};
use volary_actors::layout::Role;
use volary_actors::message::{KINDS, kind_name};
use volary_netem::{Cause, Stats};

use crate::cores::{Burst, Cores, Injection, RunLength, SharedUse};
use crate::handling::{ROLES, RoleLoad};
use crate::metrics::{Accounts, Recording};
use crate::parcel::Delivered;
use crate::results::{
    ActorLoad, Certificate, CopyRow, CoreRow, Engine, Injected, InterferenceMet, MOST_BURSTS, MOST_SLOW,
    Measured, MessageRow, Messages, PolicySections, ScheduledSpan, SharedNodes, SlowRow, Summary,
};
use crate::shard::{Observer, Shard, WindowTally};
use crate::world::World;

/// Counters that shards update while they run. The counters of several shards are added. Counters of messages, of the
/// load of actors and of shared nodes cover the measured window.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// Number of events handled.
    pub events: u64,
    /// Hash of the order of events.
    pub hash: u64,
    /// Messages sent over the network, in the order of [`KINDS`].
    pub by_kind: Vec<u64>,
    /// Messages sent over the network that repair losses.
    pub recovery: u64,
    /// Datagrams lost and stream messages returned.
    pub dropped: u64,
    /// Retransmissions by streams.
    pub retransmissions: u64,
    /// Bytes sent over the network, headers and repeated transmissions included.
    pub bytes: u64,
    /// Counters of the network.
    pub network: Stats,
    /// CPU time of planning, in nanoseconds.
    pub planning: u64,
    /// The load of actors that take time, in the order of [`ROLES`]; empty if they take none.
    pub loads: Vec<RoleLoad>,
    /// Use of shared nodes; `None` if nodes are not shared.
    pub shared: Option<SharedUse>,
}

impl Counters {
    /// Returns the counters of a shard so far.
    pub fn of<O: Observer>(shard: &Shard<'_, O>) -> Self {
        let WindowTally { traffic, bytes, loads, shared } = shard.measured();
        Self {
            events: shard.events(),
            hash: shard.order_hash(),
            by_kind: traffic.by_kind.to_vec(),
            recovery: traffic.recovery,
            dropped: traffic.dropped,
            retransmissions: traffic.retransmissions,
            bytes,
            network: shard.fabric().stats().clone(),
            planning: shard.planning(),
            loads,
            shared,
        }
    }

    /// Adds the counters of another shard of the same run.
    pub fn add(&mut self, other: &Self) {
        // The sums saturate because other hosts report these numbers.
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        add(&mut self.events, other.events);
        self.hash = self.hash.rotate_left(1) ^ other.hash;
        self.by_kind.resize(KINDS.len(), 0);
        self.by_kind.iter_mut().zip(&other.by_kind).for_each(|(mine, theirs)| add(mine, *theirs));
        add(&mut self.recovery, other.recovery);
        add(&mut self.dropped, other.dropped);
        add(&mut self.retransmissions, other.retransmissions);
        add(&mut self.bytes, other.bytes);
        self.network.add(&other.network);
        add(&mut self.planning, other.planning);
        self.loads.resize(self.loads.len().max(other.loads.len()), RoleLoad::default());
        self.loads.iter_mut().zip(&other.loads).for_each(|(mine, theirs)| mine.add(theirs));
        if let Some(other) = &other.shared {
            self.shared.get_or_insert_default().add(other);
        }
    }

    fn messages(&self) -> Messages {
        let sent = self.by_kind.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let named = (0..).zip(&self.by_kind).filter(|(_, count)| **count > 0);
        Messages {
            total: sent.saturating_sub(self.recovery),
            dropped: self.dropped,
            recovery: self.recovery.saturating_add(self.retransmissions),
            bytes: self.bytes,
            by_kind: named.map(|(kind, count)| (kind_name(kind).to_owned(), *count)).collect(),
        }
    }

    /// Notes on the faults that took effect, for the report.
    fn fault_notes(&self) -> impl Iterator<Item = String> + '_ {
        let stats = &self.network;
        let fired = Cause::ALL.iter().filter(|cause| stats.lost(**cause) > 0);
        fired.map(|cause| {
            let at = *cause as usize;
            format!(
                "{cause:?}: {} transmissions failed; {} datagrams never arrived, {} stream messages were returned",
                stats.lost(*cause),
                stats.datagram.dropped[at],
                stats.stream.unreachable[at]
            )
        })
    }
}

/// A run that has ended, except for the totals of its recorder.
#[derive(Debug)]
pub struct FinishedRun<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The world that was run.
    pub world: &'a World,
    /// The extent of the recording.
    pub recording: Recording,
    /// Name of the runtime.
    pub runtime: &'a str,
    /// The counters of the shards.
    pub counters: &'a Counters,
    /// Measurements of a run in real time.
    pub real: Option<RealTime>,
    /// The injections; `None` if the runtime cannot inject.
    pub injected: Option<&'a InjectionRecord>,
}

/// The injections into a run.
#[derive(Clone, Default, Debug)]
pub struct InjectionRecord {
    /// The injections as the results list them.
    pub results: Vec<Injected>,
    /// The injections in the order in which the cores applied them.
    pub injections: Vec<Injection>,
}

/// Measurements that only a run in real time makes.
#[derive(Clone, Debug)]
pub struct RealTime {
    /// The certificate of departures from the experiment.
    pub certificate: Certificate,
    /// The work of real cores, by interval.
    pub cores: Vec<CoreRow>,
    /// Remarks for the reader of the results.
    pub notes: Vec<String>,
}

impl FinishedRun<'_> {
    /// Returns the result, from totals that were closed at `now`. The cost of the run is left at zero.
    pub fn measured(mut self, accounts: Accounts, now: Time) -> Measured {
        let (cores_met, shared) = (self.cores(), self.shared(&accounts));
        let bursts = self.bursts(&cores_met, now, &accounts);
        let (messages, actors) = (self.messages(&accounts), self.actors(&accounts, now));
        let (sent, point) = (self.counters.messages(), self.world.point());
        let sections = self.sections(accounts.policy.sections, &sent, now);
        let injections = self.injected.map_or_else(Vec::new, |injected| injected.results.clone());
        let mut notes: Vec<_> = self.counters.fault_notes().chain(self.world.unmet(now)).collect();
        notes.extend(injections.iter().map(Injected::describe).chain(self.trace_notes(now)));
        let (fidelity, cores) = self.real.take().map_or_else(Default::default, |real| {
            notes.extend(real.notes);
            (Some(real.certificate), real.cores)
        });
        notes.extend(actors.iter().flat_map(|(role, load)| load.overload(role, accounts.length)));
        notes.extend(accounts.notes.into_iter().chain(self.world.workload().warnings().iter().cloned()));
        let summary = Summary {
            experiment: self.experiment.to_owned(),
            policy: point.label.clone(),
            cell: point.cell.clone(),
            runtime: self.runtime.to_owned(),
            seed: self.world.seed(),
            window: accounts.window,
            unsettled: accounts.unsettled,
            jobs: accounts.measured.jobs,
            tasks: accounts.measured.tasks,
            copies: accounts.measured.copies,
            times: accounts.times.times,
            classes: accounts.classes,
            makespan_s: accounts.makespan,
            drain_s: accounts.drain,
            throughput_per_s: accounts.throughput,
            utilization: accounts.utilization,
            goodput: accounts.goodput,
            deadlines: accounts.deadlines,
            graphs: accounts.graphs,
            messages: sent,
            sections,
            values: accounts.policy.values,
            shared,
            unused_schedulers: self.unused_schedulers(),
            actors,
            fidelity,
            interference: interference(&cores_met, now),
            scheduled: self.scheduled(now),
            injections,
            executed_again: None,
            engine: Engine {
                events: self.counters.events,
                order_hash: format!("{:016x}", self.counters.hash),
                planning_cpu_s: point.policy.traits().plans().then_some(self.counters.planning as f64 * 1e-9),
                ..Engine::default()
            },
        };
        Measured {
            summary,
            jobs: accounts.rows,
            slow: slow(&cores_met, &accounts.sample),
            copies: accounts.sample,
            sampled_one_in: accounts.sampled_one_in,
            timeline: accounts.timeline,
            timeline_nodes: self.timeline_nodes(),
            messages,
            messages_left_out: accounts.messages.1,
            load: accounts.load,
            bursts,
            looks: accounts.policy.looks,
            decisions: accounts.policy.decisions,
            deliveries: accounts.policy.deliveries,
            cores,
            notes,
        }
    }

    /// The policy's sections, completed with the numbers that follow from the counters of messages.
    fn sections(&self, mut sections: PolicySections, sent: &Messages, now: Time) -> PolicySections {
        let (all, layout) = ((sent.total + sent.recovery) as f64, self.world.layout());
        if let Some(gossip) = &mut sections.gossip {
            let each = gossip.updates as f64 * f64::from(layout.nodes());
            gossip.messages = all / each;
            gossip.sent_bytes = sent.bytes as f64 / each;
        }
        if let Some(detection) = &mut sections.detection {
            detection.messages = all / now.as_secs_f64() / f64::from(layout.nodes());
        }
        sections
    }

    /// The schedulers of the cluster that a central policy leaves out.
    fn unused_schedulers(&self) -> Option<u32> {
        let all = self.world.point().resolved.cluster.schedulers;
        Some(all - self.world.layout().schedulers()).filter(|unused| *unused > 0)
    }

    /// The messages on the timeline.
    fn messages(&self, accounts: &Accounts) -> Vec<MessageRow> {
        accounts.messages.0.iter().map(|(at, what)| self.message(*at, what)).collect()
    }

    /// The node of each core that the timeline plots.
    fn timeline_nodes(&self) -> Vec<u32> {
        self.drawn().map(|core| self.world.layout().node_of_core(core)).collect()
    }

    /// A message on the timeline that was handled at `at`.
    fn message(&self, at: Time, what: &Delivered) -> MessageRow {
        MessageRow {
            sent: what.sent.as_secs_f64(),
            delivered: at.as_secs_f64(),
            from: self.actor(what.from),
            to: self.actor(what.to),
            kind: kind_name(what.kind).to_owned(),
            job: what.job.map(|job| self.world.workload().chain(job)),
        }
    }

    /// The name of an actor, such as `node 7`.
    fn actor(&self, actor: ActorId) -> String {
        match self.world.layout().role(actor) {
            Role::Client(number) => format!("client {number}"),
            Role::Scheduler(number) => format!("scheduler {number}"),
            Role::Node(number) => format!("node {number}"),
            Role::Auxiliary(number) => format!("{} {number}", self.world.point().policy.auxiliary()),
            Role::Worker { node, core } => format!("core {core} of node {node}"),
        }
    }

    /// Use of shared nodes by copies.
    fn shared(&self, accounts: &Accounts) -> Option<SharedNodes> {
        let used = self.counters.shared?;
        let layout = self.world.layout();
        let cpu: u64 = (0..layout.nodes()).map(|node| layout.room(node).cpu).sum();
        // Copies that still run when all jobs have ended are redundant; those at the end of a window may be needed.
        let is_needed = accounts.copies.in_progress > 0 || accounts.window.is_some();
        let open = if is_needed { used.in_progress } else { 0 };
        // Thousandths of a core × ns.
        let core_h = |used: u128| used as f64 * 1e-12 / 3600.0;
        Some(SharedNodes {
            throttled: used.throttled as f64 / used.time as f64,
            throttle_rate: used.throttles as f64 / f64::from(layout.nodes()) / accounts.length,
            evictions: accounts.evicted,
            used_core_h: core_h(used.used),
            wasted_core_h: core_h(used.used.saturating_sub(used.useful).saturating_sub(open)),
            in_progress_core_h: core_h(open),
            cpu: core_h(used.given) * 3600.0 / (cpu as f64 / 1000.0 * accounts.length),
        })
    }

    /// The load of the actors that take time, by role, in the measured window or until `now`.
    fn actors(&self, accounts: &Accounts, now: Time) -> BTreeMap<String, ActorLoad> {
        let all = now.since(Time::ZERO).as_secs_f64();
        let seconds = if accounts.window.is_some() { accounts.length } else { all };
        let layout = self.world.layout();
        let count = [layout.schedulers(), layout.schedulers(), layout.nodes(), layout.auxiliaries()];
        let loaded =
            ROLES.into_iter().zip(count).zip(&self.counters.loads).filter(|(_, load)| load.handled > 0);
        loaded
            .map(|((role, actors), load)| (role.to_owned(), ActorLoad::new(load, actors, seconds)))
            .collect()
    }

    /// The cores, with the interference of the profile and of all injections.
    fn cores(&self) -> Cores {
        let mut cores = self.world.cores();
        for injection in self.injected.iter().flat_map(|injected| &injected.injections) {
            cores.inject(injection);
        }
        cores
    }

    /// Mismatches between a trace of bursts and the run, which ended at `now`.
    fn trace_notes(&self, now: Time) -> impl Iterator<Item = String> {
        let lasted = now.since(Time::ZERO);
        let profile = self.world.point().resolved.interference.as_ref();
        let gaps = profile.map(|profile| {
            profile.trace_gaps(&self.world.machines().cores, RunLength { least: lasted, most: lasted })
        });
        gaps.into_iter().flatten().map(|gap| gap.to_string())
    }

    /// The scheduled injections that began before the run ended.
    fn scheduled(&self, now: Time) -> Vec<ScheduledSpan> {
        let begun = self.world.scheduled().iter().filter(|injection| injection.from < now);
        let span = |injection: &Injection| ScheduledSpan {
            cores: injection.cores.to_string(),
            from_s: injection.from.as_secs_f64(),
            until_s: injection.until.min(now).as_secs_f64(),
        };
        begun.map(span).collect()
    }

    /// The cores that the timeline plots.
    fn drawn(&self) -> Range<u32> {
        0..self.recording.timeline_cores.min(self.world.layout().workers())
    }

    /// Degraded stretches of the cores that the timeline plots: until the end of its window, or until the end of the
    /// last execution that began in it.
    fn bursts(&self, cores: &Cores, now: Time, accounts: &Accounts) -> Vec<(u32, f64, f64, f64)> {
        let drawn = accounts.timeline.iter().map(|copy| copy.end).fold(0.0, f64::max);
        let drawn = Time::ZERO + Span::from_secs_f64(drawn);
        let end = now.min(drawn.max(Time::ZERO + self.recording.timeline));
        let bursts = self.drawn().flat_map(|core| {
            // One more than is kept, so that a cut is detected.
            let bursts = cores.bursts(core, Time::ZERO, end).take(MOST_BURSTS + 1);
            bursts.map(move |burst| (core, burst)).collect::<Vec<_>>()
        });
        bursts.map(|(core, b)| (core, b.start.as_secs_f64(), b.end.as_secs_f64(), b.slowdown)).collect()
    }
}

/// The slow stretches of cores within executions, at most [`MOST_SLOW`].
fn slow(cores: &Cores, executions: &[CopyRow]) -> Vec<SlowRow> {
    let within = |copy: &CopyRow| {
        let core = copy.core;
        let [from, until] = [copy.start, copy.end].map(|at| Time::ZERO + Span::from_secs_f64(at));
        let row = move |Burst { start, end, slowdown }: Burst| SlowRow {
            core,
            start: start.as_secs_f64(),
            end: end.as_secs_f64(),
            slowdown,
        };
        cores.bursts(core, from, until).map(row)
    };
    executions.iter().flat_map(within).take(MOST_SLOW).collect()
}

/// The interference that cores met until the end of the run.
fn interference(cores: &Cores, now: Time) -> Option<InterferenceMet> {
    let (effect, cores) = cores.effect(now)?;
    Some(InterferenceMet { degraded: effect.degraded, work_lost: 1.0 - effect.throughput, cores })
}
