//! Stacked bars, one per row.

use super::frame::{Frame, LegendEntry, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Mark, Picture, fitted, text};
use super::theme::Hue;

/// A row of a bar chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    pub label: String,
    /// The colour of parts without a colour of their own.
    pub hue: Hue,
    /// Parts of the bar, from left to right.
    pub parts: Vec<BarPart>,
    /// Text after the bar.
    pub total: String,
}

/// A part of a bar.
#[derive(Clone, PartialEq, Debug)]
pub struct BarPart {
    /// Class in the style sheet of charts: `fill`, `progress`, `waste` or `idle`.
    pub class: &'static str,
    /// Colour of the part, if it differs from the colour of the bar.
    pub hue: Option<Hue>,
    pub size: f64,
    /// Text of the tooltip.
    pub title: String,
}

const WIDTH: f64 = 520.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 96.0;
const ROW: f64 = 26.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 26.0;

/// A chart of bars over a common axis, with a legend of kinds. The axis ends at the largest bar, or at 100 % for
/// shares.
pub fn stacked(title: &str, unit: TickUnit, bars: &[Bar], legend: &[(Hue, &str)]) -> Picture {
    let bottom = TOP + ROW * bars.len() as f64;
    let frame = Frame { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom, edge: WIDTH };
    let sum = |bar: &Bar| bar.parts.iter().map(|part| part.size).filter(|size| size.is_finite()).sum::<f64>();
    let largest = if unit == TickUnit::Share { 1.0 } else { bars.iter().map(sum).fold(0.0, f64::max) };
    let most = if largest > 0.0 { largest } else { 1.0 };
    let scale = Scale::new(AxisScale::Linear, (0.0, most), (frame.left, frame.right));
    let legend: Vec<_> =
        legend.iter().map(|(hue, name)| LegendEntry { hue: Some(*hue), mark: "fill", name }).collect();
    let mut marks = frame.x_axis(&scale, unit, 70.0);
    marks.extend(bars.iter().enumerate().map(|(i, bar)| row(bar, TOP + ROW * i as f64, &scale)));
    framed((WIDTH, bottom + BOTTOM), (4.0, title), marks, &legend)
}

fn row(bar: &Bar, y: f64, scale: &Scale) -> Mark {
    let middle = y + ROW / 2.0 + 4.0;
    let mut marks =
        vec![text("name", (LEFT - 8.0, middle), Anchor::End, &fitted(&bar.label, (LEFT - 12.0) / 1.06))];
    let mut from = 0.0;
    for part in bar.parts.iter().filter(|part| part.size.is_finite() && part.size > 0.0) {
        let (left, right) = (scale.at(from), scale.at(from + part.size));
        marks.push(Mark::Rect {
            class: part.class,
            hue: part.hue,
            at: (left, y + 4.0),
            size: (right - left, ROW - 8.0),
            opacity: None,
            title: part.title.clone(),
        });
        from += part.size;
    }
    marks.push(text("", (scale.at(from) + 6.0, middle), Anchor::Start, &bar.total));
    Mark::Group { hue: bar.hue, marks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_bar_are_side_by_side() {
        let part = |class, size| BarPart { class, hue: None, size, title: String::new() };
        let parts =
            vec![part("fill", 1.0), part("idle", 0.0), part("waste", 3.0), part("progress", f64::NAN)];
        let bar = Bar { label: "x".into(), hue: Hue::Policy(0), parts, total: "4".into() };
        let svg = stacked("t", TickUnit::Number, &[bar], &[(Hue::Kind(0), "first")]).in_page().into_string();
        // 274 px show a total of 4: the parts are 68.5 px and 205.5 px wide.
        assert!(svg.contains("class=\"fill\" x=\"150\" y=\"32\" width=\"68.5\""), "{svg}");
        assert!(svg.contains("class=\"waste\" x=\"218.5\" y=\"32\" width=\"205.5\""), "{svg}");
        assert!(
            !svg.contains("idle") && !svg.contains("progress") && svg.contains("<g class=\"k0\">"),
            "{svg}"
        );
    }
}
