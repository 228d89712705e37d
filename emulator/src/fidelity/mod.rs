//! How far a real run departed from what was asked.
//!
//! | module | what it holds |
//! |---|---|
//! | [`gauge`] | lateness and delays, as shards measure them |

pub mod gauge;
