//! The `volary policies` command.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use volary_actors::policies::{Card, PolicySpec};
use volary_experiment::config::error::did_you_mean;
use volary_experiment::config::reference;

use super::new_policy;
use super::output::show;

/// List the policies, or explain one: what it does, its source, its parameters.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// A policy.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new_policy::Options),
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(Command::New(options)) = &options.command {
        return new_policy::main(options);
    }
    let mut cards = PolicySpec::cards();
    if let Some(name) = &options.name {
        let names: Vec<&str> = cards.iter().map(|card| card.name).collect();
        if !names.contains(&name.as_str()) {
            let known = format!("known are {}", names.join(", "));
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

/// A line per policy.
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
