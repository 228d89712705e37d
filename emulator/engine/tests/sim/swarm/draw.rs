//! The experiment of a seed.

use std::fmt::Write as _;

use volary_actors::base::Rng;
use volary_actors::layout::Layout;
use volary_actors::policies::{Card, PolicySpec};
use volary_engine::scenario::PolicyEntry;

use super::faults::faults;
use super::parameters::parameters;

/// One of the variants that the policy states, with `#` replaced by a number from 1 to 5, or the policy with drawn
/// parameters.
fn policy(dice: &mut Dice, card: &Card, site: &Site) -> String {
    if dice.chance(50) {
        return parameters(
            dice,
            card,
            &Layout::new(site.schedulers, 0, vec![site.cores; site.nodes as usize]),
        );
    }
    let order = (1 + dice.below(5)).min(site.nodes);
    let variant = card.variants[dice.below(card.variants.len() as u32) as usize];
    format!("{} = {}", card.name, variant.replace('#', &order.to_string()))
}

/// A source of draws.
pub(crate) struct Dice(Rng);

impl Dice {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.0.below(from.len() as u32) as usize]
    }
}

/// Where it all happens.
pub(crate) struct Site {
    pub(crate) nodes: u32,
    pub(crate) schedulers: u32,
    cores: u32,
    /// File of the topology, if there is one.
    topology: Option<&'static str>,
    /// Groups of nodes, without schedulers or clients, that faults can aim at.
    pub(crate) nodes_at: &'static [&'static str],
    /// Groups that can hold schedulers and clients too.
    pub(crate) places: &'static [&'static str],
}

impl Site {
    fn draw(dice: &mut Dice) -> Self {
        let schedulers = 1 + dice.below(3);
        let (nodes, cores) = (1 + dice.below(12), 1 + dice.below(3));
        type Groups = &'static [&'static str];
        let topologies: [(&str, u32, u32, Groups, Groups); 4] = [
            ("star", 5, 2, &["nodes:1-3"], &["nodes:1-3"]),
            ("leaf-spine", 9, 1, &["rack:0", "rack:1", "group:old", "racks:1-2"], &["rack:0", "racks:0-1"]),
            ("fat-tree", 16, 1, &["nodes:0-7"], &["rack:0", "pod:1"]),
            ("regions", 8, 2, &["rack:0", "rack:2"], &["region:east", "region:west"]),
        ];
        let Some(&(name, nodes, cores, nodes_at, places)) = topologies.get(dice.below(10) as usize) else {
            return Self {
                nodes,
                schedulers,
                cores,
                topology: None,
                nodes_at: &["rack:0"],
                places: &["rack:0"],
            };
        };
        Self { nodes, schedulers, cores, topology: Some(name), nodes_at, places }
    }

    fn write(&self, text: &mut String) {
        match self.topology {
            Some(name) => {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sim/swarm/topologies");
                writeln!(text, "topology = \"{folder}/{name}.toml\"")
            }
            None => writeln!(text, "nodes = {}\ncores = {}", self.nodes, self.cores),
        }
        .unwrap();
    }
}

/// The experiment of a seed.
pub(crate) fn experiment(seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed, 0, 0));
    let mut site = Site::draw(&mut dice);
    let cards = PolicySpec::cards();
    let card = &cards[dice.below(cards.len() as u32) as usize];
    if card.one_scheduler {
        site.schedulers = 1;
    }
    let policy = policy(&mut dice, card, &site);
    let spec = toml::from_str::<PolicyEntry>(&policy).map(|entry| entry.spec);
    if card.one_scheduler && spec.is_ok_and(|spec| !spec.one_scheduler()) {
        site.schedulers = 1 + dice.below(3);
    }
    let tasks = 1 + dice.below(9);
    let jobs = 20 + dice.below(60);
    let load = f64::from(1 + dice.below(9)) / 12.0;
    let gap = f64::from(tasks) / (load * f64::from(site.nodes * site.cores));
    let demand = dice.pick(&[
        "\"1s\"",
        "{ exponential = { mean = \"1s\" } }",
        "{ lognormal = { median = \"500ms\", sigma = 1.2 } }",
    ]);
    let (homogeneous, correlated) = (dice.chance(50), dice.chance(50));
    let mut text = format!("title = \"swarm\"\nseed = {seed}\n[cluster]\nschedulers = {}\n", site.schedulers);
    site.write(&mut text);
    write!(
        text,
        "[workload.synthetic]\njobs = {jobs}\ntasks = {tasks}\ncutoff = \"1200ms\"\n\
         interarrival = {{ exponential = {{ mean = \"{gap}s\" }} }}\n\
         [service]\ndemand = {demand}\nhomogeneous = {homogeneous}\ncorrelated = {correlated}\n[network]\n"
    )
    .unwrap();
    network(&mut dice, &mut text, site.topology.is_some());
    if dice.chance(70) {
        faults(&mut dice, &mut text, &site, gap * f64::from(jobs));
    }
    if dice.chance(40) {
        let profile = dice.pick(&[
            "bernoulli = { slot = \"500ms\", probability = 0.2, slowdown = 4 }",
            "renewal = { gap = { exponential = { mean = \"5s\" } }, burst = { pareto = { scale = \"1s\", shape = 1.5 } }, slowdown = 10 }",
            "markov = { slot = \"100ms\", p_on = 0.05, p_off = 0.2, slowdown = { uniform = { low = 2, high = 6 } } }",
        ]);
        writeln!(text, "[interference]\n{profile}").unwrap();
    }
    writeln!(text, "[[policy]]\n{policy}").unwrap();
    text
}

/// What the links do; a topology has delays and, in part, rates and losses of its own.
fn network(dice: &mut Dice, text: &mut String, topology: bool) {
    let delay = dice.pick(&[
        "\"0s\"",
        "\"10ms\"",
        "{ gamma = { shape = 4, mean = \"20ms\" } }",
        "{ exponential = { mean = \"100ms\" } }",
    ]);
    let mut set = |key: &str, value: &str| writeln!(text, "{key} = {value}").unwrap();
    if !topology {
        set("one_way", delay);
    }
    if dice.chance(20) && (topology || delay.starts_with('{')) {
        set("correlation", "0.8");
    }
    if dice.chance(60) && !topology {
        let bursts = "{ gilbert-elliott = { p = 0.05, r = 0.3, good_loss = 0.0, bad_loss = 0.8 } }";
        set("loss", dice.pick(&["0.01", "0.2", bursts]));
    }
    if dice.chance(30) {
        set("duplicate", "0.1");
    }
    if dice.chance(30) {
        set("reorder", "0.2");
        if topology || delay.starts_with("\"0s") || dice.chance(50) {
            set("reorder_by", dice.pick(&["\"50ms\"", "{ exponential = { mean = \"1s\" } }"]));
        }
    }
    if dice.chance(25) && !topology {
        set("rate", dice.pick(&["\"200 kbit/s\"", "\"10 Mbit/s\""]));
        if dice.chance(50) {
            set("buffer", dice.pick(&["\"500 B\"", "\"4 KiB\""]));
        }
    }
    if dice.chance(50) {
        set("peer_timeout", "\"2s\"");
    }
}
