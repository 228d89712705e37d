//! What a profile does to cores, before any run: `volary profile show`.

use std::fmt::Write as _;

use serde_json::{Value, json};
use volary_actors::base::{Law, Span, Time};

use super::load::Process;
use super::{Burst, CoreTable, Cores, Pauses, Profile, Scope};

/// Widest timeline, in characters. Slots that do not fit one to a character are put together.
const WIDTH: u64 = 100;

/// Which part of a profile to show. It is what a run with this seed meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Show {
    /// How many units: cores, or nodes or racks if the profile's scope is one of these.
    pub units: u32,
    /// From time 0 until when.
    pub until: Span,
    /// Seed of the run.
    pub seed: u64,
}

impl Profile {
    /// Share of a healthy core's work that a core gets done in the long run: 1 − p + p · E\[1 / σ\], p being
    /// the share of degraded time. None where it is not known in closed form, and for scripts, traces and
    /// windows, which have no long run.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        if self.until != Time::MAX {
            return None;
        }
        let (degraded, slowdown) = match &self.process {
            Process::Bernoulli(p) => (p.probability, &p.slowdown),
            Process::Markov(p) if p.p_on == 0.0 => (0.0, &p.slowdown),
            Process::Markov(p) => (p.p_on / (p.p_on + p.p_off), &p.slowdown),
            Process::Renewal(p) => {
                let (gap, burst) = (p.gap.mean(), p.burst.mean());
                if !(gap.is_finite() && burst.is_finite()) {
                    return None;
                }
                (burst / (gap + burst), &p.slowdown)
            }
            Process::Scripted(_) | Process::Trace(_) => return None,
        };
        Some(1.0 - self.affected * degraded * (1.0 - mean_inverse(slowdown)?))
    }

    /// Length of a slot, for processes that have slots.
    const fn slot(&self) -> Option<Span> {
        match &self.process {
            Process::Bernoulli(p) => Some(p.slot),
            Process::Markov(p) => Some(p.slot),
            Process::Scripted(p) => Some(p.slot),
            Process::Renewal(_) | Process::Trace(_) => None,
        }
    }
}

/// E\[1 / σ\] of laws that stay at or above 1; the others are cut there, which has no simple closed form.
fn mean_inverse(law: &Law<f64>) -> Option<f64> {
    match law {
        Law::Constant(value) => Some(1.0 / value),
        Law::Uniform(p) if p.low == p.high => Some(1.0 / p.low),
        Law::Uniform(p) => Some((p.high / p.low).ln() / (p.high - p.low)),
        Law::Pareto(p) => Some(p.shape / (p.shape + 1.0) / p.scale),
        Law::Empirical(p) if !p.values.is_empty() => {
            Some(p.values.iter().map(|value| 1.0 / value).sum::<f64>() / p.values.len() as f64)
        }
        Law::Empirical(_)
        | Law::Normal(_)
        | Law::Lognormal(_)
        | Law::Exponential(_)
        | Law::Gamma(_)
        | Law::Erlang(_)
        | Law::Weibull(_)
        | Law::Hyperexponential(_) => None,
    }
}

impl Show {
    /// About how many slots, or gaps and bursts, it looks at.
    #[must_use]
    pub fn size(&self, profile: &Profile) -> f64 {
        let each = match &profile.process {
            Process::Renewal(p) => p.gap.mean() + p.burst.mean(),
            Process::Bernoulli(_) | Process::Markov(_) | Process::Scripted(_) => {
                profile.slot().map_or(f64::INFINITY, Span::as_secs_f64)
            }
            Process::Trace(_) => f64::INFINITY,
        };
        f64::from(self.units) * self.until.as_secs_f64() / each
    }

    /// One line of blocks per unit (`█` degraded, `░` healthy, `▒` both), its bursts written out below, and
    /// the throughput in the long run and in what is shown.
    #[must_use]
    pub fn text(&self, profile: &Profile) -> String {
        let name = name(profile.scope);
        let columns = self.columns(profile);
        let mut text = String::new();
        let each = Span(columns.first().map_or(0, |column| column.1.0));
        let _ = writeln!(
            text,
            "seed {}, 0s to {}, {each} a column: █ degraded  ▒ in part  ░ healthy",
            self.seed, self.until
        );
        let pad = format!("{name} {}", self.units.saturating_sub(1)).len();
        for (unit, bursts) in self.bursts(profile).iter().enumerate() {
            let label = format!("{name} {unit}");
            let lost = lost(bursts) / self.until.as_secs_f64();
            let share = if self.until == Span::ZERO { 100.0 } else { 100.0 * (1.0 - lost) };
            let _ = writeln!(text, "{label:pad$}  {}  {share:.1} %", blocks(&columns, bursts));
            list(&mut text, pad + 2, bursts);
        }
        let shown =
            self.measured(profile).map_or_else(String::new, |x| format!("{:.2} % as shown", 100.0 * x));
        let known = profile.throughput().map_or_else(
            || "not known in closed form".into(),
            |x| format!("{:.2} % in the long run", 100.0 * x),
        );
        let _ = writeln!(text, "throughput of a core, healthy = 100 %: {known}; {shown}");
        text
    }

    /// All bursts as objects `{core, start_s, end_s, slowdown}`, in order of unit and time; the first key is
    /// `node` or `rack` if that is the profile's scope. A burst that goes on is cut at the end.
    #[must_use]
    pub fn json(&self, profile: &Profile) -> Value {
        let name = name(profile.scope);
        let rows = self.bursts(profile).into_iter().enumerate().flat_map(|(unit, bursts)| {
            bursts.into_iter().map(move |burst| {
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

    /// Share of a healthy core's work that cores get done in what is shown; none if nothing is shown.
    #[must_use]
    pub fn measured(&self, profile: &Profile) -> Option<f64> {
        let time = f64::from(self.units) * self.until.as_secs_f64();
        let lost: f64 = self.bursts(profile).iter().map(|bursts| lost(bursts)).sum();
        (time > 0.0).then(|| 1.0 - lost / time)
    }

    /// The bursts of each unit.
    fn bursts(&self, profile: &Profile) -> Vec<Vec<Burst>> {
        // One core per node and one node per rack: core i follows unit i, whatever the scope.
        let table = CoreTable::equal(self.units, 1).with_racks((0..self.units).collect());
        let cores = Cores::new(Some(profile), table, Pauses::default(), self.seed);
        let until = Time(self.until.0);
        (0..self.units).map(|core| cores.bursts(core, Time::ZERO, until).collect()).collect()
    }

    /// Bounds of the columns: one slot each, or as many slots as make the timeline fit.
    fn columns(&self, profile: &Profile) -> Vec<(Time, Time)> {
        let least = self.until.0.div_ceil(WIDTH).max(1);
        let each = profile.slot().map_or(least, |slot| least.div_ceil(slot.0).saturating_mul(slot.0));
        (0..self.until.0.div_ceil(each))
            .map(|i| (Time(i * each), Time((i + 1).saturating_mul(each).min(self.until.0))))
            .collect()
    }
}

const fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Core => "core",
        Scope::Node => "node",
        Scope::Rack => "rack",
    }
}

/// Seconds of work that bursts cost.
fn lost(bursts: &[Burst]) -> f64 {
    bursts.iter().map(|burst| burst.length().as_secs_f64() * (1.0 - 1.0 / burst.slowdown)).sum()
}

/// One block per column. Bursts are sorted, so both are walked once.
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

/// Writes bursts as `start–end ×slowdown`, broken into lines.
fn list(text: &mut String, indent: usize, bursts: &[Burst]) {
    let mut width = 0;
    for burst in bursts {
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
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cores::Interference;
    use crate::files::{Files, Pack};

    fn profile(text: &str) -> Profile {
        let files = Files::of_pack(Pack::default());
        toml::from_str::<Interference>(text).unwrap().load(&files, Path::new("")).unwrap()
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
    fn other_scopes_show_their_units() {
        let text = "scope = \"rack\"\nbernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }";
        let show = Show { units: 2, until: Span::from_secs(30), seed: 1 };
        assert!(show.text(&profile(text)).contains("rack 1  "));
        let rows = show.json(&profile(text));
        assert!(rows.as_array().unwrap().iter().any(|row| row["rack"] == 1), "{rows}");
    }

    #[test]
    fn measured_throughput_tends_to_the_stated_one() {
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
            let measured =
                Show { units: 2_000, until: Span::from_secs(100), seed: 5 }.measured(&profile).unwrap();
            assert!((stated - measured).abs() < 0.01, "{text}: measured {measured}, stated {stated}");
        }
        assert_eq!(
            profile("until = \"1s\"\nmarkov = { slot = \"1s\", p_on = 1, p_off = 0, slowdown = 2 }")
                .throughput(),
            None
        );
    }

    #[test]
    fn nothing_shown_is_not_a_division_by_zero() {
        let profile = profile("bernoulli = { slot = \"1s\", probability = 0.5, slowdown = 2 }");
        for (units, until) in [(0, Span::from_secs(1)), (2, Span::ZERO)] {
            let show = Show { units, until, seed: 1 };
            assert!(!show.text(&profile).contains("NaN"), "{}", show.text(&profile));
            assert_eq!(show.json(&profile), json!([]));
        }
    }
}
