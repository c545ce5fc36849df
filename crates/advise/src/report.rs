//! The result of a replay: for all traffic and for each class of it, bytes, time and cost in every [`crate::TunnelVariant`], the compression
//! ratio of each codec, and the break-even link rate.

mod class;
mod codecs;
mod group;
mod keys;
mod rule;

use core::time::Duration;

use ipnet::IpNet;
use serde::Serialize;

pub use class::{AdviseVerdict, ClassReport, CodecShare, Waits, WireUse};
pub use codecs::{CodecTrial, UpTo};
pub use group::{ClassGroup, Others};
pub use keys::{CacheBounds, CacheSizes, KeyCacheAdvice, KeyTier, PinnedHost, TierMisses, TierSeconds};
pub use rule::SuggestedRule;

use crate::{CaptureKind, FrameCounts, MachineModel, PolicyCost, TunnelReplay, TunnelVariant};
use class::PriceTerms;

/// Conditions of the link besides its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// What a gigabyte (10^9 bytes) on the wire costs, in any currency.
    pub price: Option<f64>,
    /// Round-trip time.
    pub round_trip: Option<Duration>,
    /// Sizes of caches of keys, as they are and as they may be.
    pub caches: CacheBounds,
}

/// A file that was read.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type; none when that is unknown.
    pub kind: Option<CaptureKind>,
    /// Frames that were read of it.
    pub frames: u64,
    /// Frames that the kernel dropped because they arrived faster than they were read.
    pub dropped_frames: u64,
    /// Why reading stopped before the end.
    pub error: Option<String>,
}

/// Everything about a replay.
#[derive(Clone, Debug, Serialize)]
pub struct AdviseReport {
    /// The link.
    pub link: LinkFigures,
    /// What was read.
    pub inputs: Vec<Input>,
    /// Counts of frames.
    pub frames: FrameCounts,
    /// Duration of the captures in seconds, with gaps cut to a second.
    pub duration_seconds: f64,
    /// All traffic.
    pub total: ClassReport,
    /// Wire bytes that the far end sends back unasked in each mode: delivery reports, and empty packets where traffic is one-way. The
    /// classes do not have them.
    pub returned: Vec<ReturnedBytes>,
    /// By protocol.
    pub protocols: ClassGroup,
    /// By service.
    pub services: ClassGroup,
    /// By pair of hosts.
    pub pairs: ClassGroup,
    /// Rules for the configuration of both ends, for services on which compression pays.
    pub rules: Vec<SuggestedRule>,
    /// Advice on the caches of keys of a hub that has the pairs of hosts as peers; none where there is one pair at most.
    pub key_caches: Option<KeyCacheAdvice>,
    /// What policies against length leaks cost; empty where they were not compared.
    pub policies: Vec<PolicyCost>,
}

/// What goes back unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReturnedBytes {
    /// Mode of the tunnel.
    #[serde(rename = "mode")]
    pub way: TunnelVariant,
    /// Wire bytes.
    pub wire_bytes: u64,
}

/// The link, in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct LinkFigures {
    /// Link rate in bit/s.
    pub rate_bits_per_second: u64,
    /// MTU of the hosts in bytes.
    pub mtu: usize,
    /// The network on the near side; none when all packets are replayed in one direction.
    pub near: Option<IpNet>,
    /// Bytes that the byte cache of each direction holds, in the mode that has one.
    pub cache_bytes: u64,
    /// Round-trip time in seconds.
    pub rtt_seconds: Option<f64>,
    /// Price of a gigabyte (10^9 bytes).
    pub price_per_gigabyte: Option<f64>,
}

impl AdviseReport {
    /// A report of what was replayed so far; [`TunnelReplay::finish`] comes before it.
    #[must_use]
    pub fn new(
        replay: &TunnelReplay,
        machine: &MachineModel,
        conditions: &Conditions,
        inputs: Vec<Input>,
    ) -> AdviseReport {
        let link = replay.link();
        let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
        let terms = PriceTerms { machine, conditions, rate: link.rate, names: &names };
        let classes = &replay.classes;
        let services = ClassGroup::new(&classes.services, &terms);
        let named = group::services(&classes.services, &services);
        AdviseReport {
            rules: SuggestedRule::all(named, group::versions(&classes.pairs)),
            link: LinkFigures {
                rate_bits_per_second: link.rate.bits(),
                mtu: link.mtu,
                near: link.near,
                cache_bytes: link.cache.bytes(),
                rtt_seconds: conditions.round_trip.map(|it| it.as_secs_f64()),
                price_per_gigabyte: conditions.price,
            },
            frames: replay.seen,
            duration_seconds: replay.span().as_secs_f64(),
            total: ClassReport::new("all".to_owned(), &classes.whole, &terms),
            returned: TunnelVariant::ALL
                .map(|way| ReturnedBytes { way, wire_bytes: replay.returned(way) })
                .to_vec(),
            protocols: ClassGroup::new(&classes.protocols, &terms),
            services,
            pairs: ClassGroup::new(&classes.pairs, &terms),
            key_caches: KeyCacheAdvice::new(replay, machine, conditions),
            policies: replay.policies(),
            inputs,
        }
    }
}

#[cfg(test)]
mod tests;
