//! The `volary topology` command.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use volary_netem::topology::Facts;

use super::output::show;
use crate::config::cluster;
use crate::number::{self, plural};

/// Look at topology files.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a topology file amounts to: nodes, racks, link classes with their round trips.
    Show {
        /// The topology file.
        file: PathBuf,
        /// Seed that draws speeds given by a law.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let Command::Show { file, seed, json } = &options.command;
    let facts = cluster::topology(file, *seed)?.describe();
    show(*json, || &facts, || text(&facts))
}

fn text(facts: &Facts) -> String {
    let mut out = format!("{}\n", facts.title);
    let range = |low: String, high: String| if low == high { low } else { format!("{low} to {high}") };
    let [least, most] = facts.cores_per_node.map(|n| n.to_string());
    let [slowest, fastest] = facts.speed.map(number::short);
    let nodes = plural(u64::from(facts.nodes), "node");
    let _ = writeln!(
        out,
        "{nodes} of {} core{}, speed {}: {}, the work of {} reference cores",
        range(least, most.clone()),
        if most == "1" { "" } else { "s" },
        range(slowest, fastest),
        plural(facts.cores, "core"),
        number::short(facts.capacity),
    );
    let pods = facts.pods.map_or_else(String::new, |pods| format!(", {}", plural(u64::from(pods), "pod")));
    let regions = match facts.regions.as_slice() {
        [] => String::new(),
        names => format!(", regions {}", names.join(", ")),
    };
    let _ = writeln!(
        out,
        "{}{pods}{regions}; coordinators: {}",
        plural(u64::from(facts.racks), "rack"),
        facts.placement
    );
    for group in &facts.groups {
        let _ = writeln!(
            out,
            "group {}: {}, {}",
            group.name,
            plural(u64::from(group.nodes), "node"),
            plural(group.cores, "core")
        );
    }
    for class in &facts.classes {
        let _ = write!(
            out,
            "link {}: one way {} ± {}, round trip {}, {} of nodes",
            class.name,
            number::seconds(class.one_way_mean_s),
            number::seconds(class.one_way_std_s),
            number::seconds(class.rtt_mean_s),
            plural(class.pairs, "pair"),
        );
        if let Some(loss) = class.loss {
            let _ = write!(out, ", loss {}", number::percent(loss));
        }
        if let Some(rate) = &class.rate {
            let _ = write!(out, ", {rate}");
        }
        out.push('\n');
    }
    out
}
