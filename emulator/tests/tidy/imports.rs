//! Imports between files: allowed arrows between the modules of each crate, and no circle between files.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{Source, sources};

/// A top-level module, and those that it may import.
type Arrows = (&'static str, &'static [&'static str]);

/// Of each crate: module, and the modules of the same crate that it may import. One that is not listed fails the test.
const ARROWS: &[(&str, &[Arrows])] = &[
    (
        "volary_actors",
        &[
            ("base", &[]),
            ("catalog", &["base"]),
            ("harness", &["base", "catalog", "layout", "machine", "message"]),
            ("layout", &["base"]),
            ("machine", &["base", "catalog", "layout", "message"]),
            ("message", &["base", "catalog", "layout"]),
            ("policies", &["base", "layout", "machine", "message", "roles"]),
            ("roles", &["base", "catalog", "layout", "machine", "message"]),
        ],
    ),
    (
        "volary_netem",
        &[
            ("config", &["error", "faults", "units"]),
            ("error", &[]),
            ("fabric", &["config", "error", "faults", "links", "model", "state", "verdict"]),
            ("faults", &["error", "target", "units"]),
            ("links", &["config", "units"]),
            ("model", &["config", "error", "links", "quantile", "units"]),
            ("quantile", &[]),
            ("state", &[]),
            ("target", &["error", "units"]),
            ("topology", &["config", "error", "links", "target", "units"]),
            ("units", &[]),
            ("verdict", &[]),
        ],
    ),
    (
        "volary_engine",
        &[
            ("cores", &["prefetch"]),
            ("finalize", &["cores", "metrics", "results", "shard", "world"]),
            ("fingerprint", &[]),
            ("metrics", &["parcel", "results", "shard", "workload"]),
            ("parcel", &[]),
            ("prefetch", &[]),
            ("queue", &["prefetch"]),
            ("replay", &["metrics", "parcel", "results", "shard", "virtual_time", "world"]),
            ("results", &["fingerprint"]),
            ("scenario", &["cores", "results", "workload"]),
            ("shard", &["cores", "parcel", "prefetch", "queue", "results", "workload"]),
            ("virtual_time", &["finalize", "metrics", "results", "shard", "world"]),
            ("workload", &[]),
            ("world", &["cores", "metrics", "scenario", "shard", "workload"]),
        ],
    ),
    (
        "volary",
        &[
            ("chart", &["number", "stats", "storage"]),
            (
                "cli",
                &[
                    "cluster",
                    "comparison",
                    "config",
                    "files",
                    "number",
                    "report",
                    "runtime",
                    "storage",
                    "workload",
                ],
            ),
            ("cluster", &["codec", "config", "fidelity", "guard", "runtime", "storage", "workload"]),
            ("codec", &[]),
            ("comparison", &["cluster", "config", "number", "report", "runtime", "stats", "storage"]),
            ("config", &["files", "number", "stats", "workload"]),
            ("fidelity", &["number", "stats"]),
            ("files", &["guard"]),
            ("guard", &[]),
            ("number", &[]),
            ("report", &["chart", "number", "stats", "storage"]),
            (
                "runtime",
                &["cluster", "config", "fidelity", "guard", "number", "stats", "storage", "workload"],
            ),
            ("stats", &[]),
            ("storage", &["codec", "guard", "stats"]),
            ("workload", &["files", "guard"]),
        ],
    ),
];

/// A path of a `use` line or within code, absolute: crate and segments.
type Path = (&'static str, Vec<String>);

/// Every path that starts with `crate`, `super`, `self` or a crate of the workspace.
fn paths(source: &Source) -> Vec<Path> {
    let mut found = Vec::new();
    let code = &source.code;
    let mut at = 0;
    while let Some(next) = starts(&code[at..]) {
        at += next;
        let mut tree = Tree { code, at, found: Vec::new() };
        tree.read(&mut Vec::new());
        at = tree.at.max(at + 1);
        found.append(&mut tree.found);
    }
    found.into_iter().filter_map(|path| absolute(source, path)).collect()
}

/// Where the next path begins.
fn starts(code: &str) -> Option<usize> {
    let words = ["crate::", "super::", "self::", "volary_actors::", "volary_netem::", "volary_engine::"];
    words
        .iter()
        .flat_map(|word| code.match_indices(word))
        .map(|(at, _)| at)
        .filter(|&at| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
        .min()
}

/// A reader of nested paths such as `a::{b, c::d}`.
struct Tree<'a> {
    code: &'a str,
    at: usize,
    found: Vec<Vec<String>>,
}

impl Tree<'_> {
    fn read(&mut self, prefix: &mut Vec<String>) {
        let depth = prefix.len();
        loop {
            self.space();
            let rest = &self.code[self.at..];
            if rest.starts_with('{') {
                self.at += 1;
                self.group(prefix);
                break;
            }
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            if length == 0 {
                self.at += usize::from(rest.starts_with('*'));
                self.found.push(prefix.clone());
                break;
            }
            prefix.push(rest[..length].to_owned());
            self.at += length;
            if !self.code[self.at..].starts_with("::") {
                self.found.push(prefix.clone());
                break;
            }
            self.at += 2;
        }
        prefix.truncate(depth);
    }

    fn group(&mut self, prefix: &mut Vec<String>) {
        loop {
            self.space();
            match self.code[self.at..].chars().next() {
                Some('}') | None => {
                    self.at += 1;
                    return;
                }
                Some(',') => self.at += 1,
                Some(_) => {
                    self.read(prefix);
                    self.space();
                    if self.code[self.at..].starts_with("as ") {
                        self.at += self.code[self.at..].find([',', '}']).unwrap_or(0);
                    }
                }
            }
        }
    }

    fn space(&mut self) {
        self.at += self.code[self.at..].len() - self.code[self.at..].trim_start().len();
    }
}

fn absolute(source: &Source, path: Vec<String>) -> Option<Path> {
    let mut module = source.module.clone();
    let mut rest = path.iter().peekable();
    let krate = match rest.peek()?.as_str() {
        "crate" => {
            module.clear();
            rest.next();
            source.krate
        }
        "volary_actors" | "volary_netem" | "volary_engine" => {
            module.clear();
            let name = rest.next()?;
            crate::sources::CRATES.iter().find(|(krate, _)| krate == name)?.0
        }
        _ => {
            while let Some(step) = rest.next_if(|step| ["self", "super"].contains(&step.as_str())) {
                if step == "super" {
                    module.pop()?;
                }
            }
            source.krate
        }
    };
    module.extend(rest.filter(|segment| *segment != "self").cloned());
    Some((krate, module))
}

/// Files by module path, and re-exports of index files.
struct Graph {
    sources: Vec<Source>,
    by_module: BTreeMap<Path, usize>,
}

impl Graph {
    fn new() -> Self {
        let sources: Vec<_> = sources().into_iter().filter(|source| !source.is_test()).collect();
        let by_module = sources
            .iter()
            .enumerate()
            .filter(|(_, source)| !source.name.ends_with("src/main.rs"))
            .map(|(at, source)| ((source.krate, source.module.clone()), at))
            .collect();
        Self { sources, by_module }
    }

    /// The file that defines what a path names: through the re-exports of index files.
    fn resolve(&self, path: &Path, depth: usize) -> Option<usize> {
        let (krate, segments) = path;
        let known = (0..=segments.len()).rev();
        let (length, at) = known
            .map(|n| (n, self.by_module.get(&(*krate, segments[..n].to_vec()))))
            .find_map(|(n, at)| Some((n, *at?)))?;
        let index = &self.sources[at];
        if !index.is_index() || depth == 0 {
            return Some(at);
        }
        let item = segments.get(length)?;
        let exported = re_exports(index).into_iter().find(|(name, _)| name == item)?;
        self.resolve(&absolute_export(index, exported.1), depth - 1)
    }

    /// Files that each file imports, of its own crate or of others.
    fn edges(&self) -> Vec<BTreeSet<usize>> {
        let of = |(at, source): (usize, &Source)| -> BTreeSet<usize> {
            if source.is_index() {
                return BTreeSet::new();
            }
            let found = paths(source);
            found.iter().filter_map(|path| self.resolve(path, 4)).filter(|&to| to != at).collect()
        };
        self.sources.iter().enumerate().map(of).collect()
    }
}

/// Names that an index file re-exports, each with the path it stands for.
fn re_exports(index: &Source) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    for (at, _) in index.code.match_indices("use ") {
        let visible = index.code[..at].trim_end().ends_with(['b', ')']);
        if !visible {
            continue;
        }
        let mut tree = Tree { code: &index.code, at: at + 4, found: Vec::new() };
        tree.read(&mut Vec::new());
        out.extend(tree.found.into_iter().filter_map(|path| Some((path.last()?.clone(), path))));
    }
    out
}

fn absolute_export(index: &Source, path: Vec<String>) -> Path {
    let first = path.first().map_or("", String::as_str);
    if ["crate", "self", "super"].contains(&first) || first.starts_with("volary_") {
        return absolute(index, path).unwrap_or((index.krate, Vec::new()));
    }
    let mut module = index.module.clone();
    module.extend(path);
    (index.krate, module)
}

/// Groups of files that import each other, by Tarjan's algorithm.
fn circles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    struct Walk<'a> {
        edges: &'a [BTreeSet<usize>],
        index: Vec<Option<usize>>,
        low: Vec<usize>,
        stack: Vec<usize>,
        next: usize,
        found: Vec<Vec<usize>>,
    }
    impl Walk<'_> {
        fn visit(&mut self, node: usize) {
            (self.index[node], self.low[node]) = (Some(self.next), self.next);
            self.next += 1;
            self.stack.push(node);
            for &to in &self.edges[node] {
                match self.index[to] {
                    None => {
                        self.visit(to);
                        self.low[node] = self.low[node].min(self.low[to]);
                    }
                    Some(seen) if self.stack.contains(&to) => self.low[node] = self.low[node].min(seen),
                    Some(_) => {}
                }
            }
            if self.index[node] == Some(self.low[node]) {
                let from = self.stack.iter().position(|&other| other == node).unwrap();
                let group = self.stack.split_off(from);
                if group.len() > 1 {
                    self.found.push(group);
                }
            }
        }
    }
    let count = edges.len();
    let mut walk = Walk {
        edges,
        index: vec![None; count],
        low: vec![0; count],
        stack: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for node in 0..count {
        if walk.index[node].is_none() {
            walk.visit(node);
        }
    }
    walk.found
}

/// Top-level module of a file, with the file itself for those beside `lib.rs`.
fn top(source: &Source) -> &str {
    source.module.first().map_or("lib", String::as_str)
}

/// Import circles that are left to be cut; the number only falls.
const CIRCLES: usize = 1;

#[test]
fn no_more_files_import_each_other() {
    let graph = Graph::new();
    let found = circles(&graph.edges());
    let named: Vec<String> = found
        .iter()
        .map(|group| group.iter().map(|&at| graph.sources[at].name.as_str()).collect::<Vec<_>>().join(", "))
        .collect();
    assert!(named.len() <= CIRCLES, "{} import circles:\n{}", named.len(), named.join("\n"));
}

#[test]
fn modules_import_only_what_is_listed() {
    let graph = Graph::new();
    let mut seen: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (at, targets) in graph.edges().iter().enumerate() {
        let from = &graph.sources[at];
        let arrows = seen.entry((from.krate, top(from))).or_default();
        let near = targets.iter().map(|&to| &graph.sources[to]).filter(|to| to.krate == from.krate);
        arrows.extend(near.map(top).filter(|to| *to != top(from) && *to != "lib"));
    }
    let listed = |krate: &str, module: &str| -> Option<&'static [&'static str]> {
        let (_, modules) = ARROWS.iter().find(|(name, _)| *name == krate)?;
        modules.iter().find(|(name, _)| *name == module).map(|(_, arrows)| *arrows)
    };
    let mut wrong = Vec::new();
    for ((krate, module), arrows) in &seen {
        let allowed = listed(krate, module);
        let beyond: Vec<_> =
            arrows.iter().filter(|to| !allowed.is_some_and(|list| list.contains(to))).collect();
        if (allowed.is_none() && *module != "lib") || !beyond.is_empty() {
            wrong.push(format!("{krate}::{module} imports {arrows:?}; not listed: {beyond:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
