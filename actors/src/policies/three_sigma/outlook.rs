//! Expected use of cores: the probability that a task still runs, by slots from now on.

use crate::predict::Distribution;

/// Probabilities below this count as none.
const NONE: f64 = 1e-9;

/// Expected cores of a task by slots of `slot` seconds after its start (thesis, section 4.2.2): 1 − CDF at the start of
/// each slot, without the zeros at the end. It holds its core in the first one anyway.
pub(super) fn demand(run: &Distribution, slot: f64, slots: u32) -> Vec<f64> {
    remaining(run, 0.0, slot, slots)
}

/// The same of a task that has run for `elapsed` seconds, by slots from now on; `run` is its total run time.
pub(super) fn remaining(run: &Distribution, elapsed: f64, slot: f64, slots: u32) -> Vec<f64> {
    let mut demand = vec![1.0];
    for at in 1..slots {
        let left = 1.0 - run.cdf(elapsed + f64::from(at) * slot);
        if left < NONE {
            break;
        }
        demand.push(left);
    }
    demand
}

/// The total run time of a job that has run for `elapsed` seconds, in cycles of `cycle` seconds: what is left of the
/// distribution (equation 4.2), or, where the job has run longer than any value of it, the next of the times at which
/// it is then expected to end (section 4.3.2).
pub(super) fn given(run: &Distribution, elapsed: f64, cycle: f64) -> Distribution {
    run.given(elapsed).unwrap_or_else(|| Distribution::point(extended(run.max(), elapsed, cycle)))
}

/// The expected run time of a job that has run for `elapsed`, longer than its longest expected one: that was exceeded
/// by one cycle at first, then by two more, by four more, and so on whenever it was reached.
fn extended(longest: f64, elapsed: f64, cycle: f64) -> f64 {
    let (mut end, mut step) = (longest + cycle, cycle);
    while end <= elapsed {
        step *= 2.0;
        end += step;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected cores at ages of multiples of 2.5, from the thesis's example (O-T1).
    #[test]
    fn demand_is_the_probability_that_a_task_still_runs() {
        assert_eq!(demand(&Distribution::uniform(0.0, 10.0), 2.5, 8), [1.0, 0.75, 0.5, 0.25]);
        assert_eq!(demand(&Distribution::uniform(2.5, 7.5), 2.5, 8), [1.0, 1.0, 0.5]);
        assert_eq!(demand(&Distribution::point(5.0), 2.5, 8), [1.0, 1.0], "it has ended after two slots");
        assert_eq!(demand(&Distribution::point(50.0), 2.5, 3), [1.0; 3]);
    }

    /// O-T2: U(0, 10) after 5.
    #[test]
    fn elapsed_time_is_a_condition() {
        let left = given(&Distribution::uniform(0.0, 10.0), 5.0, 2.0);
        assert_eq!([5.0, 7.5, 10.0].map(|t| 1.0 - left.cdf(t)), [1.0, 0.5, 0.0]);
    }

    /// O-T3: a job that outlives its estimate is expected to end 1, 2, 4, 8 cycles later.
    #[test]
    fn underestimates_are_extended_exponentially() {
        let run = Distribution::point(10.0);
        let (mut elapsed, mut extensions) = (10.0, Vec::new());
        for _ in 0..5 {
            let end = given(&run, elapsed, 2.0).max();
            extensions.push((end - elapsed) / 2.0);
            elapsed = end;
        }
        assert_eq!(extensions, [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(given(&run, 15.5, 2.0).max(), 16.0, "between two of them the next one counts");
    }
}
