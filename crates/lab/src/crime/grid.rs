//! The client against each policy, codec and place.

use serde::{Serialize, Serializer};
use strait_compress::Method;
use strait_ipsec::{LeakPolicy, Mix, Padding};

use super::{
    CrimeClient, CrimePlace, CrimePlay, CrimeTally, LengthOracle, LoneDigits, LoneHistory, SimulatedTunnel,
    lone_digits,
};
use crate::steps::{StepCounter, StepNote};

/// Digits of cookies, in turn.
const LENGTHS: [usize; 2] = [20, 40];
/// What part of the cookies, and of the packets for each, a trial has that chooses the play.
const TRIAL: [u64; 2] = [5, 4];

/// What is measured.
#[derive(Clone, Debug)]
pub struct CrimeGrid {
    /// Policies.
    pub policies: Vec<LeakPolicy>,
    /// Codecs.
    pub methods: Vec<Method>,
    /// Places of the client's packets.
    pub places: Vec<CrimePlace>,
    /// Cookies of each cell, half of them with 20 digits and half with 40. A client that is through with one goes on with the next.
    pub cookies: u64,
    /// Packets of the client for each of them.
    pub packets: u64,
    /// What cookies and fillers follow from.
    pub seed: u64,
}

/// What rules say with these ways to pad and to mix, and to pause or not. Blocks of constant size pause anyway, and a pause is
/// left out where flows are kept apart.
#[must_use]
pub fn policies(paddings: &[Padding], mixes: &[Mix], pauses: &[bool]) -> Vec<LeakPolicy> {
    let mut policies = Vec::new();
    for padding in paddings {
        for mix in mixes {
            let pauses_too = *padding != Padding::Constant && *mix == Mix::Domain;
            let of = |pause: &bool| LeakPolicy { padding: *padding, mix: *mix, pause: *pause };
            policies.extend(pauses.iter().filter(|pause| pauses_too || !**pause).map(of));
        }
    }
    policies
}

impl Default for CrimeGrid {
    fn default() -> CrimeGrid {
        CrimeGrid {
            policies: policies(&Padding::ALL, &Mix::ALL, &[false, true]),
            methods: vec![Method::LZ4, Method::DEFLATE, Method::ZSTD],
            places: CrimePlace::ALL.to_vec(),
            cookies: 20,
            packets: 10_000,
            seed: 1,
        }
    }
}

/// What the client learned of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct CrimeCell {
    /// How its rule pads blocks.
    pub padding: &'static str,
    /// What its rule puts into one block.
    pub mix: &'static str,
    /// Whether its rule pauses after blocks that are nearly equal.
    pub pause: bool,
    /// The codec.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// Where its packets were.
    pub place: CrimePlace,
    /// How it went about it: the way that learned most in a trial with other cookies, or the most patient one where none was above
    /// chance.
    pub play: CrimePlay,
    /// What that gave.
    #[serde(flatten)]
    pub tally: CrimeTally,
    /// Right digits beyond chance in bits a 1,000 packets.
    pub bits: f64,
    /// Its 95 % upper limit.
    pub bits_limit: f64,
}

/// What the client learned of all.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrimeTable {
    /// Each policy with each codec in each place.
    pub cells: Vec<CrimeCell>,
    /// What a client of another flow learned from packets that leave alone.
    pub lone: Vec<LoneDigits>,
}

impl CrimeGrid {
    /// Runs the client in every cell; `tell` is told of each. Tunnels are simulated ones: the data plane itself, in virtual time.
    pub fn run(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> CrimeTable {
        let named = self.named();
        let mut steps = StepCounter::new(named.len(), tell);
        let mut cells = Vec::new();
        for (policy, method, place) in named {
            let (padding, mix) = (policy.padding.name(), policy.mix.name());
            let pause = if policy.pause { ", pause" } else { "" };
            steps.next(&format!("{padding}, {mix}{pause}, {method}, {}", place.name()));
            // Other cookies in each cell.
            let seed = self.seed.wrapping_add((cells.len() as u64) << 40);
            cells.push(self.cell(policy, method, place, seed));
        }
        let lone = LoneHistory::ALL.map(|history| lone_digits(history, LENGTHS[1], self.seed));
        CrimeTable { cells, lone: lone.to_vec() }
    }

    /// Every cell, but for those of packets that share no block with the cookie anyway, under rules that keep flows apart or pause.
    fn named(&self) -> Vec<(LeakPolicy, Method, CrimePlace)> {
        let mut named = Vec::new();
        for policy in &self.policies {
            for method in &self.methods {
                let plain = policy.mix == Mix::Domain && !policy.pause;
                let shares = |place: &&CrimePlace| plain || place.shares_a_block();
                let of = |place: &CrimePlace| (*policy, *method, *place);
                named.extend(self.places.iter().filter(shares).map(of));
            }
        }
        named
    }

    /// Chooses the play by a trial, and measures it with other cookies.
    fn cell(&self, policy: LeakPolicy, method: Method, place: CrimePlace, seed: u64) -> CrimeCell {
        let measure = |play, [cookies, packets]: [u64; 2], seed: u64| {
            let mut tally = CrimeTally::default();
            for (number, digits) in (0..cookies.max(2)).zip(LENGTHS.iter().cycle()) {
                let seed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let mut tunnel = SimulatedTunnel::new(policy, place, method);
                tally += run(play, &mut tunnel, (place, *digits), packets, seed);
            }
            tally
        };
        let part = [self.cookies / TRIAL[0], self.packets / TRIAL[1]];
        let trials = CrimePlay::ALL.map(|play| (play, measure(play, part, !seed)));
        let told = trials.into_iter().filter(|(_, tally)| tally.is_above_chance());
        let best = told.max_by(|(_, one), (_, other)| one.bits().total_cmp(&other.bits()));
        let play = best.map_or(CrimePlay::PATIENT, |(play, _)| play);
        let tally = measure(play, [self.cookies, self.packets], seed);
        let (padding, mix) = (policy.padding.name(), policy.mix.name());
        let (bits, bits_limit) = (tally.bits(), tally.bits_limit());
        CrimeCell { padding, mix, pause: policy.pause, method, place, play, tally, bits, bits_limit }
    }
}

/// A client of its own against a tunnel that cannot fail.
fn run(
    play: CrimePlay,
    tunnel: &mut impl LengthOracle<Error = std::convert::Infallible>,
    (place, digits): (CrimePlace, usize),
    packets: u64,
    seed: u64,
) -> CrimeTally {
    let Ok(tally) = CrimeClient::new(play, seed.rotate_left(17)).run(tunnel, place, digits, packets, seed);
    tally
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crime::GuessLetters;

    fn tally(play: CrimePlay, method: Method, place: CrimePlace) -> CrimeTally {
        run(play, &mut SimulatedTunnel::new(LeakPolicy::NONE, place, method), (place, 40), 1_000, 3)
    }

    #[test]
    fn without_a_policy_every_codec_tells_a_cookie_to_its_own_domain() {
        let play = CrimePlay::FirstAtStep { sure: 2, letters: GuessLetters::Fresh };
        for method in [Method::LZ4, Method::DEFLATE, Method::ZSTD] {
            for place in CrimePlace::ALL.into_iter().filter(|place| place.shares_a_block()) {
                let tally = tally(play, method, place);
                assert!(tally.is_above_chance() && tally.bits() > 10.0, "{method}, {place:?}: {tally:?}");
            }
        }
    }

    #[test]
    fn nothing_is_told_to_another_domain_or_without_a_rule() {
        for place in CrimePlace::ALL.into_iter().filter(|place| !place.shares_a_block()) {
            let tally = tally(CrimePlay::PATIENT, Method::DEFLATE, place);
            assert!(!tally.is_above_chance(), "{place:?}: {tally:?}");
        }
    }

    #[test]
    fn a_cell_is_measured_with_what_told_most_in_a_trial() {
        let grid = CrimeGrid { cookies: 2, packets: 1_000, ..CrimeGrid::default() };
        let cell = grid.cell(LeakPolicy::NONE, Method::LZ4, CrimePlace::SameFlow, 3);
        assert!(matches!(cell.play, CrimePlay::FirstAtStep { .. }), "{cell:?}");
        assert!(cell.tally.packets >= 2_000 && cell.bits > 100.0 && cell.bits_limit >= cell.bits, "{cell:?}");
        // Three paddings with and without a pause, and all of them with flows kept apart; two places without blocks for four of these.
        assert_eq!(grid.policies.len(), 3 * 2 + 1 + 4);
        assert_eq!(grid.named().len(), 3 * (grid.policies.len() * 3 + 4 * 2));
    }
}
