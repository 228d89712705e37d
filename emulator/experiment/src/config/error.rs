//! Errors in an input, with their position and a remedy.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// An error in an experiment, or in a file that it names.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {why}\n  = help: {help}", path.display())]
    Read { path: PathBuf, why: io::Error, help: String },
    /// An error at a position in a file, or in a `--set`.
    #[error("{0}")]
    At(Box<Diagnostic>),
    /// An error in an option of the command line.
    #[error("{option}: {message}\n  = help: {help}")]
    Option {
        /// Name of the option, such as `--policy`.
        option: &'static str,
        message: String,
        help: String,
    },
}

impl ConfigError {
    /// Adds a remedy to an error with a position; other kinds already have one.
    pub fn help(self, help: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.help.push(clipped(help.into())))
    }

    /// Sets the label beside the caret: the expected value.
    pub fn label(self, label: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.label = clipped(label.into()))
    }

    /// Adds the cell of the sweep in which the error occurs.
    pub fn note(self, note: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.notes.push(note.into()))
    }

    fn with(mut self, change: impl FnOnce(&mut Diagnostic)) -> Self {
        if let Self::At(diagnostic) = &mut self {
            change(diagnostic);
        }
        self
    }
}

/// An error with its position; shown with an excerpt and a caret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    message: String,
    /// File, or `--set`.
    origin: String,
    /// Number of the line, from 1.
    line: usize,
    /// The text of the line.
    excerpt: String,
    /// Range of bytes of the line that the caret marks.
    span: Range<usize>,
    /// The value that is expected at the span; may be empty.
    label: String,
    notes: Vec<String>,
    help: Vec<String>,
}

/// Limit on the characters of a message, and of the text above a caret, since both may repeat a whole line of the
/// input.
const LONGEST: usize = 500;

/// A text cut to [`LONGEST`] characters.
fn clipped(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = Some(self.label.as_str()).filter(|label| !label.is_empty());
        let caret = AnnotationKind::Primary.span(self.span.clone()).label(label);
        let place = Snippet::source(&self.excerpt).line_start(self.line).path(&self.origin).annotation(caret);
        // The command line adds "error".
        let report = Level::ERROR.no_name().primary_title(&self.message).element(place);
        let notes = self.notes.iter().map(|note| Level::NOTE.message(note));
        let help = self.help.iter().map(|help| Level::HELP.message(help));
        f.write_str(&Renderer::plain().render(&[report.elements(notes.chain(help))]))
    }
}

/// A named text that error positions refer to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// File name, or `--set`.
    pub name: String,
    pub text: String,
    /// Folder to which paths in the text are relative; `None` for the experiment file's folder.
    pub folder: Option<PathBuf>,
}

impl Text {
    /// An error at a byte range of this text.
    pub fn error(&self, range: Range<usize>, message: impl Into<String>) -> ConfigError {
        let floor = |at: usize| (0..=at.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i));
        let start = floor(range.start).unwrap_or(0);
        let end = floor(range.end.min(start + LONGEST)).unwrap_or(start).max(start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |i| start + i);
        ConfigError::At(Box::new(Diagnostic {
            message: clipped(message.into()),
            origin: self.name.clone(),
            line: self.text[..start].matches('\n').count() + 1,
            excerpt: self.text[line_start..line_end].trim_end_matches('\r').to_owned(),
            span: start - line_start..end.min(line_end) - line_start,
            label: String::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }))
    }
}

/// Similarity above which a name may be a misspelling of another, from 0 to 1.
const SIMILAR: f64 = 0.75;

/// The most similar candidate; `None` if no candidate is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (similarity(word, candidate), candidate))
        .filter(|(score, _)| *score > SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The similarity of two names, from 0 to 1. Jaro's similarity is low for short names; therefore names that differ by
/// one edit, or by one swap of neighbours such as `rnu` for `run`, are similar too.
fn similarity(word: &str, candidate: &str) -> f64 {
    let [word, candidate] = [word, candidate].map(|name| name.to_lowercase().replace(['_', '-'], ""));
    let jaro = strsim::jaro_winkler(&word, &candidate);
    let one_edit = word.chars().count() > 2 && strsim::osa_distance(&word, &candidate) == 1;
    if one_edit { jaro.max(SIMILAR + 0.01) } else { jaro }
}

/// The remedy for an unknown name: the most similar known name; `None` if no known name is similar enough.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// A list of at most a dozen names in words: "`a`, `b` or `c`".
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] if names.len() <= 12 => format!("{} or {last}", most.join(", ")),
        _ => format!("{} and {} more", names[..12].join(", "), names.len() - 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_errors_are_counted_in_characters() {
        let text = Text { name: "x.toml".into(), text: "a = 1\nµ = \"ü\" # ß\nlast".into(), folder: None };
        let at = text.text.find("\"ü\"").unwrap();
        let shown = text.error(at..at + 4, "bad").to_string();
        assert!(shown.contains("x.toml:2:5") && shown.contains("| µ = \"ü\" # ß\n  |     ^^^"), "{shown}");
        let past = text.error(1000..2000, "end").to_string();
        assert!(past.contains("x.toml:3:"), "{past}");
        // A range that begins inside a character must not panic.
        let inside = text.text.find('ü').unwrap() + 1;
        assert!(text.error(inside..inside, "x").to_string().contains("x.toml:2:6"));
    }

    #[test]
    fn the_error_for_a_long_line_is_cut() {
        let word = "x".repeat(1 << 20);
        let text = Text { name: "x.toml".into(), text: format!("key = {word}"), folder: None };
        let shown = text.error(6..text.text.len(), format!("unknown `{word}`")).help(&*word).to_string();
        assert!(shown.contains("x.toml:1:7") && shown.len() < 8 * LONGEST, "{} bytes", shown.len());
    }

    #[test]
    fn the_nearest_name_ignores_separators() {
        assert_eq!(nearest("latin_square", ["latin-square", "sparrow"]), Some("latin-square"));
        assert_eq!(nearest("sparow", ["latin-square", "sparrow"]), Some("sparrow"));
        assert_eq!(nearest("xyz", ["latin-square", "sparrow"]), None);
        assert_eq!(nearest("rnu", ["plan", "run"]), Some("run"), "neighbours may be swapped");
        assert_eq!(nearest("xy", ["yx"]), None, "an edit is half of a name of two letters");
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
