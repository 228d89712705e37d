//! The event queue.

mod radix_heap;
mod slab;

pub use radix_heap::{Key, Queue};

#[cfg(test)]
mod tests;
