//! A point of a parameter study: a policy, and the world that it runs in.
//!
//! `[[policy]]` has one key that names the policy, and a label. The policy's name is itself a key of the table
//! (`sparrow = { probe_ratio = 2 }`), beside `label`. The table is deserialized by hand, so that errors carry the
//! position of the parameters.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use volary_actors::base::Span;
use volary_actors::policies::PolicySpec;
use volary_netem::Network;

use super::Cluster;
use crate::cores::{Profile, ScheduledInjection};
use crate::handling::ActorsSection;
use crate::results::Cell;
use crate::workload::{Measure, Service, WorkloadSpec};

/// One cell of the sweep under one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Values of the swept keys.
    pub cell: Cell,
    /// The policy and its parameters.
    pub policy: PolicySpec,
    /// Label of the policy in results and claims.
    pub label: String,
    /// Hash of the files of the policy's program; `None` for a policy in Rust.
    pub program: Option<String>,
    /// The rest of the scenario, shared by the policies of a cell.
    pub resolved: Arc<Resolved>,
    /// Hash of everything that the result depends on, 16 hex digits, under the experiment's seed.
    pub id: String,
}

/// The world that the policies of a cell share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Resolved {
    /// The emulated machines.
    pub cluster: Cluster,
    /// The arriving jobs.
    pub workload: WorkloadSpec,
    /// Path at which the trace was found; `None` if there is none or a generator replaces it.
    pub trace: Option<PathBuf>,
    /// The work of the jobs.
    pub service: Service,
    /// Delays and losses of messages.
    pub network: Network,
    /// The time that actors take for messages; `None` if they take none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actors: Option<ActorsSection>,
    /// The interference on cores.
    #[serde(serialize_with = "as_table")]
    pub interference: Option<Profile>,
    /// The injections that the experiment schedules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<ScheduledInjection>,
    /// The part of a run that results cover; `None` for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Hash of all fields, with the content of the trace instead of its path.
    pub digest: String,
}

impl Resolved {
    /// Whether a generator replaces a trace that was not found.
    pub const fn has_stand_in(&self) -> bool {
        matches!(self.workload, WorkloadSpec::Trace(_)) && self.trace.is_none()
    }

    /// Key and start time of each fault and each scheduled injection.
    pub fn disturbances(&self) -> impl Iterator<Item = (String, Span)> + '_ {
        let faults = self.network.fault.iter().enumerate();
        let faults = faults.map(|(i, fault)| (format!("network.fault[{i}]"), fault.at()));
        let injections = self.injections.iter().enumerate();
        faults.chain(injections.map(|(i, spec)| (format!("interference.injection[{i}]"), spec.spec.at)))
    }
}

fn as_table<S: Serializer>(profile: &Option<Profile>, serializer: S) -> Result<S::Ok, S::Error> {
    profile.as_ref().map(|profile| &profile.table).serialize(serializer)
}

/// One `[[policy]]` table.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyEntry {
    /// The policy and its parameters.
    pub spec: PolicySpec,
    /// The policy's name in the file.
    pub name: String,
    /// Label of the policy, if the file gives one.
    pub label: Option<String>,
}

impl PolicyEntry {
    /// The name in results and claims.
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

impl<'de> Deserialize<'de> for PolicyEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = PolicyEntry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a policy such as `sparrow = { probe_ratio = 2 }`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyEntry, A::Error> {
                let (mut label, mut found) = (None, None::<(String, PolicySpec)>);
                while let Some(key) = map.next_key::<String>()? {
                    if key == "label" {
                        label = Some(map.next_value()?);
                    } else if let Some((first, _)) = &found {
                        return Err(de::Error::custom(format!(
                            "`{first}` and `{key}` are two policies; give each a [[policy]] of its own"
                        )));
                    } else {
                        let parameters = PolicySpec::named(&key).map_err(de::Error::custom)?;
                        found = Some((key, map.next_value_seed(parameters)?));
                    }
                }
                let (name, spec) = found.ok_or_else(|| {
                    de::Error::custom("no policy is named; write for example `sparrow = { probe_ratio = 2 }`")
                })?;
                Ok(PolicyEntry { spec, name, label })
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl JsonSchema for PolicyEntry {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    /// The registry's one-key tables, each with the further key `label`.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = PolicySpec::json_schema(generator);
        let label = json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z][A-Za-z0-9_-]*$",
            "description": "name in results and claims; needed when one policy appears twice"
        });
        let variants = schema.get_mut("oneOf").and_then(|list| list.as_array_mut());
        for variant in variants.into_iter().flatten() {
            if let Some(properties) = variant.get_mut("properties").and_then(|p| p.as_object_mut()) {
                properties.insert("label".into(), label.clone().to_value());
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_by_its_key() {
        let entry: PolicyEntry = toml::from_str("label = \"r2\"\nrandom = {}").unwrap();
        assert_eq!((entry.name.as_str(), entry.label()), ("random", "r2"));
        let entry: PolicyEntry = toml::from_str("[random]").unwrap();
        assert_eq!(entry.label(), "random");
    }

    #[test]
    fn the_schema_has_a_label_for_every_policy() {
        let schema = schemars::schema_for!(PolicyEntry).to_value();
        let policies = schema["oneOf"].as_array().unwrap();
        assert_eq!(policies.len(), PolicySpec::cards().len());
        assert!(policies.iter().all(|policy| policy["properties"]["label"]["type"] == "string"), "{schema}");
    }

    #[test]
    fn errors_keep_their_position_in_the_file() {
        let error = |text: &str| toml::from_str::<PolicyEntry>(text).unwrap_err();
        assert_eq!(error("random = {\n  x = 1 }").span(), Some(9..20));
        assert!(error("label = \"x\"").message().contains("no policy is named"));
        assert!(error("rondom = {}").message().contains("unknown variant `rondom`, expected"));
    }
}
