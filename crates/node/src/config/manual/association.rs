//! The two security associations that a manual peer is.

use strait_crypto::{Algorithm, KeyMaterial};
use strait_ipsec::{self as ipsec, AhSpec, EspKeys, EspSpec, IpcompSpec, IvMode, Payloads, PeerId, SaSpec};

use super::{Ah, Carrier, Esp, Hosts, Inside, Keys, Manual, Mode, Protection, Spis};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Inbound,
    Outbound,
}

impl Manual {
    /// The association that `peer` sends with.
    #[must_use]
    pub fn inbound(&self, peer: PeerId) -> SaSpec {
        // IVs come with the packets; only who makes them needs a seed.
        self.association(Direction::Inbound, peer, 0)
    }

    /// The association that is sent to `peer` with; `seed` is random and new at every start.
    #[must_use]
    pub fn outbound(&self, peer: PeerId, seed: u64) -> SaSpec {
        self.association(Direction::Outbound, peer, seed)
    }

    fn association(&self, direction: Direction, peer: PeerId, seed: u64) -> SaSpec {
        SaSpec {
            peer,
            ah: self.ah.as_ref().map(|ah| ah.spec(direction)),
            esp: self.esp.as_ref().map(|esp| esp.spec(direction, seed)),
            sequence: self.sequence,
            mode: match self.mode {
                Mode::Tunnel => ipsec::Mode::Tunnel,
                Mode::Transport(hosts) => {
                    let (from, to) = direction.of_hosts(hosts);
                    ipsec::Mode::Transport { from, to }
                }
            },
            carrier: match self.carrier {
                Carrier::Udp => ipsec::Carrier::Udp,
                Carrier::Ip(hosts) => {
                    let (from, to) = direction.of_hosts(hosts);
                    ipsec::Carrier::Ip { from, to }
                }
            },
            fragments: self.fragments,
            payloads: match self.inside {
                Inside::Raw => Payloads::Standard(None),
                Inside::Ipcomp { algorithm, inbound, outbound } => {
                    let cpi = direction.of(inbound, outbound);
                    Payloads::Standard(Some(IpcompSpec { algorithm, cpi }))
                }
                Inside::Aggfrag => Payloads::Aggfrag,
            },
        }
    }
}

impl Direction {
    fn of<T>(self, inbound: T, outbound: T) -> T {
        match self {
            Direction::Inbound => inbound,
            Direction::Outbound => outbound,
        }
    }

    fn of_spis(self, spis: Spis) -> strait_wire::Spi {
        self.of(spis.inbound, spis.outbound)
    }

    /// From where to where.
    fn of_hosts(self, hosts: Hosts) -> (std::net::IpAddr, std::net::IpAddr) {
        let Hosts { local, remote } = hosts;
        self.of((remote, local), (local, remote))
    }

    fn of_keys<A: Algorithm>(self, keys: &Keys<A>) -> KeyMaterial<A> {
        self.of(&keys.inbound, &keys.outbound).duplicate()
    }
}

impl Ah {
    fn spec(&self, direction: Direction) -> AhSpec {
        AhSpec {
            spi: direction.of_spis(self.spi),
            integrity: direction.of_keys(&self.keys),
            align: self.align,
        }
    }
}

impl Esp {
    fn spec(&self, direction: Direction, seed: u64) -> EspSpec {
        let keys = match &self.protection {
            Protection::Aead(keys) => EspKeys::Aead { key: direction.of_keys(keys), iv: IvMode::Explicit },
            Protection::Separate { cipher, integrity } => EspKeys::Separate {
                cipher: direction.of_keys(cipher),
                integrity: integrity.as_ref().map(|keys| direction.of_keys(keys)),
                seed,
            },
        };
        EspSpec { spi: direction.of_spis(self.spi), keys }
    }
}
