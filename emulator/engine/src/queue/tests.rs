//! Tests of the queue against a sorted heap: the order of pops does not depend on the order of pushes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use volary_actors::base::{ActorId, Time};

use super::{Key, Queue};

fn key(due: u64, source: u32, count: u32) -> Key {
    Key { due: Time(due), source: ActorId(source), count }
}

/// A reference implementation of the queue.
#[derive(Default)]
struct Model {
    heap: BinaryHeap<Reverse<(Key, u64)>>,
    last: Time,
}

impl Model {
    fn push(&mut self, mut key: Key, value: u64) {
        key.due = key.due.max(self.last);
        self.heap.push(Reverse((key, value)));
    }

    fn pop(&mut self) -> Option<(Key, u64)> {
        let Reverse((key, value)) = self.heap.pop()?;
        self.last = key.due;
        Some((key, value))
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Push this far after the last popped due time, from this source.
    Push {
        ahead: u64,
        source: u32,
    },
    /// Push at this absolute time, which may be before the last popped one.
    PushAt {
        due: u64,
        source: u32,
    },
    /// Push this many at one instant.
    Burst {
        ahead: u64,
        many: u32,
    },
    Pop {
        many: u32,
    },
    Peek,
}

fn op() -> impl Strategy<Value = Op> {
    // Spans of every magnitude, with few enough distinct values that ties are common.
    let ahead = (0u32..64, 0u64..4).prop_map(|(shift, n)| n.checked_shl(shift).unwrap_or(0) >> 1);
    prop_oneof![
        6 => (ahead.clone(), 0u32..5).prop_map(|(ahead, source)| Op::Push { ahead, source }),
        1 => (prop_oneof![0u64..50, Just(u64::MAX), any::<u64>()], 0u32..5)
            .prop_map(|(due, source)| Op::PushAt { due, source }),
        1 => (ahead, 1u32..40).prop_map(|(ahead, many)| Op::Burst { ahead, many }),
        4 => (1u32..30).prop_map(|many| Op::Pop { many }),
        2 => Just(Op::Peek),
    ]
}

/// Applies each operation to both queue and model.
struct Pair {
    queue: Queue<u64>,
    model: Model,
    pushed: u64,
}

impl Pair {
    fn push(&mut self, due: u64, source: u32) {
        // Counts fall, so that the order of pushes differs from the order of keys.
        let count = u32::MAX - self.pushed as u32;
        self.queue.push(key(due, source, count), self.pushed);
        self.model.push(key(due, source, count), self.pushed);
        self.pushed += 1;
    }

    fn pop(&mut self) -> bool {
        let (got, expected) = (self.queue.pop(), self.model.pop());
        assert_eq!(got, expected);
        got.is_some()
    }

    fn agree(&mut self) {
        assert_eq!(self.queue.len(), self.model.heap.len());
        assert_eq!(self.queue.is_empty(), self.model.heap.is_empty());
        let due = self.model.heap.peek().map(|Reverse((key, _))| key.due);
        assert_eq!(self.queue.due(), due);
        if let Some(due) = due.filter(|&due| due > self.model.last) {
            assert_eq!(self.queue.pop_by(Time(due.0 - 1)), None, "nothing is due by then");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn order_is_that_of_a_sorted_heap(ops in proptest::collection::vec(op(), 1..200)) {
        let mut pair = Pair { queue: Queue::new(), model: Model::default(), pushed: 0 };
        for op in ops {
            let last = pair.model.last.0;
            match op {
                Op::Push { ahead, source } => pair.push(last.saturating_add(ahead), source),
                Op::PushAt { due, source } => pair.push(due, source),
                Op::Burst { ahead, many } => {
                    (0..many).for_each(|i| pair.push(last.saturating_add(ahead), i % 3));
                }
                Op::Pop { many } => (0..many).for_each(|_| { pair.pop(); }),
                Op::Peek => pair.agree(),
            }
        }
        pair.agree();
        while pair.pop() {}
        pair.agree();
    }
}

#[test]
fn asking_for_the_next_due_time_leaves_room_for_earlier_events() {
    let mut queue = Queue::new();
    queue.push(key(1000, 0, 0), "late");
    assert_eq!(queue.due(), Some(Time(1000)));
    queue.push(key(10, 1, 0), "early");
    assert_eq!(queue.pop(), Some((key(10, 1, 0), "early")));
    assert_eq!(queue.due(), Some(Time(1000)));
    queue.push(key(20, 1, 1), "between");
    assert_eq!(queue.pop(), Some((key(20, 1, 1), "between")));
    assert_eq!(queue.pop(), Some((key(1000, 0, 0), "late")));
    assert_eq!((queue.pop(), queue.due()), (None, None));
}

#[test]
fn an_event_pushed_for_the_past_is_due_now() {
    let mut queue = Queue::new();
    queue.push(key(50, 3, 0), 'a');
    queue.pop();
    queue.push(key(50, 9, 0), 'c');
    queue.push(key(7, 1, 0), 'b');
    assert_eq!(queue.pop(), Some((key(50, 1, 0), 'b')), "its key says when it is really due");
    assert_eq!(queue.pop(), Some((key(50, 9, 0), 'c')));
}

#[test]
fn events_of_the_instant_being_popped_keep_their_order() {
    // A gang: 10⁵ events at one instant, each of which causes another event at the same instant.
    let n = 100_000u32;
    let mut queue = Queue::new();
    for source in (0..n).rev() {
        queue.push(key(1_000_000, source, 0), source);
    }
    let mut popped = 0u32;
    let mut previous = None;
    while let Some((at, source)) = queue.pop() {
        assert!(previous < Some(at), "{at:?} after {previous:?}");
        previous = Some(at);
        if at.count == 0 {
            queue.push(key(at.due.0, source, 1), source);
        }
        popped += 1;
    }
    assert_eq!(popped, 2 * n);
}

#[test]
fn slots_are_used_again() {
    let mut queue = Queue::new();
    for round in 0..1_000u32 {
        for source in 0..10 {
            queue.push(key(u64::from(round) * 7 + u64::from(source), source, round), ());
        }
        for _ in 0..10 {
            queue.pop();
        }
    }
    assert!(queue.is_empty());
    assert_eq!(queue.slab.capacity(), 10, "10 events pend at most");
}

/// Popped events are not foreseen, even if `foresee` is not called after each pop.
#[test]
fn popped_events_are_not_foreseen() {
    let mut queue = Queue::new();
    queue.look_ahead();
    (0..4).for_each(|count| queue.push(key(5, 0, count), count));
    assert_eq!([queue.pop(), queue.pop()].map(|event| event.unwrap().1), [0, 1]);
    queue.foresee(|value| assert!(*value > 1, "{value} has gone"));
    assert_eq!(queue.len(), 2);
}
