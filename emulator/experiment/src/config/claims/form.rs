//! The forms of a check and the expressions they compare.

use std::ops::Range;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    Compare {
        left: Side,
        op: Op,
        right: Side,
    },
    Trend {
        side: Side,
        rises: bool,
        key: String,
    },
    /// Every percentile of the left distribution is smaller than that of the right one.
    Below {
        left: MetricName,
        right: MetricName,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Op {
    /// `<`, `<=`, `>`, `>=` or `==`.
    Sign(&'static str),
    /// The largest difference, in percent of the right side.
    Within(f64),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Side {
    Number(f64),
    /// Seconds, written with a unit.
    Duration(f64),
    Metric(MetricName),
    /// Two operands of `+`, `-`, `*` or `/`.
    Binary(Box<Self>, &'static str, Box<Self>),
}

/// A number in the results.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MetricName {
    pub(super) label: String,
    pub(super) path: Vec<String>,
    /// Bracketed keys and values of other cells, as written.
    pub(super) at: Vec<(String, String)>,
    /// Its position in the check.
    pub(super) span: Range<usize>,
}

impl Side {
    pub(super) fn collect<'a>(&'a self, found: &mut Vec<&'a MetricName>) {
        match self {
            Self::Number(_) | Self::Duration(_) => {}
            Self::Metric(metric) => found.push(metric),
            Self::Binary(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }

    /// The number of the results of which this side is a multiple.
    pub(super) fn scaled(&self) -> Option<&MetricName> {
        let Self::Binary(left, op, right) = self else { return None };
        match (left.as_ref(), *op, right.as_ref()) {
            (Self::Number(_), "*", Self::Metric(metric)) => Some(metric),
            (Self::Metric(metric), "*" | "/", Self::Number(_)) => Some(metric),
            (Self::Number(_) | Self::Duration(_) | Self::Metric(_) | Self::Binary(..), ..) => None,
        }
    }

    pub(super) fn value(&self, of: &impl Fn(&MetricName) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) | Self::Duration(number) => *number,
            Self::Metric(metric) => of(metric)?,
            Self::Binary(left, op, right) => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                match *op {
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    _ => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }
}

impl Op {
    pub(super) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Sign("<") => left < right,
            Self::Sign("<=") => left <= right,
            Self::Sign(">") => left > right,
            Self::Sign(">=") => left >= right,
            Self::Sign(_) => left == right,
            Self::Within(_) => (left - right).abs() <= self.band(right),
        }
    }

    /// The maximum difference from a right side.
    pub(super) fn band(self, right: f64) -> f64 {
        match self {
            Self::Sign(_) => 0.0,
            Self::Within(percent) => percent / 100.0 * right.abs(),
        }
    }
}
