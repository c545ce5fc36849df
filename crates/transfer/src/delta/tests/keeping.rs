//! The store of what was sent.

use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;

use super::noise;
use crate::delta::{DeltaSource, KeepSent};

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("strait-delta-{}-{number}", std::process::id())))
    }

    fn files(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with("store.")).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn keep(store: &KeepSent, name: &[u8], bytes: &[u8], salt: u8) -> bool {
    let mut writer = store.keep(name, [salt; 16]).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish(&[salt; 32], 7).unwrap()
}

#[test]
fn the_oldest_copies_go_when_the_budget_is_used_up() {
    let folder = Scratch::new();
    let store = KeepSent::open(&folder.0, 250_000, [9; 32]).unwrap();
    for name in 1..=4_u8 {
        assert!(keep(&store, &[name], &noise(name.into(), 100_000), name));
        // The order is that of the file system's times.
        let file = std::fs::File::open(folder.0.join(store_name(&folder, &store, name))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(name.into())).unwrap();
    }
    let there: Vec<u8> = (1..=4).filter(|name| store.find(&[*name]).unwrap().is_some()).collect();
    assert_eq!(there, [3, 4]);
    assert!(!keep(&store, b"large", &noise(7, 300_000), 7), "larger than the budget");
    assert_eq!(folder.files().len(), 2);
}

/// The newest file of the store: that of `name`, which was just written.
fn store_name(folder: &Scratch, store: &KeepSent, name: u8) -> PathBuf {
    assert!(store.find(&[name]).unwrap().is_some());
    let newest = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
    folder.files().into_iter().max_by_key(newest).unwrap()
}

#[test]
fn copies_are_secret_and_a_damaged_one_is_none() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Scratch::new();
    let secret_text = b"this is the content of the file that was sent".repeat(40);
    let store = KeepSent::open(&folder.0, 1 << 20, [9; 32]).unwrap();
    assert!(keep(&store, b"peer/folder/file", &secret_text, 1));
    let path = folder.files().remove(0);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&folder.0)), (0o600, 0o700));
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(12).any(|window| secret_text.windows(12).any(|text| text == window)));
    assert!(!path.to_string_lossy().contains("file"));
    let other = KeepSent::open(&folder.0, 1 << 20, [8; 32]).unwrap();
    assert!(other.find(b"peer/folder/file").unwrap().is_none(), "another node's secret");
    // Every truncation, and a changed byte in each place, is found at once or when the piece is read.
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(store.find(b"peer/folder/file").unwrap().is_none(), "{len}");
        assert!(!path.exists(), "a damaged copy is removed");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        if let Some(mut copy) = store.find(b"peer/folder/file").unwrap() {
            assert!(copy.read_exact_at(0, &mut [0; 10]).is_err(), "{at}");
        }
    }
}

#[test]
fn an_unfinished_copy_leaves_nothing() {
    let folder = Scratch::new();
    let store = KeepSent::open(&folder.0, 1 << 20, [9; 32]).unwrap();
    drop(store.keep(b"a", [1; 16]).unwrap());
    assert!(folder.files().is_empty());
    let unfinished = store.keep(b"a", [1; 16]).unwrap();
    let written = folder.files().remove(0);
    // A kill frees the lock on the file, as a copy of it has none.
    std::fs::copy(&written, written.with_extension("0.part")).unwrap();
    let other = KeepSent::open(&folder.0, 1 << 20, [9; 32]).unwrap();
    assert_eq!(folder.files(), [written], "what another writes stays");
    assert!(unfinished.finish(&[1; 32], 0).unwrap());
    assert!(other.find(b"a").unwrap().is_some());
}

#[test]
fn a_store_keeps_its_own_secret_and_two_at_once_share_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Scratch::new();
    let stores: Vec<KeepSent> = std::thread::scope(|scope| {
        let open = |number| KeepSent::open_own(&folder.0, 900_000, [number; 32]).unwrap();
        let all: Vec<_> = (1..=8_u8).map(|number| scope.spawn(move || open(number))).collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(keep(&stores[0], b"name", b"content", 1));
    assert!(stores.iter().all(|store| store.find(b"name").unwrap().is_some()));
    let secret = folder.0.join("store.secret");
    assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    // All write at once, more than there is room for.
    std::thread::scope(|scope| {
        for (number, store) in (10_u8..).zip(&stores) {
            scope.spawn(move || {
                assert!((0..4).all(|_| keep(store, &[number], &noise(number.into(), 200_000), number)));
            });
        }
    });
    assert!(folder.files().len() <= 4, "{:?}", folder.files());
    // Without its secret there is nothing to be found, and a new one is made.
    std::fs::write(&secret, "short").unwrap();
    let anew = KeepSent::open_own(&folder.0, 900_000, [9; 32]).unwrap();
    assert!((10..18).all(|number| anew.find(&[number]).unwrap().is_none()));
}

#[test]
fn a_copy_that_is_used_outlives_one_that_is_not() {
    let folder = Scratch::new();
    let store = KeepSent::open(&folder.0, 250_000, [9; 32]).unwrap();
    for name in 1..=2_u8 {
        assert!(keep(&store, &[name], &noise(name.into(), 100_000), name));
        let file = std::fs::File::open(folder.0.join(store_name(&folder, &store, name))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(name.into())).unwrap();
    }
    store.find(&[1]).unwrap().unwrap().touch().unwrap();
    assert!(keep(&store, &[3], &noise(3, 100_000), 3));
    assert!([1, 3].iter().all(|name| store.find(&[*name]).unwrap().is_some()));
    assert!(store.find(&[2]).unwrap().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn kept_copies_are_read_at_any_place(seed: u64, len in 0_usize..900_000, places in prop::collection::vec((0_usize..900_000, 0_usize..400_000), 1..6)) {
        let (folder, bytes) = (Scratch::new(), noise(seed, len / 2));
        let bytes = [&bytes[..], &vec![7; len - len / 2]].concat();
        let store = KeepSent::open(&folder.0, 1 << 30, [9; 32]).unwrap();
        let mut writer = store.keep(b"name", [3; 16]).unwrap();
        writer.write_all(&bytes).unwrap();
        prop_assert!(writer.finish(&[5; 32], -9).unwrap());
        let mut copy = store.find(b"name").unwrap().unwrap();
        prop_assert_eq!((copy.size(), copy.modified(), copy.root()), (len as u64, -9, &[5; 32]));
        for (at, count) in places {
            let mut into = vec![0; count];
            let read = copy.read_exact_at(at as u64, &mut into);
            match bytes.get(at..at + count) {
                Some(there) => prop_assert!(read.is_ok() && into == there),
                None => prop_assert!(count == 0 || read.is_err()),
            }
        }
    }
}
