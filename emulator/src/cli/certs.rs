//! The `volary certs` command.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use volary_hosts::cluster::net::Host;
use volary_hosts::cluster::net::identity::written;
use volary_hosts::cluster::net::issue::{IssueRequest, Issued, issue};

use super::output::print;

/// Make identities for hosts: an authority, a certificate for each host, and a certificate for the controller.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A new folder; or a folder that was made with --keep-ca, to which hosts are added.
    dir: PathBuf,
    /// A host and its agent's address, such as h1=10.77.0.2:4433.
    #[arg(long = "host", value_name = "NAME=ADDR", required = true, value_parser = host)]
    hosts: Vec<Host>,
    /// Days for which the identities are valid.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Keep the authority's key: hosts can then be added later. Anyone who has the key can impersonate any host.
    #[arg(long)]
    keep_ca: bool,
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let Options { dir, hosts, days, keep_ca } = options;
    let request =
        IssueRequest { hosts: hosts.clone(), days: *days, keep_ca: *keep_ca, now: SystemTime::now() };
    print(&summary(&issue(dir, &request)?))?;
    Ok(ExitCode::SUCCESS)
}

/// The text about the issued identities and the next steps.
fn summary(issued: &Issued) -> String {
    let mut text = format!("valid until {} UTC:\n", written(issued.until));
    for folder in &issued.folders {
        let _ = writeln!(text, "  {}", folder.display());
    }
    let _ = writeln!(
        text,
        "copy each host's folder to that host and start `volary agent --listen ADDR --identity FOLDER`;"
    );
    let _ = writeln!(text, "then `volary run EXPERIMENT --runtime hosts --hosts {}`", issued.hosts.display());
    text
}

fn host(text: &str) -> Result<Host, String> {
    let (name, address) = text.split_once('=').ok_or("write NAME=ADDRESS:PORT, such as h1=10.77.0.2:4433")?;
    Ok(Host::new(name.to_owned(), super::agent::address(address)?))
}
