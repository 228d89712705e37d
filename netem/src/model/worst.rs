//! The longest delays and highest losses of a network, from which waits are derived.

use volary_actors::base::Span;

use crate::config::Network;
use crate::error::Error;
use crate::faults::{Degraded, Faults};
use crate::links::Links;
use crate::model::{self, Model};

/// The longest delays and highest losses of a network. Links that are degraded for a time are treated as always
/// degraded.
#[derive(Clone, Debug)]
pub struct Worst {
    models: Vec<Model>,
    degraded: Degraded,
}

impl Worst {
    /// The bounds for a network with these links and faults.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::new`](crate::Fabric::new).
    pub fn of(network: &Network, links: &Links, faults: &Faults) -> Result<Self, Error> {
        let models = model::build(network, links, !faults.is_empty())?;
        Ok(Self { models, degraded: faults.worst() })
    }

    /// Longest time from sending to arrival, where a link and an uplink may have `bytes` in their queues. For a delay
    /// distribution with a tail it uses a quantile that one message in 10⁹ exceeds.
    pub fn longest_delay(&self, bytes: u64) -> Span {
        let longest = self.models.iter().map(|model| model.longest(bytes, self.degraded.factor));
        longest.max().unwrap_or(Span::ZERO)
    }

    /// The mean delay on the slowest class of links, s; infinite where the delay has no mean.
    pub fn mean_delay(&self) -> f64 {
        self.models.iter().map(|model| model.delay.mean() * self.degraded.factor).fold(0.0, f64::max)
    }

    /// The probability that a transmission on the worst class of links is lost.
    pub fn loss(&self) -> f64 {
        let worst = self.models.iter().map(|model| model.loss.mean()).fold(0.0, f64::max);
        1.0 - (1.0 - worst) * (1.0 - self.degraded.loss)
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::Endpoint;

    use super::*;
    use crate::faults::target::Groups;

    fn worst(network: &str) -> Worst {
        let network: Network = toml::from_str(network).unwrap();
        let mut groups = Groups::new(4);
        groups.number("node", Endpoint(0), 4);
        let faults = Faults::resolve(&network.fault, &groups, 4).unwrap();
        Worst::of(&network, &Links::uniform(), &faults).unwrap()
    }

    #[test]
    fn the_longest_delay_is_a_bound_or_a_high_quantile() {
        let longest = |network| worst(network).longest_delay(1000).as_secs_f64();
        assert_eq!(longest("one_way = \"2s\""), 2.0);
        assert_eq!(longest("one_way = { uniform = { low = \"1s\", high = \"3s\" } }"), 3.0);
        // One exponential sample in 10⁹ exceeds ln 10⁹ times the mean.
        let exponential = longest("one_way = { exponential = { mean = \"1s\" } }");
        assert!((20.0..22.0).contains(&exponential), "{exponential} s");
        assert_eq!(longest("one_way = \"2s\"\nreorder = 0.1\nreorder_by = \"5s\""), 7.0);
        assert_eq!(longest("one_way = \"2s\"\nreorder = 0.1"), 4.0);
        assert_eq!(longest("one_way = \"2s\"\nrate = \"100 bit/s\""), 82.0);
        assert_eq!(longest("one_way = \"2s\"\nuplink = \"100 bit/s\""), 82.0);
        assert_eq!(longest("one_way = \"2s\"\nrate = \"100 bit/s\"\nbuffer = \"3s\""), 162.0);
    }

    #[test]
    fn degraded_links_are_slower_and_lose_more() {
        let worst = worst(
            "one_way = \"1s\"\nloss = 0.5\nreorder = 1.0\nreorder_by = \"4s\"\n[[fault]]\n\
             degrade = { a = [\"node:1\"], at = \"1s\", for = \"1s\", delay_factor = 3.0, loss = 0.5 }",
        );
        assert_eq!((worst.longest_delay(0), worst.mean_delay()), (Span::from_secs(15), 3.0));
        assert!((worst.loss() - 0.75).abs() < 1e-12);
    }
}
