//! A policy in a cell that two studies ran: the differences of its metrics, and their table.

use serde::{Deserialize, Serialize};
use volary_engine::results::{Cell, Unit};
use volary_experiment::number::{self, UnitText};
use volary_report::style::{missing, text_table};

use super::metrics::named;

const HEADER: [&str; 6] = ["metric", "first", "second", "difference", "change", ""];
/// Index of the column of stars.
const MARK: usize = 5;
/// Indices of the columns that a narrow terminal leaves out, the least important first.
const DROPPED_FIRST: [usize; 2] = [4, 3];
/// Minimum width of the column of names; other columns are left out to keep it.
const NAME: usize = 20;

/// The table of a point. Columns are left out until the table fits the width; the last line names them.
pub(super) fn point_table(point: &ComparedPoint, width: Option<usize>) -> String {
    let mut rows: Vec<Vec<String>> = point.metrics.iter().filter_map(row).collect();
    let mut columns: Vec<usize> = (0..HEADER.len()).collect();
    let is_marked = rows.iter().any(|row| !row[MARK].is_empty());
    columns.retain(|column| *column != MARK || is_marked);
    let mut left_out = Vec::new();
    if let Some(width) = width {
        let size = |at: &usize| {
            rows.iter()
                .map(|row| row[*at].chars().count())
                .chain([HEADER[*at].len()])
                .max()
                .unwrap_or(0)
                .max(1)
                + 3
        };
        let names =
            |columns: &[usize]| width.saturating_sub(4 + columns[1..].iter().map(size).sum::<usize>());
        for dropped in DROPPED_FIRST {
            if names(&columns) < NAME {
                columns.retain(|column| *column != dropped);
                left_out.push(HEADER[dropped]);
            }
        }
        let most = names(&columns);
        rows.iter_mut().for_each(|row| row[0] = broken(&row[0], most));
    }
    let kept = rows.into_iter().map(|row| columns.iter().map(|column| row[*column].clone()).collect());
    let table = text_table(columns.iter().map(|column| HEADER[*column]), kept);
    match left_out.as_slice() {
        [] => table.to_string(),
        names => format!("{table}\ntoo wide for this terminal: {}", names.join(", ")),
    }
}

fn row(difference: &MetricDifference) -> Option<Vec<String>> {
    let metric = named(&difference.metric)?;
    let [a, b] = metric.unit.alike([difference.a, difference.b].map(|side| side.unwrap_or(f64::NAN)));
    let change = difference.difference.map(|mean| {
        let text = metric.unit.interval(mean, difference.half_width);
        // The difference of two shares is in percentage points.
        let text = if metric.unit == Unit::Share { text.replace('%', "pp") } else { text };
        format!("{}{text}", if mean > 0.0 { "+" } else { "" })
    });
    Some(vec![
        difference.metric.clone(),
        a,
        b,
        change.unwrap_or_else(missing),
        difference.relative.map_or_else(missing, number::change),
        if difference.differs == Some(true) { "*" } else { "" }.to_owned(),
    ])
}

/// The name of a metric in lines of at most `most` characters, broken after dots, underscores and spaces.
fn broken(name: &str, most: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for part in name.split_inclusive(['.', '_', ' ']) {
        let size = part.trim_end().chars().count();
        if used > 0 && used + size > most {
            out.truncate(out.trim_end().len());
            out.push('\n');
            used = 0;
        }
        out.push_str(part);
        used += part.chars().count();
    }
    out
}

/// A policy in a cell that both studies ran.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ComparedPoint {
    pub policy: String,
    pub cell: Cell,
    /// Number of seeds that both studies ran.
    pub paired_seeds: usize,
    /// Whether equal seeds gave equal event orders: the studies then have the same runs, not only the same world.
    pub identical: bool,
    /// Whether a run of the first study is degraded.
    #[serde(default)]
    pub a_degraded: bool,
    /// Whether a run of the second study is degraded.
    #[serde(default)]
    pub b_degraded: bool,
    /// Whether interference was injected into a run of the first study.
    #[serde(default)]
    pub a_injected: bool,
    /// Whether interference was injected into a run of the second study.
    #[serde(default)]
    pub b_injected: bool,
    /// Whether injections differed between runs of one seed. Differences are then not judged.
    #[serde(default)]
    pub unequal: bool,
    /// Numbers of runs of the first and of the second study.
    #[serde(default)]
    pub runs: [usize; 2],
    /// Numbers of unfinished jobs of the first and of the second study, over all runs.
    #[serde(default)]
    pub unfinished: [u64; 2],
    /// Measured windows of the first and of the second study, in words, under their first seeds.
    #[serde(default)]
    pub windows: [Option<String>; 2],
    pub metrics: Vec<MetricDifference>,
}

impl ComparedPoint {
    /// Whether both studies ran the same seeds with identical results.
    pub(super) fn is_same(&self) -> bool {
        let is_equal = |metric: &MetricDifference| metric.a == metric.b;
        let is_noted = self.a_degraded || self.b_degraded || self.a_injected || self.b_injected;
        let is_whole = self.has_all_seeds() && self.unfinished == [0, 0];
        self.identical && is_whole && !is_noted && self.metrics.iter().all(is_equal)
    }

    /// Whether both studies ran the same seeds.
    pub(super) fn has_all_seeds(&self) -> bool {
        self.runs == [self.paired_seeds; 2]
    }
}

/// A metric in both studies.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MetricDifference {
    /// Name of the metric in the results, such as `response_s.p50`.
    pub metric: String,
    /// Mean over the compared replications of the first study.
    pub a: Option<f64>,
    /// Mean over the compared replications of the second study.
    pub b: Option<f64>,
    /// Difference `b - a`.
    pub difference: Option<f64>,
    /// Relative difference `(b - a) / a`.
    pub relative: Option<f64>,
    /// Number of paired seeds under which both studies have a value.
    #[serde(default)]
    pub pairs: usize,
    /// Half-width of the 95 % interval of the difference; absent with fewer than two pairs.
    pub half_width: Option<f64>,
    /// Whether the interval excludes zero; absent without an interval, and for times of finished jobs if jobs are
    /// unfinished.
    pub differs: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_are_broken_between_their_parts() {
        assert_eq!(broken("response_s.p50", 20), "response_s.p50");
        assert_eq!(broken("staleness.error_s.mean", 12), "staleness.\nerror_s.mean");
    }

    #[test]
    fn a_narrow_table_names_the_columns_it_leaves_out() {
        let difference = MetricDifference {
            metric: "staleness.age_of_synchronisation_s.mean".to_owned(),
            a: Some(1.0),
            b: Some(1.5),
            difference: Some(0.5),
            relative: Some(0.5),
            pairs: 5,
            half_width: Some(0.1),
            differs: Some(true),
        };
        let point = ComparedPoint { metrics: vec![difference], ..ComparedPoint::default() };
        let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest(&point_table(&point, None)) > 80);
        for (width, left_out) in [(80, None), (64, Some("change")), (42, Some("change, difference"))] {
            let shown = point_table(&point, Some(width));
            assert!(longest(shown.split("too wide").next().unwrap()) <= width, "{width}\n{shown}");
            let said = shown.lines().find_map(|line| line.strip_prefix("too wide for this terminal: "));
            assert_eq!(said, left_out, "{width}\n{shown}");
        }
    }
}
