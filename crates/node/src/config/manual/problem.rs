//! What can be wrong with a peer's manual keys, each with its remedy.

use std::net::IpAddr;

use strait_compress::IpcompAlgorithm as Compression;
use strait_crypto::{Cipher, Integrity, Suite, UnknownName};
use strait_keying::manual::KeyTextError;
use strait_wire::{Cpi, Spi};

/// One thing wrong with a peer's manual keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManualProblem {
    /// A key by both names.
    #[error("give either `{key}` or `{key}_file`, not both")]
    KeyTwice {
        /// The key's name.
        key: &'static str,
    },
    /// Not a key's text.
    #[error("`{key}` {error}; write hex digits after 0x, or base64")]
    KeyText {
        /// Whose text, or the text of whose file.
        key: &'static str,
        /// What is wrong with it.
        error: KeyTextError,
    },
    /// A key of another length.
    #[error(
        "`{key}` has {given} bytes; {algorithm} takes {expected} ({secret}), which is {} hex digits after 0x",
        expected * 2
    )]
    KeyLength {
        /// Whose key.
        key: &'static str,
        /// What it is for.
        algorithm: &'static str,
        /// What it consists of.
        secret: &'static str,
        /// Bytes that belong there.
        expected: usize,
        /// Bytes that are there.
        given: usize,
    },
    /// A suite with one key for two counters.
    #[error(
        "this is the same key as in line {line}: {suite} is broken when two senders use one key; make a key for each \
         direction and each peer"
    )]
    SameKey {
        /// What it is for.
        suite: Suite,
        /// Where the other is.
        line: usize,
    },
    /// Not a cipher.
    #[error(transparent)]
    Cipher(#[from] UnknownName<Cipher>),
    /// Not an integrity algorithm.
    #[error(transparent)]
    Integrity(#[from] UnknownName<Integrity>),
    /// ESP with two kinds of protection, or none.
    #[error(
        "[peer.manual.esp] takes either `suite`, for example suite = \"aes-128-gcm\", or `cipher` and `integrity`, for \
         example cipher = \"aes-128-cbc\" and integrity = \"hmac-sha-256-128\""
    )]
    SuiteOrCipher,
    /// Packets are not authenticated.
    #[error(
        "without `integrity` packets are not authenticated; add it, or [peer.manual.ah], or use a `suite`"
    )]
    NoIntegrity,
    /// An algorithm that is broken or worn out.
    #[error(
        "`{algorithm}` is broken; if the peer supports nothing better, allow it with `danger_legacy = true` in \
         [peer.manual]"
    )]
    Legacy {
        /// Its name.
        algorithm: &'static str,
    },
    /// Historic algorithms in a build without them.
    #[error(
        "this build of strait has no historic algorithms; build it with them: `cargo build --release --package strait \
         --features danger-legacy`"
    )]
    LegacyNotBuilt,
    /// A stream cipher without an IV.
    #[error(
        "`{cipher}` would encrypt every packet with the same key stream, which is broken; use another cipher"
    )]
    SameStream {
        /// The cipher.
        cipher: Cipher,
    },
    /// A reserved SPI.
    #[error("SPIs from 0 to 255 are reserved (RFC 4303 section 2.1); choose 256 or above for `{key}`")]
    ReservedSpi {
        /// Whose value.
        key: &'static str,
    },
    /// An SPI that would not be recognised.
    #[error(
        "over UDP `{key}` must be between 0x04000000 and 0x0fffffff, which tells ESP from the control channel; choose \
         one at both ends"
    )]
    UdpSpi {
        /// Whose value.
        key: &'static str,
    },
    /// Two peers with one SPI.
    #[error("SPI {spi} is already used by the peer in line {line}; choose another at both ends")]
    DuplicateSpi {
        /// The number.
        spi: Spi,
        /// Where the other is.
        line: usize,
    },
    /// A CPI with another meaning.
    #[error("`{key}` must be the well-known CPI of {algorithm} ({}) or 256 and above (RFC 3173 section 3.3), not {given}", algorithm.number())]
    Cpi {
        /// Whose value.
        key: &'static str,
        /// What is compressed with.
        algorithm: Compression,
        /// As written.
        given: Cpi,
    },
    /// No protocol at all.
    #[error("[peer.manual] needs [peer.manual.esp], [peer.manual.ah] or both")]
    NoProtocol,
    /// Compression and nothing else.
    #[error(
        "IPComp alone neither encrypts nor authenticates; add [peer.manual.esp], or allow it with \
         `danger_plain = true`"
    )]
    Plain,
    /// AH cannot be carried by UDP.
    #[error("UDP carries ESP only (RFC 3948); leave AH out, or use carrier = \"ip\"")]
    AhOverUdp,
    /// UDP without ESP.
    #[error("UDP carries ESP only (RFC 3948); add [peer.manual.esp], or use carrier = \"ip\"")]
    NothingOverUdp,
    /// AGGFRAG where it does not belong.
    #[error("AGGFRAG payloads carry whole IP packets inside ESP (RFC 9347): `aggfrag` needs {needs}")]
    Aggfrag {
        /// What is missing.
        needs: &'static str,
    },
    /// A suite that would start again at number 1.
    #[error(
        "a `suite` is broken when a sequence number is used twice, also after a restart; name a file that keeps the \
         number: counter_file = \"gateway.counter\""
    )]
    NoCounterFile,
    /// Two peers with one file.
    #[error("the counter file is already used by the peer in line {line}; give each peer its own")]
    DuplicateCounterFile {
        /// Where the other is.
        line: usize,
    },
    /// Networks that transport mode cannot reach.
    #[error(
        "in transport mode `allowed_ips` is the address of the endpoint, {remote}; \
         leave it out, or use mode = \"tunnel\""
    )]
    TransportNetworks {
        /// The endpoint.
        remote: IpAddr,
    },
    /// Addresses that cannot meet.
    #[error("`local` {local} and `endpoint` {remote} are of different address families")]
    MixedFamilies {
        /// This node.
        local: IpAddr,
        /// The peer.
        remote: IpAddr,
    },
    /// Two peers that cannot be told apart.
    #[error("the peer in line {line} already has the endpoint {remote} without ESP or AH; only one peer can")]
    DuplicateRemote {
        /// Both peers' address.
        remote: IpAddr,
        /// Where the other is.
        line: usize,
    },
    /// The peer would be answered wherever a packet comes from.
    #[error(
        "with manual keys the peer needs `endpoint`; without it, the peer is answered where its newest packet came from, \
         which after a restart can be an old one that an attacker sends again: allow that with `danger_roaming = true`"
    )]
    NoEndpoint,
    /// A name where an address has to be.
    #[error("with manual keys `endpoint` must be an IP address, not the name {name}")]
    NamedEndpoint {
        /// The name, with its port.
        name: String,
    },
    /// The peer could not know the port.
    #[error(
        "`carrier = \"udp\"` needs a fixed port, which the peer sends to: set `listen` in [node], for example listen = 4500"
    )]
    NoListen,
    /// What takes streams, of a peer that has none.
    #[error("`{key}` needs streams, which a peer with manual keys does not have")]
    Streams {
        /// Which.
        key: &'static str,
    },
    /// A peer with both kinds of keys.
    #[error("a peer has either a `public_key` (session keys) or [peer.manual] (manual keys), not both")]
    TwoKindsOfKeys,
    /// A setting that changes nothing.
    #[error("`{key}` has no effect here: {why}; leave it out")]
    NoUse {
        /// The setting.
        key: &'static str,
        /// What it is for.
        why: &'static str,
    },
}
