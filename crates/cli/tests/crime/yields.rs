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
const SEED: u64 = 5;

/// Looks for the step of the alignment, with fillers that leave an entropy coder nothing to do.
const ALL_BYTES: CrimePlay = CrimePlay::FirstAtStep { sure: 1, letters: GuessLetters::All };
/// The same with shorter fillers, which do against a codec without an entropy coder.
const FEW_LETTERS: CrimePlay = CrimePlay::FirstAtStep { sure: 1, letters: GuessLetters::Few };

/// The client against a tunnel, for about so many packets.
fn guess<O: LengthOracle>(
    play: CrimePlay,
    oracle: &mut O,
    place: CrimePlace,
    packets: u64,
) -> Result<CrimeTally, O::Error> {
    CrimeClient::new(play, SEED).run(oracle, place, 20, packets, SEED)
}

/// The same against a live tunnel of this policy.
fn live(
    policy: LeakPolicy,
    place: CrimePlace,
    method: Method,
    (play, packets): (CrimePlay, u64),
) -> CrimeTally {
    let mut tunnel = LiveTunnel::open(policy, place, method);
    let tally = guess(play, &mut tunnel, place, packets).unwrap();
    println!(
        "{method}, {}: {tally:?}, {:.0} bits a 1,000 packets, {} again",
        place.name(),
        tally.bits(),
        tunnel.again
    );
    tally
}

/// Whether so few digits are right that chance gives as many: it gives more in less than one of 10,000 runs, however many digits there are.
const fn is_chance(tally: &CrimeTally) -> bool {
    tally.right * 4 <= tally.digits + 12
}

#[test]
fn an_undefended_domain_tells_its_cookie_to_crime() {
    if !sandbox::allows_tests() {
        return;
    }
    for method in [Method::LZ4, Method::DEFLATE, Method::ZSTD] {
        let tally = live(NONE, CrimePlace::SameFlow, method, (ALL_BYTES, 600));
        assert!(tally.is_above_chance() && tally.bits() > 20.0, "{method}: {tally:?}");
    }
}

#[test]
fn crime_learns_nothing_of_another_domain() {
    if !sandbox::allows_tests() {
        return;
    }
    let tally = live(NONE, CrimePlace::OtherDomain, Method::DEFLATE, (ALL_BYTES, 1_000));
    assert!(is_chance(&tally), "{tally:?}");
}

#[test]
fn crime_learns_nothing_without_a_rule() {
    if !sandbox::allows_tests() {
        return;
    }
    let tally = live(NONE, CrimePlace::NoRule, Method::DEFLATE, (ALL_BYTES, 1_000));
    assert!(is_chance(&tally), "{tally:?}");
}

#[test]
fn crime_learns_nothing_from_another_flow_where_a_block_has_one() {
    if !sandbox::allows_tests() {
        return;
    }
    let policy = LeakPolicy { mix: Mix::Flow, ..NONE };
    let tally = live(policy, CrimePlace::OtherFlow, Method::ZSTD, (ALL_BYTES, 1_000));
    assert!(is_chance(&tally), "{tally:?}");
    // In the cookie's own flow it changes nothing.
    let tally = live(policy, CrimePlace::SameFlow, Method::ZSTD, (ALL_BYTES, 600));
    assert!(tally.is_above_chance(), "{tally:?}");
}

#[test]
fn crime_learns_nothing_from_blocks_of_constant_size() {
    if !sandbox::allows_tests() {
        return;
    }
    let policy = LeakPolicy { padding: Padding::Constant, ..NONE };
    let tally = live(policy, CrimePlace::SamePacket, Method::LZ4, (ALL_BYTES, 1_000));
    assert!(is_chance(&tally), "{tally:?}");
}

#[test]
fn crime_finds_the_step_of_padded_blocks() {
    if !sandbox::allows_tests() {
        return;
    }
    for padding in [Padding::Padme, Padding::Buckets] {
        let tally =
            live(LeakPolicy { padding, ..NONE }, CrimePlace::SamePacket, Method::LZ4, (FEW_LETTERS, 600));
        assert!(tally.is_above_chance() && tally.bits() > 20.0, "{padding:?}: {tally:?}");
    }
}

/// Carries packets through both tunnels, whose datagrams have to be of equal lengths.
struct Both {
    live: LiveTunnel,
    simulated: SimulatedTunnel,
    guesses: usize,
}

impl LengthOracle for Both {
    type Error = Error;

    fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        let live = self.live.carry(packets)?;
        let Ok(simulated) = self.simulated.carry(packets);
        assert_eq!(live, simulated, "guess {}", self.guesses);
        self.guesses += 1;
        Ok(live)
    }
}

#[test]
fn lengths_on_the_wire_are_those_of_the_simulation() {
    if !sandbox::allows_tests() {
        return;
    }
    // One packet always leaves alone; several may be read together or not.
    let place = CrimePlace::SamePacket;
    for (padding, method) in
        [(Padding::None, Method::LZ4), (Padding::None, Method::DEFLATE), (Padding::Padme, Method::LZ4)]
    {
        let policy = LeakPolicy { padding, ..NONE };
        let live = LiveTunnel::open(policy, place, method);
        let simulated = SimulatedTunnel::new(policy, place, method);
        let mut both = Both { live, simulated, guesses: 0 };
        let tally = guess(ALL_BYTES, &mut both, place, 300).unwrap();
        assert!(tally.is_above_chance() && both.guesses > 100, "{method}, {padding:?}: {tally:?}");
    }
}
