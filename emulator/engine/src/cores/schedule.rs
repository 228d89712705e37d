//! Injections that an experiment schedules: `[[interference.injection]]`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use volary_actors::base::Time;

use super::config::{InjectionSpec, ProfileError};
use super::injection::Injection;
use super::profile::Profile;
use super::set::CoreSet;

/// A scheduled injection with its loaded profile.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledInjection {
    /// The section of the experiment; its profile is that of `profile`.
    pub spec: InjectionSpec,
    profile: Profile,
}

impl ScheduledInjection {
    /// Checks the profile of an injection and reads its trace, relative to `folder`, with `read`.
    ///
    /// # Errors Those of [`Interference::load`](super::Interference::load).
    pub fn load(
        mut spec: InjectionSpec,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<Self, ProfileError> {
        let profile = spec.profile.load(folder, read)?;
        spec.profile = profile.table.clone();
        Ok(Self { spec, profile })
    }

    /// The injection over these cores.
    pub(crate) fn over(&self, cores: CoreSet, seed: u64) -> Injection {
        let from = Time::ZERO + self.spec.at;
        let until = self.spec.lasting.map_or(Time::MAX, |lasting| from + lasting);
        Injection { profile: self.profile.clone(), seed, cores, from, until }
    }
}

impl Serialize for ScheduledInjection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.spec.serialize(serializer)
    }
}
