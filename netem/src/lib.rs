//! A network emulator as a pure, seeded crate: what happens to a message sent now from here to there?

#![forbid(unsafe_code)]
