//! The tables of a cell, and of the cost of runs.

use maud::{Markup, html};
use volary_engine::results::{Spread, Summary};

use super::view::index;
use crate::chart::theme;
use crate::number::{self, Quantity};
use crate::report::columns::{PAGE, SummaryColumn, degraded_share, work_lost};
use crate::stats::Interval;
use crate::storage::study::{CellGroup, PolicyRuns, Study};

/// A table that scrolls sideways: headings, further ones with what they mean, and rows.
pub(super) fn table(headings: &[&str], explained: &[(&str, &str)], rows: &Markup) -> Markup {
    html! {
        div.wide {
            table class=[(!explained.is_empty()).then_some("stack")] {
                thead {
                    tr {
                        @for heading in headings { th { (heading) } }
                        @for (heading, meaning) in explained { th scope="col" title=(meaning) { (heading) } }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// A row that begins with a policy and its colour.
pub(super) fn policy_row(policies: &[&str], policy: &str, cells: &Markup) -> Markup {
    class_row(policies, policy, None, cells)
}

/// The row of a class of a policy's jobs, below that of all its jobs.
fn class_row(policies: &[&str], policy: &str, class: Option<&str>, cells: &Markup) -> Markup {
    let i = index(policies, policy);
    html! {
        tr class={ "p" (i) } {
            th scope="row" class=(theme::series(i)) {
                @if let Some(label) = class { small { (policy) ", " (label) } } @else { i.swatch {} " " (policy) }
            }
            (cells)
        }
    }
}

/// The summary of a cell: a row per policy and class of its jobs, with the best of each column marked.
pub(super) fn summary(group: &CellGroup, policies: &[&str]) -> Markup {
    // A number that was not asked for has no column.
    let is_measured =
        |column: &&SummaryColumn| group.policies.iter().any(|runs| runs.interval(column.of(None)).is_some());
    let shown: Vec<_> = PAGE.iter().filter(is_measured).collect();
    let row = |runs: &PolicyRuns, class: Option<&str>| {
        let entries = shown.iter().map(|column| {
            let best = column.best(group, class).filter(|_| column.is_comparable(runs));
            (runs.interval(column.of(class)), best, column.quantity)
        });
        class_row(
            policies,
            &runs.policy,
            class,
            &html! {
                @for (interval, best, quantity) in entries {
                    @if let Some(Interval { mean, half_width, .. }) = interval {
                        td class=[(best == Some(mean)).then_some("best")] {
                            (quantity.interval(mean, half_width))
                        }
                    } @else {
                        td { "–" }
                    }
                }
            },
        )
    };
    let explained: Vec<_> = shown.iter().map(|column| (column.heading, column.meaning)).collect();
    let classes = group.classes();
    let rows = html! {
        @for runs in &group.policies {
            (row(runs, None))
            @for class in &classes { (row(runs, Some(class))) }
        }
    };
    table(&["policy"], &explained, &rows)
}

/// The interference that cores met under each policy; empty if there was none.
pub(super) fn interference(group: &CellGroup, policies: &[&str]) -> Markup {
    let explained = [
        (
            "degraded",
            "share of the core time in which cores were degraded, from the start of the run to its end",
        ),
        ("work lost", "share of the work of healthy cores that degraded ones could not do"),
    ];
    let met = |runs: &&PolicyRuns| runs.interval(degraded_share).is_some();
    let entry = |interval: Option<Interval>| {
        let text = |found: Interval| Quantity::Share.interval(found.mean, found.half_width);
        html! { td { (interval.map_or_else(|| "–".to_owned(), text)) } }
    };
    let rows = html! {
        @for runs in group.policies.iter().filter(met) {
            (policy_row(policies, &runs.policy, &html! {
                (entry(runs.interval(degraded_share))) (entry(runs.interval(work_lost)))
            }))
        }
    };
    html! {
        @if group.policies.iter().any(|runs| met(&runs)) {
            h3 { "Interference that the cores met" }
            (table(&["policy"], &explained, &rows))
            p.hint { "Runs of other lengths meet other slots of the same profile." }
        }
    }
}

/// Each policy compared with the first: relative change, with a paired 95 % interval if seeds allow; empty for a
/// single policy.
pub(super) fn differences(group: &CellGroup, policies: &[&str]) -> Markup {
    let Some((reference, others)) = group.policies.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Markup::default();
    };
    let columns = &PAGE[..6];
    let mut headings = vec!["policy"];
    headings.extend(columns.iter().map(|column| column.heading));
    let rows = html! {
        @for runs in others {
            (policy_row(policies, &runs.policy, &html! {
                @for column in columns { (difference(&runs.pairs(reference, column.value))) }
            }))
        }
    };
    html! {
        h3 { "Against " (reference.policy) ", seed by seed" }
        (table(&headings, &[], &rows))
        p.hint {
            @if reference.runs.len() > 1 {
                "Policies meet the same world under the same seed. The interval is Student's t over the differences, \
                 95 %; bold where it excludes no difference."
            } @else {
                "One replication: the differences have no interval. " code { "--repeat" } " adds some."
            }
        }
    }
}

/// The change of pairs of (value, reference).
fn difference(pairs: &[(f64, f64)]) -> Markup {
    let reference = Interval::new(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let (Some(difference), Some(reference)) = (Interval::paired(pairs), reference) else {
        return html! { td { "–" } };
    };
    let change = number::change(difference.mean / reference.mean);
    html! {
        td title={ (number::short(difference.mean)) " s" } {
            @if difference.excludes_zero() { b { (change) } } @else { (change) }
            @if let Some(half) = difference.half_width {
                " " small { "± " (number::percent(half / reference.mean.abs())) }
            }
        }
    }
}

/// A column of counts: its heading and the count.
type CountColumn = (&'static str, fn(&Summary) -> u64);

const BOOKS: [CountColumn; 14] = [
    ("jobs", |s| s.jobs.submitted),
    ("finished", |s| s.jobs.finished),
    ("failed", |s| s.jobs.failed),
    ("unfinished", |s| s.jobs.unfinished),
    ("tasks", |s| s.tasks.submitted),
    ("finished", |s| s.tasks.finished),
    ("copies", |s| s.copies.started),
    ("finished", |s| s.copies.finished),
    ("preempted", |s| s.copies.preempted),
    ("lost", |s| s.copies.lost),
    ("in progress", |s| s.copies.in_progress),
    ("messages", |s| s.messages.total),
    ("dropped", |s| s.messages.dropped),
    ("recovery", |s| s.messages.recovery),
];

/// Job and task counts, summed over replications, and whether they balance.
pub(super) fn books(group: &CellGroup, policies: &[&str]) -> Markup {
    let row = |runs: &PolicyRuns| {
        let summaries = || runs.runs.iter().map(|run| &run.summary);
        let hashes: Vec<&str> = summaries().map(|summary| summary.engine.order_hash.as_str()).collect();
        policy_row(
            policies,
            &runs.policy,
            &html! {
                @for (_, count) in BOOKS { td { (number::count(summaries().map(count).sum())) } }
                @if summaries().all(is_balanced) { td.good { "✓ balance" } } @else { td.bad { "✗ do not" } }
                td title=(hashes.join(" ")) {
                    code { (hashes.first().unwrap_or(&"")) }
                    @if hashes.len() > 1 { " " small { "+ " (hashes.len() - 1) } }
                }
            },
        )
    };
    let mut headings = vec!["policy"];
    headings.extend(BOOKS.iter().map(|column| column.0).chain(["accounts", "event order"]));
    table(&headings, &[], &html! { @for runs in &group.policies { (row(runs)) } })
}

/// Whether the counts add up.
fn is_balanced(summary: &Summary) -> bool {
    let (jobs, copies) = (&summary.jobs, &summary.copies);
    jobs.submitted == jobs.finished + jobs.failed + jobs.unfinished
        && copies.started == copies.finished + copies.preempted + copies.lost + copies.in_progress
}

/// What a spread is of, and how its numbers read.
type Row<'a> = (String, &'a Spread, fn(f64) -> String);

/// A table of spreads under a heading.
pub(super) fn spreads(heading: &str, rows: &[Row<'_>]) -> Markup {
    let rows = html! {
        @for (what, spread, text) in rows {
            tr {
                th { (what) }
                @for value in [spread.mean, spread.p50, spread.p90, spread.p99, spread.max] { td { (text(value)) } }
            }
        }
    };
    html! {
        h3 { (heading) }
        (table(&["", "mean", "p50", "p90", "p99", "max"], &[], &rows))
    }
}

/// The cost of the runs, by policy.
pub(super) fn engine(study: &Study, policies: &[&str]) -> Markup {
    let row = |policy: &str| {
        let engines = || study.records().filter(|r| r.summary.policy == policy).map(|r| &r.summary.engine);
        let events: u64 = engines().map(|engine| engine.events).sum();
        let cpu: f64 = engines().map(|engine| engine.cpu_s).sum();
        let rate = number::short(events as f64 / cpu / 1e6);
        policy_row(
            policies,
            policy,
            &html! {
                td { (engines().count()) }
                td { (number::count(events)) }
                td { (number::seconds(cpu)) }
                td { (number::seconds(engines().map(|engine| engine.wall_s).sum())) }
                td { @if cpu > 0.0 { (rate) " M" } @else { "–" } }
                td { (number::bytes(engines().map(|engine| engine.peak_rss_bytes).max().unwrap_or(0))) }
            },
        )
    };
    let headings = ["policy", "runs", "events", "CPU", "wall", "events per CPU-second", "peak memory"];
    table(&headings, &[], &html! { @for policy in policies { (row(policy)) } })
}
