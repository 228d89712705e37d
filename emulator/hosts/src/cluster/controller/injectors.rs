//! The socket on which the controller takes requests of injectors. It lies in the folder of the controller's identity,
//! and only the user of that folder may inject. Messages are lines of JSON.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cluster::protocol::{InjectReply, InjectRequest, InjectorMessage, Refusal};

/// Number of messages of injectors that may wait for the next run.
const WAITING: usize = 64;
/// Pause before the next accept, after an injector could not connect.
const RETRY: Duration = Duration::from_millis(100);
/// Number of replies to one injector that may wait; each injector gets at most two.
const REPLIES: usize = 4;

/// The injectors of a controller.
#[derive(Debug)]
pub(super) struct Injectors {
    events: mpsc::Receiver<InjectorEvent>,
    /// The socket, which is removed when this is dropped; `None` if it could not be made.
    socket: Option<PathBuf>,
}

/// A message of an injector, which is identified by its number.
#[derive(Debug)]
pub(super) enum InjectorEvent {
    Request(Injector, Box<InjectRequest>),
    End(u64),
    Gone(u64),
}

/// A connected injector.
#[derive(Clone, Debug)]
pub(super) struct Injector {
    pub(super) number: u64,
    replies: mpsc::Sender<InjectReply>,
}

impl Injector {
    /// Answers the injector, unless it has disconnected.
    pub(super) fn reply(&self, reply: InjectReply) {
        let _ = self.replies.try_send(reply);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.replies.is_closed()
    }

    /// Waits until the injector has disconnected.
    pub(super) async fn gone(&self) {
        self.replies.closed().await;
    }
}

impl Injectors {
    /// Listens for injectors. If the socket cannot be made, logs a warning with the reason; then injections are
    /// impossible.
    pub(super) fn listen(socket: PathBuf) -> Self {
        let (sender, events) = mpsc::channel(WAITING);
        let socket = match bind(&socket) {
            Ok(listener) => {
                tokio::spawn(accept(listener, sender));
                Some(socket)
            }
            Err(error) => {
                tracing::warn!(
                    "no interference can be injected into this run: {}: {error}",
                    socket.display()
                );
                None
            }
        };
        Self { events, socket }
    }

    /// The next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> InjectorEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Without a socket there are no events.
            None => std::future::pending().await,
        }
    }
}

impl Injectors {
    /// Removes the socket, so that no further injector connects.
    pub(super) fn close(&mut self) {
        if let Some(socket) = self.socket.take() {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Drop for Injectors {
    fn drop(&mut self) {
        self.close();
    }
}

/// Binds a socket; replaces a socket that an earlier controller has left behind.
fn bind(socket: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return Err(io::Error::other("another controller listens on this socket"));
    }
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: UnixListener, events: mpsc::Sender<InjectorEvent>) {
    let mut number = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                number += 1;
                tokio::spawn(serve(number, stream, events.clone()));
            }
            // For example, too many files are open.
            Err(error) => {
                tracing::warn!("an injector cannot connect: {error}");
                sleep(RETRY).await;
            }
        }
    }
}

/// Passes messages on in both directions until the injector disconnects.
async fn serve(number: u64, stream: UnixStream, events: mpsc::Sender<InjectorEvent>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let (replies, mut waiting) = mpsc::channel(REPLIES);
    let injector = Injector { number, replies };
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                let event = match serde_json::from_str(&line) {
                    Ok(InjectorMessage::Request(request)) => InjectorEvent::Request(injector.clone(), request),
                    Ok(InjectorMessage::End) => InjectorEvent::End(number),
                    Err(error) => {
                        injector.reply(InjectReply::Refused(Refusal::Invalid, error.to_string()));
                        continue;
                    }
                };
                if events.send(event).await.is_err() {
                    break;
                }
            }
            Some(reply) = waiting.recv() => {
                let mut line = serde_json::to_vec(&reply).unwrap_or_default();
                line.push(b'\n');
                if write.write_all(&line).await.is_err() {
                    break;
                }
            }
        }
    }
    drop(waiting);
    let _ = events.send(InjectorEvent::Gone(number)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that a killed controller has left behind is replaced; a socket with a listener is kept.
    #[tokio::test]
    async fn a_socket_without_a_listener_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("inject.sock");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let first = Injectors::listen(socket.clone());
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let second = Injectors::listen(socket.clone());
        assert!(first.socket.is_some() && second.socket.is_none());
        drop(second);
        assert!(UnixStream::connect(&socket).await.is_ok(), "the first listens still");
        drop(first);
        assert!(!socket.exists());
    }

    #[tokio::test]
    async fn requests_between_two_runs_wait_for_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("inject.sock");
        let mut injectors = Injectors::listen(socket.clone());
        let mut injector = UnixStream::connect(&socket).await.unwrap();
        let message = InjectorMessage::Request(Box::default());
        injector
            .write_all(format!("{}\n", serde_json::to_string(&message).unwrap()).as_bytes())
            .await
            .unwrap();
        let InjectorEvent::Request(waiting, _) = injectors.next().await else { panic!("no request") };
        assert!(!waiting.is_gone());
        drop(injector);
        waiting.gone().await;
        assert!(matches!(injectors.next().await, InjectorEvent::Gone(number) if number == waiting.number));
    }
}
