//! The columns of summary tables, on the terminal and on the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::str::FromStr;

use volary_engine::results::{Better, ColumnGroup, METRICS, Metric, Reading, Summary, TableColumn, Unit};
use volary_experiment::config::claims::Expression;
use volary_experiment::config::error::nearest;
use volary_experiment::number::{NumberColumn, UnitText};
use volary_experiment::stats::Interval;
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

/// A metric that has a column in summary tables.
#[derive(Clone, Copy, Debug)]
pub struct SummaryColumn {
    pub(super) metric: &'static Metric,
    pub(super) heading: &'static str,
    pub(super) group: ColumnGroup,
    /// Rank among the default columns; `None` for a column that is shown only on request.
    pub(super) rank: Option<u8>,
    shown_if: Option<Reading>,
}

impl SummaryColumn {
    /// All columns, in display order.
    pub(super) fn all() -> impl Iterator<Item = Self> + Clone {
        METRICS.iter().filter_map(|metric| {
            let TableColumn { heading, group, rank, shown_if } = metric.column?;
            Some(Self { metric, heading, group, rank, shown_if })
        })
    }

    /// Name of the column on the command line.
    pub fn name(&self) -> String {
        self.metric.column_name().unwrap_or_default()
    }

    /// Meaning of the column in few words, for the title of a chart or an axis.
    pub fn brief(&self) -> String {
        let Self { heading, .. } = self;
        if self.is_response_time() { format!("response time, {heading}") } else { (*heading).to_owned() }
    }

    /// Whether the column is a time that jobs took.
    pub(super) fn is_response_time(&self) -> bool {
        self.group == ColumnGroup::Response && self.metric.unit == Unit::Seconds
    }

    /// Function from a summary to the column's number, for one class of jobs or for all jobs. The number is NaN if the
    /// column does not exist for classes.
    pub(super) fn of(&self, class: Option<&str>) -> impl Fn(&Summary) -> f64 {
        let Metric { value, by_class, .. } = *self.metric;
        move |summary| match class {
            None => value(summary),
            Some(label) if by_class => summary.for_class(label).map_or(f64::NAN, |of_class| value(&of_class)),
            Some(_) => f64::NAN,
        }
    }

    /// Labels of the policies with the best mean, if larger or smaller values are better. Empty if all means are equal,
    /// if policies cannot be [ranked](CellGroup::is_ranked), or if the lead of the best policy is not significant (the
    /// 95 % interval of the paired difference contains zero).
    pub(super) fn best<'a>(&self, group: &'a CellGroup, class: Option<&str>) -> Vec<&'a str> {
        let sign = match self.metric.better {
            Better::Less => 1.0,
            Better::More => -1.0,
            Better::Neither => return Vec::new(),
        };
        if !group.is_ranked() {
            return Vec::new();
        }
        let compared = group.policies.iter().filter(|runs| self.is_comparable(runs));
        let means = compared.filter_map(|runs| Some((runs, runs.interval(self.of(class))?.mean * sign)));
        let means: Vec<(&PolicyRuns, f64)> = means.collect();
        let Some(&(best, least)) = means.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
        let (equal, others): (Vec<_>, Vec<_>) = means.iter().partition(|(_, mean)| *mean == least);
        let is_worse = |runs: &PolicyRuns| {
            let difference = Interval::paired(&runs.pairs(best, self.of(class)));
            difference.is_none_or(|found| found.half_width.is_none() || found.excludes_zero())
        };
        if others.is_empty() || !others.iter().all(|(runs, _)| is_worse(runs)) {
            return Vec::new();
        }
        equal.into_iter().map(|(runs, _)| runs.policy.as_str()).collect()
    }

    /// The numbers of rows; a row is a policy with all its jobs, or with a class of its jobs. The mark of a number says
    /// whether it is the best of its class; `None` if the class has no best number. Numbers with the same text have the
    /// same mark.
    pub(super) fn numbers(
        &self,
        group: &CellGroup,
        rows: &[(&PolicyRuns, Option<&str>)],
    ) -> (NumberColumn, Vec<Option<bool>>) {
        let interval = |(runs, class): &(&PolicyRuns, Option<&str>)| {
            let found = runs.interval(self.of(*class));
            found.map_or((f64::NAN, None), |found| (found.mean, found.half_width))
        };
        let column = self.metric.unit.column(&rows.iter().map(interval).collect::<Vec<_>>());
        let of_class: BTreeMap<Option<&str>, Vec<&str>> =
            rows.iter().map(|(_, class)| (*class, self.best(group, *class))).collect();
        let written = || rows.iter().zip(&column.cells).map(|((runs, class), cell)| (runs, *class, &cell.0));
        let is_best = |runs: &PolicyRuns, class| of_class[&class].contains(&runs.policy.as_str());
        let best: BTreeSet<(Option<&str>, &String)> = written()
            .filter(|(runs, class, _)| is_best(runs, *class))
            .map(|(_, class, text)| (class, text))
            .collect();
        // If all numbers of a class have the same text, none is the best.
        let is_alike = |class| {
            let mut texts = written().filter(|found| found.1 == class).map(|found| found.2);
            let first = texts.next();
            texts.all(|text| Some(text) == first)
        };
        let marks = written().map(|(runs, class, text)| {
            let found = !of_class[&class].is_empty() && !is_alike(class);
            found.then(|| self.is_comparable(runs) && best.contains(&(class, text)))
        });
        let marks = marks.collect();
        (column, marks)
    }

    /// Whether a policy's number can be the best: not if jobs are unfinished and would change the number.
    fn is_comparable(&self, runs: &PolicyRuns) -> bool {
        !self.metric.censored || runs.runs.iter().all(|run| run.summary.not_finished() == 0)
    }

    /// Whether the column is worth showing: a run has a number for it, or, with `shown_if`, a positive one.
    pub(super) fn is_worth<'a>(&self, runs: impl IntoIterator<Item = &'a Summary>) -> bool {
        let mut runs = runs.into_iter();
        match self.shown_if {
            Some(found) => runs.any(|run| found(run) > 0.0),
            None => runs.any(|run| (self.metric.value)(run).is_finite()),
        }
    }
}

/// The columns of percentiles of response times, in order.
pub fn percentiles_of_response() -> impl Iterator<Item = SummaryColumn> {
    SummaryColumn::all().filter(|column| column.is_response_time() && column.heading.starts_with('p'))
}

/// A requested column, of all jobs or of one class.
#[derive(Clone, Debug)]
pub struct PickedColumn {
    pub class: Option<String>,
    /// The requested column.
    pub(super) column: SummaryColumn,
}

/// Picked columns are equal if their classes and metrics are equal.
impl PartialEq for PickedColumn {
    fn eq(&self, other: &Self) -> bool {
        (&self.class, self.column.metric.key) == (&other.class, other.column.metric.key)
    }
}

impl Eq for PickedColumn {}

impl PickedColumn {
    /// The number in a summary.
    pub fn of(&self) -> impl Fn(&Summary) -> f64 {
        self.column.of(self.class.as_deref())
    }

    /// Meaning of the column in few words.
    pub fn title(&self) -> String {
        let what = self.column.brief();
        self.class.as_ref().map_or_else(|| what.clone(), |class| format!("{what} of {class}"))
    }
}

impl FromStr for PickedColumn {
    type Err = String;

    /// Parses `p99`, or `short.p99` for the class `short`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_lowercase().replace(' ', "-");
        let named = |column: &SummaryColumn| column.name() == wanted || column.metric.key == text;
        if let Some(column) = SummaryColumn::all().find(named) {
            return Ok(Self { class: None, column });
        }
        if wanted.starts_with("values.") {
            return Err(format!(
                "`{text}` is a value recorded by a program and has no column: means are below the table, and claims \
                 can use it"
            ));
        }
        let of_class = SummaryColumn::all().filter_map(|column| {
            let class = wanted.strip_suffix(column.name().as_str())?.strip_suffix('.')?;
            Some((column, text.get(..class.len())?)) // as the user wrote it
        });
        // A column name may contain a dot, such as `p99.9`, so the longest matching name is used.
        match of_class.max_by_key(|(column, _)| column.name().len()) {
            Some((column, class)) if column.metric.by_class => {
                Ok(Self { class: Some(class.to_owned()), column })
            }
            Some((column, _)) => Err(format!("classes of jobs have no column `{}`: {HELP}", column.name())),
            None => {
                let names: Vec<String> = SummaryColumn::all().map(|column| column.name()).collect();
                Err(match nearest(&wanted, names.iter().map(String::as_str)) {
                    Some(near) => format!("no column is named `{text}`; did you mean `{near}`? {HELP}"),
                    None => format!("no column is named `{text}`: {HELP}"),
                })
            }
        }
    }
}

/// A number of a chart.
#[derive(Clone, PartialEq, Debug)]
pub enum ChartNumber {
    /// A column of the table of results.
    Column(PickedColumn),
    /// An expression of the results, as in claims.
    Expression(Expression),
}

impl ChartNumber {
    /// The number in a summary.
    pub fn of(&self) -> impl Fn(&Summary) -> f64 {
        move |summary| match self {
            Self::Column(column) => column.of()(summary),
            Self::Expression(expression) => expression.value(summary),
        }
    }

    /// Meaning of the number in few words.
    pub fn title(&self) -> String {
        match self {
            Self::Column(column) => column.title(),
            Self::Expression(expression) => expression.text().to_owned(),
        }
    }

    /// Direction in which the number is better; an expression that is no metric is better if it is smaller.
    pub fn better(&self) -> Better {
        match self {
            Self::Column(column) => column.column.metric.better,
            Self::Expression(expression) => {
                Metric::named(expression.text()).map_or(Better::Less, |metric| metric.better)
            }
        }
    }

    /// Unit of the number.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Column(column) => column.column.metric.unit,
            Self::Expression(expression) => match expression.unit() {
                Some("s") => Unit::Seconds,
                Some(_) => Unit::Share,
                None => Unit::Plain,
            },
        }
    }
}

impl From<Expression> for ChartNumber {
    /// The expression, or the column that shows it.
    fn from(expression: Expression) -> Self {
        let column = SummaryColumn::all().find(|column| column.metric.key == expression.text());
        column
            .map_or(Self::Expression(expression), |column| Self::Column(PickedColumn { class: None, column }))
    }
}

impl FromStr for ChartNumber {
    type Err = String;

    /// Parses a column, such as `p99`, or an expression, such as `response_s.p99 / response_s.p50`.
    fn from_str(text: &str) -> Result<Self, String> {
        let column = text.parse::<PickedColumn>();
        match (column, Expression::parse(text)) {
            (Ok(column), Err(_)) => Ok(Self::Column(column)),
            // A class can be named like an expression.
            (Ok(column), _) if column.class.is_none() => Ok(Self::Column(column)),
            (_, Ok(expression)) => Ok(expression.into()),
            (Err(_), Err(error)) if text.contains(['.', '_', ' ']) => Err(error.to_string()),
            (Err(why), Err(_)) => Err(why),
        }
    }
}

/// The argument that lists all columns, given instead of a column's name.
pub const ASKED: &str = "help";
/// The remedy for an unknown column.
const HELP: &str = "`help` instead of a name lists all columns";

/// All columns with their meanings, by group.
pub fn help() -> String {
    let mut out = String::new();
    for (group, title) in ColumnGroup::ALL {
        let _ = writeln!(out, "{title}");
        for column in SummaryColumn::all().filter(|column| column.group == group) {
            let class = if column.metric.by_class { " (also of a class)" } else { "" };
            let _ = writeln!(out, "  {:<20} {}{class}", column.name(), column.metric.meaning);
        }
    }
    out.push_str("CLASS.COLUMN is the column of one class of jobs, such as short.p99.\n");
    out
}

#[cfg(test)]
mod tests {
    use volary_experiment::number::UnitText;

    use super::*;

    /// Every column shows a unit, or states a count or a ratio.
    #[test]
    fn the_unit_of_every_column_is_stated() {
        const SAID: [&str; 6] =
            ["per task", "node-hours", "jobs that", "copies that", "response time over", "slowdown"];
        for column in SummaryColumn::all() {
            let Metric { meaning, unit, .. } = column.metric;
            let text = unit.text(12.5);
            let said = match unit {
                Unit::Seconds => text.ends_with('s'),
                Unit::Share => text.ends_with('%') && meaning.contains("share"),
                Unit::Hours | Unit::Plain | Unit::Count => {
                    SAID.iter().any(|words| meaning.contains(words)) || meaning.contains("number of")
                }
            };
            assert!(said, "{}: {text}, {}", column.heading, meaning);
        }
    }
}
