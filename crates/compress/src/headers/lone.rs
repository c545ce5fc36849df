//! The headers of one packet, set against those of one other that both ends have.
//!
//! They are coded as those of a bundle, without slots: the bit of a slot says that TCP's identification is not as expected, which in a bundle
//! takes the byte of rare fields.

use strait_wire::checksum::Sum;

use super::change::Change;
use super::header::{HeaderFields, Upper};
use super::{HeadersError, MalformedField};

/// The headers of a packet as fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeaders(HeaderFields);

/// Whose packets share a context, or a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextKey {
    src: [u8; 16],
    dst: [u8; 16],
    ports: [u16; 2],
    protocol: u8,
    v6: bool,
    /// What the flows of a service have to have in common; nothing where it is one flow.
    share: Option<u64>,
    /// Whether flows of a service share headers alone.
    headers_only: bool,
}

impl PacketHeaders {
    /// The headers of a packet and how long they are, if they can be made again as they stand.
    pub(crate) fn read(packet: &[u8]) -> Option<(PacketHeaders, usize)> {
        super::read(packet).map(|(header, len)| (PacketHeaders(header), len))
    }

    /// Its flow.
    pub(crate) const fn flow(&self) -> ContextKey {
        let HeaderFields { src, dst, ports, kind, .. } = self.0;
        ContextKey { src, dst, ports, protocol: kind.protocol, v6: kind.v6, share: None, headers_only: false }
    }

    /// Whose packets its headers are set against: UDP has a flow for each question, so those of a service between two hosts.
    pub(crate) fn context(&self, share: u64) -> ContextKey {
        if self.0.kind.upper() != Upper::Udp {
            return self.flow();
        }
        ContextKey { headers_only: true, ..self.service(share) }
    }

    /// The service of its two hosts, among flows with the same `share`: the lower port of the two names it, so the other one does not
    /// count.
    pub(crate) fn service(&self, share: u64) -> ContextKey {
        let flow = self.flow();
        let [from, to] = flow.ports;
        ContextKey { ports: if from < to { [from, 0] } else { [0, to] }, share: Some(share), ..flow }
    }

    /// Adds what differs from what follows `before`; what is kept of this packet is what the other end keeps.
    pub(crate) fn code(&mut self, before: Option<&PacketHeaders>, out: &mut Vec<u8>) -> Option<()> {
        let before = before.map_or(HeaderFields::FIRST, |before| before.0);
        let next = before.next();
        let expected = next.toward(self.0.kind);
        let mut change = Change::between(&next, &expected, &self.0, false);
        change.carry_lone(out).ok()?;
        change.carry_kind(out, &mut self.0.kind).ok()?;
        change.carry_fields(out, &expected, &mut self.0).ok()?;
        self.0.follow(&before);
        Some(())
    }

    /// Reads what [`PacketHeaders::code`] wrote, from the front of `coded`.
    pub(crate) fn decode(
        before: Option<&PacketHeaders>,
        coded: &mut &[u8],
    ) -> Result<PacketHeaders, HeadersError> {
        let before = before.map_or(HeaderFields::FIRST, |before| before.0);
        let mut change = Change::NONE;
        change.carry_lone(coded)?;
        let next = before.next();
        let mut kind = next.kind;
        change.carry_kind(coded, &mut kind)?;
        let expected = next.toward(kind);
        let mut header = expected;
        change.carry_fields(coded, &expected, &mut header)?;
        header.follow(&before);
        Ok(PacketHeaders(header))
    }

    /// Whether a datagram of UDP is behind them.
    pub(crate) fn is_udp(&self) -> bool {
        self.0.kind.upper() == Upper::Udp
    }

    /// Bytes of the headers.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes behind them.
    pub(crate) const fn payload_len(&self) -> usize {
        self.0.payload_len as usize
    }

    /// Writes them in front of `payload`, which stands behind them in `packet`.
    pub(crate) fn write(&self, packet: &mut [u8]) -> Result<(), HeadersError> {
        let (headers, payload) = packet.split_at_mut_checked(self.len()).ok_or(MalformedField)?;
        let sum = Sum::ZERO.add_bytes(payload);
        self.0.write(sum, headers).ok_or(MalformedField)?;
        Ok(())
    }
}
