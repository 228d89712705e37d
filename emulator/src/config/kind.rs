//! The three kinds of TOML files, distinguished by their keys, so that an error can name the wrong kind.

use toml::de::DeTable;

use super::document::{Document, entries};
use super::error::ConfigError;

/// A kind of TOML file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileKind {
    Experiment,
    Topology,
    Profile,
}

impl FileKind {
    /// The kind, from keys that only one kind has; `None` if there are none.
    fn of(table: &DeTable<'_>) -> Option<Self> {
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        match () {
            () if has(&["workload", "cluster", "policy"]) => Some(Self::Experiment),
            () if has(&["shape"]) => Some(Self::Topology),
            () if has(&["bernoulli", "markov", "renewal", "scripted", "trace"]) => Some(Self::Profile),
            () => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Experiment => "an experiment",
            Self::Topology => "a topology",
            Self::Profile => "an interference profile",
        }
    }

    /// The commands that accept such a file.
    fn remedy(self, file: &str) -> String {
        match self {
            Self::Experiment => format!("`volary run {file}` runs it, `volary plan {file}` shows it"),
            Self::Topology => format!(
                "`volary topology show {file}` shows it; an experiment uses it with [cluster] topology = \"{file}\""
            ),
            Self::Profile => format!(
                "`volary profile show {file}` shows it; an experiment uses it with [interference] profile = \"{file}\""
            ),
        }
    }

    /// Refuses a document that is clearly of another kind.
    pub(super) fn expect(self, document: &Document<'_>) -> Result<(), ConfigError> {
        self.expect_in(&document.root, document.name()).map_err(|(message, help)| {
            let first = entries(&document.root).first().map_or(0..0, |(key, _)| key.span());
            document.error(&first, message).help(help)
        })
    }

    /// The same for a table of a file; the error is a message and a remedy.
    pub(super) fn expect_in(self, table: &DeTable<'_>, file: &str) -> Result<(), (String, String)> {
        match Self::of(table) {
            Some(kind) if kind != self => {
                Err((format!("{file} is {}, not {}", kind.name(), self.name()), kind.remedy(file)))
            }
            Some(_) | None => Ok(()),
        }
    }
}
