//! The page of `volary trace` with `--html`: charts of described traces, and their comparison.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use volary_engine::workload::Outcome;
use volary_experiment::number::{count, percent, seconds};
use volary_experiment::sanitize;
use volary_experiment::workload::describe::{
    Description, Hour, OutcomeShare, Period, Quantiles, TraceComparison,
};

use crate::chart::bars::{Bar, BarPart, stacked};
use crate::chart::line::{Band, Plot, PlotAxis, Series};
use crate::chart::scale::{AxisScale, TickUnit};
use crate::chart::svg::Point;
use crate::chart::theme::{self, Hue};

/// Width and height of a plot in px.
const SIZE: (f64, f64) = (520.0, 310.0);

/// A page about traces that loads and links to nothing else.
pub fn traces_page(traces: &[Description], comparison: Option<&TraceComparison>) -> String {
    let names: Vec<String> = traces.iter().map(name).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { "Traces: " (names.join(", ")) }
                style { (PreEscaped(theme::css())) (PreEscaped(include_str!("html/style.css"))) }
            }
            body {
                nav {
                    div.brand { "volary" }
                    h2 { "Traces" }
                    ul { @for name in &names { li { (name) } } }
                }
                main {
                    header id="top" { h1 { (names.join(", ")) } }
                    @if let Some(comparison) = comparison { (table(comparison)) }
                    (facts(traces, &names))
                    section { h2 { "Charts" } div.grid { @for chart in (Charts { traces, names: &names }).all() { div.card { (chart) } } } }
                }
            }
        }
    };
    sanitize::document(page.into_string())
}

fn name(trace: &Description) -> String {
    trace.file.file_name().unwrap_or(trace.file.as_os_str()).to_string_lossy().into_owned()
}

/// The table of the characteristics in Table 3.1 of Park's thesis.
fn table(comparison: &TraceComparison) -> Markup {
    html! {
        section {
            h2 { "Characteristics" }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "characteristic" } @for name in &comparison.traces { th { (name) } } } }
                    tbody {
                        @for row in &comparison.characteristics {
                            tr {
                                th scope="row" title=(row.criterion) { (row.name) " " small { "§ " (row.section) } }
                                @for finding in &row.findings {
                                    td class=[finding.holds.map(|holds| if holds { "good" } else { "bad" })] {
                                        (finding.mark()) " " small { (finding.text) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            p.hint { "The criterion of each row is its tooltip." }
        }
    }
}

/// A table of numbers with a row per trace.
fn facts(traces: &[Description], names: &[String]) -> Markup {
    html! {
        section {
            h2 { "Numbers" }
            div.scroll tabindex="0" {
                table {
                    thead {
                        tr {
                            @for heading in [
                                "trace", "jobs", "tasks", "span", "p50 duration", "p80 duration", "under 12 min",
                                "gaps under 1 s", "KS distance of gaps", "successful", "users with CoV above 1",
                            ] { th { (heading) } }
                        }
                    }
                    tbody {
                        @for (trace, name) in traces.iter().zip(names) {
                            tr {
                                th scope="row" { (name) }
                                td { (count(trace.jobs as u64)) }
                                td { @if trace.counts_tasks { (count(trace.tasks)) } @else { "–" } }
                                td { (seconds(trace.arrivals.span_s)) }
                                td { (seconds(trace.duration_s.p50)) }
                                td { (seconds(trace.duration_s.p80)) }
                                td { (percent(trace.under_12min)) }
                                td { (percent(trace.arrivals.sub_second)) }
                                td { (trace.arrivals.poisson.ks.map_or_else(|| "–".to_owned(), |ks| format!("{ks:.3}"))) }
                                td { (known(trace.outcomes.as_ref().map(|outcomes| outcomes.successful))) }
                                td { (known(trace.users.map(|users| users.highly_variable))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn known(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), percent)
}

/// The traces of a page, with their names.
struct Charts<'a> {
    traces: &'a [Description],
    names: &'a [String],
}

impl Charts<'_> {
    fn all(&self) -> Vec<Markup> {
        let jobs = self.jobs().into_iter().chain(self.endings());
        jobs.chain(self.variation()).flatten().collect()
    }

    /// Charts of sizes, durations and arrivals (thesis, Fig. 3.1 to 3.6).
    fn jobs(&self) -> [Option<Markup>; 6] {
        let tasks = |trace: &Description| trace.counts_tasks.then_some(trace.fan_out);
        let day = "by the hour, median and quartiles of the days";
        [
            self.cdf("Cores per job", "cores", TickUnit::Number, &|trace| trace.cores),
            self.cdf("Duration of jobs", "duration", TickUnit::Seconds, &|trace| Some(trace.duration_s)),
            self.hours(&format!("Jobs {day}"), "jobs", |trace| &trace.arrivals.jobs_by_hour),
            self.hours(&format!("Tasks {day}"), "tasks", |trace| &trace.arrivals.tasks_by_hour),
            self.cdf("Gaps between arrivals", "gap", TickUnit::Seconds, &|trace| Some(trace.arrivals.gap_s)),
            self.cdf("Tasks per job", "tasks", TickUnit::Number, &tasks),
        ]
    }

    /// Charts of the outcomes of jobs (Fig. 3.7 to 3.9).
    fn endings(&self) -> [Option<Markup>; 5] {
        let good = |trace: &Description| trace.outcomes.as_ref().map(|outcomes| outcomes.successful_size);
        let bad = |trace: &Description| trace.outcomes.as_ref().map(|outcomes| outcomes.unsuccessful_size);
        let success = self.each(&|trace| {
            let groups = trace.outcomes.as_ref()?.by_cpu_hours.iter();
            Some(groups.map(|group| (group.from_h.max(1e-4), group.successful)).collect())
        });
        let hours = PlotAxis::new("CPU-hours, from", AxisScale::Log, TickUnit::Number);
        [
            self.outcomes("Outcomes by jobs", |share| share.jobs),
            self.outcomes("Outcomes by CPU time", |share| share.cpu_time),
            self.cdf("Size of successful jobs", "cores or tasks", TickUnit::Number, &good),
            self.cdf("Size of unsuccessful jobs", "cores or tasks", TickUnit::Number, &bad),
            plot("Success by CPU-hours", hours, shares("finished or timed out"), success),
        ]
    }

    /// Charts of differences between jobs, tasks and periods (Fig. 3.11 and 4.2; Kairos, Fig. 1).
    fn variation(&self) -> [Option<Markup>; 5] {
        let users = |trace: &Description| Some(trace.users?.duration_cov);
        let sizes = |trace: &Description| Some(trace.sizes?.duration_cov);
        let error = |trace: &Description| trace.mean_error;
        [
            self.cdf("Variation of durations by user", "CoV", TickUnit::Number, &users),
            self.cdf("Variation of durations by size", "CoV", TickUnit::Number, &sizes),
            self.cdf("Error of the job mean for its tasks", "error", TickUnit::Share, &error),
            self.periods("Weeks against the whole", |trace| &trace.weeks),
            self.periods("Months of 29 days against the whole", |trace| &trace.months),
        ]
    }

    fn named(&self) -> impl Iterator<Item = (usize, &Description, &str)> {
        self.traces.iter().zip(self.names).enumerate().map(|(at, (trace, name))| (at, trace, name.as_str()))
    }

    /// A curve for each trace that has points.
    fn each(&self, of: &dyn Fn(&Description) -> Option<Vec<Point>>) -> Vec<Series> {
        let series = |(colour, trace, name): (usize, &Description, &str)| {
            Some(Series { label: name.to_owned(), colour, points: of(trace)?, ..Series::default() })
        };
        self.named().filter_map(series).collect()
    }

    /// A chart of distribution functions through the quantiles that a description keeps.
    fn cdf(
        &self,
        title: &str,
        label: &str,
        unit: TickUnit,
        of: &dyn Fn(&Description) -> Option<Quantiles>,
    ) -> Option<Markup> {
        let series = self.each(&|trace| of(trace).map(|q| quantiles(&q)));
        plot(title, PlotAxis::new(label, AxisScale::Log, unit), shares("share"), series)
    }

    fn hours(&self, title: &str, label: &str, of: fn(&Description) -> &[Hour]) -> Option<Markup> {
        let series = self.named().map(|(colour, trace, name)| by_hour(of(trace), name, colour)).collect();
        let x = PlotAxis::new("hour by the trace's clock", AxisScale::Linear, TickUnit::Number);
        let x = PlotAxis { range: Some((0.0, 23.0)), ..x };
        plot(title, x, PlotAxis::new(label, AxisScale::Log, TickUnit::Number), series)
    }

    /// A chart of outcomes, with a bar for each trace that records outcomes.
    fn outcomes(&self, title: &str, of: fn(&OutcomeShare) -> f64) -> Option<Markup> {
        let names = Outcome::ALL.map(Outcome::name);
        let kind = |outcome: &str| Hue::Kind(names.iter().position(|known| *known == outcome).unwrap_or(0));
        let bar = |(at, trace, name): (usize, &Description, &str)| {
            let part = |share: &OutcomeShare| {
                let size = of(share);
                let title = format!("{}: {}", share.outcome, percent(size));
                BarPart { class: "fill", hue: Some(kind(share.outcome)), size, title }
            };
            let parts = trace.outcomes.as_ref()?.shares.iter().map(part).collect();
            Some(Bar { label: name.to_owned(), hue: Hue::Policy(at), parts, total: String::new() })
        };
        let bars: Vec<Bar> = self.named().filter_map(bar).collect();
        let legend: Vec<(Hue, &str)> = names.iter().map(|outcome| (kind(outcome), *outcome)).collect();
        (!bars.is_empty()).then(|| stacked(title, TickUnit::Share, &bars, &legend).in_page())
    }

    /// A chart of the mean gap and the mean duration of each period, relative to the means of the whole trace.
    fn periods(&self, title: &str, of: fn(&Description) -> &[Period]) -> Option<Markup> {
        let line = |trace: &Description, label, colour, value: fn(&Period) -> f64| {
            let points = of(trace).iter().map(|period| (f64::from(period.number), value(period))).collect();
            Series { label, colour, points, dots: true, ..Series::default() }
        };
        let both = |(at, trace, name): (usize, &Description, &str)| {
            let gap = line(trace, format!("{name}, gap"), 2 * at, |period| period.gap);
            [gap, line(trace, format!("{name}, duration"), 2 * at + 1, |period| period.duration)]
        };
        let series = self.named().flat_map(both).collect();
        let y = PlotAxis::new("mean relative to the whole trace", AxisScale::Linear, TickUnit::Number);
        plot(title, PlotAxis::new("number", AxisScale::Linear, TickUnit::Number), y, series)
    }
}

/// An axis of shares.
fn shares(label: &str) -> PlotAxis {
    PlotAxis { range: Some((0.0, 1.0)), ..PlotAxis::new(label, AxisScale::Linear, TickUnit::Share) }
}

/// A plot; `None` if it has no points.
fn plot(title: &str, x: PlotAxis, y: PlotAxis, series: Vec<Series>) -> Option<Markup> {
    let drawn = series.iter().any(|series| !series.points.is_empty());
    drawn.then(|| Plot { title: title.into(), x, y, series, size: SIZE }.picture().in_page())
}

/// The quantiles that a description keeps, as points of a distribution function.
fn quantiles(q: &Quantiles) -> Vec<Point> {
    let points = [
        (q.min, 0.0),
        (q.p10, 0.1),
        (q.p25, 0.25),
        (q.p50, 0.5),
        (q.p75, 0.75),
        (q.p80, 0.8),
        (q.p90, 0.9),
        (q.p99, 0.99),
        (q.max, 1.0),
    ];
    points.into_iter().filter(|point| point.0 > 0.0).collect()
}

fn by_hour(hours: &[Hour], name: &str, colour: usize) -> Series {
    let at = |value: fn(&Hour) -> f64| hours.iter().map(|hour| (f64::from(hour.hour), value(hour))).collect();
    let band = Band { low: at(|hour| hour.p25), high: at(|hour| hour.p75) };
    Series { label: name.to_owned(), colour, points: at(|hour| hour.p50), band, ..Series::default() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use volary_engine::workload::Trace;
    use volary_experiment::workload::describe::{compare, describe};

    use super::*;

    #[test]
    fn a_page_has_a_chart_for_every_known_property() {
        let described = |name: &str, text: String| {
            let trace = Trace::parse(Path::new(name), std::io::Cursor::new(text), None).unwrap();
            describe(&trace, None, None)
        };
        let row = |k: u32| {
            let (end, user) = (if k.is_multiple_of(3) { "K" } else { "F" }, k % 4);
            format!("{},{},{end},{user},{},2\n", k * 3_600_000, 1000 + k * 977 % 5000, 1 + k % 2)
        };
        let rows: String = (0..800).map(row).collect();
        let full = described("a<b.csv", format!("submit_ms,run_ms,end,user,cores,tasks\n{rows}"));
        let bare = described("bare.tr", "1 1 1 1\n2 2 3 2 4\n".to_owned());
        let both = [full, bare];
        let page = traces_page(&both, Some(&compare(&both)));
        assert!(page.contains("a&lt;b.csv") && !page.contains("a<b.csv") && !page.contains("NaN"));
        assert_eq!(page.matches("<svg").count(), 15, "no months");
        for text in ["Characteristics", "Outcomes by CPU time", "Weeks against the whole", "bare.tr"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"));
        // The trace has no outcomes, users or weeks.
        let page = traces_page(&both[1..], None);
        assert_eq!(page.matches("<svg").count(), 6);
        assert!(!page.contains("Characteristics") && !page.contains("Outcomes"));
    }
}
