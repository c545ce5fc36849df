//! What every candidate makes of some of the traffic: packet by packet, and of what waited together.

use strait_compress::calibrate::CANDIDATES;
use strait_compress::{Codecs, THRESHOLD};
use strait_wire::block;

use crate::classes::CompressionSample;

/// Bytes of a class that are tried whatever comes: a block.
const FIRST: u64 = 65_536;
/// Of what comes after them, one byte in so many.
const ONE_IN: u64 = 16;
/// Bytes of a class that are tried at most.
const MOST: u64 = 4 << 20;
/// Where the tunnel does not compress, one in so many after the first 16 KiB: to see whether it is right.
const FIRST_IDLE: u64 = 16_384;
const ONE_IN_IDLE: u64 = 1_024;

/// Whether more of a class is to be tried, of which so many bytes were seen and tried, and which the tunnel compresses
/// or not.
pub(crate) fn is_wanted(seen: u64, tried: u64, compressed: bool) -> bool {
    let (first, one_in) = if compressed { (FIRST, ONE_IN) } else { (FIRST_IDLE, ONE_IN_IDLE) };
    tried < MOST.min(first + seen / one_in)
}

/// Codecs, and room for what they make.
#[derive(Debug)]
pub(crate) struct Sampler {
    codecs: Codecs,
    room: Box<[u8]>,
    /// Bytes of a block in one datagram.
    part: usize,
}

impl Sampler {
    /// For blocks of at most `longest` bytes, in datagrams that take packets of `mtu`.
    pub(crate) fn new(longest: usize, mtu: usize) -> Sampler {
        let part = mtu.saturating_sub(block::HEADER_LEN).max(1);
        Sampler { codecs: Codecs::new(), room: vec![0; longest].into_boxed_slice(), part }
    }

    /// Tries one block.
    pub(crate) fn one(&mut self, block: &[u8]) -> CompressionSample {
        let before = block.len() as u64;
        // As on the packet path: smaller with the headers of all its parts, or sent as it was.
        let headers = block::HEADER_LEN * block.len().div_ceil(self.part);
        let most = if block.len() < THRESHOLD { 0 } else { block.len().saturating_sub(headers + 1) };
        let room = self.room.get_mut(..most).unwrap_or_default();
        let after = CANDIDATES.map(|method| {
            let after = self.codecs.compress(method, block, room);
            after.map_or(before, |after| (after + block::HEADER_LEN * after.div_ceil(self.part)) as u64)
        });
        CompressionSample { lengths: before * before, before, after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_on_text_and_on_noise() {
        let mut sampler = Sampler::new(65_536, 1_500);
        let text = b"a line of text that comes again and again\n".repeat(100);
        let sample = sampler.one(&text);
        assert_eq!((sample.block(), sample.before), (4_200, 4_200));
        assert!(sample.after.iter().all(|after| *after < 1_000), "{sample:?}");
        let mut random = strait_clock::Random::new(1);
        let noise: Vec<u8> = (0..1_400).map(|_| random.next_u64().to_le_bytes()[0]).collect();
        assert_eq!(sampler.one(&noise).after, [1_400; CANDIDATES.len()]);
        assert_eq!(sampler.one(&[]).after, [0; CANDIDATES.len()]);
        assert_eq!(sampler.one(&[7; 89]).after, [89; CANDIDATES.len()], "under the threshold");
        let third = sample.share(1_400);
        assert_eq!((third.block(), third.before), (4_200, 1_400));
        assert_eq!(third.after[0], sample.after[0] / 3);
    }

    #[test]
    fn first_block_and_later_samples_are_wanted() {
        assert!(is_wanted(0, 0, true) && is_wanted(65_536, 60_000, true));
        assert!(!is_wanted(65_536, 70_000, true));
        assert!(is_wanted(1 << 20, 70_000, true));
        assert!(!is_wanted(u64::MAX, 4 << 20, true), "never more");
        assert!(is_wanted(0, 16_000, false) && !is_wanted(1 << 20, 70_000, false));
    }
}
