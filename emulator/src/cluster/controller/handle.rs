//! The controller: takes hosts, and has them run unit after unit.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::cell::{ControllerCell, Last};
use super::host_pool::HostPool;
use super::losses;
use super::spawn::Spawned;
use crate::cluster::HostsError;
use crate::cluster::net::Hosts;
use crate::cluster::placement::{cores, held};
use crate::cluster::protocol::Member;
use crate::config::{Experiment, RealSection, RunSection};
use crate::fidelity::gauge::Gauge;
use crate::fidelity::measure::real_time;
use crate::fidelity::{RealWork, Worked};
use crate::results::{Injected, Measured};
use crate::runtime::cost;
use crate::runtime::error::UnitError;
use crate::runtime::live::aggregator::EndReason;
use crate::runtime::watch::Watch;
use crate::storage::hosts::HostRecord;
use crate::storage::input_log;
use volary_engine::finalize::{Counters, FinishedRun};
use volary_engine::world::World;

/// The machines of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fleet {
    /// Those of a hosts file, each with an agent that listens.
    Hosts(PathBuf),
    /// So many agents on this machine, started for the run and ended with it.
    Spawn(u16),
}

/// PeerInfo has hosts that have planned the experiment and wait for units.
#[derive(Debug)]
pub struct Controller {
    pool: HostPool,
    /// What was injected into the latest unit.
    injected: Vec<Injected>,
    runtime: Runtime,
    _spawned: Option<Spawned>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Hosts are free at once, and need not wait for our silence.
        self.runtime.block_on(self.pool.leave("the controller is done"));
    }
}

impl Controller {
    /// Takes every host of a fleet and has it plan the experiment.
    ///
    /// # Errors
    /// Names the host that cannot be reached, is busy, or is of another version; [`HostsError::Interrupted`] when
    /// told to stop.
    pub fn open(fleet: &Fleet, experiment: &Experiment, watch: &Watch) -> Result<Self, HostsError> {
        let (spawned, file) = match fleet {
            Fleet::Hosts(path) => (None, path.clone()),
            Fleet::Spawn(count) => {
                let spawned = Spawned::start(*count, experiment.run.burning().is_some())?;
                let file = spawned.hosts_file();
                tracing::info!("the hosts file of these agents is {}", file.display());
                (Some(spawned), file)
            }
        };
        let file = Hosts::load(&file)?;
        let bundle = experiment.bundle()?;
        // A thread of its own for the network: it must answer while books are kept and worlds are built.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(HostsError::System)?;
        let pool = runtime.block_on(HostPool::gather(&file, bundle, watch))?;
        Ok(Self { pool, injected: Vec::new(), runtime, _spawned: spawned })
    }

    /// The hosts, in order of shards.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.pool.members
    }

    /// What each host holds in a cell, and which were lost in it.
    #[must_use]
    pub fn held(&self, world: &World, cell: &str) -> Vec<HostRecord> {
        let mut records = held(self.members(), world, cell);
        self.pool.lost_in(cell).for_each(|(host, lost)| records[host].lost.push(lost.clone()));
        records
    }

    /// What was injected into the latest unit, which is forgotten.
    pub fn injected(&mut self) -> Vec<Injected> {
        std::mem::take(&mut self.injected)
    }

    /// Keeps the hosts' logs in a folder, `HOST.log` each.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_logs_in(&self, folder: &Path) -> io::Result<()> {
        self.pool.archive.keep_logs_in(folder)
    }

    /// Runs one unit on the hosts, whose inputs go to `log`.
    ///
    /// # Errors
    /// [`UnitError::Interrupted`] when told to stop; [`UnitError::Refused`] when it cannot begin;
    /// [`UnitError::Broken`] when a host was lost in mid-run, with what had been measured.
    ///
    /// # Panics
    /// On a bug in a policy: a job that finishes twice, books that do not close.
    pub fn measure(
        &mut self,
        name: &str,
        world: &World,
        point: usize,
        run: &RunSection,
        log: Option<&input_log::Unit>,
        watch: &Watch,
    ) -> Result<Measured, UnitError> {
        let (clock, cpu) = (Instant::now(), cost::process_cpu_s());
        let cell = self.runtime.block_on(self.pool.unit(world, point, run, log, watch))?;
        let ControllerCell { mut aggregator, over, last, broken, mut injected, .. } = cell;
        let lost: Vec<_> = self.pool.lost_in(&self.pool.cell).collect();
        let accounts: Vec<_> = last.into_iter().map(|last| last.and_then(Last::account)).collect();
        let hosts = losses::vitals(self.members(), &accounts);
        let (mut tally, mut gauge) = (Counters::default(), Gauge::default());
        let mut work = None;
        for (member, account) in self.members().iter().zip(&accounts) {
            let Some(account) = account else { continue };
            tally.add(&account.tally);
            gauge.merge(&account.reading);
            if let (Some(real), Some(cores)) = (run.burning(), account.cores.clone()) {
                work.get_or_insert_with(Worked::default).merge(&of_host(cores, &real, &member.name));
            }
        }
        // What an expected loss took with it had crashed before.
        for (host, _) in lost.iter().filter(|(_, lost)| !lost.expected) {
            aggregator.lose(cores(world, self.members(), *host as u16));
        }
        let (books, now) = aggregator.close();
        injected.close(now);
        let disturbed = injected.disturbed(world, self.members());
        self.injected.clone_from(&disturbed.results);
        // What was measured is not kept, but its log may be, and who reads that must know what was injected.
        if over == EndReason::Interrupted {
            return Err(UnitError::Interrupted);
        }
        let hosts_cpu_s = hosts.iter().map(|host| host.cpu_s).sum::<f64>();
        let peak_rss_bytes =
            hosts.iter().map(|host| host.peak_rss_bytes).fold(cost::peak_rss_bytes(), u64::max);
        let finished = FinishedRun {
            experiment: name,
            world,
            recording: run.recording(),
            runtime: "hosts",
            counters: &tally,
            real: Some(real_time(world, run.speed, &tally, &gauge, hosts, work, &books)),
            injected: Some(&disturbed),
        };
        let mut measured = finished.measured(books, now);
        let engine = &mut measured.summary.engine;
        engine.cpu_s = cost::process_cpu_s() - cpu + hosts_cpu_s;
        engine.wall_s = clock.elapsed().as_secs_f64();
        engine.peak_rss_bytes = peak_rss_bytes;
        measured.notes.extend(lost.iter().map(|(host, lost)| lost.note(&self.members()[*host].name)));
        match broken {
            Some(why) => Err(UnitError::Broken { why, measured: Box::new(measured) }),
            None => Ok(measured),
        }
    }
}

/// What a host says of its cores, under its own name.
fn of_host(mut worked: Worked, real: &RealSection, host: &str) -> Worked {
    worked.work.cores.iter_mut().for_each(|core| host.clone_into(&mut core.host));
    let (kernel, degrade) = (real.kernel.to_string(), real.degrade.to_string());
    Worked { work: RealWork { kernel, degrade, ..worked.work }, ..worked }
}
