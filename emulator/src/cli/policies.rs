//! The `volary policies` command.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use volary_actors::policies::{Card, PolicySpec};

use super::output::show;
use crate::config::error::nearest;
use crate::config::reference;

/// List the policies, or explain one: what it does, its source, its parameters.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A policy.
    name: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let mut cards = PolicySpec::cards();
    if let Some(name) = &options.name {
        let names: Vec<&str> = cards.iter().map(|card| card.name).collect();
        if !names.contains(&name.as_str()) {
            let known = names.join(", ");
            let help = nearest(name, names)
                .map_or_else(|| format!("known are {known}"), |near| format!("did you mean `{near}`?"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_listed_and_explained() {
        let cards = PolicySpec::cards();
        assert_eq!(list(&cards).lines().count(), cards.len());
        let latin = cards.iter().find(|card| card.name == "latin-square").unwrap();
        let text = explain(latin);
        let sparrow = cards.iter().find(|card| card.name == "sparrow").unwrap();
        assert!(
            explain(sparrow).contains("\n      \"pairs\": Groups of `group` tasks"),
            "{}",
            explain(sparrow)
        );
        assert!(
            text.contains("  order = 2  (whole number from 1 to 65535)\n      Order v of the square"),
            "{text}"
        );
    }
}
