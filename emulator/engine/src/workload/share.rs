//! Shares of jobs, as experiment files write them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A share of the jobs: `true` is all, `false` none, a number from 0 to 1 that part of them.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Share(f64);

impl Share {
    /// All jobs.
    pub const ALL: Self = Self(1.0);
    /// No job.
    pub const NONE: Self = Self(0.0);

    /// The share `part`; `None` if it is not in [0, 1].
    pub fn new(part: f64) -> Option<Self> {
        (0.0..=1.0).contains(&part).then_some(Self(part))
    }

    /// The share as a number in [0, 1].
    pub const fn part(self) -> f64 {
        self.0
    }

    /// Whether it includes the job that drew `unit`, uniform in [0, 1).
    pub fn includes(self, unit: f64) -> bool {
        unit < self.0
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::ALL => serializer.serialize_bool(true),
            Self::NONE => serializer.serialize_bool(false),
            Self(part) => serializer.serialize_f64(part),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Share;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or the share of the jobs from 0 to 1")
            }
            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Share, E> {
                Ok(if all { Share::ALL } else { Share::NONE })
            }
            fn visit_f64<E: de::Error>(self, part: f64) -> Result<Share, E> {
                Share::new(part).ok_or_else(|| E::invalid_value(de::Unexpected::Float(part), &self))
            }
            fn visit_i64<E: de::Error>(self, part: i64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }
            fn visit_u64<E: de::Error>(self, part: u64) -> Result<Share, E> {
                self.visit_f64(part as f64)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "true (all jobs), false (none), or the share of the jobs from 0 to 1",
            "anyOf": [{ "type": "boolean" }, { "type": "number", "minimum": 0, "maximum": 1 }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_their_form() {
        for text in ["true", "false", "0.25"] {
            let share: Share = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&share).unwrap(), text);
        }
        assert_eq!(serde_json::from_str::<Share>("1").unwrap(), Share::ALL);
        assert!(Share::ALL.includes(0.999_999) && !Share::NONE.includes(0.0));
    }
}
