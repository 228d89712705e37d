//! Stacked bars, one per row.

use std::collections::BTreeMap;

use super::frame::{Frame, LegendEntry, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Mark, Picture, text, text_within};
use super::theme::{self, Hue};

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

/// Number of kinds of messages that have a part of their own; all other kinds share one part.
const KINDS: usize = 7;

/// A bar of messages: its label, the policy, and the numbers by kind.
pub type MessageBar<'a> = (String, usize, BTreeMap<&'a str, f64>);

/// A chart of messages by kind. In tooltips, numbers are formatted by `text` and followed by `per`.
pub fn messages(title: &str, per: &str, text: fn(f64) -> String, bars: &[MessageBar<'_>]) -> Picture {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    bars.iter().flat_map(|bar| &bar.2).for_each(|(kind, sent)| *all.entry(kind).or_default() += sent);
    let mut kinds: Vec<(&str, f64)> = all.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut shown: Vec<&str> = kinds.iter().take(KINDS).map(|kind| kind.0).collect();
    // Kinds have the same order and colours in every chart; all others are a single part at the end.
    shown.sort_by_key(|kind| theme::message(kind));
    let bar = |(label, policy, sent): &MessageBar<'_>| {
        let part = |(kind, size): (&str, f64)| {
            let title = format!("{label}: {} {kind}{per}", text(size));
            BarPart { class: "fill", hue: Some(Hue::of_message(kind)), size, title }
        };
        let sizes = shown.iter().map(|kind| (*kind, sent.get(kind).copied().unwrap_or(0.0)));
        let other = sent.iter().filter(|(kind, _)| !shown.contains(kind)).map(|(_, sent)| sent).sum();
        Bar {
            label: label.clone(),
            hue: Hue::Policy(*policy),
            parts: sizes.chain([("other", other)]).map(part).collect(),
            total: text(sent.values().sum()),
        }
    };
    let drawn: Vec<Bar> = bars.iter().map(bar).collect();
    let other = (kinds.len() > KINDS).then_some("other");
    let legend: Vec<_> =
        shown.iter().copied().chain(other).map(|kind| (Hue::of_message(kind), kind)).collect();
    stacked(title, TickUnit::Number, &drawn, &legend)
}

fn row(bar: &Bar, y: f64, scale: &Scale) -> Mark {
    let middle = y + ROW / 2.0 + 4.0;
    let mut marks =
        vec![text_within((LEFT - 12.0) / 1.06, "name", (LEFT - 8.0, middle), Anchor::End, &bar.label)];
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
