//! Rules for imports between files: the allowed imports between modules of each crate, without cycles of modules or
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::sources::{CRATES, Source, root, sources};

/// Modules, and the modules of the same crate that each imports. A missing or unused entry fails the test.
const ARROWS: &str = "
volary_lp::columns:
volary_lp::problem: columns
volary_lp::round: problem simplex
volary_lp::simplex: columns problem
volary_actors::base:
volary_actors::catalog: base
volary_actors::harness: base catalog layout machine message
volary_actors::layout: base
volary_actors::machine: base catalog layout message
volary_actors::message: base catalog layout
volary_actors::policies: base catalog harness layout machine message predict program roles
volary_actors::predict: base
volary_actors::program: base
volary_actors::roles: base catalog layout machine message predict
volary_netem::config: error faults units
volary_netem::error:
volary_netem::fabric: config error faults links model state verdict
volary_netem::faults: error units
volary_netem::links: config units
volary_netem::model: config error faults links units
volary_netem::state:
volary_netem::topology: config error faults links units
volary_netem::units:
volary_netem::verdict:
volary_engine::cores: prefetch workload
volary_engine::fingerprint:
volary_engine::handling:
volary_engine::metrics: parcel prefetch results scenario shard workload
volary_engine::parcel:
volary_engine::prefetch:
volary_engine::queue: prefetch
volary_engine::replay: metrics parcel results shard world
volary_engine::results: fingerprint handling
volary_engine::scenario: cores handling results workload
volary_engine::shard: cores handling parcel prefetch queue results workload
volary_engine::virtual_time: metrics results shard workload world
volary_engine::workload:
volary_engine::world: cores handling metrics parcel results scenario shard workload
volary_experiment::atomic_file:
volary_experiment::codec:
volary_experiment::config: files number parallel program sanitize stats storage workload
volary_experiment::control: storage
volary_experiment::cost:
volary_experiment::fidelity: number stats
volary_experiment::files: guard
volary_experiment::fit: number
volary_experiment::guard:
volary_experiment::number:
volary_experiment::parallel:
volary_experiment::program: sanitize
volary_experiment::sanitize:
volary_experiment::stats:
volary_experiment::storage: atomic_file codec files guard number parallel stats
volary_experiment::workload: atomic_file files guard number
volary_hosts::awake:
volary_hosts::cluster: awake executor real_time
volary_hosts::executor: real_time
volary_hosts::local: awake executor real_time
volary_hosts::real_time:
volary_report::chart:
volary_report::choice: style
volary_report::claims: style
volary_report::columns:
volary_report::dashboard: chart figures
volary_report::fidelity:
volary_report::figures: chart columns selection
volary_report::html: chart choice claims columns figures shell table
volary_report::selection:
volary_report::shell:
volary_report::style: columns
volary_report::table: choice claims columns fidelity style
volary_report::traces: chart
volary::cli: comparison hosts runtime
volary::comparison: runtime
volary::hosts:
volary::runtime: hosts
reserved::messages:
reserved::node: messages
reserved::policy: node scheduler
reserved::scheduler: messages
";

/// Every path in the code that starts with `crate`, `super`, `self` or a crate of the workspace, in absolute form.
fn paths(source: &Source) -> Vec<String> {
    let crates = CRATES.iter().map(|(krate, _)| format!("{krate}::"));
    let starts: Vec<String> =
        ["crate::", "super::", "self::"].map(str::to_owned).into_iter().chain(crates).collect();
    let code = &source.code;
    let begins = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let places =
        starts.iter().flat_map(|start| code.match_indices(start.as_str())).filter(|&(at, _)| begins(at));
    places
        .flat_map(|(at, _)| expand(path_at(&code[at..])))
        .filter_map(|path| absolute(source, &path))
        .collect()
}

/// The path at the start of the code, with the braces at its end, if any.
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

/// The paths that `a::{b, c::d}` abbreviates.
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

/// A path in absolute form, from the crate's name on.
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

/// Library files, and their indices by module path.
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

    /// The file that defines the item of a path, at most `depth` re-exports of index files away.
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

    /// The files that each file imports, of its crate or of others.
    fn edges(&self) -> Vec<BTreeSet<usize>> {
        let of = |(at, source): (usize, &Source)| {
            let found = if source.is_index() { Vec::new() } else { paths(source) };
            found.iter().filter_map(|path| self.resolve(path, 4)).filter(|&to| to != at).collect()
        };
        self.sources.iter().enumerate().map(of).collect()
    }
}

/// Paths that an index file re-exports, in absolute form.
fn re_exports(index: &Source) -> Vec<String> {
    let uses = index.code.split(';').filter_map(|item| item.split_once("use "));
    let public = uses.filter(|(before, _)| before.trim_end().ends_with(['b', ')']));
    let local = |path: String| {
        let named = ["crate::", "self::", "super::", "volary_"].iter().any(|start| path.starts_with(start));
        if named { path } else { format!("self::{path}") }
    };
    public.flat_map(|(_, tree)| expand(tree)).filter_map(|path| absolute(index, &local(path))).collect()
}

/// Groups of files that import each other, each with its first file first.
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

/// Top-level module of a file, or the file itself for files beside `lib.rs`.
fn top(source: &Source) -> &str {
    source.module.first().map_or("lib", String::as_str)
}

/// Crates, innermost first, and the crates that each imports. The crates for hosts and for reports do not import each
/// other.
const CRATE_ARROWS: &str = "
volary_lp:
volary_actors: volary_lp
volary_netem: volary_actors
volary_engine: volary_actors volary_netem
volary_experiment: volary_actors volary_engine volary_netem
volary_hosts: volary_actors volary_engine volary_experiment volary_netem
volary_report: volary_actors volary_engine volary_experiment volary_netem
volary: volary_actors volary_engine volary_experiment volary_hosts volary_netem volary_report
reserved: volary volary_actors
";

#[test]
fn crates_import_exactly_the_listed_crates() {
    let graph = Graph::new();
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, targets) in graph.sources.iter().zip(graph.edges()) {
        let arrows = seen.entry(from.krate).or_default();
        arrows.extend(targets.iter().map(|&to| graph.sources[to].krate).filter(|to| *to != from.krate));
    }
    let lines = CRATE_ARROWS.lines().filter_map(|line| line.split_once(':'));
    let listed = lines.map(|(krate, to)| (krate, to.split_whitespace().collect())).collect();
    assert_eq!(seen, listed);
}

/// Crates that Cargo links into a package with these features.
fn linked(package: &str, features: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    cargo.args(["--package", package, "--no-default-features", "--features", features]).current_dir(root());
    let tree = cargo.output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    tree.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn optional_crates_are_linked_only_with_their_feature() {
    const QUIC: [&str; 4] = ["quinn", "rustls", "actix", "volary-hosts"];
    const PAGES: [&str; 4] = ["maud", "resvg", "svg2pdf", "hyper"];
    let lacks = |package: &str, features: &str, absent: &[&str]| {
        let linked = linked(package, features);
        let found: Vec<_> = absent.iter().filter(|name| linked.contains(**name)).collect();
        assert!(linked.contains(package) && found.is_empty(), "{package} with {features:?} links {found:?}");
    };
    lacks("volary", "", &[QUIC, PAGES].concat());
    lacks("volary", "hosts", &PAGES);
    lacks("volary", "figures", &QUIC);
    lacks("volary-hosts", "", &PAGES);
    assert!(linked("volary", "hosts").contains("quinn") && linked("volary", "figures").contains("maud"));
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

/// Listed imports by crate and module.
fn listed() -> BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>> {
    let lines = ARROWS.lines().filter_map(|line| line.rsplit_once(':'));
    lines.map(|(module, to)| (module.split_once("::").unwrap(), to.split_whitespace().collect())).collect()
}

#[test]
fn modules_import_exactly_the_listed_modules() {
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
            wrong.push(format!("{}::{} is not listed, or is not a module", of.0, of.1));
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
fn listed_imports_form_no_cycle() {
    let mut left = listed();
    loop {
        let modules: BTreeSet<_> = left.keys().copied().collect();
        left.retain(|(krate, _), arrows| arrows.iter().any(|to| modules.contains(&(*krate, *to))));
        if left.len() == modules.len() {
            break;
        }
    }
    assert!(left.is_empty(), "modules in import cycles, or above such modules: {left:?}");
}

/// The longest chain of imports from a module down, within its crate.
fn chain<'a>(
    of: (&'a str, &'a str),
    arrows: &BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>,
) -> Vec<&'a str> {
    let below = arrows[&of].iter().map(|to| chain((of.0, to), arrows)).max_by_key(Vec::len);
    [vec![of.1], below.unwrap_or_default()].concat()
}

#[test]
fn no_chain_of_imports_in_a_crate_has_more_than_six_modules() {
    let arrows = listed();
    let long = arrows.keys().map(|&of| (of.0, chain(of, &arrows))).filter(|(_, chain)| chain.len() > 6);
    assert_eq!(long.collect::<Vec<_>>(), []);
}
