//! The `volary completions` command.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use volary_actors::policies::PolicySpec;

use super::output::print_exact;

/// Print a script that completes volary's command line in a shell.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The shell for which the script is written.
    shell: Shell,
}

pub(super) fn main(options: &Options, command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut suggesting(command), "volary", &mut script);
    print_exact(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line with the names of policies as suggestions. A policy is labelled by its name by default; the parser
/// itself accepts any label.
fn suggesting(command: clap::Command) -> clap::Command {
    let names = || PossibleValuesParser::new(PolicySpec::cards().iter().map(|card| card.name));
    let labelled = ["run", "plan", "validate", "compare", "plot"];
    let command = command.mut_subcommand("policies", |c| c.mut_arg("name", |arg| arg.value_parser(names())));
    labelled.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |c| c.mut_arg("policy", |arg| arg.value_parser(names())))
    })
}
