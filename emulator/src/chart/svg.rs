//! A small SVG writer: elements with attributes, with all text escaped.

use std::fmt::{Display, Write};

/// Escapes text for element content and attribute values of HTML, SVG and XML; control characters become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// An SVG picture under construction.
#[derive(Debug)]
pub struct Svg {
    text: String,
}

/// Horizontal alignment of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The text is centred at the position.
    Middle,
    /// The text ends at the position.
    End,
}

impl Svg {
    /// A picture of this size in px, with a name for screen readers. It shrinks with its container and never grows.
    #[must_use]
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let (w, h, label) = (px(width), px(height), escape(label));
        let text = format!(
            "<svg class=\"chart\" role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">"
        );
        Self { text }
    }

    /// Begins a group with these classes.
    pub fn open(&mut self, class: &str) {
        let _ = write!(self.text, "<g class=\"{}\">", escape(class));
    }

    /// Ends the innermost group.
    pub fn close(&mut self) {
        self.text.push_str("</g>");
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
        let _ =
            write!(self.text, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    /// A rectangle with a tooltip, which is left out if `title` is empty.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        self.rect_with(class, (x, y), (width, height), "", title);
    }

    /// A rectangle with further attributes, given as text that needs no escaping.
    pub fn rect_with(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        attributes: &str,
        title: &str,
    ) {
        let (x, y, width, height) = (px(x), px(y), px(width.max(0.0)), px(height.max(0.0)));
        let space = if attributes.is_empty() { "" } else { " " };
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{space}{attributes}"
        );
        self.end("rect", title);
    }

    /// A dot with a tooltip.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
        let (x, y, radius) = (px(x), px(y), px(radius));
        let _ = write!(self.text, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"");
        self.end("circle", title);
    }

    /// A path through points, open or closed; points closer than a third of a pixel to the previous one are left out.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool, title: &str) {
        let _ = write!(
            self.text,
            "<path class=\"{class}\" d=\"{}{}\"",
            data(points),
            if closed { "Z" } else { "" }
        );
        self.end("path", title);
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (px(x), px(y), escape(text));
        let _ = write!(self.text, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>");
    }

    /// Centred text, rotated by 90 degrees to read upwards.
    pub fn upright(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y, text) = (px(x), px(y), escape(text));
        let _ = write!(
            self.text,
            "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\">{text}</text>"
        );
    }

    fn end(&mut self, tag: &str, title: &str) {
        if title.is_empty() {
            self.text.push_str("/>");
        } else {
            let _ = write!(self.text, "><title>{}</title></{tag}>", escape(title));
        }
    }

    /// The complete SVG text.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// A coordinate to a tenth of a pixel, without trailing zeros.
pub(super) fn px(value: f64) -> impl Display {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    tenths + 0.0 // −0 prints as 0
}

/// Path data: the first point is absolute, the others relative to the previous one, in tenths of a pixel without
/// accumulated rounding errors.
fn data(points: &[(f64, f64)]) -> String {
    let mut out = String::with_capacity(8 * points.len());
    let tenth = |value: f64| (value * 10.0).round() as i64;
    let mut last: Option<(i64, i64)> = None;
    for (i, &(x, y)) in points.iter().enumerate() {
        let at = (tenth(x), tenth(y));
        let Some(before) = last else {
            let _ = write!(out, "M{} {}", px(x), px(y));
            last = Some(at);
            continue;
        };
        let (dx, dy) = (at.0 - before.0, at.1 - before.1);
        if i + 1 < points.len() && dx.abs() <= 3 && dy.abs() <= 3 {
            continue;
        }
        let command = if out.contains('l') { ' ' } else { 'l' };
        let _ = write!(out, "{command}{} {}", px(dx as f64 / 10.0), px(dy as f64 / 10.0));
        last = Some(at);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0, "<script>\"");
        svg.text("t", (1.0, 2.0), Anchor::End, "a<b & 'c'\u{1b}");
        svg.rect("r", (0.0, 0.0), (1.0, -1.0), "</title><script>");
        let text = svg.finish();
        assert!(!text.contains("<script>") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("a&lt;b &amp; &#39;c&#39; </text>"), "{text}");
        assert!(text.contains("height=\"0\""), "no negative size: {text}");
    }

    #[test]
    fn paths_drop_what_no_eye_sees_and_end_where_they_should() {
        let points: Vec<(f64, f64)> = (0..=1_000).map(|i| (f64::from(i) * 0.1, 5.0)).collect();
        let path = data(&points);
        assert!(path.starts_with("M0 5l"), "{path}");
        assert!(path.matches(' ').count() < 600, "{path}");
        let moved: f64 = path[5..].split(' ').step_by(2).map(|dx| dx.parse::<f64>().unwrap()).sum();
        assert!((moved - 100.0).abs() < 1e-9, "{moved}");
    }
}
