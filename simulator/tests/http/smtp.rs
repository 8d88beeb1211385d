//! Lines and the end of a message at the SMTP server.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use waypost_simulator::{Config, Simulator};

const HEADERS: &str = "From: a@example.com\r\nMessage-ID: <1@example.com>\r\n\r\n";

fn start() -> Simulator {
    let config = Config {
        smtp_listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        ..Config::default()
    };
    Simulator::start(config).expect("the simulator can listen")
}

/// A client that sends exactly the given bytes.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(simulator: &Simulator) -> Self {
        let address = simulator.smtp_address().expect("the SMTP server runs");
        let stream = TcpStream::connect(address).expect("it listens");
        let mut client = Self(BufReader::new(stream));
        assert!(client.reply().starts_with("220"));
        client
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> String {
        let written = self.0.get_mut().write_all(bytes);
        written.expect("the server reads");
        self.reply()
    }

    /// The last line of the reply; empty at the end of the connection.
    fn reply(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("the server answers");
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    fn send(&mut self, hello: &str, to: &str, content: &[u8]) -> String {
        for (command, hoped) in [
            (hello, "250"),
            ("MAIL FROM:<a@example.com>", "250"),
            (&format!("RCPT TO:<{to}>"), "250"),
            ("DATA", "354"),
        ] {
            let reply = self.send_bytes(format!("{command}\r\n").as_bytes());
            assert!(reply.starts_with(hoped), "{command}: {reply}");
        }
        self.send_bytes(content)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_cr_lf_dot_cr_lf_ends_a_message_and_nothing_else_ends_a_line() {
    let simulator = start();
    for (number, form) in [
        "\n.\n",
        "\n.\r\n",
        "\r\n.\n",
        "\r.\r",
        "\r\n.\r",
        "\r.\r\n",
        "\r\n\r.\r\n",
        "\0",
        "a\rb",
        "a\nb",
        "\r\n.\r\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let to = format!("r{number}@example.org");
        let content = format!("{HEADERS}text{form}MAIL FROM:<evil@example.org>\r\nrest\r\n.\r\n");
        let mut client = Client::connect(&simulator);
        let reply = client.send("EHLO client", &to, content.as_bytes());
        assert!(reply.starts_with("550 5."), "{form:?}: {reply}");
        assert!(simulator.captured_to(&to).is_empty(), "{form:?}");
        // All of it was content: the session is in the state of before.
        assert!(
            client.send_bytes(b"NOOP\r\n").starts_with("250"),
            "{form:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_kept_as_it_arrived() {
    let simulator = start();
    let mut client = Client::connect(&simulator);
    let content = format!("{HEADERS}..\r\n...a\r\nb\r\n.\r\n");
    let reply = client.send("HELO client", "r@example.org", content.as_bytes());
    assert!(reply.starts_with("250"), "{reply}");
    let recipient_count = simulator.captured_to("r@example.org");
    let raw = format!("{HEADERS}.\r\n..a\r\nb\r\n");
    assert_eq!(recipient_count[0].raw.as_deref(), Some(raw.as_str()));
    assert_eq!(
        recipient_count[0].mail_from.as_deref(),
        Some("a@example.com")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_no_line_ends_the_session() {
    let simulator = start();
    for command in [&b"NOOP\n"[..], b"NO\rOP\r\n", b"NOOP\0\r\n", b"NOOP\r\r\n"] {
        let mut client = Client::connect(&simulator);
        assert!(client.send_bytes(command).starts_with("521"), "{command:?}");
        assert!(client.reply().is_empty(), "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ehlo_accepts_messages_after_helo() {
    let simulator = start();
    simulator.set_smtp_ehlo(false);
    let mut client = Client::connect(&simulator);
    for command in ["EHLO client\r\n", "AUTH PLAIN AHUAcA==\r\n", "STARTTLS\r\n"] {
        assert!(
            client.send_bytes(command.as_bytes()).starts_with("502"),
            "{command}"
        );
    }
    assert!(client.send_bytes(b"HELO client\r\n").starts_with("250 "));
    let mail = client.send_bytes(b"MAIL FROM:<a@example.com> SIZE=1\r\n");
    assert!(mail.starts_with("555"), "{mail}");
    let content = format!("{HEADERS}b\r\n.\r\n");
    let reply = client.send("HELO client", "r@example.org", content.as_bytes());
    assert!(reply.starts_with("250"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_may_be_greylisted_or_beyond_the_relay() {
    let simulator = start();
    let mut client = Client::connect(&simulator);
    client.send_bytes(b"EHLO client\r\n");
    client.send_bytes(b"MAIL FROM:<a@example.com>\r\n");
    for (to, code) in [
        ("relay-denied@example.org", "554 5.7.1"),
        ("greylist+1@example.org", "451 4.7.1"),
        ("greylist+1@example.org", "250"),
        ("Greylist+2@example.org", "451 4.7.1"),
    ] {
        let reply = client.send_bytes(format!("RCPT TO:<{to}>\r\n").as_bytes());
        assert!(reply.starts_with(code), "{to}: {reply}");
    }
}
