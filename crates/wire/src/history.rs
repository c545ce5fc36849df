//! History for packets that leave alone, under ESP next header 144: a packet coded against earlier ones, and receipts for those that were
//! kept.
//!
//! ```text
//! lone unit:      sub-type 0xE0 to 0xE7 | context | keep at, against | receipts (2 each) | headers | payload
//! receipts alone: sub-type 0xE8 | receipts (2 each)
//! for blocks:     sub-type 0xEA | receipts (2 each)
//!
//! the low bits of a lone unit's sub-type: 0x03 how many receipts, 0x04 whether the payload is coded
//! ```
//!
//! A *context* is what the sender says of one flow, or of one service between two hosts. It has 15 *places*, each with one packet. A unit
//! says at which place the receiver keeps its packet, and the packet of which place its headers are coded against; 0 is no place. A
//! *receipt* says that a unit was delivered and kept.

mod block;
mod cache;
mod comparison;

use crate::{Malformed, field};
pub use block::{BlockHistory, BlockNumber};
pub use cache::{BlockCache, CACHES_MAX};
pub use comparison::{
    CACHE_DIGESTS, CACHE_QUESTION, CacheDigests, CacheQuestion, DIGESTS_MAX, HASH_LEN, POSITION_END,
    QUESTION_LEN, RANGES_MAX, SEGMENT_LEN, SegmentDigest,
};

/// The private AGGFRAG sub-type of a lone unit, without its low bits.
pub const LONE: u8 = 0xe0;
/// The private AGGFRAG sub-type of receipts that come alone.
pub const RECEIPTS: u8 = 0xe8;
/// The private AGGFRAG sub-type of receipts for blocks.
pub const BLOCK_RECEIPTS: u8 = 0xea;
/// How many receipts ride in a lone unit.
const RIDING: u8 = 0x03;
/// The payload of a lone unit is coded.
const CODED: u8 = 0x04;
/// Places of a context: as many as four bits name beside none.
pub const PLACES: usize = PLACES_NUMBER as usize;
/// The number of the last place.
const PLACES_NUMBER: u8 = 15;
/// Sub-type, context and places of a lone unit.
pub const LONE_HEAD: usize = 3;
/// Bytes of a receipt.
pub const RECEIPT_LEN: usize = 2;
/// Most receipts that ride in a lone unit: what two bits count.
pub const RIDING_MAX: usize = RIDING as usize;
/// Most receipts that come alone. A receiver has no more to say of a flow: its sender has no more places.
pub const ALONE_MAX: usize = 16;

/// A place of a context, from 1 to [`PLACES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(u8);

impl Place {
    /// The place of this number; `None` for 0 and above [`PLACES`].
    #[must_use]
    pub const fn new(number: u8) -> Option<Place> {
        if number == 0 || number as usize > PLACES { None } else { Some(Place(number)) }
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its index in an array of [`PLACES`], from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Place> {
        (1..=PLACES_NUMBER).map(Place)
    }
}

/// That a unit was delivered and kept: the two low bits of its SPI above the 14 low bits of its sequence number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Receipt(pub u16);

impl Receipt {
    /// Sequence numbers that receipts of one association tell apart.
    pub const NUMBERS: u64 = 1 << 14;

    /// For the unit with this number of the association with this SPI.
    #[must_use]
    pub const fn new(spi: crate::Spi, number: u64) -> Receipt {
        Receipt(((spi.0 & 3) as u16) << 14 | (number % Receipt::NUMBERS) as u16)
    }

    /// How many numbers it is ahead of one of the same association; `None` where they are of two.
    #[must_use]
    pub const fn distance(self, before: Receipt) -> Option<u64> {
        // The number's bits; those above are the SPI's.
        const NUMBER: u16 = 0x3fff;
        if self.0 & !NUMBER != before.0 & !NUMBER {
            return None;
        }
        Some((self.0.wrapping_sub(before.0) & NUMBER) as u64)
    }
}

/// Receipts, the newest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipts {
    list: [Receipt; ALONE_MAX],
    len: u8,
}

impl Receipts {
    /// None.
    pub const NONE: Receipts = Receipts { list: [Receipt(0); ALONE_MAX], len: 0 };

    /// Adds one; where there are [`ALONE_MAX`] already, the oldest goes.
    pub fn push(&mut self, receipt: Receipt) {
        if usize::from(self.len) == ALONE_MAX {
            self.list.rotate_left(1);
            self.len -= 1;
        }
        if let Some(place) = self.list.get_mut(usize::from(self.len)) {
            *place = receipt;
            self.len += 1;
        }
    }

    /// Takes the newest `most` of them out.
    pub fn take_newest(&mut self, most: usize) -> Receipts {
        let mut taken = Receipts::NONE;
        let from = self.as_slice().len().saturating_sub(most);
        for receipt in self.as_slice().get(from..).unwrap_or_default() {
            taken.push(*receipt);
        }
        self.len = u8::try_from(from).unwrap_or(0);
        taken
    }

    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[Receipt] {
        self.list.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn read(bytes: &[u8]) -> Receipts {
        let mut receipts = Receipts::NONE;
        for pair in bytes.as_chunks::<RECEIPT_LEN>().0 {
            receipts.push(Receipt(u16::from_be_bytes(*pair)));
        }
        receipts
    }

    /// Reads receipts that came alone, and whether they are for blocks.
    ///
    /// # Errors
    /// [`Malformed`] when the sub-type is another, or there are none, more than [`ALONE_MAX`], or half a one.
    pub fn parse_alone(bytes: &[u8]) -> Result<(Receipts, bool), Malformed> {
        let ([subtype], rest) = field::split_header::<1>("receipts", bytes)?;
        let whole = rest.len().is_multiple_of(RECEIPT_LEN) && !rest.is_empty();
        if ![RECEIPTS, BLOCK_RECEIPTS].contains(subtype) || !whole || rest.len() > ALONE_MAX * RECEIPT_LEN {
            return Err(Malformed::new("receipts", bytes));
        }
        Ok((Receipts::read(rest), *subtype == BLOCK_RECEIPTS))
    }

    /// Bytes that [`Receipts::emit_alone`] writes.
    #[must_use]
    pub fn alone_len(&self) -> usize {
        1 + RECEIPT_LEN * self.as_slice().len()
    }

    /// Writes them as they come alone, for units or for blocks.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`Receipts::alone_len`].
    pub fn emit_alone(&self, blocks: bool, buf: &mut [u8]) -> Result<(), Malformed> {
        let subtype = if blocks { BLOCK_RECEIPTS } else { RECEIPTS };
        field::emit_header("buffer for receipts", buf, [subtype])?;
        self.write(buf.get_mut(1..).unwrap_or_default())
    }

    fn write(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let len = RECEIPT_LEN * self.as_slice().len();
        if buf.len() < len {
            return Err(Malformed::new("buffer for receipts", buf));
        }
        for (place, receipt) in buf.as_chunks_mut::<RECEIPT_LEN>().0.iter_mut().zip(self.as_slice()) {
            *place = receipt.0.to_be_bytes();
        }
        Ok(())
    }
}

/// What stands before the headers of a lone unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoneHead {
    /// Whose history it belongs to.
    pub context: u8,
    /// Where the receiver keeps its packet.
    pub keep: Option<Place>,
    /// Whose packet its headers are coded against.
    pub against: Option<Place>,
    /// Whether its payload is coded.
    pub coded: bool,
    /// Receipts that ride along, at most [`RIDING_MAX`].
    pub receipts: Receipts,
}

impl LoneHead {
    /// Reads it; gives what is behind it, too.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or has another sub-type.
    pub fn parse(bytes: &[u8]) -> Result<(LoneHead, &[u8]), Malformed> {
        let (&[subtype, context, places], rest) = field::split_header::<LONE_HEAD>("lone unit", bytes)?;
        if subtype & !(RIDING | CODED) != LONE {
            return Err(Malformed::new("sub-type of a lone unit", bytes));
        }
        let riding = RECEIPT_LEN * usize::from(subtype & RIDING);
        let (receipts, rest) =
            rest.split_at_checked(riding).ok_or_else(|| Malformed::new("receipts of a lone unit", bytes))?;
        let head = LoneHead {
            context,
            keep: Place::new(places >> 4),
            against: Place::new(places & 0x0f),
            coded: subtype & CODED != 0,
            receipts: Receipts::read(receipts),
        };
        Ok((head, rest))
    }

    /// Bytes that [`LoneHead::emit`] writes.
    #[must_use]
    pub fn head_len(&self) -> usize {
        LONE_HEAD + RECEIPT_LEN * self.receipts.as_slice().len()
    }

    /// Writes it at the start of `buf`.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is shorter than [`LoneHead::head_len`], or more receipts are to ride than can.
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), Malformed> {
        let riding = self.receipts.len;
        if usize::from(riding) > RIDING_MAX {
            return Err(Malformed::new("receipts of a lone unit", buf));
        }
        let subtype = LONE | riding | if self.coded { CODED } else { 0 };
        let number = |place: Option<Place>| place.map_or(0, Place::number);
        let places = number(self.keep) << 4 | number(self.against);
        field::emit_header("buffer for a lone unit", buf, [subtype, self.context, places])?;
        self.receipts.write(buf.get_mut(LONE_HEAD..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggfrag::{Subtype, subtype};

    fn receipts(of: &[u16]) -> Receipts {
        let mut receipts = Receipts::NONE;
        of.iter().for_each(|receipt| receipts.push(Receipt(*receipt)));
        receipts
    }

    #[test]
    fn a_lone_unit_on_the_wire() {
        let head = LoneHead {
            context: 7,
            keep: Place::new(3),
            against: Place::new(15),
            coded: true,
            receipts: receipts(&[0x8001]),
        };
        let mut bytes = [0; 5];
        head.emit(&mut bytes).unwrap();
        assert_eq!(bytes, [0xe5, 7, 0x3f, 0x80, 0x01]);
        assert_eq!(subtype(&bytes), Some(Subtype::Lone));
        assert!(head.emit(&mut bytes[..4]).is_err());
        assert!(LoneHead::parse(&bytes[..4]).is_err() && LoneHead::parse(&[0xe8, 0, 0]).is_err());
        let four = LoneHead { receipts: receipts(&[1, 2, 3, 4]), ..head };
        assert!(four.emit(&mut [0; 20]).is_err());
    }

    #[test]
    fn a_receipt_names_spi_and_number() {
        assert_eq!(Receipt::new(crate::Spi(0x0400_0006), 0x1_4005), Receipt(0x8005));
    }

    #[test]
    fn the_newest_receipts_are_taken_and_the_oldest_give_way() {
        let mut all = receipts(&(0..20).collect::<Vec<u16>>());
        assert_eq!(all.as_slice().first(), Some(&Receipt(4)));
        assert_eq!(all.take_newest(2), receipts(&[18, 19]));
        assert_eq!(all.take_newest(99).as_slice().len(), 14);
        assert!(all.is_empty());
    }

    #[test]
    fn receipts_alone_are_some_and_whole() {
        for broken in [&[0xe8][..], &[0xe8, 1], &[0xe8, 1, 2, 3], &[0xe7, 1, 2], &[0xe8; 35], &[]] {
            assert!(Receipts::parse_alone(broken).is_err(), "{broken:?}");
        }
        assert_eq!(subtype(&[0xe8]), Some(Subtype::Receipts));
        assert_eq!(subtype(&[0xea]), Some(Subtype::Receipts));
        assert_eq!(subtype(&[0xeb]), Some(Subtype::Block));
        assert_eq!(subtype(&[0xec]), Some(Subtype::CacheQuestion));
        assert_eq!(subtype(&[0xed]), Some(Subtype::CacheDigests));
        assert_eq!(subtype(&[0xee]), Some(Subtype::Unknown(0xee)));
    }

    proptest! {
        #[test]
        fn round_trip(context: u8, keep in 0..=15_u8, against in 0..=15_u8, coded: bool,
                      riding in proptest::collection::vec(any::<u16>(), 0..=3),
                      alone in proptest::collection::vec(any::<u16>(), 1..=16), rest: Vec<u8>) {
            let (keep, against) = (Place::new(keep), Place::new(against));
            let head = LoneHead { context, keep, against, coded, receipts: receipts(&riding) };
            let mut bytes = vec![0; head.head_len()];
            head.emit(&mut bytes).unwrap();
            for len in 0..bytes.len() {
                prop_assert!(LoneHead::parse(&bytes[..len]).is_err());
            }
            bytes.extend(&rest);
            prop_assert_eq!(LoneHead::parse(&bytes).unwrap(), (head, &rest[..]));
            let all = receipts(&alone);
            let mut bytes = vec![0; all.alone_len()];
            all.emit_alone(coded, &mut bytes).unwrap();
            prop_assert_eq!(Receipts::parse_alone(&bytes).unwrap(), (all, coded));
        }
    }
}
