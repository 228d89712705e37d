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
        left: Metric,
        right: Metric,
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
    Metric(Metric),
    /// Two operands of `+`, `-`, `*` or `/`.
    Binary(Box<Self>, &'static str, Box<Self>),
}

/// A number in the results.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Metric {
    pub(super) label: String,
    pub(super) path: Vec<String>,
    /// Bracketed keys and values of other cells, as written.
    pub(super) at: Vec<(String, String)>,
    /// Its position in the check.
    pub(super) span: Range<usize>,
}

/// Numbers of the results that are shares of one.
const SHARES: [&str; 6] = ["utilization", "goodput", "unqueued", "miss_rate", "degraded", "work_lost"];

impl Metric {
    /// The parts of its path that results name, without the labels of classes and kinds of messages.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let labels = match self.path.first().map(String::as_str) {
            Some("classes") => 1..2,
            Some("messages") => 2..self.path.len(),
            _ => 0..0,
        };
        let names = self.path.iter().enumerate();
        names.filter(move |(at, _)| !labels.contains(at)).map(|(_, name)| name.as_str())
    }

    /// Its unit, by its name: `s` for seconds, `share` for shares of one.
    pub(super) fn unit(&self) -> Option<&'static str> {
        let is_share = self.path.last().is_some_and(|name| SHARES.contains(&name.as_str()));
        let is_time = self.names().any(|name| name.ends_with("_s") && !name.ends_with("_per_s"));
        if is_time { Some("s") } else { is_share.then_some("share") }
    }
}

impl Side {
    /// The unit of its value; numbers as written have none of their own.
    pub(super) fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Number(_) | Self::Duration(_) => None,
            Self::Metric(metric) => metric.unit(),
            Self::Binary(left, op, right) => match (*op, left.unit(), right.unit()) {
                ("*", Some(_), Some(_)) | ("/", _, Some(_)) => None,
                (_, left, right) => left.or(right),
            },
        }
    }

    pub(super) fn collect<'a>(&'a self, found: &mut Vec<&'a Metric>) {
        match self {
            Self::Number(_) | Self::Duration(_) => {}
            Self::Metric(metric) => found.push(metric),
            Self::Binary(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }

    /// The number of the results that this is a multiple of.
    pub(super) fn scaled(&self) -> Option<&Metric> {
        let Self::Binary(left, op, right) = self else { return None };
        match (left.as_ref(), *op, right.as_ref()) {
            (Self::Number(_), "*", Self::Metric(metric)) => Some(metric),
            (Self::Metric(metric), "*" | "/", Self::Number(_)) => Some(metric),
            (Self::Number(_) | Self::Duration(_) | Self::Metric(_) | Self::Binary(..), ..) => None,
        }
    }

    pub(super) fn value(&self, of: &impl Fn(&Metric) -> Option<f64>) -> Option<f64> {
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
            Self::Within(_) => self.margin(left, right) >= 0.0,
        }
    }

    /// The tested quantity: its distance from zero, relative to its variation over seeds, shows whether other seeds
    /// could have given the opposite answer.
    pub(super) fn margin(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Sign(_) => left - right,
            Self::Within(percent) => percent / 100.0 * right.abs() - (left - right).abs(),
        }
    }
}
