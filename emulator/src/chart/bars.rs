//! Stacked bars, one per row.

use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Svg};

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

const LEFT: f64 = 150.0;
const RIGHT: f64 = 96.0;
const ROW: f64 = 26.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 26.0;

/// Bars over a common axis from 0 to `most` (`None`: the largest bar), with a legend of (class, name).
#[must_use]
pub fn stacked(
    title: &str,
    unit: TickUnit,
    bars: &[Bar],
    most: Option<f64>,
    legend: &[(String, String)],
    width: f64,
) -> String {
    let rows = legend_rows(legend, width);
    let height = TOP + ROW * bars.len() as f64 + BOTTOM;
    let mut svg = Svg::new(width, height + 18.0 * rows.len() as f64, title);
    svg.text("head", (4.0, 16.0), Anchor::Start, title);
    let sum = |bar: &Bar| bar.parts.iter().map(|part| part.1).filter(|size| size.is_finite()).sum::<f64>();
    let most = most.unwrap_or_else(|| bars.iter().map(sum).fold(0.0, f64::max));
    let most = if most > 0.0 { most } else { 1.0 };
    let scale = Scale::new(AxisScale::Linear, (0.0, most), (LEFT, width - RIGHT));
    let bottom = height - BOTTOM;
    for value in scale.ticks(((width - LEFT - RIGHT) / 70.0) as usize) {
        svg.line("grid", (scale.at(value), TOP), (scale.at(value), bottom));
        svg.text("", (scale.at(value), bottom + 15.0), Anchor::Middle, &unit.tick(value));
    }
    for (i, bar) in bars.iter().enumerate() {
        draw(&mut svg, bar, TOP + ROW * i as f64, &scale);
    }
    for (row, entries) in rows.iter().enumerate() {
        for &(x, i) in entries {
            let y = height + 18.0 * row as f64;
            svg.open(&legend[i].0);
            svg.rect("fill", (x, y), (11.0, 11.0), "");
            svg.text("name", (x + 16.0, y + 10.0), Anchor::Start, &legend[i].1);
            svg.close();
        }
    }
    svg.finish()
}

fn draw(svg: &mut Svg, bar: &Bar, y: f64, scale: &Scale) {
    svg.open(&bar.class);
    svg.text("name", (LEFT - 8.0, y + ROW / 2.0 + 4.0), Anchor::End, &shortened(&bar.label, 22));
    let mut from = 0.0;
    for (class, size, title) in bar.parts.iter().filter(|part| part.1.is_finite() && part.1 > 0.0) {
        let (left, right) = (scale.at(from), scale.at(from + size));
        svg.rect(class, (left, y + 4.0), (right - left, ROW - 8.0), title);
        from += size;
    }
    svg.text("", (scale.at(from) + 6.0, y + ROW / 2.0 + 4.0), Anchor::Start, &bar.total);
    svg.close();
}

/// Entries as (x, index), in rows that fit the width.
fn legend_rows(legend: &[(String, String)], width: f64) -> Vec<Vec<(f64, usize)>> {
    let mut rows: Vec<Vec<(f64, usize)>> = Vec::new();
    let mut at = width;
    for (i, (_, name)) in legend.iter().enumerate() {
        let wide = 32.0 + 6.8 * name.chars().count() as f64;
        if at + wide > width {
            rows.push(Vec::new());
            at = 8.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((at, i));
        }
        at += wide;
    }
    rows
}

/// At most `most` characters, cut with an ellipsis.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
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
        let svg = stacked("t", TickUnit::Number, &[bar], None, &[("s0".into(), "first".into())], 646.0);
        // 400 px for a total of 4: 100 px, then 300 px.
        assert!(svg.contains("class=\"a\" x=\"150\" y=\"32\" width=\"100\""), "{svg}");
        assert!(svg.contains("class=\"b\" x=\"250\" y=\"32\" width=\"300\""), "{svg}");
        assert!(!svg.contains("nothing") && !svg.contains("unknown"));
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
