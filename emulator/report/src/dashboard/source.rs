//! The sources of snapshots.

use super::folder::RunFolder;
use super::snapshot::Snapshot;
use super::state::Dashboard;

/// Something that the page can show.
pub trait SnapshotSource: Send + Sync {
    /// Takes a snapshot.
    fn snapshot(&self) -> Snapshot;
    /// Asks for details during the next seconds.
    fn request_details(&self);
}

impl SnapshotSource for Dashboard {
    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    fn request_details(&self) {
        Self::request_details(self);
    }
}

impl SnapshotSource for RunFolder {
    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    /// Nothing is requested: files hold all that is shown.
    fn request_details(&self) {}
}
