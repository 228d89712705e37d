//! Instances for the solver's tests: a reader of files and a random generator.

#![allow(dead_code, reason = "each test and the bench use a part")]

use std::process::Command;

use volary_lp::{Block, Job, Problem, Running, Start};

/// An instance read from a file.
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) problem: Problem,
    /// Optimum of the linear relaxation, by HiGHS 1.15.1.
    pub(crate) optimum: f64,
}

/// Instances of a file `NAME.txt.xz` in the folder that `VOLARY_LP` names.
pub(crate) fn file(name: &str) -> Vec<Instance> {
    let folder = std::env::var("VOLARY_LP").expect("VOLARY_LP names the folder with the instances");
    let path = format!("{folder}/{name}.txt.xz");
    let output = Command::new("xz").args(["-dc", &path]).output().expect("xz runs");
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    read(&String::from_utf8(output.stdout).expect("instances are text"))
}

/// Reads instances. Each begins with a line `instance name jobs slots sets optimum`. Then follow `cap` with the
/// capacities, `job id tasks blocks` for each job, and `block name sets demand… ; slot:utility …` for each block.
pub(crate) fn read(text: &str) -> Vec<Instance> {
    text.split("instance ").filter(|part| !part.trim().is_empty()).map(instance).collect()
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is not a number"))
}

fn instance(text: &str) -> Instance {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
    let (mut capacity, mut jobs): (_, Vec<Job>) = (Vec::new(), Vec::new());
    for line in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "cap" => capacity = rest.split(' ').map(number).collect(),
            "job" => jobs.push(job(rest)),
            "block" => jobs.last_mut().expect("a job comes first").blocks.push(block(rest)),
            _ => assert!(line.is_empty(), "an instance cannot contain the line `{line}`"),
        }
    }
    let problem = Problem::new(number(head[2]), capacity, jobs, Vec::new()).expect("the instance is valid");
    Instance { name: head[0].to_owned(), problem, optimum: number(head[4]) }
}

fn job(text: &str) -> Job {
    let words: Vec<&str> = text.split(' ').collect();
    Job { name: number(words[0]), tasks: number(words[1]), blocks: Vec::new() }
}

fn block(text: &str) -> Block {
    let (left, starts) = text.split_once(';').expect("starts follow a semicolon");
    let mut words = left.split_whitespace();
    let mut word = || words.next().expect("a block has a name and sets");
    let (name, sets) = (number(word()), word().split(',').map(number).collect());
    let start = |word: &str| {
        let (slot, utility) = word.split_once(':').expect("a start is slot:utility");
        Start { slot: number(slot), utility: number(utility) }
    };
    let starts = starts.split_whitespace().map(start).collect();
    Block { name, sets, demand: words.map(number).collect(), starts }
}

/// A linear congruential generator (Knuth's MMIX constants), for random instances.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 33) * u64::from(end)) >> 31) as u32
    }

    /// A number in [0, 1) with `parts` values.
    pub(crate) fn part(&mut self, parts: u32) -> f64 {
        f64::from(self.below(parts)) / f64::from(parts)
    }
}

/// The sizes of random instances and the coarseness of their values; coarse values make ties.
pub(crate) struct Shape {
    pub(crate) jobs: u32,
    pub(crate) running: u32,
    pub(crate) slots: u32,
    pub(crate) sets: u32,
    pub(crate) starts: u32,
    pub(crate) tasks: u32,
    pub(crate) values: u32,
}

/// A random instance of at most the given sizes.
pub(crate) fn random(random: &mut Random, shape: &Shape) -> Problem {
    let (slots, sets) = (1 + random.below(shape.slots), 1 + random.below(shape.sets));
    let rows = (0..sets * slots).map(|_| f64::from(random.below(4)) + random.part(shape.values)).collect();
    let jobs =
        (0..random.below(shape.jobs + 1)).map(|at| random_job(random, u64::from(at), slots, sets, shape));
    let jobs: Vec<Job> = jobs.collect();
    let running = (0..random.below(shape.running + 1)).map(|at| Running {
        name: 1_000 + u64::from(at),
        tasks: (0..sets).map(|_| random.below(3)).collect(),
        demand: demand(random, slots, shape.values),
        price: 0.6 * random.part(shape.values),
    });
    let running = running.collect();
    Problem::new(slots as usize, rows, jobs, running).expect("random instances are valid")
}

/// A random job.
pub(crate) fn random_job(random: &mut Random, name: u64, slots: u32, sets: u32, shape: &Shape) -> Job {
    let block = |number: u32, random: &mut Random| {
        let all = random.below(2) == 0;
        let chosen: Vec<u32> = (0..sets).filter(|_| all || random.below(2) == 0).collect();
        let taken = (0..slots).filter(|_| random.below(3) > 0).take(shape.starts as usize);
        let starts = taken.collect::<Vec<_>>().into_iter();
        let starts = starts.map(|slot| Start { slot, utility: 1.25 * random.part(shape.values) - 0.1 });
        let starts = starts.collect();
        Block { name: number, sets: chosen, demand: demand(random, slots, shape.values), starts }
    };
    let blocks = 1 + random.below(2);
    let blocks = (0..blocks).map(|number| block(number, random)).collect();
    Job { name, tasks: 1 + random.below(shape.tasks), blocks }
}

/// A random falling demand that begins with one.
fn demand(random: &mut Random, slots: u32, values: u32) -> Vec<f64> {
    let mut left = 1.0;
    let mut next = |_| {
        let now = left;
        left *= 1.0 - random.part(values);
        now
    };
    (0..slots).map(&mut next).collect()
}
