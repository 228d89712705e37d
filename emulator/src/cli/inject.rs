//! The `volary inject` command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use volary_actors::base::CoreSet;
use volary_actors::base::{Span, Time};
use volary_engine::cores::{CoreTable, Injection, Profile};
use volary_experiment::config;
use volary_experiment::number;
use volary_hosts::cluster::error::InjectError;
use volary_hosts::cluster::inject::{InjectOptions, Injected, dry_run, inject};
use volary_hosts::cluster::protocol::{InjectRequest, InjectionPlan, InjectionShare, Refusal};
use volary_netem::Target;

use super::output::{print_folded, show};

/// Inject interference into a running emulation on hosts: for a time, a profile replaces that of some of its cores.
///
/// Slot k of the profile is the same as if the experiment named the profile: times count from the start of the run,
/// and a scripted profile that does not repeat may be over. An injection ends with the run, or with this command;
/// within five seconds if the command is killed or disconnected. Of several injections into a core, the latest counts.
/// The record of the run contains every injection. It is an injection into one run: verdicts and stars do not compare
/// that run with others unless --all-policies repeats it in them.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The profile file, as `volary profile show` reads it.
    profile: PathBuf,
    /// The run's hosts file; optional with --dry-run.
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    hosts: Option<PathBuf>,
    /// The cores of these nodes: numbers such as `3` or `10-19`, or targets as in faults, such as `region:virginia`.
    /// The cores of --node, --rack, --core and --host are united; without any of these, all cores are affected.
    #[arg(long, value_name = "NODE", value_delimiter = ',', value_parser = |text: &str| target("node", text))]
    node: Vec<Target>,
    /// The cores of the nodes of these racks: numbers, or names of the topology.
    #[arg(long, value_name = "RACK", value_delimiter = ',', value_parser = |text: &str| target("rack", text))]
    rack: Vec<Target>,
    /// These cores, numbered across all nodes, such as `0-5,8`.
    #[arg(long, value_name = "CORES")]
    core: Vec<CoreSet>,
    /// All cores of these hosts.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    host: Vec<String>,
    /// Duration in emulated time; until Ctrl-C if absent.
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    lasting: Option<Span>,
    /// Seed of the slots; the run's own if absent.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Repeat the injection at the same emulated time in every later run of the experiment, so that policies meet the
    /// same conditions. Runs that are over lack it, and are not compared with those that have it.
    #[arg(long, conflicts_with = "dry_run")]
    all_policies: bool,
    /// Inject nothing, and print the slots from the time at which the injection would begin; from 0 if nothing is
    /// running.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: every slot with --dry-run, otherwise the injection as each host applied it.
    #[arg(long)]
    json: bool,
}

/// A target as in faults, or a member of this kind.
fn target(kind: &str, text: &str) -> Result<Target, String> {
    if text.contains(':') { text.parse() } else { format!("{kind}:{text}").parse() }
}

/// Limit on the cores whose slots are printed.
const CORES: usize = 64;
/// Length of the printed timeline if no end is given.
const SHOWN: Span = Span::from_secs(10);
/// Limit on the number of slots per core that are printed.
const MOST: f64 = 1e5;
/// Limit on the runs named that lack an injection.
const NAMED: usize = 8;

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let profile = config::profile(&options.profile)?;
    if options.lasting == Some(Span::ZERO) {
        return Err(anyhow!("--for 0s: the duration is zero\n  = help: give a longer time, or leave it out"));
    }
    let Some(hosts) = options.hosts.clone() else { return dry_run_alone(options, profile) };
    let request = options.request(hosts, profile.clone());
    if options.dry_run {
        return match dry_run(&request) {
            Ok((injection, table)) => options.show(&injection, &table),
            Err(InjectError::Refused(Refusal::NotRunning, why)) => {
                tracing::warn!("{why}; from 0 it would be");
                dry_run_alone(options, profile)
            }
            Err(error) => Err(error.into()),
        };
    }
    let done = inject(&request, |plan, shares| options.print_start(plan, shares))?;
    let (json, text) = (|| done.iter().map(json).collect::<Value>(), || done.iter().map(text).collect());
    let status = show(options.json, json, text)?;
    let lost = done.iter().any(|done| done.share.until.is_none());
    Ok(if lost { ExitCode::from(3) } else { status })
}

/// A dry run without a running emulation, whose cluster is unknown: core i is assumed to be node i.
fn dry_run_alone(options: &Options, profile: Profile) -> anyhow::Result<ExitCode> {
    let Options { node, rack, host, seed, lasting, .. } = options;
    if !(node.is_empty() && rack.is_empty() && host.is_empty()) {
        return Err(anyhow!(
            "--node, --rack and --host: no emulation is running\n  = help: name cores, or give the --hosts FILE of a run"
        ));
    }
    let named = options.cores();
    let cores = if named.is_empty() { CoreSet::below(8) } else { named };
    // Core i is node i and in rack i, as in `volary profile show`.
    let count = cores.last().map_or(0, |last| last.saturating_add(1));
    if count > 10_000 {
        return Err(anyhow!("--core: without --hosts, core numbers must be below 10000"));
    }
    let table = CoreTable::equal(count, 1).with_racks((0..count).collect());
    let until = Time::ZERO + lasting.unwrap_or(SHOWN);
    let injection = Injection { profile, seed: seed.unwrap_or(1), cores, from: Time::ZERO, until };
    options.show(&injection, &table)
}

impl Options {
    fn request(&self, hosts: PathBuf, profile: Profile) -> InjectOptions {
        let targets = self.node.iter().chain(&self.rack).map(Target::to_string).collect();
        let request = InjectRequest {
            seed: self.seed,
            targets,
            cores: self.cores(),
            hosts: self.host.clone(),
            lasting: self.lasting,
            all_policies: self.all_policies,
            ..InjectRequest::default()
        };
        InjectOptions { hosts, profile, request }
    }

    fn cores(&self) -> CoreSet {
        self.core.iter().fold(CoreSet::default(), |all, some| all.union(some))
    }

    /// Prints the slots.
    fn show(&self, injection: &Injection, table: &CoreTable) -> anyhow::Result<ExitCode> {
        let length = self.lasting.unwrap_or(SHOWN);
        let slots = length.as_secs_f64() / injection.profile.stretch_s();
        if slots > MOST {
            return Err(anyhow!(
                "--for {length}: {slots:.0} slots of each core are more than {MOST:e}\n  = help: show a shorter time"
            ));
        }
        let (json, text) = (|| injection.json(table, CORES, SHOWN), || injection.text(table, CORES, SHOWN));
        show(self.json, json, text)
    }

    /// Prints the start of the injection; to stderr with `--json`.
    fn print_start(&self, plan: &InjectionPlan, shares: &[InjectionShare]) {
        let InjectionPlan { run, policy, run_seed, seed, lacking, .. } = plan;
        let profile = self.profile.display();
        let mut text = format!(
            "{profile} with seed {seed} is injected into cores of {policy} (run {run}, seed {run_seed}); {}",
            if self.lasting.is_some() { "Ctrl-C ends it earlier" } else { "Ctrl-C ends it" },
        );
        for InjectionShare { host, cores, from, .. } in shares {
            text.push_str(&format!("\n{host}: cores {cores} from {}", number::seconds(from.as_secs_f64())));
        }
        if self.all_policies {
            text.push_str("\nit is repeated at the same emulated time in every later run of the experiment");
        } else {
            text.push_str("\nother policies do not get it, and are not compared with this run: --all-policies repeats it");
        }
        if self.all_policies && !lacking.is_empty() {
            let more = lacking.len().saturating_sub(NAMED);
            let named = lacking[..lacking.len().min(NAMED)].join("; ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!(
                "\nended without it, and not compared with the runs that have it: {named}{more}"
            ));
        }
        // A closed stdout does not end the injection.
        let _ = if self.json {
            super::output::print_note(&text)
        } else {
            print_folded(&text).map_err(Into::into)
        };
    }
}

/// A line that summarises what an injection did on a host.
fn text(done: &Injected) -> String {
    let Injected { share: InjectionShare { host, cores, from, until, ended: why }, effect } = done;
    let from = number::seconds(from.as_secs_f64());
    let Some(until) = until else {
        return format!("{host}: cores {cores} from {from}; its end is unknown: {why}\n");
    };
    let until = number::seconds(until.as_secs_f64());
    let effect = effect.map_or_else(String::new, |effect| {
        let (degraded, throughput) = (number::percent(effect.degraded), number::percent(effect.throughput));
        format!("; its slots degraded {degraded} of the time, which left {throughput} of their work")
    });
    format!("{host}: cores {cores} from {from} to {until}: {why}{effect}\n")
}

fn json(done: &Injected) -> Value {
    let Injected { share: InjectionShare { host, cores, from, until, ended: why }, effect } = done;
    json!({
        "host": host,
        "cores": cores,
        "from_s": from.as_secs_f64(),
        "until_s": until.map(Time::as_secs_f64),
        "ended": why,
        "degraded": effect.map(|effect| effect.degraded),
        "throughput": effect.map(|effect| effect.throughput),
    })
}
