//! What lengths may tell of what is in a block: how blocks are padded, what they may mix, and how many sizes that leaves.
//!
//! An observer of the link is taken to know the packets' own lengths and times. What it learns beside that is which of the sizes
//! that a block can have this one has: at most log2 of their number in bits. `docs/design/oracle.md` has the reasons.

mod yields;

use crate::block::PARTS_MAX;
use strait_compress::THRESHOLD;
use strait_wire::block::PADDING_MIN;

pub use yields::{AttackYield, AttackerPlace};

/// The least step of lengths in ESP (RFC 4303 section 2.4).
const ESP_STEP: usize = 4;
/// The smallest bucket; one sixteenth of a datagram, or less.
const BUCKET_MIN: usize = 128;
/// How many bytes of packets there are for each byte of a block of constant size: what text of a few packets shrinks to with any
/// codec (`docs/design/oracle.md` has what other shares cost).
const CONSTANT_SHARE: usize = 2;

/// For how many packets of a trust domain compressing pauses.
///
/// With blocks of constant size the observer sees of each unit whether it became a block. After one that did not, none does for a pause.
/// So the number of different sequences of n packets grows as x to the power of n, where 1/x + 1/x^pause = 1, and n packets tell no
/// more than n log2(x) bits whatever an attacker sends: [`CONSTANT_BITS`] for 1,000, below the one bit at which a policy is called safe.
pub(crate) const PAUSE_PACKETS: u64 = 16_384;
/// Bits that 1,000 packets tell at most where blocks are of constant size.
const CONSTANT_BITS: f64 = 0.68;

/// Units of fewer bytes never become a block of constant size, and begin no pause: single packets, of which even text often does not
/// shrink by half. A transfer of log lines in a live tunnel soon began a pause with 1,024 here and none with 2,048; of 14 captures at 256
/// kbit/s, 7 begin no pause with 2,048, 4 with 1,024 and none without a least size.
const CONSTANT_MIN: usize = 2_048;

/// How compressed blocks are padded before they are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Not at all.
    #[default]
    None,
    /// To the sizes of Padmé: no more significant bits than the length of the length has (Nikitin, Barman, Lueks, Underwood, Hubaux
    /// and Ford, *Reducing metadata leakage from encrypted files and communication with PURBs*, PETS 2019, algorithm 1). It adds at
    /// most 12 %.
    Padme,
    /// To powers of two from 128 bytes on within a datagram, and to so many whole datagrams beyond (exponential padding: Dyer, Coull,
    /// Ristenpart and Shrimpton, *Peek-a-boo, I still see you*, IEEE S&P 2012, section III).
    Buckets,
    /// To half of the packets' bytes. What does not fit leaves as it is, and ends compressing for a while.
    Constant,
}

impl Padding {
    /// All of them, as the configuration has them.
    pub const ALL: [Padding; 4] = [Padding::None, Padding::Padme, Padding::Buckets, Padding::Constant];

    /// The name in configuration files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Padding::None => "none",
            Padding::Padme => "padme",
            Padding::Buckets => "buckets",
            Padding::Constant => "constant",
        }
    }

    /// The least bytes of packets that may become a block.
    pub(crate) const fn least(self) -> usize {
        match self {
            Padding::Constant => CONSTANT_MIN,
            _ => THRESHOLD,
        }
    }

    /// How many bytes a block has with its padding, which was made of `before` bytes of packets, has `len` bytes itself and leaves in
    /// datagrams that take `room` bytes of it each. Nothing when it is larger than its size allows.
    pub(crate) fn padded(self, before: usize, len: usize, room: usize) -> Option<usize> {
        let least = len + PADDING_MIN;
        match self {
            Padding::None => Some(len),
            Padding::Padme => Some(padme(least)),
            Padding::Buckets => buckets(room).find(|size| *size >= least),
            Padding::Constant => Some(before / CONSTANT_SHARE).filter(|size| *size >= least),
        }
    }

    /// The most bytes that a block itself may have whose size with padding is to be below `below`.
    pub(crate) fn most(self, before: usize, below: usize, room: usize) -> usize {
        let most = below.saturating_sub(1);
        let padded = match self {
            Padding::None => return most,
            Padding::Padme => padme_within(most),
            Padding::Buckets => buckets(room).take_while(|size| *size <= most).last().unwrap_or(0),
            Padding::Constant => Some(before / CONSTANT_SHARE).filter(|size| *size <= most).unwrap_or(0),
        };
        padded.saturating_sub(PADDING_MIN)
    }

    /// How many sizes a block may have on the wire that was made of `before` bytes of packets and has to be smaller than `below`, with
    /// datagrams that take `room` bytes of it each; to leave as it is counts as one of them.
    #[must_use]
    pub fn sizes(self, before: usize, below: usize, room: usize) -> usize {
        let most = below.saturating_sub(1);
        let padded = match self {
            // Each datagram of a block has its own rounding, up and down.
            Padding::None => most.div_ceil(ESP_STEP) + 2 * most.div_ceil(room.max(1)),
            Padding::Padme => padme_sizes(most),
            Padding::Buckets => buckets(room).take_while(|size| *size <= most).count(),
            Padding::Constant => usize::from(before / CONSTANT_SHARE <= most),
        };
        padded + 1
    }
}

/// The size of Padmé for so many bytes.
const fn padme(len: usize) -> usize {
    let last = padme_step(len) - 1;
    (len + last) & !last
}

/// The largest size of Padmé up to `len`.
const fn padme_within(len: usize) -> usize {
    len & !(padme_step(len) - 1)
}

/// How far apart sizes are there.
const fn padme_step(len: usize) -> usize {
    let Some(exponent) = len.checked_ilog2() else { return 1 };
    let Some(bits) = exponent.checked_ilog2() else { return 1 };
    1 << (exponent - (bits + 1))
}

/// How many sizes of Padmé there are from 1 to `most`.
fn padme_sizes(most: usize) -> usize {
    let octaves = (0..usize::BITS).map(|exponent| 1 << exponent).take_while(|first| *first <= most);
    octaves.map(|first: usize| (most.min(2 * first - 1) - first) / padme_step(first) + 1).sum()
}

/// The sizes of buckets, the smallest first.
fn buckets(room: usize) -> impl Iterator<Item = usize> {
    let within = (0..usize::BITS).map(|exponent| BUCKET_MIN << exponent).take_while(move |size| *size < room);
    let whole = (0..=PARTS_MAX.ilog2()).map(move |exponent| room << exponent);
    within.chain(whole)
}

/// What may share a block, beside the trust domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mix {
    /// All of the trust domain.
    #[default]
    Domain,
    /// One flow.
    Flow,
}

impl Mix {
    /// All of them, as the configuration has them.
    pub const ALL: [Mix; 2] = [Mix::Domain, Mix::Flow];

    /// The name in configuration files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mix::Domain => "domain",
            Mix::Flow => "flow",
        }
    }
}

/// What a rule does so that lengths tell less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeakPolicy {
    /// How its blocks are padded.
    pub padding: Padding,
    /// What they mix.
    pub mix: Mix,
    /// Whether compressing pauses after many blocks that are nearly equal, as guesses of a secret are.
    pub pause: bool,
}

impl LeakPolicy {
    /// Not padded, and mixed within the trust domain.
    pub const NONE: LeakPolicy = LeakPolicy { padding: Padding::None, mix: Mix::Domain, pause: false };

    /// Whether lengths may tell all that they do: only then is anything said by what was sent before.
    #[must_use]
    pub fn shows_lengths(&self) -> bool {
        self.padding == Padding::None && !self.pause
    }

    /// Bits that 1,000 packets can tell at most by this policy, however many blocks they become; nothing where it sets no limit.
    #[must_use]
    pub fn most_per_1000_packets(&self) -> Option<f64> {
        (self.padding == Padding::Constant).then_some(CONSTANT_BITS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = 1_400;

    #[test]
    fn padme_sizes_are_those_of_the_paper() {
        // Algorithm 1 by hand: as many significant bits as the exponent's own length has.
        for (len, size) in [
            (1, 1),
            (2, 2),
            (7, 7),
            (8, 8),
            (9, 10),
            (15, 16),
            (17, 18),
            (33, 36),
            (100, 104),
            (129, 144),
            (255, 256),
            (257, 272),
            (1_000, 1_024),
            (1_025, 1_088),
            (65_535, 65_536),
            (65_537, 67_584),
        ] {
            assert_eq!(padme(len), size, "{len} bytes");
            assert_eq!(padme(size), size);
        }
    }

    #[test]
    fn buckets_double() {
        let all: Vec<usize> = buckets(ROOM).collect();
        assert_eq!(all, [128, 256, 512, 1_024, 1_400, 2_800, 5_600, 11_200, 22_400, 44_800, 89_600]);
        assert_eq!(buckets(100).take(3).collect::<Vec<_>>(), [100, 200, 400]);
    }

    #[test]
    fn a_constant_size_depends_on_the_packets_alone() {
        let size = |len| Padding::Constant.padded(1_000, len, ROOM);
        assert_eq!([1, 100, 498].map(size), [Some(500); 3]);
        assert_eq!(size(499), None);
        // Half of so few is not below what is sent without it.
        assert_eq!([Padding::Constant.most(10, 4, ROOM), Padding::Constant.most(10, 6, ROOM)], [0, 3]);
    }

    #[test]
    fn a_pause_leaves_less_than_one_bit_in_1000_packets() {
        // 1/x + 1/x^pause = 1, with x = 2^bits.
        let sum = |bits: f64| (-bits).exp2() + (-bits * PAUSE_PACKETS as f64).exp2();
        assert!(sum(CONSTANT_BITS / 1e3) < 1.0 && sum(CONSTANT_BITS / 1e3 - 1e-5) > 1.0);
    }

    #[test]
    fn sizes_are_as_many_as_the_design_page_says() {
        assert_eq!(Padding::ALL.map(|padding| padding.sizes(3_000, 2_982, ROOM)), [753, 100, 7, 2]);
    }

    #[test]
    fn bounds_in_bits() {
        let bits = |padding: Padding| (padding.sizes(1_000, 994, ROOM) as f64).log2();
        let all = Padding::ALL.map(|padding| (bits(padding) * 100.0).round() / 100.0);
        assert_eq!(all, [7.98, 6.25, 2.0, 1.0]);
        assert!(Padding::ALL.iter().all(|padding| padding.sizes(0, 0, ROOM) <= 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn padding_fits_grows_and_has_as_many_sizes_as_counted(before in 1..20_000_usize, room in 500..9_000_usize) {
            let below = before.saturating_sub(6);
            for padding in Padding::ALL {
                let most = padding.most(before, below, room);
                let mut sizes: Vec<usize> = Vec::new();
                for len in 1..=most {
                    let size = padding.padded(before, len, room).unwrap();
                    prop_assert!(size >= len && size < below, "{padding:?} {len} of {most}: {size}");
                    prop_assert!(sizes.last().is_none_or(|last| *last <= size));
                    sizes.push(size);
                }
                if most > 0 {
                    let more = padding.padded(before, most + 1, room);
                    prop_assert!(more.is_none_or(|size| size >= below), "{padding:?}: {most} is not the most");
                }
                // Of what is not padded, only every fourth byte shows.
                let wire = |size: usize| (size / room, (size % room).div_ceil(4));
                sizes.dedup_by_key(|size| if padding == Padding::None { wire(*size) } else { (*size, 0) });
                let counted = padding.sizes(before, below, room);
                prop_assert!(sizes.len() < counted, "{padding:?}: {} sizes, {counted} counted", sizes.len());
            }
        }
    }
}
