//! Generators with the distributions of published traces.
//!
//! The numbers were measured on the traces themselves. In both, the gaps between arrivals are almost periodic, a job's
//! fan-out is independent of its mean duration within its class (except for long Cloudera jobs), and the durations
//! within a job are Gaussian with variance 2 × mean (in s²), cut at zero: the tasks of a long job are nearly equal,
//! those of a short one vary.

use rand::RngExt;
use volary_actors::base::distribution::{DistributionSpec, Normal};
use volary_actors::base::{Draw, Span};

use super::config::Model;

/// Published figures of a trace.
pub(super) struct Published {
    /// Number of jobs.
    pub(super) jobs: u32,
    /// Gap between arrivals: almost constant.
    pub(super) gap: DistributionSpec<Span>,
    /// Boundary of the mean duration between short and long jobs (Eagle's published settings).
    pub(super) cutoff: Span,
    /// Share of short jobs.
    short: f64,
    /// Mean durations of short jobs are exponential with this scale, cut off at the boundary, s.
    short_scale: f64,
    /// Quantiles of the mean durations of long jobs: (probability, s).
    long_means: &'static [(f64, f64)],
}

/// A job's fan-out, and the mean of its tasks' durations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LikeJob {
    pub(super) tasks: u32,
    /// In seconds.
    pub(super) mean: f32,
}

const YAHOO_LONG: [(f64, f64); 17] = [
    (0.0, 90.581_1),
    (0.05, 101.7),
    (0.1, 121.2),
    (0.2, 209.6),
    (0.25, 281.5),
    (0.3, 345.6),
    (0.4, 490.1),
    (0.5, 668.4),
    (0.6, 896.4),
    (0.7, 1193.5),
    (0.75, 1373.7),
    (0.8, 1648.8),
    (0.9, 2421.2),
    (0.95, 3238.5),
    (0.99, 5659.3),
    (0.999, 17_246.0),
    (1.0, 20_513.0),
];

const CLOUDERA_LONG: [(f64, f64); 17] = [
    (0.0, 272.783),
    (0.05, 286.6),
    (0.1, 304.0),
    (0.2, 339.5),
    (0.25, 370.2),
    (0.3, 408.5),
    (0.4, 541.4),
    (0.5, 762.1),
    (0.6, 1117.6),
    (0.7, 1555.2),
    (0.75, 1898.3),
    (0.8, 2423.2),
    (0.9, 4698.5),
    (0.95, 8200.7),
    (0.99, 15_985.0),
    (0.998, 25_404.0),
    (1.0, 96_821.0),
];

/// Fan-outs of the few short Yahoo jobs that do not follow an exponential distribution.
const YAHOO_WIDE: [(f64, f64); 8] = [
    (0.0, 151.0),
    (0.1, 166.0),
    (0.25, 191.0),
    (0.5, 329.0),
    (0.75, 717.0),
    (0.9, 1028.0),
    (0.95, 1278.0),
    (1.0, 3991.0),
];
const YAHOO_WIDE_SHARE: f64 = 0.0035;

impl Model {
    /// The figures behind the generator.
    pub(super) fn published(self) -> Published {
        let gap = |mean: f64, std: f64| {
            DistributionSpec::Normal(Normal {
                mean: Span::from_secs_f64(mean),
                std: Span::from_secs_f64(std),
            })
        };
        match self {
            Self::YahooLike => Published {
                jobs: 24_262,
                gap: gap(7.482, 0.086),
                cutoff: Span(90_581_100_000),
                short: 21_981.0 / 24_262.0,
                short_scale: 20.13,
                long_means: &YAHOO_LONG,
            },
            Self::ClouderaLike => Published {
                jobs: 21_030,
                gap: gap(12.326, 0.11),
                cutoff: Span(272_783_000_000),
                short: 0.949,
                short_scale: 65.6,
                long_means: &CLOUDERA_LONG,
            },
        }
    }

    /// Draws one job.
    pub(super) fn shape(self, facts: &Published, draw: &mut Draw) -> LikeJob {
        let short = unit(draw) < facts.short;
        let mean = if short {
            cut_exponential(facts.short_scale, facts.cutoff.as_secs_f64(), unit(draw))
        } else {
            quantile(facts.long_means, unit(draw))
        };
        let tasks = match (self, short) {
            (Self::YahooLike, true) if unit(draw) < YAHOO_WIDE_SHARE => quantile(&YAHOO_WIDE, unit(draw)),
            (Self::YahooLike, true) => exponential(20.8, draw),
            // Two populations: jobs of a dozen tasks, and jobs of hundreds.
            (Self::YahooLike, false) if unit(draw) < 0.62 => exponential(14.5, draw),
            (Self::YahooLike, false) => exponential(500.0, draw),
            (Self::ClouderaLike, true) => exponential(171.0, draw),
            // Averages 2,213 over the long means above.
            (Self::ClouderaLike, false) => exponential(12_097.0 * mean.powf(-0.252), draw),
        };
        LikeJob { tasks: (tasks.ceil() as u32).max(1), mean: mean as f32 }
    }
}

/// The duration of one task of a job with this mean, s: Gaussian of variance 2 × mean, above zero.
pub(super) fn duration(mean: f64, draw: &mut Draw) -> f64 {
    let distribution = DistributionSpec::Normal(Normal { mean, std: (2.0 * mean).sqrt() });
    // At least half of the draws are above zero, so 64 failures in a row imply a mean of zero.
    (0..64).map(|_| distribution.sample(draw)).find(|&x| x > 0.0).unwrap_or(mean)
}

fn unit(draw: &mut Draw) -> f64 {
    draw.random::<f64>()
}

fn exponential(mean: f64, draw: &mut Draw) -> f64 {
    -mean * (-unit(draw)).ln_1p()
}

/// The `u`-quantile of an exponential of this scale, conditional on being below `bound`.
fn cut_exponential(scale: f64, bound: f64, u: f64) -> f64 {
    -scale * (u * (-bound / scale).exp_m1()).ln_1p()
}

/// The `u`-quantile of a distribution known by some of its quantiles, interpolated in the logarithm.
fn quantile(known: &[(f64, f64)], u: f64) -> f64 {
    let above = known.partition_point(|&(p, _)| p <= u).clamp(1, known.len() - 1);
    let ((p0, x0), (p1, x1)) = (known[above - 1], known[above]);
    x0 * (x1 / x0).powf((u - p0) / (p1 - p0))
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{Address, Purpose};

    use super::*;

    fn jobs(model: Model, n: u64) -> Vec<LikeJob> {
        let facts = model.published();
        let base = Address::new(5, Purpose::Shape);
        (0..n).map(|job| model.shape(&facts, &mut base.at(job).draw())).collect()
    }

    fn percentile<T: PartialOrd + Copy>(values: impl Iterator<Item = T>, p: f64) -> T {
        let mut values: Vec<T> = values.collect();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap());
        values[((values.len() - 1) as f64 * p).round() as usize]
    }

    fn close(what: &str, got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance * want, "{what}: {got}, published {want}");
    }

    #[test]
    fn yahoo_has_the_published_facts() {
        let jobs = jobs(Model::YahooLike, 200_000);
        let n = jobs.len() as f64;
        let cutoff = 90.5811f32;
        let (short, long): (Vec<LikeJob>, Vec<LikeJob>) = jobs.iter().partition(|job| job.mean < cutoff);
        close("long jobs", long.len() as f64 / n, 0.094, 0.03);
        close("fan-out p50", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.5)), 15.0, 0.07);
        close("fan-out p99", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.99)), 636.0, 0.15);
        close("fan-out mean", jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>() / n, 39.91, 0.03);
        close("mean p50", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.5)), 15.67, 0.03);
        close("mean p99", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.99)), 2410.0, 0.06);
        close("mean of means", jobs.iter().map(|j| f64::from(j.mean)).sum::<f64>() / n, 118.78, 0.03);
        let single = short.iter().filter(|j| j.tasks == 1).count() as f64 / short.len() as f64;
        close("short jobs of one task", single, 0.048, 0.05);
        let wide = short.iter().filter(|j| j.tasks > 150).count() as f64 / short.len() as f64;
        close("short jobs above 150 tasks", wide, 0.0041, 0.15);
        let tasks = |jobs: &[LikeJob]| jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>();
        let work =
            |jobs: &[LikeJob]| jobs.iter().map(|j| f64::from(j.tasks) * f64::from(j.mean)).sum::<f64>();
        close("short tasks", tasks(&short) / tasks(&jobs), 0.53, 0.03);
        close("short work", work(&short) / work(&jobs), 0.018, 0.12);
        for (p, want) in [(0.1, 121.0), (0.25, 282.0), (0.5, 668.0), (0.75, 1374.0), (0.9, 2421.0)] {
            close("long mean", f64::from(percentile(long.iter().map(|j| j.mean), p)), want, 0.05);
        }
        for (p, want) in [(0.5, 21.0), (0.75, 168.0), (0.9, 636.0), (0.95, 1022.0)] {
            close("long fan-out", f64::from(percentile(long.iter().map(|j| j.tasks), p)), want, 0.25);
        }
    }

    #[test]
    fn cloudera_has_the_published_facts() {
        let jobs = jobs(Model::ClouderaLike, 200_000);
        let n = jobs.len() as f64;
        close("fan-out p50", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.5)), 126.0, 0.03);
        close("fan-out p99", f64::from(percentile(jobs.iter().map(|j| j.tasks), 0.99)), 3650.0, 0.06);
        close("fan-out mean", jobs.iter().map(|j| f64::from(j.tasks)).sum::<f64>() / n, 272.93, 0.03);
        close("mean p50", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.5)), 48.0, 0.03);
        close("mean p99", f64::from(percentile(jobs.iter().map(|j| j.mean), 0.99)), 2515.0, 0.10);
        close("mean of means", jobs.iter().map(|j| f64::from(j.mean)).sum::<f64>() / n, 162.19, 0.05);
        let long = jobs.iter().filter(|j| j.mean >= 272.783).count() as f64;
        close("long jobs", long / n, 0.051, 0.03);
        let work: f64 = jobs.iter().map(|j| f64::from(j.tasks) * f64::from(j.mean)).sum();
        close("work of 10,000 jobs", work / n * 10_000.0, 1.69e9, 0.05);
    }

    #[test]
    fn durations_have_twice_their_mean_as_variance() {
        let base = Address::new(9, Purpose::Work);
        for mean in [16.0, 200.0, 16_000.0] {
            let n = 50_000u64;
            let draws: Vec<f64> = (0..n).map(|k| duration(mean, &mut base.at(k).draw())).collect();
            let average = draws.iter().sum::<f64>() / n as f64;
            let std = (draws.iter().map(|x| (x - average).powi(2)).sum::<f64>() / n as f64).sqrt();
            close("mean", average, mean, 0.01);
            close("sd / sqrt(mean)", std / mean.sqrt(), std::f64::consts::SQRT_2, 0.02);
            assert!(draws.iter().all(|&x| x > 0.0));
        }
        assert_eq!(duration(0.0, &mut base.draw()), 0.0);
    }
}
