//! Users and names of the jobs of a mix, and the work that jobs of a name have in common.
//!
//! A name has a mean work for each stage, drawn from the distribution of that stage. A job has the means of its name
//! times a factor that is the same in all its stages. A job that does not recur has a name of its own, which is drawn
//! from the same distributions: recurrence changes how well jobs can be predicted, not their average work.

use volary_actors::base::distribution::Lognormal;
use volary_actors::base::{Address, DistributionSpec, JobId, Purpose, Span};

use super::config::{Mix, MixClass, MixStage};
use super::work::{Share, draws_of};

/// Ids that narrow a job's address of purpose `Shape` to single draws. The modules `work`, `slo` and `mix` use the ids
/// 1 to 4.
const RECURS: u64 = 5;
const NAME: u64 = 6;
const USER: u64 = 7;
const FACTOR: u64 = 8;

/// Id that narrows the address of a stage's work to the means of recurring names. It is above all ids of jobs and
/// stages.
const MEANS: u64 = 1 << 33;

/// Maximum of `spread`. The mean of n jobs has a coefficient of variation of `spread` / √n. Above the maximum even the
/// mean of 10,000 jobs varies by more than a tenth.
const MOST_SPREAD: f64 = 10.0;

/// Checks the keys of a class about users and names, in a mix of `jobs` jobs. The error is the key, below the key of
/// the class, and the reason.
pub(super) fn check(class: &MixClass, jobs: u32) -> Result<(), (&'static str, String)> {
    let &MixClass { names, users, recurrence, spread, .. } = class;
    let Some(names) = names else {
        let given = [
            (".users", users.is_some()),
            (".recurrence", recurrence.is_some()),
            (".spread", spread.is_some()),
        ];
        let alone = given.into_iter().find(|(_, given)| *given);
        let why = "applies to jobs that share names, and the class has none; write for example names = 20 beside it";
        return alone.map_or(Ok(()), |(key, _)| Err((key, why.to_owned())));
    };
    if !(1..=jobs).contains(&names) {
        let why =
            format!("{names} names are not between 1 and the number of jobs, {jobs}; write for example 20");
        return Err((".names", why));
    }
    if let Some(users) = users.filter(|users| !(1..=names).contains(users)) {
        let why = "each user needs a name; write fewer users, or leave the key out";
        return Err((
            ".users",
            format!("{users} users are not between 1 and the number of names, {names}: {why}"),
        ));
    }
    if let Some(spread) = spread.filter(|spread| !(0.0..=MOST_SPREAD).contains(spread)) {
        let why = format!(
            "{spread} is not between 0 and {MOST_SPREAD:.0}; write a coefficient of variation such as 0.2"
        );
        return Err((".spread", why));
    }
    if let Some(stage) = class.stages.iter().position(|stage| stage.demand.mean().is_infinite()) {
        let why = "jobs of a name share a mean, which the distribution of";
        let remedy = "give a pareto a shape above 1, or leave the names out";
        return Err((".names", format!("{why} `stages[{stage}].demand` does not have; {remedy}")));
    }
    Ok(())
}

/// User and name of a job; zero if unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct JobName {
    pub(super) user: u32,
    pub(super) name: u32,
}

/// Users and names of the jobs of a run. Takes no memory if no class has names.
#[derive(Debug)]
pub(super) struct Names {
    seed: u64,
    /// Names of each class; empty if no class has names.
    classes: Vec<Option<ClassNames>>,
    /// Number of recurring names of all classes.
    recurring: u32,
    /// User and name of each chain.
    labels: Vec<JobName>,
    /// Mean work of a copy by job id; `None` for jobs of a class without names.
    means: Vec<Option<Span>>,
}

impl Names {
    /// The names of a mix that has no jobs yet.
    pub(super) fn new(mix: &Mix, seed: u64) -> Self {
        let (mut recurring, mut users) = (0, 0);
        let mut class = |class: &MixClass| {
            let found = ClassNames::of(class, recurring, users)?;
            (recurring, users) = (recurring + found.names, users + found.users);
            Some(found)
        };
        let mut classes: Vec<_> = mix.class.iter().map(&mut class).collect();
        if classes.iter().all(Option::is_none) {
            classes.clear();
        }
        Self { seed, classes, recurring, labels: Vec::new(), means: Vec::new() }
    }

    /// Draws the user and the name of the next chain, which is of the given class, and the mean work of its stages.
    pub(super) fn add(&mut self, class: usize, stages: &[MixStage]) {
        let Some(names) = self.classes.get(class) else { return };
        let chain = self.labels.len() as u32;
        let Some(names) = names else {
            self.labels.push(JobName::default());
            self.means.extend(stages.iter().map(|_| None));
            return;
        };
        let shape = Address::new(self.seed, Purpose::Shape).at(u64::from(chain));
        let recurring = names.recurring(shape);
        let own = self.recurring + chain + 1;
        let name = recurring.map_or(own, |name| names.first_name + name + 1);
        self.labels.push(JobName { user: names.user(recurring, shape), name });
        let factor = names.factor(shape);
        for (s, stage) in stages.iter().enumerate() {
            let work = draws_of(s, self.seed, Purpose::Work);
            let address = match recurring {
                None => work.at(u64::from(chain)),
                Some(name) => work.at(MEANS).at(class as u64).at(u64::from(name)),
            };
            let mean = stage.demand.sample(&mut address.draw());
            self.means.push(Some(if factor == 1.0 { mean } else { mean.scale(factor) }));
        }
    }

    /// Keeps some of the chains, and their jobs, given their numbers in order.
    pub(super) fn keep(&mut self, chains: &[u32], jobs: &[u32]) {
        if !self.classes.is_empty() {
            self.labels = chains.iter().map(|&chain| self.labels[chain as usize]).collect();
            self.means = jobs.iter().map(|&job| self.means[job as usize]).collect();
        }
    }

    /// User and name of a chain.
    pub(super) fn label(&self, chain: u32) -> JobName {
        self.labels.get(chain as usize).copied().unwrap_or_default()
    }

    /// Mean work of a copy of a job; `None` if the mean of the distribution applies.
    pub(super) fn mean(&self, job: JobId) -> Option<Span> {
        self.means.get(job.index()).copied().flatten()
    }
}

/// Users and names of a class.
#[derive(Debug)]
struct ClassNames {
    /// Number of recurring names.
    names: u32,
    /// Number of users; zero if users are unknown.
    users: u32,
    /// Number of names, and number of users, of all earlier classes.
    first_name: u32,
    first_user: u32,
    recurrence: Share,
    /// Distribution of the factor between a job and the mean of its name; `None` for a constant factor of one.
    factor: Option<DistributionSpec<f64>>,
}

impl ClassNames {
    fn of(class: &MixClass, first_name: u32, first_user: u32) -> Option<Self> {
        Some(Self {
            names: class.names?,
            users: class.users.unwrap_or(0),
            first_name,
            first_user,
            recurrence: class.recurrence.unwrap_or(Share::ALL),
            factor: class.spread.filter(|spread| *spread > 0.0).map(factor_of),
        })
    }

    /// The recurring name of a job, by its number in the class; `None` if the job does not recur.
    fn recurring(&self, shape: Address) -> Option<u32> {
        let recurs = self.recurrence.includes(shape.at(RECURS).unit());
        recurs.then(|| below(self.names, shape.at(NAME)))
    }

    /// The user of a job. Recurring names belong to users in turn, so every user has one; users of other jobs are
    /// sampled.
    fn user(&self, recurring: Option<u32>, shape: Address) -> u32 {
        if self.users == 0 {
            return 0;
        }
        let user = recurring.map_or_else(|| below(self.users, shape.at(USER)), |name| name % self.users);
        self.first_user + user + 1
    }

    fn factor(&self, shape: Address) -> f64 {
        self.factor.as_ref().map_or(1.0, |distribution| distribution.sample(&mut shape.at(FACTOR).draw()))
    }
}

/// The log-normal distribution with mean 1 and this coefficient of variation.
fn factor_of(spread: f64) -> DistributionSpec<f64> {
    let variance = 1.0 + spread * spread;
    DistributionSpec::Lognormal(Lognormal { median: variance.sqrt().recip(), sigma: variance.ln().sqrt() })
}

/// A uniform number below `bound`.
fn below(bound: u32, address: Address) -> u32 {
    ((address.unit() * f64::from(bound)) as u32).min(bound - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use volary_actors::base::{Feature, TaskId};
    use volary_actors::catalog::Catalog;

    use super::*;
    use crate::workload::{NoTraces, Service, Workload, WorkloadSpec};

    /// A mix of a class of two stages with the further `keys`, and a class without names.
    fn mix(jobs: u32, keys: &str) -> Mix {
        let text = format!(
            "jobs = {jobs}\ninterarrival = \"1s\"\n[[class]]\nname = \"a\"\nweight = 3\n{keys}\nstages = [\n\
             {{ tasks = 2, demand = {{ exponential = {{ mean = \"5s\" }} }} }},\n\
             {{ tasks = 3, demand = {{ exponential = {{ mean = \"9s\" }} }} }} ]\n\
             [[class]]\nname = \"b\"\nweight = 1\nstages = [{{ tasks = 1, demand = \"1s\" }}]\n"
        );
        toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn build(mix: Mix, service: &str, seed: u64, clients: u32) -> Workload {
        let service: Service = toml::from_str(service).unwrap();
        Workload::build(&WorkloadSpec::Mix(mix), &service, seed, clients, &NoTraces).unwrap()
    }

    /// Work of attempt 0 of the first task of each stage of the chains of class `a`, by name.
    fn by_name(workload: &Workload) -> BTreeMap<u32, Vec<[f64; 2]>> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for chain in (0..workload.chains()).map(|chain| workload.jobs_of(chain)) {
            let job = JobId(chain.start);
            if workload.class_index(job) == 0 {
                let work = |stage| workload.work(JobId(chain.start + stage).task(0).copy(0)).as_secs_f64();
                found.entry(workload.feature(job, Feature::Name)).or_default().push([0, 1].map(work));
            }
        }
        found
    }

    fn tasks(workload: &Workload) -> impl Iterator<Item = TaskId> + '_ {
        (0..workload.jobs())
            .map(JobId)
            .flat_map(|job| (0..workload.tasks(job)).map(move |index| job.task(index)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Jobs of one name have one user and, in each stage, one mean. A unique name occurs once. Names and draws do
        /// not depend on the numbers of clients and of jobs.
        #[test]
        fn jobs_of_a_name_share_user_and_means(
            seed in any::<u64>(),
            (names, users) in (1..40u32).prop_flat_map(|names| (Just(names), 1..=names)),
            recurrence in prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0],
            spread in prop_oneof![Just(0.0), 0.01..2.0],
            service in prop::sample::select(&["", "homogeneous = false", "homogeneous = 0.5\ncorrelated = 0.5"][..]),
            clients in 1..5u32,
        ) {
            let keys = format!(
                "names = {names}\nusers = {users}\nrecurrence = {recurrence:?}\nspread = {spread:?}"
            );
            let workload = build(mix(200, &keys), service, seed, clients);
            let mut user_of = BTreeMap::new();
            for job in (0..workload.jobs()).map(JobId) {
                let [user, name, class, size] =
                    [Feature::User, Feature::Name, Feature::Class, Feature::Size].map(|of| workload.feature(job, of));
                prop_assert_eq!((class, size), (workload.class_index(job) as u32 + 1, workload.tasks(job)));
                if class == 2 {
                    prop_assert_eq!((user, name), (0, 0), "a class without names");
                    continue;
                }
                prop_assert!((1..=users).contains(&user) && name > 0);
                prop_assert_eq!(*user_of.entry(name).or_insert(user), user, "a name has one user");
                prop_assert!(name <= names || name == names + 1 + workload.chain(job));
                prop_assert!(name <= names || recurrence < 1.0);
                prop_assert!(name > names || (recurrence > 0.0 && user == (name - 1) % users + 1));
            }
            if service.is_empty() {
                for jobs in by_name(&workload).values() {
                    let same = |job: &[f64; 2]| *job == jobs[0];
                    prop_assert!(spread > 0.0 || jobs.iter().all(same), "{:?}", jobs);
                    let ratio = |job: &[f64; 2]| job[1] / job[0];
                    let close = |job| (ratio(job) / ratio(&jobs[0]) - 1.0).abs() < 1e-4;
                    prop_assert!(jobs.iter().all(close), "one factor in both stages: {:?}", jobs);
                }
            }
            let more = build(mix(300, &keys), service, seed, clients + 1);
            for task in tasks(&workload) {
                let all = |of: &Workload| {
                    (Feature::ALL.map(|feature| of.feature(task.job, feature)), of.work(task.copy(1)), of.estimate(task))
                };
                prop_assert_eq!(all(&workload), all(&more));
            }
        }
    }

    #[test]
    fn recurrence_and_spread_have_the_configured_values() {
        let workload = build(mix(40_000, "names = 30\nrecurrence = 0.6\nspread = 0.5"), "", 3, 1);
        let jobs = by_name(&workload);
        let recurring: usize = jobs.range(..=30).map(|(_, jobs)| jobs.len()).sum();
        let all: usize = jobs.values().map(Vec::len).sum();
        let share = recurring as f64 / all as f64;
        // 30,000 jobs of the class: four deviations of the share are 0.0113.
        assert!((share - 0.6).abs() < 0.0113, "{share}");
        assert_eq!(jobs.range(31..).count(), all - recurring, "other names are seen once");
        // 600 jobs of each of the 30 names: deviations of mean and square about the mean of their own name.
        let (mut squares, mut count) = (0.0, 0.0);
        for jobs in jobs.range(..=30).map(|(_, jobs)| jobs) {
            assert!((400..800).contains(&jobs.len()), "{}", jobs.len());
            let mean = jobs.iter().map(|job| job[0]).sum::<f64>() / jobs.len() as f64;
            squares += jobs.iter().map(|job| (job[0] / mean - 1.0).powi(2)).sum::<f64>();
            count += jobs.len() as f64 - 1.0;
        }
        let spread = f64::sqrt(squares / count);
        assert!((spread - 0.5).abs() < 0.02, "{spread}");
        // Users are unknown where none are written.
        assert!((0..100).all(|job| workload.feature(JobId(job), Feature::User) == 0));
    }

    /// Means of names and factors do not change the mean of the distribution; tasks and copies vary around the mean of
    /// their job.
    #[test]
    fn work_of_named_jobs_has_the_mean_of_the_distribution() {
        let workload = build(mix(40_000, "names = 10\nrecurrence = 0\nspread = 0.5"), "", 4, 1);
        let means = [0, 1].map(|stage| {
            let jobs = by_name(&workload);
            jobs.values().map(|jobs| jobs[0][stage]).sum::<f64>() / jobs.len() as f64
        });
        // A distribution of squared CoV 1, times a factor of 0.25: 1.5 in all, and five deviations are 0.035.
        assert!((means[0] / 5.0 - 1.0).abs() < 0.035 && (means[1] / 9.0 - 1.0).abs() < 0.035, "{means:?}");
        let apart = build(mix(40, "names = 3"), "homogeneous = false\ncorrelated = false", 4, 1);
        let alike = build(mix(40, "names = 3"), "correlated = false", 4, 1);
        let job = (0..40).map(JobId).find(|&job| alike.class_index(job) == 0).unwrap();
        let mean = |copies: &mut dyn Iterator<Item = Span>| {
            copies.map(Span::as_secs_f64).sum::<f64>() / 40_000.0 / alike.job_estimate(job).as_secs_f64()
        };
        let copies = mean(&mut (0..40_000).map(|copy| alike.work(job.task(0).copy(copy))));
        assert!((copies - 1.0).abs() < 0.03, "{copies}");
        let tasks = mean(&mut (0..40_000).map(|task| apart.estimate(job.task(task))));
        assert!((tasks - 1.0).abs() < 0.03, "{tasks}");
    }

    /// Without recurrence and spread, each job has exactly the same work as without names.
    #[test]
    fn unique_names_without_spread_change_no_draw() {
        let (named, plain) =
            (build(mix(300, "names = 7\nrecurrence = 0"), "", 5, 3), build(mix(300, ""), "", 5, 3));
        assert!((0..plain.jobs()).all(|job| plain.feature(JobId(job), Feature::Name) == 0));
        let names: BTreeSet<_> = by_name(&named).into_keys().collect();
        assert!(names.len() > 200 && names.iter().all(|name| *name > 7), "every job has a name of its own");
        for task in tasks(&plain) {
            assert_eq!(named.job(task.job), plain.job(task.job));
            assert_eq!(named.work(task.copy(0)), plain.work(task.copy(0)));
        }
    }

    #[test]
    fn classes_share_no_names() {
        let keys = "names = 4\nusers = 2\nrecurrence = 0.5";
        let mut two = mix(400, keys);
        two.class[1] = MixClass { name: "b".into(), ..two.class[0].clone() };
        let workload = build(two, "", 1, 1);
        let mut seen = [Feature::Name, Feature::User].map(|_| [BTreeSet::new(), BTreeSet::new()]);
        for job in (0..workload.jobs()).map(JobId) {
            for (seen, feature) in seen.iter_mut().zip([Feature::Name, Feature::User]) {
                seen[workload.class_index(job)].insert(workload.feature(job, feature));
            }
        }
        assert!(seen.iter().all(|[a, b]| a.is_disjoint(b)), "{seen:?}");
        assert_eq!(seen[1].clone(), [BTreeSet::from([1, 2]), BTreeSet::from([3, 4])]);
    }

    #[test]
    fn impossible_names_users_and_spreads_are_refused() {
        for (keys, key, words) in [
            ("names = 0", "names", "0 names are not between 1 and the number of jobs, 50"),
            ("names = 51", "names", "51 names are not between 1 and the number of jobs, 50"),
            ("names = 5\nusers = 6", "users", "6 users are not between 1 and the number of names, 5"),
            ("names = 5\nusers = 0", "users", "0 users are not"),
            ("names = 5\nspread = -0.1", "spread", "-0.1 is not between 0 and 10"),
            ("names = 5\nspread = nan", "spread", "NaN is not"),
            ("users = 2", "users", "share names"),
            ("recurrence = 0.5", "recurrence", "write for example names = 20"),
            ("spread = 0.5", "spread", "the class has none"),
        ] {
            let spec = WorkloadSpec::Mix(mix(50, keys));
            let error = Workload::build(&spec, &Service::default(), 1, 1, &NoTraces).err();
            let error = error.unwrap_or_else(|| panic!("{keys} was accepted")).to_string();
            assert!(error.starts_with(&format!("workload.mix.class[0].{key}: ")), "{keys}: {error}");
            assert!(error.contains(words), "{keys}: {error}");
        }
        let mut endless = mix(50, "names = 5");
        endless.class[0].stages[1] =
            toml::from_str("tasks = 3\ndemand = { pareto = { scale = \"1s\", shape = 0.9 } }").unwrap();
        let error = Workload::build(&WorkloadSpec::Mix(endless), &Service::default(), 1, 1, &NoTraces);
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("workload.mix.class[0].names: ") && error.contains("stages[1].demand"),
            "{error}"
        );
        let share =
            toml::from_str::<MixClass>("name = \"a\"\nweight = 1\nstages = []\nnames = 3\nrecurrence = 1.2");
        assert!(share.unwrap_err().to_string().contains("a share from 0 to 1"));
    }
}
