//! Published facts about the traces used in papers, and the recognition of these traces.

use clap::ValueEnum;
use serde::Serialize;
use volary_actors::base::Span;

use super::Description;

/// A trace about which facts were published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Yahoo, as the Hawk, Eagle, Kairos, Pigeon and Murmuration papers use it.
    Yahoo,
    /// Cloudera-c, as the same papers use it.
    Cloudera,
    /// Google 2011, whole or as the same papers use it.
    Google,
    /// Alibaba 2018 batch jobs, as the Murmuration paper uses them.
    Alibaba,
    /// TwoSigma's clusters, from Park's thesis.
    TwoSigma,
    /// LANL's Mustang, from Park's thesis.
    Mustang,
    /// LANL's OpenTrinity, from Park's thesis.
    OpenTrinity,
}

/// A measured and a published value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The compared quantity.
    pub what: &'static str,
    /// The trace's value.
    pub measured: f64,
    /// The published value.
    pub published: f64,
    /// The publication.
    pub source: &'static str,
}

/// A fact that papers state about a trace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Jobs,
    FanOutMean,
    FanOutP50,
    FanOutP90,
    FanOutP99,
    FanOutMax,
    MeanMean,
    MeanP50,
    MeanP90,
    MeanP99,
    GapP50,
    GapP99,
    LongJobs,
    LongWork,
    SingleTask,
    DurationP80,
    Under12Min,
}

use Measure::{
    DurationP80, FanOutMax, FanOutMean, FanOutP50, FanOutP90, FanOutP99, GapP50, GapP99, Jobs, LongJobs,
    LongWork, MeanMean, MeanP50, MeanP90, MeanP99, SingleTask, Under12Min,
};

const PIGEON: &str = "Pigeon, Table 1";
const MURMURATION: &str = "Murmuration, Table 2";
const KAIROS: &str = "Kairos, Table 2";
const PARK: &str = "Park, chapter 3";

const YAHOO: &[(Measure, f64, &str)] = &[
    (Jobs, 24_262.0, KAIROS),
    (FanOutMean, 39.91, PIGEON),
    (FanOutP50, 15.0, MURMURATION),
    (FanOutP99, 636.0, MURMURATION),
    (FanOutMax, 5900.0, PIGEON),
    (MeanMean, 118.78, PIGEON),
    (MeanP50, 16.0, MURMURATION),
    (MeanP99, 2410.0, MURMURATION),
    (LongJobs, 0.0941, KAIROS),
    (LongWork, 0.98, KAIROS),
];

const CLOUDERA: &[(Measure, f64, &str)] = &[
    (FanOutMean, 272.93, PIGEON),
    (FanOutP50, 126.0, MURMURATION),
    (FanOutP99, 3650.0, MURMURATION),
    (FanOutMax, 51_834.0, PIGEON),
    (MeanMean, 162.19, PIGEON),
    (MeanP50, 48.0, MURMURATION),
    (MeanP99, 2515.0, MURMURATION),
    (GapP50, 12.0, MURMURATION),
    (GapP99, 13.0, MURMURATION),
];

const GOOGLE: &[(Measure, f64, &str)] = &[
    (Jobs, 506_460.0, KAIROS),
    (FanOutMean, 35.32, PIGEON),
    (FanOutMax, 49_960.0, PIGEON),
    (MeanMean, 661.74, PIGEON),
    (LongJobs, 0.10, KAIROS),
    (LongWork, 0.83, KAIROS),
    (SingleTask, 0.77, PARK),
    (Under12Min, 0.80, PARK),
];

const ALIBABA: &[(Measure, f64, &str)] = &[
    (FanOutP50, 3.0, MURMURATION),
    (FanOutP90, 3.0, MURMURATION),
    (FanOutP99, 65.0, MURMURATION),
    (MeanP50, 108.0, MURMURATION),
    (MeanP90, 578.0, MURMURATION),
    (MeanP99, 2608.0, MURMURATION),
];

const TWO_SIGMA: &[(Measure, f64, &str)] = &[(DurationP80, 2.0 * 3600.0, PARK)];
const MUSTANG: &[(Measure, f64, &str)] = &[(DurationP80, 3.0 * 3600.0, PARK)];
const OPEN_TRINITY: &[(Measure, f64, &str)] = &[(DurationP80, 6.0 * 3600.0, PARK)];

/// Mean absolute logarithm of the factor by which a trace's fan-outs and durations may differ from the published ones
/// for it to be taken for an excerpt of that trace.
const RESEMBLANCE: f64 = 0.45;

impl Reference {
    const fn facts(self) -> &'static [(Measure, f64, &'static str)] {
        match self {
            Self::Yahoo => YAHOO,
            Self::Cloudera => CLOUDERA,
            Self::Google => GOOGLE,
            Self::Alibaba => ALIBABA,
            Self::TwoSigma => TWO_SIGMA,
            Self::Mustang => MUSTANG,
            Self::OpenTrinity => OPEN_TRINITY,
        }
    }

    /// Boundary between short and long jobs that the papers use (Eagle's published settings).
    #[must_use]
    pub const fn cutoff(self) -> Option<Span> {
        match self {
            Self::Yahoo => Some(Span(90_581_100_000)),
            Self::Cloudera => Some(Span(272_783_000_000)),
            Self::Google => Some(Span(1_129_532_000_000)),
            Self::Alibaba | Self::TwoSigma | Self::Mustang | Self::OpenTrinity => None,
        }
    }

    /// The trace with the most similar published fan-outs and durations, if similar enough.
    pub(super) fn resembling(description: &Description) -> Option<Self> {
        let distances =
            Self::value_variants().iter().filter_map(|&known| Some((known, known.distance(description)?)));
        let (nearest, distance) = distances.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (distance < RESEMBLANCE).then_some(nearest)
    }

    /// Mean |ln(measured / published)| over the facts that an excerpt shares with the whole trace; `None` if too few
    /// of them are published.
    fn distance(self, description: &Description) -> Option<f64> {
        let shared = [
            FanOutMean, FanOutP50, FanOutP90, FanOutP99, MeanMean, MeanP50, MeanP90, MeanP99, SingleTask,
            Under12Min,
        ];
        let ratios: Vec<f64> = self
            .facts()
            .iter()
            .filter(|(measure, ..)| shared.contains(measure))
            .filter_map(|&(measure, published, _)| Some((measure.of(description)? / published).ln().abs()))
            .collect();
        (ratios.len() > 1).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }

    pub(super) fn compare(self, description: &Description) -> Vec<Comparison> {
        let row = |&(measure, published, source): &(Measure, f64, &'static str)| {
            Some(Comparison { what: measure.name(), measured: measure.of(description)?, published, source })
        };
        self.facts().iter().filter_map(row).collect()
    }
}

impl Measure {
    /// The trace's value; `None` if it is unknown.
    fn of(self, d: &Description) -> Option<f64> {
        Some(match self {
            Jobs => d.jobs as f64,
            FanOutMean => d.fan_out.mean,
            FanOutP50 => d.fan_out.p50,
            FanOutP90 => d.fan_out.p90,
            FanOutP99 => d.fan_out.p99,
            FanOutMax => d.fan_out.max,
            MeanMean => d.mean_s.mean,
            MeanP50 => d.mean_s.p50,
            MeanP90 => d.mean_s.p90,
            MeanP99 => d.mean_s.p99,
            GapP50 => d.arrivals.gap_s.p50,
            GapP99 => d.arrivals.gap_s.p99,
            LongJobs => d.classes?.long_jobs,
            LongWork => d.classes?.long_work,
            SingleTask => d.single_task,
            DurationP80 => d.duration_s.p80,
            Under12Min => d.under_12min,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Jobs => "jobs",
            FanOutMean => "fan-out, mean",
            FanOutP50 => "fan-out, p50",
            FanOutP90 => "fan-out, p90",
            FanOutP99 => "fan-out, p99",
            FanOutMax => "fan-out, max",
            MeanMean => "mean duration, mean, s",
            MeanP50 => "mean duration, p50, s",
            MeanP90 => "mean duration, p90, s",
            MeanP99 => "mean duration, p99, s",
            GapP50 => "gap, p50, s",
            GapP99 => "gap, p99, s",
            LongJobs => "long jobs, share",
            LongWork => "work of long jobs, share",
            SingleTask => "jobs of one task, share",
            DurationP80 => "duration, p80, s",
            Under12Min => "jobs under 12 min, share",
        }
    }
}
