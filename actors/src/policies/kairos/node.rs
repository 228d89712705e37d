//! The node manager of Kairos: least attained service, and reports of it to the central scheduler.

use super::config::Kairos;
use crate::machine::{Effects, Input, Machine, Timer};
use crate::message::{Core, Launch, Message, NodeReport};
use crate::policies::policy::BuildContext;
use crate::roles::heartbeats::{BEAT, Heartbeats};
use crate::roles::las::Las;

/// A node manager.
pub(super) struct KairosNode {
    las: Las,
    beats: Heartbeats,
}

// With four cores of 104 bytes, or with one and six places of 56 bytes for copies that wait, at most 700 bytes.
const _: () = assert!(size_of::<KairosNode>() <= 256, "nodes are many");

impl KairosNode {
    pub(super) fn new(config: &Kairos, context: BuildContext<'_>) -> Self {
        // A lost last report of an idle node would leave an earlier one in force.
        let beats = Heartbeats::new(config.interval, context.index, context.layout.nodes())
            .always(context.lossy && !config.silent)
            .silent(config.silent);
        Self { las: Las::new(config.las(), context.layout.cores(context.index)), beats }
    }

    fn beat(&mut self, fx: &mut Effects<'_>) {
        let service = self.las.service(fx.now());
        let report = NodeReport::Service {
            tasks: service.tasks,
            attained_ms: service.total.whole_millis(),
            spread_ms: service.spread.whole_millis(),
            at: fx.now(),
        };
        fx.send(fx.layout().scheduler(0), report);
        self.beats.sent();
    }

    fn deliver(&mut self, input: Input, fx: &mut Effects<'_>) {
        let Input::Deliver { from, msg } = input else { return };
        match msg {
            Message::Launch(Launch::Task { copy, .. }) => {
                self.las.arrive(from, copy, fx);
                self.beats.changed();
            }
            Message::Core(Core::Ended { copy }) => {
                if let Some(scheduler) = self.las.ended(from, copy, fx) {
                    fx.send(scheduler, Launch::Completed { copy });
                }
                self.beats.changed();
            }
            Message::Core(Core::Suspended { copy, left }) => self.las.suspended(from, copy, left, fx),
            Message::Core(Core::Score { copy, done_ms, .. }) => {
                self.las.told(from, copy, done_ms, fx);
            }
            _ => fx.unexpected(&msg),
        }
    }
}

impl Machine for KairosNode {
    fn step(&mut self, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Deliver { .. } => self.deliver(input, fx),
            Input::Fire(Timer::Tick(BEAT)) => self.beat(fx),
            Input::Fire(Timer::Tick(tick)) => self.las.fire(tick, fx),
            // The peer timeout paces the repetition; a crashed scheduler is reported down instead.
            Input::Undelivered { to, msg: Message::Launch(Launch::Completed { copy }) } => {
                fx.recover(to, Launch::Completed { copy });
            }
            Input::Down { actor } => {
                self.las.forget(actor, fx);
                self.beats.changed();
            }
            // A start and a restarted scheduler need no action; reports are datagrams; only ticks are armed; the other
            // inputs are a worker's.
            _ => {}
        }
        self.beats.arm(self.las.tasks() == 0, fx);
    }
}
