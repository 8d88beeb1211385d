//! Clients that are slow or silent. The servers that a session needs do not exist here, and the
//! limits are milliseconds.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;

use super::Submission;
use super::connection::ClientConnection;
use super::session::{FirstBytes, Session, SessionError, SessionLimits, serve_client};
use super::transaction::ReceivedContent;
use crate::accept_context::AcceptContext;

/// A limit that these tests wait for, and one that they do not.
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

fn limits() -> SessionLimits {
    SessionLimits {
        login: LONG,
        silence: LONG,
        session: LONG,
        mail: LONG,
        mail_bytes_per_second_min: 1 << 10,
    }
}

/// The parts of a session with these limits.
fn submission(limits: SessionLimits) -> Submission {
    let examples = [
        ("DATABASE_URL", "postgres://127.0.0.1:1/none"),
        ("REDIS_URL", "redis://127.0.0.1:1"),
        ("WAYPOST_ENV", "development"),
    ];
    let examples = examples.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::from_map(&examples.into()).unwrap();
    Submission {
        accept: AcceptContext::new(&settings, &Clock::system(), 0).unwrap(),
        settings: settings.submission,
        certificate: None,
        limits,
        closing: CancellationToken::new(),
    }
}

/// Both ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await;
    let (server, _) = listener.accept().await.unwrap();
    (client.unwrap(), server)
}

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The client of a session with these limits.
async fn session(limits: SessionLimits) -> TcpStream {
    let (client, server) = connection().await;
    let submission = submission(limits);
    tokio::spawn(async move {
        serve_client(&submission, server, ADDRESS, FirstBytes::Greeting).await;
    });
    client
}

/// What the server says until it closes the connection.
async fn all_of(mut client: TcpStream) -> String {
    let mut said = String::new();
    let reading = client.read_to_string(&mut said);
    tokio::time::timeout(LONG, reading).await.unwrap().unwrap();
    said
}

#[tokio::test]
async fn a_client_that_says_nothing_is_sent_away() {
    let login = SHORT;
    let client = session(SessionLimits { login, ..limits() }).await;
    let said = all_of(client).await;
    let last = said.lines().last().unwrap();
    assert!(
        said.starts_with("220 ") && last.starts_with("421 4.4.2 "),
        "{said}"
    );
}

#[tokio::test]
async fn commands_do_not_make_the_time_for_a_login_longer() {
    let login = SHORT * 3;
    let mut client = session(SessionLimits { login, ..limits() }).await;
    let began = std::time::Instant::now();
    while client.write_all(b"NOOP\r\n").await.is_ok() && began.elapsed() < LONG {
        tokio::time::sleep(SHORT / 2).await;
    }
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn half_a_line_is_silence() {
    let login = SHORT;
    let mut client = session(SessionLimits { login, ..limits() }).await;
    client.write_all(b"EHLO client.exam").await.unwrap();
    let said = all_of(client).await;
    assert!(said.contains("\r\n421 4.4.2 "), "{said}");
}

/// Receives a mail that comes byte by byte, with a pause after each.
async fn receive_slowly(
    limits: SessionLimits,
    pause: Duration,
) -> Result<ReceivedContent, SessionError> {
    let (mut client, server) = connection().await;
    tokio::spawn(async move {
        for byte in b"Subject: slow\r\n\r\nx\r\n.\r\n" {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        // Open until the server closes.
        let _end = client.read(&mut [0]).await;
    });
    let submission = submission(limits);
    let session = Session::new(&submission, ADDRESS);
    session.receive(&mut ClientConnection::new(server)).await
}

#[tokio::test]
async fn a_mail_that_trickles_ends_and_one_that_is_slow_does_not() {
    let mail = SHORT;
    let trickled = receive_slowly(SessionLimits { mail, ..limits() }, SHORT / 5).await;
    assert!(matches!(trickled, Err(SessionError::TimedOut)));
    // Each byte makes the time longer.
    let mail_bytes_per_second_min = 1;
    let paced = SessionLimits {
        mail,
        mail_bytes_per_second_min,
        ..limits()
    };
    let slow = receive_slowly(paced, SHORT / 5).await;
    assert!(matches!(slow, Ok(ReceivedContent::Mail(..))));
}
