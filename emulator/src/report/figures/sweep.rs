//! A number over the cells of a sweep.

use serde_json::Value;
use volary_engine::results::{Cell, cell_name, in_words};

use super::distribution::colour;
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::{Picture, Point};
use crate::number::{self, Quantity};
use crate::report::columns::PickedColumn;
use crate::storage::study::{CellGroup, Study};

/// The axis of a swept key.
pub(super) enum SweptAxis {
    /// Numbers and lengths of time, in s.
    Numbers(TickUnit),
    /// Anything else, in the order of the sweep.
    Names(Vec<String>),
}

impl SweptAxis {
    pub(super) fn of(values: &[&Value]) -> Self {
        if values.iter().all(|value| value.is_number()) {
            Self::Numbers(TickUnit::Number)
        } else if values.iter().all(|value| length(value).is_some()) {
            Self::Numbers(TickUnit::Seconds)
        } else {
            Self::Names(values.iter().map(|value| in_words(value)).collect())
        }
    }

    /// The place of a value.
    fn at(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Numbers(TickUnit::Number | TickUnit::Share) => value.as_f64(),
            Self::Numbers(TickUnit::Seconds) => length(value),
            Self::Names(names) => names.iter().position(|name| *name == in_words(value)).map(|at| at as f64),
        }
    }

    /// The axis over values at these places, with a margin so that the outermost dots are not cut.
    fn axis(&self, label: &str, places: &[f64]) -> PlotAxis {
        let unit = match self {
            Self::Names(names) => return PlotAxis::of_names(label, names.clone()),
            Self::Numbers(unit) => *unit,
        };
        let (low, high) =
            places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
        let (spread, range) = if low > 0.0 && high / low >= 20.0 {
            (AxisScale::Log, (low / 1.1, high * 1.1))
        } else {
            (AxisScale::Linear, (low - 0.04 * (high - low), high + 0.04 * (high - low)))
        };
        PlotAxis { range: Some(range), ..PlotAxis::new(label, spread, unit) }
    }
}

/// A length of time such as `10ms`, in s.
fn length(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    number.parse().ok().map(|number: f64| number * factor)
}

/// The cells that differ only in one key, with the values that they share.
pub(super) type Panel<'a> = (Cell, Vec<&'a CellGroup>);

/// The cells of a study, by the values of all keys but `key`.
pub(super) fn panels<'a>(study: &'a Study, key: &str) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for group in &study.cells {
        let mut rest = group.cell.clone();
        rest.remove(key);
        match panels.iter_mut().find(|(other, _)| *other == rest) {
            Some((_, groups)) => groups.push(group),
            None => panels.push((rest, vec![group])),
        }
    }
    panels
}

/// What a curve is drawn of: a number, over a key.
pub(in crate::report) struct Sweep<'a> {
    pub(in crate::report) key: &'a str,
    pub(in crate::report) number: &'a PickedColumn,
    pub(in crate::report) size: Point,
}

impl Sweep<'_> {
    /// A chart for each combination of the values of the other keys, a line a policy. All have the same axes.
    pub(in crate::report) fn by_policy(&self, study: &Study, policies: &[&str]) -> Vec<Picture> {
        let (panels, axis) = (panels(study, self.key), self.axis(study));
        let lines = |(_, cells): &Panel<'_>| {
            let line = |policy: &&str| self.line(&axis, cells, policy, (policy, colour(policies, policy)));
            policies.iter().map(line).collect::<Vec<_>>()
        };
        let charts: Vec<Vec<Series>> = panels.iter().map(lines).collect();
        let titles = panels.iter().map(|(at, _)| self.title(at));
        self.pictures(&axis, charts, titles)
    }

    /// One chart of a policy, a line for each combination of the values of the other keys.
    pub(super) fn by_value(&self, study: &Study, policy: &str) -> Vec<Picture> {
        let axis = self.axis(study);
        let line = |(i, (rest, cells)): (usize, Panel<'_>)| {
            let name = if rest.is_empty() { policy.to_owned() } else { named(&rest) };
            self.line(&axis, &cells, policy, (&name, i))
        };
        let series = panels(study, self.key).into_iter().enumerate().map(line).collect();
        self.pictures(&axis, vec![series], std::iter::once(format!("{}, {policy}", self.number.title())))
    }

    fn title(&self, at: &Cell) -> String {
        if at.is_empty() { self.number.title() } else { format!("{}: {}", self.number.title(), named(at)) }
    }

    /// The mean of a policy over the key, with intervals over replications.
    fn line(
        &self,
        axis: &SweptAxis,
        cells: &[&CellGroup],
        policy: &str,
        (label, colour): (&str, usize),
    ) -> Series {
        let mut series = Series { label: label.to_owned(), colour, dots: true, ..Series::default() };
        let point = |group: &&CellGroup| {
            Some((axis.at(group.cell.get(self.key)?)?, group.of(policy)?.interval(self.number.of())?))
        };
        let mut points: Vec<_> = cells.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.iter().for_each(|(at, interval)| series.push(*at, interval));
        series
    }

    fn axis(&self, study: &Study) -> SweptAxis {
        SweptAxis::of(study.swept().get(self.key).map_or(&[], Vec::as_slice))
    }

    fn pictures(
        &self,
        axis: &SweptAxis,
        charts: Vec<Vec<Series>>,
        titles: impl Iterator<Item = String>,
    ) -> Vec<Picture> {
        let points = || charts.iter().flatten().flat_map(|series| series.points.iter().copied());
        let places: Vec<f64> = points().map(|point| point.0).collect();
        if places.is_empty() {
            return Vec::new();
        }
        let x = axis.axis(self.key, &places);
        let spread = AxisScale::suited(points().map(|point| point.1));
        let (low, high) =
            points().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, y)| (a.min(y), b.max(y)));
        // Intervals are shown as far as they leave room for the means.
        let edges = charts.iter().flatten().flat_map(|series| series.band.high.iter().map(|edge| edge.1));
        let high = edges.fold(high, f64::max).min(high * 1.6);
        let range = match spread {
            AxisScale::Log => (low / 1.2, high * 1.2),
            AxisScale::Linear => (low.min(0.0), high * 1.04),
        };
        let y = PlotAxis::new(&self.number.title(), spread, unit(self.number));
        let y = PlotAxis { range: Some(range), ..y };
        charts
            .into_iter()
            .zip(titles)
            .map(|(series, title)| {
                Plot { title, x: x.clone(), y: y.clone(), series, size: self.size }.picture()
            })
            .collect()
    }
}

/// The last part of a swept key, if no other key has the same one.
pub(in crate::report) fn short_key<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alike = keys.iter().filter(|other| other.rsplit('.').next() == Some(last(key))).count();
    if alike > 1 { key } else { last(key) }
}

/// Swept values in words, by the last part of their keys.
fn named(cell: &Cell) -> String {
    let keys: Vec<&str> = cell.keys().map(String::as_str).collect();
    let words = cell.iter().map(|(key, value)| format!("{} = {}", short_key(key, &keys), in_words(value)));
    words.collect::<Vec<_>>().join(", ")
}

const fn unit(number: &PickedColumn) -> TickUnit {
    match number.column().quantity {
        Quantity::Time => TickUnit::Seconds,
        Quantity::Share => TickUnit::Share,
        Quantity::Plain | Quantity::Count => TickUnit::Number,
    }
}

/// Numbers of every cell, shaded by how much larger they are than the least of a policy.
pub(in crate::report) fn heat(
    study: &Study,
    policies: &[&str],
    numbers: &[PickedColumn],
    link: impl Fn(usize) -> String,
) -> Heat {
    let names: Vec<&str> = study.swept().into_keys().collect();
    let columns = policies.iter().enumerate().map(|(i, policy)| (format!("p{i}"), (*policy).to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    let row = |(i, group): (usize, &CellGroup)| {
        let value = |key: &&str| group.cell.get(*key).map(in_words).unwrap_or_default();
        let cells = numbers.iter().flat_map(|number| shades(group, policies, number)).collect();
        HeatRow { names: names.iter().map(value).collect(), link: link(i), cells }
    };
    Heat {
        keys: names.iter().map(|key| (short_key(key, &names).to_owned(), (*key).to_owned())).collect(),
        groups: numbers.iter().map(|number| (number.title(), columns.clone())).collect(),
        rows: study.cells.iter().enumerate().map(row).collect(),
    }
}

/// One shade per policy.
fn shades(group: &CellGroup, policies: &[&str], number: &PickedColumn) -> Vec<Option<Shade>> {
    let mean = |policy: &&str| group.of(policy)?.interval(number.of()).map(|interval| interval.mean);
    let means: Vec<Option<f64>> = policies.iter().map(mean).collect();
    let best = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let shade = |(mean, policy): (&Option<f64>, &&str)| mean.map(|mean| shade(mean, best, policy, number));
    means.iter().zip(policies).map(shade).collect()
}

/// The shade of a value; five times the best or more is the strongest.
fn shade(mean: f64, best: f64, policy: &str, number: &PickedColumn) -> Shade {
    let factor = mean / best;
    let known = factor.is_finite() && factor > 0.0;
    let small = if known && factor > 1.0 { format!("×{}", number::short(factor)) } else { String::new() };
    let depth = if known { factor.ln() / 5f64.ln() } else { 0.0 };
    let text = number.column().quantity.text(mean);
    let title = format!("{policy}: {text} {small}");
    Shade { depth, title, text, small, series: None, link: String::new() }
}

/// The name of a cell, or of the only one.
pub(super) fn cell_title(group: &CellGroup) -> String {
    let name = cell_name(&group.cell);
    if name.is_empty() { "Response time of jobs".to_owned() } else { named(&group.cell) }
}
