//! What is wrong with an input, where, and what to do about it.

use std::fmt::{self, Write as _};
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Why an experiment, or a file it names, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {why}\n  = help: {help}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
        /// What to do.
        help: String,
    },
    /// Something is wrong at a place in a file, or in a `--set`.
    #[error("{0}")]
    At(Box<Diagnostic>),
    /// Something is wrong with an option of the command line.
    #[error("{option}: {message}\n  = help: {help}")]
    Option {
        /// The option, such as `--policy`.
        option: &'static str,
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    },
}

impl ConfigError {
    /// Adds a remedy to a located error; other kinds carry theirs already.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::At(diagnostic) = &mut self {
            diagnostic.help.push(help.into());
        }
        self
    }

    /// Says beside the caret what was expected there.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        if let Self::At(diagnostic) = &mut self {
            diagnostic.label = label.into();
        }
        self
    }

    /// Adds that the error shows in a cell of the sweep.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        match self {
            Self::At(mut diagnostic) => {
                diagnostic.notes.push(note.into());
                Self::At(diagnostic)
            }
            other @ (Self::Read { .. } | Self::Option { .. }) => other,
        }
    }
}

/// An error with its place; shown with an excerpt and a caret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    message: String,
    /// File, or `--set`.
    origin: String,
    /// Number of the line, from one.
    line: usize,
    /// The text of the line.
    excerpt: String,
    /// Bytes of the line that the caret spans.
    span: Range<usize>,
    /// What was expected there; may be empty.
    label: String,
    notes: Vec<String>,
    help: Vec<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = Some(self.label.as_str()).filter(|label| !label.is_empty());
        let caret = AnnotationKind::Primary.span(self.span.clone()).label(label);
        let place = Snippet::source(&self.excerpt).line_start(self.line).path(&self.origin).annotation(caret);
        // The command line says that it is an error.
        let report = Level::ERROR.no_name().primary_title(&self.message).element(place);
        let notes = self.notes.iter().map(|note| Level::NOTE.message(note));
        let help = self.help.iter().map(|help| Level::HELP.message(help));
        f.write_str(&Renderer::plain().render(&[report.elements(notes.chain(help))]))
    }
}

/// A named text that errors point into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// File name, or `--set`.
    pub name: String,
    /// All of it.
    pub text: String,
    /// What paths in it are relative to; absent: the experiment file's folder.
    pub folder: Option<PathBuf>,
}

impl Text {
    /// An error at a byte range of this text.
    #[must_use]
    pub fn error(&self, range: Range<usize>, message: impl Into<String>) -> ConfigError {
        let floor = |at: usize| (0..=at.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i));
        let start = floor(range.start).unwrap_or(0);
        let end = floor(range.end).unwrap_or(start).max(start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |i| start + i);
        ConfigError::At(Box::new(Diagnostic {
            message: message.into(),
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

/// The candidate that `word` was probably meant to be.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['_', '-'], "");
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&plain(word), &plain(candidate)), candidate))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// "`a`, `b` or `c`", cut after a dozen.
#[must_use]
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.len().min(12);
    let mut out = String::new();
    for (i, name) in names[..shown].iter().enumerate() {
        let join = match i {
            0 => "",
            i if i + 1 == names.len() => " or ",
            _ => ", ",
        };
        let _ = write!(out, "{join}`{name}`");
    }
    if names.len() > shown {
        let _ = write!(out, " and {} more", names.len() - shown);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
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
    fn rendering_points_at_the_key() {
        let text = Text { name: "e.toml".into(), text: "[service]\ncorelated = true\n".into(), folder: None };
        let error = text.error(10..19, "unknown key `corelated`").help("did you mean `correlated`?");
        assert_eq!(
            error.to_string(),
            "unknown key `corelated`\n --> e.toml:2:1\n  |\n2 | corelated = true\n  | ^^^^^^^^^\n  |\n  = help: did \
             you mean `correlated`?"
        );
    }

    #[test]
    fn the_nearest_name_ignores_separators() {
        assert_eq!(nearest("latin_square", ["latin-square", "sparrow"]), Some("latin-square"));
        assert_eq!(nearest("sparow", ["latin-square", "sparrow"]), Some("sparrow"));
        assert_eq!(nearest("xyz", ["latin-square", "sparrow"]), None);
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
