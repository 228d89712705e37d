//! What an agent does for a controller: plans its experiment and runs its units.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking, spawn_local};
use volary_actors::base::Class;

use super::CONTROL_LIMIT;
use super::agent::House;
use super::desk::{Desk, Office, WORDS, sensible};
use super::protocol::{Assignment, End, Order, Word};
use crate::parcel::Parcel;
use crate::runtime::closing::Tally;
use crate::runtime::cost;
use crate::runtime::real::clock::Clock;
use crate::runtime::real::drive::drive;
use crate::runtime::real::place::place;
use crate::runtime::real::ticks::Ticks;
use crate::runtime::real::watcher::Watcher;
use crate::runtime::world::World;
use crate::shard::{Placement, Shard};
use crate::spec::{Bundle, Experiment};
use crate::transport::control::{ControlReceiver, ControlSender};
use crate::transport::endpoint::{Connection, Role};
use crate::transport::link::{LinkReceiver, LinkSender};

/// Time for the links of a run to stand and for clocks to be read.
const SETUP: Duration = Duration::from_secs(20);
/// Pings before a run, and the time between two of them.
const PINGS: u32 = 40;
const PING_FAST: Duration = Duration::from_millis(3);
/// Between two pings in mid-run.
const PING_SLOW: Duration = Duration::from_millis(200);

/// Tasks that end with whoever spawned them.
#[derive(Default)]
struct Crew(Vec<JoinHandle<()>>);

impl Crew {
    fn add(&mut self, task: impl Future<Output = ()> + 'static) {
        self.0.push(spawn_local(task));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Serves a controller until it goes.
pub(super) async fn session(house: &Rc<House>, connection: &Connection) -> Result<(), String> {
    let (sender, receiver) =
        connection.control::<Word, Order>(CONTROL_LIMIT).map_err(|error| error.to_string())?;
    let (words, outgoing) = mpsc::channel(WORDS);
    let (order, mut orders) = mpsc::channel(4);
    let desk = Rc::new(RefCell::new(Rc::new(Desk::new(house.ticks))));
    let mut crew = Crew::default();
    crew.add(write(sender, outgoing));
    crew.add(read(receiver, order, Rc::clone(&desk)));
    let mut experiment = None;
    while let Some(order) = orders.recv().await {
        let done = match order {
            Order::Load(bundle) => match plan(*bundle).await {
                Ok(planned) => {
                    experiment = Some(Arc::new(planned));
                    Ok(Word::Loaded)
                }
                Err(why) => Err(why),
            },
            Order::Prepare(assignment) => match &experiment {
                Some(experiment) => {
                    let fresh = Rc::new(Desk::new(house.ticks));
                    *desk.borrow_mut() = Rc::clone(&fresh);
                    let unit = Unit { house, desk: fresh, words: words.clone() };
                    unit.run(Arc::clone(experiment), *assignment).await.map(Word::End)
                }
                None => Err("no experiment was loaded".to_owned()),
            },
            // What is for a unit was given to it on arrival.
            Order::Start { .. } | Order::Pong { .. } | Order::Progress { .. } | Order::Stop => continue,
        };
        let word = done.unwrap_or_else(Word::Refused);
        if words.send(word).await.is_err() {
            return Err("the controller does not listen any more".to_owned());
        }
    }
    Ok(())
}

async fn write(mut sender: ControlSender<Word>, mut outgoing: mpsc::Receiver<Word>) {
    while let Some(word) = outgoing.recv().await {
        if let Err(error) = sender.send(&word).await {
            tracing::warn!("the controller cannot be reached: {error}");
            return;
        }
    }
}

/// Hands on what the controller says. When it is gone, so is what it started.
async fn read(
    mut receiver: ControlReceiver<Order>,
    orders: mpsc::Sender<Order>,
    desk: Rc<RefCell<Rc<Desk>>>,
) {
    loop {
        let heard = receiver.recv().await;
        let now = Rc::clone(&desk.borrow());
        match heard {
            Ok(Order::Pong { sent, here }) => now.pong(sent, here),
            Ok(Order::Progress { slowest }) => now.slowest.set(slowest),
            Ok(Order::Start { at }) => now.begin(at),
            Ok(Order::Stop) => now.halt(),
            Ok(order @ (Order::Load(_) | Order::Prepare(_))) => {
                if orders.send(order).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::info!("the controller has gone: {error}");
                now.halt();
                return;
            }
        }
    }
}

async fn plan(bundle: Bundle) -> Result<Experiment, String> {
    let planned = spawn_blocking(move || Experiment::from_bundle(&bundle)).await;
    planned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// One unit on this host.
struct Unit<'a> {
    house: &'a Rc<House>,
    desk: Rc<Desk>,
    words: mpsc::Sender<Word>,
}

impl Unit<'_> {
    async fn run(&self, experiment: Arc<Experiment>, task: Assignment) -> Result<Box<End>, String> {
        let speed = experiment.run.speed;
        let cpu = cost::process_cpu_s();
        let world = build(experiment, &task).await?;
        let mut crew = Crew::default();
        crew.add(ping(Rc::clone(&self.desk), self.words.clone(), self.house.ticks));
        let ready = async {
            let links = self.links(&task).await?;
            let bound = self.desk.known(PINGS).await;
            Ok::<_, String>((links, bound))
        };
        let (links, bound) = tokio::select! {
            ready = tokio::time::timeout(SETUP, ready) => {
                ready.map_err(|_| "links to the other hosts did not come about in time: are their ports open to each other?".to_owned())??
            }
            () = self.desk.halted() => return Err("the controller has called it off".to_owned()),
        };
        let weights: Vec<f64> = task.members.iter().map(|member| member.weight).collect();
        let homes = Rc::new(place(world.layout(), &weights));
        let world = Rc::new(world);
        let mut senders = Vec::new();
        for (from, link) in links.into_iter().enumerate() {
            senders.push(match link {
                None => None,
                Some((sender, receiver)) => {
                    let peer = task.members[from].name.clone();
                    let (world, homes) = (Rc::clone(&world), Rc::clone(&homes));
                    let check =
                        move |parcel: &_| sensible(world.layout(), &homes, task.me, from as u16, parcel);
                    crew.add(listen(receiver, peer, check, Rc::clone(&self.desk), self.words.clone()));
                    Some(sender)
                }
            });
        }
        let placement = Placement::new(&homes, task.me, task.members.len() as u16);
        let parts = world.parts(placement).map_err(|error| error.to_string())?;
        let mut shard = Shard::new(parts, Watcher::default());
        self.words.send(Word::Ready { bound }).await.map_err(|_| "the controller is gone".to_owned())?;
        tokio::select! {
            () = self.desk.begun() => {}
            () = self.desk.halted() => return Err("the controller has called it off".to_owned()),
        }
        let clock = Rc::new(Clock::new(self.house.ticks, 0, speed));
        self.desk.adjust(&clock);
        crew.add(keep_time(Rc::clone(&self.desk), Rc::clone(&clock)));
        let mut office = Office::new(Rc::clone(&self.desk), senders, self.words.clone());
        drive(&mut shard, &clock, &self.desk.inbox, &mut office).await.map_err(|error| error.to_string())?;
        let datagrams = office.datagrams_sent();
        Ok(Box::new(End {
            tally: Tally::of(&shard),
            reading: shard.observer.gauge.reading(),
            clock: self.desk.clock_report(),
            cpu_s: cost::process_cpu_s() - cpu,
            peak_rss_bytes: cost::peak_rss_bytes(),
            datagrams_sent: datagrams,
            datagrams_received: self.desk.datagrams.get(),
        }))
    }

    /// A link to every other host: those after us in the list we call, those before us call us.
    async fn links(&self, task: &Assignment) -> Result<Vec<Option<(LinkSender, LinkReceiver)>>, String> {
        let mut links = Vec::new();
        for (i, member) in task.members.iter().enumerate() {
            let connection = match i.cmp(&(task.me as usize)) {
                Ordering::Equal => {
                    links.push(None);
                    continue;
                }
                Ordering::Less => self.house.link_from(task.run, &member.name).await,
                Ordering::Greater => self
                    .house
                    .endpoint
                    .connect(member.address, &member.name, Role::Host { run: task.run })
                    .await
                    .map_err(|error| {
                        format!("cannot reach {} at {}: {error}", member.name, member.address)
                    })?,
            };
            links.push(Some(connection.link().await.map_err(|error| format!("{}: {error}", member.name))?));
        }
        Ok(links)
    }
}

/// Builds this host's part of the world, the same as the controller's.
async fn build(experiment: Arc<Experiment>, task: &Assignment) -> Result<World, String> {
    let (point, seed) = (task.point as usize, task.seed);
    if point >= experiment.points.len() || task.me as usize >= task.members.len() {
        return Err("the assignment names a point or a host that does not exist".to_owned());
    }
    let id = experiment.points[point].id_under(seed, &experiment.run);
    if id != task.id {
        return Err(format!(
            "this host has {id} for what the controller calls {}: other versions of volary?",
            task.id
        ));
    }
    let build = move || World::of(&experiment, point, seed, &experiment.traces());
    let built = spawn_blocking(build).await;
    built.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Asks the controller for the time: often at first, then now and then.
async fn ping(desk: Rc<Desk>, words: mpsc::Sender<Word>, ticks: Ticks) {
    let mut count = 0;
    loop {
        // A queue before the controller would make the answer worthless.
        if let Ok(room) = words.try_reserve() {
            room.send(Word::Ping { sent: ticks.now() });
        }
        count += 1;
        tokio::time::sleep(if count < PINGS { PING_FAST } else { PING_SLOW }).await;
        if desk.stop.get() {
            return;
        }
    }
}

async fn keep_time(desk: Rc<Desk>, clock: Rc<Clock>) {
    loop {
        tokio::time::sleep(PING_SLOW).await;
        desk.adjust(&clock);
    }
}

/// Takes in what another host sends.
async fn listen(
    mut link: LinkReceiver,
    peer: String,
    check: impl Fn(&Parcel) -> bool,
    desk: Rc<Desk>,
    words: mpsc::Sender<Word>,
) {
    let why = loop {
        match link.recv().await {
            Ok((class, parcels)) => {
                if !parcels.iter().all(&check) {
                    break format!("{peer} sent what it has no business to send");
                }
                if class == Class::Datagram {
                    desk.datagrams.set(desk.datagrams.get() + parcels.len() as u64);
                }
                desk.inbox.put(parcels);
            }
            Err(error) => break error.to_string(),
        }
    };
    if !desk.stop.get() {
        // Nobody to tell if the controller is gone too.
        let _ = words.send(Word::Lost { peer, why }).await;
    }
}
