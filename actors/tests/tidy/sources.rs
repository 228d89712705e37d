//! Source files of the workspace, with comments and literals blanked out where only code counts.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates of the workspace and its example, innermost first: package name as imported, and folder of sources.
pub(crate) const CRATES: [(&str, &str); 9] = [
    ("volary_lp", "actors/lp/src"),
    ("volary_actors", "actors/src"),
    ("volary_netem", "netem/src"),
    ("volary_engine", "emulator/engine/src"),
    ("volary_experiment", "emulator/experiment/src"),
    ("volary_hosts", "emulator/hosts/src"),
    ("volary_report", "emulator/report/src"),
    ("volary", "emulator/src"),
    ("reserved", "emulator/examples/reserved"),
];

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of a crate's library, or of the example.
pub(crate) struct Source {
    /// The crate's name as it is imported.
    pub(crate) krate: &'static str,
    /// Path below the workspace's root.
    pub(crate) name: String,
    /// Module path below the crate: `["shard", "queue"]`; empty for the crate's root.
    pub(crate) module: Vec<String>,
    /// The unchanged text.
    pub(crate) text: String,
    /// The text without comments and without the contents of strings; line breaks stay.
    pub(crate) code: String,
}

impl Source {
    /// Whether the file is `mod.rs` or the crate's root, which contain only `mod` and `pub use`.
    pub(crate) fn is_index(&self) -> bool {
        self.name.ends_with("/mod.rs") || self.name.ends_with("/src/lib.rs")
    }

    /// Whether the file contains only tests.
    pub(crate) fn is_test(&self) -> bool {
        self.module.iter().any(|part| part == "tests" || part == "fixture" || part == "scripts")
    }
}

/// Files with a suffix, such as `rs`, below a folder, in order.
pub(crate) fn walk(folder: &Path, suffix: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, suffix, out);
        } else if path.extension().is_some_and(|extension| extension == suffix) {
            out.push(path);
        }
    }
}

/// The library sources of every crate, and the example.
pub(crate) fn sources() -> Vec<Source> {
    let mut out = Vec::new();
    for (krate, folder) in CRATES {
        let (src, mut paths) = (root().join(folder), Vec::new());
        if src.is_dir() {
            walk(&src, "rs", &mut paths);
        }
        for path in paths {
            let below = path.strip_prefix(&src).unwrap().with_extension("");
            let mut module: Vec<String> =
                below.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if ["mod", "lib", "main"].contains(&module.last().unwrap().as_str()) {
                module.pop();
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = without_tests(&blank(&text));
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            out.push(Source { krate, name, module, text, code });
        }
    }
    assert!(out.len() > 50, "the walk found only {} files", out.len());
    place_by_attribute(&mut out);
    out
}

/// Gives files that an index file includes by `#[path = "…"]` their place in the tree of modules.
fn place_by_attribute(sources: &mut [Source]) {
    let mut placed = Vec::new();
    for index in sources.iter().filter(|source| source.is_index()) {
        for attribute in index.text.split("#[path = \"").skip(1) {
            let (path, rest) = attribute.split_once("\"]\nmod ").unwrap();
            let name = rest.split(';').next().unwrap();
            let file = root().join(&index.name).with_file_name(path).canonicalize().unwrap();
            placed.push((file, [&index.module[..], &[name.to_owned()]].concat()));
        }
    }
    for (file, module) in placed {
        let is_this = |source: &&mut Source| root().join(&source.name).canonicalize().unwrap() == file;
        sources.iter_mut().find(is_this).unwrap().module = module;
    }
}

/// Replaces comments and the contents of literals by spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = literal(rest, out.chars().next_back()).unwrap_or(0);
        if length == 0 {
            let next = rest.chars().next().unwrap();
            out.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            out.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    out
}

/// Length of the comment or literal at the start of a text.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    let word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = text.strip_prefix('b').unwrap_or(text);
    if let Some(fence) = raw.strip_prefix('r').filter(|_| !word) {
        let hashes = fence.bytes().take_while(|byte| *byte == b'#').count();
        if fence[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = text.len() - fence.len() + hashes + 1;
            return Some(text[open..].find(&close).map_or(text.len(), |end| open + end + close.len()));
        }
    }
    if let Some(inner) = text.strip_prefix('"') {
        let mut escaped = false;
        let end = inner.find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        return Some(end.map_or(text.len(), |end| end + 2));
    }
    // The quote begins a character, not a lifetime.
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    let length = if first == '\\' { inner[1..].find('\'')? + 1 } else { first.len_utf8() };
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// Replaces code after `#[cfg(test)]` by spaces.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("#[cfg(test)]") {
        let rest = &out[start..];
        let open = rest.find(['{', ';']).unwrap_or(rest.len() - 1);
        let mut depth = 0;
        let mut end = open;
        if rest[open..].starts_with('{') {
            for (at, c) in rest[open..].char_indices() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                if depth == 0 {
                    end = open + at;
                    break;
                }
            }
        }
        let gone: String = rest[..=end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..=start + end, &gone);
    }
    out
}
