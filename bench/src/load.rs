//! Clients that cost little: HTTP/1.1 over connections that stay open, requests written
//! from templates, answers read no further than they have to be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Failure;

/// Writes the request with this number, head and body.
pub(crate) type Writer = Arc<dyn Fn(u64, &mut Vec<u8>) + Send + Sync>;

/// The longest latency that is told from longer ones, in microseconds.
const LONGEST_US: u64 = 60_000_000;
/// How long the thread that keeps the pace sleeps at least.
const PACE_NAP: Duration = Duration::from_micros(200);

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Answers {
    /// Requests that were answered as they should be.
    pub(crate) count: u64,
    pub(crate) errors: u64,
    /// An answer that was not as it should be.
    pub(crate) first_error: Option<String>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    latencies: Histogram<u64>,
}

impl Answers {
    pub(crate) fn none() -> Self {
        Self {
            count: 0,
            errors: 0,
            first_error: None,
            elapsed: Duration::ZERO,
            latencies: Histogram::new_with_max(LONGEST_US, 3).expect("the bounds are in order"),
        }
    }

    /// Answers in a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that so many of a hundred do not exceed, in milliseconds.
    pub(crate) fn percentile_ms(&self, percentile: f64) -> f64 {
        self.latencies.value_at_percentile(percentile) as f64 / 1_000.0
    }

    /// A failure where any request failed.
    pub(crate) fn all_taken(self) -> Result<Self, Failure> {
        match &self.first_error {
            Some(error) => Err(format!("{} requests failed: {error}", self.errors).into()),
            None => Ok(self),
        }
    }

    fn take(&mut self, latency: Duration, answer: Result<(), String>) {
        match answer {
            Ok(()) => {
                self.count += 1;
                let micros = u64::try_from(latency.as_micros()).unwrap_or(LONGEST_US);
                self.latencies.saturating_record(micros);
            }
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert(error);
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
        self.latencies
            .add(other.latencies)
            .expect("both have the same bounds");
    }
}

/// When a closed loop ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Count(u64),
}

/// A closed loop: each connection sends its next request when it has its answer.
/// Requests are numbered from `first` on.
pub(crate) async fn closed(
    targets: &[SocketAddr],
    connections: usize,
    first: u64,
    until: Until,
    write: Writer,
) -> Result<Answers, Failure> {
    let next = Arc::new(AtomicU64::new(first));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for nth in 0..connections {
        let mut client = Client::connect(targets[nth % targets.len()]).await?;
        let (next, write) = (Arc::clone(&next), Arc::clone(&write));
        clients.spawn(async move {
            let mut answers = Answers::none();
            loop {
                let is_over = match until {
                    Until::Elapsed(time) => begun.elapsed() >= time,
                    Until::Count(_) => false,
                };
                let number = next.fetch_add(1, Ordering::Relaxed);
                let is_over =
                    is_over || matches!(until, Until::Count(count) if number >= first + count);
                if is_over {
                    return answers;
                }
                let since = Instant::now();
                let answer = client.call(number, &write).await;
                answers.take(since.elapsed(), answer);
            }
        });
    }
    let mut answers = Answers::none();
    while let Some(client) = clients.join_next().await {
        answers.add(client?);
    }
    answers.elapsed = begun.elapsed();
    Ok(answers)
}

/// An open loop: so many requests a second, whatever comes of them. A latency counts
/// from the time at which the request was to be sent.
pub(crate) async fn open(
    targets: &[SocketAddr],
    connections: usize,
    rate: f64,
    count: u64,
    write: Writer,
) -> Result<Answers, Failure> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(Mutex::new(receiver));
    let mut clients = JoinSet::new();
    for nth in 0..connections {
        let mut client = Client::connect(targets[nth % targets.len()]).await?;
        let (receiver, write) = (Arc::clone(&receiver), Arc::clone(&write));
        clients.spawn(async move {
            let mut answers = Answers::none();
            loop {
                let due = receiver.lock().await.recv().await;
                let Some((number, due)) = due else {
                    return answers;
                };
                let answer = client.call(number, &write).await;
                answers.take(Instant::now() - due, answer);
            }
        });
    }
    let begun = Instant::now();
    // A thread of its own: the timers of tokio go by milliseconds.
    let pace = tokio::task::spawn_blocking(move || keep_pace(begun, rate, count, &sender));
    let mut answers = Answers::none();
    while let Some(client) = clients.join_next().await {
        answers.add(client?);
    }
    pace.await?;
    answers.elapsed = begun.elapsed();
    Ok(answers)
}

fn keep_pace(
    begun: Instant,
    rate: f64,
    count: u64,
    sender: &mpsc::UnboundedSender<(u64, Instant)>,
) {
    for number in 0..count {
        let due = begun + Duration::from_secs_f64(number as f64 / rate);
        while let Some(left) = due.checked_duration_since(Instant::now())
            && !left.is_zero()
        {
            std::thread::sleep(left.max(PACE_NAP).min(Duration::from_millis(100)));
        }
        // Nobody listens any more only when all clients failed.
        let _gone = sender.send((number, due));
    }
}

/// One connection.
struct Client {
    address: SocketAddr,
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            address,
            stream,
            request: Vec::with_capacity(4_096),
            answer: Vec::with_capacity(4_096),
        })
    }

    /// Makes one call; an error says how it was answered.
    async fn call(&mut self, number: u64, write: &Writer) -> Result<(), String> {
        self.request.clear();
        write(number, &mut self.request);
        let answered = self.exchange().await;
        if answered.is_err()
            && let Ok(fresh) = Self::connect(self.address).await
        {
            *self = fresh;
        }
        let (status, body) = answered.map_err(|error| error.to_string())?;
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(format!(
            "{status} {}",
            String::from_utf8_lossy(&self.answer[body..])
        ))
    }

    /// Sends the request and reads the answer: its status, and where its body begins.
    async fn exchange(&mut self) -> std::io::Result<(u16, usize)> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(found) = complete(&self.answer)? {
                return Ok(found);
            }
        }
    }
}

/// Status and beginning of the body of an answer that is there whole.
fn complete(answer: &[u8]) -> std::io::Result<Option<(u16, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(answer).map_err(std::io::Error::other)?;
    let httparse::Status::Complete(body) = parsed else {
        return Ok(None);
    };
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| {
        std::str::from_utf8(header.value)
            .ok()?
            .parse::<usize>()
            .ok()
    });
    let length = length.ok_or_else(|| std::io::Error::other("an answer without a length"))?;
    let is_whole = answer.len() >= body + length;
    Ok(is_whole.then(|| (response.code.unwrap_or_default(), body)))
}
