//! The sender's end: what was said, what of it the receiver holds, and where to find it again.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use strait_clock::Time;
use strait_wire::history::{POSITION_END, SegmentDigest};

use super::super::MemoryShare;
use super::anchors::anchors;
use super::copies;
use super::finder::Finder;
use super::index::AnchorIndex;
use super::ranges::Added;
use super::ring::Ring;
use super::stored::{held, positions};
use super::{CACHED_MAX, COPY_MIN, CacheCapacity, CachePosition, RestoreError};

/// Payloads that may wait for their receipts, beside the [margin](CacheCapacity::margin): as many as there are numbers that a
/// replay window of 8,192 tells apart, for two datagrams each.
const PENDING_MAX: usize = 4_096;
/// A payload is worth keeping where what it takes is more than one byte in so many: with 16, a stream that comes for the third time
/// takes five times as much; with 64 nothing is gained.
const NEW_SHARE: usize = 32;

/// How long a receipt is waited for where others want the room: three round trips over a satellite.
const WAIT: Duration = Duration::from_secs(2);

/// What [`CacheSender::encode`] made of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheCoded {
    /// Bytes that it takes.
    pub len: usize,
    /// Bytes of the payload that are copied.
    pub copied: usize,
    /// Copies.
    pub copies: usize,
    /// Whether keeping the payload would gain anything: much of it is new, it takes many copies, or these are about to be
    /// overwritten.
    pub worth_keeping: bool,
}

/// What was said to one peer in one trust domain.
#[derive(Debug)]
pub struct CacheSender {
    ring: Ring,
    index: AnchorIndex,
    finder: Finder,
    /// Payloads without a receipt yet, in order.
    pending: VecDeque<Pending>,
}

/// A payload that waits for its receipt.
#[derive(Clone, Copy, Debug)]
struct Pending {
    position: u64,
    len: usize,
    /// Since when.
    at: Time,
}

impl CacheSender {
    /// Keeps as much as the receiver does. Memory is taken in segments as payloads are kept, and a sixteenth of that for the index.
    #[must_use]
    pub fn new(capacity: CacheCapacity) -> CacheSender {
        CacheSender {
            ring: Ring::new(capacity),
            index: AnchorIndex::new(capacity.bytes()),
            finder: Finder::default(),
            pending: VecDeque::new(),
        }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> CacheSender {
        CacheSender { ring: self.ring.within(share), ..self }
    }

    /// Says `payload` by what the receiver holds, in the front of `out`; `None` where that is no shorter, or does not fit.
    pub fn encode(&mut self, payload: &[u8], out: &mut [u8]) -> Option<CacheCoded> {
        let copies = self.finder.find(&self.ring, &self.index, payload);
        let room = out.len().min(payload.len().saturating_sub(1));
        let len = copies::write(payload, copies, out.get_mut(..room)?)?;
        let copied = copies.iter().map(|copy| copy.len).sum();
        let old = self.ring.capacity().ageing(self.ring.end());
        let is_old = copies.iter().any(|copy| copy.position < old);
        let is_new = len > payload.len() / NEW_SHARE;
        Some(CacheCoded { len, copied, copies: copies.len(), worth_keeping: is_new || is_old })
    }

    /// The same at the end of `out`, whether that is shorter or not.
    pub fn say(&mut self, payload: &[u8], out: &mut Vec<u8>) -> CacheCoded {
        let start = out.len();
        out.resize(start + payload.len(), 0);
        let room = out.get_mut(start..).unwrap_or_default();
        if let Some(coded) = self.encode(payload, room).filter(|coded| coded.copies > 0) {
            out.truncate(start + coded.len);
            return coded;
        }
        out.truncate(start);
        out.push(0);
        out.extend_from_slice(payload);
        CacheCoded { len: 1 + payload.len(), copied: 0, copies: 0, worth_keeping: true }
    }

    /// The receiver's log ends here: positions go on behind what either end has used.
    pub fn go_on_behind(&mut self, end: u64) {
        self.ring.extend(end);
    }

    /// Gives `payload` a position and remembers it until its receipt comes. The unit that has it must say the position.
    ///
    /// `None` where it is too short or too long, or as much waits for receipts already as may, or there is no memory: it is not kept
    /// then. Where others want its room, what has waited for two seconds is given up, and so is what was overtaken by many receipts.
    pub fn keep(&mut self, payload: &[u8], now: Time) -> Option<CachePosition> {
        let position = self.ring.end();
        let end = position.checked_add(payload.len() as u64).filter(|end| *end <= POSITION_END)?;
        if !(COPY_MIN..=CACHED_MAX).contains(&payload.len()) {
            return None;
        }
        let stale = now.as_nanos().checked_sub(WAIT.as_nanos() as u64).map(Time::from_nanos);
        while self.is_full(end) {
            let overtaken = self.is_overtaken(end);
            self.pending.pop_front_if(|first| overtaken || stale.is_some_and(|stale| first.at <= stale))?;
        }
        if !self.ring.make_room(position..end) {
            return None;
        }
        self.ring.extend(end);
        self.ring.write(position, payload);
        self.pending.push_back(Pending { position, len: payload.len(), at: now });
        Some(CachePosition(position))
    }

    /// Whether as much waits as may, were the log to end here.
    fn is_full(&self, end: u64) -> bool {
        let first = self.pending.front().map_or(end, |first| first.position);
        self.pending.len() >= PENDING_MAX || end - first > self.ring.capacity().margin()
    }

    /// Whether receipts came for more than half of what was kept since the first that waits.
    fn is_overtaken(&self, end: u64) -> bool {
        let first = self.pending.front().map_or(end, |first| first.position);
        let waiting: usize = self.pending.iter().map(|pending| pending.len).sum();
        2 * (waiting as u64) < end - first
    }

    /// The receiver holds the payload at this position: from now on payloads may refer to it.
    pub fn acknowledged(&mut self, position: CachePosition) {
        let Some(Pending { position, len, .. }) = self.take(position) else { return };
        let range = position..position + len as u64;
        if self.ring.hold(range.clone()) == Added::New {
            self.note_anchors(range);
        }
    }

    fn note_anchors(&mut self, range: Range<u64>) {
        let mut at = range.start;
        for chunk in self.ring.chunks(range) {
            for anchor in anchors(chunk, 0) {
                self.index.put(anchor.hash, at + anchor.end as u64);
            }
            at += chunk.len() as u64;
        }
    }

    /// The payload at this position was lost, or no receipt is waited for any more.
    pub fn lost(&mut self, position: CachePosition) {
        let _ = self.take(position);
    }

    /// The same for all payloads before this position.
    pub fn lost_before(&mut self, position: CachePosition) {
        while self.pending.pop_front_if(|first| first.position < position.0).is_some() {}
    }

    fn take(&mut self, position: CachePosition) -> Option<Pending> {
        let at = self.pending.binary_search_by_key(&position.0, |pending| pending.position).ok()?;
        self.pending.remove(at)
    }

    /// The receiver may have forgotten anything: payloads refer to nothing before it is [confirmed](CacheSender::confirm). Positions
    /// go on, so that none is given twice.
    pub fn clear(&mut self) {
        self.ring.forget();
        self.index.clear();
        self.finder.clear();
        self.pending.clear();
    }

    /// Writes a segment of which more is held than when it was written last to the end of `out`, at most
    /// [`STORED_MAX`](super::STORED_MAX) bytes, the lowest first; its number. It may change again later.
    pub fn store_changed(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        self.ring.store_changed(out)
    }

    /// Takes what [`CacheSender::store_changed`] wrote. Segments come in the order of their numbers, before anything is kept. Payloads refer to
    /// it after it was [confirmed](CacheSender::confirm).
    ///
    /// # Errors
    /// [`RestoreError`]; everything stays as it was then.
    pub fn restore(&mut self, stored: &[u8]) -> Result<(), RestoreError> {
        self.ring.restore(stored)?;
        self.ring.forget();
        Ok(())
    }

    /// The receiver holds these bytes of a segment. Where they are the same here, acknowledged or not, payloads may refer to them from
    /// now on. It hashes them: at most 1 MiB.
    pub fn confirm(&mut self, digest: &SegmentDigest) -> bool {
        let segment = positions(digest.number);
        let capacity = self.ring.capacity();
        let is_here = segment.start >= capacity.oldest(self.ring.end())
            && segment.start < self.ring.end()
            && self.ring.hash(held(digest)) == digest.hash;
        for range in held(digest).filter(|_| is_here) {
            if self.ring.hold_again(range.clone()) == Added::New {
                self.note_anchors(range);
            }
        }
        is_here
    }

    /// Where the log ends.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.ring.end()
    }

    /// How much is kept.
    #[must_use]
    pub const fn capacity(&self) -> CacheCapacity {
        self.ring.capacity()
    }

    /// Bytes of payloads that the receiver is known to hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.ring.held().bytes()
    }

    /// Bytes of memory that payloads and their index take.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.ring.allocated() + self.index.allocated()
    }

    /// Payloads that wait for their receipts.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}
