//! Quantities of network configuration that carry a unit or a range: probabilities, rates, buffers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use volary_actors::base::Span;

/// A number in [0, 1]. A number out of range is refused while parsing, so that the error points at the line.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Probability(f64);

impl Probability {
    /// The probability 0.
    pub const ZERO: Self = Self(0.0);
    /// The probability 1.
    pub const ONE: Self = Self(1.0);

    /// `value` as a probability; `None` outside [0, 1] and for NaN.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The probability as a number in [0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether the probability is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability between 0 and 1")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Probability, E> {
                Probability::new(value).ok_or_else(|| E::custom(out_of_range(value)))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Probability, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Probability, E> {
                self.visit_f64(value as f64)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn out_of_range(value: f64) -> String {
    let hint = if value > 1.0 && value <= 100.0 {
        format!("; {value} % is written {}", value / 100.0)
    } else {
        String::new()
    };
    format!("{value} is not a probability, which lies between 0 and 1{hint}")
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0.0, "maximum": 1.0, "description": "a probability" })
    }
}

/// A transmission rate in bits per second, never zero. In files: `"100 Mbit/s"`, `"10 Gbit/s"`, `"1.25 GB/s"`;
/// prefixes are powers of 1000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(u64);

/// Units of rates, longest name first.
const RATES: [(&str, f64); 9] = [
    ("Tbit/s", 1e12),
    ("Gbit/s", 1e9),
    ("Mbit/s", 1e6),
    ("kbit/s", 1e3),
    ("bit/s", 1.0),
    ("GB/s", 8e9),
    ("MB/s", 8e6),
    ("kB/s", 8e3),
    ("B/s", 8.0),
];

impl Rate {
    /// `bits` per second; `None` if zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Time for which a link of this rate is busy with `bytes`.
    pub const fn transmission(self, bytes: u64) -> Span {
        // Rounded up, so that a link is never faster than its rate.
        let ns = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
        Span(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }
}

/// The number before a unit, with `_` as a digit separator.
fn number(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0)
}

impl FromStr for Rate {
    type Err = String;

    /// Parses a positive number with a unit. The error says what was expected.
    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = RATES
            .iter()
            .find_map(|(name, bits)| text.trim().strip_suffix(name).map(|digits| (digits, *bits)))
            .ok_or_else(|| {
                format!("`{text}` has no unit of rate; write for example \"100 Mbit/s\" or \"1.25 GB/s\"")
            })?;
        let bits =
            number(digits).ok_or_else(|| format!("`{text}` is not a rate; write \"100 Mbit/s\""))? * unit;
        if bits >= u64::MAX as f64 {
            return Err(format!(
                "`{text}` is above every possible rate; remove `rate` for a link without limit"
            ));
        }
        Self::from_bits_per_second(bits.round() as u64)
            .ok_or_else(|| format!("`{text}` is a rate of zero; remove `rate` for a link without limit"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)] {
            if self.0 >= unit {
                return write!(f, "{} {name}", self.0 as f64 / unit as f64);
            }
        }
        write!(f, "{} bit/s", self.0)
    }
}

/// Limit of the data waiting at a link with a rate, in files as time (`"20ms"`) or as bytes (`"256 kB"`, `"1 MiB"`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// The time that the link needs for the waiting data.
    Time(Span),
    /// The number of waiting bytes.
    Bytes(u64),
}

/// Units of buffers in bytes, longest name first.
const BYTES: [(&str, f64); 7] = [
    ("GiB", 1_073_741_824.0),
    ("MiB", 1_048_576.0),
    ("KiB", 1024.0),
    ("GB", 1e9),
    ("MB", 1e6),
    ("kB", 1e3),
    ("B", 1.0),
];

/// A number of bytes (`"64 GiB"`, `"256 kB"`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    /// Parses a number with its unit; the error says what was expected.
    fn from_str(text: &str) -> Result<Self, String> {
        let sized = |(name, unit): (&str, f64)| Some((text.trim().strip_suffix(name)?, unit));
        let bytes = BYTES.into_iter().find_map(sized).and_then(|(digits, unit)| Some(number(digits)? * unit));
        let bytes = bytes.ok_or_else(|| format!("`{text}` is not a size; write for example \"64 GiB\""))?;
        if bytes >= u64::MAX as f64 {
            return Err(format!("`{text}` is too large; remove the key for no limit"));
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl Buffer {
    /// The longest wait that the buffer allows on a link of a rate.
    pub const fn longest_wait(self, rate: Rate) -> Span {
        match self {
            Self::Time(span) => span,
            Self::Bytes(bytes) => rate.transmission(bytes),
        }
    }
}

impl FromStr for Buffer {
    type Err = String;

    /// Parses a duration or a number of bytes; the error says what was expected.
    fn from_str(text: &str) -> Result<Self, String> {
        if BYTES.iter().any(|(name, _)| text.trim().ends_with(name)) {
            return text.parse().map(|Size(bytes)| Self::Bytes(bytes));
        }
        text.parse().map(Self::Time).map_err(|_| {
            format!("`{text}` is neither a duration nor a size; write for example \"20ms\" or \"256 kB\"")
        })
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(span) => span.fmt(f),
            Self::Bytes(bytes) => write!(f, "{bytes} B"),
        }
    }
}

/// Implements types that are written as one string: parsed with `FromStr`, written with `Display`, described by a
/// pattern.
macro_rules! as_string {
    ($($name:ident, $what:literal, $pattern:literal, [$($example:literal),*];)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string", "description": $what, "pattern": $pattern, "examples": [$($example),*]
                })
            }
        }
    )*};
}
pub(crate) use as_string;

as_string! {
    Rate, "a rate with its unit, such as \"100 Mbit/s\"", r"^\s*[0-9_.eE+]+\s*([TGMk]?bit/s|[GMk]?B/s)\s*$",
        ["100 Mbit/s", "10 Gbit/s"];
    Buffer, "a length of time or a number of bytes, with its unit",
        r"^\s*[0-9_.eE+-]+\s*(ns|us|[µμ]s|ms|s|min|h|d|[KMG]iB|[kMG]?B)\s*$", ["20ms", "256 kB"];
    Size, "a number of bytes with its unit, such as \"64 GiB\"",
        r"^\s*[0-9_.eE+-]+\s*([KMG]iB|[kMG]?B)\s*$", ["64 GiB", "512 MiB"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_parse_only_with_a_unit() {
        for (text, bits) in [
            ("100 Mbit/s", 100_000_000),
            ("10Gbit/s", 10_000_000_000),
            ("1.25 GB/s", 10_000_000_000),
            ("9600 bit/s", 9600),
            ("1_000 kbit/s", 1_000_000),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate, Rate(bits), "{text}");
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text} is written so that it reads the same");
        }
        for text in ["100", "1e300 Gbit/s", "0 Mbit/s", "-1 Mbit/s", "NaN Mbit/s", "Mbit/s", "10 Mbps", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_transmission_is_never_faster_than_the_rate() {
        let rate: Rate = "8 Mbit/s".parse().unwrap();
        assert_eq!(rate.transmission(1000), Span::from_millis(1));
        assert_eq!("3 bit/s".parse::<Rate>().unwrap().transmission(1), Span(2_666_666_667));
        assert_eq!("1 bit/s".parse::<Rate>().unwrap().transmission(u64::MAX), Span::MAX);
    }

    #[test]
    fn sizes_parse_only_with_a_unit() {
        for (text, bytes) in [("64 GiB", 64 << 30), ("1.5 kB", 1500), ("7 B", 7)] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        for text in ["64", "GiB", "-1 B", "20ms", ""] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn buffers_parse_as_a_time_or_as_bytes() {
        let rate: Rate = "8 Mbit/s".parse().unwrap();
        for (text, wait) in [("20ms", 20), ("20 kB", 20), ("1 s", 1000), ("1000 B", 1)] {
            let buffer: Buffer = text.parse().unwrap();
            assert_eq!(buffer.longest_wait(rate), Span::from_millis(wait), "{text}");
            assert_eq!(buffer.to_string().parse(), Ok(buffer), "{text}");
        }
        assert_eq!("1 MiB".parse(), Ok(Buffer::Bytes(1 << 20)));
        for text in ["20", "1e300 kB", "-1 kB", "lots", ""] {
            assert!(text.parse::<Buffer>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_outside_zero_to_one_are_not_probabilities() {
        assert_eq!(Probability::new(0.25).map(Probability::get), Some(0.25));
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::new(bad), None, "{bad}");
        }
        assert!(out_of_range(5.0).contains("0.05"), "a percentage is recognised");
    }
}
