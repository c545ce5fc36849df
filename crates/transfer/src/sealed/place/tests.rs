use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use strait_testdata::skip::{Need, skip};

use super::*;
use crate::arrival::FolderOwner;
use crate::scratch::ScratchFolder;

fn entry(path: &[u8], kind: SealedKind) -> SealedEntry {
    SealedEntry { path: path.to_vec(), mode: 0o640, mtime: 1_600_000_000_123_456_789, kind }
}

fn file(path: &str) -> SealedEntry {
    entry(path.as_bytes(), SealedKind::File { size: 3, root: [0; 32] })
}

fn landing(folder: &Path) -> LandingFolder {
    LandingFolder::open(&folder.into(), b"", TransferId::from_bytes([1; 16]), FolderRules::default()).unwrap()
}

fn land(landing: &mut LandingFolder, entry: &SealedEntry, bytes: &[u8]) -> io::Result<()> {
    landing.begin(entry)?;
    if let SealedKind::File { .. } = entry.kind {
        landing.bytes(bytes)?;
        landing.end(entry)?;
    }
    Ok(())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into())
        .collect();
    names.sort();
    names
}

#[test]
fn entries_have_their_names_modes_times_and_links() {
    let scratch = ScratchFolder::new();
    let mut landing = landing(scratch.path());
    let entries = [
        SealedEntry { mode: 0o500, ..entry(b"d", SealedKind::Folder) },
        file("d/a"),
        entry(b"d/h", SealedKind::HardLink { to: b"d/a".to_vec() }),
        entry(b"d/l", SealedKind::Symlink { target: b"nowhere".to_vec() }),
        file("d\u{fffd}"),
    ];
    for entry in &entries {
        land(&mut landing, entry, b"abc").unwrap();
    }
    // A second time nothing fails and nothing is left over.
    land(&mut landing, &entries[2], b"").unwrap();
    landing.finish(&entries).unwrap();
    assert_eq!(names(&scratch.path().join("d")), ["a", "h", "l"]);
    let of = |name: &str| std::fs::symlink_metadata(scratch.path().join(name)).unwrap();
    for (name, mode) in [("d", 0o500), ("d/a", 0o640)] {
        assert_eq!((of(name).mode() & 0o7777, of(name).mtime()), (mode, 1_600_000_000), "{name}");
        assert_eq!(of(name).mtime_nsec(), 123_456_789);
    }
    assert_eq!(of("d/a").ino(), of("d/h").ino());
    assert_eq!(std::fs::read_link(scratch.path().join("d/l")).unwrap(), Path::new("nowhere"));
    assert_eq!(std::fs::read(scratch.path().join("d/a")).unwrap(), b"abc");
}

#[test]
fn nothing_has_its_name_before_its_end_and_a_dropped_file_leaves_nothing() {
    let scratch = ScratchFolder::new();
    std::fs::write(scratch.path().join("a"), "old").unwrap();
    let mut landing = landing(scratch.path());
    landing.begin(&file("a")).unwrap();
    landing.bytes(b"new").unwrap();
    assert_eq!(std::fs::read(scratch.path().join("a")).unwrap(), b"old");
    landing.abandon();
    assert_eq!(names(scratch.path()), ["a"]);
    // A process that was killed leaves its part, which the next attempt takes away.
    landing.begin(&file("a")).unwrap();
    let mut again = self::landing(scratch.path());
    land(&mut again, &file("a"), b"new").unwrap();
    assert_eq!(names(scratch.path()), ["a"]);
    assert_eq!(std::fs::read(scratch.path().join("a")).unwrap(), b"new");
}

#[test]
fn no_link_leads_out_of_the_folder() {
    let scratch = ScratchFolder::new();
    let (inside, outside) = (scratch.folder("inside"), scratch.folder("outside"));
    std::fs::write(outside.join("a"), "precious").unwrap();
    symlink(&outside, inside.join("link")).unwrap();
    symlink(outside.join("a"), inside.join("a")).unwrap();
    let mut landing = landing(&inside);
    assert!(land(&mut landing, &file("link/a"), b"abc").is_err());
    assert!(land(&mut landing, &entry(b"link/b", SealedKind::Folder), b"").is_err());
    assert!(land(&mut landing, &entry(b"link", SealedKind::Folder), b"").is_err());
    assert!(land(&mut landing, &entry(b"h", SealedKind::HardLink { to: b"link/a".to_vec() }), b"").is_err());
    // A link in the place of the file's own name is replaced, not followed.
    land(&mut landing, &file("a"), b"abc").unwrap();
    assert!(std::fs::symlink_metadata(inside.join("a")).unwrap().is_file());
    assert!(
        LandingFolder::open(
            &inside.clone().into(),
            b"link",
            TransferId::from_bytes([1; 16]),
            FolderRules::default()
        )
        .is_err()
    );
    // A link that a transfer itself made is not followed by its later entries.
    landing.rules.symlinks = crate::folder::SymlinkRule::Any;
    land(
        &mut landing,
        &entry(b"own", SealedKind::Symlink { target: outside.as_os_str().as_bytes().to_vec() }),
        b"",
    )
    .unwrap();
    assert!(land(&mut landing, &file("own/a"), b"abc").is_err());
    assert_eq!(std::fs::read(outside.join("a")).unwrap(), b"precious");
    assert_eq!(names(&outside), ["a"]);
}

#[test]
fn a_file_does_not_replace_a_folder() {
    let scratch = ScratchFolder::new();
    scratch.folder("a/b");
    let mut landing = landing(scratch.path());
    assert!(land(&mut landing, &file("a"), b"abc").is_err());
    landing.abandon();
    assert_eq!(names(scratch.path()), ["a"]);
    std::fs::write(scratch.path().join("f"), "x").unwrap();
    assert!(land(&mut landing, &entry(b"f", SealedKind::Folder), b"").is_err());
}

#[test]
fn zeros_become_holes_and_keep_the_length() {
    let scratch = ScratchFolder::new();
    let mut landing = landing(scratch.path());
    landing.begin(&file("a")).unwrap();
    for _ in 0..256 {
        landing.bytes(&[0; 65_536]).unwrap();
    }
    landing.bytes(b"end").unwrap();
    landing.bytes(&[0; 10]).unwrap();
    landing.end(&file("a")).unwrap();
    let metadata = std::fs::metadata(scratch.path().join("a")).unwrap();
    assert_eq!(metadata.len(), 256 * 65_536 + 13);
    assert!(metadata.blocks() * 512 < 1_000_000, "{} blocks", metadata.blocks());
}

#[test]
fn folders_below_are_made_where_they_lack() {
    let scratch = ScratchFolder::new();
    let id = TransferId::from_bytes([1; 16]);
    for _ in 0..2 {
        let mut landing =
            LandingFolder::open(&scratch.path().into(), b"x/y", id, FolderRules::default()).unwrap();
        land(&mut landing, &file("a"), b"abc").unwrap();
    }
    assert_eq!(names(&scratch.path().join("x/y")), ["a"]);
    assert!(LandingFolder::open(&scratch.path().into(), b"x/../..", id, FolderRules::default()).is_err());
}

#[test]
fn where_nothing_is_replaced_only_the_same_may_be_there() {
    let scratch = ScratchFolder::new();
    let of = |name: &str| scratch.path().join(name);
    let link = |target: &[u8]| entry(b"link", SealedKind::Symlink { target: target.to_vec() });
    std::fs::write(of("same"), "abc").unwrap();
    std::fs::write(of("other"), "old").unwrap();
    std::fs::write(of("longer"), "abcd").unwrap();
    symlink("there", of("link")).unwrap();
    scratch.folder("folder");
    let mut landing = landing(scratch.path()).replacing_nothing();
    for name in ["same", "new"] {
        land(&mut landing, &file(name), b"abc").unwrap();
        assert_eq!(std::fs::read(of(name)).unwrap(), b"abc");
    }
    for (name, kept) in [("other", "old"), ("longer", "abcd")] {
        let error = land(&mut landing, &file(name), b"abc").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        landing.abandon();
        assert_eq!(std::fs::read(of(name)).unwrap(), kept.as_bytes());
    }
    land(&mut landing, &link(b"there"), b"").unwrap();
    assert!(land(&mut landing, &link(b"elsewhere"), b"").is_err());
    assert!(land(&mut landing, &file("link"), b"abc").is_err());
    assert_eq!(std::fs::read_link(of("link")).unwrap(), Path::new("there"));
    assert!(land(&mut landing, &file("folder"), b"abc").is_err());
    land(&mut landing, &entry(b"folder", SealedKind::Folder), b"").unwrap();
    for _ in 0..2 {
        land(&mut landing, &entry(b"hard", SealedKind::HardLink { to: b"new".to_vec() }), b"").unwrap();
    }
    assert!(land(&mut landing, &entry(b"other", SealedKind::HardLink { to: b"new".to_vec() }), b"").is_err());
    landing.begin(&file("last")).unwrap();
    landing.abandon();
    assert_eq!(names(scratch.path()), ["folder", "hard", "link", "longer", "new", "other", "same"]);
}

#[test]
fn nothing_is_made_in_the_working_folder_of_a_permitted_folder() {
    let scratch = ScratchFolder::new();
    scratch.folder(WORKING_FOLDER);
    scratch.folder("below");
    let inside = format!("{WORKING_FOLDER}/x.arrived");
    let id = TransferId::from_bytes([1; 16]);
    let mut top = landing(scratch.path());
    assert!(land(&mut top, &file(&inside), b"abc").is_err());
    assert!(land(&mut top, &entry(WORKING_FOLDER.as_bytes(), SealedKind::Folder), b"").is_err());
    assert!(
        LandingFolder::open(&scratch.path().into(), inside.as_bytes(), id, FolderRules::default()).is_err()
    );
    // Deeper it is a name as any other.
    let mut below =
        LandingFolder::open(&scratch.path().into(), b"below", id, FolderRules::default()).unwrap();
    land(&mut below, &entry(WORKING_FOLDER.as_bytes(), SealedKind::Folder), b"").unwrap();
    assert_eq!(names(&scratch.path().join(WORKING_FOLDER)), [""; 0]);
}

#[test]
fn a_symbolic_link_that_leads_out_is_refused_also_below_a_place_and_by_another_name() {
    let scratch = ScratchFolder::new();
    let id = TransferId::from_bytes([1; 16]);
    let mut below = LandingFolder::open(&scratch.path().into(), b"x/y", id, FolderRules::default()).unwrap();
    let link = |target: &[u8]| entry(b"link", SealedKind::Symlink { target: target.to_vec() });
    for target in [&b"../../f"[..], b"..", b"f"] {
        land(&mut below, &link(target), b"").unwrap();
    }
    for target in [&b"../../../f"[..], b"/f", b"a/../f"] {
        let refused = land(&mut below, &link(target), b"").unwrap_err();
        assert!(refused.to_string().contains("leads out"), "{refused}");
    }
    // A manifest has hard links to files alone, but another may have put something else there.
    symlink("../f", scratch.path().join("x/y/f")).unwrap();
    let mut top = landing(scratch.path());
    let higher = entry(b"higher", SealedKind::HardLink { to: b"x/y/f".to_vec() });
    assert!(land(&mut top, &higher, b"").is_err());
    assert!(scratch.path().join("higher").symlink_metadata().is_err());
}

#[test]
fn a_sender_that_may_not_read_hears_nothing_of_what_is_there() {
    let rules = FolderRules { hidden: true, ..FolderRules::default() };
    let (full, empty) = (ScratchFolder::new(), ScratchFolder::new());
    std::fs::create_dir(full.path().join("a")).unwrap();
    std::fs::write(full.path().join("d"), "older").unwrap();
    std::fs::write(full.path().join("f"), "older").unwrap();
    let hear = |folder: &Path, below: &[u8]| {
        let id = TransferId::from_bytes([1; 16]);
        let mut landing = LandingFolder::open(&folder.into(), below, id, rules).unwrap();
        let to = |path: &[u8]| SealedKind::HardLink { to: path.to_vec() };
        let entries = [
            file("a"),
            entry(b"d", SealedKind::Folder),
            file("d/x"),
            entry(b"g", to(b"a")),
            entry(b"h", to(b"f")),
        ];
        let heard = entries
            .each_ref()
            .map(|entry| land(&mut landing, entry, b"new").map_err(|error| error.to_string()));
        landing.finish(&entries).unwrap();
        heard
    };
    for below in [&b""[..], b"f", b"a"] {
        assert_eq!(hear(full.path(), below), hear(empty.path(), below));
    }
    assert_eq!(std::fs::read(full.path().join("a.other-1")).unwrap(), b"new");
    assert_eq!(std::fs::read(full.path().join("d")).unwrap(), b"older");
    assert!(!full.path().join("h").exists(), "a hard link to what another sent");
}

#[test]
fn read_only_folders_of_the_owner_are_filled_and_keep_their_permissions() {
    if !(rustix::process::geteuid().is_root() || skip(Need::Root, "only root can become another")) {
        return;
    }
    let scratch = ScratchFolder::new();
    let mode_of = |name: &str| std::fs::metadata(scratch.path().join(name)).unwrap().mode() & 0o7777;
    for (name, mode) in [("", 0o755), ("place/d", 0o500), ("place", 0o555)] {
        let path = scratch.folder(name);
        chown(&path, Some(4321), Some(4321)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let entries = [SealedEntry { mode: 0o550, ..entry(b"d", SealedKind::Folder) }, file("d/a"), file("b")];
    let owner = FolderOwner::Other { user: 4321, group: 4321 };
    let landed = owner.run(|| {
        let id = TransferId::from_bytes([1; 16]);
        let folder = scratch.path().into();
        let mut landing = LandingFolder::open(&folder, b"place", id, FolderRules::default())?;
        entries.iter().try_for_each(|entry| land(&mut landing, entry, b"abc"))?;
        landing.finish(&entries)
    });
    landed.unwrap().unwrap();
    assert_eq!((mode_of("place"), mode_of("place/d"), mode_of("place/d/a")), (0o555, 0o550, 0o640));
    assert_eq!(names(&scratch.path().join("place")), ["b", "d"]);
}
