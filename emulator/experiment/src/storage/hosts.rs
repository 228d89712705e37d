//! The hosts of a run, and the actors they held, as stored in `manifest.json`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A host that took part in a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name, as in its certificate.
    pub name: String,
    /// The address of its agent.
    pub address: SocketAddr,
    /// Its share of the nodes and schedulers, relative to the others'.
    pub weight: f64,
    /// The actors it held; runs with the same assignment share an entry.
    pub held: Vec<HostShard>,
    /// Runs in which it was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<HostLoss>,
}

/// The loss of a host while a run was executed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostLoss {
    /// Id of the run.
    pub run: String,
    /// The reason, as far as known.
    pub why: String,
    /// Whether all actors on the host had crashed for good by then because of the experiment's faults: such a run
    /// continues.
    pub expected: bool,
}

impl HostLoss {
    /// The text of the loss, for a host of this name.
    pub fn note(&self, host: &str) -> String {
        let when = if self.expected { ", after all that it held had crashed for good" } else { "" };
        format!("host {host} was lost{when}: {}", self.why)
    }
}

/// The part of the emulated cluster that a host held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostShard {
    /// Its shard of the run.
    pub shard: u16,
    /// Numbers of its nodes, as in `0-5,8`; empty for none.
    pub nodes: String,
    /// Numbers of its schedulers, each with its client, in the same form.
    pub schedulers: String,
    /// What the policy adds and calls so, in the same form after the word, as in `masters 0-3`; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub extras: String,
    /// Ids of the runs.
    pub runs: Vec<String>,
}

/// Adds hosts and their assignments to the known ones. For a run that was tried before, the later assignment counts.
pub fn add(known: &mut Vec<HostRecord>, more: &[HostRecord]) {
    let again = |run: &String| more.iter().flat_map(|host| &host.held).any(|held| held.runs.contains(run));
    for host in known.iter_mut() {
        host.held.iter_mut().for_each(|held| held.runs.retain(|run| !again(run)));
        host.held.retain(|held| !held.runs.is_empty());
        host.lost.retain(|lost| !again(&lost.run));
    }
    for host in more {
        let same = known.iter_mut().find(|old| (&old.name, old.address) == (&host.name, host.address));
        let Some(old) = same else {
            known.push(host.clone());
            continue;
        };
        old.weight = host.weight;
        old.lost.extend(host.lost.iter().cloned());
        for held in &host.held {
            let alike = |old: &&mut HostShard| {
                old.shard == held.shard
                    && [&old.nodes, &old.schedulers, &old.extras]
                        == [&held.nodes, &held.schedulers, &held.extras]
            };
            match old.held.iter_mut().find(alike) {
                Some(old) => old.runs.extend(held.runs.iter().cloned()),
                None => old.held.push(held.clone()),
            }
        }
    }
}

/// The host that held a shard of a run.
pub fn of_shard<'a>(hosts: &'a [HostRecord], run: &str, shard: u16) -> Option<&'a str> {
    let held_it = |held: &HostShard| held.shard == shard && held.runs.iter().any(|id| id == run);
    hosts.iter().find(|host| host.held.iter().any(held_it)).map(|host| host.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, shard: u16, nodes: &str, runs: &[&str]) -> HostRecord {
        let runs = runs.iter().map(|&run| run.to_owned()).collect();
        let (nodes, schedulers) = (nodes.to_owned(), "0".to_owned());
        let held = vec![HostShard { shard, nodes, schedulers, extras: String::new(), runs }];
        HostRecord {
            name: name.to_owned(),
            address: ([127, 0, 0, 1], 4433).into(),
            weight: 1.0,
            held,
            lost: Vec::new(),
        }
    }

    #[test]
    fn a_cell_is_of_the_hosts_that_ran_it_last() {
        let mut known = vec![host("h1", 0, "0-5", &["a"]), host("h2", 1, "6-9", &["a"])];
        add(&mut known, &[host("h1", 0, "0-5", &["b"]), host("h2", 1, "6-9", &["b"])]);
        assert_eq!(known.len(), 2);
        assert_eq!(known[0].held, host("", 0, "0-5", &["a", "b"]).held, "alike: one entry");
        // Resumed on h2 and a new host.
        add(&mut known, &[host("h2", 0, "0-4", &["b"]), host("h3", 1, "5-9", &["b"])]);
        assert_eq!([0, 1].map(|shard| of_shard(&known, "a", shard)), [Some("h1"), Some("h2")]);
        assert_eq!([0, 1].map(|shard| of_shard(&known, "b", shard)), [Some("h2"), Some("h3")]);
        assert_eq!(of_shard(&known, "c", 0), None);
    }

    #[test]
    fn a_loss_is_of_the_cell_as_it_ran_last() {
        let lost = |run: &str| HostLoss {
            run: run.to_owned(),
            why: "the peer fell silent".to_owned(),
            expected: false,
        };
        let mut known = vec![host("h1", 0, "0-9", &["a"])];
        // Once before a run, and once more after it.
        add(&mut known, &[HostRecord { lost: vec![lost("a")], ..host("h1", 0, "0-9", &["a"]) }]);
        add(&mut known, &[HostRecord { lost: vec![lost("b")], ..host("h1", 0, "0-9", &["b"]) }]);
        assert_eq!((known.len(), &known[0].lost[..]), (1, &[lost("a"), lost("b")][..]));
        add(&mut known, &[host("h2", 0, "0-9", &["a"])]);
        assert_eq!(known[0].lost, [lost("b")], "it was run again, on another host");
        assert_eq!(lost("a").note("h1"), "host h1 was lost: the peer fell silent");
    }
}
