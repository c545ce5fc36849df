//! The port on which the page is served: few connections at once, none for long, and one report a second for all of them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::page::{Page, SCRIPT, STYLE};
use super::request::{Refused, WebAccess, WebPath, WebToken};
use crate::http;
use crate::local::{self, Answer, PendingRequest, ask};
use crate::saved::SavedFigures;

/// Connections at once: all streams, and what browsers load the page with (six each). Others are closed unanswered.
const AT_ONCE: usize = 32;
/// Streams of events at once; others are refused.
const STREAMS: usize = 8;
/// How old a page may be, and how far events are apart: the sender, which a report costs time, is asked once a second at most.
const FRESH: Duration = Duration::from_secs(1);
/// Events of a stream: ten minutes of them. Browsers ask for another stream then.
const EVENTS: u32 = 600;

/// Nothing but what this server has, no script or style within the page, and no page around it (Content Security Policy Level 3).
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// What every answer has.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];
/// Media types.
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const EVENT_STREAM: &str = "text/event-stream";

/// Why no page is served.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve the page at {address}: {source}; choose another address with `web = \"127.0.0.1:PORT\"`"
)]
pub struct WebError {
    address: SocketAddr,
    source: io::Error,
}

/// An open port for the page.
#[derive(Debug)]
pub struct Web {
    pub(super) listener: std::net::TcpListener,
    access: WebAccess,
    figures: watch::Receiver<Option<Arc<SavedFigures>>>,
}

/// What all connections have.
struct Shared {
    access: WebAccess,
    asks: mpsc::Sender<PendingRequest>,
    figures: watch::Receiver<Option<Arc<SavedFigures>>>,
    last: tokio::sync::Mutex<Option<Arc<Page>>>,
    streams: Arc<Semaphore>,
}

impl Web {
    /// Opens the port, for those who have the token if there is one; `random` is used for nothing else.
    ///
    /// # Errors
    /// [`WebError`], as `bind(2)`.
    pub(crate) fn bind(
        address: SocketAddr,
        token: Option<WebToken>,
        random: &[u8; 32],
        figures: watch::Receiver<Option<Arc<SavedFigures>>>,
    ) -> Result<Web, WebError> {
        let failed = |source| WebError { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let access = WebAccess::new(listener.local_addr().map_err(failed)?, token, random);
        Ok(Web { listener, access, figures })
    }

    /// Serves the page until the runtime ends, in which it is called.
    ///
    /// # Errors
    /// As the runtime's, when it does not take the socket.
    pub(crate) fn serve(self, asks: mpsc::Sender<PendingRequest>) -> io::Result<()> {
        let Web { listener, access, figures } = self;
        let listener = TcpListener::from_std(listener)?;
        let streams = Arc::new(Semaphore::new(STREAMS));
        let shared = Shared { access, asks, figures, last: tokio::sync::Mutex::default(), streams };
        let shared = Arc::new(shared);
        let full = |from| tracing::debug!(%from, "too many connections to the page");
        let converse = move |stream| converse(stream, Arc::clone(&shared));
        tokio::spawn(http::accept(listener, ("the page", AT_ONCE), full, converse));
        Ok(())
    }
}

/// Answers one request and closes the connection, at the latest when the client takes nothing any more.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let shared = &shared;
    let deadline = Deadline::default();
    let service = service_fn(|request| {
        let deadline = deadline.clone();
        async move { Ok::<_, Infallible>(answer(&request, shared, deadline).await) }
    });
    let mut connection = std::pin::pin!(http::one_request().serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "the page");
                }
                return;
            }
            () = sleep_until(deadline.get()) => {
                if deadline.get() <= Instant::now() {
                    tracing::debug!("a client did not take the page");
                    return;
                }
            }
        }
    }
}

async fn answer(request: &Request<Incoming>, shared: &Arc<Shared>, deadline: Deadline) -> Response<WebBody> {
    let asked = shared.access.admit(request.method(), request.uri(), request.headers());
    let path = match asked {
        Ok(path) => path,
        Err(refused) => return refusal(&shared.access, refused),
    };
    match path {
        WebPath::Style => whole(StatusCode::OK, CSS, STYLE.to_owned()),
        WebPath::Script => whole(StatusCode::OK, JAVASCRIPT, SCRIPT.to_owned()),
        WebPath::Page => match shared.page().await {
            Some(page) => whole(StatusCode::OK, HTML, page.html()),
            None => whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, "the node is ending\n".to_owned()),
        },
        WebPath::Events if request.method() == Method::HEAD => {
            whole(StatusCode::OK, EVENT_STREAM, String::new())
        }
        WebPath::Events => match Arc::clone(&shared.streams).try_acquire_owned() {
            Ok(place) => respond(StatusCode::OK, EVENT_STREAM, events(shared, place, deadline)),
            Err(_) => {
                let words = format!("{STREAMS} pages are live already, which is the most: close one\n");
                whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, words)
            }
        },
    }
}

fn refusal(access: &WebAccess, refused: Refused) -> Response<WebBody> {
    let (status, words) = access.words(&refused);
    let mut response = whole(status, TEXT, words);
    let headers = response.headers_mut();
    match refused {
        Refused::Method => drop(headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"))),
        Refused::Token => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        Refused::Welcome(cookie) => {
            headers.insert(LOCATION, HeaderValue::from_static("/"));
            if let Ok(cookie) = HeaderValue::try_from(cookie) {
                headers.insert(SET_COOKIE, cookie);
            }
        }
        Refused::Host | Refused::Origin | Refused::Path => {}
    }
    response
}

fn whole(status: StatusCode, media: &'static str, content: String) -> Response<WebBody> {
    respond(status, media, WebBody::Whole(Some(content.into())))
}

fn respond(status: StatusCode, media: &'static str, body: WebBody) -> Response<WebBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A stream of what changes, made by a task of its own until it is not taken any more.
fn events(shared: &Arc<Shared>, place: OwnedSemaphorePermit, deadline: Deadline) -> WebBody {
    // One event waits at most: a client that is slow gets what is there when it has taken that.
    let (sender, events) = mpsc::channel(1);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let _place = place;
        let mut sent: Option<Arc<Page>> = None;
        for _ in 0..EVENTS {
            let Some(page) = shared.page().await else { return };
            if sender.send(page.event(sent.as_deref()).into()).await.is_err() {
                return;
            }
            let next = page.made + FRESH;
            sent = Some(page);
            sleep_until(next).await;
        }
    });
    WebBody::Events { events, deadline }
}

impl Shared {
    /// The page of now or of less than a second ago; none when the process is ending.
    async fn page(&self) -> Option<Arc<Page>> {
        // Those who come while a page is being made wait for it here.
        let mut last = self.last.lock().await;
        if let Some(page) = last.as_ref().filter(|page| page.made.elapsed() < FRESH) {
            return Some(Arc::clone(page));
        }
        let (_written, seen) = oneshot::channel();
        let Answer::Report { report } = ask(&self.asks, local::Request::Show, seen).await else {
            return None;
        };
        let figures = self.figures.borrow().clone();
        let page = Arc::new(Page::new(&report, figures, last.as_deref(), Instant::now()));
        *last = Some(Arc::clone(&page));
        Some(page)
    }
}

/// When a connection is closed, whatever it does.
#[derive(Clone, Debug)]
struct Deadline(Arc<Mutex<Instant>>);

impl Default for Deadline {
    /// Time for the request and for an answer.
    fn default() -> Deadline {
        Deadline(Arc::new(Mutex::new(Instant::now() + 2 * http::PATIENCE)))
    }
}

impl Deadline {
    fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client took something.
    fn put_off(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + 2 * http::PATIENCE;
    }
}

/// What is answered.
enum WebBody {
    /// All at once.
    Whole(Option<Bytes>),
    /// As it comes.
    Events { events: mpsc::Receiver<Bytes>, deadline: Deadline },
}

impl Body for WebBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            WebBody::Whole(content) => content.take().filter(|content| !content.is_empty()),
            // It is asked for the next event when the client has taken the last.
            WebBody::Events { events, deadline } => {
                let next = ready!(events.poll_recv(context));
                deadline.put_off();
                next
            }
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, WebBody::Whole(content) if content.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            WebBody::Whole(content) => SizeHint::with_exact(content.as_ref().map_or(0, Bytes::len) as u64),
            WebBody::Events { .. } => SizeHint::default(),
        }
    }
}
