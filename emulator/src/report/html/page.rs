//! The page: contents, header, cells, footer.

use super::view::{View, anchor, short_title};
use super::{cell, choice, overview, style, table};
use crate::chart::svg::escape;
use crate::chart::theme;
use crate::number;
use crate::storage::hosts::HostRecord;
use crate::storage::manifest::RunState;
use crate::storage::study::Study;

/// Limit on the blocks in all timelines of a page, which make up most of its size.
const BLOCKS_OF_PAGE: usize = 12_000;

/// The report of a study.
#[must_use]
pub fn html(study: &Study) -> String {
    let policies = study.policies();
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    out.push_str(&format!("<title>{}</title>", escape(title(study))));
    out.push_str(&format!(
        "<style>{}{}{}</style></head><body>",
        theme::CSS,
        style::CSS,
        style::hiding(policies.len())
    ));
    out.push_str(&contents(study, &policies));
    out.push_str("<main>");
    out.push_str(&header(study));
    out.push_str(&overview::warnings(study));
    out.push_str(&overview::claims(&study.claims));
    out.push_str(&choice::section(study, &policies));
    out.push_str(&overview::sweep(study, &policies));
    let timelines: usize = study.cells.iter().map(|group| group.policies.len()).sum();
    let blocks = (BLOCKS_OF_PAGE / timelines.max(1)).min(crate::chart::timeline::BLOCKS);
    for (i, group) in study.cells.iter().enumerate() {
        let open = study.cells.len() <= 3 || i == 0;
        out.push_str(&cell::section(group, &View { number: i, open, policies: &policies, blocks }));
    }
    out.push_str(&footer(study));
    out.push_str(&format!("</main><script>{}</script></body></html>\n", style::SCRIPT));
    out
}

fn title(study: &Study) -> &str {
    let manifest = &study.manifest;
    if manifest.title.is_empty() { &manifest.experiment } else { &manifest.title }
}

/// The side bar: a table of contents, and the selection of visible policies.
fn contents(study: &Study, policies: &[&str]) -> String {
    let mut out = String::from("<nav><div class=\"brand\">volary</div>");
    out.push_str("<button type=\"button\" id=\"theme\" title=\"dark or light\">◐</button>");
    if policies.len() > 1 {
        out.push_str("<h2>Policies</h2><ul class=\"picks\">");
        for (i, policy) in policies.iter().enumerate() {
            let (series, policy) = (theme::series(i), escape(policy));
            out.push_str(&format!(
                "<li><label class=\"{series}\"><input type=\"checkbox\" checked data-policy=\"{i}\"><i class=\"swatch\"></i>{policy}</label></li>"
            ));
        }
        out.push_str("</ul>");
    }
    out.push_str("<h2>Contents</h2><ul><li><a href=\"#top\">Summary</a></li>");
    if !study.claims.is_empty() {
        out.push_str("<li><a href=\"#claims\">Claims</a></li>");
    }
    if choice::is_worthwhile(study, policies) {
        out.push_str("<li><a href=\"#choice\">Which policy when</a></li>");
    }
    if study.cells.len() > 1 {
        out.push_str("<li><a href=\"#sweep\">The sweep at a glance</a></li>");
    }
    for (i, group) in study.cells.iter().enumerate() {
        out.push_str(&format!("<li><a href=\"#{}\">{}</a></li>", anchor(i), escape(&short_title(group))));
    }
    out.push_str("<li><a href=\"#run\">The run itself</a></li></ul>");
    if study.cells.len() > 1 {
        out.push_str("<button type=\"button\" data-open=\"1\">open all</button> <button type=\"button\" data-open=\"0\">close all</button>");
    }
    out.push_str("</nav>");
    out
}

/// Title, source, and a line of facts about the run.
fn header(study: &Study) -> String {
    let manifest = &study.manifest;
    let mut out = format!("<header id=\"top\"><h1>{}</h1>", escape(title(study)));
    if let Some(source) = &manifest.source {
        out.push_str(&format!("<p class=\"source\">source: {}</p>", escape(source)));
    }
    let state = manifest.state;
    let class = match state {
        RunState::Finished => "good",
        RunState::Running | RunState::Interrupted => "warn",
        RunState::Failed => "bad",
    };
    let runs = study.records().count();
    let jobs: u64 = study.records().map(|record| record.summary.jobs.submitted).sum();
    let tasks: u64 = study.records().map(|record| record.summary.tasks.submitted).sum();
    let mut facts = vec![
        ("experiment", manifest.experiment.clone()),
        ("runtime", manifest.runtime.clone()),
        ("seed", manifest.seed.to_string()),
        ("cells × policies", format!("{} × {}", study.cells.len(), study.policies().len())),
        ("replications", study.replications().to_string()),
        ("runs", number::count(runs as u64)),
        ("jobs", number::count(jobs)),
        ("tasks", number::count(tasks)),
        ("started", readable(&manifest.started)),
        ("version", manifest.version.clone()),
    ];
    if let Some(ended) = &manifest.ended {
        facts.insert(9, ("ended", readable(ended)));
    }
    out.push_str(&format!("<dl class=\"facts\"><div><dt>state</dt><dd class=\"{class}\">{state}</dd></div>"));
    for (name, value) in facts {
        out.push_str(&format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value)));
    }
    out.push_str("</dl></header>");
    out
}

/// `2024-01-01T00:10:00Z` as `2024-01-01 00:10:00 UTC`.
fn readable(utc: &str) -> String {
    utc.replacen('T', " ", 1).replace('Z', " UTC")
}

/// The cost of the run, the command that repeats it, and the resolved experiment.
fn footer(study: &Study) -> String {
    let manifest = &study.manifest;
    let mut out = String::from("<section id=\"run\"><h2>The run itself</h2>");
    let argv = manifest.argv.iter().map(|word| escape(word)).collect::<Vec<_>>().join(" ");
    out.push_str(&format!("<p>Command: <code>{argv}</code></p>"));
    if let Some(bound) = manifest.clock_error_s {
        out.push_str(&format!("<p>Clock offset between hosts: at most {}.</p>", number::seconds(bound)));
    }
    if let Some(hosts) = &manifest.hosts {
        out.push_str(&format!("<h3>Hosts</h3>{}", placed(hosts)));
    }
    out.push_str(&table::engine(study));
    out.push_str("<details><summary>Resolved experiment</summary><pre>");
    let spec = serde_json::to_string_pretty(&manifest.spec).unwrap_or_else(|_| manifest.spec.to_string());
    out.push_str(&escape(&spec));
    out.push_str("</pre></details></section>");
    out
}

/// The hosts and the actors they held; cells with the same placement share a line.
fn placed(hosts: &[HostRecord]) -> String {
    let mut out = String::from(
        "<table><thead><tr><th>host</th><th>address</th><th>weight</th><th>nodes</th><th>schedulers</th><th>cells</th></tr></thead><tbody>",
    );
    for host in hosts {
        for held in &host.held {
            let cells = [
                host.name.clone(),
                host.address.to_string(),
                number::short(host.weight),
                held.nodes.clone(),
                held.schedulers.clone(),
                held.cells.len().to_string(),
            ];
            let cells = cells.map(|cell| format!("<td>{}</td>", escape(&cell))).concat();
            out.push_str(&format!("<tr>{cells}</tr>"));
        }
    }
    out.push_str("</tbody></table>");
    out
}
