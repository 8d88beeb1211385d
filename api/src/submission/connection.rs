//! The bytes of one client: what arrived and is not read yet, and replies that are not sent yet.
//! Replies to commands that arrived together are sent together (RFC 2920).

use std::io;
use std::time::Duration;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use waypost_core::submission::command::LINE_BYTES_MAX;

use super::reply::SubmissionReply;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;
/// The same within a large mail.
const LARGE_READ_BYTES: usize = 64 << 10;
/// A buffer that is larger is given back after use.
const KEPT_BYTES_MAX: usize = 16 << 10;
/// How long a client may take to read replies.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// How long, and how far, what a client still sends is read after its session has ended. A
/// connection that is closed with unread bytes is reset, and the client may lose the last reply.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 4 << 20;

/// The connection to a client.
pub(super) struct ClientConnection<S> {
    stream: S,
    input: Vec<u8>,
    /// Where the unread part of the input begins.
    at: usize,
    output: Vec<u8>,
}

/// What reading a line came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRead {
    /// It is in the buffer, without its line end.
    Line,
    /// It is longer than a command may be, and was skipped.
    TooLong,
}

/// Why nothing can be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadEnd {
    /// The client has gone.
    Closed,
    /// It was too slow.
    TimedOut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientConnection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            input: Vec::new(),
            at: 0,
            output: Vec::new(),
        }
    }

    /// The stream. What was read of it and not used is gone: a client must not send commands
    /// before a TLS handshake and have them count after it (CVE-2011-0411).
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Writes a reply, which is sent before the next wait for the client.
    pub(super) fn reply(&mut self, reply: &SubmissionReply) {
        reply.write_to(&mut self.output);
    }

    /// Sends the replies.
    pub(super) async fn flush(&mut self) -> Result<(), ReadEnd> {
        if self.output.is_empty() {
            return Ok(());
        }
        let writing = async {
            self.stream.write_all(&self.output).await?;
            self.stream.flush().await
        };
        let written = timeout(WRITE_MAX, writing).await;
        self.output.clear();
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ReadEnd::Closed),
        }
    }

    /// Reads the next line into `line`.
    pub(super) async fn read_line(
        &mut self,
        line: &mut Vec<u8>,
        deadline: Instant,
    ) -> Result<LineRead, ReadEnd> {
        line.clear();
        let mut is_too_long = false;
        loop {
            let unread = &self.input[self.at..];
            let end = memchr(b'\n', unread);
            let piece = &unread[..end.unwrap_or(unread.len())];
            is_too_long |= line.len() + piece.len() > LINE_BYTES_MAX + 1;
            if !is_too_long {
                line.extend_from_slice(piece);
            }
            self.at += piece.len() + usize::from(end.is_some());
            if end.is_some() {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(match is_too_long || line.len() > LINE_BYTES_MAX {
                    true => LineRead::TooLong,
                    false => LineRead::Line,
                });
            }
            self.fill(deadline, READ_BYTES).await?;
        }
    }

    /// What has arrived and is not read.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// Counts the first bytes of what has arrived as read.
    pub(super) fn consume(&mut self, count: usize) {
        self.at += count;
    }

    /// Waits for more of a mail of which `received` bytes have arrived.
    pub(super) async fn fill_mail(
        &mut self,
        deadline: Instant,
        received: usize,
    ) -> Result<(), ReadEnd> {
        let size = match received {
            0..LARGE_READ_BYTES => READ_BYTES,
            _ => LARGE_READ_BYTES,
        };
        self.fill(deadline, size).await
    }

    /// Gives back the memory that a large mail took.
    pub(super) fn shrink(&mut self) {
        if self.input.capacity() > KEPT_BYTES_MAX {
            self.input.drain(..self.at);
            self.at = 0;
            self.input.shrink_to(READ_BYTES);
        }
    }

    /// Reads more, after the replies are sent.
    async fn fill(&mut self, deadline: Instant, size: usize) -> Result<(), ReadEnd> {
        self.flush().await?;
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        }
        self.input.reserve(size);
        match timeout_at(deadline, self.stream.read_buf(&mut self.input)).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(Ok(0) | Err(_)) => Err(ReadEnd::Closed),
            Err(_) => Err(ReadEnd::TimedOut),
        }
    }

    /// Sends the last replies and closes the connection.
    pub(super) async fn close(mut self) {
        if self.flush().await.is_err() {
            return;
        }
        let closing = async {
            self.stream.shutdown().await?;
            let mut bytes = vec![0; READ_BYTES];
            let mut count = 0;
            while count < LINGER_BYTES_MAX {
                match self.stream.read(&mut bytes).await? {
                    0 => break,
                    read => count += read,
                }
            }
            io::Result::Ok(())
        };
        let _closed_or_gone = timeout(LINGER, closing).await;
    }
}
