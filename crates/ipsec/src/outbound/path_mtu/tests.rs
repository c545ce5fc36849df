use strait_wire::ip::Version;
use strait_wire::{Protocol, vnet};

use super::*;
use crate::sample::Shape;

/// Runs the search over a path of `real` bytes and says what it found and how many probes it took.
fn found(path: &mut PathMtu, real: u16, from: Time, seconds: u64) -> (u16, usize) {
    let (mut probes, heard) = (0, Tally::default());
    for tick in 0..seconds * 10 {
        let now = from + Duration::from_millis(tick * 100);
        path.note_sent(1500);
        heard.add(1);
        if let Some(wanted) = path.poll(now, &heard) {
            probes += 1;
            if wanted.size <= real {
                path.answered(wanted.id, wanted.size, now);
            }
        }
    }
    (path.outer(), probes)
}

#[test]
fn finds_every_size_within_its_tolerance() {
    for real in (1280..=1500).step_by(7) {
        let mut path = PathMtu::search(1500, None);
        let (outer, _) = found(&mut path, real, Time::ZERO, 60);
        assert!(outer <= real && real - outer < ENOUGH, "{real} {outer}");
        assert!(!path.is_searching());
    }
}

#[test]
fn an_ordinary_path_takes_one_probe() {
    let mut path = PathMtu::search(1500, None);
    assert_eq!(found(&mut path, 1500, Time::ZERO, 25), (1500, 1));
}

#[test]
fn small_datagrams_need_no_confirmation() {
    let mut path = PathMtu::search(1500, None);
    found(&mut path, 1500, Time::ZERO, 10);
    let confirmed = path.poll(Time::from_millis(40_000), &Tally::default()).unwrap();
    path.answered(confirmed.id, confirmed.size, Time::from_millis(40_000));
    let probes = (40..10_000)
        .filter(|second| path.poll(Time::from_millis(second * 1000), &Tally::default()).is_some());
    assert_eq!(probes.count(), 0);
}

#[test]
fn smaller_path_mtu_is_detected_and_larger_one_used() {
    let mut path = PathMtu::search(1500, None);
    found(&mut path, 1500, Time::ZERO, 10);
    let (outer, _) = found(&mut path, 1400, Time::from_millis(10_000), 130);
    assert!((1393..=1400).contains(&outer), "{outer}");
    let (outer, _) = found(&mut path, 1500, Time::from_millis(200_000), 800);
    assert_eq!(outer, 1500);
}

#[test]
fn doubted_mtu_is_unused_until_probe_is_answered() {
    let mut path = PathMtu::search(1500, None);
    found(&mut path, 1400, Time::ZERO, 60);
    let before = path.outer();
    let at = Time::from_millis(60_000);
    path.doubt(at);
    assert_eq!((path.outer(), path.is_searching()), (BASE, true));
    assert_eq!(found(&mut path, 1400, at, 5), (before, 1), "one probe proves it");
    assert!(!path.is_searching());

    path.doubt(at + Duration::from_secs(5));
    let (outer, _) = found(&mut path, 1320, at + Duration::from_secs(5), 60);
    assert!((1313..=1320).contains(&outer), "{outer}");
    let mut fixed = PathMtu::fixed(1400);
    fixed.doubt(Time::ZERO);
    assert_eq!(fixed.outer(), 1400);
}

#[test]
fn path_mtu_grows_despite_doubts() {
    let mut path = PathMtu::search(1500, None);
    found(&mut path, 1400, Time::ZERO, 60);
    for second in (60..700).step_by(10) {
        let at = Time::from_millis(second * 1000);
        path.doubt(at);
        found(&mut path, 1500, at, 10);
    }
    assert_eq!(path.outer(), 1500);
}

#[test]
fn size_refused_by_the_system_is_not_retried() {
    let mut path = PathMtu::search(1500, None);
    assert_eq!(path.poll(Time::ZERO, &Tally::default()).map(|wanted| wanted.size), Some(1500));
    path.refused(1500, Time::ZERO);
    let next = path.poll(Time::ZERO, &Tally::default()).map(|wanted| wanted.size);
    assert!(next.is_some_and(|size| size < 1500), "{next:?}");
    let (outer, probes) = found(&mut path, 1420, Time::ZERO, 60);
    assert!((1413..=1420).contains(&outer) && probes < 20, "{outer} after {probes} probes");
}

#[test]
fn unexpected_probe_answers_are_ignored() {
    let mut path = PathMtu::search(1500, None);
    for size in [0, 1, 1279, 1280, 1400, 1500, 1501, u16::MAX] {
        assert!((0..20).all(|id| !path.answered(id, size, Time::ZERO)), "{size} was not asked");
    }
    let Wanted { id, size, .. } = path.poll(Time::ZERO, &Tally::default()).unwrap();
    for (id, size) in [(id, size - 1), (id, size + 1), (id + 1, size), (id + 8, size)] {
        assert!(!path.answered(id, size, Time::ZERO), "{id} {size}");
    }
    assert_eq!(path.outer(), BASE);
    assert!(path.answered(id, size, Time::ZERO));
    assert!(!path.answered(id, size, Time::ZERO), "a second time");
    let mut fixed = PathMtu::fixed(1400);
    fixed.refused(1400, Time::ZERO);
    assert_eq!(fixed.outer(), 1400, "as the file says");
    assert!(!fixed.answered(0, 1500, Time::ZERO) && fixed.poll(Time::MAX, &Tally::default()).is_none());
}

#[test]
fn answers_held_back_until_the_peer_moved_or_a_doubt_arose_are_ignored() {
    let mut path = PathMtu::search(1500, None);
    let held = path.poll(Time::ZERO, &Tally::default()).unwrap();
    path.restart(None, Time::ZERO);
    assert!(!path.answered(held.id, held.size, Time::from_millis(1)));
    assert_eq!(path.outer(), BASE, "another path");

    let mut path = settled(1500);
    let at = Time::from_millis(95_000);
    path.note_sent(1500);
    let held = path.poll(at, &Tally::default()).unwrap();
    path.doubt(at);
    assert!(!path.answered(held.id, held.size, at));
    assert_eq!(path.outer(), BASE, "what passed before the doubt proves nothing");
    assert_eq!(found(&mut path, 1500, at, 5), (1500, 1));
}

/// A settled search over a path of `real` bytes.
fn settled(real: u16) -> PathMtu {
    let mut path = PathMtu::search(1500, None);
    found(&mut path, real, Time::ZERO, 60);
    assert!(!path.is_searching());
    path
}

#[test]
fn over_ipv4_smaller_sizes_are_found_too() {
    let to = |endpoint: &str| Some(endpoint.parse().unwrap());
    for real in (576..=1500).step_by(7) {
        let mut path = PathMtu::search(1500, to("192.0.2.1:500"));
        assert_eq!(path.outer(), BASE, "relied upon at first");
        let (outer, _) = found(&mut path, real, Time::ZERO, 60);
        assert!(outer <= real && real - outer < ENOUGH, "{real} {outer}");
        assert!(!path.is_searching());
        // The first doubt leaves what every path takes.
        path.note_sent(1500);
        path.doubt(Time::from_millis(60_000));
        assert_eq!(path.outer(), BASE_V4);
        let (again, _) = found(&mut path, real, Time::from_millis(60_000), 60);
        assert!(again <= real && real - again < ENOUGH, "{real} {again}");
    }
    for endpoint in ["[2001:db8::1]:500", "[::ffff:192.0.2.1]:500"] {
        let path = PathMtu::search(1500, to(endpoint));
        assert_eq!(path.is_of_another_version("192.0.2.1:500".parse().unwrap()), endpoint.starts_with("[2"));
    }
}

#[test]
fn after_a_doubt_the_least_of_ipv6_is_tried_beside_the_size_in_doubt() {
    let mut path = PathMtu::search(1500, Some("192.0.2.1:500".parse().unwrap()));
    let at = |millis: u64| Time::from_millis(60_000 + millis);
    found(&mut path, 1400, Time::ZERO, 60);
    let heard = Tally::default();
    path.note_sent(1400);
    path.doubt(at(0));
    let first = path.poll(at(0), &heard).unwrap();
    let second = path.poll(at(0), &heard).unwrap();
    assert!(first.size == BASE && second.size > 1390, "{first:?} {second:?}");
    assert!(path.poll(at(0), &heard).is_none());
    assert!(!path.answered(first.id, first.size, at(30)), "hosts hear nothing of it");
    assert_eq!(path.outer(), BASE);
    // TCP inside that goes on to send the same does not make the answer that is on its way worthless.
    let packet = Shape::new(Version::V4, Protocol::TCP, vec![7; 1000]).packet();
    for _ in 0..3 {
        path.watch(&SuperPacket::new(&packet, &vnet::Header::default()).unwrap(), 1226, at(40));
    }
    assert_eq!(path.outer(), BASE_V4);
    assert!(path.answered(second.id, second.size, at(60)));
    assert_eq!(path.outer(), second.size);
}

#[test]
fn silent_peer_puts_no_size_in_doubt() {
    for outage in 1..120 {
        let (mut path, heard) = (settled(1500), Tally::default());
        let (mut large, mut small) = (0, 0);
        for tick in 0..outage * 10 {
            path.note_sent(1500);
            match path.poll(Time::from_millis(95_000 + tick * 100), &heard) {
                Some(wanted) if wanted.size == ANY_SIZE => small += 1,
                Some(_) => large += 1,
                None => {}
            }
        }
        assert!(large == 1 && small <= outage, "{large} and {small} in {outage} s");
        let (outer, _) = found(&mut path, 1500, Time::from_millis(95_000 + outage * 1000), 5);
        assert_eq!(outer, 1500, "after {outage} s");
    }
}

#[test]
fn search_succeeds_on_probe_answers_alone() {
    let (mut path, heard) = (settled(1500), Tally::default());
    for tick in 0..1200 {
        let now = Time::from_millis(95_000 + tick * 100);
        path.note_sent(1500);
        let Some(wanted) = path.poll(now, &heard) else { continue };
        heard.add(u64::from(wanted.again));
        if wanted.size <= 1400 {
            heard.add(1);
            path.answered(wanted.id, wanted.size, now);
        }
    }
    assert!(!path.is_searching() && (1393..=1400).contains(&path.outer()), "{path:?}");
}

#[test]
fn one_lost_probe_lowers_mtu_to_base_and_nine_more_restart_search() {
    let (mut path, heard) = (settled(1500), Tally::default());
    let mut outers = Vec::new();
    for second in 95..110 {
        heard.add(1);
        path.note_sent(1500);
        let size = path.poll(Time::from_millis(second * 1100), &heard).map(|wanted| wanted.size);
        outers.push((size, path.outer()));
    }
    let lost = |size, times| core::iter::repeat_n((Some(size), BASE), times);
    let expected = core::iter::once((Some(1500), 1500)).chain(lost(1500, 9)).chain(lost(1390, 3));
    assert_eq!(outers[..13], expected.collect::<Vec<_>>());
}

#[test]
fn large_tcp_segment_sent_three_times_puts_mtu_in_doubt() {
    let large = |protocol, len| Shape::new(Version::V4, protocol, vec![7; len]).packet();
    for (path, packet, doubted) in [
        (settled(1500), large(Protocol::TCP, 1380), true),
        (settled(1500), large(Protocol::TCP, 1240), true),
        // Larger paths are not needed for it.
        (settled(1500), large(Protocol::TCP, 1180), false),
        (settled(1500), large(Protocol::UDP, 1380), false),
        (settled(1280), large(Protocol::TCP, 1380), false),
        (PathMtu::fixed(1500), large(Protocol::TCP, 1380), false),
    ] {
        let mut path = path;
        let (found, room) = (path.outer(), usize::from(path.outer()) - 54);
        path.note_sent(1500);
        let mut outers = Vec::new();
        for _ in 0..3 {
            path.watch(
                &SuperPacket::new(&packet, &vnet::Header::default()).unwrap(),
                room,
                Time::from_millis(99_000),
            );
            outers.push(path.outer());
        }
        assert_eq!(outers, [found, found, if doubted { BASE } else { found }], "{} bytes", packet.len());
        assert_eq!(path.is_searching(), doubted);
    }
}

#[test]
fn mtu_found_so_far_can_be_put_in_doubt() {
    let mut path = PathMtu::search(1500, None);
    // 1,500 is lost three times, 1,390 passes, and while 1,445 is tried the path becomes narrow.
    let (outer, _) = found(&mut path, 1400, Time::ZERO, 5);
    assert_eq!((outer, path.is_searching()), (1390, true));
    path.note_sent(1390);
    path.doubt(Time::from_millis(5_000));
    assert_eq!((path.outer(), path.is_searching()), (BASE, true));
    let (outer, _) = found(&mut path, 1340, Time::from_millis(5_000), 60);
    assert!((1333..=1340).contains(&outer), "{outer}");
}

#[test]
fn assumed_mtu_yields_to_interface_mtu() {
    // What an interface that takes so much makes of what was assumed, in a few refusals.
    for (takes, found) in [(1500, 1500), (1499, 1492), (1450, 1420), (1280, 1280), (600, 576)] {
        let mut path = PathMtu::assumed(1505);
        let mut refusals = 0;
        while path.outer() > takes {
            path.refused(path.outer(), Time::ZERO);
            refusals += 1;
        }
        assert!(path.outer() == found && refusals < 9, "{takes}: {} after {refusals}", path.outer());
    }
    let mut least = PathMtu::assumed(576);
    least.refused(576, Time::ZERO);
    assert_eq!(least.outer(), 576, "less than every host takes is another failure");
}
