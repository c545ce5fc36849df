//! One class of traffic in a report.

use serde::{Serialize, Serializer};
use strait_compress::Method;
use strait_compress::calibrate::CANDIDATES;
use strait_scheduler::Rate;

use super::Conditions;
use super::codecs::{Tried, UpTo};
use crate::classes::Figures;
use crate::{Machine, Way};

/// Bytes in a gigabyte, as traffic is sold.
const GIGABYTE: f64 = 1e9;
/// What saves less than this saves nothing: a hundredth.
const WORTH: f64 = 0.01;

/// What figures become money and time by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) machine: &'a Machine,
    pub(super) conditions: &'a Conditions,
    pub(super) rate: Rate,
    /// Of the inputs.
    pub(super) names: &'a [String],
}

/// A class of traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// IP packets, none longer than the link takes.
    pub packets: u64,
    /// Their bytes, as a link without a tunnel carries them.
    pub bytes: u64,
    /// Of them, those that were not captured and are taken as what does not shrink.
    pub missing: u64,
    /// What a tunnel puts on the wire, each way to send it.
    pub sent: Vec<Sent>,
    /// What the chooser compressed it with, by bytes of packets, where both is done; the most first.
    pub chosen: Vec<Share>,
    /// Bytes of it that every codec was tried on.
    pub sampled: u64,
    /// What came of that.
    pub codecs: Vec<Tried>,
    /// Up to which link any of the codecs pays.
    pub pays_up_to: UpTo,
    /// In a word.
    pub verdict: Verdict,
    /// How often two hosts waited for each other; only of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

/// Bytes on the wire, and what they take.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sent {
    /// How.
    pub way: Way,
    /// With the headers that the tunnel adds.
    pub wire_bytes: u64,
    /// How long the link is busy with them.
    pub seconds: f64,
    /// What they cost.
    pub cost: Option<f64>,
}

/// What part of the traffic was compressed with something.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    /// With what.
    #[serde(serialize_with = "by_name")]
    pub method: Method,
    /// Bytes of packets.
    pub bytes: u64,
}

/// What is to be gained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There was none of it.
    Empty,
    /// Most of it was not captured: of compression nothing can be said.
    NotSeen,
    /// Neither bundles nor compression save a hundredth.
    Nothing,
    /// Bundles save, compression does not save a hundredth more.
    Bundles,
    /// Compression saves.
    Compression,
}

/// Hosts that wait for each other.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waits {
    /// How often data from one end followed data from the other.
    pub turns: u64,
    /// What they take at least: half a round trip each, which nothing that makes packets smaller can shorten.
    pub seconds: Option<f64>,
}

pub(super) fn by_name<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}

impl Class {
    pub(super) fn new(name: String, figures: &Figures, terms: &Terms<'_>) -> Class {
        let codecs = Tried::all(figures, terms.machine);
        let pays_up_to = codecs.iter().map(|tried| tried.pays_up_to).fold(UpTo::Never, UpTo::or);
        Class {
            name,
            packets: figures.packets,
            bytes: figures.bytes,
            missing: figures.missing,
            sent: Way::ALL.iter().zip(figures.wire).map(|(way, wire)| Sent::new(*way, wire, terms)).collect(),
            chosen: chosen(figures),
            sampled: figures.together.before,
            codecs,
            pays_up_to,
            verdict: Verdict::of(figures),
            waits: None,
        }
    }

    /// With how often its two hosts waited for each other.
    pub(super) fn with_waits(self, turns: u64, terms: &Terms<'_>) -> Class {
        let half = terms.conditions.round_trip.map(|it| it.as_secs_f64() / 2.0);
        Class { waits: Some(Waits { turns, seconds: half.map(|half| half * turns as f64) }), ..self }
    }

    /// What it takes on one way.
    #[must_use]
    pub fn on(&self, way: Way) -> Option<&Sent> {
        self.sent.get(way.index())
    }
}

impl Sent {
    fn new(way: Way, wire_bytes: u64, terms: &Terms<'_>) -> Sent {
        let seconds = terms.rate.time_for(wire_bytes).as_secs_f64();
        let cost = terms.conditions.price.map(|price| price * wire_bytes as f64 / GIGABYTE);
        Sent { way, wire_bytes, seconds, cost }
    }
}

fn chosen(figures: &Figures) -> Vec<Share> {
    let methods = CANDIDATES.into_iter().chain([Method::NONE]);
    let mut shares: Vec<Share> =
        methods.zip(figures.methods).map(|(method, bytes)| Share { method, bytes }).collect();
    shares.retain(|share| share.bytes > 0);
    shares.sort_by_key(|share| core::cmp::Reverse(share.bytes));
    shares
}

impl Verdict {
    fn of(figures: &Figures) -> Verdict {
        let [plain, bundles, _, both] = figures.wire.map(|bytes| bytes as f64);
        let saves = |before: f64, after: f64| before - after >= before * WORTH;
        match () {
            () if figures.bytes == 0 => Verdict::Empty,
            () if figures.missing > figures.bytes / 2 => Verdict::NotSeen,
            () if saves(bundles, both) => Verdict::Compression,
            () if saves(plain, bundles) => Verdict::Bundles,
            () => Verdict::Nothing,
        }
    }
}
