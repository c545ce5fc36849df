use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use proptest::prelude::*;

use super::*;

/// Some noon.
const NOON: u64 = 20_000 * DAY + 12 * HOUR;

fn minute(sent: u64, wire: u64) -> SavedSample {
    let amounts = SavedAmounts { sent_bytes: sent, sent_wire_bytes: wire, ..SavedAmounts::default() };
    SavedSample {
        amounts,
        packets: [sent / 1_000, 0],
        rate: 2_000_000,
        round_trip: 600_000,
        ..SavedSample::default()
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("strait-saved-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn minutes_are_kept_for_a_day_and_hours_for_400() {
    let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
    for day in 0..500_u64 {
        series.add(NOON + day * DAY, &minute(1_000_003 + day, 500_000));
    }
    let last = NOON + 499 * DAY;
    assert_eq!(series.minute(last).unwrap().rate, 2_000_000 / 1_024 * 1_024);
    assert_eq!(series.minute(last - DAY), None, "older than a day");
    assert_ne!(series.hour(last - 399 * DAY), SavedAmounts::default());
    assert_eq!(series.hour(last - 400 * DAY), SavedAmounts::default(), "older than 400 days");
    let all = series.between(0, last);
    let expected: u64 = (100..500).map(|day| 1_000_003 + day).sum();
    // Rounding is carried on, so that sums are right within one step of one hour.
    assert!(all.sent_bytes.abs_diff(expected) <= 1_024, "{} {expected}", all.sent_bytes);
}

#[test]
fn counts_that_come_one_by_one_are_not_lost_by_rounding() {
    let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
    let amounts = SavedAmounts { sent_bytes: 1, ..SavedAmounts::default() };
    let one = SavedSample { amounts, packets: [1, 3], dropped: 1, ..SavedSample::default() };
    for _ in 0..100_000 {
        series.add(NOON, &one);
    }
    let kept = series.minute(NOON).unwrap();
    for (kept, came) in [(kept.packets[0], 100_000), (kept.packets[1], 300_000), (kept.dropped, 100_000)] {
        assert!(came - kept <= came / 1_000, "{kept} of {came}");
    }
}

#[test]
fn what_is_written_is_read_again_and_adds_up_over_restarts() {
    let folder = folder("again");
    let path = folder.join("strait0.saved");
    let name = SavedName { kind: SavedKind::Peer, name: "site-b".to_owned() };
    let rule = SavedName { kind: SavedKind::Rule, ..name.clone() };
    for round in 0..3 {
        let mut file = SavedFile::open(&path).unwrap();
        assert!(matches!(SavedFile::open(&path), Err(SavedFileError::Busy(_))));
        file.series(&name).unwrap().add(NOON + round * MINUTE, &minute(1_000_000, 400_000));
        file.series(&rule).unwrap().add(NOON, &minute(900_000, 300_000));
        file.write().unwrap();
        let [peer, of_rule] = &read(&path).unwrap()[..] else { panic!("two series") };
        assert_eq!((peer.name(), of_rule.name()), (&name, &rule));
        let sum = peer.between(NOON - DAY, NOON + HOUR);
        assert!(sum.sent_bytes.abs_diff((round + 1) * 1_000_000) < 2_000, "{sum:?}");
        assert!(sum.wire().abs_diff((round + 1) * 400_000) < 2_000, "{sum:?}");
    }
    let found = fs::metadata(&path).unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
    assert!(found.len() <= 4_096 + 2 * 139_520, "{}", found.len());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_clock_that_jumps_adds_to_what_is_there_and_what_it_wrote_of_the_future_makes_room() {
    let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
    series.add(NOON, &minute(1_000, 500));
    series.add(NOON + HOUR, &minute(1_000, 500));
    // Back by an hour.
    series.add(NOON, &minute(1_000, 500));
    assert_eq!(series.hour(NOON).sent_bytes, 2_000);
    // To 2106, where numbers of minutes are still ones, and back.
    series.add(u64::from(u32::MAX), &minute(1_000, 500));
    series.add(NOON + 2 * HOUR, &minute(1_000, 500));
    assert_eq!(series.between(NOON, NOON + 2 * HOUR).sent_bytes, 4_000);
    series.add(u64::MAX, &minute(1_000, 500));
    series.add(0, &minute(1_000, 500));
    assert_eq!(series.hour(0).sent_bytes, 1_000);
}

#[test]
fn a_damaged_file_loses_what_is_damaged_and_one_of_another_kind_is_refused() {
    let folder = folder("damaged");
    let path = folder.join("strait0.saved");
    let name = |name: &str| SavedName { kind: SavedKind::Peer, name: name.to_owned() };
    let mut file = SavedFile::open(&path).unwrap();
    for peer in ["one", "two"] {
        file.series(&name(peer)).unwrap().add(NOON, &minute(1_000, 500));
    }
    file.write().unwrap();
    let whole = fs::metadata(&path).unwrap().len();
    // A byte of the hours of the first.
    let at = 4_096 + day_block(NOON / DAY) * BLOCK + 100;
    drop(file);
    fs::File::options().write(true).open(&path).unwrap().write_all_at(&[77], at as u64).unwrap();
    let sums = |path: &std::path::Path| -> Vec<u64> {
        read(path).unwrap().iter().map(|series| series.between(NOON, NOON).sent_bytes).collect()
    };
    assert_eq!(sums(&path), [0, 1_000]);
    fs::File::options().write(true).open(&path).unwrap().set_len(whole - 139_520).unwrap();
    let left = read(&path).unwrap();
    assert_eq!(left.last().unwrap().between(NOON, NOON).sent_bytes, 0, "cut short");
    fs::write(&path, b"strait saved 9\0\0").unwrap();
    for refused in [read(&path).err(), SavedFile::open(&path).err()] {
        assert!(refused.unwrap().to_string().contains("move it away"));
    }
    assert_eq!(fs::read(&path).unwrap(), b"strait saved 9\0\0", "and is left as it is");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn no_more_than_256_series_are_kept() {
    let folder = folder("many");
    let mut file = SavedFile::open(&folder.join("strait0.saved")).unwrap();
    let kept = (0..300).filter(|number| {
        file.series(&SavedName { kind: SavedKind::Peer, name: number.to_string() }).is_some()
    });
    assert_eq!(kept.count(), 256);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn more_services_than_48_share_a_series_and_leave_room_for_peers() {
    let folder = folder("services");
    let mut file = SavedFile::open(&folder.join("strait0.saved")).unwrap();
    let mut add = |kind, name: String| {
        let name = SavedName { kind, name };
        file.series(&name).unwrap().add(NOON, &minute(1_000, 500));
    };
    for port in 0..100 {
        add(SavedKind::Service, format!("tcp {port}"));
    }
    add(SavedKind::Service, "files and logins".to_owned());
    add(SavedKind::Peer, "site-b".to_owned());
    let sent = |name: &str| {
        let found = file.all().iter().find(|series| series.name().name == name);
        found.map(|series| series.hour(NOON).sent_bytes)
    };
    assert_eq!([sent("tcp 47"), sent("tcp 48")], [Some(1_000), None]);
    assert!(sent("other services").is_some_and(|bytes| bytes.abs_diff(52_000) < 52));
    assert_eq!([sent("files and logins"), sent("site-b")], [Some(1_000), Some(1_000)]);
    assert_eq!(file.all().len(), 51);
    fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), at in any::<u64>()) {
        let mut all = vec![0; SERIES_LEN];
        all[..bytes.len()].copy_from_slice(&bytes);
        if let Some(mut series) = SavedSeries::stored(&all) {
            series.add(at, &minute(u64::MAX, 1));
            let _ = series.between(0, at);
        }
        let _ = SavedSeries::stored(&bytes);
    }

    #[test]
    fn names_come_back(name in "\\PC{0,80}") {
        let series = SavedSeries::new(SavedKind::Rule, &name);
        let stored = SavedSeries::stored(&series.to_bytes()).unwrap();
        prop_assert_eq!(stored.name(), series.name());
        prop_assert!(name.starts_with(&stored.name().name));
    }
}
