//! The readable form of a resolved experiment (`volary plan`), with values in the syntax of an experiment file.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toml::ser::ValueSerializer;
use volary_actors::policies::Binds;
use volary_engine::cores::Interference;
use volary_engine::results::{Cell, cell_name, in_words};
use volary_engine::scenario::quiet::{SHORTEST, longest_quiet};
use volary_engine::scenario::{Point, Resolved};
use volary_engine::workload::{Workload, WorkloadSpec};
use volary_netem::Network;
use volary_netem::topology::TopologyFile;

use super::experiment::Experiment;
use super::load::{CapacityBasis, Load};
use super::presets;
use crate::number::{self, plural};
use crate::storage::manifest::BINDING;
use crate::storage::slices::SweepSlice;

/// Maximum number of listed cells; the number of further cells is shown.
const SHOWN: usize = 24;

/// The resolved experiment as text.
pub fn text(experiment: &Experiment, slice: Option<SweepSlice>) -> String {
    let mut out = format!("{}: {}\n", experiment.name, experiment.title);
    let mut rows = Vec::new();
    rows.extend(experiment.source.iter().map(|source| ("source", source.clone())));
    let policies = experiment.labels();
    rows.push(("runs", runs(experiment, slice, policies.len())));
    let held = Held::of(experiment, slice);
    rows.extend(slice.map(|_| ("slice", held.says(experiment))));
    if let Some(real) = experiment.run.real {
        let burnt = experiment.run.burning().is_some();
        rows.push((
            "real work",
            line(&real) + if burnt { "" } else { "; calculated or timed here, not burnt" },
        ));
    }
    // Points of one cell differ in the policy only.
    let jobs = experiment.points.first().and_then(|point| {
        let (world, traces) = (&point.resolved, experiment.traces());
        let site = world.cluster.site();
        Workload::build(&world.workload, &world.service, experiment.seed, site, &traces).ok()
    });
    let points = policies.into_iter().zip(&experiment.points);
    for (label, point) in points.filter(|(label, _)| held.policies.contains(label)) {
        let mut policy = line(&point.policy);
        if !policy.starts_with(&format!("{label} =")) {
            policy = format!("{label}: {policy}");
        }
        if !point.policy.auxiliary().is_empty() {
            let count = point.policy.layout(point.resolved.cluster.layout(experiment.seed)).auxiliaries();
            policy += &format!(" ({})", plural(u64::from(count), point.policy.auxiliary()));
        }
        rows.push(("policies", policy));
        rows.extend(jobs.as_ref().and_then(|jobs| patience(point, jobs)).map(|words| ("policies", words)));
    }
    let measured =
        experiment.points.first().zip(jobs.as_ref()).and_then(|(point, jobs)| measured(point, jobs));
    rows.extend(measured.map(|words| ("measured", words)));
    for (key, values) in &experiment.sweep {
        let values: Vec<String> = values.iter().map(in_words).collect();
        rows.push(("sweep", format!("{key} = {}", values.join(", "))));
    }
    rows.extend(experiment.companions.iter().map(|line| ("sweep", line.clone())));
    rows.extend(first_world(experiment));
    loads(&mut rows, experiment, &held);
    for claim in &experiment.claims {
        rows.push(("claims", format!("{} ({})", claim.says, claim.origin.label())));
        rows.extend(claim.checks.iter().map(|check| ("claims", format!("  {}", check.text()))));
        rows.extend(claim.sizes.iter().map(|check| ("claims", format!("  size: {}", check.text()))));
    }
    let mut last = "";
    for (name, words) in rows {
        let _ = writeln!(out, "{:13} {words}", if name == last { "" } else { name });
        last = name;
    }
    for warning in &experiment.warnings {
        let _ = writeln!(out, "{:13} {warning}", "warning");
    }
    out
}

/// The time without a running copy after which a run is given up. `None` for the shortest limit, one day.
fn patience(point: &Point, jobs: &Workload) -> Option<String> {
    let quiet = longest_quiet(point, jobs).filter(|&quiet| quiet > SHORTEST)?;
    Some(format!("  given up when no copy has run for {}", number::seconds(quiet.as_secs_f64())))
}

/// The measured window of a run; `None` if the whole run is measured.
fn measured(point: &Point, jobs: &Workload) -> Option<String> {
    let Some(window) = point.resolved.measure?.window(jobs).ok()? else {
        return Some(
            "from where MSER-5 finds the end of the warm-up in a first pass, to the last arrival".to_owned(),
        );
    };
    let [from, until] = [window.from, window.until].map(|at| number::seconds(at.as_secs_f64()));
    let counted = window.chains(jobs.chains()).len() as u64;
    Some(format!(
        "{} of {}, which arrive from {from} to {until}",
        number::count(counted),
        plural(jobs.chains().into(), "job")
    ))
}

/// The part of an experiment that is run: all of it, or a slice.
struct Held<'a> {
    /// Labels in the order of the experiment.
    policies: Vec<&'a str>,
    cells: HashSet<&'a Cell>,
}

impl<'a> Held<'a> {
    fn of(experiment: &'a Experiment, slice: Option<SweepSlice>) -> Self {
        let points: BTreeSet<usize> = experiment.runs(slice).iter().map(|run| run.point).collect();
        let points: Vec<_> = points.into_iter().map(|point| &experiment.points[point]).collect();
        let labels: HashSet<&str> = points.iter().map(|point| point.label.as_str()).collect();
        let mut policies = experiment.labels();
        policies.retain(|label| labels.contains(label));
        Self { policies, cells: points.iter().map(|point| &point.cell).collect() }
    }

    /// The policies and cells of a slice in words, and a remark if claims on other policies have to wait for the merge.
    fn says(&self, experiment: &Experiment) -> String {
        if self.policies.is_empty() {
            return "no run: there are more slices than runs".to_owned();
        }
        let cells = plural(experiment.cells().len() as u64, "cell");
        let others = experiment.labels().len() - self.policies.len();
        let claims = match (experiment.claims.is_empty(), others) {
            (false, 1..) => "; claims on other policies are tested when the slices are merged",
            (true, _) | (_, 0) => "",
        };
        format!("{} in {} of {cells}{claims}", self.policies.join(", "), self.cells.len())
    }
}

/// The number of runs, and its factors.
fn runs(experiment: &Experiment, slice: Option<SweepSlice>, policies: usize) -> String {
    let repeat = match experiment.repeat.times() {
        Some(times) => plural(u64::from(times), "replication"),
        None => format!("replications until ± {}", number::percent(experiment.precision)),
    };
    let part = slice.map_or_else(String::new, |s| format!(" in slice {} of {}", s.index, s.of));
    let all = experiment.runs(slice);
    let different = experiment.equal_runs(&all).len();
    let equal = if different < all.len() {
        format!(" ({different} different ones; equal ones are executed once)")
    } else {
        String::new()
    };
    format!(
        "{} × {} × {repeat}: {}{equal}{part}, seed {}, runtime {}",
        plural(experiment.cells().len() as u64, "cell"),
        if policies == 1 { "1 policy".to_owned() } else { format!("{policies} policies") },
        plural(all.len() as u64, "run"),
        experiment.seed,
        experiment.run.runtime,
    )
}

/// Lines of the description with their names; a name is printed once.
type Rows = Vec<(&'static str, String)>;

/// The world of the first cell, as lines with their names.
pub fn first_world(experiment: &Experiment) -> Vec<(&'static str, String)> {
    let mut rows = Rows::new();
    if let Some(point) = experiment.points.first() {
        world(&mut rows, &point.resolved, !experiment.sweep.is_empty());
    }
    rows.extend(binding(experiment).map(|said| (BINDING, said)));
    rows
}

/// The ways in which policies bind tasks to nodes; `None` if all bind in the same way.
fn binding(experiment: &Experiment) -> Option<String> {
    let (mut by, mut seen) = (BTreeMap::<Binds, Vec<&str>>::new(), BTreeSet::new());
    for point in &experiment.points {
        let (binds, label) = (point.policy.traits().binds, point.label.as_str());
        if seen.insert((binds, label)) {
            by.entry(binds).or_default().push(label);
        }
    }
    let each = by.iter().map(|(binds, policies)| format!("{} by {}", binds.words(), policies.join(", ")));
    (by.len() > 1).then(|| Vec::from_iter(each).join("; "))
}

/// Adds the lines of a world.
fn world(rows: &mut Rows, world: &Resolved, swept: bool) {
    let cluster = &world.cluster;
    if world.workload.gossip().is_some() {
        rows.push(("cluster", format!("{} and the source", plural(cluster.node_count().into(), "member"))));
        rows.push(("workload", line(&world.workload)));
        rows.extend(network(world).into_iter().map(|words| ("network", words)));
        rows.extend(world.actors.iter().map(|actors| ("actors", line(actors))));
        return;
    }
    let shared = cluster.shared_cpu();
    let slot = if shared.is_some() { "pod" } else { "core" };
    let nodes: Vec<String> = cluster
        .nodes
        .chunk_by(|a, b| a.1 == b.1)
        .map(|run| {
            let nodes: u32 = run.iter().map(|r| r.0).sum();
            format!("{} × {}", plural(u64::from(nodes), "node"), plural(u64::from(run[0].1), slot))
        })
        .collect();
    let rest = match &cluster.topology {
        Some(topology) => format!("topology: {}", topology.title),
        None => format!("speed {}", line(&cluster.speed)),
    };
    let cores = match shared {
        Some(cpu) => format!("{cpu} cores, shared"),
        None => plural(cluster.core_count(), "core"),
    };
    let schedulers = plural(u64::from(cluster.schedulers), "scheduler");
    rows.push(("cluster", format!("{} ({cores}), {schedulers}, {rest}", nodes.join(" + "))));
    // A speedup that follows from `load` has all digits of a quotient.
    let mut workload = world.workload.clone();
    if let Some((speedup, _)) = workload.pace() {
        *speedup = format!("{speedup:.5e}").parse().unwrap_or(*speedup);
    }
    rows.push(("workload", line(&workload)));
    if let WorkloadSpec::Trace(spec) = &world.workload {
        let found = world.trace.as_ref().map_or_else(
            || {
                format!(
                    "{} not found; a generator replaces it, and the load is that of the generated jobs",
                    spec.file.display()
                )
            },
            |path| path.display().to_string(),
        );
        rows.push(("trace", found));
    }
    rows.push(("service", line(&world.service)));
    rows.extend(network(world).into_iter().map(|words| ("network", words)));
    rows.extend(world.actors.iter().map(|actors| ("actors", line(actors))));
    let profile = world.interference.as_ref();
    rows.push((
        "interference",
        profile.map_or_else(|| "none".to_owned(), |profile| interference(&profile.table)),
    ));
    rows.extend(world.injections.iter().map(|injection| ("injection", line(injection))));
    if swept {
        rows.push(("interference", "(of the first cell)".to_owned()));
    }
}

/// The keys of the interference in one line; a trace is described by its size.
pub fn interference(table: &Interference) -> String {
    let Some(trace) = &table.trace else { return line(table) };
    let rest = Interference { trace: None, ..table.clone() };
    let rest = if rest == Interference::default() { String::new() } else { format!(", {}", line(&rest)) };
    format!("trace of {}{rest}", trace.describe())
}

/// The name of a preset; the keys of any other profile.
pub fn profile(table: &Interference) -> String {
    presets::name_of(table).map_or_else(|| interference(table), |name| format!("the preset {name}"))
}

/// The offered load of every cell that is run, with a warning where queues grow without bound.
fn loads(rows: &mut Rows, experiment: &Experiment, held: &Held<'_>) {
    if experiment.points.iter().all(|point| point.resolved.workload.gossip().is_some()) {
        return;
    }
    let loads: Vec<_> = experiment.loads().iter().filter(|(cell, _)| held.cells.contains(cell)).collect();
    let (shown, rest) = loads.split_at(loads.len().min(SHOWN));
    rows.extend(shown.iter().map(|(cell, load)| {
        let name = if cell.is_empty() { String::new() } else { format!("  {}", cell_name(cell)) };
        let words = match load {
            None => format!(
                "not known: no rate of arrivals, a distribution without a mean, or too many tasks to sum{name}"
            ),
            Some(load) if load.offered >= 1.0 => format!(
                "{}{name}  WARNING: more work arrives than the cores can do; queues grow until the last arrival",
                load.says()
            ),
            Some(load) => format!("{}{name}", load.says()),
        };
        ("load", words)
    }));
    if !rest.is_empty() {
        let over = rest.iter().filter(|(_, load)| load.is_some_and(|load| load.offered >= 1.0)).count();
        let more = plural(rest.len() as u64, "more cell");
        rows.push(("load", format!("and {more}, {over} of them with ρ ≥ 1")));
        rows.extend(range(&loads).map(|words| ("load", words)));
    }
}

/// The cells with the least and the greatest load.
fn range(loads: &[&(Cell, Option<Load>)]) -> Option<String> {
    let known = || loads.iter().filter_map(|(cell, load)| Some((cell, load.as_ref()?)));
    let least = known().min_by(|a, b| a.1.offered.total_cmp(&b.1.offered))?;
    let most = known().max_by(|a, b| a.1.offered.total_cmp(&b.1.offered))?;
    let of = |(cell, load): (&Cell, &Load)| format!("{} ({})", number::load(load.offered), cell_name(cell));
    Some(format!("ρ of all cells: from {} to {}", of(least), of(most)))
}

/// The warning that is printed before a run if more work arrives than the cores can do.
pub fn overload(experiment: &Experiment) -> Option<String> {
    let loads = experiment.loads();
    let known = loads.iter().filter_map(|(cell, load)| Some((cell, load.as_ref()?)));
    let over: Vec<_> = known.filter(|(_, load)| load.offered >= 1.0).collect();
    let (cell, most) = over.iter().max_by(|a, b| a.1.offered.total_cmp(&b.1.offered))?;
    let (sign, most) = (if most.basis == CapacityBasis::Healthy { '≥' } else { '=' }, most.offered);
    let cells = match loads.len() {
        1 => String::new(),
        all => format!(" in {} of {all} cells, at most", over.len()),
    };
    let name = if cell.is_empty() { String::new() } else { format!(" ({})", cell_name(cell)) };
    Some(format!(
        "overload:{cells} ρ {sign} {most:.2}{name}: more work arrives than the cores can do, so queues grow until the \
         last arrival and response times grow with the number of jobs"
    ))
}

/// The resolved experiment as JSON, with the runs and the load of each cell.
pub fn json(experiment: &Experiment, slice: Option<SweepSlice>) -> Value {
    let loads = experiment.loads().iter().map(|(cell, load)| {
        let of = |value: fn(&Load) -> f64| load.as_ref().map(value);
        json!({
            "cell": cell,
            "offered": of(|load| load.offered),
            "capacity": of(|load| load.capacity),
            "throughput": of(|load| load.throughput),
            "basis": load.as_ref().map(|load| load.basis),
        })
    });
    let loads: Value = loads.collect();
    json!({ "experiment": experiment, "runs": experiment.runs(slice), "loads": loads })
}

/// Length in characters beyond which a line is cut.
const LONGEST: usize = 300;

/// The keys of a table in one line: `jobs = 4000, interarrival = { exponential = { mean = "10ms" } }`. Other values
/// are written unchanged.
fn line(value: &impl Serialize) -> String {
    let text = inline(value);
    let keys = text.strip_prefix("{ ").and_then(|text| text.strip_suffix(" }")).map(str::to_owned);
    cut(keys.unwrap_or(text))
}

/// The settings of the network, one line per key: the links of a topology, and the keys of `[network]` that are not
/// defaults.
fn network(world: &Resolved) -> Vec<String> {
    let topology = world.cluster.topology.as_ref();
    let mut lines: Vec<String> = topology.map(links).unwrap_or_default();
    let defaults = serde_json::to_value(Network::default()).unwrap_or_default();
    for (key, value) in table(&world.network).iter().filter(|(key, value)| defaults.get(*key) != Some(*value))
    {
        let partly = topology.is_some() && ["loss", "rate", "buffer"].contains(&key.as_str());
        let limit = if partly { ", unless a link of the topology sets its own" } else { "" };
        lines.extend(each(key, value).map(|line| line + limit));
    }
    if lines.is_empty() {
        lines.push("none: messages arrive at once".to_owned());
    }
    lines.into_iter().map(cut).collect()
}

fn links(topology: &TopologyFile) -> Vec<String> {
    let shape = table(&topology.shape);
    let listed = shape.get("graph").and_then(|graph| graph.get("link"));
    let listed = listed.into_iter().flat_map(|links| each("shape.graph.link", links));
    let classes = table(&topology.link);
    let classes =
        classes.iter().flat_map(|(key, class)| each(&format!("link.{key}"), class).collect::<Vec<_>>());
    listed.chain(classes).collect()
}

/// `key = value`; a list of tables gives one line per table.
fn each<'a>(key: &'a str, value: &'a Value) -> impl Iterator<Item = String> + use<'a> {
    let tables = value.as_array().filter(|items| items.iter().all(Value::is_object));
    let all = tables.map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    all.iter().map(move |value| format!("{key} = {}", inline(value)))
}

fn table(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn inline(value: &impl Serialize) -> String {
    let mut text = String::new();
    match value.serialize(ValueSerializer::new(&mut text)) {
        Ok(_) => text,
        // TOML has no null.
        Err(_) => serde_json::to_string(value).unwrap_or_default(),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_in_the_syntax_of_files() {
        let distribution = json!({ "jobs": 10, "tasks": { "normal": { "mean": 2.0 } }, "with": "a.tr" });
        assert_eq!(line(&distribution), "jobs = 10, tasks = { normal = { mean = 2.0 } }, with = \"a.tr\"");
        assert_eq!(line(&json!({ "file": null })), "{\"file\":null}");
        assert_eq!((line(&json!(1.5)), line(&json!({ "random": {} }))), ("1.5".into(), "random = {}".into()));
        let faults: Vec<_> = each("fault", &json!([{ "at": "1s" }, { "at": "2s" }])).collect();
        assert_eq!(faults, ["fault = { at = \"1s\" }", "fault = { at = \"2s\" }"]);
        let long = line(&json!("é".repeat(400)));
        assert!(long.ends_with("… (402 characters)"), "{long}");
    }
}
