//! The policies and cells of a study that a command selects.

use serde_json::Value;
use volary_actors::base::Span;
use volary_engine::results::{in_words, plain};
use volary_experiment::config::error::{listed, nearest};
use volary_experiment::storage::study::Study;

/// Selected policies and cells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Labels of the policies; all if empty.
    pub policies: Vec<String>,
    /// Keys and values of the cells; all if empty.
    pub at: Vec<(String, String)>,
}

/// Error of an option that names a policy, key or value that the study lacks.
#[derive(Debug, thiserror::Error)]
#[error("{option} {text}: {why}")]
pub struct SelectionError {
    option: &'static str,
    text: String,
    why: String,
}

impl Selection {
    /// Keeps only the selected policies and cells of a study. Keys with a selected value are no longer swept.
    ///
    /// # Errors
    /// When an option names a policy, key or value that the study lacks.
    pub fn keep(&self, study: &mut Study) -> Result<(), SelectionError> {
        keep_policies(study, &self.policies)?;
        let mut wanted: Vec<(String, Vec<&str>)> = Vec::new();
        for (key, value) in &self.at {
            let full = swept_key(study, "--at", key)?;
            match wanted.iter_mut().find(|(known, _)| *known == full) {
                Some((_, values)) => values.push(value),
                None => wanted.push((full, vec![value])),
            }
        }
        wanted.iter().try_for_each(|(key, values)| keep_cells(study, key, values))
    }
}

/// Keeps only the policies with the labels `wanted`; all policies if `wanted` is empty.
fn keep_policies(study: &mut Study, wanted: &[String]) -> Result<(), SelectionError> {
    let known = study.policies();
    if let Some(label) = wanted.iter().find(|label| !known.contains(&label.as_str())) {
        let why = match nearest(label, known.iter().copied()) {
            _ if known.is_empty() => "no run yet; `volary report` shows what is missing".to_owned(),
            Some(near) => format!("the run has no such policy; did you mean `{near}`?"),
            None => format!("the run has no such policy; choose {}", listed(known.iter().copied())),
        };
        return Err(SelectionError { option: "--policy", text: label.clone(), why });
    }
    if !wanted.is_empty() {
        for group in &mut study.cells {
            group.policies.retain(|runs| wanted.contains(&runs.policy));
        }
        study.cells.retain(|group| !group.policies.is_empty());
    }
    Ok(())
}

/// The full name of a swept key; the last part of the key is enough in `wanted`.
pub(super) fn swept_key(study: &Study, option: &'static str, wanted: &str) -> Result<String, SelectionError> {
    let keys: Vec<&str> = study.swept().into_keys().collect();
    let found = keys.iter().find(|key| **key == wanted || short_key(key, &keys) == wanted);
    found.map(|key| (*key).to_owned()).ok_or_else(|| {
        let why = if keys.is_empty() {
            "the run has no swept keys".to_owned()
        } else {
            format!("the swept keys are {}", listed(keys.iter().copied()))
        };
        SelectionError { option, text: wanted.to_owned(), why }
    })
}

/// The last part of a swept key if it is unique among `keys`, or else the whole key.
pub(crate) fn short_key<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alike = keys.iter().filter(|other| other.rsplit('.').next() == Some(last(key))).count();
    if alike > 1 { key } else { last(key) }
}

/// Keeps only the cells with one of these values of a swept key.
fn keep_cells(study: &mut Study, key: &str, wanted: &[&str]) -> Result<(), SelectionError> {
    let values: Vec<Value> =
        study.swept().get(key).into_iter().flatten().map(|value| (*value).clone()).collect();
    let mut kept: Vec<&Value> = Vec::new();
    for value in wanted {
        kept.push(meant(&values, value).ok_or_else(|| {
            let values: Vec<String> = values.iter().map(in_words).collect();
            let why = format!("the values are {}", listed(values.iter().map(String::as_str)));
            SelectionError { option: "--at", text: format!("{key}={value}"), why }
        })?);
    }
    study.cells.retain(|group| group.cell.get(key).is_some_and(|value| kept.contains(&value)));
    if let [_] = kept[..] {
        study.cells.iter_mut().for_each(|group| drop(group.cell.remove(key)));
    }
    Ok(())
}

/// The value that a text names: the value with this text (numbers and durations are compared by value), else the only
/// value that ends with these words. For a distribution, its parameter is thus enough.
fn meant<'a>(values: &'a [Value], text: &str) -> Option<&'a Value> {
    let exact = values.iter().find(|value| plain(value) == text || in_words(value) == text);
    let words = |text: &str| text.split_whitespace().count();
    let whole = |value: &&Value| words(&in_words(value)) == words(text) && ends_with(&in_words(value), text);
    let exact = exact.or_else(|| values.iter().find(whole));
    let mut alike = values.iter().filter(|value| ends_with(&in_words(value), text));
    exact.or_else(|| match (alike.next(), alike.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    })
}

/// Whether a value ends with the words of a text; numbers and durations are compared by value.
fn ends_with(value: &str, text: &str) -> bool {
    let (value, text): (Vec<&str>, Vec<&str>) =
        (value.split_whitespace().collect(), text.split_whitespace().collect());
    let mut pairs = value.iter().rev().zip(text.iter().rev());
    !text.is_empty() && value.len() >= text.len() && pairs.all(|(a, b)| is_same(a, b))
}

fn is_same(a: &str, b: &str) -> bool {
    let equal = |of: fn(&str) -> Option<f64>| {
        of(a).zip(of(b)).is_some_and(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
    };
    a == b || equal(|word| word.parse().ok()) || equal(length)
}

/// The length in s of a duration such as `10ms`; `None` for other texts.
pub(crate) fn length(text: &str) -> Option<f64> {
    text.parse::<Span>().ok().map(Span::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swept_values_are_matched_as_numbers_and_durations() {
        let distribution = |name: &str, mean: &str| serde_json::json!({ name: { "mean": mean } });
        let values =
            [2.0.into(), 12.into(), "10ms".into(), distribution("exponential", "62.5ms"), "1min".into()];
        for (text, at) in [("2", 0), ("12.0", 1), ("10000us", 2), ("0.01s", 2), ("62500us", 3), ("60s", 4)] {
            assert_eq!(meant(&values, text), Some(&values[at]), "{text}");
        }
        assert_eq!(meant(&values, "exponential 62500us"), Some(&values[3]));
        assert!(["", "3", "10s", "1ms", "constant 62.5ms"].iter().all(|text| meant(&values, text).is_none()));
        let both = ["5ms".into(), distribution("exponential", "5ms")];
        for (text, at) in [("5ms", 0), ("5000us", 0), ("exponential 5000us", 1)] {
            assert_eq!(meant(&both, text), Some(&both[at]), "{text}");
        }
        let two = [distribution("exponential", "1s"), distribution("uniform", "1s")];
        assert_eq!(meant(&two, "1s"), None, "both distributions have the parameter");
    }
}
