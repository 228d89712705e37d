//! SVG elements as markup, with all text escaped.

use std::fmt::Write;

use maud::{Markup, html};

/// A position or a size in px.
pub type Point = (f64, f64);

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

/// A picture with a name for screen readers. It shrinks with its container and never grows.
pub fn picture((width, height): Point, label: &str, content: Markup) -> Markup {
    let (width, height) = (px(width), px(height));
    html! {
        svg class="chart" role="img" aria-label=(label) viewBox={"0 0 " (width) " " (height)}
            width=(width) height=(height) { (content) }
    }
}

/// A straight line.
pub(super) fn line(class: &str, from: Point, to: Point) -> Markup {
    html! { line class=(class) x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1)) {} }
}

/// A rectangle, with a tooltip unless `title` is empty.
pub(super) fn rect(class: &str, at: Point, size: Point, opacity: Option<f64>, title: &str) -> Markup {
    let opacity = opacity.map(|opacity| format!("{opacity:.2}"));
    html! {
        rect class=(class) x=(px(at.0)) y=(px(at.1)) width=(px(size.0.max(0.0))) height=(px(size.1.max(0.0)))
            fill-opacity=[opacity] { (tooltip(title)) }
    }
}

/// A dot with a tooltip.
pub(super) fn dot(class: &str, at: Point, title: &str) -> Markup {
    html! { circle class=(class) cx=(px(at.0)) cy=(px(at.1)) r="4" { (tooltip(title)) } }
}

/// A path through points, open or closed; points closer than a third of a pixel to the previous one are left out.
pub(super) fn path(class: &str, points: &[Point], closed: bool, title: &str) -> Markup {
    html! { path class=(class) d={ (data(points)) @if closed { "Z" } } { (tooltip(title)) } }
}

fn tooltip(title: &str) -> Markup {
    html! { @if !title.is_empty() { title { (title) } } }
}

pub(super) fn text(class: &str, at: Point, anchor: Anchor, text: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    html! { text class=(class) x=(px(at.0)) y=(px(at.1)) text-anchor=[anchor] { (text) } }
}

/// Centred text, rotated by 90 degrees to read upwards.
pub(super) fn upright(at: Point, text: &str) -> Markup {
    let place = format!("translate({} {}) rotate(-90)", px(at.0), px(at.1));
    html! { text class="" transform=(place) text-anchor="middle" { (text) } }
}

/// A coordinate to a tenth of a pixel, which prints without trailing zeros.
fn px(value: f64) -> f64 {
    let tenths = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    tenths + 0.0 // −0 prints as 0
}

/// Path data: the first point is absolute, the others relative to the previous one, in tenths of a pixel without
/// accumulated rounding errors.
fn data(points: &[Point]) -> String {
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
    fn paths_drop_what_no_eye_sees_and_end_where_they_should() {
        let points: Vec<Point> = (0..=1_000).map(|i| (f64::from(i) * 0.1, 5.0)).collect();
        let path = data(&points);
        assert!(path.starts_with("M0 5l"), "{path}");
        assert!(path.matches(' ').count() < 600, "{path}");
        let moved: f64 = path[5..].split(' ').step_by(2).map(|dx| dx.parse::<f64>().unwrap()).sum();
        assert!((moved - 100.0).abs() < 1e-9, "{moved}");
        let flat = rect("r", (0.0, 0.0), (1.0, -1.0), None, "").into_string();
        assert!(flat.contains("height=\"0\""), "no negative size: {flat}");
    }
}
