//! The experiment file as it is written. Only form is checked here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Span;

/// How many replications: a number, or `"auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// So many.
    Times(u32),
    /// As many as `precision` takes.
    Auto,
}

/// Which clock moves the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeKind {
    /// Discrete events, as fast as the processor goes.
    #[default]
    Virtual,
    /// Real time × `speed`, one process.
    Local,
    /// Real time × `speed`, many machines.
    Hosts,
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Virtual => "virtual",
            Self::Local => "local",
            Self::Hosts => "hosts",
        })
    }
}

/// `[run]`: how to run the experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Which runtime; `--runtime` overrides.
    pub runtime: RuntimeKind,
    /// Emulated seconds per real second, in `local` and `hosts`.
    pub speed: f64,
    /// Stop at this emulated time, finished or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// What is kept beside the summaries.
    pub record: Record,
}

impl Default for RunSection {
    fn default() -> Self {
        Self { runtime: RuntimeKind::Virtual, speed: 1.0, until: None, record: Record::default() }
    }
}

/// `[run.record]`: what is kept beside the summaries.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Write `jobs.parquet`.
    pub jobs: bool,
    /// The executions of one job in this many go to `tasks.parquet`; 0 writes none. Absent: as many as keep
    /// the file small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_one_in: Option<u32>,
    /// How much of the run the timeline shows, from its start.
    pub timeline: Span,
    /// How many cores the timeline shows.
    pub timeline_cores: u32,
    /// Write the log of inputs that `volary replay` reads.
    pub inputs: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            jobs: true,
            tasks_one_in: None,
            timeline: Span::from_secs(10),
            timeline_cores: 64,
            inputs: false,
        }
    }
}

mod repeat {
    use std::borrow::Cow;
    use std::fmt;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Repeat;

    impl<'de> Deserialize<'de> for Repeat {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl de::Visitor<'_> for Visitor {
                type Value = Repeat;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a number of replications, at least 1, or \"auto\"")
                }
                fn visit_u64<E: de::Error>(self, n: u64) -> Result<Repeat, E> {
                    match u32::try_from(n) {
                        Ok(n) if n > 0 => Ok(Repeat::Times(n)),
                        Ok(_) | Err(_) => Err(E::invalid_value(de::Unexpected::Unsigned(n), &self)),
                    }
                }
                fn visit_i64<E: de::Error>(self, n: i64) -> Result<Repeat, E> {
                    u64::try_from(n)
                        .map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
                        .and_then(|n| self.visit_u64(n))
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
            if text == "auto" {
                return Ok(Self::Auto);
            }
            text.parse().ok().filter(|&n| n > 0).map(Self::Times).ok_or(())
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

    impl Serialize for Repeat {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Times(n) => serializer.serialize_u32(*n),
                Self::Auto => serializer.serialize_str("auto"),
            }
        }
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
}
