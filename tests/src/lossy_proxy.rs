//! A way to PostgreSQL on which answers get lost: a transaction is committed, and who
//! asked for that never hears of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What a transaction's end looks like on the wire: a simple query.
const COMMIT: &[u8] = b"COMMIT\0";
const PORT: u16 = 5432;

/// Passes everything on until it is told to lose something. Ends with its test.
#[derive(Debug)]
pub struct LosingLine {
    address: SocketAddr,
    to_lose: Arc<AtomicUsize>,
}

impl LosingLine {
    /// A line to the server of this database.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn to(database_url: &str) -> Self {
        let url = Url::parse(database_url).expect("a database has a URL");
        let host = url.host_str().expect("the server has a host").to_owned();
        let server = (host, url.port().unwrap_or(PORT));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let to_lose = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&to_lose);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, to_lose) = (server.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        // Whoever is cut off finds out by himself.
                        let _cut_off = pass_on(client, server, &to_lose).await;
                    }
                });
            }
        });
        Self { address, to_lose }
    }

    /// The database behind it.
    ///
    /// # Panics
    /// When that is no database.
    #[must_use]
    pub fn url_of(&self, database_url: &str) -> String {
        let mut url = Url::parse(database_url).expect("a database has a URL");
        let changed = url.set_ip_host(self.address.ip()).is_ok()
            && url.set_port(Some(self.address.port())).is_ok();
        assert!(changed, "the server is reached over TCP");
        url.into()
    }

    /// Cuts whoever commits next off once that is done.
    pub fn lose_next_commit(&self) {
        self.to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Commits that are still to be lost.
    #[must_use]
    pub fn left_to_lose(&self) -> usize {
        self.to_lose.load(Ordering::SeqCst)
    }
}

/// Passes both directions on, until one side ends or an answer is lost.
async fn pass_on(
    mut client: TcpStream,
    mut server: TcpStream,
    to_lose: &AtomicUsize,
) -> std::io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let asked = &asked[..count?];
                if asked.is_empty() {
                    return Ok(());
                }
                server.write_all(asked).await?;
                let commits = asked.windows(COMMIT.len()).any(|bytes| bytes == COMMIT);
                let one_less = |count: usize| count.checked_sub(1);
                let order = Ordering::SeqCst;
                if commits && to_lose.fetch_update(order, order, one_less).is_ok() {
                    // It is done once the server says so.
                    let _lost = server.read(&mut answered).await?;
                    return Ok(());
                }
            }
            count = server.read(&mut answered) => {
                let answered = &answered[..count?];
                if answered.is_empty() {
                    return Ok(());
                }
                client.write_all(answered).await?;
            }
        }
    }
}
