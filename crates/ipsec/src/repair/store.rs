//! Copies of the payloads that were sent last, by their sequence numbers.

use strait_clock::Time;
use strait_scheduler::Ring;
use strait_wire::{Esn, Protocol, Tos};

/// An entry for so many bytes of the store: payloads are a few hundred bytes on the average, where small ones travel beside full ones.
const BYTES_AN_ENTRY: usize = 256;

/// One payload that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPayload<'a> {
    /// Its sequence number.
    pub number: Esn,
    /// What it is.
    pub next: Protocol,
    /// DSCP and ECN of the datagram it was in.
    pub tos: Tos,
    /// When it was sealed.
    pub at: Time,
    /// How often it was sent again, and when last.
    pub repeats: u8,
    /// When it was sent again last; when it was sealed, if it never was.
    pub repeated_at: Time,
    /// Its bytes, before sealing.
    pub bytes: &'a [u8],
}

/// What is known of a payload beside its bytes.
#[derive(Clone, Copy, Debug)]
struct StoredNote {
    number: Esn,
    next: Protocol,
    tos: Tos,
    at: Time,
    repeats: u8,
    repeated_at: Time,
}

/// The payloads of one association that were sent last, as many as fit. Numbers are in ascending order; some are missing.
#[derive(Debug)]
pub struct PayloadStore {
    ring: Ring<StoredNote>,
}

impl PayloadStore {
    /// An empty store for `capacity` bytes of payloads. It takes no other memory until it grows.
    #[must_use]
    pub fn new(capacity: usize) -> PayloadStore {
        PayloadStore { ring: Ring::new(capacity, capacity.div_ceil(BYTES_AN_ENTRY)) }
    }

    /// Bytes that it can hold.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Keeps a payload; the oldest ones go to make room. Says when the youngest of those was sealed. What is empty or longer than the
    /// whole store is not kept, and neither is what has no higher number than all before.
    pub fn push(&mut self, payload: &StoredPayload<'_>) -> Option<Time> {
        let StoredPayload { number, next, tos, at, repeats, repeated_at, bytes } = *payload;
        if bytes.is_empty() || bytes.len() > self.capacity() || self.newest() >= Some(number) {
            return None;
        }
        let (mut note, mut gone) = (StoredNote { number, next, tos, at, repeats, repeated_at }, None);
        while let Err(back) = self.ring.push(bytes, note) {
            note = back;
            gone = Some(self.ring.pop()?.at);
        }
        gone
    }

    /// Makes room for `capacity` bytes; what is kept stays.
    pub fn grow(&mut self, capacity: usize) {
        let mut larger = PayloadStore::new(capacity);
        for place in 0..self.ring.len() {
            if let Some((bytes, note)) = self.ring.get(place) {
                let _ = larger.ring.push(bytes, *note);
            }
        }
        *self = larger;
    }

    /// The payload with this number, if it is kept.
    #[must_use]
    pub fn get(&self, number: Esn) -> Option<StoredPayload<'_>> {
        let (bytes, note) = self.ring.get(self.place(number)?)?;
        let StoredNote { number, next, tos, at, repeats, repeated_at } = *note;
        Some(StoredPayload { number, next, tos, at, repeats, repeated_at, bytes })
    }

    /// Notes that the payload with this number is sent again.
    pub fn note_repeat(&mut self, number: Esn, now: Time) {
        let note = self.place(number).and_then(|place| self.ring.note_mut(place));
        if let Some(note) = note {
            (note.repeats, note.repeated_at) = (note.repeats.saturating_add(1), now);
        }
    }

    /// The highest number that is kept.
    #[must_use]
    pub fn newest(&self) -> Option<Esn> {
        let last = self.ring.len().checked_sub(1)?;
        self.ring.get(last).map(|(_, note)| note.number)
    }

    /// Forgets all payloads.
    pub fn clear(&mut self) {
        while self.ring.pop().is_some() {}
    }

    /// Where in the ring the payload with this number is.
    fn place(&self, number: Esn) -> Option<usize> {
        let (mut from, mut to) = (0, self.ring.len());
        while from < to {
            let middle = from.midpoint(to);
            let (_, note) = self.ring.get(middle)?;
            match note.number.cmp(&number) {
                core::cmp::Ordering::Less => from = middle + 1,
                core::cmp::Ordering::Equal => return Some(middle),
                core::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(number: u64, bytes: &[u8]) -> StoredPayload<'_> {
        let at = Time::from_millis(number);
        let (number, next, tos) = (Esn(number), Protocol::IPIP, Tos(2));
        StoredPayload { number, next, tos, at, repeats: 0, repeated_at: at, bytes }
    }

    #[test]
    fn the_last_payloads_are_found_by_their_numbers() {
        let mut store = PayloadStore::new(4_096);
        for number in (1..=200).filter(|number| number % 3 != 0) {
            store.push(&payload(number, &[u8::try_from(number).unwrap(); 100]));
        }
        assert_eq!(store.newest(), Some(Esn(200)));
        let kept: Vec<u64> = (1..=300).filter(|number| store.get(Esn(*number)).is_some()).collect();
        assert_eq!(kept.len(), 4_096 / 256, "as many as there are entries");
        assert!(kept.iter().all(|number| number % 3 != 0 && *number > 170), "{kept:?}");
        let found = store.get(Esn(199)).unwrap();
        assert_eq!((found.number, found.bytes), (Esn(199), &[199; 100][..]));
    }

    #[test]
    fn what_had_to_go_is_told_by_its_age() {
        let mut store = PayloadStore::new(1_000);
        assert_eq!(store.push(&payload(1, &[1; 400])), None);
        assert_eq!(store.push(&payload(2, &[2; 400])), None);
        assert_eq!(store.push(&payload(3, &[3; 300])), Some(Time::from_millis(1)));
        assert_eq!(store.push(&payload(4, &[4; 900])), Some(Time::from_millis(3)));
        assert_eq!(store.push(&payload(5, &[5; 1_001])), None, "too long");
        assert_eq!(store.push(&payload(6, &[])), None, "nothing");
        assert_eq!(store.push(&payload(3, &[3; 9])), None, "an earlier number");
        assert_eq!(store.newest(), Some(Esn(4)));
        store.clear();
        assert_eq!(store.newest(), None);
    }

    #[test]
    fn what_is_kept_stays_when_the_store_grows() {
        let mut store = PayloadStore::new(1_000);
        for number in 1..=5 {
            store.push(&payload(number, &[number as u8; 300]));
        }
        store.note_repeat(Esn(4), Time::from_millis(50));
        let kept = |store: &PayloadStore| -> Vec<u64> {
            (1..=12).filter(|number| store.get(Esn(*number)).is_some()).collect()
        };
        let before = kept(&store);
        store.grow(4_000);
        assert_eq!(kept(&store), before);
        for number in 6..=12 {
            store.push(&payload(number, &[number as u8; 300]));
        }
        assert_eq!(kept(&store), [before, (6..=12).collect()].concat());
        assert_eq!(
            (store.get(Esn(4)).unwrap().repeats, store.get(Esn(5)).unwrap().bytes),
            (1, &[5; 300][..])
        );
    }

    #[test]
    fn repeats_are_counted() {
        let mut store = PayloadStore::new(1_000);
        store.push(&payload(7, &[1; 10]));
        store.note_repeat(Esn(7), Time::from_millis(50));
        store.note_repeat(Esn(8), Time::from_millis(60));
        let found = store.get(Esn(7)).unwrap();
        assert_eq!((found.repeats, found.repeated_at), (1, Time::from_millis(50)));
    }
}
