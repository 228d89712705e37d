//! The rows of a Parquet file as lines of JSON objects, for the reader of tables.
//!
//! The decoder panics on some damaged files; such a panic becomes an error. The first use of the decoder sets a panic
//! hook for the whole process. The hook hides panics of a thread that is decoding, and passes all others to the
//! previous hook.

use std::any::Any;
use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

/// The first bytes of a Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// Limit on the bytes of a file, since it is held in memory and may be compressed.
const LARGEST: u64 = 1 << 30;
/// Limit on the decimals of a number, as in `DECIMAL(38, 38)`.
const MOST_DECIMALS: i32 = 38;

/// The lines of a file that is held in memory.
pub(super) struct ParquetLines {
    rows: RowIter<'static>,
    /// Kinds of the columns.
    columns: Vec<TimeKind>,
    line: Vec<u8>,
    /// Number of bytes of the line that were read.
    taken: usize,
}

/// The meaning of the times in a column.
#[derive(Clone, Copy)]
struct TimeKind {
    is_utc: bool,
    /// Whether whole numbers are nanoseconds since 1970.
    in_nanos: bool,
}

impl TimeKind {
    fn of(column: &Type) -> Self {
        match column.get_basic_info().logical_type_ref() {
            Some(LogicalType::Timestamp(time)) => {
                Self { is_utc: time.is_adjusted_to_u_t_c, in_nanos: matches!(time.unit, TimeUnit::NANOS) }
            }
            // A date without a time of day has no zone.
            Some(LogicalType::Date) => Self { is_utc: false, in_nanos: false },
            _ => Self {
                is_utc: column.get_basic_info().converted_type() != ConvertedType::DATE,
                in_nanos: false,
            },
        }
    }

    /// A date, with its zone if the column states one.
    fn date(self, at: Option<NaiveDateTime>) -> Value {
        let zone = if self.is_utc { "Z" } else { "" };
        at.map_or(Value::Null, |at| format!("{}{zone}", at.format("%Y-%m-%d %H:%M:%S%.f")).into())
    }
}

impl ParquetLines {
    /// The lines of a file; an error if it cannot be read, is too large or is damaged.
    pub(super) fn new(file: impl Read) -> io::Result<Self> {
        Self::bounded(file, LARGEST)
    }

    fn bounded(file: impl Read, largest: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.take(largest + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > largest {
            let why = format!("a Parquet file of more than {} MiB is not read", largest >> 20);
            return Err(unsupported(format!("{why}; write it as .csv, with only the needed columns")));
        }
        let reader = decoded(|| SerializedFileReader::new(bytes::Bytes::from(bytes)))?;
        let schema = reader.metadata().file_metadata().schema();
        let has_decimals = |column: &Type| column.is_primitive() && column.get_scale() > MOST_DECIMALS;
        if let Some(column) = schema.get_fields().iter().find(|column| has_decimals(column)) {
            let why = format!("numbers of `{}` have more than {MOST_DECIMALS} decimals", column.name());
            return Err(unsupported(format!(
                "{why}; write it again with pandas, with that column as double"
            )));
        }
        let columns = schema.get_fields().iter().map(|column| TimeKind::of(column)).collect();
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(Self { rows, columns, line: Vec::new(), taken: 0 })
    }

    fn next_line(&mut self) -> io::Result<bool> {
        let object = decoded(|| {
            let Some(row) = self.rows.next().transpose()? else { return Ok(None) };
            let cells = row.get_column_iter().zip(&self.columns);
            Ok(Some(
                cells.map(|((name, field), kind)| (name.clone(), json(field, *kind))).collect::<Map<_, _>>(),
            ))
        })?;
        let Some(object) = object else { return Ok(false) };
        self.line = Value::Object(object).to_string().into_bytes();
        self.line.push(b'\n');
        self.taken = 0;
        Ok(true)
    }
}

thread_local! {
    /// Whether this thread is decoding, so that a panic is an error about the file.
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// The result of the decoder; a panic, as on some damaged files, becomes an error.
fn decoded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> io::Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let shown = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_DECODING.get() {
                shown(panic);
            }
        }));
    });
    IS_DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_DECODING.set(false);
    decoded.unwrap_or_else(|panic| Err(ParquetError::General(said(&*panic)))).map_err(failed)
}

/// The text of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}

impl Read for ParquetLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.line.len() && !self.next_line()? {
            return Ok(0);
        }
        let read = (&self.line[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

/// The value of a cell as JSON. Maps and groups become empty objects, which the reader of tables refuses in the columns
/// that it uses.
fn json(field: &Field, kind: TimeKind) -> Value {
    let utc = |at: Option<DateTime<_>>| kind.date(at.map(|at| at.naive_utc()));
    match field {
        Field::Bool(bool) => (*bool).into(),
        Field::Byte(n) => (*n).into(),
        Field::Short(n) => (*n).into(),
        Field::Int(n) => (*n).into(),
        Field::Long(n) if kind.in_nanos => utc(Some(DateTime::from_timestamp_nanos(*n))),
        Field::Long(n) => (*n).into(),
        Field::UByte(n) => (*n).into(),
        Field::UShort(n) => (*n).into(),
        Field::UInt(n) => (*n).into(),
        Field::ULong(n) => (*n).into(),
        Field::Float16(n) => f32::from(*n).into(),
        Field::Float(n) => (*n).into(),
        Field::Double(n) => (*n).into(),
        Field::Decimal(_) => field.to_string().into(),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into(),
        Field::Date(days) => {
            let at = DateTime::UNIX_EPOCH.checked_add_signed(TimeDelta::days((*days).into()));
            utc(at)
        }
        Field::TimestampMillis(ms) => utc(DateTime::from_timestamp_millis(*ms)),
        Field::TimestampMicros(us) => utc(DateTime::from_timestamp_micros(*us)),
        Field::ListInternal(list) => list.elements().iter().map(|field| json(field, kind)).collect(),
        Field::Group(_) | Field::MapInternal(_) => Map::new().into(),
        Field::TimeMillis(_) | Field::TimeMicros(_) | Field::Null => Value::Null,
    }
}

/// The error for a file that cannot be decoded or has an unsupported compression, with the remedy.
fn failed(error: ParquetError) -> io::Error {
    let why = error.to_string();
    if matches!(error, ParquetError::NYI(_)) || why.contains("Disabled feature") {
        let remedy =
            "write the file with snappy, gzip or zstd, for example with `pandas.DataFrame.to_parquet`";
        return unsupported(format!("{why}; {remedy}"));
    }
    unsupported(format!("the Parquet file cannot be decoded ({why}); write it again with pandas"))
}

fn unsupported(why: String) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};
    use std::path::Path;
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use volary_actors::base::{Feature, JobId, Span};
    use volary_engine::workload::{Reading, Trace, WorkloadError};

    use super::super::decompress;
    use super::{ParquetLines, decoded};

    const SCHEMA: &str = "message jobs { required int64 submit (TIMESTAMP(NANOS,true)); \
        required int64 start (TIMESTAMP(MICROS,false)); optional double run; required binary user (UTF8); \
        required int64 tasks; }";
    /// 2016-02-02 06:53:00 in Greenwich, ns.
    const AT: i64 = 1_454_395_980_000_000_000;

    /// A file of two jobs; the second has no run time.
    fn two_jobs(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = file.next_row_group().unwrap();
        let longs = |values: [i64; 2]| {
            move |out: &mut parquet::file::writer::SerializedColumnWriter<'_>| {
                out.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
            }
        };
        let mut column = group.next_column().unwrap().unwrap();
        longs([AT, AT + 1_000_000_000])(&mut column);
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        longs([AT / 1000 + 3_600_000_000; 2])(&mut column);
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[2.5], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let users = ["ann, a", "bob"].map(ByteArray::from);
        column.typed::<ByteArrayType>().write_batch(&users, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        longs([3, 1])(&mut column);
        column.close().unwrap();
        group.close().unwrap();
        file.into_inner().unwrap()
    }

    fn parse(bytes: Vec<u8>, zone: &str) -> Result<Trace, WorkloadError> {
        let reading = Reading { zone: zone.parse().ok(), ..Reading::default() };
        let io = |source| WorkloadError::Io { file: "a.parquet".into(), source };
        let input = decompress(Cursor::new(bytes)).map_err(io)?;
        Trace::parse_with(Path::new("a.parquet"), input, &reading, Vec::new())
    }

    #[test]
    fn rows_of_parquet_files_are_read_as_jobs() {
        let packed = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default())];
        for compression in packed.into_iter().chain([Compression::ZSTD(Default::default())]) {
            let trace = parse(two_jobs(compression), "Europe/Stockholm").unwrap();
            assert_eq!(
                (trace.jobs().len(), trace.tasks(), trace.run(JobId(0))),
                (1, 3, Span::from_millis(2500))
            );
            // 07:53 in Stockholm is 06:53 in Greenwich.
            assert_eq!((trace.wait(JobId(0)), trace.feature(JobId(0), Feature::User)), (Some(Span::ZERO), 1));
            assert!(
                trace.notes().iter().any(|note| note.contains("1 without a run time")),
                "{:?}",
                trace.notes()
            );
        }
        let error = parse(two_jobs(Compression::SNAPPY), "").unwrap_err().to_string();
        assert!(
            error.contains("a.parquet:1: field") && error.contains("(start)") && error.contains("--zone UTC"),
            "{error}"
        );
    }

    #[test]
    fn damaged_parquet_files_are_refused() {
        let whole = two_jobs(Compression::UNCOMPRESSED);
        for end in [4, 11, whole.len() / 2, whole.len() - 1] {
            let error = parse(whole[..end].to_vec(), "UTC").unwrap_err().to_string();
            assert!(error.contains("a.parquet: ") && error.contains("again with pandas"), "{end}: {error}");
        }
        let mut refused = 0;
        for at in 4..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let Err(error) = parse(damaged, "UTC") {
                let error = error.to_string();
                assert!(error.contains("a.parquet") && !error.contains("xz -t"), "{at}: {error}");
                refused += 1;
            }
        }
        assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
    }

    #[test]
    fn a_compressed_file_of_zeros_does_not_fill_the_memory() {
        let error = ParquetLines::bounded(b"PAR1".chain(std::io::repeat(0)), 1 << 20).err().unwrap();
        assert!(error.to_string().contains("more than 1 MiB"), "{error}");
    }

    #[test]
    fn panics_of_the_decoder_become_errors_with_their_text() {
        for panic in [|| panic!("index 7"), || panic!("index {}", 7)] {
            let error = decoded::<()>(panic).unwrap_err().to_string();
            assert!(error.contains("index 7") && error.contains("again with pandas"), "{error}");
        }
    }

    /// A file with one column of one number.
    fn one_number(column: &str, value: i32) -> ParquetLines {
        let schema =
            Arc::new(parse_message_type(&format!("message jobs {{ required int32 {column}; }}")).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[value], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        ParquetLines::new(Cursor::new(file.into_inner().unwrap())).unwrap()
    }

    #[test]
    fn a_parquet_column_of_lists_gives_the_dependencies_of_tasks() {
        let schema = "message tasks { required int32 submit; required int32 run; required int32 job; required int32 task; \
            required group after (LIST) { repeated group list { required int32 element; } } }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let none: Option<&[i16]> = None;
        for (values, present, repeated) in [
            (&[0, 0, 0][..], none, none),
            (&[5, 5, 5], none, none),
            (&[1, 1, 1], none, none),
            (&[7, 8, 9], none, none),
            (&[7, 7, 8], Some(&[0, 1, 1, 1]), Some(&[0, 0, 0, 1])),
        ] {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(values, present, repeated).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        let trace = parse(file.into_inner().unwrap(), "").unwrap();
        assert_eq!(trace.stages_text(JobId(0)).as_deref(), Some("1 1_1 1_2_1"));
    }

    #[test]
    fn parquet_dates_have_no_zone_and_decimals_are_numbers() {
        for (column, value, line) in [
            ("day (DATE)", 1, "{\"day\":\"1970-01-02 00:00:00\"}\n"),
            ("price (DECIMAL(9,2))", 125, "{\"price\":\"1.25\"}\n"),
        ] {
            let mut text = String::new();
            one_number(column, value).read_to_string(&mut text).unwrap();
            assert_eq!(text, line);
        }
    }
}
