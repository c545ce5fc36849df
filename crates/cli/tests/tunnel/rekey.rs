//! Keys are replaced under load without the loss of a packet.

use std::collections::BTreeSet;
use std::time::Duration;

use strait_testbed::{Extra, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

#[test]
fn no_packet_is_lost_while_keys_are_replaced() {
    if !allowed() {
        return;
    }
    // The fewest packets that keys may be used for, so that thousands of packets need new ones several times.
    let extra = Extra { sections: "[session]\npackets = 1024\n", ..Extra::default() };
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), extra);
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = receiver.local_addr().unwrap();
    let total = 8_000_u32;
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        let mut seen = BTreeSet::new();
        while seen.len() < 8_000 && receiver.recv(&mut buffer).is_ok() {
            seen.insert(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
        }
        seen
    });
    let mut associations = BTreeSet::new();
    for number in 0..total {
        sender.send_to(&number.to_be_bytes(), target).unwrap();
        if number % 8 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        if number % 250 == 0 {
            associations.insert(pair.peer(0)["association"]["outbound_spi"].to_string());
        }
    }
    let seen = reader.join().unwrap();
    let lost: Vec<u32> = (0..total).filter(|number| !seen.contains(number)).collect();
    assert!(lost.is_empty(), "{} lost, the first {:?}\n{}", lost.len(), lost.first(), pair.logs());
    assert!(associations.len() >= 3, "only {associations:?}\n{}", pair.logs());
}

#[test]
fn tcp_goes_on_while_keys_are_replaced() {
    if !allowed() {
        return;
    }
    let extra = Extra { sections: "[session]\nbytes = \"1MiB\"\n", ..Extra::default() };
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), extra);
    let before = pair.peer(0)["association"]["outbound_spi"].clone();
    for to in [1, 0] {
        pair.tcp(to, Family::V4, 8_000_000);
    }
    crate::pair::eventually("the keys are replaced", || {
        pair.peer(0)["association"]["outbound_spi"] != before
    });
    for which in [0, 1] {
        for reason in ["forged", "unknown-spi", "sequence-exhausted"] {
            assert_eq!(pair.drops(which, reason), 0, "{reason}\n{}", pair.logs());
        }
    }
}
