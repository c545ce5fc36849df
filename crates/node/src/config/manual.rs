//! `[peer.manual]`: a peer whose keys are in the file, in the words of `ip xfrm`.

mod association;
mod inside;
mod key;
mod problem;
mod protocols;
mod section;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use strait_compress::IpcompAlgorithm as Compression;
use strait_crypto::{Cipher, Integrity, KeyMaterial, KeyedAlgorithm, Suite};
use strait_ipsec::{Fragments, SequenceNumbers};
use strait_wire::ah::Align;
use strait_wire::{Cpi, Spi};

pub use problem::ManualProblem;
pub(super) use section::{FoundManual, read};

/// Both directions of what a peer and this node protect with keys from the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Manual {
    /// What is protected.
    pub mode: ManualMode,
    /// What carries it.
    pub carrier: ManualCarrier,
    /// How long sequence numbers are.
    pub sequence: SequenceNumbers,
    /// What may be inside beside raw packets.
    pub inside: ManualPayloads,
    /// How packets that are too large for the path are handled.
    pub fragments: Fragments,
    /// Whether the peer is answered where its newest packet came from, which after a restart can be an old one that someone
    /// sends again; if not, it stays at its endpoint.
    pub roams: bool,
    /// The outermost protocol, if it is there.
    pub ah: Option<ManualAh>,
    /// What stands inside AH, if it is there.
    pub esp: Option<ManualEsp>,
    /// Where it is kept which sequence numbers were used.
    pub counter_file: Option<PathBuf>,
}

/// The two ends outside, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// This node.
    pub local: IpAddr,
    /// The peer.
    pub remote: IpAddr,
}

/// What is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualMode {
    /// Whole packets between networks.
    Tunnel,
    /// The upper layers of packets between these two.
    Transport(Hosts),
}

/// What carries protected packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualCarrier {
    /// UDP, on the node's port.
    Udp,
    /// IP itself, between these two.
    Ip(Hosts),
}

/// What may be inside the protocols beside raw packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualPayloads {
    /// Nothing.
    Raw,
    /// IPComp (RFC 3173).
    Ipcomp {
        /// How payloads are compressed.
        algorithm: Compression,
        /// This node's name for it.
        inbound: Cpi,
        /// The peer's name for it.
        outbound: Cpi,
    },
    /// AGGFRAG payloads only (RFC 9347).
    Aggfrag,
}

/// The SPIs of one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spis {
    /// Towards this node.
    pub inbound: Spi,
    /// Towards the peer.
    pub outbound: Spi,
}

/// A key for each direction; clones share it.
#[derive(Clone, Debug, PartialEq)]
pub struct ManualKeys<A: KeyedAlgorithm> {
    /// Of what comes.
    pub inbound: Arc<KeyMaterial<A>>,
    /// Of what goes.
    pub outbound: Arc<KeyMaterial<A>>,
}

impl<A: KeyedAlgorithm> ManualKeys<A> {
    /// What they are for.
    #[must_use]
    pub fn algorithm(&self) -> A {
        self.inbound.algorithm()
    }
}

/// ESP (RFC 4303).
#[derive(Clone, Debug, PartialEq)]
pub struct ManualEsp {
    /// Its SPIs.
    pub spi: Spis,
    /// What it protects with.
    pub protection: ManualProtection,
}

/// What ESP protects with.
#[derive(Clone, Debug, PartialEq)]
pub enum ManualProtection {
    /// One algorithm for both, the IV in each packet.
    Aead(ManualKeys<Suite>),
    /// A cipher, then an integrity algorithm; that may be AH's instead.
    Separate {
        /// What encrypts.
        cipher: ManualKeys<Cipher>,
        /// What authenticates.
        integrity: Option<ManualKeys<Integrity>>,
    },
}

/// AH (RFC 4302).
#[derive(Clone, Debug, PartialEq)]
pub struct ManualAh {
    /// Its SPIs.
    pub spi: Spis,
    /// What it vouches with.
    pub keys: ManualKeys<Integrity>,
    /// What its header is padded to over IPv4.
    pub align: Align,
}

impl Manual {
    /// The two ends outside, where they are agreed.
    #[must_use]
    pub const fn hosts(&self) -> Option<Hosts> {
        match (self.carrier, self.mode) {
            (ManualCarrier::Ip(hosts), _) | (ManualCarrier::Udp, ManualMode::Transport(hosts)) => Some(hosts),
            (ManualCarrier::Udp, ManualMode::Tunnel) => None,
        }
    }

    /// The SPIs of the outermost protocol; none where nothing but compression is agreed.
    #[must_use]
    pub fn spi(&self) -> Option<Spis> {
        let ah = self.ah.as_ref().map(|ah| ah.spi);
        ah.or(self.esp.as_ref().map(|esp| esp.spi))
    }
}

#[cfg(test)]
mod tests;
