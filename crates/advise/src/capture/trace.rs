//! Text traces of the Internet Traffic Archive: a line a packet, times and sizes but no payload.
//!
//! ```text
//! 2 columns   seconds, bytes of an Ethernet frame                                 BC-pAug89 and its like (Bellcore)
//! 6 columns   seconds, source, destination, two ports, bytes of data              lbl-pkt-*.tcp, dec-pkt-*.tcp, dec-pkt-*.udp
//! ```
//!
//! A frame has the headers that the columns make, and a length. Hosts that are numbered get addresses of 10.0.0.0/8;
//! what has no protocol gets the number for experiments, 253 (RFC 3692).

use std::io::Read;
use std::net::Ipv4Addr;

use strait_clock::Time;
use strait_wire::ip::{V4_HEADER_LEN, V4Header};
use strait_wire::{Protocol, Tos, tcp};

use super::window::ReadWindow;
use super::{CapturedFrame, ReadError};
use crate::LinkType;

/// Longer lines are none of a trace.
pub(super) const LINE_MAX: usize = 128;
/// Header and check sequence of Ethernet. The trace's own words leave them out of its sizes; those range from 64 to 1,518
/// though, which are the shortest and the longest frame with them (IEEE 802.3).
const ETHERNET: u16 = 14 + 4;
/// "Use for experimentation and testing" (RFC 3692 section 2.1).
const EXPERIMENT: Protocol = Protocol(253);
/// A TCP header without options: its length and that it acknowledges.
const TCP_FIELDS: [u8; 4] = [5 << 4, tcp::TcpFlags::ACK.bits(), 0xff, 0xff];

/// What the columns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceFormat {
    /// Seconds and bytes.
    Sizes,
    /// Seconds, hosts, ports and bytes of data.
    Ports,
}

impl TraceFormat {
    const fn number(self) -> usize {
        match self {
            TraceFormat::Sizes => 2,
            TraceFormat::Ports => 6,
        }
    }
}

/// Whether these bytes begin with two lines of a trace, or with its only one.
///
/// # Errors
/// [`ReadError::Unsupported`] when they do, and the trace says nothing of sizes.
pub(super) fn recognizes(first: &[u8]) -> Result<Option<TraceFormat>, ReadError> {
    let mut lines = first.split(|byte| *byte == b'\n').take(2).filter(|line| !line.is_empty());
    let Some(count) = lines.next().and_then(columns) else { return Ok(None) };
    if lines.any(|line| columns(line) != Some(count)) {
        return Ok(None);
    }
    match count {
        2 => Ok(Some(TraceFormat::Sizes)),
        6 => Ok(Some(TraceFormat::Ports)),
        5 => Err(ReadError::Unsupported("a trace without sizes, of which nothing can be said")),
        8 => Err(ReadError::Unsupported("a trace of how connections begin and end, without their packets")),
        _ => Ok(None),
    }
}

/// How many columns a line has whose first is a time and whose next ones are numbers.
fn columns(line: &[u8]) -> Option<usize> {
    let text = core::str::from_utf8(line).ok()?;
    let mut columns = text.split_ascii_whitespace();
    seconds(columns.next()?)?;
    let count = 1 + columns.clone().count();
    let numbers = columns.clone().take(4).all(|column| column.parse::<u64>().is_ok());
    // A sixth that is no number names the flags of a segment.
    let sixth = columns.nth(4).is_none_or(|column| column.parse::<u64>().is_ok() == (count == 6));
    (numbers && sixth).then_some(count)
}

/// Seconds with a fraction, which tells a time from other numbers.
fn seconds(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = fraction.get(..fraction.len().min(9))?;
    if digits.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let places = u32::try_from(digits.len()).ok()?;
    let nanos = digits.parse::<u64>().ok()? * 10_u64.pow(9 - places);
    Some(Time::from_nanos(whole.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

/// Reads lines and makes the headers they speak of.
#[derive(Debug)]
pub(super) struct TextTrace {
    columns: TraceFormat,
    headers: [u8; V4_HEADER_LEN + tcp::MIN_HEADER_LEN],
}

/// What a line says.
struct TraceLine {
    at: Time,
    ends: [Ipv4Addr; 2],
    ports: [u16; 2],
    bytes: u16,
}

impl TextTrace {
    pub(super) const fn new(columns: TraceFormat) -> TextTrace {
        TextTrace { columns, headers: [0; V4_HEADER_LEN + tcp::MIN_HEADER_LEN] }
    }

    pub(super) fn frame<R: Read>(
        &mut self,
        window: &mut ReadWindow<R>,
    ) -> Result<Option<CapturedFrame<'_>>, ReadError> {
        let at = window.position();
        let bytes = window.peek(LINE_MAX)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let whole = bytes.len() < LINE_MAX;
        let end = bytes.iter().position(|byte| *byte == b'\n').or(whole.then_some(bytes.len()));
        let line = end.and_then(|end| self.line(bytes.get(..end)?));
        let (Some(line), Some(end)) = (line, end) else {
            return Err(ReadError::Line { at, columns: self.columns.number() });
        };
        let step = (end + 1).min(bytes.len());
        window.rest(step, "a line", at)?;
        Ok(Some(self.packet(&line)))
    }

    fn line(&self, bytes: &[u8]) -> Option<TraceLine> {
        let mut columns = core::str::from_utf8(bytes).ok()?.split_ascii_whitespace();
        let at = seconds(columns.next()?)?;
        let mut number = || columns.next()?.parse::<u32>().ok();
        let mut line = TraceLine { at, ends: [host(1), host(2)], ports: [0; 2], bytes: 0 };
        if self.columns == TraceFormat::Ports {
            line.ends = [host(number()?), host(number()?)];
            line.ports = [u16::try_from(number()?).ok()?, u16::try_from(number()?).ok()?];
        }
        line.bytes = u16::try_from(number()?).ok()?;
        columns.next().is_none().then_some(line)
    }

    /// The headers of a line's packet, and its length.
    fn packet(&mut self, line: &TraceLine) -> CapturedFrame<'_> {
        let (protocol, headers, behind) = match self.columns {
            TraceFormat::Sizes => {
                let packet = usize::from(line.bytes.saturating_sub(ETHERNET));
                (EXPERIMENT, V4_HEADER_LEN, packet.saturating_sub(V4_HEADER_LEN))
            }
            TraceFormat::Ports => {
                let behind = tcp::MIN_HEADER_LEN + usize::from(line.bytes);
                (Protocol::TCP, self.headers.len(), behind.min(usize::from(u16::MAX) - V4_HEADER_LEN))
            }
        };
        let [src, dst] = line.ends;
        let header =
            V4Header { src, dst, tos: Tos(0), id: 0, dont_fragment: true, protocol, payload_len: behind };
        // The length is within what the field says, and the buffer has room.
        let _ = header.emit(&mut self.headers);
        let ports = line.ports.map(u16::to_be_bytes).concat();
        for (at, bytes) in [(V4_HEADER_LEN, &ports[..]), (V4_HEADER_LEN + 12, &TCP_FIELDS)] {
            if let Some(room) = self.headers.get_mut(at..at + bytes.len()) {
                room.copy_from_slice(bytes);
            }
        }
        let bytes = self.headers.get(..headers).unwrap_or_default();
        CapturedFrame { at: line.at, link: LinkType::RAW, bytes, len: V4_HEADER_LEN + behind }
    }
}

/// The address of the host with a number.
const fn host(number: u32) -> Ipv4Addr {
    let [_, a, b, c] = number.to_be_bytes();
    Ipv4Addr::new(10, a, b, c)
}
