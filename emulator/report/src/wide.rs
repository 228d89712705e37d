//! Summary of a large sweep for terminals.

use std::fmt::Write;

use comfy_table::Table;
use volary_experiment::number::{count, elided, plural, short};
use volary_experiment::storage::study::{CellGroup, Study};

use super::choice::{AIMS, CLOSE, Standing, standings};
use super::style::{TableStyle, text_table, wrapped};

/// Limit on the characters of a policy's name.
const NAME: usize = 30;
/// Number of cells above which a study is wide: the first few are shown, and the policies over all of them.
const MOST_CELLS: usize = 40;
/// Number of cells shown of a wide study.
const FEW_CELLS: usize = 3;

/// Number of cells of a study that have a table.
pub(super) const fn shown(study: &Study) -> usize {
    if study.cells.len() > MOST_CELLS { FEW_CELLS } else { study.cells.len() }
}

/// The text about the cells of a wide study that have no table: their number and reliability, and the policies over all
/// cells.
pub(super) fn text(study: &Study, others: &[CellGroup], how: &TableStyle) -> String {
    let mut out = String::new();
    let runs = || others.iter().flat_map(|group| &group.policies).flat_map(|policy| &policy.runs);
    let degraded = runs().filter(|run| run.summary.is_degraded()).count() as u64;
    let injected = runs().filter(|run| !run.summary.injections.is_empty()).count() as u64;
    let more = count(others.len() as u64);
    let mut says = vec![format!(
        "… and {more} more cells: `volary report` shows each on a page, `volary export` writes a table of all runs"
    )];
    if degraded > 0 {
        says.push(format!("DEGRADED: {} of them departed from the experiment", plural(degraded, "run")));
    }
    if injected > 0 {
        says.push(format!("INJECTED: interference was injected into {} of them", plural(injected, "run")));
    }
    let unequal = others.iter().filter_map(CellGroup::unequal).collect::<Vec<_>>();
    if let Some(first) = unequal.first() {
        let cells = plural(unequal.len() as u64, "cell");
        says.push(format!("UNEQUAL: {cells} of them name no best policy; for example, {first}"));
    }
    for said in says {
        let _ = writeln!(out, "{}", wrapped(&said, how.width, 2));
    }
    let policies = study.policies();
    for (aim, metric) in AIMS {
        let standings = standings(study, &policies, metric);
        if policies.len() > 1 && !standings.is_empty() {
            let _ = writeln!(out, "{}", ranking(aim, &policies, &standings));
        }
    }
    out
}

/// The policies over all cells, the safest first.
fn ranking(aim: &str, policies: &[&str], standings: &[Standing]) -> Table {
    let close = format!("within {:.0} %", 100.0 * (CLOSE - 1.0));
    let rows = standings.iter().map(|standing| {
        let Standing { policy, cells, best, close, worst, core_time, .. } = *standing;
        vec![
            elided(policies[policy], NAME),
            format!("{} of {}", count(best as u64), count(cells as u64)),
            count(close as u64),
            format!("×{}", short(core_time)),
            format!("×{}", short(worst)),
        ]
    });
    text_table([aim, "best", &close, "core time", "worst"], rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use volary_experiment::storage::fixture::{manifest, measured};
    use volary_experiment::storage::run_record::RunRecord;

    use super::*;
    use crate::table;

    fn study(cells: usize) -> Study {
        let records = (0..cells).flat_map(|at| {
            [("fast", 1.0), ("slow", 2.0)].map(|(policy, scale)| {
                let cell = [("load", json!(at))];
                RunRecord::new(&format!("{policy}{at}"), &measured(policy, &cell, 1, scale, 50))
            })
        });
        Study::assemble(manifest(&[]), Vec::new(), records.collect(), Vec::new(), Vec::new())
    }

    #[test]
    fn a_wide_study_takes_few_lines() {
        let all = |cells| table::text(&study(cells), &TableStyle::default());
        let narrow = all(MOST_CELLS);
        assert_eq!(narrow.matches("load = ").count(), MOST_CELLS);
        assert!(!narrow.contains("more cells"), "{narrow}");
        let wide = all(MOST_CELLS + 1);
        assert_eq!(wide.matches("load = ").count(), FEW_CELLS);
        assert!(wide.contains("… and 38 more cells") && wide.lines().count() < 40, "{wide}");
        let row = |of: &str| {
            wide[wide.find("shortest median").unwrap()..].lines().find(|line| line.contains(of)).unwrap()
        };
        assert!(row("fast").contains("41 of 41") && row("fast").contains("×1.00"), "{wide}");
        assert!(row("slow").contains("0 of 41") && row("slow").contains("×2.00"), "{wide}");
    }

    #[test]
    fn the_reliability_of_hidden_cells_is_stated() {
        let mut study = study(MOST_CELLS + 1);
        let run = &mut study.cells[MOST_CELLS].policies[0].runs[0];
        run.summary.fidelity = Some(volary_experiment::fidelity::fixture::degraded());
        let text = table::text(&study, &TableStyle::default());
        assert!(text.contains("DEGRADED: 1 run of them departed from the experiment"), "{text}");
    }
}
