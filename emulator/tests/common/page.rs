//! The live page as a client without a browser sees it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use super::binary::text;

/// Deadline of every wait, long enough for any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The address that a command with a live page prints first on its standard error, which must be a pipe.
pub fn address(child: &mut Child) -> String {
    let (stderr, mut line) = (child.stderr.as_mut().unwrap(), Vec::new());
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the output ends after {}", text(&line));
        line.push(byte[0]);
    }
    let line = text(&line);
    line.trim().strip_prefix("live: ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// Sends a request and returns the connection.
pub fn ask(url: &str, head: &str) -> TcpStream {
    let host = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Sends a `GET` request for a path below the page's address.
pub fn get(url: &str, rest: &str) -> TcpStream {
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    ask(url, &format!("GET /{path}{rest} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

/// Reads the whole answer.
pub fn answer(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    text(&all)
}

/// Requests the JSON snapshot of a page.
pub fn snapshot(url: &str) -> Value {
    let answer = answer(get(url, "snapshot.json"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}
