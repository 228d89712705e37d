//! `Controller`: the blocking interface through which a runtime executes runs on hosts.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use volary_actors::base::Span;
use volary_engine::finalize::{Counters, FinishedRun};
use volary_engine::metrics::EndReason;
use volary_engine::results::{Injected, Measured, RealWork, Worked};
use volary_engine::world::World;
use volary_experiment::config::{Experiment, RealSection, RunSection};
use volary_experiment::control::{Fleet, RunError, StudyControl};
use volary_experiment::cost;
use volary_experiment::fidelity::gauge::LatenessHistograms;
use volary_experiment::fidelity::measure::real_time;
use volary_experiment::number::plural;
use volary_experiment::storage::hosts::HostRecord;
use volary_experiment::storage::input_log;

use super::host_pool::HostPool;
use super::losses;
use super::run::ControlledRun;
use super::spawn::Spawned;
use crate::cluster::error::HostsError;
use crate::cluster::net::{Host, Hosts};
use crate::cluster::placement::{held, nothing_held};

/// Hosts that have planned an experiment, and the threads that talk to them.
#[derive(Debug)]
pub struct Controller {
    pool: HostPool,
    /// Injections into the latest run.
    injected: Vec<Injected>,
    runtime: Runtime,
    _spawned: Option<Spawned>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Without a close the hosts would stay busy until their leases expire.
        self.runtime.block_on(self.pool.close("the controller is done"));
    }
}

impl Controller {
    /// Claims every host of a fleet and has it plan the experiment.
    ///
    /// # Errors
    /// The host that cannot be reached, is busy, or has another version; [`HostsError::Interrupted`] if `control` is
    /// stopped.
    pub fn open(fleet: &Fleet, experiment: &Experiment, control: &StudyControl) -> Result<Self, HostsError> {
        let (spawned, file, wait) = match fleet {
            Fleet::Hosts { file, wait } => (None, file.clone(), *wait),
            Fleet::Spawn(count) => {
                let spawned = Spawned::start(*count, experiment.run.burning().is_some())?;
                let file = spawned.hosts_file();
                tracing::info!("the hosts file of these agents is {}", file.display());
                (Some(spawned), file, Span::ZERO)
            }
        };
        let file = Hosts::load(&file)?;
        let bundle = experiment.bundle()?;
        // The network has a thread of its own: pings are answered while reports are merged and worlds are built.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(HostsError::System)?;
        let pool = runtime.block_on(HostPool::open(&file, bundle, Duration::from_nanos(wait.0), control))?;
        Ok(Self { pool, injected: Vec::new(), runtime, _spawned: spawned })
    }

    /// Removes the hosts that were lost, so that the next run is laid out over those that are left.
    pub fn remove_lost_hosts(&mut self) {
        let lost = self.pool.remove_lost_hosts();
        if !lost.is_empty() {
            let left: Vec<&str> = self.members().iter().map(|member| member.name.as_str()).collect();
            tracing::warn!("going on without {}, on {}", lost.join(", "), left.join(", "));
        }
    }

    /// The hosts, in order of shards.
    pub fn members(&self) -> &[Host] {
        &self.pool.members
    }

    /// The hosts before anything is placed on them.
    pub fn unused(&self) -> Vec<HostRecord> {
        nothing_held(self.members())
    }

    /// The actors that each host holds in a run, and the hosts lost in it.
    pub fn held(&self, world: &World, run: &str) -> Vec<HostRecord> {
        let mut records = held(self.members(), world, run);
        self.pool.lost_in(run).for_each(|(host, lost)| records[host].lost.push(lost.clone()));
        records
    }

    /// Takes the injections into the latest run.
    pub fn injected(&mut self) -> Vec<Injected> {
        std::mem::take(&mut self.injected)
    }

    /// Writes the hosts' logs to a folder from now on, `HOST.log` each.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.pool.archive.keep_logs_in(folder)
    }

    /// Executes one run on the hosts; their inputs go to `log`.
    ///
    /// # Errors [`RunError::Interrupted`] if `control` is stopped; [`RunError::Refused`] if the run cannot begin;
    /// [`RunError::Broken`] if a host was lost during the run, or if it stood still after datagrams had been lost. The
    /// first and the last hold the measurements so far.
    ///
    /// # Panics
    /// On a bug in a policy: a job that finishes twice, counts that do not add up.
    pub fn measure(
        &mut self,
        name: &str,
        world: &World,
        point: usize,
        section: &RunSection,
        log: Option<&input_log::RunLog>,
        control: &StudyControl,
    ) -> Result<Measured, RunError> {
        let (clock, cpu) = (Instant::now(), cost::process_cpu_s());
        let run = ControlledRun::run(&mut self.pool, world, point, section, log, control);
        let mut run = self.runtime.block_on(run)?;
        run.lose_copies();
        let ControlledRun { pool, aggregator, over, reports, broken, injections, .. } = run;
        let (accounts, now) = aggregator.close();
        let disturbed = injections.record(pool, now);
        self.injected.clone_from(&disturbed.results);
        let lost = if over == EndReason::Idle { losses::unaccounted(&reports) } else { 0 };
        let broken = broken.or_else(|| {
            (lost > 0).then(|| {
                let lost = plural(lost, "datagram");
                format!("nothing happened any more, and the network between the hosts had lost {lost}")
            })
        });
        let hosts = losses::vitals(&pool.members, &reports);
        let (mut tally, mut gauge) = (Counters::default(), LatenessHistograms::default());
        let mut work = None;
        for (member, report) in pool.members.iter().zip(&reports) {
            let Some(report) = report else { continue };
            tally.add(&report.tally);
            gauge.merge(&report.reading);
            if let (Some(real), Some(cores)) = (section.burning(), report.cores.clone()) {
                work.get_or_insert_with(Worked::default).merge(&name_cores(cores, &real, &member.name));
            }
        }
        let hosts_cpu_s = hosts.iter().map(|host| host.cpu_s).sum::<f64>();
        let peak_rss_bytes =
            hosts.iter().map(|host| host.peak_rss_bytes).fold(cost::peak_rss_bytes(), u64::max);
        let finished = FinishedRun {
            experiment: name,
            world,
            recording: section.recording(),
            runtime: "hosts",
            counters: &tally,
            real: Some(real_time(world, section.speed, &tally, &gauge, hosts, work, (&accounts, over, now))),
            injected: Some(&disturbed),
        };
        let mut measured = finished.measured(accounts, now);
        let engine = &mut measured.summary.engine;
        engine.cpu_s = cost::process_cpu_s() - cpu + hosts_cpu_s;
        engine.wall_s = clock.elapsed().as_secs_f64();
        engine.peak_rss_bytes = peak_rss_bytes;
        let lost = pool.lost_in(&pool.run_id);
        measured.notes.extend(lost.map(|(host, lost)| lost.note(&pool.members[host].name)));
        match broken {
            _ if over == EndReason::Interrupted => Err(RunError::Interrupted(Some(Box::new(measured)))),
            Some(why) => Err(RunError::Broken { why, measured: Box::new(measured) }),
            None => Ok(measured),
        }
    }
}

/// The measurements of a host's cores, with the host's name and the run's settings filled in.
fn name_cores(mut worked: Worked, real: &RealSection, host: &str) -> Worked {
    worked.work.cores.iter_mut().for_each(|core| host.clone_into(&mut core.host));
    let (kernel, degrade) = (real.kernel.to_string(), real.degrade.to_string());
    Worked { work: RealWork { kernel, degrade, ..worked.work }, ..worked }
}
