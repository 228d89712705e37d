//! A number over the cells of a sweep.

use serde_json::Value;
use volary_engine::results::{Better, Cell, Unit, in_words};
use volary_experiment::number::{self, NumberColumn, UnitText};
use volary_experiment::storage::study::{CellGroup, INJECTED, PolicyRuns, Study};

use super::distribution::colour;
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::chart::line::{Band, Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit, bounds};
use crate::chart::svg::{Picture, Point};
use crate::columns::ChartNumber;
use crate::selection::{length, short_key};

/// The axis of a swept key.
pub(super) enum SweptAxis {
    /// Numbers, or lengths of time in s.
    Numbers(TickUnit),
    /// Names of other values, in the order of the sweep.
    Names(Vec<String>),
}

impl SweptAxis {
    pub(super) fn of(values: &[&Value]) -> Self {
        if values.iter().all(|value| value.is_number()) {
            Self::Numbers(TickUnit::Number)
        } else if values.iter().all(|value| value.as_str().and_then(length).is_some()) {
            Self::Numbers(TickUnit::Seconds)
        } else {
            Self::Names(values.iter().map(|value| in_words(value)).collect())
        }
    }

    /// The position of a value on the axis.
    fn at(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Numbers(TickUnit::Number | TickUnit::Share) => value.as_f64(),
            Self::Numbers(TickUnit::Seconds) => value.as_str().and_then(length),
            Self::Names(names) => names.iter().position(|name| *name == in_words(value)).map(|at| at as f64),
        }
    }

    /// The axis for values at these positions. Its margin keeps the outermost dots whole.
    fn axis(&self, label: &str, places: &[f64]) -> PlotAxis {
        let unit = match self {
            Self::Names(names) => return PlotAxis::of_names(label, names.clone()),
            Self::Numbers(unit) => *unit,
        };
        let (low, high) = bounds(places.iter().copied());
        let (least, _) = bounds(places.iter().copied().filter(|place| *place != 0.0));
        let spread = AxisScale::suited(places.iter().copied());
        let range = match spread {
            AxisScale::Log => (least / 1.1, high * 1.1),
            AxisScale::Linear => (low - 0.04 * (high - low), high + 0.04 * (high - low)),
        };
        let mut ticks: Vec<f64> = places.to_vec();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        if ticks.len() > MOST_TICKS {
            ticks.clear();
        }
        PlotAxis { range: Some(range), zero: low == 0.0, ticks, ..PlotAxis::new(label, spread, unit) }
    }
}

/// Maximum number of swept values that have a tick each; with more values, ticks are at round values.
const MOST_TICKS: usize = 12;

/// The common values of all keys except one, and the cells that differ only in that key.
pub(super) type Panel<'a> = (Cell, Vec<&'a CellGroup>);

/// The cells of a study, grouped by the values of all keys except `key`.
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

/// The quantity of a curve: a number as a function of a swept key.
pub(crate) struct Sweep<'a> {
    pub(crate) key: &'a str,
    pub(crate) number: &'a ChartNumber,
    pub(crate) size: Point,
    pub(crate) titles: &'a AxisTitles,
}

/// Titles of axes for keys that are often swept.
const KEYS: [(&str, &str); 18] = [
    ("cluster.nodes", "number of nodes"),
    ("cluster.cores", "cores of a node"),
    ("cluster.schedulers", "number of schedulers"),
    ("cluster.request_rate", "requests per second of the job controller"),
    ("interference.bernoulli.probability", "probability that a slot is degraded"),
    ("interference.bernoulli.slot", "length of a slot"),
    ("interference.bernoulli.slowdown", "slowdown of degraded cores"),
    ("network.loss", "share of transmissions lost"),
    ("network.one_way", "delay of a message"),
    ("service.demand", "work of a task"),
    ("service.preemption", "cost of a preemption"),
    ("workload.gossip.topology", "topology"),
    ("workload.mix.load", "offered load"),
    ("workload.synthetic.interarrival.exponential.mean", "mean time between arrivals"),
    ("workload.synthetic.load", "offered load"),
    ("workload.synthetic.tasks", "tasks of a job"),
    ("workload.trace.file", "trace"),
    ("workload.trace.load", "offered load"),
];

/// The title of the axis of a swept key: its meaning, or else the key.
fn in_prose(key: &str) -> &str {
    KEYS.iter().find(|(known, _)| *known == key).map_or(key, |(_, name)| name)
}

/// The heading of a swept key among others: its last part, or its meaning if that part is the mean of a distribution.
pub(crate) fn heading<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    match short_key(key, keys) {
        "mean" => in_prose(key),
        short => short,
    }
}

/// The swept keys, ordered from the least to the most frequent change between consecutive cells.
pub(crate) fn outer_first(study: &Study) -> Vec<&str> {
    let changes = |key: &&str| {
        let pairs = study.cells.iter().zip(study.cells.iter().skip(1));
        pairs.filter(|(a, b)| a.cell.get(*key) != b.cell.get(*key)).count()
    };
    let mut names: Vec<&str> = study.swept().into_keys().collect();
    names.sort_by_key(changes);
    names
}

/// Titles of axes in place of the usual ones.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AxisTitles {
    /// Title of the horizontal axis; the meaning of the key if absent.
    pub x: Option<String>,
    /// Title of the vertical axis; if absent, only the charts have the number as their title.
    pub y: Option<String>,
}

impl Sweep<'_> {
    /// A chart for each combination of the values of the other keys, with a line per policy. All charts have the same
    /// axes.
    pub(crate) fn by_policy(&self, study: &Study, policies: &[&str]) -> Vec<Picture> {
        let (panels, axis) = (panels(study, self.key), self.axis(study));
        let lines = |(_, cells): &Panel<'_>| {
            let line = |policy: &&str| self.line(&axis, cells, policy, (policy, colour(policies, policy)));
            policies.iter().map(line).collect::<Vec<_>>()
        };
        let charts: Vec<Vec<Series>> = panels.iter().map(lines).collect();
        let titles = panels.iter().map(|(at, _)| self.title(at));
        self.pictures(&axis, charts, titles)
    }

    /// A chart for each policy, with a line for each combination of the values of the other keys. All charts have the
    /// same axes.
    pub(super) fn by_value(&self, study: &Study, policies: &[&str]) -> Vec<Picture> {
        let (panels, axis) = (panels(study, self.key), self.axis(study));
        let lines = |policy: &&str| {
            let line = |(i, (rest, cells)): (usize, &Panel<'_>)| {
                let name = if rest.is_empty() { (*policy).to_owned() } else { named(rest) };
                self.line(&axis, cells, policy, (&name, i))
            };
            panels.iter().enumerate().map(line).collect::<Vec<_>>()
        };
        let charts = policies.iter().map(lines).collect();
        self.pictures(
            &axis,
            charts,
            policies.iter().map(|policy| format!("{}, {policy}", self.number.title())),
        )
    }

    fn title(&self, at: &Cell) -> String {
        if at.is_empty() { self.number.title() } else { format!("{}: {}", self.number.title(), named(at)) }
    }

    /// A chart of the number against the means of another, in which each cell is a point, with a line per policy.
    pub(super) fn against(&self, other: &ChartNumber, study: &Study, policies: &[&str]) -> Vec<Picture> {
        let cells: Vec<&CellGroup> = study.cells.iter().collect();
        let mean = |group: &CellGroup, policy: &str| Some(group.of(policy)?.interval(other.of())?.mean);
        let line = |policy: &&str| {
            self.means(&cells, policy, (policy, colour(policies, policy)), |group| mean(group, policy))
        };
        let title = format!("{} against {}", self.number.title(), other.title());
        let charts = vec![policies.iter().map(line).collect()];
        self.pictures(&SweptAxis::Numbers(unit(other)), charts, std::iter::once(title))
    }

    /// The line of a policy: its means over the key, with intervals over replications.
    fn line(&self, axis: &SweptAxis, cells: &[&CellGroup], policy: &str, name: (&str, usize)) -> Series {
        self.means(cells, policy, name, |group| axis.at(group.cell.get(self.key)?))
    }

    /// The line of a policy: its means in cells at these places, with intervals over replications.
    fn means(
        &self,
        cells: &[&CellGroup],
        policy: &str,
        (label, colour): (&str, usize),
        at: impl Fn(&CellGroup) -> Option<f64>,
    ) -> Series {
        let is_injected = |group: &&CellGroup| group.of(policy).is_some_and(PolicyRuns::is_injected);
        let mark = if cells.iter().any(is_injected) { INJECTED } else { "" };
        let mut series = Series { label: format!("{label}{mark}"), colour, dots: true, ..Series::default() };
        let point = |group: &&CellGroup| Some((at(group)?, group.of(policy)?.interval(self.number.of())?));
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
        let x = axis.axis(self.titles.x.as_deref().unwrap_or_else(|| in_prose(self.key)), &places);
        let values: Vec<f64> = points().map(|point| point.1).collect();
        let bands: Vec<&Band> = charts.iter().flatten().map(|series| &series.band).collect();
        // The title of each chart begins with the number.
        let title = self.titles.y.as_deref().unwrap_or_default();
        let y = value_axis(title, unit(self.number), &values, &bands);
        charts
            .into_iter()
            .zip(titles)
            .map(|(series, title)| {
                Plot { title, x: x.clone(), y: y.clone(), series, size: self.size }.picture()
            })
            .collect()
    }
}

/// The axis for means and their intervals.
fn value_axis(label: &str, unit: TickUnit, values: &[f64], bands: &[&Band]) -> PlotAxis {
    let spread = AxisScale::suited(values.iter().copied());
    let (low, high) = bounds(values.iter().copied());
    // Intervals are shown only as far as they leave room for the means.
    let (lowest, _) = bounds(bands.iter().flat_map(|band| &band.low).map(|edge| edge.1));
    let (_, highest) = bounds(bands.iter().flat_map(|band| &band.high).map(|edge| edge.1));
    let reach = highest.min(high * 1.6).max(high);
    let range = match spread {
        AxisScale::Log => (bounds(values.iter().copied().filter(|value| *value > 0.0)).0 / 1.2, reach * 1.2),
        // Shares near 100 % would coincide on an axis from zero.
        AxisScale::Linear if unit == TickUnit::Share && low > 0.9 && low < 1.0 && high <= 1.0 => {
            let from = lowest.clamp(2.0 * low - 1.0, low);
            (from - 0.06 * (1.0 - from), 1.0 + 0.06 * (1.0 - from))
        }
        AxisScale::Linear => (lowest.max(low * 1.6).min(low).min(0.0) * 1.04, reach.max(0.0) * 1.04),
    };
    PlotAxis { range: Some(range), zero: low == 0.0, ..PlotAxis::new(label, spread, unit) }
}

/// Swept values as text, with the last part of each key.
pub(crate) fn named(cell: &Cell) -> String {
    let keys: Vec<&str> = cell.keys().map(String::as_str).collect();
    let words = cell.iter().map(|(key, value)| format!("{} = {}", heading(key, &keys), in_words(value)));
    words.collect::<Vec<_>>().join(", ")
}

fn unit(number: &ChartNumber) -> TickUnit {
    match number.unit() {
        Unit::Seconds => TickUnit::Seconds,
        Unit::Share => TickUnit::Share,
        Unit::Hours | Unit::Plain | Unit::Count => TickUnit::Number,
    }
}

/// The numbers of every cell, shaded by how much worse they are than the best number of a policy. A cell whose runs met
/// unequal injections has daggers instead of shades.
pub(crate) fn heat(
    study: &Study,
    policies: &[&str],
    numbers: &[ChartNumber],
    link: impl Fn(usize) -> String,
) -> Heat {
    let names = outer_first(study);
    let columns = policies.iter().enumerate().map(|(i, policy)| (format!("p{i}"), (*policy).to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    let shaded: Vec<ShadedNumber<'_>> =
        numbers.iter().map(|number| ShadedNumber::new(study, policies, number)).collect();
    let row = |(i, group): (usize, &CellGroup)| {
        let value = |key: &&str| group.cell.get(*key).map(in_words).unwrap_or_default();
        let cells = shaded.iter().flat_map(|number| number.shades(i, group, policies)).collect();
        HeatRow { names: names.iter().map(value).collect(), link: link(i), cells }
    };
    let group = |number: &ShadedNumber<'_>| {
        let unit = number.written.unit;
        let of = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
        (format!("{}{of}", number.number.title()), columns.clone())
    };
    Heat {
        keys: names.iter().map(|key| (heading(key, &names).to_owned(), (*key).to_owned())).collect(),
        groups: shaded.iter().map(group).collect(),
        rows: study.cells.iter().enumerate().map(row).collect(),
    }
}

/// A number of every cell, under each policy.
struct ShadedNumber<'a> {
    number: &'a ChartNumber,
    /// The means of each cell; `None` if nothing was measured.
    means: Vec<Vec<Option<f64>>>,
    /// The means as text, cell by cell.
    written: NumberColumn,
    /// The factor with the strongest shade: the largest one of the study, or at least five.
    strongest: f64,
}

impl<'a> ShadedNumber<'a> {
    fn new(study: &Study, policies: &[&str], number: &'a ChartNumber) -> Self {
        let mean = |group: &CellGroup, policy| Some(group.of(policy)?.interval(number.of())?.mean);
        let of_cell = |group: &CellGroup| policies.iter().map(|policy| mean(group, policy)).collect();
        let means: Vec<Vec<Option<f64>>> = study.cells.iter().map(of_cell).collect();
        let flat: Vec<_> = means.iter().flatten().map(|mean| (mean.unwrap_or(f64::NAN), None)).collect();
        let factor = |(group, means): (&CellGroup, &Vec<Option<f64>>)| {
            let (low, high) = bounds(means.iter().flatten().copied());
            if low > 0.0 && group.unequal().is_none() { high / low } else { 1.0 }
        };
        let factors = study.cells.iter().zip(&means).map(factor).filter(|factor| factor.is_finite());
        let strongest = factors.fold(5.0, f64::max);
        let written = number.unit().column(&flat);
        Self { number, means, written, strongest }
    }

    /// Shades of a cell, one per policy.
    fn shades(&self, cell: usize, group: &CellGroup, policies: &[&str]) -> Vec<Option<Shade>> {
        let unequal = group.unequal();
        let means = &self.means[cell];
        let range = bounds(means.iter().flatten().copied());
        let shade = |(at, policy): (usize, &&str)| {
            let mean = means[at]?;
            let range = if unequal.is_some() { (mean, mean) } else { range };
            let (depth, small) = shade(mean, range, self.number.better(), self.strongest);
            let text = self.written.cells[cell * policies.len() + at].0.clone();
            let title = format!("{policy}: {} {small}", self.number.unit().text(mean));
            let (small, title) = match &unequal {
                Some(why) => ("†".to_owned(), format!("{title}, not comparable: {why}")),
                None => (small, title),
            };
            Some(Shade { depth, text, small, title, series: None, link: String::new() })
        };
        policies.iter().enumerate().map(shade).collect()
    }
}

/// The depth of the shade of a value, given the smallest and the largest value of its cell, and the factor to the best
/// value as text. The best value has depth 0, and a value worse by the factor `strongest` has depth 1. If the smallest
/// value is not positive, factors mean nothing, and the worst value has depth 1.
fn shade(mean: f64, (low, high): (f64, f64), better: Better, strongest: f64) -> (f64, String) {
    let (factor, part) = match better {
        Better::Less => (mean / low, (mean - low) / (high - low)),
        Better::More => (high / mean, (high - mean) / (high - low)),
        Better::Neither => (1.0, 0.0),
    };
    let known = factor.is_finite() && low > 0.0;
    let small = if known && factor >= 1.005 { format!("×{}", number::short(factor)) } else { String::new() };
    let depth = match known {
        true => factor.ln() / strongest.ln(),
        false if high > low => part,
        false => 0.0,
    };
    (depth, small)
}

/// The title of the panel of a cell: its values, or what the panel shows if nothing is swept.
pub(super) fn panel_title(group: &CellGroup, what: &str) -> String {
    if group.cell.is_empty() { what.to_owned() } else { named(&group.cell) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_keys_have_titles_in_prose() {
        let titles = ["cluster.nodes", "policy.sampled.samples"].map(in_prose);
        assert_eq!(titles, ["number of nodes", "policy.sampled.samples"]);
    }

    #[test]
    fn cells_are_shaded_even_if_the_best_is_zero() {
        let depth = |mean, low, high| shade(mean, (low, high), Better::Less, 5.0).0;
        assert_eq!([depth(0.0, 0.0, 0.5), depth(0.25, 0.0, 0.5), depth(0.5, 0.0, 0.5)], [0.0, 0.5, 1.0]);
        assert_eq!([depth(-4.0, -4.0, 2.0), depth(-1.0, -4.0, 2.0), depth(2.0, -4.0, 2.0)], [0.0, 0.5, 1.0]);
        let (depth_of_half, factor) = shade(0.5, (0.5, 1.0), Better::More, 8.0);
        assert!((depth_of_half - 1.0 / 3.0).abs() < 1e-9 && factor == "×2.00", "the largest is the best");
        assert_eq!(shade(1.0, (0.5, 1.0), Better::More, 8.0), (0.0, String::new()));
        assert_eq!([depth(0.0, 0.0, 0.0), depth(0.1, 0.1, 0.5), depth(0.5, 0.1, 0.5)], [0.0, 0.0, 1.0]);
    }

    #[test]
    fn an_axis_with_zero_can_be_logarithmic() {
        let axis = SweptAxis::Numbers(TickUnit::Seconds).axis("one_way", &[0.0, 0.001, 1.0]);
        assert_eq!((axis.spread, axis.zero), (AxisScale::Log, true));
        assert!(axis.range.is_some_and(|(low, high)| low > 0.000_9 && high >= 1.0), "{axis:?}");
    }

    #[test]
    fn the_axis_of_values_has_a_place_for_every_value() {
        for (values, spread) in [
            (vec![0.0, 238e-9, 428e-9, 0.5], AxisScale::Log),
            (vec![-0.02, 10e-6, 0.08, 1.0], AxisScale::Linear),
            (vec![-3.0, -1.0], AxisScale::Linear),
        ] {
            let axis = value_axis("age", TickUnit::Seconds, &values, &[]);
            let (low, high) = axis.range.unwrap();
            assert_eq!(axis.spread, spread, "{values:?}");
            let has = |value: &f64| *value == 0.0 && axis.zero || (low..=high).contains(value);
            assert!(values.iter().all(has), "{axis:?}: {values:?}");
        }
    }
}
