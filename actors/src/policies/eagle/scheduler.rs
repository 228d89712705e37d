//! A scheduler of Eagle or Hawk: it binds short jobs late, and long ones early when they come to it.

use super::central::LeastWait;
use crate::base::JobId;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Job, Launch, Message};
use crate::policies::policy::BuildContext;
use crate::roles::early_binding::EarlyBinding;
use crate::roles::late_binding::{LateBinding, ProbeOptions, StateSharing};

/// Both schedulers in one machine: any can become the central one.
pub(in crate::policies) struct Hybrid {
    short: LateBinding,
    long: EarlyBinding<LeastWait>,
}

impl Hybrid {
    /// Long tasks go to the first `big` nodes.
    pub(in crate::policies) fn new(
        options: ProbeOptions,
        big: u32,
        sharing: Option<StateSharing>,
        context: BuildContext<'_>,
    ) -> Self {
        let central = LeastWait::new(context.layout, big, sharing.is_some());
        Self {
            short: LateBinding::new(options, sharing, context.layout, context.lossy),
            long: EarlyBinding::new(central, context.layout),
        }
    }
}

fn is_long(job: JobId, fx: &Effects<'_>) -> bool {
    fx.catalog().job(job).class > 0
}

impl Machine for Hybrid {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        let long = match input {
            Input::Deliver { msg: Message::Job(Job::Submit { job, .. }), .. } => is_long(job, fx),
            Input::Deliver { msg: Message::Launch(Launch::Completed { copy }), .. } => {
                is_long(copy.task.job, fx)
            }
            Input::Undelivered { msg: Message::Launch(_), .. } | Input::Fire(Timer::Tick(_)) => true,
            // Failure notifications concern both.
            Input::Down { .. } | Input::Up { .. } | Input::Start { .. } => {
                self.long.step(input, fx);
                false
            }
            _ => false,
        };
        if long { self.long.step(input, fx) } else { self.short.step(input, fx) }
    }
}
