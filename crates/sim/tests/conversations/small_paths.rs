//! Paths over IPv4 that take less than a datagram of QUIC, or less than IPv6 asks for.

use std::sync::atomic::Ordering;

use strait_sim::LinkSettings;
use strait_stream::StreamPriority;

use crate::stage::{A, B, Seed, Talk, joined, log, millis, pair, seconds};
use crate::stream::Stream;

/// Sizes of paths: less than QUIC's 1,228, what packet radios and serial lines have, and the least that all are taken to carry.
const SMALL: [u16; 5] = [1240, 1227, 1006, 700, 576];

fn wire(mtu: u16) -> LinkSettings {
    LinkSettings { mtu, delay: millis(30), ..LinkSettings::default() }
}

#[test]
fn a_path_of_any_size_comes_up_and_carries_everything() {
    for mtu in SMALL {
        for (forth, back) in [(mtu, mtu), (mtu, 1500), (1500, mtu)] {
            let _seed = Seed(mtu.into());
            let mut network = pair(mtu.into(), |pair| (pair.forth, pair.back) = (wire(forth), wire(back)));
            let up = network.run_until_up(A, B, seconds(10));
            assert!(up, "{forth} and {back}: {:?} {:?}", log(&network, A), log(&network, B));

            let mut streams = [(A, B, 2000), (B, A, 2002)]
                .map(|(from, to, port)| Stream::new(from, to, port, 1380, 4, millis(200)));
            Stream::run(&mut streams, &mut network, seconds(20), |_| {});
            for stream in &streams {
                let stood = stream.standstill(network.now());
                assert!(stood < seconds(2), "{forth} and {back}: {stood:?}");
            }
            let mut talk = Talk::new(A, B, 80);
            talk.run(&mut network, seconds(5), millis(50));
            talk.finish(&mut network);
            talk.assert_arrived();

            network.send_stream(A, B, 100_000, StreamPriority::Normal);
            network.send_stream(B, A, 100_000, StreamPriority::Normal);
            let read =
                |node| move |network: &strait_sim::SimNetwork| network.node(node).streams().tally().read;
            let done = network
                .run_until(seconds(20), |network| read(A)(network) >= 100_000 && read(B)(network) >= 100_000);
            assert!(done, "{forth} and {back}: {} {}", read(A)(&network), read(B)(&network));
            assert_eq!(network.node(A).handshakes(), 1, "{:?}", log(&network, A));
        }
    }
}

#[test]
fn a_path_that_becomes_small_goes_on_at_the_third_retransmission() {
    for mtu in SMALL {
        let _seed = Seed(mtu.into());
        let mut network = joined(mtu.into(), |pair| (pair.forth, pair.back) = (wire(1500), wire(1500)));
        let mut streams = [(A, B, 2000), (B, A, 2002)]
            .map(|(from, to, port)| Stream::new(from, to, port, 1380, 4, millis(200)));
        Stream::run(&mut streams, &mut network, seconds(10), |_| {});
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).settings.mtu = mtu;
        }
        streams.iter_mut().for_each(Stream::forget);
        Stream::run(&mut streams, &mut network, seconds(60), |_| {});
        for stream in &streams {
            let stood = stream.standstill(network.now());
            assert!(stood < millis(7 * 200 + 200), "{mtu}: {stood:?}");
        }
        // The size is found in the end, in both directions.
        for (from, to) in [(A, B), (B, A)] {
            let shown = network.node(from).peer_counters(to).stream.outer();
            // ESP pads to four bytes, so that no datagram has some sizes.
            assert!(shown.is_some_and(|outer| (mtu - 7..mtu + 4).contains(&outer)), "{mtu}: {shown:?}");
            let inner = network.node(from).peer_counters(to).inner_mtu.load(Ordering::Relaxed);
            assert_eq!(inner, 1280);
        }
    }
}
