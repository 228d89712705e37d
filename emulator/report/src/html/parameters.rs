//! The policies with their parameters, to which their names in tables lead.

use maud::{Markup, html};
use serde_json::Value;
use volary_engine::results::in_words;
use volary_experiment::storage::manifest::Manifest;
use volary_experiment::storage::manifest::PlannedPoint;
use volary_experiment::storage::study::Study;

use super::table::table;
use super::view::policy_anchor;
use crate::chart::theme;

/// The section; empty if nothing was run.
pub(super) fn section(study: &Study, policies: &[&str]) -> Markup {
    let rows = html! {
        @for (i, label) in policies.iter().enumerate() {
            @let (kind, parameters) = of_first_point(&study.manifest, label);
            tr id=(policy_anchor(i)) {
                th scope="row" class=(theme::series(i)) { i.swatch {} " " (label) }
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
                    "Parameters in the first cell, the defaults among them; " code { "volary policies NAME" }
                    " explains them."
                }
                (table("Policies", &["policy", "kind", "parameters"], &[], &rows))
            }
        }
    }
}

/// The kind of a policy and its parameters in words, by the first point of its label.
fn of_first_point<'a>(manifest: &'a Manifest, label: &str) -> (Option<&'a str>, Option<String>) {
    let policy = manifest.points().find(|point| point.label() == label).and_then(PlannedPoint::policy);
    let Some((kind, parameters)) = policy else { return (None, None) };
    let words = |(key, value): (&String, &Value)| format!("{key} = {}", in_words(value));
    let parameters = parameters.as_object().map(|all| all.iter().map(words).collect::<Vec<_>>().join(", "));
    (Some(kind), parameters)
}
