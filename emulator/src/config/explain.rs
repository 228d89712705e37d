//! Parser and type errors in the words of the experiment file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use volary_actors::policies::PolicySpec;
use volary_engine::scenario::KeyError;

use super::document::Document;
use super::error::{ConfigError, Text, listed, nearest};
use crate::cores::ProfileError;
use crate::workload::WorkloadError;

/// The remedy where there is no better one.
const EXPLAINED: &str = "`volary schema experiment --text` explains every key";

const PROFILES: &str = "`volary schema profile --text` explains every key";
const BURSTS: &str = "a trace of bursts has lines `unit start_s end_s slowdown`";

/// An error of syntax.
#[must_use]
pub(super) fn syntax(text: &Text, error: &toml::de::Error) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let (message, label) = split(error.message());
    let found = text.error(span, "", message);
    let found = if label.is_empty() { found } else { found.label(label) };
    if error.message().starts_with("duplicate key") {
        return found.help("keep one of the two; for a sweep write a list under [sweep]");
    }
    found.help("strings are quoted, `key = value` stands on one line, tables begin with [name]")
}

/// An error of form: a key or value does not fit its type.
#[must_use]
pub(super) fn form(document: &Document, error: &toml::de::Error) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    if let Some((name, rest)) = quoted_after(message, "unknown field ") {
        return unknown(document, &span, name, rest, "key");
    }
    if let Some((name, rest)) = quoted_after(message, "unknown variant ") {
        return unknown(document, &span, name, rest, "name");
    }
    if let Some((name, _)) = quoted_after(message, "missing field ") {
        let key = document.key_at(&span);
        if span == (0..0) && name == "policy" {
            let error = document.error(&span, "the file lacks `policy`");
            return error.help(NO_POLICY).help(known_policies());
        }
        let place = if span == (0..0) { "the file".to_owned() } else { format!("`{key}`") };
        return document
            .error(&span, format!("{place} lacks `{name}`"))
            .help(format!("add `{name} = …`{}", if span == (0..0) { " at the top" } else { "" }));
    }
    if message.starts_with("wanted exactly 1 element") {
        let names = document.table_at(&span).map(|t| listed(t.keys())).unwrap_or_default();
        let what = if names.is_empty() { "nothing".to_owned() } else { names };
        return document
            .error(
                &span,
                format!("`{}` must name exactly one of its kinds, not {what}", document.key_at(&span)),
            )
            .help("keep one");
    }
    if message.starts_with("no policy is named") {
        return document.error(&span, message.trim_end()).help(known_policies());
    }
    let (what, expected) = split(message);
    let key = document.key_at(&span);
    let what = if key.is_empty() { what } else { format!("`{key}`: {what}") };
    let found = document.error(&span, what);
    let found = if expected.is_empty() { found } else { found.label(expected.clone()) };
    match remedy(message, &expected) {
        Some(help) => found.help(help),
        None => found.help(EXPLAINED),
    }
}

/// An unknown key or name, with the nearest known one.
fn unknown(document: &Document, span: &Range<usize>, name: &str, rest: &str, what: &str) -> ConfigError {
    let known = backticked(rest);
    // Some errors carry the place of the table around the key.
    let span = document
        .table_at(span)
        .and_then(|table| table.get(name))
        .map_or_else(|| span.clone(), |entry| entry.at.clone());
    let error = document.error(&span, format!("unknown {what} `{name}`"));
    if known.is_empty() {
        return error.label("no keys are known here").help("remove it");
    }
    let error = error.label(format!("expected {}", listed(known.iter().copied())));
    match nearest(name, known.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("known here: {}", known.join(", "))),
    }
}

/// What to write instead, where the message alone leaves it open.
fn remedy(message: &str, expected: &str) -> Option<String> {
    let has = |word: &str| message.contains(word) || expected.contains(word);
    if has("no unit of time") || has("a duration") || has("law such as") && has("integer") {
        return Some("write a number with its unit in quotes, such as \"10ms\", \"1.5s\" or \"2h\"".into());
    }
    if has("law such as") {
        return Some("write a value, or a law such as { exponential = { mean = \"1s\" } }".into());
    }
    if has("integer") && has("negative") || has("expected u32") || has("expected u64") {
        return Some("write a whole number of at least zero".into());
    }
    if expected.contains("boolean") {
        return Some("write true or false, without quotes".into());
    }
    if expected.contains("f64") || expected.contains("floating") {
        return Some("write a number, without quotes".into());
    }
    if expected.contains("a string") {
        return Some("put it in quotes".into());
    }
    None
}

/// What to do about an experiment without a policy.
pub(super) const NO_POLICY: &str = "add [[policy]] and below it for example sparrow = { probe_ratio = 2 }";

/// The names of all policies.
pub(super) fn known_policies() -> String {
    let names: Vec<&str> = PolicySpec::cards().iter().map(|card| card.name).collect();
    format!("policies: {}; `volary policies NAME` explains one", names.join(", "))
}

/// An error at a key written as `network.fault[0].crash.who`.
pub(super) fn keyed(document: &Document, key: &str, message: impl Into<String>) -> ConfigError {
    let parts: Vec<&str> = key.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect();
    document.error_at(&parts, message)
}

/// What the engine refuses at a key.
pub(super) fn key(document: &Document, error: &KeyError) -> ConfigError {
    let path: Vec<&str> = error.key.iter().map(String::as_str).collect();
    document.error_at(&path, error.message.as_str()).help(error.help.as_str())
}

/// What the network or a topology refuses.
pub(super) fn netem(document: &Document, error: &volary_netem::Error) -> ConfigError {
    match error {
        volary_netem::Error::Invalid { key, problem, remedy } => {
            keyed(document, key, format!("`{key}`: {problem}")).help(remedy.clone())
        }
        volary_netem::Error::Unknown { key, target, known } => {
            keyed(document, key, format!("`{key}`: `{target}` names nothing here")).help(known.clone())
        }
    }
}

/// What the workload refuses.
pub(super) fn workload(document: &Document, error: &WorkloadError) -> ConfigError {
    let at_file = || document.error_at(&["workload", "trace", "file"], error.to_string());
    match error {
        WorkloadError::Config { key, why } => {
            let (why, help) = why.split_once("; ").unwrap_or((why, EXPLAINED));
            keyed(document, key, format!("`{key}`: {why}")).help(help)
        }
        WorkloadError::Missing { file, looked } => missing(document, file, looked),
        WorkloadError::Io { .. }
        | WorkloadError::Damaged { .. }
        | WorkloadError::Field { .. }
        | WorkloadError::Line { .. }
        | WorkloadError::Empty { .. } => {
            at_file().help("`volary trace describe FILE` looks at a trace by itself")
        }
    }
}

/// A trace, or a file of values, that is nowhere.
fn missing(document: &Document, file: &Path, looked: &[PathBuf]) -> ConfigError {
    if looked.iter().any(|path| path.is_dir()) {
        return document
            .error_at(&["workload", "trace", "file"], format!("trace `{}` is a folder", file.display()))
            .help("name a file in it");
    }
    let places: Vec<String> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
    document
        .error_at(&["workload", "trace", "file"], format!("trace `{}` was not found", file.display()))
        .note(format!("looked for {}", places.join(", ")))
        .help("put it beside the experiment, or name the folder that holds it in VOLARY_TRACES (colon-separated)")
        .help("or set `fallback = \"yahoo-like\"`, a generator that stands in")
        .help(
            "traces are published with the papers that use them and in the archives of Google (cluster-data), \
             Alibaba (clusterdata) and the Parallel Workloads Archive",
        )
}

/// What an interference profile refuses, which is the table at `path`.
pub(super) fn interference(document: &Document, path: &[&str], error: &ProfileError) -> ConfigError {
    match error {
        ProfileError::Keys(why) => {
            let (why, help) = why.split_once("; ").unwrap_or((why, PROFILES));
            document.error_at(path, why).help(help)
        }
        ProfileError::Read { .. } | ProfileError::Empty { .. } | ProfileError::Line { .. } => {
            document.error_at(&[path, &["trace", "file"]].concat(), error.to_string()).help(BURSTS)
        }
    }
}

/// "invalid x, expected y" as ("invalid x", "expected y").
fn split(message: &str) -> (String, String) {
    match message.split_once(", expected ") {
        Some((what, expected)) => (what.to_owned(), format!("expected {expected}")),
        None => (message.trim_end().to_owned(), String::new()),
    }
}

/// The first name in backticks after `start`, and the rest.
fn quoted_after<'a>(message: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(start)?.strip_prefix('`')?.split_once('`')
}

/// All names in backticks.
pub(super) fn backticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
