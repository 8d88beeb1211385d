//! Request bodies with a time limit. A slow body occupies memory and a task, so each body
//! has a fixed time and must then keep a minimum rate.

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
pub(super) struct BodyTimeout {
    /// The time that every body has.
    pub(super) fixed: Duration,
    /// The rate beyond that, in bytes per second.
    pub(super) bytes_per_second_min: u64,
}

impl BodyTimeout {
    /// When more than the `received` bytes must have arrived.
    fn deadline(self, begun: Instant, received: u64) -> Instant {
        begun + self.fixed + Duration::from_secs(received / self.bytes_per_second_min)
    }
}

/// The largest unread body after which the connection stays open: most of it arrived with
/// the head.
const UNREAD_MAX: u64 = 64 << 10;

/// The part of a body that is unread when its request is answered.
#[derive(Debug, Default)]
pub(super) struct UnreadBody {
    is_large: bool,
    has_ended: Arc<AtomicBool>,
}

impl UnreadBody {
    /// Whether the connection must end with the response, since much of the body may
    /// still arrive. The response must say so; otherwise the client sends its next
    /// request after the body.
    pub(super) fn ends_connection(&self) -> bool {
        self.is_large && !self.has_ended.load(Ordering::Relaxed)
    }
}

/// A body with its time limit.
struct Timed {
    timeout: BodyTimeout,
    has_ended: Arc<AtomicBool>,
    inner: BoxBody<Bytes, io::Error>,
    received: u64,
    begun: Option<Instant>,
    deadline: Pin<Box<Sleep>>,
}

/// The request, with a body that fails if it is too slow. The time starts with the first
/// read of the body: the client is not responsible for the time before.
pub(super) fn timed(mut request: Request, timeout: BodyTimeout) -> (Request, UnreadBody) {
    let body = request.take_body();
    let mut rest = UnreadBody::default();
    if !body.is_empty() {
        let inner: BoxBody<Bytes, io::Error> = body.into();
        let bytes = inner.size_hint().exact();
        rest.is_large = bytes.is_none_or(|bytes| bytes > UNREAD_MAX);
        let timed = Timed {
            timeout,
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
            let deadline = this.timeout.deadline(now, 0);
            this.deadline.as_mut().reset(deadline);
        }
        // Checked before each frame, so that a steady trickle of bytes cannot hide the
        // deadline.
        if this.deadline.as_mut().poll(context).is_ready() {
            let too_slow = io::Error::new(io::ErrorKind::TimedOut, "it arrived too slowly");
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
            let deadline = this.timeout.deadline(begun, this.received);
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
    fn a_large_body_has_more_time_but_must_keep_the_rate() {
        let timeout = crate::server::TIMEOUTS.body;
        let begun = Instant::now();
        let may_take = |received| (timeout.deadline(begun, received) - begun).as_secs();
        assert_eq!(may_take(0), 30);
        assert_eq!(may_take(1_000), 30);
        // 30 MiB, the largest body of a send.
        assert_eq!(may_take(30 << 20), 30 + 960);
    }
}
