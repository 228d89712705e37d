//! The map of the best policy of each cell, and the tables of the safest policy over all cells.

use maud::{Markup, html};
use serde_json::Value;
use volary_engine::results::{Cell, in_words};
use volary_experiment::number;
use volary_experiment::storage::study::{CellGroup, Study};

use super::table::policy_row;
use super::view::{anchor, short_title};
use crate::chart::heat::{Heat, HeatRow, Shade};
use crate::choice::{AIMS, CLOSE, Choice, Standing, choose, standings};
use crate::selection::short_key;

/// Number of ties named in a cell of the map; further ones are counted.
const NAMED: usize = 2;
/// The factor with the strongest colour: the worst policy is this many times as slow as the best.
const HIGH: f64 = 10.0;

/// The section; empty if there is no choice.
pub(super) fn section(study: &Study, policies: &[&str]) -> Markup {
    if !is_worthwhile(study, policies) {
        return Markup::default();
    }
    let close = format!("{:.0}\u{202f}%", 100.0 * (CLOSE - 1.0));
    let headings = ["policy", "best", &format!("within {close}"), "core time", "worst"];
    html! {
        section id="choice" {
            h2 { "Which policy when" }
            p.hint {
                "The policy with the shortest response times in each cell, and a link to it; behind ≈ those that the seeds cannot tell \
                 from it. The factor is what there is to lose: how much slower the worst policy is. Policies that left \
                 jobs unfinished are not considered."
            }
            div.card.scroll tabindex="0" role="group" aria-label="Which policy when" { (map(study, policies)) }
            h3 { "If the cell is not known in advance" }
            p.hint {
                "Over all cells: how often each policy is best or cannot be told from the best, how often within "
                (close) " of it, its core time relative to the policy that takes least, and the worst it does against \
                the best. The safest comes first."
            }
            div.grid {
                @for (aim, metric) in AIMS {
                    div.card.scroll tabindex="0" role="group" aria-label=(aim) {
                        table {
                            caption { (aim) }
                            thead {
                                tr { @for heading in &headings { th { (heading) } } th.left { "where" } }
                            }
                            tbody { @for standing in standings(study, policies, metric) { (row(study, policies, &standing)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Whether there are several policies, and more than one cell to compare them in, of which one at least is complete.
pub(super) fn is_worthwhile(study: &Study, policies: &[&str]) -> bool {
    study.cells.len() > 1 && policies.len() > 1 && study.cells.iter().any(|group| !group.partial)
}

fn row(study: &Study, policies: &[&str], standing: &Standing) -> Markup {
    let Standing { policy, cells, best, close, worst, worst_at, core_time } = *standing;
    policy_row(
        policies,
        policies[policy],
        &html! {
            td { (best) " of " (cells) }
            td { (close) }
            td { "×" (number::short(core_time)) }
            td { "×" (number::short(worst)) }
            td.left {
                @if worst > 1.0 {
                    a href={ "#" (anchor(worst_at)) } { (short_title(&study.cells[worst_at])) }
                } @else {
                    "–"
                }
            }
        },
    )
}

/// A cell of the sweep with its number; `None` if nothing was run.
type Place<'a> = Option<(usize, &'a CellGroup)>;

/// The cells of the sweep as a table: the key with the most values as columns, the others as rows.
fn map(study: &Study, policies: &[&str]) -> Markup {
    let swept = study.swept();
    let names: Vec<&str> = swept.keys().copied().collect();
    let across = if names.len() < 2 { None } else { names.iter().max_by_key(|key| swept[**key].len()) };
    let values = across.map_or_else(|| vec![&Value::Null], |key| swept[key].clone());
    let down: Vec<&str> = names.iter().copied().filter(|name| Some(name) != across).collect();
    let mut rows: Vec<(Cell, Vec<Place<'_>>)> = Vec::new();
    for (number, group) in study.cells.iter().enumerate() {
        let mut rest = group.cell.clone();
        let value = across.and_then(|key| rest.remove(*key)).unwrap_or_default();
        let Some(column) = values.iter().position(|other| **other == value) else { continue };
        let at = rows.iter().position(|(other, _)| *other == rest).unwrap_or_else(|| {
            rows.push((rest, vec![None; values.len()]));
            rows.len() - 1
        });
        rows[at].1[column] = Some((number, group));
    }
    let heading = |value: &Value| {
        across.map_or_else(
            || "best policy".to_owned(),
            |key| format!("{} = {}", short_key(key, &names), in_words(value)),
        )
    };
    let columns: Vec<_> = values.iter().map(|value| (String::new(), heading(value))).collect();
    let cell = |place: &Place<'_>, metric| {
        let (number, group) = (*place)?;
        let choice = choose(group, policies, metric)?;
        Some(Shade { link: anchor(number), ..shade(&choice, policies) })
    };
    let row = |(rest, places): &(Cell, Vec<Place<'_>>)| HeatRow {
        names: down.iter().map(|key| rest.get(*key).map(in_words).unwrap_or_default()).collect(),
        link: places.iter().flatten().next().map_or_else(String::new, |(number, _)| anchor(*number)),
        cells: AIMS.iter().flat_map(|(_, metric)| places.iter().map(|place| cell(place, *metric))).collect(),
    };
    Heat {
        keys: down.iter().map(|key| (short_key(key, &names).to_owned(), (*key).to_owned())).collect(),
        groups: AIMS.iter().map(|(aim, _)| ((*aim).to_owned(), columns.clone())).collect(),
        rows: rows.iter().map(row).collect(),
    }
    .html()
}

fn shade(choice: &Choice, policies: &[&str]) -> Shade {
    let mut text = policies[choice.best].to_owned();
    let (named, more) = choice.ties.split_at(choice.ties.len().min(NAMED));
    text.extend(named.iter().map(|&tie| format!(" ≈ {}", policies[tie])));
    if !more.is_empty() {
        text.push_str(&format!(" ≈ {} more", more.len()));
    }
    let mut order: Vec<(f64, &str)> = choice
        .factors
        .iter()
        .zip(policies)
        .filter_map(|(factor, policy)| Some(((*factor)?, *policy)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let listed =
        order.iter().map(|(factor, policy)| format!("{policy} {}", number::seconds(factor * choice.mean)));
    let stake = choice.stake();
    Shade {
        depth: stake.ln() / HIGH.ln(),
        text,
        small: format!("×{}", number::short(stake)),
        title: listed.collect::<Vec<_>>().join(", "),
        series: Some(choice.best),
        link: String::new(),
    }
}
