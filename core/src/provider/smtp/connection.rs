//! One session with a mail server: replies, commands, encryption, login. It has no
//! timeouts; the caller sets them.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::Zeroizing;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::account::{SmtpAccount, SmtpLogin, SmtpTls};
use super::reply::{Reply, Stage};
use crate::secret::ExposeSecret;

/// The longest reply line read, in bytes (RFC 5321 allows 512).
const LINE_BYTES_MAX: u64 = 4_096;
/// The most lines of one reply.
const LINES_MAX: usize = 100;

/// Why a session could not continue.
#[derive(Debug)]
pub(super) enum SmtpError {
    /// The server answered with another code than the expected one.
    Refused { stage: Stage, reply: Reply },
    /// The server does not offer what the account requires: encryption, or a login.
    Lacks {
        /// What is missing, as a sentence.
        what: &'static str,
    },
    /// The connection broke, or the server does not speak SMTP.
    Broken { reason: String },
}

impl SmtpError {
    fn is_permanent_refusal(&self) -> bool {
        matches!(self, Self::Refused { reply, .. } if (500..600).contains(&reply.code))
    }
}

impl From<io::Error> for SmtpError {
    fn from(error: io::Error) -> Self {
        Self::Broken {
            reason: error.to_string(),
        }
    }
}

/// The transport of a session: TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// The extensions that a server offers, as far as they are used.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extensions {
    starttls: bool,
    size: bool,
    plain: bool,
    login: bool,
}

/// A session that can send mail.
pub(super) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    extensions: Extensions,
    /// Whether a transaction was started and not completed: it must be reset first.
    pub(super) needs_reset: bool,
}

/// The parameters of a new session.
pub(super) struct SessionSetup<'a> {
    pub(super) account: &'a SmtpAccount,
    pub(super) tls: &'a Arc<ClientConfig>,
    pub(super) hello: &'a str,
}

impl Connection {
    /// Reads the greeting, encrypts and logs in, as the account requires.
    pub(super) async fn open(
        stream: Box<dyn Stream>,
        setup: &SessionSetup<'_>,
    ) -> Result<Self, SmtpError> {
        let account = setup.account;
        let stream = match account.tls {
            SmtpTls::Implicit => encrypt(stream, setup).await?,
            SmtpTls::StartTls | SmtpTls::None => stream,
        };
        let mut connection = Self {
            stream: BufReader::new(stream),
            extensions: Extensions::default(),
            needs_reset: false,
        };
        connection.exchange(Stage::Greeting, None, 220).await?;
        connection.hello(setup.hello).await?;
        if account.tls == SmtpTls::StartTls {
            connection = connection.start_tls(setup).await?;
        }
        if let Some(login) = &account.login {
            connection.log_in(login).await?;
        }
        Ok(connection)
    }

    /// Sends EHLO, or HELO if the server does not know EHLO: then it has no extensions (RFC
    /// 5321, 3.2).
    async fn hello(&mut self, name: &str) -> Result<(), SmtpError> {
        let command = format!("EHLO {name}");
        let refused = match self.exchange(Stage::Greeting, Some(&command), 250).await {
            Ok(reply) => {
                self.extensions = Extensions::read(&reply);
                return Ok(());
            }
            Err(error) if error.is_permanent_refusal() => error,
            Err(error) => return Err(error),
        };
        self.extensions = Extensions::default();
        let command = format!("HELO {name}");
        match self.exchange(Stage::Greeting, Some(&command), 250).await {
            Ok(_) => Ok(()),
            // The server refused us, not the command, and closed the connection.
            Err(SmtpError::Broken { .. }) => Err(refused),
            Err(error) => Err(error),
        }
    }

    async fn start_tls(mut self, setup: &SessionSetup<'_>) -> Result<Self, SmtpError> {
        if !self.extensions.starttls {
            return Err(SmtpError::Lacks {
                what: "the server does not offer STARTTLS, which the account asks for",
            });
        }
        self.exchange(Stage::Greeting, Some("STARTTLS"), 220)
            .await?;
        // Unencrypted data behind the reply may come from another host than the one that
        // TLS authenticates.
        if !self.stream.buffer().is_empty() {
            return Err(SmtpError::Broken {
                reason: "the server sent more data after its reply to STARTTLS".to_owned(),
            });
        }
        self.stream = BufReader::new(encrypt(self.stream.into_inner(), setup).await?);
        self.hello(setup.hello).await?;
        Ok(self)
    }

    async fn log_in(&mut self, login: &SmtpLogin) -> Result<(), SmtpError> {
        let username = login.username.expose_secret();
        let password = login.password.expose_secret();
        if self.extensions.plain {
            let text = Zeroizing::new(format!("\0{username}\0{password}"));
            let command = Zeroizing::new(format!("AUTH PLAIN {}", STANDARD.encode(&*text)));
            self.exchange(Stage::Login, Some(&command), 235).await?;
            return Ok(());
        }
        if !self.extensions.login {
            return Err(SmtpError::Lacks {
                what: "the server offers neither AUTH PLAIN nor AUTH LOGIN, and the account has a login",
            });
        }
        self.exchange(Stage::Login, Some("AUTH LOGIN"), 334).await?;
        let username = Zeroizing::new(STANDARD.encode(username));
        self.exchange(Stage::Login, Some(&username), 334).await?;
        let password = Zeroizing::new(STANDARD.encode(password));
        self.exchange(Stage::Login, Some(&password), 235).await?;
        Ok(())
    }

    /// Whether MAIL may announce the size of the message.
    pub(super) fn supports_size(&self) -> bool {
        self.extensions.size
    }

    /// Sends a command, if there is one, and reads the reply.
    ///
    /// # Errors
    /// If the connection breaks, or the reply has another code than `expected`.
    pub(super) async fn exchange(
        &mut self,
        stage: Stage,
        command: Option<&str>,
        expected: u16,
    ) -> Result<Reply, SmtpError> {
        if let Some(command) = command {
            // The values are checked at their sources. Two commands in one would let the
            // author of the second send mail as us.
            if command.contains(['\r', '\n', '\0']) {
                return Err(SmtpError::Broken {
                    reason: "a command would have been longer than a line".to_owned(),
                });
            }
            self.write(command.as_bytes()).await?;
            self.write(b"\r\n").await?;
            self.flush().await?;
        }
        let reply = self.read_reply().await?;
        // RFC 5321, 4.2.1: the first digit decides if the code is unknown.
        if reply.code == expected || (expected == 250 && reply.is_done()) {
            Ok(reply)
        } else {
            Err(SmtpError::Refused { stage, reply })
        }
    }

    /// Writes without waiting for a reply.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), SmtpError> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Flushes the written bytes to the network.
    pub(super) async fn flush(&mut self) -> Result<(), SmtpError> {
        Ok(self.stream.flush().await?)
    }

    /// Reads one reply.
    pub(super) async fn read_reply(&mut self) -> Result<Reply, SmtpError> {
        let mut read: Option<Reply> = None;
        for _ in 0..LINES_MAX {
            let line = self.read_line().await?;
            let (code, is_last, text) = split(&line).ok_or_else(not_smtp)?;
            let reply = read.get_or_insert(Reply {
                code,
                lines: Vec::new(),
            });
            if reply.code != code {
                return Err(not_smtp());
            }
            reply.lines.push(text.to_owned());
            if is_last {
                return read.ok_or_else(not_smtp);
            }
        }
        Err(not_smtp())
    }

    async fn read_line(&mut self) -> Result<String, SmtpError> {
        let mut line = Vec::with_capacity(128);
        let mut bounded = (&mut self.stream).take(LINE_BYTES_MAX);
        bounded.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(SmtpError::Broken {
                reason: "the server closed the connection".to_owned(),
            });
        }
        if line.pop() != Some(b'\n') {
            return Err(not_smtp());
        }
        Ok(String::from_utf8_lossy(&line)
            .trim_end_matches('\r')
            .to_owned())
    }
}

impl Extensions {
    /// Reads the lines of an EHLO reply after the first, which is the greeting.
    fn read(reply: &Reply) -> Self {
        let mut extensions = Self::default();
        for line in reply.lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            // Old servers write `AUTH=PLAIN`.
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next() {
                Some("STARTTLS") => extensions.starttls = true,
                Some("SIZE") => extensions.size = true,
                Some("AUTH") => {
                    for word in words {
                        extensions.plain |= word == "PLAIN";
                        extensions.login |= word == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        extensions
    }
}

async fn encrypt(
    stream: Box<dyn Stream>,
    setup: &SessionSetup<'_>,
) -> Result<Box<dyn Stream>, SmtpError> {
    let name = setup.account.server.host.as_str().to_owned();
    let name = ServerName::try_from(name).map_err(|error| SmtpError::Broken {
        reason: error.to_string(),
    })?;
    let connector = TlsConnector::from(Arc::clone(setup.tls));
    let encrypted = connector.connect(name, stream).await;
    let encrypted = encrypted.map_err(|error| SmtpError::Broken {
        reason: format!("TLS failed: {error}"),
    })?;
    Ok(Box::new(encrypted))
}

/// `250-text`, `250 text` or `250`: the code, whether it is the last line, the text.
fn split(line: &str) -> Option<(u16, bool, &str)> {
    let (code, rest) = line.split_at_checked(3)?;
    let is_code = code.bytes().all(|byte| byte.is_ascii_digit());
    let code: u16 = code.parse().ok().filter(|_| is_code)?;
    if !(200..600).contains(&code) {
        return None;
    }
    match rest.as_bytes().first() {
        None => Some((code, true, "")),
        Some(b' ') => Some((code, true, &rest[1..])),
        Some(b'-') => Some((code, false, &rest[1..])),
        Some(_) => None,
    }
}

fn not_smtp() -> SmtpError {
    SmtpError::Broken {
        reason: "the server's reply is not SMTP".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &'static [u8]) -> Result<Reply, SmtpError> {
        let (near, mut far) = tokio::io::duplex(8_192);
        far.write_all(bytes).await.unwrap();
        drop(far);
        let mut connection = Connection {
            stream: BufReader::new(Box::new(near)),
            extensions: Extensions::default(),
            needs_reset: false,
        };
        connection.read_reply().await
    }

    #[tokio::test]
    async fn replies_of_one_and_several_lines_are_parsed() {
        for (bytes, code, lines) in [
            (&b"250 OK\r\n"[..], 250, vec!["OK"]),
            (b"250\r\n", 250, vec![""]),
            (b"250-a\r\n250-b\n250 c\r\n", 250, vec!["a", "b", "c"]),
            (b"550 \xff\r\n", 550, vec!["\u{fffd}"]),
        ] {
            let reply = read(bytes).await.unwrap();
            assert_eq!(
                (reply.code, reply.lines),
                (code, lines.iter().map(ToString::to_string).collect())
            );
        }
    }

    #[tokio::test]
    async fn an_invalid_reply_breaks_the_session() {
        static LONG: [u8; 5_000] = [b'2'; 5_000];
        for bytes in [
            &b""[..],
            b"250-a\r\n",
            b"250-a\r\n251 b\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"25\r\n",
            b"999 x\r\n",
            b"250",
            &LONG,
        ] {
            assert!(matches!(read(bytes).await, Err(SmtpError::Broken { .. })));
        }
    }

    #[tokio::test]
    async fn a_command_of_two_lines_is_not_sent() {
        for command in ["RCPT TO:<a>\r\nDATA", "a\nb", "a\rb", "a\0"] {
            let (near, mut far) = tokio::io::duplex(8_192);
            let mut connection = Connection {
                stream: BufReader::new(Box::new(near)),
                extensions: Extensions::default(),
                needs_reset: false,
            };
            let given = connection.exchange(Stage::Recipient, Some(command), 250);
            assert!(matches!(given.await, Err(SmtpError::Broken { .. })));
            drop(connection);
            let mut written = Vec::new();
            far.read_to_end(&mut written).await.unwrap();
            assert!(written.is_empty(), "{command:?}");
        }
    }

    #[test]
    fn extensions_are_parsed_in_any_case() {
        let lines = [
            "mx.example.com STARTTLS",
            "8BITMIME",
            "size 1000",
            "AUTH=LOGIN",
            "auth PLAIN XOAUTH2",
        ];
        let reply = Reply {
            code: 250,
            lines: lines.map(str::to_owned).to_vec(),
        };
        let expected = Extensions {
            starttls: false,
            size: true,
            plain: true,
            login: true,
        };
        assert_eq!(Extensions::read(&reply), expected);
    }
}
