//! The `volary topology` command.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use volary_engine::results::Unit;
use volary_experiment::config::include;
use volary_experiment::number::{self, UnitText, plural};
use volary_netem::topology::Facts;

use super::output::show;

/// Show topology files.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Describe a topology file: its nodes, racks, and link classes with their round trips.
    Show {
        /// The topology file.
        file: PathBuf,
        /// Seed of the speeds, if they are sampled from distributions.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let Command::Show { file, seed, json } = &options.command;
    let facts = include::topology(file, *seed)?.describe();
    show(*json, || &facts, || text(&facts))
}

fn text(facts: &Facts) -> String {
    let range = |low: String, high: String| if low == high { low } else { format!("{low} to {high}") };
    let [least, most] = facts.cores_per_node.map(|n| n.to_string());
    let [slowest, fastest] = facts.speed.map(number::short);
    let (nodes, racks) = (plural(u64::from(facts.nodes), "node"), plural(u64::from(facts.racks), "rack"));
    let plural_s = if most == "1" { "" } else { "s" };
    let pods = facts.pods.map_or_else(String::new, |pods| format!(", {}", plural(u64::from(pods), "pod")));
    let regions = match facts.regions.as_slice() {
        [] => String::new(),
        names => format!(", regions {}", names.join(", ")),
    };
    let mut out = format!(
        "{}\n{nodes} of {} core{plural_s}, speed {}: {}, the work of {} reference cores\n{racks}{pods}{regions}; \
         coordinators: {}\n",
        facts.title,
        range(least, most),
        range(slowest, fastest),
        plural(facts.cores, "core"),
        number::short(facts.capacity),
        facts.placement
    );
    for group in &facts.groups {
        let (nodes, cores) = (plural(u64::from(group.nodes), "node"), plural(group.cores, "core"));
        let _ = writeln!(out, "group {}: {nodes}, {cores}", group.name);
    }
    for class in &facts.classes {
        let [mean, std] = Unit::Seconds.alike([class.one_way_mean_s, class.one_way_std_s]);
        let rtt = number::seconds(class.rtt_mean_s);
        let loss = class.loss.map_or_else(String::new, |loss| format!(", loss {}", number::percent(loss)));
        let rate = class.rate.as_ref().map_or_else(String::new, |rate| format!(", {rate}"));
        let (name, pairs) = (&class.name, plural(class.pairs, "pair"));
        let _ = writeln!(
            out,
            "link {name}: one way {mean} ± {std}, round trip {rtt}, {pairs} of nodes{loss}{rate}"
        );
    }
    out
}
