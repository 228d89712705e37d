//! Values that the programs of policies in other languages record.

use std::collections::BTreeMap;

use volary_actors::base::{ActorId, Time};
use volary_actors::machine::{Note, ValueName};

use super::PolicyMetric;
use super::gauge::Gauge;
use crate::results::PolicyResults;

/// A gauge for each name.
#[derive(Debug, Default)]
pub struct ValueGauges(BTreeMap<ValueName, Gauge>);

impl PolicyMetric for ValueGauges {
    #[inline]
    fn note(&mut self, _: Time, _: ActorId, note: Note) {
        if let Note::Value { name, bits } = note {
            self.0.entry(name).or_default().add(f64::from_bits(bits), 1);
        }
    }

    fn close(self, _: Time, _: Time, results: &mut PolicyResults) {
        let named = |(name, gauge): (ValueName, Gauge)| Some((name.as_str()?.to_owned(), gauge.spread()));
        results.values = self.0.into_iter().filter_map(named).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_summed_up_by_name() {
        let mut gauges = ValueGauges::default();
        for (name, value) in [("queue", 1.0f64), ("idle", 7.0), ("queue", 3.0)] {
            let name = ValueName::new(name).unwrap();
            gauges.note(Time::ZERO, ActorId(0), Note::Value { name, bits: value.to_bits() });
        }
        let mut results = PolicyResults::default();
        gauges.close(Time::ZERO, Time::ZERO, &mut results);
        let means: Vec<_> =
            results.values.iter().map(|(name, spread)| (name.as_str(), spread.mean)).collect();
        assert_eq!(means, [("idle", 7.0), ("queue", 2.0)]);
        assert_eq!(["", "a b", "seventeen_letters"].map(ValueName::new), [None; 3]);
    }
}
