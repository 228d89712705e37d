//! Tables as Arrow files (IPC with random access, also called Feather 2), made of Parquet tables.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use ::parquet::basic::{ConvertedType, Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use ::parquet::schema::types::ColumnDescriptor;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

/// Rows of a record batch.
const BATCH: usize = 1 << 16;

/// Writes the rows of a Parquet table, with its notes about the columns.
///
/// # Errors
/// The table is damaged, or `to` cannot be written.
pub(super) fn write(to: impl Write, table: File) -> Result<()> {
    let reader = SerializedFileReader::new(table)?;
    let metadata = reader.metadata().file_metadata();
    let mut columns: Vec<ColumnBuilder> = metadata
        .schema_descr()
        .columns()
        .iter()
        .map(|column| ColumnBuilder::of(column))
        .collect::<Result<_>>()?;
    let fields: Vec<_> = columns.iter().map(ColumnBuilder::field).collect();
    let notes = metadata.key_value_metadata().into_iter().flatten();
    let notes: HashMap<String, String> =
        notes.filter_map(|note| Some((note.key.clone(), note.value.clone()?))).collect();
    let schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, notes));
    let mut file = FileWriter::try_new(BufWriter::new(to), &schema).map_err(from_arrow)?;
    let mut rows = 0;
    for row in reader.get_row_iter(None)? {
        let row = row?;
        for (column, (_, field)) in columns.iter_mut().zip(row.get_column_iter()) {
            column.push(field)?;
        }
        rows += 1;
        if rows % BATCH == 0 {
            file.write(&batch(&schema, &mut columns)?).map_err(from_arrow)?;
        }
    }
    file.write(&batch(&schema, &mut columns)?).map_err(from_arrow)?;
    Ok(file.into_inner().map_err(from_arrow)?.flush()?)
}

/// The rows since the last batch.
fn batch(schema: &SchemaRef, columns: &mut [ColumnBuilder]) -> Result<RecordBatch> {
    let arrays = columns.iter_mut().map(ColumnBuilder::finish).collect();
    RecordBatch::try_new(Arc::clone(schema), arrays).map_err(from_arrow)
}

fn from_arrow(error: ArrowError) -> ParquetError {
    if let ArrowError::IoError(_, source) = error {
        source.into()
    } else {
        ParquetError::General(error.to_string())
    }
}

/// A column of the current batch.
struct ColumnBuilder {
    name: String,
    values: Values,
}

enum Values {
    Bool(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Double(Float64Builder),
    Text(StringBuilder),
}

impl ColumnBuilder {
    fn of(column: &ColumnDescriptor) -> Result<Self> {
        let values = match (column.physical_type(), column.converted_type()) {
            (Type::BOOLEAN, _) => Values::Bool(BooleanBuilder::new()),
            (Type::INT32, ConvertedType::UINT_32) => Values::UInt32(UInt32Builder::new()),
            (Type::INT32, _) => Values::Int32(Int32Builder::new()),
            (Type::INT64, ConvertedType::UINT_64) => Values::UInt64(UInt64Builder::new()),
            (Type::INT64, _) => Values::Int64(Int64Builder::new()),
            (Type::DOUBLE, _) => Values::Double(Float64Builder::new()),
            (Type::BYTE_ARRAY, _) => Values::Text(StringBuilder::new()),
            (other, _) => return Err(unexpected(column.name(), &other.to_string())),
        };
        Ok(Self { name: column.name().to_owned(), values })
    }

    fn field(&self) -> arrow_schema::Field {
        let kind = match &self.values {
            Values::Bool(_) => DataType::Boolean,
            Values::Int32(_) => DataType::Int32,
            Values::Int64(_) => DataType::Int64,
            Values::UInt32(_) => DataType::UInt32,
            Values::UInt64(_) => DataType::UInt64,
            Values::Double(_) => DataType::Float64,
            Values::Text(_) => DataType::Utf8,
        };
        arrow_schema::Field::new(&self.name, kind, true)
    }

    fn push(&mut self, field: &Field) -> Result<()> {
        match (&mut self.values, field) {
            (Values::Bool(to), Field::Bool(value)) => to.append_value(*value),
            (Values::Bool(to), Field::Null) => to.append_null(),
            (Values::Int32(to), Field::Int(value)) => to.append_value(*value),
            (Values::Int32(to), Field::Null) => to.append_null(),
            (Values::Int64(to), Field::Long(value)) => to.append_value(*value),
            (Values::Int64(to), Field::Null) => to.append_null(),
            (Values::UInt32(to), Field::UInt(value)) => to.append_value(*value),
            (Values::UInt32(to), Field::Null) => to.append_null(),
            (Values::UInt64(to), Field::ULong(value)) => to.append_value(*value),
            (Values::UInt64(to), Field::Null) => to.append_null(),
            (Values::Double(to), Field::Double(value)) => to.append_value(*value),
            (Values::Double(to), Field::Null) => to.append_null(),
            (Values::Text(to), Field::Str(value)) => to.append_value(value),
            (Values::Text(to), Field::Null) => to.append_null(),
            (_, other) => return Err(unexpected(&self.name, &other.to_string())),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match &mut self.values {
            Values::Bool(values) => ArrayBuilder::finish(values),
            Values::Int32(values) => ArrayBuilder::finish(values),
            Values::Int64(values) => ArrayBuilder::finish(values),
            Values::UInt32(values) => ArrayBuilder::finish(values),
            Values::UInt64(values) => ArrayBuilder::finish(values),
            Values::Double(values) => ArrayBuilder::finish(values),
            Values::Text(values) => ArrayBuilder::finish(values),
        }
    }
}

fn unexpected(column: &str, what: &str) -> ParquetError {
    ParquetError::General(format!("column {column} has values that no table has: {what}"))
}
