//! Lines over two axes, with confidence bands.

use maud::{Markup, html};

use super::frame::{Frame, LegendEntry, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Point, dot, line, path, text, upright};
use super::theme;

#[derive(Clone, PartialEq, Debug)]
pub struct PlotAxis {
    pub label: String,
    /// Spacing of values.
    pub spread: AxisScale,
    /// Format of ticks.
    pub unit: TickUnit,
    /// Smallest and largest value; `None` to fit the data.
    pub range: Option<(f64, f64)>,
}

impl PlotAxis {
    /// An axis that fits the data.
    pub fn new(label: &str, spread: AxisScale, unit: TickUnit) -> Self {
        Self { label: label.to_owned(), spread, unit, range: None }
    }

    /// Whether the axis has a place for `value`.
    fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.spread == AxisScale::Linear || value > 0.0)
    }
}

/// A curve.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    pub label: String,
    /// Index of its colour and dash.
    pub colour: usize,
    /// Points in order of x.
    pub points: Vec<Point>,
    /// Confidence band; empty for none.
    pub band: Band,
    /// Whether the curve is constant up to the next point.
    pub steps: bool,
    /// Whether every point gets a dot with its value; suitable for few points.
    pub dots: bool,
}

/// A confidence band: two edges in order of x.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Band {
    pub low: Vec<Point>,
    pub high: Vec<Point>,
}

/// A chart of curves.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    pub title: String,
    pub x: PlotAxis,
    pub y: PlotAxis,
    pub series: Vec<Series>,
    /// Width and height in px, without the legend.
    pub size: Point,
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;

impl Plot {
    /// The chart as SVG. Values that are not finite, or not positive on a logarithmic axis, are left out.
    pub fn svg(&self) -> Markup {
        let (width, height) = self.size;
        let frame = Frame { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
        let x = self.scale(&self.x, |point| point.0, (frame.left, frame.right));
        let y = self.scale(&self.y, |point| point.1, (frame.bottom, frame.top));
        let content = html! {
            (self.grid(frame, &x, &y))
            @for series in &self.series { (self.curve(series, &x, &y)) }
        };
        let entries = self.series.iter().map(|series| (theme::policy(series.colour), &series.label));
        let legend: Vec<_> =
            entries.map(|(class, name)| LegendEntry { class, mark: "curve", name }).collect();
        framed(self.size, (LEFT, &self.title), &content, (LEFT, &legend))
    }

    fn is_drawable(&self, (x, y): Point) -> bool {
        self.x.has(x) && self.y.has(y)
    }

    fn scale(&self, axis: &PlotAxis, pick: fn(Point) -> f64, pixels: Point) -> Scale {
        let bounds = |points: &mut dyn Iterator<Item = &Point>| {
            let values = points.copied().filter(|point| self.is_drawable(*point)).map(pick);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
        };
        let fitted = || {
            let (low, high) = bounds(&mut self.series.iter().flat_map(|s| &s.points));
            let edges = bounds(&mut self.series.iter().flat_map(|s| s.band.low.iter().chain(&s.band.high)));
            // A wide band must not compress the curves.
            match axis.spread {
                _ if !low.is_finite() => (0.1, 1.0),
                AxisScale::Log => (edges.0.clamp(low / 1.5, low), edges.1.clamp(high, high * 1.5)),
                AxisScale::Linear => (edges.0.min(low).min(0.0), edges.1.max(high)),
            }
        };
        Scale::new(axis.spread, axis.range.unwrap_or_else(fitted), pixels)
    }

    fn grid(&self, frame: Frame, x: &Scale, y: &Scale) -> Markup {
        let Frame { left, right, top, bottom } = frame;
        html! {
            @for value in x.minor_ticks() { (line("minor", (x.at(value), top), (x.at(value), bottom))) }
            @for value in y.ticks(((bottom - top) / 36.0) as usize) {
                (line("grid", (left, y.at(value)), (right, y.at(value))))
                (text("", (left - 7.0, y.at(value) + 4.0), Anchor::End, &self.y.unit.tick(value)))
            }
            (frame.x_axis(x, self.x.unit, 62.0))
            (line("axis", (left, bottom), (right, bottom)))
            (text("", (f64::midpoint(left, right), bottom + 35.0), Anchor::Middle, &self.x.label))
            (upright((13.0, f64::midpoint(top, bottom)), &self.y.label))
        }
    }

    fn curve(&self, series: &Series, x: &Scale, y: &Scale) -> Markup {
        let drawable = |points: &[Point]| -> Vec<Point> {
            points.iter().copied().filter(|point| self.is_drawable(*point)).collect()
        };
        let place = |points: &[Point]| {
            let points = drawable(points).into_iter().map(|point| (x.at(point.0), y.at(point.1)));
            stepped(points.collect(), series.steps)
        };
        let Band { low, high } = &series.band;
        let (mut band, points) = (place(low), place(&series.points));
        band.extend(place(high).into_iter().rev());
        html! {
            g class={ "curveset " (theme::policy(series.colour)) } {
                @if !low.is_empty() && !high.is_empty() { (path("band", &band, true, "")) }
                @if !points.is_empty() { (path("curve", &points, false, &series.label)) }
                @if series.dots {
                    @for point in drawable(&series.points) {
                        @let (at, value) = (self.x.unit.tick(point.0), self.y.unit.text(point.1));
                        @let title = format!("{}: {value} at {at}", series.label);
                        (dot("dot", (x.at(point.0), y.at(point.1)), &title))
                    }
                }
            }
        }
    }
}

/// With `steps`, inserts points so that each value is held to the right.
fn stepped(points: Vec<Point>, steps: bool) -> Vec<Point> {
    if !steps {
        return points;
    }
    let mut out = Vec::with_capacity(2 * points.len());
    for point in points {
        if let Some(&(_, y)) = out.last() {
            out.push((point.0, y));
        }
        out.push(point);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<Point>) -> Plot {
        let axis = |label| PlotAxis::new(label, AxisScale::Linear, TickUnit::Number);
        let series = vec![Series { label: "a<b".into(), points, dots: true, ..Series::default() }];
        Plot { title: "t & t".into(), x: axis("x"), y: axis("y"), series, size: (400.0, 200.0) }
    }

    #[test]
    fn draws_dots_where_they_belong() {
        let svg = plot(vec![(0.0, 0.0), (5.0, 2.0), (10.0, f64::NAN), (10.0, 4.0)]).svg().into_string();
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        // The middle of 62..386 and of 156..30.
        assert!(svg.contains("cx=\"224\" cy=\"93\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("t &amp; t"), "{svg}");
    }

    #[test]
    fn an_empty_plot_is_still_a_picture() {
        let svg = plot(Vec::new()).svg().into_string();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn steps_hold_their_value() {
        assert_eq!(stepped(vec![(0.0, 1.0), (2.0, 3.0)], true), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
    }

    #[test]
    fn bands_go_there_and_back() {
        let mut plot = plot(vec![(0.0, 1.0), (1.0, 2.0)]);
        plot.series[0].band = Band { low: vec![(0.0, 0.5), (1.0, 1.5)], high: vec![(0.0, 1.5), (1.0, 2.5)] };
        let svg = plot.svg().into_string();
        let band = svg.split("class=\"band\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(band.ends_with('Z') && band.matches([' ', 'l']).count() == 1 + 3 * 2, "{band}");
    }
}
