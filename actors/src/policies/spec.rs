//! A policy with its parameters, as an experiment file names it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, MapAccess};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::policy::{Auxiliaries, DynPolicy};
use super::registry::{Card, Registered, registry};
use crate::base::Span;
use crate::layout::Layout;

/// A registered policy and its parameters, as an experiment file names them: `sparrow = { probe_ratio = 2 }`.
#[derive(Clone)]
pub struct PolicySpec {
    name: &'static str,
    policy: Arc<dyn DynPolicy>,
}

impl PolicySpec {
    /// Name of the policy in experiment files.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the program has added the policy to those of this crate.
    pub fn is_added(&self) -> bool {
        registry().added().any(|registered| registered.name == self.name)
    }

    /// Every registered policy, in the order of the registry.
    pub fn cards() -> Vec<Card> {
        registry().policies().map(Registered::card).collect()
    }

    /// Every registered policy that can run with default parameters, with its default parameters.
    pub fn defaults() -> Vec<Self> {
        let all = registry().policies().map(Self::default_of);
        all.filter(|policy| policy.traits().runs_alone()).collect()
    }

    fn default_of(registered: &Registered) -> Self {
        Self { name: registered.name, policy: (registered.default)() }
    }

    /// Reads the parameters of the policy `name`.
    ///
    /// # Errors
    /// If no policy has this name. The message lists the registered policies, in the words of serde's error for an
    /// unknown variant.
    pub fn named(name: &str) -> Result<impl for<'de> DeserializeSeed<'de, Value = Self> + use<>, String> {
        let found = registry().policies().find(|registered| registered.name == name);
        found.map(ParametersOf).ok_or_else(|| {
            let known: Vec<_> =
                registry().policies().map(|registered| format!("`{}`", registered.name)).collect();
            format!("unknown variant `{name}`, expected one of {}", known.join(", "))
        })
    }

    /// The [name](super::Auxiliaries::name) of an auxiliary actor of this policy; empty if it has none.
    pub fn auxiliary(&self) -> &'static str {
        self.traits().auxiliaries.map_or("", Auxiliaries::name)
    }

    /// The layout of a run of this policy on a cluster; the policy must pass the [check](Self::check).
    pub fn layout(&self, cluster: Layout) -> Layout {
        match self.traits().auxiliaries {
            Some(auxiliaries) => auxiliaries.layout(cluster),
            None => cluster,
        }
    }

    /// Upper bound of the time for which the policy's actors wait on their own timers: the sum of its periods, timeouts
    /// and other durations.
    pub fn longest_wait(&self) -> Span {
        serde_json::to_value(self).map_or(Span::ZERO, |parameters| lengths(&parameters))
    }

    /// Checks whether this policy can run on a layout, which needs no auxiliary actors.
    ///
    /// # Errors
    /// If it cannot run; the text reads "key: reason and remedy".
    pub fn check(&self, layout: &Layout) -> Result<(), String> {
        if self.traits().one_scheduler && layout.schedulers() != 1 {
            return Err(format!("{} is a central scheduler: its layout needs one scheduler", self.name));
        }
        self.policy.check_parameters(layout)
    }
}

/// Gives access to the methods of the policy.
impl Deref for PolicySpec {
    type Target = dyn DynPolicy;

    fn deref(&self) -> &Self::Target {
        &*self.policy
    }
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?}", self.name, self.policy)
    }
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        let value = |spec: &Self| serde_json::to_value(spec).ok();
        self.name == other.name && value(self) == value(other)
    }
}

impl Serialize for PolicySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Erased<'a>(&'a dyn DynPolicy);
        impl Serialize for Erased<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                erased_serde::serialize(self.0, serializer)
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.name, &Erased(&*self.policy))?;
        map.end()
    }
}

/// The sum of all durations among parameters, multiplied by the number `scale` beside them if `scale` is above one.
fn lengths(parameters: &Value) -> Span {
    match parameters {
        Value::String(text) => text.parse().unwrap_or(Span::ZERO),
        Value::Array(all) => all.iter().map(lengths).fold(Span::ZERO, |sum, length| sum + length),
        Value::Object(all) => {
            let scale = all.get("scale").and_then(Value::as_f64).unwrap_or(1.0);
            all.values().map(lengths).fold(Span::ZERO, |sum, length| sum + length).scale(scale.max(1.0))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Span::ZERO,
    }
}

/// Reads the parameters of a registered policy. Errors within a parameter begin with its name: "in `errors`: …".
struct ParametersOf(&'static Registered);

impl<'de> DeserializeSeed<'de> for ParametersOf {
    type Value = PolicySpec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PolicySpec, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let policy = (self.0.read)(&value).map_err(de::Error::custom)?;
        Ok(PolicySpec { name: self.0.name, policy })
    }
}

impl<'de> Deserialize<'de> for PolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = PolicySpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a policy such as `sparrow = { probe_ratio = 2 }`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicySpec, A::Error> {
                let name = map.next_key::<String>()?.unwrap_or_default();
                let spec = map.next_value_seed(PolicySpec::named(&name).map_err(de::Error::custom)?)?;
                match map.next_key::<String>()? {
                    Some(other) => Err(de::Error::custom(format!("write `{name}` or `{other}`, not both"))),
                    None => Ok(spec),
                }
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl JsonSchema for PolicySpec {
    fn schema_name() -> Cow<'static, str> {
        "PolicySpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut one = |registered: &Registered| {
            let name = registered.name;
            json_schema!({
                "description": format!("`{name}`"),
                "type": "object",
                "properties": { name: (registered.schema)(generator) },
                "required": [name],
                "additionalProperties": false,
            })
        };
        let policies: Vec<Schema> = registry().policies().map(&mut one).collect();
        json_schema!({
            "description": "A policy and its parameters, as an experiment file names them: \
                `sparrow = { probe_ratio = 2 }`.",
            "oneOf": policies,
        })
    }
}
