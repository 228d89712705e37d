//! Tests of the book and the READMEs against the program: generated pages, links, command lines, examples.

use std::fs;
use std::path::{Path, PathBuf};

use volary_actors::message::{HEAD, HEADERS, PAYLOAD, kinds, wire_bytes};

use crate::common::binary::expect;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs `volary` and returns its output.
fn volary(args: &str) -> String {
    expect(&root(), args, 0).0
}

/// The README and the first page of the book show the table and the verdicts that the README's first command prints.
#[test]
fn the_first_pages_show_what_the_first_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let printed = volary(&format!(
        "run experiments/quickstart.toml --no-report --out {}",
        folder.path().join("r").display()
    ));
    // The last lines of the output state CPU time and folder, and are not compared.
    let lasting = printed.split("\n4 runs, ").next().unwrap();
    assert!(lasting.contains("holds"), "{printed}");
    for page in ["README.md", "docs/src/getting-started.md"] {
        assert!(read(page).contains(lasting), "{page} does not show this:\n{lasting}");
    }
}

/// All Markdown files for readers, relative to the root.
fn pages() -> Vec<String> {
    let mut pages =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ansible/README.md"].map(str::to_owned).to_vec();
    pages.extend(["experiments/README.md", "experiments/REPRODUCE.md"].map(str::to_owned));
    for folder in ["docs/src", "docs/src/papers", "docs/src/findings", "docs/src/reference"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap()));
        pages.extend(names.filter(|name| name.ends_with(".md")));
    }
    assert!(pages.len() > 15, "{pages:?}");
    pages
}

/// The contents of the fenced blocks in `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Generated pages with their contents: title, introduction, and the output of the commands that describe the format.
fn references() -> Vec<(&'static str, String)> {
    let note = |command: &str| {
        format!(
            "<!-- Generated: VOLARY_UPDATE_DOCS=1 cargo test -p volary --test files docs -->\n\nPrinted by `{command}`.\n"
        )
    };
    let mut pages = Vec::new();
    for (format, title) in [
        ("experiment", "Experiment files"),
        ("profile", "Interference profiles"),
        ("topology", "Topology files"),
        ("results", "Lines of results"),
    ] {
        let note = note(&format!("volary schema {format} --text"));
        let text = volary(&format!("schema {format} --text"));
        pages.push((format, format!("# {title}\n\n{note}\n```text\n{}\n```\n", text.trim_end())));
    }
    let mut policies = format!("# Policies\n\n{}", note("volary policies NAME"));
    for line in volary("policies").lines() {
        let name = line.split_whitespace().next().unwrap();
        let card = volary(&format!("policies {name}"));
        policies.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", card.trim_end()));
    }
    pages.push(("policies", policies));
    pages.push(("messages", messages()));
    pages
}

/// The page of the kinds of messages that cross the network, with their class and bytes.
fn messages() -> String {
    let about = format!(
        "# Messages\n\n\
        <!-- Generated: VOLARY_UPDATE_DOCS=1 cargo test -p volary --test files docs -->\n\n\
        Bytes of each kind of message on the emulated network: {HEADERS} bytes of headers, since each message is a QUIC\n\
        packet of its own (IPv4 20, UDP 8, QUIC 25, frame 4), and the longest message of the kind as it is encoded between\n\
        hosts. Links and uplinks with a rate take this long for a message, and `messages.bytes` of the results is their sum.\n\
        A message of several datagrams, such as a batch, is a row for each. `workload.gossip.updates.bytes` replaces the\n\
        bytes of `spread.push` and `spread.answer`. A message of a policy in another crate has {} bytes and those of its\n\
        fields, one of a program in another language {}.\n\n\
        | kind | class | bytes |\n|---|---|--:|\n",
        HEADERS + HEAD,
        HEADERS + HEAD + PAYLOAD as u32,
    );
    let crossing = (0..).zip(kinds()).filter(|(_, (name, _))| !name.starts_with("core."));
    let rows = crossing.map(|(kind, (name, class))| {
        let class = format!("{class:?}").to_lowercase();
        format!("| `{name}` | {class} | {} |\n", wire_bytes(kind))
    });
    about + &rows.collect::<String>()
}

#[test]
fn the_reference_is_what_the_program_prints() {
    let sources = format!("{}\n", volary("trace sources").trim_end());
    let page = fs::read_to_string(root().join("docs/src/trace-sources.md")).unwrap();
    let (introduction, _) = page.split_once("\n## ").unwrap();
    let pages = references().into_iter().map(|(name, text)| (format!("reference/{name}"), text));
    for (name, expected) in pages.chain([("trace-sources".to_owned(), format!("{introduction}\n{sources}"))])
    {
        let path = root().join(format!("docs/src/{name}.md"));
        if std::env::var_os("VOLARY_UPDATE_DOCS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        let line =
            (1..).zip(found.lines().zip(expected.lines())).find(|(_, (found, expected))| found != expected);
        assert!(
            found == expected,
            "docs/src/{name}.md is out of date at {line:?}: VOLARY_UPDATE_DOCS=1 cargo test -p volary --test files docs"
        );
    }
}

/// The guide quotes the smallest policy completely, without its imports.
#[test]
fn the_guide_quotes_the_smallest_policy() {
    let source = read("actors/src/policies/random.rs");
    let code = &source[source.find("parameters! {").unwrap()..];
    assert!(read("docs/src/adding-a-policy.md").contains(code), "{code}");
}

#[test]
fn links_have_existing_targets() {
    for page in pages() {
        let text = read(&page);
        let folder = root().join(&page).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") {
                continue;
            }
            let path = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            assert!(path.exists(), "{page}: nothing is at {target}");
            if !anchor.is_empty() {
                let words = |line: &str| line.trim_start_matches(['#', ' ']).to_lowercase();
                let slug = |line: &str| words(line).replace(' ', "-").replace('.', "");
                let other = fs::read_to_string(&path).unwrap();
                let found = other.lines().any(|line| line.starts_with('#') && slug(line) == anchor);
                assert!(found, "{page}: no heading is {target}");
            }
        }
    }
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = read("docs/src/SUMMARY.md");
    for page in pages().iter().filter_map(|page| page.strip_prefix("docs/src/")) {
        assert!(page == "SUMMARY.md" || summary.contains(&format!("]({page})")), "{page} is in no chapter");
    }
}

/// Source files and experiments that the pages name in code style must exist.
#[test]
fn files_named_on_pages_exist() {
    let mut seen = 0;
    for page in pages().iter().filter(|page| *page != "experiments/README.md") {
        let text = read(page);
        let names = text.split('`').skip(1).step_by(2).filter(|name| !name.contains([' ', '\n', '*']));
        let folders = ["actors/", "netem/", "emulator/", "experiments/", "topologies/", "ansible/", ".ci/"];
        for name in names.filter(|name| folders.iter().any(|folder| name.starts_with(folder))) {
            let concrete = !name.contains("NAME") && !name.contains('…');
            assert!(!concrete || root().join(name).exists(), "{page} names {name}, which does not exist");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} names");
}

/// Options in example commands must be options of the command.
#[test]
fn example_commands_exist() {
    let mut seen = 0;
    for page in pages() {
        for line in blocks(&read(&page), "sh").concat().lines() {
            let line = line.split(" # ").next().unwrap();
            let Some(words) = line.strip_prefix("volary ") else { continue };
            let words: Vec<&str> = words.split_whitespace().collect();
            let nested = ["profile", "trace", "topology"].contains(&words[0]) || words.get(1) == Some(&"new");
            let command = words[..1 + usize::from(nested)].join(" ");
            let help = volary(&format!("{command} --help"));
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap();
                assert!(help.contains(option), "{page}: `volary {command}` has no {option}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} examples");
}

/// Blocks of TOML that begin with a title must be complete experiments.
#[test]
fn example_experiments_can_be_planned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.toml");
    let mut seen = 0;
    for page in pages() {
        for block in blocks(&read(&page), "toml").iter().filter(|block| block.starts_with("title")) {
            fs::write(&path, block).unwrap();
            volary(&format!("plan {}", path.display()));
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} examples");
}

/// Rows of the tables of findings must quote claims as the experiments state them, and verdicts as the results do.
#[test]
fn findings_name_existing_claims() {
    let results = read("experiments/README.md");
    let mut text = String::new();
    let mut rows = 0;
    let reproduced = read("experiments/REPRODUCE.md");
    for line in results.lines().chain(reproduced.lines()).filter(|line| line.matches(" | ").count() == 4) {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").map(str::trim).collect();
        if let Some(file) = line.split("](").nth(1) {
            let file = read(&format!("experiments/{}", file.split(')').next().unwrap()));
            text = file.replace("\\\"", "\""); // quotes within a claim
        }
        if text.is_empty() {
            continue; // the head of the table
        }
        let says = cells[cells.len() - 2].replace("\\|", "|");
        assert!(text.contains(&says), "no claim of the experiment is \"{says}\"");
        rows += 1;
    }
    for line in reproduced.lines().filter(|line| line.contains("](") && line.matches(" | ").count() == 4) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let row = format!("| {} | {} |", cells[3], cells[1]);
        assert!(results.contains(&row), "the results have no row \"{row}\"");
    }
    assert!(rows > 50, "only {rows} rows");
}

#[test]
fn the_readme_has_at_most_130_lines_and_the_test_command() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 130, "the README has {} lines", readme.lines().count());
    assert!(readme.contains("cargo test --workspace"));
}
