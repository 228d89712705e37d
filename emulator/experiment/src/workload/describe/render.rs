//! The text of a description for a terminal, and a comparison of several traces by the characteristics of Park's thesis
//! (Table 3.1).

use std::ops::Range;
use std::{fmt, iter};

use comfy_table::CellAlignment;
use serde::Serialize;

use super::arrivals::Arrivals;
use super::description::{Classes, Description, Period, Sizes, SuccessByHours, Users, WithinJob};
use super::quantiles::Quantiles;
use crate::number::seconds;
use crate::workload::text::{number, percent, plain, to_the_right, unsigned_zero};

/// Writes the description. If a width is given, as in `{:80}`, the distributions are split into tables that fit.
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
            None => writeln!(f, "\nresembles none of the traces with published facts"),
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
    if d.depth.is_some() {
        row("jobs with dependencies", percent(d.dependent));
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

/// The range of the ratios between periods and the whole trace.
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
    let of_tasks = |quantiles| d.counts_tasks.then_some(quantiles);
    let rows = [
        ("tasks per job", of_tasks(&d.fan_out)),
        ("cores per job", d.cores.as_ref()),
        ("GPUs per job", d.gpus.as_ref()),
        ("stages in a row", d.depth.as_ref()),
        ("critical path, s", d.critical_path_s.as_ref()),
        ("mean task duration, s", of_tasks(&d.mean_s)),
        ("job duration, s", Some(&d.duration_s)),
        ("task duration, s", of_tasks(&d.task_s)),
        ("work per job, core-s", of_tasks(&d.job_work_s)),
        ("gap between arrivals, s", Some(&d.arrivals.gap_s)),
        ("jobs per hour", Some(&d.arrivals.jobs_per_hour)),
        ("tasks per hour", of_tasks(&d.arrivals.tasks_per_hour)),
    ];
    let rows = rows.into_iter().filter_map(|(name, quantiles)| {
        let Quantiles { mean, min, p10, p25, p50, p75, p90, p99, max, .. } = *quantiles?;
        Some((name, [mean, min, p10, p25, p50, p75, p90, p99, max].map(number)))
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

/// The clock by which hours are counted.
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

/// A comparison of traces by the characteristics of Table 3.1.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceComparison {
    /// Names of the trace files.
    pub traces: Vec<String>,
    pub characteristics: Vec<Characteristic>,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Characteristic {
    /// Section of the thesis.
    pub section: &'static str,
    pub name: &'static str,
    /// The condition for a tick. The thesis states its findings without thresholds: these thresholds are ours, between
    /// the values that it gives for traces with a tick and for traces without one.
    pub criterion: &'static str,
    /// One finding per trace.
    pub findings: Vec<TraceFinding>,
}

/// Whether a trace has a characteristic.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceFinding {
    /// `None` if the trace lacks the data.
    pub holds: Option<bool>,
    /// The value that the criterion tests.
    pub value: Option<f64>,
    /// The value with its meaning.
    pub text: String,
}

/// A characteristic: section, name, criterion, and the function that evaluates it.
type Row = (&'static str, &'static str, &'static str, fn(&Description) -> Option<(bool, f64, String)>);

const ROWS: [Row; 10] = [
    (
        "3.2",
        "majority of jobs are small",
        "nine of ten jobs have 16 cores or fewer (tasks, if there are no cores)",
        |d| {
            let p90 = match &d.cores {
                Some(cores) => cores.p90,
                None if d.counts_tasks => d.fan_out.p90,
                None => return None,
            };
            Some((p90 <= 16.0, p90, format!("p90 {}", number(p90))))
        },
    ),
    ("3.2", "majority of jobs are short", "eight of ten jobs last less than half an hour", |d| {
        let p80 = d.duration_s.p80;
        Some((p80 < 1800.0, p80, format!("p80 {}", seconds(p80))))
    }),
    (
        "3.3",
        "diurnal patterns in job submissions",
        "the median of the busiest hour is twice that of the quietest, and between 7 and 19 h where times are dates",
        |d| {
            let (peak, trough) = d.arrivals.peak_and_trough()?;
            let ratio = peak.p50 / trough.p50.max(1.0);
            let day = d.arrivals.zone_s.is_none() || (7..19).contains(&peak.hour);
            let clock = if d.arrivals.zone_s.is_some() { "" } else { " of its own clock" };
            let text = format!("{}× at {} h{clock}", number(ratio), peak.hour);
            Some((day && ratio >= 2.0, ratio, text))
        },
    ),
    ("3.3", "high job submission rate", "the median hour has 100 submissions or more", |d| {
        let rate = d.arrivals.jobs_per_hour.p50;
        Some((rate >= 100.0, rate, format!("{} an hour", number(rate))))
    }),
    (
        "3.4",
        "resource over-commitment",
        "needs the resources that were used, which no trace here has",
        |_| None,
    ),
    ("3.4", "sub-second job inter-arrival periods", "44 % of the gaps or more are below one second", |d| {
        let share = d.arrivals.sub_second;
        Some((share >= 0.44, share, percent(share)))
    }),
    (
        "3.4",
        "user request variability",
        "half of the jobs or more are not within a factor of two of their user's mean size",
        |d| {
            let far = d.users.filter(|_| d.has_sizes()).map(|u| 1.0 - u.near_mean_size)?;
            Some((far >= 0.5, far, percent(far)))
        },
    ),
    ("3.5", "high fraction of unsuccessful job outcomes", "one job of five or more", |d| {
        let (jobs, _) = d.outcomes.as_ref()?.unsuccessful();
        Some((jobs >= 0.2, jobs, percent(jobs)))
    }),
    (
        "3.5",
        "unsuccessful jobs consume a significant fraction of resources",
        "one fifth of the CPU time or more (run time, if there are no cores)",
        |d| {
            let (_, time) = d.outcomes.as_ref()?.unsuccessful();
            Some((time >= 0.2, time, percent(time)))
        },
    ),
    (
        "3.5",
        "longer or larger jobs often terminate unsuccessfully",
        "the tenth of the jobs with most CPU-hours finishes or times out 10 points less often than all jobs",
        |d| {
            let outcomes = d.outcomes.as_ref()?;
            let (longest, all) = (outcomes.successful_of_longest, outcomes.successful);
            let text = format!("{} against {}", percent(longest), percent(all));
            Some((all - longest >= 0.1, all - longest, text))
        },
    ),
];

/// Compares traces by their descriptions.
pub fn compare(traces: &[Description]) -> TraceComparison {
    let finding = |found: Option<(bool, f64, String)>| match found {
        Some((holds, value, text)) => TraceFinding { holds: Some(holds), value: Some(value), text },
        None => TraceFinding { holds: None, value: None, text: "not known".to_owned() },
    };
    let row = |(section, name, criterion, of): Row| Characteristic {
        section,
        name,
        criterion,
        findings: traces.iter().map(|trace| finding(of(trace))).collect(),
    };
    let name = |trace: &Description| {
        trace.file.file_name().unwrap_or(trace.file.as_os_str()).to_string_lossy().into()
    };
    TraceComparison { traces: traces.iter().map(name).collect(), characteristics: ROWS.map(row).into() }
}

impl TraceFinding {
    /// The mark of a finding: a tick, a cross, or a dash.
    pub const fn mark(&self) -> &'static str {
        match self.holds {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "–",
        }
    }
}

impl fmt::Display for TraceComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = plain();
        table.set_header(
            ["§".to_owned(), "characteristic".to_owned()].into_iter().chain(self.traces.iter().cloned()),
        );
        for row in &self.characteristics {
            let cells = row.findings.iter().map(|finding| format!("{} {}", finding.mark(), finding.text));
            table.add_row([row.section.to_owned(), row.name.to_owned()].into_iter().chain(cells));
        }
        writeln!(f, "{}\n\na tick means:", table.trim_fmt())?;
        self.characteristics.iter().try_for_each(|row| writeln!(f, "{}: {}", row.name, row.criterion))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_engine::workload::Trace;

    use super::*;
    use crate::workload::describe::describe;

    fn described(name: &str, text: String) -> Description {
        describe(&Trace::parse(Path::new(name), std::io::Cursor::new(text), None).unwrap(), None, None)
    }

    #[test]
    fn gpus_are_described_where_a_trace_states_them() {
        let text = described("a.csv", "submit,run,gpus\n1,2,4\n2,3,0\n3,3,2\n".into()).to_string();
        let row = text.lines().find(|line| line.contains("GPUs per job")).unwrap();
        assert_eq!(row.split_whitespace().nth(3), Some("3"), "jobs without GPUs do not count: {text}");
        assert!(!described("a.csv", "submit,run\n1,2\n".into()).to_string().contains("GPUs"));
    }

    fn finding(comparison: &TraceComparison, name: &str, trace: usize) -> TraceFinding {
        let row = comparison.characteristics.iter().find(|row| row.name.contains(name)).unwrap();
        row.findings[trace].clone()
    }

    #[test]
    fn traces_are_compared_by_their_characteristics() {
        // Two traces: two days of a busy cluster of small jobs, half of them killed; and three large jobs.
        let row = |k: u32| {
            format!("{},60000,{},1\n", u64::from(k) * 900, if k.is_multiple_of(2) { "F" } else { "K" })
        };
        let rows: String = (0..200_000).map(row).collect();
        let busy = described("a/busy.csv", format!("submit_ms,run_ms,end,user\n{rows}"));
        let swf = |at: u32| format!("1 {at} 0 90000 512 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n");
        let large = described("large.swf", [0, 90_000, 180_000].map(swf).concat());
        let both = compare(&[busy, large]);
        assert_eq!((both.traces[0].as_str(), both.characteristics.len()), ("busy.csv", 10));
        for (name, expected) in [
            ("are small", [None, Some(false)]),
            ("are short", [Some(true), Some(false)]),
            ("diurnal", [Some(false), Some(false)]),
            ("submission rate", [Some(true), Some(false)]),
            ("over-commitment", [None, None]),
            ("sub-second", [Some(true), Some(false)]),
            ("variability", [None, Some(false)]),
            ("fraction of unsuccessful", [Some(true), Some(false)]),
            ("fraction of resources", [Some(true), Some(false)]),
            ("longer or larger", [Some(false), Some(false)]),
        ] {
            assert_eq!([0, 1].map(|trace| finding(&both, name, trace).holds), expected, "{name}");
        }
        assert_eq!(finding(&both, "fraction of unsuccessful", 0).value, Some(0.5));
        let text = both.to_string();
        assert!(text.contains("✓ 4000 an hour") && text.contains("– not known"), "{text}");
    }
}
