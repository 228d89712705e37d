//! The width of text, from the advance widths of the font that figures are set in.

/// Size of text in px.
pub(super) const SIZE: f64 = 12.0;

/// Advance widths of the characters from space to `~` in thousandths of the size: those of Helvetica, which Arial,
/// Liberation Sans and Arimo share.
const ADVANCES: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Thousandths of a character that the table lacks: a wide Latin letter, or a square sign.
const fn other(c: char) -> u16 {
    match c {
        '\u{202f}' => 200,
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{ff00}'..='\u{ffef}' | '\u{1f000}'.. => 1_000,
        _ => 600,
    }
}

/// Width of a line of text in px.
pub(super) fn width(text: &str) -> f64 {
    let advance = |c: char| {
        let at = (c as usize).checked_sub(' ' as usize);
        f64::from(at.and_then(|at| ADVANCES.get(at)).copied().unwrap_or_else(|| other(c)))
    };
    text.chars().map(advance).sum::<f64>() * SIZE / 1_000.0
}

/// Maximum factor between the widths of bold and regular text, for text of words.
pub(super) const BOLD: f64 = 1.12;

/// The text cut in the middle, so that it is at most `most` px wide.
pub(super) fn fitted(text: &str, most: f64) -> String {
    let mut size = text.chars().count();
    let mut cut = text.to_owned();
    while size > 3 && width(&cut) > most {
        size -= 1;
        cut = volary_experiment::number::elided(text, size);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_wide_as_its_characters() {
        assert!((width("Hi ") - 12.0 * (0.722 + 0.222 + 0.278)).abs() < 1e-9);
        assert!((width("~é日") - 12.0 * (0.584 + 0.6 + 1.0)).abs() < 1e-9);
        let cut = fitted("a policy with a long label", 80.0);
        assert!(width(&cut) <= 80.0 && width(&cut) > 70.0 && cut.contains('…'), "{cut}");
        assert_eq!(fitted("short", 80.0), "short");
    }
}
