//! Cache prefetch: the only unsafe code of the crate.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Maximum number of cache lines fetched for one value.
const LINES: usize = 3;

/// Prefetches `value` into the cache. This is a hint without effect on results; it does nothing on machines other than
/// x86-64.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<i8>();
    for line in 0..size_of_val(value).div_ceil(LINE).min(LINES) {
        hint(start.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "an intrinsic; it reads nothing that a program could see")]
fn hint(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction does not access memory in a way that a program could see, and never faults.
    unsafe { _mm_prefetch(address, _MM_HINT_T0) }
}

#[cfg(not(target_arch = "x86_64"))]
const fn hint(_address: *const i8) {}
