//! The `[network]` table: delays, losses and limits of the emulated network.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use volary_actors::base::{Class, DistributionSpec, Span};

use crate::error::Error;
use crate::faults::FaultSpec;
use crate::units::{Buffer, Probability, Rate};

/// The `[network]` table. A *link* is a directed pair of endpoints, with its own delays, losses and rate. Link classes
/// of a topology replace `one_way`, `loss`, `rate` and `buffer` where they set these keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Propagation delay of a message, drawn for each message and link. Default: none.
    pub one_way: DistributionSpec<Span>,
    /// Correlation between successive delays of one link, from 0 (independent, the default) to 1. Delays follow an
    /// AR(1) process of normal scores, so their distribution stays `one_way`.
    pub correlation: Probability,
    /// Loss of a transmission: a probability, or `{ gilbert-elliott = { p, r, good_loss, bad_loss } }`. A lost datagram
    /// is gone; a lost stream message is sent again after `rto`.
    pub loss: Loss,
    /// Probability that a datagram is sent twice. The duplicate follows the original on the link and takes equally long
    /// to send. It has its own delay, so it can arrive first where `one_way` is random. A loss removes both the
    /// datagram and its duplicate.
    pub duplicate: Probability,
    /// Probability that a datagram is held back by a further `reorder_by`, so that later datagrams overtake it.
    /// Messages of either class also overtake each other when `one_way` varies.
    pub reorder: Probability,
    /// Time for which a reordered datagram is held back. Default: a second draw of the link's delay distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_by: Option<DistributionSpec<Span>>,
    /// Throughput of a link, which sends its messages one after the other. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Limit of the data waiting at a link with a `rate`. A datagram beyond the limit is dropped, a stream message is
    /// sent again after `rto`. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Rate of an endpoint's uplink, which all its messages to other machines share: they leave one after the other,
    /// and then enter their links. Retransmissions and duplicates do not wait for the uplink again. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Rate>,
    /// Time after which a lost stream transmission is repeated; each consecutive loss doubles it. Default: the probe
    /// timeout of RFC 9002, section 6.2.1: smoothed RTT + max(4 × RTT variation, 1 ms) + 25 ms. RTT is twice the link's
    /// mean delay, and its variation is √2 times the delay's standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<Span>,
    /// Time for which a sender tries to reach its peer before a stream message is returned as undelivered. Default: 10
    /// s.
    pub peer_timeout: Span,
    /// Whether actors repair lost datagrams even if this network loses none. Actors on several hosts always do. Repairs
    /// cost some policies additional messages and timers. Default: repair only if a datagram can be lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expect_loss: bool,
    /// Faults with a time, in any order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultSpec>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            one_way: DistributionSpec::Constant(Span::ZERO),
            correlation: Probability::ZERO,
            loss: Loss::Bernoulli(Probability::ZERO),
            duplicate: Probability::ZERO,
            reorder: Probability::ZERO,
            reorder_by: None,
            rate: None,
            buffer: None,
            uplink: None,
            rto: None,
            peer_timeout: Span::from_secs(10),
            expect_loss: false,
            fault: Vec::new(),
        }
    }
}

/// A model of lost transmissions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Loss {
    /// Independent losses with this probability.
    Bernoulli(Probability),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
}

/// A two-state Markov chain that steps once per message of a link (Gilbert 1960, Elliott 1963). It starts in its
/// stationary distribution. Mean loss is (r·good_loss + p·bad_loss) / (p + r); stays in the bad state last 1/r messages
/// on average. Retransmissions of a stream message continue from the state in which the message was lost, so a stream
/// loses a larger share of its transmissions than this mean.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability per message of going from good to bad.
    pub p: Probability,
    /// Probability per message of going from bad to good.
    pub r: Probability,
    /// Loss probability in the good state. Default: 0.
    #[serde(default)]
    pub good_loss: Probability,
    /// Loss probability in the bad state. Default: 1.
    #[serde(default = "always")]
    pub bad_loss: Probability,
}

const fn always() -> Probability {
    Probability::ONE
}

impl Loss {
    /// No loss at all.
    pub const NONE: Self = Self::Bernoulli(Probability::ZERO);

    /// Whether no message is ever lost.
    pub fn is_none(&self) -> bool {
        self.mean() == 0.0
    }

    /// The long-run share of lost transmissions of a class. Under Gilbert–Elliott loss, streams lose a larger share
    /// than datagrams: the retransmissions of a message begin in the state in which it was lost, mostly the bad one.
    /// The peer timeout's limit on retransmissions is not taken into account.
    pub fn of(&self, class: Class) -> f64 {
        match self {
            Self::GilbertElliott(ge) if class == Class::Stream => 1.0 - 1.0 / ge.attempts(),
            Self::GilbertElliott(_) | Self::Bernoulli(_) => self.mean(),
        }
    }

    /// The long-run share of messages whose first transmission is lost.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Bernoulli(p) => p.get(),
            Self::GilbertElliott(ge) => {
                let bad = ge.share_bad();
                (1.0 - bad) * ge.good_loss.get() + bad * ge.bad_loss.get()
            }
        }
    }
}

impl GilbertElliott {
    /// The stationary probability of the bad state; zero if the chain never leaves its state.
    pub fn share_bad(&self) -> f64 {
        let (p, r) = (self.p.get(), self.r.get());
        if p + r == 0.0 { 0.0 } else { p / (p + r) }
    }

    /// Mean number of transmissions of a stream message: the expected length of a walk of the chain that ends with the
    /// first successful transmission. Infinite if every transmission is lost.
    fn attempts(&self) -> f64 {
        let (p, r, good, bad) = (self.p.get(), self.r.get(), self.good_loss.get(), self.bad_loss.get());
        // A(s), the mean number of attempts from state s, is 1 + loss(s) · E[A(next state)]: two linear equations.
        let (good_stays, bad_stays) = (1.0 - good * (1.0 - p), 1.0 - bad * (1.0 - r));
        let determinant = good_stays * bad_stays - good * p * bad * r;
        let from_good = (bad_stays + good * p) / determinant;
        let from_bad = (good_stays + bad * r) / determinant;
        let share = self.share_bad();
        (1.0 - share) * from_good + share * from_bad
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum LossTable {
    GilbertElliott(GilbertElliott),
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bernoulli(p) => p.serialize(serializer),
            Self::GilbertElliott(ge) => LossTable::GilbertElliott(*ge).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability, or { gilbert-elliott = { p = …, r = … } }")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Loss, E> {
                Probability::deserialize(de::value::F64Deserializer::new(value)).map(Loss::Bernoulli)
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Loss, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Loss, E> {
                self.visit_f64(value as f64)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let LossTable::GilbertElliott(ge) =
                    LossTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                if ge.p.is_zero() && ge.r.is_zero() {
                    return Err(de::Error::custom(
                        "p and r are both 0, so the chain never leaves its state; write a plain probability instead",
                    ));
                }
                Ok(Loss::GilbertElliott(ge))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let probability = generator.subschema_for::<Probability>();
        let table = LossTable::json_schema(generator);
        json_schema!({ "description": "a probability, or a loss model", "anyOf": [probability, table] })
    }
}

impl Network {
    /// Checks everything that needs no topology; [`Fabric::new`](crate::Fabric::new) checks the rest.
    ///
    /// # Errors
    /// An [`Error`] for an impossible combination of keys, with the key below `network`.
    pub fn check(&self) -> Result<(), Error> {
        if self.reorder_by.is_some() && self.reorder.is_zero() {
            return Err(Error::at(
                "network.reorder_by",
                "`reorder` is zero, so no datagram is ever reordered",
                "set the probability `reorder`, or remove `reorder_by`",
            ));
        }
        if self.reorder_by.as_ref().is_some_and(|distribution| distribution.mean() == 0.0) {
            return Err(Error::at(
                "network.reorder_by",
                "a mean of zero holds no datagram back",
                "write for example \"1ms\", or remove `reorder_by` for a second delay",
            ));
        }
        if self.peer_timeout == Span::ZERO {
            return Err(Error::at(
                "network.peer_timeout",
                "with zero every peer would be unreachable at once",
                "write for example \"10s\"",
            ));
        }
        if self.rto == Some(Span::ZERO) {
            return Err(Error::at(
                "network.rto",
                "with zero a lost message would be repeated without end at one instant",
                "write for example \"50ms\", or remove `rto` for the default of RFC 9002",
            ));
        }
        self.fault.iter().enumerate().try_for_each(|(i, fault)| {
            fault.check().map_err(|error| error.below(&format!("network.fault[{i}]")))
        })
    }
}
