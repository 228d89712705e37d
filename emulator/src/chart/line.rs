//! Lines over two axes, with the frame that most charts share.

use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Svg};
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

/// A curve.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    pub label: String,
    /// Index of its colour and dash.
    pub colour: usize,
    /// Points in order of x.
    pub points: Vec<(f64, f64)>,
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
    pub low: Vec<(f64, f64)>,
    pub high: Vec<(f64, f64)>,
}

/// A chart of curves.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    pub title: String,
    pub x: PlotAxis,
    pub y: PlotAxis,
    pub series: Vec<Series>,
    /// Width and height in px.
    pub size: (f64, f64),
    /// Whether the curves are named below the chart.
    pub legend: bool,
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;

impl Plot {
    /// The chart as SVG. Values that are not finite, or not positive on a logarithmic axis, are left out.
    #[must_use]
    pub fn svg(&self) -> String {
        let legend = if self.legend { self.legend_rows() } else { Vec::new() };
        let (width, height) = self.size;
        let mut svg = Svg::new(width, height + 18.0 * legend.len() as f64, &self.title);
        let x = self.scale(&self.x, |point| point.0, (LEFT, width - RIGHT));
        let y = self.scale(&self.y, |point| point.1, (height - BOTTOM, TOP));
        svg.text("head", (LEFT, 16.0), Anchor::Start, &self.title);
        self.draw_grid(&mut svg, &x, &y);
        for series in &self.series {
            self.draw_series(&mut svg, series, &x, &y);
        }
        for (row, entries) in legend.iter().enumerate() {
            self.draw_legend(&mut svg, entries, height + 18.0 * row as f64 + 6.0);
        }
        svg.finish()
    }

    fn is_drawable(&self, (x, y): (f64, f64)) -> bool {
        let fits = |axis: &PlotAxis, value: f64| {
            value.is_finite() && (axis.spread == AxisScale::Linear || value > 0.0)
        };
        fits(&self.x, x) && fits(&self.y, y)
    }

    fn scale(&self, axis: &PlotAxis, pick: fn((f64, f64)) -> f64, pixels: (f64, f64)) -> Scale {
        let bounds = |points: &mut dyn Iterator<Item = &(f64, f64)>| {
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

    fn draw_grid(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let (width, height) = self.size;
        let (bottom, right) = (height - BOTTOM, width - RIGHT);
        for value in x.minor_ticks() {
            svg.line("minor", (x.at(value), TOP), (x.at(value), bottom));
        }
        for value in y.ticks(((height - TOP - BOTTOM) / 36.0) as usize) {
            svg.line("grid", (LEFT, y.at(value)), (right, y.at(value)));
            svg.text("", (LEFT - 7.0, y.at(value) + 4.0), Anchor::End, &self.y.unit.tick(value));
        }
        for value in x.ticks(((width - LEFT - RIGHT) / 62.0) as usize) {
            svg.line("grid", (x.at(value), TOP), (x.at(value), bottom));
            svg.text("", (x.at(value), bottom + 16.0), Anchor::Middle, &self.x.unit.tick(value));
        }
        svg.line("axis", (LEFT, bottom), (right, bottom));
        svg.text("", (f64::midpoint(LEFT, right), bottom + 35.0), Anchor::Middle, &self.x.label);
        svg.upright("", (13.0, f64::midpoint(TOP, bottom)), &self.y.label);
    }

    fn draw_series(&self, svg: &mut Svg, series: &Series, x: &Scale, y: &Scale) {
        let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let points = points.iter().copied().filter(|point| self.is_drawable(*point));
            points.map(|point| (x.at(point.0), y.at(point.1))).collect()
        };
        svg.open(&format!("curveset p{} {}", series.colour, theme::series(series.colour)));
        let Band { low, high } = &series.band;
        if !low.is_empty() && !high.is_empty() {
            let mut outline = stepped(place(low), series.steps);
            outline.extend(stepped(place(high), series.steps).into_iter().rev());
            svg.path("band", &outline, true, "");
        }
        let points = stepped(place(&series.points), series.steps);
        if !points.is_empty() {
            svg.path("curve", &points, false, &series.label);
        }
        if series.dots {
            for &point in series.points.iter().filter(|point| self.is_drawable(**point)) {
                let (x_text, y_text) = (self.x.unit.tick(point.0), self.y.unit.text(point.1));
                let title = format!("{}: {y_text} at {x_text}", series.label);
                svg.dot("dot", (x.at(point.0), y.at(point.1)), 4.0, &title);
            }
        }
        svg.close();
    }

    /// Entries as (x, series), in rows that fit the width.
    fn legend_rows(&self) -> Vec<Vec<(f64, usize)>> {
        let mut rows: Vec<Vec<(f64, usize)>> = vec![Vec::new()];
        let mut at = LEFT;
        for (i, series) in self.series.iter().enumerate() {
            let wide = 34.0 + 6.8 * series.label.chars().count() as f64;
            if at + wide > self.size.0 && at > LEFT {
                rows.push(Vec::new());
                at = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((at, i));
            }
            at += wide;
        }
        rows
    }

    fn draw_legend(&self, svg: &mut Svg, entries: &[(f64, usize)], y: f64) {
        for &(x, i) in entries {
            let series = &self.series[i];
            svg.open(&format!("p{} {}", series.colour, theme::series(series.colour)));
            svg.path("curve", &[(x, y), (x + 18.0, y)], false, "");
            svg.text("name", (x + 23.0, y + 4.0), Anchor::Start, &series.label);
            svg.close();
        }
    }
}

/// With `steps`, inserts points so that each value is held to the right.
fn stepped(points: Vec<(f64, f64)>, steps: bool) -> Vec<(f64, f64)> {
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

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let axis = |label: &str| PlotAxis {
            label: label.into(),
            spread: AxisScale::Linear,
            unit: TickUnit::Number,
            range: None,
        };
        let series = vec![Series { label: "a<b".into(), points, dots: true, ..Series::default() }];
        Plot { title: "t & t".into(), x: axis("x"), y: axis("y"), series, size: (400.0, 200.0), legend: true }
    }

    #[test]
    fn draws_dots_where_they_belong() {
        let svg = plot(vec![(0.0, 0.0), (5.0, 2.0), (10.0, f64::NAN), (10.0, 4.0)]).svg();
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        // The middle of 62..386 and of 156..30.
        assert!(svg.contains("cx=\"224\" cy=\"93\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("t &amp; t"), "{svg}");
    }

    #[test]
    fn an_empty_plot_is_still_a_picture() {
        let svg = plot(Vec::new()).svg();
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
        let svg = plot.svg();
        let band = svg.split("class=\"band\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(band.ends_with('Z') && band.matches([' ', 'l']).count() == 1 + 3 * 2, "{band}");
    }
}
