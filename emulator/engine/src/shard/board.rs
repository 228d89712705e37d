//! What everybody was told, read when it matters.
//!
//! A message to all other schedulers that reaches all of them at once is one event. Its receivers take it in
//! silently (see `Effect::Broadcast`), so nobody can tell whether a scheduler read it when it arrived or just before
//! the next thing that happened to it. It is therefore put up on a board, and a scheduler that is about to be
//! stepped first reads all that was put up since it last looked, each at the time it arrived. Thousands of
//! schedulers of which each acts now and then cost a tight loop apiece instead of an event for each message
//! and receiver. Whoever is observed reads at once, so that what it notes comes in order.

use volary_actors::base::{ActorId, Time};
use volary_actors::layout::Layout;
use volary_actors::machine::{Effect, Effects, Input};
use volary_actors::message::Message;

use super::event_loop::Resident;
use super::{Observer, Parts, Shard};

/// What is up when the slowest must read and the board is wiped: 48 bytes each.
const FULL: usize = 1 << 20;

/// A message to everybody, and when it arrived.
#[derive(Clone, Copy, Debug)]
struct Post {
    at: Time,
    from: ActorId,
    msg: Message,
}

const _: () = assert!(size_of::<Post>() == 48, "what a full board takes is counted in posts");

/// What was told, in order of arrival, and how far each scheduler has read.
#[derive(Debug)]
pub(super) struct Board {
    posts: Vec<Post>,
    first: u32,
    read: Vec<u32>,
    /// Those who read at once.
    eager: Vec<u32>,
    /// Kept for its memory.
    effects: Vec<Effect>,
}

impl Board {
    pub(super) fn new(layout: &Layout, eager: impl Fn(u32) -> bool) -> Self {
        let schedulers = layout.schedulers();
        let eager = (0..schedulers).filter(|&reader| eager(reader)).collect();
        Self {
            posts: Vec::new(),
            first: layout.scheduler(0).0,
            read: vec![0; schedulers as usize],
            eager,
            effects: Vec::new(),
        }
    }

    /// Whether an actor is one of those who are told.
    pub(super) fn is_reader(&self, actor: ActorId) -> bool {
        self.reader(actor).is_some()
    }

    /// Whether an actor has something to read before it is stepped.
    #[inline]
    pub(super) fn is_behind(&self, actor: ActorId) -> bool {
        !self.posts.is_empty()
            && self.reader(actor).is_some_and(|reader| (self.read[reader] as usize) < self.posts.len())
    }

    #[inline]
    fn reader(&self, actor: ActorId) -> Option<usize> {
        let reader = actor.0.wrapping_sub(self.first) as usize;
        (reader < self.read.len()).then_some(reader)
    }
}

impl<O: Observer> Shard<'_, O> {
    /// A message to everybody arrives.
    pub(super) fn told(&mut self, from: ActorId, msg: Message) {
        if self.board.posts.len() == FULL {
            (0..self.board.read.len()).for_each(|reader| self.read(reader));
            self.board.posts.clear();
            self.board.read.fill(0);
        }
        self.board.posts.push(Post { at: self.now, from, msg });
        for at in 0..self.board.eager.len() {
            self.read(self.board.eager[at] as usize);
        }
    }

    /// Lets a scheduler read what it has not read.
    pub(super) fn catch_up(&mut self, actor: ActorId) {
        if let Some(reader) = self.board.reader(actor) {
            self.read(reader);
        }
    }

    fn read(&mut self, reader: usize) {
        let me = ActorId(self.board.first + reader as u32);
        let from = self.board.read[reader] as usize;
        self.board.read[reader] = self.board.posts.len() as u32;
        let Parts { workload, layout, .. } = self.parts;
        let Resident { machine: Some(machine), rng, .. } = &mut self.residents[me.index()] else { return };
        let mut effects = std::mem::take(&mut self.board.effects);
        for &Post { at, from, msg } in &self.board.posts[from..] {
            if from == me {
                continue;
            }
            let input = Input::Deliver { from, msg };
            machine.step(input, &mut Effects::new(at, me, rng, &mut effects, workload, layout).passive());
            self.observer.stepped(at, me, &input, &effects);
            for effect in effects.drain(..) {
                if let Effect::Note(note) = effect {
                    self.observer.note(at, me, note);
                }
            }
        }
        self.board.effects = effects;
    }
}
