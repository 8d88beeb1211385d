//! One connection to a mail server: reading replies, giving commands, encrypting,
//! logging in. It knows nothing of time; whoever drives it bounds it.

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

/// The longest line of a reply that is read, in bytes (RFC 5321 allows 512).
const LINE_BYTES_MAX: u64 = 4_096;
/// The most lines of one reply.
const LINES_MAX: usize = 100;

/// Why a conversation did not go on.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server said something else than was hoped for.
    Refused { stage: Stage, reply: Reply },
    /// The server does not offer what the account asks for: encryption, or a login.
    Lacks {
        /// What is missing, for people.
        what: &'static str,
    },
    /// The connection broke, or what came over it was no SMTP.
    Broken { reason: String },
}

impl Trouble {
    fn is_final_refusal(&self) -> bool {
        matches!(self, Self::Refused { reply, .. } if (500..600).contains(&reply.code))
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Broken {
            reason: error.to_string(),
        }
    }
}

/// What carries the bytes: TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// What a server offers, as far as we use it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offers {
    starttls: bool,
    size: bool,
    plain: bool,
    login: bool,
}

/// A conversation in which mail can be sent.
pub(super) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    offers: Offers,
    /// Whether a transaction was begun and not ended: it must be reset first.
    pub(super) is_dirty: bool,
}

/// How to begin a conversation.
pub(super) struct SessionSetup<'a> {
    pub(super) account: &'a SmtpAccount,
    pub(super) tls: &'a Arc<ClientConfig>,
    pub(super) hello: &'a str,
}

impl Connection {
    /// Greets, encrypts and logs in over a fresh stream, as the account says.
    pub(super) async fn open(
        stream: Box<dyn Stream>,
        opening: &SessionSetup<'_>,
    ) -> Result<Self, Trouble> {
        let account = opening.account;
        let stream = match account.tls {
            SmtpTls::Implicit => encrypt(stream, opening).await?,
            SmtpTls::StartTls | SmtpTls::None => stream,
        };
        let mut connection = Self {
            stream: BufReader::new(stream),
            offers: Offers::default(),
            is_dirty: false,
        };
        connection.expect(Stage::Greeting, None, 220).await?;
        connection.hello(opening.hello).await?;
        if account.tls == SmtpTls::StartTls {
            connection = connection.start_tls(opening).await?;
        }
        if let Some(login) = &account.login {
            connection.log_in(login).await?;
        }
        Ok(connection)
    }

    /// EHLO, and HELO where the server knows no EHLO: then it offers nothing (RFC 5321, 3.2).
    async fn hello(&mut self, name: &str) -> Result<(), Trouble> {
        let command = format!("EHLO {name}");
        let refused = match self.expect(Stage::Greeting, Some(&command), 250).await {
            Ok(reply) => {
                self.offers = Offers::read(&reply);
                return Ok(());
            }
            Err(trouble) if trouble.is_final_refusal() => trouble,
            Err(trouble) => return Err(trouble),
        };
        self.offers = Offers::default();
        let command = format!("HELO {name}");
        match self.expect(Stage::Greeting, Some(&command), 250).await {
            Ok(_) => Ok(()),
            // It refused us and not the command, and left.
            Err(Trouble::Broken { .. }) => Err(refused),
            Err(trouble) => Err(trouble),
        }
    }

    async fn start_tls(mut self, opening: &SessionSetup<'_>) -> Result<Self, Trouble> {
        if !self.offers.starttls {
            return Err(Trouble::Lacks {
                what: "the server does not offer STARTTLS, which the account asks for",
            });
        }
        self.expect(Stage::Greeting, Some("STARTTLS"), 220).await?;
        // What came in the clear behind the reply was not said by the server that
        // TLS is about to prove.
        if !self.stream.buffer().is_empty() {
            return Err(Trouble::Broken {
                reason: "the server spoke on after its answer to STARTTLS".to_owned(),
            });
        }
        self.stream = BufReader::new(encrypt(self.stream.into_inner(), opening).await?);
        self.hello(opening.hello).await?;
        Ok(self)
    }

    async fn log_in(&mut self, login: &SmtpLogin) -> Result<(), Trouble> {
        let username = login.username.expose_secret();
        let password = login.password.expose_secret();
        if self.offers.plain {
            let text = Zeroizing::new(format!("\0{username}\0{password}"));
            let command = Zeroizing::new(format!("AUTH PLAIN {}", STANDARD.encode(&*text)));
            self.expect(Stage::Login, Some(&command), 235).await?;
            return Ok(());
        }
        if !self.offers.login {
            return Err(Trouble::Lacks {
                what: "the server offers neither AUTH PLAIN nor AUTH LOGIN, and the account has a login",
            });
        }
        self.expect(Stage::Login, Some("AUTH LOGIN"), 334).await?;
        let username = Zeroizing::new(STANDARD.encode(username));
        self.expect(Stage::Login, Some(&username), 334).await?;
        let password = Zeroizing::new(STANDARD.encode(password));
        self.expect(Stage::Login, Some(&password), 235).await?;
        Ok(())
    }

    /// Whether MAIL may announce the size of what follows.
    pub(super) fn takes_sizes(&self) -> bool {
        self.offers.size
    }

    /// Gives a command, where there is one, and reads the reply to it.
    ///
    /// # Errors
    /// That the connection broke, or that the reply has not the `hoped` code.
    pub(super) async fn expect(
        &mut self,
        stage: Stage,
        command: Option<&str>,
        hoped: u16,
    ) -> Result<Reply, Trouble> {
        if let Some(command) = command {
            // What goes into one is checked where it comes from. Two in one would let
            // whoever wrote the second send as us.
            if command.contains(['\r', '\n', '\0']) {
                return Err(Trouble::Broken {
                    reason: "a command would have been more than a line".to_owned(),
                });
            }
            self.write(command.as_bytes()).await?;
            self.write(b"\r\n").await?;
            self.flush().await?;
        }
        let reply = self.read_reply().await?;
        // RFC 5321, 4.2.1: by its first digit, where the code is not the usual one.
        if reply.code == hoped || (hoped == 250 && reply.is_done()) {
            Ok(reply)
        } else {
            Err(Trouble::Refused { stage, reply })
        }
    }

    /// Writes without waiting for an answer.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Makes sure that what was written is under way.
    pub(super) async fn flush(&mut self) -> Result<(), Trouble> {
        Ok(self.stream.flush().await?)
    }

    /// Reads one reply.
    pub(super) async fn read_reply(&mut self) -> Result<Reply, Trouble> {
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

    async fn read_line(&mut self) -> Result<String, Trouble> {
        let mut line = Vec::with_capacity(128);
        let mut bounded = (&mut self.stream).take(LINE_BYTES_MAX);
        bounded.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(Trouble::Broken {
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

impl Offers {
    /// Reads the lines of an EHLO reply behind the first, which greets.
    fn read(reply: &Reply) -> Self {
        let mut offers = Self::default();
        for line in reply.lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            // Old servers write `AUTH=PLAIN`.
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next() {
                Some("STARTTLS") => offers.starttls = true,
                Some("SIZE") => offers.size = true,
                Some("AUTH") => {
                    for word in words {
                        offers.plain |= word == "PLAIN";
                        offers.login |= word == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        offers
    }
}

async fn encrypt(
    stream: Box<dyn Stream>,
    opening: &SessionSetup<'_>,
) -> Result<Box<dyn Stream>, Trouble> {
    let name = opening.account.server.host.as_str().to_owned();
    let name = ServerName::try_from(name).map_err(|error| Trouble::Broken {
        reason: error.to_string(),
    })?;
    let connector = TlsConnector::from(Arc::clone(opening.tls));
    let encrypted = connector.connect(name, stream).await;
    let encrypted = encrypted.map_err(|error| Trouble::Broken {
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

fn not_smtp() -> Trouble {
    Trouble::Broken {
        reason: "the server's answer is not SMTP".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &'static [u8]) -> Result<Reply, Trouble> {
        let (near, mut far) = tokio::io::duplex(8_192);
        far.write_all(bytes).await.unwrap();
        drop(far);
        let mut connection = Connection {
            stream: BufReader::new(Box::new(near)),
            offers: Offers::default(),
            is_dirty: false,
        };
        connection.read_reply().await
    }

    #[tokio::test]
    async fn replies_of_one_and_several_lines_are_read() {
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
    async fn what_is_no_reply_breaks_the_conversation() {
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
            assert!(matches!(read(bytes).await, Err(Trouble::Broken { .. })));
        }
    }

    #[tokio::test]
    async fn a_command_of_two_lines_is_not_given() {
        for command in ["RCPT TO:<a>\r\nDATA", "a\nb", "a\rb", "a\0"] {
            let (near, mut far) = tokio::io::duplex(8_192);
            let mut connection = Connection {
                stream: BufReader::new(Box::new(near)),
                offers: Offers::default(),
                is_dirty: false,
            };
            let given = connection.expect(Stage::Recipient, Some(command), 250);
            assert!(matches!(given.await, Err(Trouble::Broken { .. })));
            drop(connection);
            let mut written = Vec::new();
            far.read_to_end(&mut written).await.unwrap();
            assert!(written.is_empty(), "{command:?}");
        }
    }

    #[test]
    fn offers_are_read_in_any_case() {
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
        let expected = Offers {
            starttls: false,
            size: true,
            plain: true,
            login: true,
        };
        assert_eq!(Offers::read(&reply), expected);
    }
}
