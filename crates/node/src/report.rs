//! What `strait show --json` says; every number counts from the start of the daemon.

mod decision;
mod manual;
mod path;
mod queue;

use serde::{Deserialize, Serialize};

pub use decision::{DecisionReport, StagesReport, WeighedReport};
pub use path::PathReport;
pub use queue::QueueReport;

/// Everything that can be shown of a running node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The node itself.
    pub node: NodeReport,
    /// Its peers, in the order of the file.
    pub peers: Vec<PeerReport>,
    /// Its compression rules, in the order of the file.
    pub rules: Vec<RuleReport>,
    /// What is decided on the traffic of the last seconds, the busiest class first; none when the sending half did not say
    /// so in time.
    pub decisions: Option<Vec<DecisionReport>>,
    /// What each codec did.
    pub codecs: Vec<CodecReport>,
    /// Every reason to drop a packet, also those that never happened.
    pub drops: Vec<DropReport>,
    /// The control channel.
    pub control: ControlReport,
    /// The threads that do the work.
    pub engines: Vec<EngineReport>,
    /// What each cipher suite costs on this machine.
    pub suites: Vec<SuiteReport>,
}

/// The node itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its interface.
    pub interface: String,
    /// Its public key; none where no peer knows it by one.
    pub public_key: Option<String>,
    /// Where it receives.
    pub listen: String,
    /// Its inner addresses.
    pub addresses: Vec<String>,
    /// Largest inner packet of the interface.
    pub mtu: u16,
    /// The link's rate out, in bit/s of wire bytes, if it was given.
    pub up_bits_per_second: Option<u64>,
    /// The link's rate in, in bit/s of wire bytes, if it was given.
    pub down_bits_per_second: Option<u64>,
    /// Whether the rate out is to be found out.
    pub up_auto: bool,
    /// Whether peers are to find out the rate in.
    pub down_auto: bool,
    /// Whether its peers reach each other through it.
    pub forward: bool,
    /// The configuration it read.
    pub configuration: String,
    /// Seconds since it started.
    pub uptime_seconds: f64,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

/// One peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// What people call it.
    pub name: String,
    /// Where its keys come from: `session` or `manual`.
    pub keys: String,
    /// Who it is, if it proves that by a key pair.
    pub public_key: Option<String>,
    /// Where datagrams to it go.
    pub endpoint: Option<String>,
    /// `idle`, `connecting` or `up`; with manual keys `up` or `used-up`.
    pub state: String,
    /// Its inner addresses.
    pub allowed_ips: Vec<String>,
    /// The pair of security associations in use, if keys are agreed with it.
    pub association: Option<AssociationReport>,
    /// The pair of security associations from the file, if its keys are there.
    pub manual: Option<ManualReport>,
    /// Seconds since the last handshake succeeded.
    pub last_handshake_seconds: Option<f64>,
    /// Handshakes that failed since.
    pub failures: u32,
    /// The rate of the way to it, in bit/s of wire bytes, given or found out; what is sent at just now is in `path`.
    pub rate_bits_per_second: Option<u64>,
    /// What is known of the path to it, where it reports what arrives.
    pub path: Option<PathReport>,
    /// What went there.
    pub sent: TrafficReport,
    /// What came from there.
    pub received: TrafficReport,
    /// Datagrams sent with several packets in them, not compressed.
    pub bundles: u64,
    /// Compressed blocks sent.
    pub blocks: u64,
    /// Bytes of inner packets that coding their headers saved, before anything was compressed.
    pub headers_saved_bytes: u64,
    /// The queue before the link to it.
    pub queue: QueueReport,
    /// Largest inner packet to it.
    pub inner_mtu: u64,
}

/// What passed one way between the node and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Inner packets.
    pub packets: u64,
    /// Bytes of inner packets.
    pub bytes: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes on the wire, outer IP headers included.
    pub wire_bytes: u64,
    /// Inner bytes for each byte on the wire; none before there was any.
    pub ratio: Option<f64>,
}

/// A pair of security associations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationReport {
    /// What seals the packets.
    pub suite: String,
    /// `implicit` or `explicit`.
    pub iv: String,
    /// `strait` or `standard`.
    pub payloads: String,
    /// `initiator` or `responder`.
    pub role: String,
    /// The association towards this node.
    pub inbound_spi: String,
    /// The association towards the peer.
    pub outbound_spi: String,
    /// Seconds since it was made.
    pub age_seconds: f64,
    /// Seconds until it is replaced if it is in use then.
    pub next_rekey_seconds: f64,
    /// ESP packets received on it.
    pub in_packets: u64,
    /// Bytes opened on it.
    pub in_bytes: u64,
    /// ESP packets sent on it.
    pub out_packets: u64,
    /// Bytes sealed on it.
    pub out_bytes: u64,
    /// Seconds since something authentic came.
    pub last_received_seconds: Option<f64>,
    /// Seconds since something was sent.
    pub last_sent_seconds: Option<f64>,
}

/// A pair of security associations with manual keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManualReport {
    /// `tunnel` or `transport`.
    pub mode: String,
    /// `udp` or `ip`.
    pub carrier: String,
    /// This node's address outside, where it is agreed.
    pub local: Option<String>,
    /// Bits of a sequence number, 32 or 64.
    pub sequence_bits: u8,
    /// What protects and compresses, the outermost first.
    pub protocols: Vec<ProtocolReport>,
    /// Whether all payloads are AGGFRAG's.
    pub aggfrag: bool,
    /// Whether packets that are too large become outer fragments.
    pub fragment: bool,
    /// The sequence number of the last packet sent.
    pub last_number: u64,
    /// Packets received on it.
    pub in_packets: u64,
    /// Bytes opened on it.
    pub in_bytes: u64,
    /// Packets sent on it.
    pub out_packets: u64,
    /// Bytes sealed on it.
    pub out_bytes: u64,
    /// Seconds since something authentic came.
    pub last_received_seconds: Option<f64>,
    /// Seconds since something was sent.
    pub last_sent_seconds: Option<f64>,
}

/// One protocol of a pair with manual keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// `ah`, `esp` or `ipcomp`.
    pub protocol: String,
    /// What it works with, never a key.
    pub algorithms: Vec<String>,
    /// The SPI towards this node; a CPI for IPComp.
    pub inbound_spi: String,
    /// The SPI towards the peer; a CPI for IPComp.
    pub outbound_spi: String,
}

/// One compression rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleReport {
    /// Source addresses.
    pub from: String,
    /// Destination addresses.
    pub to: String,
    /// Upper-layer protocol; none for any.
    pub protocol: Option<String>,
    /// Ports; none for any.
    pub ports: Vec<String>,
    /// Trust domain.
    pub domain: String,
    /// How to compress.
    pub codec: String,
    /// Inner packets that it covered.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Bytes of inner packets that were compressed.
    pub before: u64,
    /// What became of them.
    pub after: u64,
    /// `before` for each byte `after`; none before there was any.
    pub ratio: Option<f64>,
}

/// One codec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodecReport {
    /// Its name.
    pub codec: String,
    /// Blocks that were tried.
    pub tried: u64,
    /// Blocks that shrank and were sent compressed.
    pub blocks: u64,
    /// Inner packets in those blocks.
    pub packets: u64,
    /// Bytes of those blocks before.
    pub before: u64,
    /// Bytes of those blocks after.
    pub after: u64,
    /// `before` for each byte `after`; none before there was any.
    pub ratio: Option<f64>,
    /// Blocks expanded on receipt.
    pub expanded: u64,
}

/// One reason to drop a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReport {
    /// Its name.
    pub reason: String,
    /// How many packets or datagrams.
    pub packets: u64,
}

/// The control channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    /// Bytes on the wire, both ways.
    pub wire_bytes: u64,
    /// Messages to the keeper of keys that found no room.
    pub lost_messages: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Its name.
    pub name: String,
    /// CPU time it has used.
    pub cpu_seconds: f64,
    /// How busy it is with compressing; none where it does not, or is the only one that does.
    pub compressing: Option<CompressingReport>,
}

/// How busy a thread is with compressing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompressingReport {
    /// Share of its time, of which a second ago counts half.
    pub busy: f64,
    /// Seconds that a block would wait for it now.
    pub waits_seconds: f64,
    /// Blocks that it has, with the one that it is at.
    pub jobs: usize,
}

/// One cipher suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteReport {
    /// Its name.
    pub suite: String,
    /// Nanoseconds to seal and open a packet of 1,400 bytes here.
    pub nanoseconds_per_packet: u32,
}

/// How many bytes went in for each that came out; none when nothing came out.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a ratio needs no 53 bits")]
pub fn ratio(before: u64, after: u64) -> Option<f64> {
    (after > 0).then(|| before as f64 / after as f64)
}
