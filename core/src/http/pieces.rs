//! A request body that is encoded while it is sent. A mail with files of 20 MiB needs no second
//! copy of them in base64.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};

/// Bytes that are encoded at a time: a multiple of three, so that the pieces of base64 join.
const ENCODED_AT_ONCE: usize = 48 * 1024;

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// Sent as it is.
    Bytes(Bytes),
    /// Sent in base64.
    Base64(Bytes),
}

impl BodyPiece {
    /// How many bytes are sent.
    fn sent_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Base64(bytes) => bytes.len().div_ceil(3) as u64 * 4,
        }
    }

    /// Takes what is sent next, and whether nothing is left.
    fn take(&mut self) -> (Bytes, bool) {
        match self {
            Self::Bytes(bytes) => (std::mem::take(bytes), true),
            Self::Base64(bytes) => {
                let next = bytes.split_to(ENCODED_AT_ONCE.min(bytes.len()));
                (STANDARD.encode(next).into(), bytes.is_empty())
            }
        }
    }
}

/// The encoded bytes of pieces, some at a time.
pub fn encoded(pieces: impl IntoIterator<Item = BodyPiece>) -> impl Iterator<Item = Bytes> {
    let mut pieces: VecDeque<BodyPiece> = pieces.into_iter().collect();
    std::iter::from_fn(move || {
        let (next, is_done) = pieces.front_mut()?.take();
        if is_done {
            pieces.pop_front();
        }
        Some(next)
    })
}

/// The body of a request.
pub(super) struct PieceBody<I> {
    encoded: I,
    left: u64,
}

/// A body of these pieces. Its length is known, so the request has a `Content-Length`.
pub(super) fn body(pieces: Vec<BodyPiece>) -> reqwest::Body {
    let left = pieces.iter().map(BodyPiece::sent_bytes).sum();
    let body = PieceBody {
        encoded: encoded(pieces),
        left,
    };
    reqwest::Body::wrap(body.boxed())
}

impl<I: Iterator<Item = Bytes> + Unpin> Body for PieceBody<I> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.encoded.next();
        self.left -= next.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_encoded_as_one_text_and_their_length_is_known() {
        let sizes = [
            0,
            1,
            2,
            3,
            ENCODED_AT_ONCE - 1,
            ENCODED_AT_ONCE,
            ENCODED_AT_ONCE + 1,
        ];
        for size in sizes {
            let content: Vec<u8> = (0..size).map(|nth| (nth % 251) as u8).collect();
            let pieces = [
                BodyPiece::Bytes(Bytes::from_static(b"{\"")),
                BodyPiece::Base64(Bytes::from(content.clone())),
                BodyPiece::Bytes(Bytes::from_static(b"\"}")),
            ];
            let sent: u64 = pieces.iter().map(BodyPiece::sent_bytes).sum();
            let joined: Vec<u8> = encoded(pieces).flatten().collect();
            let expected = format!("{{\"{}\"}}", STANDARD.encode(&content));
            assert_eq!(joined, expected.as_bytes());
            assert_eq!(joined.len() as u64, sent);
        }
    }
}
