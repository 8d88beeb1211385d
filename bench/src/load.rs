//! A cheap HTTP/1.1 load generator: connections stay open, requests are written from
//! templates, responses are parsed only as far as necessary.

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

/// Writes the request with this number into the buffer, head and body.
pub(crate) type Writer = Arc<dyn Fn(u64, &mut Vec<u8>) + Send + Sync>;

/// The longest latency that the histogram resolves, in microseconds.
const LONGEST_US: u64 = 60_000_000;
/// Shortest sleep of the thread that schedules the requests.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// The result of a load.
#[derive(Debug)]
pub(crate) struct LoadResult {
    /// Requests that succeeded.
    pub(crate) count: u64,
    pub(crate) errors: u64,
    /// The first failed response.
    pub(crate) first_error: Option<String>,
    /// From the first request to the last response.
    pub(crate) elapsed: Duration,
    latencies: Histogram<u64>,
}

impl LoadResult {
    pub(crate) fn none() -> Self {
        Self {
            count: 0,
            errors: 0,
            first_error: None,
            elapsed: Duration::ZERO,
            latencies: Histogram::new_with_max(LONGEST_US, 3).expect("the bounds are in order"),
        }
    }

    /// Responses per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// A percentile of the latency, in milliseconds.
    pub(crate) fn percentile_ms(&self, percentile: f64) -> f64 {
        self.latencies.value_at_percentile(percentile) as f64 / 1_000.0
    }

    /// An error if any request failed.
    pub(crate) fn require_success(self) -> Result<Self, Failure> {
        match &self.first_error {
            Some(error) => Err(format!("{} requests failed: {error}", self.errors).into()),
            None => Ok(self),
        }
    }

    pub(crate) fn record(&mut self, latency: Duration, answer: Result<(), String>) {
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

    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
        self.latencies
            .add(other.latencies)
            .expect("both have the same bounds");
    }
}

/// The end of a closed loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Count(u64),
}

/// A closed loop: each connection sends its next request when the response to the one
/// before has arrived. Requests are numbered from `first` on.
pub(crate) async fn closed_loop(
    targets: &[SocketAddr],
    connections: usize,
    first: u64,
    until: Until,
    write: Writer,
) -> Result<LoadResult, Failure> {
    let next = Arc::new(AtomicU64::new(first));
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for nth in 0..connections {
        let mut client = Client::connect(targets[nth % targets.len()]).await?;
        let (next, write) = (Arc::clone(&next), Arc::clone(&write));
        clients.spawn(async move {
            let mut answers = LoadResult::none();
            loop {
                let is_over = match until {
                    Until::Elapsed(time) => started.elapsed() >= time,
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
                answers.record(since.elapsed(), answer);
            }
        });
    }
    let mut answers = LoadResult::none();
    while let Some(client) = clients.join_next().await {
        answers.add(client?);
    }
    answers.elapsed = started.elapsed();
    Ok(answers)
}

/// An open loop: `rate` requests per second, regardless of the responses. A latency
/// counts from the scheduled time of the request.
pub(crate) async fn open(
    targets: &[SocketAddr],
    connections: usize,
    rate: f64,
    count: u64,
    write: Writer,
) -> Result<LoadResult, Failure> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(Mutex::new(receiver));
    let mut clients = JoinSet::new();
    for nth in 0..connections {
        let mut client = Client::connect(targets[nth % targets.len()]).await?;
        let (receiver, write) = (Arc::clone(&receiver), Arc::clone(&write));
        clients.spawn(async move {
            let mut answers = LoadResult::none();
            loop {
                let due = receiver.lock().await.recv().await;
                let Some((number, due)) = due else {
                    return answers;
                };
                let answer = client.call(number, &write).await;
                answers.record(Instant::now() - due, answer);
            }
        });
    }
    let started = Instant::now();
    // A thread of its own: tokio's timers have a resolution of one millisecond.
    let scheduler = tokio::task::spawn_blocking(move || schedule(started, rate, count, &sender));
    let mut answers = LoadResult::none();
    while let Some(client) = clients.join_next().await {
        answers.add(client?);
    }
    scheduler.await?;
    answers.elapsed = started.elapsed();
    Ok(answers)
}

fn schedule(
    started: Instant,
    rate: f64,
    count: u64,
    sender: &mpsc::UnboundedSender<(u64, Instant)>,
) {
    for number in 0..count {
        let due = started + Duration::from_secs_f64(number as f64 / rate);
        while let Some(left) = due.checked_duration_since(Instant::now())
            && !left.is_zero()
        {
            std::thread::sleep(left.max(SLEEP_MIN).min(Duration::from_millis(100)));
        }
        // The channel is closed only if all clients have failed.
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

    /// Makes one call; the error holds the status and the body of the response.
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

    /// Sends the request and reads the response: its status, and where its body begins.
    async fn exchange(&mut self) -> std::io::Result<(u16, usize)> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(create_organizations) = complete(&self.answer)? {
                return Ok(create_organizations);
            }
        }
    }
}

/// Status and start of the body, if the response is complete.
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
    let length = length.ok_or_else(|| std::io::Error::other("a response without a length"))?;
    let is_whole = answer.len() >= body + length;
    Ok(is_whole.then(|| (response.code.unwrap_or_default(), body)))
}
