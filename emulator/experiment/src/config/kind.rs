//! The four kinds of TOML files, distinguished by their keys, so that an error can name the wrong kind.

use std::ops::Range;

use toml::de::DeTable;

use super::document::{Document, entries};
use super::error::ConfigError;

/// A kind of TOML file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileKind {
    Experiment,
    Topology,
    Profile,
    Classes,
}

impl FileKind {
    /// The kind, from keys that only one kind has; `None` if there are none.
    fn of(table: &DeTable<'_>) -> Option<Self> {
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        match () {
            () if has(&["workload", "cluster", "policy"]) => Some(Self::Experiment),
            () if has(&["shape"]) => Some(Self::Topology),
            () if has(&["bernoulli", "markov", "renewal", "scripted", "trace"]) => Some(Self::Profile),
            () if has(&["class"]) => Some(Self::Classes),
            () => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Experiment => "an experiment",
            Self::Topology => "a topology",
            Self::Profile => "an interference profile",
            Self::Classes => "a file of classes of jobs",
        }
    }

    /// The commands that accept such a file.
    fn remedy(self, file: &str) -> String {
        let (show, key) = match self {
            Self::Experiment => return format!("`volary run {file}` runs it, `volary plan {file}` shows it"),
            Self::Topology => ("topology", "[cluster] topology"),
            Self::Profile => ("profile", "[interference] profile"),
            Self::Classes => {
                return format!("an experiment uses it with [workload.mix] classes = \"{file}\"");
            }
        };
        format!("`volary {show} show {file}` shows it; an experiment uses it with {key} = \"{file}\"")
    }

    /// Refuses a document that is clearly of another kind.
    pub(super) fn expect(self, document: &Document<'_>) -> Result<(), ConfigError> {
        let first = entries(&document.root).first().map_or(0..0, |(key, _)| key.span());
        self.expect_in(&document.root, document.name(), document, &first)
    }

    /// The same for a table of another file, which is named at `span` of the document.
    pub(super) fn expect_in(
        self,
        table: &DeTable<'_>,
        file: &str,
        document: &Document<'_>,
        span: &Range<usize>,
    ) -> Result<(), ConfigError> {
        let Some(kind) = Self::of(table).filter(|kind| *kind != self) else { return Ok(()) };
        let message = format!("{file} is {}, not {}", kind.name(), self.name());
        Err(document.error(span, message).help(kind.remedy(file)))
    }
}
