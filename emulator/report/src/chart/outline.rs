//! Outlines of text, for formats that are read where the font of figures is not installed.

use std::fmt::Write;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// A font with the widths of Helvetica (SIL Open Font License 1.1, see `fonts/OFL.txt`), reduced to Latin, Greek,
/// Cyrillic and signs.
const REGULAR: &[u8] = include_bytes!("fonts/Arimo-Regular.ttf");
const BOLD: &[u8] = include_bytes!("fonts/Arimo-Bold.ttf");

/// Path data of a line of text that begins at the origin, and its width in px. Characters that the font lacks are
/// boxes.
pub(super) fn outline(text: &str, size: f64, bold: bool) -> (String, f64) {
    let mut pen = Pen::default();
    // The fonts are part of the program, and tested.
    let Ok(face) = Face::parse(if bold { BOLD } else { REGULAR }, 0) else { return Default::default() };
    pen.scale = size / f64::from(face.units_per_em());
    for c in text.chars() {
        let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
        face.outline_glyph(glyph, &mut pen);
        pen.x += f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * pen.scale;
    }
    (pen.data, pen.x)
}

/// Writes the outlines of glyphs one behind the other.
#[derive(Default)]
struct Pen {
    data: String,
    scale: f64,
    x: f64,
}

impl Pen {
    fn command(&mut self, name: char, points: &[(f32, f32)]) {
        self.data.push(name);
        for (x, y) in points {
            let (x, y) = (self.x + f64::from(*x) * self.scale, -f64::from(*y) * self.scale);
            let _ = write!(self.data, "{x:.2} {y:.2} ");
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.command('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.command('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.command('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.command('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.data.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::text::{BOLD, SIZE, width};

    #[test]
    fn outlines_are_as_wide_as_texts_are_taken_to_be() {
        let ascii: String = (' '..='~').collect();
        for text in [ascii.as_str(), "31.9\u{202f}ms"] {
            assert!((outline(text, SIZE, false).1 - width(text)).abs() < 0.05, "{text}");
        }
        assert!(
            outline(&ascii, SIZE, true).1 < BOLD * width(&ascii),
            "titles are fitted with that much room"
        );
        let (line, _) = outline("l", 10.0, false);
        assert!(line.starts_with('M') && line.ends_with('Z') && line.contains(" -7."), "upright: {line}");
        assert_eq!(outline(" ", 10.0, false).0, "");
    }

    #[test]
    fn the_signs_of_reports_have_glyphs() {
        let face = Face::parse(REGULAR, 0).unwrap();
        for c in "×µ±≤≥–−…≈→²äéßΩλЖ".chars() {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
    }
}
