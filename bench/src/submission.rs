//! Row 25: mails over SMTP, beside the same messages over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use waypost_tests::{Process, Program};

use crate::accept::{RequestNumbers, WARM_UP, closed_loop};
use crate::fixture::{Builder, Fixture, Plan, Tenant, free_address};
use crate::load::LoadResult;
use crate::report::{Bound, Figure, Report};
use crate::requests::{html, recipient, sends};
use crate::{Failure, progress, usage};

const CONNECTIONS: usize = 64;
/// Duration of one round; HTTP and SMTP alternate.
const ROUND_TIME: Duration = Duration::from_secs(2);
const PER_SECOND_MIN: f64 = 3_000.0;
/// Required ratio to the CPU of the same message over HTTP.
const CPU_RATIO_MAX: f64 = 1.3;
/// How long waypost-smtp may take to start.
const START_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Measures the row.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let fixture = builder.fixture(Plan::ACCEPTING).await?;
    let server = Server::start(&fixture).await?;
    let mut numbers = RequestNumbers(0);
    let requests = sends(&builder.tenants);
    closed_loop(&fixture, CONNECTIONS, WARM_UP, &mut numbers, &requests).await?;
    mails(&server, &builder.tenants, WARM_UP, &mut numbers).await?;
    let (mut seconds, mut counts) = ([0.0; 2], [0; 2]);
    let (mut best, mut own) = (LoadResult::none(), 0.0);
    // The order alternates, so that neither kind always comes first.
    for is_smtp in [false, true, true, false, false, true, true, false] {
        let (before, own_before) = (fixture.cpu(), server.cpu());
        let answers = match is_smtp {
            true => mails(&server, &builder.tenants, ROUND_TIME, &mut numbers).await?,
            false => {
                let time = ROUND_TIME;
                closed_loop(&fixture, CONNECTIONS, time, &mut numbers, &requests).await?
            }
        };
        let of_server = server.cpu() - own_before;
        let kind = usize::from(is_smtp);
        seconds[kind] += fixture.cpu().since(before).sum() + of_server;
        counts[kind] += answers.count;
        if is_smtp {
            own += of_server;
            if answers.per_second() > best.per_second() || best.count == 0 {
                best = answers;
            }
        }
    }
    drop(server);
    fixture.remove(builder).await?;
    let costs = [0, 1].map(|kind| seconds[kind] / counts[kind] as f64 * 1e6);
    add_figures(report, &best, costs, own / counts[1] as f64 * 1e6);
    Ok(())
}

fn add_figures(report: &mut Report, best: &LoadResult, costs: [f64; 2], own: f64) {
    let (p50, p99) = (best.percentile_ms(50.0), best.percentile_ms(99.0));
    report.add(Figure {
        row: "25",
        what: "mails over SMTP, 64 connections",
        figure: format!("{:.0}/s p50 {p50:.1} p99 {p99:.1}", best.per_second()),
        baseline: String::new(),
        ratio: Some(best.per_second()),
        bound: Bound::AtLeast(PER_SECOND_MIN),
    });
    let ratio = costs[1] / costs[0];
    report.add(Figure {
        row: "25",
        what: "CPU of a mail of 1.5 KB over SMTP",
        figure: format!("{:.0} µs", costs[1]),
        baseline: format!("{:.0} µs over HTTP", costs[0]),
        ratio: Some(ratio),
        bound: Bound::AtMost(CPU_RATIO_MAX),
    });
    let figures = json!({
        "per_second": best.per_second(), "p50_ms": p50, "p99_ms": p99,
        "http_us": costs[0], "smtp_us": costs[1], "waypost_smtp_us": own, "ratio": ratio,
    });
    progress(&figures);
    report.keep("submission", "c64", figures);
}

/// A running waypost-smtp.
struct Server {
    process: Process,
    address: SocketAddr,
}

impl Server {
    async fn start(fixture: &Fixture) -> Result<Self, Failure> {
        let address = free_address();
        let mut variables = fixture.variables.clone();
        variables.insert("WAYPOST_SUBMISSION_LISTEN".to_owned(), address.to_string());
        let process = Program::Smtp.spawn(&[], &variables);
        let end = Instant::now() + START_MAX;
        while TcpStream::connect(address).await.is_err() {
            if Instant::now() > end {
                return Err(format!("waypost-smtp at {address} is not ready").into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(Self { process, address })
    }

    fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.process.id())
    }
}

/// A closed loop over kept connections: each sends its next mail when the one before is
/// accepted.
async fn mails(
    server: &Server,
    tenants: &[Tenant],
    time: Duration,
    numbers: &mut RequestNumbers,
) -> Result<LoadResult, Failure> {
    let next = Arc::new(AtomicU64::new(numbers.0));
    let html: Arc<str> = html().into();
    let mut clients = Vec::new();
    for nth in 0..CONNECTIONS {
        let key = &tenants[nth % tenants.len()].key;
        clients.push(MailClient::log_in(server.address, key).await?);
    }
    let started = Instant::now();
    let mut running = JoinSet::new();
    for mut client in clients {
        let (next, html) = (Arc::clone(&next), Arc::clone(&html));
        running.spawn(async move {
            let mut answers = LoadResult::none();
            while started.elapsed() < time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let since = Instant::now();
                let answer = client.send(number, &html).await;
                answers.record(since.elapsed(), answer);
            }
            answers
        });
    }
    let mut answers = LoadResult::none();
    while let Some(client) = running.join_next().await {
        answers.add(client?);
    }
    answers.elapsed = started.elapsed();
    numbers.0 = next.load(Ordering::Relaxed);
    answers.require_success()
}

/// A connection that has logged in.
struct MailClient {
    stream: TcpStream,
    output: Vec<u8>,
    input: Vec<u8>,
}

impl MailClient {
    async fn log_in(address: SocketAddr, key: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut client = Self {
            stream,
            output: Vec::with_capacity(4_096),
            input: Vec::with_capacity(1_024),
        };
        let login = STANDARD.encode(format!("\0bench\0{key}"));
        client.expect(&["220"]).await?;
        client.output = b"EHLO bench.invalid\r\n".to_vec();
        client.expect(&["250"]).await?;
        client.output = format!("AUTH PLAIN {login}\r\n").into_bytes();
        client.expect(&["235"]).await?;
        Ok(client)
    }

    /// Sends one mail of 1.5 KB. Every other one has a Message-ID, by which a repeated mail is
    /// known, as every other send over HTTP has an idempotency key.
    async fn send(&mut self, number: u64, html: &str) -> Result<(), String> {
        let to = recipient(number);
        self.output =
            format!("MAIL FROM:<news@example.com> SIZE=1500\r\nRCPT TO:<{to}>\r\nDATA\r\n")
                .into_bytes();
        self.expect(&["250", "250", "354"]).await?;
        let message_id = match number.is_multiple_of(2) {
            true => format!("Message-ID: <{number}@bench.invalid>\r\n"),
            false => String::new(),
        };
        // Lines of a mail end before 998 bytes.
        let html = html.replace("</p>", "</p>\r\n");
        self.output = format!(
            "Received: from app.bench.invalid by relay.bench.invalid; Sat, 21 Nov 2026 12:00:00 +0000\r\n\
             Date: Sat, 21 Nov 2026 12:00:00 +0000\r\nFrom: Bench <news@example.com>\r\nTo: {to}\r\n\
             Subject: Order {number}\r\n{message_id}MIME-Version: 1.0\r\n\
             Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\
             X-Waypost-Tags: receipt\r\n\r\n{html}\r\n.\r\n"
        )
        .into_bytes();
        self.expect(&["250"]).await
    }

    /// Writes the output, and reads replies that must have these codes.
    async fn expect(&mut self, codes: &[&str]) -> Result<(), String> {
        let writing = self.stream.write_all(&self.output).await;
        writing.map_err(|error| error.to_string())?;
        self.input.clear();
        while last_lines(&self.input).count() < codes.len() {
            let read = self.stream.read_buf(&mut self.input).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err("the server closed the connection".to_owned());
            }
        }
        let is_right = last_lines(&self.input)
            .zip(codes)
            .all(|(line, code)| line.starts_with(code.as_bytes()));
        match is_right {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&self.input).into_owned()),
        }
    }
}

/// The last lines of complete replies.
fn last_lines(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = input.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| line.ends_with(b"\n") && line.get(3) == Some(&b' '))
}
