//! The style of text for people: its colours and its width.

use super::columns::PickedColumn;

/// Whether verdicts may use colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// Colours and bold for a terminal.
    Terminal,
    /// Without colours.
    #[default]
    Plain,
}

/// How the results are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableStyle {
    pub style: Style,
    /// Characters of a line; `None` for as many as it takes.
    pub width: Option<usize>,
    /// The columns that were asked for; empty for those that are worth it and fit.
    pub columns: Vec<PickedColumn>,
}

/// Breaks a line between words so that it fits `width` columns; further lines begin with `hang` spaces. A word that is
/// longer stays whole.
pub(super) fn wrapped(line: &str, width: Option<usize>, hang: usize) -> String {
    let Some(width) = width.filter(|width| line.chars().count() > *width) else { return line.to_owned() };
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let mut out = " ".repeat(indent);
    let mut used = indent;
    let mut first = true;
    for word in line.trim_start().split(' ') {
        let size = word.chars().count();
        if !first && used + 1 + size > width {
            out.push('\n');
            out.push_str(&" ".repeat(hang));
            used = hang;
        } else if !first {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += size;
        first = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("a bc  def", Some(20), 2), "a bc  def");
        assert_eq!(wrapped("a bc def", None, 2), "a bc def");
        assert_eq!(wrapped("  one two three", Some(9), 4), "  one two\n    three");
        assert_eq!(wrapped("unbreakable word", Some(5), 1), "unbreakable\n word");
    }
}
