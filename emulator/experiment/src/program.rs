//! Programs of policies in other languages, as child processes.
//!
//! A program gets its own process group, so that an interrupt from the terminal reaches volary alone, which ends the
//! program by closing its input. Reading and writing are interleaved, so neither side can block the other with a full
//! pipe.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use volary_actors::base::Span;
use volary_actors::policies::external::PROTOCOL;
use volary_actors::program::{Channel, Launcher, ProgramSpec};

use crate::sanitize::terminal;

/// Environment variable by which a program knows that volary has started it: the version of the protocol.
const STARTED: &str = "VOLARY_PROTOCOL";
/// Longest answer, bytes.
const LONGEST_ANSWER: usize = 64 << 20;
/// Bytes of stderr that error messages quote.
const LAST_WORDS: usize = 2000;
/// Size of a read from a pipe, bytes. The buffer is cleared for each request, and most lines are shorter.
const PIPE: usize = 1 << 12;
/// Maximum number of lines of stderr that are logged.
const MOST_LOGGED: u32 = 10_000;
/// Interval between checks of a silent program.
const CHECK: Duration = Duration::from_millis(50);
/// Time that a program has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the programs of an experiment.
#[derive(Debug)]
pub struct ProcessLauncher {
    folder: PathBuf,
    allowed: Option<BTreeMap<String, PathBuf>>,
    /// Upper bound on the wait for an answer, in addition to the limit of the policy; `None` for no other bound.
    longest: Option<Span>,
}

impl ProcessLauncher {
    /// A launcher that runs the commands of an experiment, in the experiment's folder.
    pub fn of_experiment(folder: PathBuf) -> Self {
        Self { folder, allowed: None, longest: None }
    }

    /// A launcher that runs only these programs, by the name that the experiment gives, whatever command it states.
    pub fn of_host(allowed: BTreeMap<String, PathBuf>) -> Self {
        Self { folder: PathBuf::new(), allowed: Some(allowed), longest: None }
    }

    /// Limits the wait for an answer to half of an agent's lease, since the agent is silent while it waits.
    #[must_use]
    pub const fn within_lease(mut self, lease: Span) -> Self {
        self.longest = Some(Span(lease.0 / 2));
        self
    }

    fn command(&self, spec: ProgramSpec<'_>) -> Result<Command, String> {
        let Some(allowed) = &self.allowed else {
            let [program, arguments @ ..] = spec.command else {
                return Err("the policy names no program".into());
            };
            let mut command = Command::new(program);
            command.args(arguments);
            if !self.folder.as_os_str().is_empty() {
                command.current_dir(&self.folder);
            }
            return Ok(command);
        };
        if spec.name.is_empty() {
            return Err(
                "a program that runs on other machines needs a name: add name = \"mine\" to its policy, and \
                        start agents with --policy mine=/path/of/the/program"
                    .into(),
            );
        }
        let path = allowed.get(spec.name).ok_or_else(|| {
            format!(
                "this host allows no program `{0}`: start its agent with --policy {0}=/path/of/the/program",
                spec.name
            )
        })?;
        Ok(Command::new(path))
    }
}

impl Launcher for ProcessLauncher {
    fn check(&self, program: ProgramSpec<'_>) -> Result<(), String> {
        let command = self.command(program)?;
        let name = Path::new(command.get_program());
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates: Vec<PathBuf> = match name.components().count() {
            0 | 1 => std::env::split_paths(&folders).map(|folder| folder.join(name)).collect(),
            _ => vec![self.folder.join(name)],
        };
        candidates.retain(|path| path.is_file());
        let can_run =
            |path: &PathBuf| path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
        let kind = match candidates.iter().any(can_run) {
            true => return Ok(()),
            false if candidates.is_empty() => io::ErrorKind::NotFound,
            false => io::ErrorKind::PermissionDenied,
        };
        Err(cannot_start(&name.to_string_lossy(), &kind.into()))
    }

    fn launch(&self, program: ProgramSpec<'_>) -> Result<Box<dyn Channel>, String> {
        let mut command = self.command(program)?;
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .env(STARTED, PROTOCOL.to_string())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (patience, limit) = match self.longest.filter(|longest| *longest < program.patience) {
            Some(longest) => (longest, "half of the agent's lease, which --lease makes longer"),
            None => (program.patience, "the policy's patience"),
        };
        let started = command.spawn().and_then(|child| Process::new(child, name.clone(), patience, limit));
        match started {
            Ok(process) => Ok(Box::new(process)),
            Err(error) => Err(cannot_start(&name, &error)),
        }
    }
}

fn cannot_start(name: &str, error: &io::Error) -> String {
    /// The error for a script without the line that names its interpreter.
    const ENOEXEC: i32 = 8;
    let remedy = if error.kind() == io::ErrorKind::NotFound {
        "command names a program of PATH, an absolute path, or a path that begins with ./ and starts in the folder of the \
         experiment file"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "make it executable (chmod +x), or name its interpreter first"
    } else if error.raw_os_error() == Some(ENOEXEC) {
        "a script begins with a line such as #!/bin/sh"
    } else {
        "start it by hand to see why"
    };
    format!("cannot start `{name}` for a policy: {error}; {remedy}")
}

/// A running program.
#[derive(Debug)]
struct Process {
    child: Child,
    name: String,
    /// `None` once the program is to end.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    patience: Duration,
    /// The source of `patience`, for error messages.
    limit: &'static str,
    /// Bytes that the program has written beyond its last answer.
    unread: Vec<u8>,
    /// Number of lines of stderr so far.
    logged: u32,
    /// The last line of stderr, still without its end.
    line: Vec<u8>,
    /// The last bytes of stderr, for error messages.
    last_words: Vec<u8>,
}

impl Process {
    fn new(mut child: Child, name: String, patience: Span, limit: &'static str) -> io::Result<Self> {
        let missing = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        ioctl_fionbio(&stdin, true)?;
        ioctl_fionbio(&stdout, true)?;
        ioctl_fionbio(&stderr, true)?;
        Ok(Self {
            child,
            name,
            stdin: Some(stdin),
            stdout,
            stderr: Some(stderr),
            patience: Duration::from_nanos(patience.0),
            limit,
            unread: Vec::new(),
            logged: 0,
            line: Vec::new(),
            last_words: Vec::new(),
        })
    }

    /// Waits until a pipe is ready; `false` if none is by the deadline.
    fn wait(&self, writes: bool, deadline: Instant) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        fds.extend(
            self.stderr.as_ref().map(|stderr| PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN)),
        );
        let stdin = self.stdin.as_ref().filter(|_| writes);
        fds.extend(stdin.map(|stdin| PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT)));
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&left)) {
            Ok(0) => Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads available output from stderr, and passes lines on to the log.
    fn listen(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut buffer = [0; PIPE];
        let count = match stderr.read(&mut buffer) {
            Ok(0) => {
                self.stderr = None;
                return;
            }
            Ok(count) => count,
            Err(_) => return,
        };
        for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&part[..part.len().min(LAST_WORDS)]);
            if part.ends_with(b"\n") || self.line.len() > LAST_WORDS {
                self.logged += 1;
                match self.logged.cmp(&MOST_LOGGED) {
                    Ordering::Less => {
                        let line = String::from_utf8_lossy(&self.line);
                        tracing::info!("{}: {}", self.name, terminal(line.trim_end()));
                    }
                    Ordering::Equal => tracing::info!("{}: further lines are not logged", self.name),
                    Ordering::Greater => {}
                }
                self.line.clear();
            }
        }
        self.last_words.extend_from_slice(&buffer[..count]);
        let excess = self.last_words.len().saturating_sub(LAST_WORDS);
        self.last_words.drain(..excess);
    }

    /// The exit status in words; `None` while the program runs. An ended program stays a zombie until it is dropped, so
    /// the id of its group is not reused.
    fn status(&self) -> Option<String> {
        let id = Pid::from_raw(i32::try_from(self.child.id()).ok()?)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(id), options).ok()??;
        let code = status.exit_status().map(|code| format!("exit status: {code}"));
        Some(code.unwrap_or_else(|| format!("signal: {}", status.terminating_signal().unwrap_or_default())))
    }

    /// The reason why nothing more can be read.
    fn ended(&self) -> String {
        let deadline = Instant::now() + GRACE;
        loop {
            match self.status() {
                Some(status) => return format!("it ended ({status}) instead of answering"),
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                None => return "it closed its output instead of answering".to_owned(),
            }
        }
    }

    fn answer(&mut self, request: &str) -> Result<String, String> {
        let mut line = Vec::with_capacity(request.len() + 1);
        line.extend_from_slice(request.as_bytes());
        line.push(b'\n');
        let (mut written, mut searched) = (0, 0);
        let deadline = Instant::now() + self.patience;
        let mut buffer = [0; PIPE];
        loop {
            if let Some(stdin) = self.stdin.as_mut().filter(|_| written < line.len()) {
                match stdin.write(&line[written..]) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(self.ended()),
                    Err(error) => return Err(format!("it cannot be written to: {error}")),
                }
            }
            let soon = deadline.min(Instant::now() + CHECK);
            let ready = self.wait(written < line.len(), soon).map_err(|error| error.to_string())?;
            if !ready && self.status().is_some() {
                // Children of the program can keep its output open.
                return Err(self.ended());
            }
            if Instant::now() > deadline {
                let patience = Span(u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX));
                return Err(format!(
                    "it did not answer within {patience}, {}; it must write a line for each request, and flush its output",
                    self.limit
                ));
            }
            self.listen();
            match self.stdout.read(&mut buffer) {
                Ok(0) => return Err(self.ended()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(format!("it cannot be read from: {error}")),
            }
            let end = self.unread[searched..].iter().position(|byte| *byte == b'\n').map(|at| searched + at);
            searched = self.unread.len();
            match end {
                Some(end) if written == line.len() => {
                    let rest = self.unread.split_off(end + 1);
                    self.unread.pop();
                    let answer = String::from_utf8(std::mem::replace(&mut self.unread, rest));
                    if !self.unread.is_empty() {
                        return Err("it wrote more than one line for one request".to_owned());
                    }
                    return answer.map_err(|_| "its answer is not UTF-8".to_owned());
                }
                Some(_) => return Err("it answered before it had read the request".to_owned()),
                None if searched > LONGEST_ANSWER => {
                    let limit = LONGEST_ANSWER >> 20;
                    return Err(format!(
                        "its answer is longer than {limit} MiB, or has no newline at its end"
                    ));
                }
                None => {}
            }
        }
    }
}

impl Channel for Process {
    fn exchange(&mut self, request: &str) -> Result<String, String> {
        // A second line may have followed the previous answer.
        let more = self.stdout.read(&mut [0; 1]).is_ok_and(|count| count > 0);
        if more || !self.unread.is_empty() {
            return Err("it wrote a line that answers no request".to_owned());
        }
        self.answer(request)
    }

    fn complaint(&mut self) -> String {
        self.listen();
        terminal(String::from_utf8_lossy(&self.last_words).trim_end()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + GRACE;
        while self.status().is_none() {
            self.listen();
            if Instant::now() >= deadline {
                tracing::warn!("the program `{}` did not end when its input did, and was killed", self.name);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Its own children are in its group.
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.child.wait();
    }
}
