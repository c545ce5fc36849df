//! The sender's end: what was said, what of it the receiver holds, and where to find it again.

use std::collections::VecDeque;

use super::anchors::anchors;
use super::copies;
use super::finder::Finder;
use super::index::AnchorIndex;
use super::ranges::Added;
use super::ring::Ring;
use super::{CACHED_MAX, COPY_MIN, CacheCapacity, CachePosition};

/// Payloads that may wait for their receipts, beside the [margin](CacheCapacity::margin): as many as there are numbers that a
/// replay window of 8,192 tells apart, for two datagrams each.
const PENDING_MAX: usize = 4_096;
/// A payload is worth keeping where what it takes is more than one byte in so many: with 16, a stream that comes for the third time
/// takes five times as much; with 64 nothing is gained.
const NEW_SHARE: usize = 32;

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
    /// Payloads without a receipt yet: position and length, in order.
    pending: VecDeque<(u64, usize)>,
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

    /// Gives `payload` a position and remembers it until its receipt comes. The unit that has it must say the position.
    ///
    /// `None` where it is too short or too long, or as much waits for receipts already as may: it is not kept then.
    pub fn keep(&mut self, payload: &[u8]) -> Option<CachePosition> {
        let position = self.ring.end();
        let end = position.checked_add(payload.len() as u64)?;
        let first = self.pending.front().map_or(position, |(first, _)| *first);
        if !(COPY_MIN..=CACHED_MAX).contains(&payload.len())
            || end - first > self.ring.capacity().margin()
            || self.pending.len() >= PENDING_MAX
        {
            return None;
        }
        self.ring.extend(end);
        self.ring.write(position, payload);
        self.pending.push_back((position, payload.len()));
        Some(CachePosition(position))
    }

    /// The receiver holds the payload at this position: from now on payloads may refer to it.
    pub fn acknowledged(&mut self, position: CachePosition) {
        let Some((start, len)) = self.take(position) else { return };
        let end = start + len as u64;
        if self.ring.hold(start..end) != Added::New {
            return;
        }
        let mut at = start;
        for chunk in self.ring.chunks(start..end) {
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
        while self.pending.pop_front_if(|(start, _)| *start < position.0).is_some() {}
    }

    fn take(&mut self, position: CachePosition) -> Option<(u64, usize)> {
        let at = self.pending.binary_search_by_key(&position.0, |(start, _)| *start).ok()?;
        self.pending.remove(at)
    }

    /// The receiver has forgotten everything. Positions go on, so that none is given twice.
    pub fn clear(&mut self) {
        self.ring.forget();
        self.index.clear();
        self.finder.clear();
        self.pending.clear();
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
