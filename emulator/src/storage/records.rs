//! Records of finished runs: files in `cells/` while a run goes on, and one compressed file once it has ended.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, ErrorKind, Write as _};
use std::mem;
use std::path::Path;

use serde::de::Error as _;

use super::cell::CellRecord;
use super::error::{Error, damaged, io as failed};
use super::files::{checked_line, parse, read, remove, replace, write};
use super::paths::{CELLS, RECORDS, part_path, record_path};
use super::study::Study;
use super::tables::TableKind;

/// The level of compression: a tenth of the text remains, and packing takes less time than writing the text.
const LEVEL: i32 = 3;

/// The records of the finished runs among `ids`, in no order: those in `cells/`, then the packed ones that are not
/// there as well.
///
/// # Errors
/// Of an item: it is damaged, or the file of packed records is from here on.
pub(super) fn records<'a>(
    root: &'a Path,
    ids: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = Result<CellRecord, Error>> {
    let (loose, rest): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| record_path(root, id).exists());
    let rest: BTreeSet<String> = rest.into_iter().cloned().collect();
    let packed = (!rest.is_empty()).then(|| packed(root)).into_iter().flatten();
    let packed = packed.filter_map(move |line| match line {
        Ok((id, text)) => rest.contains(&id).then(|| parse(&root.join(RECORDS), &text)),
        Err(error) => Some(Err(error)),
    });
    loose.into_iter().map(|id| read(&record_path(root, id))).chain(packed)
}

/// The packed records of a folder as text, with the ids of their runs. An error is the last item.
fn packed(root: &Path) -> impl Iterator<Item = Result<(String, String), Error>> {
    let path = root.join(RECORDS);
    let opened = File::open(&path).and_then(zstd::Decoder::new);
    let (lines, failed) = match opened {
        Ok(decoder) => (Some(BufReader::new(decoder).lines()), None),
        // A run that goes on has none.
        Err(error) if error.kind() == ErrorKind::NotFound => (None, None),
        Err(error) => (None, Some(Err(error))),
    };
    let lines = lines.into_iter().flatten().chain(failed).map(move |line| {
        let line = line.map_err(|error| damaged(&path)(serde_json::Error::custom(error)))? + "\n";
        let id = line.split_once("\"run\":\"").and_then(|(_, rest)| rest.split_once('"'));
        Ok((id.map_or_else(String::new, |(id, _)| id.to_owned()), line))
    });
    let mut ended = false;
    lines.take_while(move |line| !mem::replace(&mut ended, line.is_err()))
}

/// Packs the records of a study and removes the files of its runs from `cells/`; its rows must be in the folder's
/// tables. Other runs are left, and those that were packed must have been [unpacked](unpack_others).
pub(super) fn pack(root: &Path, study: &Study) -> Result<(), Error> {
    let path = root.join(RECORDS);
    let fill = |file: File| {
        let mut to = zstd::Encoder::new(BufWriter::new(file), LEVEL)?;
        to.include_checksum(true)?;
        for record in study.records() {
            to.write_all(checked_line(&path, record).map_err(io::Error::other)?.as_bytes())?;
        }
        to.finish()?.flush()
    };
    replace(&path, fill, failed("write", &path))?;
    for record in study.records() {
        remove(&record_path(root, &record.id))?;
        TableKind::ALL.iter().try_for_each(|kind| remove(&part_path(root, &record.id, *kind)))?;
    }
    // It stays if it has failures, or runs that are none of the study's.
    let _ = fs::remove_dir(root.join(CELLS));
    Ok(())
}

/// Writes packed records that a study does not have, those of an earlier plan, to `cells/` again; the rows are left
/// where they are.
pub(super) fn unpack_others(root: &Path, study: &Study) -> Result<Vec<CellRecord>, Error> {
    let kept: BTreeSet<&str> = study.records().map(|record| record.id.as_str()).collect();
    let mut others = Vec::new();
    for line in packed(root) {
        let (id, text) = line?;
        if kept.contains(id.as_str()) {
            continue;
        }
        others.push(parse(&root.join(RECORDS), &text)?);
        let path = record_path(root, &id);
        if !path.exists() {
            let cells = root.join(CELLS);
            fs::create_dir_all(&cells).map_err(failed("create", &cells))?;
            write(&path, text.as_bytes())?;
        }
    }
    Ok(others)
}

/// Writes packed records that can be read to `cells/`, and removes the damaged file of packed ones.
pub(super) fn salvage(root: &Path) -> Result<(), Error> {
    let cells = root.join(CELLS);
    fs::create_dir_all(&cells).map_err(failed("create", &cells))?;
    for (id, text) in packed(root).map_while(Result::ok) {
        let path = record_path(root, &id);
        if !path.exists() && parse::<CellRecord>(&path, &text).is_ok() {
            write(&path, text.as_bytes())?;
        }
    }
    remove(&root.join(RECORDS))
}
