//! The scheduled injections of an experiment, on the machines of a run.

use volary_actors::base::{ActorId, Endpoint, Span, Time};
use volary_actors::layout::Role;
use volary_netem::{Places, Target};

use super::cluster::Machines;
use super::error::KeyError;
use crate::cores::{CoreSet, Injection, ScheduledInjection};

/// Maximum number of injections of an experiment: cores evaluate each of them whenever a copy begins.
const MOST: usize = 100;

impl Machines {
    /// The cores of the nodes that a target names.
    ///
    /// # Errors When the target names no node; the message names valid targets.
    pub fn cores_at(&self, target: &Target) -> Result<CoreSet, String> {
        let wrong = |why: String| format!("`{target}` names no node of this cluster: {why}");
        let layout = &self.layout;
        let node = |&Endpoint(endpoint): &Endpoint| match layout.role(ActorId(endpoint)) {
            Role::Node(node) => Some(node),
            Role::Client(_) | Role::Scheduler(_) | Role::Worker { .. } | Role::Auxiliary(_) => None,
        };
        let found = self.groups.resolve(target).map_err(wrong)?;
        let workers = found.iter().filter_map(node);
        let workers = workers.flat_map(|node| (0..layout.cores(node)).map(move |core| (node, core)));
        let cores: CoreSet =
            workers.map(|(node, core)| layout.core_index(layout.worker(node, core))).collect();
        if cores.is_empty() {
            return Err(wrong("it names other actors only".to_owned()));
        }
        Ok(cores)
    }

    /// The scheduled injections under `seed`, in the order of the experiment.
    ///
    /// # Errors A target or core that does not exist, a duration of zero, or two injections into one core at a time.
    pub fn scheduled(
        &self,
        injections: &[ScheduledInjection],
        seed: u64,
    ) -> Result<Vec<Injection>, KeyError> {
        let mut all: Vec<Injection> = Vec::new();
        for (i, scheduled) in injections.iter().enumerate() {
            let wrong = |key: &str, message: String, help: &str| {
                Err(KeyError::new(&["interference", "injection", &i.to_string(), key], message, help))
            };
            if i >= MOST {
                return wrong("at", format!("more than {MOST} injections"), "schedule fewer");
            }
            if scheduled.spec.lasting == Some(Span::ZERO) {
                let help = "write for example \"5s\", or leave it out to inject until the run ends";
                return wrong("for", "it is zero".to_owned(), help);
            }
            let count = self.layout.workers();
            if let Some(last) = scheduled.spec.cores.last().filter(|&last| last >= count) {
                let (message, help) =
                    (format!("there is no core {last}"), format!("cores are 0 to {}", count - 1));
                return wrong("cores", message, &help);
            }
            let mut cores = scheduled.spec.cores.clone();
            for target in &scheduled.spec.who {
                match self.cores_at(target) {
                    Ok(found) => cores = cores.union(&found),
                    Err(why) => return wrong("who", why, "name nodes or racks, such as \"nodes:0-9\""),
                }
            }
            if cores.is_empty() {
                cores = CoreSet::below(count);
            }
            let injection = scheduled.over(cores, seed);
            let meets = |other: &Injection| {
                let both = other.cores.intersection(&injection.cores);
                let at = other.from.max(injection.from);
                let meet = at < other.until.min(injection.until) && !both.is_empty();
                meet.then_some((other.from, both, at))
            };
            if let Some((from, both, at)) = all.iter().find_map(meets) {
                let [from, at] = [from, at].map(|time| time.since(Time::ZERO));
                let message =
                    format!("the injection with at = \"{from}\" is in effect on cores {both} at {at}");
                return wrong("at", message, "let one end before the other begins, or name other cores");
            }
            all.push(injection);
        }
        Ok(all)
    }
}
