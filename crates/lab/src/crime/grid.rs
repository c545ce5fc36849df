//! The client against each policy, codec and place.

use serde::{Serialize, Serializer};
use strait_compress::Method;

use super::{CrimeClient, CrimePlace, CrimePlay, CrimePolicy, CrimeTally, LengthOracle, SimulatedTunnel};
use crate::steps::{StepCounter, StepNote};

/// Digits of cookies, in turn.
const LENGTHS: [usize; 2] = [20, 40];
/// What part of the cookies, and of the packets for each, a trial has that chooses the play.
const TRIAL: [u64; 2] = [5, 2];

/// What is measured.
#[derive(Clone, Debug)]
pub struct CrimeGrid {
    /// Policies.
    pub policies: Vec<CrimePolicy>,
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

impl Default for CrimeGrid {
    fn default() -> CrimeGrid {
        CrimeGrid {
            policies: CrimePolicy::ALL.to_vec(),
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
    /// The policy.
    pub policy: &'static str,
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
}

impl CrimeGrid {
    /// Runs the client in every cell; `tell` is told of each. Tunnels are simulated ones: the data plane itself, in virtual time.
    pub fn run(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> CrimeTable {
        let of = self.policies.len() * self.methods.len() * self.places.len();
        let mut steps = StepCounter::new(of, tell);
        let mut cells = Vec::new();
        for policy in &self.policies {
            for method in &self.methods {
                for place in &self.places {
                    steps.next(&format!("{}, {method}, {}", policy.name, place.name()));
                    cells.push(self.cell(*policy, *method, *place));
                }
            }
        }
        CrimeTable { cells }
    }

    /// Chooses the play by a trial, and measures it with other cookies.
    fn cell(&self, policy: CrimePolicy, method: Method, place: CrimePlace) -> CrimeCell {
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
        let trials = CrimePlay::ALL.map(|play| (play, measure(play, part, !self.seed)));
        let told = trials.into_iter().filter(|(_, tally)| tally.is_above_chance());
        let best = told.max_by(|(_, one), (_, other)| one.bits().total_cmp(&other.bits()));
        let play = best.map_or(CrimePlay::PATIENT, |(play, _)| play);
        let tally = measure(play, [self.cookies, self.packets], self.seed);
        let (policy, bits, bits_limit) = (policy.name, tally.bits(), tally.bits_limit());
        CrimeCell { policy, method, place, play, tally, bits, bits_limit }
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

    fn cell(place: CrimePlace, method: Method) -> CrimeCell {
        let grid = CrimeGrid { cookies: 2, packets: 1_000, ..CrimeGrid::default() };
        grid.cell(CrimePolicy::ALL[0], method, place)
    }

    #[test]
    fn without_a_policy_every_codec_tells_a_cookie_to_its_own_domain() {
        for method in [Method::LZ4, Method::DEFLATE, Method::ZSTD] {
            for place in [CrimePlace::SamePacket, CrimePlace::SameFlow, CrimePlace::OtherFlow] {
                let cell = cell(place, method);
                assert!(cell.tally.is_above_chance() && cell.bits > 20.0, "{method}, {place:?}: {cell:?}");
            }
        }
    }

    #[test]
    fn nothing_is_told_to_another_domain_or_without_a_rule() {
        for place in [CrimePlace::OtherDomain, CrimePlace::NoRule] {
            let cell = cell(place, Method::DEFLATE);
            assert!(!cell.tally.is_above_chance(), "{place:?}: {cell:?}");
        }
    }
}
