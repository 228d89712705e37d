//! TOML as a tree that owns its text and knows the place of every key and value.
//!
//! The parser's own tree borrows from the text, which would tie overrides, sweep values and loaded files to
//! one lifetime. This one is cut loose at the start and lent back for reading into types.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, ValueDeserializer};
use toml::value::Datetime;

/// A value and its place in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Where it is written; of a table with a header, the header.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A string.
    Text(String),
    /// An integer or float, as written.
    Number(String),
    /// A boolean.
    Bool(bool),
    /// A date or time of day.
    Date(Datetime),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Entries in the order they were written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table(pub Vec<Entry>);

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where it is written.
    pub at: Range<usize>,
    /// Its value.
    pub value: Node,
}

impl Table {
    /// Parses a document.
    ///
    /// # Errors
    /// The parser's error, when it is not TOML.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        Ok(own_table(DeTable::parse(text)?.into_inner()))
    }

    /// The entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// The entry of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    /// Sets a key, in place if it is there.
    pub fn insert(&mut self, entry: Entry) {
        match self.get_mut(&entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// The keys in written order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }

    /// The parser's form of it.
    fn lend(&self) -> DeTable<'_> {
        self.0
            .iter()
            .map(|entry| {
                (Spanned::new(entry.at.clone(), Cow::Borrowed(entry.key.as_str())), entry.value.lend())
            })
            .collect()
    }

    /// Reads the table into a type; `span` is the place of errors that have none of their own.
    ///
    /// # Errors
    /// The parser's error, with a place.
    pub fn read<T: DeserializeOwned>(&self, span: Range<usize>) -> Result<T, toml::de::Error> {
        T::deserialize(toml::de::Deserializer::from(Spanned::new(span, self.lend())))
    }
}

impl Node {
    /// Parses a single value; its places begin at `base`.
    ///
    /// # Errors
    /// The parser's error, when it is not a TOML value.
    pub fn parse(text: &str, base: usize) -> Result<Self, toml::de::Error> {
        let mut node = own(DeValue::parse(text)?);
        node.shift(base);
        Ok(node)
    }

    /// A string.
    #[must_use]
    pub fn text(text: &str, span: Range<usize>) -> Self {
        Self { span, kind: Kind::Text(text.to_owned()) }
    }

    /// The table, if it is one.
    #[must_use]
    pub const fn as_table(&self) -> Option<&Table> {
        match &self.kind {
            Kind::Table(table) => Some(table),
            Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) | Kind::List(_) => None,
        }
    }

    /// The table to be changed, if it is one.
    pub const fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.kind {
            Kind::Table(table) => Some(table),
            Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) | Kind::List(_) => None,
        }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) | Kind::Table(_) => None,
        }
    }

    /// The items to be changed, if it is an array.
    pub const fn as_list_mut(&mut self) -> Option<&mut Vec<Self>> {
        match &mut self.kind {
            Kind::List(items) => Some(items),
            Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) | Kind::Table(_) => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) | Kind::List(_) | Kind::Table(_) => None,
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Text(_) => "a string",
            Kind::Number(_) => "a number",
            Kind::Bool(_) => "true or false",
            Kind::Date(_) => "a date",
            Kind::List(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }

    /// Reads the value into a type.
    ///
    /// # Errors
    /// The parser's error, with a place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, toml::de::Error> {
        T::deserialize(ValueDeserializer::from(self.lend()))
    }

    /// Moves every place by `base`.
    pub(super) fn shift(&mut self, base: usize) {
        self.span = self.span.start + base..self.span.end + base;
        match &mut self.kind {
            Kind::List(items) => items.iter_mut().for_each(|item| item.shift(base)),
            Kind::Table(table) => {
                for entry in &mut table.0 {
                    entry.at = entry.at.start + base..entry.at.end + base;
                    entry.value.shift(base);
                }
            }
            Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) => {}
        }
    }

    fn lend(&self) -> Spanned<DeValue<'_>> {
        let value = match &self.kind {
            Kind::Text(text) => DeValue::String(Cow::Borrowed(text)),
            // Numbers can only be made by the parser; this text came from it.
            Kind::Number(text) => match DeValue::parse(text) {
                Ok(number) => number.into_inner(),
                Err(_) => DeValue::String(Cow::Borrowed(text)),
            },
            Kind::Bool(value) => DeValue::Boolean(*value),
            Kind::Date(date) => DeValue::Datetime(*date),
            Kind::List(items) => {
                let mut array = DeArray::new();
                items.iter().for_each(|item| array.push(item.lend()));
                DeValue::Array(array)
            }
            Kind::Table(table) => DeValue::Table(table.lend()),
        };
        Spanned::new(self.span.clone(), value)
    }
}

fn own_table(table: DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry { at: key.span(), key: key.into_inner().into_owned(), value: own(value) })
        .collect();
    // The parser sorts by key; the order of writing is that of the places.
    entries.sort_by_key(|entry| entry.at.start);
    Table(entries)
}

fn own(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(number) => Kind::Number(number.to_string()),
        DeValue::Float(number) => Kind::Number(number.as_str().to_owned()),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Datetime(date) => Kind::Date(date),
        DeValue::Array(items) => Kind::List(items.into_iter().map(own).collect()),
        DeValue::Table(table) => Kind::Table(own_table(table)),
    };
    Node { span, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_order_places_and_values() {
        let text = "z = 1_000\na = [0x1f, -2.5e3, inf, true, \"s\", 2020-01-01]\n[t.u]\nv = {w = 1}\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.keys().collect::<Vec<_>>(), ["z", "a", "t"]);
        let mine: toml::Value = table.read(0..text.len()).unwrap();
        assert_eq!(mine, toml::from_str::<toml::Value>(text).unwrap());
        let w = table.get("t").unwrap().value.as_table().unwrap().get("u").unwrap().value.as_table().unwrap();
        assert_eq!(&text[w.get("v").unwrap().value.span.clone()], "{w = 1}");
    }

    #[test]
    fn a_value_is_moved_as_a_whole() {
        let node = Node::parse("{ a = [1, 2] }", 100).unwrap();
        assert_eq!(node.span, 100..114);
        let entry = node.as_table().unwrap().get("a").unwrap();
        assert_eq!((entry.at.clone(), entry.value.as_list().unwrap()[1].span.clone()), (102..103, 110..111));
    }
}
