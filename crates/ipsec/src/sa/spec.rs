//! What makes a security association, one direction of it (RFC 4301 section 4.4.2.1).
//!
//! The protocols compose: IPComp inside ESP inside AH, each of them there or not, around an upper layer
//! in transport mode or around a whole packet in tunnel mode, behind UDP or directly behind IP.

use std::net::IpAddr;

use strait_compress::{CodecSet, IpcompAlgorithm};
use strait_crypto::{Cipher, Integrity, KeyMaterial};
use strait_wire::ah::Align;
use strait_wire::{Cpi, Spi};

use crate::PeerId;

/// Whether the initialization vector of an AEAD suite travels in each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IvMode {
    /// The sequence number is the IV and is not sent a second time (RFC 8750).
    Implicit,
    /// Eight bytes after the ESP header (RFC 4106, RFC 7634), for analysers and other peers.
    Explicit,
}

impl IvMode {
    /// Bytes it takes in a packet.
    #[must_use]
    pub const fn wire_len(self) -> usize {
        match self {
            IvMode::Implicit => 0,
            IvMode::Explicit => strait_wire::esp::IV_LEN,
        }
    }
}

/// How long the sequence number is that the integrity check covers (RFC 4303 section 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceNumbers {
    /// 32 bits, all of them sent, for peers that know no others; the association ends with the last.
    Bits32,
    /// 64 bits, the upper half known to both ends.
    Bits64,
}

/// IPComp as the receiver of an SA takes it (RFC 3173).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcompSpec {
    /// How payloads are compressed.
    pub algorithm: IpcompAlgorithm,
    /// The receiver's name for it: well known, or agreed by hand.
    pub cpi: Cpi,
}

impl IpcompSpec {
    /// DEFLATE under its well-known number (RFC 2394).
    pub const DEFLATE: IpcompSpec = IpcompSpec { algorithm: IpcompAlgorithm::Deflate, cpi: Cpi::DEFLATE };
    /// LZS under its well-known number (RFC 2395).
    pub const LZS: IpcompSpec = IpcompSpec { algorithm: IpcompAlgorithm::Lzs, cpi: Cpi::LZS };
}

/// What the receiver of an SA understands beside raw IP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// Raw packets, AGGFRAG bundles and Strait blocks in these codecs, each block at most
    /// `block_cap` bytes when expanded.
    Strait {
        /// Codecs the receiver can expand.
        codecs: CodecSet,
        /// Most bytes a block may expand to.
        block_cap: u32,
    },
    /// Raw packets and, if it is agreed, IPComp; nothing private.
    Standard(Option<IpcompSpec>),
    /// Bundles and fragments of packets, in tunnel mode, and nothing else (RFC 9347).
    Aggfrag,
}

impl Payloads {
    /// What every IPsec peer with compression takes: raw packets and IPComp with DEFLATE.
    pub const STANDARD: Payloads = Payloads::Standard(Some(IpcompSpec::DEFLATE));
}

/// What is put between the outer header and the protocols (RFC 4301 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The whole inner packet is the payload.
    Tunnel,
    /// The upper layer is the payload; the packet keeps its own headers, from and to these hosts.
    Transport {
        /// The sender's address.
        from: IpAddr,
        /// The receiver's address.
        to: IpAddr,
    },
}

/// What carries protected packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// ESP in UDP (RFC 3948), on the node's one port.
    Udp,
    /// IP itself, protocols 50, 51 and 108, between these hosts.
    Ip {
        /// The sender's address.
        from: IpAddr,
        /// The receiver's address.
        to: IpAddr,
    },
}

/// How protected packets above the path MTU are handled, directly behind IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragments {
    /// There are none: ICMP asks senders for smaller packets (RFC 4301 section 8.2).
    Never,
    /// They are cut into outer fragments (RFC 4301 section 8.1).
    Outer,
}

/// The algorithms and keys of ESP.
#[derive(Debug)]
pub enum EspKeys {
    /// One algorithm for both (RFC 4106, RFC 7634).
    Aead {
        /// Key and salt.
        key: KeyMaterial,
        /// Where the IV is.
        iv: IvMode,
    },
    /// A cipher, then an integrity algorithm over what it made (RFC 4303 section 3.3.2).
    Separate {
        /// The cipher, which may be NULL (RFC 2410).
        cipher: KeyMaterial<Cipher>,
        /// Nothing only where AH protects the packet: a packet without integrity is never delivered.
        integrity: Option<KeyMaterial<Integrity>>,
        /// Random, new at every start: what makes IVs unpredictable.
        seed: u64,
    },
}

/// ESP of one direction (RFC 4303).
#[derive(Debug)]
pub struct EspSpec {
    /// Chosen by the receiver.
    pub spi: Spi,
    /// Algorithms and keys.
    pub keys: EspKeys,
}

/// AH of one direction (RFC 4302).
#[derive(Debug)]
pub struct AhSpec {
    /// Chosen by the receiver.
    pub spi: Spi,
    /// Integrity algorithm and key.
    pub integrity: KeyMaterial<Integrity>,
    /// The alignment that its header is padded to over IPv4.
    pub align: Align,
}

/// Everything that makes a security association.
#[derive(Debug)]
pub struct SaSpec {
    /// The peer at the other end.
    pub peer: PeerId,
    /// AH, the outermost protocol, if it is used.
    pub ah: Option<AhSpec>,
    /// ESP, inside AH if both are used.
    pub esp: Option<EspSpec>,
    /// Length of the sequence numbers.
    pub sequence: SequenceNumbers,
    /// Tunnel or transport mode.
    pub mode: Mode,
    /// What carries the protected packets: UDP or IP.
    pub carrier: Carrier,
    /// How packets above the path MTU are handled.
    pub fragments: Fragments,
    /// Which payloads the receiver accepts.
    pub payloads: Payloads,
}

impl SaSpec {
    /// ESP with one AEAD key in tunnel mode over UDP, with 64-bit sequence numbers: as sessions have it.
    #[must_use]
    pub const fn session(peer: PeerId, spi: Spi, key: KeyMaterial, iv: IvMode, payloads: Payloads) -> SaSpec {
        SaSpec {
            peer,
            ah: None,
            esp: Some(EspSpec { spi, keys: EspKeys::Aead { key, iv } }),
            sequence: SequenceNumbers::Bits64,
            mode: Mode::Tunnel,
            carrier: Carrier::Udp,
            fragments: Fragments::Never,
            payloads,
        }
    }

    /// The SPI of its outermost protocol; 0, which none has, where nothing but compression is agreed.
    #[must_use]
    pub fn spi(&self) -> Spi {
        let outermost = self.ah.as_ref().map(|ah| ah.spi).or(self.esp.as_ref().map(|esp| esp.spi));
        outermost.unwrap_or(Spi(0))
    }

    /// What the receiver finds it by.
    #[must_use]
    pub(crate) fn id(&self) -> SaId {
        match (self.ah.is_some() || self.esp.is_some(), self.carrier) {
            (false, Carrier::Ip { from, .. }) => SaId::From(from),
            (true, Carrier::Ip { .. }) => SaId::Ip(self.spi()),
            (_, Carrier::Udp) => SaId::Udp(self.spi()),
        }
    }
}

/// What a receiver finds a security association by. An attacker on the path can wrap and unwrap packets, so each is
/// found by the agreed carrier only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SaId {
    /// The SPI of what came in UDP.
    Udp(Spi),
    /// The peer and the SPI of what came in UDP behind a header, where another association has the SPI.
    Keyed(PeerId, Spi),
    /// The SPI of the outermost protocol of what came directly behind IP.
    Ip(Spi),
    /// The sender, where nothing but compression is agreed.
    From(IpAddr),
}
