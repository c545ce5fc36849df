//! What is believed of what a directory says, and when.

use core::time::Duration;

use super::certificate::Certificate;
use super::revocation::{ListError, RevocationList};
use crate::PublicKey;

/// The seconds by which a list may be from the future, and a clock behind a list: clocks of hosts that use NTP differ by less, others by
/// minutes.
const SKEW: u64 = 600;

/// What came of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// It is the newest that is known.
    Newer,
    /// It is the one that is known.
    Same,
}

/// Why something that a directory said is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untrusted {
    /// The list is not one of the authority's.
    #[error("what the directory gave {0}")]
    List(#[from] ListError),
    /// The list is older than one that is known.
    #[error(
        "the directory gave revocation list {given}, but list {known} is known: it lies, or was set back"
    )]
    OlderList {
        /// The number that came.
        given: u64,
        /// The newest number.
        known: u64,
    },
    /// Another list with the number of one that is known.
    #[error(
        "the directory gave another revocation list {0} than the one that is known: the authority signed two"
    )]
    OtherList(u64),
    /// The list is from the future.
    #[error("the revocation list was made {0} s from now: a clock is wrong")]
    FutureList(u64),
    /// There is no list yet.
    #[error("there is no revocation list")]
    NoList,
    /// The newest list is too old.
    #[error(
        "the newest revocation list is {age} s old, more than `max_stale`: the directory sleeps or lies, or the authority signed none"
    )]
    StaleList {
        /// Its age in seconds.
        age: u64,
    },
    /// The clock is behind the time at which the authority signed a list.
    #[error(
        "the clock is {by} s behind the newest revocation list, so nobody can tell what is old: set the clock"
    )]
    ClockBehind {
        /// The difference in seconds.
        by: u64,
    },
    /// The certificate is not valid yet.
    #[error("the certificate is not valid yet")]
    NotYet,
    /// The certificate is not valid any more.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate is on the list.
    #[error("the certificate is revoked")]
    Revoked,
}

/// How often something was not believed, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustCounts {
    /// Certificates and lists that the authority did not sign, or that are malformed.
    pub foreign: u64,
    /// Lists that were older than one that was known, or another with the same number.
    pub older_list: u64,
    /// Lists from the future.
    pub future_list: u64,
    /// Certificates that were not taken since there was no list, too old a one, or a clock behind it.
    pub stale_list: u64,
    /// Certificates outside their time.
    pub not_valid: u64,
    /// Certificates that were revoked.
    pub revoked: u64,
}

impl TrustCounts {
    /// The names of the counters, as they are shown, with their values.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("foreign", self.foreign),
            ("older_list", self.older_list),
            ("future_list", self.future_list),
            ("stale_list", self.stale_list),
            ("not_valid", self.not_valid),
            ("revoked", self.revoked),
        ]
    }
}

/// An authority, the newest list that is known of it, and what was not believed.
///
/// A list proves that the time at which it was signed is over. Whoever keeps the newest list on disk keeps that time with it, and a clock
/// that is set back makes no certificate good again and no list young.
#[derive(Clone, Debug)]
pub struct Trust {
    authority: PublicKey,
    max_stale: Duration,
    list: Option<RevocationList>,
    /// The latest time at which a list was signed, in seconds since 1970.
    proved: u64,
    counts: TrustCounts,
}

impl Trust {
    /// Trust in `authority`, whose newest list may be `max_stale` old.
    #[must_use]
    pub const fn new(authority: PublicKey, max_stale: Duration) -> Trust {
        let counts = TrustCounts {
            foreign: 0,
            older_list: 0,
            future_list: 0,
            stale_list: 0,
            not_valid: 0,
            revoked: 0,
        };
        Trust { authority, max_stale, list: None, proved: 0, counts }
    }

    /// The authority's key.
    #[must_use]
    pub const fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// The newest list.
    #[must_use]
    pub const fn list(&self) -> Option<&RevocationList> {
        self.list.as_ref()
    }

    /// What was not believed.
    #[must_use]
    pub const fn counts(&self) -> &TrustCounts {
        &self.counts
    }

    /// Takes a list, unless it is older than the newest, from the future, or not the authority's.
    ///
    /// # Errors
    /// [`Untrusted`], counted.
    pub fn take_list(&mut self, bytes: &[u8], unix: u64) -> Result<ListChange, Untrusted> {
        let result = self.judge_list(bytes, unix);
        match &result {
            Ok(_) => {}
            Err(Untrusted::List(_)) => self.counts.foreign += 1,
            Err(Untrusted::FutureList(_)) => self.counts.future_list += 1,
            Err(_) => self.counts.older_list += 1,
        }
        let list = result?;
        let Some(list) = list else { return Ok(ListChange::Same) };
        self.proved = self.proved.max(list.issued());
        self.list = Some(list);
        Ok(ListChange::Newer)
    }

    fn judge_list(&self, bytes: &[u8], unix: u64) -> Result<Option<RevocationList>, Untrusted> {
        if self.list.as_ref().is_some_and(|known| known.as_bytes() == bytes) {
            return Ok(None);
        }
        let list = RevocationList::from_bytes(bytes, &self.authority)?;
        if let Some(ahead) = list.issued().checked_sub(unix).filter(|ahead| *ahead > SKEW) {
            return Err(Untrusted::FutureList(ahead));
        }
        match &self.list {
            Some(known) if known.number() > list.number() => {
                Err(Untrusted::OlderList { given: list.number(), known: known.number() })
            }
            Some(known) if known.number() == list.number() => Err(Untrusted::OtherList(list.number())),
            _ => Ok(Some(list)),
        }
    }

    /// Reads a certificate of the authority's.
    ///
    /// # Errors
    /// [`super::CertificateError`], counted.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Certificate, super::CertificateError> {
        let read = Certificate::from_bytes(bytes, &self.authority);
        self.counts.foreign += u64::from(read.is_err());
        read
    }

    /// The time at a clock that says `unix`: no earlier than lists have proved.
    #[must_use]
    pub fn time(&self, unix: u64) -> u64 {
        unix.max(self.proved)
    }

    /// The seconds by which a clock that says `unix` is behind, if it is further than clocks may be.
    #[must_use]
    pub fn clock_behind(&self, unix: u64) -> Option<u64> {
        self.proved.checked_sub(unix).filter(|by| *by > SKEW)
    }

    /// Whether there is a list, and it is young enough to judge by.
    ///
    /// # Errors
    /// [`Untrusted::NoList`], [`Untrusted::ClockBehind`], [`Untrusted::StaleList`].
    pub fn is_fresh(&self, unix: u64) -> Result<(), Untrusted> {
        let issued = self.list.as_ref().ok_or(Untrusted::NoList)?.issued();
        if let Some(by) = self.clock_behind(unix) {
            return Err(Untrusted::ClockBehind { by });
        }
        let age = self.time(unix).saturating_sub(issued);
        if age > self.max_stale.as_secs() { Err(Untrusted::StaleList { age }) } else { Ok(()) }
    }

    /// Counts a certificate that is not even asked for, since there is no list, or too old a one.
    pub const fn count_stale(&mut self) {
        self.counts.stale_list += 1;
    }

    /// Whether a node that is not known yet may be taken by this certificate at `unix`, seconds since 1970-01-01 0:00 UTC.
    ///
    /// # Errors
    /// [`Untrusted`], counted.
    pub fn admit(&mut self, certificate: &Certificate, unix: u64) -> Result<(), Untrusted> {
        let judged = self.is_good(certificate, unix).and_then(|()| self.is_fresh(unix));
        match &judged {
            Ok(()) => {}
            Err(Untrusted::Revoked) => self.counts.revoked += 1,
            Err(Untrusted::NoList | Untrusted::StaleList { .. } | Untrusted::ClockBehind { .. }) => {
                self.counts.stale_list += 1;
            }
            Err(_) => self.counts.not_valid += 1,
        }
        judged
    }

    /// Whether a node that was taken may stay: its certificate is valid, and not on the newest list, however old that is. So those that are
    /// known go on while a directory is away.
    ///
    /// # Errors
    /// [`Untrusted::NotYet`], [`Untrusted::Expired`], [`Untrusted::Revoked`]; nothing is counted.
    pub fn is_good(&self, certificate: &Certificate, unix: u64) -> Result<(), Untrusted> {
        let (from, until) = certificate.valid();
        let unix = self.time(unix);
        if unix < from {
            return Err(Untrusted::NotYet);
        }
        if unix > until {
            return Err(Untrusted::Expired);
        }
        if self.list.as_ref().is_some_and(|list| list.has(certificate.serial())) {
            return Err(Untrusted::Revoked);
        }
        Ok(())
    }
}
