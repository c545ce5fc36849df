//! What ESP, AH and all that puts them around a payload have in common: what is inside, how large it becomes outside, and who
//! vouches for it.

use core::ops::Range;

use strait_wire::esp::HEADER_LEN;
use strait_wire::{Esn, Protocol};

/// Proof that a packet passed an integrity check; only the steps that check make one.
#[derive(Clone, Copy, Debug)]
pub struct Authentic(());

impl Authentic {
    /// For the step that has just checked.
    pub(crate) const fn checked() -> Authentic {
        Authentic(())
    }
}

/// What is left of a packet while its protocols are taken off one after another.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// Offset of its first byte in the buffer.
    pub at: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// The protocol of what is left.
    pub next: Protocol,
    /// The sequence number of the protocol that was taken off last.
    pub esn: Esn,
    /// Whether that was the highest so far.
    pub newest: bool,
    /// Proof that an integrity check succeeded; nothing without one.
    pub proof: Option<Authentic>,
}

impl Inside {
    /// A packet that nothing was taken off.
    #[must_use]
    pub const fn untouched(at: usize, end: usize, next: Protocol) -> Inside {
        Inside { at, end, next, esn: Esn(0), newest: false, proof: None }
    }

    /// The bytes `at..end`.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.at..self.end
    }
}

/// A packet whose lengths do not add up, or that is longer than its algorithm takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsealable;

/// How many bytes ESP adds where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) iv: usize,
    pub(crate) icv: usize,
    /// What payload and trailer together are a multiple of, less one; a power of two less one.
    pub(crate) align: usize,
}

impl Sizes {
    /// Where the payload starts.
    pub(crate) const fn front(self) -> usize {
        HEADER_LEN + self.iv
    }

    /// Bytes of a whole ESP packet around a payload of `payload` bytes.
    pub(crate) const fn sealed(self, payload: usize) -> usize {
        self.front() + ((payload + 2 + self.align) & !self.align) + self.icv
    }

    /// The largest payload whose ESP packet takes at most `room` bytes.
    pub(crate) const fn room(self, room: usize) -> usize {
        let Some(text) = room.checked_sub(self.front() + self.icv) else { return 0 };
        (text & !self.align).saturating_sub(2)
    }
}
