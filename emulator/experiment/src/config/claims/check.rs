//! Claims and their checks. Names in checks (policies, numbers of the results, swept keys) and the units of numbers are
//! verified.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_actors::message::kinds;
use volary_engine::handling::ROLES;
use volary_engine::results::{
    ActorLoad, Cell, Certificate, ClassResults, Compared, Deadlines, DepthResults, Engine, Graphs, JobTimes,
    Messages, Metric, Origin, PolicySections, RealWork, SharedNodes, Spread, Summary, Tolerance, Unit,
};

use super::form::{self, Form, MetricName, Op, ParseError, Side};
use crate::config::error::{did_you_mean, listed};

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
    pub when: BTreeMap<String, Value>,
    /// The claim fails if one of these checks fails.
    pub checks: Vec<Check>,
    /// Comparisons with the published numbers: if one of these fails and all checks hold, the verdict is `other-size`.
    #[serde(default)]
    pub sizes: Vec<Check>,
    /// Source of the tolerance of the comparisons.
    #[serde(default)]
    pub tolerance: Option<Tolerance>,
}

impl Claim {
    /// All comparisons of the claim: checks and sizes.
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

    /// Checks the names in this check against the names of the experiment.
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

    /// Whether the check compares within a tolerance.
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
        Ok(Self { form: form::check(&text)?, text })
    }
}

/// The values of every swept key.
pub type Axes = BTreeMap<String, Vec<Value>>;

/// The names that checks may use.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Labels of policies.
    pub labels: &'a [String],
    /// Labels of classes of jobs.
    pub classes: &'a BTreeSet<String>,
    pub axes: &'a Axes,
}

/// The path below which messages are counted by kind.
pub const BY_KIND: [&str; 2] = ["messages", "by_kind"];
/// The paths below which any name is accepted: values of programs, and depths of jobs.
const OPEN: [&[&str]; 2] = [&["values"], &["graphs", "by_depth"]];
/// The path below which jobs are split by class.
const BY_CLASS: [&str; 1] = ["classes"];

impl MetricName {
    /// Checks every name, and that the metric is a number, or a distribution if `distribution`.
    pub(super) fn resolve(&self, names: Names<'_>, distribution: bool) -> Result<(), ParseError> {
        let at = |from: usize, len: usize| self.span.start + from..self.span.start + from + len;
        if !names.labels.contains(&self.label) {
            let known = names.labels.iter().map(String::as_str);
            return Err(unknown("policy", &self.label, at(0, self.label.len()), known));
        }
        let (template, mut offset) = (template(names.classes), self.label.len() + 1);
        let (mut value, mut rest) = (&template, &self.path[..]);
        while let Some(part) = rest.first() {
            let Value::Object(map) = value else {
                let number = self.path[..self.path.len() - rest.len()].join(".");
                let message = format!("`{number}` has no parts");
                return Err(ParseError::new(at(offset, part.len()), message, format!("leave out `.{part}`")));
            };
            let whole = rest.join(".");
            let parent = &self.path[..self.path.len() - rest.len()];
            let is_open = OPEN.iter().any(|open| parent == *open);
            let named = if is_open { map.values().next() } else { map.get(part) };
            (value, rest) = match (named, map.get(&whole)) {
                (Some(below), _) => (below, &rest[1..]),
                // Names of message kinds contain dots.
                (None, Some(kind)) => (kind, &rest[rest.len()..]),
                (None, None) => {
                    let (what, name) = match parent {
                        kinds if kinds == BY_KIND => ("message kind", &whole),
                        classes if classes == BY_CLASS => (CLASS, part),
                        _ => ("number", part),
                    };
                    let known = map.keys().map(String::as_str);
                    return Err(unknown(what, name, at(offset, name.len()), known));
                }
            };
            offset += part.len() + 1;
        }
        if distribution && value.get(MEDIAN).is_none() {
            let message = format!("`{}` is not a distribution", self.path.join("."));
            let help = "compare distributions of the results, such as response_s";
            return Err(ParseError::new(self.span.clone(), message, help));
        }
        if !distribution && !value.is_number() {
            let help = value.as_object().map_or_else(
                || "compare numbers of the results, such as response_s.p50".into(),
                |map| format!("add one of {}", listed(map.keys().map(String::as_str))),
            );
            let message = format!("`{}` is not a number", self.path.join("."));
            return Err(ParseError::new(self.span.clone(), message, help));
        }
        self.at.iter().try_for_each(|(key, text)| self.check_cell(key, text, names.axes))
    }

    fn check_cell(&self, key: &str, text: &str, axes: &Axes) -> Result<(), ParseError> {
        let span = self.span.end..self.span.end + 1;
        let values = axes.get(key).ok_or_else(|| unknown_key(key, span.clone(), axes))?;
        if values.iter().any(|value| written(value) == text) {
            return Ok(());
        }
        let values: Vec<String> = values.iter().map(written).collect();
        Err(unknown(&format!("value of {key}"), text, span, values.iter().map(String::as_str)))
    }

    /// The index of the cell from which the metric is taken when the check is evaluated in `cell`.
    pub(super) fn place(&self, cell: &Cell, cells: &[Cell]) -> Option<usize> {
        cells.iter().position(|other| {
            other.iter().all(|(key, value)| match self.at.iter().find(|(named, _)| named == key) {
                Some((_, text)) => written(value) == *text,
                None => cell.get(key) == Some(value),
            })
        })
    }
}

/// A value in the syntax of checks.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The error for an unknown swept key.
fn unknown_key(key: &str, at: Range<usize>, axes: &Axes) -> ParseError {
    unknown("swept key", key, at, axes.keys().map(String::as_str))
}

/// The number that every distribution has.
const MEDIAN: &str = "p50";

const CLASS: &str = "class of jobs";

fn unknown<'a>(
    what: &str,
    name: &str,
    at: Range<usize>,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ParseError {
    let help = did_you_mean(name, known.clone()).unwrap_or_else(|| match known.clone().next() {
        None if what == CLASS => {
            "the workload has no classes; give it a `cutoff`, or write it as a mix of several".to_owned()
        }
        None => "nothing is swept here".to_owned(),
        Some(_) => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    });
    ParseError::new(at, format!("unknown {what} `{name}`"), help)
}

/// A line of results that contains every number a line can have, for these classes of jobs.
fn template(classes: &BTreeSet<String>) -> Value {
    let mut fidelity = Certificate::default();
    let network = &mut fidelity.network;
    for share in [&mut network.datagram, &mut network.stream]
        .into_iter()
        .flat_map(|class| [&mut class.loss, &mut class.duplicate, &mut class.reorder])
    {
        (share.asked, share.achieved) = (Some(0.0), Some(0.0));
    }
    (network.delay.ks, network.link_wait_s) = (Some(0.0), Some(Compared::default()));
    fidelity.cores = Some(RealWork::default());
    let messages =
        Messages { by_kind: kinds().map(|(kind, _)| (kind.to_owned(), 0)).collect(), ..Messages::default() };
    let times = JobTimes { unqueued: Some(0.0), ..JobTimes::default() };
    let of_class = ClassResults { times, not_finished: Some(0), ..ClassResults::default() };
    let by_depth = [(1, DepthResults::default())].into();
    let graphs = Graphs { by_depth, ..Graphs::default() };
    let engine = Engine { planning_cpu_s: Some(0.0), ..Engine::default() };
    let summary = Summary {
        messages,
        engine,
        classes: classes.iter().map(|label| (label.clone(), of_class)).collect(),
        times,
        deadlines: Some(Deadlines::default()),
        graphs: Some(graphs),
        sections: PolicySections::every(),
        values: [(String::new(), Spread::default())].into(),
        shared: Some(SharedNodes::default()),
        actors: ROLES.map(|role| (role.to_owned(), ActorLoad::default())).into(),
        fidelity: Some(fidelity),
        ..Summary::default()
    };
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    // Keys that identify the line cannot be compared.
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !["experiment", "policy", "cell", "runtime", "seed"].contains(&key.as_str()));
    }
    value
}

/// The dimension of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dimension {
    /// A number as written; it takes the unit of the number on the other side.
    Any,
    Seconds,
    /// Work of nodes or cores, hours.
    Hours,
    /// Shares of one, which can be compared with counts and ratios.
    Share,
    /// Counts and ratios.
    Plain,
    /// Products and quotients that are none of these.
    Other,
}

impl Dimension {
    /// The dimension of a number of the results: given by its metric, or derived from the names on its path.
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

    /// The unit of the sum of two numbers with these units; `None` if the numbers cannot be added.
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

    /// The unit in results.
    const fn symbol(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("s"),
            Self::Share => Some("share"),
            Self::Any | Self::Hours | Self::Plain | Self::Other => None,
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
fn unit_of(form: &Form) -> Option<&'static str> {
    common(form).ok()?.symbol()
}

/// The unit of an expression, as results name it.
///
/// # Errors
/// When parts of different units are added.
pub(super) fn unit_of_side(side: &Side, text: &str) -> Result<Option<&'static str>, ParseError> {
    unit(side).map(Dimension::symbol).map_err(|units| mixed(units, text))
}

/// Refuses a comparison or a sum of different units.
///
/// # Errors
/// When two numbers have different units. The error names both units, and its position is the whole check.
fn refuse_mixed(form: &Form, text: &str) -> Result<(), ParseError> {
    common(form).map(drop).map_err(|units| mixed(units, text))
}

fn mixed((left, right): (Dimension, Dimension), text: &str) -> ParseError {
    let message = format!("{} and {} are not comparable", left.name(), right.name());
    let help = "compare numbers of one unit; numbers without one are seconds beside a time";
    ParseError::new(0..text.len(), message, help)
}

/// The unit of the compared sides, or two units that are not comparable.
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

/// The unit of a side, or the units of two parts that cannot be added.
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
    use super::*;
    use crate::config::claims::{Check, form};

    #[test]
    fn the_examples_of_the_grammar_parse() {
        let (_, examples) = GRAMMAR.split_once("for example\n").unwrap();
        assert!(examples.lines().count() > 4);
        for example in examples.lines() {
            Check::parse(example.trim()).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }

    #[test]
    fn unknown_names_in_claims_are_refused() {
        let axes = BTreeMap::from([("service.correlated".to_owned(), vec![Value::Bool(true)])]);
        let labels = ["latin-square".to_owned(), "sparrow".to_owned()];
        let classes = BTreeSet::from(["short".to_owned(), "long".to_owned()]);
        let names = Names { labels: &labels, classes: &classes, axes: &axes };
        let resolve = |text: &str| Check::parse(text).unwrap().resolve(names);
        for text in [
            "sparrow.response_s.p50 < 1",
            "sparrow.messages.by_kind.probe.reserve < 1",
            "sparrow.fidelity.network.link_wait_s.asked < 1",
            "sparrow.planning.gap.mean < 1",
            "sparrow.shared.throttled < 1",
            "sparrow.engine.planning_cpu_s < 1",
            "sparrow.classes.short.response_s.p99 < 1",
            "sparrow.makespan_s[service.correlated=true] < 1",
            "sparrow.makespan_s rises with service.correlated",
            "sparrow.classes.long.wait_s below sparrow.response_s",
        ] {
            assert_eq!(resolve(text), Ok(()), "{text}");
        }
        for (text, at, words) in [
            ("sparow.makespan_s < 1", 0..6, "did you mean `sparrow`?"),
            ("1 < sparrow.respons_s.p50", 12..21, "did you mean `response_s`?"),
            ("sparrow.response_s.p5 < 1", 19..21, "did you mean `p50`?"),
            ("sparrow.response_s < 1", 0..18, "add one of"),
            ("sparrow.makespan_s.x < 1", 19..20, "leave out `.x`"),
            ("sparrow.engine.order_hash < 1", 0..25, "compare numbers"),
            ("sparrow.seed < 1", 8..12, "unknown number"),
            ("sparrow.messages.by_kind.probe.reserv < 1", 25..37, "did you mean `probe.reserve`?"),
            ("sparrow.messages.by_kind.zzz < 1", 25..28, "unknown message kind `zzz`; known: "),
            ("sparrow.messages.by_kind.probe < 1", 25..30, "unknown message kind `probe`"),
            ("sparrow.messages.foo < 1", 17..20, "known: by_kind"),
            ("sparrow.classes.shrt.jobs < 1", 16..20, "did you mean `short`?"),
            ("sparrow.classes.short < 1", 0..21, "add one of"),
            ("sparrow.response_s.p50 below sparrow.response_s", 0..22, "is not a distribution"),
            ("sparrow.fidelity.network.delay.kss < 1", 31..34, "did you mean `ks`?"),
            ("sparrow.fidelity.network.link_wait_s < 1", 0..36, "add one of `achieved` or `asked`"),
            ("sparrow.fidelity.hosts < 1", 0..22, "compare numbers"),
            ("sparrow.fidelity.hosts.busy < 1", 23..27, "leave out `.busy`"),
            ("sparrow.makespan_s[service.corelated=true] < 1", 18..19, "did you mean `service.correlated`?"),
            ("sparrow.makespan_s[service.correlated=false] < 1", 18..19, "known: true"),
            ("sparrow.makespan_s rises with service.x", 30..39, "did you mean `service.correlated`?"),
        ] {
            let error = resolve(text).unwrap_err();
            assert!(error.at == at && error.to_string().contains(words), "{text}: {error:?}");
        }
    }

    /// A number that is sometimes null must be in the template, or claims on it are refused.
    #[test]
    fn the_template_of_a_line_has_every_number() {
        fn open(key: &str, value: &Value) -> Vec<String> {
            match value {
                Value::Object(map) if !map.is_empty() => {
                    map.iter().flat_map(|(name, value)| open(&format!("{key}.{name}"), value)).collect()
                }
                Value::Object(_) | Value::Null => vec![key.to_owned()],
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Vec::new(),
            }
        }
        assert_eq!(open("", &template(&BTreeSet::from(["short".to_owned()]))), [] as [&str; 0]);
    }

    #[test]
    fn a_comparison_of_different_units_is_refused() {
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
            let found = refuse_mixed(&form::check(check).unwrap(), check).err();
            let found = found.map(|error| error.message);
            assert_eq!(found.is_some(), why.is_some(), "{check}: {found:?}");
            assert!(why.is_none_or(|why| found.unwrap().starts_with(why)), "{check}");
        }
    }
}
