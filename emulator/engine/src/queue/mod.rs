//! The event queue.

mod radix_heap;
mod slab;

pub use radix_heap::Queue;
pub use slab::Key;

#[cfg(test)]
mod tests;
