//! Certificates that are held, and which of them make peers: without I/O.
//!
//! A node that follows all certificates has each that is good as a peer. One that looks them up holds those that it found, of which some
//! are peers now; the others are found here again without a directory (holder/demand.rs).

mod daily;
mod demand;

use std::collections::BTreeMap;
use std::time::Duration;

use strait_keying::PublicKey;
use strait_keying::directory::{Answer, Certificate, ListChange, Trust, TrustCounts, Untrusted};
use strait_keying::sessionless::DailyKeys;

use demand::HeldOnDemand;
pub(super) use demand::{DemandCounts, Found};

/// What changes for the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A peer, or one with another certificate.
    Admit(Box<Certificate>),
    /// A peer that is none any more, and why.
    Dismiss(PublicKey, Untrusted),
    /// Other daily keys of a peer.
    DailyKeys(PublicKey),
}

/// What is to be kept on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A certificate.
    Certificate,
    /// A revocation list.
    List,
    /// Daily keys.
    DailyKeys,
    /// Nothing that was not known.
    Nothing,
}

#[derive(Debug)]
struct Held {
    certificate: Certificate,
    admitted: bool,
    /// The time of uses at which it was found last or ceased to be a peer.
    used: u64,
    /// The daily keys of its node, and when a directory was last asked for them, in seconds since 1970.
    daily: Option<DailyKeys>,
    asked: Option<u64>,
}

/// All certificates that are held.
#[derive(Debug)]
pub(super) struct Holder {
    trust: Trust,
    most: usize,
    held: BTreeMap<PublicKey, Held>,
    /// Certificates for which there was no place.
    full: u64,
    /// Where certificates are looked up: what for.
    demand: Option<HeldOnDemand>,
}

impl Holder {
    pub(super) const fn new(authority: PublicKey, max_stale: Duration, most: usize) -> Holder {
        Holder { trust: Trust::new(authority, max_stale), most, held: BTreeMap::new(), full: 0, demand: None }
    }

    pub(super) const fn counts(&self) -> &TrustCounts {
        self.trust.counts()
    }

    pub(super) const fn full(&self) -> u64 {
        self.full
    }

    pub(super) const fn trust(&self) -> &Trust {
        &self.trust
    }

    pub(super) fn admitted(&self) -> usize {
        self.held.values().filter(|held| held.admitted).count()
    }

    /// What is held, list first, for a new file.
    pub(super) fn all(&self) -> impl Iterator<Item = Answer> {
        let list = self.trust.list().map(|list| Answer::List(list.shared()));
        let certificates =
            self.held.values().map(|held| Answer::Certificate(held.certificate.as_bytes().into()));
        let daily = self.held.values().filter_map(|held| held.daily.as_ref());
        let daily = daily.map(|keys| Answer::DailyKeys(keys.as_bytes().into()));
        list.into_iter().chain(certificates).chain(daily)
    }

    /// Takes what was kept on disk by an earlier run: peers that were known then, which stay as long as their certificates are good,
    /// however old the list is.
    pub(super) fn restore(&mut self, kept: impl IntoIterator<Item = Answer>, unix: u64) -> Vec<Change> {
        for answer in kept {
            match answer {
                // The clock was another when it was taken; what it has revoked stays revoked.
                Answer::List(bytes) => drop(self.trust.take_list(&bytes, u64::MAX)),
                Answer::Certificate(bytes) => drop(self.take_certificate(&bytes)),
                // They come behind the certificate of their node.
                Answer::DailyKeys(bytes) => drop(self.take_daily_keys(&bytes, unix)),
                _ => {}
            }
        }
        // What is looked up makes a peer when it is needed.
        if self.trust.list().is_none() || self.demand.is_some() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for held in self.held.values_mut() {
            if self.trust.is_good(&held.certificate, unix).is_ok() {
                held.admitted = true;
                changes.push(Change::Admit(Box::new(held.certificate.clone())));
            }
        }
        changes
    }

    /// Takes what a directory said.
    ///
    /// # Errors
    /// In words, if it lies; it is not to be asked any more for a while.
    pub(super) fn take(&mut self, answer: &Answer, unix: u64) -> Result<(News, Vec<Change>), String> {
        match answer {
            Answer::List(bytes) => match self.trust.take_list(bytes, unix) {
                Ok(ListChange::Same) => Ok((News::Nothing, Vec::new())),
                Ok(ListChange::Newer) => Ok((News::List, self.review(unix))),
                Err(error) => Err(error.to_string()),
            },
            // Only what was asked for is taken.
            Answer::Certificate(_) if self.demand.is_some() => Ok((News::Nothing, Vec::new())),
            Answer::Certificate(bytes) => match self.take_certificate(bytes)? {
                Some(key) => Ok((News::Certificate, self.judge(&key, unix).into_iter().collect())),
                None => Ok((News::Nothing, Vec::new())),
            },
            Answer::DailyKeys(bytes) => match self.take_daily_keys(bytes, unix)? {
                Some(node) => Ok((News::DailyKeys, vec![Change::DailyKeys(node)])),
                None => Ok((News::Nothing, Vec::new())),
            },
            _ => Ok((News::Nothing, Vec::new())),
        }
    }

    /// Holds a certificate that is newer than that of the same key; says whose it is.
    fn take_certificate(&mut self, bytes: &[u8]) -> Result<Option<PublicKey>, String> {
        let certificate =
            self.trust.read(bytes).map_err(|error| format!("what the directory gave {error}"))?;
        Ok(self.hold(certificate))
    }

    /// The same with a certificate that was read.
    fn hold(&mut self, certificate: Certificate) -> Option<PublicKey> {
        let key = *certificate.key();
        let is_full = self.held.len() >= self.most;
        match self.held.get_mut(&key) {
            Some(held) if held.certificate.serial() >= certificate.serial() => return None,
            // Until it is judged, the peer stays as it was.
            Some(held) => {
                if let Some(demand) = &mut self.demand {
                    demand.index.remove(&held.certificate);
                }
                held.certificate = certificate;
            }
            None if is_full => {
                self.full += 1;
                return None;
            }
            None => drop(
                self.held
                    .insert(key, Held { certificate, admitted: false, used: 0, daily: None, asked: None }),
            ),
        }
        if let (Some(demand), Some(held)) = (&mut self.demand, self.held.get(&key)) {
            demand.index.insert(&held.certificate);
        }
        Some(key)
    }

    /// What the certificate of this key changes.
    fn judge(&mut self, key: &PublicKey, unix: u64) -> Option<Change> {
        let held = self.held.get_mut(key)?;
        // For a known peer a new certificate is as good as the old one, however old the list is.
        let judged = if held.admitted {
            self.trust.is_good(&held.certificate, unix)
        } else {
            self.trust.admit(&held.certificate, unix)
        };
        match judged {
            Ok(()) => {
                held.admitted = true;
                Some(Change::Admit(Box::new(held.certificate.clone())))
            }
            Err(why) => self.drop_unless_it_may_come(key, why),
        }
    }

    /// A certificate that is not good: it goes, unless it waits for its time or for a list.
    fn drop_unless_it_may_come(&mut self, key: &PublicKey, why: Untrusted) -> Option<Change> {
        let held = self.held.get_mut(key)?;
        let was = std::mem::take(&mut held.admitted);
        if matches!(why, Untrusted::Expired | Untrusted::Revoked) {
            self.let_go(key);
        }
        was.then_some(Change::Dismiss(*key, why))
    }

    /// Looks at all that is held again: when there is a new list, and every now and then for what expires or begins.
    pub(super) fn review(&mut self, unix: u64) -> Vec<Change> {
        let is_fresh = self.trust.is_fresh(unix).is_ok();
        let keys: Vec<PublicKey> = self.held.keys().copied().collect();
        let mut changes = Vec::new();
        for key in keys {
            let Some(held) = self.held.get_mut(&key) else { continue };
            match self.trust.is_good(&held.certificate, unix) {
                Ok(()) if !held.admitted && is_fresh && self.demand.is_none() => {
                    held.admitted = true;
                    changes.push(Change::Admit(Box::new(held.certificate.clone())));
                }
                Ok(()) => {}
                Err(why) => changes.extend(self.drop_unless_it_may_come(&key, why)),
            }
        }
        changes
    }
}

impl Holder {
    fn let_go(&mut self, key: &PublicKey) {
        let gone = self.held.remove(key);
        if let (Some(demand), Some(held)) = (&mut self.demand, gone) {
            demand.index.remove(&held.certificate);
        }
    }
}

#[cfg(test)]
mod tests;
