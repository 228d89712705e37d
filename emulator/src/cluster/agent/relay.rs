//! What an agent does for an injector.

use std::rc::Rc;
use std::time::Duration;

use volary_actors::base::Time;

use super::injectable::InjectableCell;
use super::state::AgentState;
use super::tasks::catch_panic;
use crate::cluster::inject::words::{Dose, Reply, Request, Scene};
use crate::cluster::net::{Control, End};

/// How long to sleep at most until a time of the run: what is known of the clock gets better.
const NAP: Duration = Duration::from_millis(200);

/// Answers an injector until it goes. What it injected ends with it, however it goes.
pub(crate) async fn serve(state: &Rc<AgentState>, mut control: Control<Reply, Request>) -> Result<(), End> {
    loop {
        let reply = match control.receive().await? {
            Request::Scene => Reply::Scene(match state.injectable() {
                Some(injectable) => Scene::Runs(Box::new(injectable.running())),
                None if state.is_taken() => Scene::Between,
                None => Scene::Idle,
            }),
            Request::Aim { run, targets } => {
                match staged(state, run).and_then(|injectable| injectable.aim(&targets)) {
                    Ok(aimed) => Reply::Aimed(Box::new(aimed)),
                    Err((wrong, why)) => Reply::Refused { wrong, why },
                }
            }
            Request::Begin(dose) => match staged(state, dose.run) {
                Ok(injectable) => inject(&injectable, &dose, &mut control).await?,
                Err((wrong, why)) => Reply::Refused { wrong, why },
            },
            Request::End => Reply::Refused { wrong: true, why: "nothing is injected".to_owned() },
        };
        control.send(&reply).await?;
    }
}

/// The unit that is meant.
fn staged(state: &AgentState, run: u64) -> Result<Rc<InjectableCell>, super::injectable::Refusal> {
    let injectable = state.injectable().filter(|injectable| injectable.run == run);
    injectable.ok_or_else(|| (false, "the cell was over before this came".to_owned()))
}

/// Injects, and waits for whatever ends it; says how it ended.
async fn inject(
    injectable: &InjectableCell,
    dose: &Dose,
    control: &mut Control<Reply, Request>,
) -> Result<Reply, End> {
    let (number, from) = match injectable.begin(dose).await {
        Ok(begun) => begun,
        Err((wrong, why)) => return Ok(Reply::Refused { wrong, why }),
    };
    // Even a bug does not leave it behind.
    let ended = catch_panic(wait(injectable, dose, from, control)).await;
    let why = match &ended {
        Ok(Ok(why)) => (*why).to_owned(),
        Ok(Err(end)) => format!("whoever injected it is gone: {end}"),
        Err(bug) => bug.clone(),
    };
    let until = injectable.end(number, dose, &why).await;
    if let Ok(Err(end)) = ended {
        return Err(end);
    }
    let over = || Reply::Over {
        until: injectable.clock.now().min(dose.notice.until),
        why: "the cell was over".to_owned(),
    };
    Ok(until.map_or_else(over, |until| Reply::Over { until, why }))
}

/// Waits for the end of an injection; says why it ends.
async fn wait(
    injectable: &InjectableCell,
    dose: &Dose,
    from: Time,
    control: &mut Control<Reply, Request>,
) -> Result<&'static str, End> {
    control.send(&Reply::Begun { from }).await?;
    tokio::select! {
        request = control.incoming.receive() => match request? {
            Request::End => Ok("whoever injected it ended it"),
            Request::Scene | Request::Aim { .. } | Request::Begin(_) => Ok("whoever injected it asked for more"),
        },
        () = passed(injectable, dose.notice.until) => Ok("its time was over"),
        () = injectable.context.halted() => Ok("the cell was over"),
    }
}

/// Waits until a time of the run has passed.
async fn passed(injectable: &InjectableCell, at: Time) {
    while injectable.clock.now() < at {
        tokio::time::sleep(injectable.clock.until(at).min(NAP)).await;
    }
}
