//! The protocol's transport: lines in, replies out, plain or encrypted.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::{ACCEPTOR, MAIL_BYTES_MAX};

/// The longest command (RFC 4954 allows 12,288 bytes for AUTH).
const COMMAND_BYTES_MAX: u64 = 12_288;
/// The longest line of a message, without its end (RFC 5322, 2.1.1).
const MAIL_LINE_BYTES_MAX: usize = 998;

/// The stream of a session.
pub(super) trait SmtpStream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes the close of this connection a TCP reset.
    fn reset_on_close(&self);
}

impl SmtpStream for TcpStream {
    fn reset_on_close(&self) {
        // If the option fails, the connection closes normally.
        let _ = self.set_zero_linger();
    }
}

impl SmtpStream for TlsStream<TcpStream> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }
}

/// A connection, read line by line.
pub(super) struct Lines<W: SmtpStream>(BufReader<W>);

/// The content that a client sent after DATA.
pub(super) enum Content {
    /// A message, with dot-stuffing removed.
    Mail(Vec<u8>),
    /// An invalid message, with the reply that rejects it.
    Wrong(&'static str),
}

/// Encrypts a connection.
pub(super) async fn encrypt(stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    ACCEPTOR.accept(stream).await
}

impl<W: SmtpStream> Lines<W> {
    pub(super) fn new(stream: W) -> Self {
        Self(BufReader::new(stream))
    }

    /// The stream; `None` if the client has sent more than was answered.
    pub(super) fn into_stream(self) -> Option<W> {
        self.0.buffer().is_empty().then(|| self.0.into_inner())
    }

    /// The next command without its line end; `None` at the end of the connection, or if
    /// the command is no line by RFC 5321.
    pub(super) async fn command(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.0).take(COMMAND_BYTES_MAX);
        bounded.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(None);
        }
        let text = line.strip_suffix(b"\r\n");
        let Some(text) = text.filter(|text| !text.iter().any(|byte| b"\r\0".contains(byte))) else {
            self.reply("521 5.5.2 Error: bare <CR>, <LF> or <NUL> received")
                .await?;
            return Ok(None);
        };
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    /// One reply, of one or more lines.
    pub(super) async fn reply(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await?;
        self.0.write_all(b"\r\n").await?;
        self.0.flush().await
    }

    /// Ends the connection with a reset.
    pub(super) fn reset(self) {
        self.0.get_ref().reset_on_close();
    }

    /// Reads a message up to the line with a single dot.
    pub(super) async fn content(&mut self, accepts_8_bit: bool) -> io::Result<Content> {
        let (mut mail, mut wrong) = (Vec::new(), None);
        // A bare LF does not start a new line: a dot after it is text.
        let mut begins = true;
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.0).take(MAIL_BYTES_MAX as u64);
            if bounded.read_until(b'\n', &mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if begins && line == b".\r\n" {
                break;
            }
            let stuffed = line.strip_prefix(b".").filter(|_| begins);
            begins = line.ends_with(b"\r\n");
            let line = stuffed.unwrap_or(&line);
            wrong = wrong.or_else(|| rejection(line, accepts_8_bit));
            if mail.len() + line.len() > MAIL_BYTES_MAX {
                wrong = wrong.or(Some("552 5.3.4 Error: message file too big"));
            } else {
                mail.extend_from_slice(line);
            }
        }
        Ok(wrong.map_or(Content::Mail(mail), Content::Wrong))
    }
}

fn rejection(line: &[u8], accepts_8_bit: bool) -> Option<&'static str> {
    let Some(text) = line.strip_suffix(b"\r\n") else {
        return Some("550 5.5.2 Error: bare <LF> received");
    };
    if text.contains(&b'\r') {
        return Some("550 5.5.2 Error: bare <CR> received");
    }
    if text.contains(&0) {
        return Some("550 5.6.0 Error: <NUL> received");
    }
    if text.len() > MAIL_LINE_BYTES_MAX {
        return Some("554 5.6.0 Error: line too long");
    }
    if !accepts_8_bit && !text.is_ascii() {
        return Some("554 5.6.1 Error: 8-bit text without BODY=8BITMIME");
    }
    None
}
