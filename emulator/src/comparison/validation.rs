//! The result of a validation, which is stored as JSON, and its tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::Table;
use serde::{Deserialize, Serialize};
use volary_engine::results::{Cell, run_name};
use volary_experiment::number;
use volary_report::style::{missing, text_table};

use super::divergence::MetricDivergence;
use super::metrics::{BAR, entry, named};

/// The result of a validation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Validation {
    pub experiment: String,
    pub seed: u64,
    /// The runtime with which the others are compared.
    pub reference: String,
    /// Runtimes that could not run on this machine.
    pub skipped: Vec<SkippedRuntime>,
    /// The comparisons for every policy in every cell.
    pub points: Vec<ValidatedPoint>,
}

/// A runtime that could not run on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SkippedRuntime {
    pub runtime: String,
    pub why: String,
}

/// A policy in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValidatedPoint {
    pub policy: String,
    /// Values of the swept keys.
    pub cell: Cell,
    /// The measured window of the reference, in words; `None` if runs are measured from beginning to end.
    #[serde(default)]
    pub window: Option<String>,
    /// The comparison of each other runtime with the reference.
    pub against: Vec<Against>,
}

impl Validation {
    /// Whether the validation succeeded: every runtime had the same jobs and equal final counts, and runs that are not
    /// degraded stay within the bar.
    pub fn holds(&self) -> bool {
        self.points.iter().flat_map(|point| &point.against).all(Against::holds)
    }

    /// Whether nothing was judged, because all comparisons are of degraded runs.
    pub fn is_void(&self) -> bool {
        let mut all = self.points.iter().flat_map(|point| &point.against).peekable();
        all.peek().is_some() && all.all(|against| !against.is_judged)
    }
}

/// The comparison of a runtime with the reference.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Against {
    pub runtime: String,
    pub runs: usize,
    /// Number of degraded runs that the metrics leave out; 0 if all runs are degraded.
    pub left_out: usize,
    /// Whether the metrics are judged: neither the reference nor the compared runs are degraded.
    pub is_judged: bool,
    /// Whether the runs have certificates of fidelity; runs in virtual time have none.
    pub is_certified: bool,
    /// Counts of jobs and tasks that differ, as text.
    pub accounts: Vec<String>,
    /// Comparison of the jobs with those of the reference.
    pub draws: DrawsCompared,
    /// Placement of jobs; absent if no executions were sampled.
    pub placement: Option<JobPlacement>,
    /// Reasons for degraded results, and injections, over all runs and the reference.
    pub degraded: Vec<String>,
    pub metrics: Vec<MetricDivergence>,
    /// Metrics that only some policies have, by section of the summary.
    #[serde(flatten)]
    pub policy: BTreeMap<String, Vec<MetricDivergence>>,
}

/// Bit-by-bit comparison of each job's arrival and demand, in the repetition with the most differences.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct DrawsCompared {
    /// Number of jobs in either run.
    pub jobs: u64,
    /// Number of jobs that are in only one of the runs, or have another arrival time or other work.
    pub different: u64,
}

/// The placement of sampled jobs, in the repetition in which most jobs moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobPlacement {
    /// Number of jobs whose executions were sampled in both runs.
    pub jobs: u64,
    /// Number of these jobs with a task whose first finished copy ran on another core.
    pub moved: u64,
}

impl Against {
    /// Whether the comparison holds; see [`Validation::holds`].
    pub fn holds(&self) -> bool {
        let same = self.accounts.is_empty() && self.draws.different == 0;
        let off = self.policy.values().flatten().any(|divergence| divergence.within == Some(false));
        same && (!self.is_judged || self.beyond().next().is_none() && !off)
    }

    /// Metrics beyond the bar, both with cores as requested and with cores as found.
    pub fn beyond(&self) -> impl Iterator<Item = &MetricDivergence> {
        self.metrics.iter().filter(|divergence| divergence.is_beyond())
    }
}

impl Validation {
    /// The tables of all points, with the counts, jobs and causes of each runtime, then the verdict.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for point in &self.points {
            let _ = writeln!(out, "{}", run_name(&point.policy, &point.cell, self.seed));
            let _ = writeln!(out, "{}", self.table(point));
            point.window.iter().for_each(|window| out.push_str(&format!("{window}\n")));
            point.against.iter().for_each(|against| out.push_str(&against.text()));
            out.push('\n');
        }
        for skipped in &self.skipped {
            let _ = writeln!(out, "{} was left out: {}", skipped.runtime, skipped.why);
        }
        out.push_str(&self.verdict());
        out
    }

    fn table(&self, point: &ValidatedPoint) -> Table {
        let mut header = vec!["metric".to_owned(), self.reference.clone()];
        for against in &point.against {
            header.extend([against.runtime.clone(), "divergence".to_owned()]);
            if against.has_found() {
                header.extend([format!("{} as found", self.reference), "divergence as found".to_owned()]);
            }
        }
        // A metric that is not judged has no row for a runtime without a value.
        let mut divergences: Vec<&MetricDivergence> = Vec::new();
        for divergence in point.against.iter().flat_map(Against::rows) {
            if divergences.iter().all(|known| known.metric != divergence.metric) {
                divergences.push(divergence);
            }
        }
        let rows = divergences.into_iter().filter_map(|divergence| {
            let metric = named(&divergence.metric)?;
            let mut cells = vec![divergence.metric.clone(), entry(metric, divergence.reference)];
            for against in &point.against {
                let other = against.rows().find(|row| row.metric == divergence.metric);
                let value = |of: fn(&MetricDivergence) -> Option<f64>| entry(metric, other.and_then(of));
                let is_judged = against.is_judged;
                let divergence = other.map_or_else(missing, |row| change(row, is_judged));
                cells.extend([value(|row| row.value), divergence]);
                if against.has_found() {
                    let divergence = other.map_or_else(missing, |row| from_found(row, is_judged));
                    cells.extend([value(|row| row.found), divergence]);
                }
            }
            Some(cells)
        });
        text_table(header, rows)
    }

    fn verdict(&self) -> String {
        let all = || self.points.iter().flat_map(|point| &point.against);
        let degraded = all().filter(|against| !against.is_judged).count();
        let bar = number::percent(BAR);
        let judged = |of: fn(&MetricDivergence) -> Option<bool>| {
            let judged = all().filter(|against| against.is_judged);
            let judged = judged.flat_map(|against| &against.metrics).filter_map(of);
            judged.fold((0, 0), |(within, all), is| (within + usize::from(is), all + 1))
        };
        let (within, quantiles) = judged(|divergence| divergence.within);
        let mut out = String::new();
        if !self.is_void() && quantiles == 0 {
            out.push_str("there are no response times to judge: the runs have no jobs\n");
        } else if !self.is_void() {
            let _ = writeln!(
                out,
                "{within} of {quantiles} quantiles (p50, p90, p99) are within {bar} of {}, or within the \
                differences between runs",
                self.reference,
            );
        }
        let (within, quantiles) = judged(|divergence| divergence.within_found);
        if quantiles > 0 {
            let _ = writeln!(
                out,
                "{within} of {quantiles} of burnt copies are within {bar} of {} with cores as found, so \
                everything except the cores behaved the same; the certificate states whether the cores were as \
                slow as requested",
                self.reference
            );
        }
        let mut sections: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for (section, rows) in all().filter(|against| against.is_judged).flat_map(|against| &against.policy) {
            sections.entry(section).or_default().extend(rows.iter().filter_map(|row| row.within));
        }
        for (section, judged) in sections.iter().filter(|(_, judged)| !judged.is_empty()) {
            let within = judged.iter().filter(|&&within| within).count();
            let _ = writeln!(
                out,
                "{within} of {} figures of {section} are within the differences that lateness and chance explain",
                judged.len()
            );
        }
        if self.is_void() {
            let (all, reasons) = match degraded {
                1 => ("the only real run is".to_owned(), "reason is"),
                many => (format!("all {many} real runs are"), "reasons are"),
            };
            let _ = writeln!(
                out,
                "no quantile was judged, because {all} degraded or disturbed by injections; the {reasons} above"
            );
        } else if degraded > 0 {
            let _ = writeln!(out, "{degraded} of {} are degraded and not judged", all().count());
        }
        let worlds =
            all().filter(|against| !against.accounts.is_empty() || against.draws.different > 0).count();
        if worlds > 0 {
            let _ = writeln!(out, "{worlds} of {} did not have the same jobs", all().count());
        }
        out
    }
}

impl Against {
    fn rows(&self) -> impl Iterator<Item = &MetricDivergence> {
        self.metrics.iter().chain(self.policy.values().flatten())
    }

    /// Whether the reference was also run with cores as measured.
    fn has_found(&self) -> bool {
        self.metrics.iter().any(|divergence| divergence.found.is_some())
    }

    fn text(&self) -> String {
        let runs = if self.runs > 1 { format!(", {} runs", self.runs) } else { String::new() };
        let accounts =
            if self.accounts.is_empty() { "equal accounts".to_owned() } else { self.accounts.join(", ") };
        let jobs = number::count(self.draws.jobs);
        let draws = match self.draws.different {
            _ if self.draws.jobs == 0 => "no jobs".to_owned(),
            0 => format!("{jobs} jobs with equal arrivals and demands"),
            n => format!("{} of {jobs} jobs with other arrivals or demands", number::count(n)),
        };
        let placement = self.placement.map(|p| {
            format!("; {} of {} sampled jobs on other servers", number::count(p.moved), number::count(p.jobs))
        });
        let mut out =
            format!("{}{runs}: {accounts}; {draws}{}\n", self.runtime, placement.unwrap_or_default());
        let _ = writeln!(out, "  {}", self.standing());
        for divergence in self.rows() {
            if let (Some(relative), Some(cause)) = (divergence.relative, &divergence.cause) {
                let _ = writeln!(out, "  {} {}: {cause}", divergence.metric, number::change(relative));
            }
        }
        out
    }

    /// The fidelity of the runs as text, with the reasons if they are degraded.
    fn standing(&self) -> String {
        let reasons = self.degraded.join("; ");
        match (self.is_judged, self.left_out) {
            (false, _) => format!("DEGRADED: {reasons}"),
            (true, 0) if !self.is_certified => "exact: runs in virtual time need no certificate".to_owned(),
            (true, 0) => "faithful".to_owned(),
            (true, left_out) => {
                let runs = number::plural(self.runs as u64, "run");
                format!("faithful, but {left_out} of {runs} are left out: DEGRADED: {reasons}")
            }
        }
    }
}

/// The difference from the reference with cores as measured, relative to that reference.
fn from_found(divergence: &MetricDivergence, is_judged: bool) -> String {
    let found = divergence.found.filter(|found| *found != 0.0);
    let change = divergence.value.zip(found).map(|(value, found)| number::change(value / found - 1.0));
    format!("{}{}", change.unwrap_or_else(missing), mark(divergence.within_found.filter(|_| is_judged)))
}

/// The divergence with the spread of the runs; in a judged comparison with the mark of its quantile.
fn change(divergence: &MetricDivergence, is_judged: bool) -> String {
    let change = divergence.relative.map_or_else(missing, number::change);
    let spread = divergence.spread.zip(divergence.reference).filter(|(_, reference)| *reference != 0.0);
    let spread = spread.map(|(half, reference)| format!(" ± {}", number::percent(half / reference.abs())));
    format!("{change}{}{}", spread.unwrap_or_default(), mark(divergence.within.filter(|_| is_judged)))
}

/// The mark of a value within or beyond the bar.
const fn mark(within: Option<bool>) -> &'static str {
    match within {
        Some(false) => " ✗",
        Some(true) => " ✓",
        None => "  ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(metric: &str, value: f64) -> MetricDivergence {
        MetricDivergence {
            metric: metric.to_owned(),
            reference: Some(2.0),
            value: Some(value),
            relative: Some(value / 2.0 - 1.0),
            spread: None,
            found: None,
            within: Some(true),
            within_found: None,
            cause: None,
        }
    }

    fn against(runtime: &str, metrics: Vec<MetricDivergence>, degraded: &[&str]) -> Against {
        Against {
            runtime: runtime.to_owned(),
            runs: 1,
            left_out: 0,
            is_judged: degraded.is_empty(),
            is_certified: true,
            accounts: Vec::new(),
            draws: DrawsCompared { jobs: 9, different: 0 },
            placement: None,
            degraded: degraded.iter().map(|&why| why.to_owned()).collect(),
            metrics,
            policy: BTreeMap::new(),
        }
    }

    fn validation(against: Vec<Against>) -> Validation {
        let point = ValidatedPoint {
            policy: "sparrow".to_owned(),
            cell: Vec::new().into_iter().collect(),
            window: None,
            against,
        };
        Validation {
            experiment: "e".to_owned(),
            seed: 1,
            reference: "virtual".to_owned(),
            skipped: Vec::new(),
            points: vec![point],
        }
    }

    /// The entries in the row of a metric.
    fn entries(text: &str, metric: &str) -> Vec<String> {
        let line = text
            .lines()
            .find(|line| line.split(['│', '┆']).nth(1).is_some_and(|first| first.trim() == metric));
        let line = line.unwrap_or_else(|| panic!("no row of {metric}: {text}"));
        let entries = line.split(['│', '┆']).skip(2).map(|entry| entry.trim().to_owned());
        entries.filter(|entry| !entry.is_empty()).collect()
    }

    /// Runtimes may have different rows, in different order.
    #[test]
    fn rows_of_a_table_are_matched_by_metric() {
        let (p50, p99) = ("response_s.p50", "response_s.p99");
        let local = against("local", vec![row(p50, 2.0), row(p99, 3.0)], &[]);
        let hosts = against("hosts", vec![row(p99, 4.0)], &[]);
        let text = validation(vec![local, hosts]).text();
        assert_eq!(entries(&text, p50).len(), 5, "{text}");
        assert_eq!(entries(&text, p50)[3..], [missing(), missing()], "no value: {text}");
        assert!(
            entries(&text, p99)[1].starts_with("3.0") && entries(&text, p99)[3].starts_with("4.0"),
            "{text}"
        );
    }

    #[test]
    fn a_validation_with_only_degraded_runs_is_void() {
        let run = |degraded: &[&str]| against("local", vec![row("response_s.p50", 9.0)], degraded);
        for (runs, void) in [
            (vec![run(&["late"]), run(&["late"])], true),
            (vec![run(&["late"]), run(&[])], false),
            (vec![run(&[])], false),
            (Vec::new(), false),
        ] {
            let validation = validation(runs);
            assert_eq!(validation.is_void(), void);
            assert_eq!(validation.text().contains("no quantile was judged"), void);
        }
    }
}
