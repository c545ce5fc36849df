//! What differs between the headers that came and those that were expected, field by field.

use super::header::{ChecksumKind, HeaderFields, HeaderKind, Ids, URG, Upper};
use super::side::{CodingSide, ahead, number_u16, pair, signed, signed_u16};
use super::{MalformedField, flow};

/// Another flow's packet than the one before: its slot follows.
const SLOT: u8 = 0x80;
/// Changes of a second byte follow; none there says that the packet is not coded.
const MORE: u8 = 0x40;
const LEN: u8 = 0x20;
const SEQ: u8 = 0x10;
const ACK: u8 = 0x08;
const WINDOW: u8 = 0x04;
const STAMPS: u8 = 0x02;
const FLAGS: u8 = 0x01;
/// Without TCP's flags, their bit; with them, there is one among the rarer.
const ID: u8 = 0x01;

const KIND: u8 = 0x80;
const FLOW: u8 = 0x40;
const WORD: u8 = 0x20;
const TOS: u8 = 0x10;
const HOPS: u8 = 0x08;
const CHECK: u8 = 0x04;
const OPTIONS: u8 = 0x02;
const TCP_ID: u8 = 0x01;

/// Which fields are not as expected: the usual ones and the rarer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    usual: u8,
    rare: u8,
}

impl Change {
    /// Everything is as expected.
    pub(super) const NONE: Change = Change { usual: 0, rare: 0 };
    /// A packet that stands as it is among the payloads.
    pub(super) const RAW: Change = Change { usual: MORE, rare: 0 };

    /// What `header` has that was not expected: its kind by `next`, all else by `expected`, which is that for this kind;
    /// `elsewhere` when they are of another slot than the last packet's.
    pub(super) fn between(
        next: &HeaderFields,
        expected: &HeaderFields,
        header: &HeaderFields,
        elsewhere: bool,
    ) -> Change {
        let tcp = header.kind.upper() == Upper::Tcp;
        let flow = |header: &HeaderFields| (header.src, header.dst, header.ports);
        let kind = |kind: HeaderKind| (kind.v6, kind.protocol);
        let stamps = header.options.stamps();
        let id = expected.ids != Ids::Random && header.id != expected.id;
        let rare = [
            (KIND, kind(header.kind) != kind(next.kind)),
            (FLOW, flow(header) != flow(expected)),
            (WORD, header.kind.word != next.kind.word),
            (TOS, header.tos != expected.tos),
            (HOPS, header.hops != expected.hops),
            (CHECK, header.check != expected.check),
            (OPTIONS, !header.options.is_like(&expected.options)),
            (TCP_ID, tcp && id),
        ];
        let rare = bits(&rare);
        let usual = [
            (SLOT, elsewhere),
            (MORE, rare != 0),
            (LEN, header.payload_len != expected.payload_len),
            (SEQ, header.seq != expected.seq),
            (ACK, header.ack != expected.ack),
            (WINDOW, header.window != expected.window),
            (STAMPS, stamps.is_some_and(|stamps| stamps != expected.options.stamps().unwrap_or_default())),
            (FLAGS, tcp && (header.flags, header.urgent) != (expected.flags, expected.urgent)),
            (ID, !tcp && id),
        ];
        Change { usual: bits(&usual), rare }
    }

    /// The bytes that say it, of a packet that is set against one other by itself: there are no slots, and the bit of a slot is that of
    /// TCP's number of the packet, which hosts count over all their packets.
    pub(super) fn carry_lone(&mut self, side: &mut impl CodingSide) -> Result<(), MalformedField> {
        if self.rare & TCP_ID != 0 {
            self.rare ^= TCP_ID;
            self.usual = (self.usual | SLOT) & if self.rare == 0 { !MORE } else { 0xff };
        }
        side.byte(&mut self.usual)?;
        if self.usual & MORE != 0 {
            side.byte(&mut self.rare)?;
        }
        if self.usual & MORE != 0 && self.rare & !TCP_ID == 0 {
            return Err(MalformedField);
        }
        if self.usual & SLOT != 0 {
            self.usual ^= SLOT;
            self.rare |= TCP_ID;
        }
        Ok(())
    }

    /// The bytes that say which fields follow, and the slot.
    pub(super) fn carry(&mut self, side: &mut impl CodingSide, slot: &mut u8) -> Result<(), MalformedField> {
        side.byte(&mut self.usual)?;
        if self.usual & MORE == 0 {
            self.rare = 0;
        } else {
            side.byte(&mut self.rare)?;
        }
        if self.usual & SLOT != 0 {
            side.byte(slot)?;
        }
        Ok(())
    }

    /// What decides on the fields.
    pub(super) fn carry_kind(
        self,
        side: &mut impl CodingSide,
        kind: &mut HeaderKind,
    ) -> Result<(), MalformedField> {
        if self.rare & KIND != 0 {
            let mut both = u32::from(kind.protocol) << 1 | u32::from(kind.v6);
            side.number(&mut both)?;
            kind.v6 = both & 1 != 0;
            kind.protocol = u8::try_from(both >> 1).map_err(|_| MalformedField)?;
        }
        if self.rare & WORD != 0 {
            side.number(&mut kind.word)?;
        }
        Ok(())
    }

    /// The fields themselves; `expected` is of the packet's kind.
    pub(super) fn carry_fields(
        self,
        side: &mut impl CodingSide,
        expected: &HeaderFields,
        header: &mut HeaderFields,
    ) -> Result<(), MalformedField> {
        let tcp = header.kind.upper() == Upper::Tcp;
        if self.rare & FLOW != 0 {
            flow::carry(side, expected, header)?;
        }
        if self.rare & TOS != 0 {
            side.byte(&mut header.tos)?;
        }
        if self.rare & HOPS != 0 {
            side.byte(&mut header.hops)?;
        }
        if expected.ids == Ids::Random {
            pair(side, &mut header.id)?;
        } else if tcp && self.rare & TCP_ID != 0 || !tcp && self.usual & ID != 0 {
            signed_u16(side, expected.id, &mut header.id)?;
        }
        if self.usual & LEN != 0 {
            side.number(&mut header.payload_len)?;
        }
        if tcp {
            self.carry_tcp(side, expected, header)?;
        } else if self.usual & SEQ != 0 {
            signed(side, expected.seq, &mut header.seq)?;
        }
        if self.rare & CHECK != 0 {
            carry_check(side, &mut header.check)?;
        }
        Ok(())
    }

    fn carry_tcp(
        self,
        side: &mut impl CodingSide,
        expected: &HeaderFields,
        header: &mut HeaderFields,
    ) -> Result<(), MalformedField> {
        if self.usual & FLAGS != 0 {
            number_u16(side, &mut header.flags)?;
            if header.flags & URG == 0 {
                header.urgent = 0;
            } else {
                number_u16(side, &mut header.urgent)?;
            }
        }
        // Of another flow nothing tells where this one's numbers are.
        let fresh = self.rare & FLOW != 0;
        match (self.usual & SEQ != 0, fresh) {
            (false, _) => {}
            (true, false) => signed(side, expected.seq, &mut header.seq)?,
            (true, true) => side.word(&mut header.seq)?,
        }
        if self.usual & ACK != 0 {
            // From where it was: a step shorter than the last one is no step back.
            let before = expected.ack.wrapping_sub(expected.ack_step);
            counter(side, fresh, before, &mut header.ack)?;
        }
        if self.usual & WINDOW != 0 {
            signed_u16(side, expected.window, &mut header.window)?;
        }
        if self.rare & OPTIONS != 0 {
            header.options.carry(side, header.ack)?;
        }
        if let (Some([mut value, mut echo]), true) = (header.options.stamps(), self.usual & STAMPS != 0) {
            let before = expected.options.stamps();
            let ([value_before, echo_before], fresh) =
                (before.unwrap_or_default(), fresh || before.is_none());
            counter(side, fresh, value_before, &mut value)?;
            counter(side, fresh, echo_before, &mut echo)?;
            header.options.set_stamps([value, echo]);
        }
        Ok(())
    }
}

/// The bits of what is so.
fn bits(of: &[(u8, bool)]) -> u8 {
    of.iter().filter(|(_, so)| *so).fold(0, |bits, (bit, _)| bits | bit)
}

/// A number that goes up, or one that nothing is known of.
fn counter(
    side: &mut impl CodingSide,
    fresh: bool,
    expected: u32,
    value: &mut u32,
) -> Result<(), MalformedField> {
    if fresh { side.word(value) } else { ahead(side, expected, value) }
}

/// A checksum that is right, as 0, or else the one that stands there, plus one.
fn carry_check(side: &mut impl CodingSide, check: &mut ChecksumKind) -> Result<(), MalformedField> {
    let mut number = match *check {
        ChecksumKind::Right => 0,
        ChecksumKind::Kept(kept) => u32::from(kept) + 1,
    };
    side.number(&mut number)?;
    *check = match number.checked_sub(1) {
        None => ChecksumKind::Right,
        Some(kept) => ChecksumKind::Kept(u16::try_from(kept).map_err(|_| MalformedField)?),
    };
    Ok(())
}
