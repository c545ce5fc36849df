//! The two security associations that a manual peer is.

use strait_crypto::{KeyMaterial, KeyedAlgorithm};
use strait_ipsec::{self as ipsec, AhSpec, EspKeys, EspSpec, IpcompSpec, IvMode, Payloads, PeerId, SaSpec};

use super::{
    Hosts, Manual, ManualAh, ManualCarrier, ManualEsp, ManualKeys, ManualMode, ManualPayloads,
    ManualProtection, Spis,
};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssociationDirection {
    Inbound,
    Outbound,
}

impl Manual {
    /// The association that `peer` sends with.
    #[must_use]
    pub fn inbound(&self, peer: PeerId) -> SaSpec {
        // IVs come with the packets; only who makes them needs a seed.
        self.association(AssociationDirection::Inbound, peer, 0)
    }

    /// The association that is sent to `peer` with; `seed` is random and new at every start.
    #[must_use]
    pub fn outbound(&self, peer: PeerId, seed: u64) -> SaSpec {
        self.association(AssociationDirection::Outbound, peer, seed)
    }

    fn association(&self, direction: AssociationDirection, peer: PeerId, seed: u64) -> SaSpec {
        SaSpec {
            peer,
            ah: self.ah.as_ref().map(|ah| ah.spec(direction)),
            esp: self.esp.as_ref().map(|esp| esp.spec(direction, seed)),
            sequence: self.sequence,
            mode: match self.mode {
                ManualMode::Tunnel => ipsec::Mode::Tunnel,
                ManualMode::Transport(hosts) => {
                    let (from, to) = direction.of_hosts(hosts);
                    ipsec::Mode::Transport { from, to }
                }
            },
            carrier: match self.carrier {
                ManualCarrier::Udp => ipsec::Carrier::Udp,
                ManualCarrier::Ip(hosts) => {
                    let (from, to) = direction.of_hosts(hosts);
                    ipsec::Carrier::Ip { from, to }
                }
            },
            fragments: self.fragments,
            payloads: match self.inside {
                ManualPayloads::Raw => Payloads::Standard(None),
                ManualPayloads::Ipcomp { algorithm, inbound, outbound } => {
                    let cpi = direction.of(inbound, outbound);
                    Payloads::Standard(Some(IpcompSpec { algorithm, cpi }))
                }
                ManualPayloads::Aggfrag => Payloads::Aggfrag,
            },
        }
    }
}

impl AssociationDirection {
    fn of<T>(self, inbound: T, outbound: T) -> T {
        match self {
            AssociationDirection::Inbound => inbound,
            AssociationDirection::Outbound => outbound,
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

    fn of_keys<A: KeyedAlgorithm>(self, keys: &ManualKeys<A>) -> KeyMaterial<A> {
        self.of(&keys.inbound, &keys.outbound).duplicate()
    }
}

impl ManualAh {
    fn spec(&self, direction: AssociationDirection) -> AhSpec {
        AhSpec {
            spi: direction.of_spis(self.spi),
            integrity: direction.of_keys(&self.keys),
            align: self.align,
        }
    }
}

impl ManualEsp {
    fn spec(&self, direction: AssociationDirection, seed: u64) -> EspSpec {
        let keys = match &self.protection {
            ManualProtection::Aead(keys) => {
                EspKeys::Aead { key: direction.of_keys(keys), iv: IvMode::Explicit }
            }
            ManualProtection::Separate { cipher, integrity } => EspKeys::Separate {
                cipher: direction.of_keys(cipher),
                integrity: integrity.as_ref().map(|keys| direction.of_keys(keys)),
                seed,
            },
        };
        EspSpec { spi: direction.of_spis(self.spi), keys }
    }
}
