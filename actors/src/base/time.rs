//! Emulated time in whole nanoseconds.
//!
//! [`Time`] is an instant since the run's start, [`Span`] a length. Both are `u64`, so a run can last 584
//! years; arithmetic saturates instead of wrapping. In files a span carries its unit (`"10ms"`, `"1.5s"`);
//! a bare number is refused.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An instant of emulated time: nanoseconds since the run's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Time(pub u64);

/// A length of emulated time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Span(pub u64);

impl Time {
    /// The run's start.
    pub const ZERO: Self = Self(0);
    /// A time later than any event.
    pub const MAX: Self = Self(u64::MAX);

    /// Seconds since the run's start.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The span since `earlier`, zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// A span longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `seconds`, rounded to the nanosecond. Negative numbers and NaN give zero, too large ones the maximum.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self(nearest(seconds * 1e9))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// This span in whole milliseconds, rounded down; at most 49 days.
    pub fn whole_millis(self) -> u32 {
        u32::try_from(self.0 / 1_000_000).unwrap_or(u32::MAX)
    }

    /// A span of whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// This span in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// This span stretched by `factor` (clamped at zero), rounded to the nanosecond.
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        Self(nearest(self.0 as f64 * factor))
    }

    /// This span less `other`; zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// `x.round() as u64`, inline: without SSE 4.1 `round` is a call, and every delay and work is rounded.
#[inline]
fn nearest(x: f64) -> u64 {
    let whole = x as u64;
    whole.saturating_add(u64::from(x - whole as f64 >= 0.5))
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Span {
    /// Converts to a signed change of work in ns; saturates.
    #[inline]
    pub fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
            if ns >= unit {
                return write!(f, "{}{name}", ns as f64 / unit as f64);
            }
        }
        write!(f, "{ns}ns")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Units that a span may carry, longest name first: `"ms"` must not be read as `"s"`.
const UNITS: [(&str, f64); 9] = [
    ("min", 60e9),
    ("ns", 1.0),
    ("us", 1e3),
    // The micro sign; the next entry is the Greek letter, which keyboards and editors also write.
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

impl FromStr for Span {
    type Err = String;

    /// Parses a non-negative number with a unit: `"250us"`, `"10 ms"`, `"1.5s"`, `"2h"`. The error says what
    /// was expected.
    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let (number, factor) = UNITS
            .iter()
            .find_map(|(name, factor)| trimmed.strip_suffix(name).map(|number| (number.trim(), *factor)))
            .ok_or_else(|| match trimmed.strip_suffix('m') {
                Some(minutes) => format!("`{text}` is not a duration; minutes are \"{minutes}min\""),
                None => format!(
                    "`{text}` has no unit of time; write for example \"10ms\" (ns, us, ms, s, min, h, d)"
                ),
            })?;
        let value: f64 = number
            .replace('_', "")
            .parse()
            .map_err(|_| format!("`{text}` is not a duration; write for example \"10ms\" or \"1.5s\""))?;
        let ns = value * factor;
        if !ns.is_finite() || ns < 0.0 {
            return Err(format!("`{text}` must be a finite duration of at least zero"));
        }
        if ns >= u64::MAX as f64 {
            return Err(format!("`{text}` is longer than the 584 years a run can last"));
        }
        Ok(Self(ns.round() as u64))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"10ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        // Human-readable formats carry a unit; binary ones are nanoseconds.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Visitor)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "a length of time with its unit: ns, us, ms, s, min, h or d",
            "pattern": r"^\s*[0-9_.eE+-]+\s*(ns|us|[µμ]s|ms|s|min|h|d)\s*$",
            "examples": ["10ms", "1.5s", "2h"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_equals_f64_round() {
        let halves = (0..2000).map(|i| f64::from(i) * 0.25 - 100.0);
        let large = (0..64).map(|bit| 2f64.powi(bit) + 0.5);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.499_999_999_999_999_94, 1e30];
        for x in halves.chain(large).chain(odd) {
            assert_eq!(nearest(x), x.round() as u64, "{x}");
        }
    }

    #[test]
    fn spans_parse_only_with_a_unit() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("1.5 s", 1_500_000_000),
            ("2h", 7_200_000_000_000),
            ("5min", 300_000_000_000),
            ("250us", 250_000),
            ("1\u{b5}s", 1_000),
            ("1\u{3bc}s", 1_000),
            ("0s", 0),
            ("1_000ns", 1000),
        ] {
            assert_eq!(text.parse::<Span>(), Ok(Span(ns)), "{text}");
        }
        for text in ["10", "ms", "-1s", "NaNs", "infs", "1e30h", "10 parsecs", ""] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert!("40m".parse::<Span>().unwrap_err().ends_with("minutes are \"40min\""));
    }

    #[test]
    fn spans_round_trip_through_their_text() {
        for ns in [0, 1, 999, 1_000, 1_500_000, 2_000_000_000, 123_456_789_012] {
            assert_eq!(Span(ns).to_string().parse::<Span>(), Ok(Span(ns)));
        }
    }
}
