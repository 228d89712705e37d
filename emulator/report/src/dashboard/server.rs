//! The server of the live page: a socket of this machine, HTTP by hyper, on a thread of its own.
//!
//! While there is no viewer the thread sleeps. Sections are rendered once a second for all viewers together.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use volary_experiment::guard::guard;

use super::page;
use super::request::{Resource, Token, route};
use super::snapshot::Snapshot;
use super::source::SnapshotSource;
use super::streams::{Reply, ViewerStreams};

/// Real time between two renderings.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a request and its answer may take, other than a stream of events.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a client may take to send the head of its request.
const HEAD: Duration = Duration::from_secs(5);
/// How long viewers may take to read the last events.
const LAST: Duration = Duration::from_secs(1);
/// Bytes of the head of a request at most.
const HEAD_BYTES: usize = 16 << 10;
/// Connections at a time; beyond them the oldest without an answer is cut.
const CONNECTIONS: usize = 64;
/// Bytes that the system keeps for a client that does not read.
const SEND_BUFFER: usize = 256 << 10;

/// Why there is no live page.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Another process has the port.
    #[error("port {0} is in use by another process: give another one, or none for any that is free")]
    InUse(u16),
    /// The port is not for this user.
    #[error("port {0} is for root only: give one from 1024 on, or none for any that is free")]
    Privileged(u16),
    /// The system refuses a socket, a thread or randomness.
    #[error("cannot serve a page on 127.0.0.1: {0}")]
    System(#[from] io::Error),
}

impl LiveError {
    fn of(error: io::Error, port: u16) -> Self {
        if error.kind() == ErrorKind::AddrInUse {
            Self::InUse(port)
        } else if error.kind() == ErrorKind::PermissionDenied {
            Self::Privileged(port)
        } else {
            Self::System(error)
        }
    }
}

/// A page that is served until this is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    /// Sends the last event to viewers.
    stop: Option<oneshot::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a source on a port of 127.0.0.1, or on any that is free if `port` is 0.
    ///
    /// # Errors
    /// The port cannot be had.
    pub fn start(port: u16, source: Arc<dyn SnapshotSource>) -> Result<Self, LiveError> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| LiveError::of(error, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let token = Token::random().ok_or_else(|| io::Error::other("the system has no randomness"))?;
        let url = format!("http://{address}/{}/", token.text());
        let site =
            Arc::new(Site { source, token, address, streams: Mutex::default(), arrived: Notify::new() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || runtime.block_on(serve(listener, site, stopped));
        let thread = std::thread::Builder::new().name("live page".into()).spawn(serve)?;
        Ok(Self { url, stop: Some(stop), thread: Some(thread) })
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Shows viewers the last state, tells them that it is the last, and ends.
    pub fn end(mut self, says: &str) {
        self.stop(says);
    }

    fn stop(&mut self, says: &str) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(says.to_owned()); // fails only if the thread has ended
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("the run has ended");
    }
}

/// What all connections share.
struct Site {
    source: Arc<dyn SnapshotSource>,
    token: Token,
    address: SocketAddr,
    streams: Mutex<ViewerStreams>,
    /// Wakes the rendering: there is a viewer.
    arrived: Notify,
}

/// Accepts connections and renders until stopped.
async fn serve(listener: TcpListener, site: Arc<Site>, mut stopped: oneshot::Receiver<String>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::warn!("the live page cannot be served: {error}"),
    };
    let (mut connections, mut waiting) = (JoinSet::new(), VecDeque::new());
    let mut render = std::pin::pin!(render(Arc::clone(&site)));
    let says = loop {
        tokio::select! {
            says = &mut stopped => break says.unwrap_or_default(),
            () = &mut render => {}
            Some(_) = connections.join_next() => waiting.retain(|of: &Weak<Connected>| of.strong_count() > 0),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if connections.len() >= CONNECTIONS {
                        cut_oldest(&mut waiting);
                        // It ends now.
                        yield_now().await;
                        while connections.try_join_next().is_some() {}
                    }
                    if connections.len() < CONNECTIONS {
                        let connected = Arc::new(Connected::default());
                        waiting.push_back(Arc::downgrade(&connected));
                        connections.spawn(connect(stream, Arc::clone(&site), connected));
                    }
                }
                // Too many open files, which may pass.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    };
    if !guard(&site.streams).is_empty() {
        site.show();
    }
    guard(&site.streams).end(&says);
    let _ = timeout(LAST, async { while connections.join_next().await.is_some() {} }).await;
}

/// Cuts the oldest connection that is no stream of events: whoever opens many without a request keeps nobody else out.
fn cut_oldest(waiting: &mut VecDeque<Weak<Connected>>) {
    let is_answered = |connected: &Arc<Connected>| connected.streams.load(Ordering::Relaxed);
    while let Some(oldest) = waiting.pop_front() {
        if let Some(oldest) = oldest.upgrade().filter(|oldest| !is_answered(oldest)) {
            return oldest.cut.notify_one();
        }
    }
}

/// Renders once a second while there are viewers.
async fn render(site: Arc<Site>) {
    loop {
        if guard(&site.streams).is_empty() {
            site.arrived.notified().await;
        }
        site.source.request_details();
        site.show();
        let _ = timeout(INTERVAL, site.arrived.notified()).await;
    }
}

/// What ends a connection.
#[derive(Debug, Default)]
struct Connected {
    cut: Arc<Notify>,
    /// Whether it has become a stream of events, which may last.
    streams: AtomicBool,
}

/// Answers the one request of a connection.
async fn connect(stream: TcpStream, site: Arc<Site>, connected: Arc<Connected>) {
    // Buffers are limited so that a client that does not read is noticed; the defaults work as well.
    let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let answer = site.answer(&request, &connected);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    let late = async {
        sleep(ANSWER).await;
        if connected.streams.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    };
    tokio::select! {
        // A client that sends nonsense or goes away is no error of ours.
        _ = connection => {}
        () = connected.cut.notified() => {}
        () = late => {}
    }
}

/// The content of an answer.
struct Content {
    kind: &'static str,
    body: Reply,
    /// Of a page, whose style and script bear it; other answers have none.
    nonce: Option<Token>,
}

impl Content {
    fn text(kind: &'static str, text: String) -> Self {
        Self { kind, body: Reply::Whole(Some(Bytes::from(text))), nonce: None }
    }
}

impl Site {
    /// Renders the source for all viewers.
    fn show(&self) {
        guard(&self.streams).show(&self.source.snapshot());
    }

    fn answer(&self, request: &Request<Incoming>, connected: &Connected) -> Response<Reply> {
        let path = request.uri().path();
        let content = route(request.method(), path, request.headers(), &self.token, self.address)
            .and_then(|resource| self.content(resource, connected));
        let (status, Content { kind, body, nonce }) = match content {
            Ok(content) => (StatusCode::OK, content),
            Err(status) => (status, Content::text("text/plain", format!("{status}\n"))),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let policy = HeaderValue::from_str(&page::policy(nonce.as_ref().map(Token::text)));
        headers.extend(policy.ok().map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
        headers.extend([
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ]);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }

    fn content(&self, resource: Resource, connected: &Connected) -> Result<Content, StatusCode> {
        let unable = StatusCode::INTERNAL_SERVER_ERROR;
        match resource {
            Resource::Events => {
                let cut = Arc::clone(&connected.cut);
                let body = guard(&self.streams).open(cut).ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
                connected.streams.store(true, Ordering::Relaxed);
                self.arrived.notify_one();
                Ok(Content { kind: "text/event-stream", body, nonce: None })
            }
            Resource::Json => {
                let json = serde_json::to_string(&self.snapshot()).map_err(|_| unable)?;
                Ok(Content::text("application/json", json))
            }
            Resource::Page => {
                let nonce = Token::random().ok_or(unable)?;
                let page = page::html(&self.snapshot().header, nonce.text());
                Ok(Content { nonce: Some(nonce), ..Content::text("text/html; charset=utf-8", page) })
            }
        }
    }

    /// The source now. It measures details from the first request on.
    fn snapshot(&self) -> Snapshot {
        self.source.request_details();
        self.source.snapshot()
    }
}
