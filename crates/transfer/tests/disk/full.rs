//! A full disk: a clear error, and what was complete stays.

use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use strait_compress::Calibration;
use strait_testdata::skip::{Need, skip};
use strait_transfer::folder::{FolderError, FolderRules};
use strait_transfer::message::{Asked, FaultReason, Hello, TransferOptions};
use strait_transfer::session::{
    DiskOrigin, SharedFolder, StreamEnds, Tally, TransferError, TransferEvent, Watch, patterns, push, serve,
};
use strait_transfer::source::Sources;

use super::shared::{OwnFolder, again, child, content, is_root, open, path, plain, receive};

/// On a file system of 8 MiB, which the shell before it mounted.
fn fill(folder: &Path) {
    let open = open(folder);
    fs::write(folder.join("others"), content(0, 3 << 20)).unwrap();
    let mut receiving = open.receive([1; 16]).unwrap();
    receive(&mut receiving, 0, "first", &content(1, 1_000_000));
    assert!(receiving.commit().unwrap().iter().all(|it| it.result == Ok(())));

    let bytes = content(2, 6 << 20);
    let mut partial = receiving.begin(path("second"), Some(6 << 20), [1; 8], true).unwrap();
    let mut results =
        bytes.chunks(1 << 20).enumerate().map(|(at, part)| partial.write_at((at as u64) << 20, part));
    assert!(results.any(|result| result == Err(FolderError::Full)), "it was not full");
    drop(results);
    // The transfer stops here.
    partial.suspend().unwrap();
    drop(receiving);
    assert_eq!(fs::read(folder.join("first")).unwrap(), content(1, 1_000_000));
    assert!(!folder.join("second").exists());

    // There is room again: it goes on where it stopped.
    fs::remove_file(folder.join("others")).unwrap();
    let mut receiving = open.receive([1; 16]).unwrap();
    let written = receive(&mut receiving, 0, "second", &bytes);
    assert!(written <= 3 << 20, "{written} bytes of 6 MiB again");
    assert!(receiving.complete().unwrap().iter().all(|it| it.result == Ok(())));
    assert_eq!(fs::read(folder.join("second")).unwrap(), bytes);

    // Below another file system's root, no file can come from aside.
    let mut receiving = open.receive([3; 16]).unwrap();
    receive(&mut receiving, 0, "mounted/file", b"content");
    let doing = "rename a file to where another disk is mounted";
    let refused = FolderError::System { doing, error: rustix::io::Errno::XDEV };
    assert_eq!(receiving.complete().unwrap()[0].result, Err(refused));
    assert_eq!(fs::read_dir(folder.join("mounted")).unwrap().count(), 0);

    // Not even a name fits.
    let mut filler = fs::File::create(folder.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    let full = open.receive([2; 16]).err();
    let no_room = match full {
        Some(error) => error,
        None => open.receive([2; 16]).unwrap().symlink(0, path("link"), &[b'x'; 4000], &plain()).unwrap_err(),
    };
    assert_eq!(no_room, FolderError::Full);
}

/// Sends files from one folder to the other as two nodes do: how it ended, and how many bytes moved.
fn push_all(from: &Path, to: &Path) -> (Result<Tally, TransferError>, u64) {
    let (one, other) = UnixStream::pair().unwrap();
    let (cancel, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let ends = |stream| StreamEnds {
        reader: stream,
        writer: stream,
        calibration: Calibration::assumed(),
        limit: None,
        link: None,
    };
    let close = |stream: &UnixStream| drop(stream.shutdown(Shutdown::Both));
    let (path, rules, patience) = (to.into(), FolderRules::default(), Duration::ZERO);
    let folder = SharedFolder {
        name: "inbox".to_owned(),
        path,
        rules,
        read: true,
        write: true,
        delete: true,
        patience,
        copies: None,
        unfinished_since: UNIX_EPOCH,
    };
    let mut sources = Sources::default();
    for name in ["first", "large", "last"] {
        sources.add_path(&from.join(name)).unwrap();
    }
    let mut origin = DiskOrigin::new(sources, patterns(&[]).unwrap(), false);
    let options = TransferOptions::default();
    let asked = Asked::Push { folder: b"inbox".to_vec(), place: Vec::new(), options };
    let hello = Hello { transfer: [5; 16], nonce: [1; 32], asked };
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let hang_up = || close(&other);
            let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &hang_up };
            let _ = serve(ends(&other), &[folder], [2; 32], watch);
            hang_up();
        });
        let hang_up = || close(&one);
        let event = |event| {
            if let TransferEvent::Moved { bytes } = event {
                moved.fetch_add(bytes, Ordering::Relaxed);
            }
        };
        let ended =
            push(ends(&one), hello, &mut origin, Watch { event: &event, cancel: &cancel, hang_up: &hang_up });
        hang_up();
        ended
    });
    (ended, moved.into_inner())
}

/// On a file system of 8 MiB.
fn fill_by_transfer(folder: &Path) {
    let source = OwnFolder::new(&std::env::temp_dir(), "full-source");
    let mut files =
        [("first", content(1, 900_000)), ("large", content(2, 14 << 20)), ("last", content(3, 50_000))];
    for (name, bytes) in &files {
        fs::write(source.0.join(name), bytes).unwrap();
    }
    // What cannot fit is refused before any of it comes; the rest arrives.
    let (ended, moved) = push_all(&source.0, folder);
    let tally = ended.unwrap();
    assert_eq!((tally.failed, tally.whole), (1, 2));
    assert!(moved < 1 << 20, "{moved} bytes moved");
    assert!(!folder.join("large").exists());

    // A file with a hole may fit: it comes until there is no room.
    let large = [&files[1].1[..], &[0; 1 << 20]].concat();
    files[1].1 = large;
    let sparse = fs::OpenOptions::new().write(true).open(source.0.join("large")).unwrap();
    sparse.set_len(15 << 20).unwrap();
    let (ended, _) = push_all(&source.0, folder);
    match &ended {
        Ok(tally) => assert!(tally.failed > 0, "{tally:?}"),
        Err(error) => assert!(
            matches!(error, TransferError::Stopped(fault) if fault.reason == FaultReason::DiskFull),
            "{error:?}"
        ),
    }
    assert!(!folder.join("large").exists());
    assert_eq!(fs::read(folder.join("first")).unwrap(), files[0].1, "what was complete stays");

    // Without its hole it does not fit, which is no reason to forget what is there.
    fs::write(source.0.join("large"), &files[1].1).unwrap();
    let (ended, moved) = push_all(&source.0, folder);
    assert_eq!(ended.unwrap().failed, 1);
    assert!(moved < 1 << 20, "{moved} bytes moved");

    // There is room, and it goes on where it stopped.
    let more = Command::new("mount").args(["-o", "remount,size=40m"]).arg(folder).status();
    assert!(more.unwrap().success());
    let (ended, moved) = push_all(&source.0, folder);
    assert_eq!(ended.unwrap().failed, 0);
    assert!(moved < 12 << 20, "{moved} bytes of 15 MiB again");
    for (name, bytes) in &files {
        assert!(fs::read(folder.join(name)).unwrap() == *bytes, "{name}");
    }
}

#[test]
fn a_transfer_to_a_full_disk_fails_in_words_and_goes_on_when_there_is_room() {
    if let Some(folder) = child() {
        return fill_by_transfer(&folder);
    }
    if !is_root() && !skip(Need::Root, "may not mount a file system") {
        return;
    }
    let folder = OwnFolder::new(&std::env::temp_dir(), "full-transfer");
    let mount = format!("mount -t tmpfs -o size=8m none {} && exec \"$@\"", folder.0.display());
    let before = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    let test = "full::a_transfer_to_a_full_disk_fails_in_words_and_goes_on_when_there_is_room";
    let ended = again(test, &std::env::current_exe().unwrap(), &folder.0, &before).status().unwrap();
    assert!(ended.success());
}

#[test]
fn on_a_full_disk_what_was_complete_stays_and_the_rest_goes_on_later() {
    if let Some(folder) = child() {
        return fill(&folder);
    }
    if !is_root() && !skip(Need::Root, "may not mount a file system") {
        return;
    }
    let folder = OwnFolder::new(&std::env::temp_dir(), "full");
    let at = folder.0.display();
    let mount = format!(
        "mount -t tmpfs -o size=8m none {at} && mkdir {at}/mounted && mount -t tmpfs none {at}/mounted && exec \"$@\""
    );
    let before = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    let test = "full::on_a_full_disk_what_was_complete_stays_and_the_rest_goes_on_later";
    let ended = again(test, &std::env::current_exe().unwrap(), &folder.0, &before).status().unwrap();
    assert!(ended.success());
}
