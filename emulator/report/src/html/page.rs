//! The page: contents, header, cells, footer.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use volary_experiment::number;
use volary_experiment::sanitize;
use volary_experiment::storage::RenderedReport;
use volary_experiment::storage::hosts::HostRecord;
use volary_experiment::storage::manifest::RunState;
use volary_experiment::storage::study::{CellGroup, Study};

use super::bodies::{Bodies, BodyPlace, base64};
use super::view::{View, anchor, cell_title, short_title};
use super::{cell, choice, overview, parameters, table};
use crate::chart::{theme, timeline};
use crate::shell::command_line;

/// Limit on the blocks in all timelines of a page, which make up most of its size.
const BLOCKS_OF_PAGE: usize = 12_000;
/// Number of blocks that every timeline may have, however many there are.
const LEAST_BLOCKS: usize = 60;
/// Limit on the cells that the contents list, and above which a page is wide: what is out of sight is not laid out.
const LISTED: usize = 100;
/// Limit on the points of an experiment that its resolved form shows.
const POINTS: usize = 24;

/// The report of a study.
pub fn render(study: &Study) -> RenderedReport {
    let policies = study.policies();
    let timelines: usize = study.cells.iter().map(|group| group.policies.len()).sum();
    let blocks = (BLOCKS_OF_PAGE / timelines.max(1)).clamp(LEAST_BLOCKS, timeline::BLOCKS);
    let view = |number| View { number, policies: &policies, blocks };
    let body = |number: usize| clean(cell::body(&study.cells[number], &view(number)));
    let wide = study.cells.len() > LISTED;
    let table = wide.then(|| (overview::ALL_CELLS, clean(overview::all_cells(study, &policies))));
    let bodies = Bodies::new(study.cells.len(), body, table);
    RenderedReport { page: page(study, &policies, &bodies), cells: bodies.files() }
}

fn clean(markup: Markup) -> String {
    sanitize::document(markup.into_string())
}

fn page(study: &Study, policies: &[&str], bodies: &Bodies) -> String {
    // Rules that hide a policy everywhere when the page's root has its class.
    let hiding: String = (0..policies.len()).map(|i| format!(".hide-p{i} .p{i}{{display:none}}")).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" class=[(study.cells.len() > LISTED).then_some("wide")] {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title(study)) }
                style { (PreEscaped(theme::css())) (PreEscaped(include_str!("style.css"))) (PreEscaped(hiding)) }
            }
            body {
                (contents(study, policies, bodies))
                main {
                    (header(study))
                    (overview::warnings(study))
                    (overview::claims(study))
                    (choice::section(study, policies))
                    (overview::sweep(study, policies, study.cells.len() > LISTED))
                    @if !study.cells.is_empty() { (table::meanings(study)) }
                    @if !at_once(study, bodies) { p.hint.printed { "Cells that were not opened are not printed." } }
                    @for (number, group) in study.cells.iter().enumerate() {
                        @let open = study.cells.len() <= 3 || number == 0;
                        (section(group, number, open, &bodies.place(number)))
                    }
                    (footer(study, policies))
                }
                @if let Some(packed) = bodies.in_page() {
                    script type="application/json" id="packed" { (PreEscaped(packed)) }
                }
                // But for compressed cells, the page is readable without it.
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    clean(page)
}

/// The script of every page.
const SCRIPT: &str = include_str!("script.js");

/// The security policy of a page. It may load its own script, the files with cells that this loads, and its styles,
/// which are also attributes. Names in results that a browser took for a script would not run.
fn policy() -> String {
    let sum = base64(digest(&SHA256, SCRIPT.as_bytes()).as_ref());
    format!(
        "default-src 'none'; script-src 'sha256-{sum}' 'strict-dynamic'; style-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'"
    )
}

/// Whether the page has all cells as they are.
fn at_once(study: &Study, bodies: &Bodies) -> bool {
    let last = study.cells.len().saturating_sub(1);
    matches!(bodies.place(last), BodyPlace::Plain(_)) || study.cells.is_empty()
}

/// The section of a cell. Where its body is not in the page as it is, the script puts it in the place of a line.
fn section(group: &CellGroup, number: usize, open: bool, body: &BodyPlace<'_>) -> Markup {
    let file = match body {
        BodyPlace::Plain(_) => None,
        BodyPlace::Packed => Some(""),
        BodyPlace::File(name) => Some(name.as_str()),
    };
    html! {
        details.cell id=(anchor(number)) open[open] data-file=[file] {
            summary { h2 { (cell_title(group)) } }
            @if let BodyPlace::Plain(body) = body { (PreEscaped(*body)) } @else { p.hint role="status" { "…" } }
        }
    }
}

fn title(study: &Study) -> &str {
    let manifest = &study.manifest;
    if manifest.title.is_empty() { &manifest.experiment } else { &manifest.title }
}

/// The side bar: a table of contents, and the selection of visible policies.
fn contents(study: &Study, policies: &[&str], bodies: &Bodies) -> Markup {
    let listed = study.cells.len() <= LISTED;
    html! {
        nav {
            div.brand { "volary" }
            button type="button" id="theme" aria-label="dark or light" title="dark or light" { "◐" }
            @if policies.len() > 1 {
                h2 { "Policies" }
                ul.picks {
                    @for (i, policy) in policies.iter().enumerate() {
                        li {
                            label class=(theme::series(i)) {
                                input type="checkbox" checked data-policy=(i); i.swatch {} (policy)
                            }
                        }
                    }
                }
            }
            h2 { "Contents" }
            ul {
                li { a href="#top" { "Summary" } }
                @if !study.claims.is_empty() { li { a href="#claims" { "Claims" } } }
                @if choice::is_worthwhile(study, policies) { li { a href="#choice" { "Which policy when" } } }
                @if study.cells.len() > 1 { li { a href="#sweep" { "The sweep at a glance" } } }
                @for (i, group) in study.cells.iter().enumerate().take(if listed { LISTED } else { 0 }) {
                    li { a href={ "#" (anchor(i)) } { (short_title(group)) } }
                }
                @if !listed {
                    li { a href={ "#" (anchor(0)) } { (number::count(study.cells.len() as u64)) " cells" } ", listed in " a href={ "#" (overview::ALL_CELLS) } { "one table" } }
                }
                li { a href="#policies" { "Policies" } }
                li { a href="#run" { "The run itself" } }
            }
            @if study.cells.len() > 1 && at_once(study, bodies) {
                button type="button" data-open="1" { "open all" }
                " "
                button type="button" data-open="0" { "close all" }
            }
        }
    }
}

/// Title, source, and a line of facts about the run.
fn header(study: &Study) -> Markup {
    let manifest = &study.manifest;
    let class = match manifest.state {
        RunState::Finished => "good",
        RunState::Running | RunState::Interrupted => "warn",
        RunState::Failed => "bad",
    };
    let jobs = study.records().map(|record| record.summary.jobs.submitted).sum();
    let tasks = study.records().map(|record| record.summary.tasks.submitted).sum();
    // `2024-01-01T00:10:00Z` as `2024-01-01 00:10:00 UTC`.
    let readable = |utc: &String| utc.replacen('T', " ", 1).replace('Z', " UTC");
    let facts = [
        ("experiment", Some(manifest.experiment.clone())),
        ("slice", manifest.slices.as_ref().map(ToString::to_string)),
        ("runtime", Some(manifest.runtime.clone())),
        ("seed", Some(manifest.seed.to_string())),
        ("cells × policies", Some(format!("{} × {}", study.cells.len(), study.policies().len()))),
        ("replications", Some(study.replications().to_string())),
        ("runs", Some(number::count(study.records().count() as u64))),
        ("jobs", Some(number::count(jobs))),
        ("tasks", Some(number::count(tasks))),
        ("started", Some(readable(&manifest.started))),
        ("ended", manifest.ended.as_ref().map(readable)),
        ("version", Some(manifest.version.clone())),
    ];
    html! {
        header id="top" {
            h1 { (title(study)) }
            @if let Some(source) = &manifest.source { p.source { "source: " (source) } }
            dl.facts {
                div { dt { "state" } dd class=(class) { (manifest.state.to_string()) } }
                @for (name, value) in facts {
                    @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
                }
            }
            (world(&manifest.world))
        }
    }
}

/// The world in words.
fn world(lines: &[(String, String)]) -> Markup {
    html! {
        @if !lines.is_empty() {
            dl.world {
                @for named in lines.chunk_by(|a, b| a.0 == b.0) {
                    dt { (named[0].0) }
                    @for (_, says) in named { dd { (says) } }
                }
            }
        }
    }
}

/// The cost of the run, the command that repeats it, and the resolved experiment.
fn footer(study: &Study, policies: &[&str]) -> Markup {
    let manifest = &study.manifest;
    html! {
        (parameters::section(study, policies))
        section id="run" {
            h2 { "The run itself" }
            p { "Command: " code { (command_line(manifest.argv.iter().map(String::as_str))) } }
            @for origin in &manifest.origins {
                p {
                    "Machine: " (origin.machine.says()) "; volary " (origin.version)
                    @if let Some(commit) = &origin.commit { " of commit " code { (commit) } }
                    "; checksums of the files it read are in manifest.json."
                }
            }
            @if let Some(bound) = manifest.clock_error_s {
                p { "Clock offset between hosts: at most " (number::seconds(bound)) "." }
            }
            @if let Some(hosts) = &manifest.hosts { h3 { "Hosts" } (placed(hosts)) }
            (table::engine(study, policies))
            details { summary { "Resolved experiment" } pre.bounded tabindex="0" { (resolved(&manifest.spec)) } }
        }
    }
}

/// The resolved experiment with its first points.
fn resolved(spec: &Value) -> String {
    let mut shown = spec.clone();
    let Some(points) = shown.get_mut("points").and_then(Value::as_array_mut) else {
        return format!("{spec:#}");
    };
    let more = points.len().saturating_sub(POINTS);
    points.truncate(POINTS);
    let more = if more > 0 { format!("\n{more} more points are in manifest.json.") } else { String::new() };
    format!("{shown:#}{more}")
}

/// The hosts and the actors they held; cells with the same placement share a line.
fn placed(hosts: &[HostRecord]) -> Markup {
    let held = hosts.iter().flat_map(|host| host.held.iter().map(move |held| (host, held)));
    table::table(
        "Hosts",
        &["host", "address", "weight", "nodes", "schedulers", "others", "cells"],
        &[],
        &html! {
            @for (host, held) in held {
                tr {
                    td { (host.name) }
                    td { (host.address.to_string()) }
                    td { (number::short(host.weight)) }
                    td { (held.nodes) }
                    td { (held.schedulers) }
                    td { (held.extras) }
                    td { (held.runs.len()) }
                }
            }
        },
    )
}
