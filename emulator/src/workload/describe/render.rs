//! A description as text for a terminal.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};

use super::arrivals::Arrivals;
use super::description::{Classes, Description, Users, WithinJob};
use super::quantiles::Quantiles;

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.file.display())?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f, "\n{}\n\n{}", facts(self), distributions(self))?;
        if let Some(hours) = hours(&self.arrivals) {
            writeln!(f, "\n{hours}")?;
        }
        match self.reference {
            None => writeln!(f, "\nresembles none of the traces of which facts are published"),
            Some(known) => writeln!(f, "\ncompared with the {known:?} trace\n{}", comparison(self)),
        }
    }
}

fn facts(d: &Description) -> String {
    let mut table = plain();
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("jobs", d.jobs.to_string());
    row("tasks", d.tasks.to_string());
    row("first to last arrival", format!("{} s", number(d.arrivals.span_s)));
    row("work", format!("{} core-s", number(d.work_s)));
    row("offered load", format!("{} cores busy at the trace's own pace", number(d.offered_cores)));
    row("jobs of one task", percent(d.single_task));
    row("jobs under 12 min, 2 h", format!("{}, {}", percent(d.under_12min), percent(d.under_2h)));
    row(
        "gaps below 1 s",
        format!("{} (44 to 62 % in the four traces of Park, chapter 3)", percent(d.arrivals.sub_second)),
    );
    row("variability of gaps, cv²", format!("{} (Poisson 1)", number(d.arrivals.gap_cv2)));
    row("Poisson arrivals", poisson(&d.arrivals));
    if let Some(WithinJob { jobs, cov, std_over_root_mean }) = &d.within_job {
        let [cov, std] = [cov, std_over_root_mean].map(|spread| number(spread.p50));
        let text = format!("CoV {cov} (median of {jobs} jobs of 15 tasks or more), sd/√mean {std}");
        row("spread within jobs", text);
    }
    if let Some(Users { users, fan_out_cov, duration_cov, highly_variable }) = &d.users {
        let [fan_out, duration] = [fan_out_cov, duration_cov].map(|spread| number(spread.p50));
        let variable = percent(*highly_variable);
        let text = format!(
            "CoV of fan-out {fan_out}, of duration {duration} (medians of {users} users); {variable} of them vary more \
             than exponentially"
        );
        row("spread within users", text);
    }
    if let Some(Classes { cutoff, long_jobs, long_tasks, long_work }) = d.classes {
        let [jobs, tasks, work] = [long_jobs, long_tasks, long_work].map(percent);
        let text = format!(
            "{jobs} of the jobs, {tasks} of the tasks, {work} of the work (mean of {cutoff} or more)"
        );
        row("long jobs", text);
    }
    table.trim_fmt()
}

fn poisson(arrivals: &Arrivals) -> String {
    let verdict = if arrivals.ks_p < 0.01 { "rejected" } else { "not rejected" };
    let p = if arrivals.ks_p < 2.2e-16 { "< 2.2e-16".to_owned() } else { format!("= {:.2e}", arrivals.ks_p) };
    format!("{verdict}: distance {:.3} to exponential gaps, p {p}", arrivals.ks)
}

fn distributions(d: &Description) -> String {
    let mut table = plain();
    table.set_header(["", "mean", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"]);
    for (name, q) in [
        ("tasks per job", &d.fan_out),
        ("mean task duration, s", &d.mean_s),
        ("job duration, s", &d.duration_s),
        ("task duration, s", &d.task_s),
        ("work per job, core-s", &d.job_work_s),
        ("gap between arrivals, s", &d.arrivals.gap_s),
        ("jobs per hour", &d.arrivals.jobs_per_hour),
        ("tasks per hour", &d.arrivals.tasks_per_hour),
    ] {
        let Quantiles { mean, min, p10, p25, p50, p75, p90, p99, max, .. } = *q;
        let values = [mean, min, p10, p25, p50, p75, p90, p99, max].map(number);
        table.add_row(std::iter::once(name.to_owned()).chain(values));
    }
    to_the_right(&mut table);
    table.trim_fmt()
}

/// The daily pattern in one line, if the trace is long enough.
fn hours(arrivals: &Arrivals) -> Option<String> {
    let (peak, trough) = arrivals.peak_and_trough()?;
    let [low, median, high, least] = [peak.p25, peak.p50, peak.p75, trough.p50].map(number);
    Some(format!(
        "busiest hour of the trace's day {:02}: {median} jobs (quartiles of the days {low} to {high}); \
         quietest {:02}: {least} jobs",
        peak.hour, trough.hour
    ))
}

fn comparison(d: &Description) -> String {
    let mut table = plain();
    table.set_header(["", "measured", "published", "ratio", "source"]);
    for row in &d.comparison {
        let ratio = format!("{:.2}", row.measured / row.published);
        table.add_row([row.what, &number(row.measured), &number(row.published), &ratio, row.source]);
    }
    to_the_right(&mut table);
    if let Some(source) = table.column_mut(4) {
        source.set_cell_alignment(CellAlignment::Left);
    }
    table.trim_fmt()
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Aligns all columns but the first to the right.
fn to_the_right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Four significant digits; whole numbers are written in full.
fn number(x: f64) -> String {
    if x == x.round() && x.abs() < 1e9 {
        return format!("{x}");
    }
    match x.abs() {
        large if large >= 1e7 => format!("{x:.3e}"),
        large if large >= 1000.0 => format!("{x:.0}"),
        tiny if tiny < 1e-3 => format!("{x:.2e}"),
        some => format!("{x:.*}", (3.0 - some.log10().floor()).max(0.0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        for (x, text) in [
            (0.0, "0"),
            (24_262.0, "24262"),
            (7.4821, "7.482"),
            (0.012_345, "0.01235"),
            (118.784, "118.8"),
            (2409.81, "2410"),
            (622_548_900.5, "6.225e8"),
            (0.000_012_3, "1.23e-5"),
        ] {
            assert_eq!(number(x), text);
        }
    }
}
