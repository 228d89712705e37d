//! The frame that all charts share: the title, the axis below, and the legend.

use maud::{Markup, html};

use super::scale::{Scale, TickUnit};
use super::svg::{Anchor, Point, line, path, picture, rect, text};

/// Height of a row of the legend.
const LEGEND_ROW: f64 = 18.0;

/// A chart's frame: the edges of its drawing area in px.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// An entry of a legend.
pub(super) struct LegendEntry<'a> {
    /// Classes of the entry, which set its colour.
    pub(super) class: String,
    /// Class of its mark: `curve` for a line, any other for a box.
    pub(super) mark: &'a str,
    pub(super) name: &'a str,
}

impl Frame {
    /// Grid lines at the ticks of the axis below, at least `apart` px from each other, with their labels.
    pub(super) fn x_axis(&self, scale: &Scale, unit: TickUnit, apart: f64) -> Markup {
        html! {
            @for value in scale.ticks(((self.right - self.left) / apart) as usize) {
                @let x = scale.at(value);
                (line("grid", (x, self.top), (x, self.bottom)))
                (text("", (x, self.bottom + 16.0), Anchor::Middle, &unit.tick(value)))
            }
        }
    }
}

/// A picture of `size` with its title at `head`, `content`, and a legend below it that begins at `left`.
pub(super) fn framed(
    (width, height): Point,
    (head, title): (f64, &str),
    content: &Markup,
    (left, legend): (f64, &[LegendEntry<'_>]),
) -> Markup {
    let (mut x, mut y) = (left, height);
    let mut entries = Vec::with_capacity(legend.len());
    for entry in legend {
        let is_line = entry.mark == "curve";
        let mark = if is_line { 18.0 } else { 11.0 };
        let wide = mark + 16.0 + 6.8 * entry.name.chars().count() as f64;
        if x + wide > width && x > left {
            (x, y) = (left, y + LEGEND_ROW);
        }
        entries.push(html! {
            g class=(entry.class) {
                @if is_line {
                    (path("curve", &[(x, y + 6.0), (x + mark, y + 6.0)], false, ""))
                } @else {
                    (rect(entry.mark, (x, y), (mark, mark), (entry.mark == "burst").then_some(0.4), ""))
                }
                (text("name", (x + mark + 5.0, y + 10.0), Anchor::Start, entry.name))
            }
        });
        x += wide;
    }
    let below = if legend.is_empty() { 0.0 } else { y - height + LEGEND_ROW };
    let content = html! {
        (text("head", (head, 16.0), Anchor::Start, title))
        (content)
        @for entry in &entries { (entry) }
    };
    picture((width, height + below), title, content)
}
