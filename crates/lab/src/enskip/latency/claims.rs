//! What the paper says of latency, and what it is judged by. Its words are not quoted: statements are told.

use super::tables::printed;
use super::tiers::Tier;
use super::{Latency, PAPERS, TODAYS};
use crate::claim::{ClaimRule, Finding};

/// A tier that is to be faster is so by this.
const FASTER: f64 = 1.10;
/// What is worth to be tuned takes as many times as long where it is not.
const TUNED: f64 = 10.0;
/// What is worth to be kept for good is as many times as fast as the next tier.
const KEPT: f64 = 2.0;

/// Round trips in microseconds.
#[derive(Clone, Debug)]
pub(super) struct LatencyFigures {
    /// With the paper's algorithms: without ENskip, and with primary, secondary and disk cache.
    pub(super) tiers: [f64; 4],
    /// With today's, if there are any.
    pub(super) todays: Option<[f64; 4]>,
    /// Without any cache, if that is a figure.
    pub(super) uncached: Option<[f64; 2]>,
}

/// Those that the paper has figures of.
const TIERS: [Tier; 4] = [Tier::Plain, Tier::Primary, Tier::Secondary, Tier::Disk];

impl LatencyFigures {
    /// The paper's.
    pub(super) fn printed() -> LatencyFigures {
        LatencyFigures {
            tiers: TIERS.map(|tier| printed(tier).unwrap_or(f64::NAN)),
            todays: None,
            uncached: None,
        }
    }
}

impl Latency {
    /// Medians, as statements are judged by them.
    pub(super) fn here(&self) -> LatencyFigures {
        let spread = |settings, tier| self.times(settings, tier).took.spread();
        let median = |settings, tier| spread(settings, tier).map_or(f64::NAN, |it| it.median);
        LatencyFigures {
            tiers: TIERS.map(|tier| median(PAPERS, tier)),
            todays: Some(TIERS.map(|tier| median(TODAYS, tier))),
            uncached: spread(PAPERS, Tier::NoCache).map(|it| [it.min, it.max]),
        }
    }
}

/// A ratio of two tiers, by algorithms.
fn ratios(it: &LatencyFigures, what: &str, of: impl Fn(&[f64; 4]) -> f64, least: f64) -> Option<Finding> {
    let sets = [Some(("3DES with MD5", it.tiers)), it.todays.map(|tiers| ("aes-256-gcm", tiers))];
    let found: Vec<(&str, f64)> =
        sets.into_iter().flatten().map(|(name, tiers)| (name, of(&tiers))).collect();
    let words: Vec<String> =
        found.iter().map(|(name, ratio)| format!("{ratio:.1} times with {name}")).collect();
    Some((found.iter().all(|(_, ratio)| *ratio >= least), format!("{what} {}", words.join(", "))))
}

/// Each statement with its reading.
pub(super) const RULES: [ClaimRule<LatencyFigures>; 5] = [
    ClaimRule {
        section: "text",
        words: "Each cache is faster than the one behind it: primary, secondary, disk.",
        reading: "each tier's round trip is longer by a tenth at least than that of the tier \
                  before it, with all algorithms measured",
        judge: |it| {
            let grows = |tiers: &[f64; 4]| {
                tiers[1..].windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min)
            };
            ratios(it, "the least step is", grows, FASTER)
        },
    },
    ClaimRule {
        section: "text",
        words: "The sizes of caches are worth tuning.",
        reading: "a certificate from disk takes at least ten times as long as a packet key that is there",
        judge: |it| ratios(it, "disk over primary", |tiers| tiers[3] / tiers[1], TUNED),
    },
    ClaimRule {
        section: "text",
        words: "Hosts that are often asked, such as the DNS server, are best kept in the primary cache for good.",
        reading: "what an entry saves that stays: the secondary cache takes at least twice as long as the primary one",
        judge: |it| ratios(it, "secondary over primary", |tiers| tiers[2] / tiers[1], KEPT),
    },
    ClaimRule {
        section: "text",
        words: "3DES with MD5 is the worst case.",
        reading: "what ENskip adds to a ping whose keys are in the primary cache is more with 3DES and MD5 than with an algorithm of today, by a \
                  tenth; the paper prints no other algorithm's round trips",
        judge: |it| {
            let todays = it.todays?;
            let [papers, todays] = [it.tiers, todays].map(|tiers| tiers[1] - tiers[0]);
            Some((papers >= FASTER * todays, format!("{papers:.1} µs, and {todays:.1} µs with aes-256-gcm")))
        },
    },
    ClaimRule {
        section: "text",
        words: "Without any cache, it varies.",
        reading: "runs of the same differ by more than a tenth, as a directory's answer is waited for; the paper prints no figure",
        judge: |it| {
            let [least, most] = it.uncached?;
            Some((most / least > FASTER, format!("{least:.0} to {most:.0} µs")))
        },
    },
];
