//! The Internet checksum (RFC 1071), fast enough to sit on every packet's way.
//!
//! The sum does not depend on byte order or word size as long as carries are folded back (RFC 1071 section
//! 2), so 32-bit little-endian words are added into 64-bit lanes, which compilers turn into vector code.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Protocol;

/// Bytes taken in one step: eight 64-bit lanes of one 32-bit word each.
const STEP: usize = 32;

/// A running one's-complement sum, not yet folded or complemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// Adds bytes as big-endian 16-bit words, an odd last byte as if a zero followed.
    ///
    /// Only the last piece added to a sum may have an odd length.
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Sum {
        let (steps, rest) = bytes.as_chunks::<STEP>();
        let mut lanes = [0u64; STEP / 4];
        for step in steps {
            add_step(&mut lanes, step);
        }
        self.add(total(&lanes)).add(tail(rest))
    }

    /// Adds one 16-bit field, in host order.
    #[must_use]
    pub fn add_u16(self, value: u16) -> Sum {
        self.add(Sum(u64::from(u16::from_le_bytes(value.to_be_bytes()))))
    }

    /// Adds one 32-bit field, in host order.
    #[must_use]
    pub fn add_u32(self, value: u32) -> Sum {
        self.add(Sum(u64::from(u32::from_le_bytes(value.to_be_bytes()))))
    }

    /// Adds what was summed elsewhere; `other` must have begun at an even offset.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "one's-complement addition, not the operator's")]
    pub fn add(self, other: Sum) -> Sum {
        let (sum, carry) = self.0.overflowing_add(other.0);
        // At most 2^64 - 2 when it carried, so the end-around carry cannot overflow.
        Sum(sum + u64::from(carry))
    }

    /// The checksum field: folded and complemented, in host order, ready for `to_be_bytes`.
    #[must_use]
    pub fn finish(self) -> u16 {
        u16::from_be_bytes((!self.folded()).to_le_bytes())
    }

    /// Whether what was summed holds a right checksum: the fold is all ones.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.folded() == 0xffff
    }

    fn folded(self) -> u16 {
        let [a, b, c, d, e, f, g, h] = self.0.to_le_bytes();
        let words = [[a, b], [c, d], [e, f], [g, h]];
        words.into_iter().map(u16::from_le_bytes).fold(0, add_folded)
    }
}

/// One's-complement addition of two folded words.
fn add_folded(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

#[inline(always)]
fn add_step(lanes: &mut [u64; STEP / 4], step: &[u8; STEP]) {
    let (words, _) = step.as_chunks::<4>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane += u64::from(u32::from_le_bytes(*word));
    }
}

fn total(lanes: &[u64; STEP / 4]) -> Sum {
    lanes.iter().fold(Sum::ZERO, |sum, lane| sum.add(Sum(*lane)))
}

/// Fewer bytes than a step, the last word filled up with zeros.
fn tail(rest: &[u8]) -> Sum {
    let (words, last) = rest.as_chunks::<4>();
    let mut word = [0u8; 4];
    for (place, byte) in word.iter_mut().zip(last) {
        *place = *byte;
    }
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).sum();
    Sum(whole + u64::from(u32::from_le_bytes(word)))
}

/// Copies `src` to `dst` and sums it in the same pass; the shorter of the two says how much.
pub fn copy_and_sum(dst: &mut [u8], src: &[u8]) -> Sum {
    let len = dst.len().min(src.len());
    let (Some(dst), Some(src)) = (dst.get_mut(..len), src.get(..len)) else {
        return Sum::ZERO;
    };
    let (to_steps, to_rest) = dst.as_chunks_mut::<STEP>();
    let (from_steps, from_rest) = src.as_chunks::<STEP>();
    let mut lanes = [0u64; STEP / 4];
    for (to, from) in to_steps.iter_mut().zip(from_steps) {
        *to = *from;
        add_step(&mut lanes, from);
    }
    to_rest.copy_from_slice(from_rest);
    total(&lanes).add(tail(from_rest))
}

/// The pseudo-header of an upper layer of `len` bytes over IPv4 (RFC 9293 section 3.1).
#[must_use]
pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol, len: u32) -> Sum {
    Sum::ZERO.add_bytes(&src.octets()).add_bytes(&dst.octets()).add_u16(u16::from(protocol.0)).add_u32(len)
}

/// The pseudo-header of an upper layer of `len` bytes over IPv6 (RFC 8200 section 8.1).
#[must_use]
pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: Protocol, len: u32) -> Sum {
    Sum::ZERO.add_bytes(&src.octets()).add_bytes(&dst.octets()).add_u32(len).add_u16(u16::from(protocol.0))
}

/// The pseudo-header for either family; addresses of two families are summed as they are.
#[must_use]
pub fn pseudo(src: IpAddr, dst: IpAddr, protocol: Protocol, len: u32) -> Sum {
    address(src).add(address(dst)).add_u32(len).add_u16(u16::from(protocol.0))
}

fn address(address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(v4) => Sum::ZERO.add_bytes(&v4.octets()),
        IpAddr::V6(v6) => Sum::ZERO.add_bytes(&v6.octets()),
    }
}
