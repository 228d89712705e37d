//! Stacked bars, one per row.

use maud::{Markup, html};

use super::frame::{Frame, LegendEntry, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, rect, text};

/// A row of a bar chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    pub label: String,
    /// Class of the row's group, which sets its colour.
    pub class: String,
    /// Parts from left to right: class, size and tooltip.
    pub parts: Vec<(String, f64, String)>,
    /// The text behind the bar.
    pub total: String,
}

const WIDTH: f64 = 520.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 96.0;
const ROW: f64 = 26.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 26.0;

/// Bars over a common axis from 0 to the largest bar, or to the whole for shares, with a legend of (class, name).
pub fn stacked(title: &str, unit: TickUnit, bars: &[Bar], legend: &[(String, &str)]) -> Markup {
    let bottom = TOP + ROW * bars.len() as f64;
    let frame = Frame { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom };
    let sum = |bar: &Bar| bar.parts.iter().map(|part| part.1).filter(|size| size.is_finite()).sum::<f64>();
    let largest = if unit == TickUnit::Share { 1.0 } else { bars.iter().map(sum).fold(0.0, f64::max) };
    let most = if largest > 0.0 { largest } else { 1.0 };
    let scale = Scale::new(AxisScale::Linear, (0.0, most), (frame.left, frame.right));
    let legend: Vec<_> =
        legend.iter().map(|(class, name)| LegendEntry { class: class.clone(), mark: "fill", name }).collect();
    let content = html! {
        (frame.x_axis(&scale, unit, 70.0))
        @for (i, bar) in bars.iter().enumerate() { (row(bar, TOP + ROW * i as f64, &scale)) }
    };
    framed((WIDTH, bottom + BOTTOM), (4.0, title), &content, (8.0, &legend))
}

fn row(bar: &Bar, y: f64, scale: &Scale) -> Markup {
    let mut from = 0.0;
    let mut parts = Vec::new();
    for (class, size, title) in bar.parts.iter().filter(|part| part.1.is_finite() && part.1 > 0.0) {
        let (left, right) = (scale.at(from), scale.at(from + size));
        parts.push(rect(class, (left, y + 4.0), (right - left, ROW - 8.0), None, title));
        from += size;
    }
    let middle = y + ROW / 2.0 + 4.0;
    html! {
        g class=(bar.class) {
            (text("name", (LEFT - 8.0, middle), Anchor::End, &shortened(&bar.label, 22)))
            @for part in parts { (part) }
            (text("", (scale.at(from) + 6.0, middle), Anchor::Start, &bar.total))
        }
    }
}

/// At most `most` characters, cut with an ellipsis.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_side_by_side() {
        let part = |class: &str, size| (class.to_owned(), size, String::new());
        let parts = vec![part("a", 1.0), part("nothing", 0.0), part("b", 3.0), part("unknown", f64::NAN)];
        let bar = Bar { label: "x".into(), class: "p0".into(), parts, total: "4".into() };
        let svg = stacked("t", TickUnit::Number, &[bar], &[("s0".into(), "first")]).into_string();
        // 274 px for a total of 4: 68.5 px, then 205.5 px.
        assert!(svg.contains("class=\"a\" x=\"150\" y=\"32\" width=\"68.5\""), "{svg}");
        assert!(svg.contains("class=\"b\" x=\"218.5\" y=\"32\" width=\"205.5\""), "{svg}");
        assert!(!svg.contains("nothing") && !svg.contains("unknown"));
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
