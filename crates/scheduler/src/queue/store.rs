//! Where the bytes of packets that wait are: buffers of a few sizes, used again and again.

/// The smallest buffer: an empty TCP segment over IPv4 with timestamps takes 52 bytes, over IPv6 72.
const LEAST: usize = 64;
/// The largest buffer: no IP packet is longer, and no super-packet of the host's.
pub(super) const LARGEST: usize = 65_536;
/// Sizes between a power of two and the next, so that at most a ninth of a buffer stays unused.
const STEPS: usize = 8;
/// Doublings from the smallest buffer to the largest.
const DOUBLINGS: usize = LARGEST.ilog2() as usize - LEAST.ilog2() as usize;

/// Buffers for at most `capacity` bytes, in use and spare ones together. None is made before it is needed, none is made for
/// a size of which a spare one is there.
#[derive(Debug)]
pub(super) struct Store {
    spare: [Vec<Box<[u8]>>; STEPS * DOUBLINGS + 1],
    capacity: usize,
    used: usize,
    unused: usize,
}

impl Store {
    pub(super) fn new(capacity: usize) -> Store {
        Store { spare: core::array::from_fn(|_| Vec::new()), capacity, used: 0, unused: 0 }
    }

    /// Holds at most `capacity` bytes from now on; what is in use stays.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.make_room(0);
    }

    /// Whether `len` bytes could be held if nothing else were.
    pub(super) fn could_hold(&self, len: usize) -> bool {
        class(len).is_some_and(|class| size(class) <= self.capacity)
    }

    /// A buffer that holds `len` bytes; nothing when there is no room.
    pub(super) fn lend(&mut self, len: usize) -> Option<Box<[u8]>> {
        let class = class(len)?;
        let size = size(class);
        if self.used + size > self.capacity {
            return None;
        }
        let spare = self.spare.get_mut(class)?;
        let buffer = if let Some(buffer) = spare.pop() {
            self.unused -= size;
            buffer
        } else {
            self.make_room(size);
            vec![0; size].into_boxed_slice()
        };
        self.used += size;
        Some(buffer)
    }

    /// Takes back a buffer that [`Store::lend`] gave out.
    pub(super) fn give_back(&mut self, buffer: Box<[u8]>) {
        let size = buffer.len();
        self.used = self.used.saturating_sub(size);
        if self.used + self.unused + size > self.capacity {
            return;
        }
        if let Some(spare) = class(size).and_then(|class| self.spare.get_mut(class)) {
            self.unused += size;
            spare.push(buffer);
        }
    }

    /// Frees spare buffers until `more` bytes fit: the traffic is of other sizes now.
    fn make_room(&mut self, more: usize) {
        for spare in self.spare.iter_mut().rev() {
            while self.used + self.unused + more > self.capacity {
                let Some(buffer) = spare.pop() else { break };
                self.unused -= buffer.len();
            }
        }
    }
}

/// The smallest class of buffers that hold `len` bytes.
const fn class(len: usize) -> Option<usize> {
    if len <= LEAST {
        return Some(0);
    }
    if len > LARGEST {
        return None;
    }
    let doublings = (len - 1).ilog2() as usize - LEAST.ilog2() as usize;
    let base = LEAST << doublings;
    Some(STEPS * doublings + (len - base).div_ceil(base / STEPS))
}

/// Bytes of a buffer of this class.
const fn size(class: usize) -> usize {
    ((STEPS + class % STEPS) * (LEAST / STEPS)) << (class / STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_the_smallest_buffer_that_holds_it() {
        assert_eq!((size(0), size(STEPS * DOUBLINGS)), (LEAST, LARGEST));
        for len in 0..=LARGEST {
            let class = class(len).expect("within the largest");
            assert!(size(class) >= len, "{len}");
            assert!(class == 0 || size(class - 1) < len, "{len}");
            assert!(len <= LEAST || size(class) - len <= len.div_ceil(STEPS), "{len}");
        }
        assert_eq!(class(LARGEST + 1), None);
    }

    #[test]
    fn used_and_spare_buffers_never_exceed_the_capacity() {
        let mut random = strait_clock::Random::new(5);
        let (mut store, mut held) = (Store::new(100_000), Vec::new());
        for _ in 0..20_000 {
            let most = 1 << random.below(17);
            let len = usize::try_from(random.below(most)).expect("small");
            if random.below(2) == 0 {
                match store.lend(len) {
                    Some(buffer) => held.push(buffer),
                    None => {
                        assert!(store.used + len + len / 8 + LEAST > 100_000, "refused with room to spare")
                    }
                }
            } else if !held.is_empty() {
                let at = usize::try_from(random.below(held.len() as u64)).expect("small");
                store.give_back(held.swap_remove(at));
            }
            assert_eq!(store.used, held.iter().map(|buffer| buffer.len()).sum::<usize>());
            let spare: usize = store.spare.iter().flatten().map(|buffer| buffer.len()).sum();
            assert_eq!(store.unused, spare);
            assert!(store.used + store.unused <= 100_000);
        }
    }
}
