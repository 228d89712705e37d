//! The tables of a cell, of its certificates, and of the cost of its runs.

use maud::{Markup, html};
use volary_engine::results::{
    Certificate, ColumnGroup, Engine, HostVitals, Late, Proportion, RealWork, Summary, Unit,
};
use volary_experiment::number::{self, NumberColumn, UnitText};
use volary_experiment::stats::Interval;
use volary_experiment::storage::study::{CellGroup, PolicyRuns, Study};

use super::view::{View, plain, policy_anchor, prose};
use crate::chart::theme;
use crate::columns::{SummaryColumn, percentiles_of_response};
use crate::figures::distribution::colour;

/// A table with a name: headings, further headings with their meanings, and rows. A table that is wider than the page
/// scrolls sideways, also by keyboard.
pub(super) fn table(name: &str, headings: &[&str], explained: &[(&str, &str)], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(name) {
            table class=[(!explained.is_empty()).then_some("stack")] {
                thead {
                    tr {
                        @for heading in headings { th scope="col" { (heading) } }
                        @for (heading, meaning) in explained { th scope="col" title=(plain(meaning)) { (heading) } }
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

/// The row of a class of a policy's jobs. It follows the row of all jobs, or of one of the policy's runs.
pub(super) fn class_row(policies: &[&str], policy: &str, class: Option<&str>, cells: &Markup) -> Markup {
    let i = colour(policies, policy);
    html! {
        tr class={ "p" (i) } {
            th scope="row" class=(theme::series(i)) {
                @if let Some(label) = class {
                    small { (policy) ", " (label) }
                } @else {
                    i.swatch {} a href={ "#" (policy_anchor(i)) } { (policy) }
                }
            }
            (cells)
        }
    }
}

/// A row of a table of numbers: a policy, and a label such as a class of its jobs or a seed; `None` for all jobs.
pub(super) type PolicyRow<'a> = (&'a str, Option<&'a str>);

/// A column of a table of numbers.
pub(super) struct PolicyColumn<'a> {
    heading: &'a str,
    meaning: &'a str,
    unit: &'static str,
    /// The entries, one per row.
    cells: Vec<Markup>,
    /// Width of the column, px.
    wide: f64,
}

impl<'a> PolicyColumn<'a> {
    /// The means and half-widths of a measure in each row.
    pub(super) fn new(
        heading: &'a str,
        meaning: &'a str,
        unit: Unit,
        numbers: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        let numbers = unit.column(&numbers.into_iter().collect::<Vec<_>>());
        Self::written(heading, meaning, &numbers, |_, text| html! { td { (text) } })
    }

    /// A column of numbers; `cell` makes the entry of a row from the index of the row and the text of the number.
    fn written(
        heading: &'a str,
        meaning: &'a str,
        numbers: &NumberColumn,
        cell: impl Fn(usize, &Markup) -> Markup,
    ) -> Self {
        let text = |(mean, half): &(String, Option<String>)| {
            html! { (mean) @if let Some(half) = half { " " small { "± " (half) } } }
        };
        let cells = numbers.cells.iter().map(text).enumerate().map(|(row, text)| cell(row, &text)).collect();
        let size = |(mean, half): &(String, Option<String>)| {
            let half = half.as_ref().map_or(0, |half| half.chars().count() + 3);
            DIGIT * mean.chars().count() as f64 + SMALL_DIGIT * half as f64
        };
        let words = heading.split(' ').map(|word| DIGIT * word.chars().count() as f64);
        let wide = words.chain(numbers.cells.iter().map(size)).fold(0.0, f64::max) + AROUND;
        Self { heading, meaning, unit: numbers.unit, cells, wide }
    }
}

/// Upper bounds of the widths of a character in a table, of a character of a half-width, and of the space around an
/// entry, px.
const DIGIT: f64 = 8.6;
const SMALL_DIGIT: f64 = 7.2;
const AROUND: f64 = 16.0;
/// Space for the columns of a table of numbers on a page of 1280 px, px.
const ROOM: f64 = 770.0;

/// A table with a row for each policy and a column of numbers for each measure; headings have the unit. Columns that do
/// not fit beside each other are in further tables.
pub(super) fn number_tables(
    name: &str,
    rows: &[PolicyRow<'_>],
    columns: &[PolicyColumn<'_>],
    policies: &[&str],
) -> Markup {
    let all: f64 = columns.iter().map(|column| column.wide).sum();
    let each = all / (all / ROOM).ceil().max(1.0);
    let (mut parts, mut used): (Vec<Vec<&PolicyColumn<'_>>>, f64) = (Vec::new(), f64::INFINITY);
    for column in columns {
        if used >= each || used + column.wide > ROOM {
            parts.push(Vec::new());
            used = 0.0;
        }
        used += column.wide;
        parts.last_mut().into_iter().for_each(|part| part.push(column));
    }
    html! {
        @for part in parts {
            div.scroll tabindex="0" role="group" aria-label=(name) {
                table {
                    thead {
                        tr {
                            th scope="col" { "policy" }
                            @for column in &part {
                                th scope="col" title=(plain(column.meaning)) {
                                    (column.heading)
                                    @if !column.unit.is_empty() { " " small { "in\u{a0}" (column.unit) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (at, (policy, class)) in rows.iter().enumerate() {
                            (class_row(policies, policy, *class, &html! { @for column in &part { (column.cells[at]) } }))
                        }
                    }
                }
            }
        }
    }
}

/// The summary of a cell: a row per policy and class of its jobs, with the best of each column marked. The first table
/// has the most important columns that fit a page of 1280 px; tables below have all of them.
pub(super) fn summary(group: &CellGroup, view: &View<'_>) -> Markup {
    let runs = || group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    let all: Vec<SummaryColumn> = SummaryColumn::all().filter(|column| column.is_worth(runs())).collect();
    let classes: Vec<Option<&str>> =
        std::iter::once(None).chain(group.classes().into_iter().map(Some)).collect();
    let rows: Vec<(&PolicyRuns, Option<&str>)> =
        group.policies.iter().flat_map(|runs| classes.iter().map(move |class| (runs, *class))).collect();
    let named: Vec<PolicyRow<'_>> = rows.iter().map(|(runs, class)| (runs.policy.as_str(), *class)).collect();
    let written = |column: &SummaryColumn| {
        let (numbers, best) = column.numbers(group, &rows);
        let cell = |row: usize, text: &Markup| html! { td class=[(best[row] == Some(true)).then_some("best")] { (text) } };
        PolicyColumn::written(column.heading, column.metric.meaning, &numbers, cell)
    };
    let mut brief: Vec<(u8, PolicyColumn<'_>)> =
        all.iter().filter_map(|column| Some((column.rank?, written(column)))).collect();
    while brief.len() > 1 && brief.iter().map(|(_, column)| column.wide).sum::<f64>() > ROOM {
        let least = brief.iter().map(|(rank, _)| *rank).max();
        brief.retain(|(rank, _)| Some(*rank) != least);
    }
    let brief: Vec<PolicyColumn<'_>> = brief.into_iter().map(|(_, column)| column).collect();
    let tables = ColumnGroup::ALL.iter().filter_map(|(about, title)| {
        let columns: Vec<_> = all.iter().filter(|column| column.group == *about).map(&written).collect();
        (!columns.is_empty()).then_some((title, columns))
    });
    html! {
        (number_tables("Results", &named, &brief, view.policies))
        p.hint {
            @if view.has_jobs { "p50, p99 and mean are response times of jobs; bold" } @else { "Bold" }
            " and green is the best of a column" (note_on_best(group)) "."
        }
        @if let Some(why) = group.unequal() {
            p.hint { strong { "No best policy: " } (why) ", so these runs did not meet the same conditions." }
        }
        details.more.all-columns {
            summary { "All columns" }
            @for (title, columns) in tables {
                h3 { (title) }
                (number_tables(title, &named, &columns, view.policies))
            }
        }
    }
}

/// The end of the sentence that explains the mark of the best policy.
fn note_on_best(group: &CellGroup) -> &'static str {
    if group.policies.iter().any(|runs| runs.runs.len() > 1) {
        ", where it differs significantly from the others; behind ± is the 95 % half-width over replications"
    } else {
        ""
    }
}

/// Definitions of the columns of all cells, for readers who cannot point at headings.
pub(super) fn meanings(study: &Study) -> Markup {
    let runs = || study.records().map(|record| &record.summary);
    html! {
        details.more {
            summary { "Meaning of the columns" }
            dl.numbers {
                @for column in SummaryColumn::all().filter(|column| column.is_worth(runs())) {
                    dt { (column.heading) } dd { (prose(column.metric.meaning)) }
                }
            }
        }
    }
}

/// The interference that cores met under each policy; empty without interference.
pub(super) fn interference(group: &CellGroup, policies: &[&str]) -> Markup {
    let of_interference = |column: &SummaryColumn| column.metric.key.starts_with("interference.");
    let columns: Vec<SummaryColumn> = SummaryColumn::all().filter(of_interference).collect();
    let met = |runs: &&PolicyRuns| columns.iter().any(|column| runs.interval(column.of(None)).is_some());
    let rows: Vec<(&PolicyRuns, Option<&str>)> =
        group.policies.iter().filter(met).map(|runs| (runs, None)).collect();
    let named: Vec<PolicyRow<'_>> = rows.iter().map(|(runs, class)| (runs.policy.as_str(), *class)).collect();
    let written = |column: &SummaryColumn| {
        let number = |(runs, _): &(&PolicyRuns, Option<&str>)| {
            let found = runs.interval(column.of(None));
            found.map_or((f64::NAN, None), |found| (found.mean, found.half_width))
        };
        let numbers = rows.iter().map(number);
        PolicyColumn::new(column.heading, column.metric.meaning, column.metric.unit, numbers)
    };
    let columns: Vec<PolicyColumn<'_>> = columns.iter().map(written).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Interference that the cores met" }
            (number_tables("Interference", &named, &columns, policies))
            p.hint {
                @if let Some(why) = group.unequal() {
                    "Policies did not meet the same interference: " (why) "."
                } @else {
                    "Longer runs meet more slots of the same profile, so policies can differ here."
                }
            }
        }
    }
}

/// The relative change of each policy against the first policy, with a paired 95 % interval if seeds allow it; empty
/// for a single policy.
pub(super) fn differences(group: &CellGroup, policies: &[&str]) -> Markup {
    let Some((reference, others)) = group.policies.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Markup::default();
    };
    if let Some(why) = group.unequal() {
        return html! {
            h3 { "Against " (reference.policy) ", seed by seed" }
            p.hint { "Not compared, because the runs did not meet the same conditions: " (why) "." }
        };
    }
    let named: Vec<PolicyRow<'_>> = others.iter().map(|runs| (runs.policy.as_str(), None)).collect();
    let columns: Vec<PolicyColumn<'_>> =
        percentiles_of_response().map(|column| changes(&column, others, reference)).collect();
    html! {
        h3 { "Against " (reference.policy) ", seed by seed" }
        (number_tables(&format!("Against {}", reference.policy), &named, &columns, policies))
        p.hint {
            @if reference.runs.len() > 1 {
                "Policies meet the same world under the same seed. The interval is Student's t over the differences, \
                 95 %; bold where it excludes zero."
            } @else {
                "One replication: the differences have no interval. " code { "--repeat 5" } " gives intervals."
            }
        }
    }
}

/// The change of a number under each policy relative to the reference.
fn changes(column: &SummaryColumn, others: &[PolicyRuns], reference: &PolicyRuns) -> PolicyColumn<'static> {
    let change = |runs: &PolicyRuns| {
        let pairs = runs.pairs(reference, column.metric.value);
        let of = Interval::new(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>())?.mean.abs();
        Some((Interval::paired(&pairs)?, of))
    };
    let found: Vec<_> = others.iter().map(change).collect();
    let relative = |found: &Option<(Interval, f64)>| {
        let (difference, of) = found.as_ref()?;
        Some((difference.mean / of, difference.half_width.map(|half| half / of)))
    };
    let numbers: Vec<_> = found.iter().map(|found| relative(found).unwrap_or((f64::NAN, None))).collect();
    let cell = |row: usize, text: &Markup| {
        let difference = found[row].as_ref().map(|(difference, _)| difference);
        let more = difference.is_some_and(|difference| difference.mean > 0.0);
        html! {
            td title=[difference.map(|difference| number::seconds(difference.mean))] {
                @let text = html! { @if more { "+" } (text) };
                @if difference.is_some_and(Interval::excludes_zero) { b { (text) } } @else { (text) }
            }
        }
    };
    PolicyColumn::written(column.heading, column.metric.meaning, &Unit::Share.column(&numbers), cell)
}

/// A column of counts: its heading, and its count in a summary.
type CountColumn = (&'static str, fn(&Summary) -> u64);

/// Columns of the counts of jobs and tasks.
const JOBS: [CountColumn; 6] = [
    ("jobs", |s| s.jobs.submitted),
    ("finished", |s| s.jobs.finished),
    ("failed", |s| s.jobs.failed),
    ("unfinished", |s| s.jobs.unfinished),
    ("tasks", |s| s.tasks.submitted),
    ("finished", |s| s.tasks.finished),
];

/// Columns of the counts of copies and messages.
const COPIES: [CountColumn; 8] = [
    ("copies", |s| s.copies.started),
    ("finished", |s| s.copies.finished),
    ("preempted", |s| s.copies.preempted),
    ("lost", |s| s.copies.lost),
    ("in progress", |s| s.copies.in_progress),
    ("messages", |s| s.messages.total),
    ("dropped", |s| s.messages.dropped),
    ("recovery", |s| s.messages.recovery),
];

/// Counts of jobs, tasks, copies and messages, summed over replications, and whether they balance. Without jobs, only
/// counts above zero are shown.
pub(super) fn accounts(group: &CellGroup, view: &View<'_>) -> Markup {
    let policies = view.policies;
    let row = |runs: &PolicyRuns, columns: &[CountColumn], end: &Markup| {
        let sum = |count: &fn(&Summary) -> u64| runs.runs.iter().map(|run| count(&run.summary)).sum();
        let cells = html! {
            @for (_, count) in columns { td { (number::count(sum(count))) } }
            (end)
        };
        policy_row(policies, &runs.policy, &cells)
    };
    let balance = |runs: &PolicyRuns| {
        let hashes: Vec<&str> = runs.runs.iter().map(|run| run.summary.engine.order_hash.as_str()).collect();
        let balances = runs.runs.iter().all(|run| is_balanced(&run.summary));
        html! {
            @if balances { td.good { "✓ balance" } } @else { td.bad { "✗ do not" } }
            td title=(hashes.join(" ")) {
                code { (hashes.first().unwrap_or(&"")) }
                @if hashes.len() > 1 { " " small { "+ " (hashes.len() - 1) } }
            }
        }
    };
    let headings = |columns: &[CountColumn], end: &[&'static str]| {
        let named = columns.iter().map(|column| column.0);
        std::iter::once("policy").chain(named).chain(end.iter().copied()).collect::<Vec<_>>()
    };
    let runs = || group.policies.iter().flat_map(|runs| &runs.runs);
    let shown = |columns: &[CountColumn]| -> Vec<CountColumn> {
        let is_shown = |column: &&CountColumn| view.has_jobs || runs().any(|run| column.1(&run.summary) > 0);
        columns.iter().filter(is_shown).copied().collect()
    };
    let (of_jobs, of_copies) = (shown(&JOBS), shown(&COPIES));
    let jobs = html! { @for runs in &group.policies { (row(runs, &of_jobs, &balance(runs))) } };
    let copies = html! { @for runs in &group.policies { (row(runs, &of_copies, &html! {})) } };
    html! {
        (table("Jobs and tasks", &headings(&of_jobs, &["accounts", "event order"]), &[], &jobs))
        (table("Copies and messages", &headings(&of_copies, &[]), &[], &copies))
    }
}

/// Whether the counts of a run add up.
fn is_balanced(summary: &Summary) -> bool {
    let (jobs, copies) = (&summary.jobs, &summary.copies);
    jobs.submitted == jobs.finished + jobs.failed + jobs.unfinished
        && copies.started == copies.finished + copies.preempted + copies.lost + copies.in_progress
}

/// The cost of the runs of a study, by policy.
pub(super) fn engine(study: &Study, policies: &[&str]) -> Markup {
    let engines = |policy: &str| {
        let of_policy = study.records().filter(move |record| record.summary.policy == policy);
        of_policy.map(|record| &record.summary.engine).collect::<Vec<_>>()
    };
    let runs: Vec<Vec<&Engine>> = policies.iter().map(|policy| engines(policy)).collect();
    let sum = |of: fn(&Engine) -> f64| -> Vec<String> {
        let sums = runs.iter().map(|engines| (engines.iter().map(|engine| of(engine)).sum::<f64>(), None));
        Unit::Seconds.column(&sums.collect::<Vec<_>>()).texts().collect()
    };
    let (cpu, wall) = (sum(|engine| engine.cpu_s), sum(|engine| engine.wall_s));
    let row = |at: usize| {
        let engines = &runs[at];
        // A run that is equal to an earlier run has the earlier results, and used no CPU time.
        let events: u64 =
            engines.iter().filter(|engine| engine.cpu_s > 0.0).map(|engine| engine.events).sum();
        let cpu_s: f64 = engines.iter().map(|engine| engine.cpu_s).sum();
        let rate = number::count((events as f64 / cpu_s).round() as u64);
        policy_row(
            policies,
            policies[at],
            &html! {
                td { (engines.len()) }
                td { (number::count(events)) }
                td { (cpu[at]) }
                td { (wall[at]) }
                td { @if cpu_s > 0.0 { (rate) } @else { "–" } }
                td { (number::bytes(engines.iter().map(|engine| engine.peak_rss_bytes).max().unwrap_or(0))) }
            },
        )
    };
    let headings = ["policy", "runs", "events", "CPU", "wall", "events per CPU-second", "peak memory"];
    table("Cost of the runs", &headings, &[], &html! { @for at in 0..policies.len() { (row(at)) } })
}

/// A column of certificates: heading, meaning, and entry.
type CertificateColumn = (&'static str, &'static str, fn(&Certificate) -> Markup);

const COLUMNS: [CertificateColumn; 12] = [
    ("deliveries late", "lateness of messages at their actors: p50, p99, max", |c| {
        lateness(&c.lateness.deliveries)
    }),
    ("late share", "deliveries later than a tenth of the median delay", |c| {
        percent(Some(c.lateness.deliveries.late_share))
    }),
    ("bare timer", "99th percentile of the lateness of a bare timer at the same time", |c| {
        known(c.timer_p99_s(), number::seconds)
    }),
    ("timers late", "lateness of timers: p50, p99, max", |c| lateness(&c.lateness.timers)),
    ("work late", "lateness of the notice of ends of copies: p50, p99, max", |c| lateness(&c.lateness.work)),
    ("mean delay", "of messages over the network, asked and achieved", |c| {
        let delay = &c.network.delay;
        against(delay.asked.mean_s, delay.achieved.mean_s)
    }),
    ("p99 delay", "asked and achieved", |c| {
        let delay = &c.network.delay;
        against(delay.asked.p99_s, delay.achieved.p99_s)
    }),
    ("KS", "distance between the distributions of asked and achieved delays; – for constant delays", |c| {
        known(c.network.delay.ks, number::short)
    }),
    ("datagram loss", "asked and achieved", |c| share(&c.network.datagram.loss)),
    ("stream loss", "of transmissions, asked and achieved", |c| share(&c.network.stream.loss)),
    ("duplicates", "of datagrams, asked and achieved", |c| share(&c.network.datagram.duplicate)),
    ("core time", "excess of the core time of copies over the requested time", |c| {
        known(Some(c.core_s.excess()), number::change)
    }),
];

/// Number of columns about lateness; they are the first columns.
const TIMES: usize = 5;

/// Indices of the columns that are shown by default and fit a page of 1280 px: late deliveries and their share, mean
/// delay, datagram loss, core time.
const BRIEF_CERTIFICATE: [usize; 5] = [0, 1, 5, 8, 11];

/// A run in real time with its certificate.
type Certified<'a> = (&'a Summary, &'a Certificate);

/// The certificates of runs in real time; empty in virtual time.
pub(super) fn fidelity(group: &CellGroup, policies: &[&str]) -> Markup {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    let certified: Vec<Certified<'_>> = runs.filter_map(|run| Some((run, run.fidelity.as_ref()?))).collect();
    if certified.is_empty() {
        return Markup::default();
    }
    let degraded = || certified.iter().filter(|(_, certificate)| certificate.is_degraded());
    let (of_time, of_network) = COLUMNS.split_at(TIMES);
    let brief: Vec<CertificateColumn> = BRIEF_CERTIFICATE.map(|at| COLUMNS[at]).to_vec();
    html! {
        details.more open[degraded().next().is_some()] {
            summary { "Fidelity: asked against achieved" }
            (certificates("Fidelity", &brief, &certified, policies))
            p.hint {
                "Three numbers, as in 31.9 µs / 902 µs / 4.33 ms, are the median, the 99th percentile and the maximum."
            }
            details.more.all-columns {
                summary { "All columns" }
                h3 { "Lateness" }
                (certificates("Lateness", of_time, &certified, policies))
                h3 { "Network and cores" }
                (certificates("Network and cores", of_network, &certified, policies))
            }
            @for (run, certificate) in degraded() {
                h3 { (run.name()) " is degraded" }
                ul { @for reason in &certificate.reasons { li { (prose(&reason.says)) } } }
                p.hint { "Remedy: " (prose(&certificate.remedies().join("; "))) }
            }
            (cores(&certified, policies))
            (hosts(&certified, policies))
            p.hint { "Emulated time, also for the bare timer. Asked → achieved." }
        }
    }
}

/// A table of certificates: verdicts, and the columns `of`.
fn certificates(
    name: &str,
    columns: &[CertificateColumn],
    certified: &[Certified<'_>],
    policies: &[&str],
) -> Markup {
    let explained: Vec<_> = columns.iter().map(|(heading, meaning, _)| (*heading, *meaning)).collect();
    let rows = html! {
        @for (run, certificate) in certified {
            (row(run, policies, &html! {
                @if certificate.is_degraded() { td.bad { "✗ degraded" } } @else { td.good { "✓ faithful" } }
                @for (.., entry) in columns { td { (entry(certificate)) } }
            }))
        }
    };
    table(name, &["policy", "seed", "verdict"], &explained, &rows)
}

/// A row that begins with the policy and the seed of a run.
fn row(run: &Summary, policies: &[&str], cells: &Markup) -> Markup {
    policy_row(policies, &run.policy, &html! { td { (run.seed) } (cells) })
}

/// The measurements of real cores, with a row for each kind of degraded stretch and for each core; empty if copies
/// burned no cores.
fn cores(certified: &[Certified<'_>], policies: &[&str]) -> Markup {
    const HEADINGS: [&str; 9] =
        ["policy", "seed", "cores", "length", "slowdown asked", "achieved", "off by", "spread", "stretches"];
    let real = certified.iter().filter_map(|(run, certificate)| Some((run, certificate.cores.as_ref()?)));
    let rows: Vec<Markup> = real
        .flat_map(|(run, work)| stretches(work).into_iter().map(|cells| row(run, policies, &cells)))
        .collect();
    html! {
        @if certified.iter().any(|(_, certificate)| certificate.cores.is_some()) {
            h3 { "Real cores" }
            (table("Real cores", &HEADINGS, &[], &html! { @for row in rows { (row) } }))
        }
    }
}

/// The rows of a run on real cores: its cores while healthy, its slots while degraded, and its copies.
fn stretches(work: &RealWork) -> Vec<Markup> {
    let healthy = work.cores.iter().filter(|core| core.healthy.count > 0).map(|core| {
        html! {
            td { (core.core) " " small { "CPU " (core.cpu) " of " (core.host) ", " (work.kernel) } }
            td { small { "healthy" } }
            td { "1" }
            td { (number::short(1.0 / core.healthy.mean)) }
            td { (number::change(1.0 / core.healthy.mean - 1.0)) }
            (spread(core.healthy.std / core.healthy.mean, core.healthy.count))
        }
    });
    let slots = work.slots.iter().map(|slots| {
        html! {
            td { "all " small { (work.degrade) } }
            td { (number::seconds(slots.length_s)) }
            td { (number::short(slots.asked)) }
            td { (number::short(slots.achieved)) }
            td { (number::change(slots.off())) }
            (spread(slots.pace.std / slots.pace.mean, slots.pace.count))
        }
    });
    let copies = (work.copies.count > 0).then(|| {
        html! {
            td { "copies" }
            td { (number::seconds(work.asked_s / work.copies.count as f64)) }
            td { small { "varies with the slots" } }
            td {}
            td { (number::change(work.achieved_s / work.asked_s - 1.0)) }
            (spread(work.copies.std, work.copies.count))
        }
    });
    healthy.chain(slots).chain(copies).collect()
}

fn spread(relative: f64, count: u64) -> Markup {
    html! { td { (number::percent(relative)) } td { (number::count(count)) } }
}

/// A column of hosts: heading and entry.
type HostColumn = (&'static str, fn(&HostVitals) -> Markup);

const HOSTS: [HostColumn; 11] = [
    ("host", |host| html! { (host.name) }),
    ("wall", |host| html! { (number::seconds(host.wall_s)) }),
    ("CPU of the run", |host| percent(Some(host.cpu_share))),
    ("machine busy", |host| percent(host.machine_share)),
    ("steal", |host| percent(host.steal_share)),
    ("processors", |host| html! { (host.cores) }),
    ("memory", |host| html! { (number::bytes(host.peak_rss_bytes)) }),
    ("involuntary switches", |host| html! { (number::count(host.involuntary_switches)) }),
    ("late from other hosts", |host| html! { (number::count(host.parcels_late)) }),
    ("messages lost", |host| html! { (number::count(host.datagrams_lost)) }),
    ("clock error, at most", |host| html! { (number::seconds(host.clock.bound_s)) }),
];

/// Number of columns of hosts in the first of two tables, after the name of the host.
const HOSTS_FIRST: usize = 6;

/// The hosts of every run, in two tables: load and memory; then delays, losses and clock error.
fn hosts(certified: &[Certified<'_>], policies: &[&str]) -> Markup {
    let hosts = || certified.iter().flat_map(|(run, found)| found.hosts.iter().map(move |host| (run, host)));
    let (name, others) = HOSTS.split_at(1);
    let (first, second) = others.split_at(HOSTS_FIRST);
    html! {
        h3 { "Hosts" }
        @for columns in [first, second] {
            @let shown = || name.iter().chain(columns);
            @let headings: Vec<&str> = ["policy", "seed"].into_iter().chain(shown().map(|column| column.0)).collect();
            (table("Hosts", &headings, &[], &html! {
                @for (run, host) in hosts() {
                    (row(run, policies, &html! { @for (_, entry) in shown() { td { (entry(host)) } } }))
                }
            }))
        }
    }
}

fn lateness(late: &Late) -> Markup {
    if late.count == 0 {
        return html! { "–" };
    }
    let [p50, p99, max] = [late.p50_s, late.p99_s, late.max_s].map(number::seconds);
    html! { (p50) " " small { "p99 " (p99) } small { "max " (max) } }
}

fn against(asked: f64, achieved: f64) -> Markup {
    html! { (number::seconds(asked)) " " small { "→ " (number::seconds(achieved)) } }
}

fn share(share: &Proportion) -> Markup {
    html! { (percent(share.asked)) " " small { "→ " (percent(share.achieved)) } }
}

fn percent(share: Option<f64>) -> Markup {
    known(share, number::percent)
}

/// A number, or a dash if it was not measured.
fn known(value: Option<f64>, text: fn(f64) -> String) -> Markup {
    html! { @if let Some(value) = value { (text(value)) } @else { "–" } }
}
