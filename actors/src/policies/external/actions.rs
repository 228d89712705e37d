//! The actions that schedulers and nodes have in common.

use super::messages::{Bounds, Vocabulary};
use super::names::{actor_named, duration, value_note};
use super::protocol::{Order, TIMERS};
use crate::machine::{Effects, Timer};

/// Carries out an action that does not need a scheduler. Returns `false` for all other actions.
///
/// # Errors
/// If the program asks for something that does not exist or is out of range.
pub(super) fn carry_out(order: &Order, messages: &Vocabulary, fx: &mut Effects<'_>) -> Result<bool, String> {
    match order {
        Order::Timer { id, .. } if *id >= TIMERS => {
            return Err(format!("the number of a timer must be below {TIMERS}, not {id}"));
        }
        Order::Timer { id, after } => fx.arm(Timer::Tick(*id), duration("after", *after)?),
        Order::Note { name, value } => fx.note(value_note(name, *value)?),
        Order::Send { to, name, values, repair } => {
            let msg = messages.write(name, values, Bounds { layout: fx.layout(), catalog: fx.catalog() })?;
            let receiver = actor_named(to, fx.layout())?;
            if receiver == fx.me() {
                return Err(format!("{to} sends a message to itself; use a timer"));
            }
            fx.send_as(*repair, receiver, msg);
        }
        Order::Launch { .. }
        | Order::Gang { .. }
        | Order::Preempt { .. }
        | Order::Suspend { .. }
        | Order::Resume { .. } => return Ok(false),
    }
    Ok(true)
}
