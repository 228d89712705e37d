//! The tables `[[network.fault]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use volary_actors::base::Span;

use crate::error::Error;
use crate::target::Target;
use crate::units::Probability;

/// One `[[network.fault]]`: a one-key table that names the kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultSpec {
    /// Two groups cannot reach each other.
    Partition(PartitionSpec),
    /// Endpoints stop and lose their state.
    Crash(CrashSpec),
    /// Hosts stall: messages, timers and cores wait.
    Pause(PauseSpec),
    /// Links become slow or lossy.
    Degrade(DegradeSpec),
}

/// A partition between `a` and `b`. Messages under way when it begins are lost as well.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    /// One side.
    pub a: Vec<Target>,
    /// The other side. Default: all other endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Vec<Target>>,
    /// When it begins, since the run's start.
    pub at: Span,
    /// Its duration.
    #[serde(rename = "for")]
    pub lasting: Span,
    /// Only messages from `a` to `b` are lost; those from `b` to `a` pass.
    #[serde(default)]
    pub one_way: bool,
}

/// A crash. Messages under way to a crashing endpoint never reach its next incarnation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashSpec {
    /// The endpoints that crash.
    pub who: Vec<Target>,
    /// When it begins, since the run's start.
    pub at: Span,
    /// Time for which they stay down. Default: for ever.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
}

/// A pause. Nothing is lost, only delayed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// The endpoints that stall.
    pub who: Vec<Target>,
    /// When it begins, since the run's start.
    pub at: Span,
    /// Its duration.
    #[serde(rename = "for")]
    pub lasting: Span,
}

/// Links between `a` and `b` slow down or lose more. Messages sent meanwhile are affected.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DegradeSpec {
    /// One side.
    pub a: Vec<Target>,
    /// The other side. Default: all other endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Vec<Target>>,
    /// When it begins, since the run's start.
    pub at: Span,
    /// Its duration.
    #[serde(rename = "for")]
    pub lasting: Span,
    /// Factor on propagation delays. Default: 1.
    #[serde(default = "one")]
    pub delay_factor: f64,
    /// Loss in addition to the link's own. Default: 0.
    #[serde(default)]
    pub loss: Probability,
    /// Only messages from `a` to `b` are affected; those from `b` to `a` are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
}

/// Limit on the factor on delays; larger ones would stall a message for the whole run.
const MOST_FACTOR: f64 = 1e9;

const fn one() -> f64 {
    1.0
}

impl FaultSpec {
    /// Its kind, as in the file.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Partition(_) => "partition",
            Self::Crash(_) => "crash",
            Self::Pause(_) => "pause",
            Self::Degrade(_) => "degrade",
        }
    }

    /// When it begins, since the run's start.
    pub const fn at(&self) -> Span {
        match self {
            Self::Partition(fault) => fault.at,
            Self::Crash(fault) => fault.at,
            Self::Pause(fault) => fault.at,
            Self::Degrade(fault) => fault.at,
        }
    }

    /// Its lists of targets, each with its key below [`kind`](Self::kind).
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &[Target])> {
        let (first, second) = match self {
            Self::Crash(c) => (("who", &c.who[..]), None),
            Self::Pause(p) => (("who", &p.who[..]), None),
            Self::Partition(p) => (("a", &p.a[..]), p.b.as_deref().map(|b| ("b", b))),
            Self::Degrade(d) => (("a", &d.a[..]), d.b.as_deref().map(|b| ("b", b))),
        };
        std::iter::once(first).chain(second)
    }

    /// Checks that need no resolved targets. Keys are relative to the fault.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let lasts = |kind: &str, span: Span| {
            if span == Span::ZERO {
                return Err(Error::at(format!("{kind}.for"), "it is zero", "write for example \"5s\""));
            }
            Ok(())
        };
        match self {
            Self::Partition(p) => lasts("partition", p.lasting),
            Self::Crash(c) => c.lasting.map_or(Ok(()), |span| lasts("crash", span)),
            Self::Pause(p) => lasts("pause", p.lasting),
            Self::Degrade(d) => {
                lasts("degrade", d.lasting)?;
                if !(0.0..=MOST_FACTOR).contains(&d.delay_factor) {
                    return Err(Error::at(
                        "degrade.delay_factor",
                        format!("{} is not a factor between 0 and {MOST_FACTOR:e}", d.delay_factor),
                        "write for example 10",
                    ));
                }
                if d.delay_factor == 1.0 && d.loss.is_zero() {
                    return Err(Error::at("degrade", "it changes nothing", "set `delay_factor` or `loss`"));
                }
                Ok(())
            }
        }
    }
}
