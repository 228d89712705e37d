//! The page: contents, header, cells, parameters of the policies, and footer. Names of policies in tables link to their
//! parameters.
//!
//! Bodies of cells are in the page uncompressed. If their size exceeds a limit, they are compressed, and shown when the
//! reader opens the cell.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use volary_engine::results::in_words;
use volary_experiment::storage::manifest::{HostRecord, Manifest, PlannedPoint, RunState};
use volary_experiment::storage::study::{CellGroup, Study};
use volary_experiment::storage::{REPORT_CELLS, RenderedReport};
use volary_experiment::{number, parallel, sanitize};

use super::table::{self, table};
use super::view::{View, anchor, cell_title, policy_anchor, short_title};
use super::{cell, overview};
use crate::chart::{theme, timeline};
use crate::shell::command_line;

/// Maximum number of blocks in all timelines of a page; they take most of the size of the page.
const BLOCKS_OF_PAGE: usize = 12_000;
/// Number of blocks that every timeline may have, whatever the number of timelines is.
const LEAST_BLOCKS: usize = 60;
/// Maximum number of cells in the contents. On a page with more cells (wide), parts outside the view are not laid out.
const LISTED: usize = 100;
/// Limit on the points shown in the resolved form of an experiment.
const POINTS: usize = 24;

/// The report of a study.
pub fn render(study: &Study) -> RenderedReport {
    let policies = study.policies();
    let timelines: usize = study.cells.iter().map(|group| group.policies.len()).sum();
    let blocks = (BLOCKS_OF_PAGE / timelines.max(1)).clamp(LEAST_BLOCKS, timeline::BLOCKS);
    let binding = study.binding();
    let view = |number| View {
        number,
        policies: &policies,
        binding: binding.as_deref(),
        has_jobs: study.has_jobs(),
        blocks,
    };
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
    // Each rule hides a policy everywhere if the page's root has the class of the rule.
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
                    (overview::best_policies(study, policies))
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
                // Without the script the page is readable, except for compressed cells.
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    clean(page)
}

/// The script of every page.
const SCRIPT: &str = include_str!("script.js");

/// The content security policy of a page. It may load its own script, the files with cells that the script loads, and
/// its styles, including attributes. A script that is injected through a name in the results does not run.
fn policy() -> String {
    let sum = STANDARD.encode(digest(&SHA256, SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{sum}' 'strict-dynamic'; style-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'"
    )
}

/// Whether all cells are in the page uncompressed.
fn at_once(study: &Study, bodies: &Bodies) -> bool {
    let last = study.cells.len().saturating_sub(1);
    matches!(bodies.place(last), BodyPlace::Plain(_)) || study.cells.is_empty()
}

/// The section of a cell. If its body is not in the page uncompressed, it has a placeholder that the script replaces.
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

/// The side bar: a table of contents, and the choice of visible policies.
fn contents(study: &Study, policies: &[&str], bodies: &Bodies) -> Markup {
    let listed = study.cells.len() <= LISTED;
    html! {
        nav id="contents" {
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
                @if overview::is_worthwhile(study, policies) { li { a href="#choice" { "Which policy when" } } }
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
    // `2024-01-01T00:10:00Z` becomes `2024-01-01 00:10:00 UTC`.
    let readable = |utc: &String| utc.replacen('T', " ", 1).replace('Z', " UTC");
    let facts = [
        ("experiment", Some(manifest.experiment.clone())),
        ("slice", manifest.slices.as_ref().map(ToString::to_string)),
        ("runtime", Some(manifest.runtime.clone())),
        ("seed", Some(manifest.seed.to_string())),
        ("cells × policies", Some(format!("{} × {}", study.cells.len(), study.policies().len()))),
        ("replications", Some(study.replications().to_string())),
        ("runs", Some(number::count(study.records().count() as u64))),
        ("jobs", study.has_jobs().then(|| number::count(jobs))),
        ("tasks", study.has_jobs().then(|| number::count(tasks))),
        ("started", Some(readable(&manifest.started))),
        ("ended", manifest.ended.as_ref().map(readable)),
        ("version", Some(manifest.version.clone())),
    ];
    html! {
        header id="top" {
            a.to-nav href="#contents" { "Contents and policies" }
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

/// The description of the world.
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

/// The cost of the run, the command that repeats the run, and the resolved experiment.
fn footer(study: &Study, policies: &[&str]) -> Markup {
    let manifest = &study.manifest;
    html! {
        (parameters(study, policies))
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

/// The resolved experiment, limited to its first points.
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

/// The hosts and the actors that they held. Cells with the same placement share a line.
fn placed(hosts: &[HostRecord]) -> Markup {
    let held = hosts.iter().flat_map(|host| host.held.iter().map(move |held| (host, held)));
    table(
        "Hosts",
        &["host", "address", "weight", "nodes", "schedulers", "others", "cells"],
        &[],
        &html! {
            @for (host, held) in held {
                tr {
                    th scope="row" { (host.name) }
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

/// Limit on the bytes of uncompressed bodies in a page. A page within the limit is readable without its script.
const PLAIN: usize = 3_500_000;
/// Limit on the bytes of compressed bodies in a page. Bodies beyond the limit are in files beside the page.
const PACKED: usize = 3_500_000;
/// Limit on the files beside a page.
const FILES: usize = 100;
/// Minimum number of cells in a file beside a page, except for the last file.
const CELLS_OF_FILE: usize = 16;

/// The bodies of the cells of a page.
struct Bodies {
    /// Uncompressed bodies in the page: those of all cells, or only that of the first cell.
    plain: Vec<String>,
    /// The compressed bodies in the page, as a JSON object from the id of a section to its body in base64; empty if no
    /// body is compressed in the page.
    packed: String,
    /// For each file beside the page, the compressed bodies of its cells.
    files: Vec<String>,
    /// Number of cells per file; 0 if there are no files.
    of_file: usize,
}

/// The place of the body of a cell.
enum BodyPlace<'a> {
    /// The uncompressed body in the page.
    Plain(&'a str),
    /// A placeholder for a compressed body in the page.
    Packed,
    /// A placeholder for a compressed body in a file beside the page.
    File(String),
}

impl Bodies {
    /// The bodies of `count` cells, and the id and body of one further section, which is always compressed.
    fn new(count: usize, body: impl Fn(usize) -> String + Sync, other: Option<(&str, String)>) -> Self {
        let (mut plain, mut bytes): (Vec<String>, usize) = Default::default();
        while plain.len() < count && bytes <= PLAIN {
            let body = body(plain.len());
            bytes += body.len();
            plain.push(body);
        }
        let mut packed = Vec::new();
        if bytes > PLAIN {
            let made = plain.len();
            packed.extend(plain.drain(1..).map(|body| compressed(&body)));
            packed.extend(parallel::map(made..count, |number| compressed(&body(number))));
        }
        let bytes: usize = packed.iter().map(String::len).sum();
        let of_file = if bytes > PACKED { CELLS_OF_FILE.max(packed.len().div_ceil(FILES)) } else { 0 };
        // The first cell is in the page uncompressed.
        let named = packed.into_iter().enumerate().map(|(i, body)| (anchor(i + 1), body));
        let mut in_page: Vec<(String, String)> = named.collect();
        let beside = if of_file > 0 { std::mem::take(&mut in_page) } else { Vec::new() };
        in_page.extend(other.map(|(id, body)| (id.to_owned(), compressed(&body))));
        let packed = if in_page.is_empty() { String::new() } else { object(&in_page) };
        Self { plain, packed, files: beside.chunks(of_file.max(1)).map(object).collect(), of_file }
    }

    fn place(&self, number: usize) -> BodyPlace<'_> {
        match self.plain.get(number) {
            Some(body) => BodyPlace::Plain(body),
            None if self.of_file == 0 => BodyPlace::Packed,
            None => BodyPlace::File(format!("{REPORT_CELLS}/{}.js", (number - 1) / self.of_file)),
        }
    }

    /// The compressed bodies in the page; `None` if there are none.
    fn in_page(&self) -> Option<&str> {
        Some(self.packed.as_str()).filter(|packed| !packed.is_empty())
    }

    /// The files beside the page, in order of their numbers. They are scripts, because a page opened from disk can load
    /// no other files.
    fn files(&self) -> Vec<String> {
        self.files.iter().map(|cells| format!("packed({cells})\n")).collect()
    }
}

/// A body as gzip in base64.
fn compressed(body: &str) -> String {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let bytes = gz.write_all(body.as_bytes()).and_then(|()| gz.finish()).unwrap_or_default();
    STANDARD.encode(bytes)
}

/// Compressed bodies as a JSON object. Ids and base64 contain no characters with a meaning in JSON or HTML.
fn object(bodies: &[(String, String)]) -> String {
    let mut out = String::from("{");
    for (i, (id, body)) in bodies.iter().enumerate() {
        let comma = if i > 0 { ",\n" } else { "" };
        let _ = write!(out, "{comma}\"{id}\":\"{body}\"");
    }
    out + "}"
}

/// The section of the policies' parameters; empty if no policy was run.
fn parameters(study: &Study, policies: &[&str]) -> Markup {
    let rows = html! {
        @for (i, label) in policies.iter().enumerate() {
            @let (kind, parameters) = of_first_point(&study.manifest, label);
            tr id=(policy_anchor(i)) {
                th scope="row" class=(theme::series(i)) { i.swatch {} (label) }
                td.left { (kind.unwrap_or("–")) }
                td.left { (parameters.unwrap_or_default()) }
            }
        }
    };
    html! {
        @if !policies.is_empty() {
            section id="policies" {
                h2 { "Policies" }
                p.hint {
                    "Parameters in the first cell, including defaults; " code { "volary policies NAME" }
                    " explains them."
                }
                (table("Policies", &["policy", "kind", "parameters"], &[], &rows))
            }
        }
    }
}

/// The kind of a policy and its parameters as text, from the first point with this label.
fn of_first_point<'a>(manifest: &'a Manifest, label: &str) -> (Option<&'a str>, Option<String>) {
    let policy = manifest.points().find(|point| point.label() == label).and_then(PlannedPoint::policy);
    let Some((kind, parameters)) = policy else { return (None, None) };
    let words = |(key, value): (&String, &Value)| format!("{key} = {}", in_words(value));
    let parameters = parameters.as_object().map(|all| all.iter().map(words).collect::<Vec<_>>().join(", "));
    (Some(kind), parameters)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// A body of `size` bytes that gzip compresses to about three quarters.
    fn body(number: usize, size: usize) -> String {
        let mut state = number as u64 + 1;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (state >> 58) as u8)
        };
        (0..size).map(|_| draw()).collect()
    }

    fn opened(bodies: &BTreeMap<String, String>, number: usize) -> String {
        let bytes = STANDARD.decode(&bodies[&anchor(number)]).unwrap();
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn small_bodies_are_in_the_page_uncompressed() {
        let bodies = Bodies::new(4, |number| body(number, 1_000), None);
        assert!(bodies.in_page().is_none() && bodies.files().is_empty());
        assert!(matches!(bodies.place(3), BodyPlace::Plain(text) if text == body(3, 1_000)));
    }

    #[test]
    fn larger_bodies_are_in_the_page_compressed() {
        let bodies = Bodies::new(4, |number| body(number, PLAIN / 10 * 3), None);
        assert!(bodies.files().is_empty() && matches!(bodies.place(0), BodyPlace::Plain(_)));
        assert!((1..4).all(|number| matches!(bodies.place(number), BodyPlace::Packed)));
        let packed: BTreeMap<String, String> = serde_json::from_str(bodies.in_page().unwrap()).unwrap();
        assert_eq!(packed.len(), 3);
        assert!((1..4).all(|number| opened(&packed, number) == body(number, PLAIN / 10 * 3)));
    }

    #[test]
    fn the_largest_bodies_are_in_files_beside_the_page() {
        let other = Some(("other", "of the page".to_owned()));
        let bodies = Bodies::new(40, |number| body(number, PACKED / 20), other);
        let files = bodies.files();
        let packed: BTreeMap<String, String> = serde_json::from_str(bodies.in_page().unwrap()).unwrap();
        assert_eq!((packed.len(), packed["other"].is_empty()), (1, false));
        assert!(files.len() == 39usize.div_ceil(CELLS_OF_FILE));
        for number in 1..40 {
            let BodyPlace::File(name) = bodies.place(number) else { panic!("{number} is in the page") };
            let file: usize = name.trim_start_matches("report/").trim_end_matches(".js").parse().unwrap();
            let packed = files[file].trim_start_matches("packed(").trim_end_matches(")\n");
            assert_eq!(opened(&serde_json::from_str(packed).unwrap(), number), body(number, PACKED / 20));
        }
    }
}
