//! Rules that the source tree keeps: allowed imports, names, documentation, and complete registration of policies.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod imports;
mod names;
mod sources;

use std::fs;

use sources::{root, sources};

/// One file knows the codec, so that it can be replaced.
#[test]
fn one_file_imports_the_codec() {
    let with: Vec<String> = sources()
        .into_iter()
        .filter(|source| source.code.contains("bincode"))
        .map(|source| source.name)
        .collect();
    assert_eq!(with.len(), 1, "{with:?} import bincode");
}

#[test]
fn every_policy_is_registered_tested_and_listed() {
    let registry = fs::read_to_string(root().join("actors/src/policies/registry.rs")).unwrap();
    let oracles = fs::read_to_string(root().join("emulator/engine/tests/sim/oracles.rs")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(root().join("actors/src/policies")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["mod", "policy", "registry", "shared", "spec"].contains(&stem.as_str()) {
            continue;
        }
        found += 1;
        // No module's name begins with a digit.
        let name = if stem == "three_sigma" { "3sigma".to_owned() } else { stem.replace('_', "-") };
        let begins = |text: &str, start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
        assert!(begins(&registry, &format!("\"{name}\" => ")), "{name} has no line in the registry");
        assert!(begins(&readme, &format!("| `{name}` |")), "{name} has no row in the README's table");
        let row = begins(&oracles, &format!("{name} = {{")) || oracles.contains(&format!("\"{name} = {{"));
        assert!(row, "{name} has no row in emulator/engine/tests/sim/oracles.rs");
    }
    assert_eq!(found, volary_actors::policies::PolicySpec::cards().len());
}
