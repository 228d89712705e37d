//! The position of one run and its parts in the log of finished runs, and access to the run's rows.

use std::fs::File;
use std::iter;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::columns::Values;
use super::files::{Error, io as failed};
use super::tables::{TableKind, TableRow};
use crate::codec;

/// Number of parts of a frame: the record, and one for the rows of each table.
pub(super) const PARTS: usize = 1 + TableKind::ALL.len();

/// A file of finished runs, open for reading.
#[derive(Debug)]
pub(super) struct StoreFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// The position of a finished run in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RunFrame {
    /// The range of the whole frame.
    pub(super) bytes: Range<u64>,
    /// Offset of the first part.
    pub(super) first: u64,
    pub(super) parts: [u32; PARTS],
}

impl StoreFile {
    pub(super) fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, at).map_err(failed("read", &self.path))?;
        Ok(bytes)
    }

    pub(super) fn damaged(&self, frame: &RunFrame, why: &dyn ToString) -> Error {
        Error::DamagedRun { path: self.path.clone(), at: frame.bytes.start, why: why.to_string() }
    }
}

impl RunFrame {
    /// Reads a part.
    pub(super) fn part(&self, log: &StoreFile, number: usize) -> Result<Vec<u8>, Error> {
        let before: u64 = self.parts[..number].iter().map(|part| u64::from(*part)).sum();
        let packed = log.read(self.first + before, self.parts[number].into())?;
        zstd::decode_all(&packed[..]).map_err(|why| log.damaged(self, &why))
    }
}

/// The rows of a run, which stay in the file. The place of the rows does not affect the equality of two records.
#[derive(Clone, Debug, Default)]
pub struct RunRows(pub(super) Option<(Arc<StoreFile>, RunFrame)>);

impl PartialEq for RunRows {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl RunRows {
    /// The rows of a table: jobs by id, sampled copies by their ends, stretches of real cores by core and time. Empty
    /// if the record was not stored.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn read<R: TableRow>(&self) -> Result<Vec<R>, Error> {
        let mut rows = Vec::new();
        for chunk in self.chunks(R::KIND)? {
            rows.extend(R::rows(&chunk?).ok_or_else(|| self.damaged(&"a part has no rows of this table"))?);
        }
        Ok(rows)
    }

    /// Number of bytes that the rows of a table take in the file.
    pub(super) fn bytes(&self, kind: TableKind) -> u64 {
        self.0.as_ref().map_or(0, |(_, frame)| frame.parts[1 + kind as usize].into())
    }

    /// The columns of the rows of a table, in chunks of rows.
    ///
    /// # Errors
    /// When the rows cannot be read; an item is an error if its chunk is damaged.
    pub(super) fn chunks(
        &self,
        kind: TableKind,
    ) -> Result<impl Iterator<Item = Result<Vec<Values>, Error>>, Error> {
        let number = 1 + kind as usize;
        let there = self.0.as_ref().filter(|(_, frame)| frame.parts[number] > 0);
        let all = there.map(|(log, frame)| frame.part(log, number)).transpose()?.unwrap_or_default();
        let mut at = 0;
        Ok(iter::from_fn(move || {
            let rest = all.get(at..).filter(|rest| !rest.is_empty())?;
            let chunk = codec::take::<Vec<Values>>(rest);
            // Nothing is read after damage.
            at = chunk.as_ref().map_or(usize::MAX, |(_, used)| at + used);
            let chunk = chunk.map_err(|why| self.damaged(&why));
            Some(chunk.and_then(|(columns, _)| {
                let count = columns.first().map_or(0, Values::len);
                let is_right = |(column, (kind, _)): (&Values, _)| column.is(kind) && column.len() == count;
                let are_right =
                    columns.len() == kind.types().count() && columns.iter().zip(kind.types()).all(is_right);
                are_right.then_some(columns).ok_or_else(|| self.damaged(&"a part of another table"))
            }))
        }))
    }

    fn damaged(&self, why: &dyn ToString) -> Error {
        match &self.0 {
            Some((log, frame)) => log.damaged(frame, why),
            None => Error::Merge(why.to_string()),
        }
    }
}
