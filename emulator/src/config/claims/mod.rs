//! Claims: checkable statements from papers.
//!
//! A check compares numbers of the results within each cell of the sweep:
//!
#![doc = concat!("```text\n", include_str!("grammar.txt"), "```")]
//!
//! `path` is a number in a line of results, such as `response_s.p50` or `messages.by_kind.probe.reserve`. Labels and
//! paths are checked when the experiment is planned. Both sides are taken from the same cell, unless a metric names
//! the values of other cells in brackets: `a.wait_s.p50[service.correlated=true]`. `when` restricts the cells.
//! Replications enter as the mean over the seeds under which every metric of the check was measured.
//!
//! The verdict compares means. With two seeds or more, each comparison also says whether it is `within_noise`: whether
//! the 95 % interval of the difference, paired by seed, contains zero, so that other seeds could have decided
//! otherwise. There is no correction for multiple comparisons: of twenty comparisons of equal policies, about one will
//! seem significant.

mod judge;
mod metric;
mod parse;

pub use judge::judge;
pub use metric::BY_KIND;
pub use parse::ParseError;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;

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
    text: String,
    form: Form,
}

#[derive(Clone, PartialEq, Debug)]
enum Form {
    Compare { left: Side, op: Op, right: Side },
    Within { left: Side, percent: f64, right: Side },
    Trend { side: Side, rises: bool, key: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

#[derive(Clone, PartialEq, Debug)]
enum Side {
    Number(f64),
    Metric(Metric),
    Binary(Box<Self>, Arithmetic, Box<Self>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A number in the results.
#[derive(Clone, PartialEq, Debug)]
struct Metric {
    label: String,
    path: Vec<String>,
    /// Bracketed keys and values of other cells, as written.
    at: Vec<(String, String)>,
    /// Its position in the check.
    span: std::ops::Range<usize>,
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
            return Err(metric::unknown_key(key, at..at + key.len(), axes));
        }
        self.metrics().into_iter().try_for_each(|metric| metric.resolve(labels, axes))
    }

    /// The check as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn metrics(&self) -> Vec<&Metric> {
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

impl Side {
    fn collect<'a>(&'a self, found: &mut Vec<&'a Metric>) {
        match self {
            Self::Number(_) => {}
            Self::Metric(metric) => found.push(metric),
            Self::Binary(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }

    fn value(&self, of: &impl Fn(&Metric) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Metric(metric) => of(metric)?,
            Self::Binary(left, op, right) => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                match op {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }
}

impl Op {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
            Self::Equal => left == right,
        }
    }
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
