//! The certificates of a cell, as tables.

use maud::{Markup, html};
use volary_engine::results::{Certificate, HostVitals, Late, Proportion, RealWork, Summary};
use volary_experiment::number;
use volary_experiment::storage::study::CellGroup;

use super::table::{policy_row, table};
use super::view::prose;

/// A column: heading, meaning, and the entry.
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
    ("mean delay", "asked and achieved, of messages over the network", |c| {
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

/// Number of columns about lateness, which come first.
const TIMES: usize = 5;

/// The columns that are shown unasked, which fit a page of 1280 px: late deliveries and their share, mean delay,
/// datagram loss, core time.
const BRIEF: [usize; 5] = [0, 1, 5, 8, 11];

/// A run in real time with its certificate.
type Certified<'a> = (&'a Summary, &'a Certificate);

/// The certificates of runs in real time; empty in virtual time.
pub(super) fn section(group: &CellGroup, policies: &[&str]) -> Markup {
    let runs = group.policies.iter().flat_map(|runs| &runs.runs).map(|run| &run.summary);
    let certified: Vec<Certified<'_>> = runs.filter_map(|run| Some((run, run.fidelity.as_ref()?))).collect();
    if certified.is_empty() {
        return Markup::default();
    }
    let degraded = || certified.iter().filter(|(_, certificate)| certificate.is_degraded());
    let (of_time, of_network) = COLUMNS.split_at(TIMES);
    let brief: Vec<CertificateColumn> = BRIEF.map(|at| COLUMNS[at]).to_vec();
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
            p.hint { "Emulated time; a bare timer's too. Asked → achieved." }
        }
    }
}

/// A table of certificates: verdicts, and some of the columns.
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
/// were timed.
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

/// The rows of one run on real cores: its cores while healthy, its slots while degraded, its copies.
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
            td { small { "as the slots have it" } }
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
    ("clock known to", |host| html! { (number::seconds(host.clock.bound_s)) }),
];

/// The hosts of every run.
fn hosts(certified: &[Certified<'_>], policies: &[&str]) -> Markup {
    let mut headings = vec!["policy", "seed"];
    headings.extend(HOSTS.map(|(heading, _)| heading));
    let hosts =
        certified.iter().flat_map(|(run, certificate)| certificate.hosts.iter().map(move |host| (run, host)));
    let rows = html! {
        @for (run, host) in hosts {
            (row(run, policies, &html! { @for (_, entry) in HOSTS { td { (entry(host)) } } }))
        }
    };
    html! { h3 { "Hosts" } (table("Hosts", &headings, &[], &rows)) }
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

/// A number that may not have been measured.
fn known(value: Option<f64>, text: fn(f64) -> String) -> Markup {
    html! { @if let Some(value) = value { (text(value)) } @else { "–" } }
}
