//! The `volary` program with one more policy, `reserved`.

mod messages;
mod node;
mod policy;
mod scheduler;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use volary::cli::main_with;
use volary_actors::policies::Registry;

use messages::Reservation;
use policy::Reserved;

fn main() -> ExitCode {
    main_with(Registry::ours().with::<Reserved>("reserved").with_messages::<Reservation>())
}
