//! Two nodes that estimate the rate of the link between them, follow it, and report what arrives.

use core::time::Duration;

use strait_ipsec::PathStatus;
use strait_scheduler::{LimitedBy, LinkRate, Rate};
use strait_sim::{Conversation, Filler, LinkSettings, LossModel, SimNetwork};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};

/// Bytes behind the UDP header of what is sent: full packets.
const PAYLOAD: usize = 1300;

fn mbit(text: &str) -> Rate {
    text.parse().unwrap()
}

/// A link of `rate` each way with a round trip of 50 ms, and a modem that holds a second.
fn modem(rate: Rate, loss: f64) -> LinkSettings {
    let queue = rate.bytes_in(seconds(1));
    let loss = if loss > 0.0 { LossModel::Uniform(loss) } else { LossModel::None };
    LinkSettings { rate: Some(rate), delay: millis(25), queue, loss, ..LinkSettings::default() }
}

/// What A knows of the path to B.
fn known(network: &SimNetwork) -> Option<PathStatus> {
    network.node(A).peer_counters(B).path.get()
}

/// The rate that A found, as a share of `rate`.
fn share(network: &SimNetwork, rate: Rate) -> f64 {
    let found = known(network)
        .and_then(|path| path.estimate)
        .and_then(|estimate| estimate.rate)
        .map_or(0, Rate::bits);
    found as f64 / rate.bits() as f64
}

/// Sends 12 Mbit/s for `span`; since when the estimate has been within 15 % of `rate`, as far as it is at the end.
fn send(network: &mut SimNetwork, talk: &mut Conversation, span: Duration, rate: Rate) -> Option<Duration> {
    let (begin, mut since) = (network.now(), None);
    while network.now() < begin + span {
        let packets: Vec<_> = (0..11).map(|_| talk.next_packet(PAYLOAD)).collect();
        network.send_all(A, &packets);
        network.run_for(millis(10));
        let near = (share(network, rate) - 1.0).abs() <= 0.15;
        since = if near { since.or(Some(network.now() - begin)) } else { None };
    }
    since
}

#[test]
fn a_link_that_changes_is_followed_within_three_seconds() {
    for (seed, loss) in [(1, 0.0), (2, 0.05)] {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| {
            (pair.a.up, pair.b.up) = (LinkRate::Auto, LinkRate::Auto);
            (pair.forth, pair.back) = (modem(mbit("10Mbit"), loss), modem(mbit("10Mbit"), loss));
        });
        let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
        let found = send(&mut network, &mut talk, seconds(6), mbit("10Mbit"));
        println!("{loss} lost: found after {found:?}");
        assert!(found.is_some(), "{:?}", known(&network));
        for rate in ["1.5Mbit", "10Mbit"].map(mbit) {
            for (from, to) in [(A, B), (B, A)] {
                network.link(from, to).settings = modem(rate, loss);
            }
            let followed = send(&mut network, &mut talk, seconds(5), rate);
            println!("{loss} lost: {rate} after {followed:?}");
            assert!(followed.is_some_and(|after| after <= seconds(3)), "{rate}: {followed:?}");
        }
        let path = known(&network).unwrap();
        assert_eq!(path.estimate.unwrap().limited_by, LimitedBy::Link);
        assert!((millis(48)..millis(60)).contains(&path.least_round_trip.unwrap()), "{path:?}");
        // The share of the last hundred or two varies by chance.
        assert!((path.loss - loss).abs() < 0.01 + loss * 0.6, "{path:?}");
        assert_eq!(path.refused, 0);
    }
}

#[test]
fn peer_can_request_estimated_rate() {
    let mut network = joined(3, |pair| {
        pair.a.up = LinkRate::Given(mbit("4Mbit"));
        pair.b.capabilities.down = LinkRate::Auto;
        (pair.forth, pair.back) = (modem(mbit("2Mbit"), 0.0), modem(mbit("2Mbit"), 0.0));
    });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    assert!(send(&mut network, &mut talk, seconds(4), mbit("2Mbit")).is_some());
    network.link(A, B).settings = modem(mbit("20Mbit"), 0.0);
    send(&mut network, &mut talk, seconds(4), mbit("4Mbit"));
    let path = known(&network).and_then(|path| path.estimate).unwrap();
    assert_eq!(
        (path.rate, path.limited_by),
        (Some(mbit("4Mbit")), LimitedBy::Given),
        "no more than its own link"
    );
}

/// Sends 8 Mbit/s for 10 s over a link whose way back has the rate `back`; wire bytes that arrived, bytes of reports that came
/// back, and how many. A estimates its rate if B wants that.
fn reports(seed: u64, back: &str, down: LinkRate) -> (u64, u64, u64) {
    let mut network = joined(seed, |pair| {
        pair.a.up = LinkRate::Given(mbit("8Mbit"));
        (pair.b.up, pair.b.capabilities.down) = (LinkRate::Given(mbit(back)), down);
        (pair.forth, pair.back) = (modem(mbit("10Mbit"), 0.0), modem(mbit(back), 0.0));
    });
    let mut talk = Conversation::new(v4(A, B, 80), Filler::Random);
    network.run_for(seconds(5));
    network.start_capture();
    for _ in 0..1000 {
        let packets: Vec<_> = (0..11).map(|_| talk.next_packet(PAYLOAD)).collect();
        network.send_all(A, &packets);
        network.run_for(millis(10));
    }
    let home = network.node(B).address();
    let (back, forth): (Vec<_>, Vec<_>) =
        network.take_capture().into_iter().filter(|one| one.is_esp()).partition(|one| one.from == home);
    let bytes = |sent: &[strait_sim::SimDatagram]| sent.iter().map(|one| one.outer_len()).sum();
    // Reports are not answered.
    network.run_for(seconds(1));
    network.take_capture();
    network.run_for(seconds(5));
    assert!(network.take_capture().iter().all(|one| !one.is_esp()), "silent when idle");
    (bytes(&forth), bytes(&back), back.len() as u64)
}

#[test]
fn reports_take_a_share_of_what_came_and_of_the_link_back() {
    for (seed, back) in [(4, "10Mbit"), (5, "1.5Mbit"), (6, "128kbit")] {
        let _seed = Seed(seed);
        let (came, bytes, count) = reports(seed, back, LinkRate::Auto);
        let link = mbit(back).bytes_in(seconds(11)) / 50;
        println!("estimated, {back} back: {came} bytes came, {count} reports of {bytes} bytes");
        assert!(bytes <= (came / 50 + 2_000).min(link + 120), "{back}: {bytes} bytes of {came} and {link}");
        assert!(count >= link.min(40_000) / 150, "{back}: {count}");
        // A sender with a given rate is told of the round-trip time once a second.
        let (came, bytes, count) = reports(seed, back, LinkRate::Unpaced);
        println!("given, {back} back: {came} bytes came, {count} reports of {bytes} bytes");
        assert!((9..=12).contains(&count) && bytes <= came / 500, "{back}: {count} reports, {bytes} bytes");
    }
}
