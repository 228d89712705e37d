//! The command line: one file per subcommand.
//!
//! Results and tables go to stdout, logs and progress to stderr. Exit status: 0 for success; 1 if a claim failed or a
//! runtime diverged with `--check`, or if a replay differs; 2 for invalid usage or input; 3 if the run could not
//! finish; 130 after a second Ctrl-C.

#[cfg(feature = "hosts")]
mod agent;
mod args;
#[cfg(feature = "hosts")]
mod certs;
mod command;
mod compare;
mod completions;
mod export;
#[cfg(feature = "hosts")]
mod inject;
mod live;
mod log;
mod output;
mod plan;
#[cfg(feature = "figures")]
mod plot;
mod policies;
mod profile;
mod progress;
#[cfg(feature = "hosts")]
mod record;
mod replay;
mod report;
mod run;
mod schema;
#[cfg(feature = "hosts")]
mod status;
mod topology;
mod trace;
mod validate;
#[cfg(feature = "figures")]
mod watch;

pub use command::{main, main_with};
