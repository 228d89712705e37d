//! What the controller hears of injections into a unit.

use volary_actors::base::Time;

use crate::cluster::agent::injectable::{MOST, profile};
use crate::cluster::protocol::{InjectionNotice, Member};
use crate::cores::{CoreSet, Injection};
use crate::results::{Applied, Injected};
use volary_engine::finalize::InjectionRecord;
use volary_engine::world::World;

/// Injections that hosts have told of, in the order in which they did.
#[derive(Default)]
pub(crate) struct Injections(Vec<Entry>);

struct Entry {
    host: usize,
    id: u64,
    targets: Vec<String>,
    injection: Injection,
    /// Why it is over.
    ended: Option<String>,
}

impl Injections {
    /// A host has a profile rule some of the cores it holds. Fails if that cannot be.
    pub(crate) fn begin(
        &mut self,
        host: usize,
        notice: InjectionNotice,
        held: &CoreSet,
    ) -> Result<(), String> {
        let InjectionNotice { id, seed, targets, cores, from, until, .. } = notice;
        let profile = profile(&notice.profile)?;
        let told = |entry: &&Entry| entry.host == host;
        let many = self.0.iter().filter(told).count() >= MOST;
        let again = self.0.iter().filter(told).any(|entry| entry.id == id);
        let elsewhere = cores.is_empty() || cores.intersection(held) != cores;
        if many || again || elsewhere || from > until {
            return Err("it tells of an injection that cannot be".to_owned());
        }
        let injection = Injection { profile, seed, cores, from, until };
        self.0.push(Entry { host, id, targets, injection, ended: None });
        Ok(())
    }

    /// It does not any more.
    pub(crate) fn end(&mut self, host: usize, id: u64, until: Time, why: String) {
        let mut open = self.0.iter_mut().filter(|entry| entry.ended.is_none());
        if let Some(entry) = open.find(|entry| (entry.host, entry.id) == (host, id)) {
            entry.injection.until = until.clamp(entry.injection.from, entry.injection.until);
            entry.ended = Some(why);
        }
    }

    /// Whoever has not said that it is over was lost: it was over with the unit, at `end`, at the latest.
    pub(crate) fn close(&mut self, end: Time) {
        for entry in self.0.iter_mut().filter(|entry| entry.ended.is_none()) {
            entry.injection.until = end.clamp(entry.injection.from, entry.injection.until);
            entry.ended = Some("the host was lost".to_owned());
        }
    }

    /// All of it, for the record.
    pub(crate) fn disturbed(&self, world: &World, members: &[Member]) -> InjectionRecord {
        let injections = self.0.iter().map(|entry| entry.injection.clone()).collect();
        InjectionRecord { results: self.results(world, members), injections }
    }

    /// Whether one that its host told of later ruled some of its cores for a part of its time.
    fn overruled(&self, entry: &Entry) -> bool {
        let later = self.0.iter().skip_while(|other| !std::ptr::eq(*other, entry)).skip(1);
        let Injection { cores, from, until, .. } = &entry.injection;
        later.filter(|other| other.host == entry.host).any(|Entry { injection: other, .. }| {
            other.from < *until && *from < other.until && !other.cores.intersection(cores).is_empty()
        })
    }

    fn results(&self, world: &World, members: &[Member]) -> Vec<Injected> {
        let mut found: Vec<Injected> = Vec::new();
        // Of one injection the hosts in their order, whoever told of it first.
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        let first = |entry: &Entry| self.0.iter().position(|other| other.id == entry.id);
        entries.sort_by_key(|entry| (first(entry), entry.host));
        for entry @ Entry { host, id, targets, injection, ended } in entries {
            let overruled = self.overruled(entry);
            let effect = if overruled { None } else { injection.effect(&world.machines().cores) };
            let ended = ended.as_deref().unwrap_or_default();
            let meanwhile =
                if overruled { "; a later injection ruled some of its cores meanwhile" } else { "" };
            let applied = Applied {
                host: members[*host].name.clone(),
                cores: injection.cores.to_string(),
                from_s: injection.from.as_secs_f64(),
                until_s: injection.until.as_secs_f64(),
                ended: format!("{ended}{meanwhile}"),
                degraded: effect.map(|effect| effect.degraded),
            };
            let id = format!("{id:016x}");
            if let Some(known) = found.iter_mut().find(|known| known.id == id) {
                known.hosts.push(applied);
                continue;
            }
            let profile = serde_json::to_value(&injection.profile.table).unwrap_or_default();
            let profile = serde_json::from_value(profile).unwrap_or_default();
            let (seed, targets) = (injection.seed, targets.clone());
            found.push(Injected { id, profile, seed, targets, hosts: vec![applied] });
        }
        found
    }
}
