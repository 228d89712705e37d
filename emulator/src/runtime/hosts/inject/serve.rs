//! What an agent does for an injector.

use std::rc::Rc;
use std::time::Duration;

use volary_actors::base::Time;

use super::stage::Stage;
use super::words::{Dose, Reply, Request, Scene};
use crate::cluster::net::{Control, End};
use crate::runtime::hosts::caught::caught;
use crate::runtime::hosts::house::House;

/// How long to sleep at most until a time of the run: what is known of the clock gets better.
const NAP: Duration = Duration::from_millis(200);

/// Answers an injector until it goes. What it injected ends with it, however it goes.
pub(in crate::runtime::hosts) async fn serve(
    house: &Rc<House>,
    mut control: Control<Reply, Request>,
) -> Result<(), End> {
    loop {
        let reply = match control.receive().await? {
            Request::Scene => Reply::Scene(match house.stage() {
                Some(stage) => Scene::Runs(Box::new(stage.running())),
                None if house.is_taken() => Scene::Between,
                None => Scene::Idle,
            }),
            Request::Aim { run, targets } => match staged(house, run).and_then(|stage| stage.aim(&targets)) {
                Ok(aimed) => Reply::Aimed(Box::new(aimed)),
                Err((wrong, why)) => Reply::Refused { wrong, why },
            },
            Request::Begin(dose) => match staged(house, dose.run) {
                Ok(stage) => inject(&stage, &dose, &mut control).await?,
                Err((wrong, why)) => Reply::Refused { wrong, why },
            },
            Request::End => Reply::Refused { wrong: true, why: "nothing is injected".to_owned() },
        };
        control.send(&reply).await?;
    }
}

/// The unit that is meant.
fn staged(house: &House, run: u64) -> Result<Rc<Stage>, super::stage::Refusal> {
    let stage = house.stage().filter(|stage| stage.run == run);
    stage.ok_or_else(|| (false, "the cell was over before this came".to_owned()))
}

/// Injects, and waits for whatever ends it; says how it ended.
async fn inject(stage: &Stage, dose: &Dose, control: &mut Control<Reply, Request>) -> Result<Reply, End> {
    let (number, from) = match stage.begin(dose).await {
        Ok(begun) => begun,
        Err((wrong, why)) => return Ok(Reply::Refused { wrong, why }),
    };
    // Even a bug does not leave it behind.
    let ended = caught(wait(stage, dose, from, control)).await;
    let why = match &ended {
        Ok(Ok(why)) => (*why).to_owned(),
        Ok(Err(end)) => format!("whoever injected it is gone: {end}"),
        Err(bug) => bug.clone(),
    };
    let until = stage.end(number, dose, &why).await;
    if let Ok(Err(end)) = ended {
        return Err(end);
    }
    let over = || Reply::Over {
        until: stage.clock.now().min(dose.notice.until),
        why: "the cell was over".to_owned(),
    };
    Ok(until.map_or_else(over, |until| Reply::Over { until, why }))
}

/// Waits for the end of an injection; says why it ends.
async fn wait(
    stage: &Stage,
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
        () = passed(stage, dose.notice.until) => Ok("its time was over"),
        () = stage.desk.halted() => Ok("the cell was over"),
    }
}

/// Waits until a time of the run has passed.
async fn passed(stage: &Stage, at: Time) {
    while stage.clock.now() < at {
        tokio::time::sleep(stage.clock.until(at).min(NAP)).await;
    }
}
