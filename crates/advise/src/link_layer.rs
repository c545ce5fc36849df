//! What stands in front of IP in a frame, by link type (the registry of draft-ietf-opsawg-pcaplinktype).

use core::fmt;

/// A number from the registry of link types: what a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD's loopback: an address family, in the order of the machine that captured.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP.
    pub const PPP: LinkType = LinkType(9);
    /// An IP packet of either version, as most systems numbered it before there was a registry.
    const RAW_DLT: LinkType = LinkType(12);
    /// The same on OpenBSD.
    const RAW_OPENBSD: LinkType = LinkType(14);
    /// An IP packet of either version.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD's loopback: an address family in network order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux, all interfaces at once.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// An IPv4 packet.
    pub const IPV4: LinkType = LinkType(228);
    /// An IPv6 packet.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux, all interfaces at once, second version.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The registry's name for those that people are likely to meet.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "NULL",
            1 => "ETHERNET",
            6 => "IEEE802_5",
            9 => "PPP",
            12 | 14 | 101 => "RAW",
            105 => "IEEE802_11",
            108 => "LOOP",
            113 => "LINUX_SLL",
            127 => "IEEE802_11_RADIOTAP",
            187 => "BLUETOOTH_HCI_H4",
            189 => "USB_LINUX",
            195 => "IEEE802_15_4_WITHFCS",
            227 => "CAN_SOCKETCAN",
            228 => "IPV4",
            229 => "IPV6",
            249 => "USBPCAP",
            276 => "LINUX_SLL2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Frames of a type that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "has frames of link type {0}, which is not read: Ethernet, PPP, loopback, raw IP and Linux's \"any\" are"
)]
pub struct UnknownLink(pub LinkType);

/// IPv4 and IPv6 as Ethernet names them (RFC 894, RFC 2464).
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// Tags of IEEE 802.1Q and 802.1ad, and the number that was used for the second before there was one.
const ETHERTYPE_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// A PPPoE session (RFC 2516 section 4).
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// IPv4 and IPv6 as PPP names them (RFC 1332 section 2, RFC 5072 section 2).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// Tags in front of a packet: a customer's in a provider's, and one more for who counts differently.
const TAGS_MAX: usize = 3;
/// `AF_INET` everywhere, and `AF_INET6` on Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
const FAMILY_IPV4: u32 = 2;
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// The bytes of an IP packet, as far as they were captured and with what the line added behind; nothing for frames that
/// carry something else.
///
/// # Errors
/// [`UnknownLink`] when the link type is not supported.
pub fn ip_bytes(link: LinkType, frame: &[u8]) -> Result<Option<&[u8]>, UnknownLink> {
    Ok(match link {
        LinkType::ETHERNET => behind_ethertype(frame, 12),
        LinkType::LINUX_SLL => behind_ethertype(frame, 14),
        LinkType::LINUX_SLL2 => {
            let tagged = u16_at(frame, 0).is_some_and(|kind| ETHERTYPE_TAGS.contains(&kind));
            let rest = frame.get(20..);
            // A tag's own fields stand where the packet would.
            if tagged {
                rest.and_then(|rest| behind_ethertype(rest, 2))
            } else {
                typed(u16_at(frame, 0), rest)
            }
        }
        LinkType::NULL | LinkType::LOOP => loopback(frame),
        LinkType::PPP => ppp(frame),
        LinkType::RAW | LinkType::RAW_DLT | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            Some(frame)
        }
        other => return Err(UnknownLink(other)),
    })
}

/// What follows the Ethernet type at `at`, through tags and PPPoE.
fn behind_ethertype(frame: &[u8], at: usize) -> Option<&[u8]> {
    let mut at = at;
    for _ in 0..=TAGS_MAX {
        let kind = u16_at(frame, at)?;
        if !ETHERTYPE_TAGS.contains(&kind) {
            let rest = frame.get(at + 2..);
            // Version, code, session and length, six bytes.
            return if kind == ETHERTYPE_PPPOE { ppp(frame.get(at + 8..)?) } else { typed(Some(kind), rest) };
        }
        at += 4;
    }
    None
}

fn typed(kind: Option<u16>, rest: Option<&[u8]>) -> Option<&[u8]> {
    rest.filter(|_| matches!(kind, Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6)))
}

/// PPP, with the address and control that may stand in front (RFC 1662 section 3.1).
fn ppp(frame: &[u8]) -> Option<&[u8]> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match *frame {
        // A protocol's first byte may be left out when it is 0 (RFC 1661 section 6.5).
        [0x21 | 0x57, ref rest @ ..] => Some(rest),
        [a, b, ref rest @ ..] if matches!(u16::from_be_bytes([a, b]), PPP_IPV4 | PPP_IPV6) => Some(rest),
        _ => None,
    }
}

fn loopback(frame: &[u8]) -> Option<&[u8]> {
    let (family, rest) = frame.split_first_chunk::<4>()?;
    let is_ip = |family| family == FAMILY_IPV4 || FAMILIES_IPV6.contains(&family);
    (is_ip(u32::from_le_bytes(*family)) || is_ip(u32::from_be_bytes(*family))).then_some(rest)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a packet, which is all that is looked at.
    const PACKET: [u8; 3] = [0x45, 1, 2];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [parts.concat(), PACKET.to_vec()].concat()
    }

    #[test]
    fn every_way_to_a_packet() {
        let macs = [7; 12];
        for (what, link, bytes) in [
            ("Ethernet", 1, frame(&[&macs, &[8, 0]])),
            ("IPv6", 1, frame(&[&macs, &[0x86, 0xdd]])),
            ("a tag", 1, frame(&[&macs, &[0x81, 0, 0, 5, 8, 0]])),
            ("two tags", 1, frame(&[&macs, &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]])),
            ("PPPoE", 1, frame(&[&macs, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0, 0x21]])),
            (
                "PPPoE under a tag",
                1,
                frame(&[&macs, &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0, 0x57]]),
            ),
            ("PPP", 9, frame(&[&[0xff, 3, 0, 0x21]])),
            ("PPP, short", 9, frame(&[&[0x21]])),
            ("any", 113, frame(&[&[0; 14], &[8, 0]])),
            ("any, tagged", 113, frame(&[&[0; 14], &[0x81, 0, 0, 5, 8, 0]])),
            ("any, second version", 276, frame(&[&[8, 0], &[0; 18]])),
            ("any, second version, tagged", 276, frame(&[&[0x81, 0], &[0; 18], &[0, 5, 8, 0]])),
            ("loopback, little end first", 0, frame(&[&[2, 0, 0, 0]])),
            ("loopback, big end first", 0, frame(&[&[0, 0, 0, 30]])),
            ("OpenBSD's", 108, frame(&[&[0, 0, 0, 24]])),
            ("raw", 101, frame(&[])),
            ("raw by its old numbers", 12, frame(&[])),
            ("raw by its old numbers", 14, frame(&[])),
            ("IPv4", 228, frame(&[])),
            ("IPv6", 229, frame(&[])),
        ] {
            assert_eq!(ip_bytes(LinkType(link), &bytes), Ok(Some(&PACKET[..])), "{what}");
            for len in 0..bytes.len() - PACKET.len() {
                assert_eq!(ip_bytes(LinkType(link), &bytes[..len]), Ok(None), "{len} bytes of {what}");
            }
        }
    }

    #[test]
    fn what_carries_something_else() {
        let macs = [7; 12];
        for (what, link, bytes) in [
            ("ARP", 1, frame(&[&macs, &[8, 6]])),
            ("802.3", 1, frame(&[&macs, &[0, 40, 0x42, 0x42, 3]])),
            ("tags without end", 1, frame(&[&macs, &[0x81, 0, 0, 5].repeat(9), &[8, 0]])),
            ("PPPoE discovery", 1, frame(&[&macs, &[0x88, 0x63, 0x11, 0, 0, 1, 0, 5, 0, 0x21]])),
            ("LCP", 9, frame(&[&[0xff, 3, 0xc0, 0x21]])),
            ("AppleTalk", 0, frame(&[&[16, 0, 0, 0]])),
        ] {
            assert_eq!(ip_bytes(LinkType(link), &bytes), Ok(None), "{what}");
        }
    }

    #[test]
    fn unknown_types_are_named() {
        let words = |link| ip_bytes(LinkType(link), &[0; 64]).unwrap_err().to_string();
        assert!(words(105).contains("link type 105 (IEEE802_11), which is not read"), "{}", words(105));
        assert!(words(999).contains("link type 999, which"), "{}", words(999));
    }
}
