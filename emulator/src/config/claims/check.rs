//! Claims and their checks.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::form::{Form, Metric};
use super::metric::unknown_key;
use super::parse::{self, ParseError};

/// The grammar of checks, with examples.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// A statement, where it applies, and the comparisons that test it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    pub says: String,
    /// Restricts the claim to cells with these values; a list means any of its values.
    pub when: BTreeMap<String, serde_json::Value>,
    /// The claim holds if all of these hold.
    pub checks: Vec<Check>,
}

/// A parsed comparison with its text.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    pub(super) text: String,
    pub(super) form: Form,
}

impl Check {
    /// Parses a comparison.
    ///
    /// # Errors
    /// When it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { text: text.to_owned(), form: parse::check(text)? })
    }

    /// Checks names against the policies' labels and the swept keys with their values.
    ///
    /// # Errors
    /// When a label, a metric or a key of a cell is unknown.
    pub fn resolve(
        &self,
        labels: &[&str],
        axes: &BTreeMap<String, Vec<serde_json::Value>>,
    ) -> Result<(), ParseError> {
        if let Form::Trend { key, .. } = &self.form
            && !axes.contains_key(key)
        {
            let at = self.text.rfind(key.as_str()).unwrap_or(0);
            return Err(unknown_key(key, at..at + key.len(), axes));
        }
        self.metrics().into_iter().try_for_each(|metric| metric.resolve(labels, axes))
    }

    /// The check as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn metrics(&self) -> Vec<&Metric> {
        let mut found = Vec::new();
        match &self.form {
            Form::Compare { left, right, .. } | Form::Within { left, right, .. } => {
                left.collect(&mut found);
                right.collect(&mut found);
            }
            Form::Trend { side, .. } => side.collect(&mut found),
        }
        found
    }
}

/// Whether checks can compare the number at a path of the results.
#[must_use]
pub fn is_comparable(path: &[&str]) -> bool {
    let path = path.iter().map(|part| (*part).to_owned()).collect();
    let metric = Metric { label: String::new(), path, at: Vec::new(), span: 0..0 };
    metric.resolve(&[""], &BTreeMap::new()).is_ok()
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_grammar_parse() {
        let (_, examples) = GRAMMAR.split_once("for example\n").unwrap();
        assert!(examples.lines().count() > 4);
        for example in examples.lines() {
            Check::parse(example.trim()).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
