//! Lines over two axes, with confidence bands.

use std::cmp::Ordering;
use std::iter;

use volary_experiment::stats::Interval;

use super::frame::{APART, Frame, LegendEntry, dot, framed};
use super::scale::{AxisScale, Scale, TickUnit, bounds};
use super::svg::{Anchor, Mark, Picture, Point, fitted, line, text, text_within, upright, width};
use super::theme::{self, Hue};

#[derive(Clone, PartialEq, Debug)]
pub struct PlotAxis {
    /// The title of the axis; empty where the title of the chart says it.
    pub label: String,
    /// Spacing of values on the axis.
    pub spread: AxisScale,
    /// Format of ticks.
    pub unit: TickUnit,
    /// Smallest and largest value of the axis; on a logarithmic axis, of the values above zero. `None` to fit the data.
    pub range: Option<(f64, f64)>,
    /// Whether a logarithmic axis has a place for zero even if no point of the chart needs it.
    pub zero: bool,
    /// Names of the values 0, 1, 2 … of an axis without numbers; empty for an axis of numbers.
    pub names: Vec<String>,
    /// Values that have ticks; empty for ticks at round values.
    pub ticks: Vec<f64>,
}

impl PlotAxis {
    /// An axis that fits the data.
    pub fn new(label: &str, spread: AxisScale, unit: TickUnit) -> Self {
        Self {
            label: label.to_owned(),
            spread,
            unit,
            range: None,
            zero: false,
            names: Vec::new(),
            ticks: Vec::new(),
        }
    }

    /// An axis of names, evenly spaced.
    pub fn of_names(label: &str, names: Vec<String>) -> Self {
        let range = Some((-0.5, names.len() as f64 - 0.5));
        let axis = Self::new(label, AxisScale::Linear, TickUnit::Number);
        Self { range, names, ..axis }
    }

    /// The title of the axis; a logarithmic axis is marked as such.
    fn title(&self) -> String {
        match self.spread {
            AxisScale::Linear => self.label.clone(),
            AxisScale::Log if self.label.is_empty() => "logarithmic".to_owned(),
            AxisScale::Log => format!("{} (log)", self.label),
        }
    }

    /// The text of a value in a tooltip.
    fn text(&self, value: f64) -> String {
        let name = || self.names.get(value.round() as usize).cloned();
        name().unwrap_or_else(|| self.unit.tick(value))
    }

    /// Whether the axis has a place for `value`.
    fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.spread == AxisScale::Linear || value >= 0.0)
    }
}

/// A curve of a chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    pub label: String,
    /// Index of the colour and dash of the curve.
    pub colour: usize,
    /// Points of the curve, in order of x.
    pub points: Vec<Point>,
    /// Confidence band of the curve; empty for none.
    pub band: Band,
    /// Whether the curve is constant up to the next point.
    pub steps: bool,
    /// Whether every point gets a mark with its value, which suits few points; otherwise marks are evenly spaced.
    pub dots: bool,
    /// Whether further points are expected: the curve is pale and ends with a ring.
    pub running: bool,
}

impl Series {
    /// Adds a mean, with its interval if it has one.
    pub fn push(&mut self, at: f64, interval: &Interval) {
        self.points.push((at, interval.mean));
        if let Some(half) = interval.half_width {
            self.band.low.push((at, interval.mean - half));
            self.band.high.push((at, interval.mean + half));
        }
    }
}

/// A confidence band: a lower and an upper edge, each in order of x.
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
    /// Width and height without the legend, px.
    pub size: Point,
}

/// A span of the x axis as a shaded rectangle, clipped to the plot area; `None` if no part of it is visible.
fn shaded(frame: Frame, x: &Scale, (from, until, title): &(f64, f64, String)) -> Option<Mark> {
    let [from, until] = [from, until].map(|at| x.at(*at).clamp(frame.left, frame.right));
    let size = (until - from, frame.bottom - frame.top);
    (until > from).then(|| Mark::Rect {
        class: "shade",
        hue: None,
        at: (from, frame.top),
        size,
        opacity: Some(0.18),
        title: title.clone(),
    })
}

/// Space for the title of the left axis, space without a title, and gap between labels and axis, px.
const AXIS_TITLE: f64 = 24.0;
const NO_TITLE: f64 = 8.0;
const LABEL_GAP: f64 = 7.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
const BOTTOM_WITHOUT_TITLE: f64 = 24.0;
/// Space in px for zero before the first value of a logarithmic axis: horizontal for the x axis, vertical for y.
const ZERO_ROOM: Point = (36.0, 22.0);

impl Plot {
    /// The picture of the chart. Values that are not finite, or negative on a logarithmic axis, are left out. Zero has
    /// its place on a logarithmic axis below a break.
    pub fn picture(&self) -> Picture {
        self.picture_over(&[])
    }

    /// The picture of the chart with shaded spans of the x axis behind its curves. A span has start, end and title.
    pub fn picture_over(&self, shades: &[(f64, f64, String)]) -> Picture {
        let (wide, high) = self.size;
        let bottom = high - if self.x.title().is_empty() { BOTTOM_WITHOUT_TITLE } else { BOTTOM };
        let edge = if self.y.title().is_empty() { NO_TITLE } else { AXIS_TITLE };
        let y = self.scale(&self.y, |point| point.1, (bottom, TOP), ZERO_ROOM.1);
        let labels: Vec<(f64, String)> = y
            .ticks(self.y.unit, ((bottom - TOP) / 30.0) as usize)
            .into_iter()
            .map(|value| (value, y.tick(self.y.unit, value)))
            .collect();
        let widest = labels.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
        let left = edge + widest * 1.06 + LABEL_GAP;
        let frame = Frame { left, right: wide - RIGHT, top: TOP, bottom, edge: wide };
        let x = self.scale(&self.x, |point| point.0, (frame.left, frame.right), ZERO_ROOM.0);
        let mut marks: Vec<Mark> = shades.iter().filter_map(|shade| shaded(frame, &x, shade)).collect();
        marks.extend(self.grid(frame, &x, &y, &labels));
        marks.extend(self.series.iter().map(|series| self.curve(series, &x, &y)));
        let entries = self.series.iter().filter(|series| {
            !series.label.is_empty() && series.points.iter().any(|point| self.is_drawable(*point))
        });
        let entries = entries.map(|series| (Some(Hue::Policy(series.colour)), &series.label));
        let legend: Vec<_> = entries.map(|(hue, name)| LegendEntry { hue, mark: "curve", name }).collect();
        framed(self.size, (edge, &self.title), marks, &legend)
    }

    fn is_drawable(&self, (x, y): Point) -> bool {
        self.x.has(x) && self.y.has(y)
    }

    fn scale(&self, axis: &PlotAxis, pick: fn(Point) -> f64, pixels: Point, zero_room: f64) -> Scale {
        let is_log = axis.spread == AxisScale::Log;
        let values = |points: &[Point]| -> Vec<f64> {
            points.iter().copied().filter(|point| self.is_drawable(*point)).map(pick).collect()
        };
        let on_axis = |value: &f64| !is_log || *value > 0.0;
        let points: Vec<f64> = self.series.iter().flat_map(|s| values(&s.points)).collect();
        let fitted = || {
            let (low, high) = bounds(points.iter().copied().filter(on_axis));
            let bands = self.series.iter().flat_map(|s| [values(&s.band.low), values(&s.band.high)]);
            let edges = bounds(bands.flatten().filter(on_axis));
            // A wide band must not compress the curves: the range grows to include bands only within limits.
            match axis.spread {
                _ if !low.is_finite() => (0.1, 1.0),
                AxisScale::Log => (edges.0.clamp(low / 1.5, low), edges.1.clamp(high, high * 1.5)),
                AxisScale::Linear => (edges.0.min(low).min(0.0), edges.1.max(high)),
            }
        };
        let scale = Scale::new(axis.spread, axis.range.unwrap_or_else(fitted), pixels);
        let has_zero = is_log && (axis.zero || points.contains(&0.0));
        if has_zero { scale.with_zero(zero_room) } else { scale }
    }

    fn grid(&self, frame: Frame, x: &Scale, y: &Scale, labels: &[(f64, String)]) -> Vec<Mark> {
        let Frame { left, right, top, bottom, .. } = frame;
        let mut marks: Vec<Mark> = x
            .minor_ticks()
            .into_iter()
            .map(|value| line("minor", (x.at(value), top), (x.at(value), bottom)))
            .collect();
        marks.extend(
            y.minor_ticks().into_iter().map(|value| line("minor", (left, y.at(value)), (right, y.at(value)))),
        );
        marks.extend(y.gap().into_iter().flat_map(|at| axis_break((left, at), (5.0, 2.0), (0.0, 4.0))));
        marks.extend(x.gap().into_iter().flat_map(|at| axis_break((at, bottom), (2.0, 5.0), (4.0, 0.0))));
        for (value, label) in labels {
            let at = y.at(*value);
            marks.push(line("grid", (left, at), (right, at)));
            marks.push(text("", (left - LABEL_GAP, at + 4.0), Anchor::End, label));
        }
        marks.extend(self.x_ticks(frame, x));
        marks.push(line("axis", (left, bottom), (right, bottom)));
        let (wide, high) = self.size;
        let (x_title, y_title) = (self.x.title(), self.y.title());
        // The middle of a title that is `most` px long at most and keeps within the picture.
        let centred = |title: &str, most: f64, middle: f64| {
            let half = width(title).min(most - 2.0) / 2.0 + 1.0;
            middle.min(most - half).max(half)
        };
        let at = (centred(&x_title, wide, f64::midpoint(left, right)), bottom + 35.0);
        let x_title = text_within(wide - 2.0, "", at, Anchor::Middle, &x_title);
        let at = (13.0, centred(&y_title, high, f64::midpoint(top, bottom)));
        let y_title = upright(high - 2.0, at, &y_title);
        let is_said = |mark: &Mark| !matches!(mark, Mark::Text { text, .. } if text.is_empty());
        marks.extend([x_title, y_title].into_iter().filter(is_said));
        marks
    }

    /// Grid lines and labels of the horizontal axis.
    fn x_ticks(&self, frame: Frame, x: &Scale) -> Vec<Mark> {
        let PlotAxis { names, ticks, unit, spread, .. } = &self.x;
        if !names.is_empty() {
            let most = ((frame.right - frame.left) / names.len() as f64 - APART).max(24.0);
            let names = abridged(names, most).into_iter().enumerate();
            frame.x_labels(x, names.map(|(at, name)| (at as f64, name)))
        } else if ticks.is_empty() {
            frame.x_axis(x, *unit, if *spread == AxisScale::Log { 48.0 } else { 62.0 })
        } else {
            frame.x_labels(x, ticks.iter().map(|&value| (value, x.tick(*unit, value))))
        }
    }

    fn curve(&self, series: &Series, x: &Scale, y: &Scale) -> Mark {
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
        let mut marks = Vec::new();
        if series.dots {
            marks.extend(self.whiskers(series, x, y));
        } else if !low.is_empty() && !high.is_empty() {
            marks.push(Mark::Path { class: "band", points: band, closed: true, title: String::new() });
        }
        if !points.is_empty() {
            let class = if series.running { "running" } else { "curve" };
            let end = points.last().filter(|_| series.running).copied();
            let first = MARKS_APART * theme::first_mark(series.colour);
            let marked =
                if series.dots || series.label.is_empty() { Vec::new() } else { along(&points, first) };
            marks.push(Mark::Path { class, points, closed: false, title: series.label.clone() });
            marks.extend(marked.into_iter().map(|at| dot(series.colour, at, String::new())));
            marks.extend(end.map(|at| Mark::Dot { class: "ring", corners: &[], at, title: String::new() }));
        }
        if series.dots {
            marks.extend(drawable(&series.points).into_iter().map(|point| {
                let (at, value) = (self.x.text(point.0), self.y.unit.text(point.1));
                let title = format!("{}: {value} at {at}", series.label);
                dot(series.colour, (x.at(point.0), y.at(point.1)), title)
            }));
        }
        Mark::Group { hue: Hue::Policy(series.colour), marks }
    }
}

impl Plot {
    /// The intervals of points, drawn one by one, since bands would hide each other.
    fn whiskers(&self, series: &Series, x: &Scale, y: &Scale) -> Vec<Mark> {
        // An edge at or below zero has no place on a logarithmic axis. It is drawn at the end of the axis, with an
        // arrow.
        let is_log = self.y.spread == AxisScale::Log;
        let clipped = |edge: &Point| (edge.0, if is_log { edge.1.max(f64::MIN_POSITIVE) } else { edge.1 });
        let lows = series.band.low.iter().map(clipped);
        let edges = lows.zip(series.band.high.iter().copied()).filter(|(low, high)| low.1 < high.1);
        let drawn = edges.filter(|(low, high)| self.is_drawable(*low) && self.is_drawable(*high));
        drawn
            .flat_map(|(low, high)| {
                let (from, to) = ((x.at(low.0), y.at(low.1)), (x.at(high.0), y.at(high.1)));
                let below = (y.beyond(low.1) == Ordering::Less).then(|| arrow_head(from, -HEAD));
                let above = (y.beyond(high.1) == Ordering::Greater).then(|| arrow_head(to, HEAD));
                iter::once(line("whisker", from, to)).chain([below, above].into_iter().flatten().flatten())
            })
            .collect()
    }
}

/// Half the width of the arrow head at the end of an interval that continues beyond the axis, px.
const HEAD: f64 = 4.0;

/// The two strokes of an arrow head whose tip is at a point; it opens downwards if `size` is positive.
fn arrow_head((x, y): Point, size: f64) -> [Mark; 2] {
    [-size, size].map(|side| line("whisker", (x + side, y + size), (x, y)))
}

/// Names that are each at most `most` px wide. Names are kept whole if they fit. If only their last words differ and
/// are numbers, such as the means of one distribution, these words are used. Other names are cut in the middle.
fn abridged(names: &[String], most: f64) -> Vec<String> {
    let parts: Option<Vec<_>> = names.iter().map(|name| name.rsplit_once(' ')).collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let numbers = parts.filter(|parts| parts.iter().all(|part| part.0 == parts[0].0 && is_number(part.1)));
    match numbers {
        Some(parts) if names.iter().any(|name| width(name) > most) => {
            parts.into_iter().map(|(_, word)| word.to_owned()).collect()
        }
        _ => {
            let fitting =
                |cut: fn(&str, f64) -> String| names.iter().map(move |name| cut(name, most)).collect();
            let cuts: [Vec<String>; 2] = [fitting(fitted), fitting(end_of)];
            let is_clear = |cut: &Vec<String>| {
                names
                    .iter()
                    .zip(cut)
                    .all(|(a, short)| names.iter().zip(cut).all(|(b, other)| a == b || short != other))
            };
            // If no cut keeps the names distinct, whole names are used.
            cuts.into_iter().find(is_clear).unwrap_or_else(|| names.to_vec())
        }
    }
}

/// The end of a text, at most `most` px wide, after an ellipsis if it is cut.
fn end_of(text: &str, most: f64) -> String {
    let ends = text.char_indices().skip(1).map(|(at, _)| format!("…{}", &text[at..]));
    iter::once(text.to_owned()).chain(ends).find(|end| width(end) <= most).unwrap_or_else(|| "…".to_owned())
}

/// Two strokes across an axis at its break. Half of a stroke is `(dx, dy)` long; the strokes are `apart` from each
/// other.
fn axis_break((x, y): Point, (dx, dy): Point, apart: Point) -> [Mark; 2] {
    [-0.5, 0.5].map(|side| {
        let (x, y) = (x + side * apart.0, y + side * apart.1);
        line("axis", (x - dx, y + dy), (x + dx, y - dy))
    })
}

/// Distance between the marks along a curve, px.
const MARKS_APART: f64 = 110.0;

/// Points along a path, [`MARKS_APART`] from each other; the first is `next` px from the beginning.
fn along(path: &[Point], mut next: f64) -> Vec<Point> {
    let mut found = Vec::new();
    for (from, to) in path.iter().zip(path.iter().skip(1)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        while next <= length {
            found.push((from.0 + dx * next / length, from.1 + dy * next / length));
            next += MARKS_APART;
        }
        next -= length;
    }
    found
}

/// With `steps`, inserts points that hold each value up to the next point.
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
    fn dots_are_drawn_at_the_positions_of_their_values() {
        let svg = plot(vec![(0.0, 0.0), (5.0, 2.0), (10.0, f64::NAN), (10.0, 4.0)])
            .picture()
            .in_page()
            .into_string();
        assert_eq!(svg.matches("<circle").count(), 3 + 1, "points, and the legend: {svg}");
        // The middle of the axis from 156 to 30, right of the labels.
        assert!(svg.contains("cy=\"93\" r=\"3.5\"><title>a&lt;b: 2.00 at 5</title>"), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("t &amp; t"), "{svg}");
    }

    #[test]
    fn an_empty_plot_is_still_a_picture() {
        let svg = plot(Vec::new()).picture().in_page().into_string();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_step_holds_its_value_up_to_the_next_point() {
        assert_eq!(stepped(vec![(0.0, 1.0), (2.0, 3.0)], true), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
    }

    #[test]
    fn zeros_of_a_logarithmic_axis_lie_below_a_break() {
        let mut plot = plot(vec![(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 100.0)]);
        plot.y.spread = AxisScale::Log;
        let svg = plot.picture().in_page().into_string();
        let heights = ["cy=\"150.5\"", "cy=\"134\"", "cy=\"150.5\"", "cy=\"30\""];
        let found: Vec<&str> = svg.match_indices("cy=").map(|(at, _)| &svg[at..]).collect();
        assert_eq!(found.len(), heights.len() + 1, "no point is left out of the plot and the legend: {svg}");
        assert!(found.iter().zip(heights).all(|(dot, height)| dot.starts_with(height)), "{svg}");
        assert!(svg.contains(">0</text>") && svg.matches("class=\"axis\"").count() == 3, "{svg}");
    }

    #[test]
    fn marks_along_a_curve_are_evenly_spaced() {
        assert_eq!(
            along(&[(0.0, 0.0), (30.0, 0.0), (30.0, 200.0)], 10.0),
            [(10.0, 0.0), (30.0, 90.0), (30.0, 200.0)]
        );
        assert!(along(&[(0.0, 0.0), (0.0, 0.0), (5.0, 0.0)], 10.0).is_empty());
    }

    #[test]
    fn the_curve_of_a_run_in_progress_ends_with_a_ring() {
        let mut plot = plot(vec![(0.0, 1.0), (1.0, 2.0)]);
        (plot.series[0].dots, plot.series[0].running) = (false, true);
        let svg = plot.picture().in_page().into_string();
        assert!(svg.contains("class=\"running\"") && svg.matches("class=\"ring\"").count() == 1, "{svg}");
    }

    #[test]
    fn a_band_is_one_closed_polygon() {
        let mut plot = plot(vec![(0.0, 1.0), (1.0, 2.0)]);
        plot.series[0].dots = false;
        plot.series[0].band = Band { low: vec![(0.0, 0.5), (1.0, 1.5)], high: vec![(0.0, 1.5), (1.0, 2.5)] };
        let svg = plot.picture().in_page().into_string();
        let band = svg.split("class=\"band\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(band.ends_with('Z') && band.matches([' ', 'l']).count() == 1 + 3 * 2, "{band}");
    }

    /// The interval 100 ± 500 begins at -400 on a linear axis, and has arrows at both ends on a logarithmic axis.
    #[test]
    fn intervals_that_contain_zero_begin_below_zero() {
        for (spread, arrows) in [(AxisScale::Linear, 0), (AxisScale::Log, 4)] {
            let mut series = Series { dots: true, ..Series::default() };
            series.push(1.0, &Interval { mean: 100.0, half_width: Some(500.0), replications: 3 });
            assert_eq!(series.band.low, [(1.0, -400.0)]);
            let mut plot = Plot { series: vec![series], ..plot(Vec::new()) };
            plot.y.spread = spread;
            let svg = plot.picture().in_page().into_string();
            assert_eq!(svg.matches("\"whisker\"").count(), 1 + arrows, "{spread:?}: {svg}");
        }
    }

    #[test]
    fn an_axis_of_names_shows_every_name() {
        let mut plot = plot(vec![(0.0, 1.0), (1.0, 30.0), (2.0, 900.0)]);
        let names = ["exponential 62.5ms", "a very long law of many parameters", "constant 1s"];
        plot.x = PlotAxis::of_names("interarrival", names.map(str::to_owned).to_vec());
        plot.y = PlotAxis::new("p99", AxisScale::Log, TickUnit::Seconds);
        let svg = plot.picture().in_page().into_string();
        assert!(svg.contains(">constant 1s<") && svg.contains("at exponential 62.5ms</title>"), "{svg}");
        assert!(svg.contains(">p99 (log)</text>") && svg.contains("…"), "{svg}");
    }

    #[test]
    fn labels_of_distributions_without_room_are_their_means() {
        let names = ["exponential 5.556ms", "exponential 11ms"].map(str::to_owned);
        assert_eq!(abridged(&names, 200.0), names);
        assert_eq!(abridged(&names, 60.0), ["5.556ms", "11ms"]);
        let alike = ["exponential 5ms", "constant 5ms"].map(str::to_owned);
        assert!(abridged(&alike, 60.0).iter().all(|name| name.contains('…')));
        let mixed = ["exponential 50ms", "gamma mean 50ms shape 2", "50ms"].map(str::to_owned);
        assert_eq!(abridged(&mixed, 60.0)[2], "50ms");
        assert!(abridged(&mixed, 60.0)[..2].iter().all(|name| name.contains('…')));
    }

    /// Two values of a sweep have different labels, however small the room for them is.
    #[test]
    fn cut_names_remain_distinct() {
        let laws = ["exponential 5ms", "exponential 50ms", "uniform 1ms 9ms"].map(str::to_owned);
        let of_one_kind =
            ["a law of many parameters 1 x 2ms", "a law of many parameters 2 x 2ms"].map(str::to_owned);
        for names in [&laws[..], &of_one_kind[..]] {
            for most in [24.0, 40.0, 60.0, 90.0, 300.0] {
                let cut = abridged(names, most);
                let unique: std::collections::BTreeSet<&String> = cut.iter().collect();
                assert_eq!(unique.len(), names.len(), "{cut:?} at {most} px");
            }
        }
    }

    /// The texts of marks that leave a picture of this size.
    fn outside(marks: &[Mark], size: Point) -> Vec<String> {
        let leaves = |mark: &Mark| match mark {
            Mark::Group { marks, .. } => outside(marks, size),
            Mark::Text { at, anchor, upright, text, .. } => {
                let (along, most) = if *upright { (at.1, size.1) } else { (at.0, size.0) };
                let from = match anchor {
                    Anchor::Start => along,
                    Anchor::Middle => along - width(text) / 2.0,
                    Anchor::End => along - width(text),
                };
                (from < 0.0 || from + width(text) > most).then(|| text.clone()).into_iter().collect()
            }
            Mark::Line { .. }
            | Mark::Rect { .. }
            | Mark::Dot { .. }
            | Mark::Path { .. }
            | Mark::Moved { .. } => Vec::new(),
        };
        marks.iter().flat_map(leaves).collect()
    }

    #[test]
    fn no_label_of_a_chart_leaves_the_picture() {
        let long = "a number with a long name, and what it is divided by, in words that are not short either";
        for size in [(400.0, 200.0), (520.0, 310.0), (250.0, 160.0)] {
            for spread in [AxisScale::Linear, AxisScale::Log] {
                let mut plot = plot(vec![(0.5, 0.001), (10.0, 123_456.0)]);
                plot.size = size;
                (plot.title, plot.series[0].label) = (long.repeat(2), long.to_owned());
                plot.x = PlotAxis::new(long, spread, TickUnit::Seconds);
                plot.y = PlotAxis::new(long, spread, TickUnit::Seconds);
                let picture = plot.picture();
                assert_eq!(
                    outside(&picture.marks, picture.size),
                    Vec::<String>::new(),
                    "{size:?} {spread:?}"
                );
                plot.x = PlotAxis::of_names(long, vec![long.to_owned(), format!("{long} 2")]);
                let picture = plot.picture();
                assert_eq!(outside(&picture.marks, picture.size), Vec::<String>::new(), "{size:?} names");
            }
        }
    }

    #[test]
    fn a_title_that_is_cut_is_whole_in_its_tooltip() {
        let mut plot = plot(vec![(0.0, 1.0), (1.0, 2.0)]);
        plot.title = "copies.busy_s / (copies.busy_s + copies.wasted_work_s) * 100".repeat(2);
        plot.y.label.clear();
        let svg = plot.picture().in_page().into_string();
        assert!(svg.contains("…") && svg.contains(&format!("<title>{}</title>", plot.title)), "{svg}");
        assert!(
            !svg.contains("rotate(-90)") && !svg.contains("\"></text>"),
            "an axis without a title: {svg}"
        );
        plot.y.spread = AxisScale::Log;
        assert!(plot.picture().in_page().into_string().contains(">logarithmic</text>"));
    }

    #[test]
    fn intervals_that_exceed_an_axis_end_with_arrows() {
        let mut plot = plot(vec![]);
        plot.y.range = Some((1.0, 10.0));
        let mut drawn = |low, high| {
            let band = Band { low: vec![(1.0, low)], high: vec![(1.0, high)] };
            let series =
                Series { label: "a".into(), points: vec![(1.0, 5.0)], band, dots: true, ..Series::default() };
            plot.series = vec![series, Series { label: "without points".into(), ..Series::default() }];
            let svg = plot.picture().in_page().into_string();
            assert!(!svg.contains(">without points<"), "{svg}");
            svg.matches("class=\"whisker\"").count()
        };
        assert_eq!((drawn(4.0, 6.0), drawn(4.0, 60.0), drawn(0.5, 60.0)), (1, 3, 5));
    }

    #[test]
    fn each_point_without_a_band_shows_its_interval() {
        let mut plot = plot(Vec::new());
        let interval = |mean, half| Interval { mean, half_width: Some(half), replications: 3 };
        plot.series[0].push(0.0, &interval(2.0, 1.0));
        plot.series[0].push(1.0, &interval(3.0, 0.0));
        plot.y.range = Some((0.0, 4.0));
        let svg = plot.picture().in_page().into_string();
        assert_eq!(
            (svg.matches("class=\"whisker\"").count(), svg.matches("<circle").count()),
            (1, 2 + 1),
            "{svg}"
        );
        assert!(!svg.contains("class=\"band\""), "{svg}");
    }
}
