//! Real cores under a shard: copies are handed to threads that burn a CPU each, and what these finish comes back into
//! the shard's loop.
//!
//! Emulated cores take the highest CPUs that the process may use, one each, in order. Work of an emulated second
//! takes 1 / `run.speed` of a second on a healthy core, and less or more on a core of another speed. Degraded slots are
//! those of virtual time under the same seed; since the common clock is corrected as a run goes on, they are converted
//! to the CPUs' time a few seconds ahead only.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use volary_actors::base::{Span, Time};

use super::bell::Bell;
use super::clock::Clock;
use crate::burn::{Burners, CoreReading, CpuId, Setup, Slot, SlotReading};
use crate::config::real::RealSection;
use crate::cores::{Burst, CoreTable, Cores};
use crate::number::{self, plural};
use crate::results::CoreRow;
use crate::results::{MOST_STRETCHES, RealCore, RealWork, Samples, Worked};
use crate::shard::Hands;

/// How far ahead cores are told of their slots, in real time; they are told again when half of it has passed.
const HORIZON: Duration = Duration::from_secs(3);

/// Degraded stretches that are so long are as they should be but for a part in a hundred, cut short or not.
const LONG: Duration = Duration::from_millis(200);

/// Part of a degraded stretch for which a core must have had work, so that it counts.
const WORKED: f64 = 0.75;
/// Healthy stretches end with every slot, and last a tenth of a second at most: so many as make up this much work count
/// as one.
const TELLING: Duration = Duration::from_millis(100);

/// A core that does less than this of what it can, and of what its slots leave it, is starved.
const STARVED: f64 = 0.02;

/// The CPUs of `cores` emulated cores on a host where `free` ones may be used.
///
/// # Errors
/// When there are too few, with what to do.
pub fn assign(real: &RealSection, cores: usize, free: &[CpuId]) -> Result<Vec<CpuId>, String> {
    let spare = (real.spare as usize).min(free.len());
    let there = free.len() - spare;
    if cores <= there {
        return Ok(free[free.len() - cores..].to_vec());
    }
    let left =
        if spare > 0 { format!(" without the {} of run.real.spare", real.spare) } else { String::new() };
    Err(format!(
        "real work takes a CPU for each emulated core: {} there, and {} free{left}; emulate fewer cores, use more \
         hosts, or leave out [run.real]",
        plural(cores as u64, "core"),
        plural(there as u64, "CPU"),
    ))
}

/// The last copy that a core has finished. Who burns it has the lowest priority of all: nobody may wait for it, so
/// there is no lock. A core has one copy at a time, and the next begins only when the last was taken or given up.
#[derive(Default)]
struct Finish {
    /// Its ticket; zero if there is none.
    ticket: AtomicU64,
    /// When, in nanoseconds since the team was made.
    at: AtomicU64,
}

/// Burners that are calibrated and wait for work.
pub struct Team {
    real: RealSection,
    host: String,
    burners: Burners,
    bell: Bell,
    finishes: Arc<[Finish]>,
    made: Instant,
    cores: Vec<(u32, CpuId)>,
}

impl Team {
    /// Calibrates the CPUs of some emulated cores, which takes a moment, and starts their threads.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn start(real: RealSection, host: &str, cores: Vec<(u32, CpuId)>) -> Result<Self, String> {
        let bell = Bell::new().map_err(|error| error.to_string())?;
        let ring = bell.clone();
        let made = Instant::now();
        let finishes: Arc<[Finish]> = cores.iter().map(|_| Finish::default()).collect();
        let told = Arc::clone(&finishes);
        let finished = move |core: usize, ticket| {
            told[core].at.store(made.elapsed().as_nanos() as u64, Ordering::Relaxed);
            told[core].ticket.store(ticket, Ordering::Release);
            ring.ring();
        };
        let kernel = real.kernel.burns().ok_or("copies are timed here, and burn nothing")?;
        let cpus = cores.iter().map(|(_, cpu)| *cpu).collect();
        let burners =
            Burners::start(Setup { kernel, cpus }, Box::new(finished)).map_err(|error| error.to_string())?;
        Ok(Self { real, host: host.to_owned(), burners, bell, finishes, made, cores })
    }

    /// Rings when something is finished.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Hands that work by a clock, on cores of these speeds.
    #[must_use]
    pub fn hands(self, clock: Rc<Clock>, table: &CoreTable) -> RealHands {
        let Self { real, host, burners, finishes, made, cores, .. } = self;
        let last = cores.iter().map(|(core, _)| *core as usize + 1).max().unwrap_or(0);
        let mut places = vec![usize::MAX; last];
        cores.iter().enumerate().for_each(|(place, (core, _))| places[*core as usize] = place);
        let seat = |&(core, cpu): &(u32, CpuId)| Seat {
            core,
            cpu,
            real_per_work: 1.0 / (clock.speed() * table.speed(core)),
            seen: (Duration::ZERO, Duration::ZERO),
            said: false,
            slowest: 1.0,
        };
        let seats = cores.iter().map(seat).collect();
        RealHands { real, host, burners: Some(burners), finishes, made, seats, places, clock, told: None }
    }
}

/// An emulated core and its CPU.
struct Seat {
    core: u32,
    cpu: CpuId,
    /// Real time that work takes, healthy.
    real_per_work: f64,
    /// How long it had work and what it had done when its slots were last told, and whether it was said that it
    /// starves.
    seen: (Duration, Duration),
    said: bool,
    /// The most that the slots since then slow it down.
    slowest: f64,
}

impl Seat {
    /// Says once if others leave next to nothing of the CPU to copies, which come last: the run is not hung, but slow.
    fn starves(&mut self, (had, done): (Duration, Duration)) {
        let (before, did) = std::mem::replace(&mut self.seen, (had, done));
        let (had, done) = (had.saturating_sub(before), done.saturating_sub(did));
        if !self.said && had >= HORIZON / 3 && done < had.mul_f64(STARVED.min(0.1 / self.slowest)) {
            self.said = true;
            let part = number::percent(done.as_secs_f64() / had.as_secs_f64());
            tracing::warn!(
                "copies get {part} of CPU {}: something else keeps it busy, and copies come last; stop that, or use \
                 other CPUs (taskset, --cpus)",
                self.cpu
            );
        }
    }
}

/// The [`Hands`] of a shard.
pub struct RealHands {
    real: RealSection,
    host: String,
    /// None after the end.
    burners: Option<Burners>,
    finishes: Arc<[Finish]>,
    made: Instant,
    seats: Vec<Seat>,
    /// The seat of each emulated core that has one.
    places: Vec<usize>,
    clock: Rc<Clock>,
    /// Until when cores know their slots.
    told: Option<Time>,
}

impl RealHands {
    fn burners(&self) -> &Burners {
        self.burners.as_ref().unwrap_or_else(|| unreachable!("nobody works after the end"))
    }

    /// Real time as work of a core.
    fn work(&self, place: usize, real: Duration) -> Span {
        Span((real.as_nanos() as f64 / self.seats[place].real_per_work).ceil() as u64)
    }
}

impl Hands for RealHands {
    fn run(&mut self, core: u32, ticket: u64, work: Span) {
        let place = self.places[core as usize];
        let real = Duration::from_nanos((work.0 as f64 * self.seats[place].real_per_work) as u64);
        self.burners().run(place, ticket, real);
    }

    fn halt(&mut self, core: u32) -> Span {
        let place = self.places[core as usize];
        self.work(place, self.burners().halt(place))
    }

    fn left(&self, core: u32) -> Span {
        let place = self.places[core as usize];
        self.work(place, self.burners().left(place))
    }

    fn finished(&mut self) -> Option<(u32, u64, Time)> {
        self.seats.iter().zip(&*self.finishes).find_map(|(seat, finish)| {
            // A glance first: mostly there is nothing to take.
            let ticket = match finish.ticket.load(Ordering::Relaxed) {
                0 => 0,
                _ => finish.ticket.swap(0, Ordering::Acquire),
            };
            let at = self.made + Duration::from_nanos(finish.at.load(Ordering::Relaxed));
            (ticket != 0).then(|| (seat.core, ticket, self.clock.at(at)))
        })
    }

    fn degrade(&mut self, cores: &Cores, now: Time, anew: bool) {
        let fresh = |told: Time| told >= now + self.clock.emulated(HORIZON / 2);
        let Some(burners) = self.burners.as_ref().filter(|_| anew || !self.told.is_some_and(fresh)) else {
            return;
        };
        let until = now + self.clock.emulated(HORIZON);
        for (place, seat) in self.seats.iter_mut().enumerate() {
            seat.starves(burners.progress(place));
            // One that lasts goes on, and one that is cut is told of again before its end.
            let bursts = cores.bursts(seat.core, now, until);
            let slots: Vec<Slot> = bursts.filter_map(|burst| slot(&self.clock, &burst)).collect();
            seat.slowest = slots.iter().map(|slot| slot.slowdown).fold(1.0, f64::max);
            burners.degrade(place, slots);
        }
        self.told = Some(until);
    }

    fn end(&mut self) -> Worked {
        let mut work = RealWork {
            kernel: self.real.kernel.to_string(),
            degrade: self.real.degrade.to_string(),
            ..RealWork::default()
        };
        let (mut stretches, mut cut) = (Vec::new(), false);
        let most = MOST_STRETCHES / self.seats.len().max(1);
        let readings = self.burners.take().map(Burners::end).unwrap_or_default();
        for (seat, reading) in self.seats.iter().zip(&readings) {
            let healthy = read(reading, &mut work, self.clock.speed());
            let (host, cpu, rounds_per_s) = (self.host.clone(), u32::from(seat.cpu.0), reading.rounds_per_s);
            work.cores.push(RealCore { core: seat.core, host, cpu, rounds_per_s, healthy });
            let row = |slot: &SlotReading| row(&self.clock, seat.core, slot);
            stretches.extend(reading.slots.iter().take(most).map(row));
            cut |= reading.slots.len() > most;
        }
        Worked { work, stretches, cut }
    }
}

/// A burst on the CPUs' clock; none if it is shorter than that can tell.
fn slot(clock: &Clock, burst: &Burst) -> Option<Slot> {
    let (from, until) = (clock.instant(burst.start), clock.instant(burst.end));
    (from < until).then_some(Slot { from, until, slowdown: burst.slowdown })
}

/// A stretch of a core, in emulated time.
fn row(clock: &Clock, core: u32, slot: &SlotReading) -> CoreRow {
    let [start, end] = [slot.from, slot.until].map(|at| clock.at(at).as_secs_f64());
    let [had, done] = [slot.had, slot.done].map(|length| length.as_secs_f64() * clock.speed());
    CoreRow { core, start, end, asked: slot.asked, had, done }
}

/// Adds the degraded stretches of a core, and returns what it did in the others.
fn read(reading: &CoreReading, work: &mut RealWork, speed: f64) -> Samples {
    let mut healthy = Samples::default();
    let (mut healthy_had, mut healthy_done) = (Duration::ZERO, Duration::ZERO);
    for slot in &reading.slots {
        let (length, had) = (slot.until - slot.from, slot.had.as_secs_f64());
        let pace = slot.done.as_secs_f64() / had;
        if slot.asked == 1.0 {
            healthy_had += slot.had;
            healthy_done += slot.done;
            if healthy_had >= TELLING {
                let (had, done) = (std::mem::take(&mut healthy_had), std::mem::take(&mut healthy_done));
                healthy.add(&Samples::one(done.as_secs_f64() / had.as_secs_f64()));
            }
        } else if (slot.whole || length >= LONG) && had >= WORKED * length.as_secs_f64() {
            work.slot(slot.asked, length.as_secs_f64() * speed, pace);
        }
    }
    healthy
}
