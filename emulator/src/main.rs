//! The `volary` binary.

fn main() {}
