//! A first-in, first-out queue of packets in one block of memory: nothing is allocated per packet.

/// A bounded queue of byte strings, each with a small note of its owner's.
///
/// Bytes lie one after another in one buffer; an entry never wraps, so it can be read as a slice.
#[derive(Debug)]
pub struct Ring<N> {
    bytes: Box<[u8]>,
    entries: std::collections::VecDeque<RingEntry<N>>,
    max_entries: usize,
    /// Where the next entry's bytes go.
    tail: usize,
    queued: usize,
}

#[derive(Debug)]
struct RingEntry<N> {
    start: usize,
    len: usize,
    note: N,
}

impl<N> Ring<N> {
    /// A queue of at most `max_entries` entries with at most `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize, max_entries: usize) -> Ring<N> {
        Ring {
            bytes: vec![0; capacity].into_boxed_slice(),
            entries: std::collections::VecDeque::with_capacity(max_entries),
            max_entries,
            tail: 0,
            queued: 0,
        }
    }

    /// Entries waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes waiting.
    #[must_use]
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes it can hold.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Copies `bytes`, at least one, to the end; gives `note` back when there is no room.
    ///
    /// # Errors
    /// The note, when the queue is full in bytes or in entries, or there are no bytes.
    pub fn push(&mut self, bytes: &[u8], note: N) -> Result<(), N> {
        let Some(start) = self.place(bytes.len()) else { return Err(note) };
        let Some(room) = self.bytes.get_mut(start..start + bytes.len()) else { return Err(note) };
        room.copy_from_slice(bytes);
        self.entries.push_back(RingEntry { start, len: bytes.len(), note });
        self.tail = start + bytes.len();
        self.queued += bytes.len();
        Ok(())
    }

    /// The entry at `index` from the front.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(&[u8], &N)> {
        let entry = self.entries.get(index)?;
        Some((self.bytes.get(entry.start..entry.start + entry.len)?, &entry.note))
    }

    /// The note of the entry at `index` from the front.
    pub fn note_mut(&mut self, index: usize) -> Option<&mut N> {
        self.entries.get_mut(index).map(|entry| &mut entry.note)
    }

    /// The first entry.
    #[must_use]
    pub fn front(&self) -> Option<(&[u8], &N)> {
        self.get(0)
    }

    /// Removes the first entry.
    pub fn pop(&mut self) -> Option<N> {
        let entry = self.entries.pop_front()?;
        self.queued -= entry.len;
        if self.entries.is_empty() {
            self.tail = 0;
        }
        Some(entry.note)
    }

    /// Where `len` bytes fit in one piece without touching what waits.
    fn place(&self, len: usize) -> Option<usize> {
        // Without bytes, an entry's start would not tell a full queue from one that begins there.
        if len == 0 || self.entries.len() >= self.max_entries {
            return None;
        }
        let Some(first) = self.entries.front() else {
            return (len <= self.bytes.len()).then_some(0);
        };
        if self.tail > first.start {
            if self.bytes.len() - self.tail >= len {
                return Some(self.tail);
            }
            // The end is too short: start over, strictly before the oldest entry.
            return (len < first.start).then_some(0);
        }
        (first.start - self.tail > len).then_some(self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn behaves_as_a_queue_whatever_the_sizes() {
        let mut random = strait_clock::Random::new(3);
        let mut ring: Ring<usize> = Ring::new(1000, 20);
        let mut model: VecDeque<(Vec<u8>, usize)> = VecDeque::new();
        for step in 0..20_000_usize {
            if random.below(5) < 3 {
                let len = 1 + usize::try_from(random.below(300)).expect("small");
                let byte = u8::try_from(step % 251).expect("small");
                let bytes = vec![byte; len];
                if ring.push(&bytes, step).is_ok() {
                    model.push_back((bytes, step));
                } else {
                    assert!(
                        model.len() == 20 || ring.queued() + 2 * 300 > 1000,
                        "refused with room to spare"
                    );
                }
            } else {
                assert_eq!(ring.pop(), model.pop_front().map(|(_, note)| note));
            }
            assert_eq!(ring.len(), model.len());
            assert_eq!(ring.queued(), model.iter().map(|(bytes, _)| bytes.len()).sum::<usize>());
            for (index, (bytes, note)) in model.iter().enumerate() {
                assert_eq!(ring.get(index), Some((bytes.as_slice(), note)));
            }
        }
    }

    #[test]
    fn more_than_the_capacity_is_refused_and_so_is_nothing() {
        let mut ring: Ring<()> = Ring::new(10, 2);
        assert!(ring.push(&[], ()).is_err());
        assert!(ring.push(&[0; 11], ()).is_err());
        assert!(ring.push(&[0; 10], ()).is_ok());
        assert!(ring.push(&[0; 1], ()).is_err());
    }
}
