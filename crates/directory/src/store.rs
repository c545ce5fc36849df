//! The store: one file with certificates by the hash of their key, by the hash of their name, and by their networks, and the newest
//! revocation list. Of each key there is one certificate, that with the highest serial number.
//!
//! ```text
//! certificates   hash of key (16)                       -> serial (8) | last second (8) | certificate
//! names          hash of name (16)                      -> hash of key (16) | serial (8)
//! networks       4 or 6 (1) | prefix (1) | address      -> hash of key (16) | serial (8)
//! state          "list"                                 -> revocation list
//! ```

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};
use strait_keying::PublicKey;
use strait_keying::directory::{Certificate, ListChange, Trust, Untrusted};
use strait_wire::sessionless::{Name, Nsid};

const CERTIFICATES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("certificates");
const NAMES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("names");
const NETWORKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("networks");
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const LIST: &str = "list";

/// Bytes before a certificate: its serial number, its last second.
const HEAD: usize = 16;
/// Bytes of a hash.
const HASH: usize = 16;
/// Memory for pages of the store.
const CACHE: usize = 64 << 20;

/// What is wrong with the store itself.
#[derive(Debug, thiserror::Error)]
#[error("the store: {0}")]
pub struct StoreError(Box<redb::Error>);

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
    Refused(String),
}

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
        for table in [CERTIFICATES, NAMES, NETWORKS] {
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
        trust.list().map(|list| (list.number(), list.as_bytes().into()))
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
    #[expect(clippy::type_complexity, reason = "a page and where it ends, used once")]
    pub fn page(
        &self,
        after: Option<&[u8]>,
        most: usize,
        unix: u64,
    ) -> Result<Option<(Vec<Arc<[u8]>>, Vec<u8>)>, StoreError> {
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

    /// What would come of a certificate.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn judge_certificate(&self, bytes: &[u8], unix: u64) -> Result<Taken, StoreError> {
        self.judge(bytes, unix).map(Judged::taken)
    }

    /// What would come of a list.
    #[must_use]
    pub fn judge_list(&self, bytes: &[u8], unix: u64) -> Taken {
        match self.trust.lock().unwrap_or_else(PoisonError::into_inner).clone().take_list(bytes, unix) {
            Ok(ListChange::Same) => Taken::Known,
            Ok(ListChange::Newer) => Taken::New,
            Err(error) => Taken::Refused(words(error)),
        }
    }

    /// Keeps certificates, all in one transaction; says of each what came of it.
    ///
    /// # Errors
    /// [`StoreError`]; then none of them is kept.
    pub fn take_certificates(&self, all: &[Box<[u8]>], unix: u64) -> Result<Vec<Taken>, StoreError> {
        let read: Vec<_> = all.iter().map(|bytes| self.judge(bytes, unix)).collect::<Result<_, _>>()?;
        if !read.iter().any(|one| matches!(one, Judged::New(_))) {
            return Ok(read.into_iter().map(Judged::taken).collect());
        }
        let transaction = self.database.begin_write()?;
        let mut tables = Tables::open(&transaction, self.authority)?;
        let mut taken = Vec::with_capacity(read.len());
        for one in read {
            taken.push(match one {
                Judged::New(certificate) => tables.insert(&certificate)?,
                other => other.taken(),
            });
        }
        drop(tables);
        transaction.commit()?;
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
                return Ok(Taken::Refused(words(error)));
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
            if let Ok(certificate) = self.read(bytes) {
                tables.remove(&certificate)?;
            }
        }
        drop(tables);
        transaction.commit()?;
        Ok(expired.len())
    }

    fn read(&self, bytes: &[u8]) -> Result<Certificate, String> {
        Certificate::from_bytes(bytes, &self.authority).map_err(|error| format!("this {error}"))
    }

    fn judge(&self, bytes: &[u8], unix: u64) -> Result<Judged, StoreError> {
        let certificate = match self.read(bytes) {
            Ok(certificate) => certificate,
            Err(words) => return Ok(Judged::Refused(words)),
        };
        let judged = self.trust.lock().unwrap_or_else(PoisonError::into_inner).is_good(&certificate, unix);
        match judged {
            // It may wait here for its time.
            Ok(()) | Err(Untrusted::NotYet) => {}
            Err(error) => return Ok(Judged::Refused(error.to_string())),
        }
        let certificates = self.database.begin_read()?.open_table(CERTIFICATES)?;
        let found = certificates.get(certificate.key_name().bytes())?;
        let older = found.and_then(|found| not_newer(found.value(), &certificate));
        Ok(older.unwrap_or_else(|| Judged::New(Box::new(certificate))))
    }

    fn is_good(&self, value: &[u8], unix: u64) -> bool {
        let Some((serial, until)) = head(value) else { return false };
        let trust = self.trust.lock().unwrap_or_else(PoisonError::into_inner);
        unix <= until && !trust.list().is_some_and(|list| list.has(serial))
    }
}

fn words(error: Untrusted) -> String {
    match error {
        Untrusted::List(error) => format!("this {error}"),
        Untrusted::OlderList { given, known } => {
            format!("list {given} is older than list {known}, which is kept")
        }
        other => other.to_string(),
    }
}

/// What is done with a certificate.
enum Judged {
    New(Box<Certificate>),
    Known,
    Refused(String),
}

impl Judged {
    fn taken(self) -> Taken {
        match self {
            Judged::New(_) => Taken::New,
            Judged::Known => Taken::Known,
            Judged::Refused(words) => Taken::Refused(words),
        }
    }
}

/// The tables of a transaction.
struct Tables<'t> {
    certificates: Table<'t, &'static [u8], &'static [u8]>,
    names: Table<'t, &'static [u8], &'static [u8]>,
    networks: Table<'t, &'static [u8], &'static [u8]>,
    authority: PublicKey,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction, authority: PublicKey) -> Result<Tables<'t>, StoreError> {
        Ok(Tables {
            certificates: transaction.open_table(CERTIFICATES)?,
            names: transaction.open_table(NAMES)?,
            networks: transaction.open_table(NETWORKS)?,
            authority,
        })
    }

    fn insert(&mut self, certificate: &Certificate) -> Result<Taken, StoreError> {
        let hash = certificate.key_name();
        let hash = hash.bytes();
        let before = self.certificates.get(hash)?.map(|found| found.value().to_vec());
        if let Some(before) = &before {
            if let Some(older) = not_newer(before, certificate) {
                return Ok(older.taken());
            }
            // Names and networks that the new one no longer has.
            if let Ok(before) =
                Certificate::from_bytes(before.get(HEAD..).unwrap_or_default(), &self.authority)
            {
                self.forget(&before)?;
            }
        }
        let serial = certificate.serial().to_be_bytes();
        let value = [&serial[..], &certificate.valid().1.to_be_bytes(), certificate.as_bytes()].concat();
        self.certificates.insert(hash, value.as_slice())?;
        let owner = [hash, &serial[..]].concat();
        point(&mut self.names, certificate.text_name().bytes(), &owner)?;
        for net in &certificate.terms().networks {
            point(&mut self.networks, &network_key(net), &owner)?;
        }
        Ok(Taken::New)
    }

    fn remove(&mut self, certificate: &Certificate) -> Result<(), StoreError> {
        let hash = certificate.key_name();
        self.certificates.remove(hash.bytes())?;
        self.forget(certificate)
    }

    /// Removes what leads to a certificate beside its key.
    fn forget(&mut self, certificate: &Certificate) -> Result<(), StoreError> {
        let hash = certificate.key_name();
        unpoint(&mut self.names, certificate.text_name().bytes(), hash.bytes())?;
        let networks = certificate.terms().networks.iter();
        networks.map(network_key).try_for_each(|net| unpoint(&mut self.networks, &net, hash.bytes()))
    }
}

/// Has an entry lead to its owner, unless it leads to one with a higher serial number.
fn point(table: &mut Table<'_, &[u8], &[u8]>, key: &[u8], owner: &[u8]) -> Result<(), StoreError> {
    let serial = |owner: &[u8]| owner.get(HASH..).map(<[u8]>::to_vec);
    let newer = table.get(key)?.is_some_and(|found| serial(found.value()) > serial(owner));
    if !newer {
        table.insert(key, owner)?;
    }
    Ok(())
}

/// Removes an entry that leads to the key with this hash.
fn unpoint(table: &mut Table<'_, &[u8], &[u8]>, key: &[u8], hash: &[u8]) -> Result<(), StoreError> {
    let is_its = table.get(key)?.is_some_and(|found| found.value().get(..HASH) == Some(hash));
    if is_its {
        table.remove(key)?;
    }
    Ok(())
}

/// What is said of a certificate that is not newer than the one in `kept` for the same key.
fn not_newer(kept: &[u8], certificate: &Certificate) -> Option<Judged> {
    let (serial, _) = head(kept)?;
    if kept.get(HEAD..) == Some(certificate.as_bytes()) {
        return Some(Judged::Known);
    }
    let words = || format!("certificate {serial} of this key, which is kept, is not older");
    (serial >= certificate.serial()).then(|| Judged::Refused(words()))
}

fn head(value: &[u8]) -> Option<(u64, u64)> {
    let (serial, rest) = value.split_first_chunk::<8>()?;
    let (until, _) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*serial), u64::from_be_bytes(*until)))
}

fn address(name: &Name) -> IpAddr {
    match <[u8; 4]>::try_from(name.bytes()) {
        Ok(octets) => octets.into(),
        Err(_) => <[u8; 16]>::try_from(name.bytes()).unwrap_or_default().into(),
    }
}

/// The owner of the longest network that has `address`.
fn owner_of(
    networks: &impl ReadableTable<&'static [u8], &'static [u8]>,
    address: IpAddr,
) -> Result<Option<Vec<u8>>, StoreError> {
    let most = if address.is_ipv4() { 32 } else { 128 };
    for len in (0..=most).rev() {
        let Ok(net) = IpNet::new(address, len) else { continue };
        if let Some(owner) = networks.get(network_key(&net.trunc()).as_slice())? {
            return Ok(owner.value().get(..HASH).map(<[u8]>::to_vec));
        }
    }
    Ok(None)
}

fn network_key(net: &IpNet) -> Vec<u8> {
    let mut key = vec![if net.addr().is_ipv4() { 4 } else { 6 }, net.prefix_len()];
    match net.addr() {
        IpAddr::V4(address) => key.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => key.extend_from_slice(&address.octets()),
    }
    key
}
