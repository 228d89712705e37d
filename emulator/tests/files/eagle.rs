//! Eagle compared with its authors' simulator (`epfl-labos/eagle`, `simulation/eagle_simulation.py`): response times of
//! short jobs at the median, the 90th and the 99th percentile. The simulator is as published, except that times are not
//! rounded to seconds and that a node's sum of estimates below a microsecond is taken as zero; its numbers are means of
//! ten seeds. Its settings are 2 probes per task and at least 20 per job, SRPT and sticky probes, and constant delays
//! of 500 us. The simulator does not order events of one instant; here messages that arrive at one instant are ordered
//! by their senders' numbers, which are independent of the partition of a node.

use std::fmt::Write as _;
use std::fs;

use crate::common::binary::{expect, folder, lines};

/// A stream of pseudo-random numbers from 0 to 1, without 0.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) + 1) as f64 / f64::from(1u32 << 31)
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}

/// A trace of 2,000 jobs, a tenth of them with long tasks. The load on 120 nodes is 0.94; short jobs offer 0.14 of it.
fn synthetic() -> String {
    let (mut random, mut trace, mut arrival) = (Uniform(1), String::new(), 0.0);
    for job in 0..2000 {
        arrival += random.exponential(0.26);
        let mean =
            if job % 10 == 9 { 1.0 + random.exponential(25.0) } else { random.exponential(0.9).min(0.99) };
        let tasks = 1 + random.exponential(10.0) as u32;
        let runs: Vec<f64> = (0..tasks).map(|_| mean * (0.5 + random.next())).collect();
        write!(trace, "{arrival:.3} {tasks} {:.3}", runs.iter().sum::<f64>() / f64::from(tasks)).unwrap();
        runs.iter().for_each(|run| write!(trace, " {run:.3}").unwrap());
        trace.push('\n');
    }
    trace
}

/// An experiment with Eagle under the settings of its authors.
pub(crate) fn experiment(trace: &str, nodes: u32, cutoff: &str, big: f64, seeds: usize) -> String {
    format!(
        "title = \"Eagle\"\nseed = 1\nrepeat = {seeds}\n[cluster]\nnodes = {nodes}\nschedulers = 10\n\
         [workload.trace]\nfile = \"{trace}\"\ncutoff = \"{cutoff}\"\n[network]\none_way = \"500us\"\n\
         [[policy]]\neagle = {{ big_partition = {big}, replacement = true }}\n"
    )
}

/// Twelve of 120 nodes are for short jobs only, and the cutoff is 1 s. Means of five seeds must agree to 3 % at the
/// median and to 6 % at higher percentiles.
#[test]
fn eagle_has_the_response_times_of_its_authors_simulator() {
    let folder = folder();
    fs::write(folder.path().join("synthetic.tr"), synthetic()).unwrap();
    fs::write(folder.path().join("eagle.toml"), experiment("synthetic.tr", 120, "1s", 0.9, 5)).unwrap();
    let (out, _) = expect(folder.path(), "run eagle.toml --json --quiet --no-report --out eagle", 0);
    let runs: Vec<_> = lines(&out).into_iter().filter(|line| line["classes"].is_object()).collect();
    assert_eq!(runs.len(), 5);
    for (percentile, simulator, within) in [("p50", 1.161, 0.03), ("p90", 32.1, 0.06), ("p99", 60.5, 0.06)] {
        let of =
            |run: &serde_json::Value| run["classes"]["short"]["response_s"][percentile].as_f64().unwrap();
        let mean = runs.iter().map(of).sum::<f64>() / 5.0;
        assert!(
            (mean / simulator - 1.0).abs() <= within,
            "{percentile}: {mean}, the simulator has {simulator}"
        );
    }
}
