//! One class of traffic in a report.

use serde::{Serialize, Serializer};
use strait_compress::Method;
use strait_compress::calibrate::CANDIDATES;
use strait_scheduler::Rate;

use super::Conditions;
use super::codecs::{CodecTrial, UpTo};
use crate::classes::ClassFigures;
use crate::{MachineModel, TunnelVariant};

/// Bytes in a gigabyte, as traffic is sold.
const GIGABYTE: f64 = 1e9;
/// What saves less than this saves nothing: a hundredth.
const WORTH: f64 = 0.01;

/// What figures become money and time by.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriceTerms<'a> {
    pub(super) machine: &'a MachineModel,
    pub(super) conditions: &'a Conditions,
    pub(super) rate: Rate,
    /// Of the inputs.
    pub(super) names: &'a [String],
}

/// A class of traffic.
#[derive(Clone, Debug, Serialize)]
pub struct ClassReport {
    /// What it is called.
    pub name: String,
    /// IP packets, after segmentation to the MTU.
    pub packets: u64,
    /// Bytes of these packets, as a link without a tunnel carries them.
    pub bytes: u64,
    /// Bytes of these that were not captured and are taken as incompressible.
    pub not_captured_bytes: u64,
    /// What a tunnel sends, in each mode.
    pub sent: Vec<WireUse>,
    /// Methods chosen with aggregation and compression, by bytes of packets; the most first.
    pub chosen: Vec<CodecShare>,
    /// Bytes of the sample that every codec was tried on.
    pub sampled_bytes: u64,
    /// Result of each codec on the sample.
    pub codecs: Vec<CodecTrial>,
    /// Link rate up to which any of the codecs pays.
    pub break_even: UpTo,
    /// Summary of the gain.
    pub verdict: AdviseVerdict,
    /// Time that two hosts waited for replies; only for pairs of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

/// Bytes on the wire, and what they take.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WireUse {
    /// Mode of the tunnel.
    #[serde(rename = "mode")]
    pub way: TunnelVariant,
    /// Wire bytes, with the headers of the tunnel.
    pub wire_bytes: u64,
    /// Seconds of transmission time on the link.
    pub link_busy_seconds: f64,
    /// Cost of these bytes.
    pub cost: Option<f64>,
}

/// What part of the traffic was compressed with something.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CodecShare {
    /// With what.
    #[serde(serialize_with = "by_name")]
    pub method: Method,
    /// Bytes of packets.
    pub bytes: u64,
}

/// What a tunnel would gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviseVerdict {
    /// No traffic.
    Empty,
    /// Most bytes were not captured: the gain of compression is unknown.
    NotCaptured,
    /// Neither aggregation and coded headers nor compression saves 1 %.
    Nothing,
    /// Aggregation and coded headers save; compression and history of payloads do not save another 1 %.
    Aggregation,
    /// Compression and history of payloads save.
    Compression,
}

/// Time that two hosts wait for replies of each other.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waits {
    /// Turns: how often data of one host followed data of the other.
    pub turns: u64,
    /// Least time of these turns in seconds: half an RTT each, which smaller packets do not shorten.
    pub seconds: Option<f64>,
}

pub(super) fn by_name<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}

impl ClassReport {
    pub(super) fn new(name: String, figures: &ClassFigures, terms: &PriceTerms<'_>) -> ClassReport {
        let codecs = CodecTrial::all(figures, terms.machine);
        let break_even = codecs.iter().map(|tried| tried.break_even).fold(UpTo::Never, UpTo::or);
        ClassReport {
            name,
            packets: figures.packets,
            bytes: figures.bytes,
            not_captured_bytes: figures.missing,
            sent: TunnelVariant::ALL
                .iter()
                .zip(figures.wire)
                .map(|(way, wire)| WireUse::new(*way, wire, terms))
                .collect(),
            chosen: chosen(figures),
            sampled_bytes: figures.together.before,
            codecs,
            break_even,
            verdict: AdviseVerdict::of(figures),
            waits: None,
        }
    }

    /// With how often its two hosts waited for each other.
    pub(super) fn with_waits(self, turns: u64, terms: &PriceTerms<'_>) -> ClassReport {
        let half = terms.conditions.round_trip.map(|it| it.as_secs_f64() / 2.0);
        ClassReport { waits: Some(Waits { turns, seconds: half.map(|half| half * turns as f64) }), ..self }
    }

    /// What it takes on one way.
    #[must_use]
    pub fn on(&self, way: TunnelVariant) -> Option<&WireUse> {
        self.sent.get(way.index())
    }
}

impl WireUse {
    fn new(way: TunnelVariant, wire_bytes: u64, terms: &PriceTerms<'_>) -> WireUse {
        let seconds = terms.rate.time_for(wire_bytes).as_secs_f64();
        let cost = terms.conditions.price.map(|price| price * wire_bytes as f64 / GIGABYTE);
        WireUse { way, wire_bytes, link_busy_seconds: seconds, cost }
    }
}

fn chosen(figures: &ClassFigures) -> Vec<CodecShare> {
    let methods = CANDIDATES.into_iter().chain([Method::NONE]);
    let mut shares: Vec<CodecShare> =
        methods.zip(figures.methods).map(|(method, bytes)| CodecShare { method, bytes }).collect();
    shares.retain(|share| share.bytes > 0);
    shares.sort_by_key(|share| core::cmp::Reverse(share.bytes));
    shares
}

impl AdviseVerdict {
    fn of(figures: &ClassFigures) -> AdviseVerdict {
        let wire = |way: TunnelVariant| figures.wire[way.index()] as f64;
        let [plain, contexts, history] =
            [TunnelVariant::Plain, TunnelVariant::Contexts, TunnelVariant::History].map(wire);
        let saves = |before: f64, after: f64| before - after >= before * WORTH;
        match () {
            () if figures.bytes == 0 => AdviseVerdict::Empty,
            () if figures.missing > figures.bytes / 2 => AdviseVerdict::NotCaptured,
            () if saves(contexts, history) => AdviseVerdict::Compression,
            () if saves(plain, contexts) => AdviseVerdict::Aggregation,
            () => AdviseVerdict::Nothing,
        }
    }
}
