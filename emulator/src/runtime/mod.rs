//! What moves the clock, and many cells at once.
