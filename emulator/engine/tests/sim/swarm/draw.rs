//! The experiment of a seed.

#[path = "../../../../../actors/tests/common/variants.rs"]
mod variants;

use std::fmt::Write as _;

use variants::variants;
use volary_actors::base::Rng;
use volary_actors::layout::Layout;
use volary_actors::policies::{Card, PolicySpec};
use volary_engine::scenario::PolicyEntry;

use super::faults::faults;
use super::parameters::parameters;
use super::{TOPOLOGIES, valid};

/// Emulated seconds in which jobs arrive, unless there are too few or too many of them.
const HORIZON: f64 = 120.0;

/// A source of draws.
pub(crate) struct Dice(pub(super) Rng);

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

    /// A number in [0, 1), written to files with three digits.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(self.below(1000)) / 1000.0
    }

    /// A number from `low` to `high`, uniform in its logarithm.
    pub(crate) fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(f64::from(self.below(1 << 20)) / f64::from(1u32 << 20))
    }

    /// A duration from `low` to `high` in seconds, uniform in its logarithm.
    pub(crate) fn span(&mut self, low: f64, high: f64) -> String {
        span(self.scale(low, high))
    }
}

/// A duration as files write it, to the microsecond.
pub(crate) fn span(seconds: f64) -> String {
    format!("\"{}ms\"", (seconds * 1e6).round() / 1e3)
}

/// A distribution of durations with about this mean.
fn distribution(dice: &mut Dice, mean: f64) -> String {
    let (exact, half) = (span(mean), span(mean / 2.0));
    match dice.below(9) {
        0 => exact,
        1 => format!("{{ uniform = {{ low = {half}, high = {} }} }}", span(1.5 * mean)),
        2 => format!("{{ exponential = {{ mean = {exact} }} }}"),
        3 => format!("{{ gamma = {{ shape = {:.2}, mean = {exact} }} }}", dice.scale(0.3, 100.0)),
        4 => format!("{{ lognormal = {{ median = {half}, sigma = {:.2} }} }}", dice.scale(0.1, 1.5)),
        5 => format!("{{ pareto = {{ scale = {half}, shape = {:.2} }} }}", dice.scale(2.1, 5.0)),
        6 => {
            let (short, long) = (span(mean / 5.0), span(4.0 * mean));
            format!("{{ hyperexponential = {{ means = [{short}, {long}], weights = [4, 1] }} }}")
        }
        7 => format!("{{ normal = {{ mean = {exact}, std = {half} }} }}"),
        _ => format!("{{ weibull = {{ scale = {exact}, shape = {:.2} }} }}", dice.scale(0.6, 4.0)),
    }
}

/// The cluster of a drawn experiment.
pub(crate) struct Site {
    pub(crate) schedulers: u32,
    /// Cores of each node.
    cores: Vec<u32>,
    /// Kind and number of the actors that the policy adds.
    pub(crate) extras: (&'static str, u32),
    /// The lines of `[cluster]`.
    text: String,
    /// Whether the cluster is a topology, which states the properties of its links.
    topology: bool,
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
        type Kinds = &'static [(u32, u32)];
        let topologies: [(&str, Kinds, Groups, Groups); 4] = [
            ("star", &[(5, 2)], &["nodes:1-3"], &["nodes:1-3"]),
            (
                "leaf-spine",
                &[(6, 2), (3, 1)],
                &["rack:0", "rack:1", "group:old", "racks:1-2"],
                &["rack:0", "racks:0-1"],
            ),
            ("fat-tree", &[(16, 1)], &["nodes:0-7"], &["rack:0", "pod:1"]),
            ("regions", &[(8, 2)], &["rack:0", "rack:2"], &["region:east", "region:west"]),
        ];
        let kinds = |kinds: &[(u32, u32)]| {
            kinds.iter().flat_map(|&(nodes, cores)| std::iter::repeat_n(cores, nodes as usize)).collect()
        };
        let rack: Groups = &["rack:0"];
        if let Some(&(name, kind, nodes_at, places)) = topologies.get(dice.below(10) as usize) {
            let text = format!("topology = \"{TOPOLOGIES}/{name}.toml\"\n");
            let (cores, extras) = (kinds(kind), ("", 0));
            return Self { schedulers, cores, extras, text, topology: true, nodes_at, places };
        }
        let (mut kind, mut text) = (vec![(nodes, cores)], format!("nodes = {nodes}\ncores = {cores}\n"));
        if dice.chance(15) {
            kind.push((1 + dice.below(4), 1 + dice.below(6)));
            let of = |(nodes, cores): &(u32, u32)| format!("{{ nodes = {nodes}, cores = {cores} }}");
            text = format!("kind = [{}]\n", kind.iter().map(of).collect::<Vec<_>>().join(", "));
        }
        if dice.chance(25) {
            let slow = 0.2 + 0.8 * dice.unit();
            let speeds = [format!("{slow:.2}"), format!("{{ uniform = {{ low = {slow:.2}, high = 2.0 }} }}")];
            writeln!(text, "speed = {}", dice.pick(&[speeds[0].as_str(), speeds[1].as_str()])).unwrap();
        }
        let (cores, extras) = (kinds(&kind), ("", 0));
        Self { schedulers, cores, extras, text, topology: false, nodes_at: rack, places: rack }
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.cores.len() as u32
    }

    fn layout(&self) -> Layout {
        Layout::new(self.schedulers, 0, self.cores.iter().copied())
    }
}

/// One of the variants that the policy states, with `#` replaced by a number from 1 to 5, or the policy with drawn
/// parameters.
fn policy(dice: &mut Dice, card: &Card, site: &Site) -> String {
    if dice.chance(60) {
        return parameters(dice, card, &site.layout());
    }
    let order = (1 + dice.below(5)).min(site.nodes());
    let variants = variants(card.name);
    let variant = variants[dice.below(variants.len() as u32) as usize];
    format!("{} = {}", card.name, variant.replace('#', &order.to_string()))
}

/// Draws the experiment of a seed, again if it cannot be run.
pub(crate) fn experiment(seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed, 0, 0));
    loop {
        let text = stepped(limited(draw(&mut dice, seed), seed), seed);
        if valid(&text).is_ok() {
            return text;
        }
    }
}

/// Limits the rate of requests in a tenth of the experiments, without changing the other draws of the seed.
fn limited(text: String, seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed, 0, 1));
    if dice.chance(90) {
        return text;
    }
    let rate = dice.scale(5.0, 500.0);
    text.replacen("[cluster]\n", &format!("[cluster]\nrequest_rate = {rate:.1}\n"), 1)
}

/// Divides the jobs of a tenth of the experiments without stages into steps, without changing the other draws.
fn stepped(text: String, seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed, 0, 2));
    if dice.chance(90) {
        return text;
    }
    let steps = format!("\nsynchronous = {}\ninterarrival", 2 + dice.below(5));
    let stepped = text.replacen("\ninterarrival", &steps, 1);
    if valid(&stepped).is_ok() { stepped } else { text }
}

fn draw(dice: &mut Dice, seed: u64) -> String {
    let mut site = Site::draw(dice);
    let cards: Vec<Card> = PolicySpec::cards().into_iter().filter(|card| card.runs_alone).collect();
    let card = &cards[dice.below(cards.len() as u32) as usize];
    if card.one_scheduler {
        site.schedulers = 1;
    }
    let policy = policy(dice, card, &site);
    let spec = toml::from_str::<PolicyEntry>(&policy).map(|entry| entry.spec);
    if card.one_scheduler && spec.as_ref().is_ok_and(|spec| !spec.traits().one_scheduler) {
        site.schedulers = 1 + dice.below(3);
    }
    let evicts = spec.as_ref().is_ok_and(|spec| spec.traits().node_usage.is_some());
    if let Ok(spec) = spec
        && spec.check(&site.layout()).is_ok()
    {
        site.extras = (spec.auxiliary(), spec.layout(site.layout()).auxiliaries());
    }
    let demand = dice.scale(0.1, 3.0);
    let tasks = 1 + dice.below(9);
    let load = dice.scale(0.1, 1.0);
    let gap = f64::from(tasks) * demand / (load * f64::from(site.cores.iter().sum::<u32>()));
    let jobs = (HORIZON / gap).clamp(5.0, 80.0) as u32;
    let mut text = format!("title = \"swarm\"\nseed = {seed}\n[cluster]\nschedulers = {}\n", site.schedulers);
    text.push_str(&site.text);
    let (staged, gang) = (dice.chance(25), dice.chance(25));
    let mut goals = goals(dice, jobs, &site);
    if gang {
        goals.push_str("gang = true\nfilter = true\n");
    }
    if staged {
        mix(dice, &mut text, &goals, (jobs, tasks), gap, demand);
    } else {
        workload(dice, &mut text, &goals, (jobs, tasks), gap, demand);
    }
    service(dice, &mut text, (!staged).then_some(demand), gang);
    text.push_str("[network]\n");
    network(dice, &mut text, site.topology);
    if dice.chance(70) {
        faults(dice, &mut text, &site, gap * f64::from(jobs));
    }
    if dice.chance(40) {
        interference(dice, &mut text);
    }
    writeln!(text, "[[policy]]\n{policy}").unwrap();
    let mut text = if dice.chance(20) { shared(dice, &text, evicts) } else { text };
    if dice.chance(15) {
        let mut time = |most| format!("{{ exponential = {{ mean = {} }} }}", dice.span(1e-6, most));
        let roles = format!("scheduler = {}, node = {}, auxiliary = {}", time(5e-5), time(5e-5), time(5e-5));
        // There are few jobs, so the queues of these messages grow long but become empty again.
        let (client, submit) = (time(0.01), time(0.3));
        let on = dice.pick(&["own", "cores"]);
        let table = format!("{{ {roles}, client = {client}, \"job.submit\" = {submit} }}");
        write!(text, "[actors]\non = \"{on}\"\nhandling = {table}\n").unwrap();
    }
    text
}

/// The experiment with shared nodes of one or two sizes, if all its nodes are alike. Nodes have a memory if the policy
/// deals with evictions.
fn shared(dice: &mut Dice, text: &str, evicts: bool) -> String {
    let alike = (1..=12).flat_map(|nodes| (1..=3).map(move |cores| (nodes, cores)));
    let lines = |(nodes, cores): (u32, u32)| format!("nodes = {nodes}\ncores = {cores}\n");
    let Some(alike) = alike.into_iter().find(|&alike| text.contains(&lines(alike))) else {
        return text.to_owned();
    };
    let (cpu, pods) = (dice.scale(0.5, 4.0), 1 + dice.below(9));
    let memory = |size: &str| if evicts { format!(", memory = \"{size}\"") } else { String::new() };
    let large = if alike.0 > 1 && dice.chance(30) { 1 } else { 0 };
    let mut kinds = format!("{{ nodes = {}, cpu = {cpu:.2}{} }}", alike.0 - large, memory("4 GiB"));
    if large > 0 {
        write!(kinds, ", {{ nodes = {large}, cpu = {:.2}{} }}", 2.0 * cpu, memory("9 GiB")).unwrap();
    }
    let evicting = if evicts { "threshold = 0.9\nreport = \"2s\"\n" } else { "" };
    let nodes = format!("shared = true\npods = {pods}\n{evicting}kind = [{kinds}]\n");
    let mut text = text.replacen(&lines(alike), &nodes, 1);
    let segment = dice.span(0.05, 5.0);
    writeln!(
        text,
        "[service.usage]\ncpu = {}\nsegment = {segment}",
        dice.pick(&["0.4", "{ exponential = { mean = 0.5 } }", "{ uniform = { low = 0.01, high = 0.5 } }",])
    )
    .unwrap();
    writeln!(text, "variation = {}", dice.pick(&["0", "0.3", "0.95"])).unwrap();
    writeln!(text, "request = {}", dice.pick(&["1", "{ lognormal = { median = 4.2, sigma = 2.23 } }"]))
        .unwrap();
    if evicts {
        // Tasks fit on the largest nodes, but not always on the others. If the large node may stay down, they fit on
        // every node: the variation above raises a task's memory at most 1.95 times.
        let size = dice.scale(0.2, 2.0);
        let stays_down = |line: &str| line.starts_with("crash") && !line.contains("for = ");
        if large > 0 && text.lines().any(stays_down) {
            writeln!(text, "memory = {{ uniform = {{ low = 0.0, high = {size:.2} }} }}").unwrap();
        } else {
            writeln!(text, "memory = {{ exponential = {{ mean = {size:.2} }} }}").unwrap();
        }
    }
    text
}

/// Draws whether jobs have deadlines, preferred nodes and a history.
fn goals(dice: &mut Dice, jobs: u32, site: &Site) -> String {
    let mut text = String::new();
    if dice.chance(25) {
        let share = dice.pick(&["true", "0.5"]);
        let slack = dice.pick(&["[0.2, 0.8]", "1", "[-0.5, 3]", "{ uniform = { low = 0, high = 9 } }"]);
        write!(text, "slo = {{ share = {share}, slack = {slack}").unwrap();
        if dice.chance(60) {
            let kinds = 1 + dice.below(site.nodes().min(6));
            let (of, slowdown) = (1 + dice.below(kinds), 1.0 + 3.0 * dice.unit());
            let prefers = format!("kinds = {kinds}, of = {of}, slowdown = {slowdown:.2}");
            write!(text, ", preference = {{ {prefers} }}").unwrap();
        }
        text.push_str(" }\n");
    }
    if dice.chance(15) {
        writeln!(text, "pretrain = {}", dice.below(jobs)).unwrap();
    }
    text
}

/// A distribution of numbers of tasks with this mean.
fn size(dice: &mut Dice, tasks: u32) -> String {
    match dice.below(3) {
        0 => format!("{{ uniform = {{ low = 1, high = {} }} }}", 2 * tasks - 1),
        _ => tasks.to_string(),
    }
}

/// A distribution of the gaps between arrivals: with this mean, or always zero.
fn gaps(dice: &mut Dice, gap: f64) -> String {
    match dice.below(10) {
        0 => "\"0s\"".to_owned(),
        1 | 2 => distribution(dice, gap),
        _ => format!("{{ exponential = {{ mean = {} }} }}", span(gap)),
    }
}

/// Up to three classes of jobs of up to four stages, one after the other or in a graph, with about this work in all.
fn mix(dice: &mut Dice, text: &mut String, goals: &str, (jobs, tasks): (u32, u32), gap: f64, demand: f64) {
    writeln!(text, "[workload.mix]\njobs = {jobs}\ninterarrival = {}\n{goals}", gaps(dice, gap)).unwrap();
    for class in 0..=dice.below(3) {
        writeln!(
            text,
            "[[workload.mix.class]]\nname = \"class-{class}\"\nweight = {:.2}",
            dice.scale(0.1, 1.0)
        )
        .unwrap();
        let stages = 1 + dice.below(4);
        let graph = dice.chance(50);
        let stage = |s| {
            let size = size(dice, tasks.div_ceil(stages));
            let demand = distribution(dice, demand);
            let awaited = (0..s).filter(|_| dice.chance(50)).map(|other: u32| other.to_string());
            let awaited: Vec<_> = if graph { awaited.collect() } else { Vec::new() };
            let after = if graph { format!(", after = [{}]", awaited.join(", ")) } else { String::new() };
            format!("{{ tasks = {size}, demand = {demand}{after} }}")
        };
        let stages: Vec<_> = (0..stages).map(stage).collect();
        writeln!(text, "stages = [{}]\nlong = {}", stages.join(", "), dice.chance(40)).unwrap();
        if dice.chance(30) {
            writeln!(text, "alone = {}", dice.span(demand, 10.0 * demand)).unwrap();
        }
        if dice.chance(30) {
            let names = 1 + dice.below(jobs.min(6));
            let (users, recurrence) = (1 + dice.below(names), dice.unit());
            let spread = dice.scale(0.01, 2.0);
            writeln!(
                text,
                "names = {names}\nusers = {users}\nrecurrence = {recurrence:.2}\nspread = {spread:.2}"
            )
            .unwrap();
        }
    }
}

fn workload(
    dice: &mut Dice,
    text: &mut String,
    goals: &str,
    (jobs, tasks): (u32, u32),
    gap: f64,
    demand: f64,
) {
    let (size, interarrival) = (size(dice, tasks), gaps(dice, gap));
    write!(
        text,
        "[workload.synthetic]\njobs = {jobs}\ntasks = {size}\ninterarrival = {interarrival}\ncutoff = {}\n{goals}",
        dice.span(demand / 3.0, demand * 3.0)
    )
    .unwrap();
    if !goals.contains("slo") && dice.chance(15) {
        writeln!(text, "deadline_slack = {}", dice.unit()).unwrap();
    }
}

/// The work of copies; the stages of a mix have distributions of `demand` of their own, and the tasks of a gang are
/// alike.
fn service(dice: &mut Dice, text: &mut String, demand: Option<f64>, gang: bool) {
    let shares = if gang { &["true"][..] } else { &["true", "false", "0.5"] };
    let (homogeneous, correlated) = (dice.pick(shares), dice.pick(shares));
    writeln!(text, "[service]\nhomogeneous = {homogeneous}\ncorrelated = {correlated}").unwrap();
    if let Some(demand) = demand {
        writeln!(text, "demand = {}", distribution(dice, demand)).unwrap();
    }
    if dice.chance(20) {
        writeln!(text, "preemption = {}", dice.span(1e-6, 0.1)).unwrap();
    }
    match dice.below(4) {
        0 => text.push_str("estimate = \"mean\"\n"),
        1 => text.push_str("estimate = { error = { uniform = { low = 0.2, high = 3.0 } } }\n"),
        _ => {}
    }
}

fn interference(dice: &mut Dice, text: &mut String) {
    let slot = dice.span(0.02, 2.0);
    let (low, high) = (1.0 + 5.0 * dice.unit(), 6.0 + 20.0 * dice.unit());
    let slowdown = match dice.below(2) {
        0 => format!("{high:.2}"),
        _ => format!("{{ uniform = {{ low = {low:.2}, high = {high:.2} }} }}"),
    };
    let process = match dice.below(4) {
        0 => format!("bernoulli = {{ slot = {slot}, probability = {:.3}", 0.6 * dice.unit()),
        1 => format!(
            "markov = {{ slot = {slot}, p_on = {:.3}, p_off = {:.3}",
            0.2 * dice.unit(),
            0.05 + 0.9 * dice.unit()
        ),
        2 => {
            let (gap, burst) = (dice.scale(0.5, 10.0), dice.scale(0.2, 5.0));
            format!("renewal = {{ gap = {}, burst = {}", distribution(dice, gap), distribution(dice, burst))
        }
        _ => format!("scripted = {{ slot = {slot}, rows = [[0, 1, 0, 0], [1, 0]], repeat = true"),
    };
    writeln!(text, "[interference]\n{process}, slowdown = {slowdown} }}").unwrap();
    if dice.chance(50) {
        writeln!(text, "scope = \"{}\"", dice.pick(&["node", "rack"])).unwrap();
    }
    if dice.chance(20) {
        writeln!(text, "affected = {}", dice.unit()).unwrap();
    }
    if dice.chance(20) {
        let from = dice.scale(1.0, 50.0);
        writeln!(text, "from = {}\nuntil = {}", span(from), span(2.0 * from)).unwrap();
    }
}

/// The behaviour of links; a topology has delays and, in part, rates and losses of its own.
fn network(dice: &mut Dice, text: &mut String, topology: bool) {
    let mean = dice.scale(50e-6, 0.2);
    let delay = if dice.chance(15) { "\"0s\"".to_owned() } else { distribution(dice, mean) };
    let random = topology || delay.starts_with('{');
    let mut set = |key: &str, value: &str| writeln!(text, "{key} = {value}").unwrap();
    if !topology {
        set("one_way", &delay);
    }
    if random && dice.chance(20) {
        set("correlation", &dice.unit().to_string());
    }
    if dice.chance(50) && !topology {
        let [p, r, good, bad] = [0.2, 0.9, 0.05, 0.7].map(|most| 0.01 + most * dice.unit());
        let bursts = format!(
            "{{ gilbert-elliott = {{ p = {p:.3}, r = {:.3}, good_loss = {good:.3}, bad_loss = {bad:.3} }} }}",
            r + 0.05
        );
        let loss = format!("{:.4}", dice.scale(0.001, 0.3));
        set("loss", dice.pick(&[&bursts, &loss]));
    }
    if dice.chance(30) {
        set("duplicate", &dice.unit().to_string());
    }
    if dice.chance(30) {
        set("reorder", &(0.001 + dice.unit()).min(1.0).to_string());
        if topology || delay.starts_with("\"0s") || dice.chance(50) {
            let by = dice.scale(1e-3, 1.0);
            set("reorder_by", &distribution(dice, by));
        }
    }
    if dice.chance(25) && !topology {
        set("rate", &format!("\"{:.0} kbit/s\"", dice.scale(200.0, 100_000.0)));
        if dice.chance(50) {
            set("buffer", dice.pick(&["\"500 B\"", "\"4 KiB\"", "\"20ms\""]));
        }
    }
    if dice.chance(20) {
        set("rto", &dice.span(5e-3, 1.0));
    }
    if dice.chance(50) {
        set("peer_timeout", &dice.span(0.3, 20.0));
    }
}
