//! The measured window of a run: the jobs that results count, and the time over which they average.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use volary_actors::base::{Span, Time};

use super::Workload;

/// Number of jobs that MSER-5 joins to a batch.
const BATCH: usize = 5;
/// Smallest number of jobs for which MSER-5 finds the end of the warm-up.
const LEAST: usize = 100;

/// `run.measure`: the part of a run that results cover.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// From the job at which MSER-5 finds the end of the warm-up.
    Auto,
    /// Between two bounds.
    #[serde(untagged)]
    Between(MeasureBounds),
}

/// `run.measure` as a table.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureBounds {
    /// Start of the window; the first arrival if absent. A share is a share of the jobs in order of arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Bound>,
    /// End of the window; the last arrival if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Bound>,
}

/// Emulated time, such as "10s", or a share of the jobs, such as "10 %".
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Bound {
    /// Emulated time.
    At(Span),
    /// A share of the jobs, per cent.
    Percent(f64),
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some(percent) = text.trim().strip_suffix('%') else { return text.parse().map(Self::At) };
        match percent.trim().parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
            Ok(percent) => Err(format!("{percent} % of the jobs is not between 0 % and 100 %")),
            Err(_) => Err(format!("`{text}` is not a share, such as \"10 %\"")),
        }
    }
}

impl From<Bound> for String {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::At(span) => span.to_string(),
            Bound::Percent(percent) => format!("{percent} %"),
        }
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Measure;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\", or bounds such as { from = \"10 %\" }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Measure, E> {
                let auto = || Ok(Measure::Auto);
                if text == "auto" { auto() } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Measure, A::Error> {
                MeasureBounds::deserialize(MapAccessDeserializer::new(map)).map(Measure::Between)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Measure {
    fn schema_name() -> Cow<'static, str> {
        "Measure".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<MeasureBounds>();
        json_schema!({
            "description": "the bounds of the measured window, or \"auto\": the window begins where MSER-5 finds the end of the warm-up",
            "anyOf": [bounds, { "const": "auto" }]
        })
    }
}

/// The reason why a run has no measured window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("run.measure: {why}; {help}")]
pub struct NoWindow {
    /// The reason.
    pub why: String,
    /// A remedy.
    pub help: &'static str,
}

impl Measure {
    /// The window of a run of these jobs; `None` if a first pass has to find it.
    ///
    /// # Errors
    /// [`NoWindow`] if no job arrives in the window, or its jobs all arrive at once.
    pub fn window(self, jobs: &Workload) -> Result<Option<Window>, NoWindow> {
        let (all, arrivals) = (jobs.chains(), &jobs.arrivals);
        let Self::Between(MeasureBounds { from, until }) = self else {
            return at_least(all as usize).map(|()| None);
        };
        let place = |bound| match bound {
            Bound::At(span) => arrivals.partition_point(|arrival| *arrival < Time::ZERO + span) as u32,
            Bound::Percent(percent) => (percent / 100.0 * f64::from(all)).round() as u32,
        };
        let (first, end) = (from.map_or(0, place), until.map_or(all, place));
        if first >= end {
            return Err(NoWindow {
                why: format!(
                    "none of {all} jobs arrives in the window: {first} arrive before it, and {end} before its end"
                ),
                help: "let `until` be later than `from`, and `from` earlier than the last arrival",
            });
        }
        let at = |bound, chain: u32| match bound {
            Some(Bound::At(span)) => Time::ZERO + span,
            Some(Bound::Percent(_)) | None => arrivals[chain as usize],
        };
        let window = Window { first, end, from: at(from, first), until: at(until, end - 1), auto: false };
        if window.from < window.until {
            return Ok(Some(window));
        }
        Err(NoWindow {
            why: format!("all {} jobs of the window arrive at once, so it has no length", end - first),
            help: "leave it out, or give `until` as a time",
        })
    }
}

fn at_least(jobs: usize) -> Result<(), NoWindow> {
    if jobs >= LEAST {
        return Ok(());
    }
    let why = format!("\"auto\" needs {LEAST} jobs that finish, not {jobs}");
    Err(NoWindow { why, help: "give bounds such as { from = \"10 %\" }, or run more jobs" })
}

/// The measured window of a run, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first chain of jobs that is measured.
    pub first: u32,
    /// The first chain after those that are measured.
    pub end: u32,
    /// Start of the time over which results average.
    pub from: Time,
    /// End of this time.
    pub until: Time,
    /// Whether a first pass found it.
    pub auto: bool,
}

impl Window {
    /// The window of a run that is measured as a whole.
    pub const WHOLE: Self = Self { first: 0, end: u32::MAX, from: Time::ZERO, until: Time::MAX, auto: false };

    /// The window from the arrival of a chain on, which a first pass found.
    ///
    /// # Errors
    /// [`NoWindow`] if no job arrives later.
    pub fn since(chain: u32, jobs: &Workload) -> Result<Self, NoWindow> {
        let from = jobs.arrivals[chain as usize].since(Time::ZERO);
        let bounds = MeasureBounds { from: Some(Bound::At(from)), until: None };
        Ok(Self { auto: true, ..Measure::Between(bounds).window(jobs)?.unwrap_or(Self::WHOLE) })
    }

    /// The number of response times that are warm-up by MSER-5 (White, Cobb and Spratt, *A comparison of five
    /// steady-state truncation heuristics for simulation*, WSC 2000). Response times are in order of arrival and joined
    /// to batches of five. The warm-up ends at the point in the first half that minimizes the squared standard error of
    /// the mean over all later batches.
    ///
    /// # Errors
    /// [`NoWindow`] for too few response times.
    pub fn truncation(responses: &[f64]) -> Result<usize, NoWindow> {
        at_least(responses.len())?;
        let batches: Vec<f64> =
            responses.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        let (mut least, mut begin) = (f64::INFINITY, 0);
        for (place, batch) in batches.iter().enumerate().rev() {
            count += 1.0;
            let apart = batch - mean;
            mean += apart / count;
            squares += apart * (batch - mean);
            if place <= batches.len() / 2 && squares / (count * count) <= least {
                (least, begin) = (squares / (count * count), place);
            }
        }
        Ok(begin * BATCH)
    }

    /// Whether the whole run is measured.
    pub fn is_whole(&self) -> bool {
        *self == Self::WHOLE
    }

    /// Whether a chain of jobs is measured.
    #[inline]
    pub fn has(&self, chain: u32) -> bool {
        self.chains(u32::MAX).contains(&chain)
    }

    /// The measured chains of a run of `all` chains.
    pub fn chains(&self, all: u32) -> Range<u32> {
        self.first.min(all)..self.end.min(all)
    }

    /// Whether a time is within the window.
    #[inline]
    pub fn spans(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }

    /// The part of a stretch of time within the window.
    #[inline]
    pub fn overlap(&self, from: Time, until: Time) -> Span {
        until.min(self.until).since(from.max(self.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{NoTraces, Service, Synthetic, WorkloadSpec};

    /// Ten jobs arrive, one a second from 1 s on.
    #[test]
    fn bounds_are_times_or_shares_of_the_jobs() {
        let jobs: Synthetic = toml::from_str("jobs = 10\ntasks = 1\ninterarrival = \"1s\"").unwrap();
        let service: Service = toml::from_str("demand = \"1s\"").unwrap();
        let jobs = Workload::build(&WorkloadSpec::Synthetic(jobs), &service, 1, 1, &NoTraces).unwrap();
        let window = |bounds: &str| {
            let measure = Measure::Between(toml::from_str(bounds).unwrap());
            let window = measure.window(&jobs).ok()?.unwrap();
            Some((window.first, window.end, window.from.as_secs_f64(), window.until.as_secs_f64()))
        };
        assert_eq!(window("from = \"10 %\"\nuntil = \"50%\""), Some((1, 5, 2.0, 5.0)));
        assert_eq!(window("from = \"2s\"\nuntil = \"5s\""), Some((1, 4, 2.0, 5.0)));
        assert_eq!(window("until = \"20s\""), Some((0, 10, 1.0, 20.0)));
        assert_eq!(window("from = \"500ms\""), Some((0, 10, 0.5, 10.0)));
        for empty in
            ["from = \"11s\"", "from = \"50 %\"\nuntil = \"2s\"", "from = \"90 %\"", "until = \"0 %\""]
        {
            assert_eq!(window(empty), None, "{empty}");
        }
        assert!(Measure::Auto.window(&jobs).unwrap_err().why.contains("not 10"));
    }

    /// Response times rise over 200 jobs, and then stay around 10 s.
    #[test]
    fn the_warm_up_ends_where_the_standard_error_of_the_mean_is_least() {
        let response =
            |job: u32| if job < 200 { f64::from(job) / 20.0 } else { 9.0 + f64::from(job / 5 % 3) };
        let found = Window::truncation(&(0..1000).map(response).collect::<Vec<_>>()).unwrap();
        assert!((170..=200).contains(&found), "{found}");
        assert_eq!(Window::truncation(&[1.0; 100]), Ok(0));
        assert!(Window::truncation(&[1.0; 99]).is_err());
    }
}
