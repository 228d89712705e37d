//! Several traces side by side, by the characteristics of Park's thesis (Table 3.1).

use std::fmt;

use serde::Serialize;

use super::description::Description;
use crate::number::seconds;
use crate::workload::text::{number, percent, plain};

/// Whether traces have the characteristics of Table 3.1.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceComparison {
    /// The files.
    pub traces: Vec<String>,
    pub characteristics: Vec<Characteristic>,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Characteristic {
    /// Section of the thesis.
    pub section: &'static str,
    pub name: &'static str,
    /// The condition for a tick. The thesis states its findings without thresholds: these are ours, between the values
    /// that it gives for traces with a tick and those for traces without one.
    pub criterion: &'static str,
    /// One per trace.
    pub findings: Vec<TraceFinding>,
}

/// Whether one trace has a characteristic.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceFinding {
    /// `None` if the trace lacks the data.
    pub holds: Option<bool>,
    /// The value that decides.
    pub value: Option<f64>,
    /// The value with its meaning.
    pub text: String,
}

/// A characteristic: section, name, criterion, and how to find it.
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
        "of the tenth of the jobs with most CPU-hours, 10 points fewer finish or exceed their time than of all",
        |d| {
            let outcomes = d.outcomes.as_ref()?;
            let (longest, all) = (outcomes.successful_of_longest, outcomes.successful);
            let text = format!("{} against {}", percent(longest), percent(all));
            Some((all - longest >= 0.1, all - longest, text))
        },
    ),
];

/// Compares described traces.
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
    /// A tick, a cross, or a dash.
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

    use super::super::describe;
    use super::*;

    fn described(name: &str, text: String) -> Description {
        describe(&Trace::parse(Path::new(name), std::io::Cursor::new(text), None).unwrap(), None, None)
    }

    fn finding(comparison: &TraceComparison, name: &str, trace: usize) -> TraceFinding {
        let row = comparison.characteristics.iter().find(|row| row.name.contains(name)).unwrap();
        row.findings[trace].clone()
    }

    #[test]
    fn traces_stand_side_by_side() {
        // Two days of a busy cluster of small jobs, half of them killed; and three large jobs.
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
