//! The `volary` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    volary::cli::main()
}
