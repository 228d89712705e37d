//! The number of replications: a number, or `"auto"`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number of replications, or `"auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    /// As many as `precision` takes.
    Auto,
    /// A fixed number of replications.
    #[serde(untagged)]
    Times(u32),
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

impl Repeat {
    /// The number, if there is one.
    pub const fn times(self) -> Option<u32> {
        match self {
            Self::Times(times) => Some(times),
            Self::Auto => None,
        }
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Repeat;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of replications, at least 1, or \"auto\"")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Repeat, E> {
                n.to_string().parse().map_err(|()| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Repeat, E> {
                text.parse().map_err(|()| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl std::str::FromStr for Repeat {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().ok().filter(|&n| n > 0).map(Self::Times).ok_or(()),
        }
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(n) => write!(f, "{n}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// Serializes `--repeat` as text, for formats that are not self-describing.
pub(super) fn to_text<S: Serializer>(repeat: &Option<Repeat>, to: S) -> Result<S::Ok, S::Error> {
    repeat.map(|repeat| repeat.to_string()).serialize(to)
}

/// Reads what [`to_text`] wrote.
pub(super) fn of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Repeat>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|()| de::Error::custom("neither a number of replications nor `auto`"))
}

impl JsonSchema for Repeat {
    fn schema_name() -> Cow<'static, str> {
        "Repeat".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "number of replications, or \"auto\": as many as `precision` takes",
            "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "auto" }]
        })
    }
}
