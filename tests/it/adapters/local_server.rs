//! A server that handles one connection after the other and writes prepared replies, valid
//! or not: no HTTP library would send some of them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

/// What the server does with a connection.
#[derive(Clone, Copy)]
pub(super) enum Behaviour {
    /// Closes it without reading.
    Close,
    /// Reads the request and closes.
    ReadAndClose,
    /// Reads the request and never replies.
    Silent,
    /// Reads the request, writes these bytes and closes.
    Say(&'static str),
    /// Reads the requests, writes these replies one after the other, and then repeats the
    /// last one.
    SayInTurn(&'static [&'static str]),
    /// Reads the request and replies with a body of this many bytes.
    Flood(usize),
}

/// A running server. Dropping it ends its task.
pub(super) struct LocalServer {
    pub(super) url: Url,
    task: JoinHandle<()>,
    requests: tokio::sync::mpsc::UnboundedReceiver<String>,
}

impl LocalServer {
    pub(super) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            let mut turn = 0;
            while let Ok((mut stream, _)) = listener.accept().await {
                if matches!(behaviour, Behaviour::Close) {
                    continue;
                }
                let request = read_request(&mut stream).await;
                // The receiver may be dropped already.
                let _ = sender.send(request);
                match behaviour {
                    Behaviour::Close | Behaviour::ReadAndClose => {}
                    Behaviour::Silent => open.push(stream),
                    Behaviour::Say(text) => write(&mut stream, text).await,
                    Behaviour::SayInTurn(texts) => {
                        write(&mut stream, texts[turn.min(texts.len() - 1)]).await;
                        turn += 1;
                    }
                    Behaviour::Flood(bytes) => {
                        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
                        write(&mut stream, &head).await;
                        write(&mut stream, &"x".repeat(bytes)).await;
                    }
                }
            }
        });
        let url = Url::parse(&format!("http://{address}")).unwrap();
        Self {
            url,
            task,
            requests,
        }
    }

    /// The requests that the server read since the last call.
    pub(super) fn requests_so_far(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }

    /// The next request that the server reads.
    pub(super) async fn request(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write(stream: &mut TcpStream, text: &str) {
    // The client may have closed the connection.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.flush().await;
}

/// Head and body of one request, by its `content-length`.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let lengths = head.lines().filter_map(|line| line.split_once(':'));
            let mut lengths =
                lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = lengths
                .next()
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if bytes.len() >= head.len() + 4 + length {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}
