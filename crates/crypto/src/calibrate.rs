//! What each suite costs on this machine, and which one two machines should use together.

use crate::aead::Key;
use crate::{ICV_LEN, KeyMaterial, MAX_KEY_MATERIAL, NonceCounter, Suite, SuiteSet};

/// Bytes of the packets measured: near what a 1,500-byte path carries inside ESP and UDP.
const PACKET_LEN: usize = 1_400;
/// Bytes of associated data measured: SPI and extended sequence number (RFC 4303 section 3.3.2.2).
const AAD_LEN: usize = 12;
/// Packets a round, so that reading the clock and its resolution do not count.
const PACKETS_A_ROUND: u16 = 32;
/// Rounds at most; the best counts, since other work on the machine only ever adds time.
const ROUNDS: u32 = 12;
/// Nanoseconds after which no further round of one suite starts: 32 ms for all four together.
const BUDGET: u64 = 8_000_000;
/// Nanoseconds a packet beyond which a claim is not believed: slower than 11 Mbit/s.
const SLOWEST: u32 = 1_000_000;

/// What sealing and opening one 1,400-byte packet costs in each suite on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// Nanoseconds to seal and open one packet, in the order of [`Suite::ALL`].
    pub nanos_per_packet: [u32; Suite::COUNT],
}

impl Ranking {
    /// Bytes of the packets measured.
    pub const PACKET_LEN: usize = PACKET_LEN;

    /// Nanoseconds to seal and open one packet with `suite`, at least 1 and at most a millisecond.
    #[must_use]
    pub const fn cost(&self, suite: Suite) -> u32 {
        let claimed = self.nanos_per_packet[suite.index()];
        match claimed {
            0 => 1,
            1..=SLOWEST => claimed,
            _ => SLOWEST,
        }
    }

    /// The suites, fastest first; of equals, the lower id first.
    #[must_use]
    pub fn order(&self) -> [Suite; Suite::COUNT] {
        let mut suites = Suite::ALL;
        suites.sort_by_key(|suite| (self.cost(*suite), suite.id()));
        suites
    }
}

/// The suite both ends should use: the one that costs them least together; of equals, the lower id.
///
/// Both ends compute the same from the same numbers, whichever of them is `mine`. A peer that lies
/// about its costs only makes itself and this connection slower. `None` when `allowed_both` is empty.
#[must_use]
pub fn choose(mine: &Ranking, peer: &Ranking, allowed_both: SuiteSet) -> Option<Suite> {
    allowed_both.iter().min_by_key(|suite| (mine.cost(*suite) + peer.cost(*suite), suite.id()))
}

/// Measures every suite with `sample`, a clock in nanoseconds that never goes back.
///
/// Takes 3 ms on a fast machine and some 33 at most.
pub fn calibrate(mut sample: impl FnMut() -> u64) -> Ranking {
    Ranking { nanos_per_packet: Suite::ALL.map(|suite| measure(suite, &mut sample)) }
}

/// The best round's nanoseconds a packet.
fn measure(suite: Suite, sample: &mut impl FnMut() -> u64) -> u32 {
    let material = [0; MAX_KEY_MATERIAL];
    let Ok(material) = KeyMaterial::new(suite, &material[..suite.key_material_len()]) else {
        return SLOWEST;
    };
    let key = Key::new(&material);
    let mut counter = NonceCounter::new();
    let mut packet = [0; PACKET_LEN + ICV_LEN];
    let packet = &mut packet[..PACKET_LEN + suite.icv_len()];
    let began = sample();
    let mut best = u64::MAX;
    for _ in 0..ROUNDS {
        let start = sample();
        for _ in 0..PACKETS_A_ROUND {
            there_and_back(&key, &mut counter, packet);
        }
        let end = sample();
        best = best.min(end.saturating_sub(start) / u64::from(PACKETS_A_ROUND));
        if end.saturating_sub(began) > BUDGET {
            break;
        }
    }
    u32::try_from(best).unwrap_or(SLOWEST)
}

/// Seals and opens one packet.
fn there_and_back(key: &Key, counter: &mut NonceCounter, packet: &mut [u8]) {
    let Ok(nonce) = counter.next() else { return };
    let iv = nonce.value();
    let (text, tag) = packet.split_at_mut(PACKET_LEN);
    if let Ok(made) = key.seal(nonce, &[0; AAD_LEN], text) {
        tag.copy_from_slice(&made);
    }
    let opened = key.open(iv, &[0; AAD_LEN], packet);
    debug_assert!(opened.is_ok(), "a packet just sealed opens");
    core::hint::black_box(&opened);
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ranking(aes128: u32, aes256: u32, chacha: u32) -> Ranking {
        // Slower than all: these tables are of the others.
        Ranking { nanos_per_packet: [aes128, aes256, chacha, SLOWEST] }
    }

    #[test]
    fn order_is_fastest_first_and_ties_go_to_the_lower_id() {
        use Suite::{Aes128Gcm, Aes128Gcm12, Aes256Gcm, ChaCha20Poly1305};
        let table = [
            (ranking(3, 2, 1), [ChaCha20Poly1305, Aes256Gcm, Aes128Gcm, Aes128Gcm12]),
            (ranking(5, 5, 5), [Aes128Gcm, Aes256Gcm, ChaCha20Poly1305, Aes128Gcm12]),
            (ranking(u32::MAX, 0, u32::MAX), [Aes256Gcm, Aes128Gcm, ChaCha20Poly1305, Aes128Gcm12]),
        ];
        for (ranking, order) in table {
            assert_eq!(ranking.order(), order, "{ranking:?}");
        }
    }

    #[test]
    fn the_choice_is_the_least_sum_and_the_same_at_both_ends() {
        let (fast_aes, no_aes) = (ranking(1_000, 1_200, 3_000), ranking(20_000, 26_000, 6_000));
        let aes = SuiteSet::EMPTY.with(Suite::Aes128Gcm).with(Suite::Aes256Gcm);
        let table = [
            (fast_aes, fast_aes, SuiteSet::ALL, Some(Suite::Aes128Gcm)),
            (fast_aes, no_aes, SuiteSet::ALL, Some(Suite::ChaCha20Poly1305)),
            (fast_aes, no_aes, aes, Some(Suite::Aes128Gcm)),
            (fast_aes, no_aes, SuiteSet::EMPTY, None),
            // What either end alone would choose is not it.
            (ranking(10, 20, 99), ranking(20, 5, 99), SuiteSet::ALL, Some(Suite::Aes256Gcm)),
            (ranking(7, 7, 7), ranking(7, 7, 7), SuiteSet::ALL, Some(Suite::Aes128Gcm)),
            (ranking(0, 0, 0), ranking(u32::MAX, u32::MAX, 0), SuiteSet::ALL, Some(Suite::ChaCha20Poly1305)),
        ];
        for (mine, peer, allowed, expected) in table {
            assert_eq!(choose(&mine, &peer, allowed), expected, "{mine:?} {peer:?}");
            assert_eq!(choose(&peer, &mine, allowed), expected, "{peer:?} {mine:?}");
        }
    }

    #[test]
    fn a_clock_that_stands_still_ranks_all_alike() {
        assert_eq!(calibrate(|| 42).order(), Suite::ALL);
    }

    #[test]
    fn a_slow_machine_stops_at_its_budget() {
        // Two samples a round: 10 ms a reading is past the budget after the first round.
        let mut now = 0;
        let ranking = calibrate(|| {
            now += 10_000_000;
            now
        });
        assert_eq!(ranking.nanos_per_packet, [10_000_000 / u32::from(PACKETS_A_ROUND); Suite::COUNT]);
        assert_eq!(now, 3 * Suite::COUNT as u64 * 10_000_000);
    }

    #[test]
    fn a_real_clock_measures_something() {
        #[allow(clippy::disallowed_methods, reason = "the one test that wants real time")]
        let start = std::time::Instant::now();
        let ranking = calibrate(|| u64::try_from(start.elapsed().as_nanos()).unwrap());
        assert!(Suite::ALL.into_iter().all(|suite| ranking.nanos_per_packet[suite.index()] > 0));
    }
}
