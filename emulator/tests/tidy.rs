//! The house keeps itself in order: arrows point one way, files stay readable, nothing is half registered.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for part in ["actors/src", "netem/src", "emulator/engine/src", "emulator/src"] {
        sources(&root().join(part), &mut out);
    }
    out.sort();
    assert!(out.len() > 50, "the walk found only {} files", out.len());
    out
}

/// `use` and inline paths of one file that start with `prefix`.
fn mentions(text: &str, prefix: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| line.contains(prefix))
}

/// What carries parcels between machines knows parcels, and nothing of what they are for.
const BEYOND_NET: [&str; 14] = [
    "crate::cli",
    "crate::cores",
    "crate::queue",
    "crate::record",
    "crate::report",
    "crate::results",
    "crate::storage",
    "crate::runtime",
    "crate::shard",
    "crate::config",
    "crate::workload",
    "volary_actors::machine",
    "volary_actors::policies",
    "volary_netem",
];

/// A folder or file, and what it must not know.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "actors/src/base",
        &["crate::machine", "crate::message", "crate::roles", "crate::policies", "crate::layout"],
    ),
    ("actors/src/message", &["crate::machine", "crate::roles", "crate::policies"]),
    ("actors/src/roles", &["crate::policies"]),
    (
        "netem/src",
        &[
            "volary_actors::machine",
            "volary_actors::message",
            "volary_actors::roles",
            "volary_actors::policies",
            "volary_actors::layout",
        ],
    ),
    (
        "emulator/engine/src/queue",
        &["crate::cores", "crate::metrics", "crate::scenario", "crate::shard", "crate::world"],
    ),
    ("emulator/engine/src/prefetch.rs", &["crate::"]),
    (
        "emulator/engine/src/results",
        &["crate::metrics", "crate::scenario", "crate::shard", "crate::workload", "crate::world"],
    ),
    ("emulator/engine/src/cores", &["crate::metrics", "crate::scenario", "crate::shard", "crate::world"]),
    ("emulator/engine/src/workload", &["crate::metrics", "crate::scenario", "crate::shard", "crate::world"]),
    ("emulator/engine/src/scenario", &["crate::metrics", "crate::shard", "crate::world"]),
    ("emulator/engine/src/shard", &["crate::scenario", "crate::world"]),
    ("emulator/src/files.rs", &["crate::"]),
    ("emulator/src/stats.rs", &["crate::"]),
    ("emulator/src/number.rs", &["crate::"]),
    (
        "emulator/src/fidelity",
        &["crate::shard", "crate::runtime", "crate::config", "crate::cli", "crate::report"],
    ),
    (
        "emulator/src/burn",
        &[
            "crate::cores",
            "crate::record",
            "crate::runtime",
            "crate::shard",
            "crate::config",
            "crate::cli",
            "crate::report",
        ],
    ),
    (
        "emulator/src/workload",
        &["crate::shard", "crate::runtime", "crate::config", "crate::cli", "crate::report"],
    ),
    (
        "emulator/src/record",
        &["crate::chart", "crate::report", "crate::storage", "crate::runtime", "crate::config", "crate::cli"],
    ),
    ("emulator/src/chart", &["crate::report", "crate::runtime", "crate::config", "crate::cli"]),
    ("emulator/src/report", &["crate::runtime", "crate::shard", "crate::config", "crate::cli"]),
    (
        "emulator/src/storage",
        &["crate::chart", "crate::report", "crate::runtime", "crate::shard", "crate::config", "crate::cli"],
    ),
    ("emulator/src/codec.rs", &BEYOND_NET),
    ("emulator/src/cluster/net", &BEYOND_NET),
    ("emulator/src/shard.rs", &["crate::runtime", "crate::config", "crate::cli", "crate::report"]),
    (
        "emulator/src/config",
        &["crate::runtime", "crate::cli", "crate::shard", "crate::report", "crate::storage"],
    ),
    ("emulator/src/runtime", &["crate::cli", "crate::comparison"]),
    ("emulator/src/cluster", &["crate::cli", "crate::comparison"]),
    ("emulator/src/comparison", &["crate::cli"]),
];

#[test]
fn arrows_point_one_way() {
    for path in all_sources() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        for (part, unknown) in FORBIDDEN {
            for prefix in unknown.iter().filter(|_| name.starts_with(part)) {
                let own = format!("crate::{}", part.rsplit('/').next().unwrap().trim_end_matches(".rs"));
                // Locks are taken in one way everywhere.
                let text = text.replace(&own, "self").replace("crate::guard::", "self::");
                assert!(!mentions(&text, prefix), "{name} must not know {prefix}");
            }
        }
    }
}

/// One file knows the codec, so that it can be replaced.
#[test]
fn only_one_file_knows_the_codec() {
    for path in all_sources().into_iter().filter(|path| !path.ends_with("emulator/src/codec.rs")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!mentions(&text, "bincode"), "{} must not know bincode", path.display());
    }
}

/// A file can be held in mind.
const LONGEST: usize = 420;

#[test]
fn files_stay_readable() {
    for path in all_sources() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let lines = code.lines().count();
        assert!(lines <= LONGEST, "{name} has {lines} lines before its tests, more than {LONGEST}; split it");
    }
}

/// The rows of tables in comments are as long as they are.
#[test]
fn comments_fit_the_page() {
    const WIDEST: usize = 120;
    let mut files = all_sources();
    for tests in ["actors/tests", "netem/tests", "emulator/tests", "emulator/benches"] {
        sources(&root().join(tests), &mut files);
    }
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let comment = line.trim_start().starts_with("//") && !line.contains("//! |");
            let width = line.chars().count();
            assert!(!comment || width <= WIDEST, "{}:{number} is {width} wide; wrap it", path.display());
        }
    }
}

#[test]
fn every_policy_file_is_registered_tested_and_listed() {
    let registry = fs::read_to_string(root().join("actors/src/policies/registry.rs")).unwrap();
    let oracles = fs::read_to_string(root().join("emulator/engine/tests/sim/oracles.rs")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(root().join("actors/src/policies")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["mod", "policy", "registry", "shared"].contains(&stem.as_str()) {
            continue;
        }
        found += 1;
        let name = stem.replace('_', "-");
        let begins = |text: &str, start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
        assert!(begins(&registry, &format!("\"{name}\" => ")), "{name} has no line in the registry");
        assert!(begins(&readme, &format!("| `{name}` |")), "{name} has no row in the README's table");
        // A row runs the policy: a text that begins with its table.
        assert!(oracles.contains(&format!("\"{name} = {{")), "{name} has no row in tests/sim/oracles.rs");
    }
    assert_eq!(found, volary_actors::policies::PolicySpec::cards().len());
}
