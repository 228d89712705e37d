//! Pictures and figures of a profile without a run, for `volary profile show`.

use std::fmt::Write as _;

use serde_json::{Value, json};
use volary_actors::base::{DistributionSpec, Span, Time};
use volary_netem::Windows;

use super::profile::{AnyProcess, Runs};
use super::summary::BurstSummary;
use super::{Burst, CoreTable, Cores, Effect, Injection, Profile};

/// Widest timeline, in characters. Slots are merged if one character for each does not fit.
const WIDTH: u64 = 100;

/// The part of a profile to show. A run with this seed meets the same interference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Show {
    /// Number of units: cores, nodes or racks, as the profile's scope says.
    pub units: u32,
    /// End of the shown time, which begins at 0.
    pub until: Span,
    /// Seed of the run.
    pub seed: u64,
}

impl Profile {
    /// Long-run throughput of a core relative to a healthy core: 1 − p + p · E\[1 / σ\], where p is the share of
    /// degraded time. `None` without a known closed form, and for scripts, traces and profiles that end, which have no
    /// long run.
    pub fn throughput(&self) -> Option<f64> {
        if self.until != Time::MAX {
            return None;
        }
        let (degraded, slowdown) = match &self.process {
            AnyProcess::Bernoulli(p) => (p.probability, &p.slowdown),
            AnyProcess::Markov(p) if p.chain.p_on == 0.0 => (0.0, &p.chain.slowdown),
            AnyProcess::Markov(Runs { chain: p, .. }) => (p.p_on / (p.p_on + p.p_off), &p.slowdown),
            AnyProcess::Renewal(p) => {
                let (gap, burst) = (p.gap.mean(), p.burst.mean());
                if !(gap.is_finite() && burst.is_finite()) {
                    return None;
                }
                (burst / (gap + burst), &p.slowdown)
            }
            AnyProcess::Scripted(_) | AnyProcess::Trace(_) => return None,
        };
        Some(1.0 - self.affected * degraded * (1.0 - mean_inverse(slowdown)?))
    }

    /// Mean number of slots, or gaps and bursts, that a second of work takes on a core that is always degraded.
    pub fn stretches_of_work(&self) -> f64 {
        let slowdown = match &self.process {
            AnyProcess::Bernoulli(p) => &p.slowdown,
            AnyProcess::Markov(p) => &p.chain.slowdown,
            AnyProcess::Renewal(p) => &p.slowdown,
            AnyProcess::Scripted(p) => &p.slowdown,
            AnyProcess::Trace(trace) => return trace.most_slowdown() / self.stretch_s(),
        };
        slowdown.mean() / self.stretch_s()
    }

    /// Mean length of a slot, or of a gap and a burst, s; infinite if it is unknown or if stretches are few.
    pub fn stretch_s(&self) -> f64 {
        match &self.process {
            AnyProcess::Renewal(p) => p.gap.mean() + p.burst.mean(),
            AnyProcess::Bernoulli(_) | AnyProcess::Markov(_) | AnyProcess::Scripted(_) => {
                self.slot().map_or(f64::INFINITY, Span::as_secs_f64)
            }
            AnyProcess::Trace(trace) => trace.stretch_s(),
        }
    }

    /// Length of a slot, for processes that have slots.
    const fn slot(&self) -> Option<Span> {
        match &self.process {
            AnyProcess::Bernoulli(p) => Some(p.slot),
            AnyProcess::Markov(p) => Some(p.chain.slot),
            AnyProcess::Scripted(p) => Some(p.slot),
            AnyProcess::Renewal(_) | AnyProcess::Trace(_) => None,
        }
    }
}

/// E\[1 / σ\] of a distribution that stays at or above 1. Other distributions are clipped at 1, and have no simple
/// form.
fn mean_inverse(distribution: &DistributionSpec<f64>) -> Option<f64> {
    match distribution {
        DistributionSpec::Constant(value) => Some(1.0 / value),
        DistributionSpec::Uniform(p) if p.low == p.high => Some(1.0 / p.low),
        DistributionSpec::Uniform(p) => Some((p.high / p.low).ln() / (p.high - p.low)),
        DistributionSpec::Pareto(p) => Some(p.shape / (p.shape + 1.0) / p.scale),
        DistributionSpec::Empirical(p) if !p.values.is_empty() => {
            Some(p.values.iter().map(|value| 1.0 / value).sum::<f64>() / p.values.len() as f64)
        }
        DistributionSpec::Empirical(_)
        | DistributionSpec::Normal(_)
        | DistributionSpec::Lognormal(_)
        | DistributionSpec::Exponential(_)
        | DistributionSpec::Gamma(_)
        | DistributionSpec::Erlang(_)
        | DistributionSpec::Weibull(_)
        | DistributionSpec::Hyperexponential(_) => None,
    }
}

impl Show {
    /// Approximate number of slots, or gaps and bursts, that the picture visits.
    pub fn size(&self, profile: &Profile) -> f64 {
        f64::from(self.units) * self.until.as_secs_f64() / profile.stretch_s()
    }

    /// One line of blocks per unit (`█` degraded, `░` healthy, `▒` both), followed by its bursts, the throughput in
    /// the long run and in the shown time, and a summary of the shown time.
    pub fn text(&self, profile: &Profile) -> String {
        let bursts = self.bursts(profile);
        let summary = BurstSummary::of(&bursts, self.until.as_secs_f64());
        let rows: Vec<_> = (0..).zip(bursts).collect();
        let until = Time(self.until.0);
        let mut text = format!("seed {}, ", self.seed);
        text.push_str(&rows_text(profile, profile.scope.name(), &rows, (Time::ZERO, until)));
        let shown = format!("{:.2} % as shown", 100.0 * (1.0 - summary.work_lost));
        let known = profile.throughput().map_or_else(
            || "not known in closed form".into(),
            |x| format!("{:.2} % in the long run", 100.0 * x),
        );
        let _ = writeln!(text, "throughput of a core, healthy = 100 %: {known}; {shown}");
        let _ = write!(text, "{summary}");
        text
    }

    /// All bursts as objects `{core, start_s, end_s, slowdown}`, in order of unit and time. The first key is `node` or
    /// `rack` if the profile has that scope. A burst that continues beyond the end is cut there.
    pub fn json(&self, profile: &Profile) -> Value {
        let rows: Vec<_> = (0..).zip(self.bursts(profile)).collect();
        rows_json(profile.scope.name(), &rows)
    }

    /// Degraded time, speeds and burst lengths of the units in the shown time.
    pub fn summary(&self, profile: &Profile) -> BurstSummary {
        BurstSummary::of(&self.bursts(profile), self.until.as_secs_f64())
    }

    /// The bursts of each unit.
    fn bursts(&self, profile: &Profile) -> Vec<Vec<Burst>> {
        // One core per node and one node per rack, so that core i follows unit i in every scope.
        let table = CoreTable::equal(self.units, 1).with_racks((0..self.units).collect());
        let cores = Cores::new(Some(profile), table, Windows::default(), self.seed);
        let until = Time(self.until.0);
        (0..self.units).map(|core| cores.bursts(core, Time::ZERO, until).collect()).collect()
    }
}

/// A row of a picture: number of the core, node or rack, and its bursts.
type Row = (u32, Vec<Burst>);

impl Injection {
    /// Draws the injection in the form of [`Show::text`], on the first `cores` of its cores. The time shown ends with
    /// the injection, or after `most` if its end is not known.
    pub fn text(&self, table: &CoreTable, cores: usize, most: Span) -> String {
        let (rows, until) = self.rows(table, cores, most);
        let mut text = format!("seed {}, ", self.seed);
        text.push_str(&rows_text(&self.profile, "core", &rows, (self.from, until)));
        let more = self.cores.count().saturating_sub(rows.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "and {more} cores more");
        }
        text
    }

    /// The slowdowns of cores, in the form of [`Show::json`].
    pub fn json(&self, table: &CoreTable, cores: usize, most: Span) -> Value {
        rows_json("core", &self.rows(table, cores, most).0)
    }

    fn rows(&self, table: &CoreTable, cores: usize, most: Span) -> (Vec<Row>, Time) {
        let until = if self.until == Time::MAX { self.from + most } else { self.until };
        let shown = Cores::new(Some(&self.profile), table.clone(), Windows::default(), self.seed);
        let row = |core| (core, shown.bursts(core, self.from, until).collect());
        (self.cores.iter().take(cores).map(row).collect(), until)
    }
}

/// One line of blocks per row, followed by its bursts.
fn rows_text(profile: &Profile, name: &str, rows: &[Row], (from, until): (Time, Time)) -> String {
    let columns = columns(profile, from, until);
    let each = columns.iter().map(|column| column.1 - column.0).max().unwrap_or(Span::ZERO);
    let begin = if from == Time::ZERO { "0s".to_owned() } else { from.to_string() };
    let mut text = format!("{begin} to {until}, {each} a column: █ degraded  ▒ in part  ░ healthy\n");
    let pad = rows.iter().map(|(unit, _)| format!("{name} {unit}").len()).max().unwrap_or(0);
    for (unit, bursts) in rows {
        let label = format!("{name} {unit}");
        let effect = Effect::of(bursts.iter().copied(), (until - from).as_secs_f64());
        let share = if until == from { 100.0 } else { 100.0 * effect.throughput };
        let _ = writeln!(text, "{label:pad$}  {}  {share:.1} %", blocks(&columns, bursts));
        list(&mut text, pad + 2, bursts);
    }
    text
}

fn rows_json(name: &str, rows: &[Row]) -> Value {
    let rows = rows.iter().flat_map(|(unit, bursts)| {
        bursts.iter().map(move |burst| {
            json!({
                name: unit,
                "start_s": burst.start.as_secs_f64(),
                "end_s": burst.end.as_secs_f64(),
                "slowdown": burst.slowdown,
            })
        })
    });
    rows.collect()
}

/// Bounds of the columns: one slot each, or as many slots as make the timeline fit. The first column begins with its
/// slot.
fn columns(profile: &Profile, from: Time, until: Time) -> Vec<(Time, Time)> {
    let least = (until - from).0.div_ceil(WIDTH).max(1);
    let each = profile.slot().map_or(least, |slot| least.div_ceil(slot.0).saturating_mul(slot.0));
    let first = profile.slot().map_or(from.0, |slot| from.0 / slot.0 * slot.0);
    let starts = (0..(until.0 - first).div_ceil(each)).map(|i| first + i * each);
    starts.map(|start| (Time(start.max(from.0)), Time(start.saturating_add(each).min(until.0)))).collect()
}

/// One block per column. Bursts are sorted, so both lists are traversed once.
fn blocks(columns: &[(Time, Time)], bursts: &[Burst]) -> String {
    let mut first = 0;
    let block = |&(start, end): &(Time, Time)| {
        while bursts.get(first).is_some_and(|burst| burst.end <= start) {
            first += 1;
        }
        let overlaps = bursts[first..].iter().take_while(|burst| burst.start < end);
        let degraded: u64 = overlaps.map(|burst| (burst.end.min(end) - burst.start.max(start)).0).sum();
        match degraded {
            0 => '░',
            all if all == (end - start).0 => '█',
            _ => '▒',
        }
    };
    columns.iter().map(block).collect()
}

/// Limit on the bursts of a row that are listed.
const LISTED: usize = 40;

/// Writes bursts as `start–end ×slowdown`, broken into lines.
fn list(text: &mut String, indent: usize, bursts: &[Burst]) {
    let mut width = 0;
    for burst in &bursts[..bursts.len().min(LISTED)] {
        let slowdown = (burst.slowdown * 1000.0).round() / 1000.0;
        let item = format!("{}–{} ×{slowdown}", burst.start, burst.end);
        let length = item.chars().count() + 2;
        if width > 0 && width + length > WIDTH as usize {
            text.push('\n');
            width = 0;
        }
        let _ = if width == 0 { write!(text, "{:indent$}{item}", "") } else { write!(text, ", {item}") };
        width += length;
    }
    if width > 0 {
        text.push('\n');
    }
    if let Some(more) = bursts.len().checked_sub(LISTED + 1) {
        let _ = writeln!(text, "{:indent$}and {} more", "", more + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::Interference;

    fn profile(text: &str) -> Profile {
        toml::from_str::<Interference>(text).unwrap().resolve().unwrap()
    }

    #[test]
    fn a_script_is_shown_slot_by_slot() {
        let profile =
            profile("scripted = { slot = \"1s\", rows = [[0,1,1,1],[0,0,1,0],[0,1,0,0]], slowdown = 2.0 }");
        let show = Show { units: 4, until: Span::from_secs(5), seed: 1 };
        let text = show.text(&profile);
        for line in [
            "core 0  ░███░  70.0 %\n        1s–4s ×2\n",
            "core 1  ░░█░░  90.0 %\n        2s–3s ×2\n",
            "core 2  ░█░░░  90.0 %\n        1s–2s ×2\n",
            "core 3  ░░░░░  100.0 %\n",
            "87.50 % as shown",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
        assert_eq!(
            show.json(&profile),
            json!([
                { "core": 0, "start_s": 1.0, "end_s": 4.0, "slowdown": 2.0 },
                { "core": 1, "start_s": 2.0, "end_s": 3.0, "slowdown": 2.0 },
                { "core": 2, "start_s": 1.0, "end_s": 2.0, "slowdown": 2.0 },
            ])
        );
        let seven = Show { until: Span(3_700_000_000), ..show };
        assert!(seven.text(&profile).contains("core 1  ░░█░  "), "the last column is cut");
        let long = Show { until: Span::from_secs(250), ..show };
        assert!(long.text(&profile).contains("core 0  ▒▒░"), "three slots a column");
    }

    #[test]
    fn an_injection_is_shown_from_its_start() {
        let profile =
            profile("scripted = { slot = \"1s\", rows = [[0,1,1,1],[0,0,1,0],[0,1,0,0]], slowdown = 2.0 }");
        let cores = "0,2-3".parse().unwrap();
        let (from, until) = (Time(1_500_000_000), Time::MAX);
        let injection = Injection { profile, seed: 1, cores, from, until };
        let text = injection.text(&CoreTable::equal(4, 1), 2, Span::from_secs(4));
        for line in [
            "seed 1, 1.5s to 5.5s, 1s a column",
            "core 0  ███░░  68.8 %\n        1.5s–4s ×2\n",
            "core 2  █░░░░  93.8 %\n        1.5s–2s ×2\n",
            "and 1 cores more",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
        assert_eq!(
            injection.json(&CoreTable::equal(4, 1), 9, Span::from_secs(1)),
            json!([
                { "core": 0, "start_s": 1.5, "end_s": 2.5, "slowdown": 2.0 },
                { "core": 2, "start_s": 1.5, "end_s": 2.0, "slowdown": 2.0 },
            ])
        );
    }

    #[test]
    fn a_profile_of_racks_shows_racks() {
        let text = "scope = \"rack\"\nbernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }";
        let show = Show { units: 2, until: Span::from_secs(30), seed: 1 };
        assert!(show.text(&profile(text)).contains("rack 1  "));
        let rows = show.json(&profile(text));
        assert!(rows.as_array().unwrap().iter().any(|row| row["rack"] == 1), "{rows}");
    }

    #[test]
    fn measured_throughput_tends_to_the_stated_throughput() {
        for (text, expected) in [
            ("bernoulli = { slot = \"100ms\", probability = 0.1, slowdown = 4.0 }", 0.925),
            ("affected = 0.5\nbernoulli = { slot = \"100ms\", probability = 0.1, slowdown = 4.0 }", 0.9625),
            (
                "markov = { slot = \"10ms\", p_on = 0.05, p_off = 0.2, slowdown = { uniform = { low = 1, high = 3 } } }",
                0.90986,
            ),
            (
                "renewal = { gap = { exponential = { mean = \"1s\" } }, burst = { pareto = { scale = \"200ms\", shape = 3.0 } }, slowdown = { pareto = { scale = 2.0, shape = 2.0 } } }",
                0.84615,
            ),
            (
                "bernoulli = { slot = \"100ms\", probability = 0.5, slowdown = { empirical = { values = [1, 2, 4] } } }",
                0.79167,
            ),
        ] {
            let profile = profile(text);
            let stated = profile.throughput().unwrap();
            assert!((stated - expected).abs() < 1e-5, "{text}: {stated}, worked out as {expected}");
            let shown = Show { units: 2_000, until: Span::from_secs(100), seed: 5 };
            let measured = 1.0 - shown.summary(&profile).work_lost;
            assert!((stated - measured).abs() < 0.01, "{text}: measured {measured}, stated {stated}");
        }
        assert_eq!(
            profile("until = \"1s\"\nmarkov = { slot = \"1s\", p_on = 1, p_off = 0, slowdown = 2 }")
                .throughput(),
            None
        );
    }

    #[test]
    fn a_row_lists_forty_bursts_and_counts_the_others() {
        let profile = profile("scripted = { slot = \"1s\", rows = [[1, 0]], slowdown = 2, repeat = true }");
        let text =
            |bursts: u64| Show { units: 1, until: Span::from_secs(2 * bursts), seed: 1 }.text(&profile);
        assert!(text(40).contains("78s–79s ×2\nthroughput"), "{}", text(40));
        assert!(text(42).contains("78s–79s ×2\n        and 2 more\n"), "{}", text(42));
    }

    #[test]
    fn an_empty_time_span_is_shown_without_a_division_by_zero() {
        let profile = profile("bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }");
        for (units, until) in [(0, Span::from_secs(1)), (2, Span::ZERO)] {
            let show = Show { units, until, seed: 1 };
            assert!(!show.text(&profile).contains("NaN"), "{}", show.text(&profile));
            assert_eq!(show.json(&profile), json!([]));
        }
    }
}
