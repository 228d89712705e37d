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

/// A load with three decimals; a load below 0.1 has three significant digits.
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

/// A name cut in the middle to at most `most` characters, since names mostly differ at their beginnings and ends.
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

/// The unit in which [`seconds`] shows a value, in seconds, and its name.
pub fn time_unit(value: f64) -> (f64, &'static str) {
    let (factor, name) = unit_of_time(value.abs());
    (1.0 / factor, name)
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

/// The factor and name of the first unit in `units` (limit, factor, name) whose limit exceeds a size, otherwise `last`.
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

    /// The numbers of a column of means and half-widths.
    fn column(self, numbers: &[(f64, Option<f64>)]) -> NumberColumn;
}

/// The numbers of a column, in one unit and with one number of decimals. Numbers that differ too much for that keep
/// decimals of their own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NumberColumn {
    /// The unit of all numbers; empty for plain numbers.
    pub unit: &'static str,
    /// Each mean, and its half-width unless that is zero or missing; `–` for a mean that was not measured.
    pub cells: Vec<(String, Option<String>)>,
}

impl NumberColumn {
    /// The numbers with their unit: `339.6 ± 4.9 ms`.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let space = if self.unit.is_empty() { "" } else { "\u{202f}" };
        self.cells.iter().map(move |(mean, half)| match half {
            _ if mean == MISSING => mean.clone(),
            Some(half) => format!("{mean} ± {half}{space}{}", self.unit),
            None => format!("{mean}{space}{}", self.unit),
        })
    }
}

/// The text for a value that was not measured.
const MISSING: &str = "–";

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
        self.column(&[(mean, half_width)]).texts().collect()
    }

    fn column(self, numbers: &[(f64, Option<f64>)]) -> NumberColumn {
        // A half-width of equal numbers is zero up to rounding.
        let error =
            |mean: f64, half: &f64| half.is_finite() && mean.is_finite() && *half > 1e-12 * mean.abs();
        let known = |&(mean, half): &(f64, Option<f64>)| (mean, half.filter(|half| error(mean, half)));
        let numbers: Vec<_> = numbers.iter().map(known).collect();
        let (factor, unit) = match self {
            Self::Seconds => {
                let size = |&(mean, half): &(f64, Option<f64>)| mean.abs().max(half.unwrap_or(0.0));
                common_unit(numbers.iter().map(size).filter(|size| size.is_finite() && *size > 0.0))
            }
            Self::Share => (100.0, "%"),
            Self::Hours | Self::Plain | Self::Count => (1.0, ""),
        };
        let scaled = |(mean, half): (f64, Option<f64>)| (mean * factor, half.map(|half| half * factor));
        let numbers: Vec<_> = numbers.into_iter().map(scaled).collect();
        let common = common_decimals(&numbers);
        let cell = |&(mean, half): &(f64, Option<f64>)| match (common, half) {
            _ if !mean.is_finite() => (MISSING.to_owned(), None),
            (_, None) if self == Self::Count => (fixed(mean, 0), None),
            (_, None) if mean == 0.0 => ("0".to_owned(), None),
            (Some(decimals), half) => (fixed(mean, decimals), half.map(|half| fixed(half, decimals))),
            (None, Some(half)) => {
                let (mean, half) = to_error(mean, half);
                (mean, Some(half))
            }
            (None, None) => (short(mean), None),
        };
        NumberColumn { unit, cells: numbers.iter().map(cell).collect() }
    }
}

/// The unit, as factor and name, for lengths of time that are read together, in s: the unit of the shortest, unless the
/// longest needs five digits in it; then the unit of their geometric mean.
fn common_unit(sizes: impl Iterator<Item = f64>) -> (f64, &'static str) {
    let (least, most) =
        sizes.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), size| (a.min(size), b.max(size)));
    match unit_of_time(least) {
        _ if most == 0.0 => unit_of_time(1.0),
        (factor, _) if most * factor >= 1e4 => unit_of_time((least * most).sqrt()),
        unit => unit,
    }
}

/// Maximum number of digits of the largest number of a column.
const MOST_DIGITS: i32 = 6;
/// Maximum number of digits of the largest number of a column in which each half-width has two digits.
const FEW_DIGITS: i32 = 4;

/// The number of decimals for means and half-widths that are read together; `None` if a number would then have more
/// than [`MOST_DIGITS`].
/// - With half-widths: each has two digits, if the largest number then has at most [`FEW_DIGITS`]; otherwise the median
///   half-width has two, and each at least one.
/// - Without half-widths: the smallest mean has three digits, or two beside much larger means.
fn common_decimals(numbers: &[(f64, Option<f64>)]) -> Option<i32> {
    let sorted = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all
    };
    let halves = sorted(numbers.iter().filter_map(|number| number.1).collect());
    let sizes = |bare: bool| {
        let shown = numbers.iter().filter(move |number| !bare || number.1.is_none());
        shown.map(|number| number.0.abs()).filter(|size| size.is_finite() && *size > 0.0)
    };
    let bare = sizes(true).reduce(f64::min);
    let most = halves.last().copied().into_iter().chain(sizes(false)).fold(0.0, f64::max);
    let before = (1 + magnitude(most, 1)).max(0);
    let at_least = bare.map_or(0, |size| decimals(size, 2));
    let wanted = match (halves.first(), halves.get(halves.len() / 2)) {
        (Some(&least), _) if before + decimals(least, 2).max(0) <= FEW_DIGITS => decimals(least, 2),
        (Some(&least), Some(&median)) => decimals(least, 1).max(decimals(median, 2)),
        _ => bare.map_or(0, |size| decimals(size, 3)).min(MOST_DIGITS - 1 - before),
    };
    let common = wanted.max(at_least).max(0);
    (common == 0 && most < 1e15 || common > 0 && before + common <= MOST_DIGITS).then_some(common)
}

/// The decimals that show `digits` digits of a value above zero.
fn decimals(value: f64, digits: i32) -> i32 {
    digits - 1 - magnitude(value, digits)
}

/// The power of ten of a value's first digit after rounding to `digits` digits: 0.0996 becomes 0.10.
fn magnitude(value: f64, digits: i32) -> i32 {
    let printed = format!("{value:.*e}", digits as usize - 1);
    printed.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// A value and its error, which must be above zero: the error has two digits, and the value as many decimals.
fn to_error(value: f64, error: f64) -> (String, String) {
    let decimals = decimals(error, 2);
    if decimals > MOST_DIGITS || value.abs() >= 1e15 {
        return (short(value), short(error));
    }
    (fixed(value, decimals), fixed(error, decimals))
}

/// A number with this number of decimals.
fn fixed(value: f64, decimals: i32) -> String {
    let digits = decimals.max(0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.trim_start_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text };
    if digits == 0 && value.abs() >= 1e4 { count_signed(&text) } else { signed(&text) }
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
            (Unit::Seconds, 0.0, Some(0.0), "0\u{202f}s"),
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
    fn a_column_has_one_unit_and_one_number_of_decimals() {
        let texts = |unit: Unit, numbers: &[(f64, f64)]| {
            let known = |&(mean, half): &(f64, f64)| (mean, (half > 0.0).then_some(half));
            let column = unit.column(&numbers.iter().map(known).collect::<Vec<_>>());
            column.texts().map(|text| text.replace('\u{202f}', " ")).collect::<Vec<_>>()
        };
        let bare = |means: &[f64]| means.iter().map(|mean| (*mean, 0.0)).collect::<Vec<_>>();
        for (unit, numbers, expected) in [
            (Unit::Seconds, bare(&[0.586, 1.254, f64::NAN, 0.0]), &["586 ms", "1254 ms", "–", "0 ms"][..]),
            (Unit::Seconds, bare(&[2.666, 4.0]), &["2.67 s", "4.00 s"]),
            (Unit::Seconds, bare(&[0.001, 1.93]), &["1.0 ms", "1930.0 ms"]),
            (Unit::Seconds, bare(&[7.78e-6, 2.83]), &["0.00778 ms", "2830 ms"]),
            (Unit::Seconds, bare(&[1_032.0, 10_080.0]), &["17.2 min", "168.0 min"]),
            (
                Unit::Seconds,
                vec![(0.3424, 0.0033), (0.451, 0.046), (1.65, 0.14)],
                &["342 ± 3 ms", "451 ± 46 ms", "1650 ± 140 ms"],
            ),
            (Unit::Seconds, vec![(12.71, 6.2), (25.42, 12.4)], &["12.7 ± 6.2 s", "25.4 ± 12.4 s"]),
            (Unit::Plain, vec![(0.316, 0.0052), (3.09, 0.2)], &["0.316 ± 0.005", "3.090 ± 0.200"]),
            (
                Unit::Share,
                vec![(0.999, 0.00062), (1.0, 0.0), (0.9847, 0.0014)],
                &["99.90 ± 0.06 %", "100.00 %", "98.47 ± 0.14 %"],
            ),
            (Unit::Count, bare(&[2.0, 150.0]), &["2", "150"]),
        ] {
            assert_eq!(texts(unit, &numbers), expected);
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
    fn units_are_chosen_by_the_size_of_values() {
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
