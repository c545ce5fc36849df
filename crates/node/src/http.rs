//! What the servers of metrics and of the page have in common: few connections at once, and one request for each of them.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// How long a client may take to send its request, and again to take its answer: as at the local socket.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of a request's head; hyper has no smaller buffer.
const REQUEST_MAX: usize = 8192;

/// Takes connections, `most` at once, for `converse`; one beyond that is closed unanswered, which `full` hears of.
pub(crate) async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    (what, most): (&'static str, usize),
    full: impl Fn(SocketAddr),
    converse: impl Fn(TcpStream) -> F,
) {
    let room = Arc::new(Semaphore::new(most));
    loop {
        match listener.accept().await {
            Ok((stream, from)) => match Arc::clone(&room).try_acquire_owned() {
                Ok(place) => {
                    let conversation = converse(stream);
                    tokio::spawn(async move {
                        conversation.await;
                        drop(place);
                    });
                }
                Err(_) => full(from),
            },
            // Out of descriptors: others will be closed.
            Err(error) => {
                tracing::warn!(%error, "{what}");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// A server for one request on a connection.
pub(crate) fn one_request() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(REQUEST_MAX).keep_alive(false);
    http
}
