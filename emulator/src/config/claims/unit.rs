//! The units of the numbers in a check.

use super::form::{Form, Metric, Side};
use super::parse::ParseError;

/// The unit of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
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

/// Numbers of the results that are shares of one.
const SHARES: [&str; 6] = ["utilization", "goodput", "unqueued", "miss_rate", "degraded", "work_lost"];

impl Unit {
    /// The unit of a number of the results, by the names on its path.
    fn of(metric: &Metric) -> Self {
        // Labels of classes and kinds of messages are no such names.
        let labels = match metric.path.first().map(String::as_str) {
            Some("classes") => 1..2,
            Some("messages") => 2..metric.path.len(),
            _ => 0..0,
        };
        let named = |ends: fn(&str) -> bool| {
            let mut names = metric.path.iter().enumerate();
            names.any(|(at, name)| !labels.contains(&at) && ends(name))
        };
        if named(|name| name.ends_with("_s") && !name.ends_with("_per_s")) {
            Self::Seconds
        } else if named(|name| name.ends_with("_h")) {
            Self::Hours
        } else if metric.path.last().is_some_and(|name| SHARES.contains(&name.as_str())) {
            Self::Share
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
        Unit::Seconds => Some("s"),
        Unit::Share => Some("share"),
        Unit::Any | Unit::Hours | Unit::Plain | Unit::Other => None,
    }
}

/// Refuses a comparison or a sum of different units.
///
/// # Errors
/// With the two units; the place is the whole check.
pub(super) fn refuse_mixed(form: &Form, text: &str) -> Result<(), ParseError> {
    let mixed = |(left, right): (Unit, Unit)| {
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
fn common(form: &Form) -> Result<Unit, (Unit, Unit)> {
    match form {
        Form::Compare { left, right, .. } => join(unit(left)?, unit(right)?),
        Form::Trend { side, .. } => unit(side),
        Form::Below { left, right } => join(Unit::of(left), Unit::of(right)),
    }
}

fn join(left: Unit, right: Unit) -> Result<Unit, (Unit, Unit)> {
    left.plus(right).ok_or((left, right))
}

/// The unit of a side, or the units of two parts that have no sum.
fn unit(side: &Side) -> Result<Unit, (Unit, Unit)> {
    match side {
        Side::Number(_) => Ok(Unit::Any),
        Side::Duration(_) => Ok(Unit::Seconds),
        Side::Metric(metric) => Ok(Unit::of(metric)),
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
