//! The relay between an injector and the controller that the agent serves.

use super::state::AgentState;
use crate::cluster::net::{Control, End};
use crate::cluster::protocol::{AgentMessage, InjectReply, InjectorMessage, Refusal};

/// The refusal of a host that serves no controller.
pub(super) const NOT_RUNNING: &str = "the hosts run nothing: start one with `volary run … --runtime hosts --hosts \
     FILE`, and inject while it goes on";

/// Passes messages on in both directions until the injector disconnects, which the controller learns, or until the
/// session of the controller ends. Returns the reason for its end.
pub(super) async fn relay(state: &AgentState, mut control: Control<InjectReply, InjectorMessage>) -> End {
    let not_running = || InjectReply::Refused(Refusal::NotRunning, NOT_RUNNING.to_owned());
    let Some((injector, mut replies, controller)) = state.add_injector() else {
        return control.send(&not_running()).await.err().unwrap_or(End::Done);
    };
    let end = loop {
        tokio::select! {
            message = control.incoming.receive() => match message {
                Ok(message) => drop(controller.send(AgentMessage::Injector { injector, message }).await),
                Err(end) => break end,
            },
            reply = replies.recv() => {
                let over = reply.is_none();
                if let Err(end) = control.outgoing.send(&reply.unwrap_or_else(not_running)).await {
                    break end;
                }
                if over {
                    break End::Done;
                }
            }
        }
    };
    state.remove_injector(injector);
    // Fails if the session is over, and the controller gone.
    let _ = controller.send(AgentMessage::InjectorGone { injector, why: end.to_string() }).await;
    end
}
