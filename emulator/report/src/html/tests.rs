//! Tests of the page with synthetic measurements.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use volary_engine::results::{
    Certificate, ClaimResult, Deadlines, GoodputHours, Origin, Placements, PlanGap, Planning,
    PredictionErrors, RealCore, RealWork, Samples, SharedNodes, Staleness, Verdict,
};
use volary_experiment::fidelity::fixture as certificates;
use volary_experiment::storage::Study;
use volary_experiment::storage::fixture::{manifest, measured};
use volary_experiment::storage::manifest::{Failure, HostRecord, HostShard, RunState};
use volary_experiment::storage::run_record::RunRecord;

use super::render;

/// The page of a report that has no files beside it.
fn html(study: &Study) -> String {
    let report = render(study);
    assert!(report.cells.is_empty());
    report.page
}

/// The page allows only its own script, by its checksum, and loads nothing from other places.
#[test]
fn the_page_allows_only_its_own_script() {
    let page = html(&study(&[0.5], 1, 40));
    let script = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
    let sum = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()));
    let policy = page
        .split("http-equiv=\"Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("http"), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{sum}' 'strict-dynamic';")), "{policy}");
    let at = |part: &str| page.find(part).unwrap();
    assert!(at("Content-Security-Policy") < at("<style>"), "a policy applies only to the elements after it");
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains(" onclick=") && !page.contains("javascript:"));
}

fn study(loads: &[f64], seeds: u64, jobs: u32) -> Study {
    let policies = [("latin-square", 1.0), ("sparrow", 1.4), ("murmuration", 1.2), ("random", 2.5)];
    let mut records = Vec::new();
    for &load in loads {
        for correlated in [false, true] {
            for (policy, scale) in policies {
                for seed in 1..=seeds {
                    let cell = [("service.correlated", json!(correlated)), ("workload.load", json!(load))];
                    let scale = scale / (1.0 - load) * if correlated { 1.3 } else { 1.0 };
                    let id = format!("{policy}-{correlated}-{load}-{seed}");
                    records.push(RunRecord::new(&id, &measured(policy, &cell, seed, scale, jobs)));
                }
            }
        }
    }
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let mut manifest = manifest(&ids);
    manifest.state = RunState::Finished;
    manifest.ended = Some("2024-01-01T00:10:00Z".into());
    let claim = |says: &str, verdict, measured: Value| ClaimResult {
        says: says.into(),
        origin: Origin::Paper,
        tolerance: None,
        verdict,
        measured: [("latin-square.response_s.p50 < sparrow.response_s.p50".to_owned(), measured)].into(),
    };
    let claims = vec![
        claim(
            "latin square is shortest at every quantile",
            Verdict::Holds,
            json!({"left": 1.234_567, "right": 2.0, "holds": true, "half_width": 0.9, "within_noise": true}),
        ),
        claim("random is shortest", Verdict::Fails, json!({"along": [["9ms", 5.0], ["12ms", 1.0]]})),
        claim("a policy that was not run", Verdict::NotTested, json!(null)),
    ];
    Study::assemble(manifest, Vec::new(), records, claims, Vec::new())
}

/// Asserts that the page has the same number of opening and closing tags.
fn assert_balanced(page: &str) {
    for tag in ["details", "table", "div", "section", "svg", "ul", "dl", "tr", "g", "nav", "main"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn a_page_with_many_cells_is_small_and_complete() {
    let page = html(&study(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99], 1, 5_000));
    let (readable, packed) = page.split_once("<script type=\"application/json\" id=\"packed\">").unwrap();
    assert_balanced(&page);
    assert_eq!(page.matches("<details class=\"cell\"").count(), 24);
    assert!(page.len() < 2_500_000, "{} bytes for 24 cells of 4 policies", page.len());
    assert!(page.contains("href=\"#cell-24\"") && page.contains("id=\"cell-24\""));
    assert_eq!(page.matches(" data-file=\"\"").count(), 23, "all cells except the first are compressed");
    let packed: BTreeMap<String, String> =
        serde_json::from_str(packed.split("</script>").next().unwrap()).unwrap();
    assert_eq!(packed.len(), 23);
    assert!(!readable.contains("NaN") && !readable.contains("inf\""));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
}

#[test]
fn a_wide_sweep_shows_its_table_on_demand() {
    let loads: Vec<f64> = (0..51).map(|at| f64::from(at) / 60.0).collect();
    let page = html(&study(&loads, 1, 20));
    assert_balanced(&page);
    assert!(page.contains("<html lang=\"en\" class=\"wide\">"));
    assert!(page.contains("<details class=\"cell\" id=\"all-cells\" data-file=\"\">"));
    assert!(
        page.contains("\"all-cells\":\"H4s")
            && !page.contains("<th scope=\"colgroup\" class=\"group\" colspan=\"4\">p50")
    );
    assert!(!page.contains("<li><a href=\"#cell-2\">"), "the contents do not list a hundred cells");
    assert!(!html(&study(&[0.5], 1, 20)).contains("id=\"all-cells\""));
}

#[test]
fn names_of_policies_link_to_their_parameters() {
    let mut study = study(&[0.5], 1, 100);
    let point = json!({"label": "sparrow", "policy": {"sparrow": {"probe_ratio": 2}}});
    study.manifest.spec = json!({"points": vec![point; 30]});
    let page = html(&study);
    let row = &page[page.find("<tr id=\"policy-1\">").unwrap()..];
    let row = &row[..row.find("</tr>").unwrap()];
    assert!(row.contains(">sparrow</td>") && row.contains(">probe_ratio = 2</td>"), "{row}");
    assert!(page.contains("<a href=\"#policy-1\">sparrow</a>"));
    assert!(page.contains("6 more points are in manifest.json."), "the rest of a long list is left out");
    assert_balanced(&page);
}

#[test]
fn text_between_backticks_is_code() {
    let mut study = study(&[0.5], 1, 100);
    study.manifest.spec = json!({"warnings": ["policy `late` & co. learn too late", "one ` alone"]});
    study.cells[0].policies[0].runs[0].notes = vec!["fewer than `group`".into()];
    study.claims[0].says = "`a` < `b`".into();
    study.claims[2].measured =
        [("c < d".to_owned(), json!({"holds": null, "why": ["`c` was not run"]}))].into();
    let page = html(&study);
    for text in [
        "policy <code>late</code> &amp; co. learn too late",
        "fewer than <code>group</code>",
        "<code>a</code> &lt; <code>b</code>",
        "<code>c</code> was not run",
        "or over <code>alone</code>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let shown = page.split("<pre").next().unwrap();
    assert_eq!(shown.matches('`').count(), 1, "a single backtick stays a character");
    assert_balanced(&page);
}

#[test]
fn the_page_has_verdicts_intervals_and_counts() {
    let page = html(&study(&[0.5], 4, 500));
    assert!(page.contains("the paper: 0 of 3 hold, 1 fail, 1 within noise, 1 not tested"));
    assert_eq!(page.matches("within noise: other seeds").count(), 1, "only the first claim is within noise");
    assert!(page.contains("Against latin-square, seed by seed") && page.contains("Student's t"));
    assert!(page.contains("<b>+40.00 <small>± "), "sparrow takes 1.4 times as long under every seed");
    assert!(page.contains("✓ balance"));
    assert!(page.contains("9ms: 5.00; 12ms: 1.00"));
    assert!(page.contains("holds: 1.23 against 2.00, difference −0.77 ± 0.90, within noise"));
    assert!(page.contains("The slowest jobs") && page.contains("class=\"band\""));
    assert!(page.contains("core slowed down"));
    assert!(page.contains("Bands: 95 % over replications") && !page.contains("too narrow"));
    let alone = html(&study(&[0.5], 1, 500));
    assert!(alone.contains("too narrow") && !alone.contains("95 % over replications"), "{alone}");
}

#[test]
fn the_map_names_the_best_policy_and_the_cost_of_the_worst() {
    let page = html(&study(&[0.5, 0.9], 4, 500));
    assert_balanced(&page);
    let map = &page[page.find("id=\"choice\"").unwrap()..page.find("id=\"sweep\"").unwrap()];
    assert!(map.contains("correlated = false</th>") && map.contains(">0.9</a></th>"), "{map}");
    assert_eq!(
        map.matches("\">latin-square</a> <small>×2.50</small></td>").count(),
        8,
        "the map has four cells for each of two aims"
    );
    assert!(map.contains("class=\" own s0 d0\" title=\"latin-square "), "the cell is coloured");
    let order = ["latin-square", "murmuration", "sparrow", "random"].map(|name| map.rfind(name).unwrap());
    assert!(order.is_sorted(), "the safest policy comes first: {order:?}");
    assert!(
        map.contains("<td>4 of 4</td><td>4</td><td>×1.00</td><td>×1.00</td><td class=\"left\">–</td>"),
        "{map}"
    );
    assert!(!html(&study(&[], 1, 10)).contains("id=\"choice\""), "a study of one cell has no map");
}

#[test]
fn text_from_results_is_escaped_in_the_page() {
    let evil = "<script>alert(1)</script>\"'&\u{1b}";
    let mut measured = measured(evil, &[(evil, json!(evil))], 1, 1.0, 50);
    measured.notes = vec![evil.into()];
    measured.summary.messages.by_kind.insert(evil.into(), 7);
    measured.summary.sections.staleness = Some(Staleness::default());
    measured.summary.sections.placements = Some(Placements::default());
    measured.summary.engine.order_hash = evil.into();
    let record = RunRecord::new("x", &measured);
    let other = format!("{evil}, other");
    let other = RunRecord::new("z", &self::measured(evil, &[(evil, json!(other))], 1, 1.0, 50));
    let mut manifest = manifest(&["x", "y", "z"]);
    manifest.title = evil.into();
    manifest.source = Some(evil.into());
    manifest.experiment = evil.into();
    manifest.argv = vec![evil.into()];
    manifest.spec = json!({ evil: evil });
    let held = HostShard {
        shard: 0,
        nodes: evil.into(),
        schedulers: evil.into(),
        extras: evil.into(),
        runs: vec![evil.into()],
    };
    let address = ([127, 0, 0, 1], 4433).into();
    manifest.hosts = Some(vec![HostRecord {
        name: evil.into(),
        address,
        weight: 1.0,
        held: vec![held],
        lost: Vec::new(),
    }]);
    let cell = [(evil.to_owned(), json!(evil))].into();
    let failure = Failure {
        id: "y".into(),
        policy: evil.into(),
        cell,
        seed: 1,
        log: evil.into(),
        summary: None,
        interrupted: false,
    };
    let measured = [(evil.to_owned(), json!(evil))].into();
    let claim = ClaimResult {
        says: evil.into(),
        origin: Origin::Ours,
        tolerance: None,
        verdict: Verdict::Fails,
        measured,
    };
    let page = html(&Study::assemble(manifest, Vec::new(), vec![record, other], vec![claim], vec![failure]));
    assert_eq!(page.matches("<script>").count(), 1, "the page has only its own script");
    assert!(page.matches("&lt;script&gt;").count() > 15 && !page.contains('\u{1b}'));
    assert_balanced(&page);
}

#[test]
fn failures_and_warnings_are_above_the_claims() {
    let mut study = study(&[0.5], 1, 100);
    study.missing = 3;
    study.cells[0].policies[0].runs[0].summary.jobs.unfinished = 7;
    let mut work = RealWork { kernel: "hash".into(), degrade: "threads".into(), ..RealWork::default() };
    work.slot(4.0, 0.05, 0.24);
    work.copy(0.1, 0.11);
    let healthy = Samples { count: 9, mean: 0.98, std: 0.01 };
    work.cores.push(RealCore { core: 7, host: "<h1>".into(), cpu: 3, healthy, ..RealCore::default() });
    let certificate = Certificate { cores: Some(work), ..certificates::degraded() };
    study.cells[0].policies[1].runs[0].summary.fidelity = Some(certificate);
    let page = html(&study);
    assert!(
        page.contains("Missing: 3 of 8 runs") && page.contains("7 jobs in 1 run did not finish"),
        "{}",
        &page[..9_000]
    );
    let heads = |name: &str| {
        let table = page.split(&format!("aria-label=\"{name}\"")).nth(1).unwrap();
        table.split("</thead>").next().unwrap().matches("<th ").count()
    };
    assert_eq!((heads("Fidelity"), heads("Lateness"), heads("Network and cores")), (8, 8, 10));
    assert!(page.contains("1 run departed from the configuration") && page.contains("✗ do not"));
    assert!(page.find("Before you read on") < page.find("id=\"claims\""));
    assert!(page.contains("✗ degraded") && page.contains("Remedy: --set run.speed="));
    assert!(page.contains("&lt;local&gt;: processors"), "names of hosts are text");
    assert!(page.contains("<h3>Real cores</h3>") && page.contains("CPU 3 of &lt;h1&gt;, hash"));
    assert!(page.contains("<td>4.17</td><td>+4.17"), "the achieved slowdown is 4 % above the requested 4");
    assert_balanced(&page);
}

#[test]
fn placements_are_shown_if_they_were_recorded() {
    let mut study = study(&[0.5], 1, 100);
    assert!(!html(&study).contains("Times at which tasks were placed"));
    let mut placements = Placements { count: 1_000, peak_per_s: 77, last_s: 9.0, ..Placements::default() };
    placements.scheduled_s.tail.p99 = 3.25;
    study.cells[0].policies[2].runs[0].summary.sections.placements = Some(placements);
    let page = html(&study);
    assert_eq!(page.matches("Times at which tasks were placed").count(), 1);
    assert!(page.contains("1\u{202f}000 placements, at most 77 in a second; the last after 9.00\u{202f}s"));
    assert!(
        page.contains(", last task scheduled</small></th>")
            && page.contains("p99 <small>in\u{a0}s</small></th>")
            && page.contains("<td>3.25</td>")
    );
    assert_balanced(&page);
}

#[test]
fn core_time_in_progress_is_drawn_unless_it_is_zero() {
    let mut study = study(&[0.5], 1, 100);
    assert!(html(&study).contains("Core time: useful, wasted (pale)"));
    for run in study.cells[0].policies.iter_mut().flat_map(|policy| &mut policy.runs) {
        run.summary.utilization = 0.8;
        let copies = &mut run.summary.copies;
        (copies.busy_s, copies.wasted_work_s, copies.in_progress_s) = (100.0, 10.0, 25.0);
    }
    let page = html(&study);
    for part in ["useful 52.0", "in progress 20.0", "wasted 8.00", "idle 20.0"] {
        assert!(page.contains(&format!("sparrow: {part}")), "{part}");
    }
    assert!(page.contains("Core time: useful, in progress (pale)"));
    assert_balanced(&page);
}

/// Response times have a half-width with a thousands separator, and one replication lacks a number.
#[test]
fn replications_that_differ_are_averaged() {
    let mut study = study(&[0.5], 2, 100);
    let runs = study.cells[0].policies.iter_mut().flat_map(|policy| policy.runs.iter_mut().enumerate());
    for (i, run) in runs.map(|(i, run)| (i, &mut run.summary)) {
        run.jobs.unfinished = [100_000, 140_000][i];
        run.utilization = [0.2, 0.8][i];
        (run.copies.busy_s, run.copies.wasted_work_s, run.copies.in_progress_s) = (10.0, [5.0, 0.0][i], 0.0);
        let miss_rate = [0.25, f64::NAN][i];
        run.deadlines = Some(Deadlines { miss_rate, ..Deadlines::default() });
    }
    let page = html(&study);
    assert!(page.contains("120\u{202f}000 <small>± 254\u{202f}124</small>"), "{page}");
    assert!(page.contains("sparrow: 25.0\u{202f}% missed"));
    assert!(page.contains("sparrow: useful 45.0\u{202f}%") && page.contains("sparrow: wasted 5.00\u{202f}%"));
}

#[test]
fn bars_of_deadlines_are_drawn_if_jobs_have_deadlines() {
    let mut study = study(&[0.5], 1, 100);
    assert!(!html(&study).contains("Deadlines missed"));
    let goodput_h = GoodputHours { slo: 3.0, late: 1.0, be: 4.0, total: 8.0 };
    let found = Deadlines { slo: 8, met: 6, missed: 2, miss_rate: 0.25, goodput_h, ..Deadlines::default() };
    for run in study.cells[0].policies.iter_mut().flat_map(|policy| &mut policy.runs) {
        run.summary.deadlines = Some(found);
    }
    let page = html(&study);
    assert!(
        page.contains("sparrow: 25.0\u{202f}% missed")
            && page.contains("sparrow: 3.00 node-hours by their deadline")
    );
    assert!(
        page.contains("sparrow: 1.00 node-hours after it")
            && page.contains("sparrow: 4.00 node-hours best-effort")
    );
    assert!(!page.contains("NaN"));
    assert_balanced(&page);
    // Runs that are cut off before the first deadline did work, but missed no deadline.
    for run in study.cells[0].policies.iter_mut().flat_map(|policy| &mut policy.runs) {
        run.summary.deadlines = Some(Deadlines { miss_rate: f64::NAN, met: 0, missed: 0, open: 8, ..found });
    }
    let page = html(&study);
    assert!(!page.contains("Deadlines missed") && page.contains("Node-hours of jobs that ended"));
    assert!(!page.contains("NaN"));
    assert_balanced(&page);
}

#[test]
fn tables_of_plans_and_estimates_are_shown_if_they_were_recorded() {
    let mut study = study(&[0.5], 1, 100);
    assert!(!html(&study).contains("<summary>Plans</summary>"));
    let gap = PlanGap { mean: 0.01, p99: 0.02, max: 0.03 };
    let planning = Planning {
        cycles: 31,
        solved: 17,
        options: 41.5,
        columns: 63.5,
        pivots: 77.5,
        gap,
        launched: 19,
        revoked: 3,
        preempted: 5,
        emulated_s: 12.5,
    };
    let summary = &mut study.cells[0].policies[1].runs[0].summary;
    summary.sections.planning = Some(planning);
    summary.engine.planning_cpu_s = Some(0.25);
    summary.sections.prediction =
        Some(PredictionErrors { jobs: 23, within_2x: 0.875, under: 0.05, over: 0.075, error: 0.33 });
    let page = html(&study);
    let row = |cells: &[&str]| cells.iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>();
    let percent = |share: &str| format!("{share}\u{202f}%");
    let gaps = ["1.00", "2.00", "3.00"].map(percent);
    let plan = [
        "31",
        "17",
        "41.5",
        "63.5",
        "77.5",
        &gaps[0],
        &gaps[1],
        &gaps[2],
        "19",
        "3",
        "5",
        "12.5\u{202f}s",
        "250\u{202f}ms",
    ];
    assert!(page.contains(&row(&plan)), "each heading has a cell");
    let errors = ["87.5", "5.00", "7.50", "33.0"].map(percent);
    assert!(page.contains(&row(&["23", &errors[0], &errors[1], &errors[2], &errors[3]])));
    assert_eq!(page.matches("<summary>Plans</summary>").count(), 1);
    assert_balanced(&page);
}

#[test]
fn the_table_of_shared_nodes_has_a_row_per_policy() {
    let mut study = study(&[0.5], 2, 100);
    assert!(!html(&study).contains("<summary>Shared nodes</summary>"));
    let used = SharedNodes {
        throttled: 0.25,
        throttle_rate: 0.01,
        evictions: 7,
        used_core_h: 12.0,
        wasted_core_h: 3.0,
        in_progress_core_h: 1.0,
        cpu: 0.625,
    };
    for run in &mut study.cells[0].policies[1].runs {
        run.summary.shared = Some(used);
    }
    let page = html(&study);
    let table = &page[page.find("aria-label=\"Shared nodes\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    assert_eq!(table.matches("<tr class").count(), 1, "rows are per policy: {table}");
    let cells = ["62.5", "25.0", "36.0", "7.00", "12.0", "3.00"];
    assert!(table.contains(&cells.map(|cell| format!("<td>{cell}</td>")).concat()), "{table}");
    assert_balanced(&page);
}

#[test]
fn a_study_without_measurements_has_a_page() {
    let page = html(&Study::assemble(manifest(&[]), Vec::new(), Vec::new(), Vec::new(), Vec::new()));
    assert_balanced(&page);
    let none = RunRecord::new("x", &measured("idle", &[], 1, 1.0, 0));
    let page = html(&Study::assemble(manifest(&["x"]), Vec::new(), vec![none], Vec::new(), Vec::new()));
    assert!(!page.contains("NaN"));
}

#[test]
fn one_table_compares_the_caches_of_all_policies() {
    let mut study = study(&[0.5], 2, 100);
    assert!(!html(&study).contains("Staleness of caches"));
    for (at, age) in [(0, 0.25), (2, 4.0)] {
        for run in &mut study.cells[0].policies[at].runs {
            let mut found = Staleness { bias_s: -age, conflicts: 0.125, ..Staleness::UNMEASURED };
            (found.age_of_synchronisation_s.mean, found.regret_s.mean) = (age, 2.0 * age);
            run.summary.sections.staleness = Some(found);
        }
    }
    let page = html(&study);
    assert_balanced(&page);
    let table = &page[page.find("aria-label=\"Caches of schedulers\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    let headings = ["age of synchronisation", "regret", "bias", "conflicts"]
        .map(|name| table.find(&format!(">{name} <small>in")));
    assert!(headings.iter().all(Option::is_some) && headings.is_sorted(), "{table}");
    assert_eq!(table.matches("<tr class").count(), 2, "rows are per policy: {table}");
    assert!(table.contains("<td>250</td><td>500</td><td>−250</td><td>12.5</td>"), "{table}");
    let definition = page.find("A cache keeps the work expected at every node").unwrap();
    assert!(definition < page.find("aria-label=\"Caches of schedulers\"").unwrap(), "definitions come first");
    assert!(!table.contains("version age"), "a measure without values has no column");
}

#[test]
fn a_cell_shows_few_columns_first_and_all_columns_below() {
    let page = html(&study(&[0.5], 2, 100));
    let first = page.split("aria-label=\"Results\"").nth(1).unwrap().split("</table>").next().unwrap();
    let columns = first.split("</thead>").next().unwrap().matches("<th ").count();
    assert!((5..12).contains(&columns), "the first table has the columns that fit: {first}");
    for heading in [">p99.9 <small>", ">wait p99 <small>", ">makespan <small>"] {
        assert!(!first.contains(heading), "{heading}");
        assert!(page.contains(heading), "{heading}");
    }
    assert!(page.contains("tabindex=\"0\" role=\"group\" aria-label=\"Results\""));
    // The page has two cells of four policies; one timeline is open.
    assert_eq!(page.matches("<details class=\"more p").count(), 8);
    assert_eq!(page.matches("<details class=\"more p0\" open").count(), 1);
}

/// A star, a bold difference or a shade would compare runs that met different conditions.
#[test]
fn a_page_of_unequal_injections_names_no_best_policy() {
    let mut study = study(&[0.3, 0.5], 1, 50);
    assert!(html(&study).contains("class=\"best\""));
    for group in &mut study.cells {
        group.policies[1].runs[0].summary.injections = vec![volary_experiment::storage::fixture::injected()];
    }
    let page = html(&study);
    assert!(!page.contains("class=\"best\""));
    assert!(
        page.contains("No best policy")
            && page.contains("Policies did not meet the same conditions in 4 cells")
    );
    assert!(page.contains("Not compared, because the runs did not meet the same conditions"));
    assert!(page.contains("sparrow (injected)"), "curves are marked");
    assert!(page.contains("<small>†</small>"), "shades are replaced by daggers");
    assert!(page.contains(
        "† marks cells that are not shaded, because their policies did not meet the same conditions"
    ));
}

/// The axis of the chart of slowdowns has the full definition of a slowdown.
#[test]
fn the_axis_of_the_slowdown_chart_has_its_full_label() {
    let page = html(&study(&[0.5], 1, 50));
    assert!(page.contains("response time over longest task, or over the stated time"));
}
