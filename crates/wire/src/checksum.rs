//! The Internet checksum (RFC 1071), fast enough to sit on every packet's way.
//!
//! The sum does not depend on byte order or word size as long as carries are folded back (RFC 1071 section
//! 2), so 32-bit little-endian words are added in lanes, which compilers turn into vector code.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Protocol;

/// Bytes taken in one step: one 32-bit word for each of eight lanes.
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
        let mut sum = self;
        for steps in steps.chunks(Lanes::STEPS_MAX) {
            let mut lanes = Lanes::default();
            for step in steps {
                lanes.add(step);
            }
            sum = sum.add(lanes.total());
        }
        sum.add(short(rest))
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

/// Eight running sums of 32-bit words that wrap around, and of their upper halves, which say what was lost:
/// three vector operations for four words, where sums in wider lanes take four.
#[derive(Debug, Clone, Copy, Default)]
struct Lanes {
    words: [u32; STEP / 4],
    uppers: [u32; STEP / 4],
}

impl Lanes {
    /// So many steps that neither the upper nor the lower halves of a lane can sum to 2^32.
    const STEPS_MAX: usize = 1 << 16;

    #[inline(always)]
    fn add(&mut self, step: &[u8; STEP]) {
        let (words, _) = step.as_chunks::<4>();
        for ((sum, upper), word) in self.words.iter_mut().zip(&mut self.uppers).zip(words) {
            let word = u32::from_le_bytes(*word);
            *sum = sum.wrapping_add(word);
            *upper += word >> 16;
        }
    }

    fn total(&self) -> Sum {
        let lanes = self.words.iter().zip(&self.uppers);
        Sum(lanes
            .map(|(sum, upper)| u64::from(sum.wrapping_sub(upper << 16)) + (u64::from(*upper) << 16))
            .sum())
    }
}

/// Few bytes, as those left over from steps or those of a header; the last word filled up with zeros.
#[inline]
pub(crate) fn short(rest: &[u8]) -> Sum {
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
    let mut sum = Sum::ZERO;
    for (to, from) in to_steps.chunks_mut(Lanes::STEPS_MAX).zip(from_steps.chunks(Lanes::STEPS_MAX)) {
        let mut lanes = Lanes::default();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
            lanes.add(from);
        }
        sum = sum.add(lanes.total());
    }
    to_rest.copy_from_slice(from_rest);
    sum.add(short(from_rest))
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 section 4.1, word by word as printed there.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    #[test]
    fn rfc1071_example() {
        // Section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::ZERO.add_bytes(&bytes).finish(), !0xddf2);
    }

    #[test]
    fn edges() {
        assert_eq!(Sum::ZERO.finish(), 0xffff);
        assert!(!Sum::ZERO.is_valid());
        assert_eq!(Sum::ZERO.add_u16(0xffff).finish(), 0);
        assert!(Sum::ZERO.add_u16(0xffff).is_valid());
        assert_eq!(Sum::ZERO.add_bytes(&[0x12]).finish(), !0x1200);
        let most = vec![0xff; 65_536];
        assert_eq!(Sum::ZERO.add_bytes(&most).finish(), 0);
        assert!(Sum(u64::MAX).add(Sum(u64::MAX)).is_valid());
    }

    #[test]
    fn every_length_up_to_several_steps() {
        let bytes: Vec<u8> = (0..200u8).map(|i| i.wrapping_mul(151).wrapping_add(7)).collect();
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            assert_eq!(Sum::ZERO.add_bytes(bytes).finish(), reference(bytes), "{len} bytes");
            let mut copy = vec![0; len];
            assert_eq!(copy_and_sum(&mut copy, bytes).finish(), reference(bytes), "{len} bytes copied");
            assert_eq!(copy, bytes);
        }
    }

    #[test]
    fn copy_stops_at_the_shorter() {
        let mut short = [0; 3];
        assert_eq!(copy_and_sum(&mut short, &[1, 2, 3, 4]).finish(), reference(&[1, 2, 3]));
        assert_eq!(short, [1, 2, 3]);
        let mut long = [9; 4];
        assert_eq!(copy_and_sum(&mut long, &[1, 2]).finish(), reference(&[1, 2]));
        assert_eq!(long, [1, 2, 9, 9]);
    }

    #[test]
    fn pseudo_headers() {
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 168, 3, 4));
        let expected = reference(&[10, 0, 0, 1, 192, 168, 3, 4, 0, 17, 0, 0, 0x12, 0x34]);
        assert_eq!(pseudo_v4(src, dst, Protocol::UDP, 0x1234).finish(), expected);
        assert_eq!(pseudo(src.into(), dst.into(), Protocol::UDP, 0x1234).finish(), expected);
        let (src, dst) = (Ipv6Addr::from([0x20; 16]), Ipv6Addr::from([0x31; 16]));
        let header = [&[0x20; 16][..], &[0x31; 16], &[0, 1, 0x12, 0x34], &[0, 0, 0, 6]].concat();
        assert_eq!(pseudo_v6(src, dst, Protocol::TCP, 0x1_1234).finish(), reference(&header));
        assert_eq!(pseudo(src.into(), dst.into(), Protocol::TCP, 0x1_1234).finish(), reference(&header));
    }

    proptest! {
        #[test]
        fn agrees_with_the_reference(bytes in vec(any::<u8>(), 0..3000), cut in 0usize..1500) {
            let expected = reference(&bytes);
            prop_assert_eq!(Sum::ZERO.add_bytes(&bytes).finish(), expected);
            let (a, b) = bytes.split_at((cut * 2).min(bytes.len() & !1));
            prop_assert_eq!(Sum::ZERO.add_bytes(a).add_bytes(b).finish(), expected);
            let apart = Sum::ZERO.add_bytes(b).add(Sum::ZERO.add_bytes(a));
            prop_assert_eq!(apart.finish(), expected);
        }

        #[test]
        fn a_written_checksum_validates(mut bytes in vec(any::<u8>(), 2..300)) {
            bytes[0] = 0;
            bytes[1] = 0;
            let checksum = Sum::ZERO.add_bytes(&bytes).finish();
            bytes[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(Sum::ZERO.add_bytes(&bytes).is_valid());
            bytes[0] ^= 1;
            prop_assert!(!Sum::ZERO.add_bytes(&bytes).is_valid());
        }

        #[test]
        fn fields_are_words(a in any::<u16>(), b in any::<u32>()) {
            let bytes = [&a.to_be_bytes()[..], &b.to_be_bytes()].concat();
            prop_assert_eq!(Sum::ZERO.add_u16(a).add_u32(b), Sum::ZERO.add_bytes(&bytes[..2]).add_bytes(&bytes[2..]));
        }
    }
}
