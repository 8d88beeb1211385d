//! A load balancer in front of the APIs: the address that providers call. It forwards
//! each connection to an API that accepts it, and reads nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, apis: Vec<SocketAddr>) {
    let (apis, next) = (Arc::new(apis), AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (apis, first) = (Arc::clone(&apis), next.fetch_add(1, Ordering::Relaxed));
        connections.spawn(forward(client, apis, first));
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(mut client: TcpStream, apis: Arc<Vec<SocketAddr>>, first: usize) {
    for nth in 0..apis.len() {
        let api = apis[(first + nth) % apis.len()];
        if let Ok(mut connection) = TcpStream::connect(api).await {
            // Either side may end the connection at any time.
            let _ended = copy_bidirectional(&mut client, &mut connection).await;
            return;
        }
    }
}
