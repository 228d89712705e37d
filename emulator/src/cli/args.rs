//! Options that several subcommands share, and the command that resumes a run or a validation.

use std::path::{Path, PathBuf};

use clap::Args;
use volary_actors::base::Span;
use volary_experiment::config::{ConfigError, Experiment, Overrides, Repeat, RuntimeKind, describe};
use volary_experiment::control::Fleet;
use volary_report::columns::{self, PickedColumn};
use volary_report::selection::Selection;
use volary_report::shell::command_line;
use volary_report::style::TableStyle;

use super::output::{coloured, width};

/// The command line, for manifests.
pub(super) fn argv() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The experiment, and changes to it.
#[derive(Debug, Args)]
pub(super) struct ExperimentArgs {
    /// The experiment file.
    pub(super) experiment: PathBuf,
    /// Change a key of the file, such as `network.loss=0.01`; a swept key keeps only this value.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run only the policies with these labels.
    #[arg(long, value_name = "LABEL")]
    policy: Vec<String>,
    /// The seed, or with several replications the seed of the first.
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,
}

impl ExperimentArgs {
    pub(super) fn overrides(&self) -> Overrides {
        let Self { set, policy, seed, .. } = self;
        Overrides { set: set.clone(), policies: policy.clone(), seed: *seed, ..Overrides::default() }
    }

    /// Whether the command line selects only part of the experiment.
    pub(super) fn narrows(&self) -> bool {
        !(self.set.is_empty() && self.policy.is_empty())
    }
}

/// The experiment, its replications and its runtime.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) of: ExperimentArgs,
    /// Number of replications, or `auto` to repeat until the `precision` of the file is reached.
    #[arg(long, value_name = "N", value_parser = repeat)]
    repeat: Option<Repeat>,
    /// The runtime: virtual, local or hosts.
    #[arg(long, value_parser = runtime)]
    runtime: Option<RuntimeKind>,
}

impl RunArgs {
    pub(super) fn load(&self) -> Result<Experiment, ConfigError> {
        self.changed(None)
    }

    /// Loads the experiment with one more change, as by `--set`.
    fn changed(&self, change: Option<String>) -> Result<Experiment, ConfigError> {
        let mut overrides = Overrides { repeat: self.repeat, runtime: self.runtime, ..self.of.overrides() };
        overrides.set.extend(change);
        Experiment::load(&self.of.experiment, &overrides)
    }

    /// Loads an experiment to run, with one more change, and logs the warnings that the report will contain.
    pub(super) fn prepare(&self, change: Option<String>) -> Result<Experiment, ConfigError> {
        let mut experiment = self.changed(change)?;
        experiment.warnings.extend(describe::overload(&experiment));
        experiment.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(experiment)
    }
}

/// The options of the table of results.
#[derive(Debug, Args)]
pub(super) struct TableArgs {
    /// The columns of the table, such as p50,p99,regret; short.p99 is the column p99 of the class short. `help` lists
    /// all.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Vec<String>,
}

impl TableArgs {
    /// The style of the table; `None` if the columns are to be listed instead.
    ///
    /// # Errors
    /// When a column is unknown or named twice.
    pub(super) fn style(&self) -> anyhow::Result<Option<TableStyle>> {
        if self.columns.iter().any(|name| name == columns::ASKED) {
            return Ok(None);
        }
        let mut columns: Vec<PickedColumn> = Vec::new();
        for name in &self.columns {
            let column = name.parse().map_err(|why| anyhow::anyhow!("--columns: {why}"))?;
            anyhow::ensure!(!columns.contains(&column), "--columns: `{name}` is named twice; leave one out");
            columns.push(column);
        }
        Ok(Some(TableStyle { coloured: coloured(), width: width(), columns }))
    }
}

/// The part of a study that is shown.
#[derive(Debug, Args)]
pub(super) struct SelectionArgs {
    /// Show only cells with this value of a swept key, such as load=0.9; the last part of the key is enough.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    at: Vec<(String, String)>,
    /// Show only the policies with these labels.
    #[arg(long, value_name = "LABEL")]
    policy: Vec<String>,
}

impl SelectionArgs {
    pub(super) fn selection(&self) -> Selection {
        Selection { policies: self.policy.clone(), at: self.at.clone() }
    }
}

/// The machines of a run with `--runtime hosts`.
#[derive(Debug, Args)]
pub(super) struct FleetArgs {
    /// The hosts file, as `volary certs` writes it; an agent runs on each host.
    #[arg(long, value_name = "FILE", conflicts_with = "spawn")]
    hosts: Option<PathBuf>,
    /// Wait this long for hosts that are busy with another run, such as 1h.
    #[arg(long, value_name = "SPAN", requires = "hosts", conflicts_with = "spawn")]
    wait: Option<Span>,
    /// Start this number of agents on this machine instead, with temporary identities.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    spawn: Option<u16>,
}

impl FleetArgs {
    pub(super) fn fleet(&self) -> Option<Fleet> {
        let wait = self.wait.unwrap_or(Span::ZERO);
        let hosts = self.hosts.clone().map(|file| Fleet::Hosts { file, wait });
        hosts.or_else(|| self.spawn.map(Fleet::Spawn))
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as load=0.9")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

fn repeat(text: &str) -> Result<Repeat, String> {
    text.parse().map_err(|()| "write a number of at least 1, or auto".to_owned())
}

pub(super) fn runtime(text: &str) -> Result<RuntimeKind, String> {
    match text {
        "virtual" => Ok(RuntimeKind::Virtual),
        "local" => Ok(RuntimeKind::Local),
        "hosts" => Ok(RuntimeKind::Hosts),
        _ => Err("expected virtual, local or hosts".to_owned()),
    }
}

/// The command line `argv` of a run or a validation, quoted for a shell and changed to run only what is missing in its
/// folder `out`. A folder that was merged from other folders has no such command line.
pub(super) fn command(argv: &[String], out: &Path) -> String {
    let out = out.display().to_string();
    let command = argv.iter().skip(1).find(|word| !word.starts_with('-'));
    if command.is_none_or(|command| !["run", "validate"].contains(&command.as_str())) {
        return format!(
            "the `volary run` of the experiment with --resume --out {}",
            command_line([out.as_str()])
        );
    }
    // Words after `--` are operands.
    let end = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    let (options, operands) = argv.split_at(end);
    let is_replaced = |at: usize| {
        let (name, _) = options[at].split_once('=').unwrap_or((&options[at], ""));
        let is_folder = at > 0 && options[at - 1] == "--out";
        is_folder || ["--out", "--resume"].contains(&name)
    };
    let kept = (0..end).filter(|at| !is_replaced(*at)).map(|at| options[at].as_str());
    let words = kept.chain(["--resume", "--out", &out]).chain(operands.iter().map(String::as_str));
    command_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_resume_repeats_no_option() {
        for (argv, expected) in [
            ("volary -v run e.toml", "volary -v run e.toml --resume --out r"),
            ("volary run e.toml --out other --json", "volary run e.toml --json --resume --out r"),
            ("volary run --out=r e.toml --resume=auto", "volary run e.toml --resume --out r"),
            ("volary validate e.toml --speed 9", "volary validate e.toml --speed 9 --resume --out r"),
            ("volary run --resume -- --out", "volary run --resume --out r -- --out"),
            ("volary report run b --out r", "the `volary run` of the experiment with --resume --out r"),
        ] {
            let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
            assert_eq!(command(&argv, Path::new("r")), expected);
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let argv = ["volary", "run", "my run.toml", "--set", "a='1s'", "--set", "b={c=[1,2]}"];
        let expected =
            r"volary run 'my run.toml' --set 'a='\''1s'\''' --set 'b={c=[1,2]}' --resume --out 'r 2'";
        assert_eq!(command(&argv.map(str::to_owned), Path::new("r 2")), expected);
    }
}
