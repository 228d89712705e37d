//! Benchmark of the solver (`VOLARY_LP=FOLDER cargo bench -p volary-lp`): the least CPU time of three runs, in
//! milliseconds.
//!
//! `FOLDER` holds the instances that the ignored tests read. The benchmark solves each of them to the optimum from the
//! empty plan. Then it solves the instances of the sequence to the default gap, each from the basis of its predecessor.
//! Without `VOLARY_LP` it solves the instances that are checked in.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Instance, file, read};
use volary_lp::{Basis, Work, relax, round};

/// Milliseconds of CPU time of this thread.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The result of a computation, and the least CPU time of three runs in milliseconds.
fn timed<T>(mut run: impl FnMut() -> T) -> (T, f64) {
    let mut measure = || {
        let start = cpu_ms();
        let out = run();
        (out, cpu_ms() - start)
    };
    let (out, first) = measure();
    (out, (0..2).map(|_| measure().1).fold(first, f64::min))
}

/// Solves instances from the empty plan.
fn cold(instances: &[Instance]) {
    let work = Work { gap: 0.0, ..Work::default() };
    for Instance { name, problem, .. } in instances {
        let (relaxed, solving) = timed(|| relax(problem, None, work));
        let (plan, rounding) = timed(|| round(problem, &relaxed, Work::default()));
        let (gap, pivots) = (100.0 * (1.0 - plan.value / relaxed.bound), relaxed.pivots);
        eprintln!(
            "{name:16} {solving:7.2} ms, {pivots:5} pivots; rounded in {rounding:6.2} ms to {gap:5.2} %"
        );
    }
}

/// The mean and the maximum of some values, as text.
fn summary(values: &[f64]) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    format!("mean {mean:.2}, max {:.2}", values.iter().fold(0.0_f64, |most, value| most.max(*value)))
}

/// Solves instances in order, each from the basis of its predecessor.
fn warm(instances: &[Instance]) {
    let (mut solves, mut rounds, mut gaps, mut pivots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut basis = Basis::default();
    for Instance { problem, .. } in instances {
        let (relaxed, solving) = timed(|| relax(problem, Some(&basis), Work::default()));
        let (plan, rounding) = timed(|| round(problem, &relaxed, Work::default()));
        solves.push(solving);
        rounds.push(rounding);
        gaps.push(100.0 * (1.0 - plan.value / relaxed.bound));
        pivots.push(f64::from(relaxed.pivots));
        basis = relaxed.basis;
    }
    eprintln!("warm starts ({} instances, without the first):", instances.len());
    eprintln!("  solved in ms: {}", summary(&solves[1..]));
    eprintln!("  rounded in ms: {}", summary(&rounds[1..]));
    eprintln!("  rounded to %: {}", summary(&gaps[1..]));
    eprintln!("  pivots: {}", summary(&pivots[1..]));
}

fn main() {
    // `cargo test --all-targets` also runs this binary, to check that it works.
    if std::env::var("VOLARY_LP").is_err() || !std::env::args().any(|arg| arg == "--bench") {
        return cold(&read(include_str!("../tests/data/instances.txt")));
    }
    for name in
        ["30x12x1", "100x24x1", "200x24x1", "400x48x1", "100x24x4", "128x20x4", "200x24x4", "robust36"]
    {
        cold(&file(name));
    }
    warm(&file("seq128x20x4"));
}
