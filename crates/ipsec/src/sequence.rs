//! Sequence numbers: their only source at the sender, their low halves and windows at the receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_crypto::{FreshNonce, NonceCounter};
use strait_wire::{Esn, SeqLow};

use crate::layers::Authentic;
use crate::replay::{ReplayRefused, ReplayWindow};
use crate::{Reason, SequenceNumbers};

/// Numbers that an association may use: from the first, as far as the limit, which the key manager
/// raises on disk before it is reached.
#[derive(Clone, Debug)]
pub struct Reserve {
    first: u64,
    limit: Arc<AtomicU64>,
    /// The last number used, and one more, once no other will be.
    end: Arc<AtomicU64>,
}

impl Reserve {
    /// Numbers from `first` up to and with `limit`.
    #[must_use]
    pub fn new(first: u64, limit: u64) -> Reserve {
        Reserve { first, limit: Arc::new(AtomicU64::new(limit)), end: Arc::default() }
    }

    /// The first number.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The last number that may be used now.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The last number that was used, or the one before the first; nothing while there is an association that may
    /// use more.
    #[must_use]
    pub fn ended_at(&self) -> Option<u64> {
        self.end.load(Ordering::Acquire).checked_sub(1)
    }

    /// Allows numbers up to and with `limit`; to be called once that is safe on disk.
    pub fn raise(&self, limit: u64) {
        self.limit.fetch_max(limit, Ordering::Relaxed);
    }
}

/// Why there is no next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNumber {
    /// All are used: the keys must be replaced.
    Exhausted,
    /// More are to come as soon as they are safe on disk.
    NotReserved,
}

/// The numbers of an outbound association.
#[derive(Debug)]
pub(crate) struct Numbers {
    counter: NonceCounter,
    length: SequenceNumbers,
    /// The last that may be used as far as was known; looked up again only when it is reached.
    limit: u64,
    reserve: Option<Reserve>,
}

impl Numbers {
    pub(crate) fn new(length: SequenceNumbers) -> Numbers {
        Numbers { counter: NonceCounter::new(), length, limit: last(length), reserve: None }
    }

    pub(crate) fn within(mut self, reserve: Reserve) -> Numbers {
        self.counter = NonceCounter::starting_at(reserve.first());
        self.limit = last(self.length).min(reserve.limit());
        self.reserve = Some(reserve);
        self
    }

    /// The same for a new key whose first number is that of the reserve.
    pub(crate) fn new_within(mut self, reserve: Reserve) -> Numbers {
        self = self.within(reserve.clone());
        self.counter = NonceCounter::new_at(reserve.first());
        self
    }

    pub(crate) const fn length(&self) -> SequenceNumbers {
        self.length
    }

    /// The number used last.
    pub(crate) const fn last(&self) -> Esn {
        Esn(self.counter.last())
    }

    /// The next number. One that was sent must not be sent again (RFC 4303 section 3.3.3).
    pub(crate) fn next(&mut self) -> Result<FreshNonce, NoNumber> {
        if self.counter.last() >= self.limit {
            self.look_up_limit()?;
        }
        self.counter.next().map_err(|_| NoNumber::Exhausted)
    }

    fn look_up_limit(&mut self) -> Result<(), NoNumber> {
        let (last, used) = (last(self.length), self.counter.last());
        self.limit = last.min(self.reserve.as_ref().map_or(u64::MAX, Reserve::limit));
        match used {
            used if used < self.limit => Ok(()),
            used if used >= last => Err(NoNumber::Exhausted),
            _ => Err(NoNumber::NotReserved),
        }
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        if let Some(reserve) = &self.reserve {
            reserve.end.store(self.counter.last().saturating_add(1), Ordering::Release);
        }
    }
}

/// The last number of this length.
const fn last(length: SequenceNumbers) -> u64 {
    match length {
        SequenceNumbers::Bits32 => u32::MAX as u64,
        SequenceNumbers::Bits64 => u64::MAX,
    }
}

/// The numbers of one protocol of an inbound association.
#[derive(Debug)]
pub(crate) struct ReceivedNumbers {
    pub(crate) length: SequenceNumbers,
    pub(crate) window: ReplayWindow,
    /// The upper half to try, not the one that is inferred.
    supposed: Option<u32>,
}

impl ReceivedNumbers {
    pub(crate) fn new(length: SequenceNumbers) -> ReceivedNumbers {
        ReceivedNumbers { length, window: ReplayWindow::new(), supposed: None }
    }

    /// Takes numbers above `floor` alone, and infers them from `first` until one came.
    pub(crate) fn begin(&mut self, first: u64, floor: u64) {
        self.window = ReplayWindow::beginning(first, floor);
    }

    /// Takes numbers for those whose upper half is `ahead` of that of the highest so far, or again for what is inferred.
    pub(crate) fn suppose(&mut self, ahead: Option<u32>) {
        self.supposed = ahead.map(|ahead| self.window.highest().high().saturating_add(ahead));
    }

    /// Marks the number of a payload that was sent again in a datagram that `proof` vouches for: a datagram with it is a duplicate from
    /// now on.
    pub(crate) fn commit_repeated(&mut self, esn: Esn, proof: &Authentic) -> Result<(), ReplayRefused> {
        self.window.peek(esn)?;
        self.window.commit(esn, proof);
        Ok(())
    }

    /// The whole number whose low half came, if it could be new.
    pub(crate) fn peek(&self, low: SeqLow) -> Result<Esn, Reason> {
        let esn = match self.length {
            SequenceNumbers::Bits32 => Esn(u64::from(low.0)),
            SequenceNumbers::Bits64 => self
                .supposed
                .map_or_else(|| self.window.infer(low), |high| Esn(u64::from(high) << 32 | u64::from(low.0))),
        };
        self.window.peek(esn).map_err(|refused| match refused {
            ReplayRefused::TooOld => Reason::TooOld,
            ReplayRefused::Duplicate => Reason::Replayed,
        })?;
        Ok(esn)
    }
}

/// What an integrity check covers after the packet: the high half, where there is one that is not sent
/// (RFC 4302 section 2.5.1, RFC 4303 section 2.2.1).
pub(crate) fn unsent(esn: Esn, length: SequenceNumbers) -> ([u8; 4], usize) {
    match length {
        SequenceNumbers::Bits32 => ([0; 4], 0),
        SequenceNumbers::Bits64 => (esn.high().to_be_bytes(), 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NoNumber::{Exhausted, NotReserved};

    fn take(numbers: &mut Numbers) -> Result<u64, NoNumber> {
        numbers.next().map(|nonce| nonce.value())
    }

    #[test]
    fn fresh_association_starts_at_sequence_number_one() {
        let mut numbers = Numbers::new(SequenceNumbers::Bits64);
        assert_eq!((take(&mut numbers), take(&mut numbers)), (Ok(1), Ok(2)));
    }

    #[test]
    fn the_last_32_bit_number_is_the_last() {
        let reserve = Reserve::new(u64::from(u32::MAX), u64::MAX);
        let mut numbers = Numbers::new(SequenceNumbers::Bits32).within(reserve.clone());
        assert_eq!(take(&mut numbers), Ok(u64::from(u32::MAX)));
        assert_eq!([take(&mut numbers), take(&mut numbers)], [Err(Exhausted); 2]);
        let mut numbers = Numbers::new(SequenceNumbers::Bits64).within(reserve);
        assert_eq!(take(&mut numbers), Ok(u64::from(u32::MAX)));
        assert_eq!(take(&mut numbers), Ok(1 << 32));
    }

    #[test]
    fn the_numbers_of_a_new_key_may_begin_with_the_time() {
        let first = 900_000_000_000_000;
        let mut numbers = Numbers::new(SequenceNumbers::Bits64).new_within(Reserve::new(first, first + 1));
        assert_eq!([take(&mut numbers), take(&mut numbers)], [Ok(first), Ok(first + 1)]);
        assert_eq!(take(&mut numbers), Err(NotReserved));
        let mut old = Numbers::new(SequenceNumbers::Bits64).within(Reserve::new(first, first + 1));
        assert_eq!(take(&mut old), Err(Exhausted), "of a key that may have sealed all before");
    }

    #[test]
    fn no_number_is_used_that_is_not_reserved() {
        let reserve = Reserve::new(100, 101);
        let mut numbers = Numbers::new(SequenceNumbers::Bits64).within(reserve.clone());
        assert_eq!([take(&mut numbers), take(&mut numbers)], [Ok(100), Ok(101)]);
        assert_eq!([take(&mut numbers), take(&mut numbers)], [Err(NotReserved); 2]);
        reserve.raise(102);
        reserve.raise(90);
        assert_eq!([take(&mut numbers), take(&mut numbers)], [Ok(102), Err(NotReserved)]);
        assert_eq!(reserve.ended_at(), None);
        drop(numbers);
        assert_eq!(reserve.ended_at(), Some(102));
    }
}
