//! What a node publishes: the public halves of its keys for days, signed by its identity.
//!
//! ```text
//! version u8 | identity (32) | number u64 | first day u32 | count u8 | key (32) | ... | signature (64)
//! ```
//!
//! The number is the time at which it was signed, in microseconds since 1970: a newer one replaces an older one, from wherever it comes.

use super::{DAILY_KEY_LEN, DAYS_MAX, Day};
use crate::{PrivateKey, PublicKey, SIGNATURE_LEN};

const VERSION: u8 = 1;
const LABEL: &[u8] = b"strait daily keys v1\0";
/// Bytes before the keys.
const HEAD: usize = 1 + 32 + 8 + 4 + 1;
/// Most bytes of it.
pub const DAILY_KEYS_MAX: usize = HEAD + DAYS_MAX * DAILY_KEY_LEN + SIGNATURE_LEN;
/// How far its number may be from the future: clocks of hosts that use NTP differ by less, others by minutes.
pub(super) const SKEW: u64 = 600;

/// What is not the daily keys of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDailyKeys {
    /// It is of another version.
    #[error("are daily keys of version {0}, of which this program knows only 1")]
    Version(u8),
    /// A field is cut off, or has a value that it must not have.
    #[error("are no daily keys")]
    Malformed,
    /// The node did not sign them.
    #[error("are daily keys that their node did not sign, or they were changed")]
    Signature,
}

/// The daily keys of a node: those that exist were verified.
#[derive(Clone, PartialEq, Eq)]
pub struct DailyKeys {
    node: PublicKey,
    number: u64,
    first: Day,
    keys: Box<[[u8; DAILY_KEY_LEN]]>,
    bytes: Box<[u8]>,
}

impl DailyKeys {
    /// What is signed: this, then all bytes before the signature.
    pub const LABEL: &[u8] = LABEL;

    /// Signs keys for `first` and the days after it, [`DAYS_MAX`] at most; further ones are left out.
    #[must_use]
    pub fn sign(identity: &PrivateKey, number: u64, first: Day, keys: &[[u8; DAILY_KEY_LEN]]) -> DailyKeys {
        let keys = keys.get(..DAYS_MAX).unwrap_or(keys);
        let node = identity.public();
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(node.as_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&first.0.to_be_bytes());
        bytes.push(u8::try_from(keys.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(keys.as_flattened());
        let signature = identity.sign(&[LABEL, &bytes].concat());
        bytes.extend_from_slice(&signature);
        DailyKeys { node, number, first, keys: keys.into(), bytes: bytes.into() }
    }

    /// Reads them, and verifies that the node signed them. Whether the node is one that counts is not known by that.
    ///
    /// # Errors
    /// [`BadDailyKeys`].
    pub fn from_bytes(bytes: &[u8]) -> Result<DailyKeys, BadDailyKeys> {
        match bytes.first() {
            Some(&VERSION) => {}
            Some(version) => return Err(BadDailyKeys::Version(*version)),
            None => return Err(BadDailyKeys::Malformed),
        }
        let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_LEN>().ok_or(BadDailyKeys::Malformed)?;
        let read = || {
            let (node, rest) = signed.get(1..)?.split_first_chunk::<32>()?;
            let (number, rest) = rest.split_first_chunk::<8>()?;
            let (first, rest) = rest.split_first_chunk::<4>()?;
            let (count, keys) = rest.split_first()?;
            let (keys, cut) = keys.as_chunks::<DAILY_KEY_LEN>();
            let is_good = cut.is_empty() && keys.len() == usize::from(*count) && keys.len() <= DAYS_MAX;
            let first = u32::from_be_bytes(*first);
            // Days beyond the last that can be counted are none.
            first.checked_add(u32::from(*count))?;
            is_good.then(|| (PublicKey::from_bytes(*node), u64::from_be_bytes(*number), Day(first), keys))
        };
        let (node, number, first, keys) = read().ok_or(BadDailyKeys::Malformed)?;
        if !node.verifies(&[LABEL, signed].concat(), signature) {
            return Err(BadDailyKeys::Signature);
        }
        Ok(DailyKeys { node, number, first, keys: keys.into(), bytes: bytes.into() })
    }

    /// They as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whose they are.
    #[must_use]
    pub const fn node(&self) -> &PublicKey {
        &self.node
    }

    /// Their number: when they were signed, in microseconds since 1970.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The first day, and the one after the last.
    #[must_use]
    pub fn days(&self) -> (Day, Day) {
        (self.first, Day(self.first.0.saturating_add(u32::try_from(self.keys.len()).unwrap_or(0))))
    }

    /// The key of a day.
    #[must_use]
    pub fn on(&self, day: Day) -> Option<&[u8; DAILY_KEY_LEN]> {
        self.keys.get(usize::try_from(day.0.checked_sub(self.first.0)?).ok()?)
    }

    /// Whether they are worth keeping at `unix`, seconds since 1970: they have a key for that day, the one before or the one after, and
    /// are not from the future.
    #[must_use]
    pub fn is_near(&self, unix: u64) -> bool {
        let (first, end) = self.days();
        let today = Day::at(unix).0;
        let signed = self.number / 1_000_000;
        first.0 <= today.saturating_add(1) && end.0 >= today && signed <= unix.saturating_add(SKEW)
    }
}

impl core::fmt::Debug for DailyKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (first, end) = self.days();
        write!(f, "DailyKeys({}, {}, {}..{})", self.node, self.number, first.0, end.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_another_signed_or_changed_is_refused() {
        let node = PrivateKey::generate(&[1; 32]);
        let keys = DailyKeys::sign(&node, 7, Day(20_000), &[[2; 32], [3; 32]]);
        assert_eq!(DailyKeys::from_bytes(keys.as_bytes()).as_ref(), Ok(&keys));
        assert_eq!((keys.on(Day(19_999)), keys.on(Day(20_001))), (None, Some(&[3; 32])));
        assert_eq!(keys.on(Day(20_002)), None);
        // The name of one node, the signature of another.
        let forged = DailyKeys::sign(&PrivateKey::generate(&[9; 32]), 7, Day(20_000), &[[2; 32], [3; 32]]);
        let mut bytes = forged.as_bytes().to_vec();
        bytes[1..33].copy_from_slice(node.public().as_bytes());
        assert_eq!(DailyKeys::from_bytes(&bytes), Err(BadDailyKeys::Signature));
        for at in 0..keys.as_bytes().len() {
            let mut changed = keys.as_bytes().to_vec();
            changed[at] ^= 1;
            assert!(DailyKeys::from_bytes(&changed).is_err(), "byte {at}");
            assert!(DailyKeys::from_bytes(&keys.as_bytes()[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn only_days_around_this_one_are_near() {
        let node = PrivateKey::generate(&[1; 32]);
        let noon = 20_000 * super::super::DAY + 43_200;
        let of = |first, count, number| {
            DailyKeys::sign(&node, number, Day(first), &vec![[2; 32]; count]).is_near(noon)
        };
        let now = noon * 1_000_000;
        for (first, count, number, near) in [
            (20_000, 8, now, true),
            (19_999, 1, now, true),
            (19_998, 1, now, false),
            (20_001, 1, now, true),
            (20_002, 1, now, false),
            (20_000, 8, now + 599_000_000, true),
            (20_000, 8, now + 601_000_000, false),
            (20_000, 8, 0, true),
        ] {
            assert_eq!(of(first, count, number), near, "{first} {count} {number}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(seed: [u8; 32], number: u64, first in 0..u32::MAX - 16, keys in prop::collection::vec(any::<[u8; 32]>(), 0..20)) {
            let signed = DailyKeys::sign(&PrivateKey::generate(&seed), number, Day(first), &keys);
            prop_assert!(signed.as_bytes().len() <= DAILY_KEYS_MAX);
            prop_assert_eq!(DailyKeys::from_bytes(signed.as_bytes()), Ok(signed.clone()));
            prop_assert_eq!(signed.on(Day(first)), keys.first());
        }

        #[test]
        fn never_panics_on_any_input(bytes: Vec<u8>) {
            let _ = DailyKeys::from_bytes(&bytes);
        }
    }
}
