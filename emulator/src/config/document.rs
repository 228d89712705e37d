//! A TOML document that can point at every key and value.
//!
//! Overrides and sweep values are put into the tree with the place they came from, so that an error met when
//! the tree is read into types points at the `--set` or at the line of the sweep. Places are byte offsets into
//! all texts laid end to end: the file first, then each override.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::error::{ConfigError, Text, nearest};
use super::explain;
use super::tree::{Entry, Kind, Node, Table};
use crate::files::{Files, LONGEST_TEXT};

/// A parsed document and the texts it came from.
#[derive(Clone, Debug)]
pub struct Document {
    /// Each text with the offset of its first byte.
    texts: Vec<(usize, Arc<Text>)>,
    /// The top-level table.
    pub root: Table,
}

impl Document {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// When it cannot be read, is not UTF-8 or not TOML.
    pub fn read(files: &Files, path: &Path) -> Result<Self, ConfigError> {
        Self::parse(read_text(files, path)?)
    }

    /// Parses a text.
    ///
    /// # Errors
    /// When it is not TOML.
    pub fn parse(text: Text) -> Result<Self, ConfigError> {
        let root = Table::parse(&text.text).map_err(|error| explain::syntax(&text, &error))?;
        Ok(Self { texts: vec![(0, Arc::new(text))], root })
    }

    /// Name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.texts[0].1.name
    }

    /// Reads the document into a type.
    ///
    /// # Errors
    /// When keys or values do not fit the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        self.root.read(0..0).map_err(|error| explain::form(self, &error))
    }

    /// The folder that paths written at a place are relative to.
    #[must_use]
    pub fn folder(&self, span: &Range<usize>) -> PathBuf {
        let folder = |index: usize| self.texts[index].1.folder.clone();
        folder(self.text_of(span)).or_else(|| folder(0)).unwrap_or_default()
    }

    fn text_of(&self, span: &Range<usize>) -> usize {
        self.texts.partition_point(|(base, _)| *base <= span.start).saturating_sub(1)
    }

    /// Adds a text that values may point into; returns the offset of its first byte.
    pub fn add_text(&mut self, text: Text) -> usize {
        let base = self.texts.last().map_or(0, |(base, text)| base + text.text.len() + 1);
        self.texts.push((base, Arc::new(text)));
        base
    }

    /// An error at a place.
    #[must_use]
    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ConfigError {
        let (base, text) = &self.texts[self.text_of(span)];
        let local = span.start - base..span.end.saturating_sub(*base);
        text.error(local, self.key_at(span), message)
    }

    /// An error at the value of a dotted key, or at the nearest table above it that is written down.
    #[must_use]
    pub fn error_at(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        let mut span = 0..0;
        for depth in 1..=path.len() {
            match self.find(&path[..depth]) {
                Some((key, value)) if value.as_table().is_some() => span = key,
                Some((_, value)) => span = value.span.clone(),
                None => break,
            }
        }
        self.error(&span, message)
    }

    /// Place of the key, and the value, at a path; a number selects from an array.
    #[must_use]
    pub fn find(&self, path: &[&str]) -> Option<(Range<usize>, &Node)> {
        let (first, rest) = path.split_first()?;
        let entry = self.root.get(first)?;
        let (mut span, mut value) = (entry.at.clone(), &entry.value);
        for part in rest {
            match &value.kind {
                Kind::Table(table) => {
                    let entry = table.get(part)?;
                    (span, value) = (entry.at.clone(), &entry.value);
                }
                Kind::List(items) => {
                    value = items.get(part.parse::<usize>().ok()?)?;
                    span = value.span.clone();
                }
                Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) => return None,
            }
        }
        Some((span, value))
    }

    /// The dotted key of the innermost entry at a place, empty at the top level.
    #[must_use]
    pub fn key_at(&self, span: &Range<usize>) -> String {
        let mut best = (usize::MAX, String::new());
        for entry in &self.root.0 {
            innermost(entry, &entry.key, span, &mut best);
        }
        best.1
    }

    /// The table written at a place; the empty place is the top level.
    #[must_use]
    pub fn table_at(&self, span: &Range<usize>) -> Option<&Table> {
        if *span == (0..0) {
            return Some(&self.root);
        }
        self.root.0.iter().find_map(|entry| table_at(&entry.value, span))
    }
}

/// Reads a text file.
///
/// # Errors
/// When it cannot be read, is too long or not UTF-8.
pub fn read_text(files: &Files, path: &Path) -> Result<Text, ConfigError> {
    let bytes = files.whole(path).map_err(|why| ConfigError::Read {
        path: path.to_owned(),
        help: read_help(files, path, &why),
        why,
    })?;
    let name = path.display().to_string();
    let folder = Some(path.parent().unwrap_or(path).to_owned());
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Text { name, text: text.to_owned(), folder }),
        Err(error) => {
            let at = error.valid_up_to();
            let text = Text { name, text: String::from_utf8_lossy(&bytes).into_owned(), folder };
            Err(text.error(at..at + 3, "", "the file is not UTF-8").help("save it as UTF-8"))
        }
    }
}

/// What to do about a file that cannot be read: name a similar one of its folder if there is one.
fn read_help(files: &Files, path: &Path, why: &io::Error) -> String {
    if why.kind() == io::ErrorKind::FileTooLarge {
        return format!("texts have at most {} MiB; is this the right file?", LONGEST_TEXT >> 20);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let Some(neighbours) = files.beside(path) else {
        return format!("there is no folder {} here", folder.display());
    };
    match nearest(&name, neighbours.iter().map(String::as_str).filter(|other| *other != name)) {
        Some(other) => format!("{} has `{other}`", folder.display()),
        None => format!("check the name; {} has no similar file", folder.display()),
    }
}

/// Keeps in `best` the smallest entry around `span`.
fn innermost(entry: &Entry, path: &str, span: &Range<usize>, best: &mut (usize, String)) {
    for outer in [&entry.at, &entry.value.span] {
        if outer.start <= span.start && span.end <= outer.end && outer.len() <= best.0 {
            *best = (outer.len(), path.to_owned());
        }
    }
    let lists = entry.value.as_list().into_iter().flatten().filter_map(Node::as_table);
    for table in entry.value.as_table().into_iter().chain(lists) {
        for inner in &table.0 {
            innermost(inner, &format!("{path}.{}", inner.key), span, best);
        }
    }
}

fn table_at<'a>(value: &'a Node, span: &Range<usize>) -> Option<&'a Table> {
    match &value.kind {
        Kind::Table(table) if value.span == *span => Some(table),
        Kind::Table(table) => table.0.iter().find_map(|entry| table_at(&entry.value, span)),
        Kind::List(items) => items.iter().find_map(|inner| table_at(inner, span)),
        Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Date(_) => None,
    }
}
