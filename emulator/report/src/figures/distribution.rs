//! Distributions of response times of a cell: as curves, and as percentiles.

use volary_experiment::storage::run_record::{RunRecord, Sketch};
use volary_experiment::storage::study::{CellGroup, PolicyRuns};

use crate::chart::cdf::Curve;
use crate::chart::line::{Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::{Picture, Point};
use crate::columns::{SummaryColumn, percentiles_of_response};

/// The index of a policy among the policies of the study, which determines its colour.
pub(crate) fn colour(policies: &[&str], policy: &str) -> usize {
    policies.iter().position(|known| *known == policy).unwrap_or(0)
}

/// One curve per policy, from the sketches of its replications.
pub(crate) fn curves<'a>(
    group: &'a CellGroup,
    policies: &[&str],
    sketch: impl Fn(&'a RunRecord) -> Option<(&'a Sketch, u64)>,
) -> Vec<Curve<'a>> {
    let curve = |runs: &'a PolicyRuns| Curve {
        label: runs.label(),
        colour: colour(policies, &runs.policy),
        runs: runs.runs.iter().filter_map(&sketch).collect(),
        running: false,
    };
    group.policies.iter().map(curve).collect()
}

/// The response times of all jobs of a run, and the number of submitted jobs.
pub(crate) const fn responses(record: &RunRecord) -> Option<(&Sketch, u64)> {
    Some((&record.response, record.summary.jobs.submitted))
}

/// The times of deliveries of a run, and the number of receivers of all updates; `None` if no update was delivered.
pub(crate) fn deliveries(record: &RunRecord) -> Option<(&Sketch, u64)> {
    let coverage = record.summary.sections.gossip.as_ref()?.coverage;
    let receivers = (record.deliveries.count as f64 / coverage).round();
    receivers.is_finite().then_some((&record.deliveries, receivers as u64))
}

/// A chart of response time percentiles side by side, with a line per policy and intervals over replications.
pub(super) fn percentiles(title: &str, group: &CellGroup, policies: &[&str], size: Point) -> Picture {
    let columns: Vec<SummaryColumn> = percentiles_of_response().collect();
    let names = columns.iter().map(|column| column.heading.to_owned()).collect();
    let series: Vec<Series> = group
        .policies
        .iter()
        .map(|runs| {
            let colour = colour(policies, &runs.policy);
            let mut series = Series { label: runs.label(), colour, dots: true, ..Series::default() };
            for (at, column) in columns.iter().enumerate() {
                if let Some(interval) = runs.interval(column.of(None)) {
                    series.push(at as f64, &interval);
                }
            }
            series
        })
        .collect();
    let spread =
        AxisScale::suited(series.iter().flat_map(|series| series.points.iter().map(|point| point.1)));
    let x = PlotAxis::of_names("percentile of jobs", names);
    let y = PlotAxis::new("response time", spread, TickUnit::Seconds);
    Plot { title: title.to_owned(), x, y, series, size }.picture()
}
