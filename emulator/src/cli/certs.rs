//! `volary certs`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;

use super::print;
use crate::transport::issue::{Order, issue};

/// Make identities for the hosts of a run, and the hosts file.
///
/// Each host needs its own folder and nothing else; the controller needs the hosts file and its own folder. The
/// authority's key is thrown away, so nobody can be added later, unless it is kept.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The folder to make.
    folder: PathBuf,
    /// A host: its name and where its agent will listen.
    #[arg(long, value_name = "NAME=ADDR:PORT", required = true, value_parser = host)]
    host: Vec<(String, SocketAddr)>,
    /// How long they are valid.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Keep the authority's key.
    #[arg(long)]
    keep_ca: bool,
}

fn host(text: &str) -> Result<(String, SocketAddr), String> {
    let (name, address) = text.split_once('=').ok_or("write NAME=ADDR:PORT, such as h1=10.77.0.2:4433")?;
    let address = address.parse().map_err(|_| format!("\"{address}\" is no address and port"))?;
    Ok((name.to_owned(), address))
}

pub(super) fn main(options: &Options) -> anyhow::Result<ExitCode> {
    let order = Order {
        hosts: options.host.clone(),
        days: options.days,
        keep_ca: options.keep_ca,
        now: SystemTime::now(),
    };
    let issued = issue(&options.folder, &order)?;
    let until = chrono::DateTime::<chrono::Utc>::from(issued.until).format("%Y-%m-%d");
    let mut text =
        format!("valid until {until}; each host needs its own folder, the controller the hosts file too:\n");
    for folder in &issued.folders {
        text.push_str(&format!("  {}\n", folder.display()));
    }
    print(&format!("{text}hosts file: {}", issued.hosts.display()))?;
    Ok(ExitCode::SUCCESS)
}
