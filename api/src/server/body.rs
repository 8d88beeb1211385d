//! Bodies of requests, read against the clock. What is sent slowly holds memory
//! and a task, so a body has a while to begin with and must then keep up a rate.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use poem::Request;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyPatience {
    /// What every body may take.
    pub(super) while_max: Duration,
    /// What it must come at beyond that, in bytes a second.
    pub(super) bytes_per_second_min: u64,
}

impl BodyPatience {
    /// When a body must have sent more than what has come of it.
    fn deadline(self, begun: Instant, received: u64) -> Instant {
        begun + self.while_max + Duration::from_secs(received / self.bytes_per_second_min)
    }
}

/// Bytes of a body that nobody read and that still need not end the connection: they
/// have come with the head, as a rule.
const UNREAD_MAX: u64 = 64 << 10;

/// What is left of a body when its request is answered.
#[derive(Debug, Default)]
pub(super) struct UnreadBody {
    is_large: bool,
    has_ended: Arc<AtomicBool>,
}

impl UnreadBody {
    /// Whether the connection ends with the answer, since much of the body may still
    /// come. The answer must say so, or the client sends its next request into it.
    pub(super) fn ends_connection(&self) -> bool {
        self.is_large && !self.has_ended.load(Ordering::Relaxed)
    }
}

/// A body and its time.
struct Timed {
    patience: BodyPatience,
    has_ended: Arc<AtomicBool>,
    inner: BoxBody<Bytes, io::Error>,
    received: u64,
    begun: Option<Instant>,
    deadline: Pin<Box<Sleep>>,
}

/// The request, with a body that fails when it comes too slowly. The clock begins
/// when the body is first asked for: what we take before that is not the client's.
pub(super) fn timed(mut request: Request, patience: BodyPatience) -> (Request, UnreadBody) {
    let body = request.take_body();
    let mut rest = UnreadBody::default();
    if !body.is_empty() {
        let inner: BoxBody<Bytes, io::Error> = body.into();
        let bytes = inner.size_hint().exact();
        rest.is_large = bytes.is_none_or(|bytes| bytes > UNREAD_MAX);
        let timed = Timed {
            patience,
            has_ended: Arc::clone(&rest.has_ended),
            inner,
            received: 0,
            begun: None,
            deadline: Box::pin(sleep_until(Instant::now())),
        };
        request.set_body(poem::Body::from(timed.boxed()));
    }
    (request, rest)
}

impl Body for Timed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        if this.begun.is_none() {
            let now = Instant::now();
            this.begun = Some(now);
            let deadline = this.patience.deadline(now, 0);
            this.deadline.as_mut().reset(deadline);
        }
        // Bytes that keep coming must not hide that the time is over.
        if this.deadline.as_mut().poll(context).is_ready() {
            let too_slow = io::Error::new(io::ErrorKind::TimedOut, "it came too slowly");
            return Poll::Ready(Some(Err(too_slow)));
        }
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
        if frame.is_none() || this.inner.is_end_stream() {
            this.has_ended.store(true, Ordering::Relaxed);
        }
        let bytes = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        if let (Some(begun), Some(bytes)) = (this.begun, bytes) {
            this.received += bytes.len() as u64;
            let deadline = this.patience.deadline(begun, this.received);
            this.deadline.as_mut().reset(deadline);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_has_longer_but_must_keep_up_the_rate() {
        let patience = crate::server::PATIENCE.body;
        let begun = Instant::now();
        let may_take = |received| (patience.deadline(begun, received) - begun).as_secs();
        assert_eq!(may_take(0), 30);
        assert_eq!(may_take(1_000), 30);
        // 30 MiB, the bound of a send.
        assert_eq!(may_take(30 << 20), 30 + 960);
    }
}
