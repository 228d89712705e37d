//! One file per scheduling system, and the registry.
//!
//! A policy is its parameters: a serde struct that experiment files name and that builds the machines of a
//! run. To add one: a file here (parameters with defaults, units and paper section; its machines; step
//! tests), its `mod` line, one line in the registry, one row in the oracle table.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a machine has a use for a few messages; the rest are counted as unexpected"
)]

mod central_queue;
mod dolly;
mod eagle;
mod full_repetition;
mod gang;
mod hadoop2;
mod hawk;
mod hedged;
mod kubernetes;
mod late;
mod latin_square;
mod mantri;
mod murmuration;
mod naive;
mod peacock;
mod random;
mod round_robin;
mod sparrow;
mod yaq_c;
mod yaq_d;

pub use central_queue::CentralQueue;
pub use dolly::Dolly;
pub use eagle::Eagle;
pub use full_repetition::{FullRepetition, Preempt};
pub use gang::Gang;
pub use hadoop2::Hadoop2;
pub use hawk::Hawk;
pub use hedged::Hedged;
pub use kubernetes::{Kubernetes, Retry};
pub use late::Late;
pub use latin_square::{Binding, LatinSquare};
pub use mantri::Mantri;
pub use murmuration::{
    Murmuration, Order as MurmurationOrder, Spread as MurmurationSpread, Wait as MurmurationWait,
};
pub use naive::Naive;
pub use peacock::{Form as PeacockForm, Peacock};
pub use random::Random;
pub use round_robin::RoundRobin;
pub use sparrow::{Form as SparrowForm, Sparrow};
pub use yaq_c::YaqC;
pub use yaq_d::YaqD;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::base::{ActorId, Span};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::{Client, Node};

/// Where a machine is about to sit.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Its address.
    pub me: ActorId,
    /// Its number among actors of its kind.
    pub index: u32,
    /// Everybody else.
    pub layout: &'a Layout,
    /// Whether the experiment's network can lose datagrams: repairs that cost messages are armed only then.
    pub lossy: bool,
    /// Whether somebody wants to know how fresh its cache is, if it has one. It changes nothing but the notes.
    pub watched: bool,
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy {
    /// What `volary policies` says: a title with the source, then what it does.
    const ABOUT: &'static str;

    /// Why these parameters cannot run on this layout, as "key: reason and remedy".
    ///
    /// # Errors
    /// A sentence for the user.
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// How long a copy runs before this policy learns how far it is; nothing if it never asks.
    fn patience(&self) -> Option<Span> {
        None
    }

    /// A job source.
    fn client(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Client::new(seat.index))
    }

    /// A scheduler.
    fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine>;

    /// A node manager.
    fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
        Box::new(Node::new(seat.layout.cores(seat.index)))
    }
}

/// Name, description and parameters of a policy.
#[derive(Clone, Debug)]
pub struct Card {
    /// As experiment files write it.
    pub name: &'static str,
    /// Title with source, then what it does.
    pub about: &'static str,
    /// JSON Schema of its parameters: descriptions, defaults.
    pub schema: Schema,
}

macro_rules! registry {
    ($($name:literal => $variant:ident($config:path),)*) => {
        /// A policy and its parameters, as an experiment file names them: `sparrow = { probe_ratio = 2 }`.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum PolicySpec {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $variant($config),
            )*
        }

        impl PolicySpec {
            /// Its name in experiment files.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Every registered policy, in the order of the registry.
            #[must_use]
            pub fn cards() -> Vec<Card> {
                vec![$(Card {
                    name: $name,
                    about: <$config as Policy>::ABOUT,
                    schema: schemars::schema_for!($config),
                }),*]
            }

            /// Every registered policy with default parameters.
            #[must_use]
            pub fn defaults() -> Vec<Self> {
                vec![$(Self::$variant(<$config>::default())),*]
            }

            /// Why this policy cannot run on this layout.
            ///
            /// # Errors
            /// A sentence for the user: "key: reason and remedy".
            pub fn check(&self, layout: &Layout) -> Result<(), String> {
                match self { $(Self::$variant(config) => config.check(layout),)* }
            }

            /// How long a copy runs before this policy learns how far it is; nothing if it never asks.
            #[must_use]
            pub fn patience(&self) -> Option<Span> {
                match self { $(Self::$variant(config) => config.patience(),)* }
            }

            /// A job source for this policy.
            #[must_use]
            pub fn client(&self, seat: Seat<'_>) -> Box<dyn Machine> {
                match self { $(Self::$variant(config) => config.client(seat),)* }
            }

            /// A scheduler of this policy.
            #[must_use]
            pub fn scheduler(&self, seat: Seat<'_>) -> Box<dyn Machine> {
                match self { $(Self::$variant(config) => config.scheduler(seat),)* }
            }

            /// A node manager of this policy.
            #[must_use]
            pub fn node(&self, seat: Seat<'_>) -> Box<dyn Machine> {
                match self { $(Self::$variant(config) => config.node(seat),)* }
            }
        }
    };
}

registry! {
    "latin-square" => LatinSquare(LatinSquare),
    "full-repetition" => FullRepetition(FullRepetition),
    "random" => Random(Random),
    "round-robin" => RoundRobin(RoundRobin),
    "central-queue" => CentralQueue(CentralQueue),
    "gang" => Gang(Gang),
    "sparrow" => Sparrow(Sparrow),
    "peacock" => Peacock(Peacock),
    "murmuration" => Murmuration(Murmuration),
    "hawk" => Hawk(Hawk),
    "eagle" => Eagle(Eagle),
    "kubernetes" => Kubernetes(Kubernetes),
    "yaq-d" => YaqD(YaqD),
    "yaq-c" => YaqC(YaqC),
    "naive" => Naive(Naive),
    "late" => Late(Late),
    "hadoop2" => Hadoop2(Hadoop2),
    "mantri" => Mantri(Mantri),
    "dolly" => Dolly(Dolly),
    "hedged" => Hedged(Hedged),
}

/// Refuses more than one scheduler, for policies that keep all state in one place.
fn one_scheduler(layout: &Layout, name: &str) -> Result<(), String> {
    if layout.schedulers() == 1 {
        return Ok(());
    }
    Err(format!("{name} is a central scheduler; set cluster.schedulers = 1, not {}", layout.schedulers()))
}

/// Why a duration cannot be used, if it cannot.
///
/// # Errors
/// "key: reason and remedy".
fn positive(key: &str, value: Span) -> Result<(), String> {
    if value == Span::ZERO { Err(format!("{key}: must be longer than zero")) } else { Ok(()) }
}

/// Why a number cannot be used, if it lies outside a range.
///
/// # Errors
/// "key: reason and remedy".
fn within(key: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: must be between {} and {}, not {value}", range.start(), range.end()))
}
