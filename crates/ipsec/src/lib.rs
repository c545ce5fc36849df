//! The IPsec data plane without I/O: policy, security associations, ESP, AH, IPComp, AGGFRAG bundles, Strait
//! blocks, the replay window.
//!
//! Packets from the host enter at [`Outbound::packet`], datagrams from the network at
//! [`Inbound::datagrams`], and what comes directly behind IP at [`Inbound::ip_packet`]. Sender and receiver
//! own their state and share nothing but counters and [where a peer is](LatestEndpoint), so each can live in its own thread. Changes come as an
//! [`outbound::Order`] or [`inbound::Order`], events leave as a [`Notice`].
//! Compressing and expanding leave as an [`outbound::CompressJob`] or [`inbound::ExpandJob`] where there are workers
//! for it. Time is an argument; nothing here reads a clock, a socket or a file.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ah;
mod block;
mod caches;
mod counters;
mod dropped;
mod endpoint;
mod esp;
#[cfg(test)]
mod family;
mod fec;
mod header;
mod history;
pub mod inbound;
mod layers;
mod notice;
mod offload;
mod orders;
pub mod outbound;
mod outer;
mod padding;
mod path_state;
mod peer;
mod policy;
mod pool;
mod queueing;
pub mod reassembly;
mod repair;
mod replay;
mod reports;
mod rules;
mod sa;
#[cfg(test)]
mod sample;
mod sequence;
mod source;
mod stream_link;
pub mod wrap;

pub use caches::{CacheList, DomainCache, DomainTag, PeerCaches};
pub use counters::{
    CarrierCounters, CarrierState, CodecCounters, Counter, Counters, HistoryCounters, PeerCounters,
    QueueCounters, QueueDelay, RepairCounters, RuleCounters, ServiceClass, ServiceCounters, ServiceTally,
    Tally,
};
pub use dropped::{Drops, Reason};
pub use endpoint::{LatestEndpoint, Place, SPARES};
pub use fec::{CORRECTED_LOSS_MIN, LossPattern};
pub use header::{
    HEADER_PACKETS, HEADER_PAUSE, HeaderChange, InboundHeader, KeyNumbers, KeyPacketBeside,
    KeyPacketSchedule, OutboundHeader, RECEIVE_SLACK, ReturnPath, SenderNumbers,
};
pub use history::HistoryTerms;
pub use inbound::Inbound;
pub use notice::{Explanation, Notice};
pub use offload::{SuperPacket, Unusable};
pub use orders::HistoryOrder;
pub use outbound::Outbound;
pub use padding::{AttackYield, AttackerPlace, LeakPolicy, Mix, Padding};
pub use path_state::{PathState, PathStatus, RateStatus};
pub use peer::{PeerId, PeerSpec};
pub use policy::{Forwarding, Policies};
pub use pool::{PoolJob, PoolWork};
pub use repair::{PayloadStore, REPAIR_ROUND_MAX, RepairState, RepairTerms, StoredPayload};
pub use reports::{ReportWish, UNANSWERED};
pub use rules::{Domain, PortRange, Rule, RuleSet};
pub use sa::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, InboundSa, IpcompSpec, IvMode, Mode, OutboundSa, Payloads,
    SaSpec, SequenceNumbers, Usage,
};
pub use sequence::Reserve;
pub use source::Source;
pub use strait_compress::history::HistoryScope;
pub use stream_link::{LanePacket, StreamLink, StreamTrain};
