//! Every policy against what theory or its paper says. One row each: what is run, the metric, the expected
//! value, the tolerance, the source. Closed forms first; sampling errors set the tolerances.

use crate::common::{one_task, poisson, run};

/// A row of the table.
struct Oracle {
    what: &'static str,
    experiment: String,
    /// Metric of the summary, a JSON pointer.
    metric: &'static str,
    expected: f64,
    /// Relative; 0 means equal to the nanosecond the emulation counts in.
    tolerance: f64,
    source: &'static str,
}

/// Jobs of 100 tasks that never meet, no network: service models of the latin-square paper, Table IV.
fn light(correlated: bool, homogeneous: bool, policy: &str) -> String {
    poisson(2000, 2000, 100, 1000.0, policy)
        .replace("correlated = false", &format!("correlated = {correlated}"))
        .replace("homogeneous = true", &format!("homogeneous = {homogeneous}"))
}

const MEAN: &str = "/response_s/mean";

/// A row about mean response times.
const fn row(
    what: &'static str,
    experiment: String,
    expected: f64,
    tolerance: f64,
    source: &'static str,
) -> Oracle {
    Oracle { what, experiment, metric: MEAN, expected, tolerance, source }
}

fn queues() -> Vec<Oracle> {
    vec![
        row("random, load 0.5", poisson(10, 200_000, 1, 0.2, "random = {}"), 2.0, 0.02, "M/M/1"),
        Oracle {
            metric: "/wait_s/mean",
            ..row("random, load 0.5, wait", poisson(10, 200_000, 1, 0.2, "random = {}"), 1.0, 0.03, "M/M/1")
        },
        Oracle {
            metric: "/slowdown/mean",
            ..row(
                "random, constant service, load 0.5, slowdown",
                poisson(10, 100_000, 1, 0.2, "random = {}").replace(
                    "{ exponential = { mean = \"1s\" } }\n        homogeneous",
                    "\"1s\"\n        homogeneous",
                ),
                1.5,
                0.02,
                "M/D/1: 1 + ρ / (2 (1 − ρ))",
            )
        },
        row("random, load 0.7", poisson(10, 400_000, 1, 1.0 / 7.0, "random = {}"), 10.0 / 3.0, 0.03, "M/M/1"),
        row(
            "central-queue, two servers, load 0.8",
            poisson(2, 400_000, 1, 0.625, "central-queue = {}"),
            2.777_78,
            0.04,
            "M/M/2, Erlang C",
        ),
        row(
            "central-queue, ten servers, load 0.9",
            poisson(10, 400_000, 1, 1.0 / 9.0, "central-queue = {}"),
            1.668_73,
            0.04,
            "M/M/10, Erlang C",
        ),
        row(
            "kubernetes, ten nodes, load 0.5, no retry queue",
            poisson(10, 100_000, 1, 0.2, "kubernetes = { retry = \"tail\", attempt = \"1ms\" }"),
            1.008_2,
            0.02,
            "M/M/10, Erlang C, and a millisecond",
        ),
        row(
            "yaq-c, two servers, constant service, load 0.8",
            poisson(2, 300_000, 1, 0.625, "yaq-c = {}").replace(
                "{ exponential = { mean = \"1s\" } }\n        homogeneous",
                "\"1s\"\n        homogeneous",
            ),
            1.897_6,
            0.04,
            "M/D/2: the node with the least wait is the one that is free first",
        ),
        row(
            "round-robin, two servers, λ = 0.5",
            poisson(2, 200_000, 2, 2.0, "round-robin = {}"),
            2.875,
            0.02,
            "O-L2, fork-join (12 − λ) / (8 (1 − λ))",
        ),
    ]
}

/// The two- and three-server systems of the latin-square paper's section V, and their relatives.
fn small_systems() -> Vec<Oracle> {
    vec![
        row(
            "latin-square, v = M = 2, λ = 0.1",
            poisson(2, 200_000, 2, 10.0, "latin-square = { order = 2 }"),
            1.083_333,
            0.01,
            "O-L2, Pollaczek–Khinchine",
        ),
        row(
            "latin-square, v = M = 2, λ = 0.5",
            poisson(2, 300_000, 2, 2.0, "latin-square = { order = 2 }"),
            1.75,
            0.01,
            "O-L2, Pollaczek–Khinchine",
        ),
        row(
            "latin-square, v = M = 3, λ = 0.5",
            poisson(3, 300_000, 3, 2.0, "latin-square = { order = 3 }"),
            1.666_667,
            0.01,
            "O-L2, Gamma(n,n) service: 1 + λ (1 + 1/n) / (2 (1 − λ))",
        ),
        row(
            "full-repetition that drops per task, v = M = 2, λ = 0.5",
            poisson(2, 300_000, 2, 2.0, "full-repetition = { order = 2, preempt = \"task\" }"),
            1.75,
            0.01,
            "each task is a minimum of two: Gamma(2,2) service again",
        ),
        row(
            "full-repetition that drops per branch, alone",
            poisson(2, 100_000, 2, 1000.0, "full-repetition = { order = 2 }"),
            1.25,
            0.01,
            "min of two Gamma(2,1): ∫ e^(−2t) (1 + t)² dt",
        ),
        row(
            "gang, two servers, λ = 0.3",
            poisson(2, 60_000, 2, 3.333_333_333, "gang = { quantum = \"20ms\" }"),
            2.727_273,
            0.03,
            "O-L2, corrected: 1.5 / (1 − 1.5 λ)",
        ),
        Oracle {
            tolerance: 0.0,
            ..row(
                "murmuration, thirty equal tasks on ten nodes",
                one_task(10, 1, "murmuration = {}", "").replace("tasks = 1", "tasks = 30"),
                3.02,
                0.0,
                "three on every node, as the least work is chosen each time",
            )
        },
        row(
            "sparrow sampling two queues per task, 500 servers, load 0.5",
            poisson(500, 200_000, 1, 0.004, "sparrow = { form = \"per-task\" }"),
            1.265_7,
            0.02,
            "power of two choices, mean field: Σ ρ^(2^i − 2)",
        ),
    ]
}

/// Without queueing and with constants everything is exact: hops × 10 ms + 1 s.
fn hops() -> Vec<Oracle> {
    [
        ("random = {}", 2, "launch, completed"),
        ("round-robin = {}", 2, "launch, completed"),
        ("central-queue = {}", 2, "launch, completed"),
        ("latin-square = { order = 2 }", 2, "row, completed"),
        ("full-repetition = { order = 2 }", 2, "row, completed"),
        ("gang = {}", 2, "switch, completed"),
        ("sparrow = {}", 4, "reserve, claim, grant, completed"),
        ("sparrow = { form = \"pairs\" }", 4, "reserve, claim, grant, completed"),
        ("sparrow = { form = \"per-task\" }", 4, "sample, length, launch, completed"),
        ("peacock = { form = \"threshold\" }", 4, "visit, claim, grant, completed"),
        ("peacock = {}", 4, "visit, claim, grant, completed"),
        ("murmuration = {}", 2, "row, completed"),
        ("hawk = {}", 4, "reserve, claim, grant, completed"),
        ("eagle = {}", 4, "probe, claim, grant, completed"),
        ("kubernetes = { attempt = \"0s\" }", 2, "row, completed"),
        ("yaq-d = {}", 2, "row, completed"),
        ("yaq-c = {}", 2, "row, completed"),
        ("naive = {}", 2, "row, completed"),
        ("late = {}", 2, "row, completed"),
        ("hadoop2 = {}", 2, "row, completed"),
        ("mantri = {}", 2, "row, completed"),
        ("dolly = {}", 2, "row, completed"),
        ("hedged = {}", 2, "row, completed"),
    ]
    .into_iter()
    .map(|(policy, hops, source)| Oracle {
        what: policy,
        experiment: one_task(8, 1, policy, ""),
        metric: MEAN,
        expected: 1.0 + 0.01 * f64::from(hops),
        tolerance: 0.0,
        source,
    })
    .collect()
}

/// Four equal tasks of 100 s, one of them on a core of a tenth of the speed, and a fifth core: when is the
/// straggler backed up? It runs for 100 s more, and a message takes 10 ms.
fn stragglers() -> Vec<Oracle> {
    let slow = "[interference.scripted]\nslot = \"1h\"\nrows = [[1]]\nslowdown = 10";
    [
        ("central-queue = {}", 1000.02, "not at all"),
        ("naive = {}", 160.02, "after 60 s: 0.06 done, the mean is 0.465"),
        (
            "naive = { scale = 0.1 }",
            130.02,
            "after 30 s: then it is known to be a fifth of its work behind the mean",
        ),
        ("late = {}", 202.02, "when the others have ended: a node that has done nothing yet counts as slow"),
        ("late = { slow_node = 0.0 }", 160.02, "after 60 s: a tenth of the others' rate"),
        ("hadoop2 = {}", 201.02, "at the look after the others have ended, at 100.02 s"),
        ("hadoop2 = { finished_share = 0.8 }", 1000.02, "three of four do not suffice"),
        ("mantri = {}", 210.02, "at the look after the others have ended, one every 10 s"),
    ]
    .into_iter()
    .map(|(policy, expected, source)| {
        let experiment = one_task(5, 1, policy, slow)
            .replace("tasks = 1", "tasks = 4")
            .replace("demand = \"1s\"", "demand = \"100s\"");
        row(policy, experiment, expected, 0.0, source)
    })
    .collect()
}

/// Tasks that never meet, with copies that take what they take.
fn copies() -> Vec<Oracle> {
    let alone = |policy| poisson(10, 100_000, 1, 100.0, policy);
    vec![
        row(
            "dolly, two copies",
            alone("dolly = { straggler = 0.2, budget = 1.0, load = 1.0 }"),
            0.5,
            0.02,
            "min of two Exp(1); ln 0.05 / ln 0.2 = 1.9",
        ),
        row(
            "hedged, at the median",
            alone("hedged = { quantile = 0.5 }"),
            0.75,
            0.02,
            "half end before ln 2; of the rest the first of two does, in half the time",
        ),
    ]
}

/// E[max of n Gamma(2,2)], by the trapezoid rule on 1 − F(t)ⁿ.
fn max_of_gammas(n: i32) -> f64 {
    let step = 1e-4;
    let tail = |t: f64| 1.0 - (1.0 - (-2.0 * t).exp() * (1.0 + 2.0 * t)).powi(n);
    (0..200_000).map(|i| step * f64::midpoint(tail(f64::from(i) * step), tail(f64::from(i + 1) * step))).sum()
}

fn light_load() -> Vec<Oracle> {
    let harmonic: f64 = (1..=100).map(|i| 1.0 / f64::from(i)).sum();
    let row = |what, correlated, homogeneous, policy, expected| Oracle {
        what,
        experiment: light(correlated, homogeneous, policy),
        metric: MEAN,
        expected,
        tolerance: 0.02,
        source: "O-L3, 100 tasks at light load",
    };
    vec![
        Oracle {
            tolerance: 0.06,
            ..row("round-robin, correlated, homogeneous", true, true, "round-robin = {}", 1.0)
        },
        row("round-robin, correlated, heterogeneous", true, false, "round-robin = {}", harmonic),
        row("sparrow, uncorrelated, homogeneous", false, true, "sparrow = {}", harmonic),
        row("latin-square, uncorrelated, homogeneous", false, true, "latin-square = {}", max_of_gammas(50)),
    ]
}

#[test]
fn closed_forms() {
    let rows: Vec<_> = [hops(), queues(), small_systems(), light_load(), stragglers(), copies()]
        .into_iter()
        .flatten()
        .collect();
    let mut wrong = Vec::new();
    for row in rows {
        let measured = run(&row.experiment).remove(0);
        let json = serde_json::to_value(&measured.summary).unwrap();
        let value = json.pointer(row.metric).and_then(serde_json::Value::as_f64).expect("a number");
        let off = (value - row.expected).abs();
        let allowed = if row.tolerance == 0.0 { 1e-9 } else { row.tolerance * row.expected };
        eprintln!(
            "{:60} {value:10.6} expected {:10.6} ± {allowed:.6} ({})",
            row.what, row.expected, row.source
        );
        if off > allowed {
            wrong.push(format!("{}: {value} instead of {} ± {allowed}", row.what, row.expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Work inflation by redundancy (latin square, v = 2): none under uncorrelated exponential service and under
/// correlated homogeneous service, half as much again under correlated heterogeneous service.
#[test]
fn work_inflation_of_the_latin_square() {
    for (correlated, homogeneous, factor) in [(false, true, 1.0), (true, true, 1.0), (true, false, 1.5)] {
        let busy = |policy: &str| {
            let summary = run(&light(correlated, homogeneous, policy)).remove(0).summary;
            summary.utilization * summary.makespan_s * 2000.0
        };
        let ratio = busy("latin-square = { order = 2 }") / busy("random = {}");
        assert!((ratio - factor).abs() < 0.03, "correlated {correlated}, homogeneous {homogeneous}: {ratio}");
    }
}
