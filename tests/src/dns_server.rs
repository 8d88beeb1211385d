//! A DNS server for tests, over UDP and TCP on one port. It reads and writes messages itself
//! (RFC 1035), so that it shares no mistake with the resolver that Waypost uses. It is a
//! recursive server in front of nothing: it knows the records that a test sets, and does not
//! follow aliases.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

/// The longest answer over UDP. Longer ones are truncated.
const UDP_BYTES_MAX: usize = 1_232;
/// The end of a message's header.
const HEADER_BYTES: usize = 12;
/// Types of records by name.
const TYPES: [(&str, u16); 5] = [
    ("A", 1),
    ("CNAME", 5),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
];

/// How the server fails for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsFailure {
    /// It answers SERVFAIL.
    ServFail,
    /// It does not answer.
    Silence,
}

#[derive(Debug, Default)]
struct Zone {
    /// Values by name and type.
    records: BTreeMap<(String, u16), Vec<String>>,
    failures: BTreeMap<String, DnsFailure>,
    queries: Vec<String>,
}

/// The running server. Dropping it ends it.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn lock(zone: &Mutex<Zone>) -> MutexGuard<'_, Zone> {
    zone.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DnsServer {
    /// Starts a server that knows no name.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start() -> Self {
        // The port must be free for both protocols.
        let (udp, tcp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0")
                .await
                .expect("the loopback interface has free ports");
            let address = tcp.local_addr().expect("a listener has an address");
            if let Ok(udp) = UdpSocket::bind(address).await {
                break (udp, tcp);
            }
        };
        let address = tcp.local_addr().expect("a listener has an address");
        let zone = Arc::new(Mutex::new(Zone::default()));
        let tasks = [
            tokio::spawn(serve_udp(udp, Arc::clone(&zone))),
            tokio::spawn(serve_tcp(tcp, Arc::clone(&zone))),
        ];
        Self {
            address,
            zone,
            tasks,
        }
    }

    /// The value of `WAYPOST_DNS_SERVERS`.
    #[must_use]
    pub fn setting(&self) -> String {
        self.address.to_string()
    }

    /// Sets the records of a name and a type (TXT, CNAME, MX as `10 host`, A, AAAA); none
    /// removes them. `*.example.com` stands for every name below that is not set itself.
    ///
    /// # Panics
    /// If the type is another one.
    pub fn set(&self, kind: &str, name: &str, values: &[&str]) {
        let (_, number) = TYPES
            .iter()
            .find(|(known, _)| *known == kind)
            .expect("a type that the server knows");
        let key = (name.to_lowercase(), *number);
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        let mut zone = lock(&self.zone);
        if values.is_empty() {
            zone.records.remove(&key);
        } else {
            zone.records.insert(key, values);
        }
    }

    /// Lets a name fail, or no longer.
    pub fn fail(&self, name: &str, failure: Option<DnsFailure>) {
        let mut zone = lock(&self.zone);
        match failure {
            Some(failure) => zone.failures.insert(name.to_lowercase(), failure),
            None => zone.failures.remove(&name.to_lowercase()),
        };
    }

    /// The names that were asked so far.
    #[must_use]
    pub fn queries(&self) -> Vec<String> {
        lock(&self.zone).queries.clone()
    }
}

async fn serve_udp(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut buffer = [0; 4_096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let Some(mut answer) = answer(&buffer[..length], &zone) else {
            continue;
        };
        if answer.len() > UDP_BYTES_MAX {
            let end = question_end(&answer).unwrap_or(HEADER_BYTES);
            answer.truncate(end);
            answer[2] |= 0b10; // truncated
            answer[6..HEADER_BYTES].fill(0);
        }
        let _sent = socket.send_to(&answer, from).await;
    }
}

async fn serve_tcp(listener: TcpListener, zone: Arc<Mutex<Zone>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve_connection(stream, Arc::clone(&zone)));
    }
}

async fn serve_connection(mut stream: TcpStream, zone: Arc<Mutex<Zone>>) {
    while let Ok(length) = stream.read_u16().await {
        let mut query = vec![0; usize::from(length)];
        if stream.read_exact(&mut query).await.is_err() {
            return;
        }
        let Some(answer) = answer(&query, &zone) else {
            return;
        };
        let length = u16::try_from(answer.len()).expect("an answer of a test is short");
        let framed = [&length.to_be_bytes()[..], &answer].concat();
        if stream.write_all(&framed).await.is_err() {
            return;
        }
    }
}

/// The end of the question, which begins after the header.
fn question_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER_BYTES;
    while *message.get(at)? != 0 {
        at += 1 + usize::from(message[at]);
    }
    Some(at + 5)
}

/// The answer to a query; `None` if the server is silent.
fn answer(query: &[u8], zone: &Mutex<Zone>) -> Option<Vec<u8>> {
    let end = question_end(query)?;
    let question = query.get(HEADER_BYTES..end)?;
    let kind = u16::from_be_bytes([*query.get(end - 4)?, *query.get(end - 3)?]);
    let name = read_name(question);
    let mut zone = lock(zone);
    zone.queries.push(name.clone());
    let (code, records) = match zone.failures.get(&name) {
        Some(DnsFailure::Silence) => return None,
        Some(DnsFailure::ServFail) => (2, Vec::new()),
        None => zone.find(&name, kind),
    };
    let mut answer = query[..2].to_vec();
    answer.extend([0b1000_0001, 0b1000_0000 | code]); // an answer of a recursive server
    answer.extend([0, 1]);
    answer.extend(u16::try_from(records.len()).ok()?.to_be_bytes());
    answer.extend([0; 4]);
    answer.extend(question);
    for (kind, value) in records {
        let data = data(kind, &value);
        answer.extend([0xC0, 12]); // the name of the question
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

impl Zone {
    /// The code of the answer, and its records.
    fn find(&self, name: &str, kind: u16) -> (u8, Vec<(u16, String)>) {
        let below = format!(".{name}");
        let is_known = |name: &str| self.records.keys().any(|(known, _)| known == name);
        let has_below = self
            .records
            .keys()
            .any(|(known, _)| known.ends_with(&below));
        let wildcard = name
            .split_once('.')
            .map(|(_, parent)| format!("*.{parent}"))
            .filter(|wildcard| is_known(wildcard));
        let owner = match (is_known(name), has_below, wildcard) {
            (true, _, _) => name.to_owned(),
            (false, false, Some(wildcard)) => wildcard,
            (false, true, _) => return (0, Vec::new()),
            (false, false, None) => return (3, Vec::new()),
        };
        let alias = 5;
        let of = |kind| {
            let values = self.records.get(&(owner.clone(), kind));
            values.map(|values| values.iter().map(|value| (kind, value.clone())).collect())
        };
        let found: Option<Vec<_>> = of(kind).or_else(|| of(alias));
        (0, found.unwrap_or_default())
    }
}

fn read_name(question: &[u8]) -> String {
    let (mut labels, mut at) = (Vec::new(), 0);
    while question[at] != 0 {
        let length = usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..=at + length]).to_lowercase());
        at += 1 + length;
    }
    labels.join(".")
}

fn written_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).expect("a label is short"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn data(kind: u16, value: &str) -> Vec<u8> {
    match kind {
        1 => value
            .split('.')
            .map(|part| part.parse().expect("an IPv4 address"))
            .collect(),
        28 => {
            let address: std::net::Ipv6Addr = value.parse().expect("an IPv6 address");
            address.octets().to_vec()
        }
        5 => written_name(value),
        15 => {
            let (priority, host) = value.split_once(' ').expect("a priority and a host");
            let priority: u16 = priority.parse().expect("a priority is a number");
            [&priority.to_be_bytes()[..], &written_name(host)].concat()
        }
        _ => {
            let chunks = value.as_bytes().chunks(255);
            let mut bytes = Vec::new();
            for chunk in chunks {
                bytes.push(u8::try_from(chunk.len()).expect("a chunk is short"));
                bytes.extend(chunk);
            }
            bytes
        }
    }
}
