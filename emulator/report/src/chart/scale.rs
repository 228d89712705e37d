//! Axes: the mapping of values to pixels, and the choice of ticks.

use std::cmp::Ordering;

use volary_experiment::number;

/// Spacing of values on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisScale {
    /// Even spacing.
    Linear,
    /// Logarithmic spacing; values must be positive.
    Log,
}

impl AxisScale {
    /// The spacing that suits values: logarithmic if all nonzero values are positive and span more than a factor of
    /// twenty.
    pub fn suited(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = bounds(values.into_iter().filter(|value| *value != 0.0 && value.is_finite()));
        if low > 0.0 && high > 20.0 * low { Self::Log } else { Self::Linear }
    }
}

/// Format of ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TickUnit {
    /// Seconds, in a suitable unit.
    Seconds,
    /// A share, as a percentage.
    Share,
    /// A plain number.
    Number,
}

impl TickUnit {
    /// A value with its unit, to three digits.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => number::seconds(value),
            Self::Share => number::percent(value),
            Self::Number => number::short(value),
        }
    }

    /// The unit, in s, in which ticks of an axis up to `high` are round.
    fn base(self, high: f64) -> f64 {
        if self == Self::Seconds { number::time_unit(high).0 } else { 1.0 }
    }

    /// A value as a tick label, without trailing zeros.
    pub fn tick(self, value: f64) -> String {
        // 1 000 s are not a round number of minutes.
        let hundredths = 100.0 * value / number::time_unit(value).0;
        let is_whole = (value - value.round()).abs() < 1e-9 * value.abs();
        if self == Self::Seconds
            && value >= 60.0
            && is_whole
            && (hundredths - hundredths.round()).abs() > 1e-6
        {
            return format!("{}\u{202f}s", number::count(value.round() as u64));
        }
        let text = self.text(value);
        let (digits, unit) = text.split_once('\u{202f}').unwrap_or((&text, ""));
        if unit.parse::<u64>().is_ok() || !digits.contains('.') || digits.contains('e') {
            return text;
        }
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        if unit.is_empty() { digits.to_owned() } else { format!("{digits}\u{202f}{unit}") }
    }
}

/// Maps values to pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    spread: AxisScale,
    values: (f64, f64),
    pixels: (f64, f64),
    /// Pixel of zero on a logarithmic axis; `None` if zero has no place there.
    zero: Option<f64>,
}

/// The least and the largest value; `(∞, -∞)` without values.
pub fn bounds(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)))
}

impl Scale {
    /// A mapping of the values `low..high` to pixels. An empty range is widened by values of the same sign; a
    /// logarithmic range is made positive.
    pub fn new(spread: AxisScale, (low, high): (f64, f64), pixels: (f64, f64)) -> Self {
        let (low, high) = match spread {
            AxisScale::Linear if high > low => (low, high),
            AxisScale::Linear if low == 0.0 => (0.0, 1.0),
            AxisScale::Linear => (low - 0.5 * low.abs(), low + 0.5 * low.abs()),
            AxisScale::Log => {
                let high = if high > 0.0 { high } else { 1.0 };
                let low = if low > 0.0 { low } else { high / 10.0 };
                if high > low * 1.001 { (low, high) } else { (low / 2.0, high * 2.0) }
            }
        };
        Self { spread, values: (low, high), pixels, zero: None }
    }

    /// The mapping with a place for zero on a logarithmic axis; the first value moves by `room` px.
    pub fn with_zero(self, room: f64) -> Self {
        let (first, last) = self.pixels;
        let room = room.copysign(last - first);
        Self { zero: Some(first + room / 4.0), pixels: (first + room, last), ..self }
    }

    /// The pixel of the break between zero and the first value of a logarithmic axis.
    pub fn gap(&self) -> Option<f64> {
        self.zero.map(|zero| f64::midpoint(zero, self.pixels.0))
    }

    /// Position of a value relative to the range: `Less` below it, `Greater` above it, `Equal` within it.
    pub fn beyond(&self, value: f64) -> Ordering {
        let (low, high) = self.values;
        if value < low - 1e-9 * low.abs() && self.zero.is_none_or(|_| value != 0.0) {
            Ordering::Less
        } else if value > high + 1e-9 * high.abs() {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }

    /// The pixel of a value; values outside the range are placed on the edge.
    pub fn at(&self, value: f64) -> f64 {
        if let Some(zero) = self.zero.filter(|_| value == 0.0) {
            return zero;
        }
        let (low, high) = self.values;
        let share = match self.spread {
            AxisScale::Linear => (value - low) / (high - low),
            AxisScale::Log if value <= 0.0 => 0.0,
            AxisScale::Log => (value / low).ln() / (high / low).ln(),
        };
        self.pixels.0 + share.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// About `about` ticks at values that are round in their unit, preceded by a tick at zero if zero has its own
    /// place.
    pub fn ticks(&self, unit: TickUnit, about: usize) -> Vec<f64> {
        let ticks = match self.spread {
            AxisScale::Linear => {
                let ((low, high), base) =
                    (self.values, unit.base(self.values.0.abs().max(self.values.1.abs())));
                let ticks = linear_ticks((low / base, high / base), about);
                ticks.into_iter().map(|tick| tick * base).collect()
            }
            AxisScale::Log => log_ticks(self.values, about),
        };
        self.zero.map(|_| 0.0).into_iter().chain(ticks).collect()
    }

    /// The label of a tick. Times on a linear axis have the unit that suits the end of the axis.
    pub fn tick(&self, unit: TickUnit, value: f64) -> String {
        if self.spread == AxisScale::Log || unit != TickUnit::Seconds {
            return unit.tick(value);
        }
        let high = self.values.0.abs().max(self.values.1.abs());
        let text = TickUnit::Number.tick(value / unit.base(high));
        format!("{text}\u{202f}{}", number::time_unit(high).1)
    }

    /// Minor grid lines of a logarithmic axis that spans few decades.
    pub fn minor_ticks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        if self.spread == AxisScale::Linear || (high / low).log10() > 5.0 {
            return Vec::new();
        }
        decades(low, high)
            .flat_map(|power| (2..10).map(move |m| f64::from(m) * power))
            .filter(inside(low, high))
            .collect()
    }
}

fn inside(low: f64, high: f64) -> impl Fn(&f64) -> bool {
    move |&value| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9)
}

fn decades(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (low.log10().floor() as i32..=high.log10().ceil() as i32).map(|exponent| 10f64.powi(exponent))
}

/// Ticks at steps of 1, 2 or 5 times a power of ten.
fn linear_ticks((low, high): (f64, f64), about: usize) -> Vec<f64> {
    let raw = (high - low) / about.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw * 0.999).unwrap_or(raw);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    // Values are rounded: 3 × 0.1 gives 0.3.
    (first..=last).map(|i| i as f64 * step).map(|v| (v / power * 10.0).round() * power / 10.0).collect()
}

/// Ticks at powers of ten, thinned; over few decades, also at 2 and 5 times a power of ten.
fn log_ticks((low, high): (f64, f64), about: usize) -> Vec<f64> {
    let span = (high / low).log10();
    let every = (span / about.max(1) as f64).ceil().max(1.0) as i32;
    let within: &[f64] = match span {
        _ if span * 3.0 <= about as f64 => &[1.0, 2.0, 5.0],
        _ if span * 2.0 <= about as f64 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let powers = decades(low, high).filter(|power| (power.log10().round() as i32).rem_euclid(every) == 0);
    let ticks: Vec<f64> =
        powers.flat_map(|power| within.iter().map(move |m| m * power)).filter(inside(low, high)).collect();
    if ticks.len() >= 2 { ticks } else { linear_ticks((low, high), about) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_at_round_values() {
        for (spread, range, about, expected) in [
            (AxisScale::Linear, (0.0, 1.0), 5, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (AxisScale::Linear, (0.0, 0.3), 3, vec![0.0, 0.1, 0.2, 0.3]),
            (AxisScale::Linear, (-3.0, 17.0), 4, vec![0.0, 5.0, 10.0, 15.0]),
            (AxisScale::Log, (0.9, 1_100.0), 4, vec![1.0, 10.0, 100.0, 1_000.0]),
            (AxisScale::Log, (1.0, 10.0), 5, vec![1.0, 2.0, 5.0, 10.0]),
            (AxisScale::Log, (1e-6, 1e6), 4, vec![1e-6, 1e-3, 1.0, 1e3, 1e6]),
            (AxisScale::Log, (3.1, 3.9), 4, vec![3.2, 3.4, 3.6, 3.8]),
        ] {
            let ticks = Scale::new(spread, range, (0.0, 100.0)).ticks(TickUnit::Number, about);
            assert_eq!(ticks.len(), expected.len(), "{range:?}: {ticks:?}");
            for (tick, expected) in ticks.iter().zip(&expected) {
                assert!((tick - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{range:?}: {ticks:?}");
            }
        }
    }

    #[test]
    fn ticks_of_times_are_round_in_the_shown_unit() {
        let labels = |spread, range| -> Vec<String> {
            let scale = Scale::new(spread, range, (0.0, 100.0));
            let ticks = scale.ticks(TickUnit::Seconds, 4);
            ticks
                .into_iter()
                .map(|tick| scale.tick(TickUnit::Seconds, tick).replace('\u{202f}', " "))
                .collect()
        };
        assert_eq!(labels(AxisScale::Linear, (0.0, 4_000.0)), ["0 min", "20 min", "40 min", "60 min"]);
        assert_eq!(labels(AxisScale::Linear, (0.0, 14_400.0)), ["0 h", "1 h", "2 h", "3 h", "4 h"]);
        assert_eq!(labels(AxisScale::Linear, (0.0, 1.1)), ["0 s", "0.5 s", "1 s"]);
        assert_eq!(labels(AxisScale::Linear, (0.0, 0.9)), ["0 ms", "500 ms"]);
        assert_eq!(labels(AxisScale::Linear, (0.0, 700.0)), ["0 min", "5 min", "10 min"]);
        assert_eq!(labels(AxisScale::Log, (90.0, 12_000.0)), ["100 s", "1 000 s", "10 000 s"]);
    }

    #[test]
    fn a_wide_range_of_positive_values_gives_a_logarithmic_axis() {
        assert_eq!(AxisScale::suited([0.0, 0.001, 3.0]), AxisScale::Log);
        assert_eq!(AxisScale::suited([0.0, 1.0, 3.0, f64::NAN]), AxisScale::Linear);
        assert_eq!(AxisScale::suited([]), AxisScale::Linear);
        assert_eq!(AxisScale::suited([-0.001, 0.001, 3.0]), AxisScale::Linear, "a logarithm hides negatives");
    }

    #[test]
    fn zero_has_a_place_below_a_logarithmic_axis() {
        let up = Scale::new(AxisScale::Log, (1.0, 100.0), (220.0, 0.0)).with_zero(20.0);
        assert_eq!((up.at(0.0), up.gap(), up.at(1.0), up.at(100.0)), (215.0, Some(207.5), 200.0, 0.0));
        assert_eq!(up.ticks(TickUnit::Seconds, 3), [0.0, 1.0, 10.0, 100.0]);
    }

    #[test]
    fn a_scale_maps_values_to_pixels() {
        let log = Scale::new(AxisScale::Log, (1.0, 100.0), (0.0, 200.0));
        assert!((log.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!((log.at(0.0), log.at(1e9)), (0.0, 200.0), "values outside are placed on the edges");
        let down = Scale::new(AxisScale::Linear, (0.0, 1.0), (90.0, 10.0));
        assert!((down.at(0.25) - 70.0).abs() < 1e-9);
        let empty = Scale::new(AxisScale::Linear, (5.0, 5.0), (0.0, 10.0));
        assert!((empty.at(5.0) - 5.0).abs() < 1e-9);
        for nothing in [0.0, 0.000_2, 7.0] {
            let scale = Scale::new(AxisScale::Linear, (nothing, nothing), (0.0, 10.0));
            assert!(
                scale.ticks(TickUnit::Seconds, 4).iter().all(|tick| *tick >= 0.0),
                "an axis of times begins at zero or above: {scale:?}"
            );
        }
    }

    #[test]
    fn tick_labels_have_units_and_thin_spaces() {
        assert_eq!(TickUnit::Seconds.tick(0.01), "10\u{202f}ms");
        assert_eq!(TickUnit::Share.tick(0.999), "99.9\u{202f}%");
        assert_eq!(TickUnit::Number.tick(2.0), "2");
        assert_eq!(TickUnit::Number.tick(20_000.0), "20\u{202f}000");
        assert_eq!(TickUnit::Number.tick(100.0), "100");
    }
}
