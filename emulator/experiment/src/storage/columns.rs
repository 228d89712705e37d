//! Columns of tables: their types, their values in memory and in the log of runs, and the files that they are written
//! to, Parquet and CSV.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter::repeat_n;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use ::parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use ::parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use bytes::Bytes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use volary_engine::results::plain;

/// The format of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportFormat {
    /// Text with a header of column names; null values are empty.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Flag,
    Integer,
    /// Integers from 0 that may need all 64 bits.
    Seed,
    Number,
    /// Strings are stored unchanged; distributions, tables and mixed values are stored as JSON.
    Text,
}

impl Kind {
    /// The type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Flag,
            Value::Number(_) if value.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => Self::Text,
        }
    }

    /// The type that can hold the values of both types.
    pub(super) const fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Flag, Self::Flag) => Self::Flag,
            (Self::Integer, Self::Integer) => Self::Integer,
            (Self::Integer | Self::Number, Self::Integer | Self::Number) => Self::Number,
            _ => Self::Text,
        }
    }

    fn stored(self) -> (Physical, Option<LogicalType>) {
        match self {
            Self::Flag => (Physical::BOOLEAN, None),
            Self::Integer => (Physical::INT64, None),
            Self::Seed => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Number => (Physical::DOUBLE, None),
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        }
    }

    /// An empty list of values of this type.
    pub(super) fn values(self) -> Values {
        match self {
            Self::Flag => Values::Flags(Vec::new()),
            Self::Integer | Self::Seed => Values::Integers(Vec::new()),
            Self::Number => Values::Numbers(Vec::new()),
            Self::Text => Values::Texts(TextValues::default()),
        }
    }
}

/// Name and type of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ColumnType {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether it may have nulls.
    pub(super) optional: bool,
    /// Whether values repeat, so that a dictionary saves space. A dictionary of measured times would be as long as the
    /// column, and most of the cost of writing it.
    pub(super) repeats: bool,
}

/// Values of one type. Seeds are stored as integers with the same bits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Values {
    Flags(Vec<bool>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Texts(TextValues),
}

/// Texts, stored once each, since most occur many times.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TextValues {
    words: Vec<String>,
    /// The index of each row's text in the list of distinct texts.
    at: Vec<u32>,
}

impl<'a> FromIterator<&'a str> for TextValues {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push(text));
        all
    }
}

impl TextValues {
    pub(super) fn push(&mut self, text: &str) {
        // Only the latest texts are searched: columns have few texts, long runs of one text, or no repetitions.
        let recent = self.words.len().saturating_sub(8);
        let known = self.words[recent..].iter().position(|word| word == text).map(|at| recent + at);
        let at = known.unwrap_or_else(|| {
            self.words.push(text.to_owned());
            self.words.len() - 1
        });
        self.at.push(at as u32);
    }

    pub(super) fn get(&self, row: usize) -> Option<&str> {
        self.words.get(*self.at.get(row)? as usize).map(String::as_str)
    }
}

impl Values {
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Flags(flags) => flags.len(),
            Self::Integers(integers) => integers.len(),
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.at.len(),
        }
    }

    /// Whether the values have the type of a column.
    pub(super) fn is(&self, kind: Kind) -> bool {
        match self {
            Self::Flags(_) => kind == Kind::Flag,
            Self::Integers(_) => matches!(kind, Kind::Integer | Kind::Seed),
            Self::Numbers(_) => kind == Kind::Number,
            Self::Texts(texts) => {
                kind == Kind::Text && texts.at.iter().all(|&at| (at as usize) < texts.words.len())
            }
        }
    }

    /// Adds other values of the same type.
    pub(super) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Flags(all), Self::Flags(more)) => all.extend(more),
            (Self::Integers(all), Self::Integers(more)) => all.extend(more),
            (Self::Numbers(all), Self::Numbers(more)) => all.extend(more),
            (Self::Texts(all), Self::Texts(more)) => {
                let before = all.words.len() as u32;
                all.words.extend(more.words);
                all.at.extend(more.at.into_iter().map(|at| before + at));
            }
            (values, more) => unreachable!("{more:?} appended to {values:?}"),
        }
    }

    fn push(&mut self, value: &Value) {
        match self {
            Self::Flags(flags) => flags.push(value.as_bool().unwrap_or_default()),
            Self::Integers(integers) => {
                let bits = value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed));
                integers.push(bits.unwrap_or_default());
            }
            Self::Numbers(numbers) => numbers.push(value.as_f64().unwrap_or(f64::NAN)),
            Self::Texts(texts) => texts.push(&plain(value)),
        }
    }
}

/// The values of a column.
#[derive(Debug)]
pub(super) struct Column<'a> {
    values: Cow<'a, Values>,
    /// Marks the values that are not null; `None` if the column cannot have nulls.
    defined: Option<Vec<bool>>,
}

impl<'a> Column<'a> {
    /// A column of a table's own values; numbers that are not finite are null if the column is optional.
    pub(super) fn own(values: Cow<'a, Values>, optional: bool) -> Self {
        let finite = |numbers: &[f64]| numbers.iter().map(|number| number.is_finite()).collect();
        let defined =
            if let Values::Numbers(numbers) = &*values { optional.then(|| finite(numbers)) } else { None };
        Self { values, defined }
    }

    /// A column of JSON values, all of which `kind` must be able to hold.
    pub(super) fn of<'v>(kind: Kind, from: impl Iterator<Item = Option<&'v Value>>) -> Self {
        let (mut values, mut defined) = (kind.values(), Vec::new());
        for value in from {
            defined.push(value.is_some());
            values.push(value.unwrap_or(&Value::Null));
        }
        Self { values: Cow::Owned(values), defined: Some(defined) }
    }

    /// The column with each value repeated as often as `counts` says.
    pub(super) fn repeated(self, counts: &[usize]) -> Self {
        fn repeat<T: Clone>(values: Vec<T>, counts: &[usize]) -> Vec<T> {
            values.into_iter().zip(counts).flat_map(|(value, count)| repeat_n(value, *count)).collect()
        }
        let values = match self.values.into_owned() {
            Values::Flags(flags) => Values::Flags(repeat(flags, counts)),
            Values::Integers(integers) => Values::Integers(repeat(integers, counts)),
            Values::Numbers(numbers) => Values::Numbers(repeat(numbers, counts)),
            Values::Texts(TextValues { words, at }) => {
                Values::Texts(TextValues { words, at: repeat(at, counts) })
            }
        };
        Self { values: Cow::Owned(values), defined: self.defined.map(|defined| repeat(defined, counts)) }
    }

    fn is_null(&self, row: usize) -> bool {
        self.defined.as_ref().is_some_and(|defined| !defined[row])
    }

    /// Encodes the column for a Parquet row group.
    fn encode(&self, to: (ColumnDescPtr, WriterPropertiesPtr)) -> Result<EncodedColumn> {
        match &*self.values {
            Values::Flags(flags) => self.encode_as::<BoolType, _>(to, flags, |flag| *flag),
            Values::Integers(integers) => self.encode_as::<Int64Type, _>(to, integers, |integer| *integer),
            Values::Numbers(numbers) => self.encode_as::<DoubleType, _>(to, numbers, |number| *number),
            Values::Texts(TextValues { words, at }) => {
                let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(word.as_str())).collect();
                self.encode_as::<ByteArrayType, _>(to, at, |at| words[*at as usize].clone())
            }
        }
    }

    fn encode_as<T: DataType, V>(
        &self,
        (column, properties): (ColumnDescPtr, WriterPropertiesPtr),
        values: &[V],
        stored: impl Fn(&V) -> T::T,
    ) -> Result<EncodedColumn> {
        let there = values.iter().enumerate().filter(|(row, _)| !self.is_null(*row));
        let there: Vec<T::T> = there.map(|(_, value)| stored(value)).collect();
        let levels = self.defined.as_ref().map(|defined| defined.iter().map(|&d| i16::from(d)).collect());
        let levels: Option<Vec<i16>> = levels;
        let mut bytes = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut bytes));
        let mut writer = get_typed_column_writer::<T>(get_column_writer(column, properties, pages));
        writer.write_batch(&there, levels.as_deref(), None)?;
        let closed = writer.close()?;
        Ok((bytes.into_inner()?.into(), closed))
    }

    /// A value as CSV text; null is empty.
    fn text(&self, kind: Kind, row: usize) -> String {
        if self.is_null(row) {
            return String::new();
        }
        match &*self.values {
            Values::Flags(flags) => flags[row].to_string(),
            Values::Integers(integers) if kind == Kind::Seed => integers[row].cast_unsigned().to_string(),
            Values::Integers(integers) => integers[row].to_string(),
            // Finite numbers are written as in JSON.
            Values::Numbers(numbers) if numbers[row].is_finite() => Value::from(numbers[row]).to_string(),
            Values::Numbers(numbers) => numbers[row].to_string(),
            Values::Texts(texts) => texts.get(row).unwrap_or_default().to_owned(),
        }
    }
}

/// Pages of a column of a row group, and their description.
type EncodedColumn = (Bytes, ColumnCloseResult);

/// A group of rows, encoded for a file.
pub(super) enum EncodedGroup {
    Csv(Vec<u8>),
    Parquet(Vec<EncodedColumn>),
}

/// A table that is written group by group.
pub(super) struct TableFile {
    columns: Vec<ColumnType>,
    to: TableWriter,
}

enum TableWriter {
    Csv(BufWriter<File>),
    Parquet(Box<SerializedFileWriter<File>>),
}

impl TableFile {
    /// Begins a table; the `notes` are stored in files of Parquet.
    pub(super) fn create(
        format: ExportFormat,
        to: File,
        table: &str,
        columns: Vec<ColumnType>,
        notes: &BTreeMap<&str, String>,
    ) -> Result<Self> {
        let to = match format {
            ExportFormat::Csv => {
                let mut to = BufWriter::new(to);
                line(&mut to, columns.iter().map(|column| column.name.clone()))?;
                TableWriter::Csv(to)
            }
            ExportFormat::Parquet => {
                let fields = columns.iter().map(field).collect::<Result<_>>()?;
                let schema = Type::group_type_builder(table).with_fields(fields).build()?;
                let notes = notes.iter().map(|(key, text)| KeyValue::new((*key).to_owned(), text.clone()));
                let mut properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_created_by(format!("volary {}", env!("CARGO_PKG_VERSION")))
                    .set_key_value_metadata(Some(notes.collect()).filter(|notes: &Vec<_>| !notes.is_empty()));
                for column in &columns {
                    let path = ColumnPath::new(vec![column.name.clone()]);
                    properties = properties.set_column_dictionary_enabled(path, column.repeats);
                }
                let writer = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties.build()))?;
                TableWriter::Parquet(Box::new(writer))
            }
        };
        Ok(Self { columns, to })
    }

    /// Encodes `rows` rows for the file: as lines, or as a row group.
    pub(super) fn encode(&self, columns: &[Column<'_>], rows: usize) -> Result<EncodedGroup> {
        Ok(match &self.to {
            TableWriter::Csv(_) => {
                let mut lines = Vec::new();
                for row in 0..rows {
                    let columns = columns.iter().zip(&self.columns);
                    line(&mut lines, columns.map(|(column, of)| column.text(of.kind, row)))?;
                }
                EncodedGroup::Csv(lines)
            }
            TableWriter::Parquet(to) => {
                let columns = columns.iter().zip(to.schema_descr().columns());
                let encode = |(column, of): (&Column<'_>, &_)| {
                    column.encode((Arc::clone(of), Arc::clone(to.properties())))
                };
                EncodedGroup::Parquet(columns.map(encode).collect::<Result<_>>()?)
            }
        })
    }

    /// Writes a group that [`encode`](Self::encode) of this file has returned.
    pub(super) fn append(&mut self, group: EncodedGroup) -> Result<()> {
        match (&mut self.to, group) {
            (TableWriter::Csv(to), EncodedGroup::Csv(lines)) => to.write_all(&lines)?,
            (TableWriter::Parquet(to), EncodedGroup::Parquet(columns)) => {
                let mut group = to.next_row_group()?;
                columns.into_iter().try_for_each(|(pages, closed)| group.append_column(&pages, closed))?;
                group.close()?;
            }
            (TableWriter::Csv(_), EncodedGroup::Parquet(_))
            | (TableWriter::Parquet(_), EncodedGroup::Csv(_)) => {
                unreachable!("the group was encoded for another file")
            }
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<()> {
        match self.to {
            TableWriter::Csv(mut to) => Ok(to.flush()?),
            TableWriter::Parquet(to) => to.close().map(drop),
        }
    }
}

fn field(ColumnType { name, kind, optional, .. }: &ColumnType) -> Result<TypePtr> {
    let (physical, logical) = kind.stored();
    let repetition = if *optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    field.with_logical_type(logical).build().map(Arc::new)
}

/// Writes a line of fields, quoted where necessary (RFC 4180).
fn line(to: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            to.write_all(b",")?;
        }
        if field.contains([',', '"', '\n', '\r']) {
            write!(to, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            to.write_all(field.as_bytes())?;
        }
    }
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_type_of_a_column_can_hold_all_values_of_its_key() {
        let kind = |values: &[Value]| values.iter().map(Kind::of).reduce(Kind::with).unwrap();
        assert_eq!(kind(&[json!(true), json!(false)]), Kind::Flag);
        assert_eq!(kind(&[json!(1), json!(-2)]), Kind::Integer);
        assert_eq!(kind(&[json!(1), json!(2.5)]), Kind::Number);
        assert_eq!(kind(&[json!(u64::MAX)]), Kind::Number, "there is no room for it in a signed column");
        assert_eq!(kind(&[json!("10ms"), json!({"exponential": {"mean": "5ms"}})]), Kind::Text);
        assert_eq!(kind(&[json!(false), json!(1)]), Kind::Text);
    }
}
