//! Resolution of a document to an [`Experiment`]: every cell is read into types, resolved and checked.

use std::collections::BTreeSet;
use std::io;
use std::mem::discriminant;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use volary_actors::base::Span;
use volary_actors::layout::Layout;
use volary_actors::policies::PolicySpec;
use volary_engine::cores::{InjectionSpec, Interference, RunLength, ScheduledInjection, TraceGap};
use volary_engine::fingerprint::Fingerprint;
use volary_engine::results::{Cell, METRICS, Metric, Origin, cell_name, same};
use volary_engine::scenario::{Cluster, Machines, Point, PolicyEntry, Resolved};
use volary_engine::workload::{Workload, WorkloadSpec};
use volary_netem::{Fabric, Faults};

use super::claims::{Axes, Check, Claim, Expression, Names, is_label, unmeasured};
use super::document::{Document, Texts};
use super::error::{ConfigError, did_you_mean, listed};
use super::experiment::{Contents, Experiment, MOST_REPLICATIONS, Overrides, digest, id_under};
use super::file::{ClaimSection, File};
use super::include::FileKind;
use super::{checks, explain, include, load, sweep, warnings};
use crate::files::Files;
use crate::workload::Traces;

/// Largest number of cells of a sweep; a larger number is treated as a typing error.
const MOST_CELLS: usize = 100_000;

impl Experiment {
    /// Reads, resolves and checks an experiment file.
    ///
    /// # Errors
    /// Any error in the file, in a file it names, or in an override; see [`ConfigError`].
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::load_from(Files::of_disk(), path, overrides)
    }

    /// Resolves and checks the text of an experiment file; paths in it are relative to the folder of `name`.
    ///
    /// # Errors
    /// The errors of [`Self::load`].
    pub fn plan(name: &str, text: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        let files = Files::of_disk();
        files.hold(Path::new(name), text.as_bytes());
        Self::load_from(files, Path::new(name), overrides)
    }

    /// As [`plan`](Self::plan), with another file beside the experiment.
    #[cfg(test)]
    pub(super) fn plan_beside(
        (other, content): (&str, &str),
        text: &str,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let files = Files::of_disk();
        files.hold(Path::new(other), content.as_bytes());
        files.hold(Path::new("t.toml"), text.as_bytes());
        Self::load_from(files, Path::new("t.toml"), overrides)
    }

    /// Loads an experiment whose files are on the disk or in a bundle.
    pub(super) fn load_from(files: Files, path: &Path, overrides: &Overrides) -> Result<Self, ConfigError> {
        if path.to_str().is_none() {
            return Err(ConfigError::Read {
                path: path.to_owned(),
                why: io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "its path is not UTF-8, so results cannot state it",
                ),
                help: "rename the file or its folder, or go to the folder and name the file alone".to_owned(),
            });
        }
        let texts = Texts::default();
        let mut document = Document::read(&texts, &files, path)?;
        let folder = document.folder(&(0..0));
        FileKind::Experiment.expect(&document)?;
        let written = sweep::axes(&document)?;
        sweep::set(&mut document, &overrides.set)?;
        let axes = sweep::axes(&document)?;
        let count = axes.iter().try_fold(1usize, |cells, axis| cells.checked_mul(axis.values.len()));
        let count = count.filter(|&count| count <= MOST_CELLS).ok_or_else(|| {
            document
                .error_at(&["sweep"], format!("the sweep has more than {MOST_CELLS} cells"))
                .help("shorten its lists, or split the experiment")
        })?;
        let mut planner = Planner {
            overrides,
            traces: Traces::beside(&files, &folder),
            files,
            contents: Contents::default(),
            checked: None,
            points: Vec::new(),
            labels: Vec::new(),
            classes: BTreeSet::new(),
            last_classes: 1,
            lasts: RunLength { least: Span::ZERO, most: Span::MAX },
            mean_task_s: f64::INFINITY,
            gaps: Vec::new(),
            warnings: Vec::new(),
            warned: BTreeSet::new(),
        };
        let mut first = None;
        // The document of a cell does not need the lists of the sweep.
        let mut common = document.clone();
        common.root.remove("sweep");
        for index in 0..count {
            let texts = Texts::default();
            let (mut document, cell) = sweep::cell(&common, &texts, &axes, index)?;
            // An error in the first cell probably affects all cells.
            let noted = |error: ConfigError| match index {
                0 => error,
                _ => error.note(format!("in the cell {}", cell_name(&cell))),
            };
            let file = planner.cell(&mut document, &cell).map_err(noted)?;
            first.get_or_insert(file);
        }
        let Some(file) = first else {
            return Err(document.error_at(&["sweep"], "the sweep has no cell").help("give each key a value"));
        };
        let values = |axes: &[sweep::SweepAxis<'_>]| -> Vec<(String, Vec<_>)> {
            let values = |axis: &sweep::SweepAxis<'_>| axis.values.iter().filter_map(sweep::plain).collect();
            axes.iter().map(|axis| (axis.key.clone(), values(axis))).collect()
        };
        let (sweep, mut known) = (values(&axes), Axes::from_iter(values(&written)));
        // A claim may refer to a value of a key that an override has pinned to another value.
        for (key, pinned) in &sweep {
            let all = known.entry(key.clone()).or_default();
            if all != pinned {
                let others: Vec<_> = pinned.iter().filter(|value| !all.contains(value)).cloned().collect();
                all.extend(others);
            }
        }
        let experiment = planner.finish(path, &document, file, sweep, &known)?;
        let changed = sweep::changes(&overrides.set, &written, &axes);
        Ok(Self { changed, companions: sweep::companions(&axes), ..experiment })
    }
}

/// State during the planning of cells.
struct Planner<'a> {
    files: Files,
    overrides: &'a Overrides,
    traces: Traces,
    contents: Contents,
    /// The last world that was checked in full, with its policies; most sweeps change only part of it.
    checked: Option<(Arc<Resolved>, Vec<PolicySpec>)>,
    points: Vec<Point>,
    /// Labels of all policies, run or not.
    labels: Vec<String>,
    /// Labels of the classes of jobs in all cells that have several classes.
    classes: BTreeSet<String>,
    /// The number of classes of jobs of the last world.
    last_classes: usize,
    /// Bounds of the length of a run of the last world.
    lasts: RunLength,
    /// Mean work of the tasks of the last world, s.
    mean_task_s: f64,
    /// The first mismatch of each kind between traces of interference and worlds, and the number of worlds that have
    /// it.
    gaps: Vec<(TraceGap, usize)>,
    warnings: Vec<String>,
    /// The warnings given so far; each is given once.
    warned: BTreeSet<String>,
}

impl Planner<'_> {
    /// Resolves one cell and adds its points.
    fn cell(&mut self, document: &mut Document<'_>, cell: &Cell) -> Result<File, ConfigError> {
        include::profile(&self.files, document)?;
        include::injections(&self.files, document)?;
        include::classes(&self.files, document)?;
        include::values(&self.files, document)?;
        let mut file: File = document.to()?;
        file.seed = self.overrides.seed.unwrap_or(file.seed);
        file.repeat = self.overrides.repeat.unwrap_or(file.repeat);
        file.run.runtime = self.overrides.runtime.unwrap_or(file.run.runtime);
        checks::numbers(document, &file)?;
        checks::texts(document, &file)?;
        let resolved = self.resolve(document, &file)?;
        self.warn(warnings::of_cores(&resolved, &file.run));
        self.warn(warnings::of_factors(&resolved));
        for entry in &file.policy {
            if !self.wants(entry) {
                continue;
            }
            self.warn(warnings::of_policy(
                entry,
                &resolved,
                self.last_classes,
                self.mean_task_s,
                (file.run.runtime, file.seed),
            ));
            self.warn(warnings::of_snapshots(entry, self.lasts, file.run.until));
            let program = self.program(document, entry)?;
            let mut point = Point {
                cell: cell.clone(),
                policy: entry.spec.clone(),
                label: entry.label().to_owned(),
                program,
                resolved: Arc::clone(&resolved),
                id: String::new(),
            };
            point.id = id_under(&point, file.seed, &file.run);
            self.points.push(point);
        }
        Ok(file)
    }

    /// Hash of the files of a policy's program: those that its command names, and those that it lists.
    fn program(
        &mut self,
        document: &Document<'_>,
        entry: &PolicyEntry,
    ) -> Result<Option<String>, ConfigError> {
        let Some(spec) = entry.spec.traits().program else { return Ok(None) };
        let folder = document.folder(&(0..0));
        let mut fingerprint = Fingerprint::default();
        // Files of the command are part of the experiment if they are beside it. An absolute path names an interpreter, or
        // a program that is installed.
        let is_beside = |word: &&String| {
            let path = folder.join(word);
            Path::new(word).is_relative() && self.files.has(&path) && !path.is_dir()
        };
        let named = spec.command.iter().filter(is_beside);
        for name in named.chain(spec.files) {
            let content = self.contents.of(&self.files, &folder.join(name)).map_err(|why| {
                document
                    .error_at(&["policy"], format!("`{}`: files: {name}: {why}", entry.label()))
                    .help("name files that exist, relative to the folder of the experiment file")
            })?;
            fingerprint.update(format!("{name} {content}\n").as_bytes());
        }
        Ok(Some(fingerprint.to_string()))
    }

    fn resolve(&mut self, document: &Document<'_>, file: &File) -> Result<Arc<Resolved>, ConfigError> {
        let cluster = include::resolve(&self.files, document, &file.cluster, &file.service, file.seed)?;
        let cluster = cluster
            .for_jobs(&file.workload, &file.cluster, file.actors.as_ref())
            .map_err(|error| explain::key(document, &error))?;
        let folder = document.folder(&(0..0));
        let (table, injections) = self.injections(document, file)?;
        let interference = table.map(|table| table.load(&folder, |path| self.files.whole(path))).transpose();
        let interference =
            interference.map_err(|error| explain::interference(document, &["interference"], &error))?;
        let mut resolved = Resolved {
            cluster,
            workload: file.workload.clone(),
            trace: self.trace(document, &file.workload)?,
            service: file.service.clone(),
            network: file.network.clone(),
            actors: file.actors.clone(),
            interference,
            injections,
            measure: file.run.measure,
            digest: String::new(),
        };
        let warning = load::resolve_loads(document, &mut resolved, file.seed, &self.traces)?;
        self.warn(warning);
        let content = match &resolved.trace {
            Some(path) => Some(self.contents.of(&self.files, path).map_err(|why| {
                document.error_at(&["workload", "trace", "file"], format!("{}: {why}", path.display()))
            })?),
            None => None,
        };
        resolved.digest = digest(&resolved, content);
        self.labels = check_labels(document, &file.policy)?;
        self.check_workload(document, file, &resolved)?;
        for (i, entry) in file.policy.iter().enumerate().filter(|(_, entry)| self.wants(entry)) {
            check_policy(document, i, entry, &resolved.cluster.under(&entry.spec).layout(file.seed), file)?;
        }
        self.check_network(document, file, &resolved)?;
        checks::actors(document, file)?;
        checks::gossip(document, file)?;
        checks::injections(document, file, &resolved)?;
        self.warn(warnings::of_world(&resolved));
        self.warn(warnings::of_kinds(&resolved));
        self.warn(warnings::of_disturbances(&resolved, self.lasts, file.run.until));
        self.note_gaps(&resolved, file);
        let resolved = Arc::new(resolved);
        let policies = file.policy.iter().map(|entry| entry.spec.clone()).collect();
        self.checked = Some((Arc::clone(&resolved), policies));
        Ok(resolved)
    }

    /// The interference of the file without its injections (`None` if the file has no other), and the injections.
    fn injections(
        &self,
        document: &Document<'_>,
        file: &File,
    ) -> Result<(Option<Interference>, Vec<ScheduledInjection>), ConfigError> {
        let folder = document.folder(&(0..0));
        let mut table = file.interference.clone().unwrap_or_default();
        let load = |(i, spec): (usize, InjectionSpec)| {
            let path = ["interference", "injection", &i.to_string(), "profile"];
            ScheduledInjection::load(spec, &folder, |path| self.files.whole(path))
                .map_err(|error| explain::interference(document, &path, &error))
        };
        let specs = std::mem::take(&mut table.injection).into_iter().enumerate();
        let injections: Vec<_> = specs.map(load).collect::<Result<_, _>>()?;
        let only = !injections.is_empty() && table == Interference::default();
        Ok((file.interference.is_some().then_some(table).filter(|_| !only), injections))
    }

    /// The location of the trace; `None` if a generator may replace it.
    fn trace(
        &self,
        document: &Document<'_>,
        workload: &WorkloadSpec,
    ) -> Result<Option<PathBuf>, ConfigError> {
        let WorkloadSpec::Trace(spec) = workload else { return Ok(None) };
        match self.traces.find(&spec.file) {
            Ok(path) => Ok(Some(path)),
            Err(_) if spec.fallback.is_some() => Ok(None),
            Err(error) => Err(explain::workload(document, &error)),
        }
    }

    /// Whether a policy is to run.
    fn wants(&self, entry: &PolicyEntry) -> bool {
        let wanted = &self.overrides.policies;
        wanted.is_empty() || wanted.iter().any(|label| label == entry.label())
    }

    /// Builds the jobs, unless the previous cell had the same jobs.
    fn check_workload(
        &mut self,
        document: &Document<'_>,
        file: &File,
        world: &Resolved,
    ) -> Result<(), ConfigError> {
        let same = |last: &Resolved| {
            last.cluster == world.cluster
                && last.workload == world.workload
                && last.service == world.service
                && last.measure == world.measure
        };
        if !self.checked.as_ref().is_some_and(|(last, _)| same(last)) {
            let site = world.cluster.site();
            let built = Workload::build(&world.workload, &world.service, file.seed, site, &self.traces)
                .map_err(|error| explain::workload(document, &error))?;
            let seeds = (1..file.repeat.times().unwrap_or(MOST_REPLICATIONS))
                .map(|replication| file.seed.wrapping_add(u64::from(replication)));
            Workload::check_gangs(&world.workload, &world.service, seeds, site, &self.traces).map_err(
                |(seed, error)| explain::workload(document, &error).note(format!("with seed {seed}")),
            )?;
            checks::duration(document, world, built.chains(), file.seed)?;
            checks::window(document, file, &built)?;
            self.lasts = warnings::run_length(world, &built, file.seed);
            self.warn(file.run.record.unobserved(self.lasts));
            self.warn(file.run.until.and_then(|until| warnings::of_limit(until, &built)));
            self.mean_task_s = warnings::mean_task(world, &built);
            let classes = built.classes();
            self.last_classes = classes.len();
            self.warn(warnings::of_classes(&built, file.seed));
            self.classes.extend(classes.iter().filter(|_| classes.len() > 1).map(|label| label.to_string()));
            self.warn(built.warnings().to_vec());
            self.warn(warnings::of_timeline(file.run.recording().timeline, &built));
        }
        Ok(())
    }

    /// Whether the last world that was checked had the policies of this file.
    fn same_policies(&self, file: &File) -> bool {
        let specs = file.policy.iter().map(|entry| &entry.spec);
        self.checked.as_ref().is_some_and(|(_, last)| specs.eq(last))
    }

    /// Checks network and faults on the machines of each policy, unless the previous cell had the same network and
    /// machines.
    fn check_network(
        &self,
        document: &Document<'_>,
        file: &File,
        world: &Resolved,
    ) -> Result<(), ConfigError> {
        let same = |last: &Resolved| last.cluster == world.cluster && last.network == world.network;
        if self.checked.as_ref().is_some_and(|(last, _)| same(last)) && self.same_policies(file) {
            return Ok(());
        }
        let refused = |error| include::refused(&self.files, document, &error);
        world.network.check().map_err(refused)?;
        // Without auxiliary actors, all policies with one scheduler have the same machines, and so have all policies
        // with several schedulers. One policy of each kind is checked.
        let specs = file.policy.iter().filter(|entry| self.wants(entry)).map(|entry| &entry.spec);
        let (plain, other): (Vec<_>, Vec<_>) = specs.partition(|spec| spec.auxiliary().is_empty());
        let (central, distributed): (Vec<_>, Vec<_>) =
            plain.into_iter().partition(|spec| spec.traits().one_scheduler);
        let differing = central.into_iter().take(1).chain(distributed.into_iter().take(1)).chain(other);
        let machines: Vec<_> = differing.map(|spec| world.cluster.machines(spec, file.seed)).collect();
        let fault = &world.network.fault;
        if self.overrides.policies.is_empty() {
            // With `--policy`, a target may exist only under a policy that is not run.
            checks::targets(document, fault, &machines)?;
        }
        for Machines { layout, links, groups, .. } in machines {
            let (endpoints, schedulers) = (layout.endpoints(), layout.schedulers());
            let faults = Faults::resolve(fault, &groups, endpoints).map_err(refused)?;
            checks::crashes(document, fault, &groups, schedulers)?;
            Fabric::new(&world.network, links, endpoints, 2 * schedulers, faults, file.seed)
                .map_err(refused)?;
        }
        Ok(())
    }

    /// Notes where a trace of interference does not match the world's cores or the length of its run.
    fn note_gaps(&mut self, world: &Resolved, file: &File) {
        let Some(profile) = &world.interference else { return };
        if profile.table.trace.is_none() {
            return;
        }
        let until = file.run.until.unwrap_or(Span::MAX);
        let lasts = RunLength { least: self.lasts.least.min(until), most: self.lasts.most.min(until) };
        let cores = world.cluster.cores(file.seed);
        for gap in profile.trace_gaps(&cores, lasts) {
            match self.gaps.iter_mut().find(|(known, _)| discriminant(known) == discriminant(&gap)) {
                Some((_, worlds)) => *worlds += 1,
                None => self.gaps.push((gap, 1)),
            }
        }
    }

    /// Adds warnings that are not in the list yet.
    fn warn(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if self.warned.insert(warning.clone()) {
                self.warnings.push(warning);
            }
        }
    }

    fn finish(
        mut self,
        path: &Path,
        document: &Document<'_>,
        file: File,
        sweep: Vec<(String, Vec<serde_json::Value>)>,
        known: &Axes,
    ) -> Result<Experiment, ConfigError> {
        if let Some(unknown) = self.overrides.policies.iter().find(|label| !self.labels.contains(*label)) {
            let known = self.labels.iter().map(String::as_str);
            return Err(ConfigError::Option {
                option: "--policy",
                message: format!("no policy of this experiment is labelled `{unknown}`"),
                help: did_you_mean(unknown, known)
                    .unwrap_or_else(|| format!("labels: {}", self.labels.join(", "))),
            });
        }
        let cells = self.points.chunk_by(|a, b| a.cell == b.cell).count();
        let gaps = std::mem::take(&mut self.gaps);
        self.warn(gaps.into_iter().map(|(gap, found)| match cells {
            1 => gap.to_string(),
            _ => format!("{gap} (in {found} of {cells} cells)"),
        }));
        checks::runs(document, self.points.len(), file.repeat)?;
        let names = Names { labels: &self.labels, classes: &self.classes, axes: known };
        let claims = claims(document, &file, names)?;
        let idle = check_charts(document, &file.report.charts, &self.classes, !sweep.is_empty())?;
        self.warn(idle);
        self.warn(unmeasured(&claims, &self.points, &file.run.record));
        Ok(Experiment {
            name: name(path),
            file: path.to_owned(),
            title: file.title,
            source: file.source,
            seed: file.seed,
            repeat: file.repeat,
            precision: file.precision,
            points: self.points,
            sweep,
            classes: self.classes,
            claims,
            run: file.run,
            report: file.report,
            warnings: self.warnings,
            companions: Vec::new(),
            changed: Vec::new(),
            overrides: self.overrides.clone(),
            files: self.files,
            loads: OnceLock::new(),
        })
    }
}

/// Checks that labels are names and unique.
fn check_labels(document: &Document<'_>, entries: &[PolicyEntry]) -> Result<Vec<String>, ConfigError> {
    if entries.is_empty() {
        return Err(document
            .error_at(&["policy"], "the experiment has no policy")
            .help(explain::NO_POLICY)
            .help(explain::known_policies()));
    }
    let (mut labels, mut seen) = (Vec::new(), BTreeSet::new());
    for (i, entry) in entries.iter().enumerate() {
        let (label, index) = (entry.label(), i.to_string());
        let key = if entry.label.is_some() { "label" } else { entry.name.as_str() };
        let error = |message: String| document.error_at(&["policy", index.as_str(), key], message);
        if !is_label(label) {
            return Err(error(format!("`{label}` is not a label"))
                .help("write letters, digits, `-` and `_`, but no number: claims refer to labels"));
        }
        if !seen.insert(label) {
            return Err(error(format!("two policies are called `{label}`"))
                .help(format!("give one of them a label, such as label = \"{label}-2\"")));
        }
        labels.push(label.to_owned());
    }
    Ok(labels)
}

/// Checks that the policy can run here; its error begins with the key.
fn check_policy(
    document: &Document<'_>,
    i: usize,
    entry: &PolicyEntry,
    layout: &Layout,
    file: &File,
) -> Result<(), ConfigError> {
    let (traits, preemption) = (entry.spec.traits(), file.service.preemption);
    let slice = match traits.time_slice {
        Some((key, slice)) if slice <= preemption => Err(format!(
            "{key}: service.preemption, {preemption}, uses up all {slice}, so no task would end; write a longer time"
        )),
        _ => Ok(()),
    };
    let classes = match traits.needs_long {
        Some(key) if !file.workload.has_long() => Err(format!(
            "{key}: all jobs of this workload are short; set its `cutoff`, from which jobs are long, or `long = true` for a class of its mix"
        )),
        _ => Ok(()),
    };
    let gossips = match (file.workload.gossip().is_some(), traits.gossips.is_some()) {
        (true, false) => {
            Err("schedules jobs, and [workload.gossip] has none; write push, pull, push-pull or flood, or, without updates, swim or lifeguard"
                .to_owned())
        }
        (false, true) => {
            Err("gossips and runs no jobs; write [workload.gossip] in place of the workload"
                .to_owned())
        }
        (true, true) | (false, false) => Ok(()),
    };
    let memory = if layout.evicts() && traits.node_usage.is_none() {
        let all = PolicySpec::defaults();
        let able = listed(all.iter().filter(|spec| spec.traits().node_usage.is_some()).map(PolicySpec::name));
        Err(format!(
            "does not relaunch copies that shared nodes evict; leave out cluster.memory, or run {able}, which \
             `volary policies` describes"
        ))
    } else {
        Ok(())
    };
    let fits = || Cluster::check_size(&entry.spec.layout(layout.clone()), entry.spec.auxiliary());
    entry.spec.check(layout).and(gossips).and(slice).and(classes).and(memory).and_then(|()| fits()).map_err(
        |why| {
            let index = i.to_string();
            let key = why.split_once(':').map_or("", |(key, _)| key);
            let path = ["policy", index.as_str(), entry.name.as_str(), key];
            document
                .error_at(&path, format!("`{}`: {why}", entry.label()))
                .help(format!("`volary policies {}` explains its parameters", entry.name))
        },
    )
}

/// Checks the numbers of the report's charts; returns a warning if the report has none.
fn check_charts(
    document: &Document<'_>,
    charts: &[String],
    classes: &BTreeSet<String>,
    is_swept: bool,
) -> Result<Option<String>, ConfigError> {
    for (i, text) in charts.iter().enumerate() {
        let error = |message: String| document.error_at(&["report", "charts", &i.to_string()], message);
        let column = METRICS.iter().find(|metric| metric.column_name().as_deref() == Some(text));
        let key = |metric: &Metric| format!("write the key of this column: `{}`", metric.key);
        let parsed = Expression::parse(text)
            .map_err(|found| error(found.message).help(column.map_or(found.help, key)))?;
        if let Some(class) = parsed.classes().difference(classes).next() {
            let known = listed(classes.iter().map(String::as_str));
            return Err(error(format!("unknown class `{class}`")).help(format!("known: {known}")));
        }
    }
    let is_idle = !charts.is_empty() && !is_swept;
    Ok(is_idle
        .then(|| "report.charts has no effect: charts are over swept keys, and nothing is swept".to_owned()))
}

/// Parses the claims and checks every name in them.
fn claims(document: &Document<'_>, file: &File, names: Names<'_>) -> Result<Vec<Claim>, ConfigError> {
    let axes = names.axes;
    let mut claims = Vec::new();
    for (i, section) in file.claim.iter().enumerate() {
        let index = i.to_string();
        for (key, wanted) in &section.when {
            let error = |message| document.error_at(&["claim", &index, "when", key], message);
            let Some(values) = axes.get(key) else {
                let swept = || axes.keys().map(String::as_str);
                let help = did_you_mean(key, swept()).unwrap_or_else(|| match axes.is_empty() {
                    true => "nothing is swept here; leave out `when`".to_owned(),
                    false => format!("swept are {}", listed(swept())),
                });
                return Err(error(format!("unknown swept key `{key}`")).help(help));
            };
            let any = wanted.as_array().map_or_else(|| std::slice::from_ref(wanted), Vec::as_slice);
            if let Some(odd) = any.iter().find(|value| !values.iter().any(|known| same(known, value))) {
                let known: Vec<String> = values.iter().map(ToString::to_string).collect();
                return Err(error(format!("`{key}` is never {odd}, so the claim would never be tested"))
                    .help(format!("the key takes the values {}", known.join(", "))));
            }
        }
        if section.check.is_empty() {
            return Err(document
                .error_at(&["claim", &index, "check"], "the claim has no check")
                .help("write for example check = [\"a.response_s.p50 < b.response_s.p50\"]"));
        }
        let parse = |key: &str, texts: &[String]| -> Result<Vec<Check>, ConfigError> {
            let parsed = texts.iter().enumerate().map(|(j, text)| {
                let parsed = Check::parse(text).and_then(|check| check.resolve(names).map(|()| check));
                parsed.map_err(|error| {
                    let path = ["claim", &index, key, &j.to_string()];
                    // An opening quote precedes the text; positions shift where the string has escapes.
                    let start = document.find(&path).map_or(0, |(_, node)| node.span().start + 1);
                    let span = start + error.at.start..start + error.at.end;
                    document.error(&span, error.message).help(error.help)
                })
            });
            parsed.collect()
        };
        let (checks, sizes) = (parse("check", &section.check)?, parse("size", &section.size)?);
        let ClaimSection { says, origin, tolerance, when, .. } = section.clone();
        let claim = Claim { says, origin, when, checks, sizes, tolerance };
        let needs_one = !claim.sizes.is_empty() || claim.checks.iter().any(Check::has_tolerance);
        if origin != Origin::Ours && tolerance.is_none() && needs_one {
            return Err(document
                .error_at(
                    &["claim", &index],
                    format!("the claim `{}` has a tolerance, but does not state its source", claim.says),
                )
                .help(
                    "write tolerance = \"paper\" if the paper states it, and tolerance = \"ours\" otherwise",
                ));
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// The path below the last folder `experiments`, without suffix; otherwise the stem.
fn name(path: &Path) -> String {
    let path = path.with_extension("");
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    match parts.iter().rposition(|part| part == "experiments") {
        Some(at) if at + 1 < parts.len() => parts[at + 1..].join("/"),
        Some(_) | None => parts.last().cloned().unwrap_or_default().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a run can contain only paths in UTF-8.
    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_utf_8_is_refused_before_anything_is_written() {
        use std::os::unix::ffi::OsStrExt;
        for path in [&b"r\xe9sum\xe9.toml"[..], b"caf\xe9/a.toml"] {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let error = Experiment::load(path, &Overrides::default()).unwrap_err().to_string();
            assert!(error.contains("its path is not UTF-8") && error.contains("rename the file"), "{error}");
        }
    }

    #[test]
    fn the_name_of_an_experiment_is_relative_to_the_folder_experiments() {
        for (path, expected) in [
            ("experiments/latin-square/fig6.toml", "latin-square/fig6"),
            ("/home/me/experiments/a/experiments/b.toml", "b"),
            ("elsewhere/x.toml", "x"),
            ("../experiments/q.v2.toml", "q.v2"),
            ("", ""),
        ] {
            assert_eq!(name(Path::new(path)), expected);
        }
    }
}
