//! What an agent does for a controller: plans its experiment and takes part in its units.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::caught::caught;
use super::crew::Crew;
use super::desk::{Desk, WORDS};
use super::house::{FAREWELL, House};
use super::log::RunLog;
use super::part::Part;
use super::protocol::{Assignment, Order, WORD_FRAME, Word};
use crate::cluster::net::Control;
use crate::cluster::net::control::{ControlReceiver, ControlSender};
use crate::codec::LARGEST_FRAME;
use crate::runtime::real::ticks::Ticks;
use crate::spec::{Bundle, Experiment};

/// How long a controller may take to send its experiment, which can hold traces.
const LOADING: Duration = Duration::from_secs(60);
/// Between two looks at what was logged.
const LOG_EVERY: Duration = Duration::from_millis(100);

/// Serves a controller, which has claimed this host, until it goes.
pub(super) async fn session(house: &Rc<House>, control: Control<Word, Order>) -> Result<(), String> {
    let mut control = control.receive_limit(LARGEST_FRAME);
    let bundle = match timeout(LOADING, control.receive()).await {
        Ok(Ok(Order::Load { bundle, hosts })) => {
            // Before we say that we have loaded: nobody calls us earlier.
            house.transport.admit(hosts);
            *bundle
        }
        Ok(Ok(_)) => return Err("it claims this host and brings no experiment".to_owned()),
        Ok(Err(why)) => return Err(why.to_string()),
        Err(_) => return Err(format!("no experiment within {} s", LOADING.as_secs())),
    };
    let Control { outgoing: sender, incoming: receiver } = control.receive_limit(WORD_FRAME);
    let (words, outgoing) = mpsc::channel(WORDS);
    let (order, mut orders) = mpsc::channel(4);
    let mut crew = Crew::default();
    crew.add(write(sender, outgoing));
    crew.add(read(receiver, order, house.ticks));
    crew.add(tell(house.log.clone(), words.clone()));
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
            let _ = words.send(Word::Refused { run: 0, why: why.clone() }).await;
            // It hangs up when it has heard.
            let _ = timeout(FAREWELL, orders.recv()).await;
            return Err(why);
        }
    };
    // What one unit reads the next need not.
    let traces = Arc::new(experiment.traces());
    let mut word = Word::Loaded;
    loop {
        // What led to it comes first.
        if let Some(text) = house.log.take() {
            let _ = words.send(Word::Log(text)).await;
        }
        if words.send(word).await.is_err() {
            return Err("the controller does not listen any more".to_owned());
        }
        let Some((assignment, desk)) = orders.recv().await else { return Ok(()) };
        let (part, run) = (Part { house, desk, words: words.clone() }, assignment.run);
        house.begin(run);
        let ran = caught(part.run(Arc::clone(&experiment), Arc::clone(&traces), assignment)).await;
        house.begin(run.saturating_add(1));
        word = match ran {
            Ok(Ok(account)) => Word::Account(account),
            Ok(Err(why)) => {
                tracing::info!("a run ends early: {why}");
                Word::Refused { run, why }
            }
            Err(bug) => {
                tracing::error!("{bug}");
                Word::Refused { run, why: bug }
            }
        };
    }
}

/// Sends on what is logged.
async fn tell(log: RunLog, words: mpsc::Sender<Word>) {
    loop {
        log.filled().await;
        if let Some(text) = log.take() {
            let _ = words.send(Word::Log(text)).await;
        }
        tokio::time::sleep(LOG_EVERY).await;
    }
}

async fn write(mut sender: ControlSender<Word>, mut outgoing: mpsc::Receiver<Word>) {
    while let Some(word) = outgoing.recv().await {
        if let Err(error) = sender.send(&word).await {
            tracing::warn!("the controller cannot be reached: {error}");
            return;
        }
    }
}

/// The desk of the latest unit. When another comes, or nobody listens to the controller, it is over.
struct Latest(Rc<Desk>);

impl Drop for Latest {
    fn drop(&mut self) {
        self.0.halt();
    }
}

/// Hands on what the controller says. When it is gone, so is what it started.
async fn read(
    mut receiver: ControlReceiver<Order>,
    units: mpsc::Sender<(Assignment, Rc<Desk>)>,
    ticks: Ticks,
) {
    let mut latest = Latest(Rc::new(Desk::new(ticks)));
    loop {
        let desk = &latest.0;
        match receiver.receive().await {
            Ok(Order::Pong { sent, here }) => desk.pong(sent, here),
            Ok(Order::Progress { slowest }) => desk.slowest.set(slowest),
            Ok(Order::Start { at }) => desk.begin(at),
            Ok(Order::Stop) => desk.halt(),
            Ok(Order::Prepare(assignment)) => {
                latest = Latest(Rc::new(Desk::new(ticks)));
                if units.send((*assignment, Rc::clone(&latest.0))).await.is_err() {
                    return;
                }
            }
            // Said once, at the beginning.
            Ok(Order::Claim | Order::Inject | Order::Load { .. } | Order::Status) => {}
            Err(error) => return tracing::info!("the controller has gone: {error}"),
        }
    }
}

async fn plan(bundle: Bundle) -> Result<Experiment, String> {
    let planned = spawn_blocking(move || Experiment::from_bundle(&bundle)).await;
    planned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
