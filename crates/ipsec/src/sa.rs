//! Security associations: one direction, one SPI, one key, one sequence (RFC 4301 section 4.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_clock::Time;
use strait_compress::CodecSet;
use strait_crypto::{Key, KeyMaterial, NonceCounter};
use strait_wire::Spi;

use crate::PeerId;
use crate::replay::ReplayWindow;

/// Whether the initialization vector travels in each packet.
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

/// What the receiver of an SA understands inside ESP, beside raw IP packets.
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
    /// Raw packets and IPComp with DEFLATE (RFC 3173, RFC 2394), nothing private.
    Standard,
}

/// Everything that makes a security association.
#[derive(Debug)]
pub struct SaSpec {
    /// Chosen by the receiver.
    pub spi: Spi,
    /// Whom it leads to or comes from.
    pub peer: PeerId,
    /// Key and salt.
    pub key: KeyMaterial,
    /// Where the IV is.
    pub iv: IvMode,
    /// How long its sequence numbers are.
    pub sequence: SequenceNumbers,
    /// What may be inside.
    pub payloads: Payloads,
}

/// What one SA has carried, written by the packet path and read by whoever keeps the keys.
#[derive(Debug, Default)]
pub struct Usage {
    packets: AtomicU64,
    bytes: AtomicU64,
    last: AtomicU64,
}

impl Usage {
    /// ESP packets, which is also the last sequence number of an outbound SA.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Bytes sealed or opened.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When a packet was last sealed or authentic; nothing when none was.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Time::from_nanos(nanos)),
        }
    }

    /// Adds what was sealed or opened at `now`; for the one thread that owns the SA, and for simulations.
    pub fn note(&self, packets: u64, bytes: u64, now: Time) {
        // One writer: plain additions suffice and cost no locked instruction.
        self.packets.store(self.packets() + packets, Ordering::Relaxed);
        self.bytes.store(self.bytes() + bytes, Ordering::Relaxed);
        self.last.store(now.as_nanos().max(1), Ordering::Relaxed);
    }
}

/// The sending half: the key with the only counter that feeds it.
#[derive(Debug)]
pub struct OutboundSa {
    pub(crate) spi: Spi,
    pub(crate) peer: PeerId,
    pub(crate) key: Key,
    pub(crate) nonces: NonceCounter,
    pub(crate) iv: IvMode,
    pub(crate) sequence: SequenceNumbers,
    pub(crate) payloads: Payloads,
    pub(crate) usage: Arc<Usage>,
}

impl OutboundSa {
    /// A fresh SA whose first packet has sequence number 1 (RFC 4303 section 3.3.3).
    #[must_use]
    pub fn new(spec: &SaSpec) -> OutboundSa {
        OutboundSa {
            spi: spec.spi,
            peer: spec.peer,
            key: Key::new(&spec.key),
            nonces: NonceCounter::new(),
            iv: spec.iv,
            sequence: spec.sequence,
            payloads: spec.payloads,
            usage: Arc::default(),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// Whom it leads to.
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Its counters, to watch its limits.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }
}

/// The receiving half: the key with its replay window.
#[derive(Debug)]
pub struct InboundSa {
    pub(crate) spi: Spi,
    pub(crate) peer: PeerId,
    pub(crate) key: Key,
    pub(crate) iv: IvMode,
    pub(crate) sequence: SequenceNumbers,
    pub(crate) payloads: Payloads,
    pub(crate) window: ReplayWindow,
    pub(crate) usage: Arc<Usage>,
}

impl InboundSa {
    /// A fresh SA that has received nothing.
    #[must_use]
    pub fn new(spec: &SaSpec) -> InboundSa {
        InboundSa {
            spi: spec.spi,
            peer: spec.peer,
            key: Key::new(&spec.key),
            iv: spec.iv,
            sequence: spec.sequence,
            payloads: spec.payloads,
            window: ReplayWindow::new(),
            usage: Arc::default(),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// Whom it comes from.
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Its counters, to see whether the peer is alive.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }
}
