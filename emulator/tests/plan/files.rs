//! Files that experiments name: where they are looked for, and what is said about those that are wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::path::Path;

use volary::spec::profile;

#[test]
fn a_profile_is_read_by_itself() {
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
        ("profile = \"q.toml\"", "p.toml:1:1", "not both"),
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
fn the_profiles_that_come_with_volary_do_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/profiles");
    let mut expected = vec![
        ("bursts", Some(0.925)),
        ("calm", Some(1.0)),
        ("heavy-tail", Some(0.94405)),
        ("markov", Some(0.925)),
        ("noisy-racks", Some(0.99375)),
        ("table1", None),
    ];
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let profile = profile(&path).unwrap_or_else(|error| panic!("{error}"));
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
