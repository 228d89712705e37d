//! Files that an experiment file refers to, put into its document before it is read into types.
//!
//! A profile's keys become keys of `[interference]` and keep their place, so that a mistake in a profile is
//! reported in the profile, and a sweep reaches into it. The values of `empirical = { file = … }` laws become
//! `values`, wherever such a law stands.

use std::ops::Range;
use std::path::{Path, PathBuf};

use volary_actors::base::Span;

use super::document::{Document, read_text};
use super::error::ConfigError;
use super::explain;
use super::kind::Kind;
use super::tree::{Entry, Kind as Is, Node, Table};
use crate::cores::{Interference, Profile};
use crate::files::Files;

/// Replaces `interference.profile` by the keys of the file it names. Keys written beside it win.
///
/// # Errors
/// When the file cannot be read, is not TOML or names a profile itself.
pub fn profile(files: &Files, document: &mut Document) -> Result<(), ConfigError> {
    let named = document.find(&["interference", "profile"]);
    let Some((_, Node { span, kind: Is::Text(name) })) = named else { return Ok(()) };
    let (span, name) = (span.clone(), PathBuf::from(name));
    let text =
        read_text(files, &document.folder(&span).join(&name)).map_err(|e| located(document, &span, e))?;
    let table = Table::parse(&text.text).map_err(|error| explain::syntax(&text, &error))?;
    let mistaken = |(message, help): (String, String)| document.error(&span, message).help(help);
    Kind::Profile.expect_in(&table, &text.name).map_err(mistaken)?;
    let base = document.add_text(text);
    let mut node = Node { span: 0..0, kind: Is::Table(table) };
    node.shift(base);
    if let Some(again) = node.as_table().and_then(|table| table.get("profile")) {
        return Err(document
            .error(&again.at, "a profile cannot name another profile")
            .help("write its process here, or name the other profile in the experiment file"));
    }
    let Is::Table(profile) = node.kind else { return Ok(()) };
    let Some(section) = document.root.get_mut("interference").and_then(|e| e.value.as_table_mut()) else {
        return Ok(());
    };
    section.remove("profile");
    for mut entry in profile.0 {
        if entry.key == "trace" {
            rebase(&mut entry, name.parent().unwrap_or_else(|| Path::new("")));
        }
        merge(section, entry);
    }
    Ok(())
}

/// Reads and checks a profile file by itself.
///
/// # Errors
/// When it, or a file it names, cannot be read, is not what [`Interference`] describes, or contradicts itself.
pub fn open_profile(path: &Path) -> Result<Profile, ConfigError> {
    let files = Files::of_disk();
    let mut document = Document::read(&files, path)?;
    values(&files, &mut document)?;
    Kind::Profile.expect(&document)?;
    let table: Interference = document.to()?;
    let folder = document.folder(&(0..0));
    table
        .load(&folder, |path| files.whole(path))
        .map_err(|error| explain::interference(&document, &[], &error))
}

/// Adds what the section lacks, down to the parameters of a process: an override or a sweep may have set one.
fn merge(section: &mut Table, entry: Entry) {
    match (section.get_mut(&entry.key).map(|written| &mut written.value), entry.value.kind) {
        (Some(Node { kind: Is::Table(written), .. }), Is::Table(profile)) => {
            for parameter in profile.0 {
                if written.get(&parameter.key).is_none() {
                    written.insert(parameter);
                }
            }
        }
        (Some(_), _) => {}
        (None, kind) => section.insert(Entry { value: Node { kind, ..entry.value }, ..entry }),
    }
}

/// Makes the file of a trace relative to the experiment file, as everything else in the section.
fn rebase(trace: &mut Entry, folder: &Path) {
    let file = trace.value.as_table_mut().and_then(|table| table.get_mut("file"));
    if let Some(Entry { value: Node { kind: Is::Text(path), .. }, .. }) = file {
        *path = folder.join(&*path).display().to_string();
    }
}

/// Reads the files of all empirical laws into their values.
///
/// # Errors
/// When a file cannot be read or a line of it is no value.
pub fn values(files: &Files, document: &mut Document) -> Result<(), ConfigError> {
    let mut root = Node { span: 0..0, kind: Is::Table(std::mem::take(&mut document.root)) };
    let done = fill(files, document, &mut root);
    if let Is::Table(table) = root.kind {
        document.root = table;
    }
    done
}

fn fill(files: &Files, document: &Document, node: &mut Node) -> Result<(), ConfigError> {
    match &mut node.kind {
        Is::List(items) => items.iter_mut().try_for_each(|item| fill(files, document, item)),
        Is::Table(table) => {
            for entry in &mut table.0 {
                match entry.value.as_table_mut() {
                    Some(law) if entry.key == "empirical" => load(files, document, law)?,
                    Some(_) | None => fill(files, document, &mut entry.value)?,
                }
            }
            Ok(())
        }
        Is::Text(_) | Is::Number(_) | Is::Bool(_) | Is::Date(_) => Ok(()),
    }
}

/// Replaces `file` by `values`; a law that has both is left as it is, to be refused.
fn load(files: &Files, document: &Document, law: &mut Table) -> Result<(), ConfigError> {
    let Some(Entry { value: Node { span, kind: Is::Text(name) }, at, .. }) = law.get("file") else {
        return Ok(());
    };
    if law.get("values").is_some() {
        return Ok(());
    }
    let (span, at) = (span.clone(), at.clone());
    let text =
        read_text(files, &document.folder(&span).join(name)).map_err(|e| located(document, &span, e))?;
    let mut items = Vec::new();
    let mut start = 0;
    for line in text.text.split_inclusive('\n') {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.is_empty() {
            let kind = value(content).ok_or_else(|| {
                text.error(start..start + line.trim_end().len(), "", "this line is no value of a law")
                    .help("write one number a line, with its unit where the law is one of times")
            })?;
            items.push(Node { span: span.clone(), kind });
        }
        start += line.len();
    }
    if items.is_empty() {
        return Err(document.error(&span, "the file holds no value").help("write one value a line"));
    }
    law.remove("file");
    law.insert(Entry { key: "values".into(), at, value: Node { span, kind: Is::List(items) } });
    Ok(())
}

/// A number or a duration.
fn value(text: &str) -> Option<Is> {
    if let Ok(number) = text.parse::<f64>() {
        // Rust reads more than TOML does (`1.`, `.5`, `+1`): write it anew.
        return number.is_finite().then(|| Is::Number(format!("{number:?}")));
    }
    text.parse::<Span>().is_ok().then(|| Is::Text(text.to_owned()))
}

/// An error about a file, at the place that names the file.
pub(super) fn located(document: &Document, span: &Range<usize>, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Read { path, why, help } => {
            document.error(span, format!("cannot read {}: {why}", path.display())).help(help)
        }
        other @ (ConfigError::At(_) | ConfigError::Option { .. }) => other,
    }
}
