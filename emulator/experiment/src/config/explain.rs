//! Translation of errors of the TOML parser, serde and the engine into terms of the experiment file, with a remedy.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use volary_actors::policies::PolicySpec;
use volary_engine::cores::ProfileError;
use volary_engine::scenario::KeyError;
use volary_engine::workload::WorkloadError;

use super::document::{Document, entries, split};
use super::error::{ConfigError, did_you_mean, listed};
use crate::workload::sources::TraceOrigin;

/// The remedy if no other remedy fits.
const EXPLAINED: &str = "`volary schema experiment --text` explains every key";
const PROFILES: &str = "`volary schema profile --text` explains every key";
const BURSTS: &str = "a trace has lines `unit start_s end_s slowdown`, or below a header line `time,core,slowdown` samples; all \
     times are seconds since the start of the run";
const DURATION: &str =
    "write a number with its unit in quotes, such as \"10ms\", \"1.5s\", \"40min\" or \"2h\"";
const DISTRIBUTION: &str = "write a value, or a distribution such as { exponential = { mean = \"1s\" } }";
const ARRIVALS: &str = "add `interarrival = { exponential = { mean = \"1s\" } }` or another distribution of the times between \
     arrivals; `load` and `speedup` scale them";
const COUNT: &str = "write a whole number of at least zero";
const COUNT_U32: &str = "write a whole number of at least zero, up to 4294967295";
const COUNT_U64: &str = "write a whole number of at least zero, up to 18446744073709551615";

// `toml` and serde report errors only as English text. All matched phrases are listed here. The tests of mistakes in
// experiment files provoke each phrase, and fail with a version of the crates that uses other words.
const UNKNOWN_FIELD: &str = "unknown field `";
const UNKNOWN_VARIANT: &str = "unknown variant `";
const MISSING_FIELD: &str = "missing field `";
/// Start of the message of an error within a parameter of a policy; the error's position is that of all parameters.
const IN_PARAMETER: &str = "in `";
const ONE_KEY: &str = "wanted exactly 1 element";
/// Rows of phrases in a message, a phrase in the expected value, and the remedy. The first row that matches is used.
const REMEDIES: [(&[&str], &str, &str); 15] = [
    (
        &["type: map"],
        "a sequence",
        "write the header with two brackets, such as [[policy]]: there may be several",
    ),
    (&[], "a sequence", "put it in brackets, [ … ]: there may be several"),
    (&[], "struct Exponential", "write its mean as a key: { exponential = { mean = \"1s\" } }"),
    (&["no unit of time"], "", DURATION),
    (&["a duration"], "", DURATION),
    (&["distribution such as", "integer"], "", DURATION),
    (&["distribution such as"], "", DISTRIBUTION),
    (&["integer", "negative"], "", COUNT),
    (&["expected u32"], "", COUNT_U32),
    (&["expected u64"], "", COUNT_U64),
    (&[], "a share from 0 to 1", "write 0.5 for half of them, or true for all"),
    (&[], "boolean", "write true or false, without quotes"),
    (&[], "f64", "write a number, without quotes"),
    (
        &[],
        "path string",
        "write the path of a file in quotes; interference.profile also takes a preset of `volary profile list`, and a process stands under [interference] itself: bernoulli = { … }",
    ),
    (&[], "a string", "put it in quotes"),
];

impl Document<'_> {
    /// Reads the document into a type.
    ///
    /// # Errors
    /// When keys or values do not fit the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let root = Spanned::new(0..0, self.root.clone());
        T::deserialize(toml::de::Deserializer::from(root)).map_err(|error| form(self, &error))
    }
}

/// The error for a key or value that does not fit its type.
pub(super) fn form(document: &Document<'_>, error: &toml::de::Error) -> ConfigError {
    let (span, message) = within(document, error);
    let (key, top) = (document.key_at(&span), span == (0..0));
    for (start, what) in [(UNKNOWN_FIELD, "key"), (UNKNOWN_VARIANT, "name")] {
        if let Some((name, rest)) = named(message, start) {
            return unknown(document, &span, name, rest, what);
        }
    }
    if let Some((name, _)) = named(message, MISSING_FIELD) {
        let whose = if top { "the file".to_owned() } else { format!("`{key}`") };
        let error = document.error(&span, format!("{whose} lacks `{name}`"));
        return match (top, name) {
            (true, "policy") => error.help(NO_POLICY).help(known_policies()),
            (true, _) => error.help(format!("add `{name} = …` at the top")),
            (false, "interarrival") => error.help(ARRIVALS),
            (false, _) => error.help(format!("add `{name} = …`")),
        };
    }
    if message.starts_with(ONE_KEY) {
        let keys = document.table_at(&span).map(entries).unwrap_or_default();
        let names = listed(keys.iter().map(|(key, _)| key.get_ref().as_ref()));
        let what = if names.is_empty() { "nothing" } else { &names };
        // The last key may come from a sweep.
        let last = keys.last().map(|(key, _)| key.span());
        return document
            .error(&last.unwrap_or(span), format!("`{key}` must name exactly one of its kinds, not {what}"))
            .help("keep one");
    }
    if message.starts_with("no policy is named") {
        return document.error(&span, message.trim_end()).help(known_policies());
    }
    let (what, expected) = split(message);
    let what = what.replace("type: map", "type: table").replace("type: sequence", "type: list");
    let what = if key.is_empty() { what } else { format!("`{key}`: {what}") };
    let fits = |(words, in_expected, _): &&(&[&str], &str, &str)| {
        words.iter().all(|word| message.contains(word)) && expected.contains(in_expected)
    };
    let remedy = REMEDIES.iter().find(fits).map_or(EXPLAINED, |(_, _, remedy)| remedy);
    document.error(&span, what).label(plain_type(&expected)).help(remedy)
}

/// The expected type, without names of Rust's types.
fn plain_type(expected: &str) -> String {
    let words = expected.split(' ').map(|word| match word {
        "f64" | "f32" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "a whole number",
        "sequence" => "list",
        "map" => "table",
        word => word,
    });
    let expected = words.collect::<Vec<_>>().join(" ");
    if expected.contains("struct ") { "expected a table of keys".to_owned() } else { expected }
}

/// The position and message of an error. An error within a parameter of a policy has the position and message of the
/// parameter.
fn within<'e>(document: &Document<'_>, error: &'e toml::de::Error) -> (Range<usize>, &'e str) {
    let (span, message) = (error.span().unwrap_or(0..0), error.message());
    let Some((name, rest)) = named(message, IN_PARAMETER) else { return (span, message) };
    let value = document.table_at(&span).and_then(|table| table.get(name));
    (value.map_or(span, Spanned::span), rest.trim_start_matches(": "))
}

/// The error for an unknown key or name. The remedy suggests the most similar known name.
fn unknown(document: &Document<'_>, span: &Range<usize>, name: &str, rest: &str, what: &str) -> ConfigError {
    let known = backticked(rest);
    // Some errors carry the position of the table around the key.
    let key = document.table_at(span).and_then(|table| table.get_key_value(name));
    let span = key.map_or_else(|| span.clone(), |(key, _)| key.span());
    let error = document.error(&span, format!("unknown {what} `{name}`"));
    if known.is_empty() {
        return error.label("no keys are allowed here").help("remove it");
    }
    let error = error.label(format!("expected {}", listed(known.iter().copied())));
    let help = did_you_mean(name, known.iter().copied());
    error.help(help.unwrap_or_else(|| format!("known here: {}", known.join(", "))))
}

/// The remedy for an experiment without a policy.
pub(super) const NO_POLICY: &str = "add [[policy]] and below it for example sparrow = { probe_ratio = 2 }";

/// The names of policies.
pub(super) fn known_policies() -> String {
    let names = listed(PolicySpec::cards().iter().map(|card| card.name));
    format!("policies are {names}; `volary policies` lists all, `volary policies NAME` explains one")
}

/// An error at a key written as `network.fault[0].crash.who`.
pub(super) fn keyed(document: &Document<'_>, key: &str, message: impl Into<String>) -> ConfigError {
    let parts: Vec<&str> = key.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect();
    document.error_at(&parts, message)
}

/// An error of the engine about a key.
pub(super) fn key(document: &Document<'_>, error: &KeyError) -> ConfigError {
    let path: Vec<&str> = error.key.iter().map(String::as_str).collect();
    document.error_at(&path, error.message.as_str()).help(error.help.as_str())
}

/// An error of the network or a topology.
pub(super) fn netem(document: &Document<'_>, error: &volary_netem::Error) -> ConfigError {
    keyed(document, &error.key, format!("`{}`: {}", error.key, error.problem)).help(error.remedy.as_str())
}

/// An error of the workload.
pub(super) fn workload(document: &Document<'_>, error: &WorkloadError) -> ConfigError {
    match error {
        WorkloadError::Config { key, why } => {
            let (why, help) = why.split_once("; ").unwrap_or((why, EXPLAINED));
            keyed(document, key, format!("`{key}`: {why}")).help(help)
        }
        WorkloadError::Missing { file, looked } => missing(document, file, looked),
        WorkloadError::Io { .. } | WorkloadError::Trace(_) => {
            let message = error.to_string();
            let at = document.error_at(&["workload", "trace", "file"], message.as_str());
            at.help(in_trace(&message))
        }
    }
}

/// The remedy for an error whose text begins with the file and, in most cases, the line.
fn in_trace(message: &str) -> String {
    let (place, _) = message.split_once(": ").unwrap_or((message, ""));
    let line = place.rsplit_once(':').filter(|(_, line)| line.parse::<u64>().is_ok());
    let (what, file) = match line {
        Some((file, line)) => (format!("correct line {line} of `{file}`"), file),
        None => (format!("correct `{place}`"), place),
    };
    format!("{what}, or name another trace; `volary trace describe {file}` checks it alone")
}

/// The error for a trace, or a file of values, that was not found.
fn missing(document: &Document<'_>, file: &Path, looked: &[PathBuf]) -> ConfigError {
    let error = |what| {
        let message = format!("trace `{}` {what}", file.display());
        document.error_at(&["workload", "trace", "file"], message)
    };
    if looked.iter().any(|path| path.is_dir()) {
        return error("is a folder").help("name a file in it");
    }
    let places: Vec<String> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
    let error = error("was not found")
        .note(format!("looked for {}", places.join(", ")))
        .help("put the trace beside the experiment, or list its folder in VOLARY_TRACES (colon-separated)");
    match TraceOrigin::of(file) {
        Some(known) => error.help(known.remedy()),
        None => error
            .help("or set `fallback = \"yahoo-like\"`, a generator that replaces it")
            .help("`volary trace sources` lists where traces are published"),
    }
}

/// An error of an interference profile, which is the table at `path`.
pub(super) fn interference(document: &Document<'_>, path: &[&str], error: &ProfileError) -> ConfigError {
    match error {
        ProfileError::Keys(why) => {
            let (why, help) = why.split_once("; ").unwrap_or((why, PROFILES));
            document.error_at(path, why).help(help)
        }
        ProfileError::File(_) => {
            document.error_at(&[path, &["trace", "file"]].concat(), error.to_string()).help(BURSTS)
        }
    }
}

/// The name after `start`, which ends with the opening backtick, and the text after the name.
fn named<'a>(message: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(start)?.split_once('`')
}

/// All names in backticks.
pub(super) fn backticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
