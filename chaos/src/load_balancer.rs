//! A load balancer in front of the APIs, which is the address that providers call, or in front
//! of the servers. It forwards each connection to a target that accepts it, and reads nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves for as long as it is polled. Each connection tries the targets in turn, from the
/// next one on.
pub(crate) async fn serve(listener: TcpListener, targets: Vec<SocketAddr>) {
    let next = AtomicUsize::new(0);
    serve_from(listener, targets, || next.fetch_add(1, Ordering::Relaxed)).await;
}

/// Serves for as long as it is polled. Each connection goes to the first target that accepts
/// it.
pub(crate) async fn serve_in_order(listener: TcpListener, targets: Vec<SocketAddr>) {
    serve_from(listener, targets, || 0).await;
}

async fn serve_from(listener: TcpListener, targets: Vec<SocketAddr>, first: impl Fn() -> usize) {
    let targets = Arc::new(targets);
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(forward(client, Arc::clone(&targets), first()));
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(mut client: TcpStream, targets: Arc<Vec<SocketAddr>>, first: usize) {
    for nth in 0..targets.len() {
        let target = targets[(first + nth) % targets.len()];
        if let Ok(mut connection) = TcpStream::connect(target).await {
            // Either side may end the connection at any time.
            let _ended = copy_bidirectional(&mut client, &mut connection).await;
            return;
        }
    }
}
