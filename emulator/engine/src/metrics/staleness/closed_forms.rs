//! Ages against the closed forms of the literature, within 1 %.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use volary_actors::base::{Address, Purpose};

use super::*;

/// Pending events with their times in ns, the earliest first.
type Agenda = BinaryHeap<Reverse<(u64, AgeEvent)>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum AgeEvent {
    /// The source makes an update, and sends it as a snapshot.
    Made { source: u32 },
    /// A snapshot made at a time arrives at a receiver.
    Arrives { source: u32, receiver: u32, made: u64 },
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Exponential random numbers.
struct Exponential(Address, u64);

impl Exponential {
    fn new() -> Self {
        Self(Address::new(1, Purpose::Tool), 0)
    }

    fn unit(&mut self) -> f64 {
        self.1 += 1;
        self.0.at(self.1).unit()
    }

    fn mean(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// The ages of receivers that are observed every `every` seconds. `react` is given the time (ns) of each event, and
/// adds the events that follow from it. A receiver ignores snapshots older than its latest snapshot.
fn simulate(
    receivers: u32,
    sources: u32,
    every: f64,
    until: f64,
    mut react: impl FnMut(u64, AgeEvent, &mut Agenda),
) -> Staleness {
    let layout = Layout::new(receivers, 0, vec![1; sources as usize]);
    let samples = CacheSamples::new(Instants::new(3, Time(nanos(20.0)), Span::from_secs_f64(every)));
    let mut state = TrackerState::new(&layout, layout.nodes(), 1, samples, 1);
    let mut agenda: Agenda = (0..sources).map(|source| Reverse((1, AgeEvent::Made { source }))).collect();
    let mut newest = vec![0; (receivers * sources) as usize];
    while let Some(Reverse((at, event))) = agenda.pop().filter(|Reverse((at, _))| *at < nanos(until)) {
        state.look(Time(at), |_, _| true);
        match event {
            AgeEvent::Made { source } => state.views.made(Time(at), receivers + source, source, 0),
            AgeEvent::Arrives { source, receiver, made } => {
                let newest = &mut newest[(receiver * sources + source) as usize];
                if std::mem::replace(newest, made.max(*newest)) < made {
                    state.snapshot(Time(at), Some(receiver), source, Time(made));
                }
            }
        }
        react(at, event, &mut agenda);
    }
    state.ages.summary()
}

fn close(what: &str, found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{what}: {found}, not {expected}");
}

/// The source makes an update every second, with a delay of 0.3 s. Observations have the same period as updates, and
/// still see every phase equally often.
#[test]
fn ages_under_a_constant_delay_match_the_closed_form() {
    const DELAY: f64 = 0.3;
    let mut phases = Exponential::new();
    let found = simulate(1, 200, 1.0, 3000.0, |now, event, agenda| {
        if let AgeEvent::Made { source } = event {
            let next = now + nanos(if now == 1 { phases.unit() } else { 1.0 });
            agenda.push(Reverse((next, AgeEvent::Made { source })));
            let arrives = AgeEvent::Arrives { source, receiver: 0, made: now };
            agenda.push(Reverse((now + nanos(DELAY), arrives)));
        }
    });
    close("mean age of information", found.age_of_information_s.mean, DELAY + 0.5);
    close("peak age of information", found.peak_age_of_information_s.mean, DELAY + 1.0);
    close("age of synchronisation", found.age_of_synchronisation_s.mean, DELAY * DELAY / 2.0);
    close("out of sync", found.out_of_sync, DELAY);
    close("version age", found.version_age.mean, DELAY);
}

/// Poisson updates pass through a first-come-first-served queue with exponential service, M/M/1 (Kaul, Yates and
/// Gruteser 2012; peak age: Costa, Codreanu and Ephremides 2014).
#[test]
fn ages_behind_a_queue_match_the_closed_form() {
    let (arrival, service) = (0.5, 1.0);
    let (mut draws, mut free) = (Exponential::new(), vec![0; 200]);
    let found = simulate(1, 200, 5.0, 20_000.0, |now, event, agenda| {
        if let AgeEvent::Made { source } = event {
            let at = &mut free[source as usize];
            *at = now.max(*at) + nanos(draws.mean(1.0 / service));
            agenda.push(Reverse((*at, AgeEvent::Arrives { source, receiver: 0, made: now })));
            agenda.push(Reverse((now + nanos(draws.mean(1.0 / arrival)), AgeEvent::Made { source })));
        }
    });
    let load: f64 = arrival / service;
    let mean = (1.0 + 1.0 / load + load * load / (1.0 - load)) / service;
    close("mean age of information", found.age_of_information_s.mean, mean);
    close("peak age", found.peak_age_of_information_s.mean, 1.0 / arrival + 1.0 / (service - arrival));
    // Little's law: an update is missing as long as it is in the system.
    close("version age", found.version_age.mean, load / (1.0 - load));
    close("out of sync", found.out_of_sync, load);
}

/// Poisson updates have independent exponential delays, and an overtaken update changes no age. The age is above x if
/// none of the updates of the last x seconds has arrived; arrived updates are a thinned Poisson process.
#[test]
fn ages_under_exponential_delays_match_the_closed_form() {
    let (rate, delay) = (2.0, 1.0);
    let mut draws = Exponential::new();
    let found = simulate(1, 200, 1.0, 4000.0, |now, event, agenda| {
        if let AgeEvent::Made { source } = event {
            agenda.push(Reverse((now + nanos(draws.mean(1.0 / rate)), AgeEvent::Made { source })));
            let arrives = AgeEvent::Arrives { source, receiver: 0, made: now };
            agenda.push(Reverse((now + nanos(draws.mean(delay)), arrives)));
        }
    });
    let above = |x: f64| (-rate * (x - delay * (1.0 - (-x / delay).exp()))).exp();
    let (step, mut mean, mut peaks, mut informative) = (1e-4, 0.0, 0.0, 0.0);
    // The age at the arrival of an update with delay u, if it is above u: E[age; age > u] = u P(u) + ∫ P from u on,
    // where P(x) is the probability of an age above x.
    let mut tail = vec![0.0; 200_001];
    for i in (0..200_000).rev() {
        tail[i] = tail[i + 1] + step * above((i as f64 + 0.5) * step);
    }
    for (i, after) in tail.iter().enumerate().take(200_000) {
        let u = (i as f64 + 0.5) * step;
        let density = (-u / delay).exp() / delay * step;
        mean += step * above(u);
        informative += density * above(u);
        peaks += density * (u * above(u) + after);
    }
    close("mean age of information", found.age_of_information_s.mean, mean);
    close("peak age of information", found.peak_age_of_information_s.mean, peaks / informative);
}

/// The source of a gossip network of n nodes makes updates at rate e and sends to each node at rate l / n. Each node
/// sends to each other node at rate l / (n - 1) (Yates, "The age of gossip in networks", 2021). v(j) is the mean number
/// of versions by which the best informed of j nodes is behind.
#[test]
fn version_ages_under_gossip_match_the_closed_form() {
    const NODES: u32 = 8;
    let (updates, rate, n) = (1.0, 1.0, f64::from(NODES));
    let mut draws = Exponential::new();
    let mut known = vec![[0u64; NODES as usize + 1]; 100];
    let found = simulate(NODES, 100, 2.0, 3000.0, |now, event, agenda| {
        // Every source is a separate gossip network: when an event is over, the next event of its network is sampled.
        let (AgeEvent::Made { source } | AgeEvent::Arrives { source, .. }) = event;
        let known = &mut known[source as usize];
        match event {
            AgeEvent::Made { .. } => known[NODES as usize] = now,
            AgeEvent::Arrives { receiver, made, .. } => known[receiver as usize] = made,
        }
        let (mut at, all) = (now, updates + rate + n * rate);
        loop {
            at += nanos(draws.mean(1.0 / all));
            let which = draws.unit() * all;
            if which < updates {
                return agenda.push(Reverse((at, AgeEvent::Made { source })));
            }
            let (from, receiver) = if which < updates + rate {
                (NODES, (draws.unit() * n) as u32)
            } else {
                let from = (draws.unit() * n) as u32;
                (from, (from + 1 + (draws.unit() * (n - 1.0)) as u32) % NODES)
            };
            let made = known[from as usize];
            if made > known[receiver as usize] {
                return agenda.push(Reverse((at, AgeEvent::Arrives { source, receiver, made })));
            }
        }
    });
    let mut version_age = updates / rate;
    for j in (1..NODES).rev().map(f64::from) {
        let (source, others) = (j * rate / n, j * (n - j) * rate / (n - 1.0));
        version_age = (updates + others * version_age) / (source + others);
    }
    close("version age", found.version_age.mean, version_age);
}
