//! Tests of files that experiments name: the places where they are searched, and errors in them.

use std::fs;
use std::path::{Path, PathBuf};

use volary_experiment::config::presets::{PRESETS, Preset};
use volary_experiment::config::{Experiment, Overrides, profile};

use super::GOOD;
use crate::common::binary::changed;

const DEMAND: &str = "{ exponential = { mean = \"1s\" } }";
/// A file with the profile of the small experiment, and the key that names the file.
const PROFILE: (&str, &str) = (
    "bernoulli = { slot = \"100ms\", probability = 0.1, slowdown = 4 }",
    "profile = \"../../profiles/p.toml\"",
);

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
fn paths_are_relative_to_the_file_that_names_them() {
    let folder = folder();
    write(
        &folder,
        "profiles/p.toml",
        "bernoulli = { slot = \"1s\", probability = 0.5, slowdown = { empirical = { file = \"s.txt\" } } }\n",
    );
    write(&folder, "profiles/s.txt", "# factors\n2\n\n4.0\n");
    write(&folder, "experiments/a/demand.txt", "\u{feff}1s\n250ms # short\n");
    write(&folder, "experiments/a/t.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n");
    let synthetic = "[workload.synthetic]\njobs = 100\ntasks = 4";
    let changes = [
        PROFILE,
        (DEMAND, "{ empirical = { file = \"demand.txt\" } }"),
        (synthetic, "[workload.trace]\nfile = \"t.tr\""),
        ("\"network.loss\" = [0.0, 0.01]", "\"interference.bernoulli.probability\" = [0.1, 0.2]"),
    ];
    let text = changed(GOOD, &changes);
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
    // The id depends on the trace's content, not on its name.
    let id = |experiment: &Experiment| experiment.points[0].id.clone();
    let same = write(&folder, "experiments/a/y.toml", changed(&text, &[("t.tr", "u.tr")]));
    write(&folder, "experiments/a/u.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.0\n");
    assert_eq!(id(&Experiment::load(&same, &Overrides::default()).unwrap()), id(&experiment));
    write(&folder, "experiments/a/u.tr", "0.0 2 1.5 1.0 2.0\n1.0 1 3.0 3.5\n");
    assert_ne!(id(&Experiment::load(&same, &Overrides::default()).unwrap()), id(&experiment));
}

#[test]
fn a_mistake_in_a_named_file_is_reported_in_that_file() {
    let folder = folder();
    let file = write(&folder, "experiments/a/x.toml", changed(GOOD, &[PROFILE]));
    let said = || Experiment::load(&file, &Overrides::default()).unwrap_err().to_string();
    for (profile, place) in [
        ("bernoulli = { slot = \"1s\", probability = 2, slowdown = 2 }", "p.toml:1:42"),
        ("\nbernouli = {}", "p.toml:2:1"),
        ("a = ", "p.toml:1:5"),
        ("profile = \"q.toml\"", "p.toml:1:1"),
    ] {
        write(&folder, "profiles/p.toml", profile);
        assert!(said().contains(place), "{profile}: {}", said());
    }
    let demand = changed(GOOD, &[(DEMAND, "{ empirical = { file = \"d.txt\" } }")]);
    write(&folder, "experiments/a/x.toml", demand);
    write(&folder, "experiments/a/d.txt", "1s\n2 parsec\n");
    assert!(said().contains("d.txt:2:1"), "{}", said());
    let topology = changed(GOOD, &[("nodes = 10\ncores = 2", "topology = \"t.toml\"")]);
    write(&folder, "experiments/a/x.toml", topology);
    assert!(said().contains("x.toml:5:12") && said().contains("t.toml"), "{}", said());
    write(&folder, "experiments/a/t.toml", "title = \"t\"\nshape = { star = { nods = 3 } }\n");
    let error = said();
    assert!(error.contains("t.toml:2:20") && error.contains("did you mean `nodes`?"), "{error}");
}

#[test]
fn a_topology_determines_the_machines_of_the_cluster() {
    let folder = folder();
    let machines = ("nodes = 10\ncores = 2", "topology = \"t.toml\"\nschedulers = 2");
    let text = changed(GOOD, &[machines, ("one_way = \"1ms\"\n", "")]);
    let file = write(&folder, "experiments/a/x.toml", text);
    let topology = "title = \"t\"\ncores = 2\nspeed = 0.5\n\
                    shape = { leaf-spine = { racks = 2, nodes_per_rack = 3 } }\n\
                    [link.rack]\none_way = \"10us\"\n[link.fabric]\none_way = \"50us\"\n\
                    [[group]]\nname = \"big\"\non = [\"rack:1\"]\ncores = 4\n";
    write(&folder, "experiments/a/t.toml", topology);
    let experiment = Experiment::load(&file, &Overrides::default()).unwrap();
    let cluster = &experiment.points[0].resolved.cluster;
    assert_eq!((cluster.nodes.as_slice(), cluster.core_count()), (&[(3, 2), (3, 4)][..], 18));
    assert_eq!(cluster.capacity(1), 9.0);
    let machines = cluster.machines(&experiment.points[0].policy, 1);
    assert_eq!(machines.cores.speed(17), 0.5);
    assert_ne!(machines.cores.rack(0), machines.cores.rack(17));
    let (node, layout) = (machines.layout.node(0), &machines.layout);
    let class = |a, b| {
        machines.links.classes()[machines.links.class(layout.endpoint(a), layout.endpoint(b))].name.clone()
    };
    assert_ne!(class(node, layout.node(1)), class(node, layout.node(5)));
}

#[test]
fn the_error_for_an_unreadable_file_explains_the_reason() {
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
fn a_profile_can_be_read_without_an_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let load = |text: &str| {
        fs::write(&file, text).unwrap();
        profile(&file).map_err(|error| error.to_string())
    };
    let renewal = "renewal = { gap = { empirical = { file = \"gaps.txt\" } }, burst = \"1s\", slowdown = 2 }";
    fs::write(folder.path().join("gaps.txt"), "# observed\n1s\n\n250ms # short\n").unwrap();
    let table = load(&format!("{renewal}\nuntil = \"9s\"")).unwrap().table;
    assert_eq!(table.renewal.unwrap().gap.mean(), 0.625);
    fs::write(folder.path().join("bursts.csv"), "0 1 2 4\n").unwrap();
    assert_eq!(load("trace = { file = \"bursts.csv\" }").unwrap().table.trace.unwrap().rows.len(), 1);
    for (text, place, what) in [
        ("profile = \"q.toml\"", "p.toml:1:1", "another profile"),
        ("\ntrace = { file = \"none.csv\" }", "p.toml:2:18", "none.csv"),
        ("scope = \"node\"", "p.toml:1:1", "exactly one"),
        ("slot = 1", "p.toml:1:1", "unknown key"),
    ] {
        let error = load(text).unwrap_err();
        assert!(error.contains(place) && error.contains(what), "{text}: {error}");
    }
    let error = profile(Path::new("/nowhere/p.toml")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/p.toml"), "{error}");
}

#[test]
fn presets_degrade_cores_as_stated() {
    let mut expected = vec![
        ("azure-cache", Some(0.71134)),
        ("azure-cpu", Some(0.97574)),
        ("bursts", Some(0.925)),
        ("bytedance", Some(0.94691)),
        ("calm", Some(1.0)),
        ("greyhound-compute", Some(0.99970)),
        ("greyhound-network", Some(0.99634)),
        ("greyhound-scale", Some(0.99975)),
        ("heavy-tail", Some(0.94405)),
        ("markov", Some(0.925)),
        ("noisy-racks", Some(0.99375)),
        ("sixteen-fold", Some(0.91477)),
        ("table1", None),
        ("tail-at-scale", Some(0.9901)),
    ];
    for Preset { name, .. } in PRESETS {
        let profile = profile(Path::new(name)).unwrap_or_else(|error| panic!("{error}"));
        let place = expected.iter().position(|(known, _)| *known == name);
        let (_, throughput) = expected.remove(place.unwrap_or_else(|| panic!("{name} is not listed here")));
        match (profile.throughput(), throughput) {
            (Some(stated), Some(worked_out)) => {
                assert!((stated - worked_out).abs() < 1e-4, "{name}: {stated}, worked out as {worked_out}");
            }
            (stated, worked_out) => assert_eq!(stated, worked_out, "{name}"),
        }
    }
    assert!(expected.is_empty(), "missing: {expected:?}");
}
