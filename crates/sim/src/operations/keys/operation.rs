//! What may happen to key managers, read from three bytes.

use core::time::Duration;

use strait_keying::Lifetime;

use super::NODES;

/// Bytes of one operation.
pub const KEY_OPERATION_LEN: usize = 3;
/// Bytes of the settings.
pub const KEY_SETTINGS_LEN: usize = 3;

/// How a node knows where a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// By its address.
    Address,
    /// By a name, which is looked up.
    Name,
    /// Not at all: the peer speaks first.
    Nothing,
}

/// What the nodes of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySettings {
    /// What chance follows from.
    pub seed: u8,
    /// How long keys serve.
    pub lifetime: Lifetime,
    /// How each node knows the nodes after it.
    pub forth: Knowledge,
    /// How each node knows the nodes before it.
    pub back: Knowledge,
    /// Whether handshakes begin before there are packets.
    pub eager: bool,
    /// Whether NAT keepalives are sent.
    pub keepalive: bool,
}

/// What a link does to datagrams, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkWeather {
    /// Out of 256, how many are lost.
    pub lost: u8,
    /// Out of 256, how many arrive twice.
    pub twice: u8,
    /// Most milliseconds on the way, which differ from datagram to datagram.
    pub delay: u16,
}

impl LinkWeather {
    /// 10 ms, and nothing lost.
    pub const FAIR: LinkWeather = LinkWeather { lost: 0, twice: 0, delay: 10 };
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Time passes.
    Advance(Duration),
    /// Packets flow both ways, one a second.
    Talk {
        /// From where.
        node: usize,
        /// To where.
        peer: usize,
        /// For how many seconds.
        seconds: u8,
    },
    /// A packet for the peer.
    Packet {
        /// From where.
        node: usize,
        /// To where.
        peer: usize,
    },
    /// What the link between two nodes is like from now on.
    Weather {
        /// One end.
        node: usize,
        /// The other.
        peer: usize,
        /// What it is like.
        weather: LinkWeather,
    },
    /// The next datagrams from the node to the peer are lost.
    Lose {
        /// From where.
        node: usize,
        /// To where.
        peer: usize,
        /// How many.
        count: u8,
    },
    /// The node loses everything it knew and starts again.
    Restart(usize),
    /// The node has another address from now on.
    Move(usize),
    /// The node has the address again that others have in their configuration.
    Return(usize),
    /// The node forgets the peer.
    RemovePeer {
        /// Who forgets.
        node: usize,
        /// Whom.
        peer: usize,
    },
    /// The node knows the peer, or is told of it again.
    AddPeer {
        /// Who.
        node: usize,
        /// Whom.
        peer: usize,
    },
    /// The sender of the node has no sequence number left, again and again, two seconds after each new association.
    Exhaust {
        /// Whose.
        node: usize,
        /// Towards whom.
        peer: usize,
        /// How often.
        times: u8,
    },
    /// An attacker sends what no node sent, from the address of the peer.
    Forge {
        /// To where.
        node: usize,
        /// From which node's address.
        peer: usize,
        /// What.
        form: u8,
    },
    /// Names resolve, or do not.
    Names(bool),
}

impl KeySettings {
    /// The settings that these bytes say; there are some for any.
    #[must_use]
    pub fn read([seed, b, c]: [u8; KEY_SETTINGS_LEN]) -> KeySettings {
        let knowledge = |value: u8| match value & 3 {
            0 | 1 => Knowledge::Address,
            2 => Knowledge::Name,
            _ => Knowledge::Nothing,
        };
        let forth = knowledge(b);
        // One of them has to know where the other is.
        let back = if forth == Knowledge::Nothing { Knowledge::Address } else { knowledge(b >> 2) };
        let soft = Duration::from_secs([60, 300, 3_600, 86_400][usize::from(c & 3)]);
        let packets = if c & 4 == 0 { 1 << 32 } else { 40 };
        let lifetime = Lifetime { soft, packets, ..Lifetime::default() };
        KeySettings { seed, lifetime, forth, back, eager: c & 8 == 0, keepalive: c & 16 != 0 }
    }

    /// How `node` knows `peer`.
    pub(super) const fn knowledge(&self, node: usize, peer: usize) -> Knowledge {
        if node < peer { self.forth } else { self.back }
    }
}

impl KeyOperation {
    /// The operation that these bytes say; there is one for any.
    #[must_use]
    pub fn read([kind, who, a]: [u8; KEY_OPERATION_LEN]) -> KeyOperation {
        let node = usize::from(who & 15) % NODES;
        let peer = (node + 1 + usize::from(who >> 4) % (NODES - 1)) % NODES;
        match kind % 32 {
            0..=6 => KeyOperation::Advance(span(a)),
            7..=10 => KeyOperation::Talk { node, peer, seconds: a },
            11..=13 => KeyOperation::Packet { node, peer },
            14..=17 => KeyOperation::Weather { node, peer, weather: weather(a) },
            18 | 19 => KeyOperation::Lose { node, peer, count: a % 16 },
            20 | 21 => KeyOperation::Restart(node),
            22 | 23 => KeyOperation::Move(node),
            24 => KeyOperation::Return(node),
            25 => KeyOperation::RemovePeer { node, peer },
            26 | 27 => KeyOperation::AddPeer { node, peer },
            28 => KeyOperation::Exhaust { node, peer, times: 1 + a % 8 },
            29 | 30 => KeyOperation::Forge { node, peer, form: a },
            _ => KeyOperation::Names(a & 1 == 0),
        }
    }
}

/// From a millisecond to some hours.
fn span(a: u8) -> Duration {
    Duration::from_millis([1, 9, 100, 900, 5_000, 20_000, 61_000, 600_000][usize::from(a & 7)])
        * (1 + u32::from(a >> 3))
}

fn weather(a: u8) -> LinkWeather {
    match a & 7 {
        0 | 1 => LinkWeather::FAIR,
        2 => LinkWeather { lost: 255, ..LinkWeather::FAIR },
        3 => LinkWeather { lost: a, ..LinkWeather::FAIR },
        4 => LinkWeather { twice: a, ..LinkWeather::FAIR },
        5 => LinkWeather { delay: u16::from(a) * 4, ..LinkWeather::FAIR },
        6 => LinkWeather { lost: a / 4, twice: a / 4, delay: u16::from(a) },
        _ => LinkWeather { delay: u16::from(a) * 40, ..LinkWeather::FAIR },
    }
}
