//! A customer's server that costs next to nothing: it reads a request up to its end,
//! notes when it came, and answers. It parses no JSON.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The word that makes the program a sink and nothing else.
pub(crate) const COMMAND: &str = "sink";
/// What a request may take of memory.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What came.
#[derive(Debug, Default)]
struct Seen {
    count: usize,
    last: Vec<u8>,
    kept: Vec<(Instant, Vec<u8>)>,
}

/// How a sink behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manners {
    /// How long it takes to answer.
    pub(crate) hangs: Duration,
    /// Whether it keeps every request.
    pub(crate) keeps: bool,
}

/// A sink that is a task of this process.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Sink {
    pub(crate) async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("the loopback interface has free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let seen = Arc::default();
        Self {
            url: format!("http://{address}/hooks"),
            task: tokio::spawn(serve(listener, Arc::clone(&seen), manners)),
            seen,
        }
    }

    /// How many requests came.
    pub(crate) fn count(&self) -> usize {
        lock(&self.seen).count
    }

    /// The requests that came, and when; they are forgotten.
    pub(crate) fn take(&self) -> Vec<(Instant, Vec<u8>)> {
        std::mem::take(&mut lock(&self.seen).kept)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A sink that is a process of its own.
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
        read.expect("it says where it is");
        let address = first.trim().to_owned();
        Self {
            url: format!("http://{address}/hooks"),
            address,
            _child: child,
        }
    }

    /// How many POSTs came.
    pub(crate) async fn count(&self) -> usize {
        let count = self.ask("/count").await;
        let count = std::str::from_utf8(&count).expect("a number is text");
        count.parse().expect("it is a number")
    }

    /// The POST that came last, byte by byte.
    pub(crate) async fn last(&self) -> Vec<u8> {
        self.ask("/last").await
    }

    async fn ask(&self, path: &str) -> Vec<u8> {
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

/// Is a sink until it is killed.
pub(crate) async fn be_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("the loopback interface has free ports");
    let address = listener.local_addr().expect("a listener has an address");
    println!("{address}");
    serve(listener, Arc::default(), Manners::default()).await;
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, seen: Arc<Mutex<Seen>>, manners: Manners) {
    while let Ok((stream, _)) = listener.accept().await {
        // A caller that goes away is none of our business.
        tokio::spawn(converse(stream, Arc::clone(&seen), manners));
    }
}

async fn converse(
    mut stream: TcpStream,
    seen: Arc<Mutex<Seen>>,
    manners: Manners,
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
                true => lock(&seen).count.to_string().into_bytes(),
                false => lock(&seen).last.clone(),
            };
            return stream.write_all(&answer).await;
        }
        note(&seen, request, manners);
        if !manners.hangs.is_zero() {
            tokio::time::sleep(manners.hangs).await;
        }
        stream.write_all(ANSWER).await?;
    }
    Ok(())
}

fn note(seen: &Mutex<Seen>, request: Vec<u8>, manners: Manners) {
    let mut seen = lock(seen);
    seen.count += 1;
    if manners.keeps {
        seen.kept.push((Instant::now(), request));
    } else {
        seen.last = request;
    }
}

/// The bytes of the first request, once its head is complete.
fn length_of(buffer: &[u8]) -> Option<usize> {
    let head = head_of(buffer)?;
    let length = headers(&buffer[..head])
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    Some(head + length)
}

/// Where a request's content begins.
pub(crate) fn head_of(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

/// A head's headers.
pub(crate) fn headers(head: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let text = std::str::from_utf8(head).unwrap_or_default();
    let lines = text.split("\r\n").skip(1);
    lines.filter_map(|line| line.split_once(": "))
}
