//! Comparison of policies with the outputs of their authors' programs. It prints the table of
//! `docs/src/findings/authors-outputs.md`, in which no number of volary may change by more than 3 %.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::binary::{command, expect_of, lines};
use crate::eagle::experiment;

/// A table with a line for each result of an authors' program. Columns: the program, as in the list of sources on the
/// page; the workload; the compared run, which is a shipped experiment with a value of `--set`, or Eagle under its
/// authors' settings (trace, nodes, cutoff, share of the big partition, seeds); the policy; the class of jobs; and the
/// program's results in s: median, 90th and 99th percentile, as far as they are known.
const ROWS: &str = "
Eagle | NGO, load 0.5, 120 nodes | eagle pigeon_ec2/NGO_trace50.tr.xz 120 1s 0.9 40 | eagle | short | 0.343 0.867 1.84
Eagle | NGO, load 0.7, 120 nodes | eagle pigeon_ec2/NGO_trace70.tr.xz 120 1s 0.9 40 | eagle | short | 0.439 11.8 35.1
Eagle | NGO, load 0.9, 120 nodes | eagle pigeon_ec2/NGO_trace90.tr.xz 120 1s 0.9 40 | eagle | short | 0.986 49.2 58.2
Eagle | YH1, 4,000 nodes | eagle yahoo/YH1_sub.tr.xz 4000 90.5811s 0.98 3 | eagle | short | 26.9 108 791
Eagle | Yahoo, 4,000 nodes | eagle yahoo/YH_recon.tr.xz 4000 90.5811s 0.98 3 | eagle | short | 28.5 136 2367
Eagle | Yahoo, 5,000 nodes | eagle yahoo/YH_recon.tr.xz 5000 90.5811s 0.98 3 | eagle | short | 23.2 67.1 204
Pigeon | Yahoo, 3,000 nodes | pigeon/fig6-7 cluster.nodes=3000 | phantom-strict | short | 26.11 82.32 337.45
Pigeon | Yahoo, 3,000 nodes | pigeon/fig6-7 cluster.nodes=3000 | phantom-strict | long | 22534 36506 39102
Murmuration | Yahoo 1000×, 1,000 nodes | murmuration/fig12 cluster.nodes=1000 | srjf-authors | all | 470
Murmuration | Yahoo 1000×, 1,000 nodes | murmuration/fig12 cluster.nodes=1000 | sparrow | all | 152491
Murmuration | Yahoo 1000×, 1,000 nodes | murmuration/fig12 cluster.nodes=1000 | fcfs | all | 152569
Murmuration | Yahoo 1000×, 1,000 nodes | murmuration/fig12 cluster.nodes=1000 | yaq-d-8s | all | 277248
Murmuration | Yahoo 1000×, 5,000 nodes | murmuration/fig12 cluster.nodes=5000 | srjf-authors | all | 115
Murmuration | Yahoo 1000×, 5,000 nodes | murmuration/fig12 cluster.nodes=5000 | sparrow | all | 30680
Murmuration | Yahoo 1000×, 5,000 nodes | murmuration/fig12 cluster.nodes=5000 | fcfs | all | 29542
Murmuration | Yahoo 1000×, 5,000 nodes | murmuration/fig12 cluster.nodes=5000 | yaq-d-8s | all | 42658
Murmuration | Yahoo 1000×, 15,000 nodes | murmuration/fig12 cluster.nodes=15000 | srjf-authors | all | 100
Murmuration | Yahoo 1000×, 15,000 nodes | murmuration/fig12 cluster.nodes=15000 | sparrow | all | 7969
Murmuration | Yahoo 1000×, 15,000 nodes | murmuration/fig12 cluster.nodes=15000 | fcfs | all | 6449
Murmuration | Yahoo 1000×, 15,000 nodes | murmuration/fig12 cluster.nodes=15000 | yaq-d-8s | all | 9451
Murmuration | Yahoo 1000×, 15,000 nodes | murmuration/fig12 cluster.nodes=15000 | eagle | all | 5100
Murmuration | Cloudera 1000×, 1,000 nodes | murmuration/fig13 cluster.nodes=1000 | srjf-authors | all | 9050
Murmuration | Cloudera 1000×, 15,000 nodes | murmuration/fig13 cluster.nodes=15000 | srjf-authors | all | 885
Murmuration | updates 100 s late, 1,250 schedulers | murmuration/fig15 cluster.schedulers=1250 | d100s-authors | all | 130381
Murmuration | updates 100 s late, 5,000 schedulers | murmuration/fig15 cluster.schedulers=5000 | d100s-authors | all | 199049
Prototype | pattern A, 20 requests a second | murmuration/prototype cluster.request_rate=20 | default | all | 33020 38423 42536
Prototype | pattern A, 20 requests a second | murmuration/prototype cluster.request_rate=20 | retry-1s | all | 34145 38576 45422
Prototype | pattern A, 20 requests a second | murmuration/prototype cluster.request_rate=20 | no-retry-queue | all | 35244 38594 45256
Prototype | pattern A, 20 requests a second | murmuration/prototype cluster.request_rate=20 | murmuration | all | 26494 34427 37074
";

struct Row {
    source: &'static str,
    workload: &'static str,
    run: Vec<&'static str>,
    policy: &'static str,
    jobs: &'static str,
    authors: Vec<f64>,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [source, workload, run, policy, jobs, authors] = cells[..] else { panic!("{line}") };
        let authors = authors.split(' ').map(|number| number.parse().unwrap()).collect();
        Row { source, workload, run: run.split(' ').collect(), policy, jobs, authors }
    };
    ROWS.trim().lines().map(row).collect()
}

/// The percentiles of a row, each the mean over the seeds.
fn measured(row: &Row, traces: &str, folder: &Path) -> Vec<f64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let (file, set) = match row.run[..] {
        [name, set] => (root.join(name).with_extension("toml"), Some(set)),
        ["eagle", trace, nodes, cutoff, big, seeds] => {
            let text = experiment(
                trace,
                nodes.parse().unwrap(),
                cutoff,
                big.parse().unwrap(),
                seeds.parse().unwrap(),
            );
            fs::write(folder.join("eagle.toml"), text).unwrap();
            (folder.join("eagle.toml"), None)
        }
        _ => panic!("{:?}", row.run),
    };
    let mut run = command(folder);
    run.env("VOLARY_TRACES", traces).arg("run").arg(file).args(["--policy", row.policy]);
    run.args("--json --quiet --no-report --out".split(' ')).arg(folder.join("run"));
    set.iter().for_each(|set| _ = run.args(["--set", set]));
    let (out, _) = expect_of(&mut run, 0);
    fs::remove_dir_all(folder.join("run")).unwrap();
    let runs: Vec<_> = lines(&out).into_iter().filter(|line| line["response_s"].is_object()).collect();
    assert!(!runs.is_empty(), "{out}");
    let at = |run: &serde_json::Value, key: &str| {
        let of = if row.jobs == "all" { run } else { &run["classes"][row.jobs] };
        of["response_s"][key].as_f64().unwrap()
    };
    let mean = |key: &str| runs.iter().map(|run| at(run, key)).sum::<f64>() / runs.len() as f64;
    ["p50", "p90", "p99"].iter().take(row.authors.len()).map(|key| mean(key)).collect()
}

/// A number with four significant digits; all digits before the decimal point of a large number.
fn digits(value: f64) -> String {
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

/// The cells of a row in the printed table.
fn cells(row: &Row, ours: &[f64]) -> [String; 6] {
    let join = |values: &[f64]| values.iter().map(|&v| digits(v)).collect::<Vec<_>>().join(" / ");
    let difference = |(ours, authors): (&f64, &f64)| format!("{:+.0} %", (ours / authors - 1.0) * 100.0);
    let differences: Vec<_> = ours.iter().zip(&row.authors).map(difference).collect();
    [
        format!("{}, {}", row.source, row.workload),
        format!("`{}`", row.policy),
        row.jobs.to_owned(),
        join(&row.authors),
        join(ours),
        differences.join(" / "),
    ]
}

/// Computes the table from published traces; with `VOLARY_UPDATE_DOCS=1` it is written to the page.
#[test]
#[ignore = "reads published traces, which may not be redistributed, and takes minutes: set VOLARY_TRACES"]
#[allow(clippy::print_stdout, reason = "the table is what the test is run for")]
fn policies_stay_close_to_the_authors_outputs_on_published_traces() {
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
        let near = |(ours, known): (&f64, &f64)| (ours / known - 1.0).abs() <= 0.03;
        if known.len() != ours.len() || !ours.iter().zip(&known).all(near) {
            moved.push(format!("{}: {known:?} changed to {ours:?}", cells[..3].join(", ")));
        }
    }
    if std::env::var_os("VOLARY_UPDATE_DOCS").is_some() {
        fs::write(&page, format!("{before}{HEAD}{new}")).unwrap();
        return;
    }
    assert_eq!(recorded.len(), rows().len(), "rows of the page");
    assert!(moved.is_empty(), "moved by more than 3 %:\n{}", moved.join("\n"));
}
