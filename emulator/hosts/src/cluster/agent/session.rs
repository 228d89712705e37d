//! The session of one controller: its experiment is planned, and then its runs are executed in turn.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use volary_actors::program::Launcher;
use volary_experiment::codec::LARGEST_FRAME;
use volary_experiment::config::{Bundle, Experiment};
use volary_experiment::sanitize;

use super::injections::InjectionOrder;
use super::log::AgentLog;
use super::run::HostRun;
use super::state::{AgentState, RunContext, TaskGroup, catch_panic};
use crate::cluster::net::Control;
use crate::cluster::net::framed::{ControlReceiver, ControlSender};
use crate::cluster::protocol::{AgentMessage, Assignment, ControllerMessage, MESSAGE_FRAME};

/// Number of runs that may wait for the current run to end.
const RUN_QUEUE: usize = 4;
/// Maximum time within which a controller must send its experiment, which can hold traces.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time within which a controller must close the connection after its experiment was refused.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which log lines are sent.
const LOG_INTERVAL: Duration = Duration::from_millis(100);

/// Serves the controller that has claimed this host, until the controller is gone. `messages` and `queue` are the two
/// ends of the queue of messages to the controller.
pub(super) async fn serve(
    state: &Rc<AgentState>,
    control: Control<AgentMessage, ControllerMessage>,
    messages: mpsc::Sender<AgentMessage>,
    queue: mpsc::Receiver<AgentMessage>,
) -> Result<(), String> {
    let mut control = control.receive_limit(LARGEST_FRAME);
    let bundle = match timeout(LOAD_TIMEOUT, control.receive()).await {
        Ok(Ok(ControllerMessage::Load(bundle))) => *bundle,
        Ok(Ok(_)) => return Err("it claims this host but sends no experiment".to_owned()),
        Ok(Err(why)) => return Err(why.to_string()),
        Err(_) => return Err(format!("no experiment within {} s", LOAD_TIMEOUT.as_secs())),
    };
    let Control { outgoing, incoming } = control.receive_limit(MESSAGE_FRAME);
    let (run, mut runs) = mpsc::channel(RUN_QUEUE);
    let mut tasks = TaskGroup::default();
    tasks.spawn(send_all(outgoing, queue));
    tasks.spawn(receive_all(Rc::clone(state), incoming, run));
    tasks.spawn(send_log(state.settings.log.clone(), messages.clone()));
    let planned = tokio::select! {
        planned = plan(bundle, Arc::clone(&state.settings.programs)) => planned,
        // The planning thread ends by itself; the session need not wait for it.
        run = runs.recv() => return Err(match run {
            Some(_) => "it did not wait until the experiment was planned".to_owned(),
            None => "it disconnected before the experiment was planned".to_owned(),
        }),
    };
    match planned {
        Ok(experiment) => run_all(state, experiment, &mut runs, &messages).await,
        Err(why) => {
            let _ = messages.send(AgentMessage::Refused { run: 0, why: why.clone() }).await;
            // The controller closes the connection when it has received this.
            let _ = timeout(CLOSE_TIMEOUT, runs.recv()).await;
            Err(why)
        }
    }
}

/// Executes one run after the other until the controller is gone.
async fn run_all(
    state: &Rc<AgentState>,
    experiment: Experiment,
    runs: &mut mpsc::Receiver<(Assignment, Rc<RunContext>)>,
    messages: &mpsc::Sender<AgentMessage>,
) -> Result<(), String> {
    let experiment = Arc::new(experiment);
    // Traces are read once and kept for later runs.
    let traces = Arc::new(experiment.traces());
    let mut message = AgentMessage::Loaded;
    loop {
        // The log lines that explain the message precede it.
        if let Some(text) = state.settings.log.take() {
            let _ = messages.send(AgentMessage::Log(text)).await;
        }
        if messages.send(message).await.is_err() {
            return Err("the controller has stopped listening".to_owned());
        }
        let Some((assignment, context)) = runs.recv().await else { return Ok(()) };
        let (latest, run) = (Rc::clone(&context), assignment.run);
        let of_host = HostRun { state, context, messages: messages.clone() };
        state.expect_run(run);
        let ran = catch_panic(of_host.run(Arc::clone(&experiment), Arc::clone(&traces), assignment)).await;
        latest.describe(None);
        state.expect_run(run.saturating_add(1));
        message = match ran {
            Ok(Ok(report)) => AgentMessage::FinalReport(report),
            Ok(Err(why)) => {
                tracing::info!("a run ends early: {why}");
                // A message has one line.
                AgentMessage::Refused { run, why: why.replace('\n', " | ") }
            }
            Err(panic) => {
                tracing::error!("{panic}");
                AgentMessage::Refused { run, why: panic }
            }
        };
    }
}

async fn send_log(log: AgentLog, messages: mpsc::Sender<AgentMessage>) {
    loop {
        log.filled().await;
        if let Some(text) = log.take() {
            let _ = messages.send(AgentMessage::Log(text)).await;
        }
        tokio::time::sleep(LOG_INTERVAL).await;
    }
}

async fn send_all(mut outgoing: ControlSender<AgentMessage>, mut queue: mpsc::Receiver<AgentMessage>) {
    while let Some(message) = queue.recv().await {
        if let Err(error) = outgoing.send(&message).await {
            tracing::warn!("the controller cannot be reached: {error}");
            return;
        }
    }
}

/// The context of the latest run. The run ends when the next run is prepared or the controller is gone.
struct Latest(Rc<RunContext>);

impl Drop for Latest {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Carries out the controller's messages until the controller disconnects, which ends the latest run.
async fn receive_all(
    state: Rc<AgentState>,
    mut incoming: ControlReceiver<ControllerMessage>,
    runs: mpsc::Sender<(Assignment, Rc<RunContext>)>,
) {
    let mut latest = Latest(Rc::new(RunContext::new(state.settings.ticks)));
    loop {
        let context = &latest.0;
        match incoming.receive().await {
            Ok(ControllerMessage::Pong { sent, here }) => context.on_pong(sent, here),
            Ok(ControllerMessage::Progress { slowest, finished }) => {
                context.slowest.set(slowest);
                context.finished.set(finished);
            }
            Ok(ControllerMessage::Start { at }) => context.set_start(at),
            Ok(ControllerMessage::Stop) => context.stop(),
            Ok(ControllerMessage::Inject(order)) => context.order(InjectionOrder::Begin(order)),
            Ok(ControllerMessage::Lift { id, at, why }) => {
                let why = sanitize::line(&why).into_owned();
                context.order(InjectionOrder::Lift { id, at, why });
            }
            Ok(ControllerMessage::Prepare(assignment)) => {
                latest = Latest(Rc::new(RunContext::new(state.settings.ticks)));
                if runs.send((*assignment, Rc::clone(&latest.0))).await.is_err() {
                    return;
                }
            }
            // Valid only as the first message, and ignored later.
            Ok(ControllerMessage::Load(_)) => {}
            Err(error) => return tracing::info!("the controller disconnected: {error}"),
        }
    }
}

/// Plans an experiment; fails if one of its policies needs a program that may not run on this host.
async fn plan(bundle: Bundle, programs: Arc<dyn Launcher>) -> Result<Experiment, String> {
    let planned = spawn_blocking(move || Experiment::from_bundle(&bundle)).await;
    let experiment = planned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let mut needed = experiment.points.iter().filter_map(|point| point.policy.traits().program);
    needed.try_for_each(|program| programs.check(program))?;
    Ok(experiment)
}
