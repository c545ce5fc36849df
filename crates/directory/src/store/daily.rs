//! Daily keys in the store: of each node that has a good certificate, the newest that it signed.
//!
//! ```text
//! daily keys     hash of key (16)                       -> number (8) | second after the last day (8) | daily keys
//! ```

use std::ops::Bound;
use std::sync::Arc;

use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use strait_keying::sessionless::{DailyKeys, key_name};
use strait_wire::sessionless::Name;

use super::{CERTIFICATES, HEAD, Page, Refusal, RefusalReason, Store, StoreError, Taken, head};

pub(super) const DAILY: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("daily keys");
/// Seconds of a day.
const DAY: u64 = 86_400;

impl Store {
    /// The daily keys of the node whose key has this hash, unless its certificate is not good.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn find_daily_keys(&self, name: Name, unix: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let transaction = self.database.begin_read()?;
        if !self.has_good(&transaction.open_table(CERTIFICATES)?, name.bytes(), unix)? {
            return Ok(None);
        }
        let found = transaction.open_table(DAILY)?.get(name.bytes())?;
        Ok(found.map(|found| found.value().get(HEAD..).unwrap_or_default().to_vec()))
    }

    /// Up to `most` daily keys of nodes with good certificates behind those of the key with the hash `after`, as [`Store::page`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn daily_page(&self, after: Option<&[u8]>, most: usize, unix: u64) -> Result<Page, StoreError> {
        let transaction = self.database.begin_read()?;
        let (daily, certificates) = (transaction.open_table(DAILY)?, transaction.open_table(CERTIFICATES)?);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut page, mut last) = (Vec::new(), None);
        for entry in daily.range::<&[u8]>((from, Bound::Unbounded))?.take(most) {
            let (key, value) = entry?;
            last = Some(key.value().to_vec());
            if self.has_good(&certificates, key.value(), unix)? {
                page.push(Arc::from(value.value().get(HEAD..).unwrap_or_default()));
            }
        }
        Ok(last.map(|last| (page, last)))
    }

    /// Whether the daily keys `bytes` are kept for the node whose key has this hash. Nothing is verified for that.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn has_daily_keys(&self, hash: &[u8], bytes: &[u8]) -> Result<bool, StoreError> {
        let daily = self.database.begin_read()?.open_table(DAILY)?;
        Ok(daily.get(hash)?.is_some_and(|kept| kept.value().get(HEAD..) == Some(bytes)))
    }

    /// The daily keys in `bytes`, if they may be kept or are; or why they will not be.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn judge_daily_keys(
        &self,
        bytes: &[u8],
        unix: u64,
    ) -> Result<Result<DailyKeys, Refusal>, StoreError> {
        let refused = |reason, words: &str| Ok(Err(Refusal::new(reason, words.to_owned())));
        let keys = match DailyKeys::from_bytes(bytes) {
            Ok(keys) => keys,
            Err(error) => return refused(RefusalReason::Foreign, &format!("these {error}")),
        };
        if !keys.is_near(unix) {
            let words = "these daily keys are not for days around this one: a clock is wrong";
            return refused(RefusalReason::OtherDays, words);
        }
        let hash = key_name(keys.node());
        let transaction = self.database.begin_read()?;
        if !self.has_good(&transaction.open_table(CERTIFICATES)?, hash.bytes(), unix)? {
            let words = "there is no good certificate of the node whose daily keys these are";
            return refused(RefusalReason::Foreign, words);
        }
        let found = transaction.open_table(DAILY)?.get(hash.bytes())?;
        Ok(match found.and_then(|found| not_newer(found.value(), &keys)) {
            Some(Taken::Refused(refusal)) => Err(refusal),
            Some(Taken::New | Taken::Known) | None => Ok(keys),
        })
    }

    /// Keeps daily keys that were judged, if they are newer.
    ///
    /// # Errors
    /// [`StoreError`]; then they are not kept.
    pub fn take_daily_keys(&self, keys: &DailyKeys) -> Result<Taken, StoreError> {
        let until = u64::from(keys.days().1.0) * DAY;
        let value = [&keys.number().to_be_bytes()[..], &until.to_be_bytes(), keys.as_bytes()].concat();
        let transaction = self.database.begin_write()?;
        let mut table = transaction.open_table(DAILY)?;
        let hash = key_name(keys.node());
        // Others may have been kept since they were judged.
        let kept = table.get(hash.bytes())?.and_then(|found| not_newer(found.value(), keys));
        if let Some(taken) = kept {
            return Ok(taken);
        }
        table.insert(hash.bytes(), value.as_slice())?;
        drop(table);
        transaction.commit()?;
        Ok(Taken::New)
    }

    /// Removes daily keys whose days are over for a day, some at a time; says how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sweep_daily_keys(&self, unix: u64, most: usize) -> Result<usize, StoreError> {
        let mut over = Vec::new();
        for entry in self.database.begin_read()?.open_table(DAILY)?.iter()? {
            let (key, value) = entry?;
            if head(value.value()).is_some_and(|(_, until)| until + DAY < unix) && over.len() < most {
                over.push(key.value().to_vec());
            }
        }
        if over.is_empty() {
            return Ok(0);
        }
        let transaction = self.database.begin_write()?;
        let mut table = transaction.open_table(DAILY)?;
        for key in &over {
            table.remove(key.as_slice())?;
        }
        drop(table);
        transaction.commit()?;
        Ok(over.len())
    }

    /// Whether the key with this hash has a certificate that is good.
    fn has_good(
        &self,
        certificates: &impl ReadableTable<&'static [u8], &'static [u8]>,
        hash: &[u8],
        unix: u64,
    ) -> Result<bool, StoreError> {
        Ok(certificates.get(hash)?.is_some_and(|found| self.is_good(found.value(), unix)))
    }
}

/// What is said of daily keys that are not newer than those in `kept` of the same node.
fn not_newer(kept: &[u8], keys: &DailyKeys) -> Option<Taken> {
    let (number, _) = head(kept)?;
    if kept.get(HEAD..) == Some(keys.as_bytes()) {
        return Some(Taken::Known);
    }
    let words = || "these daily keys are older than those that are kept".to_owned();
    (number >= keys.number()).then(|| Taken::Refused(Refusal::new(RefusalReason::Older, words())))
}
