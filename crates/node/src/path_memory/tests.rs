use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use strait_keying::PrivateKey;

use super::*;

const NOW: u64 = 1_790_000_000;

fn key(peer: u8, interface: &str, gateway: Option<&str>, endpoint: &str) -> PathKey {
    let peer = PrivateKey::generate(&[peer; 32]).public();
    let gateway = gateway.map(|gateway| gateway.parse().unwrap());
    PathKey::new(peer, interface.to_owned(), gateway, endpoint.parse().unwrap())
}

fn found(mbit: u64, loss: f64) -> PathFound {
    PathFound::new(
        Rate::from_bits(mbit * 1_000_000),
        Some(Duration::from_millis(50)),
        LossPattern { share: loss, burst: 1.5 },
        NOW,
    )
}

fn any_path() -> impl Strategy<Value = (PathKey, PathFound)> {
    let key = (0..4_u8, "[!-~]{1,15}", proptest::option::of(any::<IpAddr>()), any::<IpAddr>()).prop_map(
        |(peer, interface, gateway, endpoint)| {
            PathKey::new(PrivateKey::generate(&[peer; 32]).public(), interface, gateway, endpoint)
        },
    );
    let round_trip = proptest::option::of(0..=ROUND_TRIP_MAX);
    let rate = proptest::option::of(
        (Rate::MIN.bits()..=Rate::MAX.bits()).prop_map(|bits| Rate::from_bits(bits).unwrap()),
    );
    let bursts = 1000..=(BURST_MAX * 1000.0) as u32;
    let found = (rate, round_trip, 0..=MILLION, bursts, NOW - AGE_MAX..2 * NOW)
        .prop_map(|(rate, round_trip, loss, burst, at)| PathFound { rate, round_trip, loss, burst, at });
    (key, found)
}

fn any_place() -> impl Strategy<Value = (u16, PlaceFound)> {
    let place = (any::<IpAddr>(), 1..=u16::MAX, NOW - AGE_MAX..2 * NOW)
        .prop_filter("an address of a host", |(ip, ..)| !ip.is_multicast() && !ip.is_unspecified());
    (0..400_u16, place)
        .prop_map(|(peer, (ip, port, at))| (peer, PlaceFound { endpoint: (ip, port).into(), at }))
}

fn peer(number: u16) -> PublicKey {
    PublicKey::from_bytes([number.to_be_bytes(); 16].concat().try_into().unwrap())
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        paths in proptest::collection::vec(any_path(), 0..200),
        places in proptest::collection::vec(any_place(), 0..400),
    ) {
        let mut memory = PathMemory::default();
        for (number, found) in places {
            if memory.note_place(peer(number), found) {
                prop_assert_eq!(memory.place(&peer(number)), Some(found));
            }
        }
        for (key, found) in paths {
            memory.note(key.clone(), found);
            prop_assert_eq!(memory.get(&key).unwrap().losses(), found.losses());
        }
        prop_assert!(memory.len() <= PATHS_MAX);
        let bytes = memory.render();
        prop_assert!(bytes.len() <= PATH_FILE_MAX, "{} bytes", bytes.len());
        prop_assert_eq!(PathMemory::parse(&bytes, NOW).unwrap(), memory);
    }

    #[test]
    fn other_bytes_are_refused_or_read_as_something_that_can_be_written(
        path in any_path(), place in any_place(), at in any::<proptest::sample::Index>(), byte: u8,
    ) {
        let mut memory = PathMemory::default();
        memory.note_place(peer(place.0), place.1);
        memory.note(path.0, path.1);
        let mut bytes = memory.render();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(memory) = PathMemory::parse(&bytes, NOW) {
            prop_assert_eq!(PathMemory::parse(&memory.render(), NOW).unwrap(), memory);
        }
    }
}

#[test]
fn every_truncated_file_is_refused() {
    let mut memory = PathMemory::default();
    memory.note(key(1, "wlan0", Some("192.168.1.1"), "198.51.100.7"), found(10, 0.01));
    let bytes = memory.render();
    // Without its line end it is whole.
    for len in 0..bytes.len() - 1 {
        assert!(PathMemory::parse(&bytes[..len], NOW).is_err(), "{len} bytes");
    }
    assert!(matches!(PathMemory::parse(&vec![b' '; PATH_FILE_MAX + 1], NOW), Err(PathMemoryError::TooLong)));
}

#[test]
fn place_is_news_when_it_is_another_or_a_day_later() {
    let mut memory = PathMemory::default();
    let at = |endpoint: &str, at| PlaceFound { endpoint: endpoint.parse().unwrap(), at };
    assert!(memory.note_place(peer(1), at("198.51.100.7:51820", NOW)));
    assert!(!memory.note_place(peer(1), at("198.51.100.7:51820", NOW + 600)));
    assert_eq!(memory.place(&peer(1)).unwrap().at, NOW + 600);
    assert!(memory.note_place(peer(1), at("198.51.100.7:1024", NOW + 601)));
    // It is looked at every few seconds.
    let news =
        (0..150).filter(|look| memory.note_place(peer(1), at("198.51.100.7:1024", NOW + 601 + look * 600)));
    assert_eq!(news.count(), 1, "once a day");
    for nowhere in
        ["198.51.100.7:0", "0.0.0.0:1024", "[::]:1024", "224.0.0.1:1024", "255.255.255.255:9", "[ff02::1]:9"]
    {
        assert!(!memory.note_place(peer(1), at(nowhere, NOW + 90_000)), "{nowhere}");
    }
    let long = memory.place(&peer(1)).unwrap().at;
    assert_eq!(memory.place(&peer(2)), None);
    // What an earlier release wrote has no places, and what is old is none.
    assert_eq!(PathMemory::parse(b"{\"version\": 1, \"paths\": []}", NOW).unwrap(), PathMemory::default());
    let late = PathMemory::parse(&memory.render(), long + 1 + AGE_MAX).unwrap();
    assert_eq!(late.place(&peer(1)), None);
}

#[test]
fn of_more_peers_than_there_is_room_for_those_stay_that_were_heard_within_the_hour() {
    let mut memory = PathMemory::default();
    let found = |number: u16, at| PlaceFound { endpoint: ([10, 0, 0, 1], number).into(), at };
    for number in 1..=256 {
        assert!(memory.note_place(peer(number), found(number, NOW + u64::from(number))));
    }
    assert!(!memory.note_place(peer(300), found(300, NOW + 3600)));
    assert_eq!(memory.place(&peer(300)), None);
    assert!(memory.note_place(peer(300), found(300, NOW + 3602)));
    assert_eq!((memory.place(&peer(1)), memory.place(&peer(2)).is_some()), (None, true));
    assert_eq!(PathMemory::parse(&memory.render(), NOW).unwrap(), memory);
}

#[test]
fn paths_differ_by_peer_interface_gateway_and_network_of_the_endpoint() {
    let mut memory = PathMemory::default();
    let home = key(1, "wlan0", Some("192.168.1.1"), "198.51.100.7");
    memory.note(home.clone(), found(10, 0.0));
    assert_eq!(memory.get(&key(1, "wlan0", Some("192.168.1.1"), "198.51.100.250")), Some(found(10, 0.0)));
    assert_eq!(
        memory.get(&key(1, "wlan0", Some("192.168.1.1"), "::ffff:198.51.100.9")),
        Some(found(10, 0.0))
    );
    for other in [
        key(2, "wlan0", Some("192.168.1.1"), "198.51.100.7"),
        key(1, "wwan0", Some("192.168.1.1"), "198.51.100.7"),
        key(1, "wlan0", Some("192.168.1.254"), "198.51.100.7"),
        key(1, "wlan0", None, "198.51.100.7"),
        key(1, "wlan0", Some("192.168.1.1"), "198.51.101.7"),
        key(1, "wlan0", Some("192.168.1.1"), "2001:db8::7"),
    ] {
        assert_eq!(memory.get(&other), None, "{other:?}");
    }
}

#[test]
fn values_that_cannot_be_are_named_with_their_entry() {
    let mut memory = PathMemory::default();
    memory.note(key(1, "wlan0", None, "198.51.100.7"), found(10, 0.01));
    memory.note(key(1, "wwan0", None, "198.51.100.7"), found(10, 0.01));
    memory.note_place(peer(1), PlaceFound { endpoint: "192.0.2.9:51820".parse().unwrap(), at: NOW });
    let text = String::from_utf8(memory.render()).unwrap();
    for (from, to, expected) in [
        ("192.0.2.9:51820", "192.0.2.9:0", "entry 1 of its places has an impossible endpoint"),
        ("192.0.2.9:51820", "0.0.0.0:1", "entry 1 of its places has an impossible endpoint"),
        ("192.0.2.9:51820", "[ff02::1]:1", "entry 1 of its places has an impossible endpoint"),
        ("192.0.2.9:51820", "b.example:1", "it is not what Strait writes"),
        ("\"heard_at\"", "\"heard\"", "it is not what Strait writes"),
        ("\"wwan0\"", "\"no interface is so long\"", "entry 2 of its paths has an impossible interface"),
        ("\"wlan0\"", "\"a b\"", "entry 1 of its paths has an impossible interface"),
        ("198.51.100.0/24", "198.51.100.0/25", "entry 1 of its paths has an impossible endpoint_network"),
        ("10000000", "1", "entry 1 of its paths has an impossible rate_bits_per_second"),
        ("50000", "60000001", "entry 1 of its paths has an impossible min_rtt_microseconds"),
        ("10000,", "1000001,", "entry 1 of its paths has an impossible lost_per_million"),
        ("\"version\": 1", "\"version\": 2", "it has version 2, and this release reads version 1"),
        ("\"peer\": \"", "\"peer\": \"A", "entry 1 of its paths has an impossible peer"),
        ("\"paths\"", "\"ways\"", "it is not what Strait writes"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let said = PathMemory::parse(changed.as_bytes(), NOW).unwrap_err().to_string();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn old_paths_are_forgotten_and_of_many_those_used_last_stay() {
    let mut memory = PathMemory::default();
    let one = |number: usize| key(1, &format!("if{number}"), None, "198.51.100.7");
    (0..PATHS_MAX + 10).for_each(|number| {
        memory.note(one(number), found(10, 0.0));
        memory.note(one(0), found(10, 0.0));
    });
    assert_eq!((memory.len(), memory.get(&one(5)), memory.get(&one(0)).is_some()), (PATHS_MAX, None, true));
    let bytes = memory.render();
    assert_eq!(PathMemory::parse(&bytes, NOW + AGE_MAX).unwrap(), memory);
    assert!(PathMemory::parse(&bytes, NOW + AGE_MAX + 1).unwrap().is_empty());
    assert_eq!(PathMemory::parse(&bytes, 0).unwrap(), memory, "a clock that was never set");
}

#[test]
fn only_what_differs_is_worth_a_write() {
    let mut memory = PathMemory::default();
    let path = key(1, "wlan0", None, "198.51.100.7");
    let mut note = |found| memory.note(path.clone(), found);
    assert!(note(found(100, 0.01)));
    assert!(!note(found(105, 0.012)));
    assert!(note(found(80, 0.012)));
    assert!(note(found(80, 0.03)));
    let unlimited = PathFound { rate: None, ..found(80, 0.03) };
    assert!(!note(unlimited), "the rate that was found stays");
    assert!(note(PathFound { at: NOW + 2 * 24 * 3600, ..unlimited }), "it is still so");
    assert_eq!(memory.get(&path).unwrap().rate, Rate::from_bits(80_000_000));
}

#[test]
fn a_file_is_put_in_place_whole_for_its_user_only_and_a_bad_one_is_begun_anew() {
    let folder = std::env::temp_dir().join(format!("strait-paths-{}", std::process::id()));
    let file = PathFile::at(folder.join("state").join("strait0.paths"));
    assert!(file.read().is_empty());
    let mut memory = PathMemory::default();
    let at = file::unix_time();
    memory.note(key(1, "wlan0", None, "198.51.100.7"), PathFound { at, ..found(10, 0.01) });
    for _ in 0..2 {
        file.write(&memory).unwrap();
        assert_eq!(file.read(), memory);
    }
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file.path()), mode(&folder.join("state"))), (0o600, 0o700));
    assert_eq!(std::fs::read_dir(folder.join("state")).unwrap().count(), 1, "no draft stays");
    std::fs::write(file.path(), b"{\"version\": 1").unwrap();
    assert!(file.read().is_empty());
    file.write(&memory).unwrap();
    assert_eq!(file.read(), memory);
    std::fs::remove_dir_all(folder).unwrap();
}
