//! The datagrams that a block left in, and which receipts are for it.

use strait_wire::history::Receipt;

use super::UnitNumber;

/// The numbers of the datagrams of a block that waits for its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentNumbers {
    association: u32,
    first: u64,
    last: u64,
    /// The receipt that the first would bring.
    low: Receipt,
}

impl SentNumbers {
    /// Of datagrams from `first` to `last`; `low` is the receipt that the first would bring.
    #[must_use]
    pub const fn new(first: UnitNumber, last: u64, low: Receipt) -> SentNumbers {
        SentNumbers { association: first.association, first: first.number, last, low }
    }

    /// Whether this is a receipt for it, where `newest` is the number that was used last: one names the number that is nearest before
    /// the newest. One that is late may be taken for another block's: that costs the blocks that refer to it, and never makes them
    /// wrong.
    #[must_use]
    pub fn is_of(&self, receipt: Receipt, newest: UnitNumber) -> bool {
        let SentNumbers { association, first, last, low } = *self;
        let current = association == newest.association && first + Receipt::NUMBERS > newest.number;
        current && receipt.distance(low).is_some_and(|distance| distance <= last.saturating_sub(first))
    }
}
