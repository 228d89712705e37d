//! The model of one link class: `[network]` and the class, merged, checked and ready for sampling.
//!
//! Correlated delays are samples of a distribution at given normal scores. A correlated sequence consists of normal
//! scores z, and the sample F⁻¹(Φ(z)) has exactly the distribution F. The function is tabulated once, so a sample costs
//! only an interpolation.

pub(crate) mod worst;

use statrs::distribution::{ContinuousCDF, Gamma};
use statrs::function::erf::{erfc, erfc_inv};
use volary_actors::base::distribution::Sampler;
use volary_actors::base::{Address, DistributionSpec, Span};

use crate::config::{Loss, Network};
use crate::error::Error;
use crate::links::{LinkClass, Links};
use crate::units::{Probability, Rate};

/// Links of one class.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Model {
    /// The chance of a loss if, without faults, messages are delayed and lost independently and nothing else happens to
    /// them.
    pub(crate) chance: Option<f64>,
    /// The delay of every message, if it is constant and nothing else happens to messages.
    pub(crate) fixed: Option<Span>,
    pub(crate) delay: Delay,
    pub(crate) loss: Loss,
    pub(crate) duplicate: f64,
    pub(crate) reorder: f64,
    /// Time for which a reordered datagram is held back; `None` for a second draw of the link's delay.
    pub(crate) reorder_by: Option<DistributionSpec<Span>>,
    pub(crate) limit: Option<Limit>,
    /// Rate at which the sender's messages leave it, over all links that are not within one machine.
    pub(crate) uplink: Option<Rate>,
    /// First retransmission timeout.
    pub(crate) rto: Span,
}

/// The rate limit of a link, and its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub(crate) rate: Rate,
    pub(crate) longest_wait: Span,
}

impl Limit {
    /// Whether a message can find its buffer full.
    pub(crate) fn drops(self) -> bool {
        self.longest_wait != Span::MAX
    }
}

/// Propagation delay: a constant part and a sum of independent distributions.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Delay {
    constant: Span,
    distributions: Vec<Sampler<Span>>,
    /// Quantiles of correlated delays, which have at most one distribution.
    quantiles: Option<Quantiles>,
}

/// A normal score that one sample in 10⁹ exceeds.
const FAR: f64 = 6.0;

impl Delay {
    fn new(distributions: &[DistributionSpec<Span>]) -> Self {
        let mut delay = Self { constant: Span::ZERO, distributions: Vec::new(), quantiles: None };
        for distribution in distributions {
            if let DistributionSpec::Constant(span) = distribution {
                delay.constant += *span;
            } else {
                delay.distributions.push(Sampler::new(distribution.clone()));
            }
        }
        delay
    }

    const fn is_constant(&self) -> bool {
        self.distributions.is_empty()
    }

    fn is_zero(&self) -> bool {
        self.is_constant() && self.constant == Span::ZERO
    }

    /// The delay at an address, independent of all others. A constant delay needs no address.
    #[inline]
    pub(crate) fn sample(&self, address: impl FnOnce() -> Address) -> Span {
        if self.distributions.is_empty() {
            return self.constant;
        }
        let mut draw = address().draw();
        self.distributions
            .iter()
            .fold(self.constant, |sum, distribution| sum + distribution.sample(&mut draw))
    }

    /// The delay at an address, correlated with the previous delay through the score: z' = ρz + √(1 − ρ²)ε.
    #[inline]
    pub(crate) fn follow(
        &self,
        address: impl FnOnce() -> Address,
        first: bool,
        correlation: f64,
        score: &mut f32,
    ) -> Span {
        let Some(quantiles) = &self.quantiles else { return self.sample(address) };
        let fresh = normal_score(address().unit());
        let next = if first {
            fresh
        } else {
            correlation * f64::from(*score) + (1.0 - correlation * correlation).sqrt() * fresh
        };
        *score = next as f32;
        self.constant + Span::from_secs_f64(quantiles.at(next))
    }

    /// The longest delay, s; for a distribution with a tail, a quantile that one sample in 10⁹ exceeds.
    fn longest(&self) -> f64 {
        let longest = |sampler: &Sampler<Span>| {
            let distribution = sampler.spec();
            distribution.bounds().1.unwrap_or_else(|| quantile(distribution, FAR))
        };
        self.constant.as_secs_f64() + self.distributions.iter().map(longest).sum::<f64>()
    }

    /// Mean in seconds.
    pub(crate) fn mean(&self) -> f64 {
        self.constant.as_secs_f64()
            + self.distributions.iter().map(|sampler| sampler.spec().mean()).sum::<f64>()
    }

    /// Standard deviation in seconds; the distributions are independent.
    fn std(&self) -> f64 {
        self.distributions.iter().map(|sampler| sampler.spec().std().powi(2)).sum::<f64>().sqrt()
    }

    /// The probe timeout of RFC 9002, section 6.2.1, in steady state. `None` if the delay has no mean or
    /// deviation.
    fn probe_timeout(&self) -> Option<Span> {
        let (srtt, rttvar) = (2.0 * self.mean(), std::f64::consts::SQRT_2 * self.std());
        let seconds = srtt + (4.0 * rttvar).max(GRANULARITY) + MAX_ACK_DELAY;
        seconds.is_finite().then(|| Span::from_secs_f64(seconds))
    }
}

/// Timer granularity of RFC 9002, section 6.1.2, in seconds.
const GRANULARITY: f64 = 1e-3;
/// Default of RFC 9000, section 18.2, in seconds.
const MAX_ACK_DELAY: f64 = 25e-3;

/// The models of all classes of `links`; `faulty` says whether faults can lose messages.
pub(crate) fn build(network: &Network, links: &Links, faulty: bool) -> Result<Vec<Model>, Error> {
    network.check()?;
    refuse_unused(network, links)?;
    let models: Vec<_> =
        links.classes().iter().map(|class| Model::new(network, class, faulty)).collect::<Result<_, _>>()?;
    if !network.correlation.is_zero() && models.iter().all(|m| m.delay.is_constant()) {
        return Err(Error::at(
            "network.correlation",
            "all delays are constant, so `correlation` has no effect",
            "give `one_way` a distribution, or remove `correlation`",
        ));
    }
    let reorders = |m: &Model| m.reorder > 0.0 && m.reorder_by.is_none() && m.delay.is_zero();
    if models.iter().any(reorders) {
        return Err(Error::at(
            "network.reorder",
            "there is no delay, so a second delay holds no datagram back",
            "set `reorder_by`, for example \"1ms\"",
        ));
    }
    if network.buffer.is_some() && models.iter().all(|m| m.limit.is_none()) {
        return Err(Error::at(
            "network.buffer",
            "no link has a rate, so no message ever waits",
            "set `rate`, for example \"100 Mbit/s\", or remove `buffer`",
        ));
    }
    Ok(models)
}

/// Refuses a key of `[network]` that every class of the topology overrides, so that it would have no effect.
fn refuse_unused(network: &Network, links: &Links) -> Result<(), Error> {
    let others = || links.classes().iter().filter(|class| !class.local);
    let unused = [
        (
            "one_way",
            network.one_way != DistributionSpec::Constant(Span::ZERO),
            others().all(|c| !c.one_way.is_empty()),
        ),
        ("loss", !network.loss.is_none(), others().all(|c| c.loss.is_some())),
        ("rate", network.rate.is_some(), others().all(|c| c.rate.is_some())),
        ("buffer", network.buffer.is_some(), others().all(|c| c.buffer.is_some())),
    ];
    unused.iter().find(|(_, set, overridden)| *set && *overridden).map_or(Ok(()), |(key, ..)| {
        Err(Error::at(
            format!("network.{key}"),
            format!("every link class of the topology sets `{key}`, so the value in `[network]` is unused"),
            "remove the key from `[network]` or from a class",
        ))
    })
}

impl Model {
    fn new(network: &Network, class: &LinkClass, faulty: bool) -> Result<Self, Error> {
        let apply = !class.local;
        let one_way = if class.one_way.is_empty() && apply {
            std::slice::from_ref(&network.one_way)
        } else {
            &class.one_way[..]
        };
        refuse_unloaded(one_way)?;
        refuse_endless(one_way, class)?;
        let mut delay = Delay::new(one_way);
        if apply && !network.correlation.is_zero() {
            delay.quantiles = correlated(&delay, class)?;
        }
        let or_zero = |p: Probability| if apply { p.get() } else { 0.0 };
        let loss = class.loss.unwrap_or(if apply { network.loss } else { Loss::NONE });
        let rate = class.rate.or_else(|| network.rate.filter(|_| apply));
        let buffer = class.buffer.or_else(|| network.buffer.filter(|_| apply));
        if class.buffer.is_some() && rate.is_none() {
            return Err(Error::at(
                format!("{}.buffer", class.key),
                "the link has no rate, so no message ever waits",
                "set its `rate`, or remove `buffer`",
            ));
        }
        let limit = rate.map(|rate| Limit {
            rate,
            longest_wait: buffer.map_or(Span::MAX, |buffer| buffer.longest_wait(rate)),
        });
        let repeats = faulty || !loss.is_none() || limit.is_some_and(Limit::drops);
        let rto = if repeats { timeout(network, &delay)? } else { Span::MAX };
        let (duplicate, reorder) = (or_zero(network.duplicate), or_zero(network.reorder));
        let uplink = network.uplink.filter(|_| apply);
        let rated = limit.is_some() || uplink.is_some();
        let independent = delay.quantiles.is_none() && !rated && duplicate + reorder == 0.0;
        let chance = match loss {
            Loss::Bernoulli(p) if independent => Some(p.get()),
            _ if independent && loss.is_none() => Some(0.0),
            Loss::Bernoulli(_) | Loss::GilbertElliott(_) => None,
        };
        let fixed = (chance == Some(0.0) && delay.is_constant()).then_some(delay.constant);
        Ok(Self {
            chance,
            fixed,
            delay,
            loss,
            duplicate,
            reorder,
            reorder_by: network.reorder_by.clone(),
            limit,
            uplink,
            rto,
        })
    }

    /// Longest time from sending to arrival, with delays multiplied by a factor and `bytes` in the queue before the
    /// message. A stream message that finds a full buffer doubles its timeout each time. After the link becomes free it
    /// may therefore wait as long again as the link was busy.
    pub(crate) fn longest(&self, bytes: u64, factor: f64) -> Span {
        let held = match &self.reorder_by {
            _ if self.reorder == 0.0 => 0.0,
            Some(distribution) => distribution.bounds().1.unwrap_or_else(|| quantile(distribution, FAR)),
            None => self.delay.longest(),
        };
        let times = |limit: Limit| if limit.drops() { 2.0 } else { 1.0 };
        let wait = self.limit.map_or(Span::ZERO, |l| l.rate.transmission(bytes).scale(times(l)));
        let leaves = self.uplink.map_or(Span::ZERO, |uplink| uplink.transmission(bytes));
        Span::from_secs_f64((self.delay.longest() + held) * factor) + wait + leaves
    }

    /// Whether links of this class have state other than the number of messages.
    pub(crate) const fn remembers(&self) -> bool {
        self.delay.quantiles.is_some() || self.limit.is_some() || matches!(self.loss, Loss::GilbertElliott(_))
    }
}

/// Returns an error for an empirical distribution whose file was not read, because it has no samples.
fn refuse_unloaded(distributions: &[DistributionSpec<Span>]) -> Result<(), Error> {
    let unloaded = |distribution: &DistributionSpec<Span>| matches!(distribution, DistributionSpec::Empirical(e) if e.values.is_empty());
    if distributions.iter().any(unloaded) {
        return Err(Error::at(
            "one_way",
            "the file of an empirical distribution is not loaded",
            "give the `values` of the distribution",
        ));
    }
    Ok(())
}

/// Longest plausible delay, in seconds; longer delays are treated as typing errors.
const YEAR: f64 = 365.0 * 86_400.0;

/// Rejects delays of years. Distributions without a finite mean are accepted.
fn refuse_endless(distributions: &[DistributionSpec<Span>], class: &LinkClass) -> Result<(), Error> {
    let mean: f64 = distributions.iter().map(DistributionSpec::mean).sum();
    if !mean.is_finite() || mean <= YEAR {
        return Ok(());
    }
    let key = format!("{}.one_way", class.key);
    Err(Error::at(key, "a message would be under way for more than a year", "write for example \"10ms\""))
}

/// The quantiles of a delay that is to be correlated; `None` if the delay is constant.
fn correlated(delay: &Delay, class: &LinkClass) -> Result<Option<Quantiles>, Error> {
    match &delay.distributions[..] {
        [] => Ok(None),
        [sampler] => Ok(Some(Quantiles::new(sampler.spec()))),
        _ => Err(Error::at(
            "network.correlation",
            format!(
                "the delay of `{}` is a sum of several distributions, which cannot be correlated",
                class.name
            ),
            "use constant delays for all links of a path but one, or leave `correlation` out",
        )),
    }
}

/// The first retransmission timeout, which must leave room for at least one repetition.
fn timeout(network: &Network, delay: &Delay) -> Result<Span, Error> {
    let rto = network.rto.or_else(|| delay.probe_timeout()).ok_or_else(|| {
        Error::at(
            "network.rto",
            "the delay distribution has no mean or no deviation to derive a timeout from",
            "set `rto`, for example \"200ms\"",
        )
    })?;
    if rto >= network.peer_timeout {
        return Err(Error::at(
            "network.peer_timeout",
            format!("{} leaves no time for a repetition after {rto}", network.peer_timeout),
            "raise `peer_timeout`, or set a shorter `rto`",
        ));
    }
    Ok(rto)
}

/// Largest absolute score of the table; two samples in 10⁹ lie beyond.
const REACH: f64 = 6.0;
/// Number of entries per unit of score. Linear interpolation is then off by less than 10⁻⁴ of the standard deviation.
const DENSITY: f64 = 64.0;

/// The function F⁻¹ ∘ Φ of a distribution, in seconds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Quantiles {
    /// Values at evenly spaced scores from −REACH on.
    Smooth(Vec<f64>),
    /// Equally likely values in ascending order.
    Steps(Vec<f64>),
}

impl Quantiles {
    /// The quantiles of a distribution that is not constant.
    pub(crate) fn new(distribution: &DistributionSpec<Span>) -> Self {
        if let DistributionSpec::Empirical(empirical) = distribution {
            let mut values: Vec<_> = empirical.values.iter().map(|v| v.as_secs_f64()).collect();
            values.sort_by(f64::total_cmp);
            return Self::Steps(values);
        }
        let entries = (2.0 * REACH * DENSITY) as usize + 1;
        Self::Smooth((0..entries).map(|i| quantile(distribution, i as f64 / DENSITY - REACH)).collect())
    }

    /// The sample at a score.
    pub(crate) fn at(&self, score: f64) -> f64 {
        match self {
            Self::Steps(values) => {
                let index = (below(score) * values.len() as f64) as usize;
                values[index.min(values.len() - 1)]
            }
            Self::Smooth(table) => {
                let x = (score.clamp(-REACH, REACH) + REACH) * DENSITY;
                let i = (x as usize).min(table.len() - 2);
                table[i] + (x - i as f64) * (table[i + 1] - table[i])
            }
        }
    }
}

/// The standard normal distribution function Φ(z).
fn below(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// The standard normal score below which lies the probability `u`, in [0, 1).
pub(crate) fn normal_score(u: f64) -> f64 {
    // Half a step inwards, so that 0 has a finite score. The upper half follows by symmetry, so that no argument
    // reaches 1.
    const HALF_STEP: f64 = 0.5 / (1u64 << 53) as f64;
    let tail = if u < 0.5 { u + HALF_STEP } else { 1.0 - u - HALF_STEP };
    let score = std::f64::consts::SQRT_2 * erfc_inv(2.0 * tail);
    if u < 0.5 { -score } else { score }
}

/// The value of a distribution at a score, in seconds. Upper tails use 1 − Φ(z) = Φ(−z), which loses no digits.
pub(crate) fn quantile(distribution: &DistributionSpec<Span>, z: f64) -> f64 {
    let above = below(-z);
    let gamma = |shape: f64, mean: f64| {
        Gamma::new(shape, shape / mean).map_or(mean, |distribution| distribution.inverse_cdf(below(z)))
    };
    match distribution {
        DistributionSpec::Constant(value) => value.as_secs_f64(),
        DistributionSpec::Uniform(p) => {
            let (low, high) = (p.low.as_secs_f64(), p.high.as_secs_f64());
            low + below(z) * (high - low)
        }
        DistributionSpec::Normal(p) => (p.mean.as_secs_f64() + z * p.std.as_secs_f64()).max(0.0),
        DistributionSpec::Lognormal(p) => p.median.as_secs_f64() * (p.sigma * z).exp(),
        DistributionSpec::Exponential(p) => -p.mean.as_secs_f64() * above.ln(),
        DistributionSpec::Gamma(p) => gamma(p.shape, p.mean.as_secs_f64()),
        DistributionSpec::Erlang(p) => gamma(f64::from(p.stages), p.mean.as_secs_f64()),
        DistributionSpec::Pareto(p) => p.scale.as_secs_f64() * above.powf(-1.0 / p.shape),
        DistributionSpec::Weibull(p) => p.scale.as_secs_f64() * (-above.ln()).powf(1.0 / p.shape),
        DistributionSpec::Hyperexponential(p) => {
            let means: Vec<_> = p.means.iter().map(|m| m.as_secs_f64()).collect();
            mixture_quantile(&means, &p.weights, above)
        }
        DistributionSpec::Empirical(p) => {
            let index = (below(z) * p.values.len() as f64) as usize;
            p.values.get(index).map_or(0.0, |v| v.as_secs_f64())
        }
    }
}

/// The point above which a mixture of exponentials has the weight `above`. It is found by bisection, because the tail
/// has no closed inverse.
fn mixture_quantile(means: &[f64], weights: &[f64], above: f64) -> f64 {
    let total: f64 = weights.iter().sum();
    let tail = |x: f64| -> f64 {
        means.iter().zip(weights).map(|(&m, w)| if m > 0.0 { w / total * (-x / m).exp() } else { 0.0 }).sum()
    };
    let largest = means.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, -largest * above.ln());
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > above { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use volary_actors::base::distribution::{self, Scaled};
    use volary_actors::base::{Address, Purpose};

    use super::*;

    #[test]
    fn the_default_timeout_is_the_probe_timeout_of_rfc_9002() {
        let constant = Delay::new(&[DistributionSpec::Constant(Span::from_millis(10))]);
        assert_eq!(constant.probe_timeout(), Some(Span::from_millis(20 + 1 + 25)));
        let gamma =
            DistributionSpec::Gamma(distribution::Gamma { shape: 100.0, mean: Span::from_millis(10) });
        // The deviation of one way is 1 ms, that of the round trip √2 ms.
        let ms = Delay::new(&[gamma]).probe_timeout().unwrap().as_secs_f64() * 1e3;
        assert!((ms - (20.0 + 4.0 * 2f64.sqrt() + 25.0)).abs() < 1e-3, "the timeout is {ms} ms");
        let heavy = DistributionSpec::Pareto(Scaled { scale: Span::from_millis(1), shape: 1.5 });
        assert_eq!(Delay::new(&[heavy]).probe_timeout(), None);
    }

    #[test]
    fn impossible_combinations_are_refused() {
        let ideal = Network::default;
        let one = |p| Probability::new(p).unwrap();
        for (network, says) in [
            (Network { correlation: one(0.5), ..ideal() }, "network.correlation: all delays are constant"),
            (Network { buffer: "1 kB".parse().ok(), ..ideal() }, "network.buffer: no link has a rate"),
            (Network { reorder: one(0.1), ..ideal() }, "network.reorder: there is no delay"),
            (
                Network { reorder_by: Some(DistributionSpec::Constant(Span(1))), ..ideal() },
                "network.reorder_by: `reorder` is zero",
            ),
            (Network { peer_timeout: Span::ZERO, ..ideal() }, "network.peer_timeout: with zero every peer"),
            (Network { rto: Some(Span::ZERO), ..ideal() }, "network.rto: with zero a lost message"),
            (
                Network {
                    loss: Loss::Bernoulli(one(0.1)),
                    one_way: DistributionSpec::Pareto(Scaled { scale: Span(1), shape: 0.9 }),
                    ..ideal()
                },
                "network.rto: the delay distribution has no mean",
            ),
            (
                Network { loss: Loss::Bernoulli(one(0.1)), peer_timeout: Span::from_millis(20), ..ideal() },
                "network.peer_timeout: 20ms leaves no time for a repetition after 26ms",
            ),
        ] {
            let error = build(&network, &Links::uniform(), false).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }

    fn distributions() -> Vec<DistributionSpec<Span>> {
        let ms = Span::from_millis;
        vec![
            DistributionSpec::Uniform(distribution::Uniform { low: ms(1), high: ms(3) }),
            DistributionSpec::Normal(distribution::Normal { mean: ms(10), std: ms(2) }),
            DistributionSpec::Lognormal(distribution::Lognormal { median: ms(5), sigma: 0.5 }),
            DistributionSpec::Exponential(distribution::Exponential { mean: ms(7) }),
            DistributionSpec::Gamma(distribution::Gamma { shape: 100.0, mean: ms(10) }),
            DistributionSpec::Erlang(distribution::Erlang { stages: 3, mean: ms(2) }),
            DistributionSpec::Pareto(Scaled { scale: ms(1), shape: 4.5 }),
            DistributionSpec::Weibull(Scaled { scale: ms(1), shape: 1.5 }),
            DistributionSpec::Hyperexponential(distribution::Hyperexponential {
                means: vec![ms(1), ms(20)],
                weights: vec![3.0, 1.0],
            }),
            DistributionSpec::Empirical(distribution::Empirical {
                values: vec![ms(6), ms(1), ms(2)],
                file: None,
            }),
        ]
    }

    /// Independent scores must give samples with the same distribution as the original.
    #[test]
    fn samples_by_normal_scores_follow_the_distribution() {
        const N: u64 = 20_000;
        for distribution in distributions() {
            let quantiles = Quantiles::new(&distribution);
            let base = Address::new(5, Purpose::Tool);
            let mut ours: Vec<_> = (0..N).map(|k| quantiles.at(normal_score(base.at(k).unit()))).collect();
            let mut theirs: Vec<_> =
                (N..2 * N).map(|k| distribution.sample(&mut base.at(k).draw()).as_secs_f64()).collect();
            ours.sort_by(f64::total_cmp);
            theirs.sort_by(f64::total_cmp);
            let mut distance = 0f64;
            for (i, x) in ours.iter().enumerate() {
                let below = theirs.partition_point(|y| y <= &(x + 1e-9));
                let mine = ours.partition_point(|y| y <= &(x + 1e-9));
                distance = distance.max((mine as f64 - below as f64).abs() / N as f64);
                assert!(i < ours.len());
            }
            // The bound is the 0.1 % point of the two-sample Kolmogorov-Smirnov test, 1.95 √(2/N).
            assert!(distance < 1.95 * (2.0 / N as f64).sqrt(), "{distribution:?}: distance {distance}");
        }
    }

    #[test]
    fn normal_scores_equal_known_quantiles() {
        for (u, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306)] {
            assert!((normal_score(u) - z).abs() < 1e-6, "{u}");
        }
        assert!(normal_score(0.0).is_finite() && normal_score(1.0 - f64::EPSILON / 2.0).is_finite());
    }
}
