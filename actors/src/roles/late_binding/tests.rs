//! Step tests of late binding.

use super::*;
use crate::base::JobId;
use crate::harness::Harness;
use crate::layout::Layout;
use crate::machine::{Effect, Input, Timer};
use crate::message::{Job, Launch};
use crate::roles::dispatcher::Dispatcher;

/// A job ends and is submitted again while the timer of its first submission is armed. Only the timer of the second
/// submission repeats its probes.
#[test]
fn after_a_resubmission_only_the_new_timer_repeats_probes() {
    let layout = Layout::new(1, 0, [1; 4]);
    let machine = Box::new(Dispatcher::with(LateBinding::new(ProbeOptions::default(), None, true), &layout));
    let mut bench = Harness::new(layout.clone(), layout.scheduler(0), 1, machine);
    let (job, client, node) = (JobId(0), layout.client(0), layout.node(0));
    let armed = |effects: &[Effect]| {
        let after = |effect: &Effect| match *effect {
            Effect::Arm { timer: Timer::Recheck { .. }, after } => Some(after),
            _ => None,
        };
        effects.iter().filter_map(after).collect::<Vec<_>>()
    };
    let look = Input::Fire(Timer::Recheck { job, attempt: 0 });
    let [timeout] = armed(&bench.submit(0))[..] else { panic!("not exactly one timer is armed") };
    bench.now += timeout.scale(0.5);
    bench.receive(node, Launch::Completed { copy: job.task(0).copy(0) });
    assert_eq!(armed(&bench.deliver(client, Job::Submit { job, round: 1 })), [timeout]);
    bench.now += timeout.scale(0.5);
    assert_eq!(bench.step(look), [], "the timer of the first submission is void");
    bench.now += timeout.scale(0.5);
    assert_eq!(armed(&bench.step(look)), [timeout.scale(2.0)]);
}
