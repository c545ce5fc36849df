//! What can be wrong with a peer's manual keys, each with its remedy.

use std::net::IpAddr;

use strait_compress::Algorithm as Compression;
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
        "this is the key of line {line}: both ends, or two peers, would use the same numbers with one key of {suite}, \
         which gives away what it protects; make a key for each direction and each peer"
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
    /// Nobody would notice changes.
    #[error(
        "without `integrity` nobody notices when packets are changed on the way; add it, or [peer.manual.ah], or use a \
         `suite`"
    )]
    NoIntegrity,
    /// An algorithm that is broken or worn out.
    #[error(
        "`{algorithm}` protects nobody any more; if the peer knows nothing better, allow it with `danger_legacy = true` \
         in [peer.manual]"
    )]
    Legacy {
        /// Its name.
        algorithm: &'static str,
    },
    /// A stream cipher without an IV.
    #[error(
        "`{cipher}` would encrypt every packet with the same key stream, which protects none of them; use another"
    )]
    SameStream {
        /// The cipher.
        cipher: Cipher,
    },
    /// An SPI that is nobody's.
    #[error("SPIs from 0 to 255 are reserved (RFC 4303 section 2.1); choose `{key}` from 256 on")]
    ReservedSpi {
        /// Whose value.
        key: &'static str,
    },
    /// An SPI that would not be recognised.
    #[error(
        "over UDP `{key}` must be between 0x04000000 and 0x0fffffff, which tells ESP from the control channel; choose \
         such a number here and at the peer"
    )]
    UdpSpi {
        /// Whose value.
        key: &'static str,
    },
    /// Two peers with one SPI.
    #[error("the peer in line {line} receives with SPI {spi} already; choose another here and at the peer")]
    DuplicateSpi {
        /// The number.
        spi: Spi,
        /// Where the other is.
        line: usize,
    },
    /// A CPI with another meaning.
    #[error("`{key}` is {algorithm}'s own number ({}) or one from 256 on (RFC 3173 section 3.3), not {given}", algorithm.number())]
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
        "IPComp alone protects nothing: anybody on the way can read and change the packets; add [peer.manual.esp], or say \
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
    #[error("AGGFRAG payloads are whole packets inside ESP (RFC 9347): `aggfrag` needs {needs}")]
    Aggfrag {
        /// What is missing.
        needs: &'static str,
    },
    /// A suite that would start again at number 1.
    #[error(
        "a `suite` gives away what it protects when a number is used twice, also after a restart; name a file that keeps \
         count: counter_file = \"gateway.counter\""
    )]
    NoCounterFile,
    /// Two peers with one file.
    #[error("the peer in line {line} keeps its count in this file already; each peer has its own")]
    DuplicateCounterFile {
        /// Where the other is.
        line: usize,
    },
    /// Networks that transport mode cannot reach.
    #[error(
        "transport mode protects the traffic between two hosts, so `allowed_ips` is the endpoint's address {remote}; \
         leave it out, or use mode = \"tunnel\""
    )]
    TransportNetworks {
        /// The endpoint.
        remote: IpAddr,
    },
    /// Addresses that cannot meet.
    #[error("`local` {local} and `endpoint` {remote} are of different families")]
    MixedFamilies {
        /// This node.
        local: IpAddr,
        /// The peer.
        remote: IpAddr,
    },
    /// Two peers that cannot be told apart.
    #[error("packets from {remote} without ESP or AH belong to the peer in line {line} already")]
    DuplicateRemote {
        /// Both peers' address.
        remote: IpAddr,
        /// Where the other is.
        line: usize,
    },
    /// A name where an address has to be.
    #[error("manual keys go with an address: `endpoint` cannot be the name {name}")]
    NamedEndpoint {
        /// The name, with its port.
        name: String,
    },
    /// The peer could not know the port.
    #[error(
        "the peer must know where to send: `carrier = \"udp\"` needs `listen` in [node], for example listen = 4500"
    )]
    NoListen,
    /// A peer with both kinds of keys.
    #[error("a peer has either a `public_key`, with which keys are agreed, or keys in [peer.manual]")]
    TwoKindsOfKeys,
    /// A setting that changes nothing.
    #[error("`{key}` has no use here: {why}; leave it out")]
    NoUse {
        /// The setting.
        key: &'static str,
        /// What it is for.
        why: &'static str,
    },
}
