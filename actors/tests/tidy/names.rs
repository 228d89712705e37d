//! Rules for names of types, contents of index files, and lengths of files and comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::sources::{root, sources, walk};

/// Names that several types of one crate may share, each with the reason; at most fifteen names.
const SHARED: &[(&str, &str)] = &[
    ("Options", "each subcommand's arguments, as clap's convention has it"),
    ("Error", "each module's error, always written with its module"),
    ("Visitor", "serde's visitor, private to one implementation of `Deserialize`"),
    ("Command", "subcommands of each command that has some, as clap's convention has it"),
];

/// Names that the code defines with `struct`, `enum` or `trait`.
fn types(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in code.lines() {
        let mut words =
            line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "unsafe");
        if words.next().is_some_and(|word| ["struct", "enum", "trait", "union"].contains(&word))
            && let Some(word) = words.next()
        {
            let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
            found.extend((end > 0).then_some(&word[..end]));
        }
    }
    found
}

#[test]
fn types_of_one_crate_have_different_names() {
    assert!(SHARED.len() <= 15, "{} names may be shared, more than fifteen", SHARED.len());
    let sources = sources();
    let mut places: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for name in types(&source.code) {
            // Two types of one file can have the same name only within functions.
            places.entry((source.krate, name)).or_default().insert(&source.name);
        }
    }
    let allowed = |name: &str| SHARED.iter().any(|(known, _)| *known == name);
    let shared: Vec<String> = places
        .iter()
        .filter(|((_, name), files)| files.len() > 1 && !allowed(name))
        .map(|((krate, name), files)| format!("{krate}: {name} in {files:?}"))
        .collect();
    assert!(shared.is_empty(), "{} shared names:\n{}", shared.len(), shared.join("\n"));
}

#[test]
fn index_files_contain_only_modules_and_re_exports() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.is_index()) {
        let items = source.code.split_inclusive([';', '}']).map(|item| {
            let item = item.trim();
            let attributes = item.rfind("]\n").map_or(0, |at| at + 2);
            item[attributes..].trim_start().to_owned()
        });
        let starts = ["mod ", "pub mod ", "pub use ", "pub(in ", "}", ";", "#!["];
        let mut group = false;
        for item in items {
            let plain = item.replacen("(crate)", "", 1).replacen("(super)", "", 1);
            let known = starts.iter().any(|start| plain.starts_with(start)) || item.is_empty();
            // This line is the end of a `pub use a::{b, c};`, from its closing brace on.
            if !known && !group {
                wrong.push(format!("{}: {}", source.name, item.lines().next().unwrap_or("")));
                break;
            }
            group = item.ends_with('}') && item.contains("use ");
        }
    }
    assert!(wrong.is_empty(), "{} index files hold code:\n{}", wrong.len(), wrong.join("\n"));
}

/// Largest number of lines of a file, tests included.
const LONGEST: usize = 700;

#[test]
fn files_have_at_most_700_lines() {
    for source in sources() {
        let lines = source.text.lines().count();
        assert!(lines <= LONGEST, "{} has {lines} lines, more than {LONGEST}: split it", source.name);
    }
}

/// Largest width of a comment, in columns; rows of tables may be wider.
const WIDEST: usize = 120;

#[test]
fn comments_have_at_most_120_columns() {
    let mut files = Vec::new();
    for folder in ["actors", "actors/lp", "netem", "emulator"] {
        for part in ["src", "tests", "benches", "engine/src", "engine/tests", "engine/benches"] {
            let folder = root().join(folder).join(part);
            if folder.is_dir() {
                walk(&folder, "rs", &mut files);
            }
        }
    }
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let comment = line.trim_start().starts_with("//") && !line.contains("//! |");
            let width = line.chars().count();
            assert!(
                !comment || width <= WIDEST,
                "{}:{number} is {width} columns wide: wrap the comment",
                path.display()
            );
        }
    }
}

/// First words of a module's documentation that cannot begin a noun phrase.
const NO_NOUN: &str = "Who What Whether How That Which Where When Why It If Everything Everybody Nobody Nothing From Of To For \
    In On By As Only So No Not This These Those There Is Are Does Do Has Run Runs Keep Keeps Take Takes Give \
    Gives Tell Tells Let Lets Make Makes Show Shows Say Says Read Reads Write Writes Build Builds Parse \
    Parses Draw Draws Look Looks Hold Holds Know Knows Replaces Validates Checks Handles Implements Provides \
    Defines";

#[test]
fn module_docs_begin_with_a_noun_phrase() {
    let mut wrong = Vec::new();
    for source in sources() {
        let first = source.text.lines().find(|line| line.starts_with("//!"));
        let Some(first) = first.map(|line| line.trim_start_matches("//!").trim()) else {
            wrong.push(format!("{} has no module documentation", source.name));
            continue;
        };
        let word = first.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        if NO_NOUN.split(' ').any(|other| other == word) {
            wrong.push(format!("{}: {first}", source.name));
        }
    }
    assert!(wrong.is_empty(), "{} modules:\n{}", wrong.len(), wrong.join("\n"));
}

/// Largest number of lines of code of each crate, without blank lines, comments and tests. A budget falls when code is
/// deleted; it rises only in a commit that says why.
const BUDGETS: [(&str, usize); 8] = [
    ("volary_lp", 1_642),
    ("volary_actors", 20_268),
    ("volary_netem", 2_999),
    ("volary_engine", 18_777),
    ("volary_experiment", 13_775),
    ("volary_hosts", 8_018),
    ("volary_report", 8_013),
    ("volary", 5_348),
];
/// Number of lines by which a crate may be below its budget before the budget must be lowered, so that deleted code is
/// not replaced.
const SLACK: usize = 200;

#[test]
fn each_crate_keeps_its_budget_of_lines() {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let code = source.code.lines().filter(|line| !line.trim().is_empty()).count();
        *lines.entry(source.krate).or_default() += code;
    }
    let wrong: Vec<String> = BUDGETS
        .iter()
        .filter(|(krate, budget)| !(budget.saturating_sub(SLACK)..=*budget).contains(&lines[krate]))
        .map(|(krate, budget)| format!("{krate} has {} lines of code, its budget is {budget}", lines[krate]))
        .collect();
    assert!(wrong.is_empty(), "delete code, or change the budget and say why:\n{}", wrong.join("\n"));
}
