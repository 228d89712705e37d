//! The forms of a check and the expressions they compare.

use std::ops::Range;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    Compare { left: Side, op: Op, right: Side },
    Within { left: Side, percent: f64, right: Side },
    Trend { side: Side, rises: bool, key: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Side {
    Number(f64),
    Metric(Metric),
    Binary(Box<Self>, Arithmetic, Box<Self>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
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

impl Side {
    pub(super) fn collect<'a>(&'a self, found: &mut Vec<&'a Metric>) {
        match self {
            Self::Number(_) => {}
            Self::Metric(metric) => found.push(metric),
            Self::Binary(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }

    pub(super) fn value(&self, of: &impl Fn(&Metric) -> Option<f64>) -> Option<f64> {
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
    pub(super) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
            Self::Equal => left == right,
        }
    }
}
