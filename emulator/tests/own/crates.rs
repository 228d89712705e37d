//! The crate that `volary policies new` writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::{expect, text};

fn written(folder: &Path) -> PathBuf {
    let (out, _) = expect(folder, "policies new my-own", 0);
    assert!(out.contains("wrote my-own"), "{out}");
    folder.join("my-own")
}

#[test]
fn a_crate_is_written_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let krate = written(folder.path());
    let read = |name: &str| fs::read_to_string(krate.join(name)).unwrap();
    assert!(read("Cargo.toml").contains("name = \"my-own\""));
    assert!(read("src/main.rs").contains(".with::<MyOwn>(\"my-own\")"));
    assert!(read("src/messages.rs").contains("\"my-own.ask\""));
    assert!(read("experiment.toml").contains("[[policy]]\nmy-own = {}"));
    assert!(read("Cargo.toml").contains(concat!("volary = \"", env!("CARGO_PKG_VERSION"), "\"")));
    let again = expect(folder.path(), "policies new my-own", 2).1;
    assert!(again.contains("my-own exists") && again.contains("--out"), "{again}");
}

/// A clone of volary takes the place of the published crates.
#[test]
fn a_crate_can_build_against_a_clone() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    expect(folder.path(), &format!("policies new my-own --source {}", root.display()), 0);
    let manifest = fs::read_to_string(folder.path().join("my-own/Cargo.toml")).unwrap();
    assert!(
        manifest.contains(&format!("volary-actors = {{ path = {:?} }}", root.join("actors"))),
        "{manifest}"
    );
    let wrong = expect(folder.path(), "policies new other --source .", 2).1;
    assert!(wrong.contains("--source .: no clone of volary"), "{wrong}");
}

/// Builds the crate against this tree instead of the published crates, and runs its tests and its experiment. It builds
/// volary from nothing: several minutes.
#[test]
#[ignore = "builds a crate from nothing; .ci/run nightly runs it"]
fn the_crate_builds_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    expect(folder.path(), &format!("policies new my-own --source {}", root.display()), 0);
    let krate = folder.path().join("my-own");
    fs::copy(root.join("Cargo.lock"), krate.join("Cargo.lock")).unwrap();
    let target = root.join("target/own");
    let cargo = |args: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&krate).env("CARGO_TARGET_DIR", &target).args(args.split_whitespace());
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "cargo {args}\n{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(cargo("test --offline").contains("test result: ok. 5 passed"));
    let ran = cargo("run --offline -- run experiment.toml --check --out runs/first");
    assert!(ran.contains("my-own"), "{ran}");
}
