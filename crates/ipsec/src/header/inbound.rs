//! The receiver's half: numbers that the packet thread and the key manager share, and what a header that comes again means.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strait_clock::Time;
use strait_wire::Esn;

use super::schedule::{HEADER_PACKETS, HEADER_PAUSE};
use crate::inbound::Inlet;
use crate::layers::Inside;
use crate::{InboundSa, Notice, Reason};

/// How far a receiver's mark is ahead of what it delivers: what it refuses after a restart, though it was never sent, is what is sent
/// within 1 s, as numbers begin with the clock in microseconds.
pub const RECEIVE_SLACK: u64 = 1_000_000;
/// Pause between two notices of one cause on one association: as acknowledgements may be.
const NOTICE_PAUSE: Duration = Duration::from_millis(100);

/// The numbers of one packet key at its receiver. The packet thread writes the highest, the key manager ends the key.
#[derive(Debug, Default)]
pub struct KeyNumbers {
    highest: AtomicU64,
    ended: AtomicBool,
}

impl KeyNumbers {
    /// A key of which `highest` is the highest number so far.
    #[must_use]
    pub fn new(highest: u64) -> KeyNumbers {
        KeyNumbers { highest: AtomicU64::new(highest), ended: AtomicBool::new(false) }
    }

    /// The highest number that was authentic.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.highest.load(Ordering::SeqCst)
    }

    /// Notes that a packet with this number was authentic; false when the key has ended, and it is not to be delivered.
    pub fn note(&self, number: u64) -> bool {
        // First the number, then the end: the thread that ends the key sees the number, or the end is seen here. One thread notes.
        if number > self.highest.load(Ordering::Relaxed) {
            self.highest.store(number, Ordering::SeqCst);
        }
        !self.ended.load(Ordering::SeqCst)
    }

    /// Ends the key: no packet is delivered that is not at or below the number that is returned.
    pub fn end(&self) -> u64 {
        self.ended.store(true, Ordering::SeqCst);
        self.highest()
    }
}

/// The numbers of one sender at its receiver, over all of its keys.
#[derive(Debug, Default)]
pub struct SenderNumbers {
    /// The mark on disk: no number above it is delivered.
    mark: AtomicU64,
    /// The highest number that was authentic, and not at or below an earlier mark.
    newest: AtomicU64,
}

impl SenderNumbers {
    /// A sender whose mark on disk is this.
    #[must_use]
    pub fn new(mark: u64) -> SenderNumbers {
        SenderNumbers { mark: AtomicU64::new(mark), newest: AtomicU64::new(mark) }
    }

    /// The mark on disk.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark.load(Ordering::Relaxed)
    }

    /// The mark on disk is this now.
    pub fn persisted(&self, mark: u64) {
        self.mark.fetch_max(mark, Ordering::Relaxed);
    }

    /// Whether the number is above all before it, which it is noted to be.
    pub fn is_newest(&self, number: u64) -> bool {
        number > self.newest.load(Ordering::Relaxed) && {
            self.newest.store(number, Ordering::Relaxed);
            true
        }
    }
}

/// The header that an inbound association is known by.
#[derive(Clone, Debug)]
pub struct InboundHeader {
    /// Its bytes.
    pub bytes: Box<[u8]>,
    /// The number of the key's first packet.
    pub first: Esn,
    /// Whether its sender wants answers.
    pub answers: bool,
    /// Whether the SPI alone finds the association; not so where another has that SPI.
    pub bound: bool,
    /// The numbers of its key.
    pub key: Arc<KeyNumbers>,
    /// The numbers of its sender.
    pub sender: Arc<SenderNumbers>,
}

/// What is remembered of an association with a header.
#[derive(Debug)]
pub(crate) struct HeaderedIntake {
    pub(crate) header: InboundHeader,
    /// The last packet that had a header: when it came, its number.
    last: Option<(Time, u64)>,
    said_at: Option<Time>,
    mark_said_at: Option<Time>,
}

impl HeaderedIntake {
    pub(crate) const fn new(header: InboundHeader) -> HeaderedIntake {
        HeaderedIntake { header, last: None, said_at: None, mark_said_at: None }
    }

    /// Opens a packet. What is above the mark on disk is not delivered: after a crash a replay of it would be taken for new.
    #[inline(never)]
    pub(crate) fn open(
        &mut self,
        sa: &mut InboundSa,
        bytes: &mut [u8],
        inside: Inside,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<Inside, Reason> {
        let mut inside = sa.open(bytes, inside)?;
        let number = inside.esn.0;
        let InboundHeader { key, sender, .. } = &self.header;
        if !key.note(number) {
            return Err(Reason::UnknownSpi);
        }
        let mark = sender.mark();
        if number.saturating_add(RECEIVE_SLACK / 2) > mark && passed(self.mark_said_at, now) {
            self.mark_said_at = Some(now);
            inlet.notice(Notice::MarkLow(sa.peer, sa.spi, inside.esn));
        }
        if number > mark {
            return Err(Reason::AboveMark);
        }
        // The sender's place follows the newest of all its keys.
        inside.newest &= sender.is_newest(number);
        Ok(inside)
    }

    /// Whether the header, which the authentic packet with this number had, is in front of packets that need none.
    pub(crate) fn is_repeated(&mut self, number: Esn, now: Time) -> bool {
        let number = number.0;
        let close = self.last.is_some_and(|(at, before)| {
            now.since(at) < HEADER_PAUSE && number.abs_diff(before) < HEADER_PACKETS
        });
        self.last = Some((now, number));
        let says = close && self.header.answers && passed(self.said_at, now);
        if says {
            self.said_at = Some(now);
        }
        says
    }
}

/// Whether a further notice is allowed at `now`.
fn passed(last: Option<Time>, now: Time) -> bool {
    last.is_none_or(|last| now.since(last) >= NOTICE_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_ended_tells_the_highest_number_and_takes_none_above() {
        let key = KeyNumbers::new(5);
        assert!(key.note(9) && key.note(7));
        assert_eq!(key.end(), 9);
        assert!(!key.note(10), "not delivered");
    }

    #[test]
    fn the_newest_of_a_sender_is_above_its_mark_and_all_before() {
        let sender = SenderNumbers::new(100);
        assert_eq!(
            [100, 101, 101, 99, 200].map(|number| sender.is_newest(number)),
            [false, true, false, false, true]
        );
        sender.persisted(300);
        sender.persisted(200);
        assert_eq!(sender.mark(), 300);
    }
}
