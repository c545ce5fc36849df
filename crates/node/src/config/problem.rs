//! What can be wrong in a configuration, each with its remedy.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use strait_compress::BadAllowed;
use strait_crypto::UnknownSuite;
use strait_keying::sessionless::CardError;
use strait_keying::{ParseKeyError, PublicKey};
use strait_scheduler::calendar::ParseWindowError;
use strait_scheduler::metering::ParseCapError;
use strait_scheduler::{ParseRateError, ParseShareError};

use super::manual::ManualProblem;
use super::metering::BadPercent;
use super::value::{BadDuration, BadEndpoint, BadPorts, BadSize};
use super::{BadPrice, KeyFileError};

/// One thing wrong with a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("{message}")]
    Syntax {
        /// What the TOML reader said.
        message: String,
    },
    /// A key that the section does not have.
    #[error("unknown key `{key}` in {section}; {}", suggestion(*nearest, known))]
    UnknownKey {
        /// As written.
        key: String,
        /// Where.
        section: &'static str,
        /// The known key most like it.
        nearest: Option<&'static str>,
        /// Every key the section has.
        known: &'static [&'static str],
    },
    /// A private key where everybody can read it.
    #[error(
        "the configuration cannot contain the private key; write it to a file and name that file with \
         `private_key_file`"
    )]
    InlineKey,
    /// A key that must be there.
    #[error("{section} needs `{key}`, for example {example}")]
    Missing {
        /// What is missing.
        key: &'static str,
        /// Where.
        section: &'static str,
        /// How it looks.
        example: &'static str,
    },
    /// A cap that is none.
    #[error(transparent)]
    Cap(ParseCapError),
    /// A daily window that is none.
    #[error(transparent)]
    DailyWindow(ParseWindowError),
    /// A part of a cap that is none.
    #[error(transparent)]
    Percent(#[from] BadPercent),
    /// A window that is named and not there.
    #[error("`cap_bulk_window` needs a window, for example bulk_between = \"01:00-06:00\"")]
    WindowMissing,
    /// A command without a name.
    #[error(
        "a command or an argument of it is empty; write for example [\"/usr/local/bin/notify\", \"link\"]"
    )]
    EmptyCommand,
    /// A value of the wrong type.
    #[error("`{key}` must be {wanted}, not {found}")]
    Type {
        /// Whose value.
        key: String,
        /// What belongs there, with an example.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A number outside its range.
    #[error("`{key}` must be between {least} and {most}, not {given}")]
    Range {
        /// Whose value.
        key: &'static str,
        /// As written.
        given: String,
        /// Smallest that is right.
        least: u64,
        /// Largest that is right.
        most: u64,
    },
    /// A word that is not one of a few.
    #[error("`{key}` cannot be `{given}`; {}", suggestion(*nearest, known))]
    Choice {
        /// Whose value.
        key: &'static str,
        /// As written.
        given: String,
        /// The right word most like it.
        nearest: Option<&'static str>,
        /// Every right word.
        known: &'static [&'static str],
    },
    /// A text that may not be empty or endless.
    #[error("`{key}` must have 1 to {most} printable characters")]
    Words {
        /// Whose value.
        key: &'static str,
        /// Most characters.
        most: usize,
    },
    /// Not a public key.
    #[error("the public key {0}")]
    PublicKey(#[from] ParseKeyError),
    /// Not an address with its network.
    #[error("`{given}` is not an IP network; write for example \"10.77.0.1/24\" or \"fd77::1/64\"")]
    Network {
        /// As written.
        given: String,
    },
    /// Not an address with a port.
    #[error("`{given}` is not an address with a port; write for example {example}")]
    SocketAddress {
        /// As written.
        given: String,
        /// How it looks.
        example: &'static str,
    },
    /// Not where a peer can be reached.
    #[error(transparent)]
    Endpoint(#[from] BadEndpoint),
    /// Not a time span.
    #[error(transparent)]
    Duration(#[from] BadDuration),
    /// Not a size.
    #[error(transparent)]
    Size(#[from] BadSize),
    /// A time span outside its range.
    #[error("`{key}` must be between {least} and {most}, not {given}")]
    Span {
        /// Whose value.
        key: &'static str,
        /// As written.
        given: String,
        /// Shortest that is right.
        least: &'static str,
        /// Longest that is right.
        most: &'static str,
    },
    /// Not a link rate.
    #[error(transparent)]
    Rate(#[from] ParseRateError),
    /// Not a share of the link.
    #[error(transparent)]
    Share(#[from] ParseShareError),
    /// Shares that leave nothing.
    #[error("`interactive` and `bulk` together must be less than 100 % of the link")]
    Shares,
    /// Not a suite.
    #[error(transparent)]
    Suite(#[from] UnknownSuite),
    /// Not a compression method.
    #[error("{error}{}", nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    Codec {
        /// What is wrong.
        error: BadAllowed,
        /// The codec most like it.
        nearest: Option<&'static str>,
    },
    /// Not ports.
    #[error(transparent)]
    Ports(#[from] BadPorts),
    /// Not an interface's name.
    #[error(transparent)]
    Interface(#[from] crate::tun::TunError),
    /// Two peers with one key.
    #[error("the peer in line {line} has the same public key; each node must have its own")]
    DuplicatePeer {
        /// Where the other is.
        line: usize,
    },
    /// A peer with a name that means others.
    #[error("`{name}` is what all nodes are called that are not peers; give this peer another name")]
    ReservedName {
        /// As written.
        name: String,
    },
    /// Nothing tells whether packets directly behind IP arrive.
    #[error(
        "`carrier = \"ip\"` needs sessions and `payloads = \"strait\"`: a probe tells whether protocol 50 passes; \
         leave it out, or use [peer.manual]"
    )]
    CarrierNeedsProbes,
    /// Something that only a peer without sessions has.
    #[error("`{key}` needs `keying = \"sessionless\"` in the same [[peer]]")]
    NeedsSessionless {
        /// What.
        key: &'static str,
    },
    /// A text that is no card.
    #[error("`card` {0}")]
    Card(#[source] CardError),
    /// A card of another node.
    #[error("this is the card of the node with the public key {key}, and `public_key` is another")]
    CardOfAnother {
        /// Its key.
        key: PublicKey,
    },
    /// Two peers with one name.
    #[error("the name `{name}` is already used by the peer in line {line}")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the other is.
        line: usize,
    },
    /// Two peers at one address and port.
    #[error("the endpoint {endpoint} is already used by the peer in line {line}")]
    DuplicateEndpoint {
        /// The address.
        endpoint: String,
        /// Where the other is.
        line: usize,
    },
    /// A directory that nothing asks.
    #[error("nothing uses this section; write `peers = \"directory\"` in [node], or remove it")]
    UnusedDirectory,
    /// A name that no certificate has.
    #[error("a name in a certificate has 1 to 63 of letters, digits, `-`, `_` and `.`")]
    CertificateName,
    /// Pins where all certificates stay.
    #[error("`pin` is for `certificates = \"on demand\"`; otherwise all certificates stay")]
    NothingToPin,
    /// Daily keys that nothing uses.
    #[error(
        "daily keys are for keys without sessions; write `keying = \"sessionless\"`, or remove `daily_keys`"
    )]
    UnusedDailyKeys,
    /// A bound of certificates where all are followed.
    #[error("`max_certificates` is for `certificates = \"on demand\"`; otherwise `max_peers` bounds them")]
    NothingLookedUp,
    /// Fewer certificates than peers, each of which has one.
    #[error("`max_certificates` is at least as many as `max_peers`: {least}")]
    TooFewCertificates {
        /// The value of `max_peers`.
        least: usize,
    },
    /// Pins for which there is no room.
    #[error("`pin` may have no more than `max_peers` names: {most}")]
    TooManyPins {
        /// The value of `max_peers`.
        most: usize,
    },
    /// A broker with a tunnel.
    #[error("a node with [broker] has no tunnel; remove `address`, and `tunnel` if it is not false")]
    BrokerTunnel,
    /// A place for objects that is none.
    #[error("`{given}` is no bucket; write for example \"s3://bucket/prefix\"")]
    Bucket {
        /// As written.
        given: String,
    },
    /// A key that only a bucket has.
    #[error("`{key}` is for a store in a bucket: store = \"s3://bucket/prefix\"")]
    BucketOnly {
        /// Which.
        key: &'static str,
    },
    /// Two sections for one peer.
    #[error("the [[broker.access]] in line {line} is for the same peer")]
    DuplicateAccess {
        /// Where the other is.
        line: usize,
    },
    /// A way that leads nowhere.
    #[error("`via` needs the name of another [[peer]] with `broker = true`; `{name}` is none")]
    NoBroker {
        /// As written.
        name: String,
    },
    /// A folder for a peer that is not in the file.
    #[error("no [[peer]] has the name `{name}`")]
    NoPeer {
        /// As written.
        name: String,
    },
    /// A name that addresses cannot have.
    #[error("the name of a folder has neither `/` nor `:`, as people write PEER:FOLDER/PATH; `{name}` has")]
    FolderName {
        /// As written.
        name: String,
    },
    /// Two folders with one name.
    #[error("the name `{name}` is already used by the folder in line {line}")]
    DuplicateFolder {
        /// The name.
        name: String,
        /// Where the other is.
        line: usize,
    },
    /// A peer that may remove and not write.
    #[error("{peer} is not in `write`, and only who may write can remove; add it there, or take it out here")]
    DeleteWithoutWrite {
        /// The peer.
        peer: String,
    },
    /// A folder in another one, into which peers may write.
    #[error(
        "this folder is inside `{name}` (line {line}), where {peer} may write, and so put something else in its place; give it a \
         place of its own"
    )]
    NestedFolder {
        /// The outer one.
        name: String,
        /// Its line.
        line: usize,
        /// One of the peers.
        peer: String,
    },
    /// Logins of one peer, and of nodes that are none, in one section.
    #[error(
        "with `unlisted = true` a [[login]] is for nodes that are not peers; give the peer one of its own"
    )]
    PeerAndUnlisted,
    /// Logins of nodes that are no peers, who show nothing.
    #[error(
        "`unlisted = true` takes a ticket of every node, whatever its key; add kerberos = true, and `principals` or \
         `auth_to_local`"
    )]
    UnlistedWithoutKerberos,
    /// Two sections for the logins of one peer.
    #[error("`{name}` already has a [[login]] in line {line}; write all its accounts there")]
    DuplicateLogin {
        /// The peer.
        name: String,
        /// Where the other is.
        line: usize,
    },
    /// A name that no account has.
    #[error("`{name}` is not the name of an account: it begins with `-`, or has `:` or `/`")]
    AccountName {
        /// As written.
        name: String,
    },
    /// No host with a port.
    #[error(
        "`{given}` is not a host with a port; write for example \"db.example:5432\", \"192.0.2.0/24:443\", \
         \"[2001:db8::1]:443\" or \"localhost:*\""
    )]
    ForwardTarget {
        /// As written.
        given: String,
    },
    /// A key that says something of tickets where none is wanted.
    #[error("`{key}` counts only with `kerberos = true`; write that too, or leave this out")]
    WithoutKerberos {
        /// The key.
        key: &'static str,
    },
    /// Accounts of a peer whose logins take a ticket.
    #[error("with `kerberos = true` the ticket says which accounts there are; write them in `principals`")]
    AccountsWithKerberos,
    /// Tickets that give no account.
    #[error(
        "`kerberos = true` lets no one in by itself; add principals = {{ \"alice@EXAMPLE.ORG\" = [\"alice\"] }}, or \
         auth_to_local = true"
    )]
    NoPrincipals,
    /// A name that no principal has.
    #[error("`{name}` is not a principal with its realm; write it as `klist` prints it: alice@EXAMPLE.ORG")]
    Principal {
        /// As written.
        name: String,
    },
    /// A name that no service has.
    #[error("`{name}` is not the name of a service with Kerberos; write it as strait@server.example.org")]
    Service {
        /// As written.
        name: String,
    },
    /// A variable that clients cannot set.
    #[error(
        "clients cannot set `{name}`; write names of letters, digits and underscores, with `*` at the end for all that \
         begin so, and none that begin with LD_"
    )]
    VariableName {
        /// As written.
        name: String,
    },
    /// Two peers with one network.
    #[error(
        "{prefix} is already in `allowed_ips` of the peer in line {line}; give each network to one peer (a smaller \
         network within a larger one is allowed)"
    )]
    DuplicatePrefix {
        /// The network.
        prefix: IpNet,
        /// Where the other is.
        line: usize,
    },
    /// The node as its own peer.
    #[error(
        "this is the public key of this node ({key}); write the peer's (`strait pubkey` prints it there)"
    )]
    OwnKey {
        /// The key.
        key: PublicKey,
    },
    /// The node's secret where everybody who sees the file reads it.
    #[error(
        "this is the private key of this node, which belongs in its key file alone; write the peer's public key (`strait pubkey` prints \
         it there), and a new private key (`strait keygen`) if others have seen this file"
    )]
    OwnPrivateKey,
    /// A network with bits of a host.
    #[error(
        "`{given}` is an address and a network in one; write \"{network}\" for the network, \"{host}\" for the address alone"
    )]
    HostBits {
        /// As written.
        given: String,
        /// The network.
        network: IpNet,
        /// The address, as a network of one.
        host: IpNet,
    },
    /// A rule between two kinds of addresses.
    #[error("`from` {from} and `to` {to} are of different address families; no packet can match")]
    MixedFamilies {
        /// Source.
        from: IpNet,
        /// Destination.
        to: IpNet,
    },
    /// Ports of a protocol without ports.
    #[error("`ports` need `protocol` \"tcp\" or \"udp\"; `{protocol}` has none")]
    NoPorts {
        /// The protocol.
        protocol: String,
    },
    /// A byte cache that is too small or too large.
    #[error("a cache holds 4 MiB to 32 GiB, not {given} bytes; write for example \"256MiB\"")]
    CacheSize {
        /// Bytes that were given.
        given: u64,
    },
    /// Less memory than peers' data need.
    #[error("`memory` is at least 16 MiB, not {given} bytes; write for example \"256MiB\"")]
    Memory {
        /// Bytes that were given.
        given: u64,
    },
    /// Rules of one domain that want caches of different sizes.
    #[error("a trust domain has one cache: give all its rules the same `cache`")]
    CacheSizes,
    /// More domains with a cache than two nodes can agree on.
    #[error("at most {most} trust domains have a cache")]
    TooManyCaches {
        /// How many may have one.
        most: usize,
    },
    /// Metrics that other hosts could read.
    #[error(
        "metrics at {address} show addresses, public keys and traffic of all peers to other hosts; write a loopback \
         address such as \"127.0.0.1:9477\", or allow it with `danger_open_metrics = true`"
    )]
    OpenMetrics {
        /// The address.
        address: SocketAddr,
    },
    /// A page that other hosts could read.
    #[error(
        "the page at {address} would show addresses, peers and traffic to other hosts; write a loopback address such as \
         \"127.0.0.1:9478\", or have it ask for a token: `web_token_file = \"web.token\"`, made by \
         `strait keygen --out web.token`"
    )]
    OpenWeb {
        /// The address.
        address: SocketAddr,
    },
    /// A price.
    #[error(transparent)]
    Price(#[from] BadPrice),
    /// A key in a file cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A peer's manual keys.
    #[error(transparent)]
    Manual(#[from] ManualProblem),
    /// Keys where others can read them.
    #[error(
        "the configuration contains a key and is readable by others (mode {mode:03o}); run `chmod 600 {}`, or put the \
         keys into files of their own",
        path.display()
    )]
    OpenConfiguration {
        /// The configuration.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

fn suggestion(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The one of `known` that `given` was probably meant to be.
pub(super) fn nearest(given: &str, known: &[&'static str]) -> Option<&'static str> {
    let lower = given.to_ascii_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.replace('-', "_"));
    let best = known.iter().copied().min_by_key(|name| distance(name))?;
    // A third of the letters wrong is still a typing mistake, half of them another word.
    let limit = best.len().max(lower.len()).div_ceil(3).max(1);
    let alike = distance(best) <= limit || (lower.len() >= 3 && best.starts_with(&lower));
    alike.then_some(best)
}
