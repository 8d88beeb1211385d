//! A proxy in front of PostgreSQL that loses responses: a transaction is committed, and
//! its client gets no confirmation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The end of a transaction in the protocol: a simple query.
const COMMIT: &[u8] = b"COMMIT\0";
const PORT: u16 = 5432;

/// Forwards everything, and loses the confirmation of a commit on request. It ends with
/// its test.
#[derive(Debug)]
pub struct LossyProxy {
    address: SocketAddr,
    commits_to_lose: Arc<AtomicUsize>,
}

impl LossyProxy {
    /// A proxy to the server of this database.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn to(database_url: &str) -> Self {
        let url = Url::parse(database_url).expect("a database has a URL");
        let host = url.host_str().expect("the server has a host").to_owned();
        let server = (host, url.port().unwrap_or(PORT));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let commits_to_lose = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&commits_to_lose);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, commits_to_lose) = (server.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        // The client notices the closed connection by itself.
                        let _cut_off = forward(client, server, &commits_to_lose).await;
                    }
                });
            }
        });
        Self {
            address,
            commits_to_lose,
        }
    }

    /// The URL of the database behind the proxy.
    ///
    /// # Panics
    /// If the URL is none of a database.
    #[must_use]
    pub fn url_of(&self, database_url: &str) -> String {
        let mut url = Url::parse(database_url).expect("a database has a URL");
        let changed = url.set_ip_host(self.address.ip()).is_ok()
            && url.set_port(Some(self.address.port())).is_ok();
        assert!(changed, "the server is reached over TCP");
        url.into()
    }

    /// Closes the connection of the next client that commits, after its commit is done.
    pub fn lose_next_commit(&self) {
        self.commits_to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Commits whose confirmation is still to be lost.
    #[must_use]
    pub fn commits_to_lose(&self) -> usize {
        self.commits_to_lose.load(Ordering::SeqCst)
    }
}

/// Forwards both directions, until one side ends or a confirmation is lost.
async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    commits_to_lose: &AtomicUsize,
) -> std::io::Result<()> {
    let (mut request, mut response) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            count = client.read(&mut request) => {
                let request = &request[..count?];
                if request.is_empty() {
                    return Ok(());
                }
                server.write_all(request).await?;
                let commits = request.windows(COMMIT.len()).any(|bytes| bytes == COMMIT);
                let one_less = |count: usize| count.checked_sub(1);
                let order = Ordering::SeqCst;
                if commits && commits_to_lose.fetch_update(order, order, one_less).is_ok() {
                    // The commit is done when the server confirms it.
                    let _lost = server.read(&mut response).await?;
                    return Ok(());
                }
            }
            count = server.read(&mut response) => {
                let response = &response[..count?];
                if response.is_empty() {
                    return Ok(());
                }
                client.write_all(response).await?;
            }
        }
    }
}
