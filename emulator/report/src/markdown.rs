//! Claims and verdicts of several experiments as one Markdown table.

use std::fmt::Write;

use volary_engine::results::{ClaimResult, Tally, Tolerance, Verdict};
use volary_experiment::storage::Study;

use super::claims::{changed, is_of_generator};

/// The tally of each origin, then a row for each claim, in the order of `studies`. Experiments link to their files,
/// relative to `experiments/`.
pub fn claims_table(studies: &[Study]) -> String {
    let mut out =
        "| origin | claims | hold | of these by our tolerance | other size | fail | within noise | not tested | from one seed |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for (origin, tally) in Tally::by_origin(studies.iter().flat_map(|study| &study.claims)) {
        let Tally { holds, other_size, fails, within_noise, not_tested, our_tolerance, one_seed } = tally;
        let counts =
            [tally.claims(), holds, our_tolerance, other_size, fails, within_noise, not_tested, one_seed];
        let counts = counts.map(|count| count.to_string()).join(" | ");
        let _ = writeln!(out, "| {} | {counts} |", origin.whose());
    }
    out.push_str("\n| experiment | runs | origin | claim | verdict |\n|---|--:|---|---|---|\n");
    for study in studies {
        let name = &study.manifest.experiment;
        let runs = match study.records().count() {
            done if done == study.manifest.runs.len() => done.to_string(),
            done => format!("{done} of {}", study.manifest.runs.len()),
        };
        let mut first = (format!("[`{name}`]({name}.toml)"), runs);
        for claim in &study.claims {
            let (experiment, runs) = std::mem::take(&mut first);
            let says = cell(&claim.says);
            let _ = writeln!(
                out,
                "| {experiment} | {runs} | {} | {says} | {} |",
                claim.origin.whose(),
                verdict(claim) + &cell(&changed(&study.changed()))
            );
        }
    }
    out
}

/// Escapes text for a cell of a table. Markdown renders HTML tags, so `<` and `&` are escaped as well, but not in code
/// between backticks, which shows entities as they are.
fn cell(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let escaped = parts.iter().enumerate().map(|(i, part)| {
        let is_code = i % 2 == 1 && i < last;
        if is_code { (*part).to_owned() } else { part.replace('&', "&amp;").replace('<', "&lt;") }
    });
    escaped.collect::<Vec<_>>().join("`").replace('|', "\\|").replace('\n', " ")
}

fn verdict(claim: &ClaimResult) -> String {
    let decide = |size: bool| claim.measured.values().filter(move |found| (found["size"] == true) == size);
    let failed = |size: bool| {
        let (failed, all) = (decide(size).filter(|found| found["holds"] == false), decide(size));
        format!("{} of {}", failed.count(), all.filter(|found| found["holds"].is_boolean()).count())
    };
    let mut words = match claim.verdict {
        Verdict::Holds if claim.tolerance == Some(Tolerance::Ours) => "holds, by our tolerance".to_owned(),
        Verdict::Holds => "holds".to_owned(),
        Verdict::OtherSize => format!("right direction, **other size** in {} numbers", failed(true)),
        Verdict::Fails => format!("**fails** in {} checks", failed(false)),
        Verdict::NotTested if claim.has_stand_in() => {
            "not tested: a generator stands in for the trace".to_owned()
        }
        Verdict::NotTested => "not tested".to_owned(),
    };
    if claim.is_within_noise() {
        words.push_str(", within noise");
    }
    if is_of_generator(claim) {
        words.push_str(", on the jobs of a generator");
    }
    if claim.is_degraded() {
        words.push_str(", on a degraded run");
    }
    if claim.is_injected() {
        words.push_str(", with injected interference");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_not_escaped() {
        assert_eq!(cell("`a < b | c` & <i>"), "`a < b \\| c` &amp; &lt;i>");
        assert_eq!(cell("a ` lone <b"), "a ` lone &lt;b");
        assert_eq!(cell("two\nlines | of it"), "two lines \\| of it");
    }
}
