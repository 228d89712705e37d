//! Experiment files from the user's side: what plans, and what is said about those that do not.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::path::{Path, PathBuf};

use volary::spec::error::Text;
use volary::spec::{Experiment, Overrides, Repeat, SpecError};

/// A small experiment; tests change a line of it.
const GOOD: &str = r#"title = "two policies"
seed = 7

[cluster]
nodes = 10
cores = 2

[workload.synthetic]
jobs = 100
tasks = 4
interarrival = { exponential = { mean = "100ms" } }

[service]
demand = { exponential = { mean = "1s" } }

[network]
one_way = "1ms"
loss = 0.01

[interference]
bernoulli = { slot = "100ms", probability = 0.1, slowdown = 4 }

[[policy]]
latin-square = { order = 2 }

[[policy]]
sparrow = { probe_ratio = 2 }

[sweep]
"service.correlated" = [true, false]
"network.loss" = [0.0, 0.01]

[[claim]]
says = "latin square is shorter"
when = { "service.correlated" = false }
check = ["latin-square.response_s.p50 < sparrow.response_s.p50"]
"#;

fn plan_with(text: &str, overrides: &Overrides) -> Result<Experiment, SpecError> {
    let text = Text { name: "e.toml".into(), text: text.into(), folder: None };
    Experiment::plan(Path::new("e.toml"), text, overrides)
}

fn plan(text: &str) -> Result<Experiment, SpecError> {
    plan_with(text, &Overrides::default())
}

fn message(text: &str) -> String {
    match plan(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn cells_times_policies_in_written_order() {
    let experiment = plan(GOOD).unwrap();
    let points: Vec<_> = experiment
        .points
        .iter()
        .map(|p| (p.cell["service.correlated"].clone(), p.cell["network.loss"].clone(), p.label.as_str()))
        .collect();
    assert_eq!(points.len(), 8);
    assert_eq!(points[0], (true.into(), 0.0.into(), "latin-square"));
    assert_eq!(points[1], (true.into(), 0.0.into(), "sparrow"));
    assert_eq!(points[2].1, 0.01);
    assert_eq!(points[4].0, false);
    assert_eq!(experiment.points[2].resolved.network.loss.mean(), 0.01);
    assert_eq!(experiment.cells().len(), 4);
    assert_eq!(experiment.labels(), ["latin-square", "sparrow"]);
    assert_eq!(experiment.points[0].resolved.cluster.layout(0).workers(), 20);
}

#[test]
fn ids_follow_what_a_result_depends_on() {
    let ids = |text: &str, overrides: &Overrides| -> Vec<String> {
        plan_with(text, overrides).unwrap().units(None).into_iter().map(|unit| unit.id).collect()
    };
    let base = ids(GOOD, &Overrides::default());
    let mut distinct = base.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), base.len());
    // Words and comments don't matter.
    let words = GOOD.replace("two policies", "the same").replace("seed = 7", "# more\nseed = 7");
    assert_eq!(ids(&words, &Overrides::default()), base);
    // A parameter of one policy touches that policy alone.
    let other = ids(&GOOD.replace("probe_ratio = 2", "probe_ratio = 3"), &Overrides::default());
    assert!(base.iter().zip(&other).enumerate().all(|(i, (a, b))| (a == b) == (i % 2 == 0)));
    for change in [("slowdown = 4", "slowdown = 5"), ("nodes = 10", "nodes = 11"), ("seed = 7", "seed = 8")] {
        let other = ids(&GOOD.replace(change.0, change.1), &Overrides::default());
        assert!(base.iter().zip(&other).all(|(a, b)| a != b), "{change:?}");
    }
    // Replication 1 under seed 7 is replication 0 under seed 8.
    let twice = Overrides { repeat: Some(Repeat::Times(2)), ..Overrides::default() };
    let eight = Overrides { seed: Some(8), ..Overrides::default() };
    assert_eq!(ids(GOOD, &twice)[1], ids(GOOD, &eight)[0]);
}

#[test]
fn shards_share_the_units_out() {
    let experiment = plan(GOOD).unwrap();
    let all = experiment.units(None);
    let mut dealt = Vec::new();
    for index in 1..=3 {
        dealt.extend(experiment.units(format!("{index}/3").parse().ok()));
    }
    dealt.sort_by_key(|unit| (unit.point, unit.replication));
    assert_eq!(dealt, all);
    for bad in ["0/3", "4/3", "x", "1/0", "1"] {
        assert!(bad.parse::<volary::spec::Shard>().is_err(), "{bad}");
    }
}

#[test]
fn overrides_reach_everything() {
    let overrides = Overrides {
        set: ["network.loss=0.01", "policy.sparrow.probe_ratio=3", "cluster.nodes=20", "run.until=5s"]
            .map(String::from)
            .to_vec(),
        policies: vec!["sparrow".into()],
        seed: Some(9),
        repeat: Some(Repeat::Auto),
        runtime: None,
    };
    let experiment = plan_with(GOOD, &overrides).unwrap();
    assert_eq!((experiment.points.len(), experiment.seed, experiment.repeat), (2, 9, Repeat::Auto));
    assert_eq!(experiment.points[0].cell["network.loss"], 0.01);
    assert_eq!(experiment.points[0].resolved.cluster.node_count(), 20);
    assert_eq!(experiment.run.until.unwrap().as_secs_f64(), 5.0);
    assert!(serde_json::to_string(&experiment.points[0].policy).unwrap().contains("\"probe_ratio\":3.0"));
}

/// What is changed, what to, where the error points, and words it must hold.
type Mistake = (&'static str, &'static str, &'static str, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    ("seed = 7", "sede = 7", ":2:1", &["unknown key `sede`", "did you mean `seed`?"]),
    ("cores = 2", "core = 2", ":6:1", &["unknown key `core`", "did you mean `cores`?"]),
    ("mean = \"100ms\"", "men = \"100ms\"", ":11:34", &["unknown key `men`", "did you mean `mean`?"]),
    (
        "exponential = { mean = \"1s\" }",
        "expo = { mean = \"1s\" }",
        ":14:12",
        &["unknown name `expo`", "exponential"],
    ),
    ("one_way = \"1ms\"", "one_way = \"1 parsec\"", ":17:11", &["network.one_way", "unit of time"]),
    ("one_way = \"1ms\"", "one_way = 1", ":17:11", &["network.one_way", "a number with its unit"]),
    ("mean = \"1s\"", "mean = \"-1s\"", ":14:35", &["service.demand.exponential.mean", "at least zero"]),
    ("slowdown = 4", "slowdown = nan", ":21:61", &["interference.bernoulli.slowdown"]),
    ("probability = 0.1", "probability = 1.1", ":21:45", &["interference.bernoulli.probability", "1.1"]),
    ("[0.0, 0.01]", "[0.0, 1.5]", ":31:24", &["1.5", "network.loss = 1.5"]),
    (
        "order = 2",
        "order = 30",
        ":24:26",
        &["latin-square", "exceeds the number of servers", "cluster.nodes"],
    ),
    ("nodes = 10\n", "nodes = 0\n", ":5:9", &["without nodes", "nodes = 1 or more"]),
    ("nodes = 10\n", "", ":4:2", &["`cluster` lacks `nodes`", "topology"]),
    ("seed = 7", "repeat = 0", ":2:10", &["repeat", "at least 1"]),
    ("seed = 7", "repeat = \"often\"", ":2:10", &["repeat", "auto"]),
    ("seed = 7", "precision = 2.0", ":2:13", &["precision", "between 0 and 1"]),
    ("seed = 7", "seed = -7", ":2:8", &["seed"]),
    ("seed = 7", "seed = ", ":2:8", &["quoted"]),
    ("seed = 7", "title = \"again\"", ":2:1", &["duplicate key", "keep one"]),
    ("title = \"two policies\"\n", "", ":1:1", &["the file lacks `title`"]),
    (
        "demand = { exponential = { mean = \"1s\" } }",
        "",
        ":13:2",
        &["service.demand", "a synthetic workload needs it"],
    ),
    (
        "sparrow = { probe_ratio = 2 }",
        "sparow = {}",
        ":27:1",
        &["unknown name `sparow`", "did you mean `sparrow`?"],
    ),
    ("probe_ratio = 2", "probe_ration = 2", ":27:13", &["did you mean `probe_ratio`?"]),
    ("sparrow = { probe_ratio = 2 }", "latin-square = {}", ":27:1", &["two policies are called", "label ="]),
    ("sparrow = { probe_ratio = 2 }", "sparrow = {}\nlabel = \"a b\"", ":28:9", &["not a label"]),
    ("sparrow = { probe_ratio = 2 }", "sparrow = {}\nrandom = {}", ":26:1", &["two policies"]),
    ("sparrow = { probe_ratio = 2 }", "label = \"x\"", ":26:1", &["no policy is named"]),
    (
        "\"service.correlated\" =",
        "\"service.corelated\" =",
        ":30:1",
        &["unknown key `corelated`", "did you mean `correlated`?"],
    ),
    ("[true, false]", "[true, \"no\"]", ":30:31", &["true, false, or the share", "service.correlated = no"]),
    ("[true, false]", "true", ":30:24", &["a list"]),
    ("< sparrow", "< sparow", ":36:41", &["unknown policy `sparow`", "did you mean `sparrow`?"]),
    ("sparrow.response_s.p50", "sparrow.respons_s.p50", ":36:49", &["did you mean `response_s`?"]),
    ("p50 < sparrow", "p50 << sparrow", ":36:40", &["a number or the label"]),
    (
        "{ \"service.correlated\" = false }",
        "{ \"service.corelated\" = false }",
        ":35:32",
        &["unknown swept key", "did you mean"],
    ),
    ("\" = false }", "\" = 3 }", ":35:33", &["never 3", "true, false"]),
    (
        "check = [\"latin-square.response_s.p50 < sparrow.response_s.p50\"]",
        "check = []",
        ":36:9",
        &["without a check"],
    ),
    (
        "[workload.synthetic]\njobs = 100\ntasks = 4",
        "[workload.trace]\nfile = \"nowhere.tr\"\njobs = 4",
        ":9:8",
        &["nowhere.tr", "VOLARY_TRACES", "fallback"],
    ),
    ("[service]", "[workload.yahoo-like]\n[service]", ":8:2", &["workload", "exactly one"]),
    ("[interference]", "[interference]\nprofile = \"no.toml\"", ":21:11", &["no.toml", "cannot read"]),
    (
        "[interference]",
        "[[network.fault]]\ncrash = { who = [\"nodes:5-50\"], at = \"1s\" }\n[interference]",
        ":21:",
        &["network.fault", "nodes:5-50"],
    ),
    (
        "[interference]",
        "[[network.fault]]\ncrash = { who = [\"node:1\", \"client:0\"], at = \"1s\" }\n[interference]",
        ":21:",
        &["\"client:0\" would crash a client", "outside the experiment"],
    ),
    (
        "[interference]",
        "[[network.fault]]\ncrash = { who = [\"all\"], at = \"1s\" }\n[interference]",
        ":21:",
        &["\"all\" would crash a client"],
    ),
];

#[test]
fn every_mistake_is_located_and_has_a_remedy() {
    let mut wrong = Vec::new();
    for (from, to, place, words) in MISTAKES {
        assert!(GOOD.contains(from), "{from}");
        let text = message(&GOOD.replace(from, to));
        let place = format!("e.toml{place}");
        let missing: Vec<_> = words.iter().filter(|word| !text.contains(**word)).collect();
        if !text.contains(&place) || !missing.is_empty() || !text.contains(" = help: ") {
            wrong.push(format!("{from:?} -> {to:?}\n  wanted {place}, missing {missing:?}\n{text}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_policy_is_refused() {
    let text: String = GOOD.split("[[policy]]").next().unwrap().replace("seed = 7", "seed = 7\npolicy = []");
    assert!(
        message(&text).contains("e.toml:3:10") && message(&text).contains("no policy"),
        "{}",
        message(&text)
    );
    let without = GOOD.split("[[policy]]").next().unwrap();
    assert!(message(without).contains("the file lacks `policy`"), "{}", message(without));
}

#[test]
fn overrides_are_located_in_themselves() {
    for (set, words) in [
        ("service.corelated=true", &["--set:1:1", "did you mean `correlated`?"][..]),
        ("network.loss=2", &["--set:1:14"][..]),
        ("policy.sparow.probe_ratio=2", &["--set:1:1", "did you mean `policy.sparrow`?"][..]),
    ] {
        let overrides = Overrides { set: vec![set.into()], ..Overrides::default() };
        let text = plan_with(GOOD, &overrides).unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{set}: {text}");
    }
    let overrides = Overrides { policies: vec!["sparow".into()], ..Overrides::default() };
    let text = plan_with(GOOD, &overrides).unwrap_err().to_string();
    assert!(text.contains("--policy") && text.contains("did you mean `sparrow`?"), "{text}");
}

#[test]
fn an_error_is_drawn_like_a_compiler_draws_it() {
    let text = message(&GOOD.replace("cores = 2", "core = 2"));
    assert_eq!(
        text,
        "unknown key `core`\n --> e.toml:6:1\n  |\n6 | core = 2\n  | ^^^^ expected `nodes`, `cores`, \
         `schedulers`, `topology` or `speed`\n  = help: did you mean `cores`?"
    );
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("experiments/a")).unwrap();
    fs::create_dir_all(folder.path().join("profiles")).unwrap();
    folder
}

fn write(folder: &tempfile::TempDir, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(path);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn files_are_relative_to_the_file_that_names_them() {
    let folder = folder();
    write(
        &folder,
        "profiles/p.toml",
        "bernoulli = { slot = \"1s\", probability = 0.5, slowdown = { empirical = { file = \"s.txt\" } } }\n",
    );
    write(&folder, "profiles/s.txt", "# factors\n2\n\n4.0\n");
    write(&folder, "experiments/a/demand.txt", "1s\n250ms # short\n");
    write(&folder, "experiments/a/t.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n");
    let text = GOOD
        .replace(
            "bernoulli = { slot = \"100ms\", probability = 0.1, slowdown = 4 }",
            "profile = \"../../profiles/p.toml\"",
        )
        .replace("{ exponential = { mean = \"1s\" } }", "{ empirical = { file = \"demand.txt\" } }")
        .replace("[workload.synthetic]\njobs = 100\ntasks = 4", "[workload.trace]\nfile = \"t.tr\"")
        .replace("\"network.loss\" = [0.0, 0.01]", "\"interference.bernoulli.probability\" = [0.1, 0.2]");
    let file = write(&folder, "experiments/a/x.toml", &text);
    let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
    assert_eq!(experiment.name, "a/x");
    let json = serde_json::to_value(experiment.points[2].resolved.as_ref()).unwrap();
    assert_eq!(json["interference"]["bernoulli"]["probability"], 0.2);
    assert_eq!(
        json["interference"]["bernoulli"]["slowdown"]["empirical"]["values"],
        serde_json::json!([2.0, 4.0])
    );
    assert_eq!(json["service"]["demand"]["empirical"]["values"], serde_json::json!(["1s", "250ms"]));
    assert!(json["trace"].as_str().unwrap().ends_with("t.tr"));
    // The trace's content counts, its name does not.
    let id = |experiment: &Experiment| experiment.points[0].id.clone();
    let same = write(&folder, "experiments/a/y.toml", text.replace("t.tr", "u.tr"));
    write(&folder, "experiments/a/u.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n");
    assert_eq!(id(&Experiment::load(&same, &Overrides::default()).unwrap()), id(&experiment));
    write(&folder, "experiments/a/u.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.5\n");
    assert_ne!(id(&Experiment::load(&same, &Overrides::default()).unwrap()), id(&experiment));
}

#[test]
fn mistakes_in_named_files_are_located_there() {
    let folder = folder();
    let bursts = "bernoulli = { slot = \"100ms\", probability = 0.1, slowdown = 4 }";
    let text = GOOD.replace(bursts, "profile = \"../../profiles/p.toml\"");
    let file = write(&folder, "experiments/a/x.toml", &text);
    for (profile, place) in [
        ("bernoulli = { slot = \"1s\", probability = 2, slowdown = 2 }", "p.toml:1:42"),
        ("\nbernouli = {}", "p.toml:2:1"),
        ("a = ", "p.toml:1:5"),
        ("profile = \"q.toml\"", "p.toml:1:1"),
    ] {
        write(&folder, "profiles/p.toml", profile);
        let error = Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains(place), "{profile}: {error}");
    }
    let text = GOOD.replace("{ exponential = { mean = \"1s\" } }", "{ empirical = { file = \"d.txt\" } }");
    let file = write(&folder, "experiments/a/x.toml", &text);
    write(&folder, "experiments/a/d.txt", "1s\n2 parsec\n");
    let error = Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("d.txt:2:1"), "{error}");
    let text = GOOD.replace("nodes = 10\ncores = 2", "topology = \"t.toml\"");
    let file = write(&folder, "experiments/a/x.toml", &text);
    let error = Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("x.toml:5:12") && error.contains("t.toml"), "{error}");
    write(&folder, "experiments/a/t.toml", "title = \"t\"\nshape = { star = { nods = 3 } }\n");
    let error = Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("t.toml:2:20") && error.contains("did you mean `nodes`?"), "{error}");
}

#[test]
fn a_topology_gives_the_machines() {
    let folder = folder();
    let text = GOOD
        .replace("nodes = 10\ncores = 2", "topology = \"t.toml\"\nschedulers = 2")
        .replace("one_way = \"1ms\"\n", "");
    let file = write(&folder, "experiments/a/x.toml", &text);
    let topology = "title = \"t\"\ncores = 2\nspeed = 0.5\n\
                    shape = { leaf-spine = { racks = 2, nodes_per_rack = 3 } }\n\
                    [link.rack]\none_way = \"10us\"\n[link.fabric]\none_way = \"50us\"\n\
                    [[group]]\nname = \"big\"\non = [\"rack:1\"]\ncores = 4\n";
    write(&folder, "experiments/a/t.toml", topology);
    let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
    let cluster = &experiment.points[0].resolved.cluster;
    assert_eq!((cluster.nodes.as_slice(), cluster.core_count()), (&[(3, 2), (3, 4)][..], 18));
    assert_eq!(cluster.capacity(1), 9.0);
    let machines = cluster.machines(0, 1);
    assert_eq!(machines.cores.speed(17), 0.5);
    assert_ne!(machines.cores.rack(0), machines.cores.rack(17));
    let (node, layout) = (machines.layout.node(0), &machines.layout);
    let class = |a, b| {
        machines.links.classes()[machines.links.class(layout.endpoint(a), layout.endpoint(b))].name.clone()
    };
    assert_ne!(class(node, layout.node(1)), class(node, layout.node(5)));
}

#[test]
fn unreadable_files_are_explained() {
    let folder = folder();
    let file = write(&folder, "experiments/a/fig6.toml", GOOD);
    let error =
        Experiment::load(&file.with_file_name("fig5.toml"), &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("fig6.toml"), "{error}");
    let error = Experiment::load(&folder.path().join("nowhere/x.toml"), &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("there is no folder"), "{error}");
    let bad = write(&folder, "experiments/a/bad.toml", b"title = \"x\"\n# \xff\n");
    let error = Experiment::load(&bad, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("bad.toml:2:3") && error.contains("UTF-8"), "{error}");
}

#[test]
fn every_experiment_of_the_repository_plans() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments")];
    let mut planned = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Profiles are parts of experiments.
                if path.file_name().is_none_or(|name| name != "profiles") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|suffix| suffix == "toml") {
                let experiment =
                    Experiment::load(&path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
                assert!(!experiment.points.is_empty(), "{} has nothing to run", path.display());
                planned += 1;
            }
        }
    }
    assert!(planned > 5, "only {planned} experiments were found");
}

#[test]
fn the_offered_load_is_that_of_the_laws() {
    use volary::spec::describe::load;
    use volary::workload::Traces;

    let traces = Traces::new(Vec::new());
    let of = |text: &str| load(&plan(text).unwrap().points[0].resolved, 7, &traces);
    // 10 jobs a second of 4 tasks of 1 s on 20 cores that do 1 − 0.1 · (1 − 1/4) of their work.
    let found = of(GOOD).unwrap();
    assert!((found.offered - 40.0 / (20.0 * 0.925)).abs() < 1e-9, "{found:?}");
    // Drawn jobs of a generator come near the same formula: the Yahoo facts give 4,500 cores about 3/4.
    // A trace-like generator has no copies that differ, so the sweep is left out.
    let yahoo = GOOD.split("[sweep]").next().unwrap()
        .replace("[workload.synthetic]\njobs = 100\ntasks = 4\ninterarrival = { exponential = { mean = \"100ms\" } }", "[workload.yahoo-like]")
        .replace("demand = { exponential = { mean = \"1s\" } }", "")
        .replace("nodes = 10\ncores = 2", "nodes = 4_500");
    let found = of(&yahoo).unwrap();
    assert!((0.5..1.2).contains(&found.offered), "{found:?}");
    // Slowdowns without a closed form leave it open.
    assert_eq!(
        of(&GOOD.replace("slowdown = 4", "slowdown = { lognormal = { median = 4.0, sigma = 1.0 } }")),
        None
    );
    let text = volary::spec::describe::text(&plan(GOOD).unwrap(), None);
    assert!(text.contains("WARNING") && text.contains("ρ = 2.162"), "{text}");
}

mod fuzz {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,200}") {
            let _ = plan(&text).map_err(|error| error.to_string());
        }

        /// Cut, doubled and overwritten pieces of a good file reach further than noise does.
        #[test]
        fn damaged_files_never_panic(from in 0..GOOD.len(), len in 0..60usize, to in 0..GOOD.len(), noise in "[\\PC\n]{0,6}") {
            let floor = |at: usize| (0..=at.min(GOOD.len())).rev().find(|&i| GOOD.is_char_boundary(i)).unwrap_or(0);
            let (from, end, to) = (floor(from), floor(from + len), floor(to));
            let piece = &GOOD[from..end.max(from)];
            let mut text = GOOD.to_owned();
            text.insert_str(to, &format!("{piece}{noise}"));
            let _ = plan(&text).map_err(|error| error.to_string());
            let cut = format!("{}{noise}{}", &GOOD[..from], &GOOD[end.max(from)..]);
            let _ = plan(&cut).map_err(|error| error.to_string());
        }

        #[test]
        fn arbitrary_overrides_never_panic(set in "[a-z.=\"\\[\\]{}0-9]{0,30}") {
            let overrides = Overrides { set: vec![set], ..Overrides::default() };
            let _ = plan_with(GOOD, &overrides).map_err(|error| error.to_string());
        }

        #[test]
        fn arbitrary_checks_never_panic(check in "[a-z.<>=+*/()\\[\\]0-9 %é-]{0,40}") {
            let text = GOOD.replace("latin-square.response_s.p50 < sparrow.response_s.p50", &check);
            let _ = plan(&text).map_err(|error| error.to_string());
        }
    }
}
