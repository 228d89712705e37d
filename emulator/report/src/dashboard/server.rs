//! The server of the live page: a socket of this machine, HTTP by hyper, on a separate thread.
//!
//! The thread sleeps while there are no viewers. Sections are rendered once a second for all viewers together.
//!
//! The server answers only `GET` requests that are addressed to this host and have the token. A page of another site in
//! a browser can also send requests to this machine, and a name of that site can resolve to `127.0.0.1`. Such a page
//! neither knows the token nor can forge the `Host` header of its requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::rand::{SecureRandom, SystemRandom};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use volary_experiment::guard::guard;

use super::snapshot::{Snapshot, SnapshotSource};
use super::streams::{Reply, ViewerStreams};
use super::{prometheus, sections};

/// Real time between two renderings.
const INTERVAL: Duration = Duration::from_secs(1);
/// Real time limit of a request and its answer, except for a stream of events.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit for a client to send the head of its request.
const HEAD: Duration = Duration::from_secs(5);
/// Time limit for viewers to read the last events.
const LAST: Duration = Duration::from_secs(1);
/// Maximum size of the head of a request, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// Maximum number of connections. At the limit, the oldest connection without an answer is closed.
const CONNECTIONS: usize = 64;
/// Bytes that the system buffers for a client that does not read.
const SEND_BUFFER: usize = 256 << 10;

/// The reason why the live page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Another process has the port.
    #[error("port {0} is in use by another process: choose another port, or give none to take any free one")]
    InUse(u16),
    /// The user has no permission for the port.
    #[error("port {0} is for root only: choose a port from 1024 on, or give none to take any free one")]
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

/// A page that is served until this value is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    /// Sends the text of the last event for viewers.
    stop: Option<oneshot::Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a source on a port of 127.0.0.1, or on any free port if `port` is 0.
    ///
    /// # Errors
    /// When the port cannot be used.
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

    /// Shows viewers the last state, marked as the last, and ends the server.
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

/// The state that all connections share.
struct Site {
    source: Arc<dyn SnapshotSource>,
    token: Token,
    address: SocketAddr,
    streams: Mutex<ViewerStreams>,
    /// Wakes the rendering when a viewer arrives.
    arrived: Notify,
}

/// Accepts connections and renders snapshots until stopped.
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
                        // This lets the closed connection end.
                        yield_now().await;
                        while connections.try_join_next().is_some() {}
                    }
                    if connections.len() < CONNECTIONS {
                        let connected = Arc::new(Connected::default());
                        waiting.push_back(Arc::downgrade(&connected));
                        connections.spawn(connect(stream, Arc::clone(&site), connected));
                    }
                }
                // The error may be temporary, such as too many open files.
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

/// Closes the oldest connection that is not a stream of events: connections without requests must not block others.
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

/// The handle that ends a connection.
#[derive(Debug, Default)]
struct Connected {
    cut: Arc<Notify>,
    /// Whether the connection has become a stream of events, which may last.
    streams: AtomicBool,
}

/// Answers the single request of a connection.
async fn connect(stream: TcpStream, site: Arc<Site>, connected: Arc<Connected>) {
    // Small buffers reveal a client that does not read; the default sizes work as well.
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
        // Invalid requests and disconnects of clients are not errors of the server.
        _ = connection => {}
        () = connected.cut.notified() => {}
        () = late => {}
    }
}

/// The content of an answer.
struct Content {
    kind: &'static str,
    body: Reply,
    /// The nonce of a page's style and script; `None` for other answers.
    nonce: Option<Token>,
}

impl Content {
    fn text(kind: &'static str, text: String) -> Self {
        Self { kind, body: Reply::Whole(Some(Bytes::from(text))), nonce: None }
    }
}

impl Site {
    /// Renders the current snapshot for all viewers.
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
        let policy = HeaderValue::from_str(&sections::policy(nonce.as_ref().map(Token::text)));
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
            Resource::Metrics => {
                Ok(Content::text(prometheus::MEDIA_TYPE, prometheus::metrics(&self.snapshot())))
            }
            Resource::Page => {
                let nonce = Token::random().ok_or(unable)?;
                let page = sections::html(&self.snapshot().header, nonce.text());
                Ok(Content { nonce: Some(nonce), ..Content::text("text/html; charset=utf-8", page) })
            }
        }
    }

    /// The current snapshot. Each request also makes the source measure details for some seconds.
    fn snapshot(&self) -> Snapshot {
        self.source.request_details();
        self.source.snapshot()
    }
}

/// Bytes of randomness in a token.
const TOKEN: usize = 16;

/// A random text of 128 bits, used in the page's address and as a nonce. It cannot be printed by accident, since it has
/// no `Debug`.
struct Token(String);

impl Token {
    /// A token from the system's randomness.
    fn random() -> Option<Self> {
        let mut bytes = [0; TOKEN];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text equals the token. The time of the comparison does not depend on the position of the first
    /// difference.
    fn is(&self, text: &str) -> bool {
        let pairs = self.0.bytes().zip(text.bytes());
        text.len() == self.0.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// A resource of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resource {
    Page,
    Events,
    Json,
    Metrics,
}

/// The resource that a request names, or the status of the refusal.
fn route(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    token: &Token,
    address: SocketAddr,
) -> Result<Resource, StatusCode> {
    let port = address.port();
    let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let mut hosts = headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    let is_ours = host.is_some_and(|host| ours.iter().any(|known| host.as_bytes() == known.as_bytes()));
    if !is_ours || more.is_some() {
        return Err(StatusCode::MISDIRECTED_REQUEST);
    }
    if method != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (given, rest) = path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or((path, ""));
    if !token.is(given) {
        return Err(StatusCode::FORBIDDEN);
    }
    match rest {
        "" => Ok(Resource::Page),
        "events" => Ok(Resource::Events),
        "snapshot.json" => Ok(Resource::Json),
        "metrics" => Ok(Resource::Metrics),
        _ => Err(StatusCode::NOT_FOUND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_with_the_token_are_answered() {
        let token = Token::random().unwrap();
        assert_ne!(token.text(), Token::random().unwrap().text());
        let address = ([127, 0, 0, 1], 8080).into();
        let ask = |method: Method, path: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            route(&method, path, &headers, &token, address)
        };
        let path = |rest: &str| format!("/{}/{rest}", token.text());
        let here = "127.0.0.1:8080";
        assert_eq!(ask(Method::GET, &path(""), here), Ok(Resource::Page));
        assert_eq!(ask(Method::GET, &path("events"), "localhost:8080"), Ok(Resource::Events));
        assert_eq!(ask(Method::GET, &path("snapshot.json"), here), Ok(Resource::Json));
        assert_eq!(ask(Method::GET, &path("metrics"), here), Ok(Resource::Metrics));
        assert_eq!(ask(Method::GET, &path("else"), here), Err(StatusCode::NOT_FOUND));
        for method in [Method::POST, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
            assert_eq!(ask(method, &path(""), here), Err(StatusCode::METHOD_NOT_ALLOWED));
        }
        for host in
            ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8080.evil.example", "[::1]:8080"]
        {
            assert_eq!(ask(Method::GET, &path(""), host), Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
        let short = &token.text()[1..];
        for path in
            ["/", "", "//", "/events", &format!("/{short}/"), &format!("/{}", token.text()), "/0/events"]
        {
            assert_eq!(ask(Method::GET, path, here), Err(StatusCode::FORBIDDEN), "{path}");
        }
        assert_eq!(
            route(&Method::GET, &path(""), &HeaderMap::new(), &token, address),
            Err(StatusCode::MISDIRECTED_REQUEST)
        );
    }
}
