//! Addresses and ports of a flow's first packet, set against those of a packet before.

use std::ops::Range;

use super::MalformedField;
use super::header::HeaderFields;
use super::side::CodingSide;

/// As in the packet before.
const SAME: u8 = 0;
/// As the other end's there: the packet goes the other way.
const SWAPPED: u8 = 1;
/// Only its end differs: the host within its network, the low byte of a port.
const NEAR: u8 = 2;
/// Nothing is like it.
const WHOLE: u8 = 3;

/// Source and destination address, source and destination port: two bits each say which of the four it is.
pub(super) fn carry(
    side: &mut impl CodingSide,
    before: &HeaderFields,
    header: &mut HeaderFields,
) -> Result<(), MalformedField> {
    // A network has 8 bits of hosts more often than any other number, and 64 in IPv6 (RFC 4291 section 2.5.4).
    let hosts = if header.kind.v6 { 8..16 } else { 3..4 };
    let [from, to] = header.ports.map(u16::to_be_bytes);
    let [from_before, to_before] = before.ports.map(u16::to_be_bytes);
    let mut ends = [
        FlowEnd { value: header.src, same: before.src, other: before.dst, near: hosts.clone() },
        FlowEnd { value: header.dst, same: before.dst, other: before.src, near: hosts },
    ];
    let mut ports = [
        FlowEnd { value: from, same: from_before, other: to_before, near: 1..2 },
        FlowEnd { value: to, same: to_before, other: from_before, near: 1..2 },
    ];
    let ways = ends.iter().map(FlowEnd::way).chain(ports.iter().map(FlowEnd::way));
    let mut ways = ways.fold(0, |ways, way| ways << 2 | way);
    side.byte(&mut ways)?;
    let [src, dst] = &mut ends;
    let [from, to] = &mut ports;
    src.carry(side, ways >> 6)?;
    dst.carry(side, ways >> 4)?;
    from.carry(side, ways >> 2)?;
    to.carry(side, ways)?;
    (header.src, header.dst) = (src.value, dst.value);
    header.ports = [from.value, to.value].map(u16::from_be_bytes);
    Ok(())
}

/// An address or a port.
struct FlowEnd<const N: usize> {
    value: [u8; N],
    /// The one in its place before.
    same: [u8; N],
    /// The other one before.
    other: [u8; N],
    /// Where it ends, and what of that is not the network's.
    near: Range<usize>,
}

impl<const N: usize> FlowEnd<N> {
    fn way(&self) -> u8 {
        if self.value == self.same {
            SAME
        } else if self.value == self.other {
            SWAPPED
        } else if self.value.get(..self.near.start) == self.same.get(..self.near.start) {
            NEAR
        } else {
            WHOLE
        }
    }

    fn carry(&mut self, side: &mut impl CodingSide, ways: u8) -> Result<(), MalformedField> {
        let (known, from) = match ways & 3 {
            SAME => (self.same, N),
            SWAPPED => (self.other, N),
            NEAR => (self.same, self.near.start),
            _ => (self.value, 0),
        };
        for (at, (value, known)) in self.value.iter_mut().zip(known).enumerate().take(self.near.end) {
            if at < from {
                *value = known;
            } else {
                side.byte(value)?;
            }
        }
        Ok(())
    }
}
