//! The search through all histories of a small world, shortest first.

use std::collections::{BTreeSet, VecDeque};

use volary_actors::base::Span;

use super::world::{Failure, Move, Setting, World};

/// Number of random streams that are tried for a move with random draws.
const STREAMS: u64 = 6;
/// Number of events within which a world without further faults must end.
const LONGEST: usize = 20_000;
/// Number of events after the end of all jobs within which the world must become quiet.
const QUIET: usize = 2_000;
/// Time after the end of faults within which members must know which members are down.
const SETTLES: Span = Span::from_secs(20);
/// Time within which updates must reach every member.
const SPREADS: Span = Span::from_secs(4);
/// Largest number of frontier states that are stored; other states are recreated from their history.
const KEPT: usize = 4_000;

/// A move and the random stream of its draws.
pub(crate) type Step = (Move, u64);

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Explored {
    /// Number of different states.
    pub(crate) states: usize,
    /// Whether these are all states that the streams lead to.
    pub(crate) complete: bool,
    /// The failure with the shortest history.
    pub(crate) failure: Option<(Failure, Vec<Step>)>,
}

/// Tree of states: each has the index of its predecessor and the step from it.
struct Tree(Vec<(u32, Step)>);

impl Tree {
    fn path(&self, mut at: u32) -> Vec<Step> {
        let mut path = Vec::new();
        while at > 0 {
            let (parent, step) = self.0[at as usize];
            path.push(step);
            at = parent;
        }
        path.reverse();
        path
    }
}

/// Explores at most `limit` states.
pub(crate) fn explore(setting: &Setting, limit: usize) -> Explored {
    let failed = |failure, path, states| Explored { states, complete: false, failure: Some((failure, path)) };
    let root = match World::new(setting) {
        Ok(root) => root,
        Err(failure) => return failed(failure, Vec::new(), 1),
    };
    let (mut seen, mut good) = (BTreeSet::from([root.key()]), BTreeSet::new());
    let mut tree = Tree(vec![(0, (Move::Heal, 0))]);
    if let Err((failure, path)) = finish(&root, &mut good) {
        return failed(failure, path, 1);
    }
    let mut frontier = VecDeque::from([(0u32, Some(root))]);
    while let Some((at, world)) = frontier.pop_front() {
        let world = world.unwrap_or_else(|| World::after(setting, &tree.path(at)));
        for step in world.moves() {
            for stream in 0..STREAMS {
                let mut next = world.clone();
                let made = next.make(step, stream);
                if made.is_ok() && seen.contains(&next.key()) {
                    if !next.drew() {
                        break;
                    }
                    continue;
                }
                let mut path = tree.path(at);
                path.push((step, stream));
                if let Err(failure) = made {
                    return failed(failure, path, seen.len());
                }
                if let Err((failure, rest)) = finish(&next, &mut good) {
                    path.extend(rest);
                    return failed(failure, path, seen.len());
                }
                let drew = next.drew();
                seen.insert(next.key());
                if seen.len() >= limit {
                    return Explored { states: seen.len(), complete: false, failure: None };
                }
                tree.0.push((at, (step, stream)));
                frontier.push_back((tree.0.len() as u32 - 1, (frontier.len() < KEPT).then_some(next)));
                if !drew {
                    break;
                }
            }
        }
    }
    Explored { states: seen.len(), complete: true, failure: None }
}

/// States known to be good: whether a node stays down, and the identity of the state.
pub(crate) type Good = BTreeSet<(bool, u64)>;

/// Runs a copy of a state without further faults. Every job must finish, then the last job, and no copy may be left. A
/// node that is down comes back at once, and in a second run only when all jobs have finished. States that meet these
/// conditions are added to `good`.
pub(crate) fn finish(from: &World<'_>, good: &mut Good) -> Result<(), (Failure, Vec<Step>)> {
    if from.lacks_node() {
        finish_with(from, true, good)?;
    }
    finish_with(from, false, good)
}

/// Runs a copy of a state of members that gossip without further faults; in the end, each member must have all
/// updates and correct beliefs. If faults `last`, present faults end only then, and the members are checked once
/// more.
fn spread_with(from: &World<'_>, last: bool, good: &mut Good) -> Result<(), (Failure, Vec<Step>)> {
    let (mut world, mut path, mut passed) = (from.clone(), Vec::new(), Vec::new());
    let (mut newest, end) = (None, from.now() + SETTLES + SPREADS);
    while world.now() < end {
        let identity = (last, world.identity());
        if good.contains(&identity) {
            good.extend(passed);
            return Ok(());
        }
        passed.push(identity);
        if newest.is_none() && world.now() >= from.now() + SETTLES {
            newest = Some(world.newest());
        }
        // Without a timer, for example in a group whose origin is down, there are no further events.
        let Some(step) = world.kind_move(last) else { break };
        let step = (step, path.len() as u64 % 97);
        path.push(step);
        world.make(step.0, step.1).map_err(|failure| (failure, path.clone()))?;
    }
    if let Some(failure) = world.ignorance(newest.unwrap_or_else(|| world.newest())) {
        return Err((failure, path));
    }
    if last {
        spread_with(&world, false, good).map_err(|(failure, rest)| (failure, [path, rest].concat()))?;
    }
    good.extend(passed);
    Ok(())
}

fn finish_with(from: &World<'_>, down: bool, good: &mut Good) -> Result<(), (Failure, Vec<Step>)> {
    if from.gossips() {
        return spread_with(from, down, good);
    }
    let mut world = from.clone();
    let (mut path, mut passed, mut after) = (Vec::new(), Vec::new(), 0);
    for at in 0.. {
        let identity = (down, world.identity());
        if good.contains(&identity) {
            break;
        }
        passed.push(identity);
        if at == LONGEST {
            return Err((Failure::Endless(world.open_jobs()), path));
        }
        let open = world.open_jobs();
        after += usize::from(open.is_empty());
        let quiet = world.is_quiet();
        let mut step = world.kind_move(down && !open.is_empty());
        if open.is_empty() && (quiet || after > QUIET) {
            if let (true, Some(failure)) = (quiet, world.lost_copy()) {
                return Err((failure, path));
            }
            if quiet && world.last_has_finished() {
                break;
            }
            step = world.last_move().or(step);
        }
        let Some(step) = step else { return Err((Failure::Stuck(open), path)) };
        let step = (step, at as u64 % 97);
        path.push(step);
        if let Err(failure) = world.make(step.0, step.1) {
            return Err((failure, path));
        }
    }
    good.extend(passed);
    Ok(())
}
