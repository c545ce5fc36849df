//! Echo requests and their replies (RFC 792, RFC 4443).

use std::net::IpAddr;

use strait_wire::ip::{self, V4Header, V6Header};
use strait_wire::{Protocol, Tos, checksum};

/// Type of a request and of its reply, over IPv4 and over IPv6.
const TYPES: [(u8, u8); 2] = [(8, 0), (128, 129)];

/// An echo request or reply, whichever way it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Echo {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) is_reply: bool,
    /// Identifier and sequence number.
    pub(crate) number: u32,
    pub(crate) data: Vec<u8>,
}

impl Echo {
    /// The packet.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let protocol = if self.from.is_ipv4() { Protocol::ICMP } else { Protocol::ICMPV6 };
        let (request, reply) = TYPES[usize::from(self.from.is_ipv6())];
        let mut message = vec![if self.is_reply { reply } else { request }, 0, 0, 0];
        message.extend(self.number.to_be_bytes());
        message.extend(&self.data);
        let length = u32::try_from(message.len()).unwrap();
        let sum = match self.from {
            IpAddr::V4(_) => checksum::Sum::ZERO,
            IpAddr::V6(_) => checksum::pseudo(self.from, self.to, protocol, length),
        };
        let sum = sum.add_bytes(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = header(self.from, self.to, protocol, message.len());
        packet.extend(message);
        packet
    }

    /// What a packet says, if it is an echo.
    pub(crate) fn of(packet: &[u8]) -> Option<Echo> {
        let packet = ip::Packet::parse(packet).ok()?;
        let (kind, rest) = packet.payload().split_at_checked(4)?;
        let (number, data) = rest.split_at_checked(4)?;
        let (request, reply) = TYPES[usize::from(packet.src().is_ipv6())];
        let is_reply = kind[0] == reply;
        (is_reply || kind[0] == request).then(|| Echo {
            from: packet.src(),
            to: packet.dst(),
            is_reply,
            number: u32::from_be_bytes(number.try_into().unwrap()),
            data: data.to_vec(),
        })
    }

    /// What answers a request.
    pub(crate) fn reply(&self) -> Echo {
        Echo { from: self.to, to: self.from, is_reply: true, ..self.clone() }
    }
}

fn header(from: IpAddr, to: IpAddr, protocol: Protocol, payload_len: usize) -> Vec<u8> {
    let mut header = vec![0; 40];
    match (from, to) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            header.truncate(20);
            let it = V4Header { src, dst, tos: Tos(0), id: 7, dont_fragment: true, protocol, payload_len };
            it.emit(&mut header).unwrap();
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let it = V6Header { src, dst, tos: Tos(0), next: protocol, payload_len };
            it.emit(&mut header).unwrap();
        }
        _ => panic!("from {from} to {to}"),
    }
    header
}

#[test]
fn an_echo_is_what_its_packet_says() {
    for (from, to) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let request = Echo { from, to, is_reply: false, number: 0x1234_0005, data: b"some text".to_vec() };
        assert_eq!(Echo::of(&request.packet()), Some(request.clone()));
        assert_eq!(Echo::of(&request.reply().packet()), Some(request.reply()));
        assert_ne!(request, request.reply());
    }
}
