//! The requests that are answered: `GET`, addressed to this host, with the token.
//!
//! A page of another site that a browser has open can send requests to this machine as well, and a name of its own can
//! resolve to `127.0.0.1`. It knows neither the token nor can it forge the `Host` header of its requests.

use std::net::SocketAddr;

use hyper::header::HOST;
use hyper::{HeaderMap, Method, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of randomness in a token.
const TOKEN: usize = 16;

/// A random text of 128 bits, for the page's address and as the nonce of a page.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A token of the system's randomness.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; TOKEN];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text is the token. How long that takes does not depend on where they differ.
    fn is(&self, text: &str) -> bool {
        let pairs = self.0.bytes().zip(text.bytes());
        text.len() == self.0.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// What the server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resource {
    Page,
    Events,
    Json,
}

/// The resource that a request names, or the status with which it is refused.
pub(super) fn route(
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
        _ => Err(StatusCode::NOT_FOUND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_know_the_token_are_answered() {
        let token = Token::random().unwrap();
        assert_ne!(Some(&token), Token::random().as_ref());
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
        assert!(!format!("{token:?}").contains(token.text()));
    }
}
