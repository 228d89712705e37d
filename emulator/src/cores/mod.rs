//! Interference, and the exact time a core needs for work.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | the `[interference]` table and profile files |
//! | [`load`] | reading them: files, checks |
//! | [`table`] | node, rack and speed of every core |

pub mod config;
pub mod load;
pub mod table;

pub use config::{Interference, Scope};
pub use load::{Profile, ProfileError};
pub use table::CoreTable;
