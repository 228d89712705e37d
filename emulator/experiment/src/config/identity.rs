//! The hash of everything a result depends on, by which finished runs are recognised.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};
use volary_engine::fingerprint::Fingerprint;
use volary_engine::results::{SCHEMA, run_id};
use volary_engine::scenario::{Point, Resolved};

use super::file::{RunSection, RuntimeKind};
use crate::files::Files;

/// Version of the engine's behaviour: raised whenever the same seed would give other results.
pub const ENGINE: u32 = 10;

/// The id of a point under a seed. It depends on the keys, the files' contents and the engine version, and not on the
/// machine or the experiment's name.
pub fn id_under(point: &Point, seed: u64, run: &RunSection) -> String {
    let mut depends = json!({
        "schema": SCHEMA,
        "engine": ENGINE,
        "cell": point.cell,
        "label": point.label,
        "policy": point.policy,
        "world": point.resolved.digest,
        "runtime": run.runtime,
        "speed": (run.runtime != RuntimeKind::Virtual).then_some(run.speed),
        "until": run.until,
        "seed": seed,
    });
    // The version of the engine does not cover policies of other crates.
    if point.policy.is_added() {
        depends["program"] = json!(program());
    }
    // A result that is missing from earlier runs, which a resumed experiment would keep.
    if let Some(unqueued) = run.record.unqueued {
        depends["unqueued"] = json!(unqueued);
    }
    if run.keeps_awake() {
        depends["awake"] = json!(true);
    }
    if let Some(real) = run.burning() {
        depends["real"] = json!(real);
    }
    run_id(&depends)
}

/// The fingerprint of the running program, whose code is a part of what its results depend on.
fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut fingerprint = Fingerprint::default();
        let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        fingerprint.update(&bytes);
        fingerprint.to_string()
    })
}

/// Hash of the world that the policies run in; `trace` is the hash of the trace's content.
pub(super) fn digest(world: &Resolved, trace: Option<&str>) -> String {
    let table = world.interference.as_ref().map(|profile| &profile.table);
    let mut workload = serde_json::to_value(&world.workload).unwrap_or_default();
    // A trace is identified by its content, not by the name under which it was found.
    if let Some(trace) = workload.get_mut("trace").and_then(Value::as_object_mut) {
        trace.remove("file");
    }
    let mut depends = json!({
        "cluster": world.cluster,
        "workload": workload,
        "trace": trace,
        "service": world.service,
        "network": world.network,
        "interference": table,
    });
    if !world.injections.is_empty() {
        depends["injections"] = json!(world.injections);
    }
    run_id(&depends)
}

/// Hashes of files' contents, each file read once.
#[derive(Debug, Default)]
pub(super) struct Contents(BTreeMap<PathBuf, String>);

impl Contents {
    /// The fingerprint of a file's bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn of(&mut self, files: &Files, path: &Path) -> io::Result<&str> {
        if !self.0.contains_key(path) {
            let mut fingerprint = Fingerprint::default();
            let (mut file, mut buffer) = (files.stream(path)?, vec![0; 1 << 16]);
            while let read @ 1.. = file.read(&mut buffer)? {
                fingerprint.update(&buffer[..read]);
            }
            self.0.insert(path.to_owned(), fingerprint.to_string());
        }
        Ok(&self.0[path])
    }
}
