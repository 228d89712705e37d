//! Execution in real time, in one process and on hosts. Without the feature `hosts`, such runs are refused.

/// The error for a run in real time if the program was built without the feature `hosts`.
pub const WITHOUT_HOSTS: &str = "this program was built without runs in real time: run with --runtime virtual, or build \
                                 it with the feature `hosts`";

#[cfg(feature = "hosts")]
pub use volary_hosts::cluster::controller::Controller;
#[cfg(feature = "hosts")]
pub use volary_hosts::cluster::error::{HostsError, InjectError};
#[cfg(feature = "hosts")]
pub use volary_hosts::cluster::recorded::as_recorded;
#[cfg(feature = "hosts")]
pub use volary_hosts::cluster::remove_identities;
#[cfg(feature = "hosts")]
pub use volary_hosts::{executor, local};
#[cfg(not(feature = "hosts"))]
pub use without::{
    Controller, HostsError, HostsError as InjectError, as_recorded, executor, local, remove_identities,
};

/// Replacements in a program without the feature `hosts`. Each function returns an error, or is never called.
#[cfg(not(feature = "hosts"))]
mod without {
    use std::io;
    use std::path::Path;

    use volary_engine::results::{Injected, Measured};
    use volary_engine::world::World;
    use volary_experiment::config::{Experiment, RunSection};
    use volary_experiment::control::{Fleet, RunError, StudyControl};
    use volary_experiment::storage::input_log::RunLog;
    use volary_experiment::storage::manifest::HostRecord;

    /// The error of a program without the feature.
    #[derive(Debug, thiserror::Error)]
    #[error("{}", super::WITHOUT_HOSTS)]
    pub struct HostsError;

    impl HostsError {
        pub const fn is_input(&self) -> bool {
            true
        }
    }

    pub fn as_recorded(_: &Experiment, _: &Fleet, _: &Path) -> Result<String, HostsError> {
        Err(HostsError)
    }

    /// The controller of a program without the feature; it is never constructed.
    #[derive(Debug)]
    pub enum Controller {}

    /// Dropping the real controller releases its hosts.
    impl Drop for Controller {
        fn drop(&mut self) {}
    }

    impl Controller {
        pub fn open(_: &Fleet, _: &Experiment, _: &StudyControl) -> Result<Self, HostsError> {
            Err(HostsError)
        }

        pub fn remove_lost_hosts(&mut self) -> bool {
            match *self {}
        }

        pub fn unused(&self) -> Vec<HostRecord> {
            match *self {}
        }

        pub fn held(&self, _: &World, _: &str) -> Vec<HostRecord> {
            match *self {}
        }

        pub fn injected(&mut self) -> Vec<Injected> {
            match *self {}
        }

        pub fn keep_logs_in(&self, _: &Path) -> io::Result<()> {
            match *self {}
        }

        pub fn measure(
            &mut self,
            _: &str,
            _: &World,
            _: usize,
            _: &RunSection,
            _: Option<&RunLog>,
            _: &StudyControl,
        ) -> Result<Measured, RunError> {
            match *self {}
        }
    }

    pub mod local {
        use super::{HostsError, Measured, RunError, RunLog, RunSection, StudyControl, World};

        pub fn measure(
            _: &str,
            _: &str,
            _: World,
            _: &RunSection,
            _: usize,
            _: Option<RunLog>,
            _: &StudyControl,
        ) -> Result<Measured, RunError> {
            Err(RunError::Refused(HostsError.to_string()))
        }
    }

    pub mod executor {
        use volary_experiment::config::RealSection;

        /// The CPUs that can burn work; empty without the feature.
        pub const fn free_cpus() -> Vec<u16> {
            Vec::new()
        }

        pub fn assign_cpus(_: &RealSection, _: usize, _: &[u16]) -> Result<(), String> {
            Err(super::HostsError.to_string())
        }
    }

    /// Does nothing, since there are no identities.
    pub const fn remove_identities() {}
}
