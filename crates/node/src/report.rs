//! The document of `strait show --json`; every counter starts at 0 when the daemon starts.

mod carrier;
mod decision;
mod directory;
mod drop;
mod engine;
mod history;
mod leak;
mod manual;
mod path;
mod queue;
mod repair;
mod sessionless;
pub(crate) mod trouble;

use serde::{Deserialize, Serialize};

use crate::config::FolderSection;

pub use carrier::CarrierReport;
pub use decision::{DecisionReport, EstimateReport, StagesReport};
pub use directory::{DailyKeysReport, DirectoryReport, LookUpEndReport, LookUpReport, NotTakenReport};
pub use drop::DropReport;
pub use engine::{EngineKind, EngineMethodReport, EngineReport};
pub use history::HistoryReport;
pub use leak::{AttackerReport, LeakReport};
pub use path::{PathReport, RememberedReport};
pub use queue::QueueReport;
pub use repair::RepairReport;
pub use sessionless::{CacheReport, RefusalReport, SessionlessPeerReport, SessionlessReport};
pub use strait_ipsec::{CORRECTED_LOSS_MIN, REPAIR_ROUND_MAX, RepairState};
pub use trouble::TroubleReport;

/// The state and counters of a running node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DaemonReport {
    /// The node itself.
    pub node: NodeReport,
    /// Its peers, in the order of the file; those of a directory are behind them.
    pub peers: Vec<PeerReport>,
    /// The directory that it follows, if it does.
    #[serde(default)]
    pub directory: Option<DirectoryReport>,
    /// Its compression rules, in the order of the file.
    pub rules: Vec<RuleReport>,
    /// How the caps stand, and the daily window of bulk traffic: the link's first, then peers'. None where nothing is metered.
    #[serde(default)]
    pub metered: Vec<MeteredReport>,
    /// Compression decisions on the traffic of the last seconds, the busiest class first; none when the sender did not answer
    /// in time.
    pub decisions: Option<Vec<DecisionReport>>,
    /// What was sent of each service, to all peers.
    #[serde(default)]
    pub services: Vec<ServiceReport>,
    /// Counters of each codec.
    pub codecs: Vec<CodecReport>,
    /// Dropped packets by reason, also reasons with a count of 0.
    pub drops: Vec<DropReport>,
    /// The control channel.
    pub control: ControlReport,
    /// Several packets in one call, where the system refused that.
    #[serde(default)]
    pub offload: OffloadReport,
    /// Keys without sessions; none where no peer has them.
    #[serde(default)]
    pub sessionless: Option<SessionlessReport>,
    /// The threads of the daemon.
    pub threads: Vec<ThreadReport>,
    /// The threads that compress; none where there is only one, or when the sender did not answer in time.
    #[serde(default)]
    pub engines: Vec<EngineReport>,
    /// Speed of each cipher suite on this machine.
    pub suites: Vec<SuiteReport>,
}

/// How a cap stands, of the link or of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeteredReport {
    /// The peer; none for the link.
    pub peer: Option<String>,
    /// Wire bytes of both directions that may cross in a period; none without a cap.
    pub cap_bytes: Option<u64>,
    /// How often that begins anew: `day`, `week` or `month`.
    pub every: Option<String>,
    /// Wire bytes that crossed in this period.
    pub used_bytes: Option<u64>,
    /// Wire bytes that will have crossed at its end, if it goes on as in the last days; none before an hour is known.
    pub forecast_bytes: Option<u64>,
    /// When this period began, in seconds since 1970.
    pub period_start: Option<i64>,
    /// When it ends.
    pub period_end: Option<i64>,
    /// The last step that was reached: `warn`, `bulk-in-window`, `stop-bulk` or `interactive-only`.
    pub step: Option<String>,
    /// What may leave: `all`, `without-bulk` or `interactive-only`.
    pub admission: String,
    /// The daily window of bulk traffic, if there is one.
    pub bulk_between: Option<String>,
    /// When what may leave changes by the clock, in seconds since 1970.
    pub changes_at: Option<i64>,
}

impl MeteredReport {
    /// How much of the cap is used, in per cent.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let (used, cap) = self.used_bytes.zip(self.cap_bytes)?;
        (cap > 0).then(|| used as f64 * 100.0 / cap as f64)
    }
}

/// The node itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its interface.
    pub interface: String,
    /// Its public key; none where all peers have manual keys.
    pub public_key: Option<String>,
    /// Local UDP address.
    pub listen: String,
    /// Its inner addresses.
    pub addresses: Vec<String>,
    /// MTU of the interface (inner MTU), in bytes.
    pub mtu: u16,
    /// Configured link rate out (`[link] up`), in bit/s of wire bytes.
    pub up_bits_per_second: Option<u64>,
    /// Configured link rate in (`[link] down`), in bit/s of wire bytes.
    pub down_bits_per_second: Option<u64>,
    /// Price of a gigabyte (10^9 bytes) on the wire (`[link] price`); none where none is configured.
    #[serde(default)]
    pub price_per_gigabyte: Option<f64>,
    /// Whether the link rate out is estimated (`up = "auto"`).
    pub up_auto: bool,
    /// Whether peers estimate the link rate in (`down = "auto"`).
    pub down_auto: bool,
    /// Whether it forwards packets between its peers (a hub).
    pub forward: bool,
    /// Networks behind it that its peers may reach.
    pub forward_networks: Vec<String>,
    /// Nodes that it does not list and that have a session, for logins with a ticket.
    #[serde(default)]
    pub unlisted_nodes: u64,
    /// Memory that what is kept of peers' data may take (`[node] memory`), in bytes.
    #[serde(default)]
    pub memory_limit_bytes: u64,
    /// Memory that history and byte caches of all peers take of it, in bytes.
    #[serde(default)]
    pub memory_kept_bytes: u64,
    /// Path of its configuration file.
    pub configuration: String,
    /// Seconds since it started.
    pub uptime_seconds: f64,
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Insecure options in use, and files that cannot be written.
    pub warnings: Vec<String>,
    /// Path of the file that its log goes to, or `journal`; none for a terminal or a pipe.
    #[serde(default)]
    pub log: Option<String>,
    /// Lines that could not be written to its log.
    pub lost_log_lines: u64,
    /// The rights of peers in its folders, in the order of the file.
    #[serde(default)]
    pub folders: Vec<FolderReport>,
}

/// The rights of peers in a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FolderReport {
    /// Its name.
    pub name: String,
    /// Peers that may list and get what is in it.
    pub read: Vec<String>,
    /// Peers that may send to it and replace what is in it.
    pub write: Vec<String>,
    /// Peers that may remove what is in it.
    pub delete: Vec<String>,
}

impl FolderReport {
    /// The report of a section of the configuration.
    #[must_use]
    pub fn of(section: &FolderSection) -> FolderReport {
        let FolderSection { name, read, write, delete, .. } = section.clone();
        FolderReport { name, read, write, delete }
    }

    /// The rights with the peers that have them.
    #[must_use]
    pub fn rights(&self) -> String {
        let line = |(right, peers): (&str, &[String])| match peers {
            [] => format!("{right}: none"),
            peers => format!("{right}: {}", peers.join(", ")),
        };
        [("read", &self.read[..]), ("write", &self.write), ("delete", &self.delete)].map(line).join("; ")
    }
}

/// One peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Its name in the configuration.
    pub name: String,
    /// Where its keys come from: `session` or `manual`.
    pub keys: String,
    /// Its public key; none with manual keys.
    pub public_key: Option<String>,
    /// Its outer address and port; none while unknown.
    pub endpoint: Option<String>,
    /// Seconds since an earlier run heard it at this endpoint; none once there was a session, and where the endpoint is not of an earlier
    /// run.
    #[serde(default)]
    pub endpoint_age_seconds: Option<u64>,
    /// Interface by which datagrams to it leave; none while there is no route to its endpoint.
    pub outer_interface: Option<String>,
    /// `idle`, `connecting`, `up`, `no-answer`, `down`, `refused`, `name-not-found` or `no-route`; with manual keys `up`, `used-up` or `stopped`.
    pub state: String,
    /// Obstacles on the way to it; none while it answers or nothing is wanted of it.
    #[serde(default)]
    pub trouble: Option<TroubleReport>,
    /// Memory that its history and byte caches take, in bytes.
    #[serde(default)]
    pub kept_bytes: u64,
    /// Its inner addresses.
    pub allowed_ips: Vec<String>,
    /// The pair of security associations of the current session; none with manual keys or without a session.
    pub association: Option<AssociationReport>,
    /// What carries ESP; none without sessions.
    #[serde(default)]
    pub carrier: Option<CarrierReport>,
    /// The pair of security associations with manual keys; none with session keys.
    pub manual: Option<ManualReport>,
    /// Keys that need no session; none with other keys.
    #[serde(default)]
    pub sessionless: Option<SessionlessPeerReport>,
    /// Seconds since the last successful handshake.
    pub last_handshake_age_seconds: Option<f64>,
    /// Handshakes that failed since the last successful one.
    pub handshake_failures: u32,
    /// Link rate to it in bit/s of wire bytes, configured or estimated; the current pacing rate is in `path`.
    pub link_rate_bits_per_second: Option<u64>,
    /// The path to it; none before the first delivery report.
    pub path: Option<PathReport>,
    /// Losses and their repair; none before the first session, and with manual keys.
    pub repair: Option<RepairReport>,
    /// Packets coded against earlier ones; none with manual keys.
    #[serde(default)]
    pub history: Option<HistoryReport>,
    /// Traffic sent to it.
    pub sent: TrafficReport,
    /// Traffic received from it.
    pub received: TrafficReport,
    /// Bundles sent: datagrams with several packets, not compressed.
    pub bundles: u64,
    /// Compressed blocks sent.
    pub blocks: u64,
    /// Bytes saved by header compression, before payload compression.
    pub header_compression_saved_bytes: u64,
    /// The queue before the link to it.
    pub queue: QueueReport,
    /// Inner MTU towards it, in bytes.
    pub inner_mtu: u64,
}

/// Traffic in one direction between the node and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Inner packets, without datagrams of streams.
    pub packets: u64,
    /// Bytes of inner packets; where they are sent, those of datagrams of streams as well.
    pub bytes: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes on the wire, outer IP headers included.
    pub wire_bytes: u64,
    /// These bytes for each byte on the wire; none before there was any.
    pub ratio: Option<f64>,
}

/// A pair of security associations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationReport {
    /// Cipher suite.
    pub suite: String,
    /// `implicit` or `explicit`.
    pub iv: String,
    /// `strait` or `standard`.
    pub payloads: String,
    /// `initiator` or `responder`.
    pub role: String,
    /// SPI of the inbound association.
    pub inbound_spi: String,
    /// SPI of the outbound association.
    pub outbound_spi: String,
    /// Seconds since the handshake.
    pub age_seconds: f64,
    /// Seconds until the next rekey, if the association is in use then.
    pub next_rekey_seconds: f64,
    /// ESP packets received.
    pub inbound_packets: u64,
    /// Bytes received and decrypted.
    pub inbound_bytes: u64,
    /// ESP packets sent.
    pub outbound_packets: u64,
    /// Bytes encrypted and sent.
    pub outbound_bytes: u64,
    /// Seconds since the last authentic packet was received.
    pub last_received_age_seconds: Option<f64>,
    /// Seconds since the last packet was sent.
    pub last_sent_age_seconds: Option<f64>,
}

/// A pair of security associations with manual keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManualReport {
    /// `tunnel` or `transport`.
    pub mode: String,
    /// `udp` or `ip`.
    pub carrier: String,
    /// Local outer address, where one is configured.
    pub local: Option<String>,
    /// Whether sequence numbers are extended (ESN, 64 bits; RFC 4304).
    pub esn: bool,
    /// Protocols, the outermost first.
    pub protocols: Vec<ProtocolReport>,
    /// Whether payloads are AGGFRAG (RFC 9347).
    pub aggfrag: bool,
    /// Whether packets larger than the path MTU are sent as outer fragments.
    pub outer_fragmentation: bool,
    /// Sequence number of the last packet sent.
    pub last_sequence_number: u64,
    /// Packets received.
    pub inbound_packets: u64,
    /// Bytes received and decrypted.
    pub inbound_bytes: u64,
    /// Packets sent.
    pub outbound_packets: u64,
    /// Bytes encrypted and sent.
    pub outbound_bytes: u64,
    /// Seconds since the last authentic packet was received.
    pub last_received_age_seconds: Option<f64>,
    /// Seconds since the last packet was sent.
    pub last_sent_age_seconds: Option<f64>,
}

/// One protocol of a pair with manual keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// `ah`, `esp` or `ipcomp`.
    pub protocol: String,
    /// Algorithms, never a key.
    pub algorithms: Vec<String>,
    /// Inbound SPI; CPI for IPComp.
    pub inbound_spi: String,
    /// Outbound SPI; CPI for IPComp.
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
    /// Codec setting: `auto`, a method such as `zstd-3`, or `none`.
    pub codec: String,
    /// Inner packets that matched the rule.
    pub matched_packets: u64,
    /// Bytes of inner packets that matched the rule.
    pub matched_bytes: u64,
    /// Input bytes of the blocks that were sent compressed.
    pub input_bytes: u64,
    /// Output bytes of those blocks.
    pub output_bytes: u64,
    /// Compression ratio: `input_bytes` / `output_bytes`; none without output.
    pub ratio: Option<f64>,
    /// What lengths of its blocks tell.
    pub leak: LeakReport,
}

impl RuleReport {
    /// Which packets it covers, in a line.
    #[must_use]
    pub fn words(&self) -> String {
        let RuleReport { from, to, protocol, ports, domain, .. } = self;
        let protocol = protocol.as_ref().map(|protocol| format!(" {protocol}")).unwrap_or_default();
        let ports = if ports.is_empty() { String::new() } else { format!(" {}", ports.join(",")) };
        format!("{from} to {to}{protocol}{ports} ({domain})")
    }
}

/// What was sent of one service, such as `https (tcp 443)`, of all others together, or of streams (`files and logins`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// What it is called.
    pub service: String,
    /// Inner packets; datagrams of streams.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their part of the wire bytes: where packets share datagrams, by their bytes.
    pub wire_bytes: u64,
    /// `bytes` / `wire_bytes`; none while nothing was sent.
    pub ratio: Option<f64>,
}

/// One codec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodecReport {
    /// Its name.
    pub codec: String,
    /// Blocks that were compressed on trial or to be sent.
    pub tried_blocks: u64,
    /// Blocks that became smaller and were sent compressed.
    pub sent_blocks: u64,
    /// Inner packets in the sent blocks.
    pub sent_packets: u64,
    /// Input bytes of the sent blocks.
    pub input_bytes: u64,
    /// Output bytes of the sent blocks.
    pub output_bytes: u64,
    /// Compression ratio: `input_bytes` / `output_bytes`; none without output.
    pub ratio: Option<f64>,
    /// Received blocks that were decompressed.
    pub decompressed_blocks: u64,
}

/// The control channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    /// Bytes on the wire, both directions.
    pub wire_bytes: u64,
    /// Messages from packet threads to the control plane that were dropped because its queue was full.
    pub dropped_messages: u64,
    /// Connections for metrics that were closed unanswered because too many were open.
    pub refused_connections: u64,
    /// Times that this machine was restored from a snapshot or cloned, so that all keys were made anew.
    #[serde(default)]
    pub machine_copies: u64,
}

/// Calls with several packets that the system refused; the packets then went one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadReport {
    /// Trains of datagrams to the network (UDP GSO).
    pub refused_trains: u64,
    /// Joined packets to the host.
    pub refused_joined: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// CPU time used, in seconds.
    pub cpu_seconds: f64,
    /// Compression load; none where the thread does not compress, or is the only one that does.
    pub compression: Option<CompressionLoadReport>,
}

/// Compression load of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompressionLoadReport {
    /// Share of its time spent compressing, 0 to 1, as a moving average of about a second.
    pub busy_ratio: f64,
    /// Time in seconds that a new block would be queued before the thread starts on it.
    pub queue_delay_seconds: f64,
    /// Blocks in its queue, with the one in work.
    pub queued_blocks: usize,
}

/// One cipher suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteReport {
    /// Its name.
    pub suite: String,
    /// Nanoseconds to encrypt and decrypt one packet of 1,400 bytes.
    pub nanoseconds_per_packet: u32,
}

/// Input bytes for each output byte; none when there is no output.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a ratio needs no 53 bits")]
pub fn ratio(input: u64, output: u64) -> Option<f64> {
    (output > 0).then(|| input as f64 / output as f64)
}
