//! Expressions of the numbers of one run, for charts.

use std::collections::{BTreeMap, BTreeSet};

use volary_engine::results::Summary;

use super::check::{Check, Names, unit_of_side};
use super::form::{MetricName, ParseError, Side, expression};
use super::judge::{at_path, numbers};

/// An expression of the numbers of one run, in the grammar of a side of a check but without policy labels, such as
/// `response_s.p99 / response_s.p50`.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    text: String,
    side: Side,
    unit: Option<&'static str>,
    classes: BTreeSet<String>,
}

impl Expression {
    /// Parses an expression and checks its names.
    ///
    /// # Errors
    /// When it does not follow the grammar, a number is unknown, or units are mixed.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let side = expression(text)?;
        let mut metrics = Vec::new();
        side.collect(&mut metrics);
        // Labels of classes are known only with an experiment.
        let class = |metric: &&MetricName| metric.path.first().is_some_and(|part| part == "classes");
        let classes: BTreeSet<String> =
            metrics.iter().copied().filter(class).filter_map(|metric| metric.path.get(1).cloned()).collect();
        let names = Names { labels: &[String::new()], classes: &classes, axes: &BTreeMap::new() };
        metrics.into_iter().try_for_each(|metric| metric.resolve(names, false))?;
        let unit = unit_of_side(&side, text)?;
        Ok(Self { text: text.to_owned(), side, unit, classes })
    }

    /// The distinct numbers that checks compare; for a distribution, its median.
    pub fn of_checks<'a>(checks: impl Iterator<Item = &'a str>) -> Vec<Self> {
        // The same check may occur for each cell.
        let (mut found, mut known): (Vec<Self>, BTreeSet<&str>) = (Vec::new(), BTreeSet::new());
        for check in checks.filter(|text| known.insert(*text)).filter_map(|text| Check::parse(text).ok()) {
            for path in check.metrics().into_iter().map(|metric| metric.path.join(".")) {
                let number = Self::parse(&path).or_else(|_| Self::parse(&format!("{path}.p50")));
                found.extend(number.ok().filter(|number| !found.contains(number)));
            }
        }
        found
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Labels of the classes of jobs whose numbers the expression uses.
    pub const fn classes(&self) -> &BTreeSet<String> {
        &self.classes
    }

    /// Unit of the number: `s` for seconds, `share` for shares of one; `None` for a plain number.
    pub const fn unit(&self) -> Option<&'static str> {
        self.unit
    }

    /// The number of a run; NaN if the run lacks it.
    pub fn value(&self, summary: &Summary) -> f64 {
        let numbers = numbers(summary);
        let of = |metric: &MetricName| at_path(&numbers, &metric.path)?.as_f64();
        self.side.value(&of).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture::measured;

    #[test]
    fn an_expression_computes_a_number_of_a_run() {
        let summary = measured("a", &[], 1, 1.0, 50).summary;
        let value = |text: &str| Expression::parse(text).unwrap().value(&summary);
        let (p50, p99) = (value("response_s.p50"), value("response_s.p99"));
        assert_eq!(value("response_s.p99 / response_s.p50"), p99 / p50);
        assert_eq!(value("(makespan_s + 250ms) * 2"), 2.0 * (value("makespan_s") + 0.25));
        assert!(value("classes.absent.response_s.p50").is_nan());
        assert_eq!(Expression::parse("response_s.p99").unwrap().unit(), Some("s"));
        assert_eq!(Expression::parse("response_s.p99 / response_s.p50").unwrap().unit(), None);
    }

    #[test]
    fn an_unknown_number_is_refused_with_the_nearest_name() {
        let error = |text: &str| Expression::parse(text).unwrap_err().to_string();
        assert!(error("respons_s.p50").contains("response_s"), "{}", error("respons_s.p50"));
        assert!(error("response_s").contains("is not a number"));
        assert!(error("response_s.p50 < 3").contains("the expression should end here"));
        assert!(error("response_s.p50 + utilization").contains("are not comparable"));
    }

    #[test]
    fn the_numbers_of_checks_are_listed_once() {
        let checks = ["a.response_s below b.response_s", "a.response_s.p50 < 2 * b.utilization", "no check"];
        let found = Expression::of_checks(checks.into_iter());
        let texts: Vec<&str> = found.iter().map(Expression::text).collect();
        assert_eq!(texts, ["response_s.p50", "utilization"]);
    }
}
