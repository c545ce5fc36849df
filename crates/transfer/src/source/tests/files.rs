use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use super::super::*;
use crate::pieces::{PIECE_LEN, PieceHasher, Pieces, Subtree};
use crate::testing::{TestFolder, content, now, path};

fn open(folder: &TestFolder, name: &str) -> SourceFile {
    let mut sources = Sources::default();
    sources.add_path(&folder.join("")).unwrap();
    sources.open_file(&path(name)).unwrap()
}

#[test]
fn extents_are_where_data_is() {
    let folder = TestFolder::new("extents");
    let file = File::create(folder.join("sparse")).unwrap();
    file.write_all_at(&[1; 4096], 1 << 20).unwrap();
    file.write_all_at(&[1; 4096], 3 << 20).unwrap();
    file.set_len(4 << 20).unwrap();
    let source = open(&folder, "sparse");
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((begin, end)) = source.extent(from).unwrap() {
        found.push((begin, end));
        from = end;
    }
    assert_eq!(found, [(1 << 20, (1 << 20) + 4096), (3 << 20, (3 << 20) + 4096)]);
    assert_eq!(source.extent((1 << 20) + 100).unwrap(), Some(((1 << 20) + 100, (1 << 20) + 4096)));
    fs::write(folder.join("empty"), "").unwrap();
    assert_eq!(open(&folder, "empty").extent(0).unwrap(), None);
}

#[test]
fn a_source_that_changes_while_it_is_read_is_noticed() {
    let folder = TestFolder::new("changes");
    type Change = fn(&File);
    let changes: [(&str, Change); 3] = [
        ("longer", |file| file.write_all_at(b"x", 100).unwrap()),
        ("shorter", |file| file.set_len(1).unwrap()),
        ("the same length and time", |file| {
            let before = file.metadata().unwrap().modified().unwrap();
            file.write_all_at(b"x", 0).unwrap();
            file.set_modified(before).unwrap();
        }),
    ];
    for (what, change) in changes {
        fs::write(folder.join("file"), [0; 100]).unwrap();
        let source = open(&folder, "file");
        assert!(!source.changed().unwrap());
        // The clock that stamps files has steps of up to 10 ms (CONFIG_HZ of 100).
        std::thread::sleep(Duration::from_millis(30));
        change(&File::options().write(true).open(folder.join("file")).unwrap());
        assert!(source.changed().unwrap(), "{what}");
        assert_ne!(source.state().unwrap().version(), source.opened().version(), "{what}");
    }
    fs::write(folder.join("file"), [0; 100]).unwrap();
    let source = open(&folder, "file");
    std::thread::sleep(Duration::from_millis(30));
    fs::remove_file(folder.join("file")).unwrap();
    assert!(source.changed().unwrap(), "removed");
    let mut buffer = [0; 200];
    assert_eq!(source.read_at(0, &mut buffer).unwrap(), 100, "what was opened can be read to its end");
}

/// A state of a source with so many bytes, changed long ago.
fn stamp(size: u64) -> Stamp {
    Stamp { device: 1, inode: 2, size, modified: 3, changed: 4 }
}

fn piece(bytes: &[u8], number: u64) -> Subtree {
    let mut hasher = PieceHasher::new(number);
    hasher.update(&bytes[usize::try_from(number * PIECE_LEN).unwrap()..]);
    hasher.subtree().unwrap()
}

#[test]
fn hashes_of_pieces_are_found_again_for_the_same_state_alone() {
    let folder = TestFolder::new("cache");
    let cache = HashCache::open(&folder.join("a/b"), 1 << 20).unwrap();
    let bytes = content((20 << 20) + 5);
    let state = stamp(bytes.len() as u64);
    let hashes = cache.of(&state).unwrap().unwrap();
    assert_eq!(hashes.subtree(0, 0), None);
    for number in 0..21 {
        hashes.put(&piece(&bytes, number), now()).unwrap();
    }
    let hashes = cache.of(&state).unwrap().unwrap();
    let mut known = Pieces::default();
    for (first, level) in [(0, 2), (4, 2), (8, 3), (16, 3)] {
        known.insert(hashes.subtree(first, level).unwrap()).unwrap();
    }
    assert_eq!(known.root(bytes.len() as u64), Some(blake3::hash(&bytes)));
    assert_eq!(hashes.subtree(21, 0), None);
    assert_eq!(hashes.subtree(2, 2), None, "no subtree stands there");
    assert_eq!(hashes.subtree(0, 21), None);

    let others = [
        Stamp { device: 9, ..state },
        Stamp { inode: 9, ..state },
        Stamp { size: 21 << 20, ..state },
        Stamp { modified: 9, ..state },
        Stamp { changed: 9, ..state },
    ];
    for other in others {
        assert_eq!(cache.of(&other).unwrap().unwrap().subtree(0, 0), None, "{other:?}");
    }
}

#[test]
fn a_source_that_is_small_or_changed_a_moment_ago_is_not_kept() {
    let folder = TestFolder::new("racy");
    let cache = HashCache::open(folder.path(), 1 << 20).unwrap();
    let now = now();
    let nanoseconds = |time: SystemTime| {
        i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()).unwrap()
    };
    assert!(cache.of(&stamp(1 << 20)).unwrap().is_none());
    let one = Subtree::new(0, 0, [1; 32]).unwrap();
    let hashes = cache.of(&Stamp { changed: nanoseconds(now), ..stamp(1 << 30) }).unwrap().unwrap();
    let second = Duration::from_secs(1);
    for (read, kept) in
        [(now - 60 * second, false), (now, false), (now + second, false), (now + 3 * second, true)]
    {
        hashes.put(&one, read).unwrap();
        assert_eq!(hashes.subtree(0, 0).is_some(), kept, "{read:?}");
    }
}

#[test]
fn hashes_that_were_cut_or_changed_on_disk_are_not_believed() {
    let folder = TestFolder::new("torn");
    let cache = HashCache::open(folder.path(), 1 << 20).unwrap();
    let bytes = content(17 << 20);
    let hashes = cache.of(&stamp(17 << 20)).unwrap().unwrap();
    for number in 0..3 {
        hashes.put(&piece(&bytes, number), now()).unwrap();
    }
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 1;
        fs::write(&file, &other).unwrap();
        for number in 0..3 {
            let expected = (number != at as u64 / 40).then(|| piece_value(&whole, number));
            assert_eq!(hashes.subtree(number, 0).map(|it| *it.value()), expected, "{at}");
        }
        fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(hashes.subtree(at as u64 / 40, 0), None, "{at}");
    }
    // Entries of one piece do not stand for another.
    fs::write(&file, [&whole[40..80], &whole[..40]].concat()).unwrap();
    assert_eq!((hashes.subtree(0, 0), hashes.subtree(1, 0)), (None, None));
}

fn piece_value(file: &[u8], number: u64) -> [u8; 32] {
    let at = usize::try_from(number * 40).unwrap();
    file[at..at + 32].try_into().unwrap()
}

#[test]
fn the_cache_is_trimmed_to_its_budget_oldest_first() {
    let folder = TestFolder::new("trim");
    let cache = HashCache::open(folder.path(), 100).unwrap();
    let now = now();
    let one = Subtree::new(0, 0, [1; 32]).unwrap();
    for inode in 0..4_u64 {
        let hashes = cache.of(&Stamp { inode, ..stamp(1 << 30) }).unwrap().unwrap();
        hashes.put(&one, now).unwrap();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let file = File::options().write(true).open(entry.unwrap().path()).unwrap();
            let before = file.metadata().unwrap().modified().unwrap();
            file.set_modified(before - Duration::from_secs(10)).unwrap();
        }
    }
    cache.trim().unwrap();
    let kept = [0, 1, 2, 3]
        .map(|inode| cache.of(&Stamp { inode, ..stamp(1 << 30) }).unwrap().unwrap().subtree(0, 0).is_some());
    assert_eq!(kept, [false, false, true, true]);
}
