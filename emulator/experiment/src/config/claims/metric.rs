//! Names in checks: policies, numbers of the results, swept keys.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;
use volary_actors::message::kinds;
use volary_engine::results::{
    Cell, Certificate, ClassResults, Compared, Deadlines, Engine, JobTimes, Messages, PolicySections,
    RealWork, SharedNodes, Summary,
};

use super::form::MetricName;
use super::parse::ParseError;
use crate::config::error::{did_you_mean, listed};

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
/// The path below which jobs are split by class.
const BY_CLASS: [&str; 1] = ["classes"];

impl MetricName {
    /// Checks every name; the metric must be a number, or a distribution.
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
            (value, rest) = match (map.get(part), map.get(&whole)) {
                (Some(below), _) => (below, &rest[1..]),
                // Names of message kinds contain dots.
                (None, Some(kind)) => (kind, &rest[rest.len()..]),
                (None, None) => {
                    let (what, name) = match &self.path[..self.path.len() - rest.len()] {
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
pub(super) fn unknown_key(key: &str, at: Range<usize>, axes: &Axes) -> ParseError {
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

/// A line of results with every possible number, for these classes of jobs.
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
    let engine = Engine { planning_cpu_s: Some(0.0), ..Engine::default() };
    let summary = Summary {
        messages,
        engine,
        classes: classes.iter().map(|label| (label.clone(), of_class)).collect(),
        times,
        deadlines: Some(Deadlines::default()),
        sections: PolicySections::every(),
        shared: Some(SharedNodes::default()),
        fidelity: Some(fidelity),
        ..Summary::default()
    };
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    // These identify the line and cannot be compared.
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !["experiment", "policy", "cell", "runtime", "seed"].contains(&key.as_str()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::claims::Check;

    #[test]
    fn names_are_checked() {
        let axes = BTreeMap::from([("service.correlated".to_owned(), vec![Value::Bool(true)])]);
        let labels = ["latin-square".to_owned(), "sparrow".to_owned()];
        let classes = BTreeSet::from(["short".to_owned(), "long".to_owned()]);
        let names = Names { labels: &labels, classes: &classes, axes: &axes };
        let resolve = |text: &str| Check::parse(text).unwrap().resolve(names);
        for text in [
            "sparrow.response_s.p50 < 1",
            "sparrow.messages.by_kind.probe.reserve < 1",
            "sparrow.fidelity.network.link_wait_s.asked < 1",
            "sparrow.staleness.version_age.p50 < 1",
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
    fn the_template_has_every_number() {
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
}
