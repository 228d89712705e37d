//! The injector: requests interference from the controller of the current run, on its socket.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};
use volary_engine::cores::{CoreTable, Effect, Injection, Profile};

use super::error::{HostsError, InjectError};
use super::net::Hosts;
use super::protocol::{InjectReply, InjectRequest, InjectionPlan, InjectionShare, InjectorMessage, Refusal};

/// Maximum wait for the next run of a study, which may have to be built or calibrated first.
const NEXT_RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time within which the controller must end an injection on request.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The requested injection.
#[derive(Clone, Debug)]
pub struct InjectOptions {
    /// The hosts file.
    pub hosts: PathBuf,
    pub profile: Profile,
    /// The request without its profile.
    pub request: InjectRequest,
}

/// An injection on one host, with its effect if the time of its end is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Injected {
    pub share: InjectionShare,
    pub effect: Option<Effect>,
}

/// The injection that would be made now, and the cluster's cores.
///
/// # Errors
/// When the controller cannot be reached, no run is in progress, or a target does not exist.
pub fn dry_run(options: &InjectOptions) -> Result<(Injection, CoreTable), InjectError> {
    with_injector(options, async |mut injector| {
        injector.request(true).await?;
        match injector.first_reply().await? {
            InjectReply::Planned(plan) => injector.injection(&plan),
            InjectReply::Begun(..) | InjectReply::Over(_) | InjectReply::Refused(..) => Err(unexpected()),
        }
    })
}

/// Injects until the requested time has passed, the process is interrupted, or the run ends. `begun` is called when all
/// hosts have begun.
///
/// # Errors
/// When the controller cannot be reached, no run is in progress, a target does not exist, or a host cannot begin; the
/// injection then ends on all hosts.
pub fn inject(
    options: &InjectOptions,
    begun: impl FnOnce(&InjectionPlan, &[InjectionShare]),
) -> Result<Vec<Injected>, InjectError> {
    with_injector(options, async |mut injector| {
        let mut term = signal(SignalKind::terminate()).map_err(HostsError::System)?;
        injector.request(false).await?;
        let InjectReply::Begun(plan, shares) = injector.first_reply().await? else {
            return Err(unexpected());
        };
        begun(&plan, &shares);
        let (injection, table) = injector.injection(&plan)?;
        let interrupted = async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
        };
        let shares = injector.until_over(shares, interrupted).await;
        let effect = |share: InjectionShare| {
            let of = |until| Injection {
                cores: share.cores.clone(),
                from: share.from,
                until,
                ..injection.clone()
            };
            let effect = share.until.and_then(|until| of(until).effect(&table));
            Injected { share, effect }
        };
        Ok(shares.into_iter().map(effect).collect())
    })
}

/// Connects to the controller, and calls `run`.
fn with_injector<T>(
    options: &InjectOptions,
    run: impl AsyncFnOnce(InjectorConnection<'_>) -> Result<T, InjectError>,
) -> Result<T, InjectError> {
    let file = Hosts::load(&options.hosts).map_err(HostsError::from)?;
    if let Some(odd) =
        options.request.hosts.iter().find(|name| file.hosts.iter().all(|host| host.name != **name))
    {
        let known: Vec<_> = file.hosts.iter().map(|host| host.name.as_str()).collect();
        let (path, known) = (options.hosts.display(), known.join(", "));
        return Err(InjectError::Refused(
            Refusal::Invalid,
            format!("--host {odd}: the hosts file {path} has only {known}"),
        ));
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
    runtime.block_on(async {
        let socket = file.socket(&options.hosts);
        let stream = UnixStream::connect(&socket).await.map_err(|error| {
            // A controller that was killed leaves its socket behind.
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) {
                return not_running();
            }
            InjectError::Refused(Refusal::Failed, format!("{}: {error}", socket.display()))
        })?;
        let (incoming, outgoing) = stream.into_split();
        run(InjectorConnection { options, outgoing, incoming: BufReader::new(incoming).lines() }).await
    })
}

/// A connection to the controller.
struct InjectorConnection<'a> {
    options: &'a InjectOptions,
    outgoing: OwnedWriteHalf,
    incoming: Lines<BufReader<OwnedReadHalf>>,
}

impl InjectorConnection<'_> {
    async fn request(&mut self, dry_run: bool) -> Result<(), InjectError> {
        let profile = toml::to_string(&self.options.profile.table)
            .map_err(|error| InjectError::Refused(Refusal::Invalid, error.to_string()))?;
        let request = InjectRequest { profile, dry_run, ..self.options.request.clone() };
        self.send(&InjectorMessage::Request(Box::new(request))).await
    }

    async fn send(&mut self, message: &InjectorMessage) -> Result<(), InjectError> {
        let mut line = serde_json::to_vec(message).map_err(|error| failed(&error))?;
        line.push(b'\n');
        self.outgoing.write_all(&line).await.map_err(|error| failed(&error))
    }

    async fn receive(&mut self) -> Result<InjectReply, InjectError> {
        let line = self.incoming.next_line().await.map_err(|error| failed(&error))?;
        let line = line.ok_or_else(|| failed(&"it has ended"))?;
        serde_json::from_str(&line).map(InjectReply::sanitized).map_err(|error| failed(&error))
    }

    /// The answer to the request; a refusal is an error. Waits until a run is in progress.
    async fn first_reply(&mut self) -> Result<InjectReply, InjectError> {
        match timeout(NEXT_RUN_TIMEOUT, self.receive()).await {
            Ok(Ok(InjectReply::Refused(refusal, why))) => Err(InjectError::Refused(refusal, why)),
            Ok(reply) => reply,
            Err(_) => {
                let waited = NEXT_RUN_TIMEOUT.as_secs();
                let why = format!("no run has begun on the hosts within {waited} s");
                Err(InjectError::Refused(Refusal::NotRunning, why))
            }
        }
    }

    /// Waits until the injection is over, and asks for its end when `interrupted`. If the controller is gone, the end
    /// is unknown.
    async fn until_over(
        &mut self,
        begun: Vec<InjectionShare>,
        interrupted: impl Future<Output = ()>,
    ) -> Vec<InjectionShare> {
        let unknown = |ended: String| {
            let unknown = |share| InjectionShare { until: None, ended: ended.clone(), ..share };
            begun.clone().into_iter().map(unknown).collect()
        };
        let mut interrupted = std::pin::pin!(interrupted);
        let mut late = None;
        loop {
            tokio::select! {
                reply = self.receive() => return match reply {
                    Ok(InjectReply::Over(shares)) => shares,
                    Ok(InjectReply::Refused(_, why)) => unknown(why),
                    Ok(InjectReply::Planned(_) | InjectReply::Begun(..)) => unknown(unexpected().to_string()),
                    Err(error) => unknown(error.to_string()),
                },
                () = &mut interrupted, if late.is_none() => {
                    late = Some(Instant::now() + END_TIMEOUT);
                    if let Err(error) = self.send(&InjectorMessage::End).await {
                        return unknown(error.to_string());
                    }
                }
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
                    return unknown(format!("no answer within {} s", END_TIMEOUT.as_secs()));
                }
            }
        }
    }

    /// The injection that the controller has planned, and the cluster's cores.
    fn injection(&self, plan: &InjectionPlan) -> Result<(Injection, CoreTable), InjectError> {
        let InjectionPlan { seed, cores, from, until, outline, .. } = plan;
        let table = CoreTable::from_outline(outline).ok_or_else(unexpected)?;
        let profile = self.options.profile.clone();
        let injection = Injection { profile, seed: *seed, cores: cores.clone(), from: *from, until: *until };
        Ok((injection, table))
    }
}

fn failed(why: &impl std::fmt::Display) -> InjectError {
    InjectError::Refused(Refusal::Failed, format!("the controller of the run: {why}"))
}

fn not_running() -> InjectError {
    let why = "no run that was started on this machine is in progress on these hosts: start one with `volary run … \
               --runtime hosts --hosts FILE`, and inject on the same machine while it goes on";
    InjectError::Refused(Refusal::NotRunning, why.to_owned())
}

fn unexpected() -> InjectError {
    InjectError::Refused(Refusal::Failed, "the controller sent an unexpected answer".to_owned())
}
