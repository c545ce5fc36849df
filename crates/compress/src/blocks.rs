//! Blocks: packets one after another, their headers coded, then compressed; and back.

use crate::headers::{self, Coder};
use crate::history::cache::{CacheCoded, CacheReceiver, CacheSender};
use crate::history::{HistoryBuffers, HistoryError};
use crate::{Codec, Codecs, Coding, ExpandError, Method};

/// Makes blocks and expands them, each by itself.
///
/// Contexts are made at their first use and kept; from then on no block allocates. One object serves one thread.
#[derive(Debug, Default)]
pub struct Blocks {
    codecs: Codecs,
    /// Codes headers, also of what is not compressed then.
    pub headers: Coder,
    /// What is between the two steps.
    between: Vec<u8>,
}

/// The block that packets were made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// How.
    pub coding: Coding,
    /// Bytes that it is.
    pub len: usize,
    /// Bytes that it was before it was compressed: less than the packets where their headers are coded.
    pub coded: usize,
}

/// Why a block could not be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// What was compressed.
    #[error(transparent)]
    Codec(#[from] ExpandError),
    /// What was coded before.
    #[error(transparent)]
    Headers(#[from] headers::HeadersError),
    /// What was said by copies from a byte cache.
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl BlockError {
    /// Whether it is that the block has more packets than allowed.
    #[must_use]
    pub const fn is_too_many(self) -> bool {
        matches!(self, BlockError::Headers(headers::HeadersError::TooMany { .. }))
    }

    /// Whether it is that the block would give more bytes than agreed.
    #[must_use]
    pub const fn is_too_long(self) -> bool {
        matches!(
            self,
            BlockError::Codec(ExpandError::TooLong { .. })
                | BlockError::Headers(headers::HeadersError::TooLong { .. })
                | BlockError::History(HistoryError::TooLong { .. })
        )
    }
}

impl Blocks {
    /// Blocks without any context yet.
    #[must_use]
    pub fn new() -> Blocks {
        Blocks::default()
    }

    /// Compresses `packets` with `method` into the front of `output`, their headers coded before if that makes them
    /// shorter and `headers` says that the receiver can decode them.
    ///
    /// `None` when that does not fit, or compressing gains nothing.
    pub fn make(&mut self, method: Method, headers: bool, packets: &[u8], output: &mut [u8]) -> Option<Made> {
        Some(self.make_from(method, headers, &[], packets, output)?.0)
    }

    /// The same behind the prefix in `history`, which gets what is kept of the block.
    pub fn make_behind(
        &mut self,
        method: Method,
        headers: bool,
        packets: &[u8],
        output: &mut [u8],
        history: &mut HistoryBuffers,
    ) -> Option<Made> {
        let (made, payloads) = self.make_from(method, headers, &history.prefix, packets, output)?;
        history.kept.clear();
        history.kept.extend_from_slice(payloads);
        Some(made)
    }

    /// Says the payloads of `packets` by copies from a byte cache: what is in `staged` then is compressed with
    /// [`Blocks::make_staged`]. Whether headers are coded in it, and what the copies are; `kept` gets the payloads.
    pub fn stage(
        &mut self,
        headers: bool,
        packets: &[u8],
        cache: &mut CacheSender,
        staged: &mut Vec<u8>,
        kept: &mut Vec<u8>,
    ) -> (bool, CacheCoded) {
        let (headers, input) = code(&mut self.headers, &mut self.between, headers, packets);
        let payloads = payloads(headers, input);
        let (head, _) = input.split_at(input.len() - payloads.len());
        staged.clear();
        staged.extend_from_slice(head);
        kept.clear();
        kept.extend_from_slice(payloads);
        (headers, cache.say(payloads, staged))
    }

    /// Compresses what [`Blocks::stage`] made behind `prefix` into the front of `output`; as it is where that gains nothing. `None` when
    /// that does not fit.
    pub fn make_staged(
        &mut self,
        method: Method,
        (headers, staged): (bool, &[u8]),
        prefix: &[u8],
        output: &mut [u8],
    ) -> Option<Made> {
        let made = |codec, len| Made { coding: Coding { headers, codec }, len, coded: staged.len() };
        if method.codec != Codec::None {
            let room = output.len().min(staged.len().saturating_sub(1));
            let len = self.codecs.compress_behind(method, prefix, staged, output.get_mut(..room)?);
            if let Some(len) = len {
                return Some(made(method.codec, len));
            }
        }
        output.get_mut(..staged.len())?.copy_from_slice(staged);
        Some(made(Codec::None, staged.len()))
    }

    /// Undoes [`Blocks::make_staged`], into the front of `output`.
    ///
    /// # Errors
    /// As of [`Blocks::expand`].
    pub fn expand_staged(
        &mut self,
        codec: Codec,
        block: &[u8],
        output: &mut [u8],
        prefix: &[u8],
    ) -> Result<usize, BlockError> {
        Ok(self.codecs.expand_behind(codec, prefix, block, output)?)
    }

    /// Makes the packets again of which `staged` was made, into the front of `output`, whose length is the cap; `kept` gets their
    /// payloads.
    ///
    /// # Errors
    /// As of [`Blocks::expand`], and where the cache does not hold what is copied.
    pub fn unstage(
        &mut self,
        (headers, most): (bool, usize),
        staged: &[u8],
        cache: &CacheReceiver,
        kept: &mut Vec<u8>,
        output: &mut [u8],
    ) -> Result<usize, BlockError> {
        kept.clear();
        let coded = payloads(headers, staged);
        if headers {
            let cap = output.len();
            let (head, _) = staged.split_at(staged.len() - coded.len());
            if self.between.len() < cap {
                self.between.resize(cap, 0);
            }
            let too_long = headers::HeadersError::TooLong { cap };
            self.between.get_mut(..head.len()).ok_or(too_long)?.copy_from_slice(head);
            let room = self.between.get_mut(head.len()..cap).unwrap_or_default();
            let len = cache.decode(coded, room)?;
            let between = self.between.get(..head.len() + len).unwrap_or_default();
            kept.extend_from_slice(between.get(head.len()..).unwrap_or_default());
            return Ok(self.headers.expand_at_most(most, between, output)?);
        }
        let len = cache.decode(coded, output)?;
        kept.extend_from_slice(output.get(..len).unwrap_or_default());
        Ok(len)
    }

    /// Makes a block behind `prefix`, and gives the payloads of its packets.
    fn make_from<'a>(
        &'a mut self,
        method: Method,
        headers: bool,
        prefix: &[u8],
        packets: &'a [u8],
        output: &mut [u8],
    ) -> Option<(Made, &'a [u8])> {
        let (headers, input) = code(&mut self.headers, &mut self.between, headers, packets);
        let room = output.len().min(input.len().saturating_sub(1));
        let len = self.codecs.compress_behind(method, prefix, input, output.get_mut(..room)?)?;
        let coding = Coding { headers, codec: method.codec };
        Some((Made { coding, len, coded: input.len() }, payloads(headers, input)))
    }

    /// Expands `block` into the front of `output` and says how many bytes that gave.
    ///
    /// The length of `output` is the cap, for what is between the two steps as well. No more than `most` packets get their headers
    /// back; those whose headers were not coded are the caller's to count. After an error the bytes of `output` mean nothing.
    ///
    /// # Errors
    /// [`BlockError`] says which step failed.
    pub fn expand(
        &mut self,
        coding: Coding,
        most: usize,
        block: &[u8],
        output: &mut [u8],
    ) -> Result<usize, BlockError> {
        if coding == Coding::HEADERS {
            return Ok(self.headers.expand_at_most(most, block, output)?);
        }
        Ok(self.expand_from(coding, most, &[], block, output)?.0)
    }

    /// The same behind the prefix in `history`, which gets what is kept of the block.
    ///
    /// # Errors
    /// As of [`Blocks::expand`].
    pub fn expand_behind(
        &mut self,
        coding: Coding,
        most: usize,
        block: &[u8],
        output: &mut [u8],
        history: &mut HistoryBuffers,
    ) -> Result<usize, BlockError> {
        let (len, payloads) = self.expand_from(coding, most, &history.prefix, block, output)?;
        history.kept.clear();
        history.kept.extend_from_slice(payloads);
        Ok(len)
    }

    /// Expands a block behind `prefix`, and gives the payloads of its packets.
    fn expand_from<'a>(
        &'a mut self,
        Coding { headers, codec }: Coding,
        most: usize,
        prefix: &[u8],
        block: &[u8],
        output: &'a mut [u8],
    ) -> Result<(usize, &'a [u8]), BlockError> {
        if !headers {
            let len = self.codecs.expand_behind(codec, prefix, block, output)?;
            return Ok((len, output.get(..len).unwrap_or_default()));
        }
        let cap = output.len();
        if self.between.len() < cap {
            self.between.resize(cap, 0);
        }
        let between = self.between.get_mut(..cap).unwrap_or_default();
        let len = self.codecs.expand_behind(codec, prefix, block, between)?;
        let between = between.get(..len).unwrap_or_default();
        let len = self.headers.expand_at_most(most, between, output)?;
        Ok((len, payloads(headers, between)))
    }
}

/// Packets with their headers coded, in `between`, if that is wanted and makes them shorter; else as they are.
fn code<'a>(
    coder: &mut Coder,
    between: &'a mut Vec<u8>,
    wanted: bool,
    packets: &'a [u8],
) -> (bool, &'a [u8]) {
    if between.len() < packets.len() {
        between.resize(packets.len(), 0);
    }
    let len = if wanted { coder.encode(packets, between) } else { None };
    match len.and_then(|len| between.get(..len)) {
        Some(coded) => (true, coded),
        None => (false, packets),
    }
}

/// What is kept of a block: the payloads of its packets, one after another; whole packets where their headers are not coded.
fn payloads(headers: bool, input: &[u8]) -> &[u8] {
    if headers { headers::payloads(input) } else { input }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::PACKETS_MAX;
    use crate::history::cache::CacheCapacity;
    use strait_clock::Time;

    /// Datagrams that count upwards, with payloads that shrink.
    fn packets(count: u8) -> Vec<u8> {
        let datagram = |number: u8| {
            let mut packet = vec![0x45, 0, 0, 68, 9, number, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 3];
            let checksum = strait_wire::ip::v4_header_checksum(&packet).to_be_bytes();
            packet[10..12].copy_from_slice(&checksum);
            packet.extend([0x30, 0x39, 0x16, 0x33, 0, 48, 0, 0]);
            packet.extend(b"temperature 21.5 humidity 40 rain no....");
            packet
        };
        (0..count).flat_map(datagram).collect()
    }

    #[test]
    fn headers_and_codec_round_trip_alone_and_together() {
        let packets = packets(20);
        let (mut blocks, mut output, mut back) =
            (Blocks::new(), vec![0; packets.len()], vec![0; packets.len()]);
        for codec in [Codec::Deflate, Codec::Lz4, Codec::Zstd, Codec::Lzs] {
            let mut lens = Vec::new();
            for headers in [false, true] {
                let made = blocks.make(Method::of(codec), headers, &packets, &mut output).unwrap();
                assert_eq!(made.coding, Coding { headers, codec });
                assert_eq!(made.coded < packets.len(), headers);
                assert_eq!(
                    blocks.expand(made.coding, PACKETS_MAX, &output[..made.len], &mut back),
                    Ok(packets.len())
                );
                assert_eq!(back, packets);
                lens.push(made.len);
            }
            assert!(lens[1] < lens[0], "{codec}: {lens:?}");
        }
        let len = blocks.headers.encode(&packets, &mut output).unwrap();
        assert_eq!(blocks.expand(Coding::HEADERS, PACKETS_MAX, &output[..len], &mut back), Ok(packets.len()));
        assert_eq!(back, packets);
    }

    #[test]
    fn staged_packets_round_trip_and_are_copies_the_second_time() {
        let capacity = CacheCapacity::new(CacheCapacity::MIN).unwrap();
        let (mut sender, mut receiver) = (CacheSender::new(capacity), CacheReceiver::new(capacity));
        let (mut blocks, packets) = (Blocks::new(), packets(20));
        let (mut staged, mut kept, mut expanded) = (Vec::new(), Vec::new(), vec![0; 2_000]);
        let (mut output, mut back) = (vec![0; 2_000], vec![0; packets.len()]);
        for (headers, method) in
            [(true, Method::ZSTD), (true, Method::NONE), (false, Method::ZSTD), (false, Method::NONE)]
        {
            sender.clear();
            let mut lens = Vec::new();
            for _ in 0..2 {
                let (coded, _) = blocks.stage(headers, &packets, &mut sender, &mut staged, &mut kept);
                let position = sender.keep(&kept, Time::ZERO).unwrap();
                let made = blocks.make_staged(method, (coded, &staged), &[], &mut output).unwrap();
                lens.push(staged.len());
                let len =
                    blocks.expand_staged(made.coding.codec, &output[..made.len], &mut expanded, &[]).unwrap();
                let mut payloads = Vec::new();
                let len = blocks.unstage(
                    (made.coding.headers, PACKETS_MAX),
                    &expanded[..len],
                    &receiver,
                    &mut payloads,
                    &mut back,
                );
                assert_eq!((len, &back, &payloads), (Ok(packets.len()), &packets, &kept));
                let broken = blocks.unstage((coded, 1), &[0xff], &receiver, &mut payloads, &mut back);
                assert!(broken.is_err());
                assert_eq!(receiver.keep(position, &kept), Ok(()));
                sender.acknowledged(position);
            }
            assert!(lens[1] < lens[0] / 4, "{lens:?}");
        }
    }

    #[test]
    fn what_a_codec_does_not_make_shorter_is_no_block() {
        let mut packets = packets(20);
        let mut random = strait_clock::Random::new(7);
        for packet in packets.chunks_mut(68) {
            packet[28..].fill_with(|| random.next_u64().to_be_bytes()[0]);
        }
        let mut output = vec![0; packets.len()];
        let mut blocks = Blocks::new();
        assert!(blocks.headers.encode(&packets, &mut output).is_some());
        assert_eq!(blocks.make(Method::ZSTD, true, &packets, &mut output), None);
        assert_eq!(blocks.make(Method::ZSTD, true, &[], &mut output), None);
    }

    #[test]
    fn the_cap_holds_for_both_steps() {
        let packets = packets(20);
        let (mut blocks, mut output) = (Blocks::new(), vec![0; packets.len()]);
        let made = blocks.make(Method::ZSTD, true, &packets, &mut output).unwrap();
        for cap in [0, made.len, made.coded - 1, made.coded, packets.len() - 1] {
            let error =
                blocks.expand(made.coding, PACKETS_MAX, &output[..made.len], &mut vec![0; cap]).unwrap_err();
            assert!(error.is_too_long(), "{cap} bytes: {error}");
            assert_eq!(matches!(error, BlockError::Headers(_)), cap >= made.coded, "{cap} bytes: {error}");
        }
        // As much as was agreed, but no headers that are coded: more of them than there is.
        let len = Codecs::new().compress(Method::ZSTD, &[0x7f; 100], &mut output).unwrap();
        let error =
            blocks.expand(made.coding, PACKETS_MAX, &output[..len], &mut vec![0; packets.len()]).unwrap_err();
        assert_eq!(error, BlockError::Headers(headers::HeadersError::Malformed));
    }
}
