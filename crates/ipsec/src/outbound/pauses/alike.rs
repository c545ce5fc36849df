//! Blocks that are nearly equal, as those are in which a secret stands beside one guess after another.
//!
//! Blocks are compared by the least hashes of their pieces (Broder, *On the resemblance and containment of documents*, 1997; with one
//! hash and slots: Li, Owen and Zhang, *One permutation hashing*, 2012): the share of slots that are equal is about the share of
//! pieces that both have. Headers of packets are left aside, as their counters change.

use strait_wire::ip::Packet;
use strait_wire::tcp::Segment;
use strait_wire::{Protocol, block, udp};

/// Slots of a sketch; a power of two.
const SLOTS: usize = 32;
/// So many slots are equal in blocks that are nearly equal: three quarters of their pieces. Guesses beside a secret have 28 to 32 in
/// common, blocks of most captures less than 20.
const EQUAL: usize = 24;
/// Earlier blocks that one is compared with: an attacker sends each guess in a few alignments.
const REMEMBERED: usize = 4;
/// Sizes of nearly equal blocks differ by no more than this share.
const SIZE_SHARE: usize = 8;
/// So many more blocks that are nearly equal to an earlier one than others are too many. The scripted client learns up to 25 bits from so
/// many (394 from 1,000); an attack whose blocks are less than half of all is not noticed.
const MOST: u32 = 64;

/// What is remembered of a block.
#[derive(Clone, Copy, Debug)]
struct BlockSketch {
    before: usize,
    after: usize,
    least: [u32; SLOTS],
}

/// The last blocks of a trust domain, and how many more of all were alike than were not.
#[derive(Clone, Debug, Default)]
pub(super) struct AlikeBlocks {
    last: [Option<BlockSketch>; REMEMBERED],
    next: usize,
    more: u32,
}

impl AlikeBlocks {
    /// Compares a block with the last ones: these packets, which became `after` bytes. True where too many were alike; it begins
    /// anew then.
    pub(super) fn note(&mut self, packets: &[u8], after: usize) -> bool {
        let sketch = BlockSketch { before: packets.len(), after, least: least(packets) };
        if self.last.iter().flatten().any(|last| last.is_like(&sketch)) {
            self.more += 1;
        } else {
            self.more = self.more.saturating_sub(1);
        }
        self.next = (self.next + 1) % REMEMBERED;
        if let Some(oldest) = self.last.get_mut(self.next) {
            *oldest = Some(sketch);
        }
        let too_many = self.more >= MOST;
        if too_many {
            *self = AlikeBlocks::default();
        }
        too_many
    }
}

impl BlockSketch {
    fn is_like(&self, other: &BlockSketch) -> bool {
        let near = |a: usize, b: usize| a.abs_diff(b) <= a / SIZE_SHARE;
        let equal = self.least.iter().zip(&other.least).filter(|(a, b)| a == b).count();
        near(self.before, other.before) && near(self.after, other.after) && equal >= EQUAL
    }
}

/// The least hash in each slot, of every four bytes in the payloads of these packets.
fn least(packets: &[u8]) -> [u32; SLOTS] {
    let mut least = [u32::MAX; SLOTS];
    for packet in block::packets(packets).map_while(Result::ok) {
        for piece in payload(packet).array_windows::<4>() {
            // The golden ratio, as Fibonacci hashing has it (Knuth, volume 3, section 6.4).
            let hash = u64::from(u32::from_le_bytes(*piece)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (slot, value) = (hash >> 59, (hash >> 27) as u32);
            if let Some(least) = least.get_mut(slot as usize) {
                *least = value.min(*least);
            }
        }
    }
    least
}

/// What a packet carries behind its headers.
fn payload(packet: &[u8]) -> &[u8] {
    let Ok(ip) = Packet::parse(packet) else { return packet };
    let (protocol, upper) = (ip.protocol(), ip.payload());
    match protocol {
        Protocol::TCP => Segment::parse(upper).map_or(upper, |segment| segment.payload()),
        Protocol::UDP => upper.get(udp::HEADER_LEN..).unwrap_or_default(),
        _ => upper,
    }
}
