//! Policies beside what their authors' programs put out: the table of `docs/src/findings/authors-outputs.md`, which is
//! printed, and in which no number of volary may move by more than 3 %.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::binary::{command, expect_of, lines};
use crate::eagle::experiment;

/// A result of a program of authors, and the run that is set beside it.
struct Row {
    /// Whose program, by the list of sources on the page.
    source: &'static str,
    workload: &'static str,
    policy: &'static str,
    /// An experiment with what is changed in it.
    run: Run,
    /// Path of the distribution in a line of results.
    of: &'static str,
    /// What the authors' program gave, s: the median, the 90th and the 99th percentile, as far as they are known.
    authors: &'static [f64],
}

enum Run {
    /// A shipped experiment with changes, as values of `--set`.
    Shipped(&'static str, &'static [&'static str]),
    /// Eagle as its authors run it: trace, nodes, cutoff, share of the big partition, seeds.
    Eagle(&'static str, u32, &'static str, f64, usize),
}

const SHORT: &str = "classes.short.response_s";
const LONG: &str = "classes.long.response_s";
const ALL: &str = "response_s";
const FIG12: &str = "murmuration/fig12";
const FIG13: &str = "murmuration/fig13";
const FIG15: &str = "murmuration/fig15";
const PROTOTYPE: &str = "murmuration/prototype";

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |source, workload, policy, run, of, authors| {
        rows.push(Row { source, workload, policy, run, of, authors });
    };
    let ngo = |percent, authors: &'static [f64]| {
        let (workload, trace) = match percent {
            50 => ("NGO, load 0.5, 120 nodes", "pigeon_ec2/NGO_trace50.tr.xz"),
            70 => ("NGO, load 0.7, 120 nodes", "pigeon_ec2/NGO_trace70.tr.xz"),
            _ => ("NGO, load 0.9, 120 nodes", "pigeon_ec2/NGO_trace90.tr.xz"),
        };
        (workload, Run::Eagle(trace, 120, "1s", 0.9, 40), authors)
    };
    for (workload, run, authors) in [
        ngo(50, &[0.343, 0.867, 1.84]),
        ngo(70, &[0.439, 11.8, 35.1]),
        ngo(90, &[0.986, 49.2, 58.2]),
        (
            "YH1, 4,000 nodes",
            Run::Eagle("yahoo/YH1_sub.tr.xz", 4000, "90.5811s", 0.98, 3),
            &[26.9, 108.0, 791.0],
        ),
        (
            "Yahoo, 4,000 nodes",
            Run::Eagle("yahoo/YH_recon.tr.xz", 4000, "90.5811s", 0.98, 3),
            &[28.5, 136.0, 2367.0],
        ),
        (
            "Yahoo, 5,000 nodes",
            Run::Eagle("yahoo/YH_recon.tr.xz", 5000, "90.5811s", 0.98, 3),
            &[23.2, 67.1, 204.0],
        ),
    ] {
        add("Eagle", workload, "eagle", run, SHORT, authors);
    }
    for (of, authors) in [(SHORT, &[26.11, 82.32, 337.45]), (LONG, &[22_534.0, 36_506.0, 39_102.0])] {
        let run = Run::Shipped("pigeon/fig6-7", &["cluster.nodes=3000"]);
        add("Pigeon", "Yahoo, 3,000 nodes", "phantom-strict", run, of, authors);
    }
    for (nodes, workload, medians) in [
        (
            &["cluster.nodes=1000"],
            "Yahoo 1000×, 1,000 nodes",
            [&[470.0], &[152_491.0], &[152_569.0], &[277_248.0]],
        ),
        (
            &["cluster.nodes=5000"],
            "Yahoo 1000×, 5,000 nodes",
            [&[115.0], &[30_680.0], &[29_542.0], &[42_658.0]],
        ),
        (
            &["cluster.nodes=15000"],
            "Yahoo 1000×, 15,000 nodes",
            [&[100.0], &[7_969.0], &[6_449.0], &[9_451.0]],
        ),
    ] {
        for (policy, authors) in ["srjf-authors", "sparrow", "fcfs", "yaq-d-8s"].into_iter().zip(medians) {
            add("Murmuration", workload, policy, Run::Shipped(FIG12, nodes), ALL, authors);
        }
    }
    let eagle = Run::Shipped(FIG12, &["cluster.nodes=15000"]);
    add("Murmuration", "Yahoo 1000×, 15,000 nodes", "eagle", eagle, ALL, &[5_100.0]);
    for (nodes, workload, authors) in [
        (&["cluster.nodes=1000"], "Cloudera 1000×, 1,000 nodes", &[9_050.0]),
        (&["cluster.nodes=15000"], "Cloudera 1000×, 15,000 nodes", &[885.0]),
    ] {
        add("Murmuration", workload, "srjf-authors", Run::Shipped(FIG13, nodes), ALL, authors);
    }
    for (schedulers, workload, authors) in [
        (&["cluster.schedulers=1250"], "updates 100 s late, 1,250 schedulers", &[130_381.0]),
        (&["cluster.schedulers=5000"], "updates 100 s late, 5,000 schedulers", &[199_049.0]),
    ] {
        add("Murmuration", workload, "d100s-authors", Run::Shipped(FIG15, schedulers), ALL, authors);
    }
    for (policy, authors) in [
        ("default", &[33_020.0, 38_423.0, 42_536.0]),
        ("retry-1s", &[34_145.0, 38_576.0, 45_422.0]),
        ("no-retry-queue", &[35_244.0, 38_594.0, 45_256.0]),
        ("murmuration", &[26_494.0, 34_427.0, 37_074.0]),
    ] {
        let run = Run::Shipped(PROTOTYPE, &["cluster.request_rate=20"]);
        add("Prototype", "pattern A, 20 requests a second", policy, run, ALL, authors);
    }
    rows
}

/// The percentiles of a row, means over the seeds.
fn measured(row: &Row, traces: &str, folder: &Path) -> Vec<f64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let (file, changes): (PathBuf, &[&str]) = match row.run {
        Run::Shipped(name, changes) => (root.join(name).with_extension("toml"), changes),
        Run::Eagle(trace, nodes, cutoff, big, seeds) => {
            let file = folder.join("eagle.toml");
            fs::write(&file, experiment(trace, nodes, cutoff, big, seeds)).unwrap();
            (file, &[])
        }
    };
    let mut run = command(folder);
    run.env("VOLARY_TRACES", traces).arg("run").arg(file).args(["--policy", row.policy]);
    run.args("--json --quiet --no-report --out".split(' ')).arg(folder.join("run"));
    changes.iter().for_each(|change| _ = run.args(["--set", change]));
    let (out, _) = expect_of(&mut run, 0);
    fs::remove_dir_all(folder.join("run")).unwrap();
    let runs: Vec<_> = lines(&out).into_iter().filter(|line| line["response_s"].is_object()).collect();
    assert!(!runs.is_empty(), "{out}");
    let at = |run: &serde_json::Value, key: &str| {
        row.of.split('.').fold(run, |value, part| &value[part])[key].as_f64().unwrap()
    };
    let mean = |key: &str| runs.iter().map(|run| at(run, key)).sum::<f64>() / runs.len() as f64;
    ["p50", "p90", "p99"].iter().take(row.authors.len()).map(|key| mean(key)).collect()
}

/// Four significant digits, of large numbers all before the point.
fn digits(value: f64) -> String {
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

/// The cells of a row of the table.
fn cells(row: &Row, ours: &[f64]) -> [String; 6] {
    let join = |values: &[f64]| values.iter().map(|&v| digits(v)).collect::<Vec<_>>().join(" / ");
    let difference = |(ours, authors): (&f64, &f64)| format!("{:+.0} %", (ours / authors - 1.0) * 100.0);
    let differences: Vec<_> = ours.iter().zip(row.authors).map(difference).collect();
    let jobs = row.of.strip_prefix("classes.").map_or("all", |of| of.split('.').next().unwrap());
    [
        format!("{}, {}", row.source, row.workload),
        format!("`{}`", row.policy),
        jobs.to_owned(),
        join(row.authors),
        join(ours),
        differences.join(" / "),
    ]
}

/// Reads published traces. `VOLARY_UPDATE_DOCS=1` writes the table anew.
#[test]
#[ignore = "reads published traces, which may not be redistributed, and takes minutes: set VOLARY_TRACES"]
fn policies_stay_where_they_are_beside_the_outputs_of_published_traces() {
    const HEAD: &str =
        "| workload | policy | jobs | authors, s | volary, s | difference |\n|---|---|---|--:|--:|--:|\n";
    let traces =
        std::env::var("VOLARY_TRACES").expect("set VOLARY_TRACES to the folder of the published traces");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/findings/authors-outputs.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, table) = text.split_once(HEAD).expect("the page has the table's head");
    let recorded: BTreeMap<_, _> = table
        .lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>())
        .map(|cells| (cells[..3].join(" "), cells[4].to_owned()))
        .collect();
    let folder = crate::common::binary::folder();
    let (mut new, mut moved) = (String::new(), Vec::new());
    for row in rows() {
        let ours = measured(&row, &traces, folder.path());
        let cells = cells(&row, &ours);
        println!("| {} |", cells.join(" | "));
        writeln!(new, "| {} |", cells.join(" | ")).unwrap();
        let known = recorded.get(&cells[..3].join(" ")).map_or("", String::as_str);
        let known: Vec<f64> = known.split(" / ").filter_map(|number| number.parse().ok()).collect();
        let far = |(ours, known): (&f64, &f64)| !((ours / known - 1.0).abs() <= 0.03);
        if known.len() != ours.len() || ours.iter().zip(&known).any(far) {
            moved.push(format!("{}: {known:?} is {ours:?} now", cells[..3].join(", ")));
        }
    }
    if std::env::var_os("VOLARY_UPDATE_DOCS").is_some() {
        fs::write(&page, format!("{before}{HEAD}{new}")).unwrap();
        return;
    }
    assert_eq!(recorded.len(), rows().len(), "rows of the page");
    assert!(moved.is_empty(), "moved by more than 3 %:\n{}", moved.join("\n"));
}
