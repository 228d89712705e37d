//! What an agent does for a controller: plans its experiment and takes part in its units.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::cell::AgentCell;
use super::context::{CellContext, WORDS};
use super::log::RunLog;
use super::state::{AgentState, CLOSE_TIMEOUT};
use super::tasks::TaskGroup;
use super::tasks::catch_panic;
use crate::cluster::net::Control;
use crate::cluster::net::control::{ControlReceiver, ControlSender};
use crate::cluster::protocol::{AgentMessage, Assignment, ControllerMessage, MESSAGE_FRAME};
use crate::codec::LARGEST_FRAME;
use crate::config::{Bundle, Experiment};
use crate::runtime::live::clock::MonotonicClock;

/// How long a controller may take to send its experiment, which can hold traces.
const LOADING: Duration = Duration::from_secs(60);
/// Between two looks at what was logged.
const LOG_EVERY: Duration = Duration::from_millis(100);

/// Serves a controller, which has claimed this host, until it goes.
pub(crate) async fn session(
    state: &Rc<AgentState>,
    control: Control<AgentMessage, ControllerMessage>,
) -> Result<(), String> {
    let mut control = control.receive_limit(LARGEST_FRAME);
    let bundle = match timeout(LOADING, control.receive()).await {
        Ok(Ok(ControllerMessage::Load(bundle))) => *bundle,
        Ok(Ok(_)) => return Err("it claims this host and brings no experiment".to_owned()),
        Ok(Err(why)) => return Err(why.to_string()),
        Err(_) => return Err(format!("no experiment within {} s", LOADING.as_secs())),
    };
    let Control { outgoing: sender, incoming: receiver } = control.receive_limit(MESSAGE_FRAME);
    let (words, outgoing) = mpsc::channel(WORDS);
    let (order, mut orders) = mpsc::channel(4);
    let mut tasks = TaskGroup::default();
    tasks.add(write(sender, outgoing));
    tasks.add(read(receiver, order, state.ticks));
    tasks.add(tell(state.log.clone(), words.clone()));
    let planned = tokio::select! {
        planned = plan(bundle) => planned,
        // The planning ends by itself, for nobody; the seat is free at once.
        order = orders.recv() => return Err(match order {
            Some(_) => "it did not wait until the experiment was planned".to_owned(),
            None => "it went before the experiment was planned".to_owned(),
        }),
    };
    let experiment = match planned {
        Ok(experiment) => Arc::new(experiment),
        Err(why) => {
            let _ = words.send(AgentMessage::Refused { run: 0, why: why.clone() }).await;
            // It hangs up when it has heard.
            let _ = timeout(CLOSE_TIMEOUT, orders.recv()).await;
            return Err(why);
        }
    };
    // What one unit reads the next need not.
    let traces = Arc::new(experiment.traces());
    let mut word = AgentMessage::Loaded;
    loop {
        // What led to it comes first.
        if let Some(text) = state.log.take() {
            let _ = words.send(AgentMessage::Log(text)).await;
        }
        if words.send(word).await.is_err() {
            return Err("the controller does not listen any more".to_owned());
        }
        let Some((assignment, context)) = orders.recv().await else { return Ok(()) };
        let (part, run) = (AgentCell { state, context, words: words.clone() }, assignment.run);
        state.begin(run);
        let cell = catch_panic(part.run(Arc::clone(&experiment), Arc::clone(&traces), assignment)).await;
        state.begin(run.saturating_add(1));
        word = match cell {
            Ok(Ok(account)) => AgentMessage::FinalReport(account),
            Ok(Err(why)) => {
                tracing::info!("a run ends early: {why}");
                AgentMessage::Refused { run, why }
            }
            Err(bug) => {
                tracing::error!("{bug}");
                AgentMessage::Refused { run, why: bug }
            }
        };
    }
}

/// Sends on what is logged.
async fn tell(log: RunLog, words: mpsc::Sender<AgentMessage>) {
    loop {
        log.filled().await;
        if let Some(text) = log.take() {
            let _ = words.send(AgentMessage::Log(text)).await;
        }
        tokio::time::sleep(LOG_EVERY).await;
    }
}

async fn write(mut sender: ControlSender<AgentMessage>, mut outgoing: mpsc::Receiver<AgentMessage>) {
    while let Some(word) = outgoing.recv().await {
        if let Err(error) = sender.send(&word).await {
            tracing::warn!("the controller cannot be reached: {error}");
            return;
        }
    }
}

/// The context of the latest unit. When another comes, or nobody listens to the controller, it is over.
struct Latest(Rc<CellContext>);

impl Drop for Latest {
    fn drop(&mut self) {
        self.0.halt();
    }
}

/// Hands on what the controller says. When it is gone, so is what it started.
async fn read(
    mut receiver: ControlReceiver<ControllerMessage>,
    units: mpsc::Sender<(Assignment, Rc<CellContext>)>,
    ticks: MonotonicClock,
) {
    let mut latest = Latest(Rc::new(CellContext::new(ticks)));
    loop {
        let context = &latest.0;
        match receiver.receive().await {
            Ok(ControllerMessage::Pong { sent, here }) => context.pong(sent, here),
            Ok(ControllerMessage::Progress { slowest }) => context.slowest.set(slowest),
            Ok(ControllerMessage::Start { at }) => context.begin(at),
            Ok(ControllerMessage::Stop) => context.halt(),
            Ok(ControllerMessage::Prepare(assignment)) => {
                latest = Latest(Rc::new(CellContext::new(ticks)));
                if units.send((*assignment, Rc::clone(&latest.0))).await.is_err() {
                    return;
                }
            }
            // Said once, at the beginning.
            Ok(
                ControllerMessage::Claim
                | ControllerMessage::Inject
                | ControllerMessage::Load(_)
                | ControllerMessage::Status,
            ) => {}
            Err(error) => return tracing::info!("the controller has gone: {error}"),
        }
    }
}

async fn plan(bundle: Bundle) -> Result<Experiment, String> {
    let planned = spawn_blocking(move || Experiment::from_bundle(&bundle)).await;
    planned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
