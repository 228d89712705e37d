//! Rules of the source tree: allowed imports, names, documentation, complete registration of policies, and the heads of
//! experiments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod imports;
mod names;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use sources::{root, sources, walk};

/// Only one file uses the codec, so that it can be replaced.
#[test]
fn exactly_one_file_imports_the_codec() {
    let with: Vec<String> = sources()
        .into_iter()
        .filter(|source| source.code.contains("bincode"))
        .map(|source| source.name)
        .collect();
    assert_eq!(with.len(), 1, "files that import bincode: {with:?}");
}

#[test]
fn every_policy_is_registered_tested_and_listed() {
    let registry = fs::read_to_string(root().join("actors/src/policies/registry.rs")).unwrap();
    let oracles = fs::read_to_string(root().join("emulator/engine/tests/sim/oracles.rs")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    // A large policy has a file and a folder of the same name.
    let entries = fs::read_dir(root().join("actors/src/policies")).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut stems: BTreeSet<String> = entries.map(|entry| stem(entry.unwrap().path())).collect();
    stems.retain(|stem| !["mod", "policy", "registry", "spec", "gossip"].contains(&stem.as_str()));
    for stem in &stems {
        // The name of a module cannot begin with a digit.
        let name = if stem == "three_sigma" { "3sigma".to_owned() } else { stem.replace('_', "-") };
        let begins = |text: &str, start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
        assert!(begins(&registry, &format!("\"{name}\" => ")), "{name} has no line in the registry");
        assert!(begins(&readme, &format!("| `{name}` |")), "{name} has no row in the README's table");
        // A program of the user has no theory.
        let row = name == "external"
            || begins(&oracles, &format!("{name} = {{"))
            || oracles.contains(&format!("\"{name} = {{"));
        assert!(row, "{name} has no row in emulator/engine/tests/sim/oracles.rs");
    }
    // Policies that gossip run no jobs: they share a file, a page, and experiments with their closed forms.
    let page = fs::read_to_string(root().join("docs/src/gossip.md")).unwrap();
    let gossiping = registry.lines().filter_map(|line| line.trim().strip_suffix(","));
    let gossiping = gossiping.filter_map(|line| line.split_once(" => super::gossip::"));
    let names: Vec<&str> = gossiping.map(|(name, _)| name.trim_matches('"')).collect();
    for name in &names {
        assert!(page.contains(&format!("| `{name}` |")), "{name} has no row on the page of gossip");
    }
    assert_eq!(stems.len() + names.len(), volary_actors::policies::PolicySpec::cards().len());
}

/// Number of lines of the comment at the head of an experiment file: question, command, answer, and section of the
/// findings.
const HEAD: usize = 15;

#[test]
fn heads_of_experiments_are_short_and_name_existing_sections() {
    let (mut files, mut sections) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    walk(&root().join("experiments"), "toml", &mut files);
    assert!(files.len() > 80, "the walk found only {} experiments", files.len());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let above = text.lines().take_while(|line| line.is_empty() || line.starts_with('#'));
        let head: Vec<&str> = above.filter(|line| !line.is_empty()).collect();
        let lines = head.len();
        assert!(lines <= HEAD, "the head of {} has {lines} lines: move findings to the book", path.display());
        if let Some(page) = head.iter().find_map(|line| line.strip_prefix("# Findings: ")) {
            let name = path.file_name().unwrap().to_str().unwrap();
            sections.entry(page.to_owned()).or_default().insert(name.to_owned());
        }
    }
    for (page, names) in sections {
        let text = fs::read_to_string(root().join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let found: BTreeSet<String> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
        assert_eq!(found, names, "sections of {page}, and experiments that name it");
    }
}
