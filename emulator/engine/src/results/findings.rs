//! Findings: the numbers that a claim compared, by name and in order.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// The numbers of each comparison by its text: a JSON object in the order of the claim's checks and, for each check, of
/// the sweep's cells.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings(Vec<(String, Value)>);

impl Findings {
    /// Adds the numbers of a comparison, or replaces the comparison's previous numbers.
    pub fn insert(&mut self, name: String, numbers: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = numbers,
            None => self.0.push((name, numbers)),
        }
    }

    /// Every comparison with its numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, numbers)| (name.as_str(), numbers))
    }

    /// The numbers of every comparison.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, numbers)| numbers)
    }

    /// Whether nothing was compared.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Extend<(String, Value)> for Findings {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, findings: I) {
        findings.into_iter().for_each(|(name, numbers)| self.insert(name, numbers));
    }
}

impl FromIterator<(String, Value)> for Findings {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(findings: I) -> Self {
        let mut all = Self::default();
        all.extend(findings);
        all
    }
}

impl<const N: usize> From<[(String, Value); N]> for Findings {
    fn from(findings: [(String, Value); N]) -> Self {
        findings.into_iter().collect()
    }
}

impl IntoIterator for Findings {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Findings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Findings;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("comparisons with their numbers")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Findings, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect()
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl JsonSchema for Findings {
    fn schema_name() -> Cow<'static, str> {
        "Findings".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": "object" } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_keep_the_order_of_their_json_keys() {
        let text = r#"{"a < b [x=2]":{"holds":true},"a < b [x=10]":{"holds":false},"0 < a":{}}"#;
        let mut findings: Findings = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&findings).unwrap(), text);
        findings.insert("0 < a".into(), Value::Null);
        assert_eq!(findings.iter().last(), Some(("0 < a", &Value::Null)));
        assert_eq!(findings.values().count(), 3);
    }
}
