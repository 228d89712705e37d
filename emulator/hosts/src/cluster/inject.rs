//! The injector: requests interference from the controller of the current run, through one of its agents.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout_at;
use volary_engine::cores::{CoreTable, Effect, Injection, Profile};

use super::error::{HostsError, InjectError};
use super::net::framed::{ControlReceiver, ControlSender};
use super::net::{Control, End, Hosts, Identity, Transport};
use super::protocol::{
    FIRST_FRAME, INJECTOR_LEASE, InjectReply, InjectRequest, InjectionPlan, InjectionShare, InjectorMessage,
    MESSAGE_FRAME, Opening, Refusal,
};
use super::timing::socket_options;

/// Maximum time of a study from one run to the next: it may be planning, building or calibrating.
const NEXT_RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of the controller for ending an injection on request.
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

/// An injection on one host, and its effect if the time of its end is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Injected {
    pub share: InjectionShare,
    pub effect: Option<Effect>,
}

/// The injection that would be made now, and the cluster's cores.
///
/// # Errors
/// Hosts cannot be reached or run nothing, or a target does not exist.
pub fn dry_run(options: &InjectOptions) -> Result<(Injection, CoreTable), InjectError> {
    with_injector(options, async |mut injector| {
        injector.request(true).await?;
        match injector.first_reply().await? {
            InjectReply::Planned(plan) => injector.injection(&plan),
            InjectReply::Begun(..) | InjectReply::Over(_) | InjectReply::Refused(..) => Err(unexpected()),
        }
    })
}

/// Injects until the time is over, the process is interrupted, or the run ends. `begun` is called when all hosts have
/// begun.
///
/// # Errors
/// Hosts cannot be reached or run nothing, a target does not exist, or a host cannot begin; then no host goes on.
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

/// Connects to an agent that serves a controller, and calls `run`.
fn with_injector<T>(
    options: &InjectOptions,
    run: impl AsyncFnOnce(Injector<'_>) -> Result<T, InjectError>,
) -> Result<T, InjectError> {
    let file = Hosts::load(&options.hosts).map_err(HostsError::from)?;
    if let Some(odd) =
        options.request.hosts.iter().find(|name| file.hosts.iter().all(|host| host.name != **name))
    {
        let known: Vec<_> = file.hosts.iter().map(|host| host.name.as_str()).collect();
        let (path, known) = (options.hosts.display(), known.join(", "));
        return Err(InjectError::Refused(Refusal::Invalid, format!("--host {odd}: {path} has {known}")));
    }
    let identity =
        Identity::load_controller(&file.controller(), SystemTime::now()).map_err(HostsError::from)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HostsError::System)?;
    runtime.block_on(async {
        let transport = Transport::connector(&identity, file.local(), &socket_options(INJECTOR_LEASE));
        let transport = transport.map_err(HostsError::from)?;
        let result = run(Injector::connect(options, &transport, &file).await?).await;
        transport.close("the injector is done").await;
        result
    })
}

/// A connection to an agent that relays to its controller.
struct Injector<'a> {
    options: &'a InjectOptions,
    host: String,
    outgoing: ControlSender<InjectorMessage>,
    incoming: ControlReceiver<InjectReply>,
}

impl<'a> Injector<'a> {
    /// Connects to the first host of the file that can be reached.
    async fn connect(
        options: &'a InjectOptions,
        transport: &Transport,
        file: &Hosts,
    ) -> Result<Self, InjectError> {
        let mut error = None;
        for host in &file.hosts {
            match transport.connect(&host.name, host.address).await {
                Ok(peer) => {
                    let mut control =
                        Control::<Opening, ()>::new(&peer.connection, peer.streams, FIRST_FRAME);
                    control.send(&Opening::Inject).await.map_err(|end| failed(&host.name, &end))?;
                    let Control { outgoing, incoming } = control.retype(MESSAGE_FRAME);
                    return Ok(Self { options, host: host.name.clone(), outgoing, incoming });
                }
                Err(why) => _ = error.get_or_insert(why),
            }
        }
        let none = || InjectError::Refused(Refusal::NotRunning, "the hosts file names no host".to_owned());
        Err(error.map_or_else(none, |error| HostsError::from(error).into()))
    }

    async fn request(&mut self, dry_run: bool) -> Result<(), InjectError> {
        let profile = toml::to_string(&self.options.profile.table)
            .map_err(|error| InjectError::Refused(Refusal::Invalid, error.to_string()))?;
        let request = InjectRequest { profile, dry_run, ..self.options.request.clone() };
        self.send(&InjectorMessage::Request(Box::new(request))).await
    }

    async fn send(&mut self, message: &InjectorMessage) -> Result<(), InjectError> {
        self.outgoing.send(message).await.map_err(|end| failed(&self.host, &end))
    }

    /// The answer to the request; a refusal is an error. Waits until a run is in progress.
    async fn first_reply(&mut self) -> Result<InjectReply, InjectError> {
        let late = Instant::now() + NEXT_RUN_TIMEOUT;
        loop {
            let renewal = (Instant::now() + INJECTOR_LEASE / 3).into();
            let reply = timeout_at(renewal, self.incoming.receive()).await;
            match reply.map(|reply| reply.map(InjectReply::sanitized)) {
                Ok(Ok(InjectReply::Refused(refusal, why))) => return Err(InjectError::Refused(refusal, why)),
                Ok(reply) => return reply.map_err(|end| failed(&self.host, &end)),
                Err(_) if Instant::now() > late => {
                    let waited = NEXT_RUN_TIMEOUT.as_secs();
                    let why = format!("the hosts have not begun one run together for {waited} s");
                    return Err(InjectError::Refused(Refusal::NotRunning, why));
                }
                Err(_) => self.send(&InjectorMessage::Renew).await?,
            }
        }
    }

    /// Renews the lease until the injection is over, and asks for its end when `interrupted`. If the connection breaks,
    /// the end is unknown.
    async fn until_over(
        &mut self,
        begun: Vec<InjectionShare>,
        interrupted: impl Future<Output = ()>,
    ) -> Vec<InjectionShare> {
        let unknown = |ended: String| {
            let unknown = |share| InjectionShare { until: None, ended: ended.clone(), ..share };
            begun.clone().into_iter().map(unknown).collect()
        };
        let mut renewal = tokio::time::interval(INJECTOR_LEASE / 3);
        let mut interrupted = std::pin::pin!(interrupted);
        let mut late = None;
        loop {
            let message = tokio::select! {
                reply = self.incoming.receive() => return match reply.map(InjectReply::sanitized) {
                    Ok(InjectReply::Over(shares)) => shares,
                    Ok(InjectReply::Refused(_, why)) => unknown(why),
                    Ok(InjectReply::Planned(_) | InjectReply::Begun(..)) => unknown(unexpected().to_string()),
                    Err(end) => unknown(format!("the host is gone: {end}")),
                },
                () = &mut interrupted, if late.is_none() => {
                    late = Some(Instant::now() + END_TIMEOUT);
                    InjectorMessage::End
                }
                _ = renewal.tick() => InjectorMessage::Renew,
            };
            if late.is_some_and(|late| Instant::now() > late) {
                return unknown(format!("no answer within {} s", END_TIMEOUT.as_secs()));
            }
            if let Err(error) = self.send(&message).await {
                return unknown(error.to_string());
            }
        }
    }

    /// The injection that the controller has planned, and the cluster's cores.
    fn injection(&self, plan: &InjectionPlan) -> Result<(Injection, CoreTable), InjectError> {
        let InjectionPlan { seed, cores, from, until, outline, .. } = plan;
        let table = CoreTable::of_outline(outline).ok_or_else(unexpected)?;
        let profile = self.options.profile.clone();
        let injection = Injection { profile, seed: *seed, cores: cores.clone(), from: *from, until: *until };
        Ok((injection, table))
    }
}

fn failed(host: &str, end: &End) -> InjectError {
    InjectError::Refused(Refusal::Failed, format!("host {host}: {end}"))
}

fn unexpected() -> InjectError {
    InjectError::Refused(Refusal::Failed, "the controller sent an unexpected answer".to_owned())
}
