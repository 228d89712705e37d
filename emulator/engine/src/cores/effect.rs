//! The effect of interference on cores over a length of time.

use volary_actors::base::Time;

use super::Cores;
use super::profile::Burst;

/// The effect of interference on cores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// Share of the time in which the cores were degraded.
    pub degraded: f64,
    /// Work that the cores could do, relative to healthy cores.
    pub throughput: f64,
}

/// Maximum number of slots, or gaps and bursts, that are visited for the effect on the cores of a run.
const MOST_STRETCHES: f64 = 1e6;

impl Effect {
    /// The effect of bursts on cores, over `time` seconds of all cores together.
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

impl Cores {
    /// The effect of all interference, injections included, from the start of the run until `end`, and the number of
    /// cores that were counted: all, or as many, evenly spaced, as have a million slots together. `None` without
    /// interference, without time, or if already one core has more slots.
    pub fn effect(&self, end: Time) -> Option<(Effect, u32)> {
        let injected = self.injections.iter().map(|injected| &injected.profile);
        let stretches = self.profile.iter().chain(injected).map(|profile| profile.stretch_s());
        let time = end.since(Time::ZERO).as_secs_f64();
        let of_core = (time / stretches.reduce(f64::min)?).max(1.0);
        let all = self.table.cores();
        let counted = all.min((MOST_STRETCHES / of_core) as u32);
        if counted == 0 || time <= 0.0 {
            return None;
        }
        let evenly = (0..u64::from(counted)).map(|i| (i * u64::from(all) / u64::from(counted)) as u32);
        let bursts = evenly.flat_map(|core| self.bursts(core, Time::ZERO, end));
        Some((Effect::of(bursts, time * f64::from(counted)), counted))
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::Span;
    use volary_netem::Windows;

    use super::*;
    use crate::cores::{CoreSet, CoreTable, Injection, Interference, Profile};

    fn profile(text: &str) -> Profile {
        toml::from_str::<Interference>(text).unwrap().resolve().unwrap()
    }

    fn cores(text: &str, count: u32) -> Cores {
        Cores::new(Some(&profile(text)), CoreTable::equal(count, 1), Windows::default(), 7)
    }

    #[test]
    fn the_effect_is_what_bursts_add_up_to() {
        let text = r#"scripted = { slot = "1s", rows = [[0,1,1,1],[0,0,1,0]], slowdown = 4 }"#;
        let mut cores = cores(text, 4);
        // Four of sixteen seconds are degraded.
        let (effect, counted) = cores.effect(Time::ZERO + Span::from_secs(4)).unwrap();
        assert_eq!((effect.degraded, counted), (0.25, 4));
        assert!((effect.throughput - (1.0 - 0.25 * 0.75)).abs() < 1e-12);
        assert_eq!(cores.effect(Time::ZERO), None, "no time, no share");
        cores.inject(&Injection {
            profile: profile(r#"trace.rows = [{ unit = 2, start = "0s", end = "9s", slowdown = 2 }]"#),
            seed: 1,
            cores: CoreSet::below(4),
            from: Time::ZERO,
            until: Time::MAX,
        });
        let injected = cores.effect(Time::ZERO + Span::from_secs(4)).unwrap().0;
        assert_eq!(
            (injected.degraded, injected.throughput),
            (0.25, 0.875),
            "one core of four, at half speed"
        );
        assert_eq!(Cores::new(None, CoreTable::equal(4, 1), Windows::default(), 7).effect(Time::MAX), None);
    }

    /// A run with many slots is estimated from some of its cores.
    #[test]
    fn many_slots_are_sampled() {
        let cores = cores(r#"bernoulli = { slot = "10ms", probability = 0.3, slowdown = 3.0 }"#, 1_000);
        let (effect, counted) = cores.effect(Time::ZERO + Span::from_secs(100)).unwrap();
        assert_eq!(counted, 100);
        assert!((effect.degraded - 0.3).abs() < 0.003, "{effect:?}");
        assert_eq!(cores.effect(Time::ZERO + Span::from_secs(100_000)), None);
    }
}
