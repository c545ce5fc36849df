//! The secrets of this node's days, and the file that keeps them across restarts: sixteen slots, one for a day, each written on its own.
//!
//! ```text
//! slot    day u32 | secret (32) | check (28)         at 64 times (day modulo 16); zeros when there is none
//! ```
//!
//! The check is the beginning of SHA-256 of a label, the node's key and what is before it. A slot that was torn is none: its day gets
//! another key, which is published anew. The slot of a day that is over is overwritten with zeros.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use zeroize::Zeroizing;

use super::bundle::SKEW;
use super::{DAILY_KEY_LEN, DAY, DAYS_MAX, DailyKeys, DailySecret, Day, KEPT_AFTER};
use crate::keystream::Keystream;
use crate::{PrivateKey, PublicKey};

const SLOT: usize = 64;
const LABEL: &[u8] = b"strait daily secret v1\0";
/// Bytes of the file.
pub const DAILY_FILE_LEN: usize = DAYS_MAX * SLOT;
/// Days after this one that have a key: for that long a directory may be away.
const AHEAD: u32 = 7;

/// What is to be written to the file; never printed.
pub struct DailySlotWrite {
    /// Where.
    pub at: u64,
    /// What; wiped when dropped.
    pub bytes: Zeroizing<[u8; SLOT]>,
}

impl core::fmt::Debug for DailySlotWrite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "DailySlotWrite({}, [key])", self.at)
    }
}

/// The secrets of this node's days.
#[derive(Debug)]
pub struct OwnDailyKeys {
    node: PublicKey,
    secrets: BTreeMap<Day, DailySecret>,
    /// The number of what was signed last.
    number: u64,
}

impl OwnDailyKeys {
    /// No secrets yet, of the node with this key.
    #[must_use]
    pub const fn new(node: PublicKey) -> OwnDailyKeys {
        OwnDailyKeys { node, secrets: BTreeMap::new(), number: 0 }
    }

    /// Reads the file; slots that are not whole, or of another node, are left out.
    #[must_use]
    pub fn read(node: PublicKey, file: &[u8]) -> OwnDailyKeys {
        let mut own = OwnDailyKeys::new(node);
        for (place, slot) in file.as_chunks::<SLOT>().0.iter().take(DAYS_MAX).enumerate() {
            let ([a, b, c, d], rest) = slot.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
            let (day, secret) = (Day(u32::from_be_bytes([*a, *b, *c, *d])), rest.first_chunk());
            let Some(secret) = secret.filter(|_| slot_of(day) == place) else { continue };
            // How long the comparison takes tells nothing: a check is no secret, and who can write here has the file.
            if *slot == *own.slot(day, secret) {
                own.secrets.insert(day, DailySecret::from_bytes(*secret));
            }
        }
        own
    }

    fn slot(&self, day: Day, secret: &[u8; DAILY_KEY_LEN]) -> Zeroizing<[u8; SLOT]> {
        let mut slot = Zeroizing::new([0; SLOT]);
        let (head, check) = slot.split_at_mut(4 + DAILY_KEY_LEN);
        head[..4].copy_from_slice(&day.0.to_be_bytes());
        head[4..].copy_from_slice(secret);
        let checked = Zeroizing::new([LABEL, self.node.as_bytes(), head].concat());
        let hash = digest(&SHA256, &checked);
        check.copy_from_slice(hash.as_ref().get(..SLOT - 4 - DAILY_KEY_LEN).unwrap_or_default());
        slot
    }

    /// The days for which there are keys at `unix`. Another day comes at a time of the day that each node has for itself, so that not all
    /// nodes publish at midnight.
    fn wanted(&self, unix: u64) -> RangeInclusive<u32> {
        let [a, b, c, d, ..] = *self.node.as_bytes();
        let offset = u64::from(u32::from_be_bytes([a, b, c, d])) % DAY;
        let last = Day::at(unix.saturating_sub(offset)).0.saturating_add(AHEAD);
        Day::at(unix.saturating_sub(KEPT_AFTER)).0..=last
    }

    /// Wipes the secrets of days that are over, and makes those of days that are near; gives what is to be written, wiped slots first.
    /// Nothing to write means that nothing has changed. `seed` is 32 bytes of the system's randomness that serve nothing else.
    pub fn roll(&mut self, unix: u64, seed: &[u8; 32]) -> Vec<DailySlotWrite> {
        let wanted = self.wanted(unix);
        let over: Vec<Day> = self.secrets.keys().filter(|day| !wanted.contains(&day.0)).copied().collect();
        let mut writes = Vec::new();
        for day in over {
            self.secrets.remove(&day);
            writes.push(DailySlotWrite { at: offset_of(day), bytes: Zeroizing::new([0; SLOT]) });
        }
        let mut stream = Keystream::new(seed, "daily keys");
        for day in wanted.map(Day) {
            if !self.secrets.contains_key(&day) {
                let secret = DailySecret::from_bytes(stream.next_block());
                writes.push(DailySlotWrite { at: offset_of(day), bytes: self.slot(day, secret.expose()) });
                self.secrets.insert(day, secret);
            }
        }
        writes
    }

    /// What is to be published, signed at `unix_micros`, microseconds since 1970, by the node that has `identity`.
    pub fn sign(&mut self, identity: &PrivateKey, unix_micros: u64) -> DailyKeys {
        // What a clock of the future has numbered was taken by none.
        let is_near = self.number <= unix_micros.saturating_add(SKEW * 1_000_000);
        self.number = if is_near { unix_micros.max(self.number.saturating_add(1)) } else { unix_micros };
        let first = self.secrets.keys().next().copied().unwrap_or(Day(0));
        let mut keys = Vec::with_capacity(self.secrets.len());
        for (day, secret) in &self.secrets {
            // They follow each other, as `roll` makes them.
            if usize::try_from(day.0 - first.0) != Ok(keys.len()) {
                break;
            }
            keys.push(secret.public());
        }
        DailyKeys::sign(identity, self.number, first, &keys)
    }

    /// The secret of a day.
    pub(crate) fn on(&self, day: Day) -> Option<&DailySecret> {
        self.secrets.get(&day)
    }

    /// The first and the last day that has a secret.
    #[must_use]
    pub fn days(&self) -> Option<(Day, Day)> {
        Some((*self.secrets.keys().next()?, *self.secrets.keys().next_back()?))
    }
}

fn slot_of(day: Day) -> usize {
    usize::try_from(day.0).unwrap_or(0) % DAYS_MAX
}

fn offset_of(day: Day) -> u64 {
    u64::try_from(slot_of(day) * SLOT).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(first: u8) -> (PrivateKey, OwnDailyKeys) {
        let identity = PrivateKey::generate(&[first; 32]);
        let own = OwnDailyKeys::new(identity.public());
        (identity, own)
    }

    fn write(file: &mut [u8], writes: &[DailySlotWrite]) {
        for write in writes {
            let at = usize::try_from(write.at).unwrap();
            file[at..at + SLOT].copy_from_slice(write.bytes.as_slice());
        }
    }

    #[test]
    fn secrets_come_for_days_ahead_and_go_two_hours_after_their_day() {
        let (identity, mut own) = node(1);
        let mut file = vec![0; DAILY_FILE_LEN];
        let noon = 20_000 * DAY + 43_200;
        let writes = own.roll(noon, &[7; 32]);
        assert_eq!(format!("{:?}", writes[0]), format!("DailySlotWrite({}, [key])", writes[0].at));
        write(&mut file, &writes);
        let (first, last) = own.days().unwrap();
        assert_eq!(first, Day(20_000));
        assert!(
            last == Day(20_007) || last == Day(20_006),
            "{last:?}: by the time of the day that is the node's"
        );
        let before = own.sign(&identity, 1);
        assert_eq!(before.days(), (first, Day(last.0 + 1)));
        assert!(own.roll(noon + 1, &[8; 32]).is_empty(), "nothing changes");
        // A restart finds the same keys.
        let mut again = OwnDailyKeys::read(identity.public(), &file);
        assert!(again.roll(noon, &[9; 32]).is_empty());
        assert_eq!(again.sign(&identity, 1).as_bytes(), before.as_bytes());
        // Over midnight the day before stays for two hours.
        let midnight = 20_001 * DAY;
        let secret = *own.on(Day(20_000)).unwrap().expose();
        write(&mut file, &own.roll(midnight + KEPT_AFTER - 1, &[10; 32]));
        assert!(own.on(Day(20_000)).is_some());
        write(&mut file, &own.roll(midnight + KEPT_AFTER, &[11; 32]));
        assert!(own.on(Day(20_000)).is_none());
        assert!(!file.windows(32).any(|bytes| bytes == secret), "its secret is not in the file any more");
        let after = own.sign(&identity, 2);
        assert_eq!(after.on(Day(20_001)), before.on(Day(20_001)), "a key that was published stays");
        assert!(after.number() > before.number());
    }

    #[test]
    fn a_torn_slot_and_a_file_of_another_node_have_no_secrets() {
        let (identity, mut own) = node(1);
        let mut file = vec![0; DAILY_FILE_LEN];
        write(&mut file, &own.roll(20_000 * DAY, &[7; 32]));
        assert_eq!(OwnDailyKeys::read(node(2).0.public(), &file).days(), None);
        let at = usize::try_from(offset_of(Day(20_003))).unwrap();
        file[at + 10] ^= 1;
        let mut again = OwnDailyKeys::read(identity.public(), &file);
        assert!(again.on(Day(20_003)).is_none() && again.on(Day(20_002)).is_some());
        assert_eq!(again.roll(20_000 * DAY, &[8; 32]).len(), 1, "another key for that day alone");
        for file in [&[][..], &[0xff; 3], &[0xff; 5000], &file[..100]] {
            let _ = OwnDailyKeys::read(identity.public(), file);
        }
        assert_eq!(format!("{:?}", again.on(Day(20_003)).unwrap()), "[key]");
    }

    #[test]
    fn a_clock_that_jumps_leaves_keys_for_where_it_is() {
        let (identity, mut own) = node(1);
        own.roll(20_000 * DAY, &[7; 32]);
        let first = own.sign(&identity, 5);
        own.roll(20_500 * DAY, &[8; 32]);
        own.roll(20_000 * DAY + 1, &[9; 32]);
        let again = own.sign(&identity, 3);
        assert!(again.number() > first.number(), "numbers do not go back");
        assert!(again.on(Day(20_000)).is_some());
        assert_ne!(again.on(Day(20_000)), first.on(Day(20_000)), "what was wiped does not come back");
        own.sign(&identity, 500 * DAY * 1_000_000);
        let back = own.sign(&identity, 9);
        assert_eq!(back.number(), 9, "what was numbered in the future is taken by none");
    }
}
