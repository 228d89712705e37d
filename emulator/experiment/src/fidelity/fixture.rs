//! Synthetic measurements for tests: a healthy run, which tests then modify.

use volary_actors::base::{DistributionSpec, Span};
use volary_engine::results::{Certificate, HostVitals, RealWork, TimerProbe};
use volary_netem::{LinkClass, Links, Network, Stats};

use super::judge::JobsMet;
use super::measure::{Evidence, LatenessHistograms};

/// Everything that the measurements borrow.
pub(crate) struct Run {
    pub(crate) gauge: LatenessHistograms,
    pub(crate) stats: Stats,
    pub(crate) network: Network,
    pub(crate) classes: Vec<LinkClass>,
    pub(crate) speed: f64,
    pub(crate) copy_s: f64,
    pub(crate) busy_s: f64,
    pub(crate) host: HostVitals,
    pub(crate) cores: Option<RealWork>,
    pub(crate) jobs: JobsMet,
}

impl Run {
    /// Measurements of two thousand copies of half a second over links of 10 ms; every event is about 50 µs late.
    pub(crate) fn healthy() -> Self {
        let mut run = Self {
            gauge: LatenessHistograms::default(),
            stats: Stats::default(),
            network: Network {
                one_way: DistributionSpec::Constant(Span::from_millis(10)),
                ..Network::default()
            },
            classes: Links::uniform().classes().to_vec(),
            speed: 1.0,
            copy_s: 0.5,
            busy_s: 1000.0,
            host: HostVitals {
                name: "local".into(),
                wall_s: 20.0,
                cpu_s: 4.0,
                cores: 2,
                cpu_share: 0.1,
                machine_share: Some(0.2),
                steal_share: Some(0.0),
                timer: Some(TimerProbe { count: 6000, p50_s: 50e-6, p99_s: 80e-6, max_s: 1e-3 }),
                ..HostVitals::default()
            },
            cores: None,
            jobs: JobsMet { due: 100, ..JobsMet::default() },
        };
        for k in 0..2000 {
            run.deliver(Span::from_millis(10), Span(30_000 + 20 * k));
            run.gauge.timers.add(Span(50_000));
            run.gauge.work.add(Span(50_000));
        }
        run
    }

    /// Adds a message with its lateness.
    pub(crate) fn deliver(&mut self, asked: Span, late: Span) {
        self.gauge.deliveries.add(late);
        self.gauge.asked.add(asked);
        self.gauge.achieved.add(asked + late);
        self.stats.stream.sent += 1;
        self.stats.stream.delivered += 1;
    }

    pub(crate) fn certificate(&self) -> Certificate {
        let evidence = Evidence {
            speed: self.speed,
            gauge: &self.gauge,
            stats: &self.stats,
            network: &self.network,
            classes: &self.classes,
            median_copy_s: self.copy_s,
            busy_s: self.busy_s,
            hosts: vec![self.host.clone()],
            cores: self.cores.clone(),
            jobs: self.jobs,
        };
        evidence.certificate()
    }
}

/// A certificate of a run that kept up.
pub fn faithful() -> Certificate {
    Run::healthy().certificate()
}

/// A certificate of a run whose host could not keep up.
pub fn degraded() -> Certificate {
    let mut run = Run::healthy();
    (0..100).for_each(|_| run.deliver(Span::from_millis(10), Span::from_millis(400)));
    run.host.cpu_share = 0.97;
    run.host.name = "<local>".into();
    run.certificate()
}
