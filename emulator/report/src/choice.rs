//! The best policy of each cell, the safest policy over the whole sweep, and the summary of a large sweep for
//! terminals.

use std::fmt::Write;

use comfy_table::Table;
use volary_engine::results::Reading;
use volary_experiment::number::{count, elided, plural, short};
use volary_experiment::stats::Interval;
use volary_experiment::storage::study::{CellGroup, PolicyRuns, Study};

use crate::style::{TableStyle, text_table, wrapped};

/// The metrics by which the best policy can be chosen.
pub const AIMS: [(&str, Reading); 2] = [
    ("shortest median", |s| s.times.response_s.p50),
    ("shortest 99th percentile", |s| s.times.response_s.p99),
];

/// Maximum factor relative to the best policy at which a policy is close to the best.
pub const CLOSE: f64 = 1.1;

/// The best policy of one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Index of the policy with the smallest mean.
    pub best: usize,
    /// Mean of the best policy over replications.
    pub mean: f64,
    /// Other policies that do not differ significantly from the best: the 95 % interval of the paired difference
    /// contains zero. Empty for a single replication.
    pub ties: Vec<usize>,
    /// Mean of each policy relative to the mean of the best. `None` for a policy that was not run here, or that left
    /// jobs unfinished, because its percentiles would leave out its slowest jobs.
    pub factors: Vec<Option<f64>>,
}

impl Choice {
    /// The factor of the worst policy that finished: the cost of a wrong choice in this cell.
    pub fn stake(&self) -> f64 {
        self.factors.iter().flatten().copied().fold(1.0, f64::max)
    }
}

/// The best policy of a cell by `metric`, where smaller is better. `None` if no policy finished its jobs, or the cell
/// cannot be [ranked](CellGroup::is_ranked).
pub fn choose(group: &CellGroup, policies: &[&str], metric: Reading) -> Option<Choice> {
    if !group.is_ranked() {
        return None;
    }
    let runs: Vec<Option<&PolicyRuns>> = policies.iter().map(|policy| finished(group, policy)).collect();
    let mean = |runs: &PolicyRuns| runs.interval(metric).map(|interval| interval.mean);
    let means: Vec<Option<f64>> = runs.iter().map(|runs| runs.and_then(mean)).collect();
    let known = means.iter().enumerate().filter_map(|(i, mean)| Some((i, (*mean)?)));
    let (best, mean) = known.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let tied = |other: usize| {
        let pairs = runs[other]?.pairs(runs[best]?, metric);
        let difference = Interval::paired(&pairs)?;
        // With a single seed, only equal values count as ties.
        let equal = pairs.iter().all(|(a, b)| a == b);
        (equal || difference.half_width.is_some() && !difference.excludes_zero()).then_some(other)
    };
    let ties = (0..policies.len()).filter(|&other| other != best).filter_map(tied).collect();
    let factors = means.into_iter().map(|of| Some(of? / mean)).collect();
    Some(Choice { best, mean, ties, factors })
}

/// The runs of a policy in a cell; `None` unless all of them finished their jobs.
fn finished<'a>(group: &'a CellGroup, policy: &str) -> Option<&'a PolicyRuns> {
    let runs = group.of(policy)?;
    runs.runs.iter().all(|run| run.summary.not_finished() == 0).then_some(runs)
}

/// The performance of a policy over all cells in which it can be compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// Index of the policy.
    pub policy: usize,
    /// Number of cells in which the policy finished its jobs.
    pub cells: usize,
    /// Number of cells in which the policy is best or tied with the best.
    pub best: usize,
    /// Number of cells in which the policy is within [`CLOSE`] of the best.
    pub close: usize,
    /// Largest factor of the policy relative to the best.
    pub worst: f64,
    /// Index of the cell with the largest factor.
    pub worst_at: usize,
    /// Core time of the policy relative to the smallest core time of a policy, mean over cells.
    pub core_time: f64,
}

/// Core time of a run, s, including copies that were not needed.
const CORE_TIME: Reading = |summary| summary.copies.busy_s;

/// The performance of each policy over all cells, sorted by the number of cells finished, then by the worst factor.
/// Without knowledge of the cell, the first policy is the safest choice.
pub fn standings(study: &Study, policies: &[&str], metric: Reading) -> Vec<Standing> {
    let all = |metric| study.cells.iter().map(move |group| choose(group, policies, metric));
    let choices: Vec<_> = all(metric).zip(all(CORE_TIME)).enumerate().collect();
    let standing = |policy: usize| {
        let mut standing =
            Standing { policy, cells: 0, best: 0, close: 0, worst: 0.0, worst_at: 0, core_time: 0.0 };
        for (at, (choice, cost)) in &choices {
            let (Some(choice), at) = (choice, *at) else { continue };
            let Some(factor) = choice.factors[policy] else { continue };
            standing.core_time += cost.as_ref().and_then(|cost| cost.factors[policy]).unwrap_or(f64::NAN);
            standing.cells += 1;
            standing.best += usize::from(choice.best == policy || choice.ties.contains(&policy));
            standing.close += usize::from(factor <= CLOSE);
            if factor > standing.worst {
                (standing.worst, standing.worst_at) = (factor, at);
            }
        }
        standing.core_time /= standing.cells as f64;
        standing
    };
    let mut standings: Vec<Standing> = (0..policies.len()).map(standing).filter(|s| s.cells > 0).collect();
    standings.sort_by(|a, b| b.cells.cmp(&a.cells).then(a.worst.total_cmp(&b.worst)));
    standings
}

/// Maximum length of a policy's name in a ranking, characters.
const NAME: usize = 30;
/// Number of cells above which a study is wide: only the first few cells are shown, with a ranking over all cells.
const MOST_CELLS: usize = 40;
/// Number of cells of a wide study that are shown.
const FEW_CELLS: usize = 3;

/// Number of cells of a study that are shown with a table.
pub(super) const fn shown(study: &Study) -> usize {
    if study.cells.len() > MOST_CELLS { FEW_CELLS } else { study.cells.len() }
}

/// The text about the cells of a wide study that have no table: their number, their reliability, and a ranking of
/// policies.
pub(super) fn text(study: &Study, others: &[CellGroup], how: &TableStyle) -> String {
    let mut out = String::new();
    let runs = || others.iter().flat_map(|group| &group.policies).flat_map(|policy| &policy.runs);
    let degraded = runs().filter(|run| run.summary.is_degraded()).count() as u64;
    let injected = runs().filter(|run| !run.summary.injections.is_empty()).count() as u64;
    let more = count(others.len() as u64);
    let mut says = vec![format!(
        "… and {more} more cells: `volary report` shows every cell on a page, `volary export` writes a table of all runs"
    )];
    if degraded > 0 {
        says.push(format!("DEGRADED: {} not shown departed from the experiment", plural(degraded, "run")));
    }
    if injected > 0 {
        says.push(format!("INJECTED: {} not shown had injected interference", plural(injected, "run")));
    }
    let unequal = others.iter().filter_map(CellGroup::unequal).collect::<Vec<_>>();
    if let Some(first) = unequal.first() {
        let cells = plural(unequal.len() as u64, "cell");
        says.push(format!("UNEQUAL: no best policy is named in {cells}; for example, {first}"));
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

/// The ranking of policies over all cells, the safest first.
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

    /// A study of the policies in each cell. Entries are (policy, factor on its response times, first seed of its
    /// draws).
    fn study(cells: &[&[(&str, f64, u64)]], seeds: u64) -> Study {
        let mut records = Vec::new();
        for (at, policies) in cells.iter().enumerate() {
            for &(policy, scale, other) in *policies {
                for seed in 1..=seeds {
                    let mut measured = measured(policy, &[("load", json!(at))], seed + other, scale, 400);
                    measured.summary.seed = seed;
                    records.push(RunRecord::new(&format!("{at}{policy}{seed}"), &measured));
                }
            }
        }
        Study::assemble(manifest(&[]), Vec::new(), records, Vec::new(), Vec::new())
    }

    const MEDIAN: Reading = |summary| summary.times.response_s.p50;

    #[test]
    fn insignificant_differences_from_the_best_policy_are_ties() {
        let study = study(&[&[("a", 1.0, 0), ("b", 1.5, 0), ("c", 1.001, 100)]], 4);
        let choice = choose(&study.cells[0], &["a", "b", "c", "d"], MEDIAN).unwrap();
        let (best, other) = if choice.best == 0 { (0, 2) } else { (2, 0) };
        assert_eq!(
            (choice.best, choice.ties.as_slice()),
            (best, &[other][..]),
            "policies with one distribution and other draws are tied"
        );
        assert!(choice.factors[3].is_none(), "a policy that was not run has no factor");
        assert!((choice.stake() - choice.factors[1].unwrap()).abs() < 1e-12 && choice.stake() > 1.3);
        let alone = self::study(&[&[("a", 1.0, 0), ("c", 1.001, 100)]], 1);
        assert!(
            choose(&alone.cells[0], &["a", "c"], MEDIAN).unwrap().ties.is_empty(),
            "a single seed gives no ties"
        );
        let twins = self::study(&[&[("a", 1.0, 0), ("c", 1.0, 0)]], 1);
        assert_eq!(choose(&twins.cells[0], &["a", "c"], MEDIAN).unwrap().ties, [1], "equal is tied");
    }

    #[test]
    fn a_policy_with_unfinished_jobs_is_not_chosen() {
        let mut study = study(&[&[("a", 1.0, 0), ("b", 2.0, 0)]], 2);
        study.cells[0].policies[0].runs[1].summary.jobs.unfinished = 1;
        let choice = choose(&study.cells[0], &["a", "b"], MEDIAN).unwrap();
        assert_eq!((choice.best, choice.factors), (1, vec![None, Some(1.0)]));
        study.cells[0].policies[1].runs[0].summary.jobs.failed = 3;
        assert_eq!(choose(&study.cells[0], &["a", "b"], MEDIAN), None);
    }

    #[test]
    fn the_safest_policy_comes_first() {
        let cells: [&[(&str, f64, u64)]; 3] = [
            &[("bold", 1.0, 0), ("safe", 1.05, 0), ("rare", 1.3, 0)],
            &[("bold", 1.0, 0), ("safe", 1.2, 0)],
            &[("bold", 4.0, 0), ("safe", 1.0, 0)],
        ];
        let standings = standings(&study(&cells, 3), &["bold", "safe", "rare"], MEDIAN);
        let order: Vec<usize> = standings.iter().map(|standing| standing.policy).collect();
        assert_eq!(order, [1, 0, 2]);
        let safe = &standings[0];
        assert_eq!((safe.cells, safe.best, safe.close, safe.worst_at), (3, 1, 2, 1));
        assert!((safe.worst - 1.2).abs() < 1e-9 && (standings[1].worst - 4.0).abs() < 1e-9);
        assert_eq!((standings[2].cells, standings[2].best), (1, 0));
        assert!(
            standings.iter().all(|standing| (standing.core_time - 1.0).abs() < 1e-9),
            "all policies have the same core time"
        );
    }

    /// A study of two policies, one half as fast as the other, in this many cells.
    fn wide(cells: usize) -> Study {
        study(&vec![&[("fast", 1.0, 0), ("slow", 2.0, 0)][..]; cells], 1)
    }

    #[test]
    fn a_wide_study_shows_only_its_first_cells() {
        let all = |cells| table::text(&wide(cells), &TableStyle::default());
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
        let mut study = wide(MOST_CELLS + 1);
        let run = &mut study.cells[MOST_CELLS].policies[0].runs[0];
        run.summary.fidelity = Some(volary_experiment::fidelity::fixture::degraded());
        let text = table::text(&study, &TableStyle::default());
        assert!(text.contains("DEGRADED: 1 run not shown departed from the experiment"), "{text}");
    }
}
