//! A packet as it was on the network, from what was kept of it.

use strait_clock::Random;
use strait_wire::ip::{self, V4_HEADER_LEN, V6_HEADER_LEN, Version};

/// The longest IP packet without jumbograms.
const PACKET_MAX: usize = 65_535;
/// What is filled in depends on nothing: two runs say the same.
const SEED: u64 = 1;
/// Where headers say how long a packet is (RFC 791 section 3.1, RFC 8200 section 3).
const V4_LENGTH_AT: usize = 2;
const V6_LENGTH_AT: usize = 4;

/// A whole packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended<'a> {
    /// All of it, without what the line added behind.
    pub bytes: &'a [u8],
    /// How many of them were not captured, and stand for anything.
    pub missing: usize,
}

/// Fills in what a capture left out.
#[derive(Debug)]
pub struct Mender {
    buffer: Box<[u8]>,
    random: Random,
}

impl Default for Mender {
    fn default() -> Mender {
        Mender { buffer: vec![0; PACKET_MAX].into_boxed_slice(), random: Random::new(SEED) }
    }
}

impl Mender {
    /// The packet that begins with `kept` and was in `len` bytes on the network. Nothing when that is no IP packet, or one
    /// that says it is longer than its frame was.
    ///
    /// What is missing is filled with random bytes, which no codec makes smaller. A length of 0, as cards have it that cut
    /// packets themselves, becomes the frame's.
    pub fn mend<'a>(&'a mut self, kept: &'a [u8], len: usize) -> Option<Mended<'a>> {
        let version = ip::version_of(kept)?;
        let (length_at, beside, header) = match version {
            Version::V4 => (V4_LENGTH_AT, 0, V4_HEADER_LEN),
            Version::V6 => (V6_LENGTH_AT, V6_HEADER_LEN, V6_HEADER_LEN),
        };
        let unsaid = kept.get(length_at..length_at + 2)? == [0, 0] && len > header && kept.len() >= header;
        let declared = if unsaid { len.min(PACKET_MAX) } else { ip::declared_len(kept).ok()? };
        if declared > len {
            return None;
        }
        if !unsaid && declared <= kept.len() {
            return Some(Mended { bytes: kept.get(..declared)?, missing: 0 });
        }
        let captured = kept.len().min(declared);
        let (start, rest) = self.buffer.get_mut(..declared)?.split_at_mut_checked(captured)?;
        start.copy_from_slice(kept.get(..captured)?);
        if unsaid {
            let length = u16::try_from(declared - beside).ok()?.to_be_bytes();
            start.get_mut(length_at..length_at + 2)?.copy_from_slice(&length);
        }
        for chunk in rest.chunks_mut(8) {
            chunk.copy_from_slice(self.random.next_u64().to_le_bytes().get(..chunk.len())?);
        }
        Some(Mended { bytes: self.buffer.get(..declared)?, missing: declared - captured })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_wire::ip::Packet;

    /// A packet of `declared` bytes by its header.
    fn packet(version: Version, declared: usize, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..=255).cycle().take(len).collect();
        let (first, at, beside) = match version {
            Version::V4 => (0x45, 2, 0),
            Version::V6 => (0x60, 4, 40),
        };
        bytes[0] = first;
        bytes[6] = 59;
        let length = u16::try_from(declared.saturating_sub(beside)).unwrap();
        bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn what_is_whole_is_trimmed_to_its_own_length() {
        let mut mender = Mender::default();
        for version in [Version::V4, Version::V6] {
            let bytes = packet(version, 46, 60);
            assert_eq!(mender.mend(&bytes, 60), Some(Mended { bytes: &bytes[..46], missing: 0 }));
            assert_eq!(mender.mend(&bytes[..46], 46).map(|it| it.bytes.len()), Some(46));
            assert_eq!(mender.mend(&bytes[..45], 45), None, "longer than its frame");
        }
        for nothing in [&[][..], &[0x45], &[0x45, 0, 0], &[0x15; 60], &[0x60, 0, 0, 0]] {
            assert_eq!(mender.mend(nothing, 1_000), None);
        }
        assert_eq!(mender.mend(&packet(Version::V4, 19, 60), 60), None, "shorter than its header");
    }

    #[test]
    fn bytes_missing_from_capture_are_filled_with_random_data() {
        let mut mender = Mender::default();
        for version in [Version::V4, Version::V6] {
            let bytes = packet(version, 1_500, 96);
            let mended = mender.mend(&bytes, 1_500).unwrap();
            assert_eq!((mended.bytes.len(), mended.missing), (1_500, 1_404));
            assert_eq!(mended.bytes[..96], bytes);
            assert!(strait_compress::probe::looks_random(&mended.bytes[96..]));
            assert_eq!(mender.mend(&bytes, 1_499), None);
        }
    }

    #[test]
    fn a_length_of_nothing_is_the_frames() {
        let mut mender = Mender::default();
        for (version, frame, expected) in [
            (Version::V4, 1_848, 1_848),
            (Version::V6, 1_848, 1_848),
            (Version::V4, 70_000, 65_535),
            (Version::V6, 70_000, 65_535),
        ] {
            let bytes = packet(version, 0, 1_000);
            let mended = mender.mend(&bytes, frame).unwrap();
            assert_eq!((mended.bytes.len(), mended.missing), (expected, expected - 1_000));
            assert_eq!(Packet::parse(mended.bytes).unwrap().bytes().len(), expected);
        }
    }
}
