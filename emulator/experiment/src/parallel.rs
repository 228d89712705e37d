//! A parallel map over a range of numbers, on all processors.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

/// Number of processors that the process may use.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The results of `make` for `numbers`, in their order. A thread takes the next number when it is free.
pub fn map<T: Send>(numbers: Range<usize>, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(numbers.start);
    let worker = || {
        let mine = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let mine = mine.take_while(|number| numbers.contains(number));
        mine.map(|number| (number, make(number))).collect::<Vec<_>>()
    };
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads().min(numbers.len())).map(|_| scope.spawn(worker)).collect();
        let mut made = worker();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_numbers() {
        for numbers in [0..0, 3..4, 5..1_000] {
            assert_eq!(map(numbers.clone(), |number| number * 2), numbers.map(|n| n * 2).collect::<Vec<_>>());
        }
    }
}
