//! What a host sends in the clear: everything that crosses its wire and is not the tunnel's.

use std::collections::BTreeMap;

use crate::frame::FrameSocket;
use crate::site::PORT;
use crate::{Error, LinkEnd};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// EtherTypes (RFC 894, RFC 2464).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// IP protocol numbers; hop-by-hop options are before the ICMPv6 of listener reports.
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
/// Listener reports, and router and neighbour discovery (RFC 2710, RFC 4861, RFC 3810).
const NEIGHBOURHOOD: [u8; 8] = [130, 131, 132, 133, 134, 135, 136, 143];

/// Watches what arrives at one end of a wire.
#[derive(Debug)]
pub struct ClearWatch {
    socket: FrameSocket,
}

impl ClearWatch {
    /// Watches what arrives at `end` from now on, which is what the host at the other end sends.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn start(end: &LinkEnd) -> Result<ClearWatch, Error> {
        let doing = format!("watch {}", end.interface);
        let socket = end.host.run(&doing, || FrameSocket::open(&end.interface))?;
        Ok(ClearWatch { socket })
    }

    /// What arrived since the last call and is neither a datagram of the tunnel, nor an ICMP error about one, nor ARP,
    /// neighbour discovery or a listener report: protocol and destination, and how many packets.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn take(&self) -> Result<BTreeMap<String, u64>, Error> {
        let (mut found, mut buffer) = (BTreeMap::new(), vec![0; 1 << 16]);
        while let Some(len) = self.socket.receive(&mut buffer).map_err(Error::doing("read frames"))? {
            if let Some(what) = in_the_clear(buffer.get(..len).unwrap_or_default()) {
                *found.entry(what).or_default() += 1;
            }
        }
        Ok(found)
    }

    /// How many packets [`ClearWatch::take`] found.
    ///
    /// # Errors
    /// As there.
    pub fn count(&self) -> Result<u64, Error> {
        Ok(self.take()?.values().sum())
    }
}

/// Protocol and destination of a frame that is not the tunnel's.
fn in_the_clear(frame: &[u8]) -> Option<String> {
    let packet = frame.get(ETHERNET..)?;
    let kind: [u8; 2] = frame.get(ETHERNET - 2..ETHERNET)?.try_into().ok()?;
    let (protocol, to, payload) = match kind {
        IPV4 => {
            let head = usize::from(packet.first()? & 0x0f) * 4;
            let to: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (*packet.get(9)?, std::net::IpAddr::from(to), packet.get(head..)?)
        }
        IPV6 => {
            let to: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let (next, rest) = (*packet.get(6)?, packet.get(40..)?);
            match next {
                HOP_BY_HOP => (*rest.first()?, to.into(), rest.get(8..)?),
                _ => (next, to.into(), rest),
            }
        }
        _ => return None,
    };
    let is_tunnel = protocol == UDP && payload.get(2..4) == Some(&PORT.to_be_bytes()[..]);
    let is_neighbourhood = protocol == ICMPV6 && NEIGHBOURHOOD.contains(payload.first()?);
    let is_answer = answers_tunnel(protocol, payload) == Some(true);
    (!is_tunnel && !is_neighbourhood && !is_answer).then(|| format!("protocol {protocol} to {to}"))
}

/// Whether it is the kernel's answer to a datagram of the tunnel that no daemon receives, which it quotes.
fn answers_tunnel(protocol: u8, payload: &[u8]) -> Option<bool> {
    let quoted = payload.get(8..)?;
    let (next, ports) = match (protocol, payload.first()?) {
        (ICMP, 3) => (*quoted.get(9)?, usize::from(quoted.first()? & 0x0f) * 4),
        (ICMPV6, 1) => (*quoted.get(6)?, 40),
        _ => return Some(false),
    };
    Some(next == UDP && quoted.get(ports + 2..ports + 4)? == PORT.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of IPv4 or IPv6 with this payload.
    fn frame(kind: [u8; 2], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = [vec![0; 12], kind.to_vec()].concat();
        let mut head = if kind == IPV4 { vec![0; 20] } else { vec![0; 40] };
        match kind {
            IPV4 => (head[0], head[9]) = (0x45, protocol),
            _ => (head[0], head[6]) = (0x60, protocol),
        }
        frame.extend(head);
        frame.extend(payload);
        frame
    }

    #[test]
    fn only_what_is_not_the_tunnels_is_found() {
        let tunnel = [[0, 7], PORT.to_be_bytes(), [0, 9], [0, 0]].concat();
        let other = [[0, 7], 53_u16.to_be_bytes(), [0, 9], [0, 0]].concat();
        for kind in [IPV4, IPV6] {
            assert_eq!(in_the_clear(&frame(kind, UDP, &tunnel)), None);
            assert!(in_the_clear(&frame(kind, UDP, &other)).is_some());
            assert!(in_the_clear(&frame(kind, 6, &tunnel)).is_some());
        }
        let report = [&[ICMPV6, 0, 0, 0, 0, 0, 0, 0][..], &[143, 0, 0, 0]].concat();
        assert_eq!(in_the_clear(&frame(IPV6, HOP_BY_HOP, &report)), None);
        assert_eq!(in_the_clear(&frame(IPV6, ICMPV6, &[135, 0, 0, 0])), None, "neighbour solicitation");
        for (kind, protocol, error) in [(IPV4, ICMP, 3), (IPV6, ICMPV6, 1)] {
            let about = |ports: &[u8]| {
                let quoted = &frame(kind, UDP, ports)[ETHERNET..];
                in_the_clear(&frame(kind, protocol, &[&[error, 3, 0, 0, 0, 0, 0, 0], quoted].concat()))
            };
            assert!(about(&tunnel).is_none() && about(&other).is_some());
        }
        let ping = in_the_clear(&frame(IPV6, ICMPV6, &[128, 0, 0, 0]));
        assert_eq!(ping.as_deref(), Some("protocol 58 to ::"));
        assert_eq!(in_the_clear(&frame([0x08, 0x06], 0, &[])), None, "ARP");
    }
}
