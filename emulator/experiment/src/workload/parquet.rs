//! The rows of a Parquet file as lines of JSON objects, which the reader of tables takes.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

/// The first bytes of a Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// The lines of a file that is held in memory.
pub(super) struct ParquetLines {
    rows: RowIter<'static>,
    /// Kinds of the columns.
    columns: Vec<TimeKind>,
    line: Vec<u8>,
    /// Number of bytes of the line that were read.
    taken: usize,
}

/// What the times of a column are.
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
            _ => Self { is_utc: true, in_nanos: false },
        }
    }

    /// A date, with its zone if the column states one.
    fn date(self, at: Option<NaiveDateTime>) -> Value {
        let zone = if self.is_utc { "Z" } else { "" };
        at.map_or(Value::Null, |at| format!("{}{zone}", at.format("%Y-%m-%d %H:%M:%S%.f")).into())
    }
}

impl ParquetLines {
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub(super) fn new(mut file: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let reader = decoded(|| SerializedFileReader::new(bytes::Bytes::from(bytes)))?;
        let schema = reader.metadata().file_metadata().schema();
        let columns = schema.get_fields().iter().map(|column| TimeKind::of(column)).collect();
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(Self { rows, columns, line: Vec::new(), taken: 0 })
    }

    fn next_line(&mut self) -> io::Result<bool> {
        let Some(row) = decoded(|| self.rows.next().transpose())? else { return Ok(false) };
        let cells = row.get_column_iter().zip(&self.columns);
        let object: Map<_, _> =
            cells.map(|((name, field), kind)| (name.clone(), json(field, *kind))).collect();
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

/// The result of the decoder. It panics on some damaged files, which is then the error.
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
    let damaged = || io::Error::new(ErrorKind::InvalidData, "the Parquet decoder does not understand a page");
    decoded.map_err(|_| damaged())?.map_err(failed)
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

/// The value of a cell; lists, maps and groups are blank.
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
        Field::TimeMillis(_)
        | Field::TimeMicros(_)
        | Field::Null
        | Field::Group(_)
        | Field::ListInternal(_)
        | Field::MapInternal(_) => Value::Null,
    }
}

/// Damage as the kind `InvalidData`, and compressions that are not built in with a remedy.
fn failed(error: ParquetError) -> io::Error {
    let why = error.to_string();
    if matches!(error, ParquetError::NYI(_)) || why.contains("Disabled feature") {
        let remedy =
            "write the file with snappy, gzip or zstd, for example with `pandas.DataFrame.to_parquet`";
        return io::Error::new(ErrorKind::Unsupported, format!("{why}; {remedy}"));
    }
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use volary_actors::base::{Feature, JobId, Span};
    use volary_engine::workload::{Reading, Trace, WorkloadError};

    use super::super::decompress;

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
    fn rows_of_parquet_files_are_jobs() {
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
            assert!(error.contains("a.parquet: "), "{end}: {error}");
        }
        for at in 4..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let Err(error) = parse(damaged, "UTC") {
                assert!(error.to_string().contains("a.parquet"), "{at}: {error}");
            }
        }
    }
}
