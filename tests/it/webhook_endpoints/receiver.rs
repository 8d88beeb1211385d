//! A customer's server: records requests and answers as configured.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it does with a request.
#[derive(Debug, Clone)]
pub(super) enum Manner {
    /// Answers with a status, further header lines and a body.
    Answer(u16, &'static str, String),
    /// Answers 200, but closes the connection on HEAD.
    CutHead,
    /// Closes every connection.
    Cut,
    /// Never answers.
    Silent,
}

impl Manner {
    pub(super) fn status(status: u16) -> Self {
        Self::Answer(status, "", String::new())
    }
}

/// A request, as received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) method: String,
    pub(super) target: String,
    headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), manner).await
    }

    pub(super) async fn start_at(address: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let manner = Arc::new(Mutex::new(manner));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (own, kept) = (Arc::clone(&manner), Arc::clone(&received));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&own), Arc::clone(&kept)));
            }
        });
        Self {
            address,
            manner,
            received,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook?token=t", self.address)
    }

    pub(super) fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// Takes all requests so far.
    pub(super) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    /// Takes the methods of all requests so far.
    pub(super) fn methods(&self) -> Vec<String> {
        self.take().into_iter().map(|one| one.method).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    manner: Arc<Mutex<Manner>>,
    received: Arc<Mutex<Vec<Received>>>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let is_head = request.method == "HEAD";
    received.lock().unwrap().push(request);
    let manner = manner.lock().unwrap().clone();
    let (status, headers, body) = match manner {
        Manner::Cut => return,
        Manner::CutHead if is_head => return,
        Manner::CutHead => (200, "", String::new()),
        Manner::Silent => return std::future::pending().await,
        Manner::Answer(status, headers, body) => (status, headers, body),
    };
    let length = body.len();
    let body = if is_head { String::new() } else { body };
    let answer = format!(
        "HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    // The client may have closed the connection.
    let _ = stream.write_all(answer.as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(received) = parse(&bytes) {
            return Some(received);
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Received> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some(Received {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body,
    })
}

/// HMAC-SHA256 by RFC 2104, so that signatures are not checked with the code that makes
/// them.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |byte: u8| block.map(|own| own ^ byte);
    let inner = Sha256::new_with_prefix(pad(0x36)).chain_update(message);
    let outer = Sha256::new_with_prefix(pad(0x5c)).chain_update(inner.finalize());
    outer.finalize().to_vec()
}

/// The expected `X-Waypost-Signature` of a request, by a secret.
pub(super) fn contract_signature(secret: &str, request: &Received) -> String {
    let timestamp = request.header("x-waypost-timestamp").unwrap();
    let signed = [timestamp.as_bytes(), b".", &request.body].concat();
    hex::encode(hmac(secret.as_bytes(), &signed))
}

/// The expected `webhook-signature` of a request.
pub(super) fn standard_signature(secret: &str, request: &Received) -> String {
    let key = secret.strip_prefix("whsec_").unwrap();
    let id = request.header("webhook-id").unwrap();
    let timestamp = request.header("webhook-timestamp").unwrap();
    let head = format!("{id}.{timestamp}.");
    let signed = [head.as_bytes(), &request.body].concat();
    let signature = hmac(&STANDARD.decode(key).unwrap(), &signed);
    format!("v1,{}", STANDARD.encode(signature))
}
