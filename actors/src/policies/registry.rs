//! The registry of policies: those of this crate, and those that a program adds.

use std::sync::{Arc, OnceLock};

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::policy::{Auxiliaries, DynPolicy, Policy};
use crate::base::Class;
use crate::message::{self, CustomKind, CustomProtocol};

/// Name, description and parameters of a policy.
#[derive(Clone, Debug)]
pub struct Card {
    /// Name of the policy in experiment files.
    pub name: &'static str,
    /// Title with source, then a description.
    pub about: &'static str,
    /// JSON Schema of the policy's parameters, with descriptions, defaults and ranges.
    pub schema: Schema,
    /// Whether the policy runs jobs and needs no program of its user.
    pub runs_alone: bool,
    /// Whether the policy runs with one scheduler only, if no parameter says otherwise.
    pub one_scheduler: bool,
    /// Name of the policy's auxiliary actors in the singular; empty if it has none.
    pub auxiliary: &'static str,
}

/// A registered policy: its constructor from parameters, and its description.
#[derive(Clone, Copy)]
pub(super) struct Registered {
    pub(super) name: &'static str,
    card: fn(&'static str) -> Card,
    pub(super) default: fn() -> Arc<dyn DynPolicy>,
    /// Reads parameters. An error within a parameter begins with the parameter's name.
    pub(super) read: fn(&Value) -> Result<Arc<dyn DynPolicy>, String>,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Registered {
    const fn of<P: Policy>(name: &'static str) -> Self {
        Self {
            name,
            card: card::<P>,
            default: || Arc::new(P::default()),
            read: |value| read(value, |value| Ok(Arc::new(P::deserialize(value)?))),
            schema: |generator| generator.subschema_for::<P>(),
        }
    }

    pub(super) fn card(&self) -> Card {
        (self.card)(self.name)
    }
}

fn card<P: Policy>(name: &'static str) -> Card {
    let default = P::default();
    let traits = Policy::traits(&default);
    Card {
        name,
        about: P::ABOUT,
        schema: schemars::schema_for!(P),
        runs_alone: traits.runs_alone(),
        one_scheduler: traits.one_scheduler,
        auxiliary: traits.auxiliaries.map_or("", Auxiliaries::name),
    }
}

type Parse = fn(&Value) -> serde_json::Result<Arc<dyn DynPolicy>>;

fn read(value: &Value, parse: Parse) -> Result<Arc<dyn DynPolicy>, String> {
    // Experiment files have no null: it stands for a number that is not finite.
    let mut parameters = value.as_object().into_iter().flatten();
    if let Some((key, _)) = parameters.find(|(_, value)| has_null(value)) {
        return Err(format!("in `{key}`: invalid value: not a finite number, expected a finite one"));
    }
    let parsed = parse(value).map_err(|error| error.to_string());
    let Err(error) = parsed else { return parsed };
    // serde does not name the parameter with the error. All parameters are optional, so the cause is the parameter that
    // is also refused on its own.
    let refused = |key: &str, value: &Value| {
        let alone = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
        parse(&alone).is_err_and(|alone| alone.to_string() == error)
    };
    let own = |key: &str| !error.starts_with(&format!("unknown field `{key}`"));
    let cause = value.as_object().into_iter().flatten().find(|(key, value)| own(key) && refused(key, value));
    Err(cause.map_or_else(|| error.clone(), |(key, _)| format!("in `{key}`: {error}")))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(has_null),
        Value::Object(all) => all.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The policies and kinds of messages of a program. [`ours`](Self::ours) has those of this crate. A program with
/// further policies adds them and [installs](Self::install) the registry before anything else.
///
/// ```
/// # use volary_actors::policies::Registry;
/// # use volary_actors::policies::random::Random;
/// let registry = Registry::ours().with::<Random>("uniform");
/// registry.install().expect("no registry is installed yet");
/// ```
#[derive(Clone)]
pub struct Registry {
    policies: Vec<Registered>,
    /// Number of policies of this crate, which come first.
    ours: usize,
    kinds: Vec<(u8, CustomKind)>,
    /// The first error of a registration.
    wrong: Option<String>,
}

static INSTALLED: OnceLock<Registry> = OnceLock::new();

/// The registry of this process.
pub(super) fn registry() -> &'static Registry {
    INSTALLED.get_or_init(Registry::ours)
}

impl Registry {
    /// The policies of this crate.
    pub fn ours() -> Self {
        let policies = ours();
        Self { ours: policies.len(), policies, kinds: Vec::new(), wrong: None }
    }

    /// Adds a policy under the name that experiment files give it: lower-case letters, digits and hyphens.
    #[must_use]
    pub fn with<P: Policy>(mut self, name: &'static str) -> Self {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name == "label" || !name.chars().all(plain) {
            return self.refuse(format!(
                "`{name}` cannot name a policy: write lower-case letters, digits and hyphens, and not `label`"
            ));
        }
        if self.policies.iter().any(|registered| registered.name == name) {
            return self.refuse(format!("two policies are called `{name}`: rename one"));
        }
        self.policies.push(Registered::of::<P>(name));
        self
    }

    /// Adds the messages of a policy.
    #[must_use]
    pub fn with_messages<M: CustomProtocol>(mut self) -> Self {
        for (slot, kind) in (M::FIRST..).zip(M::KINDS) {
            let same = |name: &str| name == kind.name;
            if message::kinds().any(|(name, _)| same(name)) || self.kinds.iter().any(|(_, k)| same(k.name)) {
                return self.refuse(format!("two kinds of messages are called `{}`: rename one", kind.name));
            }
            if let Some((_, other)) = self.kinds.iter().find(|(taken, _)| *taken == slot) {
                let names = (other.name, kind.name);
                return self.refuse(format!(
                    "the messages `{}` and `{}` both have number {slot}: write another number behind `from`",
                    names.0, names.1
                ));
            }
            self.kinds.push((slot, *kind));
        }
        self
    }

    fn refuse(mut self, why: String) -> Self {
        self.wrong.get_or_insert(why);
        self
    }

    /// Makes this the registry of the process.
    ///
    /// # Errors
    /// If a name or number is taken or invalid, or the process has used or installed a registry before.
    pub fn install(self) -> Result<(), String> {
        if let Some(why) = self.wrong {
            return Err(why);
        }
        let late = "the registry is in use: install it before anything else, and once";
        message::install(&self.kinds)?;
        INSTALLED.set(self).map_err(|_| late.to_owned())
    }

    /// The policies that the program has added to those of this crate.
    pub(super) fn added(&self) -> impl Iterator<Item = &Registered> {
        self.policies[self.ours..].iter()
    }

    pub(super) fn policies(&self) -> impl Iterator<Item = &Registered> {
        self.policies.iter()
    }
}

/// The identity of the machines of this program besides the version of volary: name and class of every kind of message,
/// and name and parameters of every added policy.
pub fn vocabulary() -> Vec<(String, Option<Class>)> {
    let kinds = message::kinds().map(|(name, class)| (name.to_owned(), Some(class)));
    let schema =
        |registered: &Registered| format!("{} {}", registered.name, registered.card().schema.as_value());
    kinds.chain(registry().added().map(|registered| (schema(registered), None))).collect()
}

macro_rules! ours {
    ($($name:literal => $config:path,)*) => {
        fn ours() -> Vec<Registered> {
            vec![$(Registered::of::<$config>($name)),*]
        }
    };
}

ours! {
    "latin-square" => super::latin_square::LatinSquare,
    "full-repetition" => super::full_repetition::FullRepetition,
    "random" => super::random::Random,
    "round-robin" => super::round_robin::RoundRobin,
    "central-queue" => super::central_queue::CentralQueue,
    "gang" => super::gang::Gang,
    "sparrow" => super::sparrow::Sparrow,
    "peacock" => super::peacock::Peacock,
    "murmuration" => super::murmuration::Murmuration,
    "hawk" => super::hawk::Hawk,
    "eagle" => super::eagle::Eagle,
    "pigeon" => super::pigeon::Pigeon,
    "kubernetes" => super::kubernetes::Kubernetes,
    "yaq-d" => super::yaq_d::YaqD,
    "yaq-c" => super::yaq_c::YaqC,
    "kairos" => super::kairos::Kairos,
    "yarn-fifo" => super::yarn_fifo::YarnFifo,
    "big-c" => super::big_c::BigC,
    "las-sparrow" => super::las_sparrow::LasSparrow,
    "3sigma" => super::three_sigma::ThreeSigma,
    "prio" => super::prio::Prio,
    "distsched" => super::distsched::DistSched,
    "naive" => super::naive::Naive,
    "late" => super::late::LatePolicy,
    "hadoop2" => super::hadoop2::Hadoop2,
    "mantri" => super::mantri::Mantri,
    "dolly" => super::dolly::Dolly,
    "hedged" => super::hedged::Hedged,
    "hopper" => super::hopper::Hopper,
    "push" => super::gossip::Push,
    "pull" => super::gossip::Pull,
    "push-pull" => super::gossip::PushPull,
    "flood" => super::gossip::Flood,
    "swim" => super::gossip::Swim,
    "lifeguard" => super::gossip::Lifeguard,
    "external" => super::external::External,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::PolicySpec;

    /// Randomised tests draw parameters from the schema, so number parameters need a range.
    #[test]
    fn number_parameters_have_a_range() {
        for card in PolicySpec::cards() {
            let schema = card.schema.to_value();
            for (key, parameter) in schema["properties"].as_object().into_iter().flatten() {
                let bounded = !parameter["minimum"].is_null() || !parameter["exclusiveMinimum"].is_null();
                assert!(parameter["type"] != "number" || bounded, "{}: {key} has no range", card.name);
            }
        }
    }

    #[test]
    fn invalid_and_repeated_policy_names_are_refused() {
        type Random = crate::policies::random::Random;
        let why = |registry: Registry| registry.wrong.unwrap_or_default();
        assert!(
            why(Registry::ours().with::<Random>("sparrow")).contains("two policies are called `sparrow`")
        );
        assert!(why(Registry::ours().with::<Random>("My_Own")).contains("lower-case letters"));
        assert_eq!(why(Registry::ours().with::<Random>("my-own-2")), "");
    }

    #[test]
    fn errors_name_the_parameter_in_which_they_occur() {
        let error = |text: &str| toml::from_str::<PolicySpec>(text).unwrap_err().message().to_owned();
        assert!(
            error("sparrow = { probe_ratio = \"2\" }").starts_with("in `probe_ratio`: invalid type: string")
        );
        assert!(
            error("sparrow = { probe_ration = 2 }").starts_with("unknown field `probe_ration`, expected")
        );
        assert!(
            error("late = { progress = { nois = 1 } }").starts_with("in `progress`: unknown field `nois`")
        );
        assert!(error("sparrow = { probe_ratio = inf }").contains("not a finite number"));
        assert!(error("sparow = {}").starts_with("unknown variant `sparow`, expected one of `latin-square`"));
        assert!(error("random = {}\nsparrow = {}").contains("write `random` or `sparrow`, not both"));
    }

    #[test]
    fn policies_round_trip_through_their_written_form() {
        for spec in PolicySpec::defaults() {
            let text = toml::to_string(&spec).unwrap();
            assert_eq!(toml::from_str::<PolicySpec>(&text).unwrap(), spec, "{text}");
        }
    }
}
