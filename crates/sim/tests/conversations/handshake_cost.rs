//! What a handshake costs the link.

use strait_keying::Start;

use crate::stage::{A, B, Seed, pair, seconds, v4};

#[test]
fn new_keys_take_two_and_a_half_round_trips_and_at_most_8_5_kb() {
    for seed in 0..5 {
        let _seed = Seed(seed);
        let mut network = pair(seed, |pair| pair.start = Start::OnTraffic);
        network.start_capture();
        let began = network.now();
        network.send(A, &v4(A, B, 9).udp(b"a first packet"));
        assert!(network.run_until_up(A, B, seconds(5)));
        // Two round trips of 10 ms and the confirmation's way.
        assert!(network.now() - began <= crate::stage::millis(25), "{:?}", network.now() - began);
        network.run_for(seconds(10));
        let home = network.node(A).address();
        let captured = network.take_capture();
        let control: Vec<_> = captured.iter().filter(|one| !one.is_esp()).collect();
        let bytes = |forth: bool| -> u64 {
            control.iter().filter(|one| (one.from == home) == forth).map(|one| one.outer_len()).sum()
        };
        assert!(bytes(true) <= 5_500 && bytes(false) <= 3_000, "{} and {}", bytes(true), bytes(false));
        assert!(control.len() <= 14, "{}", control.len());
    }
}
