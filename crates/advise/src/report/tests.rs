use core::time::Duration;

use strait_compress::Calibration;
use strait_model::{BreakEven, ByteRates, Bytes, LinkRates, Ratio};
use strait_scheduler::Rate;
use strait_sim::FlowShape;
use strait_wire::tcp::TcpFlags;

use super::*;
use crate::{CapturedFrame, LinkType, ReplayLink, TunnelVariant};

const CONDITIONS: Conditions = Conditions {
    price: Some(5.0),
    round_trip: Some(Duration::from_millis(600)),
    caches: CacheBounds {
        today: CacheSizes { peers: 3, certificates: 6 },
        most: CacheSizes { peers: 8, certificates: 12 },
    },
};

fn report(packets: &[Vec<u8>], kept: usize) -> AdviseReport {
    let machine = MachineModel::assumed();
    let rate = Rate::from_bits(1_000_000).unwrap();
    let mut replay = TunnelReplay::new(ReplayLink::of(rate), &machine).with_policies(&machine);
    replay.begin(None);
    for bytes in packets {
        let frame = CapturedFrame {
            at: strait_clock::Time::ZERO,
            link: LinkType::RAW,
            bytes: &bytes[..kept.min(bytes.len())],
            len: bytes.len(),
        };
        replay.frame(&frame).unwrap();
    }
    replay.finish();
    let input = Input {
        name: "here".to_owned(),
        kind: Some(CaptureKind::Pcap),
        frames: 3,
        dropped_frames: 0,
        error: None,
    };
    AdviseReport::new(&replay, &machine, &CONDITIONS, vec![input])
}

fn shape() -> FlowShape {
    FlowShape::new(([10, 0, 0, 1], 50_000).into(), ([10, 9, 0, 1], 80).into())
}

fn text() -> Vec<Vec<u8>> {
    let page = b"<tr><td>another row</td><td>of the very same table</td></tr>\n".repeat(22);
    (0..200).map(|number| shape().tcp(number * 1_000, TcpFlags::ACK, &page[number as usize % 60..])).collect()
}

fn noise(len: usize) -> Vec<Vec<u8>> {
    let mut random = strait_clock::Random::new(1);
    let mut bytes = || (0..len).map(|_| random.next_u64().to_le_bytes()[0]).collect::<Vec<u8>>();
    (0..200).map(|number| shape().tcp(number * 1_000, TcpFlags::ACK, &bytes())).collect()
}

/// But for rounding.
fn are_equal(one: f64, other: f64) -> bool {
    (one - other).abs() <= other.abs() * 1e-12
}

#[test]
fn time_and_money_are_those_of_the_bytes() {
    let report = report(&text(), usize::MAX);
    for sent in &report.total.sent {
        assert!(are_equal(sent.link_busy_seconds, sent.wire_bytes as f64 * 8.0 / 1e6), "{sent:?}");
        assert!(are_equal(sent.cost.unwrap(), sent.wire_bytes as f64 * 5.0 / 1e9), "{sent:?}");
    }
    assert_eq!(report.total.on(TunnelVariant::Both).unwrap().wire_bytes, report.total.sent[3].wire_bytes);
    assert_eq!(report.total.packets, 200);
}

#[test]
fn summary_names_the_gain() {
    assert_eq!(report(&text(), usize::MAX).total.verdict, AdviseVerdict::Compression);
    assert_eq!(report(&noise(1_400), usize::MAX).total.verdict, AdviseVerdict::Nothing);
    assert_eq!(report(&text(), 60).total.verdict, AdviseVerdict::NotCaptured);
    assert_eq!(report(&[], 0).total.verdict, AdviseVerdict::Empty);
    assert_eq!(report(&noise(300), usize::MAX).total.verdict, AdviseVerdict::Aggregation);
}

#[test]
fn break_evens_are_the_inequalitys() {
    let report = report(&text(), usize::MAX);
    let (total, calibration) = (&report.total, Calibration::assumed());
    assert_eq!(total.codecs.len(), calibration.figures().len());
    let path = ByteRates { further: MachineModel::assumed().handling(), ..ByteRates::default() };
    let mut most: f64 = 0.0;
    for (tried, speed) in total.codecs.iter().zip(calibration.figures()) {
        assert!(tried.block_ratio > tried.packet_ratio && tried.packet_ratio > 1.0, "{tried:?}");
        // Whole blocks of 64 KiB, or nearly so.
        let rate = |cost: &strait_model::Cost| cost.rate(Bytes(60_000)).unwrap();
        let rates = LinkRates { compress: rate(&speed.compress), decompress: rate(&speed.expand) };
        let ratio = Ratio::new(tried.block_ratio).unwrap();
        let (BreakEven::At(expected), UpTo::Rate(bits)) =
            (path.network_up_to(ratio, &rates), tried.break_even)
        else {
            panic!("{tried:?}")
        };
        assert!((bits / expected.as_bits() - 1.0).abs() < 0.1, "{tried:?} {expected:?}");
        most = most.max(bits);
    }
    assert_eq!(total.break_even, UpTo::Rate(most));
    assert_eq!(self::report(&noise(1_400), usize::MAX).total.break_even, UpTo::Never);
}

#[test]
fn the_faster_of_two_limits() {
    let (slow, fast) = (UpTo::Rate(1.0), UpTo::Rate(2.0));
    assert_eq!((slow.or(fast), fast.or(slow)), (fast, fast));
    assert_eq!((UpTo::Never.or(slow), slow.or(UpTo::Never)), (slow, slow));
    assert_eq!((UpTo::Always.or(slow), UpTo::Never.or(UpTo::Always)), (UpTo::Always, UpTo::Always));
}

#[test]
fn what_goes_back_is_in_the_report() {
    let report = report(&text(), usize::MAX);
    for (back, sent) in report.returned.iter().zip(&report.total.sent) {
        assert_eq!(back.way, sent.way);
        // 120 for the first datagram, then a thousandth; receipts for the last blocks; a byte cache's sender asks once what is held,
        // and is told.
        let more = match sent.way {
            TunnelVariant::History => 72,
            TunnelVariant::Cache => 3 * 72,
            _ => 0,
        };
        let most = 120 + more + sent.wire_bytes / 500;
        assert!((120..=most).contains(&back.wire_bytes), "{back:?} of {sent:?}");
    }
}

#[test]
fn pairs_wait_half_a_round_trip_a_turn() {
    let back = FlowShape::new(([10, 9, 0, 1], 80).into(), ([10, 0, 0, 1], 50_000).into());
    let turn = [shape().tcp(1, TcpFlags::ACK, b"a"), back.tcp(1, TcpFlags::ACK, b"b")];
    let packets: Vec<_> = turn.iter().cycle().take(10).cloned().collect();
    let report = report(&packets, usize::MAX);
    let waits = report.pairs.classes[0].waits.unwrap();
    assert!(waits.turns == 9 && are_equal(waits.seconds.unwrap(), 2.7), "{waits:?}");
    assert!(report.total.waits.is_none() && report.services.classes[0].waits.is_none());
}

#[test]
fn rules_are_suggested_for_services_that_shrink_and_for_no_others() {
    let rule = SuggestedRule {
        service: "http (tcp 80)".to_owned(),
        toml: "[[compress]]\nfrom = \"0.0.0.0/0\"\nto = \"0.0.0.0/0\"\nprotocol = \"tcp\"\nports = [80]\ndomain = \"tcp 80\"\n"
            .to_owned(),
    };
    assert_eq!(report(&text(), usize::MAX).rules, [rule]);
    assert_eq!(report(&noise(1_400), usize::MAX).rules, []);
    // Only headers were captured: nothing is known of the rest.
    assert_eq!(report(&text(), 60).rules, []);
}

#[test]
fn json_has_its_keys() {
    let json = serde_json::to_value(report(&text(), usize::MAX)).unwrap();
    assert_eq!(json["link"]["rate_bits_per_second"], 1_000_000);
    assert_eq!(json["inputs"][0]["kind"], "pcap");
    assert_eq!(json["total"]["sent"][3]["mode"], "both");
    assert_eq!(json["total"]["verdict"], "compression");
    assert_eq!(json["services"]["classes"][0]["name"], "http (tcp 80)");
    assert!(json["total"]["codecs"][0]["method"].is_string());
    assert!(json["total"]["break_even"].is_number());
    assert!(json["services"]["others"].is_null());
}

#[test]
fn every_json_key_has_a_line_in_the_reference_and_every_line_a_key() {
    let pinned: Vec<_> = [1, 2, 3, 4, 5, 1].map(of_peer).to_vec();
    let key_caches = report(&pinned, usize::MAX).key_caches;
    let mut report = report(&text(), usize::MAX);
    let total = report.services.classes[0].clone();
    report.services.others = Some(Others { count: 1, total });
    report.key_caches = key_caches;
    let mut found = std::collections::BTreeSet::new();
    let shared = Some(("not_captured_bytes", "CLASS"));
    strait_testdata::reference::json_keys(&serde_json::to_value(&report).unwrap(), "", shared, &mut found);
    for kind in ["protocols", "pairs"] {
        let (others, total) = (format!("{kind}.others.count"), format!("{kind}.others.total"));
        found.extend([others, total]);
    }
    let mut rows = strait_testdata::reference::rows("json.md");
    rows.retain(|row| row.heading.starts_with("strait advise"));
    let documented = rows.iter().filter_map(|row| row.name().map(str::to_owned));
    assert_eq!(found, documented.collect());
}

/// A packet of one peer of a hub.
fn of_peer(peer: u8) -> Vec<u8> {
    FlowShape::new(([10, 0, 0, 1], 50_000).into(), ([10, 9, 0, peer], 80).into()).tcp(1, TcpFlags::ACK, b"a")
}

/// Twice all peers from 2 to 8, and between them the first.
fn of_many() -> Vec<Vec<u8>> {
    (2..=8).cycle().take(14).flat_map(|peer| [of_peer(peer), of_peer(1)]).collect()
}

#[test]
fn one_peer_needs_no_advice_on_caches_and_many_get_sizes_and_costs() {
    assert_eq!(report(&text(), usize::MAX).key_caches, None);
    let advice = report(&of_many(), usize::MAX).key_caches.unwrap();
    assert_eq!((advice.peers, advice.changes, advice.left_out, advice.pins.len()), (8, 28, 0, 0));
    assert!(!advice.holds_today());
    let [keys, peers, certificates] = &advice.tiers[..] else { panic!("{advice:?}") };
    assert_eq!((keys.misses.today, keys.today), (8, None));
    // Of the first, no cache of 3 misses a return; of the others each return was 7 peers ago.
    assert_eq!(
        (peers.today, peers.enough, peers.misses),
        (Some(3), Some(8), TierMisses { today: 7, enough: 0 })
    );
    assert!(are_equal(peers.seconds.today, 7.0 * 165e-6) && peers.seconds.enough <= advice.allowed_seconds);
    assert_eq!((certificates.misses.today, certificates.enough), (7, Some(8)));
    assert!(are_equal(certificates.miss_seconds, 0.600_265));
    let bare = "[directory]\ncertificates = \"on demand\"\nmax_peers = 8\nmax_certificates = 8\n";
    assert_eq!(advice.toml, bare);
}

#[test]
fn a_peer_that_others_would_push_out_is_pinned() {
    let once: Vec<u8> = (10..210).collect();
    let turns = once.chunks(20).flat_map(|turn| turn.iter().copied().chain([1]));
    let advice = report(&turns.map(of_peer).collect::<Vec<_>>(), usize::MAX).key_caches.unwrap();
    assert_eq!(advice.pins, [PinnedHost { address: [10, 9, 0, 1].into(), returns: 9 }]);
    assert_eq!(advice.tiers[1].enough, Some(2));
    assert!(advice.toml.ends_with("pin = [\"10.9.0.1\"]\n"), "{}", advice.toml);
}
