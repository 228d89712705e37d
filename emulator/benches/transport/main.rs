//! The transport beside bare QUIC that carries the same bytes, in the same run.
//!
//! `cargo bench --bench transport [-- throughput | latency]`. Throughput is messages per CPU-second with both ends in
//! one thread: stamp, encode, batch, send, receive, decode, hold until due. It is compared with writes of the same
//! bytes without decoding, and with a hand-written program that encodes and decodes the same messages a batch at a
//! time. Latency is a round trip of one message between two threads, compared with a stream echo. Compared candidates
//! take turns; the results are medians of five.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod bare;
mod ours;

use std::future::Future;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use volary_actors::base::{ActorId, JobId, Time};
use volary_actors::message::{Launch, Message, Probe, Row};
use volary_engine::parcel::Parcel;
use volary_experiment::codec;
use volary_experiment::cost::thread_cpu_s;

/// Number of rounds; the median is reported.
const ROUNDS: usize = 5;
/// Messages of a batch, which a shard hands over at once.
const BATCH: usize = 64;
/// Batches per round.
const BATCHES: usize = 1 << 14;
/// Round trips per round.
const TRIPS: usize = 4000;

/// A batch of messages of schedulers, in the middle of a long run.
fn batch() -> Vec<Parcel> {
    let job = JobId(123_456);
    let row = Row { job, base: 40, len: 2, turn: 1, width: 2, attempt: 1, elsewhere: false };
    let said: [Message; 4] = [
        Launch::Row(row).into(),
        Launch::Completed { copy: row.copy(0) }.into(),
        Probe::Claim { job, group: 3, repair: false }.into(),
        Probe::Grant { row, group: 3 }.into(),
    ];
    (0..BATCH as u32)
        .map(|i| Parcel {
            sent: Time(0),
            due: Time(0),
            from: ActorId(9_000 + 7 * i),
            count: 70_000 + i,
            to: ActorId(5_000 + 11 * i),
            msg: said[i as usize % said.len()],
            returned: false,
        })
        .collect()
}

/// Stamps each message with time and delay, as a sender does.
fn stamp(batch: &mut [Parcel], now: u64) {
    for (parcel, at) in batch.iter_mut().zip(now..) {
        parcel.sent = Time(at);
        parcel.due = Time(at + 10_000_000);
    }
}

/// Emulated nanoseconds between batches, about the real time that a batch takes. With a delay of 10 ms, 64,000 messages
/// wait until they are due.
const PACE: u64 = 10_000;

/// An emulated time some hours into a run.
const LATE: u64 = 10_000_000_000_000;

/// The bytes of a batch.
fn bytes() -> Vec<u8> {
    let (mut batch, mut bytes) = (batch(), Vec::new());
    stamp(&mut batch, LATE);
    assert_eq!(codec::encode_batch_frame(0, &batch, &mut bytes), BATCH);
    bytes
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU seconds of this thread that a future takes.
async fn cpu(what: impl Future<Output = ()>) -> f64 {
    let before = thread_cpu_s();
    what.await;
    thread_cpu_s() - before
}

fn throughput() {
    runtime().block_on(async {
        let (mut ours, mut bare) = (ours::Pair::new().await, bare::Pair::new().await);
        let payload = bytes();
        let coalesced = payload.repeat(64);
        let mut rates = Vec::new();
        for round in 0..=ROUNDS {
            let rate = |seconds: f64| (BATCH * BATCHES) as f64 / seconds / 1e6;
            let seen = [
                rate(cpu(ours.pump(BATCHES, true)).await),
                rate(cpu(bare.pump(&payload, BATCHES)).await),
                rate(cpu(bare.pump(&coalesced, BATCHES / 64)).await),
                rate(cpu(bare.converse(BATCHES)).await),
                rate(cpu(ours.pump(BATCHES, false)).await),
            ];
            if round > 0 {
                rates.push(seen); // the first warms up congestion windows and path MTU
            }
        }
        let of = |i: usize| median(rates.iter().map(|seen| seen[i]));
        let ratio = |i: usize| median(rates.iter().map(|seen| seen[0] / seen[i]));
        println!(
            "throughput, {BATCH} messages of {} bytes a batch, M messages per CPU-second of both ends",
            payload.len() / BATCH
        );
        println!("  links, and the queue of due times {:6.2}", of(0));
        println!("  links alone                       {:6.2}", of(4));
        println!("  bare QUIC, a write per batch      {:6.2}   ratio {:.2}", of(1), ratio(1));
        println!("  bare QUIC, a write per 64 batches {:6.2}   ratio {:.2}", of(2), ratio(2));
        println!("  QUIC and the codec, by hand       {:6.2}   ratio {:.2}", of(3), ratio(3));
    });
}

/// p50 and p99 of round trips in microseconds.
async fn trips(mut once: impl AsyncFnMut()) -> [f64; 2] {
    let mut took = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        once().await;
        took.push(start.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    [took[TRIPS / 2], took[TRIPS * 99 / 100]]
}

fn latency() {
    let size = bytes().len() / BATCH;
    let (ours_at, bare_at) = (ours::Echo::spawn(), bare::Echo::spawn());
    runtime().block_on(async {
        let (mut ours, mut bare) = (ours_at.connect().await, bare_at.connect(size).await);
        let mut seen = Vec::new();
        for round in 0..=ROUNDS {
            let pair = [trips(async || ours.trip().await).await, trips(async || bare.trip().await).await];
            if round > 0 {
                seen.push(pair);
            }
        }
        println!("round trip of one message between two threads, µs");
        for (name, i) in [("p50", 0), ("p99", 1)] {
            let of = |which: usize| median(seen.iter().map(|pair| pair[which][i]));
            let ratio = median(seen.iter().map(|pair| pair[0][i] / pair[1][i]));
            println!("  {name}: links {:7.1}, bare QUIC stream {:7.1}   ratio {ratio:.2}", of(0), of(1));
        }
    });
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in [("throughput", throughput as fn()), ("latency", latency)] {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            run();
        }
    }
}
