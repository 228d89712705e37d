//! Published facts about the traces used in papers, and the recognition of these traces.

use clap::ValueEnum;
use volary_actors::base::Span;

use super::description::{Description, PublishedValue, Reference};

/// A quantity that papers state about a trace.
struct Measure {
    name: &'static str,
    /// The value of a described trace; `None` if it is unknown.
    of: fn(&Description) -> Option<f64>,
    /// Whether an excerpt shares it with the whole trace.
    shared: bool,
}

impl Measure {
    const fn whole(name: &'static str, of: fn(&Description) -> Option<f64>) -> Self {
        Self { name, of, shared: false }
    }

    const fn shared(name: &'static str, of: fn(&Description) -> Option<f64>) -> Self {
        Self { name, of, shared: true }
    }
}

const JOBS: Measure = Measure::whole("jobs", |d| Some(d.jobs as f64));
const FAN_OUT_MEAN: Measure = Measure::shared("fan-out, mean", |d| d.counts_tasks.then_some(d.fan_out.mean));
const FAN_OUT_P50: Measure = Measure::shared("fan-out, p50", |d| d.counts_tasks.then_some(d.fan_out.p50));
const FAN_OUT_P90: Measure = Measure::shared("fan-out, p90", |d| d.counts_tasks.then_some(d.fan_out.p90));
const FAN_OUT_P99: Measure = Measure::shared("fan-out, p99", |d| d.counts_tasks.then_some(d.fan_out.p99));
const FAN_OUT_MAX: Measure = Measure::whole("fan-out, max", |d| d.counts_tasks.then_some(d.fan_out.max));
// Without tasks, the duration of a job is all that is known, which is no mean of tasks.
const MEAN_MEAN: Measure =
    Measure::shared("mean duration, mean, s", |d| d.counts_tasks.then_some(d.mean_s.mean));
const MEAN_P50: Measure =
    Measure::shared("mean duration, p50, s", |d| d.counts_tasks.then_some(d.mean_s.p50));
const MEAN_P90: Measure =
    Measure::shared("mean duration, p90, s", |d| d.counts_tasks.then_some(d.mean_s.p90));
const MEAN_P99: Measure =
    Measure::shared("mean duration, p99, s", |d| d.counts_tasks.then_some(d.mean_s.p99));
const GAP_P50: Measure = Measure::whole("gap, p50, s", |d| Some(d.arrivals.gap_s.p50));
const GAP_P99: Measure = Measure::whole("gap, p99, s", |d| Some(d.arrivals.gap_s.p99));
const LONG_JOBS: Measure = Measure::whole("long jobs, share", |d| Some(d.classes?.long_jobs));
const LONG_WORK: Measure = Measure::whole("work of long jobs, share", |d| Some(d.classes?.long_work));
const SINGLE_TASK: Measure =
    Measure::shared("jobs of one task, share", |d| d.counts_tasks.then_some(d.single_task));
const DURATION_P80: Measure = Measure::whole("duration, p80, s", |d| Some(d.duration_s.p80));
const UNDER_12MIN: Measure = Measure::shared("jobs under 12 min, share", |d| Some(d.under_12min));
const SUCCESSFUL: Measure =
    Measure::whole("successful jobs, share", |d| d.outcomes.as_ref().map(|outcomes| outcomes.successful));

/// A quantity, its published value, and the publication.
type Fact = (&'static Measure, f64, &'static str);

const PIGEON: &str = "Pigeon, Table 1";
const MURMURATION: &str = "Murmuration, Table 2";
const KAIROS: &str = "Kairos, Table 2";
const PARK: &str = "Park, chapter 3";

const YAHOO: &[Fact] = &[
    (&JOBS, 24_262.0, KAIROS),
    (&FAN_OUT_MEAN, 39.91, PIGEON),
    (&FAN_OUT_P50, 15.0, MURMURATION),
    (&FAN_OUT_P99, 636.0, MURMURATION),
    (&FAN_OUT_MAX, 5900.0, PIGEON),
    (&MEAN_MEAN, 118.78, PIGEON),
    (&MEAN_P50, 16.0, MURMURATION),
    (&MEAN_P99, 2410.0, MURMURATION),
    (&LONG_JOBS, 0.0941, KAIROS),
    (&LONG_WORK, 0.98, KAIROS),
];

const CLOUDERA: &[Fact] = &[
    (&FAN_OUT_MEAN, 272.93, PIGEON),
    (&FAN_OUT_P50, 126.0, MURMURATION),
    (&FAN_OUT_P99, 3650.0, MURMURATION),
    (&FAN_OUT_MAX, 51_834.0, PIGEON),
    (&MEAN_MEAN, 162.19, PIGEON),
    (&MEAN_P50, 48.0, MURMURATION),
    (&MEAN_P99, 2515.0, MURMURATION),
    (&GAP_P50, 12.0, MURMURATION),
    (&GAP_P99, 13.0, MURMURATION),
];

const GOOGLE: &[Fact] = &[
    (&JOBS, 506_460.0, KAIROS),
    (&FAN_OUT_MEAN, 35.32, PIGEON),
    (&FAN_OUT_MAX, 49_960.0, PIGEON),
    (&MEAN_MEAN, 661.74, PIGEON),
    (&LONG_JOBS, 0.10, KAIROS),
    (&LONG_WORK, 0.83, KAIROS),
    (&SINGLE_TASK, 0.77, PARK),
    (&UNDER_12MIN, 0.80, PARK),
    (&SUCCESSFUL, 0.58, PARK),
];

const ALIBABA: &[Fact] = &[
    (&FAN_OUT_P50, 3.0, MURMURATION),
    (&FAN_OUT_P90, 3.0, MURMURATION),
    (&FAN_OUT_P99, 65.0, MURMURATION),
    (&MEAN_P50, 108.0, MURMURATION),
    (&MEAN_P90, 578.0, MURMURATION),
    (&MEAN_P99, 2608.0, MURMURATION),
];

const TWO_SIGMA: &[Fact] = &[(&DURATION_P80, 2.0 * 3600.0, PARK)];
const MUSTANG: &[Fact] = &[(&DURATION_P80, 3.0 * 3600.0, PARK)];
const OPEN_TRINITY: &[Fact] = &[(&DURATION_P80, 6.0 * 3600.0, PARK)];

/// Mean absolute logarithm of the factor by which a trace's fan-outs and durations may differ from the published ones
/// for it to be taken for an excerpt of that trace.
const RESEMBLANCE: f64 = 0.45;

const fn facts(known: Reference) -> &'static [Fact] {
    match known {
        Reference::Yahoo => YAHOO,
        Reference::Cloudera => CLOUDERA,
        Reference::Google => GOOGLE,
        Reference::Alibaba => ALIBABA,
        Reference::TwoSigma => TWO_SIGMA,
        Reference::Mustang => MUSTANG,
        Reference::OpenTrinity => OPEN_TRINITY,
    }
}

/// Boundary between short and long jobs that the papers use (Eagle's published settings).
pub(super) const fn cutoff_of(known: Reference) -> Option<Span> {
    match known {
        Reference::Yahoo => Some(Span(90_581_100_000)),
        Reference::Cloudera => Some(Span(272_783_000_000)),
        Reference::Google => Some(Span(1_129_532_000_000)),
        Reference::Alibaba | Reference::TwoSigma | Reference::Mustang | Reference::OpenTrinity => None,
    }
}

/// The trace with the most similar published fan-outs and durations, if similar enough.
pub(super) fn resembling(description: &Description) -> Option<Reference> {
    let known = Reference::value_variants().iter();
    let distances = known.filter_map(|&known| Some((known, distance(known, description)?)));
    let (nearest, distance) = distances.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (distance < RESEMBLANCE).then_some(nearest)
}

/// Mean |ln(measured / published)| over the facts that an excerpt shares with the whole trace; `None` if fewer than
/// three of them are known.
fn distance(known: Reference, description: &Description) -> Option<f64> {
    let shared = facts(known).iter().filter(|(measure, ..)| measure.shared);
    let ratio = |(measure, published, _): &Fact| Some(((measure.of)(description)? / published).ln().abs());
    let ratios: Vec<f64> = shared.filter_map(ratio).collect();
    (ratios.len() > 2).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

/// The facts about a known trace beside the values of the described one.
pub(super) fn against(known: Reference, description: &Description) -> Vec<PublishedValue> {
    let row = |&(measure, published, source): &Fact| {
        let measured = (measure.of)(description)?;
        Some(PublishedValue { what: measure.name, measured, published, source })
    };
    facts(known).iter().filter_map(row).collect()
}
