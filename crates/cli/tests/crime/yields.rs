//! What the client learns: of its own domain much, of others nothing.

use strait_compress::Method;
use strait_ipsec::{LeakPolicy, Mix, Padding};
use strait_lab::crime::{
    CrimeClient, CrimePlace, CrimePlay, CrimeTally, GuessLetters, LengthOracle, SimulatedTunnel,
};
use strait_testbed::{Error, sandbox};

use crate::live::LiveTunnel;

/// Without a policy.
const NONE: LeakPolicy = LeakPolicy::NONE;
/// Looks for the step of the alignment, with fillers that leave entropy coders nothing to do.
const PLAY: CrimePlay = CrimePlay::FirstAtStep { sure: 1, letters: GuessLetters::All };
const SEED: u64 = 5;

/// The client against a tunnel, for about so many packets.
fn guess<O: LengthOracle>(oracle: &mut O, place: CrimePlace, packets: u64) -> Result<CrimeTally, O::Error> {
    CrimeClient::new(PLAY, SEED).run(oracle, place, 20, packets, SEED)
}

/// The same against a live tunnel of this policy.
fn live(policy: LeakPolicy, place: CrimePlace, method: Method, packets: u64) -> CrimeTally {
    let mut tunnel = LiveTunnel::open(policy, place, method);
    let tally = guess(&mut tunnel, place, packets).unwrap();
    println!(
        "{method}, {}: {tally:?}, {:.0} bits a 1,000 packets, {} again",
        place.name(),
        tally.bits(),
        tunnel.again
    );
    tally
}

#[test]
fn an_undefended_domain_tells_its_cookie_to_crime() {
    if !sandbox::allows_tests() {
        return;
    }
    for method in [Method::LZ4, Method::DEFLATE, Method::ZSTD] {
        let tally = live(NONE, CrimePlace::SameFlow, method, 600);
        assert!(tally.is_above_chance() && tally.bits() > 20.0, "{method}: {tally:?}");
    }
}

#[test]
fn crime_learns_nothing_of_another_domain() {
    if !sandbox::allows_tests() {
        return;
    }
    let tally = live(NONE, CrimePlace::OtherDomain, Method::DEFLATE, 1_000);
    assert!(!tally.is_above_chance(), "{tally:?}");
}

#[test]
fn crime_learns_nothing_without_a_rule() {
    if !sandbox::allows_tests() {
        return;
    }
    let tally = live(NONE, CrimePlace::NoRule, Method::DEFLATE, 1_000);
    assert!(!tally.is_above_chance(), "{tally:?}");
}

#[test]
fn crime_learns_nothing_from_another_flow_where_a_block_has_one() {
    if !sandbox::allows_tests() {
        return;
    }
    let policy = LeakPolicy { mix: Mix::Flow, ..NONE };
    let tally = live(policy, CrimePlace::OtherFlow, Method::ZSTD, 1_000);
    assert!(!tally.is_above_chance(), "{tally:?}");
    // In the cookie's own flow it changes nothing.
    let tally = live(policy, CrimePlace::SameFlow, Method::ZSTD, 600);
    assert!(tally.is_above_chance(), "{tally:?}");
}

#[test]
fn crime_learns_nothing_from_blocks_of_constant_size() {
    if !sandbox::allows_tests() {
        return;
    }
    let policy = LeakPolicy { padding: Padding::Constant, ..NONE };
    let tally = live(policy, CrimePlace::SamePacket, Method::LZ4, 1_000);
    assert!(!tally.is_above_chance(), "{tally:?}");
}

#[test]
fn crime_finds_the_step_of_padded_blocks() {
    if !sandbox::allows_tests() {
        return;
    }
    for padding in [Padding::Padme, Padding::Buckets] {
        let tally = live(LeakPolicy { padding, ..NONE }, CrimePlace::SamePacket, Method::LZ4, 600);
        assert!(tally.is_above_chance() && tally.bits() > 20.0, "{padding:?}: {tally:?}");
    }
}

/// Carries packets through both tunnels.
struct Both {
    live: LiveTunnel,
    simulated: SimulatedTunnel,
    guesses: usize,
    /// How many of them gave other lengths.
    differ: usize,
}

impl LengthOracle for Both {
    type Error = Error;

    fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        let live = self.live.carry(packets)?;
        let Ok(simulated) = self.simulated.carry(packets);
        self.differ += usize::from(live != simulated);
        self.guesses += 1;
        Ok(live)
    }
}

#[test]
fn lengths_on_the_wire_are_those_of_the_simulation() {
    if !sandbox::allows_tests() {
        return;
    }
    // Packets of one guess that the daemon does not find together leave otherwise; one packet always leaves alone.
    for (place, method, percent) in [
        (CrimePlace::SamePacket, Method::LZ4, 0),
        (CrimePlace::SamePacket, Method::DEFLATE, 0),
        (CrimePlace::OtherFlow, Method::DEFLATE, 25),
    ] {
        let live = LiveTunnel::open(NONE, place, method);
        let simulated = SimulatedTunnel::new(NONE, place, method);
        let mut both = Both { live, simulated, guesses: 0, differ: 0 };
        let tally = guess(&mut both, place, 300).unwrap();
        let Both { guesses, differ, .. } = both;
        println!("{method}, {}: {differ} of {guesses} differ", place.name());
        assert!(tally.is_above_chance() && guesses > 100, "{tally:?}");
        assert!(differ * 100 <= guesses * percent, "{method}, {}: {differ} of {guesses}", place.name());
    }
}
