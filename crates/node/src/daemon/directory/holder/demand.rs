//! A holder of certificates that are looked up: what it has is found without a directory, and what a directory says is judged.

use std::time::Duration;

use strait_keying::PublicKey;
use strait_keying::directory::{Answer, Certificate, CertificateIndex, Untrusted};
use strait_keying::sessionless::CacheCounts;
use strait_wire::sessionless::Name;

use super::Holder;

/// What a directory's answer to a look-up is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A certificate that makes a peer; whether it is new, and to be kept on disk.
    Peer(Box<Certificate>, bool),
    /// There is none.
    None,
    /// There is one, and it is not good.
    Refused(Untrusted),
}

/// What a holder has beside, where certificates are looked up.
#[derive(Debug, Default)]
pub(super) struct HeldOnDemand {
    pub(super) index: CertificateIndex,
    /// Look-ups that found something here, and others.
    hits: u64,
    misses: u64,
    /// Certificates that made room for others.
    evicted: u64,
    /// Time that asking directories took.
    took: Duration,
    /// Answers with a certificate that was not asked for.
    other_name: u64,
    /// Counts uses of certificates.
    clock: u64,
}

impl HeldOnDemand {
    /// The next use.
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

/// How such a holder did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DemandCounts {
    pub(crate) held: CacheCounts,
    pub(crate) other_name: u64,
}

impl Holder {
    /// The same for certificates that are looked up; before anything is held.
    pub(crate) fn on_demand(mut self) -> Holder {
        self.demand = Some(HeldOnDemand::default());
        self
    }

    pub(crate) fn demand_counts(&self) -> Option<DemandCounts> {
        let demand = self.demand.as_ref()?;
        Some(DemandCounts {
            held: CacheCounts {
                entries: self.held.len(),
                pinned: 0,
                hits: demand.hits,
                misses: demand.misses,
                evicted: demand.evicted,
                took: demand.took,
            },
            other_name: demand.other_name,
        })
    }

    /// What is held for `name`, if it is good: it was a peer before, so that it is as good as then however old the list is.
    pub(crate) fn find(&mut self, name: &Name, unix: u64) -> Option<Box<Certificate>> {
        let demand = self.demand.as_mut()?;
        let found = demand.index.find(name).and_then(|key| self.held.get_mut(&key));
        let good = found.filter(|held| self.trust.is_good(&held.certificate, unix).is_ok());
        let Some(held) = good else {
            demand.misses += 1;
            return None;
        };
        demand.hits += 1;
        (held.admitted, held.used) = (true, demand.tick());
        Some(Box::new(held.certificate.clone()))
    }

    /// Adds the time that directories took with what was not here.
    pub(crate) fn note_asked(&mut self, took: Duration) {
        if let Some(demand) = &mut self.demand {
            demand.took += took;
        }
    }

    /// Whether a certificate that is new may be judged now.
    ///
    /// # Errors
    /// [`Untrusted`], counted.
    pub(crate) fn may_judge(&mut self, unix: u64) -> Result<(), Untrusted> {
        let fresh = self.trust.is_fresh(unix);
        if fresh.is_err() {
            self.trust.count_stale();
        }
        fresh
    }

    /// Takes the answer of a directory to the question for `name`.
    ///
    /// # Errors
    /// In words, if it lies; it is not to be asked any more for a while.
    pub(crate) fn found(&mut self, name: &Name, answer: &Answer, unix: u64) -> Result<Found, String> {
        let bytes = match answer {
            Answer::Certificate(bytes) => bytes,
            Answer::NotFound => return Ok(Found::None),
            Answer::Refused(words) => return Err(format!("the directory refuses: {words}")),
            _ => return Err("the directory answered something else than it was asked".to_owned()),
        };
        let certificate =
            self.trust.read(bytes).map_err(|error| format!("what the directory gave {error}"))?;
        if !certificate.answers(name) {
            if let Some(demand) = &mut self.demand {
                demand.other_name += 1;
            }
            return Err(
                "the directory gave another certificate than the one that it was asked for".to_owned()
            );
        }
        let key = *certificate.key();
        // Of a directory that is behind, what is newer here stays.
        let known = self.held.get(&key).map(|held| &held.certificate);
        let newest =
            known.filter(|known| known.serial() >= certificate.serial()).unwrap_or(&certificate).clone();
        if let Err(why) = self.trust.admit(&newest, unix) {
            return Ok(Found::Refused(why));
        }
        self.make_room(&key);
        let is_new = self.hold(certificate).is_some();
        let (Some(held), Some(demand)) = (self.held.get_mut(&key), &mut self.demand) else {
            return Ok(Found::None);
        };
        (held.admitted, held.used) = (true, demand.tick());
        Ok(Found::Peer(Box::new(held.certificate.clone()), is_new))
    }

    /// The packet process has no room for this peer any more; its certificate stays, and was used until now.
    pub(crate) fn evict(&mut self, key: &PublicKey) {
        if let (Some(held), Some(demand)) = (self.held.get_mut(key), &mut self.demand) {
            (held.admitted, held.used) = (false, demand.tick());
        }
    }

    /// Lets that certificate go which was used least recently, and is no peer's, if there are as many as may be.
    fn make_room(&mut self, newcomer: &PublicKey) {
        if self.held.len() < self.most || self.held.contains_key(newcomer) {
            return;
        }
        let idle = self.held.iter().filter(|(_, held)| !held.admitted);
        if let Some(oldest) = idle.min_by_key(|(_, held)| held.used).map(|(key, _)| *key) {
            self.let_go(&oldest);
            if let Some(demand) = &mut self.demand {
                demand.evicted += 1;
            }
        }
    }
}
