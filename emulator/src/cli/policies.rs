//! The commands `volary policies` and `volary policies new`.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use volary_actors::policies::{Card, PolicySpec};
use volary_experiment::config::error::did_you_mean;
use volary_experiment::config::reference;

use super::output::{print, show};

/// List the policies, or explain one of them: its behaviour, its source, its parameters.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Name of a policy.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(NewOptions),
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(Command::New(options)) = &options.command {
        return new(options);
    }
    let mut cards = PolicySpec::cards();
    if let Some(name) = &options.name {
        let names: Vec<&str> = cards.iter().map(|card| card.name).collect();
        if !names.contains(&name.as_str()) {
            let known = format!("known policies are {}", names.join(", "));
            let help = did_you_mean(name, names).unwrap_or(known);
            return Err(anyhow!("there is no policy `{name}`\n  = help: {help}"));
        }
        cards.retain(|card| card.name == name);
    }
    let json = |card: &Card| json!({ "name": card.name, "about": card.about, "parameters": card.schema });
    show(
        options.json,
        || cards.iter().map(json).collect::<Value>(),
        || if options.name.is_some() { cards.iter().map(explain).collect() } else { list(&cards) },
    )
}

/// The list of policies, a line each.
fn list(cards: &[Card]) -> String {
    let width = cards.iter().map(|card| card.name.len()).max().unwrap_or(0);
    cards.iter().fold(String::new(), |mut text, card| {
        let title = card.about.lines().next().unwrap_or_default();
        let _ = writeln!(text, "{:width$}  {title}", card.name);
        text
    })
}

/// The description of a policy, and its parameters with their defaults.
fn explain(card: &Card) -> String {
    let mut text = format!("{}: {}\n", card.name, card.about);
    let parameters = reference::parameters(card.name, card.schema.as_value());
    if parameters.is_empty() {
        text.push_str("\nIt has no parameters.\n");
        return text;
    }
    text.push_str("\nParameters:\n");
    reference::list(&mut text, "  ", &parameters);
    text
}

/// Write a crate with a policy of your own: a working example, to be changed piece by piece.
///
/// The program of the crate is `volary` with one more policy, which every command and every agent accepts. The README
/// of the crate explains its files.
#[derive(Debug, Args)]
struct NewOptions {
    /// The name of the policy in experiment files, and of the crate. It has lower-case letters, digits and hyphens.
    name: String,
    /// The folder to write, which must not exist; by default, a folder with the policy's name in the current folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The root of a clone of volary, whose crates the new crate uses. If absent, the clone that contains the current
    /// folder or the program.
    #[arg(long, value_name = "CLONE")]
    source: Option<PathBuf>,
}

/// The files of the new crate, which are copies of the example in this crate: path, and text.
const FILES: [(&str, &str); 11] = [
    ("Cargo.toml", include_str!("../../examples/reserved/Cargo.toml.in")),
    (".gitignore", "/target\n/runs\n"),
    ("README.md", include_str!("../../examples/reserved/README.md")),
    ("experiment.toml", include_str!("../../examples/reserved/experiment.toml")),
    ("faults.toml", include_str!("../../examples/reserved/faults.toml")),
    ("src/main.rs", include_str!("../../examples/reserved/main.rs")),
    ("src/messages.rs", include_str!("../../examples/reserved/messages.rs")),
    ("src/node.rs", include_str!("../../examples/reserved/node.rs")),
    ("src/policy.rs", include_str!("../../examples/reserved/policy.rs")),
    ("src/scheduler.rs", include_str!("../../examples/reserved/scheduler.rs")),
    ("src/tests.rs", include_str!("../../examples/reserved/tests.rs")),
];

/// Maximum length of a policy's name, because file names of a build contain the name.
const LONGEST: usize = 64;

/// Keywords of Rust, which cannot be names of crates or types.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Names of crates that the example depends on, and of crates of the language.
const CRATES: [&str; 9] =
    ["alloc", "core", "schemars", "serde", "std", "test", "volary", "volary-actors", "volary-engine"];

/// The name of the example's policy, and of its parameters.
const EXAMPLE: (&str, &str) = ("reserved", "Reserved");

fn new(options: &NewOptions) -> anyhow::Result<ExitCode> {
    let name = options.name.as_str();
    let parameters = type_name(name)?;
    let folder = options.out.clone().unwrap_or_else(|| name.into());
    let clone = options.source.clone().or_else(clone).ok_or_else(|| anyhow!(NO_CLONE))?;
    let volary = dependency(&clone, "emulator")?;
    let actors = dependency(&clone, "actors")?;
    make(&folder)?;
    let write = |(path, text): (&str, &str)| {
        let file = folder.join(path);
        let place = file.parent().unwrap_or(&folder);
        fs::create_dir_all(place).with_context(|| format!("cannot make the folder {}", place.display()))?;
        let text =
            renamed(text, name, &parameters).replace("@VOLARY@", &volary).replace("@VOLARY_ACTORS@", &actors);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    FILES.into_iter().try_for_each(write)?;
    print(&format!(
        "wrote {}: `cd {0} && cargo run --release -- run experiment.toml`; its README.md explains the files",
        folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The error if there is no clone of volary to build the crate with.
const NO_CLONE: &str = "the crate needs a clone of volary, whose crates are not published; neither the current folder \
     nor the program is in a clone\n  = help: name the root of a clone with --source";

/// The clone that contains the current folder, or the running program.
fn clone() -> Option<PathBuf> {
    let places = [env::current_dir(), env::current_exe()].into_iter().flatten();
    let above = |place: PathBuf| place.ancestors().find(|root| is_clone(root)).map(Path::to_owned);
    { places }.find_map(above)
}

fn is_clone(root: &Path) -> bool {
    let has = |folder: &str, name: &str| {
        let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains(&format!("name = \"{name}\"\n")))
    };
    has("emulator", "volary") && has("actors", "volary-actors")
}

/// Creates the folder of the crate. The folder must not exist.
fn make(folder: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot make the folder {}", folder.display());
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).with_context(failed)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(anyhow!("{} exists\n  = help: name another folder with --out", folder.display()))
        }
        made => made.with_context(failed),
    }
}

/// The entry for one of volary's crates in the new manifest; `folder` is its folder in the clone.
fn dependency(clone: &Path, folder: &str) -> anyhow::Result<String> {
    let found = clone.join(folder).canonicalize().ok().filter(|place| place.join("Cargo.toml").is_file());
    let place = found.ok_or_else(|| {
        let path = clone.display();
        anyhow!("--source {path}: not a clone of volary, because it has no {folder}/Cargo.toml\n  = help: name the root of a clone")
    })?;
    Ok(format!("{{ path = {:?} }}", place.display().to_string()))
}

/// The name of the type of the policy's parameters: `MyOwn` for `my-own`.
fn type_name(name: &str) -> anyhow::Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || !name.chars().all(plain) || name.ends_with('-') || name.contains("--") {
        return Err(anyhow!(
            "`{name}` cannot name a policy and a crate\n  = help: write lower-case letters, digits and single hyphens, such \
             as `my-own`"
        ));
    }
    if name.len() > LONGEST {
        return Err(anyhow!("the name has {} letters\n  = help: write at most {LONGEST}", name.len()));
    }
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    let parameters: String = name.split('-').map(capital).collect();
    let words =
        |text: &str, word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|other| other == word);
    let owner = if PolicySpec::cards().into_iter().any(|card| card.name == name) {
        "a policy"
    } else if KEYWORDS.contains(&name) {
        "a keyword of Rust"
    } else if CRATES.contains(&name) {
        "another crate"
    } else if name == "label" {
        "a key of policies"
    } else if parameters != EXAMPLE.1 && FILES.iter().any(|(_, text)| words(text, &parameters)) {
        "a type that the example uses"
    } else {
        return Ok(parameters);
    };
    Err(anyhow!("the name `{name}` is taken by {owner}\n  = help: choose another name"))
}

/// A text of the example with its names replaced.
fn renamed(text: &str, name: &str, parameters: &str) -> String {
    text.replace("@RUST@", env!("CARGO_PKG_RUST_VERSION"))
        // The name is replaced first: it is lower-case, and cannot contain the name of the type.
        .replace(EXAMPLE.0, name)
        .replace(EXAMPLE.1, parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_policy_becomes_the_name_of_a_type() {
        assert_eq!(type_name("my-own2").unwrap(), "MyOwn2");
        let long = "a".repeat(LONGEST + 1);
        for bad in ["", "My", "a_b", "-a", "a-", "2a", "a--b", &long] {
            assert!(type_name(bad).is_err(), "{bad}");
        }
        for (taken, owner) in [
            ("sparrow", "a policy"),
            ("self", "a keyword of Rust"),
            ("serde", "another crate"),
            ("label", "a key of policies"),
            ("message", "a type that the example uses"),
        ] {
            assert!(type_name(taken).unwrap_err().to_string().contains(owner), "{taken}");
        }
    }

    /// The new name may contain the name of the example.
    #[test]
    fn a_name_that_contains_the_example_is_replaced_once() {
        assert_eq!(renamed("reserved: Reserved", "unreserved", "Unreserved"), "unreserved: Unreserved");
    }

    /// Words that contain the name of the example would be changed too.
    #[test]
    fn the_name_of_the_example_is_not_part_of_a_longer_word() {
        for (path, text) in FILES.into_iter() {
            let renamed = renamed(text, "x", "X").replace("@VOLARY@", "").replace("@VOLARY_ACTORS@", "");
            assert!(!renamed.contains('@'), "{path}");
            for (at, _) in text.to_lowercase().match_indices(EXAMPLE.0) {
                let end = text[at + EXAMPLE.0.len()..].chars().next().unwrap_or(' ');
                assert!(!end.is_alphanumeric(), "{path}: {}", &text[at..at + 20]);
            }
        }
    }
}
