//! The style of text for people: its colours and width.

use std::collections::BTreeSet;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::columns::PickedColumn;

/// The style in which results are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableStyle {
    /// Whether verdicts have colours.
    pub coloured: bool,
    /// Limit on the characters of a line; `None` for no limit.
    pub width: Option<usize>,
    /// The requested columns; empty for the informative columns that fit.
    pub columns: Vec<PickedColumn>,
}

impl TableStyle {
    /// The error for columns of classes that are not `known`; `None` if there are no such columns.
    pub fn unknown_classes(&self, known: &BTreeSet<&str>) -> Option<String> {
        let asked = self.columns.iter().filter_map(|picked| picked.class.as_deref());
        let unknown: BTreeSet<&str> = asked.filter(|class| !known.contains(class)).collect();
        let joined = |classes: &BTreeSet<&str>| classes.iter().copied().collect::<Vec<_>>().join(", ");
        let there =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", joined(known)) };
        (!unknown.is_empty())
            .then(|| format!("--columns: the run has no class {}; {there}", joined(&unknown)))
    }
}

/// Breaks a line between words to fit `width` columns; further lines begin with `hang` spaces. A word longer than the
/// width stays whole.
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

/// Breaks the lines of a text between words to fit `width` columns. Rows of tables with borders stay whole.
pub fn folded(text: &str, width: Option<usize>) -> String {
    let Some(most) = width else { return text.to_owned() };
    let is_row = |line: &str| line.starts_with(['┌', '│', '╞', '├', '└']);
    let fold = |line| if is_row(line) { line.to_owned() } else { wrapped(line, width, hang(line, most)) };
    text.lines().map(fold).collect::<Vec<_>>().join("\n")
}

/// The column at which continuation lines begin: the line's second column. If that column is in the right half or
/// missing, it is two more than the line's indent.
fn hang(line: &str, width: usize) -> usize {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let own = &line[indent..];
    let second = own.find("  ").map(|gap| {
        let rest = &own[gap..];
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        indent + own[..gap].chars().count() + spaces
    });
    second.filter(|column| *column <= width / 2).unwrap_or_else(|| (indent + 2).min(width / 2))
}

/// The text in tables for a value that was not measured.
pub fn missing() -> String {
    "–".to_owned()
}

/// A table whose first column is left-aligned and whose other columns are right-aligned.
pub fn text_table<H: Into<String>>(
    header: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
    for row in rows {
        let alignment = |i| if i == 0 { CellAlignment::Left } else { CellAlignment::Right };
        table.add_row(
            row.into_iter().enumerate().map(|(i, text)| Cell::new(text).set_alignment(alignment(i))),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_begin_at_the_second_column() {
        assert_eq!(folded("key  one two three\nend", Some(12)), "key  one two\n     three\nend");
        assert_eq!(folded("a long key  one two", Some(12)), "a long key \n  one two");
        assert_eq!(folded("│ one two three │", Some(6)), "│ one two three │");
        assert_eq!(folded("one two three", None), "one two three");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("a bc  def", Some(20), 2), "a bc  def");
        assert_eq!(wrapped("a bc def", None, 2), "a bc def");
        assert_eq!(wrapped("  one two three", Some(9), 4), "  one two\n    three");
        assert_eq!(wrapped("unbreakable word", Some(5), 1), "unbreakable\n word");
    }
}
