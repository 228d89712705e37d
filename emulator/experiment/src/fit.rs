//! Fits of an on/off model, which alternates gaps and bursts of random lengths, to a trace of bursts.

use std::fmt;

use statrs::distribution::{ContinuousCDF, Normal};
use volary_engine::cores::config::TraceRow;
use volary_engine::cores::{Interference, Profile, ProfileError};

use crate::number::plural;

/// Smallest number of bursts, and of gaps before bursts, to which a model is fitted.
const LEAST: usize = 20;
/// Number of slowdowns of the model, each for an equal share of the degraded time.
const SLOWDOWNS: usize = 20;

/// Largest share of lengths that the end of the trace cuts off; with more, the fit cannot be judged.
const UNFINISHED: f64 = 0.2;
/// Smallest standard deviation of the logarithms of lengths.
const SPREAD: f64 = 1e-3;

/// A distribution that was fitted to lengths of the trace, and its distance from them.
#[derive(Clone, PartialEq, Debug)]
pub struct LengthFit {
    /// The distribution in the syntax of a profile.
    keys: String,
    /// The name of the distribution.
    name: &'static str,
    /// Mean of the distribution, s.
    mean_s: f64,
    /// Kolmogorov–Smirnov distance between the distribution and the lengths of the trace, less the part that the
    /// limited precision of lengths explains.
    distance: f64,
    /// Critical distance at the 5 % level for parameters that are fitted to the same sample (Lilliefors, for large
    /// samples).
    chance: f64,
    /// Share of lengths that the end of the trace cuts off.
    unfinished: f64,
}

/// An on/off model of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct OnOffFit {
    /// Number of units of the trace, number of their bursts, and length of the trace, s.
    observed: (usize, usize, f64),
    gaps: LengthFit,
    bursts: LengthFit,
    slowdowns: Vec<f64>,
    /// Share of degraded time, of the trace and of the model in the long run.
    pub degraded: [f64; 2],
    /// Share of lost work, of the trace and of the model in the long run.
    pub work_lost: [f64; 2],
}

/// A burst in the model: its length, s, and the constant slowdown at which the same work is done.
type Stretch = (f64, f64);

/// Fits the model to a trace.
///
/// # Errors
/// When the profile is no trace, or has too few bursts.
pub fn fit(profile: &Profile) -> Result<OnOffFit, String> {
    let Some(trace) = &profile.table.trace else {
        return Err("only a trace can be fitted; the profile is a model already".to_owned());
    };
    let end = trace.rows.iter().map(|row| row.end.as_secs_f64()).fold(0.0, f64::max);
    // The clock of a trace may begin long before its first burst.
    let begin = trace.rows.iter().map(|row| row.start.as_secs_f64()).fold(end, f64::min);
    // Samples are means over windows, so lengths are exact only to a window. The last windows may be cut off.
    let inner = trace.rows.iter().filter(|row| row.end.as_secs_f64() < end);
    let window = inner.map(|row| row.end.as_secs_f64() - row.start.as_secs_f64()).fold(end - begin, f64::min);
    let (mut gaps, mut bursts, mut units, mut healthy) = (Vec::new(), Vec::<Stretch>::new(), 0, 0.0);
    let mut unfinished = [0, 0];
    for rows in trace.rows.chunk_by(|a, b| a.unit == b.unit) {
        units += 1;
        let mut at = begin;
        let slow: Vec<&TraceRow> = rows.iter().filter(|row| row.slowdown > 1.0).collect();
        for burst in slow.chunk_by(|a, b| a.end == b.start) {
            let start = burst.first().map_or(0.0, |row| row.start.as_secs_f64());
            let length = |row: &&TraceRow| row.end.as_secs_f64() - row.start.as_secs_f64();
            let all: f64 = burst.iter().map(length).sum();
            let work: f64 = burst.iter().map(|row| length(row) / row.slowdown).sum();
            gaps.extend((start > at).then_some(start - at));
            bursts.push((all, all / work));
            healthy += start - at;
            at = burst.last().map_or(at, |row| row.end.as_secs_f64());
        }
        healthy += end - at;
        unfinished[usize::from(at >= end)] += 1;
    }
    if bursts.len() < LEAST || gaps.len() < LEAST {
        return Err(format!(
            "{} with {} before them are too few for a model, which needs {LEAST}; use the trace itself, or \
             record for longer",
            plural(bursts.len() as u64, "burst"),
            plural(gaps.len() as u64, "gap")
        ));
    }
    let lengths: Vec<f64> = bursts.iter().map(|(length, _)| *length).collect();
    let slow: f64 = lengths.iter().sum();
    let lost: f64 = bursts.iter().map(|(length, slowdown)| length * (1.0 - 1.0 / slowdown)).sum();
    // The end of the trace cuts off the last gap of a unit; its time is included in the mean.
    let gap =
        LengthFit::of(&gaps, healthy, unfinished[0] as f64 / (gaps.len() + unfinished[0]) as f64, window);
    // Bursts that the end of the trace cuts off are included in the lengths.
    let burst = LengthFit::of(&lengths, slow, unfinished[1] as f64 / lengths.len() as f64, window);
    let slowdowns = slowdowns(&mut bursts, slow);
    let speed = slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum::<f64>() / slowdowns.len() as f64;
    let share = burst.mean_s / (gap.mean_s + burst.mean_s);
    Ok(OnOffFit {
        observed: (units, lengths.len(), end - begin),
        degraded: [slow / (slow + healthy), share],
        work_lost: [lost / (slow + healthy), share * (1.0 - speed)],
        gaps: gap,
        bursts: burst,
        slowdowns,
    })
}

/// [`SLOWDOWNS`] slowdowns, each for an equal share of the degraded time.
fn slowdowns(bursts: &mut [Stretch], slow: f64) -> Vec<f64> {
    bursts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut passed = 0.0;
    let mut all = Vec::new();
    for (length, slowdown) in bursts {
        passed += *length;
        while all.len() < SLOWDOWNS && passed >= (all.len() as f64 + 0.5) / SLOWDOWNS as f64 * slow {
            all.push(*slowdown);
        }
    }
    all
}

impl LengthFit {
    /// The exponential or the lognormal distribution, whichever is nearer to the lengths. `all` is the total time of
    /// these lengths and of the lengths that the end of the trace cuts off; only the exponential fit uses it. Lengths
    /// are exact to `window`, s.
    fn of(lengths: &[f64], all: f64, unfinished: f64, window: f64) -> Self {
        let mut sorted = lengths.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (count, root) = (sorted.len() as f64, (sorted.len() as f64).sqrt());
        let mean = all / count;
        let exponential = Self {
            keys: format!("{{ exponential = {{ mean = \"{mean:.6}s\" }} }}"),
            name: "exponential",
            mean_s: mean,
            distance: distance(&sorted, window, |x| 1.0 - (-x / mean).exp()),
            chance: 1.094 / root,
            unfinished,
        };
        let centre = sorted.iter().map(|x| x.ln()).sum::<f64>() / count;
        let sigma = (sorted.iter().map(|x| (x.ln() - centre).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
        // Equal lengths have no spread.
        let sigma = sigma.max(SPREAD);
        let Ok(normal) = Normal::new(centre, sigma) else { return exponential };
        if unfinished > UNFINISHED {
            return exponential;
        }
        let median = centre.exp();
        let lognormal = Self {
            keys: format!("{{ lognormal = {{ median = \"{median:.6}s\", sigma = {sigma:.4} }} }}"),
            name: "lognormal",
            mean_s: median * (sigma * sigma / 2.0).exp(),
            distance: distance(&sorted, window, |x| normal.cdf(x.ln())),
            chance: 0.895 / root,
            unfinished,
        };
        let excess = |fit: &Self| fit.distance / fit.chance;
        if excess(&lognormal) < excess(&exponential) { lognormal } else { exponential }
    }

    /// Whether the lengths may be a sample of the distribution; `None` if the trace is too short to say.
    pub fn fits(&self) -> Option<bool> {
        (self.unfinished <= UNFINISHED).then_some(self.distance <= self.chance)
    }
}

/// The largest difference between a distribution function and the empirical distribution of sorted values, whose errors
/// are at most `wrong`.
fn distance(sorted: &[f64], wrong: f64, function: impl Fn(f64) -> f64) -> f64 {
    let count = sorted.len() as f64;
    let differs = |(i, x): (usize, &f64)| {
        let (least, most) = (function((x - wrong).max(0.0)), function(x + wrong));
        (least - i as f64 / count).max((i + 1) as f64 / count - most)
    };
    sorted.iter().enumerate().map(differs).fold(0.0, f64::max)
}

impl OnOffFit {
    /// The model as a profile.
    ///
    /// # Errors
    /// When a length is shorter than a profile allows.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        let parsed: Result<Interference, _> = toml::from_str(&self.to_string());
        parsed.map_err(|error| ProfileError::Keys(error.to_string()))?.resolve()
    }
}

/// The model as a profile file; the comment at its head says how well it fits.
impl fmt::Display for OnOffFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, bursts, end) = self.observed;
        writeln!(f, "# On/off model of a trace of {end:.1} s with {bursts} bursts on {units} units.")?;
        for (what, fit) in [("Gaps", &self.gaps), ("Bursts", &self.bursts)] {
            let LengthFit { name, mean_s, distance, chance, .. } = fit;
            write!(f, "# {what}: {name}, {mean_s:.3} s on average: ")?;
            let Some(fits) = fit.fits() else {
                let share = 100.0 * fit.unfinished;
                writeln!(
                    f,
                    "the trace is too short to tell models apart (its end cuts off {share:.0} % of the lengths)."
                )?;
                continue;
            };
            let verdict = if fits { "it fits" } else { "it does not fit" };
            writeln!(
                f,
                "{verdict} (distance {distance:.3}; chance exceeds {chance:.3} once in twenty times)."
            )?;
        }
        let ([slow, slow_model], [lost, lost_model]) =
            (self.degraded.map(|x| 100.0 * x), self.work_lost.map(|x| 100.0 * x));
        writeln!(
            f,
            "# Degraded time: {slow:.2} % in the trace, {slow_model:.2} % in the model in the long run."
        )?;
        writeln!(f, "# Lost work: {lost:.2} %, {lost_model:.2} %.")?;
        writeln!(
            f,
            "# Not in the model: units that slow down together, and long bursts that are deeper than short ones.\n"
        )?;
        let slowdowns = self.slowdowns.iter().map(|slowdown| format!("{slowdown:.3}")).collect::<Vec<_>>();
        writeln!(f, "[renewal]\ngap = {}\nburst = {}", self.gaps.keys, self.bursts.keys)?;
        writeln!(f, "slowdown.empirical.values = [{}]", slowdowns.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_actors::base::Span;
    use volary_engine::cores::show::Show;

    use super::*;

    /// A trace of a model on `units` units over `seconds` seconds.
    fn trace(model: &str, units: u32, seconds: u64) -> Profile {
        let profile = toml::from_str::<Interference>(model).unwrap().resolve().unwrap();
        let show = Show { units, until: Span::from_secs(seconds), seed: 3 };
        let rows = show.json(&profile);
        let row = |row: &serde_json::Value| {
            format!("{} {} {} {}\n", row["core"], row["start_s"], row["end_s"], row["slowdown"])
        };
        let mut text: String = rows.as_array().unwrap().iter().map(row).collect();
        (0..units).for_each(|unit| text.push_str(&format!("{unit} {seconds} {} 1\n", seconds + 1)));
        let text = text.into_bytes();
        let table: Interference = toml::from_str("trace.file = \"t\"").unwrap();
        table.load(Path::new(""), |_| Ok(text.into())).unwrap()
    }

    #[test]
    fn a_fit_recovers_the_process_that_made_a_trace() {
        let model = "[renewal]\ngap.exponential.mean = \"2s\"\nburst.exponential.mean = \"500ms\"\n\
                     slowdown.uniform = { low = 2, high = 6 }\n";
        let found = fit(&trace(model, 20, 200)).unwrap();
        let fits = |found: &OnOffFit| [found.gaps.fits(), found.bursts.fits()];
        assert!(fits(&found) == [Some(true); 2] && found.gaps.name == "exponential", "{found}");
        assert!((found.gaps.mean_s - 2.0).abs() < 0.1 && (found.bursts.mean_s - 0.5).abs() < 0.03, "{found}");
        let stated = 1.0 - found.profile().unwrap().throughput().unwrap();
        for lost in [found.work_lost[0], stated] {
            assert!((found.work_lost[1] - lost).abs() < 0.01, "{lost}: {found}");
        }
        let skewed = model.replace(
            "burst.exponential.mean = \"500ms\"",
            "burst.lognormal = { median = \"200ms\", sigma = 1.2 }",
        );
        let found = fit(&trace(&skewed, 20, 200)).unwrap();
        assert!(found.bursts.name == "lognormal" && fits(&found)[1] == Some(true), "{found}");
        let neither = model
            .replace("burst.exponential.mean = \"500ms\"", "burst.empirical.values = [\"10ms\", \"1s\"]");
        let found = fit(&trace(&neither, 20, 200)).unwrap();
        assert!(fits(&found)[1] == Some(false) && found.to_string().contains("it does not fit"), "{found}");
    }

    /// A recording of bursts: samples that are means over windows, with a clock that starts at `begin`.
    fn recorded(bursts: &Profile, begin: u64) -> Profile {
        let mut text = String::from("time,core,slowdown\n");
        for rows in bursts.table.trace.as_ref().unwrap().rows.chunk_by(|a, b| a.unit == b.unit) {
            let end = rows.iter().map(|row| row.start.as_secs_f64()).fold(0.0, f64::max);
            for window in 0..(10.0 * end) as u64 {
                let (from, until) = (window as f64 / 10.0, (window + 1) as f64 / 10.0);
                let slow = |row: &TraceRow| {
                    let shared = row.end.as_secs_f64().min(until) - row.start.as_secs_f64().max(from);
                    shared.max(0.0) * (row.slowdown - 1.0)
                };
                let slowdown = 1.0 + 10.0 * rows.iter().map(slow).sum::<f64>();
                let slowdown = if slowdown < 1.1 { 1.0 } else { slowdown };
                let (at, tenth) = (begin + window / 10, window % 10);
                text.push_str(&format!("{at}.{tenth},{},{slowdown:.3}\n", rows[0].unit));
            }
        }
        let table: Interference = toml::from_str("trace.file = \"t\"").unwrap();
        table.load(Path::new(""), |_| Ok(text.into_bytes().into())).unwrap()
    }

    #[test]
    fn a_fit_to_means_over_windows_recovers_the_recorded_process() {
        let model =
            "[renewal]\ngap.exponential.mean = \"2s\"\nburst.exponential.mean = \"500ms\"\nslowdown = 3\n";
        let found = fit(&recorded(&trace(model, 10, 100), 1_700_000_000)).unwrap();
        assert_eq!([found.gaps.fits(), found.bursts.fits()], [Some(true); 2], "{found}");
        assert!((found.gaps.mean_s - 2.0).abs() < 0.3 && found.observed.2 < 101.0, "{found}");
        let two = model
            .replace("burst.exponential.mean = \"500ms\"", "burst.empirical.values = [\"300ms\", \"3s\"]");
        let found = fit(&recorded(&trace(&two, 10, 100), 0)).unwrap();
        assert_eq!(found.bursts.fits(), Some(false), "{found}");
        let found = fit(&recorded(&trace(model, 100, 4), 0)).unwrap();
        assert_eq!(found.gaps.fits(), None, "{found}");
        assert!(found.to_string().contains("too short to tell"), "{found}");
    }

    #[test]
    fn traces_with_few_bursts_and_profiles_without_a_trace_are_refused() {
        let model = "[renewal]\ngap = \"2s\"\nburst = \"500ms\"\nslowdown = 2\n";
        let error = fit(&trace(model, 1, 20)).unwrap_err();
        assert!(error.contains("too few") && error.contains("use the trace itself"), "{error}");
        let error = fit(&toml::from_str::<Interference>(model).unwrap().resolve().unwrap()).unwrap_err();
        assert!(error.contains("only a trace"), "{error}");
    }
}
