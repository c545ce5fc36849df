//! A mark for what comes to the node's own port, so that reverse path filters take it.
//!
//! With a full tunnel, the route of an unmarked packet to a peer's endpoint leads into the tunnel. So a strict filter (RFC 3704:
//! `rp_filter` 1 for IPv4, `fib saddr . mark . iif oif missing drop` for IPv6 as firewalld has it) drops all that peers send, which
//! comes in by another interface. Both filters look routes up with the packet's mark (IPv4 with `src_valid_mark`): with that of
//! the node's own datagrams, they see the routes that those take.
//!
//! ```text
//! meta l4proto udp udp dport PORT iif != TUNNEL fib daddr type local meta mark set MARK
//! ip frag-off & 0x1fff != 0 meta l4proto udp iif != TUNNEL fib daddr type local meta mark set MARK
//! ```
//!
//! wg-quick(8) has connection tracking bring back the mark of what was sent. That costs more for each datagram, and does not take
//! the first one of a peer that began, or moved. What the host forwards gets no mark, as it would go past the tunnel. A
//! fragment but the first has no port; it is joined where it was let in. What has no UDP header (`carrier = "ip"`) is received before
//! these filters.

use crate::nftables::{NftAddress, NftAttributes, NftExpressions, NftHeader, NftMeta};

/// The port whose datagrams are marked, and the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answers {
    /// That of the node's own datagrams.
    pub(super) mark: u32,
    /// The node's UDP port.
    pub(super) port: u16,
}

/// Protocol number of UDP (RFC 768).
const UDP: u8 = 17;
/// The offset of a fragment's place in IPv4's header, and its bits there (RFC 791).
const FRAGMENT: (u32, [u8; 2]) = (6, [0x1f, 0xff]);
/// The offset of the destination port in UDP's header.
const DESTINATION_PORT: u32 = 2;

/// The rules, where `index` is the tunnel's interface.
pub(super) fn rules(answers: Answers, index: u32) -> [NftAttributes; 2] {
    let Answers { mark, port } = answers;
    let udp = || NftExpressions::new().meta(NftMeta::Protocol, &[UDP]);
    let whole = udp().bytes(NftHeader::Transport, DESTINATION_PORT, &port.to_be_bytes());
    let (at, place) = FRAGMENT;
    let fragment = udp().family(libc::NFPROTO_IPV4).any(NftHeader::Network, at, &place);
    [whole, fragment].map(|rule| {
        let outside = rule.meta_differs(NftMeta::InterfaceIn, &index.to_ne_bytes());
        outside.local(NftAddress::Destination).set_mark(mark)
    })
}
