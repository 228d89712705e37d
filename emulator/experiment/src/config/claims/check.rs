//! Claims and their checks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use volary_engine::results::{Origin, Tolerance};

use super::form::{Form, MetricName, Op};
use super::metric::{Names, unknown_key};
use super::parse::{self, ParseError};
use super::unit::{refuse_mixed, unit_of};

/// The grammar of checks, with examples.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// A statement, the cells to which it applies, and the comparisons that test it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    pub says: String,
    /// Origin of the statement.
    #[serde(default)]
    pub origin: Origin,
    /// Restricts the claim to cells with these values; a list means any of its values.
    pub when: BTreeMap<String, serde_json::Value>,
    /// The claim fails if one of these fails.
    pub checks: Vec<Check>,
    /// Comparisons with the published numbers: if one of these fails and all checks hold, the verdict is `other-size`.
    #[serde(default)]
    pub sizes: Vec<Check>,
    /// Source of the tolerance of the comparisons.
    #[serde(default)]
    pub tolerance: Option<Tolerance>,
}

impl Claim {
    /// All comparisons.
    pub(in crate::config) fn comparisons(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().chain(&self.sizes)
    }
}

/// A parsed comparison with its text, which is its serialized form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
        text.to_owned().try_into()
    }

    /// Checks names against those of the experiment.
    ///
    /// # Errors
    /// When a label, a metric or a key of a cell is unknown, or units are mixed.
    pub fn resolve(&self, names: Names<'_>) -> Result<(), ParseError> {
        if let Form::Trend { key, .. } = &self.form
            && !names.axes.contains_key(key)
        {
            let at = self.text.rfind(key.as_str()).unwrap_or(0);
            return Err(unknown_key(key, at..at + key.len(), names.axes));
        }
        let distributions = matches!(self.form, Form::Below { .. });
        self.metrics().into_iter().try_for_each(|metric| metric.resolve(names, distributions))?;
        refuse_mixed(&self.form, &self.text)
    }

    /// The check as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Unit of the compared numbers: `s` for seconds, `share` for shares of one; `None` for plain numbers.
    pub(super) fn unit(&self) -> Option<&'static str> {
        unit_of(&self.form)
    }

    /// Whether it compares within a tolerance.
    pub(in crate::config) fn has_tolerance(&self) -> bool {
        matches!(self.form, Form::Compare { op: Op::Within(_), .. })
    }

    pub(super) fn metrics(&self) -> Vec<&MetricName> {
        let sides = match &self.form {
            Form::Compare { left, right, .. } => vec![left, right],
            Form::Trend { side, .. } => vec![side],
            Form::Below { left, right } => return vec![left, right],
        };
        let mut found = Vec::new();
        sides.into_iter().for_each(|side| side.collect(&mut found));
        found
    }
}

/// Whether checks can compare the number at a path of the results; `class` stands for the label of any class.
pub fn is_comparable(path: &[&str], class: &str) -> bool {
    let path = path.iter().map(|part| (*part).to_owned()).collect();
    let metric = MetricName { label: String::new(), path, at: Vec::new(), span: 0..0 };
    let classes = BTreeSet::from([class.to_owned()]);
    let names = Names { labels: &[String::new()], classes: &classes, axes: &BTreeMap::new() };
    metric.resolve(names, false).is_ok()
}

impl From<Check> for String {
    fn from(check: Check) -> Self {
        check.text
    }
}

impl TryFrom<String> for Check {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        Ok(Self { form: parse::check(&text)?, text })
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
