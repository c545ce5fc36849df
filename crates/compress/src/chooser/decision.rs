//! A choice with everything it was made from, for `strait why`.

use strait_clock::Time;
use strait_model::{BitRate, BreakEven, Bytes, PipelineSegment, Ratio, Seconds, Stages};

use super::{Class, RuleId};
use crate::Method;

/// Why the method of a decision was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionReason {
    /// It takes the least time.
    Pays,
    /// The rule names the method, and the data shrinks.
    Ordered,
    /// The data looks random: encrypted, or compressed already.
    LooksRandom,
    /// The data was tried and does not shrink enough.
    DoesNotShrink,
    /// Compressing would take longer than what it saves.
    TooSlow,
    /// The peer has none of the codecs that are allowed.
    PeerLacks,
}

/// The next best, and how much more time it would take: 0.1 is a tenth more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunnerUp {
    /// The next best method.
    pub method: Method,
    /// Time beyond the choice's, as a share of that; negative where hysteresis holds on to a choice that is no longer best.
    pub longer: f64,
}

/// The current decision on a class of traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The class of traffic that it applies to.
    pub class: Class,
    /// The number of the peer that the class goes to.
    pub to: u32,
    /// The rule that lets it be compressed.
    pub rule: RuleId,
    /// Bytes of it in the last second that was counted.
    pub recent: u64,
    /// What it is compressed with.
    pub method: Method,
    /// Why this method was chosen.
    pub reason: DecisionReason,
    /// When the decision last changed.
    pub since: Time,
    /// What was weighed; nothing while all of the class looked random.
    pub weighed: Option<Weighed>,
}

/// What went into a decision. Where the choice is not to compress, the figures are those of the best method beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    /// Whether throughput counted, as more waited; else how soon a unit arrives.
    pub throughput: bool,
    /// Bytes of the unit before compression.
    pub unit: Bytes,
    /// The method that these figures are of.
    pub method: Method,
    /// The compression ratio X expected of that method.
    pub ratio: Ratio,
    /// `R_COMP` here, just now; nothing when it takes no time.
    pub compress: Option<BitRate>,
    /// `R_DECOMP` at the peer.
    pub decompress: Option<BitRate>,
    /// The link's rate, if that is known.
    pub link: Option<BitRate>,
    /// Times without compression.
    pub without: Stages,
    /// Times with that method.
    pub with: Stages,
    /// What limits what is done.
    pub limit: PipelineSegment,
    /// Speedup of that method, one stage after the other.
    pub serial: f64,
    /// Speedup with stages at the same time.
    pub pipelined: f64,
    /// The next best.
    pub runner_up: Option<RunnerUp>,
}

impl Weighed {
    /// Speedup of the method in the form that counted.
    #[must_use]
    pub const fn speedup(&self) -> f64 {
        if self.throughput { self.pipelined } else { self.serial }
    }

    /// The link's rate up to which the method pays, all else as it is, headers left aside.
    #[must_use]
    pub fn pays_up_to(&self) -> BreakEven<BitRate> {
        let longer = |stages: &Stages| stages.at_sender().0.max(stages.at_receiver().0);
        let both = |stages: &Stages| (stages.at_sender() + stages.at_receiver()).0;
        let all = (self.unit.0 as f64) * 8.0;
        let (time, bits) = if self.throughput {
            // While the link without compression takes longer than the processors with it.
            let (without, with) = (longer(&self.without), longer(&self.with));
            (if with <= without { 0.0 } else { with }, all)
        } else {
            // While the link gains more than the processors lose.
            (both(&self.with) - both(&self.without), all * self.ratio.saving())
        };
        if self.ratio <= Ratio::ONE {
            return BreakEven::Never;
        }
        if time <= 0.0 {
            return BreakEven::Always;
        }
        BitRate::bits(bits / Seconds(time).0).map_or(BreakEven::Never, BreakEven::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(sender: f64, receiver: f64) -> Stages {
        Stages { sender: Seconds(sender), receiver: Seconds(receiver), ..Stages::default() }
    }

    fn weighed(throughput: bool) -> Weighed {
        Weighed {
            throughput,
            unit: Bytes(1_000),
            method: Method::LZ4,
            ratio: Ratio::new(2.0).unwrap(),
            compress: None,
            decompress: None,
            link: None,
            without: stages(1e-6, 2e-6),
            with: stages(5e-6, 4e-6),
            limit: PipelineSegment::Link,
            serial: 1.0,
            pipelined: 2.0,
            runner_up: None,
        }
    }

    #[test]
    fn break_even_rates_match_hand_calculation() {
        // One after the other: 4,000 bits fewer for 6 us more.
        let BreakEven::At(rate) = weighed(false).pays_up_to() else { panic!("no rate") };
        assert!((rate.as_bits() - 4e3 / 6e-6).abs() < 1.0);
        // At the same time: 8,000 bits in 5 us.
        let BreakEven::At(rate) = weighed(true).pays_up_to() else { panic!("no rate") };
        assert!((rate.as_bits() - 8e3 / 5e-6).abs() < 1.0);
        let free = Weighed { with: stages(1e-6, 1e-6), ..weighed(true) };
        assert_eq!(free.pays_up_to(), BreakEven::Always);
        let vain = Weighed { ratio: Ratio::ONE, ..weighed(true) };
        assert_eq!(vain.pays_up_to(), BreakEven::Never);
        assert_eq!((weighed(true).speedup(), weighed(false).speedup()), (2.0, 1.0));
    }
}
