//! Numbers formatted for people: three significant digits, and suitable units.

use volary_engine::results::Unit;

/// A whole number with thin spaces: `1234567` as `1 234 567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + 3 * (digits.len() / 3));
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A load: three decimals, or three significant digits where these are fewer.
pub fn load(value: f64) -> String {
    let decimals = if value > 0.0 { 2.0 - value.log10().floor() } else { 0.0 };
    match decimals {
        many if many > 9.0 => format!("{value:.2e}"),
        some => format!("{value:.*}", some.max(3.0) as usize),
    }
}

/// A count with its noun: "1 run", "2 runs".
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A name cut in the middle to at most `most` characters: names mostly differ at their beginnings and ends.
pub fn elided(name: &str, most: usize) -> String {
    let size = name.chars().count();
    if size <= most {
        return name.to_owned();
    }
    let (front, back) = (most / 2, most.saturating_sub(most / 2 + 1));
    name.chars().take(front).chain(['…']).chain(name.chars().skip(size - back)).collect()
}

/// Three significant digits; `–` for a value that was not measured.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return signed(&format!("{value:.2e}"));
    }
    let decimals = (2.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    // 9.996 rounds to 10.00, which has a digit too many.
    let digits = text.chars().filter(char::is_ascii_digit).collect::<String>();
    let text = if decimals > 0 && digits.trim_start_matches('0').len() > 3 {
        format!("{value:.*}", decimals - 1)
    } else {
        text
    };
    if value.abs() >= 1e4 { count_signed(&text) } else { signed(&text) }
}

/// A number in digits with a minus sign in place of a hyphen.
fn signed(text: &str) -> String {
    text.strip_prefix('-').map_or_else(|| text.to_owned(), |digits| format!("−{digits}"))
}

fn count_signed(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("−", digits));
    digits.parse().map_or_else(|_| signed(text), |value| format!("{sign}{}", count(value)))
}

/// Seconds without decimals, in the unit that suits: for estimates and for real time.
pub fn rough(s: f64) -> String {
    match s {
        _ if s < 100.0 => format!("{s:.0} s"),
        _ if s < 6_000.0 => format!("{:.0} min", s / 60.0),
        _ => format!("{:.0} h", s / 3_600.0),
    }
}

/// Seconds in a suitable unit: `12.3 ms`, `4.56 s`, `2.50 min`, `3.1 h`.
pub fn seconds(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0 s".to_owned();
    }
    let (factor, name) = unit_of_time(value.abs());
    format!("{}\u{202f}{name}", short(value * factor))
}

/// The unit in which [`seconds`] shows a value, in seconds.
pub fn time_unit(value: f64) -> f64 {
    1.0 / unit_of_time(value.abs()).0
}

/// The factor on seconds, and the name of the unit that suits a length of time.
fn unit_of_time(seconds: f64) -> (f64, &'static str) {
    const UNITS: [(f64, f64, &str); 5] = [
        (0.999_5e-6, 1e9, "ns"),
        (0.999_5e-3, 1e6, "µs"),
        (0.999_5, 1e3, "ms"),
        (600.0, 1.0, "s"),
        (7_200.0, 1.0 / 60.0, "min"),
    ];
    unit_of(seconds, &UNITS, (1.0 / 3_600.0, "h"))
}

/// The first unit whose limit exceeds a size, as factor and name. Units are given as limit, factor and name.
fn unit_of(size: f64, units: &[(f64, f64, &'static str)], last: (f64, &'static str)) -> (f64, &'static str) {
    let unit = units.iter().find(|(limit, ..)| size < *limit);
    unit.map_or(last, |&(_, factor, name)| (factor, name))
}

/// Text of a value in a unit.
pub trait UnitText: Copy {
    /// The value with its unit.
    fn text(self, value: f64) -> String;

    /// Values that are read together, all in the unit of the largest. A value below a thousandth of the largest would
    /// be hard to read in that unit, and has a unit of its own.
    fn alike<const N: usize>(self, values: [f64; N]) -> [String; N];

    /// A mean and the half-width of its interval, both in the unit of the larger number. The half-width has two digits,
    /// and the mean as many decimals: `1.240 ± 0.031 s`. A zero or missing half-width is not written.
    fn interval(self, mean: f64, half_width: Option<f64>) -> String;

    /// The parts of [`interval`](Self::interval): the mean, the half-width, and their unit; `None` without a
    /// half-width.
    fn interval_parts(self, mean: f64, half_width: Option<f64>) -> Option<(String, String, &'static str)>;
}

impl UnitText for Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => seconds(value),
            Self::Share => percent(value),
            Self::Plain | Self::Hours => short(value),
            Self::Count if value.is_finite() => format!("{value:.0}"),
            Self::Count => "–".to_owned(),
        }
    }

    fn alike<const N: usize>(self, values: [f64; N]) -> [String; N] {
        let sizes = values.iter().map(|value| value.abs()).filter(|size| size.is_finite());
        let largest = sizes.fold(0.0, f64::max);
        let (factor, unit) = unit_of_time(largest);
        let is_alike = |value: f64| value.is_finite() && value != 0.0 && value.abs() >= 1e-3 * largest;
        values.map(|value| match self {
            Self::Seconds if is_alike(value) => format!("{}\u{202f}{unit}", short(value * factor)),
            Self::Seconds | Self::Hours | Self::Share | Self::Plain | Self::Count => self.text(value),
        })
    }

    fn interval(self, mean: f64, half_width: Option<f64>) -> String {
        let Some((mean_text, half, unit)) = self.interval_parts(mean, half_width) else {
            return self.text(mean);
        };
        let space = if unit.is_empty() { "" } else { "\u{202f}" };
        format!("{mean_text} ± {half}{space}{unit}")
    }

    fn interval_parts(self, mean: f64, half_width: Option<f64>) -> Option<(String, String, &'static str)> {
        let half = half_width.filter(|half| half.is_finite() && *half > 0.0 && mean.is_finite())?;
        let (factor, unit) = match self {
            Self::Seconds => unit_of_time(mean.abs().max(half)),
            Self::Share => (100.0, "%"),
            Self::Hours | Self::Plain | Self::Count => (1.0, ""),
        };
        let (mean, half) = to_error(mean * factor, half * factor);
        Some((mean, half, unit))
    }
}

/// Decimals beyond which a number is written with an exponent.
const MOST_DECIMALS: i32 = 6;

/// A value and its error, which must be above zero: the error has two digits, and the value as many decimals.
fn to_error(value: f64, error: f64) -> (String, String) {
    // The error is rounded as it is printed: 0.0996 becomes 0.10.
    let printed = format!("{error:.1e}");
    let magnitude = printed.split_once('e').and_then(|(_, power)| power.parse::<i32>().ok()).unwrap_or(0);
    let decimals = 1 - magnitude;
    if decimals > MOST_DECIMALS || value.abs() >= 1e15 {
        return (short(value), short(error));
    }
    let digits = decimals.max(0) as usize;
    let text = |number: f64| {
        let text = format!("{number:.digits$}");
        let text =
            if text.trim_start_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text };
        if digits == 0 && number.abs() >= 1e4 { count_signed(&text) } else { signed(&text) }
    };
    (text(value), text(error))
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{}\u{202f}%", short(100.0 * share)) } else { "–".to_owned() }
}

/// A relative change with its sign: `+12.0 %`, `−3.4 %`.
pub fn change(share: f64) -> String {
    let sign = match share {
        _ if !share.is_finite() => "",
        _ if share > 0.0 => "+",
        _ if share < 0.0 => "−",
        _ => "±",
    };
    format!("{sign}{}", percent(share.abs()))
}

/// Bytes in a suitable decimal unit.
pub fn bytes(value: u64) -> String {
    let size = value as f64;
    let (factor, name) =
        unit_of(size, &[(1e3, 1.0, "B"), (1e6, 1e-3, "kB"), (1e9, 1e-6, "MB")], (1e-9, "GB"));
    format!("{}\u{202f}{name}", short(size * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimated_times_have_no_decimals() {
        let text = [3.4, 99.0, 120.0, 86_400.0].map(rough);
        assert_eq!(text, ["3 s", "99 s", "2 min", "24 h"]);
    }

    #[test]
    fn small_loads_keep_three_digits() {
        for (load_, text) in [
            (0.339, "0.339"),
            (1.0, "1.000"),
            (12.3456, "12.346"),
            (0.0505, "0.0505"),
            (0.000_123_4, "0.000123"),
            (0.0, "0.000"),
            (3e-12, "3.00e-12"),
        ] {
            assert_eq!(load(load_), text);
        }
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (0.012_34, "0.0123"),
            (-12.34, "−12.3"),
            (-2e-7, "−2.00e-7"),
            (12_345.6, "12\u{202f}346"),
            (1e9, "1.00e9"),
            (2e-7, "2.00e-7"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn unmeasured_values_are_shown_as_dashes() {
        for quantity in [Unit::Seconds, Unit::Share, Unit::Plain, Unit::Count] {
            assert_eq!(quantity.text(f64::NAN), "–");
        }
        assert_eq!(Unit::Count.alike([3.0, f64::NAN]), ["3", "–"]);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(elided("abcdef", 6), "abcdef");
        assert_eq!((elided("abcdef", 5), elided("abcdef", 4)), ("ab…ef".to_owned(), "ab…f".to_owned()));
    }

    #[test]
    fn an_interval_has_one_unit() {
        for (quantity, mean, half, text) in [
            (Unit::Seconds, 1.24, Some(0.03), "1.240 ± 0.030\u{202f}s"),
            (Unit::Seconds, 2.9234, Some(0.0588), "2.923 ± 0.059\u{202f}s"),
            (Unit::Seconds, -0.002, Some(1.5), "0.0 ± 1.5\u{202f}s"),
            (Unit::Seconds, 0.0, Some(0.0), "0 s"),
            (Unit::Seconds, 3.3, Some(0.0), "3.30\u{202f}s"),
            (Unit::Seconds, 1.24, None, "1.24\u{202f}s"),
            (Unit::Share, 0.5, Some(0.01), "50.0 ± 1.0\u{202f}%"),
            (Unit::Plain, 5.65, Some(0.00410), "5.6500 ± 0.0041"),
            (Unit::Plain, 2.0, Some(0.0996), "2.00 ± 0.10"),
            (Unit::Plain, 123_456.0, Some(1_234.0), "123\u{202f}456 ± 1234"),
            (Unit::Count, 120_000.0, Some(49_687.0), "120\u{202f}000 ± 49\u{202f}687"),
            (Unit::Plain, 2.0, Some(1e-9), "2.00 ± 1.00e-9"),
            (Unit::Count, 3.0, None, "3"),
        ] {
            assert_eq!(quantity.interval(mean, half), text);
        }
    }

    #[test]
    fn values_that_are_read_together_have_one_unit() {
        let texts = |values| Unit::Seconds.alike(values).map(|text| text.replace('\u{202f}', " "));
        assert_eq!(texts([1.24, 0.98, 0.03]), ["1.24 s", "0.980 s", "0.0300 s"]);
        assert_eq!(texts([30_000.0, 4.0, 0.0]), ["8.33 h", "4.00 s", "0 s"]);
        assert_eq!(texts([f64::NAN, 0.5, 0.25]), ["–", "500 ms", "250 ms"]);
        assert_eq!(Unit::Plain.alike([2.0, 0.1]), ["2.00", "0.100"]);
    }

    #[test]
    fn units_suit_the_size_of_values() {
        for (value, text) in [
            (0.0, "0 s"),
            (0.5e-3, "500\u{202f}µs"),
            (0.012_3, "12.3\u{202f}ms"),
            (0.999_9, "1.00\u{202f}s"),
            (90.0, "90.0\u{202f}s"),
            (1_800.0, "30.0\u{202f}min"),
            (36_000.0, "10.0\u{202f}h"),
        ] {
            assert_eq!(seconds(value), text);
        }
        assert_eq!((count(1_234_567), count(12)), ("1\u{202f}234\u{202f}567".to_owned(), "12".to_owned()));
        assert_eq!(
            (change(0.12), change(-0.034)),
            ("+12.0\u{202f}%".to_owned(), "−3.40\u{202f}%".to_owned())
        );
        assert_eq!((percent(f64::NAN), bytes(12_300_000)), ("–".to_owned(), "12.3\u{202f}MB".to_owned()));
    }
}
