//! `volary topology`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use volary_netem::topology::Facts;

use super::{print, print_json};
use crate::number;
use crate::spec::cluster;

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
    if *json {
        print_json(&facts)?;
    } else {
        print(&text(&facts))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(facts: &Facts) -> String {
    let mut out = format!("{}\n", facts.title);
    let range = |low: String, high: String| if low == high { low } else { format!("{low} to {high}") };
    let [least, most] = facts.cores_per_node.map(|n| n.to_string());
    let [slowest, fastest] = facts.speed.map(number::short);
    let nodes = number::count(u64::from(facts.nodes));
    let _ = writeln!(
        out,
        "{nodes} nodes of {} cores, speed {}: {} cores, the work of {} reference cores",
        range(least, most),
        range(slowest, fastest),
        number::count(facts.cores),
        number::short(facts.capacity),
    );
    let pods = facts.pods.map_or_else(String::new, |pods| format!(", {pods} pods"));
    let regions = match facts.regions.as_slice() {
        [] => String::new(),
        names => format!(", regions {}", names.join(", ")),
    };
    let _ = writeln!(out, "{} racks{pods}{regions}; coordinators: {}", facts.racks, facts.placement);
    for group in &facts.groups {
        let _ = writeln!(out, "group {}: {} nodes, {} cores", group.name, group.nodes, group.cores);
    }
    for class in &facts.classes {
        let _ = write!(
            out,
            "link {}: one way {} ± {}, round trip {}, {} pairs of nodes",
            class.name,
            number::seconds(class.one_way_mean_s),
            number::seconds(class.one_way_std_s),
            number::seconds(class.rtt_mean_s),
            number::count(class.pairs),
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
