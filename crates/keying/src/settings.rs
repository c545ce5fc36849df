//! What a node and each of its peers are told once.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strait_ipsec::{Counters, PeerSpec};
use strait_scheduler::LinkRate;
use zeroize::Zeroizing;

use crate::{Capabilities, PayloadFormat, PresharedToken, PrivateKey, PublicKey};

/// How long the keys of a pair of security associations serve.
///
/// The node that started a pair replaces it at the soft limits; its peer steps in 10 % later. A pair in
/// use is never without a successor; an idle one is not replaced, and is withdrawn at 1.5 times `soft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Time until a pair in use is replaced, spread by 10 % so that many do not come at once.
    pub soft: Duration,
    /// Bytes either direction carries until the pair is replaced.
    pub bytes: u64,
    /// Packets either direction carries until the pair is replaced.
    pub packets: u64,
}

impl Lifetime {
    /// The shortest `soft`: a handshake may take 10 s and has to be over before the keys are.
    pub const SHORTEST: Duration = Duration::from_secs(60);
    /// The longest `soft`, so that no arithmetic on it can overflow.
    pub const LONGEST: Duration = Duration::from_secs(30 * 86_400);
}

impl Default for Lifetime {
    /// One hour, 2^36 bytes, 2^32 packets.
    ///
    /// The hour is what IKE daemons give a child SA (strongSwan's `rekey_time`): a stolen key opens at
    /// most that much, and at 6.5 kB a handshake it costs 0.001 % of a 1.5 Mbit/s link. 2^36 bytes are
    /// 2^32 AES blocks, 2^32 packets at most as many again, which leaves an attacker on AES-GCM an
    /// advantage of 2^-63 (draft-irtf-cfrg-aead-limits-11 section 5.1.1).
    fn default() -> Lifetime {
        Lifetime { soft: Duration::from_secs(3600), bytes: 1 << 36, packets: 1 << 32 }
    }
}

/// Whether ESP keys leave this crate in readable form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyExport {
    /// They do not.
    #[default]
    Never,
    /// Every key is also handed out as [`Action::DangerKey`](crate::Action::DangerKey), for an analyser.
    Danger,
}

/// What one node is.
#[derive(Debug)]
pub struct ControlSettings {
    /// Its key pair.
    pub identity: PrivateKey,
    /// What it offers every peer, the rate it can receive at included.
    pub capabilities: Capabilities,
    /// The rate of its own link out.
    pub up: LinkRate,
    /// How long keys serve.
    pub lifetime: Lifetime,
    /// What both ends of a handshake have to have, if anything beside their key pairs.
    pub token: Option<PresharedToken>,
    /// Whether keys are handed out.
    pub export: KeyExport,
    /// Where answers to strangers are counted that are not given.
    pub counters: Arc<Counters>,
    /// The system's randomness, for SPIs, connection ids, tokens and jitter.
    pub seed: Zeroizing<[u8; 32]>,
    /// The instant of `Time::ZERO`, as QUIC counts in instants.
    pub base: Instant,
}

/// Settings that no node can run with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A key lifetime outside the limits.
    #[error("a key lifetime of {given:?} is outside {:?} to {:?}", Lifetime::SHORTEST, Lifetime::LONGEST)]
    Lifetime {
        /// What was asked for.
        given: Duration,
    },
    /// No suite is left to offer.
    #[error("no cipher suite is allowed; allow at least one")]
    NoSuite,
    /// A limit in bytes or packets that the first packet would pass.
    #[error("a key lifetime of {bytes} bytes and {packets} packets is too short to carry anything")]
    Volume {
        /// Limit in bytes.
        bytes: u64,
        /// Limit in packets.
        packets: u64,
    },
    /// The TLS library refused its configuration.
    #[error("the TLS library cannot be set up with this node's key: {0}")]
    Tls(#[from] rustls::Error),
    /// The TLS provider lacks what QUIC begins with.
    #[error("the TLS provider has no TLS13_AES_128_GCM_SHA256, which QUIC begins with (RFC 9001 section 5)")]
    NoInitialSuite,
}

/// Where a peer is looked for before it has spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// Nowhere: it has to speak first.
    Unknown,
    /// At this address and port.
    Address(SocketAddr),
    /// At what this `host:port` resolves to, asked again whenever the peer falls silent.
    Name(String),
}

/// When the first handshake with a peer is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At once if it is known where the peer is, so that a node that lost its state is heard of.
    #[default]
    Eager,
    /// When the first packet wants to go there.
    OnTraffic,
}

/// One peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// What the data plane is told of it; its `endpoint` is set from `place`.
    pub spec: PeerSpec,
    /// What people call it.
    pub name: String,
    /// Who it has to prove to be.
    pub key: PublicKey,
    /// Where it is.
    pub place: Where,
    /// When to begin.
    pub start: Start,
    /// After how long without sending anything a NAT keepalive is sent; never when not given.
    pub keepalive: Option<Duration>,
    /// What may be inside ESP; [`PayloadFormat::Standard`] if either end wants that.
    pub format: PayloadFormat,
    /// Whether losses are repaired, if the peer does that too.
    pub repair: RepairMode,
    /// What carries ESP.
    pub carrier: CarrierMode,
}

/// What the configuration says of what carries ESP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CarrierMode {
    /// UDP.
    #[default]
    Udp,
    /// IP itself (protocol 50), where the peer takes it and the network lets it pass; UDP else.
    Ip,
}

/// What the configuration says of repairing losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairMode {
    /// Where the path needs it and the peer knows how.
    #[default]
    Auto,
    /// Never.
    Off,
}
