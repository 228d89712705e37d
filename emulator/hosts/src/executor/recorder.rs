//! The recorder: it measures how fast CPUs do the work of a kernel, window by window.
//!
//! A thread on each CPU runs a kernel without pause, at normal priority. The slowdown in a window is the thread's speed
//! per CPU time before the recording, divided by its speed per real time in the window. It covers both the time in
//! which other programs had the CPU and the time in which the CPU itself was slower, because of caches, memory or its
//! clock.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{getpriority_process, setpriority_process};
use volary_experiment::config::file::Kernel;

use super::calibration::{CalibrationOptions, KernelLoad, calibrate};
use super::cpu::{self, BurnError, CpuId, failed, thread_cpu_time};

/// Work between two readings of the clock.
const CHUNK: Duration = Duration::from_micros(20);
/// Duration of the reference measurement, after the calibration and before the recording. It consists of windows too.
const REFERENCE: Duration = Duration::from_secs(2);
/// Longest window of the reference measurement, so that there are enough windows to estimate their noise.
const REFERENCE_WINDOW: Duration = Duration::from_millis(100);
/// Share of the windows of the reference measurement that may be slower than the noise floor, by chance.
const CHANCE: f64 = 0.05;

/// A window of real time on a CPU.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    until: Instant,
    /// CPU time of the thread in the window.
    cpu: Duration,
    rounds: u64,
}

/// The speed of a CPU before the recording.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Median of rounds per second of CPU time.
    rounds_per_s: f64,
    /// Noise floor: a share [`CHANCE`] of the windows was slower by more than this factor, per CPU time.
    noise: f64,
    /// Share of the time in which the thread did not have the CPU.
    taken: f64,
}

/// The slowdown of a CPU in a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowdownSample {
    /// Start of the window, since the start of the recording.
    pub from: Duration,
    /// End of the window, which is the start of the next.
    pub until: Duration,
    /// Real time per work in the window, divided by the CPU time per work before the recording; may be below 1.
    pub slowdown: f64,
}

/// The recording of a CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct CpuRecording {
    pub cpu: CpuId,
    /// The healthy speed: rounds of the kernel per second of CPU time before the recording.
    pub rounds_per_s: f64,
    /// Samples in order of time, without gaps.
    pub samples: Vec<SlowdownSample>,
    /// Noise floor: slowdowns up to this value occurred before the recording too, and are not significant.
    pub noise: f64,
    /// Share of the time before the recording in which other programs had the CPU, or a CPU quota withheld it.
    pub taken_before: f64,
    /// The same share of the recorded time.
    pub taken: f64,
}

/// Threads that have measured the speed of their CPUs, and wait for the start of the recording.
#[derive(Debug)]
pub struct Recorder {
    threads: Vec<RecorderThread>,
    stop: Arc<AtomicBool>,
    /// The nice value of the threads.
    nice: i32,
}

/// The thread on a CPU.
#[derive(Debug)]
struct RecorderThread {
    cpu: CpuId,
    reference: Reference,
    /// Start and end of the recording.
    go: Sender<(Instant, Instant)>,
    handle: JoinHandle<Option<Vec<Window>>>,
}

impl Recorder {
    /// Pins a thread to each CPU and measures the speeds of all CPUs at once. Takes four seconds, and more on a busy
    /// machine.
    ///
    /// # Errors
    /// The errors of [`Burners::start`](super::Burners::start).
    pub fn start(
        kernel: Kernel,
        cpus: &[CpuId],
        window: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, BurnError> {
        cpu::check(cpus)?;
        let nice = usual_priority();
        let (mut starts, mut waiting) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let (start, started) = channel();
            let (send, measured) = channel();
            let (go, ready) = channel();
            let job = RecorderJob { kernel, cpu, window, stop: Arc::clone(stop) };
            let work = move || job.run(&started, &send, &ready);
            let handle = cpu::spawn(format!("record-{cpu}"), cpu, None, work)?;
            starts.push(start);
            waiting.push((cpu, measured, go, handle));
        }
        // All threads measure from now on.
        drop::<Vec<Sender<()>>>(starts);
        let mut threads = Vec::new();
        for (cpu, measured, go, handle) in waiting {
            let gone = |gone| failed("calibrate", cpu)(io::Error::other(gone));
            let reference = measured.recv().map_err(gone)??;
            threads.push(RecorderThread { cpu, reference, go, handle });
        }
        Ok(Self { threads, stop: Arc::clone(stop), nice })
    }

    /// The nice value at which CPUs are measured: 0, unless the process may not set it.
    pub const fn nice(&self) -> i32 {
        self.nice
    }

    /// Records from now on: for `lasting`, until `stop` is set, or until `over` returns true.
    ///
    /// # Panics
    /// When a thread has panicked.
    pub fn record(self, lasting: Duration, mut over: impl FnMut() -> bool) -> Vec<CpuRecording> {
        let origin = Instant::now();
        let end = origin + lasting;
        for thread in &self.threads {
            // A thread that is gone has panicked, which is propagated below.
            let _ = thread.go.send((origin, end));
        }
        while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
            if over() {
                self.stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        self.threads.into_iter().map(|thread| thread.end(origin)).collect()
    }
}

impl RecorderThread {
    fn end(self, origin: Instant) -> CpuRecording {
        let windows = self.handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let windows = windows.unwrap_or_default();
        let Reference { rounds_per_s, noise, taken } = self.reference;
        let sample = |window: &Window| SlowdownSample {
            from: window.from.saturating_duration_since(origin),
            until: window.until.saturating_duration_since(origin),
            slowdown: rounds_per_s * (window.until - window.from).as_secs_f64() / window.rounds as f64,
        };
        let samples = windows.iter().map(sample).collect();
        let taken_now = share_taken(&windows);
        CpuRecording { cpu: self.cpu, rounds_per_s, samples, noise, taken_before: taken, taken: taken_now }
    }
}

/// The task of one recorder thread.
struct RecorderJob {
    kernel: Kernel,
    cpu: CpuId,
    window: Duration,
    stop: Arc<AtomicBool>,
}

impl RecorderJob {
    fn run(
        self,
        start: &Receiver<()>,
        measured: &Sender<Result<Reference, BurnError>>,
        go: &Receiver<(Instant, Instant)>,
    ) -> Vec<Window> {
        let mut load = KernelLoad::new(self.kernel);
        // Nothing is sent: the channel closes when all threads have been spawned.
        let _ = start.recv();
        let options = CalibrationOptions::STANDARD;
        let busy = |got| BurnError::Busy { cpu: self.cpu, got, wait: options.timeout };
        let chunk = match calibrate(&mut load, options) {
            Ok(calibration) => calibration.rounds(CHUNK),
            Err(got) => {
                // Fails if another CPU failed before.
                let _ = measured.send(Err(busy(got)));
                return Vec::new();
            }
        };
        let now = Instant::now();
        let before = self.windows(&mut load, chunk, self.window.min(REFERENCE_WINDOW), now, now + REFERENCE);
        let _ = measured.send(Ok(reference(&before)));
        // The recorder was dropped before the recording began.
        let Ok((from, until)) = go.recv() else { return Vec::new() };
        self.windows(&mut load, chunk, self.window, from, until)
    }

    /// Measures windows from `from` to `until`. A window is longer than `length` if the thread does not get the CPU, so
    /// that each window contains work. The last window ends at `until`, and includes a remainder that is shorter than
    /// half of `length`.
    fn windows(
        &self,
        load: &mut KernelLoad,
        chunk: u64,
        length: Duration,
        mut from: Instant,
        until: Instant,
    ) -> Vec<Window> {
        let mut windows = Vec::new();
        let (mut rounds, mut cpu) = (0, thread_cpu_time());
        while from < until && !self.stop.load(Ordering::Relaxed) {
            load.burn(chunk);
            rounds += chunk;
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            if left.is_zero() || (now.saturating_duration_since(from) >= length && left >= length / 2) {
                let used = thread_cpu_time();
                windows.push(Window { from, until: now, cpu: used.saturating_sub(cpu), rounds });
                (from, cpu, rounds) = (now, used, 0);
            }
        }
        windows
    }
}

/// The reference of a CPU. It is meaningless if there are no windows, because the recording was stopped early.
fn reference(windows: &[Window]) -> Reference {
    let speed = |window: &Window| window.rounds as f64 / window.cpu.as_secs_f64();
    let mut speeds: Vec<f64> = windows.iter().map(speed).collect();
    speeds.sort_by(f64::total_cmp);
    let at = |share: f64| speeds.get((share * speeds.len() as f64) as usize).copied().unwrap_or(1.0);
    Reference { rounds_per_s: at(0.5), noise: at(0.5) / at(CHANCE), taken: share_taken(windows) }
}

/// Share of the time in which the thread did not have the CPU: other programs had it, or a CPU quota withheld it.
fn share_taken(windows: &[Window]) -> f64 {
    let real: f64 = windows.iter().map(|window| (window.until - window.from).as_secs_f64()).sum();
    let used: f64 = windows.iter().map(|window| window.cpu.as_secs_f64()).sum();
    if real > 0.0 { (1.0 - used / real).max(0.0) } else { 0.0 }
}

/// Sets the nice value of this process to 0 if allowed, and returns the result. A lower value needs privileges.
fn usual_priority() -> i32 {
    let nice = getpriority_process(None).unwrap_or(0);
    if nice != 0 && setpriority_process(None, 0).is_ok() { 0 } else { nice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_the_median_by_cpu_time_and_its_noise_the_slowest_windows() {
        let now = Instant::now();
        let window = |rounds| Window {
            from: now,
            until: now + Duration::from_millis(200),
            cpu: Duration::from_millis(100),
            rounds,
        };
        let mut windows = vec![window(100); 18];
        windows.extend([window(50), window(80)]);
        let found = reference(&windows);
        assert_eq!((found.rounds_per_s, found.taken), (1000.0, 0.5));
        assert_eq!(found.noise, 100.0 / 80.0, "one window in twenty may be slower");
    }

    /// A remainder that is shorter than half a window belongs to the window before it.
    #[test]
    fn the_last_window_ends_on_time_and_has_at_least_half_the_length() {
        let job = RecorderJob {
            kernel: Kernel::Hash,
            cpu: CpuId(0),
            window: Duration::from_millis(20),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let mut load = KernelLoad::new(job.kernel);
        for (asked, least) in [(30, 10), (28, 28), (20, 20)] {
            let from = Instant::now();
            let until = from + Duration::from_millis(asked);
            let windows = job.windows(&mut load, 1, job.window, from, until);
            let last = windows.last().unwrap();
            assert!(last.until >= until && windows.iter().rev().skip(1).all(|window| window.until < until));
            // A thread that waits for its CPU has fewer windows, which are longer.
            let length = last.until - last.from;
            assert!(length * 2 >= job.window && (windows.len() == 1 || least < asked), "{asked}: {length:?}");
        }
    }

    /// A thread that spins on the CPU of the recorder halves its speed, on any machine.
    #[test]
    fn a_busy_neighbour_is_recorded_and_an_early_end_keeps_the_samples() {
        let cpu = *cpu::free_cpus().last().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let window = Duration::from_millis(50);
        let recorder = Recorder::start(Kernel::Hash, &[cpu], window, &stop).unwrap();
        let spinning = Arc::new(AtomicBool::new(true));
        let spins = Arc::clone(&spinning);
        let spin = move || while spins.load(Ordering::Relaxed) {};
        let spinner = cpu::spawn("spin".to_owned(), cpu, None, spin).unwrap();
        let began = Instant::now();
        let recordings =
            recorder.record(Duration::from_secs(600), || began.elapsed() > Duration::from_secs(3));
        spinning.store(false, Ordering::Relaxed);
        spinner.join().unwrap();
        let [CpuRecording { samples, taken, .. }] = &recordings[..] else { panic!("{recordings:?}") };
        assert!(samples.len() > 3 && samples.windows(2).all(|pair| pair[0].until == pair[1].from));
        let mean = samples.iter().map(|sample| sample.slowdown).sum::<f64>() / samples.len() as f64;
        assert!(mean > 1.5 && *taken > 0.3, "slowdown {mean}, taken {taken}");
    }
}
