//! Injections that an experiment schedules: `[[interference.injection]]`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use volary_actors::base::{Span, Time};
use volary_netem::Target;

use super::config::{Interference, ProfileError};
use super::injection::Injection;
use super::profile::Profile;
use super::set::CoreSet;

/// An injection that the experiment schedules: for some time a profile replaces `[interference]` on some cores, at the
/// same emulated time under every policy and in every runtime. `who` and `cores` are united; without both, all cores
/// are meant. Slot k of the profile is the same as if `[interference]` named it, under the seed of the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InjectionSpec {
    /// A profile file, relative to the file that names it, or the keys of a profile: `{ bernoulli = { … } }`.
    #[schemars(schema_with = "file_or_keys")]
    pub profile: Interference,
    /// Nodes, all of whose cores are meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<Target>,
    /// Cores by number, across all nodes, such as `0-5,8`.
    #[serde(default, skip_serializing_if = "CoreSet::is_empty")]
    #[schemars(with = "String")]
    pub cores: CoreSet,
    /// When it begins, since the run's start.
    pub at: Span,
    /// How long it lasts. Default: until the run ends.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Span>,
}

/// The schema of a profile inside an experiment. It does not repeat the keys of `[interference]`.
fn file_or_keys(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "object"] })
}

/// A scheduled injection with its profile, which refers to no file any more.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledInjection {
    /// What the experiment says; its profile is that of `profile`.
    pub spec: InjectionSpec,
    profile: Profile,
}

impl ScheduledInjection {
    /// Checks the profile of an injection and reads its trace, relative to `folder`, with `read`.
    ///
    /// # Errors
    /// As [`Interference::load`].
    pub fn load(
        mut spec: InjectionSpec,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<Self, ProfileError> {
        let profile = spec.profile.load(folder, read)?;
        spec.profile = profile.table.clone();
        Ok(Self { spec, profile })
    }

    /// The injection into these cores.
    pub(crate) fn into_cores(&self, cores: CoreSet, seed: u64) -> Injection {
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
