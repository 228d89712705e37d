//! CPU quota of control groups: the other way to slow a core down, where the system allows it.
//!
//! Each core's burner gets a group of its own below the process's, named `volary-PID-CPU`, in which it may have
//! 1 / σ of every period. Both versions are spoken: version 1 through `tasks` and `cpu.cfs_quota_us`, version 2
//! through a threaded group and `cpu.max`.
//!
//! Quota is coarse: a burner has the CPU to itself at the start of each period and nothing for the rest of it, and the
//! kernel's accounting lags by a scheduler tick. So slots of 100 ms come out about right and shorter ones do
//! not; the readings say how far.
//!
//! Groups outlive processes. So a guard, a process of its own, removes them when this one dies, however it does, and
//! whoever starts next removes what dead ones have left. In version 2 the parent's `cgroup.subtree_control` keeps
//! `cpu`, which slows nobody down: to take it back would take it from others who came to need it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::Pid;

use super::BurnError;
use super::cpu::CpuId;

/// A period: shorter ones let burners have less than their share.
const PERIOD_US: f64 = 10_000.0;
/// The system takes no smaller quota and no longer period.
const LEAST_US: f64 = 1000.0;
const LONGEST_US: f64 = 1e6;
/// How long a group may take to become empty once its thread has ended.
const EMPTYING: Duration = Duration::from_secs(2);
/// Waits until its input ends, which it does with the process that holds the other end, and removes groups. What a
/// terminal sends to all processes of a session does not concern it. A hundred rounds over those that are left: one
/// that cannot be removed delays no other.
const GUARD: &str = "trap '' HUP INT TERM; cat > /dev/null; n=0; while [ $# -gt 0 ] && [ $n -lt 100 ]; do \
     for group; do shift; rmdir \"$group\" 2> /dev/null || { [ -d \"$group\" ] && set -- \"$@\" \"$group\"; }; done; \
     [ $# -eq 0 ] || sleep 0.1; n=$((n + 1)); done";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

/// A group of one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }

    /// Makes the group, below the process's own.
    fn make(&self) -> io::Result<()> {
        let path = &self.path;
        fs::create_dir(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        if self.version == Version::Two {
            self.write("cgroup.type", "threaded")?;
            self.write("../cgroup.subtree_control", "+cpu")?;
        }
        // A group competes as a whole: so that its thread yields to all, as outside, the group must.
        if self.path.join("cpu.idle").exists() {
            self.write("cpu.idle", "1")
        } else if self.version == Version::One {
            self.write("cpu.shares", "2")
        } else {
            self.write("cpu.weight", "1")
        }
    }

    /// Takes a thread in.
    pub(super) fn enrol(&self, thread: Pid) -> io::Result<()> {
        let file = match self.version {
            Version::One => "tasks",
            Version::Two => "cgroup.threads",
        };
        self.write(file, &thread.to_string())
    }

    /// Slows its thread down by so much; 1 lifts the quota.
    pub(super) fn slow(&self, slowdown: f64) -> io::Result<()> {
        // What the least quota is too much of gets longer periods.
        let period = (LEAST_US * slowdown).clamp(PERIOD_US, LONGEST_US).round();
        let quota = (period / slowdown).round().max(LEAST_US);
        match self.version {
            Version::One => {
                self.write("cpu.cfs_quota_us", "-1")?;
                if slowdown > 1.0 {
                    self.write("cpu.cfs_period_us", &period.to_string())?;
                    self.write("cpu.cfs_quota_us", &quota.to_string())?;
                }
                Ok(())
            }
            Version::Two if slowdown > 1.0 => self.write("cpu.max", &format!("{quota} {period}")),
            Version::Two => self.write("cpu.max", "max"),
        }
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, as soon as its thread has ended.
    fn remove(&self) {
        let began = Instant::now();
        // A thread that was joined is not yet out of its group.
        while fs::remove_dir(&self.path).is_err() && self.path.exists() && began.elapsed() < EMPTYING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The groups of a process's cores. Dropping it removes them: their threads must have ended.
pub(super) struct Groups {
    groups: Vec<Group>,
    guard: Option<Child>,
}

impl Groups {
    /// A group for each CPU, below the group that the process is in.
    pub(super) fn make(cpus: &[CpuId]) -> Result<Self, BurnError> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let none = || BurnError::NoQuota { why: "no control group with CPU quota is mounted".into() };
        let (version, parent) =
            find(&read("/proc/self/mounts"), &read("/proc/self/cgroup")).ok_or_else(none)?;
        Self::below(version, &parent, cpus).map_err(|refused| BurnError::NoQuota { why: refused.to_string() })
    }

    fn below(version: Version, parent: &Path, cpus: &[CpuId]) -> io::Result<Self> {
        sweep(parent);
        let name = |cpu: &CpuId| format!("{PREFIX}{}-{cpu}", std::process::id());
        let groups = cpus.iter().map(|cpu| Group { version, path: parent.join(name(cpu)) }).collect();
        let mut all = Self { groups, guard: None };
        // The guard comes first: whatever is made is guarded.
        all.guard = Some(guard(&all.groups)?);
        all.groups.iter().try_for_each(Group::make)?;
        Ok(all)
    }

    pub(super) fn get(&self, core: usize) -> &Group {
        &self.groups[core]
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.groups.iter().for_each(Group::remove);
        // Waiting closes the guard's input, and so ends it.
        let _ = self.guard.as_mut().map(Child::wait);
    }
}

/// Starts the guard of these groups.
fn guard(groups: &[Group]) -> io::Result<Child> {
    let mut guard = Command::new("/bin/sh");
    guard.args(["-c", GUARD, "guard"]).args(groups.iter().map(|group| &group.path));
    // In a process group of its own, where no signal for this one's reaches it.
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").process_group(0);
    guard.spawn()
}

const PREFIX: &str = "volary-";

/// Removes what dead processes left. A group in use cannot be removed, so nothing that lives is at risk.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where quota can be set for this process: the version, and its own group's folder. `mounts` and `own` are
/// `/proc/self/mounts` and `/proc/self/cgroup`.
fn find(mounts: &str, own: &str) -> Option<(Version, PathBuf)> {
    // Lines are `number:controllers:path`; version 2 is `0::path`.
    let path = |fits: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            fits(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    // And here `device folder type options …`.
    let mounted = |kind: &str, with: &dyn Fn(&str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (folder, is, options) = (words.next()?, words.next()?, words.next()?);
            (is == kind && with(options)).then(|| PathBuf::from(folder))
        })
    };
    let has_cpu = |list: &str| list.split(',').any(|word| word == "cpu");
    // A controller is in one of the two only. Where version 1 has it, version 2 does not.
    if let Some((folder, own)) = mounted("cgroup", &has_cpu).zip(path(&has_cpu)) {
        return Some((Version::One, folder.join(own)));
    }
    let (folder, own) = mounted("cgroup2", &|_| true).zip(path(&str::is_empty))?;
    Some((Version::Two, folder.join(own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_found() {
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "3:cpuset:/set\n1:cpu,cpuacct:/jobs/7\n0::/unified\n";
        let at = |folder: &str| PathBuf::from(folder);
        assert_eq!(find(hybrid, own), Some((Version::One, at("/sys/fs/cgroup/cpu,cpuacct/jobs/7"))));
        let unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let scope = "0::/user.slice/session-2.scope\n";
        assert_eq!(
            find(unified, scope),
            Some((Version::Two, at("/sys/fs/cgroup/user.slice/session-2.scope")))
        );
        assert_eq!(find(unified, "0::/\n"), Some((Version::Two, at("/sys/fs/cgroup/"))));
        assert_eq!(find("cgroup /c cgroup rw,cpuset,cpuacct 0 0\n", own), None, "cpuset is not cpu");
        assert_eq!(find(unified, ""), None);
    }

    #[test]
    fn the_guard_removes_all_groups_and_one_that_is_stuck_delays_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |n: u32| folder.path().join(format!("volary-1-{n}"));
        let groups: Vec<Group> = (0..130).map(|n| Group { version: Version::One, path: path(n) }).collect();
        groups.iter().for_each(|group| fs::create_dir(&group.path).unwrap());
        fs::create_dir(path(0).join("busy")).unwrap();
        let mut guard = guard(&groups).unwrap();
        drop(guard.stdin.take());
        let left = || fs::read_dir(folder.path()).unwrap().count();
        while left() > 1 {
            assert!(guard.try_wait().unwrap().is_none(), "{} are left", left());
        }
        fs::remove_dir(path(0).join("busy")).unwrap();
        guard.wait().unwrap();
        assert_eq!(left(), 0);
    }

    /// A made-up group: what is written where.
    fn made_up(version: Version) -> (tempfile::TempDir, Group) {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { version, path: folder.path().join("volary-1-0") };
        group.make().unwrap();
        (folder, group)
    }

    #[test]
    fn version_two_is_spoken() {
        let (folder, group) = made_up(Version::Two);
        let read = |file: &str| fs::read_to_string(group.path.join(file)).unwrap();
        assert_eq!(read("cgroup.type"), "threaded");
        assert_eq!(fs::read_to_string(folder.path().join("cgroup.subtree_control")).unwrap(), "+cpu");
        assert_eq!(read("cpu.weight"), "1");
        group.enrol(rustix::thread::gettid()).unwrap();
        assert_eq!(read("cgroup.threads"), rustix::thread::gettid().to_string());
        for (slowdown, quota) in
            [(4.0, "2500 10000"), (1.5, "6667 10000"), (50.0, "1000 50000"), (1.0, "max")]
        {
            group.slow(slowdown).unwrap();
            assert_eq!(read("cpu.max"), quota);
        }
    }

    #[test]
    fn version_one_is_spoken() {
        let (_folder, group) = made_up(Version::One);
        let read = |file: &str| fs::read_to_string(group.path.join(file)).unwrap();
        assert_eq!(read("cpu.shares"), "2");
        group.enrol(rustix::thread::gettid()).unwrap();
        assert_eq!(read("tasks"), rustix::thread::gettid().to_string());
        group.slow(4.0).unwrap();
        assert_eq!((read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")), ("2500".into(), "10000".into()));
        group.slow(1.0).unwrap();
        assert_eq!(read("cpu.cfs_quota_us"), "-1");
    }

    #[test]
    fn only_what_the_dead_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let mine = format!("volary-{}-0", std::process::id());
        // No process has the last number.
        for name in ["volary-4294967295-0", "volary-4294967295-11", &mine, "volary-tests", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        sweep(folder.path());
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", &mine, "volary-tests"]);
        sweep(Path::new("/nowhere"));
    }

    /// Only its own input tells the guard that the process is gone: closing it is what the kernel does then.
    #[test]
    fn the_guard_removes_what_is_left_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let groups = ["a", "b c"].map(|name| Group { version: Version::One, path: folder.path().join(name) });
        let mut child = guard(&groups).unwrap();
        groups.iter().for_each(|group| fs::create_dir(&group.path).unwrap());
        let pid = Pid::from_child(&child);
        let terminate = rustix::process::Signal::TERM;
        // It ignores the signal as soon as it has said so to the kernel.
        let status = format!("/proc/{}/status", child.id());
        let ignores =
            |line: &str| u64::from_str_radix(line.trim(), 16).is_ok_and(|mask| mask & (1 << 14) != 0);
        while !fs::read_to_string(&status)
            .unwrap()
            .lines()
            .any(|l| l.strip_prefix("SigIgn:").is_some_and(ignores))
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        rustix::process::kill_process(pid, terminate).unwrap();
        assert!(groups.iter().all(|group| group.path.exists()) && child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(groups.iter().all(|group| !group.path.exists()));
    }

    #[test]
    fn what_is_refused_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let refused = Groups::below(Version::Two, &missing, &[CpuId(0)]).err().unwrap().to_string();
        assert!(refused.contains("missing/volary-") && refused.contains("No such file"), "{refused}");
    }
}
