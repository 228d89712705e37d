//! The first columns of every Parquet table, equal for all rows of a run: which run it is, and the swept values.

use std::collections::BTreeMap;
use std::io::Write;
use std::iter::repeat_n;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use serde_json::Value;
use volary_engine::results::plain;

use super::run_record::RunRecord;
use super::study::Study;

/// The columns that name a run, with their meanings.
pub(super) const RUN: [(&str, &str); 3] = [
    ("run", "id of the run, as in manifest.json and summary.jsonl"),
    ("policy", "label of the policy"),
    ("seed", "seed of the run"),
];

/// The columns that name a run, then a column for each swept key, under the dotted key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Labels {
    swept: BTreeMap<String, Kind>,
}

/// The type of the values of a swept key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Flag,
    Integer,
    /// From 0; it may need all 64 bits.
    Seed,
    Number,
    /// Strings as they are; distributions, tables and mixed values as JSON.
    Text,
}

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Flag,
            Value::Number(_) if value.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => Self::Text,
        }
    }

    /// The type that has room for the values of both.
    const fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Flag, Self::Flag) => Self::Flag,
            (Self::Integer, Self::Integer) => Self::Integer,
            (Self::Integer | Self::Number, Self::Integer | Self::Number) => Self::Number,
            _ => Self::Text,
        }
    }

    /// Writes the next column; `None` is null.
    fn write<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &[Option<&Value>],
    ) -> Result<()> {
        let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let (values, defined) = (values.iter().copied().flatten(), Some(&defined[..]));
        match self {
            Self::Flag => {
                let flags: Vec<_> = values.map(|value| value.as_bool().unwrap_or_default()).collect();
                write_values::<BoolType>(group, &flags, defined)
            }
            Self::Integer => {
                let numbers: Vec<_> = values.map(|value| value.as_i64().unwrap_or_default()).collect();
                write_values::<Int64Type>(group, &numbers, defined)
            }
            Self::Seed => {
                let seeds = values.map(|value| value.as_u64().unwrap_or_default().cast_signed());
                write_values::<Int64Type>(group, &seeds.collect::<Vec<_>>(), defined)
            }
            Self::Number => {
                let numbers: Vec<_> = values.map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
                write_values::<DoubleType>(group, &numbers, defined)
            }
            Self::Text => {
                let texts: Vec<_> = values.map(|value| ByteArray::from(plain(value).as_str())).collect();
                write_values::<ByteArrayType>(group, &texts, defined)
            }
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
}

impl Labels {
    /// The labels of a study. The types follow from all values of the sweep, so that every slice of an experiment has
    /// the same.
    pub(super) fn of(study: &Study) -> Self {
        let planned: Vec<(String, Vec<Value>)> = study
            .manifest
            .spec
            .get("sweep")
            .cloned()
            .and_then(|axes| serde_json::from_value(axes).ok())
            .unwrap_or_default();
        let planned = planned.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        let mut swept: BTreeMap<String, Kind> = BTreeMap::new();
        for (key, value) in planned.chain(study.cells.iter().flat_map(|group| &group.cell)) {
            let kind = Kind::of(value);
            swept.entry(key.clone()).and_modify(|known| *known = known.with(kind)).or_insert(kind);
        }
        Self { swept }
    }

    /// The columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        RUN.into_iter().map(|(name, _)| name).chain(self.swept.keys().map(String::as_str))
    }

    /// The columns of swept values and their meanings.
    pub(super) fn meanings(&self) -> impl Iterator<Item = (&str, String)> {
        self.swept.keys().map(|key| (key.as_str(), format!("swept value of `{key}`")))
    }

    /// The columns in the schema of a file.
    pub(super) fn fields(&self) -> Result<Vec<TypePtr>> {
        let text = (Physical::BYTE_ARRAY, Some(LogicalType::String));
        let run = RUN.iter().zip([text.clone(), text, Kind::Seed.stored()]);
        let run = run.map(|((name, _), kind)| field(name, Repetition::REQUIRED, kind));
        let swept = self.swept.iter().map(|(key, kind)| field(key, Repetition::OPTIONAL, kind.stored()));
        run.chain(swept).collect()
    }

    /// Writes the columns of runs, each with its number of rows.
    pub(super) fn write<'a, W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        runs: impl Iterator<Item = (&'a RunRecord, usize)> + Clone,
    ) -> Result<()> {
        let runs = runs.map(|(record, rows)| (record, &record.summary, rows));
        let ids = runs.clone().flat_map(|(run, _, rows)| repeat_n(ByteArray::from(run.id.as_str()), rows));
        write_values::<ByteArrayType>(group, &ids.collect::<Vec<_>>(), None)?;
        let policies =
            runs.clone().flat_map(|(_, of, rows)| repeat_n(ByteArray::from(of.policy.as_str()), rows));
        write_values::<ByteArrayType>(group, &policies.collect::<Vec<_>>(), None)?;
        // The column is unsigned: the bits are those of the seed.
        let seeds = runs.clone().flat_map(|(_, of, rows)| repeat_n(of.seed.cast_signed(), rows));
        write_values::<Int64Type>(group, &seeds.collect::<Vec<_>>(), None)?;
        for (key, kind) in &self.swept {
            let values = runs.clone().flat_map(|(_, of, rows)| repeat_n(of.cell.get(key), rows));
            kind.write(group, &values.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Writes a table of JSON values; the type of a column has room for all its values.
pub(super) fn write_flat<W: Write + Send>(
    to: W,
    table: &str,
    names: &[String],
    rows: &[BTreeMap<String, Value>],
) -> Result<()> {
    let values = |name: &String| rows.iter().map(|row| row.get(name)).collect::<Vec<_>>();
    let kind = |name: &String| match name.as_str() {
        "seed" => Kind::Seed,
        _ => values(name).into_iter().flatten().map(Kind::of).reduce(Kind::with).unwrap_or(Kind::Text),
    };
    let kinds: Vec<Kind> = names.iter().map(kind).collect();
    let fields =
        names.iter().zip(&kinds).map(|(name, kind)| field(name, Repetition::OPTIONAL, kind.stored()));
    let schema = Type::group_type_builder(table).with_fields(fields.collect::<Result<_>>()?).build()?;
    let mut file = SerializedFileWriter::new(to, Arc::new(schema), properties(None))?;
    let mut group = file.next_row_group()?;
    for (name, kind) in names.iter().zip(&kinds) {
        kind.write(&mut group, &values(name))?;
    }
    group.close()?;
    file.close().map(drop)
}

fn field(
    name: &str,
    repetition: Repetition,
    (physical, logical): (Physical, Option<LogicalType>),
) -> Result<TypePtr> {
    let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    field.with_logical_type(logical).build().map(Arc::new)
}

/// Writes the next column; for an optional one, `defined` says for each row whether it has a value (1) or not (0).
pub(super) fn write_values<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    defined: Option<&[i16]>,
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, defined, None)?;
        column.close()?;
    }
    Ok(())
}

/// Snappy compression; the writer uses a dictionary for each column until it does not pay.
pub(super) fn properties(notes: Option<&[(&str, String)]>) -> WriterPropertiesPtr {
    let by = format!("volary {}", env!("CARGO_PKG_VERSION"));
    let notes = notes.map(|notes| {
        notes.iter().map(|(key, text)| KeyValue::new((*key).to_owned(), text.clone())).collect()
    });
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(by);
    Arc::new(properties.set_key_value_metadata(notes).build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_type_of_a_key_has_room_for_all_its_values() {
        let kind = |values: &[Value]| values.iter().map(Kind::of).reduce(Kind::with).unwrap();
        assert_eq!(kind(&[json!(true), json!(false)]), Kind::Flag);
        assert_eq!(kind(&[json!(1), json!(-2)]), Kind::Integer);
        assert_eq!(kind(&[json!(1), json!(2.5)]), Kind::Number);
        assert_eq!(kind(&[json!(u64::MAX)]), Kind::Number, "there is no room for it in a signed column");
        assert_eq!(kind(&[json!("10ms"), json!({"exponential": {"mean": "5ms"}})]), Kind::Text);
        assert_eq!(kind(&[json!(false), json!(1)]), Kind::Text);
    }
}
