//! Work and rates in exact arithmetic.
//!
//! Work is counted in units of 2⁻⁴⁸ ns of the reference core, in 128 bits. The sum over stretches is the same in any
//! order. The time at which a copy finishes therefore always agrees with the work left when the copy is stopped
//! earlier.

use volary_actors::base::Span;

const FRACTION: u32 = 48;

/// Work done per nanosecond, in units of 2⁻⁴⁸ ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate(u64);

/// Speed of a healthy core, as a number and as a rate, with the sensitivity of the core's copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreRate {
    speed: f64,
    pub(super) healthy: Rate,
    /// Sensitivity of the copy: the fraction of a slowdown above 1 that it suffers.
    felt: f64,
}

/// The progress of a copy: an integral of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WorkIntegral {
    /// Time up to which work is counted.
    pub(super) at: u64,
    /// Work left at the time `at`, in units of 2⁻⁴⁸ ns.
    left: u128,
}

impl Rate {
    /// The rate of a healthy reference core.
    pub(super) const ONE: Self = Self(1 << FRACTION);

    /// The rate of a healthy core of this speed, rounded up, so that work which takes a whole number of nanoseconds
    /// takes exactly that number. The rate is never zero: only a pause stops a core.
    pub(super) fn of(speed: f64) -> Self {
        Self(((speed * (1u64 << FRACTION) as f64).ceil() as u64).max(1))
    }
}

impl CoreRate {
    pub(super) fn of(speed: f64) -> Self {
        Self { speed, healthy: if speed == 1.0 { Rate::ONE } else { Rate::of(speed) }, felt: 1.0 }
    }

    /// These rates for a copy that suffers the fraction `felt` of a slowdown above 1.
    pub(super) const fn feeling(self, felt: f64) -> Self {
        Self { felt, ..self }
    }

    /// The rate under slowdown σ.
    pub(super) fn slowed(self, slowdown: f64) -> Rate {
        if slowdown == 1.0 || self.felt == 0.0 {
            self.healthy
        } else if self.felt == 1.0 {
            Rate::of(self.speed / slowdown)
        } else {
            Rate::of(self.speed / self.felt.mul_add(slowdown - 1.0, 1.0))
        }
    }
}

impl WorkIntegral {
    /// Creates an integral with all of `work` left at `at`.
    pub(super) const fn new(at: u64, work: Span) -> Self {
        Self { at, left: (work.0 as u128) << FRACTION }
    }

    /// Whether no work is left.
    pub(super) const fn done(&self) -> bool {
        self.left == 0
    }

    /// Work left, rounded up, so never zero before the finish.
    pub(super) fn left(&self) -> Span {
        Span(self.left.div_ceil(1 << FRACTION) as u64)
    }

    /// This integral without the last `rest` of its work.
    pub(super) const fn until_left(self, rest: Span) -> Self {
        Self { at: self.at, left: self.left.saturating_sub((rest.0 as u128) << FRACTION) }
    }

    /// Works at `rate` until `end` or, rounded up to the nanosecond, until no work is left.
    pub(super) fn work(&mut self, rate: Rate, end: u64) {
        let rate = u128::from(rate.0);
        let possible = u128::from(end - self.at) * rate;
        if possible >= self.left {
            // Fits: the quotient is at most `end - at`.
            self.at += self.left.div_ceil(rate) as u64;
            self.left = 0;
        } else {
            self.left -= possible;
            self.at = end;
        }
    }

    /// A lower bound on the number of stretches of `length` ns, each worked at `rate`, that end before the work is
    /// done.
    pub(super) fn fit(&self, length: u64, rate: Rate) -> u64 {
        let most = (u128::from(length) * u128::from(rate.0)) >> FRACTION;
        ((self.left >> FRACTION) as u64) / u64::try_from(most + 1).unwrap_or(u64::MAX)
    }

    /// Works for `count` stretches of `length` ns each, `slow` of them at the second rate, in any order. `count` is at
    /// most [`fit`](Self::fit).
    pub(super) fn stride(&mut self, length: u64, (count, rate): (u64, Rate), (slow, slow_rate): (u64, Rate)) {
        let done = u128::from(count - slow) * u128::from(rate.0) + u128::from(slow) * u128::from(slow_rate.0);
        self.left -= done * u128::from(length);
        self.at += count * length;
    }

    /// Moves to `end` without doing work.
    pub(super) fn rest(&mut self, end: u64) {
        self.at = self.at.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_work_takes_exactly_sigma_seconds() {
        for sigma in [1.0, 2.0, 3.0, 4.0, 7.0, 10.0, 1.5, 100.0] {
            let mut integral = WorkIntegral::new(5, Span::from_secs(1));
            integral.work(Rate::of(1.0 / sigma), u64::MAX);
            assert_eq!((integral.at, integral.done()), (5 + (1e9 * sigma) as u64, true), "slowdown {sigma}");
        }
    }

    #[test]
    fn work_not_done_before_the_end_is_left() {
        let mut integral = WorkIntegral::new(0, Span(10));
        integral.work(Rate::of(0.5), 9);
        assert_eq!((integral.at, integral.left(), integral.done()), (9, Span(6), false), "5.5 ns are left");
        integral.rest(20);
        integral.work(Rate::ONE, u64::MAX);
        assert_eq!((integral.at, integral.left(), integral.done()), (26, Span(0), true));
        let mut endless = WorkIntegral::new(1, Span::MAX);
        endless.work(Rate::of(1e-9), u64::MAX);
        assert_eq!((endless.at, endless.done()), (u64::MAX, false), "longer than time itself");
    }
}
