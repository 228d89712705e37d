//! Tests that a bundled experiment is the same experiment on a machine without its files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use volary_actors::base::JobId;
use volary_actors::catalog::Catalog;
use volary_engine::workload::Workload;
use volary_experiment::config::{Bundle, Experiment, Overrides, Repeat};

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A bundle after a round trip through both encodings in which it may be sent.
fn sent(bundle: &Bundle) -> Bundle {
    let json: Bundle = serde_json::from_slice(&serde_json::to_vec(bundle).unwrap()).unwrap();
    assert_eq!(json, *bundle);
    let config = bincode::config::standard();
    let bytes = bincode::serde::encode_to_vec(bundle, config).unwrap();
    bincode::serde::decode_from_slice(&bytes, config).unwrap().0
}

/// Arrival, number of tasks and first work of every job of the first point.
fn jobs(experiment: &Experiment) -> Vec<(u64, u32, u64)> {
    let world = &experiment.points[0].resolved;
    let (seed, site) = (experiment.seed, world.cluster.site());
    let traces = experiment.traces();
    let workload = Workload::build(&world.workload, &world.service, seed, site, &traces).unwrap();
    let job =
        |job: JobId| (workload.job(job).arrival.0, workload.tasks(job), workload.work(job.task(0).copy(0)).0);
    (0..workload.jobs()).map(|n| job(JobId(n))).collect()
}

fn assert_same(here: &Experiment, there: &Experiment) {
    let ids =
        |experiment: &Experiment| experiment.runs(None).into_iter().map(|unit| unit.id).collect::<Vec<_>>();
    assert_eq!(ids(here), ids(there), "{}", here.name);
    assert!(here.points == there.points, "{}: other points", here.name);
    assert_eq!((&here.name, &here.claims, &here.warnings), (&there.name, &there.claims, &there.warnings));
    assert_eq!((&here.run, here.seed, here.repeat), (&there.run, there.seed, there.repeat));
}

#[test]
fn every_shipped_experiment_can_be_bundled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for part in ["experiments", "topologies"] {
        copy(&root.join("..").join(part), &folder.path().join(part));
    }
    // The list of pinned experiments names all shipped experiments.
    let pinned = fs::read_to_string(root.join("tests/pinned/experiments.tsv")).unwrap();
    let names: BTreeSet<&str> = pinned.lines().map(|line| line.split('\t').next().unwrap()).collect();
    // These experiments read traces that may not be redistributed and that no generator can replace.
    let bundled: Vec<_> = names
        .iter()
        .filter(|name| !name.starts_with("traces/"))
        .map(|name| {
            let file = folder.path().join(format!("experiments/{name}.toml"));
            let here = Experiment::load(&file, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
            let bundle = sent(&here.bundle().unwrap());
            (here, bundle)
        })
        .collect();
    let before: Vec<_> = bundled.iter().map(|(here, _)| jobs(here)).collect();
    folder.close().unwrap();
    for ((here, bundle), before) in bundled.iter().zip(before) {
        let there = Experiment::from_bundle(bundle).unwrap_or_else(|error| panic!("{error}"));
        assert_same(here, &there);
        assert_eq!(before, jobs(&there), "{}: other jobs", here.name);
    }
}

const TRACED: &str = r#"title = "a trace with a generator to stand in"
cluster = { nodes = 4 }
workload = { trace = { file = "t.tr", jobs = 3, fallback = "yahoo-like" } }
policy = [{ random = {} }, { round-robin = {} }]
"#;

/// A bundle contains the trace, or the fact that it was missing, and the overrides.
#[test]
fn a_missing_trace_stays_missing_in_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let (file, trace) = (folder.path().join("x.toml"), folder.path().join("t.tr"));
    fs::write(&file, TRACED).unwrap();
    let overrides = Overrides {
        set: vec!["cluster.nodes=5".into()],
        policies: vec!["random".into()],
        seed: Some(9),
        repeat: Some(Repeat::Auto),
        runtime: None,
    };
    let without = Experiment::load(&file, &overrides).unwrap();
    let missing = sent(&without.bundle().unwrap());
    fs::write(&trace, "0.5 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n").unwrap();
    let there = Experiment::from_bundle(&missing).unwrap();
    assert_same(&without, &there);
    assert_eq!(there.points[0].resolved.trace, None, "the trace must not be read from the disk");
    assert_eq!((there.points.len(), there.points[0].resolved.cluster.node_count()), (1, 5));
    assert!(there.warnings.iter().any(|text| text.contains("which replaces it")), "{:?}", there.warnings);
    assert_eq!(jobs(&there).len(), 3);

    let with = Experiment::load(&file, &overrides).unwrap();
    let found = sent(&with.bundle().unwrap());
    fs::remove_file(&trace).unwrap();
    let there = Experiment::from_bundle(&found).unwrap();
    assert_same(&with, &there);
    assert_eq!(jobs(&there), [(0, 2, 1_000_000_000), (500_000_000, 1, 3_000_000_000)]);
    assert_ne!(there.points[0].id, without.points[0].id, "the trace makes another world");
}

/// A bundle is not trusted, so none of its names may open a file of this machine.
#[test]
fn a_bundle_reads_only_its_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.toml");
    fs::write(&secret, "bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }\n").unwrap();
    let text = format!(
        "title = \"x\"\ncluster = {{ nodes = 4 }}\nworkload = {{ yahoo-like = {{ jobs = 2 }} }}\n\
         policy = [{{ random = {{}} }}]\ninterference = {{ profile = {secret:?} }}\n"
    );
    let file = folder.path().join("x.toml");
    fs::write(&file, text).unwrap();
    let here = Experiment::load(&file, &Overrides::default()).unwrap();
    let bundle = here.bundle().unwrap();
    assert!(Experiment::from_bundle(&bundle).is_ok());
    let mut lacking = bundle.clone();
    lacking.files.files.retain(|(name, _)| *name != secret);
    assert!(lacking != bundle);
    let error = Experiment::from_bundle(&lacking).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("secret.toml"), "{error}");
    // The error must not reveal the contents of the folder.
    assert!(!error.contains("similar") && error.contains("no folder"), "{error}");
    lacking.files.files.clear();
    assert!(Experiment::from_bundle(&lacking).is_err());
    // Files are read from the bundle, even if the disk has other contents.
    let mut other = bundle;
    other
        .files
        .files
        .push((secret, b"bernoulli = { slot = \"1s\", probability = 0.9, slowdown = 2 }".to_vec()));
    assert_ne!(Experiment::from_bundle(&other).unwrap().points[0].id, here.points[0].id);
}

#[test]
fn a_text_above_the_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    fs::write(&file, vec![b'#'; (volary_experiment::files::LONGEST_TEXT + 1) as usize]).unwrap();
    let error = Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("longer than 16 MiB") && error.contains("help"), "{error}");
}
