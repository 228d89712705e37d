//! A description as text for a terminal.

use std::ops::Range;
use std::{fmt, iter};

use comfy_table::CellAlignment;

use super::arrivals::Arrivals;
use super::description::{Classes, Description, Sizes, Users, WithinJob};
use super::outcomes::SuccessByHours;
use super::periods::Period;
use super::quantiles::Quantiles;
use crate::workload::text::{number, percent, plain, to_the_right, unsigned_zero};

/// With a width, as of `{:80}`, the distributions stand in as many tables as fit it.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.file.display())?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f, "\n{}\n\n{}", facts(self), distributions(self, f.width()))?;
        if let Some(hours) = hours(&self.arrivals) {
            writeln!(f, "\n{hours}")?;
        }
        match self.reference {
            None => writeln!(f, "\nresembles none of the traces of which facts are published"),
            Some(known) if self.comparison.is_empty() => {
                let why = "count tasks in another way, and are not compared";
                writeln!(f, "\nfacts published about the {known:?} trace {why}")
            }
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
    if d.arrivals.early > 0 {
        let text =
            format!("{} jobs, at unknown times: left out of arrivals, gaps and hours", d.arrivals.early);
        row("submitted before the trace", text);
    }
    row("first to last arrival", format!("{} s", number(d.arrivals.span_s)));
    if d.counts_tasks {
        row("tasks", d.tasks.to_string());
        row("work", format!("{} core-s", number(d.work_s)));
        row("offered load", format!("{} cores busy at the trace's own pace", number(d.offered_cores)));
        row("jobs of one task", percent(d.single_task));
    } else {
        row("run time of all jobs", format!("{} s", number(d.work_s)));
        row("jobs at a time", format!("{} at the trace's own pace", number(d.offered_cores)));
    }
    row("jobs under 12 min, 2 h", format!("{}, {}", percent(d.under_12min), percent(d.under_2h)));
    row(
        "gaps below 1 s",
        format!("{} (44 to 62 % in the four traces of Park, chapter 3)", percent(d.arrivals.sub_second)),
    );
    row("variability of gaps, cv²", format!("{} (Poisson 1)", number(d.arrivals.gap_cv2)));
    row("Poisson arrivals", poisson(&d.arrivals));
    spreads(d, &mut row);
    endings(d, &mut row);
    for (name, periods) in [("weeks against the whole", &d.weeks), ("months of 29 days", &d.months)] {
        if !periods.is_empty() {
            row(name, range(periods));
        }
    }
    if let Some(Classes { cutoff, long_jobs, long_tasks, long_work }) = d.classes {
        let [jobs, tasks, work] = [long_jobs, long_tasks, long_work].map(percent);
        let text = match d.counts_tasks {
            true => format!(
                "{jobs} of the jobs, {tasks} of the tasks, {work} of the work (mean of {cutoff} or more)"
            ),
            false => format!("{jobs} of the jobs, {work} of the run time ({cutoff} or more)"),
        };
        row("long jobs", text);
    }
    table.trim_fmt()
}

/// Differences between the tasks of a job, and between the jobs of a user or a size.
fn spreads(d: &Description, row: &mut impl FnMut(&str, String)) {
    if let Some(WithinJob { jobs, cov, std_over_root_mean }) = &d.within_job {
        let [cov, std] = [cov, std_over_root_mean].map(|spread| number(spread.p50));
        let text = format!("CoV {cov} (median of {jobs} jobs of 15 tasks or more), sd/√mean {std}");
        row("spread within jobs", text);
    }
    if let Some(error) = &d.mean_error {
        let [half, most] = [error.p50, error.p90].map(percent);
        row("error of the job mean", format!("{half} for half of the tasks, {most} for nine tenths"));
    }
    if let Some(Users { users, fan_out_cov, duration_cov, highly_variable, near_mean_size }) = &d.users {
        let [fan_out, duration] = [fan_out_cov, duration_cov].map(|spread| number(spread.p50));
        let variable = percent(*highly_variable);
        let fan_out = if d.counts_tasks { format!("of fan-out {fan_out}, ") } else { String::new() };
        let text = format!(
            "CoV {fan_out}of duration {duration} (medians over users: {users}); {variable} of them vary more than \
             exponentially"
        );
        row("spread within users", text);
        if d.has_sizes() {
            let near = percent(*near_mean_size);
            let text = format!("{near} of the jobs within a factor of two of their user's mean size");
            row("requests of users", text);
        }
    }
    if let Some(Sizes { sizes, duration_cov, highly_variable }) = &d.sizes {
        let (cov, variable) = (number(duration_cov.p50), percent(*highly_variable));
        let text = format!("CoV of duration {cov} (median of {sizes} sizes); {variable} of them above 1");
        row("spread within sizes", text);
    }
}

/// Outcomes of jobs.
fn endings(d: &Description, row: &mut impl FnMut(&str, String)) {
    if let Some(outcomes) = &d.outcomes {
        let (of_time, hours) =
            if d.has_sizes() { ("CPU time", "CPU-hours") } else { ("run time", "hours of run time") };
        for share in &outcomes.shares {
            let [jobs, time] = [share.jobs, share.cpu_time].map(percent);
            row(share.outcome, format!("{jobs} of the jobs, {time} of the {of_time}"));
        }
        let [good, bad] =
            [&outcomes.successful_size, &outcomes.unsuccessful_size].map(|size| number(size.mean));
        if d.has_sizes() {
            let text = format!("mean {good} of successful jobs (finished or timed out), {bad} of others");
            row("size by outcome", text);
        }
        let group =
            |group: &SuccessByHours| format!("{} from {}", percent(group.successful), number(group.from_h));
        let groups: Vec<String> = outcomes.by_cpu_hours.iter().map(group).collect();
        row(&format!("successful by {hours}"), groups.join(", "));
    }
}

/// The least and the greatest ratios of parts to the whole.
fn range(periods: &[Period]) -> String {
    let ends = |of: fn(&Period) -> f64| {
        let values = || periods.iter().map(of);
        let ends = [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)];
        ends.map(number).join(" to ")
    };
    let (gap, duration) = (ends(|period| period.gap), ends(|period| period.duration));
    format!("{}: mean gap {gap}, mean duration {duration} times that of the trace", periods.len())
}

/// Probability below which the distribution of a Poisson process is rejected.
const LEVEL: f64 = 0.01;

fn poisson(arrivals: &Arrivals) -> String {
    let test = &arrivals.poisson;
    let (Some(ks), Some(ks_p)) = (test.ks, test.ks_p) else {
        return format!("not tested: {}", test.not_tested.as_deref().unwrap_or("there are no gaps"));
    };
    let verdict = if ks_p < LEVEL { "rejected" } else { "not rejected" };
    let p = match ks_p {
        tiny if tiny < 2.2e-16 => "< 2.2e-16".to_owned(),
        small if small < 1e-4 => format!("= {small:.1e}"),
        p => format!("= {p:.4}"),
    };
    let unit = test.unit().map_or_else(String::new, |unit| {
        format!("; times are {unit}, within which each arrival was moved to a random place")
    });
    format!(
        "{verdict} at the level {LEVEL}: distance {ks:.3} to exponential gaps, p {p} (Lilliefors' test{unit})"
    )
}

fn distributions(d: &Description, width: Option<usize>) -> String {
    let of_tasks = [
        "tasks per job",
        "mean task duration, s",
        "task duration, s",
        "work per job, core-s",
        "tasks per hour",
    ];
    let known = |name: &str| match name {
        "cores per job" => d.cores.is_some(),
        name => d.counts_tasks || !of_tasks.contains(&name),
    };
    let rows = [
        ("tasks per job", &d.fan_out),
        ("cores per job", &d.cores.unwrap_or_default()),
        ("mean task duration, s", &d.mean_s),
        ("job duration, s", &d.duration_s),
        ("task duration, s", &d.task_s),
        ("work per job, core-s", &d.job_work_s),
        ("gap between arrivals, s", &d.arrivals.gap_s),
        ("jobs per hour", &d.arrivals.jobs_per_hour),
        ("tasks per hour", &d.arrivals.tasks_per_hour),
    ];
    let rows = rows.into_iter().filter(|(name, _)| known(name)).map(|(name, q)| {
        let Quantiles { mean, min, p10, p25, p50, p75, p90, p99, max, .. } = *q;
        (name, [mean, min, p10, p25, p50, p75, p90, p99, max].map(number))
    });
    let rows: Vec<(&str, [String; 9])> = rows.collect();
    let table = |columns: Range<usize>| {
        let mut table = plain();
        table.set_header(iter::once("").chain(HEADINGS[columns.clone()].iter().copied()));
        for (name, values) in &rows {
            table.add_row(iter::once(*name).chain(values[columns.clone()].iter().map(String::as_str)));
        }
        to_the_right(&mut table);
        table.trim_fmt()
    };
    let fits = |text: &str| width.is_none_or(|width| text.lines().all(|line| line.chars().count() <= width));
    let (mut tables, mut from) = (Vec::new(), 0);
    while from < HEADINGS.len() {
        let until = (from + 2..=HEADINGS.len()).rev().find(|until| fits(&table(from..*until)));
        let until = until.unwrap_or(from + 1);
        tables.push(table(from..until));
        from = until;
    }
    tables.join("\n\n")
}

/// The columns of a distribution.
const HEADINGS: [&str; 9] = ["mean", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"];

/// The daily pattern in one line, if the trace is long enough.
fn hours(arrivals: &Arrivals) -> Option<String> {
    let (peak, trough) = arrivals.peak_and_trough()?;
    let [low, median, high, least] = [peak.p25, peak.p50, peak.p75, trough.p50].map(number);
    Some(format!(
        "busiest hour {:02}: {median} jobs (quartiles of the days {low} to {high}); quietest {:02}: {least} jobs; {}",
        peak.hour,
        trough.hour,
        clock(arrivals.zone_s)
    ))
}

/// The clock of the hours.
fn clock(zone_s: Option<i64>) -> String {
    match zone_s {
        None => "hours by the trace's own clock, whose zero need not be midnight".to_owned(),
        Some(zone) => {
            let (sign, minutes) = (if zone < 0 { '-' } else { '+' }, zone.abs() / 60);
            format!("hours of the day in zone {sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

fn comparison(d: &Description) -> String {
    let mut table = plain();
    table.set_header(["", "measured", "published", "ratio", "source"]);
    for row in &d.comparison {
        let ratio = unsigned_zero(format!("{:.2}", row.measured / row.published));
        table.add_row([row.what, &number(row.measured), &number(row.published), &ratio, row.source]);
    }
    to_the_right(&mut table);
    if let Some(source) = table.column_mut(4) {
        source.set_cell_alignment(CellAlignment::Left);
    }
    table.trim_fmt()
}
