//! Safe forms of foreign text: names in experiments, study directories and messages of peers may hold characters that a
//! terminal or a browser obeys instead of showing them.
//!
//! These are control characters, the bidirectional controls of Unicode (UAX #9), which reorder what follows, the
//! separators of lines and paragraphs, and the other invisible characters of `Default_Ignorable_Code_Point`. Joiners
//! (U+200C, U+200D) and variation selectors stay: scripts and emoji need them.

use std::borrow::Cow;
use std::io::{self, Write};

/// The character shown in place of a hidden character.
const REPLACEMENT: char = '\u{fffd}';
const ESCAPE: char = '\u{1b}';

/// Whether a terminal or browser would obey the character instead of showing it, or the character is invisible. False
/// for line breaks and tabs.
pub(crate) fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    let format = matches!(
        c,
        // Soft hyphen, grapheme joiner, Arabic letter mark, fillers of Hangul, vowels of Khmer, Mongolian separator.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        // Space of no width, marks of direction; separators, embeddings and overrides; operators and isolates.
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Fillers of Hangul, the byte order mark, annotations; controls of shorthand and of music, tags.
        | '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    );
    format || c.is_control()
}

/// Makes a text safe in a page or picture. HTML and XML allow no control characters, not even escaped.
pub fn document(text: String) -> String {
    match replaced(&text, is_hidden) {
        Cow::Owned(replaced) => replaced,
        Cow::Borrowed(_) => text,
    }
}

/// Makes a text safe on one line: line breaks and tabs are replaced too.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) || c.is_control())
}

/// Makes a text safe for a terminal. Colours stay.
pub fn terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(ESCAPE).enumerate() {
        out.extend((at > 0).then(|| if begins_colour(part) { ESCAPE } else { REPLACEMENT }));
        out.push_str(&replaced(part, is_hidden));
    }
    out.into()
}

/// Whether the text after an escape character selects colours or weight: `[`, numbers except 8, `m`.
fn begins_colour(rest: &str) -> bool {
    let numbers = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    numbers.is_some_and(|(numbers, _)| {
        let is_shown = |number: &str| number.parse() != Ok(8) && number.bytes().all(|b| b.is_ascii_digit());
        numbers.split(';').all(is_shown)
    })
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if text.contains(hidden) {
        text.replace(hidden, REPLACEMENT.encode_utf8(&mut [0; 4])).into()
    } else {
        text.into()
    }
}

/// A writer to a terminal that passes each whole text through [`terminal`].
#[derive(Debug)]
pub struct TerminalWriter<W>(pub W);

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(terminal(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An event of the log as one line, without control characters of terminals.
pub fn one_line(written: &[u8]) -> String {
    let text = String::from_utf8_lossy(written);
    let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
    format!("{}{end}", line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        for hidden in [
            "\u{0}",
            "\u{7f}",
            "\u{9b}",
            "\u{61c}",
            "\u{200b}",
            "\u{200f}",
            "\u{2029}",
            "\u{feff}",
            "\u{e0041}",
        ] {
            assert_eq!(document(format!("a{hidden}b")), "a\u{fffd}b", "{hidden:?}");
        }
        for direction in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            let text = format!("spar{direction}row");
            assert_eq!([&document(text.clone()), &*line(&text), &*terminal(&text)], ["spar\u{fffd}row"; 3]);
        }
        let plain = "12\u{202f}ms\tלטין, می‌خواهم ❤️\n";
        assert_eq!((document(plain.to_owned()), terminal(plain)), (plain.to_owned(), plain.into()));
        assert_eq!(line("a\r\nb\t"), "a\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_terminal_keeps_colours_only() {
        let mut out = TerminalWriter(Vec::new());
        out.write_all(b"\x1b[1;32mgood\x1b[0m \x1b[2J \x1b]0;title\x07 \x1b[12 \x1b").unwrap();
        let expected = "\u{1b}[1;32mgood\u{1b}[0m \u{fffd}[2J \u{fffd}]0;title\u{fffd} \u{fffd}[12 \u{fffd}";
        assert_eq!(String::from_utf8(out.0).unwrap(), expected);
    }
}
