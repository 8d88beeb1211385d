//! A client's connection with two clocks: how long the head of a request may take,
//! and how long nothing of an answer may be taken.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::ClientTimeouts;

/// How far a connection is with its requests: shared by its stream and its service.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionProgress(Arc<ConnectionCounts>);

#[derive(Debug, Default)]
struct ConnectionCounts {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether the last read found nothing.
    is_all_read: AtomicBool,
    /// Whether a part of a head has come and not the whole.
    is_in_head: AtomicBool,
}

/// A request that is being served; dropping it ends that.
#[derive(Debug)]
pub(super) struct RequestGuard(ConnectionProgress);

impl ConnectionProgress {
    /// A request's head is read.
    pub(super) fn begin(&self) -> RequestGuard {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }

    /// Whether nothing lies behind the request that is being served. The server reads on
    /// while it waits for an answer, unless it has read more than that request: then
    /// another one follows.
    pub(super) fn is_all_read(&self) -> bool {
        self.0.is_all_read.load(Ordering::Relaxed)
    }

    /// Whether the head of a request has begun to arrive.
    pub(super) fn is_in_head(&self) -> bool {
        self.0.is_in_head.load(Ordering::Relaxed)
    }

    /// How many heads were read, and whether none of them waits for its answer.
    fn look(&self) -> (u64, bool) {
        let begun = self.0.begun.load(Ordering::Relaxed);
        (begun, begun == self.0.ended.load(Ordering::Relaxed))
    }
}

impl RequestGuard {
    /// The body of its answer: when that is sent, the request has ended.
    pub(super) fn until_sent(self, body: BoxBody<Bytes, io::Error>) -> AnswerBody {
        AnswerBody {
            body,
            _served: self,
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
pub(super) struct AnswerBody {
    body: BoxBody<Bytes, io::Error>,
    _served: RequestGuard,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose other side is waited for, but not for ever.
pub(super) struct PatientStream<S> {
    stream: S,
    head_max: Duration,
    stalled_max: Duration,
    service: ConnectionProgress,
    /// Heads that were read when the stream last looked.
    heads_seen: u64,
    /// Until when the head that has begun must be whole.
    head: Option<Pin<Box<Sleep>>>,
    /// Until when something must be taken of what is written.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> PatientStream<S> {
    /// Time runs from now on: a client that connects has something to say.
    pub(super) fn new(stream: S, patience: &ClientTimeouts, service: ConnectionProgress) -> Self {
        Self {
            stream,
            head_max: patience.head,
            stalled_max: patience.stalled,
            service,
            heads_seen: 0,
            head: Some(after(patience.head)),
            stalled: None,
        }
    }

    /// What a read means for the clock of the head: `bytes` came, or none.
    fn clock_head(&mut self, bytes: usize, context: &mut Context<'_>) -> io::Result<()> {
        let (heads, is_at_rest) = self.service.look();
        if heads != self.heads_seen {
            self.heads_seen = heads;
            self.head = None;
        }
        if bytes > 0 && is_at_rest && self.head.is_none() {
            self.head = Some(after(self.head_max));
        }
        if bytes > 0 || !is_at_rest {
            self.service
                .0
                .is_in_head
                .store(is_at_rest, Ordering::Relaxed);
        }
        // Bytes that keep coming must not hide that the time is over.
        let is_over = match &mut self.head {
            Some(head) => head.as_mut().poll(context).is_ready(),
            None => false,
        };
        if is_over {
            return Err(timed_out("the head of a request took too long"));
        }
        Ok(())
    }

    /// What a write means for the clock of a client that takes nothing.
    fn clock_write<T>(
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
        Poll::Ready(Err(timed_out("nothing of an answer was taken")))
    }
}

fn after(span: Duration) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(Instant::now() + span))
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
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
        if let Err(error) = this.clock_head(bytes, context) {
            return Poll::Ready(Err(error));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.clock_write(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.clock_write(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.clock_write(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.clock_write(shut, context)
    }
}
