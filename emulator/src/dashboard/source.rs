//! The sources of snapshots.

use super::folder::RunFolder;
use super::snapshot::Snapshot;
use super::state::Dashboard;

/// Something that the page can show.
pub trait SnapshotSource: Send + Sync {
    /// What it is like now.
    ///
    /// # Errors
    /// It cannot be read any more; the text says why.
    fn snapshot(&self) -> Result<Snapshot, String>;
    /// Somebody will look for some seconds.
    fn want(&self);
}

impl SnapshotSource for Dashboard {
    fn snapshot(&self) -> Result<Snapshot, String> {
        Ok(Self::snapshot(self))
    }

    fn want(&self) {
        Self::want(self);
    }
}

impl SnapshotSource for RunFolder {
    fn snapshot(&self) -> Result<Snapshot, String> {
        Self::snapshot(self).map_err(|error| error.to_string())
    }

    /// Nothing is requested: files hold all that is shown.
    fn want(&self) {}
}
