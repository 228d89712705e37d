//! Tests of the page and its sections: their contents, and the escaping of names.

use serde_json::json;
use volary_actors::base::{CoreSet, Time};
use volary_engine::cores::{Injection, InjectionSpec, Interference, ScheduledInjection};
use volary_experiment::control::{BegunRun, Counted, ExpectedRun, ShardSample, StudyObserver, VitalsSample};
use volary_experiment::storage::fixture::measured;
use volary_experiment::storage::run_record::{Look, RunRecord, Sketch};

use super::*;
use crate::dashboard::Dashboard;
use crate::dashboard::prometheus::metrics;
use crate::dashboard::snapshot::{CoresView, Counts, Disturbance, HistoryPoint, SnapshotSource as _};

/// A snapshot of a run in progress, in which every name is `name`.
fn snapshot(name: &str) -> Snapshot {
    let cell = [(name.to_owned(), json!(name))].into();
    let entry = RunEntry::waiting(name, name, &cell, Some(1));
    let failed = RunEntry { stage: RunStage::Failed, why: Some(name.to_owned()), ..entry };
    let running = RunEntry {
        stage: RunStage::Running,
        jobs: 100,
        finished: 25,
        real_left_s: Some(75.0),
        ..RunEntry::waiting("r", "other", &cell, Some(1))
    };
    let sketch = Sketch::new((1..=25).map(f64::from).collect());
    let curve = CurveView { policy: name.to_owned(), running: true, each: 2, runs: vec![(sketch, 100)] };
    let late = LateSoFar { p50_s: 1e-5, p99_s: 1e-3, max_s: 0.01 };
    let host = |core| (core == 10).then(|| name.to_owned());
    let core = |core, slowdown| Tile { core, busy: core == 1, slowdown, host: host(core) };
    let point = |at| HistoryPoint { at_s: at, copies_running: 3, tasks_waiting: 7 };
    let run = RunView {
        run: name.to_owned(),
        policy: name.to_owned(),
        running: true,
        at_s: 12.5,
        counts: Counts { jobs: 100, jobs_finished: 25, ..Counts::default() },
        history: vec![point(0.0), point(5.0)],
        messages: (0..10).map(|kind| (format!("{name}{kind}"), 1000 - kind)).collect(),
        looks: (1..4)
            .map(|at| Look {
                time: f64::from(at),
                age: 0.5,
                error: 1.0,
                in_flight: 2.0,
                versions: 0.1,
                information: f64::NAN,
            })
            .collect(),
        cores: CoresView {
            total: 30,
            step: 10,
            listed: vec![core(0, Some(1.0)), core(10, Some(16.0)), core(20, None)],
        },
        shards: vec![ShardView {
            name: name.to_owned(),
            deliveries: Some(late),
            timers: None,
            vitals: Some(VitalsSample { cpu_share: 0.25, ..VitalsSample::default() }),
        }],
        ..RunView::default()
    };
    let fault = Disturbance { kind: name.to_owned(), at_s: 3.0, until_s: None, says: name.to_owned() };
    Snapshot {
        header: PageHeader { policies: vec![name.to_owned(), "other".to_owned()], ..PageHeader::default() },
        running: true,
        state: name.to_owned(),
        real_s: Some(61.0),
        real_left_s: Some(7_300.0),
        outdated: Some(name.to_owned()),
        runs: vec![failed, running],
        cell: Some(CellView::new(&cell, vec![curve], vec![run], &[fault])),
    }
}

#[test]
fn every_section_shows_its_part_of_the_snapshot() {
    let sections = render(&snapshot("n"));
    let of = |id: &str| &sections[SECTIONS.iter().position(|section| section.0 == id).unwrap()];
    for (id, parts) in [
        (
            "progress",
            &["61 s", "about 2 h", "25 of 100", "value=\"0.625\"", "An earlier state is shown: n"][..],
        ),
        ("failures", &["n, n = n, seed 1: n"]),
        ("grid", &["✗ ", "25.0", "75 s left", "aria-current"]),
        ("responses", &["n (running)", "<td>50</td>", "A pale curve", "class=\"running\""]),
        ("disturbances", &["<b>n</b> at 3.00", "without an end so far"]),
        ("cores", &["n: one in 10 of 30 cores", "core 10 on n: slowed down ×16", "down or paused"]),
        (
            "load",
            &[
                "n: running copies",
                "n: tasks that wait",
                "Messages by kind",
                ">other<",
                "class=\"shade\"",
                "<title>n: n</title>",
            ],
        ),
        ("staleness", &["Age of synchronisation", "Error of the caches"]),
        ("shards", &["25.0", "10.0", "–"]),
    ] {
        for part in parts {
            assert!(of(id).contains(part), "{id} lacks {part}:\n{}", of(id));
        }
    }
}

/// Every policy has a chart of each kind, on the same scales; together they have a limited number of tiles.
#[test]
fn policies_are_shown_side_by_side() {
    let mut many = snapshot("n");
    let cell = many.cell.as_mut().unwrap();
    let core = |core| Tile { core, busy: true, slowdown: Some(1.0), host: None };
    let cores = |total| CoresView { total, step: 1, listed: (0..total).map(core).collect() };
    cell.runs = (0..8).map(|at| RunView { policy: format!("p{at}"), ..cell.runs[0].clone() }).collect();
    cell.runs[7].history[1].copies_running = 300;
    let tiles = |many: &Snapshot| render(many)[5].matches("<rect class=\"fill\"").count();
    for (runs, total, shown) in [(8, 600, 8 * 150), (3, 400, 3 * 400), (3, 401, 3 * 201), (1, 600, 600)] {
        let cell = many.cell.as_mut().unwrap();
        cell.runs.iter_mut().for_each(|run| run.cores = CoresView::default());
        cell.runs[..runs].iter_mut().for_each(|run| run.cores = cores(total));
        assert_eq!(tiles(&many), shown, "{runs} policies with {total} cores");
    }
    let sections = render(&many);
    for at in 0..8 {
        assert!(sections[0].contains(&format!("p{at}</th>")), "{}", sections[0]);
        assert!(sections[6].contains(&format!("p{at}: running copies</text>")), "{}", sections[6]);
    }
    assert_eq!(sections[6].matches(">200</text>").count(), 8, "{}", sections[6]);
    assert_eq!(sections[4].matches("<li>").count(), 1, "all policies meet the same faults: {}", sections[4]);
}

/// A run that has not begun, without faults and injections.
fn expected<'a>(run: &'a str, policy: &'a str, cell: &'a Cell) -> ExpectedRun<'a> {
    ExpectedRun { run, policy, cell, seed: 1, faults: &[], injections: &[] }
}

/// The record of a run in a study without a sweep; `makespan_s` is the length of the run.
fn record(run: &str, policy: &str, makespan_s: f64) -> RunRecord {
    let mut measured = measured(policy, &[], 1, 1.0, 10);
    measured.summary.makespan_s = makespan_s;
    RunRecord::new(run, &measured)
}

/// With several threads, a run of a cell can begin after runs of another cell.
#[test]
fn ended_policies_of_a_cell_are_shown_when_the_page_returns_to_it() {
    let cells = [1, 2].map(|load| Cell::from([("load".to_owned(), json!(load))]));
    let runs = [("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 1)];
    let plan = runs.map(|(run, cell)| expected(run, run, &cells[cell]));
    let dashboard = Dashboard::new(PageHeader::default(), &plan);
    let begin =
        |id| StudyObserver::begin(&dashboard, &BegunRun { id, policy: id, number: 1, of: 5, jobs: 9 });
    let shown = || {
        let runs = dashboard.snapshot().cell.map(|cell| cell.runs).unwrap_or_default();
        runs.into_iter().map(|run| run.run).collect::<Vec<_>>()
    };
    for (began, ended) in [("a", "a"), ("b", "b"), ("d", "d")] {
        begin(began);
        dashboard.finished(&record(ended, ended, 10.0));
    }
    assert_eq!(shown(), ["d"]);
    begin("c");
    assert_eq!(shown(), ["a", "b"]);
    begin("e");
    assert_eq!(shown(), ["d"]);
    dashboard.finished(&record("c", "c", 10.0));
    begin("a");
    assert_eq!(shown(), [] as [&str; 0], "all runs of the cell had ended, and their details were dropped");
}

#[test]
fn concurrent_policies_keep_their_cores_when_one_ends_before_the_others() {
    let cell = Cell::new();
    let plan = ["a", "b"].map(|run| expected(run, run, &cell));
    let begin = |dashboard: &Dashboard, id: &str| {
        StudyObserver::begin(dashboard, &BegunRun { id, policy: id, number: 1, of: 2, jobs: 9 });
        let listed = vec![Tile { core: 0, busy: true, slowdown: Some(2.0), host: None }];
        let cores = CoresView { total: 1, step: 1, listed };
        let view = RunView { policy: id.to_owned(), running: true, at_s: 7.0, cores, ..RunView::default() };
        let curve = CurveView { policy: id.to_owned(), running: true, each: 1, runs: Vec::new() };
        dashboard.look(id, 1, Some((view, curve)));
    };
    let cores = |dashboard: &Dashboard| render(&dashboard.snapshot())[5].clone();
    let race = Dashboard::new(PageHeader::default(), &plan);
    begin(&race, "a");
    begin(&race, "b");
    for (ended, makespan_s, b) in [("a", 10.0, " at 7.00"), ("b", 20.0, ", ended at 20.0")] {
        race.finished(&record(ended, ended, makespan_s));
        let shown = cores(&race);
        assert!(
            shown.contains("a: 1 core, ended at 10.0") && shown.contains(&format!("b: 1 core{b}")),
            "{shown}"
        );
    }
    let sequence = Dashboard::new(PageHeader::default(), &plan);
    for run in ["a", "b"] {
        begin(&sequence, run);
        assert!(cores(&sequence).contains(&format!("{run}: 1 core at")));
        sequence.finished(&record(run, run, 10.0));
        assert_eq!(cores(&sequence), "");
    }
}

/// Runs taken over from an earlier process report only their ends, which are at different times.
#[test]
fn a_scheduled_injection_is_listed_once_for_all_policies() {
    let spec = "at = \"2s\"\nfor = \"90s\"\n\
                profile = { bernoulli = { slot = \"1s\", probability = 1, slowdown = 2 } }";
    let load =
        |spec| ScheduledInjection::load(spec, "".as_ref(), |_| Err(std::io::ErrorKind::NotFound.into()));
    let injections = [load(toml::from_str::<InjectionSpec>(spec).unwrap()).unwrap()];
    let cell = Cell::new();
    let runs = ["a", "b"].map(|run| ExpectedRun { injections: &injections, ..expected(run, run, &cell) });
    let dashboard = Dashboard::new(PageHeader::default(), &runs);
    for (run, makespan_s) in [("a", 10.0), ("b", 20.0)] {
        dashboard.finished(&record(run, run, makespan_s));
    }
    let shown = dashboard.snapshot();
    assert_eq!(shown.cell.as_ref().unwrap().runs.len(), 2);
    let section = &render(&shown)[4];
    assert_eq!(section.matches("<li>").count(), 1, "{section}");
    let says = "until 92.0\u{202f}s: all cores, bernoulli = {";
    assert!(section.contains(says), "{section}");
}

/// Injections from outside are kept with their run when another run begins, one entry for all hosts.
#[test]
fn injections_are_kept_after_their_run_has_ended() {
    let cell = Cell::new();
    let dashboard = Dashboard::new(PageHeader::default(), &["a", "b"].map(|run| expected(run, run, &cell)));
    let begin =
        |id| StudyObserver::begin(&dashboard, &BegunRun { id, policy: id, number: 1, of: 2, jobs: 9 });
    begin("a");
    let profile = "bernoulli = { slot = \"1s\", probability = 1, slowdown = 2 }";
    let profile = toml::from_str::<Interference>(profile).unwrap().resolve().unwrap();
    let share = |host: &str, cores, until| {
        let injection = Injection { profile: profile.clone(), seed: 1, cores, from: Time(5), until };
        (host.to_owned(), injection)
    };
    let shares = |until| [share("h1", CoreSet::below(3), until), share("h2", "7".parse().unwrap(), until)];
    dashboard.inject(1, &shares(Time::MAX)[..1]);
    dashboard.inject(1, &shares(Time::MAX));
    dashboard.inject(1, &shares(Time(2_000_000_000)));
    assert_eq!(dashboard.injections().len(), 2, "each host's cores are slowed down");
    dashboard.failed("a", "why");
    begin("b");
    assert!(dashboard.injections().is_empty());
    let section = &render(&dashboard.snapshot())[4];
    assert_eq!(section.matches("<li>").count(), 1, "{section}");
    let says = "until 2.00\u{202f}s, a, seed 1: cores 0-2 on h1, cores 7 on h2, bernoulli = {";
    assert!(section.contains(says), "{section}");
}

/// Numbers of injections are random, and an injection that is requested first can begin last.
#[test]
fn injections_apply_in_the_order_of_requests_and_are_listed_by_their_start() {
    let cell = Cell::new();
    let dashboard = Dashboard::new(PageHeader::default(), &[expected("a", "a", &cell)]);
    StudyObserver::begin(&dashboard, &BegunRun { id: "a", policy: "a", number: 1, of: 1, jobs: 9 });
    for (number, slowdown, from) in [(9, 2, 8), (7, 3, 1), (8, 4, 5), (9, 2, 8)] {
        let profile = format!("bernoulli = {{ slot = \"1s\", probability = 1, slowdown = {slowdown} }}");
        let profile = toml::from_str::<Interference>(&profile).unwrap().resolve().unwrap();
        let from = Time(from * 1_000_000_000);
        let injection =
            Injection { profile, seed: 1, cores: CoreSet::below(3), from, until: Time(9_000_000_000) };
        dashboard.inject(number, &[("h1".to_owned(), injection)]);
    }
    let ordered: Vec<f64> = dashboard.injections().iter().map(|one| one.from.as_secs_f64()).collect();
    assert_eq!(ordered, [8.0, 1.0, 5.0]);
    let section = &render(&dashboard.snapshot())[4];
    let listed: Vec<&str> = section.split("injection</b> at ").skip(1).map(|one| &one[..1]).collect();
    assert_eq!(listed, ["8", "5", "1"], "{section}");
}

#[test]
fn the_latest_injections_from_outside_are_listed_with_their_runs() {
    let mut many = snapshot("n");
    let injection = |at: u32| Disturbance {
        kind: "injection".to_owned(),
        at_s: at.into(),
        until_s: None,
        says: "cores".to_owned(),
    };
    for (at, run) in many.runs.iter_mut().enumerate() {
        (run.seed, run.injections) = (Some(at as u64), (0..40).map(injection).collect());
    }
    let section = &render(&many)[4];
    assert_eq!(section.matches("<b>injection</b>").count(), LISTED, "{section}");
    assert!(section.contains("and 30 more injections from outside"), "{section}");
    assert!(section.contains("other, n = n, seed 1: cores"), "{section}");
    assert_eq!(section.matches("n, n = n, seed 0: cores").count(), 10, "{section}");
    assert!(section.contains("<b>n</b> at 3.00"), "faults stay: {section}");
}

#[test]
fn names_on_the_live_page_are_escaped() {
    let hostile = "\"'><img src=x onerror=alert(1)>\u{202e}\u{0}</script><!--";
    for section in render(&snapshot(hostile)) {
        let markup = ["<img", "</script", "<!--"].iter().any(|part| section.contains(part));
        assert!(!markup, "{section}");
        assert!(!section.contains(['\u{0}', '\u{202e}']), "{section}");
    }
}

#[test]
fn sections_without_data_are_empty() {
    let sections = render(&Snapshot::default());
    assert_eq!(sections.len(), SECTIONS.len());
    assert!(sections[1..].iter().all(String::is_empty), "{sections:?}");
    assert!(!sections[0].contains("NaN"), "{}", sections[0]);
}

/// Other hosts report the counts. The sums must neither have too many kinds nor overflow.
#[test]
fn counts_of_hosts_are_bounded() {
    let kinds = volary_actors::message::KINDS.len();
    let by_kind = vec![u64::MAX; kinds + 5];
    let sample = ShardSample { by_kind, dropped: u64::MAX, ..ShardSample::default() };
    let counted = Counted::of_shards(["a", "b"].map(|name| (name.to_owned(), Some(&sample))));
    let run = RunView {
        messages: crate::dashboard::state::messages(&counted),
        dropped: u64::MAX,
        ..RunView::default()
    };
    assert!((1..=kinds).contains(&run.messages.len()));
    let cell = Some(CellView { runs: vec![run], ..CellView::default() });
    let sections = render(&Snapshot { cell, ..Snapshot::default() });
    assert!(sections.iter().any(|section| section.contains(">other<")));
}

#[test]
fn names_with_markup_are_shown_as_text() {
    let name = "</title><script>alert(1)</script>\u{0}\u{2067}";
    let header = PageHeader { title: name.to_owned(), folder: name.to_owned(), ..PageHeader::default() };
    let page = html(&header, "77");
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(page.contains("&lt;/title&gt;") && !page.contains(['\u{0}', '\u{2067}']));
    assert!(page.contains("<script nonce=\"77\">") && policy(Some("77")).contains("script-src 'nonce-77'"));
    assert!(
        !policy(None).contains("-src 'nonce") && policy(None).starts_with("default-src 'none'; base-uri")
    );
}

#[test]
fn metrics_for_prometheus_escape_labels() {
    let text = metrics(&snapshot("a\"b\\c\nd"));
    let label = r#"policy="a\"b\\c\nd""#;
    assert!(text.contains("volary_jobs_finished{policy=\"other\"} 25\n"), "{text}");
    assert!(text.contains(&format!("volary_runs{{{label},stage=")), "{text}");
    assert!(text.contains("volary_runs{policy=\"other\",stage=\"finished\"} 0\n"), "{text}");
    assert!(text.contains(&format!("volary_clock_seconds{{{label},cell=\"")), "{text}");
    assert!(text.contains("# TYPE volary_messages counter\n"), "{text}");
    let is_sample = |line: &str| {
        line.starts_with('#')
            || line.rsplit_once("} ").is_some_and(|(_, value)| value.parse::<f64>().is_ok_and(f64::is_finite))
    };
    assert!(text.lines().all(is_sample), "{text}");
}
