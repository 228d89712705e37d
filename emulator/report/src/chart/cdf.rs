//! Distributions of response times, and their tails.

use volary_experiment::stats::{Interval, dkw, wilson};
use volary_experiment::storage::run_record::Sketch;

use super::line::{Plot, PlotAxis, Series};
use super::scale::{AxisScale, TickUnit};
use super::svg::{Picture, Point};

/// Maximum number of points of a curve.
const POINTS: usize = 400;
/// The distributions of one policy, one per replication.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve<'a> {
    pub label: String,
    pub colour: usize,
    /// A sketch for each replication, with the number of jobs submitted, or of receivers of all updates.
    pub runs: Vec<(&'a Sketch, u64)>,
    /// Whether the runs are in progress.
    pub running: bool,
}

/// Share of submitted jobs that finished within a time, on a logarithmic axis.
///
/// With one replication, the band is by Dvoretzky, Kiefer and Wolfowitz, for independent jobs. Jobs in a queue are not
/// independent: the band is too narrow, and the report says so. With several replications, the curve averages the
/// quantiles of the replications, and the band is the 95 % interval of this mean. A curve that ends below 100 % has
/// unfinished jobs.
pub fn distribution(
    title: &str,
    x_label: &str,
    unit: TickUnit,
    curves: &[Curve<'_>],
    size: Point,
) -> Picture {
    shares(title, PlotAxis::new(x_label, AxisScale::Log, unit), ("share of jobs", &BODY), curves, size)
}

/// Coverage: share of the members that had an update within a time, averaged over updates.
///
/// Deliveries of one update depend on each other, so that a single replication has no band. With several replications,
/// the band is that of [`distribution`].
pub fn coverage(title: &str, curves: &[Curve<'_>], size: Point) -> Picture {
    let x = PlotAxis::new("time since the update", AxisScale::Linear, TickUnit::Seconds);
    let x = PlotAxis { zero: true, ..x };
    shares(title, x, ("share of members", &COVERAGE), curves, size)
}

fn shares(
    title: &str,
    x: PlotAxis,
    (label, shape): (&str, &Shape),
    curves: &[Curve<'_>],
    size: Point,
) -> Picture {
    let series = curves.iter().map(|curve| trace(curve, shape)).collect();
    let y = PlotAxis::new(label, AxisScale::Linear, TickUnit::Share);
    let y = PlotAxis { range: Some((0.0, 1.0)), ..y };
    Plot { title: title.into(), x, y, series, size }.picture()
}

/// Share of submitted jobs that took longer than a time. Both axes are logarithmic, which shows the tail.
///
/// With one replication, the band has Wilson's interval at each point: a band for the whole function would be
/// meaningless in the last per cent.
pub fn tail(title: &str, x_label: &str, unit: TickUnit, curves: &[Curve<'_>], size: Point) -> Picture {
    let mut series: Vec<Series> = curves.iter().map(|curve| trace(curve, &TAIL)).collect();
    let jobs = curves.iter().flat_map(|curve| curve.runs.iter().map(|run| run.1)).max().unwrap_or(1);
    let least = (1.0 / jobs.max(10) as f64).clamp(1e-6, 0.1);
    for series in &mut series {
        // A curve is cut where it leaves the picture at the bottom.
        let left = series.points.iter().position(|point| point.1 <= least).unwrap_or(series.points.len());
        series.points.truncate(left + 1);
    }
    let x = PlotAxis::new(x_label, AxisScale::Log, unit);
    let y = PlotAxis::new("jobs slower than", AxisScale::Log, TickUnit::Share);
    let y = PlotAxis { range: Some((least, 1.0)), ..y };
    Plot { title: title.into(), x, y, series, size }.picture()
}

/// The bounds of a share of this number of jobs.
type BandAt = fn(f64, u64) -> (f64, f64);

/// The plotted quantity as a function of the share of finished jobs. Its band, if any, also depends on the number of
/// jobs.
struct Shape {
    drawn: fn(f64) -> f64,
    band: Option<BandAt>,
}

const BODY: Shape = Shape {
    drawn: |share| share,
    band: Some(|share, count| ((share - dkw(count)).max(0.0), (share + dkw(count)).min(1.0))),
};

const COVERAGE: Shape = Shape { drawn: |share| share, band: None };

/// The tail. A share of zero has no logarithm, and is drawn at the lower edge.
const TAIL: Shape = Shape { drawn: |share| (1.0 - share).max(1e-12), band: Some(wilson) };

/// A policy's curve with its band.
fn trace(curve: &Curve<'_>, shape: &Shape) -> Series {
    let mut series = Series {
        label: curve.label.to_owned(),
        colour: curve.colour,
        running: curve.running,
        ..Series::default()
    };
    if let [(sketch, submitted)] = curve.runs[..] {
        let finished = sketch.count as f64 / submitted.max(1) as f64;
        series.steps = sketch.count < POINTS as u64 / 2;
        for (value, share) in sampled(sketch) {
            let share = share * finished;
            series.points.push((value, (shape.drawn)(share)));
            if let Some((low, high)) = shape.band.map(|band| band(share, submitted)) {
                series.band.low.push((value, (shape.drawn)(low)));
                series.band.high.push((value, (shape.drawn)(high)));
            }
        }
        return series;
    }
    let finished = curve.runs.iter().map(|(s, jobs)| s.count as f64 / (*jobs).max(1) as f64);
    let Some(finished) = Interval::new(&finished.collect::<Vec<_>>()) else { return series };
    for level in levels() {
        let values: Vec<f64> = curve.runs.iter().filter_map(|(sketch, _)| sketch.quantile(level)).collect();
        let Some(interval) = Interval::new(&values) else { continue };
        let share = (shape.drawn)(level * finished.mean);
        series.points.push((interval.mean, share));
        if let Some(half) = interval.half_width {
            // An edge at or below zero has no place on a logarithmic axis, and is drawn at the far left.
            series.band.low.push(((interval.mean - half).max(interval.mean / 1e3), share));
            series.band.high.push((interval.mean + half, share));
        }
    }
    series
}

/// Points (value, share of finished jobs at or below the value) of a sketch, thinned for drawing.
fn sampled(sketch: &Sketch) -> impl Iterator<Item = (f64, f64)> {
    let every = sketch.rank.len().div_ceil(POINTS).max(1);
    let last = sketch.rank.len().saturating_sub(1);
    let points = sketch.rank.iter().zip(&sketch.value).enumerate();
    let kept = points.filter(move |(i, _)| i % every == 0 || *i == last);
    kept.map(|(_, (&rank, &value))| (value, (rank + 1) as f64 / sketch.count as f64))
}

/// Shares at which quantiles are averaged: evenly spaced, and denser towards 1.
fn levels() -> impl Iterator<Item = f64> {
    let body = (0..100).map(|i| f64::from(i) * 0.009);
    body.chain((0..=60).map(|i| 1.0 - 0.1 * 10f64.powf(-f64::from(i) * 0.05))).chain([1.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_run_is_drawn_without_averaging() {
        let sketch = Sketch::new((1..=10).map(f64::from).collect());
        let series =
            trace(&Curve { label: "a".into(), colour: 0, runs: vec![(&sketch, 20)], running: false }, &BODY);
        assert!(series.steps);
        assert_eq!(series.points[0], (1.0, 0.05));
        assert_eq!(series.points[9], (10.0, 0.5), "half of the jobs never finished");
        assert!((series.band.high[0].1 - (0.05 + dkw(20))).abs() < 1e-12);
    }

    #[test]
    fn replications_are_averaged_by_quantile() {
        let runs = [1.0, 2.0, 3.0]
            .map(|scale| Sketch::new((0..=100).map(|i| scale * (1.0 + f64::from(i))).collect()));
        let curve = Curve {
            label: "a".into(),
            colour: 0,
            runs: runs.iter().map(|run| (run, 101)).collect(),
            running: false,
        };
        let series = trace(&curve, &BODY);
        let (value, share) = series.points[50];
        assert!((share - 0.45).abs() < 1e-12 && (value - 2.0 * 46.0).abs() < 1e-9, "{value} {share}");
        // The standard deviation is 46, and t(2) = 4.3027.
        assert!((series.band.high[50].0 - value - 4.302_65 * 46.0 / 3f64.sqrt()).abs() < 0.01);
    }

    #[test]
    fn a_tail_ends_at_the_lower_edge_of_its_chart() {
        let runs =
            [1.0, 2.0].map(|scale| Sketch::new((0..=100).map(|i| scale * (1.0 + f64::from(i))).collect()));
        let curve = Curve {
            label: "a".into(),
            colour: 0,
            runs: runs.iter().map(|run| (run, 101)).collect(),
            running: false,
        };
        let svg = tail("t", "x", TickUnit::Seconds, &[curve], (520.0, 310.0)).in_page().into_string();
        let path = svg.split("class=\"curve\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        let down: Vec<f64> = path
            .split('l')
            .nth(1)
            .unwrap()
            .split(' ')
            .skip(1)
            .step_by(2)
            .map(|y| y.parse().unwrap())
            .collect();
        assert!(
            down.last().unwrap() > &0.0 && down.iter().all(|dy| *dy >= 0.0),
            "the curve must not follow the bottom edge: {path}"
        );
    }

    #[test]
    fn large_sketches_are_thinned() {
        let sketch = Sketch::new((0..1_000_000).map(f64::from).collect());
        let points: Vec<(f64, f64)> = sampled(&sketch).collect();
        assert!(points.len() <= POINTS + 1 && points.len() > POINTS / 2, "{}", points.len());
        assert_eq!(points.last(), Some(&(999_999.0, 1.0)));
        let curve = Curve { label: "a".into(), colour: 0, runs: vec![(&sketch, 1_000_000)], running: false };
        let svg = distribution("t", "response", TickUnit::Seconds, &[curve], (520.0, 310.0))
            .in_page()
            .into_string();
        assert!(svg.len() < 20_000, "{}", svg.len());
    }
}
