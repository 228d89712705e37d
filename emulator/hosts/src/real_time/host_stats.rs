//! Statistics of a process during a run: processor time, memory, the lateness of a bare timer, and the samples of a
//! shard while it runs, with messages, lateness and the load of its process.

use std::fs;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use volary_actors::base::Span;
use volary_engine::results::{HostVitals, TimerProbe};
use volary_engine::shard::Shard;
use volary_experiment::control::{LateSoFar, ShardSample, VitalsSample};
use volary_experiment::cost;
use volary_experiment::fidelity::measure::SpanHistogram;

use super::event_loop::{RealTimeObserver, TimerFd};

/// Interval of the bare timer. A wake-up costs about 40 µs on virtual machines: half a percent of a processor.
const TIMER_INTERVAL: Duration = Duration::from_millis(10);

/// Collects statistics of this process from [`begin`](Self::begin) to [`end`](Self::end).
#[derive(Debug)]
pub struct HostStats {
    name: String,
    began: Instant,
    cpu_s: f64,
    machine: Option<CpuTicks>,
    switches: u64,
    stop: Arc<AtomicBool>,
    timer: Option<JoinHandle<SpanHistogram>>,
}

impl HostStats {
    /// Starts the collection, at the start of a run.
    pub fn begin(name: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // If the thread cannot be started, the certificate lacks the bare timer.
        let timer = std::thread::Builder::new().name("timer".into()).spawn(move || bare_timer(&stopped)).ok();
        Self {
            name: name.to_owned(),
            began: Instant::now(),
            cpu_s: cost::process_cpu_s(),
            machine: CpuTicks::now(),
            switches: switches(),
            stop,
            timer,
        }
    }

    /// Real time since the start, s.
    pub fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Ends the collection. Must be called before the threads of the run end, because their context switches are read
    /// from `/proc`. The caller adds the fields of network and clock.
    pub fn end(mut self) -> HostVitals {
        let wall_s = self.elapsed_s();
        let cpu_s = cost::process_cpu_s() - self.cpu_s;
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as u32;
        let machine = CpuTicks::now().zip(self.machine).and_then(|(now, then)| now.shares_since(&then));
        let switches = switches().saturating_sub(self.switches);
        self.stop.store(true, Ordering::Relaxed);
        let timer = self.timer.take().and_then(|thread| thread.join().ok());
        HostVitals {
            name: std::mem::take(&mut self.name),
            wall_s,
            cpu_s,
            cores,
            cpu_share: cpu_s / (wall_s * f64::from(cores)),
            machine_share: machine.map(|(busy, _)| busy),
            steal_share: machine.map(|(_, steal)| steal),
            peak_rss_bytes: cost::peak_rss_bytes(),
            involuntary_switches: switches,
            timer: timer.as_ref().and_then(probe),
            ..HostVitals::default()
        }
    }
}

impl Drop for HostStats {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Measures a process and its machine between samples.
#[derive(Debug)]
pub struct VitalsMeter {
    at: Instant,
    cpu_s: f64,
    machine: Option<CpuTicks>,
}

impl VitalsMeter {
    /// A meter whose first sample covers the time from now on.
    pub fn start() -> Self {
        Self { at: Instant::now(), cpu_s: cost::process_cpu_s(), machine: CpuTicks::now() }
    }

    /// The vitals since the last sample.
    pub fn sample(&mut self) -> VitalsSample {
        let before = std::mem::replace(self, Self::start());
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as f64;
        let wall_s = self.at.duration_since(before.at).as_secs_f64();
        let machine = self.machine.zip(before.machine).and_then(|(now, then)| now.shares_since(&then));
        VitalsSample {
            cpu_share: (self.cpu_s - before.cpu_s) / (wall_s * cores),
            machine_share: machine.map(|(busy, _)| busy),
            steal_share: machine.map(|(_, steal)| steal),
            peak_rss_bytes: cost::peak_rss_bytes(),
        }
    }
}

/// Measures the lateness of a bare timer until stopped.
fn bare_timer(stop: &AtomicBool) -> SpanHistogram {
    let mut late = SpanHistogram::default();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return late };
    runtime.block_on(async {
        let Ok(timer) = TimerFd::new() else { return };
        while !stop.load(Ordering::Relaxed) {
            let asleep = Instant::now();
            if timer.sleep(TIMER_INTERVAL).await.is_err() {
                return;
            }
            late.add(Span(asleep.elapsed().saturating_sub(TIMER_INTERVAL).as_nanos() as u64));
        }
    });
    late
}

fn probe(late: &SpanHistogram) -> Option<TimerProbe> {
    (!late.is_empty()).then(|| TimerProbe {
        count: late.len(),
        p50_s: late.quantile_s(0.5),
        p99_s: late.quantile_s(0.99),
        max_s: late.max_s(),
    })
}

/// Processor time of the machine since boot, in ticks, from the first line of `/proc/stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CpuTicks {
    /// User and kernel time and time taken by the hypervisor, without the time of niced processes.
    busy: u64,
    /// Time taken by the hypervisor.
    steal: u64,
    total: u64,
}

impl CpuTicks {
    /// The current ticks; `None` if `/proc/stat` cannot be read.
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guests are part of user and nice.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, _nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
        let total = ticks[..8].iter().sum();
        Some(Self { busy: user + system + irq + softirq + steal, steal, total })
    }

    /// The shares of busy and stolen time since `then`; `None` if no tick has passed.
    fn shares_since(&self, then: &Self) -> Option<(f64, f64)> {
        let total = self.total.saturating_sub(then.total);
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        (total > 0).then(|| (share(self.busy, then.busy), share(self.steal, then.steal)))
    }
}

/// Involuntary context switches of the current threads; 0 where `/proc` does not list them.
fn switches() -> u64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
    let of = |folder: fs::DirEntry| {
        let status = fs::read_to_string(folder.path().join("status")).ok()?;
        let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    };
    threads.flatten().filter_map(of).sum()
}

/// Real time between two samples. A sample takes some tens of microseconds.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Median, 99th percentile and maximum of a histogram of lateness.
fn late_so_far(late: &SpanHistogram) -> LateSoFar {
    LateSoFar { p50_s: late.quantile_s(0.5), p99_s: late.quantile_s(0.99), max_s: late.max_s() }
}

/// Takes a sample of a shard every second.
#[derive(Debug)]
pub struct ShardSampler {
    due: Instant,
    meter: Option<VitalsMeter>,
}

impl ShardSampler {
    /// A sampler that reports the vitals of the process, or leaves this to the sampler of another shard.
    pub fn new(with_vitals: bool) -> Self {
        Self { due: Instant::now() + SAMPLE_INTERVAL, meter: with_vitals.then(VitalsMeter::start) }
    }

    /// The next sample, if a sample is due.
    pub fn sample(&mut self, shard: &Shard<'_, RealTimeObserver>) -> Option<ShardSample> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.due = now + SAMPLE_INTERVAL;
        let (traffic, gauge) = (shard.traffic(), &shard.observer.gauge);
        Some(ShardSample {
            by_kind: traffic.by_kind.to_vec(),
            dropped: traffic.dropped,
            pending: shard.pending() as u64,
            deliveries: late_so_far(&gauge.deliveries),
            timers: late_so_far(&gauge.timers),
            vitals: self.meter.as_mut().map(VitalsMeter::sample),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_parsed_from_proc_stat() {
        let then = CpuTicks::parse("cpu  100 50 20 800 10 1 2 3 0 0\ncpu0 1 2 3").unwrap();
        let now = CpuTicks::parse("cpu  150 80 40 890 10 2 3 7 9 9\n").unwrap();
        let busy = f64::from(50 + 20 + 1 + 1 + 4);
        assert_eq!(now.shares_since(&then), Some((busy / 196.0, 4.0 / 196.0)));
        assert_eq!(now.shares_since(&now), None, "no tick has passed");
        assert_eq!(CpuTicks::parse("intr 1 2"), None);
        assert_eq!(CpuTicks::parse("cpu  1 2"), None);
    }

    #[test]
    fn a_busy_process_has_processor_time_and_memory() {
        let stats = HostStats::begin("here");
        let (mut spins, began) = (0u64, cost::thread_cpu_s());
        while cost::thread_cpu_s() - began < 0.05 {
            spins = std::hint::black_box(spins + 1);
        }
        let seen = stats.end();
        assert_eq!(seen.name, "here");
        assert!(seen.cpu_s >= 0.05 && seen.wall_s >= 0.05 && seen.cores >= 1, "{seen:?}");
        assert!(seen.cpu_share > 0.0 && seen.peak_rss_bytes > 0, "{seen:?}");
        let timer = seen.timer.unwrap();
        assert!(timer.count > 0 && timer.p50_s <= timer.p99_s && timer.p99_s <= timer.max_s, "{timer:?}");
        assert_eq!((seen.datagrams_lost, seen.clock.bound_s), (0, 0.0));
    }

    #[test]
    fn a_sample_covers_the_time_since_the_previous_sample() {
        let mut meter = VitalsMeter::start();
        let began = cost::process_cpu_s();
        while cost::process_cpu_s() - began < 0.05 {
            std::hint::black_box(began);
        }
        let busy = meter.sample();
        assert!(busy.cpu_share > 0.0 && busy.peak_rss_bytes > 0, "{busy:?}");
        std::thread::sleep(Duration::from_millis(20));
        assert!(meter.sample().cpu_share.is_finite());
    }
}
