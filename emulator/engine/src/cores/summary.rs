//! A summary of interference: quantiles of speed over time, lost work, and lengths of bursts.

use std::fmt;

use serde::Serialize;

use super::Burst;

/// The quantiles of speed in a summary, as shares of the time.
const SHARES: [f64; 6] = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99];
/// Speeds below this part of the median count as slow.
const SLOW: f64 = 0.9;

/// The interference of some units in some time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BurstSummary {
    /// Share of the time in which units were degraded.
    pub degraded: f64,
    /// Share of the work of healthy units that was lost.
    pub work_lost: f64,
    /// Share of the time in which the speed was below 0.9 of its median.
    pub below_nine_tenths: f64,
    /// Quantiles of the speed over time, as pairs of share and speed; a healthy unit has a speed of 1.
    pub speed: Vec<(f64, f64)>,
    /// Number of bursts: stretches in which a unit was degraded throughout.
    pub bursts: usize,
    /// Lengths of bursts, s: median, 90th percentile and longest; all 0 without bursts.
    pub lengths_s: [f64; 3],
}

impl BurstSummary {
    /// Summarizes the bursts of each unit, sorted by time; each unit is observed for `each_s` seconds.
    pub fn of(units: &[Vec<Burst>], each_s: f64) -> Self {
        let all = units.len() as f64 * each_s;
        // The sum of an empty iterator is −0.
        let share = |time: f64| if all > 0.0 { time.abs() / all } else { 0.0 };
        let mut speeds = Vec::new();
        let mut lengths = Vec::new();
        for bursts in units {
            let length = |burst: &Burst| burst.length().as_secs_f64();
            speeds.extend(bursts.iter().map(|burst| (1.0 / burst.slowdown, length(burst))));
            let joined = bursts.chunk_by(|before, after| before.end == after.start);
            lengths.extend(joined.map(|burst| burst.iter().map(length).sum::<f64>()));
        }
        let degraded: f64 = speeds.iter().map(|(_, length)| length).sum();
        let work_lost: f64 = speeds.iter().map(|(speed, length)| (1.0 - speed) * length).sum();
        speeds.push((1.0, (all - degraded).max(0.0)));
        speeds.sort_by(|a, b| a.0.total_cmp(&b.0));
        lengths.sort_by(f64::total_cmp);
        let speed = SHARES.map(|part| (part, at_share(&speeds, part * all)));
        let slow = SLOW * at_share(&speeds, 0.5 * all);
        let below: f64 = speeds.iter().filter(|(speed, _)| *speed < slow).map(|(_, length)| length).sum();
        let quantile = |share: f64| {
            let at = (share * lengths.len() as f64) as usize;
            lengths.get(at).or_else(|| lengths.last()).copied().unwrap_or(0.0)
        };
        Self {
            degraded: share(degraded),
            work_lost: share(work_lost),
            below_nine_tenths: share(below),
            speed: speed.to_vec(),
            bursts: lengths.len(),
            lengths_s: [0.5, 0.9, 1.0].map(quantile),
        }
    }
}

/// The speed at `time` seconds into the observed time, if that time is sorted by speed.
fn at_share(speeds: &[(f64, f64)], time: f64) -> f64 {
    let mut passed = 0.0;
    let found = speeds.iter().find(|(_, length)| {
        passed += length;
        passed >= time
    });
    found.map_or(1.0, |(speed, _)| *speed)
}

impl fmt::Display for BurstSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let (degraded, lost) = (percent(self.degraded), percent(self.work_lost));
        writeln!(f, "degraded {degraded} of the time, work lost {lost}")?;
        let quantiles = self.speed.iter().map(|(share, speed)| match *share {
            0.5 => format!("median {speed:.3}"),
            share => format!("p{} {speed:.3}", (1000.0 * share).round() / 10.0),
        });
        let (quantiles, below) = (quantiles.collect::<Vec<_>>().join(", "), percent(self.below_nine_tenths));
        writeln!(f, "speed over time: {quantiles}; below 0.9 of the median {below} of the time")?;
        let [median, most, longest] = self.lengths_s;
        match self.bursts {
            0 => writeln!(f, "no bursts"),
            bursts => writeln!(
                f,
                "bursts: {bursts}, median {median:.3} s, 90 % up to {most:.3} s, longest {longest:.3} s"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use volary_actors::base::Time;

    use super::*;

    fn burst(start: u64, end: u64, slowdown: f64) -> Burst {
        let at = |seconds: u64| Time(seconds * 1_000_000_000);
        Burst { start: at(start), end: at(end), slowdown }
    }

    #[test]
    fn shares_of_time_lost_work_and_joined_bursts_are_counted() {
        let units = [vec![burst(0, 10, 2.0), burst(10, 20, 4.0), burst(50, 60, 2.0)], Vec::new()];
        let summary = BurstSummary::of(&units, 100.0);
        assert_eq!(summary.degraded, 0.15);
        assert!((summary.work_lost - (5.0 + 7.5 + 5.0) / 200.0).abs() < 1e-12, "{summary:?}");
        assert_eq!(summary.below_nine_tenths, 0.15);
        let speeds: Vec<f64> = summary.speed.iter().map(|(_, speed)| *speed).collect();
        assert_eq!(speeds, [0.25, 0.25, 0.5, 1.0, 1.0, 1.0]);
        assert_eq!((summary.bursts, summary.lengths_s), (2, [20.0, 20.0, 20.0]));
        let text = summary.to_string();
        assert!(text.contains("p0.1 0.250, p1 0.250, p10 0.500, median 1.000"), "{text}");
        let none = BurstSummary::of(&[Vec::new()], 1.0);
        assert_eq!((none.degraded, none.work_lost, none.bursts), (0.0, 0.0, 0));
        assert!(none.to_string().contains("no bursts"), "{none}");
    }
}
