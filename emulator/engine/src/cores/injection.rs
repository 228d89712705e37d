//! Injected interference, and the effect of interference on cores. An injection applies another profile to some cores
//! for some time. It is made during a run or scheduled by the experiment (`[[interference.injection]]`).
//!
//! The past of a core does not change. A copy that began before the injection is recomputed from its start, so the
//! result is as exact as if the injection had been known from the beginning.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use volary_actors::base::Time;

use super::config::{InjectionSpec, ProfileError};
use super::profile::{Burst, Cursor, Profile, SeededProfile, joined};
use super::table::CoreTable;
use volary_actors::base::CoreSet;

/// Another profile for some cores and a limited time.
#[derive(Clone, PartialEq, Debug)]
pub struct Injection {
    /// The profile, in times of the run: slot k is the same as if the experiment named the profile, regardless of when
    /// the injection begins.
    pub profile: Profile,
    /// Seed of the draws of the profile.
    pub seed: u64,
    /// The cores to which the profile applies.
    pub cores: CoreSet,
    /// Start of the injection.
    pub from: Time,
    /// End of the injection; [`Time::MAX`] while the end is not known.
    pub until: Time,
}

/// Maximum number of slots, or gaps and bursts, that are visited to compute an effect.
const MOST_STRETCHES: f64 = 1e7;

impl Injection {
    /// The effect on the cores of a table from the beginning to the end of the injection, without other injections;
    /// `None` if the injection has no length or too many slots.
    pub fn effect(&self, table: &CoreTable) -> Option<Effect> {
        let length = self.until.since(self.from).as_secs_f64();
        let time = length * self.cores.count() as f64;
        if time <= 0.0 || time / self.profile.stretch_s() > MOST_STRETCHES {
            return None;
        }
        let profile = SeededProfile::new(&self.profile, self.seed);
        let units = self.cores.iter().filter_map(|core| profile.unit(table, core));
        let bursts =
            units.flat_map(|unit| joined(profile.bursts(unit, Cursor::NOWHERE, self.from, self.until)));
        Some(Effect::of(bursts, time))
    }
}

/// The effect of interference on cores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// Share of the time in which the cores were degraded.
    pub degraded: f64,
    /// Work that the cores could do, relative to healthy cores.
    pub throughput: f64,
}

impl Effect {
    /// The effect of `bursts` within `time`, in core-seconds.
    pub(super) fn of(bursts: impl Iterator<Item = Burst>, time: f64) -> Self {
        let (mut degraded, mut lost) = (0.0, 0.0);
        for burst in bursts {
            let length = burst.length().as_secs_f64();
            degraded += length;
            lost += length * (1.0 - 1.0 / burst.slowdown);
        }
        Self { degraded: degraded / time, throughput: 1.0 - lost / time }
    }
}

/// A scheduled injection with its loaded profile.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledInjection {
    /// The section of the experiment; its profile equals `profile`.
    pub spec: InjectionSpec,
    profile: Profile,
}

impl ScheduledInjection {
    /// Checks the profile of an injection and reads its trace, relative to `folder`, with `read`.
    ///
    /// # Errors
    /// The errors of [`Interference::load`](super::Interference::load).
    pub fn load(
        mut spec: InjectionSpec,
        folder: &Path,
        read: impl FnOnce(&Path) -> io::Result<Arc<[u8]>>,
    ) -> Result<Self, ProfileError> {
        let profile = spec.profile.load(folder, read)?;
        spec.profile = profile.table.clone();
        Ok(Self { spec, profile })
    }

    /// This injection, applied to `cores` under `seed`.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use volary_actors::base::Span;
    use volary_netem::Windows;

    use super::*;
    use crate::cores::{Burst, CoreTable, Cores, Interference};

    const PROFILES: [&str; 6] = [
        r#"bernoulli = { slot = "100ms", probability = 0.3, slowdown = 3.0 }"#,
        r#"bernoulli = { slot = "7ms", probability = 0.5, slowdown = { uniform = { low = 1.0, high = 9.0 } } }"#,
        r#"markov = { slot = "50ms", p_on = 0.1, p_off = 0.3, slowdown = 4.0 }"#,
        r#"renewal = { gap = { exponential = { mean = "1s" } }, burst = { pareto = { scale = "100ms", shape = 1.5 } }, slowdown = 2.5 }"#,
        r#"scripted = { slot = "300ms", rows = [[1,0],[1,1,0]], slowdown = 5.0, repeat = true }"#,
        "scope = \"node\"\nmarkov = { slot = \"50ms\", p_on = 1.0, p_off = 0.5, slowdown = { lognormal = { median = 2.0, sigma = 1.0 } } }",
    ];

    fn load(text: &str) -> Profile {
        toml::from_str::<Interference>(text).unwrap().resolve().unwrap()
    }

    fn within(text: &str, from: Time, until: Time) -> Profile {
        let mut profile = load(text);
        (profile.from, profile.until) = (from, until);
        profile
    }

    fn cores(profile: Option<&Profile>, speed: f64, paused: bool) -> Cores {
        let pause = |node, from, until| (node, Time(from), Time(until));
        let pauses = [pause(0, 300_000_000, 700_000_000), pause(1, 2_500_000_000, 4_000_000_000)];
        let pauses = Windows::new(pauses.into_iter().filter(|_| paused), 2);
        Cores::new(profile, CoreTable::equal(2, 2).with_speeds(vec![speed; 4]), pauses, 3)
    }

    fn all(text: &str, seed: u64, from: Time, until: Time) -> Injection {
        Injection { profile: load(text), seed, cores: CoreSet::below(4), from, until }
    }

    /// The history of a copy: the time at which it finished, and the work left at the given times.
    fn followed(cores: &mut Cores, core: u32, due: Time, looks: &[u64]) -> (Time, Vec<Span>) {
        let left = looks.iter().map(|&at| cores.left(core, Time(at))).collect();
        cores.finished(core, due);
        (due, left)
    }

    fn times() -> impl Strategy<Value = (u64, u64, u64, u64)> {
        (0u64..4_000_000_000, 0u64..3_000_000_000, 0u64..5_000_000_000, 1u64..3_000_000_000)
    }

    proptest! {
        /// An injection gives the same finish times, to the nanosecond, as the same interference in the experiment.
        /// This holds for a copy that began before, during or after the injection, and for a known or unknown end.
        #[test]
        fn an_injection_equals_the_same_interference_in_the_experiment(
            which in 0..PROFILES.len(), speed in prop_oneof![Just(1.0), 0.3f64..4.0], paused in any::<bool>(),
            (start, work, from, length) in times(), lifted in any::<bool>(), core in 0u32..4,
        ) {
            let (text, from, until) = (PROFILES[which], Time(from), Time(from + length));
            let mut foreseen = cores(Some(&within(text, from, until)), speed, paused);
            let mut injected = cores(None, speed, paused);
            let looks = [start + 1, from.0, from.0 + length / 2, until.0 + 7];
            let looks: Vec<_> = looks.into_iter().filter(|&at| at >= start).collect();
            let expected = foreseen.start(core, Time(start), Span(work));
            let injection = all(text, 3, from, if lifted { Time::MAX } else { until });
            // In order of time.
            let mut due = None;
            if start < from.0 {
                due = Some(injected.start(core, Time(start), Span(work)));
            }
            let number = injected.inject(&injection);
            if due.is_some_and(|due| due > from) {
                due = injected.retime(core).or(due);
            } else if due.is_none() && start < until.0 {
                due = Some(injected.start(core, Time(start), Span(work)));
            }
            if lifted {
                injected.lift(number, until);
                if due.is_some_and(|due| due > until) {
                    due = injected.retime(core).or(due);
                }
            }
            let due = due.unwrap_or_else(|| injected.start(core, Time(start), Span(work)));
            prop_assert_eq!(due, expected);
            prop_assert_eq!(followed(&mut injected, core, due, &looks), followed(&mut foreseen, core, due, &looks));
            let bursts = |cores: &Cores| cores.bursts(core, Time::ZERO, Time(9_000_000_000)).collect::<Vec<_>>();
            prop_assert_eq!(bursts(&injected), bursts(&foreseen));
            prop_assert_eq!(injected.rate(core, from), foreseen.rate(core, from));
        }

        /// Injections of the profile that applies anyway change no finish time.
        #[test]
        fn no_work_is_lost_at_the_edges_of_injections(
            which in 0..PROFILES.len(), speed in prop_oneof![Just(1.0), 0.3f64..4.0], paused in any::<bool>(),
            start in 0u64..2_000_000_000, work in 0u64..3_000_000_000, core in 0u32..4,
            mut edges in prop::collection::vec(0u64..6_000_000_000, 2..12),
        ) {
            let profile = load(PROFILES[which]);
            let (mut whole, mut cut) = (cores(Some(&profile), speed, paused), cores(Some(&profile), speed, paused));
            let due = whole.start(core, Time(start), Span(work));
            prop_assert_eq!(cut.start(core, Time(start), Span(work)), due);
            edges.sort_unstable();
            for (i, pair) in edges.windows(2).enumerate() {
                let (from, until) = (Time(pair[0].max(start)), Time(pair[1].max(start)));
                let number = cut.inject(&all(PROFILES[which], 3, from, if i % 2 == 0 { until } else { Time::MAX }));
                prop_assert_eq!(cut.retime(core), None);
                cut.lift(number, until);
                prop_assert_eq!(cut.retime(core), None);
            }
            let looks: Vec<_> = edges.into_iter().filter(|&at| at >= start).collect();
            prop_assert_eq!(followed(&mut cut, core, due, &looks), followed(&mut whole, core, due, &looks));
            let bursts = |cores: &Cores| cores.bursts(core, Time::ZERO, Time(9_000_000_000)).collect::<Vec<_>>();
            prop_assert_eq!(bursts(&cut), bursts(&whole));
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn at(s: f64) -> Time {
        Time((s * 1e9) as u64)
    }

    /// An injection with a constant slowdown.
    fn by(slowdown: f64, cores: &str, from: Time, until: Time) -> Injection {
        let profile =
            load(&format!("bernoulli = {{ slot = \"1s\", probability = 1.0, slowdown = {slowdown:?} }}"));
        Injection { profile, seed: 1, cores: cores.parse().unwrap(), from, until }
    }

    #[test]
    fn an_injection_changes_only_copies_on_its_cores() {
        let mut cores = cores(None, 1.0, false);
        for core in 0..3 {
            assert_eq!(cores.start(core, Time::ZERO, Span(3 * SECOND)), at(3.0));
        }
        let four = cores.inject(&by(4.0, "0,2", at(1.0), Time::MAX));
        let due: Vec<_> = (0..4).map(|core| cores.retime(core)).collect();
        assert_eq!(due, [Some(at(9.0)), None, Some(at(9.0)), None], "core 3 is idle");
        cores.lift(four, at(5.0));
        assert_eq!(
            [cores.retime(0), cores.retime(0)],
            [Some(at(6.0)), None],
            "two thirds done, and only once"
        );
        assert_eq!(cores.left(2, at(5.0)), Span(SECOND));
    }

    /// The latest of overlapping injections applies; when it ends, earlier injections apply again.
    #[test]
    fn the_latest_of_overlapping_injections_applies() {
        let base = load(r#"bernoulli = { slot = "1s", probability = 1.0, slowdown = 8.0 }"#);
        let mut cores = cores(Some(&base), 1.0, false);
        cores.inject(&by(2.0, "0-3", at(1.0), at(9.0)));
        cores.inject(&by(4.0, "0", at(3.0), at(5.0)));
        let never = cores.inject(&by(100.0, "0", at(6.0), Time::MAX));
        cores.lift(never, at(2.0));
        let found: Vec<_> = cores.bursts(0, Time::ZERO, at(10.0)).collect();
        let expected = [(0.0, 1.0, 8.0), (1.0, 3.0, 2.0), (3.0, 5.0, 4.0), (5.0, 9.0, 2.0), (9.0, 10.0, 8.0)];
        let burst = |(start, end, slowdown)| Burst { start: at(start), end: at(end), slowdown };
        assert_eq!(found, expected.map(burst));
        assert_eq!(
            [0.5, 2.0, 4.0, 7.0, 9.5].map(|s| cores.rate(0, at(s)).recip()),
            [8.0, 2.0, 4.0, 2.0, 8.0]
        );
        assert_eq!(cores.start(0, Time::ZERO, Span(4 * SECOND + SECOND / 8 - SECOND / 2)), at(9.0));
    }
}
