//! The executor of a shard on real cores: copies run on [`Burners`], and their ends come back into the event loop.
//!
//! Emulated cores take the highest CPUs that the process may use, one each, in order. The work of an emulated second
//! takes 1 / `run.speed` seconds on a healthy core, and more or less on a core of another speed. Degraded slots are
//! those of virtual time under the same seed. Because the common clock is corrected during a run, slots are converted
//! to real time only a few seconds ahead.

use std::rc::Rc;
use std::time::Duration;

use volary_actors::base::{Span, Time};
use volary_engine::cores::{Burst, CoreTable, Cores};
use volary_engine::results::{CoreRow, MOST_STRETCHES, RealCore, RealWork, Samples, Worked};
use volary_engine::shard::CoreExecutor;
use volary_experiment::config::real::RealSection;
use volary_experiment::number::{self, plural};

use super::burners::Burners;
use super::competitor::{CoreReading, SlotReading};
use super::cpu::CpuId;
use super::shared::DegradedSlot;
use crate::real_time::clock::Clock;

/// Real time for which burners know their slots in advance; they are updated when half of it has passed.
const HORIZON: Duration = Duration::from_secs(3);

/// Degraded stretches at least this long are accurate to a hundredth even if they were cut short.
const LONG: Duration = Duration::from_millis(200);

/// Share of a degraded stretch for which a core must have had a copy, so that the stretch is evaluated.
const MIN_BUSY: f64 = 0.75;
/// Healthy stretches end at every slot; those of this much work together are evaluated as one sample.
const HEALTHY_SAMPLE: Duration = Duration::from_millis(100);

/// A core that does less than this share of its work, and of what its slots leave it, is starved.
const STARVED: f64 = 0.02;

/// Selects the CPUs of `cores` emulated cores out of the `free` ones of a host.
///
/// # Errors When there are too few, with the remedy.
pub fn assign_cpus(real: &RealSection, cores: usize, free: &[CpuId]) -> Result<Vec<CpuId>, String> {
    let spare = (real.spare as usize).min(free.len());
    let available = free.len() - spare;
    if cores <= available {
        return Ok(free[free.len() - cores..].to_vec());
    }
    let left =
        if spare > 0 { format!(" without the {} of run.real.spare", real.spare) } else { String::new() };
    Err(format!(
        "real work takes a CPU for each emulated core: {} there, and {} free{left}; emulate fewer cores, use more \
         hosts, or leave out [run.real]",
        plural(cores as u64, "core"),
        plural(available as u64, "CPU"),
    ))
}

/// An emulated core on its CPU.
struct ExecutorCore {
    core: u32,
    cpu: CpuId,
    /// Real time per work on a healthy core.
    real_per_work: f64,
    /// [Progress](Burners::progress) at the last update of the slots.
    progress: (Duration, Duration),
    warned: bool,
    /// The largest slowdown of the slots since then.
    slowest: f64,
}

impl ExecutorCore {
    /// Warns once if other processes leave next to nothing of the CPU to copies: the run is slow, not hung.
    fn warn_if_starved(&mut self, (busy, done): (Duration, Duration)) {
        let before = std::mem::replace(&mut self.progress, (busy, done));
        let (busy, done) = (busy.saturating_sub(before.0), done.saturating_sub(before.1));
        if !self.warned && busy >= HORIZON / 3 && done < busy.mul_f64(STARVED.min(0.1 / self.slowest)) {
            self.warned = true;
            let part = number::percent(done.as_secs_f64() / busy.as_secs_f64());
            tracing::warn!(
                "copies get {part} of CPU {}: something else keeps it busy, and copies come last; stop that, or use \
                 other CPUs (taskset, --cpus)",
                self.cpu
            );
        }
    }
}

/// The executor of a shard on real cores.
pub struct RealExecutor {
    real: RealSection,
    host: String,
    /// None after the end.
    burners: Option<Burners>,
    cores: Vec<ExecutorCore>,
    /// The index in `cores` of each emulated core on this host.
    indices: Vec<usize>,
    clock: Rc<Clock>,
    /// The time up to which burners know their slots.
    planned: Option<Time>,
}

impl RealExecutor {
    /// An executor of these emulated cores, in the order in which `burners` was started with their CPUs.
    pub fn new(
        real: RealSection,
        host: &str,
        burners: Burners,
        cores: &[u32],
        clock: Rc<Clock>,
        table: &CoreTable,
    ) -> Self {
        let mut indices = Vec::new();
        for (index, core) in cores.iter().map(|core| *core as usize).enumerate() {
            indices.resize(indices.len().max(core + 1), usize::MAX);
            indices[core] = index;
        }
        let core = |(index, &core): (usize, &u32)| ExecutorCore {
            core,
            cpu: burners.cpu(index),
            real_per_work: 1.0 / (clock.speed() * table.speed(core)),
            progress: (Duration::ZERO, Duration::ZERO),
            warned: false,
            slowest: 1.0,
        };
        let cores = cores.iter().enumerate().map(core).collect();
        let host = host.to_owned();
        Self { real, host, burners: Some(burners), cores, indices, clock, planned: None }
    }

    fn burners(&self) -> &Burners {
        self.burners.as_ref().unwrap_or_else(|| unreachable!("no copy runs after the end"))
    }

    /// Real time as work of a core.
    fn work(&self, index: usize, real: Duration) -> Span {
        Span((real.as_nanos() as f64 / self.cores[index].real_per_work).ceil() as u64)
    }
}

impl CoreExecutor for RealExecutor {
    fn run(&mut self, core: u32, ticket: u64, work: Span) {
        let index = self.indices[core as usize];
        let real = Duration::from_nanos((work.0 as f64 * self.cores[index].real_per_work) as u64);
        self.burners().run(index, ticket, real);
    }

    fn halt(&mut self, core: u32) -> Span {
        let index = self.indices[core as usize];
        self.work(index, self.burners().halt(index))
    }

    fn left(&self, core: u32) -> Span {
        let index = self.indices[core as usize];
        self.work(index, self.burners().left(index))
    }

    fn finished(&mut self) -> Option<(u32, u64, Time)> {
        self.cores.iter().enumerate().find_map(|(index, core)| {
            let (ticket, at) = self.burners().take_finished(index)?;
            Some((core.core, ticket, self.clock.at(at)))
        })
    }

    fn degrade(&mut self, cores: &Cores, now: Time, changed: bool) {
        let fresh = |planned: Time| planned >= now + self.clock.emulated(HORIZON / 2);
        let Some(burners) = self.burners.as_ref().filter(|_| changed || !self.planned.is_some_and(fresh))
        else {
            return;
        };
        let until = now + self.clock.emulated(HORIZON);
        for (index, core) in self.cores.iter_mut().enumerate() {
            core.warn_if_starved(burners.progress(index));
            // The current slot continues, and one that the horizon cuts is updated before its end.
            let bursts = cores.bursts(core.core, now, until);
            let slots: Vec<_> = bursts.filter_map(|burst| real_slot(&self.clock, &burst)).collect();
            core.slowest = slots.iter().map(|slot| slot.slowdown).fold(1.0, f64::max);
            burners.degrade(index, slots);
        }
        self.planned = Some(until);
    }

    fn end(&mut self) -> Worked {
        let mut work = RealWork {
            kernel: self.real.kernel.to_string(),
            degrade: self.real.degrade.to_string(),
            ..RealWork::default()
        };
        let (mut stretches, mut cut) = (Vec::new(), false);
        let most = MOST_STRETCHES / self.cores.len().max(1);
        let readings = self.burners.take().map(Burners::end).unwrap_or_default();
        for (core, reading) in self.cores.iter().zip(&readings) {
            let healthy = evaluate(reading, &mut work, self.clock.speed());
            let (host, cpu, rounds_per_s) = (self.host.clone(), u32::from(core.cpu.0), reading.rounds_per_s);
            work.cores.push(RealCore { core: core.core, host, cpu, rounds_per_s, healthy });
            let row = |slot: &SlotReading| row(&self.clock, core.core, slot);
            stretches.extend(reading.slots.iter().take(most).map(row));
            cut |= reading.slots.len() > most;
        }
        Worked { work, stretches, cut }
    }
}

/// A burst in real time; none if it is shorter than the clock's resolution.
fn real_slot(clock: &Clock, burst: &Burst) -> Option<DegradedSlot> {
    let (from, until) = (clock.instant(burst.start), clock.instant(burst.end));
    (from < until).then_some(DegradedSlot { from, until, slowdown: burst.slowdown })
}

/// A stretch of a core, in emulated time.
fn row(clock: &Clock, core: u32, slot: &SlotReading) -> CoreRow {
    let [start, end] = [slot.from, slot.until].map(|at| clock.at(at).as_secs_f64());
    let [had, done] = [slot.busy, slot.done].map(|length| length.as_secs_f64() * clock.speed());
    CoreRow { core, start, end, asked: slot.asked, had, done }
}

/// Adds the degraded stretches of a core to `work`, and returns the speeds of its healthy ones.
fn evaluate(reading: &CoreReading, work: &mut RealWork, speed: f64) -> Samples {
    let mut healthy = Samples::default();
    let (mut busy, mut done) = (Duration::ZERO, Duration::ZERO);
    for slot in &reading.slots {
        let (length, pace) = (slot.until - slot.from, slot.done.as_secs_f64() / slot.busy.as_secs_f64());
        if slot.asked == 1.0 {
            busy += slot.busy;
            done += slot.done;
            if busy >= HEALTHY_SAMPLE {
                let (busy, done) = (std::mem::take(&mut busy), std::mem::take(&mut done));
                healthy.add(&Samples::one(done.as_secs_f64() / busy.as_secs_f64()));
            }
        } else if (slot.whole || length >= LONG) && slot.busy.as_secs_f64() >= MIN_BUSY * length.as_secs_f64()
        {
            work.slot(slot.asked, length.as_secs_f64() * speed, pace);
        }
    }
    healthy
}
