//! TableKind back from Parquet: what [`parquet`](super::parquet) wrote of one cell.

use std::fs::File;
use std::path::Path;

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};

use super::tables::end_name;
use crate::results::{CopyEnd, CopyRow, CoreRow, JobRow};

/// The jobs of a cell, in order of id.
///
/// # Errors
/// The file cannot be read, or is not one of jobs.
pub fn jobs(path: &Path) -> Result<Vec<JobRow>> {
    let job = |row: &Columns<'_>| {
        Ok(JobRow {
            job: row.number("job")?,
            arrival: row.seconds("arrival_s")?,
            response: row.seconds("response_s")?,
            longest: row.seconds("longest_s")?,
            tasks: row.number("tasks")?,
            class: u8::from(row.text("class")? == "long"),
        })
    };
    rows(path, job)
}

/// The sampled executions of a cell, in order of their ends.
///
/// # Errors
/// The file cannot be read, or is not one of executions.
pub fn copies(path: &Path) -> Result<Vec<CopyRow>> {
    use CopyEnd::{First, Lost, Preempted, Second, Suspended};
    let copy = |row: &Columns<'_>| {
        let word = row.text("end")?;
        let ends = [First, Second, Preempted, Suspended, Lost];
        let end_kind = ends.into_iter().find(|end| end_name(*end) == word).ok_or_else(|| wrong("end"))?;
        Ok(CopyRow {
            job: row.number("job")?,
            task: row.number("task")?,
            attempt: row.number("attempt")?,
            core: row.number("core")?,
            start: row.seconds("start_s")?,
            end: row.seconds("end_s")?,
            end_kind,
        })
    };
    rows(path, copy)
}

/// The stretches of a cell's real cores, by core and time.
///
/// # Errors
/// The file cannot be read, or is not one of cores.
pub fn cores(path: &Path) -> Result<Vec<CoreRow>> {
    let core = |row: &Columns<'_>| {
        Ok(CoreRow {
            core: row.number("core")?,
            start: row.seconds("start_s")?,
            end: row.seconds("end_s")?,
            asked: row.seconds("asked")?,
            had: row.seconds("had_s")?,
            done: row.seconds("done_s")?,
        })
    };
    rows(path, core)
}

fn rows<T>(path: &Path, read: impl Fn(&Columns<'_>) -> Result<T>) -> Result<Vec<T>> {
    let file = File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    reader.get_row_iter(None)?.map(|row| read(&Columns(&row?))).collect()
}

/// A row by the names of its columns.
struct Columns<'a>(&'a Row);

#[allow(clippy::wildcard_enum_match_arm, reason = "columns of all other types are wrong alike")]
impl Columns<'_> {
    fn field(&self, name: &str) -> Result<&Field> {
        let mut columns = self.0.get_column_iter();
        columns.find(|(column, _)| *column == name).map(|(_, field)| field).ok_or_else(|| wrong(name))
    }

    fn number(&self, name: &str) -> Result<u32> {
        let number = match self.field(name)? {
            Field::Long(number) => u32::try_from(*number).ok(),
            Field::Int(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        number.ok_or_else(|| wrong(name))
    }

    /// NaN where there is none.
    fn seconds(&self, name: &str) -> Result<f64> {
        match self.field(name)? {
            Field::Double(seconds) => Ok(*seconds),
            Field::Null => Ok(f64::NAN),
            _ => Err(wrong(name)),
        }
    }

    fn text(&self, name: &str) -> Result<&str> {
        match self.field(name)? {
            Field::Str(text) => Ok(text),
            _ => Err(wrong(name)),
        }
    }
}

fn wrong(column: &str) -> ParquetError {
    ParquetError::General(format!("no column `{column}` as this version writes it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::measured;
    use crate::storage::tables::{Labels, TableKind};

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut cell = measured("a", &[], 1, 1.0, 50);
        cell.jobs[7].response = f64::NAN;
        let labels = Labels::new("x", &cell.summary);
        let path = |kind: TableKind| folder.path().join(kind.name());
        for kind in TableKind::ALL {
            kind.write(File::create(path(kind)).unwrap(), &labels, &cell).unwrap();
        }
        let mut jobs = jobs(&path(TableKind::Jobs)).unwrap();
        assert!(jobs[7].response.is_nan());
        jobs[7].response = 1.0;
        cell.jobs[7].response = 1.0;
        assert_eq!(jobs, cell.jobs);
        assert_eq!(copies(&path(TableKind::Tasks)).unwrap(), cell.copies);
        assert_eq!(cores(&path(TableKind::Cores)).unwrap(), cell.cores);
        let error = copies(&path(TableKind::Jobs)).unwrap_err();
        assert!(error.to_string().contains("`end`"), "{error}");
        assert!(super::jobs(&folder.path().join("gone")).is_err());
    }
}
