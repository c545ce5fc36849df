//! Packets for the tests, made by hand, with right checksums unless another is asked for.

use strait_wire::checksum::Sum;
use strait_wire::ip;

/// What a packet is to be.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    v6: bool,
    protocol: u8,
    to: u8,
    port: u16,
    id: u16,
    word: u16,
    urgent: u16,
    check: Option<u16>,
    /// The upper layer's header, when it is not UDP's.
    upper: Vec<u8>,
}

/// From 10.1.0.2 to 10.2.0.3 or their like in IPv6.
pub(crate) const UDP: Draft = draft(17);
pub(crate) const TCP: Draft = draft(6);

const fn draft(protocol: u8) -> Draft {
    let upper = Vec::new();
    Draft { v6: false, protocol, to: 3, port: 0x3039, id: 0, word: 0x4000, urgent: 0, check: None, upper }
}

impl Draft {
    pub(crate) fn v6(self) -> Draft {
        Draft { v6: true, ..self }
    }

    pub(crate) fn to(self, to: u16) -> Draft {
        Draft { to: to.to_be_bytes()[1], ..self }
    }

    pub(crate) fn port(self, port: u16) -> Draft {
        Draft { port, ..self }
    }

    pub(crate) fn id(self, id: u16) -> Draft {
        Draft { id, ..self }
    }

    pub(crate) fn word(self, word: u16) -> Draft {
        Draft { word, ..self }
    }

    pub(crate) fn urgent(self, urgent: u16) -> Draft {
        Draft { urgent, ..self }
    }

    pub(crate) fn check(self, check: u16) -> Draft {
        Draft { check: Some(check), ..self }
    }

    pub(crate) fn protocol(self, protocol: u8) -> Draft {
        Draft { protocol, ..self }
    }

    pub(crate) fn icmp(self, kind: u8, id: u16, seq: u16) -> Draft {
        let upper = [&[kind, 0, 0, 0][..], &id.to_be_bytes(), &seq.to_be_bytes()].concat();
        Draft { upper, ..self }
    }

    pub(crate) fn tcp(self, seq: u32, ack: u32, flags: u16, window: u16, options: &[u8]) -> Draft {
        let words = u16::try_from(options.len() / 4 + 5).unwrap();
        let upper = [
            &self.port.to_be_bytes()[..],
            &[0x16, 0x33],
            &seq.to_be_bytes(),
            &ack.to_be_bytes(),
            &(words << 12 | flags).to_be_bytes(),
            &window.to_be_bytes(),
            &[0, 0],
            &self.urgent.to_be_bytes(),
            options,
        ];
        Draft { upper: upper.concat(), ..self }
    }

    /// The packet around `payload`.
    pub(crate) fn packet(self, payload: &[u8]) -> Vec<u8> {
        let len = u16::try_from(8 + payload.len()).unwrap();
        let udp = [&self.port.to_be_bytes()[..], &[0x16, 0x33], &len.to_be_bytes(), &[0, 0]].concat();
        let (header, check_at) = match self.protocol {
            17 => (udp, Some(6)),
            6 => (self.upper.clone(), Some(16)),
            1 | 58 => (self.upper.clone(), Some(2)),
            _ => (Vec::new(), None),
        };
        let mut upper = [&header[..], payload].concat();
        let ip = if self.v6 { self.ip_v6(upper.len()) } else { self.ip_v4(upper.len()) };
        if let Some(at) = check_at {
            let pseudo = match self.protocol {
                1 => Sum::ZERO,
                _ => {
                    let addresses = if self.v6 { &ip[8..40] } else { &ip[12..20] };
                    let len = u32::try_from(upper.len()).unwrap();
                    Sum::ZERO.add_bytes(addresses).add_u32(len).add_u16(u16::from(self.protocol))
                }
            };
            let right = pseudo.add_bytes(&upper).finish();
            upper[at..at + 2].copy_from_slice(&self.check.unwrap_or(right).to_be_bytes());
        }
        [ip, upper].concat()
    }

    fn ip_v4(&self, upper: usize) -> Vec<u8> {
        let [l0, l1] = u16::try_from(20 + upper).unwrap().to_be_bytes();
        let ([i0, i1], [f0, f1]) = (self.id.to_be_bytes(), self.word.to_be_bytes());
        let mut header =
            vec![0x45, 0, l0, l1, i0, i1, f0, f1, 64, self.protocol, 0, 0, 10, 1, 0, 2, 10, 2, 0, self.to];
        let checksum = ip::v4_header_checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&checksum);
        header
    }

    fn ip_v6(&self, upper: usize) -> Vec<u8> {
        let [l0, l1] = u16::try_from(upper).unwrap().to_be_bytes();
        let mut header = vec![0; 40];
        header[..8].copy_from_slice(&[0x62, 0xa0, 0x12, 0x34, l0, l1, self.protocol, 61]);
        (header[8], header[9], header[23]) = (0xfd, 1, 2);
        (header[24], header[25], header[39]) = (0xfd, 2, self.to);
        header
    }
}
