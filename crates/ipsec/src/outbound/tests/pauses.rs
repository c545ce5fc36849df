//! When compressing pauses.

use super::*;
use crate::padding::PAUSE_PACKETS;
use crate::{LeakPolicy, Padding, RuleCounters};

fn sender(policy: LeakPolicy, workers: usize) -> Sender {
    let rules = [1001, 1002].map(|port| crate::Rule { policy, ..rule(port, 1, Method::ZSTD) });
    Sender::new(STRAIT, 1500, None, rules.to_vec()).with_workers(workers)
}

const CONSTANT: LeakPolicy = LeakPolicy { padding: Padding::Constant, ..LeakPolicy::NONE };
const PAUSING: LeakPolicy = LeakPolicy { pause: true, ..LeakPolicy::NONE };

fn counters(sender: &Sender) -> &RuleCounters {
    sender.out.stages.compressor.rules.counters(0).unwrap()
}

/// Two segments of one stream, of text or of bytes that do not shrink.
fn two(shape: Shape) -> (Vec<u8>, vnet::Header) {
    Shape { protocol: Protocol::TCP, ..shape }.super_packet(1_300)
}

/// Whether each unit became a block, in the order in which they left.
fn blocks(sender: &Sender) -> Vec<(bool, usize)> {
    let units = groups(&sender.wire).into_iter();
    units.map(|unit| (unit.coding.is_some_and(|it| it.codec != Codec::None), unit.packets.len())).collect()
}

#[test]
fn a_unit_that_does_not_fit_its_constant_size_pauses_compressing_for_16384_packets() {
    let mut sender = sender(CONSTANT, 0);
    let (text, noise) = (two(text(1001, 2_600)), two(noise(1002, 2_600)));
    (0..5).for_each(|_| sender.send(&text.0, &text.1));
    sender.send(&noise.0, &noise.1);
    (0..PAUSE_PACKETS / 2 + 5).for_each(|_| sender.send(&text.0, &text.1));
    sender.drain();
    let unit = |(block, packets): (bool, usize)| core::iter::repeat_n(block, packets);
    let all: Vec<bool> = blocks(&sender).into_iter().flat_map(unit).collect();
    let paused = usize::try_from(PAUSE_PACKETS).unwrap();
    let expected = [vec![true; 10], vec![false; paused + 2], vec![true; 10]].concat();
    assert!(all == expected, "{} in blocks of {}", all.iter().filter(|it| **it).count(), all.len());
    let other = sender.out.stages.compressor.rules.counters(1).unwrap();
    assert_eq!((other.pauses.get(), counters(&sender).paused.get()), (1, PAUSE_PACKETS));
}

#[test]
fn a_decision_against_compressing_pauses_blocks_of_constant_size() {
    // The chooser of these tests decides against it where the rule leaves the choice.
    for (policy, pauses) in [(CONSTANT, 1), (PAUSING, 0)] {
        let rule =
            crate::Rule { policy, allowed: strait_compress::Allowed::Any, ..rule(1001, 1, Method::ZSTD) };
        let mut sender = Sender::new(STRAIT, 1500, None, vec![rule]);
        (0..3).for_each(|_| sender.send(&text(1001, 1_300).packet(), &PLAIN));
        assert_eq!(counters(&sender).pauses.get(), 0, "too short to be compressed, which its length says");
        let (packet, header) = two(text(1001, 2_600));
        (0..3).for_each(|_| sender.send(&packet, &header));
        assert_eq!((counters(&sender).pauses.get(), counters(&sender).paused.get()), (pauses, 4 * pauses));
    }
}

#[test]
fn no_block_of_constant_size_that_was_under_way_leaves_in_a_pause() {
    for workers in 0..4 {
        let mut sender = sender(CONSTANT, workers);
        for number in 0..60 {
            let shape = if number % 20 == 7 { noise(1001, 30_000) } else { text(1001, 30_000) };
            let (packet, header) =
                Shape { version: Version::V4, protocol: Protocol::TCP, ..shape }.super_packet(1_300);
            sender.send(&packet, &header);
            // The queue takes no more at once.
            if number % 5 == 4 {
                sender.drain();
            }
        }
        sender.drain();
        let mut receiver = Receiver::new(STRAIT);
        receiver.take_all(&sender.wire);
        assert_eq!((receiver.site.packets.len(), sender.dropped()), (60 * 24, 0));
        let all = blocks(&sender);
        let first = all.iter().position(|(block, _)| !block).unwrap();
        assert!(first > 0 && all[first..].iter().all(|(block, _)| !block), "{workers} workers: {all:?}");
        assert_eq!(counters(&sender).pauses.get(), 1);
    }
}

/// A guess beside a secret, as a script sends it, with so many bytes that shift the alignment.
fn guess(number: u64, filler: usize) -> Vec<u8> {
    let payload = format!(
        "GET /?{}cookie=5f3a{:x}{} HTTP/1.1\r\nHost: shop.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9\r\nAccept-Language: en-GB,en;q=0.5\r\n\
         Accept-Encoding: gzip, deflate\r\nReferer: http://shop.example.org/basket\r\nConnection: keep-alive\r\nCookie: cookie=5f3a9e77b1c02d46aa10\r\n\r\n",
        &"qzjxkvwy"[..filler],
        number % 16,
        &"~^|{}"[..1 + usize::try_from(number % 4).unwrap()],
    );
    Shape { payload: payload.into_bytes(), ..text(1001, 0) }.packet()
}

#[test]
fn guesses_beside_a_secret_pause_compressing_within_100_blocks() {
    // For so many guesses, one packet of others.
    for guesses_for_one in [2_000, 4, 1] {
        let mut sender = sender(PAUSING, 0);
        let mut random = strait_clock::Random::new(1);
        for number in 0..2_000_u64 {
            sender.send(&guess(number, usize::try_from(number / 16 % 4).unwrap()), &PLAIN);
            if number % guesses_for_one == 0 {
                let words = (0..90).map(|_| format!("{:05x} ", random.below(1 << 20))).collect::<String>();
                let other = Shape { payload: words.into_bytes(), ..text(1001, 0) }.packet();
                sender.send(&other, &PLAIN);
            }
        }
        sender.drain();
        let compressed = blocks(&sender).into_iter().filter(|(block, _)| *block).count();
        match guesses_for_one {
            2_000 => assert!((60..100).contains(&compressed), "{compressed}"),
            4 => assert!((100..200).contains(&compressed), "{compressed}"),
            // Hidden among as many others, an attack is not noticed: this is no proof of anything.
            _ => assert!(compressed > 1_000, "{compressed}"),
        }
        assert_eq!(counters(&sender).pauses.get(), u64::from(guesses_for_one > 1));
    }
    let mut never = sender(LeakPolicy::NONE, 0);
    (0..2_000).for_each(|number| never.send(&guess(number, 0), &PLAIN));
    never.drain();
    assert_eq!(
        (blocks(&never).iter().filter(|(block, _)| *block).count(), counters(&never).pauses.get()),
        (2_000, 0)
    );
}

#[test]
fn blocks_of_different_text_do_not_pause_compressing() {
    let mut sender = sender(PAUSING, 0);
    let mut random = strait_clock::Random::new(1);
    for number in 0..2_000_u64 {
        let line = |random: &mut strait_clock::Random| {
            format!(
                "Nov 22 11:{:02}:{:02} gateway sshd[{}]: Failed password for invalid user u{} from 10.{}.{}.{} port {}\n",
                number / 60 % 60,
                number % 60,
                random.below(40_000),
                random.below(1_000),
                random.below(256),
                random.below(256),
                random.below(256),
                random.below(65_536),
            )
        };
        let lines: String = (0..8).map(|_| line(&mut random)).collect();
        sender.send(&Shape { payload: lines.into_bytes(), ..text(1001, 0) }.packet(), &PLAIN);
    }
    sender.drain();
    assert_eq!(counters(&sender).pauses.get(), 0);
}
