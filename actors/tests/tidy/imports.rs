//! Imports between files: the arrows between the modules of each crate, and no circle between modules or files.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{CRATES, Source, sources};

/// Modules, and the modules of the same crate that each imports. One that is not listed or not used fails the test.
const ARROWS: &str = "
volary_lp::basis:
volary_lp::certificate: columns
volary_lp::columns: basis jobs
volary_lp::error:
volary_lp::jobs:
volary_lp::plan: problem
volary_lp::problem: columns error jobs
volary_lp::random:
volary_lp::relax: basis certificate columns problem simplex
volary_lp::round: plan problem random relax
volary_lp::simplex: basis certificate columns problem
volary_actors::base:
volary_actors::catalog: base layout
volary_actors::harness: base catalog layout machine message
volary_actors::layout: base
volary_actors::machine: base catalog layout message
volary_actors::message: base catalog layout
volary_actors::policies: base catalog harness layout machine message predict roles
volary_actors::predict: base
volary_actors::roles: base catalog layout machine message predict
volary_netem::config: error faults units
volary_netem::error:
volary_netem::fabric: config error faults links model state verdict
volary_netem::faults: error target units
volary_netem::links: config units
volary_netem::model: config error links quantile units
volary_netem::quantile:
volary_netem::state:
volary_netem::target: error units
volary_netem::topology: config error links target units
volary_netem::units:
volary_netem::verdict:
volary_netem::worst: config error faults links model
volary_engine::cores: prefetch workload
volary_engine::finalize: cores metrics parcel results shard world
volary_engine::fingerprint:
volary_engine::metrics: parcel quiet results shard workload
volary_engine::parcel:
volary_engine::prefetch:
volary_engine::queue: prefetch
volary_engine::quiet: scenario workload
volary_engine::replay: metrics parcel results shard virtual_time world
volary_engine::results: cores fingerprint
volary_engine::scenario: cores results workload
volary_engine::shard: cores parcel prefetch queue results workload
volary_engine::virtual_time: finalize metrics results shard world
volary_engine::workload:
volary_engine::world: cores metrics quiet results scenario shard workload
volary::atomic_file:
volary::awake:
volary::chart: number sanitize stats storage
volary::cli: atomic_file chart cluster comparison config dashboard executor files number observer real_time report runtime sanitize shell storage watch workload
volary::cluster: awake codec config cost executor fidelity guard number observer real_time sanitize storage watch workload
volary::codec:
volary::comparison: cluster config number report runtime stats storage watch
volary::config: files number sanitize stats storage workload
volary::cost:
volary::dashboard: chart guard number observer real_time report sanitize storage
volary::executor: config guard number real_time
volary::fidelity: number stats
volary::files: guard
volary::guard:
volary::number:
volary::observer: real_time storage
volary::parallel:
volary::real_time: cost fidelity guard storage
volary::report: chart config number parallel sanitize shell stats storage workload
volary::runtime: awake cluster config cost executor fidelity guard number observer real_time stats storage watch workload
volary::sanitize:
volary::shell:
volary::stats:
volary::storage: atomic_file codec files guard number parallel stats
volary::watch: guard number observer real_time
volary::workload: atomic_file files guard number
reserved::messages:
reserved::node: messages
reserved::policy: node scheduler
reserved::scheduler: messages
";

/// Every path in the code that starts with `crate`, `super`, `self` or a crate of the workspace, absolute.
fn paths(source: &Source) -> Vec<String> {
    let starts = [
        "crate::",
        "super::",
        "self::",
        "volary_lp::",
        "volary_actors::",
        "volary_netem::",
        "volary_engine::",
    ];
    let code = &source.code;
    let begins = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let places = starts.iter().flat_map(|start| code.match_indices(start)).filter(|&(at, _)| begins(at));
    places
        .flat_map(|(at, _)| expand(path_at(&code[at..])))
        .filter_map(|path| absolute(source, &path))
        .collect()
}

/// The path that the code begins with, with its braces if it ends in some.
fn path_at(code: &str) -> &str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(code.len());
    if !code[end..].starts_with('{') {
        return &code[..end];
    }
    let mut depth = 0;
    let close = code[end..].find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    &code[..=end + close.unwrap()]
}

/// The paths that `a::{b, c::d}` stands for.
fn expand(path: &str) -> Vec<String> {
    let Some((prefix, group)) = path.split_once('{') else {
        return vec![path.split(" as ").next().unwrap().trim().trim_end_matches("::self").to_owned()];
    };
    let mut depth = 0;
    let parts = group[..group.rfind('}').unwrap()].split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| expand(&format!("{prefix}{part}"))).collect()
}

/// A path from the crate's name on.
fn absolute(source: &Source, path: &str) -> Option<String> {
    let (first, rest) = path.split_once("::").unwrap_or((path, ""));
    if CRATES.iter().any(|(krate, _)| *krate == first) {
        return Some(path.to_owned());
    }
    let mut module = if first == "crate" { Vec::new() } else { source.module.clone() };
    let mut rest: Vec<_> = if first == "crate" { rest } else { path }.split("::").collect();
    while ["self", "super"].contains(rest.first()?) {
        if rest.remove(0) == "super" {
            module.pop()?;
        }
    }
    module.extend(rest.into_iter().map(str::to_owned));
    Some(format!("{}::{}", source.krate, module.join("::")))
}

/// Library files, and their places by module path.
struct Graph {
    sources: Vec<Source>,
    by_module: BTreeMap<String, usize>,
}

impl Graph {
    fn new() -> Self {
        let sources: Vec<_> = sources().into_iter().filter(|source| !source.is_test()).collect();
        let library = sources.iter().enumerate().filter(|(_, source)| !source.name.ends_with("src/main.rs"));
        let path = |source: &Source| [&[source.krate.to_owned()], &source.module[..]].concat().join("::");
        let by_module = library.map(|(at, source)| (path(source), at)).collect();
        Self { sources, by_module }
    }

    /// The file that defines what a path names, at most `depth` re-exports of index files away.
    fn resolve(&self, path: &str, depth: usize) -> Option<usize> {
        let mut module = path;
        let at = loop {
            if let Some(&at) = self.by_module.get(module) {
                break at;
            }
            module = module.rsplit_once("::")?.0;
        };
        let index = &self.sources[at];
        if !index.is_index() || depth == 0 {
            return Some(at);
        }
        let item = path[module.len()..].trim_start_matches("::").split("::").next()?;
        if item.is_empty() {
            return Some(at);
        }
        let exported = re_exports(index).into_iter().find(|path| path.rsplit("::").next() == Some(item))?;
        self.resolve(&exported, depth - 1)
    }

    /// Files that each file imports, of its own crate or of others.
    fn edges(&self) -> Vec<BTreeSet<usize>> {
        let of = |(at, source): (usize, &Source)| {
            let found = if source.is_index() { Vec::new() } else { paths(source) };
            found.iter().filter_map(|path| self.resolve(path, 4)).filter(|&to| to != at).collect()
        };
        self.sources.iter().enumerate().map(of).collect()
    }
}

/// Paths that an index file re-exports, absolute.
fn re_exports(index: &Source) -> Vec<String> {
    let uses = index.code.split(';').filter_map(|item| item.split_once("use "));
    let public = uses.filter(|(before, _)| before.trim_end().ends_with(['b', ')']));
    let local = |path: String| {
        let named = ["crate::", "self::", "super::", "volary_"].iter().any(|start| path.starts_with(start));
        if named { path } else { format!("self::{path}") }
    };
    public.flat_map(|(_, tree)| expand(tree)).filter_map(|path| absolute(index, &local(path))).collect()
}

/// Groups of files that import each other, each by its first file.
fn circles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..edges.len())
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(at) = open.pop() {
                open.extend(edges[at].iter().filter(|&&to| seen.insert(to)));
            }
            seen
        })
        .collect();
    let group = |at: usize| -> Vec<usize> {
        reached[at].iter().copied().filter(|&other| reached[other].contains(&at)).collect()
    };
    (0..edges.len())
        .map(|at| (at, group(at)))
        .filter(|(at, group)| group.first() == Some(at))
        .map(|(_, group)| group)
        .collect()
}

/// Top-level module of a file, with the file itself for those beside `lib.rs`.
fn top(source: &Source) -> &str {
    source.module.first().map_or("lib", String::as_str)
}

#[test]
fn no_files_import_each_other() {
    let graph = Graph::new();
    let found = circles(&graph.edges());
    let named: Vec<String> = found
        .iter()
        .map(|group| group.iter().map(|&at| graph.sources[at].name.as_str()).collect::<Vec<_>>().join(", "))
        .collect();
    assert!(named.is_empty(), "{} import circles:\n{}", named.len(), named.join("\n"));
}

/// Listed arrows by crate and module.
fn listed() -> BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>> {
    let lines = ARROWS.lines().filter_map(|line| line.rsplit_once(':'));
    lines.map(|(module, to)| (module.split_once("::").unwrap(), to.split_whitespace().collect())).collect()
}

#[test]
fn modules_import_exactly_what_is_listed() {
    let graph = Graph::new();
    let mut seen: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (from, targets) in graph.sources.iter().zip(graph.edges()) {
        let arrows = seen.entry((from.krate, top(from))).or_default();
        let near = targets.iter().map(|&to| &graph.sources[to]).filter(|to| to.krate == from.krate);
        arrows.extend(near.map(top).filter(|to| *to != top(from) && *to != "lib"));
    }
    seen.retain(|(_, module), _| *module != "lib");
    let (listed, mut wrong) = (listed(), Vec::new());
    for of in seen.keys().chain(listed.keys()).collect::<BTreeSet<_>>() {
        let (Some(seen), Some(listed)) = (seen.get(of), listed.get(of)) else {
            wrong.push(format!("{}::{} is not listed, or is no module", of.0, of.1));
            continue;
        };
        if seen != listed {
            let (beyond, unused) = (seen - listed, listed - seen);
            wrong.push(format!("{}::{}: not listed: {beyond:?}; not used: {unused:?}", of.0, of.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn listed_arrows_form_no_circle() {
    let mut left = listed();
    loop {
        let modules: BTreeSet<_> = left.keys().copied().collect();
        left.retain(|(krate, _), arrows| arrows.iter().any(|to| modules.contains(&(*krate, *to))));
        if left.len() == modules.len() {
            break;
        }
    }
    assert!(left.is_empty(), "modules in circles, or above some: {left:?}");
}
