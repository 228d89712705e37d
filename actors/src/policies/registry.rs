//! The registry of policies.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use crate::base::{ActorId, Span};
use crate::layout::Layout;
use crate::machine::Machine;

/// Name, description and parameters of a policy.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its name in experiment files.
    pub name: &'static str,
    /// Title with source, then what it does.
    pub about: &'static str,
    /// JSON Schema of its parameters: descriptions, defaults, ranges.
    pub schema: Schema,
    /// Parameters to test it with; see [`Policy::VARIANTS`].
    pub variants: &'static [&'static str],
    /// Whether it runs with one scheduler only, if no parameter says otherwise.
    pub one_scheduler: bool,
    /// What its extras are called; see [`Policy::EXTRAS`].
    pub extras: &'static str,
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

        $(const _: () = assert!(!<$config as Policy>::VARIANTS.is_empty(), "a policy states its variants");)*

        impl PolicySpec {
            /// Its name in experiment files.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Every registered policy, in the order of the registry.
            pub fn cards() -> Vec<Card> {
                vec![$(Card {
                    name: $name,
                    about: <$config as Policy>::ABOUT,
                    schema: schemars::schema_for!($config),
                    variants: <$config as Policy>::VARIANTS,
                    one_scheduler: <$config>::default().one_scheduler(),
                    extras: <$config as Policy>::EXTRAS,
                }),*]
            }

            /// Every registered policy with default parameters.
            pub fn defaults() -> Vec<Self> {
                vec![$(Self::$variant(<$config>::default())),*]
            }

            /// The actors of a run of this policy, which passes the [check](Self::check): those of the cluster's
            /// `layout`, with its extras, and the cores that it has.
            pub fn layout(&self, layout: Layout) -> Layout {
                let (extras, cores) = match self {
                    $(Self::$variant(config) => (config.extras(&layout), config.cores(&layout)),)*
                };
                let layout = match cores {
                    Some(cores) => layout.with_cores(cores),
                    None => layout,
                };
                layout.with_extras(extras)
            }

            /// What the extras of each registered policy are called, in the order of the registry.
            pub const EXTRAS: &'static [&'static str] = &[$(<$config as Policy>::EXTRAS),*];

            /// What its extras are called; see [`Policy::EXTRAS`].
            pub const fn extras(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$config as Policy>::EXTRAS,)* }
            }

            /// The node whose rack and shard an extra shares; see [`Policy::beside`].
            pub fn beside(&self, extra: u32, layout: &Layout) -> Option<u32> {
                match self { $(Self::$variant(config) => config.beside(extra, layout),)* }
            }

            /// What a user should know before a run; see [`Policy::remarks`].
            pub fn remarks(&self, layout: &Layout, classes: usize) -> Vec<String> {
                match self { $(Self::$variant(config) => config.remarks(layout, classes),)* }
            }

            /// Checks whether this policy can run on a layout, which needs no extras.
            pub fn check(&self, layout: &Layout) -> Result<(), String> {
                match self {
                    $(Self::$variant(config) => {
                        if config.one_scheduler() {
                            check_one_scheduler(layout, $name)?;
                        }
                        config.check_ranges()?;
                        config.check(layout)
                    })*
                }
            }

            /// Whether it runs with one scheduler only.
            pub fn one_scheduler(&self) -> bool {
                match self { $(Self::$variant(config) => config.one_scheduler(),)* }
            }

            /// The parameter that is about long jobs, where this policy makes no sense without them; otherwise `None`.
            pub fn needs_long(&self) -> Option<&'static str> {
                match self { $(Self::$variant(config) => config.needs_long(),)* }
            }

            /// How long a copy runs before this policy queries its progress; `None` if it never does.
            pub fn patience(&self) -> Option<Span> {
                match self { $(Self::$variant(config) => config.patience(),)* }
            }

            /// How long a copy runs before this policy preempts it, with the parameter that says so; `None` if it never
            /// does.
            pub fn time_slice(&self) -> Option<(&'static str, Span)> {
                match self { $(Self::$variant(config) => config.time_slice(),)* }
            }

            /// Whether its schedulers plan; see [`Policy::PLANS`].
            pub fn plans(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Policy>::PLANS,)* }
            }

            /// Whether its nodes watch what copies use; see [`Policy::USAGE`].
            pub fn usage(&self) -> bool {
                match self { $(Self::$variant(_) => <$config as Policy>::USAGE,)* }
            }

            /// The parameter by which it looks at the [`Oracle`](crate::machine::Oracle); `None` if it does not.
            pub fn oracle(&self) -> Option<&'static str> {
                match self { $(Self::$variant(config) => config.oracle(),)* }
            }

            /// Number of nodes that the caches of schedulers cover, the first ones.
            pub fn cached_nodes(&self, layout: &Layout) -> u32 {
                match self { $(Self::$variant(config) => config.cached_nodes(layout),)* }
            }

            /// The machine of an actor; see [`Policy::machine`].
            pub fn machine(&self, me: ActorId, layout: &Layout, lossy: bool, observed: bool) -> Box<dyn Machine> {
                match self { $(Self::$variant(config) => config.machine(me, layout, lossy, observed),)* }
            }
        }
    };
}

registry! {
    "latin-square" => LatinSquare(super::latin_square::LatinSquare),
    "full-repetition" => FullRepetition(super::full_repetition::FullRepetition),
    "random" => Random(super::random::Random),
    "round-robin" => RoundRobin(super::round_robin::RoundRobin),
    "central-queue" => CentralQueue(super::central_queue::CentralQueue),
    "gang" => Gang(super::gang::Gang),
    "sparrow" => Sparrow(super::sparrow::Sparrow),
    "peacock" => Peacock(super::peacock::Peacock),
    "murmuration" => Murmuration(super::murmuration::Murmuration),
    "hawk" => Hawk(super::hawk::Hawk),
    "eagle" => Eagle(super::eagle::Eagle),
    "pigeon" => Pigeon(super::pigeon::Pigeon),
    "kubernetes" => Kubernetes(super::kubernetes::Kubernetes),
    "yaq-d" => YaqD(super::yaq_d::YaqD),
    "yaq-c" => YaqC(super::yaq_c::YaqC),
    "kairos" => Kairos(super::kairos::Kairos),
    "yarn-fifo" => YarnFifo(super::yarn_fifo::YarnFifo),
    "big-c" => BigC(super::big_c::BigC),
    "las-sparrow" => LasSparrow(super::las_sparrow::LasSparrow),
    "3sigma" => ThreeSigma(super::three_sigma::ThreeSigma),
    "prio" => Prio(super::prio::Prio),
    "distsched" => DistSched(super::distsched::DistSched),
    "naive" => Naive(super::naive::Naive),
    "late" => Late(super::late::LatePolicy),
    "hadoop2" => Hadoop2(super::hadoop2::Hadoop2),
    "mantri" => Mantri(super::mantri::Mantri),
    "dolly" => Dolly(super::dolly::Dolly),
    "hedged" => Hedged(super::hedged::Hedged),
}

/// Refuses more than one scheduler.
fn check_one_scheduler(layout: &Layout, name: &str) -> Result<(), String> {
    if layout.schedulers() == 1 {
        return Ok(());
    }
    Err(format!("{name} is a central scheduler; set cluster.schedulers = 1, not {}", layout.schedulers()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Randomised tests draw parameters from the schema.
    #[test]
    fn numbers_have_a_least_value() {
        for card in PolicySpec::cards() {
            let schema = card.schema.to_value();
            for (key, parameter) in schema["properties"].as_object().into_iter().flatten() {
                let bounded = !parameter["minimum"].is_null() || !parameter["exclusiveMinimum"].is_null();
                assert!(parameter["type"] != "number" || bounded, "{}: {key} has no range", card.name);
            }
        }
    }
}
