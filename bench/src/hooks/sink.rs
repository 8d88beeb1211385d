//! A customer's server that costs almost nothing: it reads a request to its end, records
//! the arrival and responds. It parses no JSON.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The argument that makes this program a sink.
pub(crate) const COMMAND: &str = "sink";
/// Longest request that a sink reads.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The requests that a sink received.
#[derive(Debug, Default)]
struct Received {
    count: usize,
    last: Vec<u8>,
    kept: Vec<(Instant, Vec<u8>)>,
}

/// The behaviour of a sink.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SinkSettings {
    /// Time before it responds.
    pub(crate) delay: Duration,
    /// Whether it keeps every request, not just the last.
    pub(crate) keeps_all: bool,
}

/// A sink in a task of this process.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
    task: JoinHandle<()>,
}

impl Sink {
    pub(crate) async fn start(settings: SinkSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("the loopback interface has free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let received = Arc::default();
        Self {
            url: format!("http://{address}/hooks"),
            task: tokio::spawn(serve(listener, Arc::clone(&received), settings)),
            received,
        }
    }

    /// Requests received.
    pub(crate) fn count(&self) -> usize {
        lock(&self.received).count
    }

    /// Removes and returns the kept requests with their arrival times.
    pub(crate) fn take(&self) -> Vec<(Instant, Vec<u8>)> {
        std::mem::take(&mut lock(&self.received).kept)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A sink in a process of its own.
#[derive(Debug)]
pub(crate) struct SinkProcess {
    pub(crate) url: String,
    address: String,
    _child: Child,
}

impl SinkProcess {
    pub(crate) async fn start() -> Self {
        let program = std::env::current_exe().expect("a process knows its program");
        let child = Command::new(program)
            .arg(COMMAND)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.expect("a program that runs can be started again");
        let mut first = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut first).await;
        read.expect("it prints its address");
        let address = first.trim().to_owned();
        Self {
            url: format!("http://{address}/hooks"),
            address,
            _child: child,
        }
    }

    /// POST requests received.
    pub(crate) async fn count(&self) -> usize {
        let count = self.get("/count").await;
        let count = std::str::from_utf8(&count).expect("a number is text");
        count.parse().expect("it is a number")
    }

    /// The last POST request, byte by byte.
    pub(crate) async fn last(&self) -> Vec<u8> {
        self.get("/last").await
    }

    async fn get(&self, path: &str) -> Vec<u8> {
        let asking = async {
            let mut stream = TcpStream::connect(&self.address).await?;
            let question = format!("GET {path} HTTP/1.1\r\n\r\n");
            stream.write_all(question.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        asking.await.expect("the sink answers")
    }
}

/// Serves until the process is killed.
pub(crate) async fn run() {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("the loopback interface has free ports");
    let address = listener.local_addr().expect("a listener has an address");
    println!("{address}");
    serve(listener, Arc::default(), SinkSettings::default()).await;
}

fn lock(received: &Mutex<Received>) -> std::sync::MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Received>>, settings: SinkSettings) {
    while let Ok((stream, _)) = listener.accept().await {
        // A disconnect of the caller is no error of the sink.
        tokio::spawn(handle(stream, Arc::clone(&received), settings));
    }
}

async fn handle(
    mut stream: TcpStream,
    received: Arc<Mutex<Received>>,
    settings: SinkSettings,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4_096);
    while buffer.len() < REQUEST_BYTES_MAX && stream.read_buf(&mut buffer).await? > 0 {
        let Some(length) = length_of(&buffer).filter(|length| buffer.len() >= *length) else {
            continue;
        };
        let request: Vec<u8> = buffer.drain(..length).collect();
        if request.starts_with(b"GET ") {
            let answer = match request.starts_with(b"GET /count") {
                true => lock(&received).count.to_string().into_bytes(),
                false => lock(&received).last.clone(),
            };
            return stream.write_all(&answer).await;
        }
        record(&received, request, settings);
        if !settings.delay.is_zero() {
            tokio::time::sleep(settings.delay).await;
        }
        stream.write_all(ANSWER).await?;
    }
    Ok(())
}

fn record(received: &Mutex<Received>, request: Vec<u8>, settings: SinkSettings) {
    let mut received = lock(received);
    received.count += 1;
    if settings.keeps_all {
        received.kept.push((Instant::now(), request));
    } else {
        received.last = request;
    }
}

/// The length of the first request, once its head is complete.
fn length_of(buffer: &[u8]) -> Option<usize> {
    let head = head_length(buffer)?;
    let length = headers(&buffer[..head])
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    Some(head + length)
}

/// The offset of a request's body.
pub(crate) fn head_length(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

/// The headers in a head.
pub(crate) fn headers(head: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let text = std::str::from_utf8(head).unwrap_or_default();
    let lines = text.split("\r\n").skip(1);
    lines.filter_map(|line| line.split_once(": "))
}
