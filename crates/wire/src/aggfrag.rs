//! AGGFRAG payloads under ESP next header 144: many packets, or pieces of them, in one (RFC 9347 section 6.1).

use crate::{
    Malformed, block, condition, field, history, lane, missing, probe, repetition, sessionless, symbol,
};

mod blocks;

pub use blocks::{DataBlock, DataBlocks};

/// The header of sub-type 0 (RFC 9347 section 6.1.1).
pub const PLAIN_LEN: usize = 4;
/// The header of sub-type 1 (RFC 9347 section 6.1.2).
pub const CONGESTION_LEN: usize = 24;
/// The largest round-trip time a report can say, in microseconds: 22 bits.
pub const RTT_MAX: u32 = 0x3f_ffff;
/// The largest delay a report can say, in microseconds: 21 bits.
pub const DELAY_MAX: u32 = 0x1f_ffff;

/// Bit E of sub-type 1: congestion was experienced.
const FLAG_E: u8 = 0b01;
/// Bit P of sub-type 1: path MTU discovery is in progress.
const FLAG_P: u8 = 0b10;

/// The kind of payload that the first byte under next header 144 names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subtype {
    /// Sub-type 0: AGGFRAG without a report.
    Plain,
    /// Sub-type 1: AGGFRAG with a congestion report.
    Congestion,
    /// A part of a Strait block.
    Block,
    /// A path probe.
    Probe,
    /// A changed condition of the other end: its load and link rate.
    Condition,
    /// Numbers that did not arrive.
    Missing,
    /// A payload that is sent again.
    Repetition,
    /// A repair symbol.
    RepairSymbol,
    /// Whether a header with a packet key was taken.
    Acknowledgement,
    /// A packet alone, coded against earlier ones.
    Lone,
    /// Receipts for packets that were kept.
    Receipts,
    /// The sender of a byte cache asks what of it the receiver holds.
    CacheQuestion,
    /// The answer to that.
    CacheDigests,
    /// A piece of a stream, or what was taken of one.
    Lane,
    /// A sub-type that this node does not know.
    Unknown(u8),
}

/// The sub-type of a payload under next header 144; `None` when it is empty.
#[must_use]
pub fn subtype(payload: &[u8]) -> Option<Subtype> {
    payload.first().map(|first| match *first {
        0 => Subtype::Plain,
        1 => Subtype::Congestion,
        block::SUBTYPE | block::WITH_HISTORY | block::WITH_CACHE => Subtype::Block,
        probe::SUBTYPE => Subtype::Probe,
        condition::SUBTYPE => Subtype::Condition,
        missing::SUBTYPE => Subtype::Missing,
        repetition::SUBTYPE => Subtype::Repetition,
        symbol::SUBTYPE => Subtype::RepairSymbol,
        sessionless::ACKNOWLEDGEMENT_SUBTYPE => Subtype::Acknowledgement,
        history::LONE..history::RECEIPTS => Subtype::Lone,
        history::RECEIPTS | history::BLOCK_RECEIPTS => Subtype::Receipts,
        history::CACHE_QUESTION => Subtype::CacheQuestion,
        history::CACHE_DIGESTS => Subtype::CacheDigests,
        lane::SUBTYPE.. => Subtype::Lane,
        other => Subtype::Unknown(other),
    })
}

/// The congestion report of sub-type 1 (RFC 9347 section 6.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CongestionReport {
    /// P: path MTU discovery is in progress.
    pub plpmtud: bool,
    /// E: a congestion mark was seen on a packet received.
    pub congestion: bool,
    /// The inverse of the loss event rate (RFC 5348 section 5); 0 for no loss.
    pub loss_event_rate: u32,
    /// The sender's round-trip time in microseconds, 0 while unknown; sent as at most [`RTT_MAX`].
    pub rtt: u32,
    /// Microseconds between receiving the `TVal` echoed here and sending it; sent as at most [`DELAY_MAX`].
    pub echo_delay: u32,
    /// Microseconds between packets sent; sent as at most [`DELAY_MAX`].
    pub transmit_delay: u32,
    /// Any value, for the peer to send back.
    pub tval: u32,
    /// The `TVal` last received.
    pub techo: u32,
}

/// The header of an AGGFRAG payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Header {
    /// Sub-type 0.
    Plain {
        /// Bytes that belong to a packet begun earlier.
        offset: u16,
    },
    /// Sub-type 1.
    Congestion {
        /// Bytes that belong to a packet begun earlier.
        offset: u16,
        /// What the sender has seen of the path.
        report: CongestionReport,
    },
}

impl Header {
    /// Bytes until the first packet that begins here; may reach past the end.
    #[must_use]
    pub const fn offset(&self) -> u16 {
        match *self {
            Header::Plain { offset } | Header::Congestion { offset, .. } => offset,
        }
    }
}

/// An AGGFRAG payload: its header and the region of data blocks.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    /// The header.
    pub header: Header,
    /// The data blocks, back to back.
    pub region: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Reads the header of sub-type 0 or 1; reserved bits are ignored.
    ///
    /// # Errors
    /// [`Malformed`] when it is short or has another sub-type.
    pub fn parse(bytes: &'a [u8]) -> Result<Payload<'a>, Malformed> {
        match subtype(bytes) {
            Some(Subtype::Plain) => {
                let (&[_, _reserved, a, b], region) =
                    field::split_header::<PLAIN_LEN>("aggfrag header", bytes)?;
                Ok(Payload { header: Header::Plain { offset: u16::from_be_bytes([a, b]) }, region })
            }
            Some(Subtype::Congestion) => {
                let (fields, region) = field::split_header("aggfrag congestion header", bytes)?;
                Ok(Payload { header: parse_congestion(fields), region })
            }
            Some(_) => Err(Malformed::new("aggfrag sub-type", bytes)),
            None => Err(Malformed::new("aggfrag header", bytes)),
        }
    }

    /// The data blocks, the continuation of an earlier packet first (RFC 9347 section 6.1.3).
    #[must_use]
    pub fn blocks(&self) -> DataBlocks<'a> {
        DataBlocks::new(self.region, usize::from(self.header.offset()))
    }

    /// The pad block, which runs to the end (RFC 9347 section 6.1.3), if there is one behind whatever comes before it.
    #[must_use]
    pub fn padding(&self) -> Option<&'a [u8]> {
        let mut at = 0;
        for block in self.blocks() {
            at += match block {
                DataBlock::Continuation(bytes) | DataBlock::Whole(bytes) => bytes.len(),
                DataBlock::Pad => return self.region.get(at..),
                DataBlock::Start { .. } | DataBlock::Bad(_) => return None,
            };
        }
        None
    }
}

fn parse_congestion(fields: &[u8; CONGESTION_LEN]) -> Header {
    let [_, flags, o0, o1, l0, l1, l2, l3, d0, d1, d2, d3, d4, d5, d6, d7, v0, v1, v2, v3, e0, e1, e2, e3] =
        *fields;
    // RTT takes the first 22 of these 64 bits, then two delays of 21.
    let first = u32::from_be_bytes([d0, d1, d2, d3]);
    let last = u32::from_be_bytes([d4, d5, d6, d7]);
    let report = CongestionReport {
        plpmtud: flags & FLAG_P != 0,
        congestion: flags & FLAG_E != 0,
        loss_event_rate: u32::from_be_bytes([l0, l1, l2, l3]),
        rtt: first >> 10,
        echo_delay: (first & 0x3ff) << 11 | last >> 21,
        transmit_delay: last & DELAY_MAX,
        tval: u32::from_be_bytes([v0, v1, v2, v3]),
        techo: u32::from_be_bytes([e0, e1, e2, e3]),
    };
    Header::Congestion { offset: u16::from_be_bytes([o0, o1]), report }
}

/// Writes a header of sub-type 0 at the start of `buf`.
///
/// # Errors
/// [`Malformed`] when `buf` is shorter than 4 bytes.
pub fn emit_plain(buf: &mut [u8], offset: u16) -> Result<(), Malformed> {
    let [a, b] = offset.to_be_bytes();
    field::emit_header("buffer for an aggfrag header", buf, [0, 0, a, b])
}

/// Writes a header of sub-type 1 at the start of `buf`; times too large for their field are sent as its
/// largest value.
///
/// # Errors
/// [`Malformed`] when `buf` is shorter than 24 bytes.
pub fn emit_congestion(buf: &mut [u8], offset: u16, report: &CongestionReport) -> Result<(), Malformed> {
    let flags = if report.plpmtud { FLAG_P } else { 0 } | if report.congestion { FLAG_E } else { 0 };
    let rtt = u64::from(report.rtt.min(RTT_MAX));
    let echo_delay = u64::from(report.echo_delay.min(DELAY_MAX));
    let transmit_delay = u64::from(report.transmit_delay.min(DELAY_MAX));
    let [d0, d1, d2, d3, d4, d5, d6, d7] = (rtt << 42 | echo_delay << 21 | transmit_delay).to_be_bytes();
    let [o0, o1] = offset.to_be_bytes();
    let [l0, l1, l2, l3] = report.loss_event_rate.to_be_bytes();
    let [v0, v1, v2, v3] = report.tval.to_be_bytes();
    let [e0, e1, e2, e3] = report.techo.to_be_bytes();
    let header: [u8; CONGESTION_LEN] =
        [1, flags, o0, o1, l0, l1, l2, l3, d0, d1, d2, d3, d4, d5, d6, d7, v0, v1, v2, v3, e0, e1, e2, e3];
    field::emit_header("buffer for an aggfrag congestion header", buf, header)
}

#[cfg(test)]
mod tests;
