//! The tables of a cell, and of the cost of runs.

use crate::chart::svg::escape;
use crate::chart::theme;
use crate::number;
use crate::report::table::{messages_per_task, repairs_per_task, wasted_share};
use crate::stats::Interval;
use crate::storage::study::{CellGroup, PolicyRuns, Study};
use volary_engine::results::{Spread, Summary};

/// A column: heading, what it means, the number, how it reads, and whether the least is marked as best.
struct SummaryColumn(&'static str, &'static str, fn(&Summary) -> f64, fn(f64) -> String, bool);

const COLUMNS: [SummaryColumn; 15] = [
    SummaryColumn("mean", "mean response time", |s| s.response_s.mean, number::seconds, true),
    SummaryColumn("p50", "median response time", |s| s.response_s.p50, number::seconds, true),
    SummaryColumn("p90", "90th percentile of response time", |s| s.response_s.p90, number::seconds, true),
    SummaryColumn("p95", "95th percentile of response time", |s| s.response_s.p95, number::seconds, true),
    SummaryColumn("p99", "99th percentile of response time", |s| s.response_s.p99, number::seconds, true),
    SummaryColumn(
        "p99.9",
        "99.9th percentile of response time",
        |s| s.response_s.p999,
        number::seconds,
        true,
    ),
    SummaryColumn("max", "longest response time", |s| s.response_s.max, number::seconds, true),
    SummaryColumn(
        "slowdown",
        "median of response time over the work of the longest task",
        |s| s.slowdown.p50,
        number::short,
        true,
    ),
    SummaryColumn("slowdown p99", "99th percentile of slowdown", |s| s.slowdown.p99, number::short, true),
    SummaryColumn("wait p50", "median wait of tasks", |s| s.wait_s.p50, number::seconds, true),
    SummaryColumn(
        "wait p99",
        "99th percentile of the wait of tasks",
        |s| s.wait_s.p99,
        number::seconds,
        true,
    ),
    SummaryColumn("utilization", "busy share of all core time", |s| s.utilization, number::percent, false),
    SummaryColumn(
        "wasted",
        "share of busy core time spent on copies that nobody needed",
        wasted_share,
        number::percent,
        true,
    ),
    SummaryColumn(
        "msgs/task",
        "the policy's own messages for each task",
        messages_per_task,
        number::short,
        true,
    ),
    SummaryColumn(
        "repairs/task",
        "messages for each task that repair losses or report what is so, counted apart",
        repairs_per_task,
        number::short,
        false,
    ),
];

/// The summary of a cell: a row per policy, with the best of each column marked.
pub(super) fn summary(group: &CellGroup, policies: &[&str]) -> String {
    let mut out = String::from("<div class=\"wide\"><table class=\"stack\"><thead><tr><th>policy</th>");
    for SummaryColumn(heading, meaning, ..) in &COLUMNS {
        out.push_str(&format!("<th scope=\"col\" title=\"{meaning}\">{heading}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    let best: Vec<Option<f64>> = COLUMNS
        .iter()
        .map(|column| {
            let means = group
                .policies
                .iter()
                .filter_map(|runs| runs.interval(column.2))
                .map(|interval| interval.mean);
            let (least, most) =
                means.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), m| (a.min(m), b.max(m)));
            (column.4 && least < most).then_some(least)
        })
        .collect();
    for runs in &group.policies {
        out.push_str(&row_start(runs, policies));
        for (column, best) in COLUMNS.iter().zip(&best) {
            out.push_str(&entry(runs.interval(column.2), column.3, *best));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// The first columns of a row: the policy with its colour.
pub(super) fn row_start(runs: &PolicyRuns, policies: &[&str]) -> String {
    let i = policies.iter().position(|policy| *policy == runs.policy).unwrap_or(0);
    let (series, policy) = (theme::series(i), escape(&runs.policy));
    format!("<tr class=\"p{i}\"><th scope=\"row\" class=\"{series}\"><i class=\"swatch\"></i> {policy}</th>")
}

fn entry(interval: Option<Interval>, text: fn(f64) -> String, best: Option<f64>) -> String {
    let Some(interval) = interval else { return "<td>–</td>".to_owned() };
    let class = if best == Some(interval.mean) { " class=\"best\"" } else { "" };
    let half =
        interval.half_width.map(|half| format!(" <small>± {}</small>", text(half))).unwrap_or_default();
    format!("<td{class}>{}{half}</td>", text(interval.mean))
}

/// Each policy compared with the first: relative change, with a paired 95 % interval if seeds allow; empty for a
/// single policy.
pub(super) fn differences(group: &CellGroup, policies: &[&str]) -> String {
    let Some((reference, others)) = group.policies.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return String::new();
    };
    let columns = &COLUMNS[..6];
    let name = escape(&reference.policy);
    let mut out =
        format!("<h3>Against {name}, seed by seed</h3><div class=\"wide\"><table><thead><tr><th>policy</th>");
    for SummaryColumn(heading, ..) in columns {
        out.push_str(&format!("<th scope=\"col\">{heading}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for runs in others {
        out.push_str(&row_start(runs, policies));
        for column in columns {
            out.push_str(&difference(&pairs(runs, reference, column.2)));
        }
        out.push_str("</tr>");
    }
    let hint = if reference.runs.len() > 1 {
        "Policies meet the same world under the same seed. The interval is Student's t over the differences, 95 %; bold where it excludes no difference."
    } else {
        "One replication: the differences have no interval. <code>--repeat</code> adds some."
    };
    out.push_str(&format!("</tbody></table></div><p class=\"hint\">{hint}</p>"));
    out
}

/// (value, reference) for the common seeds.
fn pairs(runs: &PolicyRuns, reference: &PolicyRuns, metric: fn(&Summary) -> f64) -> Vec<(f64, f64)> {
    let of_seed = |seed| reference.runs.iter().find(|run| run.summary.seed == seed);
    let pairs = runs.runs.iter().filter_map(|run| Some((&run.summary, &of_seed(run.summary.seed)?.summary)));
    pairs.map(|(a, b)| (metric(a), metric(b))).filter(|(a, b)| a.is_finite() && b.is_finite()).collect()
}

fn difference(pairs: &[(f64, f64)]) -> String {
    let reference = Interval::new(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let (Some(difference), Some(reference)) = (Interval::paired(pairs), reference) else {
        return "<td>–</td>".to_owned();
    };
    let change = number::change(difference.mean / reference.mean);
    let half = difference.half_width.map(|half| half / reference.mean.abs());
    let half = half.map(|half| format!(" <small>± {}</small>", number::percent(half))).unwrap_or_default();
    let title = escape(&format!("{} s", number::short(difference.mean)));
    if difference.excludes_zero() {
        format!("<td title=\"{title}\"><b>{change}</b>{half}</td>")
    } else {
        format!("<td title=\"{title}\">{change}{half}</td>")
    }
}

/// Job and task counts, summed over replications, and whether they balance.
pub(super) fn books(group: &CellGroup, policies: &[&str]) -> String {
    const HEADINGS: [&str; 15] = [
        "jobs",
        "finished",
        "failed",
        "unfinished",
        "tasks",
        "finished",
        "copies",
        "finished",
        "preempted",
        "lost",
        "messages",
        "dropped",
        "recovery",
        "books",
        "event order",
    ];
    let mut out = String::from("<div class=\"wide\"><table><thead><tr><th>policy</th>");
    for heading in HEADINGS {
        out.push_str(&format!("<th scope=\"col\">{heading}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for runs in &group.policies {
        out.push_str(&row_start(runs, policies));
        let sum = |field: fn(&Summary) -> u64| runs.runs.iter().map(|run| field(&run.summary)).sum::<u64>();
        let fields: [fn(&Summary) -> u64; 13] = [
            |s| s.jobs.submitted,
            |s| s.jobs.finished,
            |s| s.jobs.failed,
            |s| s.jobs.unfinished,
            |s| s.tasks.submitted,
            |s| s.tasks.finished,
            |s| s.copies.started,
            |s| s.copies.finished,
            |s| s.copies.preempted,
            |s| s.copies.lost,
            |s| s.messages.total,
            |s| s.messages.dropped,
            |s| s.messages.recovery,
        ];
        for field in fields {
            out.push_str(&format!("<td>{}</td>", number::count(sum(field))));
        }
        let balance = runs.runs.iter().all(|run| is_balanced(&run.summary));
        out.push_str(if balance {
            "<td class=\"good\">✓ balance</td>"
        } else {
            "<td class=\"bad\">✗ do not</td>"
        });
        let hashes: Vec<String> =
            runs.runs.iter().map(|run| escape(&run.summary.engine.order_hash)).collect();
        let more =
            if hashes.len() > 1 { format!(" <small>+ {}</small>", hashes.len() - 1) } else { String::new() };
        let first = hashes.first().map_or("", String::as_str);
        out.push_str(&format!("<td title=\"{}\"><code>{first}</code>{more}</td></tr>", hashes.join(" ")));
    }
    out.push_str("</tbody></table></div>");
    out
}

/// What a spread is of, and how its numbers read.
type Row<'a> = (String, &'a Spread, fn(f64) -> String);

/// A table of spreads under a heading.
pub(super) fn spreads(heading: &str, rows: &[Row<'_>]) -> String {
    let rows = rows.iter().map(|(what, spread, text)| {
        let cells = [spread.mean, spread.p50, spread.p90, spread.p99, spread.max];
        let cells: String = cells.iter().map(|&value| format!("<td>{}</td>", text(value))).collect();
        format!("<tr><th>{what}</th>{cells}</tr>")
    });
    format!(
        "<h3>{heading}</h3><table><thead><tr><th></th><th>mean</th><th>p50</th><th>p90</th><th>p99</th><th>max</th></tr></thead>\
         <tbody>{}</tbody></table>",
        rows.collect::<String>()
    )
}

/// Whether the counts add up.
fn is_balanced(summary: &Summary) -> bool {
    let (jobs, copies) = (&summary.jobs, &summary.copies);
    jobs.submitted == jobs.finished + jobs.failed + jobs.unfinished
        && copies.started == copies.finished + copies.preempted + copies.lost
}

/// The cost of the runs, by policy.
pub(super) fn engine(study: &Study) -> String {
    let mut out = String::from(
        "<div class=\"wide\"><table><thead><tr><th>policy</th><th>runs</th><th>events</th><th>CPU</th><th>wall</th><th>events per CPU-second</th><th>peak memory</th></tr></thead><tbody>",
    );
    for (i, policy) in study.policies().into_iter().enumerate() {
        let engines = || study.records().filter(|r| r.summary.policy == policy).map(|r| &r.summary.engine);
        let events: u64 = engines().map(|engine| engine.events).sum();
        let (cpu, wall) =
            engines().fold((0.0, 0.0), |(cpu, wall), engine| (cpu + engine.cpu_s, wall + engine.wall_s));
        let memory = engines().map(|engine| engine.peak_rss_bytes).max().unwrap_or(0);
        out.push_str(&format!(
            "<tr class=\"p{i}\"><th scope=\"row\" class=\"{}\"><i class=\"swatch\"></i> {}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            theme::series(i),
            escape(policy),
            engines().count(),
            number::count(events),
            number::seconds(cpu),
            number::seconds(wall),
            if cpu > 0.0 { format!("{} M", number::short(events as f64 / cpu / 1e6)) } else { "–".to_owned() },
            number::bytes(memory)
        ));
    }
    out.push_str("</tbody></table></div>");
    out
}
