//! The port on which metrics of a node, or of a directory, are served: few connections at once, none for long, and one report for all of them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::text;
use crate::http;
use crate::local::{self, Answer, PendingRequest, ask};

/// The exposition format's media type (prometheus.io, "Text-based format").
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Connections at once, as many as the local socket takes; others are closed unanswered.
const AT_ONCE: usize = 8;
/// How old a report may be. Prometheus asks every few seconds; the sender, which a report costs time, is asked ten
/// times a second at most.
const FRESH: Duration = Duration::from_millis(100);

/// Why no metrics are served.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve metrics at {address}: {source}; choose another address with `metrics = \"127.0.0.1:PORT\"`"
)]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// What has metrics to serve.
pub trait MetricsSource: Send + Sync + 'static {
    /// The metrics of now in the text exposition format; none when the process is ending.
    fn text(&self) -> impl Future<Output = Option<String>> + Send;
}

impl MetricsSource for mpsc::Sender<PendingRequest> {
    async fn text(&self) -> Option<String> {
        let (_written, seen) = oneshot::channel();
        let Answer::Report { report } = ask(self, local::Request::Show, seen).await else {
            return None;
        };
        Some(text(&report))
    }
}

/// An open port for metrics.
#[derive(Debug)]
pub struct Metrics {
    pub(super) listener: std::net::TcpListener,
    refused: Arc<AtomicU64>,
}

impl Metrics {
    /// Opens the port.
    ///
    /// # Errors
    /// [`MetricsError`], as `bind(2)`.
    pub fn bind(address: SocketAddr) -> Result<Metrics, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Metrics { listener, refused: Arc::default() })
    }

    /// How many connections were closed because too many were open.
    #[must_use]
    pub fn refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// Serves `/metrics` until the runtime ends, in which it is called.
    ///
    /// # Errors
    /// As the runtime's, when it does not take the socket.
    pub fn serve(self, source: impl MetricsSource) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let snapshot = Arc::new(Snapshot { source, last: Mutex::default() });
        let refused = self.refused;
        let full = move |_| {
            refused.fetch_add(1, Ordering::Relaxed);
        };
        let converse = move |stream| converse(stream, Arc::clone(&snapshot));
        tokio::spawn(http::accept(listener, ("metrics", AT_ONCE), full, converse));
        Ok(())
    }
}

/// Answers one request and closes the connection.
async fn converse<S: MetricsSource>(stream: TcpStream, snapshot: Arc<Snapshot<S>>) {
    let snapshot = snapshot.as_ref();
    let service = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request, snapshot).await) });
    let connection = http::one_request().serve_connection(TokioIo::new(stream), service);
    match timeout(2 * http::PATIENCE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "metrics"),
        Err(_) => tracing::debug!("a client did not take its metrics"),
    }
}

async fn answer<S: MetricsSource>(request: &Request<Incoming>, snapshot: &Snapshot<S>) -> Response<String> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match snapshot.text().await {
            Some(text) => (StatusCode::OK, text),
            None => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
        },
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// The last metrics, which answer all requests within [`FRESH`].
struct Snapshot<S> {
    source: S,
    last: Mutex<Option<(Instant, String)>>,
}

impl<S: MetricsSource> Snapshot<S> {
    /// The metrics of now or of a moment ago; none when the process is ending.
    async fn text(&self) -> Option<String> {
        // Those who come while a report is being made wait for it here.
        let mut last = self.last.lock().await;
        if let Some((_, text)) = last.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            return Some(text.clone());
        }
        let text = self.source.text().await?;
        *last = Some((Instant::now(), text.clone()));
        Some(text)
    }
}
