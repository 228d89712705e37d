//! Numbers formatted for people: three significant digits, and suitable units.

/// `1234567` as `1 234 567` (thin spaces).
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

/// "1 run", "2 runs".
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
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
        return format!("{value:.2e}");
    }
    let decimals = (2.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    // 9.996 rounds to 10.00, which has one digit too many.
    let digits = text.chars().filter(char::is_ascii_digit).collect::<String>();
    let text = if decimals > 0 && digits.trim_start_matches('0').len() > 3 {
        format!("{value:.*}", decimals - 1)
    } else {
        text
    };
    if value.abs() >= 1e4 { count_signed(&text) } else { text }
}

fn count_signed(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("−", digits));
    digits.parse().map_or_else(|_| text.to_owned(), |value| format!("{sign}{}", count(value)))
}

/// Seconds in a suitable unit: `12.3 ms`, `4.56 s`, `2.50 min`, `3.1 h`.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        0.0 => "0 s".to_owned(),
        size => {
            const UNITS: [(f64, f64, &str); 5] = [
                (0.999_5e-6, 1e9, "ns"),
                (0.999_5e-3, 1e6, "µs"),
                (0.999_5, 1e3, "ms"),
                (600.0, 1.0, "s"),
                (7_200.0, 1.0 / 60.0, "min"),
            ];
            in_unit(value, size, &UNITS, (1.0 / 3_600.0, "h"))
        }
    }
}

/// A value in the first unit whose limit exceeds its size. Units are given as limit, factor and name.
fn in_unit(value: f64, size: f64, units: &[(f64, f64, &str)], last: (f64, &str)) -> String {
    let unit = units.iter().find(|(limit, ..)| size < *limit);
    let (factor, name) = unit.map_or(last, |&(_, factor, name)| (factor, name));
    format!("{}\u{202f}{name}", short(value * factor))
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
    in_unit(size, size, &[(1e3, 1.0, "B"), (1e6, 1e-3, "kB"), (1e9, 1e-6, "MB")], (1e-9, "GB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (0.012_34, "0.0123"),
            (-12.34, "-12.3"),
            (12_345.6, "12\u{202f}346"),
            (1e9, "1.00e9"),
            (2e-7, "2.00e-7"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn units_fit() {
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
