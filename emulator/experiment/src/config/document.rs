//! A TOML document with the position of every key and value, over several texts.
//!
//! Overrides, sweep values and included files are put into the tree of the experiment file with their original
//! position. An error found when the tree is read into types therefore points at the `--set`, or at the line of the
//! sweep or of the included file. Positions are byte offsets into the concatenation of all texts: the file first, then
//! every text that was added.

use std::cell::OnceCell;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, Text, nearest};
use crate::files::{Files, LONGEST_TEXT};

/// A key with its position.
pub type Key<'t> = Spanned<DeString<'t>>;
/// A value with its position; the position of a table with a header is the header.
pub type Node<'t> = Spanned<DeValue<'t>>;

/// The start of the parser's message for a duplicate key.
const DUPLICATE: &str = "duplicate key";

/// The texts that documents borrow from; every text lives as long as the list. A full list continues in `next`, which
/// has more than twice as many places.
#[derive(Debug, Default)]
pub struct Texts {
    places: Vec<OnceCell<String>>,
    next: OnceCell<Box<Self>>,
}

impl Texts {
    fn keep(&self, text: String) -> &str {
        let filled = self.places.partition_point(|place| place.get().is_some());
        let longer = || Box::new(Self { places: vec![OnceCell::new(); 2 * filled + 1], ..Self::default() });
        match self.places.get(filled) {
            Some(free) => free.get_or_init(|| text),
            None => self.next.get_or_init(longer).keep(text),
        }
    }
}

/// A parsed TOML file, and further texts from which keys and values were put into its tree.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    /// Each text with the offset of its first byte.
    texts: Vec<(usize, Arc<Text>)>,
    kept: &'t Texts,
    /// The top-level table.
    pub root: DeTable<'t>,
}

impl<'t> Document<'t> {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// When it cannot be read, is not UTF-8 or not TOML.
    pub fn read(kept: &'t Texts, files: &Files, path: &Path) -> Result<Self, ConfigError> {
        Self::parse(kept, read_text(files, path)?)
    }

    /// Parses a text.
    ///
    /// # Errors
    /// When it is not TOML.
    pub fn parse(kept: &'t Texts, text: Text) -> Result<Self, ConfigError> {
        let mut document = Self { texts: Vec::new(), kept, root: DeTable::new() };
        document.root = document.include(text)?;
        Ok(document)
    }

    /// A copy of the document whose further texts are stored in another list.
    pub(super) fn with_texts<'s>(&self, kept: &'s Texts) -> Document<'s>
    where
        't: 's,
    {
        Document { kept, ..self.clone() }
    }

    /// Adds a text and parses it as a document.
    pub(super) fn include(&mut self, text: Text) -> Result<DeTable<'t>, ConfigError> {
        let base = self.add_text(text.clone());
        self.table(&text.text, base).map_err(|error| syntax(&text, base, &error))
    }

    /// Parses a table whose first byte is at offset `base`.
    pub(super) fn table(&self, text: &str, base: usize) -> Result<DeTable<'t>, toml::de::Error> {
        DeTable::parse(self.at(base, text)).map(Spanned::into_inner)
    }

    /// Parses a single value whose first byte is at offset `base`.
    pub(super) fn value(&self, text: &str, base: usize) -> Result<Node<'t>, toml::de::Error> {
        // `DeValue::parse` refuses the leading white space that keeps byte offsets, so the value is parsed behind `v=`.
        let line = self.kept.keep(format!("{:>base$}{text}", "v="));
        let mut values = DeTable::parse(line)?.into_inner().into_iter();
        let value = values.next().filter(|_| values.len() == 0).map(|(_, value)| value);
        value.ok_or_else(|| serde::de::Error::custom("more than one value"))
    }

    /// A copy of `text` behind white space, so that byte offsets in the copy are offsets in the concatenation.
    fn at(&self, base: usize, text: &str) -> &'t str {
        let (mark, rest) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("   ", rest));
        self.kept.keep(format!("{:base$}{mark}{rest}", ""))
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.texts[0].1.name
    }

    /// The folder to which paths written at a position are relative.
    pub fn folder(&self, span: &Range<usize>) -> PathBuf {
        let folder = |index: usize| self.texts[index].1.folder.clone();
        folder(self.text_of(span)).or_else(|| folder(0)).unwrap_or_default()
    }

    fn text_of(&self, span: &Range<usize>) -> usize {
        self.texts.partition_point(|(base, _)| *base <= span.start).saturating_sub(1)
    }

    /// Adds a text that values may refer to; returns the offset of its first byte.
    pub(super) fn add_text(&mut self, text: Text) -> usize {
        let base = self.texts.last().map_or(0, |(base, text)| base + text.text.len() + 1);
        self.texts.push((base, Arc::new(text)));
        base
    }

    /// An error at a position.
    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ConfigError {
        let (base, text) = &self.texts[self.text_of(span)];
        text.error(span.start - base..span.end.saturating_sub(*base), message)
    }

    /// An error at the value of a dotted key, or at the nearest enclosing table that is written in the file.
    pub fn error_at(&self, path: &[&str], message: impl Into<String>) -> ConfigError {
        let found = (1..=path.len()).map_while(|depth| self.find(&path[..depth]));
        let span = found.last().map_or(0..0, |(key, value)| match value.get_ref().is_table() {
            true => key,
            false => value.span(),
        });
        self.error(&span, message)
    }

    /// The position of the key, and the value, at a path; a number selects an element of an array.
    pub fn find(&self, path: &[&str]) -> Option<(Range<usize>, &Node<'t>)> {
        let (first, rest) = path.split_first()?;
        let (key, value) = self.root.get_key_value(*first)?;
        rest.iter().try_fold((key.span(), value), |(_, value), part| {
            if let Some(items) = value.get_ref().as_array() {
                let item = items.get(part.parse::<usize>().ok()?)?;
                return Some((item.span(), item));
            }
            let (key, value) = value.get_ref().as_table()?.get_key_value(*part)?;
            Some((key.span(), value))
        })
    }

    /// The dotted key of the innermost entry at a position; empty at the top level.
    pub fn key_at(&self, span: &Range<usize>) -> String {
        let mut best = (usize::MAX, String::new());
        innermost(&self.root, "", span, &mut best);
        best.1
    }

    /// The table written at a position; the empty range is the top level.
    pub fn table_at(&self, span: &Range<usize>) -> Option<&DeTable<'t>> {
        if *span == (0..0) {
            return Some(&self.root);
        }
        self.root.values().find_map(|value| table_at(value, span))
    }
}

/// The entries of a table in the order they were written; the parser sorts them by key.
pub(super) fn entries<'a, 't>(table: &'a DeTable<'t>) -> Vec<(&'a Key<'t>, &'a Node<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A syntax error in a text whose first byte is at offset `base`.
fn syntax(text: &Text, base: usize, error: &toml::de::Error) -> ConfigError {
    let span = error.span().unwrap_or(base..base);
    let (message, label) = split(error.message());
    let found =
        text.error(span.start.saturating_sub(base)..span.end.saturating_sub(base), message).label(label);
    if error.message().starts_with(DUPLICATE) {
        return found.help("keep one of the two; for a sweep write a list under [sweep]");
    }
    found.help("strings are quoted, `key = value` stands on one line, tables begin with [name]")
}

/// Splits a message: "invalid x, expected y" gives ("invalid x", "expected y").
pub(super) fn split(message: &str) -> (String, String) {
    match message.split_once(", expected ") {
        Some((what, expected)) => (what.to_owned(), format!("expected {expected}")),
        None => (message.trim_end().to_owned(), String::new()),
    }
}

/// Sets a key and its position, replacing an existing entry.
pub(super) fn put<'t>(table: &mut DeTable<'t>, key: Key<'t>, value: Node<'t>) {
    table.remove(&key);
    table.insert(key, value);
}

/// The kind of a value, for error messages.
pub(super) const fn what(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The table, if the value is a table.
pub(super) fn table_mut<'a, 't>(value: &'a mut Node<'t>) -> Option<&'a mut DeTable<'t>> {
    if let DeValue::Table(table) = value.get_mut() { Some(table) } else { None }
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
    let text = Text { name, text: String::from_utf8_lossy(&bytes).into_owned(), folder };
    match std::str::from_utf8(&bytes).map_err(|error| error.valid_up_to()) {
        Ok(_) => Ok(text),
        Err(at) => Err(text.error(at..at + 3, "the file is not UTF-8").help("save it as UTF-8")),
    }
}

/// The remedy for a file that cannot be read: suggests a similar file name in its folder, if there is one.
fn read_help(files: &Files, path: &Path, why: &io::Error) -> String {
    if why.kind() == io::ErrorKind::FileTooLarge {
        return format!("texts have at most {} MiB; is this the right file?", LONGEST_TEXT >> 20);
    }
    if why.kind() == io::ErrorKind::IsADirectory {
        return "it is a folder; name an experiment file in it, such as e.toml".to_owned();
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let Some(neighbours) = files.beside(path) else {
        return format!("there is no folder {} here", folder.display());
    };
    let other = nearest(&name, neighbours.iter().map(String::as_str).filter(|other| *other != name));
    let folder = folder.display();
    other.map_or_else(
        || format!("check the name; {folder} has no similar file"),
        |other| format!("{folder} has `{other}`"),
    )
}

/// Stores in `best` the length and the dotted key of the smallest entry around `span`.
fn innermost(table: &DeTable<'_>, path: &str, span: &Range<usize>, best: &mut (usize, String)) {
    for (key, value) in entries(table) {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", key.get_ref());
        for outer in [key.span(), value.span()] {
            if outer.start <= span.start && span.end <= outer.end && outer.len() <= best.0 {
                *best = (outer.len(), path.clone());
            }
        }
        let items = || value.get_ref().as_array().into_iter().flatten();
        for (index, item) in items().enumerate().map(|(index, item)| (index, item.span())) {
            if item == *span && item.len() <= best.0 {
                *best = (item.len(), format!("{path}[{index}]"));
            }
        }
        for table in std::iter::once(value).chain(items()).filter_map(|value| value.get_ref().as_table()) {
            innermost(table, &path, span, best);
        }
    }
}

fn table_at<'a, 't>(value: &'a Node<'t>, span: &Range<usize>) -> Option<&'a DeTable<'t>> {
    if let Some(table) = value.get_ref().as_table() {
        let here = (value.span() == *span).then_some(table);
        return here.or_else(|| table.values().find_map(|value| table_at(value, span)));
    }
    value.get_ref().as_array()?.iter().find_map(|value| table_at(value, span))
}
