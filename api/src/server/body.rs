//! Request bodies with a time limit. A slow body occupies memory and a task, so each body
//! has a fixed time and must then keep a minimum rate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::Body as _;
use poem::{Body, Request};
use tokio::time::{Instant, timeout_at};

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
    /// When the first read began.
    begun: Option<Instant>,
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
        };
        let bytes = stream::try_unfold(timed, Timed::next);
        request.set_body(Body::from_bytes_stream(bytes));
    }
    (request, rest)
}

impl Timed {
    /// The next bytes of the body; `None` at its end.
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let deadline = self.timeout.deadline(begun, self.received);
        // `timeout_at` asks for the frame first, so a steady trickle of bytes would hide the
        // deadline from it.
        let frame = if Instant::now() < deadline {
            timeout_at(deadline, self.inner.frame()).await.ok()
        } else {
            None
        };
        let too_slow = || io::Error::new(io::ErrorKind::TimedOut, "it arrived too slowly");
        let frame = frame.ok_or_else(too_slow)?.transpose()?;
        if frame.is_none() || self.inner.is_end_stream() {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        // Nobody reads trailers: they become no bytes.
        let bytes = frame.map(|frame| frame.into_data().unwrap_or_default());
        Ok(bytes.map(|bytes| {
            self.received += bytes.len() as u64;
            (bytes, self)
        }))
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
