//! Interference injected into a run, by somebody who is neither its controller nor one of its hosts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`words`] | what injector and agents say to each other |
//! | [`injector`] | the injector: asks agents, has them inject, and waits |
//! | `line` | its line to an agent |
//! | `serve` | what an agent does for an injector |
//! | `stage` | a unit on an agent, as injectors meet it |
//! | `ledger` | what the controller hears of it |

pub mod injector;
pub(super) mod ledger;
mod line;
pub(super) mod serve;
pub(super) mod stage;
pub mod words;
