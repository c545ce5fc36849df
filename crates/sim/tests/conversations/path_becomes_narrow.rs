//! A path that becomes narrow under streams, and paths that only look as if they had.

use core::time::Duration;
use std::sync::atomic::Ordering;

use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LinkSwitch, LossModel, SimNetwork};
use strait_wire::repetition::HEADER_LEN;

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};
use crate::stream::{Stream, TURN};

/// A segment that fills an inner packet of 1,420 bytes, as the tunnel device takes.
const FULL: usize = 1420 - 40;
/// The largest inner packet over 1,500 bytes: on a link with a rate, one that can be sent again where it is lost.
const fn wide(like: &LinkSettings) -> u64 {
    if like.rate.is_some() { 1446 - HEADER_LEN as u64 } else { 1446 }
}

fn inner(network: &SimNetwork) -> u64 {
    network.node(A).peer_counters(B).inner_mtu.load(Ordering::Relaxed)
}

/// A wire that takes `delay` milliseconds.
fn wire(delay: u64) -> LinkSettings {
    LinkSettings { delay: millis(delay), ..LinkSettings::default() }
}

/// Two nodes with `count` streams over a path that is known; their timers begin with `patience`.
fn streaming(seed: u64, count: u16, patience: Duration, like: LinkSettings) -> (SimNetwork, Vec<Stream>) {
    let mut network = joined(seed, |pair| {
        (pair.forth, pair.back) = (like, like);
        (pair.a.up, pair.b.up) = (like.rate.into(), like.rate.into());
    });
    let mut streams: Vec<Stream> =
        (0..count).map(|at| Stream::new(A, B, 2000 + 2 * at, FULL, 4, patience)).collect();
    Stream::run(&mut streams, &mut network, seconds(10), |_| {});
    assert_eq!(inner(&network), wide(&like));
    (network, streams)
}

fn longest(network: &SimNetwork, streams: &[Stream]) -> Duration {
    streams.iter().map(|stream| stream.standstill(network.now())).max().unwrap()
}

/// A few words each way every half a second.
fn small_talk(network: &mut SimNetwork) {
    if network.now().as_nanos() % 500_000_000 < TURN.as_nanos().try_into().unwrap() {
        network.send(A, &v4(A, B, 9000).udp(b"how are you"));
        network.send(B, &v4(B, A, 9000).udp(b"fine, and you"));
    }
}

#[test]
fn stream_recovers_at_third_retransmission_after_mtu_drop() {
    for (seed, (first, talk)) in
        (0..).zip([200, 330, 1000].into_iter().flat_map(|first| [(first, false), (first, true)]))
    {
        let _seed = Seed(seed);
        let (mut network, mut streams) = streaming(seed, 1, millis(first), wire(20));
        network.link(A, B).settings.mtu = 1400;
        streams[0].forget();
        Stream::run(&mut streams, &mut network, seconds(40), |network| {
            if talk {
                small_talk(network);
            }
        });
        // The timer, then twice the timer, then four times; and a round trip.
        let third = millis(7 * first + 100);
        let stood = longest(&network, &streams);
        assert!(stood < third, "{first} ms, {talk}: {stood:?}");
        assert!((1334..=1346).contains(&inner(&network)), "{}", inner(&network));
        assert_eq!(streams[0].step as u64 + 40, inner(&network), "the host was told");
        assert_eq!(network.node(A).handshakes(), 1);
    }
}

#[test]
fn hundred_streams_recover_after_mtu_drop() {
    let _seed = Seed(1);
    let (mut network, mut streams) = streaming(1, 100, millis(700), wire(300));
    network.link(A, B).settings.mtu = 1400;
    streams.iter_mut().for_each(Stream::forget);
    Stream::run(&mut streams, &mut network, seconds(12), small_talk);
    let stood = longest(&network, &streams);
    assert!(stood < millis(7 * 700 + 600), "{stood:?}");
}

#[test]
fn queued_packets_pass_after_mtu_drop() {
    let _seed = Seed(2);
    let like = LinkSettings { rate: "1Mbit".parse().ok(), ..wire(20) };
    let (mut network, mut streams) = streaming(2, 8, millis(1000), like);
    network.link(A, B).settings.mtu = 1400;
    streams.iter_mut().for_each(Stream::forget);
    Stream::run(&mut streams, &mut network, seconds(12), small_talk);
    let stood = longest(&network, &streams);
    assert!(stood < millis(7 * 1000 + 1000), "{stood:?}");
}

/// How many probes of the full size are sent in two minutes on a path that only loses or is slow, and never counts as narrow.
fn probes(seed: u64, (delay, loss, rate): (u64, f64, Option<Rate>)) -> usize {
    let _seed = Seed(seed);
    let like = LinkSettings { rate, ..wire(delay) };
    let (mut network, mut streams) = streaming(seed, 4, millis(1500), like);
    for (from, to) in [(A, B), (B, A)] {
        network.link(from, to).settings.loss = LossModel::Uniform(loss);
    }
    network.start_capture();
    let (before, mut least) = (streams[0].arrived(), wide(&like));
    for _ in 0..120 {
        Stream::run(&mut streams, &mut network, seconds(1), small_talk);
        least = least.min(inner(&network));
    }
    let probes = network.take_capture().iter().filter(|one| one.outer_len() == 1500).count();
    assert_eq!(least, wide(&like), "{delay} ms, {loss}, {rate:?}");
    let like = format!("{delay} ms, {loss}, {rate:?}");
    assert!(streams[0].arrived() > before + 50, "{like}: {}", streams[0].arrived() - before);
    probes
}

#[test]
fn loss_and_slowness_do_not_make_a_path_narrow() {
    let slow = "56kbit".parse().ok();
    for (seed, path) in (0..).zip([(450, 0.01, None), (450, 0.1, None), (5, 0.0, slow), (450, 0.05, slow)]) {
        let probes = probes(seed, path);
        assert!(probes <= 15, "{path:?}: {probes} probes");
    }
    // Where one probe in three is lost or its answer is, how many there are is chance: 9 to 23.
    let all: Vec<usize> = (10..18).map(|seed| probes(seed, (100, 0.2, None))).collect();
    assert!(all.iter().sum::<usize>() <= 16 * all.len(), "{all:?}");
}

#[test]
fn outages_do_not_make_a_path_narrow() {
    for (seed, span) in (0..).zip([2, 5, 8, 12, 20, 40]) {
        let _seed = Seed(seed);
        let (mut network, mut streams) = streaming(seed, 4, millis(200), wire(20));
        for switch in [LinkSwitch::Down, LinkSwitch::Up] {
            network.link(A, B).switch = switch;
            network.link(B, A).switch = switch;
            Stream::run(&mut streams, &mut network, seconds(span), small_talk);
        }
        Stream::run(&mut streams, &mut network, seconds(10), small_talk);
        assert_eq!(inner(&network), wide(&wire(20)), "after {span} s");
        assert_eq!(streams[0].step, FULL, "after {span} s");
    }
}
