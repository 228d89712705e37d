//! The `volary policies new` command.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use volary_actors::policies::PolicySpec;

use super::output::print;

/// Write a crate with a policy of one's own: an example that works, to be changed piece by piece.
///
/// Its program is `volary` with one more policy: every command knows it, agents on hosts too. The README of the crate
/// says what is in which file.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The name of the policy in experiment files, and of the crate: lower-case letters, digits and hyphens.
    name: String,
    /// The folder to write; it must not exist. By default the name, here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The files of the crate, which is an example of this one: path in the crate, and text.
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

/// The name of the example's policy, and of its parameters.
const EXAMPLE: (&str, &str) = ("reserved", "Reserved");

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let name = options.name.as_str();
    let parameters = type_name(name)?;
    let folder = options.out.clone().unwrap_or_else(|| name.into());
    if folder.exists() {
        return Err(anyhow!("{} exists\n  = help: name another folder with --out", folder.display()));
    }
    let write = |(path, text): (&str, &str)| {
        let file = folder.join(path);
        let place = file.parent().unwrap_or(&folder);
        fs::create_dir_all(place).with_context(|| format!("cannot make the folder {}", place.display()))?;
        let text = renamed(text, name, &parameters);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    FILES.into_iter().try_for_each(write)?;
    print(&format!(
        "wrote {}: `cd {0} && cargo run --release -- run experiment.toml`; its README.md says what is where",
        folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the type of the parameters: `my-own` has `MyOwn`.
fn type_name(name: &str) -> anyhow::Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || !name.chars().all(plain) || name.ends_with('-') || name.contains("--") {
        return Err(anyhow!(
            "`{name}` cannot name a policy and a crate\n  = help: write lower-case letters, digits and single hyphens, such \
             as `my-own`"
        ));
    }
    let taken = PolicySpec::cards().into_iter().any(|card| card.name == name);
    if taken || ["label", "volary", "test", "core", "std", "alloc"].contains(&name) {
        return Err(anyhow!("the name `{name}` is taken\n  = help: choose another"));
    }
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    Ok(name.split('-').map(capital).collect())
}

/// A text of the example under another name.
fn renamed(text: &str, name: &str, parameters: &str) -> String {
    text.replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@RUST@", env!("CARGO_PKG_RUST_VERSION"))
        .replace(EXAMPLE.1, parameters)
        .replace(EXAMPLE.0, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_types() {
        assert_eq!(type_name("my-own2").unwrap(), "MyOwn2");
        for bad in ["", "My", "a_b", "-a", "a-", "2a", "a--b", "sparrow", "label", "volary"] {
            assert!(type_name(bad).is_err(), "{bad}");
        }
    }

    /// Words that contain the name of the example would be changed too.
    #[test]
    fn the_name_of_the_example_stands_alone() {
        for (path, text) in FILES.into_iter() {
            let renamed = renamed(text, "x", "X");
            assert!(!renamed.contains('@'), "{path}");
            for (at, _) in text.to_lowercase().match_indices(EXAMPLE.0) {
                let end = text[at + EXAMPLE.0.len()..].chars().next().unwrap_or(' ');
                assert!(!end.is_alphanumeric(), "{path}: {}", &text[at..at + 20]);
            }
        }
    }
}
