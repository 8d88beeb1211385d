//! A client's connection with two time-outs: for the head of a request, and for a client
//! that reads nothing of its response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::ClientTimeouts;

/// The progress of the requests of a connection. The stream and the service share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionProgress(Arc<ConnectionCounts>);

#[derive(Debug, Default)]
struct ConnectionCounts {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether the last read found no bytes.
    is_all_read: AtomicBool,
    /// Whether a part of a head has arrived, but not all of it.
    is_in_head: AtomicBool,
}

/// A request that is being served, until the guard is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard(ConnectionProgress);

impl ConnectionProgress {
    /// Marks that the head of a request was read.
    pub(super) fn begin(&self) -> RequestGuard {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }

    /// Whether no further request follows the one that is being served. While it waits
    /// for a response, the server reads on, unless it has read more than that request:
    /// then another one follows.
    pub(super) fn is_all_read(&self) -> bool {
        self.0.is_all_read.load(Ordering::Relaxed)
    }

    /// Whether the head of a request has begun to arrive.
    pub(super) fn is_in_head(&self) -> bool {
        self.0.is_in_head.load(Ordering::Relaxed)
    }

    /// The number of heads read, and whether all of them have been answered.
    fn counts(&self) -> (u64, bool) {
        let begun = self.0.begun.load(Ordering::Relaxed);
        (begun, begun == self.0.ended.load(Ordering::Relaxed))
    }
}

impl RequestGuard {
    /// The body of the response. The request ends when it is sent: it holds the guard in the
    /// closure of an adapter that changes nothing.
    pub(super) fn until_sent(
        self,
        body: BoxBody<Bytes, io::Error>,
    ) -> impl Body<Data = Bytes, Error = io::Error> {
        body.map_err(move |error| {
            let _held = &self;
            error
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// A stream that fails if the client is too slow.
pub(super) struct TimeoutStream<S> {
    stream: S,
    head_max: Duration,
    stalled_max: Duration,
    service: ConnectionProgress,
    /// The number of heads read at the last check.
    heads_seen: u64,
    /// The deadline of the head that has begun.
    head: Option<Pin<Box<Sleep>>>,
    /// The deadline for the client to read some of the response.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> TimeoutStream<S> {
    /// The time limit of the first head starts now.
    pub(super) fn new(stream: S, timeouts: &ClientTimeouts, service: ConnectionProgress) -> Self {
        Self {
            stream,
            head_max: timeouts.head,
            stalled_max: timeouts.stalled,
            service,
            heads_seen: 0,
            head: Some(after(timeouts.head)),
            stalled: None,
        }
    }

    /// Updates the deadline of the head after a read of `bytes` bytes.
    fn check_head(&mut self, bytes: usize, context: &mut Context<'_>) -> io::Result<()> {
        let (heads, all_answered) = self.service.counts();
        if heads != self.heads_seen {
            self.heads_seen = heads;
            self.head = None;
        }
        if bytes > 0 && all_answered && self.head.is_none() {
            self.head = Some(after(self.head_max));
        }
        if bytes > 0 || !all_answered {
            self.service
                .0
                .is_in_head
                .store(all_answered, Ordering::Relaxed);
        }
        // Checked after each read, so that a steady trickle of bytes cannot hide the
        // deadline.
        let is_over = match &mut self.head {
            Some(head) => head.as_mut().poll(context).is_ready(),
            None => false,
        };
        if is_over {
            return Err(timed_out("the head of a request took too long"));
        }
        Ok(())
    }

    /// Updates the deadline of a client that reads nothing after a write.
    fn check_write<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled_max = self.stalled_max;
        let stalled = self.stalled.get_or_insert_with(|| after(stalled_max));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(timed_out("the client read nothing of the response")))
    }
}

fn after(duration: Duration) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(Instant::now() + duration))
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        let counts = &this.service.0;
        counts
            .is_all_read
            .store(read.is_pending(), Ordering::Relaxed);
        if let Err(error) = this.check_head(bytes, context) {
            return Poll::Ready(Err(error));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check_write(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.check_write(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.check_write(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.check_write(shut, context)
    }
}
