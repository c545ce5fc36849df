//! The store: one file with certificates by the hash of their key, by the hash of their name, and by their networks, and the newest
//! revocation list. Of each key there is one certificate, that with the highest serial number.
//!
//! ```text
//! certificates   hash of key (16)                       -> serial (8) | last second (8) | certificate
//! names          hash of name (16)                      -> hash of key (16) | serial (8)
//! networks       4 or 6 (1) | prefix (1) | address      -> hash of key (16) | serial (8)
//! daily keys     in store/daily.rs
//! state          "list"                                 -> revocation list
//! ```

mod daily;
mod refusal;
mod tables;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use strait_keying::PublicKey;
use strait_keying::directory::{Certificate, ListChange, Trust, Untrusted};
use strait_wire::sessionless::{Name, Nsid};

pub use refusal::{Refusal, RefusalReason};
use tables::{CERTIFICATES, HASH, HEAD, NAMES, NETWORKS, Tables, address, head, not_newer, owner_of};

const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const LIST: &str = "list";

/// Memory for pages of the store.
const CACHE: usize = 64 << 20;

/// What is wrong with the store itself.
#[derive(Debug, thiserror::Error)]
#[error("the store: {0}")]
pub struct StoreError(Box<redb::Error>);

impl StoreError {
    /// Returns true if nothing is read or written any more until the store is opened anew: after an error of the disk the library does
    /// not know what is on it.
    #[must_use]
    pub fn needs_opening(&self) -> bool {
        use redb::Error as E;
        matches!(*self.0, E::Io(_) | E::Backend(_) | E::PreviousIo | E::DatabaseClosed | E::LockPoisoned(_))
    }
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> StoreError {
        StoreError(Box::new(error.into()))
    }
}

/// What came of a certificate or list that was to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new.
    New,
    /// It was there.
    Known,
    /// It is not kept, and why.
    Refused(Refusal),
}

/// Things in the order of the hashes of their keys, and the last hash that was looked at; nothing if there are no more.
pub type Page = Option<(Vec<Arc<[u8]>>, Vec<u8>)>;

/// The store.
#[derive(Debug)]
pub struct Store {
    database: Database,
    authority: PublicKey,
    trust: Mutex<Trust>,
}

impl Store {
    /// Opens the file at `path`, which is made if there is none. What is in it has to be the authority's.
    ///
    /// # Errors
    /// [`StoreError`]: it is damaged, is no store, or another process has it.
    pub fn open(path: &Path, authority: PublicKey) -> Result<Store, StoreError> {
        let database = Database::builder().set_cache_size(CACHE).create(path)?;
        let transaction = database.begin_write()?;
        for table in [CERTIFICATES, NAMES, NETWORKS, daily::DAILY] {
            transaction.open_table(table)?;
        }
        let list = transaction.open_table(STATE)?.get(LIST)?.map(|list| list.value().to_vec());
        transaction.commit()?;
        // How old a list may be is for nodes to say.
        let mut trust = Trust::new(authority, Duration::MAX);
        if let Some(list) = list
            && let Err(error) = trust.take_list(&list, u64::MAX)
        {
            tracing::warn!("the revocation list in the store is not used: {error}");
        }
        Ok(Store { database, authority, trust: Mutex::new(trust) })
    }

    /// How many certificates there are.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn count(&self) -> Result<u64, StoreError> {
        Ok(self.database.begin_read()?.open_table(CERTIFICATES)?.len()?)
    }

    /// The newest revocation list and its number.
    #[must_use]
    pub fn list(&self) -> Option<(u64, Arc<[u8]>)> {
        let trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner);
        trust.list().map(|list| (list.number(), list.shared()))
    }

    /// The number of the newest revocation list, and its age in seconds at `unix`.
    #[must_use]
    pub fn list_age(&self, unix: u64) -> Option<(u64, u64)> {
        let trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner);
        trust.list().map(|list| (list.number(), trust.time(unix).saturating_sub(list.issued())))
    }

    /// The seconds by which a clock that says `unix` is behind the newest revocation list, if it is further than clocks may be.
    #[must_use]
    pub fn clock_behind(&self, unix: u64) -> Option<u64> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner).clock_behind(unix)
    }

    /// The certificate of the node with this name, unless it is revoked or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn find(&self, name: Name, unix: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let transaction = self.database.begin_read()?;
        let owner = match name.space() {
            Nsid::None => return Ok(None),
            Nsid::KeyHash => Some(name.bytes().to_vec()),
            Nsid::NameHash => {
                let names = transaction.open_table(NAMES)?;
                names.get(name.bytes())?.and_then(|owner| owner.value().get(..HASH).map(<[u8]>::to_vec))
            }
            Nsid::Ipv4 | Nsid::Ipv6 => {
                let networks = transaction.open_table(NETWORKS)?;
                owner_of(&networks, address(&name))?
            }
        };
        let Some(owner) = owner else { return Ok(None) };
        let certificates = transaction.open_table(CERTIFICATES)?;
        let Some(found) = certificates.get(owner.as_slice())? else { return Ok(None) };
        let value = found.value();
        Ok(self.is_good(value, unix).then(|| value.get(HEAD..).unwrap_or_default().to_vec()))
    }

    /// Up to `most` good certificates behind that of the key with the hash `after`, in the order of hashes, and the last hash that was
    /// looked at; nothing if there are no more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn page(&self, after: Option<&[u8]>, most: usize, unix: u64) -> Result<Page, StoreError> {
        use std::ops::Bound;
        let certificates = self.database.begin_read()?.open_table(CERTIFICATES)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut page, mut last) = (Vec::new(), None);
        for entry in certificates.range::<&[u8]>((from, Bound::Unbounded))?.take(most) {
            let (key, value) = entry?;
            last = Some(key.value().to_vec());
            if self.is_good(value.value(), unix) {
                page.push(value.value().get(HEAD..).unwrap_or_default().into());
            }
        }
        Ok(last.map(|last| (page, last)))
    }

    /// Whether the certificate `bytes` is kept for the key with this hash. Nothing is verified for that.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn has(&self, hash: &[u8], bytes: &[u8]) -> Result<bool, StoreError> {
        let certificates = self.database.begin_read()?.open_table(CERTIFICATES)?;
        Ok(certificates.get(hash)?.is_some_and(|kept| kept.value().get(HEAD..) == Some(bytes)))
    }

    /// The certificate in `bytes`, if it is good and none that is kept for its key is newer; or why it will not be kept.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn judge_certificate(
        &self,
        bytes: &[u8],
        unix: u64,
    ) -> Result<Result<Certificate, Refusal>, StoreError> {
        let certificate = match Certificate::from_bytes(bytes, &self.authority) {
            Ok(certificate) => certificate,
            Err(error) => return Ok(Err(error.into())),
        };
        let judged = self.trust.lock().unwrap_or_else(PoisonError::into_inner).is_good(&certificate, unix);
        match judged {
            // It may wait here for its time.
            Ok(()) | Err(Untrusted::NotYet) => {}
            Err(error) => return Ok(Err(error.into())),
        }
        let certificates = self.database.begin_read()?.open_table(CERTIFICATES)?;
        let found = certificates.get(certificate.key_name().bytes())?;
        match found.and_then(|found| not_newer(found.value(), &certificate)) {
            Some(Taken::Refused(refusal)) => Ok(Err(refusal)),
            Some(Taken::New | Taken::Known) | None => Ok(Ok(certificate)),
        }
    }

    /// Why a list will not be kept, if it will not.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn judge_list(&self, bytes: &[u8], unix: u64) -> Result<(), Refusal> {
        let mut trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(trust.take_list(bytes, unix).map(drop)?)
    }

    /// Keeps certificates that were judged, all in one transaction; says of each what came of it.
    ///
    /// # Errors
    /// [`StoreError`]; then none of them is kept.
    pub fn insert(&self, certificates: &[Certificate]) -> Result<Vec<Taken>, StoreError> {
        if certificates.is_empty() {
            return Ok(Vec::new());
        }
        let transaction = self.database.begin_write()?;
        let mut tables = Tables::open(&transaction, self.authority)?;
        let taken: Vec<Taken> =
            certificates.iter().map(|one| tables.insert(one)).collect::<Result<_, _>>()?;
        drop(tables);
        if taken.contains(&Taken::New) {
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(taken)
    }

    /// Keeps a revocation list, if it is newer.
    ///
    /// # Errors
    /// [`StoreError`]; then it is not kept.
    pub fn take_list(&self, bytes: &[u8], unix: u64) -> Result<Taken, StoreError> {
        let mut trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = trust.clone();
        match next.take_list(bytes, unix) {
            Ok(ListChange::Same) => return Ok(Taken::Known),
            Ok(ListChange::Newer) => {}
            Err(error) => {
                *trust = next;
                return Ok(Taken::Refused(error.into()));
            }
        }
        let transaction = self.database.begin_write()?;
        transaction.open_table(STATE)?.insert(LIST, bytes)?;
        transaction.commit()?;
        *trust = next;
        Ok(Taken::New)
    }

    /// Removes certificates that have expired, some at a time; says how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sweep(&self, unix: u64, most: usize) -> Result<usize, StoreError> {
        let unix = self.trust.lock().unwrap_or_else(PoisonError::into_inner).time(unix);
        let mut expired = Vec::new();
        for entry in self.database.begin_read()?.open_table(CERTIFICATES)?.iter()? {
            let (_, value) = entry?;
            if head(value.value()).is_some_and(|(_, until)| until < unix) && expired.len() < most {
                expired.push(value.value().get(HEAD..).unwrap_or_default().to_vec());
            }
        }
        if expired.is_empty() {
            return Ok(0);
        }
        let transaction = self.database.begin_write()?;
        let mut tables = Tables::open(&transaction, self.authority)?;
        for bytes in &expired {
            if let Ok(certificate) = Certificate::from_bytes(bytes, &self.authority) {
                tables.remove(&certificate)?;
            }
        }
        drop(tables);
        transaction.commit()?;
        Ok(expired.len())
    }

    fn is_good(&self, value: &[u8], unix: u64) -> bool {
        let Some((serial, until)) = head(value) else { return false };
        let trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner);
        trust.time(unix) <= until && !trust.list().is_some_and(|list| list.has(serial))
    }
}
