//! What the manifest says of hosts.

use std::io;
use std::path::Path;

use super::error::io as failed;
use super::{Error, LOGS, RunDir};
use crate::guard::guard;
use crate::record::hosts::{self, HostRecord};
use crate::record::manifest::Manifest;
use crate::results::{Injected, Summary};

impl RunDir {
    /// Has the logs of hosts kept in the folder's `logs/`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_logs(&self, keep_in: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let logs = self.root.join(LOGS);
        keep_in(&logs).map_err(failed("write", &logs))
    }

    /// Notes which hosts hold what in a cell, and which of them were lost in it so far.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn held(&self, hosts: &[HostRecord]) -> Result<(), Error> {
        self.note(|manifest| hosts::add(manifest.hosts.get_or_insert_default(), hosts))
    }

    /// Notes what was injected into a cell, instead of what was when it was tried before.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn injected(&self, cell: &str, injections: Vec<Injected>) -> Result<(), Error> {
        if injections.is_empty() && !self.is_injected(cell) {
            return Ok(());
        }
        self.note(|manifest| {
            manifest.injections.insert(cell.to_owned(), injections);
            manifest.injections.retain(|_, of| !of.is_empty());
        })
    }

    /// Whether something was injected into a cell.
    #[must_use]
    pub fn is_injected(&self, cell: &str) -> bool {
        guard(&self.manifest).injections.contains_key(cell)
    }

    /// Notes how wrong clocks can have been in a cell that was run on hosts.
    pub(super) fn clock_error(&self, summary: &Summary) -> Result<(), Error> {
        let on_hosts = guard(&self.manifest).hosts.is_some();
        let Some(certificate) = summary.fidelity.as_ref().filter(|_| on_hosts) else { return Ok(()) };
        let bounds = certificate.hosts.iter().map(|host| host.clock.bound_s);
        self.note(|manifest| {
            manifest.clock_error_s = bounds.chain(manifest.clock_error_s).reduce(f64::max);
        })
    }
}

/// Adds what another manifest of the same experiment says of hosts and of injections into its cells:
/// an earlier one of the folder, or a share's.
pub(super) fn unite(manifest: &mut Manifest, other: &Manifest) {
    if let Some(more) = &other.hosts {
        hosts::add(manifest.hosts.get_or_insert_default(), more);
    }
    for (cell, injections) in &other.injections {
        manifest.injections.entry(cell.clone()).or_insert_with(|| injections.clone());
    }
    let errors = [manifest.clock_error_s, other.clock_error_s];
    manifest.clock_error_s = errors.into_iter().flatten().reduce(f64::max);
}
