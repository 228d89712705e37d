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

/// Inject interference into a running emulation on hosts: for a time, a profile replaces the interference of some
/// cores.
///
/// Slot k of the profile is the same as if the experiment named the profile: times count from the start of the run, so
/// a scripted profile that does not repeat may already be over. An injection ends with the run or with this command,
/// and within five seconds if the command is killed or disconnected. If several injections affect a core, the latest
/// applies. The record of the run contains every injection. An injection affects one run: verdicts and stars do not
/// compare this run with others, unless --all-policies repeats the injection in them.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The name of a preset (`volary profile list`) or a profile file, as `volary profile show` reads it.
    profile: PathBuf,
    /// The run's hosts file; optional with --dry-run.
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    hosts: Option<PathBuf>,
    /// The cores of these nodes: numbers such as `3` or `10-19`, or targets of faults such as `region:virginia`. Cores
    /// of --node, --rack, --core and --host are combined; without any of these options, all cores are affected.
    #[arg(long, value_name = "NODE", value_delimiter = ',', value_parser = |text: &str| target("node", text))]
    node: Vec<Target>,
    /// The cores of the nodes of these racks, given by number or by name in the topology.
    #[arg(long, value_name = "RACK", value_delimiter = ',', value_parser = |text: &str| target("rack", text))]
    rack: Vec<Target>,
    /// Cores by their numbers across all nodes, such as `0-5,8`.
    #[arg(long, value_name = "CORES")]
    core: Vec<CoreSet>,
    /// All cores of these hosts.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    host: Vec<String>,
    /// Duration in emulated time; until Ctrl-C if absent.
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    lasting: Option<Span>,
    /// Seed of the slots; if absent, the seed of the run.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Repeat the injection at the same emulated time in every later run of the experiment: policies then meet the same
    /// conditions. Finished runs lack the injection, and are not compared with the runs that have it.
    #[arg(long, conflicts_with = "dry_run")]
    all_policies: bool,
    /// Inject nothing, and print the slots from the time at which the injection would begin, or from 0 if no emulation
    /// is running.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: every slot with --dry-run, otherwise the injection as each host applied it.
    #[arg(long)]
    json: bool,
}

/// Parses a target in the notation of faults; a text without a colon is a number or a name of the kind `kind`.
fn target(kind: &str, text: &str) -> Result<Target, String> {
    if text.contains(':') { text.parse() } else { format!("{kind}:{text}").parse() }
}

/// Limit on the cores whose slots are printed.
const CORES: usize = 64;
/// Length of the printed timeline if no end is given.
const SHOWN: Span = Span::from_secs(10);
/// Limit on the number of slots per core that are printed.
const MOST: f64 = 1e5;
/// Limit on the number of runs without the injection that are listed.
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
                tracing::warn!("{why}; slots are shown from time 0");
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

/// A dry run without a running emulation. The cluster is unknown: core i is assumed to be node i.
fn dry_run_alone(options: &Options, profile: Profile) -> anyhow::Result<ExitCode> {
    let Options { node, rack, host, seed, lasting, .. } = options;
    if !(node.is_empty() && rack.is_empty() && host.is_empty()) {
        return Err(anyhow!(
            "--node, --rack and --host: no emulation is running, so nodes, racks and hosts have no known cores\n  = help: name cores \
             with --core, or give the --hosts FILE of an emulation that runs"
        ));
    }
    let named = options.cores();
    let cores = if named.is_empty() { CoreSet::below(8) } else { named };
    // Core i belongs to node i and rack i, as in `volary profile show`.
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
                "--for {length}: each core would have {slots:.0} slots, more than {MOST:e}\n  = help: show a shorter time"
            ));
        }
        let (json, text) = (|| injection.json(table, CORES, SHOWN), || injection.text(table, CORES, SHOWN));
        show(self.json, json, text)
    }

    /// Prints the start of the injection; with `--json`, to stderr.
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
            text.push_str("\nlater runs of the experiment repeat the injection at the same emulated time");
        } else {
            text.push_str("\nruns of other policies lack the injection, and are not compared with this run: use --all-policies");
        }
        if self.all_policies && !lacking.is_empty() {
            let more = lacking.len().saturating_sub(NAMED);
            let named = lacking[..lacking.len().min(NAMED)].join("; ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!(
                "\nruns that ended without the injection are not compared with the others: {named}{more}"
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

/// A line that summarises an injection on a host.
fn text(done: &Injected) -> String {
    let Injected { share: InjectionShare { host, cores, from, until, ended: why }, effect } = done;
    let from = number::seconds(from.as_secs_f64());
    let Some(until) = until else {
        return format!("{host}: cores {cores} from {from}; its end is unknown: {why}\n");
    };
    let until = number::seconds(until.as_secs_f64());
    let effect = effect.map_or_else(String::new, |effect| {
        let (degraded, throughput) = (number::percent(effect.degraded), number::percent(effect.throughput));
        format!("; degraded for {degraded} of the time, which left {throughput} of the work")
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
