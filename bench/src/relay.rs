//! A relay in front of a server that is as far away as one wishes: what it takes from one side
//! it gives to the other half a round trip later, and a connection costs one round trip to
//! open. So distance between machines is measured on one machine, without privileges.
//!
//! It counts the round trips: how often a client spoke again after the server had.
//!
//! It models distance alone. Bandwidth, loss and the windows of TCP are those of the loopback
//! interface. It runs on threads, because tokio's timers round up to a millisecond.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use url::Url;

use crate::Failure;

/// Bytes that are read at once, and pieces of this size that may be under way.
const PIECE_BYTES: usize = 64 * 1_024;
const PIECES_MAX: usize = 64;

/// A running relay. It ends with the program, or when its connections end.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    address: SocketAddr,
    round_trips: Arc<AtomicU64>,
}

/// One direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    is_from_client: bool,
    delay: Duration,
    /// Whether the server spoke last.
    server_spoke: Arc<AtomicBool>,
    round_trips: Arc<AtomicU64>,
}

impl Relay {
    /// A relay to the server of this URL, this far away.
    pub(crate) fn to(url: &str, default_port: u16, round_trip: Duration) -> Result<Self, Failure> {
        let url = Url::parse(url)?;
        let host = url.host_str().ok_or("the server has no host")?.to_owned();
        let server = (host, url.port().unwrap_or(default_port));
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let relay = Self {
            address: listener.local_addr()?,
            round_trips: Arc::default(),
        };
        let round_trips = Arc::clone(&relay.round_trips);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, round_trips) = (server.clone(), Arc::clone(&round_trips));
                thread::spawn(move || {
                    thread::sleep(round_trip);
                    if let Ok(server) = TcpStream::connect(server) {
                        // Either side may end the connection at any time.
                        let _ended = forward(&client, &server, round_trip / 2, &round_trips);
                    }
                });
            }
        });
        Ok(relay)
    }

    /// The URL of the server behind the relay.
    pub(crate) fn url_of(&self, url: &str) -> Result<String, Failure> {
        let mut url = Url::parse(url)?;
        let changed = url.set_ip_host(self.address.ip()).is_ok()
            && url.set_port(Some(self.address.port())).is_ok();
        changed
            .then(|| url.into())
            .ok_or_else(|| "the server is not reached over TCP".into())
    }

    /// Round trips so far.
    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }
}

fn forward(
    client: &TcpStream,
    server: &TcpStream,
    delay: Duration,
    round_trips: &Arc<AtomicU64>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let server_spoke = Arc::new(AtomicBool::new(true));
    for (from, to, is_from_client) in [(client, server, true), (server, client, false)] {
        let direction = Direction {
            from: from.try_clone()?,
            to: to.try_clone()?,
            is_from_client,
            delay,
            server_spoke: Arc::clone(&server_spoke),
            round_trips: Arc::clone(round_trips),
        };
        direction.start();
    }
    Ok(())
}

impl Direction {
    fn start(self) {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        let Ok(to) = self.to.try_clone() else {
            return;
        };
        thread::spawn(move || self.read(&sender));
        thread::spawn(move || write(to, &receiver));
    }

    fn read(mut self, pieces: &SyncSender<(Instant, Vec<u8>)>) {
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(count) = self.from.read(&mut buffer) {
            if count == 0 {
                break;
            }
            let server_spoke = self
                .server_spoke
                .swap(!self.is_from_client, Ordering::Relaxed);
            if self.is_from_client && server_spoke {
                self.round_trips.fetch_add(1, Ordering::Relaxed);
            }
            let due = Instant::now() + self.delay;
            if pieces.send((due, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    }
}

/// Writes each piece when it is due. The end of a direction ends both.
fn write(mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
    for (due, piece) in pieces {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ended = to.shutdown(Shutdown::Both);
}
