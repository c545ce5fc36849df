//! The packet before anything is done to it.

use crate::Bytes;

/// An IPv6 packet: header, transport header, payload (section 4.1 of the paper; no extension headers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPacket {
    /// The transport protocol's header.
    pub transport: Bytes,
    /// What the transport protocol carries.
    pub payload: Bytes,
}

impl ModelPacket {
    /// IPv6's own header (RFC 8200 section 3).
    pub const IP_HEADER: Bytes = Bytes(40);
    /// TCP's header without options (RFC 9293 section 3.1).
    pub const TCP_HEADER: Bytes = Bytes(20);

    /// A TCP segment with this much payload.
    #[must_use]
    pub const fn tcp(payload: Bytes) -> ModelPacket {
        ModelPacket { transport: ModelPacket::TCP_HEADER, payload }
    }

    /// Everything behind the IP header.
    #[must_use]
    pub fn body(self) -> Bytes {
        self.transport + self.payload
    }
}
