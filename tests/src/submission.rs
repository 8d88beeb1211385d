//! SMTP submission for tests: the program's tasks, and a client that sees every byte.

use std::collections::HashMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use waypost_api::submission::{self, SubmissionListeners};
use waypost_core::config::Settings;
use waypost_core::fault::Fault;

use crate::app::TestApp;
use crate::wait::WAIT_MAX;

/// SMTP submission that runs as a task.
#[derive(Debug)]
pub struct SubmissionServer {
    pub address: SocketAddr,
    /// Where sessions begin with TLS.
    pub tls_address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Fault>>,
}

impl SubmissionServer {
    /// Tells it to stop, as SIGTERM does.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end, or fails.
    pub async fn ended(self) {
        let ended = tokio::time::timeout(WAIT_MAX, self.task).await;
        let ended = ended.expect("it ends in time").expect("it does not panic");
        ended.unwrap_or_else(|fault| panic!("{}", fault.chain()));
    }
}

impl TestApp {
    /// Starts SMTP submission as a task, with these settings besides the app's.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_submission(&self, own: &[(&str, &str)]) -> SubmissionServer {
        let mut variables: HashMap<String, String> = self.variables.clone();
        let own = own
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables.extend(own);
        let settings = Settings::from_map(&variables).unwrap_or_else(|error| panic!("{error}"));
        let (starttls, address) = listener().await;
        let (tls, tls_address) = listener().await;
        let (clock, stop) = (self.clock.clone(), self.stop.child_token());
        let token = stop.clone();
        let listeners = SubmissionListeners {
            starttls,
            tls: Some(tls),
        };
        let task =
            tokio::spawn(
                async move { submission::serve(&settings, clock, listeners, token).await },
            );
        SubmissionServer {
            address,
            tls_address,
            stop,
            task,
        }
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("the loopback interface has free ports");
    let address = listener.local_addr().expect("a listener has an address");
    (listener, address)
}

/// An SMTP client.
#[derive(Debug)]
pub struct SmtpClient<S = TcpStream> {
    stream: S,
    input: Vec<u8>,
}

impl SmtpClient {
    /// Connects and reads the greeting.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut client = Self::connect_silently(address).await;
        assert!(client.reply().await.starts_with("220 "));
        client
    }

    /// Connects and reads nothing.
    ///
    /// # Panics
    /// If nobody listens.
    pub async fn connect_silently(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        Self::over(stream)
    }

    /// Connects and logs in.
    pub async fn log_in(address: SocketAddr, key: &str) -> Self {
        let mut client = Self::connect(address).await;
        client.authenticate(key).await;
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> SmtpClient<S> {
    /// Speaks over this stream.
    pub fn over(stream: S) -> Self {
        Self {
            stream,
            input: Vec::new(),
        }
    }

    /// The stream, without what it was read of it.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// EHLO and AUTH, which must succeed.
    ///
    /// # Panics
    /// If they do not.
    pub async fn authenticate(&mut self, key: &str) {
        self.command("EHLO client.example").await;
        let reply = self.command(&auth_plain(key)).await;
        assert!(reply.starts_with("235 2.7.0 "), "{reply}");
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// If the connection is closed.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.expect("the server reads");
    }

    /// Sends bytes, if the server still reads.
    ///
    /// # Errors
    /// It has closed the connection.
    pub async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The next reply, with all its lines; empty if the connection is closed.
    ///
    /// # Panics
    /// If neither comes in time.
    pub async fn reply(&mut self) -> String {
        let reading = async {
            loop {
                if let Some(reply) = self.take_reply() {
                    return reply;
                }
                match self.stream.read_buf(&mut self.input).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return String::new(),
                }
            }
        };
        tokio::time::timeout(WAIT_MAX, reading)
            .await
            .expect("the server answers in time")
    }

    fn take_reply(&mut self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.input);
        let mut end = 0;
        for line in text.split_inclusive("\r\n") {
            end += line.len();
            if line.ends_with("\r\n") && line.as_bytes().get(3) != Some(&b'-') {
                let reply = text[..end].trim_end().to_owned();
                self.input.drain(..end);
                return Some(reply);
            }
        }
        None
    }

    /// Sends a line; returns its reply.
    pub async fn command(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    /// Sends a mail to these addresses; returns the reply to it, or that to the first command
    /// that was refused. The line ends of `content` become CR LF.
    pub async fn mail(&mut self, to: &[&str], content: &str) -> String {
        let reply = self.command("MAIL FROM:<program@localhost>").await;
        if !reply.starts_with("250 ") {
            return reply;
        }
        for address in to {
            let reply = self.command(&format!("RCPT TO:<{address}>")).await;
            if !reply.starts_with("250 ") {
                return reply;
            }
        }
        let reply = self.command("DATA").await;
        if !reply.starts_with("354 ") {
            return reply;
        }
        self.send(stuffed(content).as_bytes()).await;
        self.reply().await
    }
}

/// The command by which a client logs in with a key.
#[must_use]
pub fn auth_plain(key: &str) -> String {
    format!("AUTH PLAIN {}", STANDARD.encode(format!("\0user\0{key}")))
}

/// A mail as it is sent after DATA: with CR LF, with its dots doubled, and with its end.
#[must_use]
pub fn stuffed(content: &str) -> String {
    let lines = content.lines().map(|line| match line.starts_with('.') {
        true => format!(".{line}\r\n"),
        false => format!("{line}\r\n"),
    });
    lines.collect::<String>() + ".\r\n"
}
