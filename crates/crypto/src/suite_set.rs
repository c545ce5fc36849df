//! A set of suites in one byte, as the control channel carries it.

use crate::Suite;

/// A set of suites; bit `id - 1` stands for the suite numbered `id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SuiteSet(u8);

impl SuiteSet {
    /// No suite at all.
    pub const EMPTY: SuiteSet = SuiteSet(0);
    /// Every suite this version knows.
    pub const ALL: SuiteSet = SuiteSet(0b1111);
    /// What a node offers unless its configuration says otherwise: the suites that cut nothing off their ICV.
    pub const UNCUT: SuiteSet = SuiteSet(0b0111);

    /// This set with `suite` added.
    #[must_use]
    pub const fn with(self, suite: Suite) -> SuiteSet {
        SuiteSet(self.0 | bit(suite))
    }

    /// Whether `suite` is in the set.
    #[must_use]
    pub const fn contains(self, suite: Suite) -> bool {
        self.0 & bit(suite) != 0
    }

    /// The suites in both sets.
    #[must_use]
    pub const fn intersect(self, other: SuiteSet) -> SuiteSet {
        SuiteSet(self.0 & other.0)
    }

    /// Whether no suite is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as its wire byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set a peer wrote as `bits`; bits this version does not know are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> SuiteSet {
        SuiteSet(bits & SuiteSet::ALL.0)
    }

    /// The suites in the set, in order of id.
    pub fn iter(self) -> impl Iterator<Item = Suite> {
        Suite::ALL.into_iter().filter(move |suite| self.contains(*suite))
    }
}

impl FromIterator<Suite> for SuiteSet {
    fn from_iter<I: IntoIterator<Item = Suite>>(suites: I) -> SuiteSet {
        suites.into_iter().fold(SuiteSet::EMPTY, SuiteSet::with)
    }
}

const fn bit(suite: Suite) -> u8 {
    1 << (suite.id() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let gcm = SuiteSet::EMPTY.with(Suite::Aes128Gcm).with(Suite::Aes256Gcm);
        assert!(gcm.contains(Suite::Aes256Gcm));
        assert!(!gcm.contains(Suite::ChaCha20Poly1305));
        assert_eq!(gcm.iter().collect::<SuiteSet>(), gcm);
        assert_eq!(SuiteSet::ALL.iter().collect::<Vec<_>>(), Suite::ALL);
        let uncut = Suite::ALL.into_iter().filter(|suite| suite.icv_len() == crate::ICV_LEN);
        assert_eq!(uncut.collect::<SuiteSet>(), SuiteSet::UNCUT);
        let late = SuiteSet::EMPTY.with(Suite::Aes256Gcm).with(Suite::ChaCha20Poly1305);
        assert_eq!(gcm.intersect(late), SuiteSet::EMPTY.with(Suite::Aes256Gcm));
        assert!(SuiteSet::EMPTY.is_empty() && !gcm.is_empty());
    }

    #[test]
    fn every_byte_parses_to_known_suites_only() {
        for bits in 0..=u8::MAX {
            let set = SuiteSet::from_bits(bits);
            assert_eq!(set.bits(), bits & 0b1111);
            assert_eq!(set.iter().collect::<SuiteSet>(), set);
        }
    }
}
