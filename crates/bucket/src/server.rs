//! The server: connections, signatures, faults.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, DATE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::SimpleAuth;
use s3s::dto::TimestampFormat;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpResponse, S3Error, S3ErrorCode};
use tokio::sync::oneshot;

use crate::body::{self, ChunkedBody, CutBody};
use crate::control;
use crate::faults::{Fault, Faults};
use crate::folder::Folder;
use crate::store::{Store, shifted};

/// How long a request that gets no answer keeps its connection: longer than any client waits.
const SILENCE: Duration = Duration::from_secs(600);

/// How long the system waits for a task of the disk when the server ends.
const LAST_TASKS: Duration = Duration::from_secs(5);

/// A connection ends without an answer, because a rule says so or something failed.
#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is broken")
    }
}

impl Error for Broken {}

/// Who may use the store.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The access key: a name.
    pub access_key: String,
    /// The secret key, with which requests are signed (AWS Signature Version 4).
    pub secret_key: String,
}

impl Credentials {
    /// Those of tests. Nothing that they protect is secret.
    #[must_use]
    pub fn of_tests() -> Credentials {
        Credentials { access_key: "strait-tests".to_owned(), secret_key: "strait-tests-secret".to_owned() }
    }
}

/// A server on a thread of its own. Dropping it ends it as a kill would: connections break, what was not answered may be there or not.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    faults: Faults,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// What a server runs with.
pub(crate) struct Setting {
    pub(crate) listener: TcpListener,
    pub(crate) folder: Folder,
    pub(crate) credentials: Credentials,
    pub(crate) faults: Faults,
    pub(crate) control: Option<PathBuf>,
}

impl Bucket {
    /// Serves buckets below `root`, of which it makes this one, on this listener, which may belong to another network namespace.
    ///
    /// # Errors
    /// When the root or the bucket cannot be made, or no thread can be started.
    pub fn serve(
        listener: TcpListener,
        root: &Path,
        bucket: &str,
        credentials: Credentials,
    ) -> io::Result<Bucket> {
        let (faults, (end, ended)) = (Faults::default(), oneshot::channel());
        let address = listener.local_addr()?;
        let folder = Folder::open(root)?;
        folder.make_bucket(bucket)?;
        let setting = Setting { listener, folder, credentials, faults: faults.clone(), control: None };
        let thread = thread::Builder::new().name("bucket".to_owned()).spawn(move || {
            run(setting, async {
                let _ = ended.await;
            })
        })?;
        Ok(Bucket { address, faults, end: Some(end), thread: Some(thread) })
    }

    /// Serves buckets below `root`, of which it makes this one, on a free port of loopback.
    ///
    /// # Errors
    /// As [`Bucket::serve`], and when no port is free.
    pub fn on_loopback(root: &Path, bucket: &str, credentials: Credentials) -> io::Result<Bucket> {
        Bucket::serve(TcpListener::bind("127.0.0.1:0")?, root, bucket, credentials)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, such as `http://127.0.0.1:9000`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The faults that are switched on here.
    #[must_use]
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves on this thread until the process ends, with these buckets, and with a Unix socket for orders at `control` if one is given.
///
/// # Errors
/// When the root, a bucket or the socket cannot be made, or the system gives no runtime.
pub fn serve_here(
    listener: TcpListener,
    root: &Path,
    buckets: &[String],
    credentials: Credentials,
    control: Option<PathBuf>,
) -> io::Result<()> {
    let folder = Folder::open(root)?;
    for bucket in buckets {
        folder.make_bucket(bucket)?;
    }
    let setting = Setting { listener, folder, credentials, faults: Faults::default(), control };
    run(setting, std::future::pending())
}

/// Runs a server until `ended`.
///
/// # Errors
/// When the system gives no runtime, or the socket of the control cannot be made.
pub(crate) fn run(setting: Setting, ended: impl Future<Output = ()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let Setting { listener, folder, credentials, faults, control } = setting;
        if let Some(path) = &control {
            let socket = tokio::net::UnixListener::bind(path)?;
            tokio::spawn(control::serve(socket, faults.clone()));
        }
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut builder = S3ServiceBuilder::new(Store::new(folder, faults.clone()));
        builder.set_auth(SimpleAuth::from_single(credentials.access_key, credentials.secret_key));
        let server = Arc::new(Server { service: builder.build(), faults });
        tokio::select! {
            () = accept(&listener, &server) => {}
            () = ended => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(LAST_TASKS);
    outcome
}

async fn accept(listener: &tokio::net::TcpListener, server: &Arc<Server>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is free, or the like: others will end.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let server = Arc::clone(server);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { server.answer(request).await }
            });
            let mut connection = hyper::server::conn::http1::Builder::new();
            // An error here is the client's, or a fault that was asked for.
            let _ = connection.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

struct Server {
    service: S3Service,
    faults: Faults,
}

impl Server {
    /// The answer to a request; an error ends the connection without one.
    async fn answer(&self, request: Request<Incoming>) -> Result<HttpResponse, Broken> {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let fault = self.faults.of(request.method().as_str(), target);
        let known = known_length(&request);
        let request = request.map(known);
        let mut answer = match fault {
            Some(Fault::Status(status)) => refuse(request, refusal(status)).await?,
            Some(Fault::Skewed) => refuse(request, S3Error::new(S3ErrorCode::RequestTimeTooSkewed)).await?,
            Some(Fault::Silence) => {
                tokio::time::sleep(SILENCE).await;
                return Err(Broken);
            }
            Some(Fault::CutRequest(length)) => {
                let request = request.map(|body| Body::http_body_unsync(CutBody::new(body, length)));
                let _ = self.call(request).await;
                return Err(Broken);
            }
            Some(Fault::LostAnswer) => {
                self.call(request).await?;
                return Err(Broken);
            }
            Some(Fault::CutAnswer(length)) => {
                let answer = self.call(request).await?;
                answer.map(|body| Body::http_body_unsync(CutBody::new(body, length)))
            }
            Some(Fault::Slow(_)) | None => self.call(request).await?,
        };
        if let Some(delay) = fault.and_then(Fault::delay) {
            tokio::time::sleep(delay).await;
        }
        self.date(&mut answer)?;
        Ok(answer)
    }

    async fn call(&self, request: Request<Body>) -> Result<HttpResponse, Broken> {
        self.service.call(request).await.map_err(|_| Broken)
    }

    /// Says the time, where the clock is to be wrong.
    fn date(&self, answer: &mut HttpResponse) -> Result<(), Broken> {
        let seconds = self.faults.clock_seconds();
        if seconds != 0 {
            let mut date = Vec::new();
            shifted(SystemTime::now(), seconds)
                .format(TimestampFormat::HttpDate, &mut date)
                .map_err(|_| Broken)?;
            answer.headers_mut().insert(DATE, HeaderValue::from_bytes(&date).map_err(|_| Broken)?);
        }
        Ok(())
    }
}

/// What the body of this request becomes: one whose length seems known, where no header tells it.
fn known_length(request: &Request<Incoming>) -> fn(Incoming) -> Body {
    let told = request.headers().contains_key(CONTENT_LENGTH) || request.method() != Method::PUT;
    if told { Body::from } else { |body| Body::http_body_unsync(ChunkedBody::new(body)) }
}

/// The error that goes with a status.
fn refusal(status: u16) -> S3Error {
    let code = match status {
        403 => S3ErrorCode::AccessDenied,
        500 => S3ErrorCode::InternalError,
        503 => S3ErrorCode::SlowDown,
        _ => S3ErrorCode::Custom("Refused".into()),
    };
    let mut refusal = S3Error::new(code);
    refusal.set_status_code(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    refusal
}

/// Reads a request to its end, so that the client sees the answer and not a broken connection, and refuses it.
async fn refuse(request: Request<Body>, refusal: S3Error) -> Result<HttpResponse, Broken> {
    let mut body = Box::pin(request.into_body());
    while body::next(&mut body).await.map_err(|_| Broken)?.is_some() {}
    refusal.to_http_response().map_err(|_| Broken)
}
