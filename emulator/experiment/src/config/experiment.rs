//! The resolved experiment: all defaults are filled in, and every file it needs was found.
//!
//! The id of a run is a hash of everything that its result depends on; finished runs are recognised by it. A [`Bundle`]
//! is an experiment with every file it names, for a machine without these files.
//!
//! A manifest has the points of an experiment without the long lists of their worlds: a trace of interference or an
//! empirical distribution may have a million values, which each point would repeat. The manifest records the checksum
//! of the file that has the values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use volary_engine::fingerprint::Fingerprint;
use volary_engine::metrics::Recording;
use volary_engine::results::{Cell, ClaimResult, SCHEMA, Summary, run_id};
use volary_engine::scenario::{Point, Resolved};

use super::claims::{self, Claim};
use super::error::ConfigError;
use super::file::{Repeat, ReportSection, RunSection, RuntimeKind, of_text, to_text};
use super::load::{Load, load};
use crate::files::{FileSum, Files, Pack, few};
use crate::program::ProcessLauncher;
use crate::storage::slices::SweepSlice;
use crate::workload::Traces;

/// Initial replications with `repeat = "auto"`: the fewest that give a usable estimate of the spread.
pub const FIRST_REPLICATIONS: u32 = 5;
/// Number of replications at which `repeat = "auto"` stops, even if its precision is not reached.
pub const MOST_REPLICATIONS: u32 = 100;

/// An experiment, ready to be run.
#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    /// Path below `experiments/` without suffix, such as `latin-square/fig6`; otherwise the file's stem.
    pub name: String,
    pub file: PathBuf,
    pub title: String,
    /// The reproduced paper, section and figure.
    pub source: Option<String>,
    /// Seed of replication 0; replication r has seed + r.
    pub seed: u64,
    pub repeat: Repeat,
    /// With `repeat = "auto"`: the relative 95 % half-width to reach.
    pub precision: f64,
    /// Every cell times every policy, in written order; the policy varies fastest.
    #[serde(serialize_with = "points")]
    pub points: Vec<Point>,
    /// Swept keys in written order, with their values.
    pub sweep: Vec<(String, Vec<Value>)>,
    /// Further keys that rows of the sweep set, one line per key and row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    pub claims: Vec<Claim>,
    pub run: RunSection,
    pub report: ReportSection,
    /// Labels of the classes of jobs in all cells that have several classes.
    #[serde(skip)]
    pub classes: BTreeSet<String>,
    /// Warnings for the user before the run.
    pub warnings: Vec<String>,
    /// `--set` texts that change the experiment of the file; texts that only choose values of a sweep are not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    #[serde(skip)]
    pub(super) overrides: Overrides,
    /// Every file that was read for the experiment.
    #[serde(skip)]
    pub(super) files: Files,
    /// The offered load of each cell, computed at the first use.
    #[serde(skip)]
    pub(super) loads: OnceLock<Vec<CellLoad>>,
}

/// A cell with its offered load, if that is known.
pub type CellLoad = (Cell, Option<Load>);

/// Changes made on the command line to an experiment file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// Texts of `--set key=value`, in order.
    #[serde(deserialize_with = "few")]
    pub set: Vec<String>,
    /// Labels of `--policy LABEL`: only these policies are run; all if empty.
    #[serde(deserialize_with = "few")]
    pub policies: Vec<String>,
    /// Seed of `--seed N`.
    pub seed: Option<u64>,
    /// Replications of `--repeat N`.
    #[serde(serialize_with = "to_text", deserialize_with = "of_text")]
    pub repeat: Option<Repeat>,
    /// Runtime of `--runtime`.
    pub runtime: Option<RuntimeKind>,
}

/// One run: a point under one seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Run {
    /// Index into [`Experiment::points`].
    pub point: usize,
    /// Number of the replication, from 0.
    pub replication: u32,
    pub seed: u64,
    /// Hash of everything the result depends on, 16 hex digits.
    pub id: String,
}

impl Experiment {
    /// The folder to which paths in the experiment file are relative.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Whether a policy of the experiment needs a program.
    pub fn has_programs(&self) -> bool {
        self.points.iter().any(|point| point.program.is_some())
    }

    /// A launcher for the programs of policies in other languages, relative to the experiment's folder.
    pub fn launcher(&self) -> Arc<ProcessLauncher> {
        Arc::new(ProcessLauncher::of_experiment(self.folder().to_owned()))
    }

    /// The workload traces that the experiment was planned with.
    pub fn traces(&self) -> Traces {
        Traces::beside(&self.files, self.folder())
    }

    /// Every file that was read for the experiment, with its checksum.
    pub fn files_read(&self) -> Vec<FileSum> {
        self.files.sums()
    }

    /// The number of replications that always run: all of a fixed number, the initial ones of `"auto"`.
    pub const fn replications(&self) -> u32 {
        match self.repeat {
            Repeat::Times(times) => times,
            Repeat::Auto => FIRST_REPLICATIONS,
        }
    }

    /// Replication number `replication` of a point.
    pub fn run_of(&self, point: usize, replication: u32) -> Run {
        let seed = self.seed.wrapping_add(u64::from(replication));
        Run { point, replication, seed, id: id_under(&self.points[point], seed, &self.run) }
    }

    /// The first [`Self::replications`] of every point, in the order of points; the replication varies fastest. A slice
    /// has every N-th of these runs.
    pub fn runs(&self, slice: Option<SweepSlice>) -> Vec<Run> {
        let all = (0..self.points.len()).flat_map(|point| (0..self.replications()).map(move |r| (point, r)));
        let (skip, step) = slice.map_or((0, 1), |s| (s.index as usize - 1, s.of as usize));
        all.skip(skip).step_by(step).map(|(point, replication)| self.run_of(point, replication)).collect()
    }

    /// Groups of runs that are equal except for the values of their cells, such as the runs of one policy in a sweep
    /// over a parameter of another policy. Each run is a group of its own if nothing is swept, runs are not repeatable,
    /// or inputs are logged.
    pub fn equal_runs<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) -> Vec<Vec<&'a Run>> {
        let is_alone =
            self.sweep.is_empty() || self.run.runtime != RuntimeKind::Virtual || self.run.record.inputs;
        let (mut groups, mut places) = (Vec::<Vec<&Run>>::new(), HashMap::new());
        for run in runs {
            let key = if is_alone {
                run.id.clone()
            } else {
                let point = Point { cell: Cell::new(), ..self.points[run.point].clone() };
                id_under(&point, run.seed, &self.run)
            };
            let place = *places.entry(key).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(run);
        }
        groups
    }

    /// The distinct cells, in order.
    pub fn cells(&self) -> Vec<Cell> {
        // Points of a cell are adjacent.
        self.points.chunk_by(|a, b| a.cell == b.cell).map(|points| points[0].cell.clone()).collect()
    }

    /// Labels of the policies that run, in order.
    pub fn labels(&self) -> Vec<&str> {
        let first = self.points.chunk_by(|a, b| a.cell == b.cell).next().unwrap_or_default();
        first.iter().map(|point| point.label.as_str()).collect()
    }

    /// The offered load of every cell.
    pub fn loads(&self) -> &[CellLoad] {
        self.loads.get_or_init(|| {
            let traces = self.traces();
            let of = |point: &Point| (point.cell.clone(), load(&point.resolved, self.seed, &traces));
            self.points.chunk_by(|a, b| a.cell == b.cell).map(|points| of(&points[0])).collect()
        })
    }

    /// Judges the experiment's claims on results.
    pub fn judge(&self, summaries: &[Summary]) -> Vec<ClaimResult> {
        let stand_ins = self.points.iter().filter(|point| point.resolved.has_stand_in());
        let stand_ins: Vec<Cell> = stand_ins.map(|point| point.cell.clone()).collect();
        claims::judge(&self.claims, &self.cells(), &stand_ins, summaries)
    }
}

/// Length of the longest list that a manifest keeps in full.
const LONGEST: usize = 256;

/// Serializes points. A list of more than [`LONGEST`] elements in a world is replaced by its length and a fingerprint,
/// so that experiments with different lists still differ.
fn points<S: Serializer>(points: &[Point], serializer: S) -> Result<S::Ok, S::Error> {
    let mut known: Option<(&Arc<Resolved>, Value)> = None;
    let mut abridged = Vec::with_capacity(points.len());
    for point in points {
        // The policies of a cell have one world.
        let resolved = match &known {
            Some((world, value)) if Arc::ptr_eq(world, &point.resolved) => value.clone(),
            _ => {
                let mut value = serde_json::to_value(point.resolved.as_ref()).map_err(S::Error::custom)?;
                abridge("", &mut value);
                known = Some((&point.resolved, value.clone()));
                value
            }
        };
        let Point { cell, policy, label, id, .. } = point;
        let mut point = json!({"cell": cell, "policy": policy, "label": label, "id": id});
        point["resolved"] = resolved;
        abridged.push(point);
    }
    serializer.collect_seq(abridged)
}

/// Names of the lists that are abridged in manifests. Other lists, such as faults and classes, are read back from the
/// manifest and stay complete.
const ABRIDGED: [&str; 2] = ["rows", "values"];

fn abridge(name: &str, value: &mut Value) {
    match value {
        Value::Array(list) if list.len() > LONGEST && ABRIDGED.contains(&name) => {
            let mut fingerprint = Fingerprint::default();
            for element in &*list {
                fingerprint.update(element.to_string().as_bytes());
                fingerprint.update(b",");
            }
            *value = json!({"elements": list.len(), "fingerprint": fingerprint.to_string()});
        }
        Value::Array(list) => list.iter_mut().for_each(|element| abridge("", element)),
        Value::Object(table) => table.iter_mut().for_each(|(name, value)| abridge(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Everything that planning an experiment depends on. Planning a bundle opens no file, since bundles are not trusted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// The experiment file's name; its text is in `files`.
    pub experiment: PathBuf,
    /// The changes made on the command line.
    pub overrides: Overrides,
    /// The experiment file, profiles, topologies, values of distributions, bursts and workload traces. When the bundle
    /// is planned, other files do not exist, so a trace that was missing stays missing.
    pub files: Pack,
}

impl Experiment {
    /// Packs the experiment as it was planned.
    ///
    /// # Errors
    /// When a trace can no longer be read, a name is not UTF-8, or the files exceed
    /// [`LARGEST_PACK`](crate::files::LARGEST_PACK).
    pub fn bundle(&self) -> Result<Bundle, ConfigError> {
        let files = self.files.pack().map_err(|(path, why)| ConfigError::Read {
            path,
            why,
            help: "a run on other machines needs all files of the experiment".into(),
        })?;
        Ok(Bundle { experiment: self.file.clone(), overrides: self.overrides.clone(), files })
    }

    /// Plans a bundle. Points, ids and jobs are the same as on the machine that packed it.
    ///
    /// # Errors
    /// The errors of [`Experiment::load`]; a file that was not packed cannot be read.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self, ConfigError> {
        Self::load_from(Files::of_pack(bundle.files.clone()), &bundle.experiment, &bundle.overrides)
    }
}

/// Version of the engine's behaviour: raised whenever the same seed would give other results.
pub const ENGINE: u32 = 12;

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
    if let Some(program) = &point.program {
        depends["program"] = json!(program);
    }
    // A finished run without this setting lacks the count, so it must not stand for a run with the setting.
    if let Some(unqueued) = run.record.unqueued {
        depends["unqueued"] = json!(unqueued);
    }
    if run.record.slowdown_bound != Recording::SLOWDOWN_BOUND {
        depends["slowdown_bound"] = json!(run.record.slowdown_bound);
    }
    if run.keeps_awake() {
        depends["awake"] = json!(true);
    }
    if let Some(real) = run.burning() {
        depends["real"] = json!(real);
    }
    run_id(&depends)
}

/// The fingerprint of the running program, since results depend on its code.
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
    if let Some(actors) = &world.actors {
        depends["actors"] = json!(actors);
    }
    if !world.injections.is_empty() {
        depends["injections"] = json!(world.injections);
    }
    if let Some(measure) = &world.measure {
        depends["measure"] = json!(measure);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Experiment, Overrides};

    fn written(bursts: usize) -> Value {
        let rows: String = (0..bursts).map(|i| format!("0 {i} {i}.5 2\n")).collect();
        let text = "title = \"t\"\ncluster.nodes = 2\ninterference.trace.file = \"b.txt\"\nservice.demand = \"1s\"\n\
                    workload.synthetic = { jobs = 2, tasks = 1, interarrival = \"1s\" }\n\
                    [[policy]]\nrandom = {}\n[[policy]]\nsparrow = {}\n";
        let planned = Experiment::plan_beside(("b.txt", &rows), text, &Overrides::default());
        serde_json::to_value(planned.unwrap()).unwrap()
    }

    #[test]
    fn a_manifest_abridges_long_lists_and_keeps_short_lists() {
        let rows = |spec: &Value, point: usize| {
            spec["points"][point]["resolved"]["interference"]["trace"]["rows"].clone()
        };
        let (short, long, longer) = (written(200), written(20_000), written(20_001));
        assert_eq!(rows(&short, 1).as_array().unwrap().len(), 200);
        assert_eq!(rows(&long, 1)["elements"], 20_000);
        assert_eq!(rows(&long, 0), rows(&long, 1));
        assert_ne!(rows(&long, 0)["fingerprint"], rows(&longer, 0)["fingerprint"]);
        let mut faults = json!({"fault": vec![json!({"crash": {}}); 300]});
        abridge("", &mut faults);
        assert_eq!(faults["fault"].as_array().unwrap().len(), 300, "a list that is read back is complete");
        assert!(long.to_string().len() < 10_000, "{}", long.to_string().len());
    }
}
