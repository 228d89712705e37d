//! Inclusion of files that an experiment file refers to, before its document is read into types.
//!
//! A profile's keys become keys of `[interference]` and keep their position: an error in a profile is reported in the
//! profile, and a sweep can change its keys. The values of `empirical = { file = … }` distributions become `values`
//! wherever such a distribution is used. The topology file in the `[cluster]` section is also read here; its errors
//! carry their position.
//!
//! The four kinds of TOML files are distinguished by their keys, so that an error can name the kind of a wrong file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use volary_actors::base::Span;
use volary_engine::cores::{Interference, Profile};
use volary_engine::scenario::{Cluster, ClusterError, ClusterSection};
use volary_engine::workload::Service;
use volary_netem::TopologyFile;
use volary_netem::topology::Topology;

use super::document::{Document, Key, Node, Texts, entries, put, read_text, table_mut};
use super::error::{ConfigError, Text};
use super::{explain, presets};
use crate::files::Files;

/// Replaces `interference.profile` by the keys of the preset or file it names. Keys of the experiment file take
/// precedence.
///
/// # Errors
/// When the file cannot be read, is not TOML or names a profile itself.
pub fn profile(files: &Files, document: &mut Document<'_>) -> Result<(), ConfigError> {
    let named = document.find(&["interference", "profile"]);
    let named = named.and_then(|(_, name)| Some((name.span(), PathBuf::from(name.get_ref().as_str()?))));
    let Some((span, name)) = named else { return Ok(()) };
    let profile = read_profile(files, document, &span, &name)?;
    let Some(section) = document.root.get_mut("interference").and_then(table_mut) else { return Ok(()) };
    section.remove("profile");
    let all = |known: &DeTable<'_>, of: &DeTable<'_>| of.keys().all(|key| known.contains_key(key));
    let hidden = |(key, value): &(&Key<'_>, &Node<'_>)| match (
        value.get_ref(),
        section.get(*key).map(Spanned::get_ref),
    ) {
        (DeValue::Table(of), Some(DeValue::Table(known))) => all(known, of),
        (_, known) => known.is_some(),
    };
    let process = profile.iter().find(|(_, value)| value.get_ref().is_table());
    if let Some((process, _)) = process.filter(|_| profile.iter().all(|entry| hidden(&entry))) {
        let (process, name) = (process.get_ref(), name.display());
        let error =
            format!("[interference] has every key of `{process}`, so the profile `{name}` has no effect");
        return Err(document.error(&span, error).help(format!(
            "remove `{process}` there, or replace the table: --set 'interference={{ profile = \"{name}\" }}'"
        )));
    }
    for (key, value) in profile {
        merge(section, key, value);
    }
    Ok(())
}

/// Replaces the `profile` of each `[[interference.injection]]` that names a file by the keys of the file.
///
/// # Errors
/// The errors of [`profile`].
pub fn injections(files: &Files, document: &mut Document<'_>) -> Result<(), ConfigError> {
    for i in 0.. {
        let index = i.to_string();
        let path = ["interference", "injection", index.as_str()];
        if document.find(&path).is_none() {
            break;
        }
        let Some((_, named)) = document.find(&[&path[..], &["profile"]].concat()) else { continue };
        let Some(name) = named.get_ref().as_str().map(PathBuf::from) else { continue };
        let span = named.span();
        let profile = read_profile(files, document, &span, &name)?;
        let section = document.root.get_mut("interference").and_then(table_mut);
        let injections = section.and_then(|section| section.get_mut("injection")).map(Spanned::get_mut);
        if let Some(DeValue::Array(injections)) = injections
            && let Some(named) =
                injections.get_mut(i).and_then(table_mut).and_then(|one| one.get_mut("profile"))
        {
            *named = Spanned::new(span, DeValue::Table(profile));
        }
    }
    Ok(())
}

/// Reads a preset, or a profile file, that is named at a position. The path of its trace is made relative to the
/// experiment file, like other paths of the section.
fn read_profile<'t>(
    files: &Files,
    document: &mut Document<'t>,
    span: &Range<usize>,
    name: &Path,
) -> Result<DeTable<'t>, ConfigError> {
    let path = if presets::hold(files, name) { name.to_owned() } else { document.folder(span).join(name) };
    let text = read_text(files, &path).map_err(|error| presets::suggested(error, name));
    let text = text.map_err(|error| located(document, span, error))?;
    let file = text.name.clone();
    let mut profile = document.include(text)?;
    FileKind::Profile.expect_in(&profile, &file, document, span)?;
    if let Some((again, _)) = profile.get_key_value("profile") {
        return Err(document
            .error(&again.span(), "a profile cannot name another profile")
            .help("copy its process into this file, or name it in the experiment file"));
    }
    if let Some((again, _)) = profile.get_key_value("injection") {
        return Err(document
            .error(&again.span(), "a profile has no injections")
            .help("write [[interference.injection]] in the experiment file"));
    }
    if let Some(trace) = profile.get_mut("trace") {
        rebase(trace, name.parent().unwrap_or_else(|| Path::new("")));
    }
    Ok(profile)
}

/// Replaces `workload.mix.classes` by the classes of the file it names.
///
/// # Errors
/// When the file cannot be read, is not TOML or not a file of classes, or the mix has classes of its own.
pub fn classes(files: &Files, document: &mut Document<'_>) -> Result<(), ConfigError> {
    let Some((at, named)) = document.find(&["workload", "mix", "classes"]) else { return Ok(()) };
    if named.get_ref().is_table() {
        let error = document.error(&at, "`workload.mix.classes` names a file of classes, and has no keys");
        return Err(error.help("write workload.mix.class.NAME.KEY for the key KEY of the class NAME"));
    }
    let Some(name) = named.get_ref().as_str() else { return Ok(()) };
    let span = named.span();
    let name = PathBuf::from(name);
    if let Some((at, class)) = document.find(&["workload", "mix", "class"]) {
        // `--set` and sweeps create a table where the list is missing.
        if class.get_ref().is_table() {
            let name = name.display();
            let error = document.error(&at, format!("the classes of this mix are in the file `{name}`"));
            return Err(error
                .label("--set and sweeps change keys of the experiment file only")
                .help("change a copy of that file, and name the copy by workload.mix.classes"));
        }
        let error = document.error(&span, "`workload.mix.classes`: the mix has classes of its own as well");
        return Err(error.help("keep one of `class` and `classes`"));
    }
    let text = read_named(files, document, &span, &name)?;
    let file = text.name.clone();
    let mut read = document.include(text)?;
    FileKind::Classes.expect_in(&read, &file, document, &span)?;
    let classes = read.remove("class");
    if let Some((key, _)) = read.iter().next() {
        return Err(document
            .error(&key.span(), format!("unknown key `{}`", key.get_ref()))
            .help("a file of classes has [[class]] tables and nothing else"));
    }
    let mix = document.root.get_mut("workload").and_then(table_mut).and_then(|all| all.get_mut("mix"));
    let Some(mix) = mix.and_then(table_mut) else { return Ok(()) };
    mix.remove("classes");
    let none = || Spanned::new(span.clone(), DeValue::Array(DeArray::new()));
    put(mix, Spanned::new(span.clone(), "class".into()), classes.unwrap_or_else(none));
    Ok(())
}

/// Reads and checks a preset or a profile file without an experiment.
///
/// # Errors
/// When the profile, or a file it names, cannot be read, does not match [`Interference`], or is inconsistent.
pub fn open_profile(path: &Path) -> Result<Profile, ConfigError> {
    let (files, texts) = (Files::of_disk(), Texts::default());
    presets::hold(&files, path);
    let opened = open::<Interference>(&texts, &files, path, FileKind::Profile);
    let (document, table) = opened.map_err(|error| presets::suggested(error, path))?;
    let folder = document.folder(&(0..0));
    table
        .load(&folder, |path| files.whole(path))
        .map_err(|error| explain::interference(&document, &[], &error))
}

/// Reads a file of a kind without an experiment, with the values of its empirical distributions.
fn open<'t, T: DeserializeOwned>(
    texts: &'t Texts,
    files: &Files,
    path: &Path,
    kind: FileKind,
) -> Result<(Document<'t>, T), ConfigError> {
    let mut document = Document::read(texts, files, path)?;
    kind.expect(&document)?;
    values(files, &mut document)?;
    let table = document.to()?;
    Ok((document, table))
}

/// Adds missing keys to the section, down to the parameters of a process; keys already set are kept.
fn merge<'t>(section: &mut DeTable<'t>, key: Key<'t>, value: Node<'t>) {
    let Some(written) = section.get_mut(&key) else {
        section.insert(key, value);
        return;
    };
    if let (Some(written), DeValue::Table(profile)) = (table_mut(written), value.into_inner()) {
        for (key, parameter) in profile {
            written.entry(key).or_insert(parameter);
        }
    }
}

/// Makes the path of a trace relative to the experiment file.
fn rebase(trace: &mut Node<'_>, folder: &Path) {
    let file = table_mut(trace).and_then(|table| table.get_mut("file")).map(Spanned::get_mut);
    if let Some(DeValue::String(path)) = file {
        *path = folder.join(&**path).display().to_string().into();
    }
}

/// Reads the files of all empirical distributions, and of the edges of a gossip topology, into their values.
///
/// # Errors
/// When a file cannot be read or one of its lines is not a value.
pub fn values(files: &Files, document: &mut Document<'_>) -> Result<(), ConfigError> {
    let mut root = std::mem::take(&mut document.root);
    let done = fill(files, document, &mut root);
    document.root = root;
    done
}

fn fill<'t>(files: &Files, document: &Document<'t>, table: &mut DeTable<'t>) -> Result<(), ConfigError> {
    for (key, value) in table {
        match value.get_mut() {
            DeValue::Table(distribution) if ["empirical", "edges"].contains(&&**key.get_ref()) => {
                load(files, document, distribution)?
            }
            DeValue::Table(inner) => fill(files, document, inner)?,
            DeValue::Array(items) => {
                items.iter_mut().filter_map(table_mut).try_for_each(|inner| fill(files, document, inner))?;
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }
    Ok(())
}

/// Replaces `file` by `values`. A distribution with both is left unchanged and refused later.
fn load<'t>(
    files: &Files,
    document: &Document<'t>,
    distribution: &mut DeTable<'t>,
) -> Result<(), ConfigError> {
    let Some((key, file)) = distribution.get_key_value("file") else { return Ok(()) };
    let (at, span) = (key.span(), file.span());
    let Some(name) = file.get_ref().as_str().filter(|_| !distribution.contains_key("values")) else {
        return Ok(());
    };
    let text = read_named(files, document, &span, Path::new(name))?;
    let mut list = String::new();
    // Spreadsheets write a byte order mark.
    let content = text.text.trim_start_matches('\u{feff}');
    let mut start = text.text.len() - content.len();
    for line in content.split_inclusive('\n') {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.is_empty() {
            let value = as_toml(content).ok_or_else(|| {
                text.error(start..start + line.trim_end().len(), "this line is neither a value of a distribution nor an edge")
                    .help(
                        "write one number per line, with its unit if the distribution has times; or for edges the two members",
                    )
            })?;
            list.push_str(&value);
            list.push(',');
        }
        start += line.len();
    }
    if list.is_empty() {
        return Err(document.error(&span, "the file holds no value").help("write one value per line"));
    }
    let values = document.value(&format!("[{list}]"), 0);
    let mut values = values.map_err(|error| document.error(&span, error.message()))?.into_inner();
    if let DeValue::Array(items) = &mut values {
        // Errors in a value are reported where the file is named.
        items.iter_mut().for_each(|item| *item = Spanned::new(span.clone(), item.get_ref().clone()));
    }
    distribution.remove("file");
    put(distribution, Spanned::new(at, "values".into()), Spanned::new(span, values));
    Ok(())
}

/// A number, a duration or the two members of an edge as TOML. Rust accepts numbers that TOML does not (`1.`, `.5`,
/// `+1`).
fn as_toml(text: &str) -> Option<String> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then(|| format!("{number:?}"));
    }
    if let Some((a, b)) = text.split_once([' ', '\t', ','])
        && let (Ok(a), Ok(b)) = (a.trim().parse::<u32>(), b.trim().parse::<u32>())
    {
        return Some(format!("[{a}, {b}]"));
    }
    text.parse::<Span>().is_ok().then(|| format!("{text:?}"))
}

/// Reads a file that is named at a position; its path is relative to the file that names it.
fn read_named(
    files: &Files,
    document: &Document<'_>,
    span: &Range<usize>,
    name: &Path,
) -> Result<Text, ConfigError> {
    read_text(files, &document.folder(span).join(name)).map_err(|error| located(document, span, error))
}

/// An error about a file, at the position where the file is named.
fn located(document: &Document, span: &Range<usize>, error: ConfigError) -> ConfigError {
    let ConfigError::Read { path, why, help } = error else { return error };
    document.error(span, format!("cannot read {}: {why}", path.display())).help(help)
}

/// A kind of TOML file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileKind {
    Experiment,
    Topology,
    Profile,
    Classes,
}

impl FileKind {
    /// The kind, from keys that only one kind has; `None` if there are none.
    fn of(table: &DeTable<'_>) -> Option<Self> {
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        match () {
            () if has(&["workload", "cluster", "policy"]) => Some(Self::Experiment),
            () if has(&["shape"]) => Some(Self::Topology),
            () if has(&["bernoulli", "markov", "renewal", "scripted", "trace"]) => Some(Self::Profile),
            () if has(&["class"]) => Some(Self::Classes),
            () => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Experiment => "an experiment",
            Self::Topology => "a topology",
            Self::Profile => "an interference profile",
            Self::Classes => "a file of classes of jobs",
        }
    }

    /// The text about the commands that accept a file of this kind.
    fn remedy(self, file: &str) -> String {
        let (show, key) = match self {
            Self::Experiment => return format!("`volary run {file}` runs it, `volary plan {file}` shows it"),
            Self::Topology => ("topology", "[cluster] topology"),
            Self::Profile => ("profile", "[interference] profile"),
            Self::Classes => {
                return format!("an experiment uses it with [workload.mix] classes = \"{file}\"");
            }
        };
        format!("`volary {show} show {file}` shows it; an experiment uses it with {key} = \"{file}\"")
    }

    /// Refuses a document that is clearly of another kind.
    pub(super) fn expect(self, document: &Document<'_>) -> Result<(), ConfigError> {
        let first = entries(&document.root).first().map_or(0..0, |(key, _)| key.span());
        self.expect_in(&document.root, document.name(), document, &first)
    }

    /// Refuses a table of another file that is clearly of another kind; `span` is the place that names the file.
    fn expect_in(
        self,
        table: &DeTable<'_>,
        file: &str,
        document: &Document<'_>,
        span: &Range<usize>,
    ) -> Result<(), ConfigError> {
        let Some(kind) = Self::of(table).filter(|kind| *kind != self) else { return Ok(()) };
        let message = format!("{file} is {}, not {}", kind.name(), self.name());
        Err(document.error(span, message).help(kind.remedy(file)))
    }
}

/// Resolves `[cluster]` and reads its topology.
pub(super) fn resolve(
    files: &Files,
    document: &Document<'_>,
    section: &ClusterSection,
    service: &Service,
    seed: u64,
) -> Result<Cluster, ConfigError> {
    section.check().map_err(|error| explain::key(document, &error))?;
    let texts = Texts::default();
    let topology = read_topology(&texts, files, document)?;
    let (file, topology) = topology.unzip();
    Cluster::new(section, topology, service, seed).map_err(|error| match error {
        ClusterError::Key(error) => explain::key(document, &error),
        ClusterError::Topology(error) => explain::netem(file.as_ref().unwrap_or(document), &error),
    })
}

/// Reports a conflict between `[network]` and the links of a topology in the file that contains the key.
pub(super) fn refused(files: &Files, document: &Document<'_>, error: &volary_netem::Error) -> ConfigError {
    match read_topology(&Texts::default(), files, document) {
        Ok(Some((topology, _))) if !error.key.starts_with("network") => explain::netem(&topology, error),
        Ok(_) => explain::netem(document, error),
        Err(unreadable) => unreadable,
    }
}

/// The topology file with its document; `None` if none is named. The path is relative to the file that contains it.
fn read_topology<'t>(
    texts: &'t Texts,
    files: &Files,
    document: &Document<'_>,
) -> Result<Option<(Document<'t>, TopologyFile)>, ConfigError> {
    let Some((_, node)) = document.find(&["cluster", "topology"]) else { return Ok(None) };
    let span = node.span();
    let path = document.folder(&span).join(node.get_ref().as_str().unwrap_or_default());
    let mut file = Document::read(texts, files, &path).map_err(|error| located(document, &span, error))?;
    FileKind::Topology.expect_in(&file.root, file.name(), document, &span)?;
    values(files, &mut file)?;
    let topology = file.to()?;
    Ok(Some((file, topology)))
}

/// Reads and resolves a topology file without an experiment.
///
/// # Errors
/// When it cannot be read, parsed or built.
pub fn topology(path: &Path, seed: u64) -> Result<Topology, ConfigError> {
    let (files, texts) = (Files::of_disk(), Texts::default());
    let (document, file) = open::<TopologyFile>(&texts, &files, path, FileKind::Topology)?;
    file.resolve(seed).map_err(|error| explain::netem(&document, &error))
}
