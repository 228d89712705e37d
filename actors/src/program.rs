//! External programs that make decisions for actors, over a protocol of lines.
//!
//! A runtime implements [`Launcher`]: it starts processes, enforces a time limit, and says what went wrong. Nothing
//! here does I/O. [`policies::external`](crate::policies::external) defines the lines.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::{ActorId, Span};

/// A program as an experiment names it.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The name under which agents on other machines know the program.
    pub name: &'a str,
    /// Real time after which a program that has not answered is treated as failed.
    pub patience: Span,
    /// Whether a run is repeated to check that runs of one seed are equal.
    pub verify: bool,
    /// Files on which the program depends, besides those that the command names.
    pub files: &'a [String],
}

/// A running program, which answers each line with a line.
pub trait Channel: Debug + Send {
    /// Sends a line and waits for the answer; neither ends with a newline.
    ///
    /// # Errors
    /// If there is no answer, with the reason: the program ended, did not answer in time, or wrote too much.
    fn exchange(&mut self, request: &str) -> Result<String, String>;

    /// The last lines that the program wrote to stderr; empty if there are none.
    fn complaint(&mut self) -> String;
}

/// Starts programs.
pub trait Launcher: Debug + Send + Sync {
    /// Whether this machine may start a program.
    ///
    /// # Errors
    /// If it may not, with the reason and a remedy.
    fn check(&self, _program: ProgramSpec<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Starts the program of a policy.
    ///
    /// # Errors
    /// If the program cannot be started, with the reason and a remedy.
    fn launch(&self, program: ProgramSpec<'_>) -> Result<Box<dyn Channel>, String>;
}

/// The running programs of a shard. They end when this value is dropped.
#[derive(Debug)]
pub struct Programs {
    launcher: Arc<dyn Launcher>,
    open: Mutex<BTreeMap<Option<ActorId>, Arc<Program>>>,
    /// The first failure of a program.
    failure: Arc<Mutex<Option<String>>>,
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    channel: Mutex<Box<dyn Channel>>,
    failure: Arc<Mutex<Option<String>>>,
    /// Its answer to the greeting.
    hello: String,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of bytes of a line that an error message quotes.
const QUOTED: usize = 300;

/// The beginning of a line.
fn quoted(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}… ({} bytes)", &line[..end], line.len()),
        None => line.to_owned(),
    }
}

impl Programs {
    /// A set without running programs; `launcher` starts them when they are needed.
    pub fn new(launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, open: Mutex::default(), failure: Arc::default() }
    }

    /// The error of the first program that failed.
    pub fn failure(&self) -> Option<String> {
        locked(&self.failure).clone()
    }

    /// Returns a running program, or `None` if a program has failed. With an `owner`, each call starts a new process
    /// and ends the owner's previous one. Without an owner, the first call starts a process and later calls return it.
    /// `greeting` is the first line to a new process, and `check` validates its answer.
    pub(crate) fn open(
        &self,
        spec: ProgramSpec<'_>,
        owner: Option<ActorId>,
        greeting: impl FnOnce() -> String,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<Arc<Program>> {
        let mut open = locked(&self.open);
        if let Some(program) = open.get(&owner).filter(|_| owner.is_none()) {
            return Some(Arc::clone(program));
        }
        if locked(&self.failure).is_some() {
            return None;
        }
        // The owner's previous process ends before the next one starts.
        open.remove(&owner);
        let greeting = &greeting();
        let started = self.launcher.launch(spec).and_then(|mut channel| {
            let hello = channel.exchange(greeting).and_then(|answer| match check(&answer) {
                Ok(()) => Ok(answer),
                Err(why) => Err(format!("{why}; it said {}", quoted(&answer))),
            });
            match hello {
                Ok(hello) => Ok((channel, hello)),
                Err(why) => Err(described(&why, greeting, channel.as_mut())),
            }
        });
        let program = started.map(|(channel, hello)| {
            let (channel, failure) = (Mutex::new(channel), Arc::clone(&self.failure));
            Arc::new(Program { channel, failure, hello })
        });
        let program = program.map_err(|why| locked(&self.failure).get_or_insert(why).clone()).ok()?;
        open.insert(owner, Arc::clone(&program));
        Some(program)
    }
}

impl Program {
    /// The program's answer to the greeting.
    pub(crate) fn hello(&self) -> &str {
        &self.hello
    }

    /// Sends a request to the program; returns the answer as parsed by `read`, and its text. `read` returns an error
    /// for an invalid answer. `None` after a failure.
    pub(crate) fn ask<T>(
        &self,
        request: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<(T, String)> {
        if locked(&self.failure).is_some() {
            return None;
        }
        let mut channel = locked(&self.channel);
        let answer = channel.exchange(request).and_then(|answer| match read(&answer) {
            Ok(read) => Ok((read, answer)),
            Err(why) => Err(format!("{why}; it said {}", quoted(&answer))),
        });
        answer
            .map_err(|why| {
                let why = described(&why, request, channel.as_mut());
                locked(&self.failure).get_or_insert(why);
            })
            .ok()
    }

    /// Records that the program asked for something impossible.
    pub(crate) fn fail(&self, why: &str, request: &str, answer: &str) {
        let why = format!("{why}; it said {}", quoted(answer));
        let why = described(&why, request, locked(&self.channel).as_mut());
        locked(&self.failure).get_or_insert(why);
    }
}

/// An error message: the reason with the last line of stderr, the request that led to it, and the end of stderr.
fn described(why: &str, request: &str, channel: &mut dyn Channel) -> String {
    let complaint = channel.complaint();
    let last =
        complaint.lines().next_back().map_or_else(String::new, |line| format!("; it complained: {line}"));
    let whole =
        if complaint.is_empty() { String::new() } else { format!("\nthe end of its stderr:\n{complaint}") };
    format!("the policy's program failed: {why}{last}\nit was asked {}{whole}", quoted(request))
}
