//! The end of a run: closed books and what the shards counted become a result.

use serde::{Deserialize, Serialize};
use volary_actors::base::Time;
use volary_actors::message::KINDS;
use volary_netem::{Cause, Stats};

use super::error::UnitError;
use super::world::World;
use crate::cores::Injection;
use crate::fidelity::gauge::Gauge;
use crate::fidelity::measure::Evidence;
use crate::fidelity::{Certificate, HostVitals, Worked};
use crate::number;
use crate::record::cell::BURST_ROWS;
use crate::record::fold::Books;
use crate::results::{CoreRow, Engine, Injected, Measured, Messages, Summary};
use crate::shard::{Observer, Placement, Shard};
use crate::spec::{RunSection, RuntimeKind};

/// What shards count while they run; those of several add up.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Events handled.
    pub events: u64,
    /// Hash of their order.
    pub hash: u64,
    /// Messages sent over the network, in the order of [`KINDS`].
    pub by_kind: Vec<u64>,
    /// Of these, repairs of losses.
    pub recovery: u64,
    /// Datagrams lost and streams given back.
    pub dropped: u64,
    /// Transmissions that streams repeated.
    pub retransmissions: u64,
    /// What the network did.
    pub network: Stats,
}

impl Tally {
    /// What a shard counted so far.
    #[must_use]
    pub fn of<O: Observer>(shard: &Shard<'_, O>) -> Self {
        let traffic = shard.traffic();
        Self {
            events: shard.events(),
            hash: shard.order_hash(),
            by_kind: traffic.by_kind.to_vec(),
            recovery: traffic.recovery,
            dropped: traffic.dropped,
            retransmissions: traffic.retransmissions,
            network: shard.fabric().stats().clone(),
        }
    }

    /// Adds what another shard of the same run counted.
    pub fn add(&mut self, other: &Self) {
        // Hosts count for themselves: what they say must not wrap.
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs);
        add(&mut self.events, other.events);
        self.hash = self.hash.rotate_left(1) ^ other.hash;
        self.by_kind.resize(KINDS.len(), 0);
        self.by_kind.iter_mut().zip(&other.by_kind).for_each(|(mine, theirs)| add(mine, *theirs));
        add(&mut self.recovery, other.recovery);
        add(&mut self.dropped, other.dropped);
        add(&mut self.retransmissions, other.retransmissions);
        self.network.add(&other.network);
    }

    fn messages(&self) -> Messages {
        let sent = self.by_kind.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let named = KINDS.iter().zip(&self.by_kind).filter(|(_, count)| **count > 0);
        Messages {
            total: sent.saturating_sub(self.recovery),
            dropped: self.dropped,
            recovery: self.recovery.saturating_add(self.retransmissions),
            by_kind: named.map(|((name, _), count)| ((*name).to_owned(), *count)).collect(),
        }
    }

    /// Which faults fired, for the report.
    fn fault_notes(&self) -> impl Iterator<Item = String> + '_ {
        let stats = &self.network;
        let fired = Cause::ALL.iter().filter(|cause| stats.lost(**cause) > 0);
        fired.map(|cause| {
            let at = *cause as usize;
            format!(
                "{cause:?}: {} transmissions failed; {} datagrams never arrived, {} stream messages came back",
                stats.lost(*cause),
                stats.datagram.dropped[at],
                stats.stream.unreachable[at]
            )
        })
    }
}

/// What a run was, and what it cost.
#[derive(Debug)]
pub struct Closing<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// What was run.
    pub world: &'a World,
    /// How.
    pub run: &'a RunSection,
    /// Which clock moved it.
    pub runtime: RuntimeKind,
    /// What the shards counted.
    pub tally: &'a Tally,
    /// CPU time of all that took part, s.
    pub cpu_s: f64,
    /// Wall time, s.
    pub wall_s: f64,
    /// Peak resident memory, bytes.
    pub peak_rss_bytes: u64,
    /// What a real run measured of itself.
    pub real: Option<Real<'a>>,
    /// What was injected, if anything could be.
    pub injected: Option<&'a Disturbed>,
}

/// What was injected into a run.
#[derive(Clone, Default, Debug)]
pub struct Disturbed {
    /// To be told of.
    pub results: Vec<Injected>,
    /// As cores met it, in the order in which they did.
    pub injections: Vec<Injection>,
}

/// What only a run in real time measures.
#[derive(Clone, Debug)]
pub struct Real<'a> {
    /// Lateness and delays of all shards.
    pub gauge: &'a Gauge,
    /// One entry a process.
    pub hosts: Vec<HostVitals>,
    /// What real cores did, if copies burnt some.
    pub cores: Option<Worked>,
}

impl Closing<'_> {
    /// The result of a run whose books were closed at `now`.
    ///
    /// # Errors
    /// As [`World::parts`].
    pub fn measured(&self, books: Books, now: Time) -> Result<Measured, UnitError> {
        let summary = self.summary(&books);
        let mut notes: Vec<_> = self.tally.fault_notes().collect();
        notes.extend(summary.injections.iter().map(Injected::says));
        notes.extend(self.cut());
        notes.extend(books.notes);
        notes.extend(self.world.workload().warnings().iter().cloned());
        Ok(Measured {
            summary,
            jobs: books.rows,
            copies: books.sample,
            sampled_one_in: books.sampled_one_in,
            timeline: books.timeline,
            bursts: self.bursts(now)?,
            staleness: books.looks,
            cores: self.stretches(),
            notes,
        })
    }

    fn summary(&self, books: &Books) -> Summary {
        let point = self.world.point();
        Summary {
            experiment: self.experiment.to_owned(),
            policy: point.label.clone(),
            cell: point.cell.clone(),
            runtime: self.runtime.to_string(),
            seed: self.world.seed(),
            jobs: books.jobs,
            tasks: books.tasks,
            copies: books.copies,
            response_s: books.response,
            wait_s: books.wait,
            slowdown: books.slowdown,
            makespan_s: books.makespan,
            utilization: books.utilization,
            messages: self.tally.messages(),
            placements: books.placements,
            staleness: books.staleness,
            fidelity: self.real.as_ref().map(|real| self.certificate(real, books)),
            injections: self.injected.map_or_else(Vec::new, |injected| injected.results.clone()),
            engine: Engine {
                events: self.tally.events,
                order_hash: format!("{:016x}", self.tally.hash),
                cpu_s: self.cpu_s,
                wall_s: self.wall_s,
                peak_rss_bytes: self.peak_rss_bytes,
            },
        }
    }

    fn certificate(&self, real: &Real<'_>, books: &Books) -> Certificate {
        let evidence = Evidence {
            speed: self.run.speed,
            gauge: real.gauge,
            stats: &self.tally.network,
            network: &self.world.point().resolved.network,
            classes: self.world.machines().links.classes(),
            median_copy_s: books.median_copy(),
            busy_s: books.copies.busy_s,
            hosts: real.hosts.clone(),
            cores: real.cores.as_ref().map(|cores| cores.work.clone()),
        };
        evidence.certificate()
    }

    /// What real cores did.
    fn stretches(&self) -> Vec<CoreRow> {
        let worked = self.real.as_ref().and_then(|real| real.cores.as_ref());
        worked.map_or_else(Vec::new, |worked| worked.stretches.clone())
    }

    /// Where the record of real cores ends, if it ends early.
    fn cut(&self) -> Option<String> {
        let worked = self.real.as_ref()?.cores.as_ref().filter(|worked| worked.cut)?;
        let last = worked.stretches.iter().map(|stretch| stretch.end).fold(0.0, f64::max);
        Some(format!(
            "cores.parquet has the first stretches of each core only, until {} at most",
            number::seconds(last)
        ))
    }

    /// Degraded stretches of the cores that the timeline draws, within its window.
    fn bursts(&self, now: Time) -> Result<Vec<(u32, f64, f64, f64)>, UnitError> {
        let record = &self.run.record;
        let end = now.min(Time::ZERO + record.timeline);
        let mut cores = self.world.parts(Placement::ALONE)?.cores;
        for injection in self.injected.iter().flat_map(|injected| &injected.injections) {
            cores.inject(injection);
        }
        let drawn = 0..record.timeline_cores.min(self.world.layout().workers());
        Ok(drawn
            .flat_map(|core| {
                // One more than is kept, so that the cut shows.
                let bursts = cores.bursts(core, Time::ZERO, end).take(BURST_ROWS + 1);
                bursts.map(move |burst| (core, burst))
            })
            .map(|(core, b)| (core, b.start.as_secs_f64(), b.end.as_secs_f64(), b.slowdown))
            .collect())
    }
}
