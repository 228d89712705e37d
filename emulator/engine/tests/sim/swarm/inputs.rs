//! The inputs of a run in memory, from which it is replayed.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use volary_actors::base::{ActorId, Time};
use volary_actors::machine::{Effect, Input, Note};
use volary_engine::replay::{Digest, LogEntry, LogEvent};
use volary_engine::shard::Observer;

/// The log of a run in virtual time.
pub(crate) struct InputLog {
    pub(crate) entries: Vec<LogEntry>,
    /// The actors whose effects are logged.
    asked: Range<u32>,
}

impl InputLog {
    pub(crate) const fn new(asked: Range<u32>) -> Self {
        Self { entries: Vec::new(), asked }
    }

    fn put(&mut self, at: Time, what: LogEvent) {
        self.entries.push(LogEntry { at, what });
    }
}

impl Observer for &mut InputLog {
    fn note(&mut self, _: Time, _: ActorId, _: Note) {}

    fn crashed(&mut self, now: Time, core: u32) {
        self.put(now, LogEvent::Crashed(core));
    }

    /// Every scheduler is watched, so that the log is complete and in order of time.
    fn watches(&self, _: u32) -> bool {
        true
    }

    fn reads_by(&self) -> Time {
        Time::ZERO
    }

    fn stepped(&mut self, now: Time, who: ActorId, input: &Input, effects: &[Effect]) {
        self.put(now, LogEvent::Step { who, input: *input, effects: digest(effects) });
        if self.asked.contains(&who.0) {
            effects.iter().for_each(|effect| self.put(now, LogEvent::Effect(*effect)));
        }
    }

    fn restarted(&mut self, now: Time, who: ActorId, epoch: u32) {
        self.put(now, LogEvent::Restarted { who, epoch });
    }

    fn ended(&mut self, now: Time) {
        self.put(now, LogEvent::End);
    }
}

/// Hashes text as it is formatted.
struct TextHasher(DefaultHasher);

impl fmt::Write for TextHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// The digest of the effects of a step.
pub(crate) fn digest(effects: &[Effect]) -> Digest {
    let mut hasher = TextHasher(DefaultHasher::new());
    effects.iter().for_each(|effect| write!(hasher, "{effect:?}").unwrap());
    let hash = hasher.0.finish();
    Digest { count: effects.len() as u32, crc: ((hash >> 32) as u32 ^ hash as u32).to_le_bytes() }
}
