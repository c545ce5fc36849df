//! etcd through its JSON gateway (etcd 3.4 and later, `/v3`): certificates and the list are there, and the store follows it.
//!
//! ```text
//! PREFIX certificates/ hash of key in hexadecimal      a certificate
//! PREFIX daily/ hash of key in hexadecimal             daily keys of the node
//! PREFIX list                                          the revocation list
//! ```
//!
//! Who may write to etcd can remove or set back what is there, but what the authority did not sign is not taken, and nothing that is
//! kept here goes back.

mod follow;
mod gateway;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Client, Identity};
use serde_json::{Value, json};
use strait_keying::directory::{CERTIFICATE_MAX, LIST_MAX};
use strait_keying::sessionless::{DAILY_KEYS_MAX, key_name};

use crate::keeper::{Found, Judged, Put};
use crate::settings::EtcdSettings;
pub(crate) use follow::follow;
use gateway::{Range, decoded, digits, encoded, of_digits};
use tls::TlsTrust;

/// How long etcd may take to answer: its own request timeout is 7 s (5 s, and two election timeouts).
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// After how long silence the system asks whether etcd is still there, and how often, until a watch counts as broken.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVES: u32 = 3;
/// Most bytes of an answer, or of one message of a watch: etcd's are some 1.5 MiB (`--max-request-bytes`), and base64 in JSON.
const ANSWER_MAX: usize = 8 << 20;
/// Keys of one answer.
const PAGE: usize = 256;
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 32;

/// What is wrong with etcd.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// A file for TLS.
    #[error("cannot use {path} for TLS to etcd: {words}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        words: String,
    },
    /// No client.
    #[error("no TLS to etcd: {0}")]
    Tls(#[source] reqwest::Error),
    /// It is not reached, or answers nothing.
    #[error("etcd does not answer: {0}")]
    Away(String),
    /// One of the two certificates for TLS is not taken.
    #[error("no TLS to etcd: {0}")]
    Untrusted(String),
    /// It refuses.
    #[error("etcd refuses: {0}")]
    Refuses(String),
    /// What it says is not what etcd says.
    #[error("etcd answered something else than etcd does: {0}")]
    Strange(&'static str),
    /// What was watched is no longer there in all its changes.
    #[error("etcd has compacted what was not read yet")]
    Compacted,
}

/// A client of etcd.
#[derive(Debug)]
pub(crate) struct Etcd {
    client: Client,
    urls: Vec<String>,
    /// Which member is asked.
    at: AtomicUsize,
    prefix: String,
    trust: TlsTrust,
}

impl Etcd {
    pub(crate) fn new(settings: &EtcdSettings) -> Result<Etcd, EtcdError> {
        let mut builder = Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(KEEPALIVES);
        if let Some(ca) = &settings.ca {
            let roots = reqwest::Certificate::from_pem_bundle(&read(ca)?).map_err(wrong(ca))?;
            if roots.is_empty() {
                return Err(EtcdError::File { path: ca.clone(), words: "it has no certificate".to_owned() });
            }
            builder = builder.tls_certs_only(roots);
        }
        if let Some((certificate, key)) = &settings.identity {
            let both = [read(key)?, b"\n".to_vec(), read(certificate)?].concat();
            builder = builder.identity(Identity::from_pem(&both).map_err(wrong(certificate))?);
        }
        let client = builder.build().map_err(EtcdError::Tls)?;
        let urls = settings.urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        Ok(Etcd {
            client,
            urls,
            at: AtomicUsize::new(0),
            prefix: settings.prefix.clone(),
            trust: TlsTrust::of(settings),
        })
    }

    /// The key of what was judged, if it may be kept.
    pub(crate) fn key(&self, judged: &Judged) -> Option<String> {
        match judged {
            Judged::List(_) => Some(format!("{}list", self.prefix)),
            Judged::Certificate(certificate) => {
                Some(format!("{}certificates/{}", self.prefix, digits(certificate.key_name().bytes())))
            }
            Judged::DailyKeys(keys) => {
                Some(format!("{}daily/{}", self.prefix, digits(key_name(keys.node()).bytes())))
            }
            Judged::Refused(_) => None,
        }
    }

    /// Puts certificates, lists and daily keys in one transaction; no key may come twice.
    pub(crate) async fn put(&self, all: &[Judged]) -> Result<(), EtcdError> {
        let put = |one: &Judged| {
            let bytes = match one {
                Judged::List(bytes) => bytes,
                Judged::Certificate(certificate) => certificate.as_bytes(),
                Judged::DailyKeys(keys) => keys.as_bytes(),
                Judged::Refused(_) => return None,
            };
            let put = json!({ "key": encoded(self.key(one)?.as_bytes()), "value": encoded(bytes) });
            Some(json!({ "request_put": put }))
        };
        let puts: Vec<Value> = all.iter().filter_map(put).collect();
        if puts.is_empty() {
            return Ok(());
        }
        let answer = self.ask("/v3/kv/txn", &json!({ "success": puts })).await?;
        let done = answer.get("succeeded").and_then(Value::as_bool).unwrap_or(false);
        if done { Ok(()) } else { Err(EtcdError::Strange("a transaction without conditions failed")) }
    }

    /// What the entry `key` with `value` stands for, if it is one of ours; of a certificate and of daily keys with the
    /// hash under which it is.
    fn entry(&self, key: &[u8], value: Vec<u8>) -> Option<Found> {
        let name = core::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        if let Some(hash) = name.strip_prefix("daily/") {
            let is_one = hash.len() == HASH_DIGITS && value.len() <= DAILY_KEYS_MAX;
            return if is_one { Some((Some(of_digits(hash)?), Put::DailyKeys(value.into()))) } else { None };
        }
        match name.strip_prefix("certificates/") {
            Some(hash) if hash.len() == HASH_DIGITS && value.len() <= CERTIFICATE_MAX => {
                Some((Some(of_digits(hash)?), Put::Certificate(value.into())))
            }
            None if name == "list" && value.len() <= LIST_MAX => Some((None, Put::List(value.into()))),
            _ => None,
        }
    }

    /// A question and its answer; of several members the next is asked when one does not answer.
    async fn ask(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let mut failed = EtcdError::Strange("no address");
        for _ in 0..self.urls.len() {
            let asked = tokio::time::timeout(PATIENCE, async {
                let mut response = self.open(path, body).await?;
                let mut answer = Vec::new();
                while let Some(more) = response.chunk().await.map_err(self.away())? {
                    answer.extend_from_slice(&more);
                    if answer.len() > ANSWER_MAX {
                        return Err(EtcdError::Strange("too long an answer"));
                    }
                }
                serde_json::from_slice(&answer).map_err(|_| EtcdError::Strange("no JSON"))
            });
            match asked.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error @ EtcdError::Refuses(_))) => return Err(error),
                Ok(Err(error)) => failed = error,
                Err(_) => failed = EtcdError::Away(format!("nothing came in {} s", PATIENCE.as_secs())),
            }
            self.at.fetch_add(1, Ordering::Relaxed);
        }
        Err(failed)
    }

    /// The answer to a question, once it begins.
    async fn open(&self, path: &str, body: &Value) -> Result<reqwest::Response, EtcdError> {
        let at = self.at.load(Ordering::Relaxed) % self.urls.len().max(1);
        let url = self.urls.get(at).ok_or(EtcdError::Strange("no address"))?;
        let request = self.client.post(format!("{url}{path}")).body(body.to_string());
        let mut response = request.send().await.map_err(self.away())?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let first = response.chunk().await.ok().flatten().unwrap_or_default();
        let words: Option<Value> = serde_json::from_slice(&first).ok();
        let words = words.as_ref().and_then(|words| words.get("error")?.as_str()).unwrap_or_default();
        let words = format!("{status} {}", words.chars().take(200).collect::<String>());
        if status.is_server_error() { Err(EtcdError::Away(words)) } else { Err(EtcdError::Refuses(words)) }
    }

    /// A page of what is there, from `key` on, as of `revision`, or as of now.
    async fn range(&self, key: &[u8], revision: Option<i64>) -> Result<Range, EtcdError> {
        let mut body = json!({
            "key": encoded(key), "range_end": encoded(&self.end()), "limit": PAGE.to_string(),
            "sort_target": "KEY", "sort_order": "ASCEND",
        });
        if let (Some(revision), Some(body)) = (revision, body.as_object_mut()) {
            body.insert("revision".to_owned(), revision.to_string().into());
        }
        Range::of(&self.ask("/v3/kv/range", &body).await?)
    }

    /// The first key behind all that begin with the prefix, which ends with `/`.
    fn end(&self) -> Vec<u8> {
        let mut end = self.prefix.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        end
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EtcdError> {
    std::fs::read(path).map_err(|error| EtcdError::File { path: path.to_owned(), words: error.to_string() })
}

fn wrong(path: &Path) -> impl Fn(reqwest::Error) -> EtcdError {
    move |error| EtcdError::File { path: path.to_owned(), words: chain(&error) }
}

/// An error with its causes, which say what is wrong.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words = format!("{words}: {cause}");
        next = cause.source();
    }
    words
}

impl Etcd {
    /// What a failed request says of etcd.
    fn away(&self) -> impl Fn(reqwest::Error) -> EtcdError {
        let trust = self.trust;
        move |error| match trust.judge(&error) {
            Some(words) => EtcdError::Untrusted(words),
            None => EtcdError::Away(chain(&error)),
        }
    }

    fn watch_body(&self, revision: i64) -> Value {
        json!({ "create_request": {
            "key": encoded(self.prefix.as_bytes()), "range_end": encoded(&self.end()),
            "start_revision": revision.to_string(), "fragment": true,
        } })
    }

    fn put_of(&self, kv: &Value) -> Option<Found> {
        self.entry(&decoded(kv.get("key")?)?, decoded(kv.get("value")?)?)
    }
}
