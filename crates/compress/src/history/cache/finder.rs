//! Looks for what of a payload was said before.

use super::COPY_MIN;
use super::anchors::anchors;
use super::copies::Copy;
use super::index::AnchorIndex;
use super::ring::Ring;

/// Ends of copies that are tried before anything is looked up: so many flows may take turns in a block.
const ENDS: usize = 4;

/// Finds copies; it allocates nothing once it has seen payloads with as many.
#[derive(Debug, Default)]
pub(super) struct Finder {
    copies: Vec<Copy>,
    /// Where copies ended last, and which of them is replaced next.
    ends: [Option<u64>; ENDS],
    replaced: usize,
}

/// What of a payload is looked for, and where.
struct Search<'a> {
    ring: &'a Ring,
    payload: &'a [u8],
    /// Where what is not said yet begins.
    start: usize,
}

impl Finder {
    /// The copies of `payload` in order.
    pub(super) fn find(&mut self, ring: &Ring, index: &AnchorIndex, payload: &[u8]) -> &[Copy] {
        self.copies.clear();
        let mut search = Search { ring, payload, start: 0 };
        let mut last = None;
        while let Some((slot, copy)) = self.next_copy(&search, index) {
            search.start += copy.between + copy.len;
            self.copies.push(copy);
            self.set_end(slot, copy.end());
            last = Some((slot, copy.end()));
        }
        if let Some((slot, end)) = last {
            // If it goes on as it did, the next payload begins behind what was not said here.
            self.set_end(slot, end.saturating_add((payload.len() - search.start) as u64));
        }
        &self.copies
    }

    /// The next copy, and the place for its end.
    fn next_copy(&mut self, search: &Search, index: &AnchorIndex) -> Option<(usize, Copy)> {
        self.follow(search).or_else(|| Some((self.next_slot(), search.look_up(index)?)))
    }

    /// The longest copy that begins where one ended.
    fn follow(&self, search: &Search) -> Option<(usize, Copy)> {
        let ends = self.ends.iter().enumerate().filter_map(|(slot, end)| Some((slot, (*end)?)));
        let copies = ends.filter_map(|(slot, end)| Some((slot, search.copy_from(end)?)));
        copies.max_by_key(|(_, copy)| copy.len)
    }

    fn next_slot(&mut self) -> usize {
        self.replaced = (self.replaced + 1) % ENDS;
        self.replaced
    }

    fn set_end(&mut self, slot: usize, end: u64) {
        if let Some(place) = self.ends.get_mut(slot) {
            *place = Some(end);
        }
    }

    /// Forgets where copies ended.
    pub(super) fn clear(&mut self) {
        self.ends = [None; ENDS];
    }
}

impl Search<'_> {
    /// The part of the log around `position` that a payload may refer to.
    fn referable(&self, position: u64) -> Option<core::ops::Range<u64>> {
        let held = self.ring.held().around(position)?;
        let first = self.ring.capacity().referable(self.ring.end());
        (position >= first).then_some(held.start.max(first)..held.end)
    }

    /// A copy from `position` on.
    fn copy_from(&self, position: u64) -> Option<Copy> {
        let held = self.referable(position)?;
        let len = self.ring.same_after(position..held.end, self.payload.get(self.start..)?);
        (len >= COPY_MIN).then_some(Copy { between: 0, len, position })
    }

    /// The first copy that an anchor leads to.
    fn look_up(&self, index: &AnchorIndex) -> Option<Copy> {
        anchors(self.payload, self.start).find_map(|anchor| {
            let position = index.get(anchor.hash, self.ring.end())?;
            self.copy_around(anchor.end, position)
        })
    }

    /// A copy as long as it can be, in which the payload's byte `at` comes from `position`.
    fn copy_around(&self, at: usize, position: u64) -> Option<Copy> {
        let held = self.referable(position.checked_sub(1)?)?;
        let (before, after) = self.payload.split_at_checked(at)?;
        let before = before.get(self.start..)?;
        let back = self.ring.same_before(held.start..position, before);
        let len = back + self.ring.same_after(position..held.end, after);
        let copy = Copy { between: before.len() - back, len, position: position - back as u64 };
        (len >= COPY_MIN).then_some(copy)
    }
}
