use core::time::Duration;
use std::net::IpAddr;

use strait_crypto::{Cipher, Integrity, KeyMaterial, Suite};
use strait_wire::ah::Align;
use strait_wire::{Protocol, Spi, Tos};

use super::*;
use crate::sample::{PEER, Receiver};
use crate::wrap::Head;
use crate::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, IvMode, Mode, OutboundSa, Payloads, Reserve, SaSpec,
    SequenceNumbers,
};

const EPOCH: u64 = 1 << 32;

/// What protects the packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protection {
    Gcm,
    CbcAndHmac,
    /// AH around AES-GCM, directly behind IP.
    AhAndGcm,
}

fn spec(protection: Protection) -> SaSpec {
    let mac = || KeyMaterial::new(Integrity::HmacSha256_128, &[3; 32]).unwrap();
    let keys = if protection == Protection::CbcAndHmac {
        let cipher = KeyMaterial::new(Cipher::Aes128Cbc, &[5; 16]).unwrap();
        EspKeys::Separate { cipher, integrity: Some(mac()), seed: 7 }
    } else {
        EspKeys::Aead { key: KeyMaterial::new(Suite::Aes128Gcm, &[7; 20]).unwrap(), iv: IvMode::Explicit }
    };
    let [from, to] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let is_direct = protection == Protection::AhAndGcm;
    let ah = AhSpec { spi: Spi(0x0400_0002), integrity: mac(), align: Align::Eight };
    SaSpec {
        peer: PEER,
        ah: is_direct.then_some(ah),
        esp: Some(EspSpec { spi: Spi(0x0400_0001), keys }),
        sequence: SequenceNumbers::Bits64,
        mode: Mode::Tunnel,
        carrier: if is_direct { Carrier::Ip { from, to } } else { Carrier::Udp },
        fragments: Fragments::Never,
        payloads: Payloads::STANDARD,
    }
}

/// A peer whose next number is `first`.
fn peer(protection: Protection, first: u64) -> OutboundSa {
    OutboundSa::new(&spec(protection)).within(Reserve::new(first, u64::MAX))
}

/// The peer's next packet, and what lies in front of its protocols.
fn packet(sa: &mut OutboundSa) -> (Vec<u8>, Inside) {
    let head = Head::Fresh(Tos(0));
    let front = sa.front_len(head);
    let mut packet = vec![0x5a; sa.sealed_len(front, 40)];
    sa.seal(head, &mut packet, 40, Protocol::IPIP).unwrap();
    let outermost = if front > 0 { Protocol::AH } else { Protocol::ESP };
    let inside = Inside::untouched(front, packet.len(), outermost);
    (packet, inside)
}

/// A receiver that has just started, and gets a packet every 10 ms.
struct Restarted {
    sa: InboundSa,
    search: EpochSearch,
    now: Time,
}

impl Restarted {
    fn new(protection: Protection) -> Restarted {
        let sa = InboundSa::new(&spec(protection));
        Restarted { sa, search: EpochSearch::new(), now: Time::from_millis(1000) }
    }

    fn take(&mut self, (mut packet, inside): (Vec<u8>, Inside)) -> Result<u64, Reason> {
        self.now += Duration::from_millis(10);
        self.search.open(&mut self.sa, &mut packet, inside, self.now).map(|opened| opened.esn.0)
    }

    /// Takes packets of the peer until one opens; says how many did not.
    fn deaf_for(&mut self, sa: &mut OutboundSa) -> u64 {
        (0..100_000).find(|_| self.take(packet(sa)).is_ok()).expect("the peer is never heard")
    }

    /// Trials so far.
    fn trials(&self) -> u32 {
        self.search.sweep - FIRST_SWEEP + self.search.next
    }
}

#[test]
fn a_receiver_that_restarts_after_2_to_the_32_packets_hears_its_peer_again() {
    for protection in [Protection::Gcm, Protection::CbcAndHmac, Protection::AhAndGcm] {
        // The first number of the peer after the restart, and how many packets are lost: the one that raises the doubt. A
        // Strait peer ends at 2^36, which is within the 16 trials of the next.
        for (first, most) in [
            (1, 0),
            (EPOCH / 2 + 9, 0),
            (EPOCH + 1, 1),
            (EPOCH + EPOCH / 2 + 9, 1),
            (2 * EPOCH - 1, 1),
            (3 * EPOCH + 7, 1),
            (15 * EPOCH + 77, 1),
        ] {
            let (mut peer, mut receiver) = (peer(protection, first), Restarted::new(protection));
            let lost = receiver.deaf_for(&mut peer);
            assert_eq!(lost, most, "{protection:?} {first}");
            // From then on all is as usual, across the next epoch's end too.
            for number in 1..20 {
                assert_eq!(receiver.take(packet(&mut peer)), Ok(first + lost + number));
            }
            assert_eq!(receiver.search.doubt, 0);
        }
    }
}

#[test]
fn every_upper_half_is_tried_and_small_ones_again_and_again() {
    let (mut search, mut tried) = (EpochSearch::new(), vec![0; LONGEST_SWEEP as usize]);
    while search.sweep < LONGEST_SWEEP || search.next + 1 < LONGEST_SWEEP {
        tried[search.next as usize] += 1;
        search.advance();
    }
    assert_eq!((tried[0], tried[63], tried[64], tried[1000], tried[40_000]), (11, 11, 10, 7, 1));
    assert!(tried.iter().take(65_535).all(|times| *times > 0));
    // The longest goes on.
    search.advance();
    assert_eq!((search.next, search.sweep), (0, LONGEST_SWEEP));
}

#[test]
fn without_a_search_such_a_receiver_is_deaf() {
    let (mut peer, mut receiver) = (peer(Protection::Gcm, EPOCH + 1), Restarted::new(Protection::Gcm));
    for _ in 0..1000 {
        let (mut packet, inside) = packet(&mut peer);
        assert_eq!(receiver.sa.open(&mut packet, inside).unwrap_err(), Reason::Forged);
    }
}

#[test]
fn forged_packets_cost_a_bounded_number_of_trials() {
    let mut peer = peer(Protection::Gcm, 1);
    let mut receiver = Restarted::new(Protection::Gcm);
    let forged = |number: u32| {
        let mut bytes = vec![0x11; 100];
        bytes[..4].copy_from_slice(&0x0400_0001_u32.to_be_bytes());
        bytes[4..8].copy_from_slice(&number.to_be_bytes());
        let inside = Inside::untouched(0, bytes.len(), Protocol::ESP);
        (bytes, inside)
    };
    // 100 for each of the peer's, 10,000 a second.
    let start = receiver.now;
    for number in 0..100 {
        for one in 0..100 {
            receiver.now = start + Duration::from_micros(number * 10_000 + one * 100);
            let (mut bytes, inside) = forged(1_000_000 + u32::try_from(number * 100 + one).unwrap());
            assert!(receiver.search.open(&mut receiver.sa, &mut bytes, inside, receiver.now).is_err());
        }
        let (mut bytes, inside) = packet(&mut peer);
        let opened = receiver.search.open(&mut receiver.sa, &mut bytes, inside, receiver.now).unwrap();
        assert_eq!(opened.esn.0, number + 1, "the peer's packets open as ever");
    }
    assert!((100..=1064).contains(&receiver.trials()), "{} trials in a second", receiver.trials());
}

#[test]
fn old_packets_that_are_replayed_do_not_hide_the_peer() {
    let (mut old, mut live) = (peer(Protection::Gcm, 1), peer(Protection::Gcm, 2 * EPOCH + 20_000));
    let recorded: Vec<_> = (0..40).map(|_| packet(&mut old)).collect();
    let mut receiver = Restarted::new(Protection::Gcm);
    let heard = recorded.into_iter().position(|old| {
        assert!(receiver.take(old).is_ok(), "to a receiver that restarted it is new");
        receiver.take(packet(&mut live)).is_ok()
    });
    assert!(heard.is_some_and(|replayed| replayed < 4), "{heard:?}");
    // What was recorded is old now.
    let mut old = peer(Protection::Gcm, 100);
    assert!(receiver.take(packet(&mut old)).is_err());
}

#[test]
fn the_receiver_of_a_node_finds_the_upper_half() {
    let mut peer = peer(Protection::Gcm, 5 * EPOCH + 3);
    let mut receiver = Receiver::of(InboundSa::new(&spec(Protection::Gcm)).recovering());
    for _ in 0..10 {
        receiver.take(&packet(&mut peer).0, Tos(0));
    }
    assert_eq!((receiver.drops(Reason::Forged), receiver.peer.in_datagrams.get()), (1, 9));
}
