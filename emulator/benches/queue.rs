//! The event queue beside plain heaps, in million events (one pop and one push) per CPU-second.
//!
//! `cargo bench --bench queue [-- pending…]`. Each cell is the median of five rounds in which the three queues take
//! turns, so that a noisy machine affects all alike. The hold model keeps the number of pending events constant: each
//! event popped pushes another event, an increment later.

#![allow(clippy::print_stdout, missing_docs)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use volary_actors::base::{ActorId, Rng, Time};
use volary_engine::queue::{Key, Queue};

/// A payload as large as an event of the shard: an input and its destination.
type Payload = [u64; 6];

const ROUNDS: usize = 5;

trait Pending {
    fn push(&mut self, key: Key, value: Payload);
    fn pop(&mut self) -> Option<(Key, Payload)>;
}

impl Pending for Queue<Payload> {
    fn push(&mut self, key: Key, value: Payload) {
        Self::push(self, key, value);
    }
    fn pop(&mut self) -> Option<(Key, Payload)> {
        Self::pop(self)
    }
}

/// Order by key alone.
struct Inline(Key, Payload);

impl PartialEq for Inline {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Inline {}
impl PartialOrd for Inline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Inline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Pending for BinaryHeap<Reverse<Inline>> {
    fn push(&mut self, key: Key, value: Payload) {
        Self::push(self, Reverse(Inline(key, value)));
    }
    fn pop(&mut self) -> Option<(Key, Payload)> {
        Self::pop(self).map(|Reverse(Inline(key, value))| (key, value))
    }
}

#[derive(Default)]
struct HeapAndSlab {
    heap: BinaryHeap<Reverse<(Key, u32)>>,
    slab: Vec<Payload>,
    free: Vec<u32>,
}

impl Pending for HeapAndSlab {
    fn push(&mut self, key: Key, value: Payload) {
        let slot = if let Some(slot) = self.free.pop() {
            self.slab[slot as usize] = value;
            slot
        } else {
            self.slab.push(value);
            self.slab.len() as u32 - 1
        };
        self.heap.push(Reverse((key, slot)));
    }
    fn pop(&mut self) -> Option<(Key, Payload)> {
        let Reverse((key, slot)) = self.heap.pop()?;
        self.free.push(slot);
        Some((key, self.slab[slot as usize]))
    }
}

/// Distance of the next event, ns.
#[derive(Clone, Copy)]
enum Increment {
    /// Exponential with mean 1 ms.
    Exponential,
    /// Nine messages of 0.5 ms for each task of 10 s, both ± 20 %.
    Bimodal,
}

impl Increment {
    /// Increments drawn beforehand, so that draws are not measured.
    fn table(self) -> Vec<u64> {
        let mut rng = Rng::new(1, 1, 0);
        let mut draw = || match self {
            Self::Exponential => -(1.0 - rng.unit()).ln() * 1e6,
            Self::Bimodal => (0.8 + 0.4 * rng.unit()) * if rng.below(10) > 0 { 0.5e6 } else { 1e10 },
        };
        (0..1 << 16).map(|_| draw() as u64).collect()
    }
}

/// CPU time of this process, which has one thread, from the scheduler's account in nanoseconds; clock ticks are too
/// coarse. If the system keeps no account: wall time since the first call.
fn cpu_seconds() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let account = std::fs::read_to_string("/proc/self/schedstat").ok();
    let ns = account.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |ns| ns * 1e-9)
}

/// Runs the hold model; returns million events per second.
fn hold(queue: &mut impl Pending, pending: u32, increments: &[u64]) -> f64 {
    let mask = increments.len() - 1;
    for source in 0..pending {
        let due = Time(increments[(source as usize * 7) & mask]);
        queue.push(Key { due, source: ActorId(source), count: 0 }, [u64::from(source); 6]);
    }
    let mut run = |events: usize| {
        for i in 0..events {
            let Some((key, mut value)) = queue.pop() else { return };
            value[1] += 1;
            let due = Time(key.due.0 + increments[i & mask]);
            queue.push(Key { due, source: key.source, count: key.count + 1 }, black_box(value));
        }
    };
    run(2 * pending as usize);
    let events = 1_000_000.max(2 * pending as usize);
    let start = cpu_seconds();
    run(events);
    events as f64 / (cpu_seconds() - start) / 1e6
}

/// A gang: `size` events fall on one instant, each pushes another for the same instant, then all are popped.
fn burst(queue: &mut impl Pending, size: u32) -> f64 {
    let mut popped = 0u32;
    let start = cpu_seconds();
    for round in 0..5u64 {
        let due = Time(1_000 + round * 1_000_000);
        for source in 0..size {
            let source = ActorId(source.wrapping_mul(2_654_435_761));
            queue.push(Key { due, source, count: round as u32 * 2 }, [1; 6]);
        }
        while let Some((key, value)) = queue.pop() {
            popped += 1;
            if key.count % 2 == 0 {
                queue.push(Key { count: key.count + 1, ..key }, black_box(value));
            }
        }
    }
    f64::from(popped) / (cpu_seconds() - start) / 1e6
}

/// Prints one row of the table: `cell` runs queue 0, 1 or 2 and returns its speed.
fn compare(name: &str, pending: u32, mut cell: impl FnMut(usize) -> f64) {
    let [volary, heap, slab] = medians(&mut cell);
    println!("{name:<12} {pending:>9}  {volary:>8.1} {heap:>12.1} {slab:>14.1}");
}

/// Runs five rounds of the three queues in turn; returns the median of each queue.
fn medians(cell: &mut impl FnMut(usize) -> f64) -> [f64; 3] {
    let mut seen = [[0.0; ROUNDS]; 3];
    for round in 0..ROUNDS {
        for (which, seen) in seen.iter_mut().enumerate() {
            seen[round] = cell(which);
        }
    }
    seen.map(|mut five| {
        five.sort_by(f64::total_cmp);
        five[ROUNDS / 2]
    })
}

fn main() {
    let asked: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![1_000, 10_000, 100_000, 1_000_000] } else { asked };
    println!("million events per CPU-second, {} bytes of payload, median of {ROUNDS}", size_of::<Payload>());
    println!("{:<12} {:>9}  {:>8} {:>12} {:>14}", "model", "pending", "volary", "std heap", "heap and slab");
    for (name, increment) in [("exponential", Increment::Exponential), ("bimodal", Increment::Bimodal)] {
        let table = increment.table();
        for &pending in &sizes {
            compare(name, pending, |which| match which {
                0 => hold(&mut Queue::new(), pending, &table),
                1 => hold(&mut BinaryHeap::<Reverse<Inline>>::new(), pending, &table),
                _ => hold(&mut HeapAndSlab::default(), pending, &table),
            });
        }
    }
    compare("one instant", 100_000, |which| match which {
        0 => burst(&mut Queue::new(), 100_000),
        1 => burst(&mut BinaryHeap::<Reverse<Inline>>::new(), 100_000),
        _ => burst(&mut HeapAndSlab::default(), 100_000),
    });
}
