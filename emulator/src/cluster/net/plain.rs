//! Words of others, before anybody is shown them: a stranger's must not steer the terminal they are printed on.

use serde::{Deserialize, Deserializer};

/// Stands for what is not shown.
const HIDDEN: char = char::REPLACEMENT_CHARACTER;

/// `words` on one line, without what would steer a terminal or turn the order of letters around.
#[must_use]
pub fn plain(words: &str) -> String {
    words.chars().map(|c| if steers(c) { HIDDEN } else { c }).collect()
}

/// As [`plain`], for text whose lines and tabs are meant.
#[must_use]
pub fn plain_text(text: &str) -> String {
    text.chars().map(|c| if steers(c) && c != '\n' && c != '\t' { HIDDEN } else { c }).collect()
}

/// Control characters (C0, DEL, C1), separators of lines, and marks of direction (Unicode, annex 9).
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Reads a string of a peer as [`plain`] words.
pub fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(plain(&String::deserialize(deserializer)?))
}

/// Reads a string of a peer as [`plain_text`].
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(plain_text(&String::deserialize(deserializer)?))
}

/// Reads strings of a peer as [`plain`] words.
pub fn list<'de, D: Deserializer<'de>, C: FromIterator<String>>(deserializer: D) -> Result<C, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.iter().map(|words| plain(words)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_steers_is_hidden() {
        let harmless = "no answer: Grüße, 2 µs – \u{65e5}\u{672c} \u{5e9}\u{5dc}";
        assert_eq!(plain(harmless), harmless);
        let steering = "\u{1b}]0;t\u{7} \u{9b}2J \r\n \u{202e}gpj.exe \u{2066}a\u{2028}";
        assert_eq!(
            plain(steering),
            "\u{fffd}]0;t\u{fffd} \u{fffd}2J \u{fffd}\u{fffd} \u{fffd}gpj.exe \u{fffd}a\u{fffd}"
        );
        assert_eq!(plain_text("a\tb\n\u{1b}[2J\r\n"), "a\tb\n\u{fffd}[2J\u{fffd}\n");
    }
}
