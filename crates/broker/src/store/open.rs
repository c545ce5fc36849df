//! Opening the store that the configuration names.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use strait_node::config::{BrokerBucket, BrokerStore};

use super::{Patience, Store};

/// Bytes of a file with credentials at most.
const CREDENTIALS_MAX: u64 = 16 << 10;
/// Connections to a server that are kept for the next request.
const KEPT: usize = 32;

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file or folder.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Credentials that others can read.
    #[error("{0} can be read by others; run `chmod 600 {0}`")]
    Open(PathBuf),
    /// No credentials.
    #[error(
        "{0} needs the lines `access_key_id = ...` and `secret_access_key = ...`, and has nothing else but `session_token = ...`"
    )]
    Credentials(PathBuf),
    /// The store itself.
    #[error("{0}")]
    Store(#[from] object_store::Error),
}

/// Opens the store. A folder is made where there is none.
///
/// # Errors
/// [`OpenError`] with what is wrong.
pub fn open(place: &BrokerStore, patience: Patience) -> Result<Store, OpenError> {
    match place {
        BrokerStore::Folder(folder) => {
            make(folder)?;
            let inner =
                LocalFileSystem::new_with_prefix(folder)?.with_fsync(true).with_automatic_cleanup(true);
            let mut store = Store::new(Arc::new(inner), patience);
            store.folder = Some(folder.clone());
            Ok(store)
        }
        BrokerStore::Bucket(bucket) => Ok(Store::new(bucket_store(bucket, patience)?, patience)),
    }
}

/// Makes a folder that only its user enters.
pub(crate) fn make(folder: &Path) -> Result<(), OpenError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| OpenError::File { path: folder.to_owned(), source })
}

fn bucket_store(bucket: &BrokerBucket, patience: Patience) -> Result<Arc<dyn ObjectStore>, OpenError> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&bucket.name)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_allow_http(bucket.allow_http)
        // What fails for longer is tried again above this, with the limits of this crate.
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: patience.pause,
                max_backoff: Duration::from_secs(1),
                base: 2.,
            },
            max_retries: 1,
            retry_timeout: patience.attempt,
        })
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(bucket.allow_http)
                .with_timeout(patience.attempt)
                .with_connect_timeout(patience.attempt.min(Duration::from_secs(10)))
                .with_pool_max_idle_per_host(KEPT),
        );
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(region) = &bucket.region {
        builder = builder.with_region(region);
    }
    if let Some(file) = &bucket.credentials_file {
        let Credentials { id, secret, token } = credentials(file)?;
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
    }
    let inner = builder.build()?;
    Ok(if bucket.prefix.is_empty() {
        Arc::new(inner)
    } else {
        Arc::new(PrefixStore::new(inner, bucket.prefix.as_str()))
    })
}

/// The keys to a bucket.
struct Credentials {
    id: String,
    secret: String,
    token: Option<String>,
}

/// Reads `NAME = VALUE` lines, values with or without quotes.
fn credentials(path: &Path) -> Result<Credentials, OpenError> {
    let failed = |source| OpenError::File { path: path.to_owned(), source };
    let about = fs::metadata(path).map_err(failed)?;
    if about.mode() & 0o077 != 0 {
        return Err(OpenError::Open(path.to_owned()));
    }
    if about.len() > CREDENTIALS_MAX {
        return Err(OpenError::Credentials(path.to_owned()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let (mut id, mut secret, mut token) = (None, None, None);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '['])) {
        let wrong = || OpenError::Credentials(path.to_owned());
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let value = Some(value.trim().trim_matches('"').to_owned());
        match name.trim().trim_start_matches("aws_") {
            "access_key_id" => id = value,
            "secret_access_key" => secret = value,
            "session_token" => token = value,
            _ => return Err(wrong()),
        }
    }
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(Credentials { id, secret, token }),
        _ => Err(OpenError::Credentials(path.to_owned())),
    }
}
