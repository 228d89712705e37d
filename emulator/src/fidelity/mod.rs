//! How far a real run departed from what was asked.
//!
//! | module | what it holds |
//! |---|---|
//! | [`gauge`] | lateness and delays, as shards measure them |
//! | [`vitals`] | what a host tells of itself |
//! | [`certificate`] | asked against achieved, as it stands in results |
//! | [`measure`] | a certificate from what was measured |
//! | [`work`] | what copies and interference came to on real cores |
//! | [`judge`] | the thresholds, and the verdict |

pub mod certificate;
#[cfg(test)]
pub(crate) mod fixture;
pub mod gauge;
pub mod judge;
pub mod measure;
pub mod vitals;
pub mod work;

pub use certificate::{Certificate, Compared, Standing};
pub use vitals::HostVitals;
pub use work::{RealWork, Worked};
