//! An evaluation as text for a terminal.

use std::fmt;

use super::evaluation::{Accuracy, DistributionFit, Evaluation};
use crate::workload::text::{percent, plain, to_the_right};

/// Width of the longest bar of the histogram of errors.
const BAR: f64 = 40.0;

/// Number of experts that are listed.
const EXPERTS: usize = 8;

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.file.display())?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let features = self.features.join(", ");
        writeln!(
            f,
            "\n{} from {features}, alone and in pairs: {} values with a history",
            self.predictor, self.values
        )?;
        write!(f, "\n{}", table(self))?;
        if self.overall.jobs == 0 {
            return write!(f, "\n\nno job had an estimate, so there are no errors");
        }
        writeln!(f, "\n\n{}", errors(&self.overall))?;
        if let Some(fit) = &self.overall.distribution {
            writeln!(f, "\n{}", calibration(fit))?;
        }
        write!(f, "\n{}", experts(self))
    }
}

/// A row for all jobs, and one for each week.
fn table(evaluation: &Evaluation) -> String {
    let mut table = plain();
    table.set_header([
        "",
        "jobs",
        "within 2×",
        "within 5 %",
        "under",
        "under half",
        "over",
        "over twice",
        "no estimate",
    ]);
    let what = if evaluation.only_finished { "finished jobs" } else { "all ended jobs" };
    let weeks = (1..).zip(&evaluation.weeks).map(|(number, week)| (format!("week {number}"), week));
    for (name, row) in std::iter::once((what.to_owned(), &evaluation.overall)).chain(weeks) {
        let shares = [
            row.within_factor_two,
            row.within_5_percent,
            row.under,
            row.under_half,
            row.over,
            row.over_twice,
        ];
        let cells = [name, row.jobs.to_string()].into_iter().chain(shares.map(|share| match row.jobs {
            0 => "–".to_owned(),
            _ => percent(share),
        }));
        table.add_row(cells.chain([row.without_estimate.to_string()]));
    }
    to_the_right(&mut table);
    table.trim_fmt()
}

/// The errors as bars.
fn errors(accuracy: &Accuracy) -> String {
    let mut table = plain();
    table.set_header(["error", "jobs", ""]);
    let most = accuracy.errors.iter().map(|bucket| bucket.share).fold(f64::MIN_POSITIVE, f64::max);
    for bucket in &accuracy.errors {
        let error =
            bucket.percent.map_or_else(|| "95 % and more".to_owned(), |percent| format!("{percent:+} %"));
        let bar = "▇".repeat((BAR * bucket.share / most).round() as usize);
        table.add_row([error, percent(bucket.share), bar]);
    }
    table.trim_fmt()
}

fn calibration(fit: &DistributionFit) -> String {
    let tenths: Vec<String> = fit.tenths.iter().map(|&share| percent(share)).collect();
    format!(
        "predicted distributions: {} of the run times between the 10th and the 90th percentile, {} above the maximum\n\
         run times by tenth of their distribution: {}",
        percent(fit.in_middle_80),
        percent(fit.above_maximum),
        tenths.join(", ")
    )
}

fn experts(evaluation: &Evaluation) -> String {
    let mut table = plain();
    table.set_header(["trusted", "estimator", "jobs"]);
    for expert in evaluation.experts.iter().take(EXPERTS) {
        table.add_row([&expert.feature, expert.estimator, &percent(expert.share)]);
    }
    table.trim_fmt()
}
