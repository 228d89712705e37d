//! Tests of the crate that `volary policies new` writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::{expect, expect_of, text};

/// The root of this clone.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

#[test]
fn a_crate_is_written_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let new = format!("policies new my-own --source {}", root().display());
    let (out, _) = expect(folder.path(), &new, 0);
    assert!(out.contains("wrote my-own"), "{out}");
    let krate = folder.path().join("my-own");
    let read = |name: &str| fs::read_to_string(krate.join(name)).unwrap();
    assert!(read("Cargo.toml").contains("name = \"my-own\""));
    assert!(read("src/main.rs").contains(".with::<MyOwn>(\"my-own\")"));
    assert!(read("src/messages.rs").contains("\"my-own.ask\""));
    assert!(read("experiment.toml").contains("[[policy]]\nmy-own = {}"));
    let again = expect(folder.path(), &new, 2).1;
    assert!(again.contains("my-own exists") && again.contains("--out"), "{again}");
}

/// A new crate depends on a clone, since no crate of volary is published: on the clone of `--source`, or else the clone
/// around the current folder, or else the clone around the program.
#[test]
fn a_new_crate_depends_on_the_clone_that_is_named_or_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = root();
    let new = |here: &Path, program: &Path, args: &str, status| {
        let out = folder.path().join(args.split(' ').next().unwrap());
        let mut command = Command::new(program);
        command.current_dir(here).args(["policies", "new"]).args(args.split(' ')).arg("--out").arg(&out);
        let said = expect_of(&mut command, status).1;
        let manifest = fs::read_to_string(out.join("Cargo.toml")).unwrap_or_default();
        let path = format!("volary-actors = {{ path = {:?} }}", root.join("actors"));
        assert_eq!(manifest.contains(&path), status == 0, "{args}: {manifest}{said}");
        said
    };
    let built = Path::new(env!("CARGO_BIN_EXE_volary"));
    new(folder.path(), built, &format!("named --source {}", root.display()), 0);
    new(&root.join("emulator/src"), built, "around", 0);
    // A copy of the program elsewhere stands for an installation by `cargo install`. Another process writes the copy: a
    // file that this process has open for writing is also open, for a moment, in processes that other tests start, and
    // could not be executed then.
    let installed = folder.path().join("volary");
    assert!(Command::new("cp").args([built, &installed]).status().unwrap().success());
    let said = new(folder.path(), &installed, "nowhere", 2);
    assert!(said.contains("not published") && said.contains("--source"), "{said}");
    let wrong = expect(folder.path(), "policies new other --source .", 2).1;
    assert!(wrong.contains("--source .: not a clone of volary"), "{wrong}");
}

/// Builds the crate, and runs its tests and its experiment. This also builds volary from scratch, which takes several
/// minutes.
#[test]
#[ignore = "builds a crate from nothing; .ci/run nightly runs it"]
fn a_new_crate_builds_and_runs() {
    let (folder, root) = (tempfile::tempdir().unwrap(), root());
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
