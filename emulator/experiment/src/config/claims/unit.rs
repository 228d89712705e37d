//! The units of the numbers in a check.

use volary_engine::results::{Metric, Unit};

use super::form::{Form, MetricName, Side};
use super::parse::ParseError;

/// The dimension of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dimension {
    /// A number as written, which takes the unit of what it is compared with.
    Any,
    Seconds,
    /// Work of nodes or cores, hours.
    Hours,
    /// Shares of one, which compare with counts and ratios.
    Share,
    /// Counts and ratios.
    Plain,
    /// Products and quotients that are none of these.
    Other,
}

impl Dimension {
    /// The dimension of a number of the results: that of its metric, or else by the names on its path.
    fn of(metric: &MetricName) -> Self {
        let of_class = metric.path.first().is_some_and(|first| first == "classes");
        let path = metric.path.get(if of_class { 2 } else { 0 }..).unwrap_or_default();
        if let Some(known) = Metric::named(&path.join(".")) {
            return match known.unit {
                Unit::Seconds => Self::Seconds,
                Unit::Hours => Self::Hours,
                Unit::Share => Self::Share,
                Unit::Plain | Unit::Count => Self::Plain,
            };
        }
        // The names of message kinds state no unit.
        let names = if path.first().is_some_and(|first| first == "messages") { &[] } else { path };
        let named = |ends: fn(&str) -> bool| names.iter().any(|name| ends(name));
        if named(|name| name.ends_with("_s") && !name.ends_with("_per_s")) {
            Self::Seconds
        } else if named(|name| name.ends_with("_h")) {
            Self::Hours
        } else {
            Self::Plain
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Any | Self::Other => "a number",
            Self::Seconds => "a time",
            Self::Hours => "hours of work",
            Self::Share | Self::Plain => "a count or a share",
        }
    }

    /// The unit of a sum; `None` if these have no sum.
    fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, unit) | (unit, Self::Any) => Some(unit),
            (Self::Other, _) | (_, Self::Other) => Some(Self::Other),
            (Self::Share, Self::Plain) | (Self::Plain, Self::Share) => Some(Self::Share),
            _ => (self == other).then_some(self),
        }
    }

    const fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, unit) | (unit, Self::Any) => unit,
            (Self::Share, unit) | (unit, Self::Share) => unit,
            (Self::Plain, unit) | (unit, Self::Plain) => unit,
            _ => Self::Other,
        }
    }

    const fn over(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, Self::Share | Self::Plain)
            | (Self::Share, Self::Share)
            | (Self::Seconds, Self::Seconds)
            | (Self::Hours, Self::Hours) => Self::Plain,
            (unit, Self::Any | Self::Share | Self::Plain) => unit,
            _ => Self::Other,
        }
    }
}

/// The unit of the compared numbers, as results name it: `s` for seconds, `share` for shares of one.
pub(super) fn unit_of(form: &Form) -> Option<&'static str> {
    match common(form).ok()? {
        Dimension::Seconds => Some("s"),
        Dimension::Share => Some("share"),
        Dimension::Any | Dimension::Hours | Dimension::Plain | Dimension::Other => None,
    }
}

/// Refuses a comparison or a sum of different units.
///
/// # Errors
/// With the two units; the place is the whole check.
pub(super) fn refuse_mixed(form: &Form, text: &str) -> Result<(), ParseError> {
    let mixed = |(left, right): (Dimension, Dimension)| {
        let message = format!("{} and {} are not comparable", left.name(), right.name());
        ParseError::new(
            0..text.len(),
            message,
            "compare numbers of one unit; numbers without one are seconds beside a time",
        )
    };
    common(form).map(drop).map_err(mixed)
}

/// The unit of what is compared, or two units that are not comparable.
fn common(form: &Form) -> Result<Dimension, (Dimension, Dimension)> {
    match form {
        Form::Compare { left, right, .. } => join(unit(left)?, unit(right)?),
        Form::Trend { side, .. } => unit(side),
        Form::Below { left, right } => join(Dimension::of(left), Dimension::of(right)),
    }
}

fn join(left: Dimension, right: Dimension) -> Result<Dimension, (Dimension, Dimension)> {
    left.plus(right).ok_or((left, right))
}

/// The unit of a side, or the units of two parts that have no sum.
fn unit(side: &Side) -> Result<Dimension, (Dimension, Dimension)> {
    match side {
        Side::Number(_) => Ok(Dimension::Any),
        Side::Duration(_) => Ok(Dimension::Seconds),
        Side::Metric(metric) => Ok(Dimension::of(metric)),
        Side::Binary(left, "*", right) => Ok(unit(left)?.times(unit(right)?)),
        Side::Binary(left, "/", right) => Ok(unit(left)?.over(unit(right)?)),
        Side::Binary(left, _, right) => join(unit(left)?, unit(right)?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn units_do_not_mix() {
        for (check, why) in [
            ("a.response_s.p99 < 500", None),
            ("a.response_s.p99 < 2 * b.longest_s.p50 + 1s", None),
            ("a.response_s.p99 / b.response_s.p99 < a.utilization", None),
            ("a.makespan_s * a.utilization < 40s", None),
            ("a.copies.started - 30_000 > 2 * b.tasks.finished", None),
            ("a.response_s.p50 * b.response_s.p50 < 3", None),
            ("a.throughput_per_s > 3 * a.utilization", None),
            ("a.utilization < b.response_s.p99", Some("a count or a share and a time are not")),
            ("a.utilization * 2 < b.response_s.p99", Some("a count or a share and a time")),
            ("0.5 / a.utilization < 1s", Some("a count or a share and a time")),
            ("a.classes.big_s.jobs > a.classes.big.jobs", None),
            ("a.classes.big_s.response_s.p50 > a.jobs.finished", Some("a time and a count")),
            ("a.utilization > 1s", Some("a count or a share and a time are not")),
            ("a.response_s.p50 / b.response_s.p50 > 40ms", Some("a count or a share and a time")),
            ("a.deadlines.goodput_h.be > a.response_s.p50", Some("hours of work and a time")),
            ("a.response_s.p50 + a.jobs.finished rises with k.l", Some("a time and a count or a share")),
            ("a.response_s below b.slowdown", Some("a time and a count or a share")),
        ] {
            let found = refuse_mixed(&parse::check(check).unwrap(), check).err();
            let found = found.map(|error| error.message);
            assert_eq!(found.is_some(), why.is_some(), "{check}: {found:?}");
            assert!(why.is_none_or(|why| found.unwrap().starts_with(why)), "{check}");
        }
    }
}
