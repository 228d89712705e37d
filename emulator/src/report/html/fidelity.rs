//! The certificates of a cell, as tables.

use super::table::row_start;
use crate::chart::svg::escape;
use crate::number;
use crate::record::cell::CellRecord;
use crate::storage::study::{CellGroup, PolicyRuns};
use volary_engine::results::Certificate;
use volary_engine::results::{Late, Share};

/// A column: heading, what it means, and the entry.
type Column = (&'static str, &'static str, fn(&Certificate) -> String);

const COLUMNS: [Column; 12] = [
    ("deliveries late", "how late messages were handed to their actors: p50, p99, max", |c| {
        lateness(&c.lateness.deliveries)
    }),
    ("late share", "deliveries later than a tenth of the median delay", |c| {
        number::percent(c.lateness.deliveries.late_share)
    }),
    ("bare timer", "99th percentile of what a timer that does nothing achieved at the same time", |c| {
        c.timer_p99_s().map_or_else(|| "–".to_owned(), number::seconds)
    }),
    ("timers late", "how late timers fired: p50, p99, max", |c| lateness(&c.lateness.timers)),
    ("work late", "how late the ends of copies were noticed: p50, p99, max", |c| lateness(&c.lateness.work)),
    ("mean delay", "asked and achieved, of messages over the network", |c| {
        let delay = &c.network.delay;
        against(delay.asked.mean_s, delay.achieved.mean_s)
    }),
    ("p99 delay", "asked and achieved", |c| {
        let delay = &c.network.delay;
        against(delay.asked.p99_s, delay.achieved.p99_s)
    }),
    ("KS", "distance between the laws of asked and achieved delays; – for constant delays", |c| {
        c.network.delay.ks.map_or_else(|| "–".to_owned(), number::short)
    }),
    ("datagram loss", "asked and achieved", |c| share(&c.network.datagram.loss)),
    ("stream loss", "of transmissions, asked and achieved", |c| share(&c.network.stream.loss)),
    ("duplicates", "of datagrams, asked and achieved", |c| share(&c.network.datagram.duplicate)),
    ("core time", "how much longer copies kept their cores than they were to", |c| {
        number::change(c.core_s.excess())
    }),
];

/// The certificates of runs in real time; empty in virtual time.
pub(super) fn section(group: &CellGroup, policies: &[&str]) -> String {
    let runs = || group.policies.iter().flat_map(|runs| runs.runs.iter().map(move |run| (runs, run)));
    let certified: Vec<_> =
        runs().filter_map(|(runs, run)| Some((runs, run, run.summary.fidelity.as_ref()?))).collect();
    if certified.is_empty() {
        return String::new();
    }
    let open = if certified.iter().any(|(_, _, c)| c.is_degraded()) { " open" } else { "" };
    let mut out =
        format!("<details class=\"more\"{open}><summary>Fidelity: asked against achieved</summary>");
    out.push_str(
        "<div class=\"wide\"><table class=\"stack\"><thead><tr><th>policy</th><th>seed</th><th>verdict</th>",
    );
    for (heading, meaning, _) in &COLUMNS {
        out.push_str(&format!("<th scope=\"col\" title=\"{meaning}\">{heading}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for (runs, run, certificate) in &certified {
        out.push_str(&row(runs, run, certificate, policies));
    }
    out.push_str("</tbody></table></div>");
    certified.iter().for_each(|(_, run, certificate)| out.push_str(&why(run, certificate)));
    out.push_str(&cores(&certified, policies));
    out.push_str(&hosts(&certified, policies));
    out.push_str("<p class=\"hint\">Emulated time; a bare timer's too. Asked → achieved.</p></details>");
    out
}

fn row(runs: &PolicyRuns, run: &CellRecord, certificate: &Certificate, policies: &[&str]) -> String {
    let verdict = if certificate.is_degraded() {
        "<td class=\"bad\">✗ degraded</td>"
    } else {
        "<td class=\"good\">✓ faithful</td>"
    };
    let cells = COLUMNS.iter().map(|(_, _, entry)| format!("<td>{}</td>", entry(certificate)));
    format!(
        "{}<td>{}</td>{verdict}{}</tr>",
        row_start(runs, policies),
        run.summary.seed,
        cells.collect::<String>()
    )
}

/// The reasons why a run is degraded, with remedies.
fn why(run: &CellRecord, certificate: &Certificate) -> String {
    if !certificate.is_degraded() {
        return String::new();
    }
    let name = escape(&format!("{}, seed {}", run.summary.policy, run.summary.seed));
    let reasons = certificate.reasons.iter().map(|reason| format!("<li>{}</li>", escape(&reason.says)));
    let remedy = escape(&certificate.remedies().join("; "));
    format!(
        "<h3>{name} is degraded</h3><ul>{}</ul><p class=\"hint\">Remedy: {remedy}</p>",
        reasons.collect::<String>()
    )
}

/// The measurements of real cores, with a row for each kind of degraded stretch and for each core; empty if copies
/// were timed.
fn cores(certified: &[(&PolicyRuns, &CellRecord, &Certificate)], policies: &[&str]) -> String {
    let real: Vec<_> =
        certified.iter().filter_map(|(runs, run, c)| Some((runs, run, c.cores.as_ref()?))).collect();
    if real.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h3>Real cores</h3><div class=\"wide\"><table><thead><tr><th>policy</th><th>seed</th><th>cores</th><th>length</th><th>slowdown asked</th><th>achieved</th><th>off by</th><th>spread</th><th>stretches</th></tr></thead><tbody>",
    );
    for (runs, run, work) in real {
        let mut row = |cells: [String; 7]| {
            let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
            out.push_str(&format!("{}<td>{}</td>{cells}</tr>", row_start(runs, policies), run.summary.seed));
        };
        for core in work.cores.iter().filter(|core| core.healthy.count > 0) {
            let (pace, name) = (core.healthy, escape(&core.host));
            row([
                format!("{} <small>CPU {} of {name}, {}</small>", core.core, core.cpu, escape(&work.kernel)),
                "<small>healthy</small>".to_owned(),
                "1".to_owned(),
                number::short(1.0 / pace.mean),
                number::change(1.0 / pace.mean - 1.0),
                number::percent(pace.std / pace.mean),
                number::count(pace.count),
            ]);
        }
        for slots in &work.slots {
            row([
                format!("all <small>{}</small>", escape(&work.degrade)),
                number::seconds(slots.length_s),
                number::short(slots.asked),
                number::short(slots.achieved),
                number::change(slots.off()),
                number::percent(slots.pace.std / slots.pace.mean),
                number::count(slots.pace.count),
            ]);
        }
        let copies = work.copies;
        if copies.count == 0 {
            continue;
        }
        row([
            "copies".to_owned(),
            number::seconds(work.asked_s / copies.count.max(1) as f64),
            "<small>as the slots have it</small>".to_owned(),
            String::new(),
            number::change(work.achieved_s / work.asked_s - 1.0),
            number::percent(copies.std),
            number::count(copies.count),
        ]);
    }
    out.push_str("</tbody></table></div>");
    out
}

/// The hosts of every run.
fn hosts(certified: &[(&PolicyRuns, &CellRecord, &Certificate)], policies: &[&str]) -> String {
    let mut out = String::from(
        "<h3>Hosts</h3><div class=\"wide\"><table><thead><tr><th>policy</th><th>seed</th><th>host</th><th>wall</th><th>CPU of the run</th><th>machine busy</th><th>stolen</th><th>processors</th><th>memory</th><th>pushed aside</th><th>late from other hosts</th><th>messages lost</th><th>clock known to</th></tr></thead><tbody>",
    );
    for (runs, run, certificate) in certified {
        for host in &certificate.hosts {
            let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number::percent);
            let cells = [
                escape(&host.name),
                number::seconds(host.wall_s),
                number::percent(host.cpu_share),
                share(host.machine_share),
                share(host.steal_share),
                host.cores.to_string(),
                number::bytes(host.peak_rss_bytes),
                number::count(host.involuntary_switches),
                number::count(host.parcels_late),
                number::count(host.datagrams_lost),
                number::seconds(host.clock.bound_s),
            ];
            let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
            out.push_str(&format!("{}<td>{}</td>{cells}</tr>", row_start(runs, policies), run.summary.seed));
        }
    }
    out.push_str("</tbody></table></div>");
    out
}

fn lateness(late: &Late) -> String {
    if late.count == 0 {
        return "–".to_owned();
    }
    let [p50, p99, max] = [late.p50_s, late.p99_s, late.max_s].map(number::seconds);
    format!("{p50} <small>{p99}</small><small>{max}</small>")
}

fn against(asked: f64, achieved: f64) -> String {
    format!("{} <small>→ {}</small>", number::seconds(asked), number::seconds(achieved))
}

fn share(share: &Share) -> String {
    let [asked, achieved] =
        [share.asked, share.achieved].map(|value| value.map_or_else(|| "–".to_owned(), number::percent));
    format!("{asked} <small>→ {achieved}</small>")
}
