//! The viewers of the page, and the server-sent events that they receive.
//!
//! A viewer receives every section once, and afterwards the changed sections. Its queue is short: a viewer that does
//! not read is disconnected, and neither blocks the others nor takes memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use super::sections::{SECTIONS, render};
use super::snapshot::Snapshot;

/// Maximum number of viewers.
const VIEWERS: usize = 16;
/// Maximum number of batches of events that wait for a viewer.
const QUEUE: usize = 4;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Reply {
    Whole(Option<Bytes>),
    /// A stream of events, until the sender is dropped.
    Events(mpsc::Receiver<Bytes>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Whole(data) => Poll::Ready(data.take()),
            Self::Events(queue) => queue.poll_recv(context),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(data) => SizeHint::with_exact(data.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// A viewer of the page.
#[derive(Debug)]
struct Viewer {
    queue: mpsc::Sender<Bytes>,
    /// Ends the viewer's connection.
    cut: Arc<Notify>,
    /// Whether the viewer has not received any section yet.
    fresh: bool,
}

/// All viewers, and the sections that were sent to them.
#[derive(Debug, Default)]
pub(super) struct ViewerStreams {
    viewers: Vec<Viewer>,
    /// The sections as they were last sent.
    sections: Vec<String>,
}

impl ViewerStreams {
    /// A new viewer, whose connection ends with `cut`; `None` if there are too many.
    pub(super) fn open(&mut self, cut: Arc<Notify>) -> Option<Reply> {
        self.prune();
        if self.viewers.len() >= VIEWERS {
            return None;
        }
        let (queue, events) = mpsc::channel(QUEUE);
        self.viewers.push(Viewer { queue, cut, fresh: true });
        Some(Reply::Events(events))
    }

    /// Whether there is no viewer.
    pub(super) fn is_empty(&mut self) -> bool {
        self.prune();
        self.viewers.is_empty()
    }

    /// Removes viewers that have disconnected.
    fn prune(&mut self) {
        self.viewers.retain(|viewer| !viewer.queue.is_closed());
    }

    /// Sends the changed sections of a snapshot, and all sections to new viewers.
    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let sections = render(snapshot);
        let before = std::mem::replace(&mut self.sections, sections);
        let changed = |at: &usize| before.get(*at) != self.sections.get(*at);
        let news = self.events((0..SECTIONS.len()).filter(changed));
        let all = self.events(0..SECTIONS.len());
        self.send(|viewer| if std::mem::take(&mut viewer.fresh) { all.clone() } else { news.clone() });
    }

    /// Sends the last event, after which pages do not connect again, and then ends all streams.
    pub(super) fn end(&mut self, says: &str) {
        let last = Bytes::from(event("end", &says.replace(['\r', '\n'], " ")));
        self.send(|_| last.clone());
        self.viewers.clear();
    }

    fn events(&self, sections: impl Iterator<Item = usize>) -> Bytes {
        let section = |at: usize| {
            let data = json!({ "id": SECTIONS[at].0, "html": self.sections[at] });
            event("section", &data.to_string())
        };
        Bytes::from(sections.map(section).collect::<String>())
    }

    /// Queues a batch for every viewer, and disconnects those whose queue is full.
    fn send(&mut self, mut batch: impl FnMut(&mut Viewer) -> Bytes) {
        self.viewers.retain_mut(|viewer| {
            let batch = batch(viewer);
            let sent = batch.is_empty() || viewer.queue.try_send(batch).is_ok();
            if !sent {
                viewer.cut.notify_one();
            }
            sent
        });
    }
}

/// A server-sent event with one line of data.
fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(reply: Reply) -> mpsc::Receiver<Bytes> {
        match reply {
            Reply::Events(queue) => queue,
            Reply::Whole(_) => unreachable!("a stream replies with events"),
        }
    }

    fn snapshot(state: &str) -> Snapshot {
        Snapshot { state: state.to_owned(), ..Snapshot::default() }
    }

    #[test]
    fn a_viewer_receives_all_sections_and_then_changes() {
        let mut streams = ViewerStreams::default();
        let mut one = queue(streams.open(Arc::default()).unwrap());
        streams.show(&snapshot("a"));
        let first = String::from_utf8(one.try_recv().unwrap().to_vec()).unwrap();
        assert_eq!(first.matches("event: section\n").count(), SECTIONS.len(), "{first}");
        streams.show(&snapshot("a"));
        assert!(one.try_recv().is_err(), "nothing has changed");
        let mut two = queue(streams.open(Arc::default()).unwrap());
        streams.show(&snapshot("b"));
        let changed = String::from_utf8(one.try_recv().unwrap().to_vec()).unwrap();
        assert_eq!(changed.matches("event: section\n").count(), 1, "{changed}");
        assert!(two.try_recv().unwrap().len() > changed.len());
        streams.end("over\nand out");
        assert_eq!(one.try_recv().unwrap(), "event: end\ndata: over and out\n\n");
        assert!(matches!(one.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
    }

    #[test]
    fn a_client_that_does_not_read_is_disconnected() {
        let (mut streams, cut) = (ViewerStreams::default(), Arc::new(Notify::new()));
        let _stalled = queue(streams.open(Arc::clone(&cut)).unwrap());
        let mut reads = queue(streams.open(Arc::default()).unwrap());
        for i in 0..=QUEUE {
            streams.show(&snapshot(&i.to_string()));
            assert!(reads.try_recv().is_ok());
        }
        assert_eq!(streams.viewers.len(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(cut.notified());
    }

    #[test]
    fn the_number_of_viewers_is_limited() {
        let mut streams = ViewerStreams::default();
        let kept: Vec<_> = (0..VIEWERS).map(|_| streams.open(Arc::default()).unwrap()).collect();
        assert!(streams.open(Arc::default()).is_none());
        drop(kept);
        assert!(streams.is_empty() && streams.open(Arc::default()).is_some());
    }
}
