use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::super::*;
use crate::testing::{TestFolder, path};

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
