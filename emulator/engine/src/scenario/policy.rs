//! `[[policy]]`: one key that names the policy, and a label.
//!
//! The policy's name is itself a key of the table (`sparrow = { probe_ratio = 2 }`), beside `label`. Flattening would
//! lose the position of errors, so the table is deserialized by hand and each value keeps its own.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, VariantAccess};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use volary_actors::policies::PolicySpec;

/// One `[[policy]]` table.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyEntry {
    /// The policy and its parameters.
    pub spec: PolicySpec,
    /// The policy's name in the file.
    pub name: String,
    /// Its label, if the file gives one.
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
                        let spec = PolicySpec::deserialize(Named { name: &key, map: &mut map })?;
                        found = Some((key, spec));
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

/// One entry of a map, read as the enum variant that its key names.
struct Named<'a, A> {
    name: &'a str,
    map: &'a mut A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Named<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, 'a, A: MapAccess<'de>> EnumAccess<'de> for Named<'a, A> {
    type Error = A::Error;
    type Variant = Parameters<'a, A>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), A::Error> {
        let name: de::value::StrDeserializer<'_, A::Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Parameters(self.map)))
    }
}

/// The value of the entry: the policy's parameters.
struct Parameters<'a, A>(&'a mut A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Parameters<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        self.0.next_value().map(|Nothing {}| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(seed)
    }

    fn tuple_variant<V: de::Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, A::Error> {
        Err(de::Error::invalid_type(de::Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: de::Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        Err(de::Error::invalid_type(de::Unexpected::StructVariant, &visitor))
    }
}

impl JsonSchema for PolicyEntry {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    /// The registry's one-key tables, each with room for a label.
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
    fn the_schema_knows_the_label_of_every_policy() {
        let schema = schemars::schema_for!(PolicyEntry);
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(text.matches("\"label\"").count(), text.matches("\"required\":[").count(), "{text}");
    }

    #[test]
    fn mistakes_keep_their_place() {
        let error = |text: &str| toml::from_str::<PolicyEntry>(text).unwrap_err();
        assert_eq!(error("random = {\n  x = 1 }").span(), Some(13..14));
        assert!(error("label = \"x\"").message().contains("no policy is named"));
        assert!(error("rondom = {}").message().contains("unknown variant `rondom`, expected"));
    }
}
