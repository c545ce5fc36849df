//! Real folders, units and messages, over a socket pair.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use strait_compress::Calibration;

use super::pair::{Buffered, Cut};
use super::snapshot::snapshot;
use crate::folder::{Folder, FolderRules};
use crate::message::{Asked, EntryMessage, FaultReason, FileFault, Hello, TransferOptions};
use crate::path::EntryPath;
use crate::session::*;
use crate::source::{BareMountPoints, Sources};
use crate::testing::TestFolder;

pub(super) type Ended = Result<Tally, TransferError>;

/// Two ends with a stream between them that carries so many bytes.
pub(super) struct Meeting {
    pub(super) folders: Vec<SharedFolder>,
    left: AtomicI64,
    cancel: AtomicBool,
    pub(super) events: Mutex<Vec<TransferEvent>>,
}

pub(super) type Reader<'a> = Buffered<'a>;
pub(super) type Writer<'a> = Cut<'a>;

impl Meeting {
    pub(super) fn new(folder: &Path, bytes: i64) -> Meeting {
        let (left, cancel, events) = (AtomicI64::new(bytes), AtomicBool::new(false), Mutex::new(Vec::new()));
        Meeting { folders: vec![inbox(folder)], left, cancel, events }
    }

    fn ends<'a>(&'a self, stream: &'a UnixStream) -> StreamEnds<Reader<'a>, Writer<'a>> {
        ends(stream, Cut { stream, left: &self.left })
    }

    /// Runs a client against the server: how both ended.
    pub(super) fn run<T: Send>(
        &self,
        client: impl FnOnce(StreamEnds<Reader<'_>, Writer<'_>>, Watch<'_>) -> T + Send,
    ) -> (T, Result<ServedRequest, TransferError>) {
        let (one, other) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            let served = scope.spawn(|| {
                let hang_up = || drop(other.shutdown(Shutdown::Both));
                let watch = Watch { event: &|_| (), cancel: &self.cancel, hang_up: &hang_up };
                let served = serve(self.ends(&other), &self.folders, [2; 32], watch);
                hang_up();
                served
            });
            let hang_up = || drop(one.shutdown(Shutdown::Both));
            let note = |event| self.events.lock().unwrap().push(event);
            let watch = Watch { event: &note, cancel: &self.cancel, hang_up: &hang_up };
            let done = client(self.ends(&one), watch);
            hang_up();
            (done, served.join().unwrap())
        })
    }

    pub(super) fn push(&self, paths: &[PathBuf], place: &str, options: TransferOptions) -> Ended {
        let (mut origin, hello) = pushing(paths, place, options);
        self.run(|ends, watch| push(ends, hello, &mut origin, watch)).0
    }

    pub(super) fn pull(&self, paths: &[&str], to: &Path) -> Ended {
        let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        let tops =
            paths.iter().map(|path| path.rsplit(|byte| *byte == b'/').next().unwrap().to_vec()).collect();
        let asked = Asked::Pull { folder: b"inbox".to_vec(), paths, options: TransferOptions::default() };
        let folder = Folder::open(&to.into(), FolderRules::default()).unwrap();
        let destination =
            DiskDestination::open(folder, None, [7; 16], patterns(&[]).unwrap(), false).unwrap();
        self.run(|ends, watch| pull(ends, hello(asked), destination, Some(tops), watch)).0
    }

    fn list(&self, folder: &str, place: &str, deep: bool) -> Result<Vec<EntryMessage>, TransferError> {
        let (folder, place) = (folder.as_bytes().to_vec(), place.as_bytes().to_vec());
        let mut all = Vec::new();
        let listed = self.run(|ends, watch| {
            list(ends, hello(Asked::List { folder, place, deep }), &mut |entry| all.push(entry), watch)
        });
        listed.0.map(|_| all)
    }
}

pub(super) fn hello(asked: Asked) -> Hello {
    Hello { transfer: [9; 16], nonce: [1; 32], asked }
}

/// Both halves of a stream, one of which is written by way of `writer`.
pub(super) fn ends<W>(stream: &UnixStream, writer: W) -> StreamEnds<Buffered<'_>, W> {
    let (reader, calibration) = (Buffered(stream), Calibration::assumed());
    StreamEnds { reader, writer, calibration, limit: None, link: None }
}

/// A folder `inbox` that the peer may read and write.
pub(super) fn inbox(folder: &Path) -> SharedFolder {
    let (name, rules) = ("inbox".to_owned(), FolderRules::default());
    let (path, patience) = (folder.into(), Duration::ZERO);
    SharedFolder {
        name,
        path,
        rules,
        read: true,
        write: true,
        delete: true,
        patience,
        copies: None,
        unfinished_since: UNIX_EPOCH,
    }
}

/// What is sent to a place in `inbox`, and how that begins.
pub(super) fn pushing(paths: &[PathBuf], place: &str, options: TransferOptions) -> (DiskOrigin, Hello) {
    let mut sources = Sources::default();
    paths.iter().for_each(|path| sources.add_path(path).unwrap());
    let origin = DiskOrigin::new(sources, patterns(&options.patterns).unwrap(), options.xattrs);
    let asked = Asked::Push { folder: b"inbox".to_vec(), place: place.as_bytes().to_vec(), options };
    (origin, hello(asked))
}

/// Bytes that do not repeat.
pub(super) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub(super) fn whole(ended: Ended) -> Tally {
    let tally = ended.unwrap();
    assert_eq!(tally.failed, 0);
    tally
}

/// A folder with one of everything that is sent.
fn everything(folder: &TestFolder) -> PathBuf {
    let top = folder.join("tree");
    fs::create_dir_all(top.join("a/deep/er")).unwrap();
    fs::write(top.join("a/text"), "the same line\n".repeat(40_000)).unwrap();
    fs::write(top.join("a/noise"), noise(3_000_000, 1)).unwrap();
    fs::write(top.join("a/deep/er/empty"), "").unwrap();
    fs::set_permissions(top.join("a/text"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(top.join(OsStr::from_bytes(b"not \xff UTF-8\n")), "x").unwrap();
    fs::hard_link(top.join("a/noise"), top.join("other name")).unwrap();
    symlink("a/text", top.join("link")).unwrap();
    symlink("../nowhere", top.join("a/dangling")).unwrap();
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    sparse.write_all_at(&noise(5000, 2), 30 << 20).unwrap();
    for number in 0..300 {
        fs::write(top.join(format!("a/deep/small{number}")), format!("content {number}")).unwrap();
    }
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    for path in ["a/text", "a/deep/er", "a", "sparse"] {
        File::open(top.join(path)).unwrap().set_modified(old).unwrap();
    }
    top
}

#[test]
fn a_pushed_tree_is_the_same_and_a_pulled_one_too() {
    let (source, target, back) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("b"));
    let top = everything(&source);
    let meeting = Meeting::new(target.path(), i64::MAX);
    let tally = whole(meeting.push(&[top], "", TransferOptions::default()));
    assert_eq!(tally.whole, snapshot(source.path()).len() as u64);
    assert_eq!(snapshot(target.path()), snapshot(source.path()));
    whole(meeting.pull(&["tree"], back.path()));
    assert_eq!(snapshot(back.path()), snapshot(source.path()));
    assert!(!target.join(crate::folder::WORKING_FOLDER).exists(), "nothing unfinished is left");
    use std::os::unix::fs::MetadataExt;
    assert!(fs::metadata(back.join("tree/sparse")).unwrap().blocks() < 2048, "the holes are holes");
}

#[test]
fn content_goes_below_the_place_that_is_named() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("f"), "1").unwrap();
    whole(Meeting::new(target.path(), i64::MAX).push(&[source.join("f")], "x/y", TransferOptions::default()));
    assert_eq!(fs::read(target.join("x/y/f")).unwrap(), b"1");
}

#[test]
fn a_sync_removes_what_is_gone_but_not_what_is_excluded() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::create_dir(source.join("d")).unwrap();
    fs::write(source.join("d/new"), "1").unwrap();
    fs::write(source.join("d/x.o"), "object").unwrap();
    fs::create_dir_all(target.join("p/d/old/deep")).unwrap();
    fs::write(target.join("p/d/old/deep/file"), "2").unwrap();
    fs::write(target.join("p/d/kept.o"), "3").unwrap();
    fs::write(target.join("outside"), "4").unwrap();
    let options =
        TransferOptions { delete: true, patterns: vec![b"- *.o".to_vec()], ..TransferOptions::default() };
    let contents = PathBuf::from(format!("{}/", source.path().display()));
    let dry = TransferOptions { dry_run: true, ..options.clone() };
    let meeting = Meeting::new(target.path(), i64::MAX);
    let before = snapshot(target.path());
    assert_eq!(whole(meeting.push(std::slice::from_ref(&contents), "p", dry)).removed, 3);
    assert_eq!(snapshot(target.path()), before, "a dry run changes nothing");
    assert_eq!(whole(meeting.push(&[contents], "p", options)).removed, 3);
    let names: Vec<Vec<u8>> = snapshot(target.path()).into_keys().collect();
    assert_eq!(names, [&b"outside"[..], b"p", b"p/d", b"p/d/kept.o", b"p/d/new"]);
}

#[test]
fn a_sync_removes_nothing_below_an_empty_mount_point_without_its_disk() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    for name in ["d/disk", "d/other", "d/used"] {
        fs::create_dir_all(source.join(name)).unwrap();
        fs::create_dir_all(target.join("p").join(name)).unwrap();
        fs::write(target.join("p").join(name).join("old"), name).unwrap();
    }
    fs::write(source.join("d/used/new"), "1").unwrap();
    let at = source.path().display();
    let fstab = format!("/dev/sdb {at}/d/disk ext4\n/dev/sdc {at}/d/used ext4\n");
    let options = TransferOptions { delete: true, ..TransferOptions::default() };
    let (origin, hello) = pushing(&[source.join("")], "p", options.clone());
    let mut origin = origin.sparing(BareMountPoints::of(fstab.as_bytes(), b""));
    let meeting = Meeting::new(target.path(), i64::MAX);
    let tally = meeting.run(|ends, watch| push(ends, hello, &mut origin, watch)).0.unwrap();
    assert_eq!((tally.failed, tally.removed), (1, 2));
    let events = meeting.events.lock().unwrap().clone();
    let said = events.iter().find_map(|event| match event {
        TransferEvent::Failed { path, fault } if path == b"d/disk" => {
            Some(String::from_utf8_lossy(&fault.text))
        }
        _ => None,
    });
    assert!(said.as_ref().is_some_and(|said| said.contains("nothing is mounted")), "{events:?}");
    let left = |name: &str| target.join("p/d").join(name).join("old").exists();
    assert_eq!(["disk", "other", "used"].map(left), [true, false, false]);
    assert_eq!(whole(meeting.push(&[source.join("")], "p", options)).removed, 1, "as a folder like others");
}

#[test]
fn a_list_names_what_is_there_and_the_folders() {
    let target = TestFolder::new("t");
    fs::create_dir(target.join("d")).unwrap();
    fs::write(target.join("d/f"), "123").unwrap();
    let meeting = Meeting::new(target.path(), i64::MAX);
    let paths = |all: Vec<EntryMessage>| {
        all.into_iter().map(|it| String::from_utf8(it.path).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(paths(meeting.list("", "", false).unwrap()), ["inbox"]);
    assert_eq!(paths(meeting.list("inbox", "", false).unwrap()), ["", "d"]);
    assert_eq!(paths(meeting.list("inbox", "", true).unwrap()), ["", "d", "d/f"]);
    assert_eq!(paths(meeting.list("inbox", "d", false).unwrap()), ["", "f"]);
    assert_eq!(paths(meeting.list("inbox", "d/f", false).unwrap()), ["f"]);
    assert!(matches!(meeting.list("inbox", "d/f/g", false), Err(TransferError::Refused(_))));
    assert!(matches!(meeting.list("inbox", "e", false), Err(TransferError::Refused(_))));
}

#[test]
fn what_a_peer_may_not_do_is_refused_and_a_folder_that_it_may_not_use_is_not_there() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("f"), "1").unwrap();
    let mut meeting = Meeting::new(target.path(), i64::MAX);
    let refused = |ended: Ended, reason: FaultReason| {
        assert!(matches!(&ended, Err(TransferError::Refused(fault)) if fault.reason == reason), "{ended:?}");
    };
    meeting.folders[0].write = false;
    refused(meeting.push(&[source.join("f")], "", TransferOptions::default()), FaultReason::NotAllowed);
    (meeting.folders[0].write, meeting.folders[0].read) = (true, false);
    refused(meeting.pull(&["f"], source.path()), FaultReason::NotAllowed);
    meeting.folders[0].write = false;
    refused(meeting.push(&[source.join("f")], "", TransferOptions::default()), FaultReason::NoFolder);
    assert_eq!(meeting.list("", "", false).unwrap(), []);
    assert_eq!(snapshot(target.path()).len(), 0);
}

#[test]
fn a_place_behind_a_symlink_is_not_written_or_read() {
    let (source, target, outside) = (TestFolder::new("s"), TestFolder::new("t"), TestFolder::new("o"));
    fs::write(source.join("f"), "1").unwrap();
    fs::write(outside.join("secret"), "2").unwrap();
    symlink(outside.path(), target.join("out")).unwrap();
    let meeting = Meeting::new(target.path(), i64::MAX);
    let pushed = meeting.push(&[source.join("f")], "out", TransferOptions::default());
    assert!(matches!(&pushed, Err(TransferError::Refused(_))), "{pushed:?}");
    assert_eq!(snapshot(outside.path()).len(), 1);
    let pulled = meeting.pull(&["out/secret"], source.path());
    assert!(matches!(pulled, Err(TransferError::Refused(_))), "{pulled:?}");
}

#[test]
fn ten_cuts_and_resumes_end_whole_and_no_name_is_ever_wrong() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let top = everything(&source);
    fs::write(top.join("large"), noise(30_000_000, 5)).unwrap();
    let expected = snapshot(source.path());
    let mut random = 12_345_u64;
    for _ in 0..10 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let meeting = Meeting::new(target.path(), 1000 + (random >> 33) as i64 % 6_000_000);
        let ended = meeting.push(std::slice::from_ref(&top), "", TransferOptions::default());
        assert!(matches!(ended, Ok(_) | Err(TransferError::Interrupted(_))), "{ended:?}");
        for (path, found) in snapshot(target.path()).into_iter().filter(|(_, found)| found.kind == "file") {
            assert!(found.content == expected[&path].content, "{}", crate::path::Printable(&path));
        }
    }
    whole(Meeting::new(target.path(), i64::MAX).push(&[top], "", TransferOptions::default()));
    assert!(snapshot(target.path()) == expected);
}

#[test]
fn a_resume_sends_only_what_is_missing() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("large"), noise(40 << 20, 1)).unwrap();
    let cut =
        Meeting::new(target.path(), 36 << 20).push(&[source.join("large")], "", TransferOptions::default());
    assert!(matches!(cut, Err(TransferError::Interrupted(_))), "{cut:?}");
    assert_eq!(snapshot(target.path()).len(), 0);
    // 36 MiB went, of which all but a few pieces on their way were written down.
    whole(Meeting::new(target.path(), 16 << 20).push(
        &[source.join("large")],
        "",
        TransferOptions::default(),
    ));
    assert!(snapshot(target.path()) == snapshot(source.path()));
}

#[test]
fn of_two_senders_to_one_name_each_is_whole_and_the_last_one_has_it() {
    let (one, other, target) = (TestFolder::new("1"), TestFolder::new("2"), TestFolder::new("t"));
    fs::write(one.join("f"), noise(2_000_000, 1)).unwrap();
    fs::write(other.join("f"), noise(2_000_001, 2)).unwrap();
    let run = |source: &TestFolder, transfer: [u8; 16]| {
        let mut sources = Sources::default();
        sources.add_path(&source.join("f")).unwrap();
        let mut origin = DiskOrigin::new(sources, patterns(&[]).unwrap(), false);
        let asked =
            Asked::Push { folder: b"inbox".to_vec(), place: Vec::new(), options: TransferOptions::default() };
        let hello = Hello { transfer, nonce: [1; 32], asked };
        Meeting::new(target.path(), i64::MAX).run(|ends, watch| push(ends, hello, &mut origin, watch)).0
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| whole(run(&one, [1; 16])));
        let second = scope.spawn(|| whole(run(&other, [2; 16])));
        first.join().unwrap();
        second.join().unwrap();
    });
    let found = fs::read(target.join("f")).unwrap();
    assert!([&one, &other].iter().any(|source| fs::read(source.join("f")).unwrap() == found));
}

#[test]
fn a_run_of_a_transfer_waits_for_the_one_before_it_to_end() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("f"), "1").unwrap();
    let running = target.open().receive([9; 16]).unwrap();
    let mut meeting = Meeting::new(target.path(), i64::MAX);
    meeting.folders[0].patience = Duration::from_secs(60);
    thread::scope(|scope| {
        let second = scope.spawn(|| meeting.push(&[source.join("f")], "", TransferOptions::default()));
        thread::sleep(Duration::from_millis(200));
        assert!(!second.is_finished());
        drop(running);
        whole(second.join().unwrap());
    });
    assert_eq!(fs::read(target.join("f")).unwrap(), b"1");
}

#[test]
fn a_run_of_a_transfer_that_is_running_is_refused() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("f"), "1").unwrap();
    let folder = target.open();
    let running = folder.receive([9; 16]).unwrap();
    let second =
        Meeting::new(target.path(), i64::MAX).push(&[source.join("f")], "", TransferOptions::default());
    assert!(
        matches!(&second, Err(TransferError::Refused(fault)) if fault.reason == FaultReason::Busy),
        "{second:?}"
    );
    drop(running);
    let place = EntryPath::new(b"f".as_slice()).unwrap();
    assert!(folder.look(&place).unwrap().is_none());
}

#[test]
fn what_cannot_be_sent_is_named_and_the_rest_goes() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let top = source.join("d");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("f"), "1").unwrap();
    std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    let meeting = Meeting::new(target.path(), i64::MAX);
    let tally = meeting.push(&[top], "", TransferOptions::default()).unwrap();
    assert_eq!((tally.whole, tally.failed), (2, 1));
    let events = meeting.events.into_inner().unwrap();
    let named = |event: &TransferEvent| matches!(event, TransferEvent::Failed { path, fault } if path == b"d/socket" && fault.reason == FaultReason::NotSent);
    assert_eq!(events.iter().filter(|event| named(event)).count(), 1);
}

#[test]
fn standard_input_becomes_a_file_and_a_file_standard_output() {
    let target = TestFolder::new("t");
    let meeting = Meeting::new(target.path(), i64::MAX);
    let content = noise(3_000_000, 1);
    let mut origin = PipeOrigin::new(b"f".to_vec(), 5, &content[..]);
    let options = TransferOptions::default;
    let asked = Asked::Push { folder: b"inbox".to_vec(), place: b"d".to_vec(), options: options() };
    whole(meeting.run(|ends, watch| push(ends, hello(asked), &mut origin, watch)).0);
    assert!(fs::read(target.join("d/f")).unwrap() == content);
    let asked = Asked::Pull { folder: b"inbox".to_vec(), paths: vec![b"d/f".to_vec()], options: options() };
    let mut out = Vec::new();
    whole(meeting.run(|ends, watch| pull(ends, hello(asked), PipeDestination::new(&mut out), None, watch)).0);
    assert!(out == content);
}

#[test]
fn a_transfer_that_begins_removes_what_others_left_long_ago() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("large"), noise(8 << 20, 1)).unwrap();
    fs::write(source.join("small"), "x").unwrap();
    let cut =
        Meeting::new(target.path(), 4 << 20).push(&[source.join("large")], "", TransferOptions::default());
    assert!(matches!(cut, Err(TransferError::Interrupted(_))), "{cut:?}");
    let partial = target.join(".strait-partial");
    let other = partial.join("77".repeat(16));
    fs::rename(partial.join("09".repeat(16)), &other).unwrap();
    let begin = |since, dry_run| {
        let mut meeting = Meeting::new(target.path(), i64::MAX);
        meeting.folders[0].unfinished_since = since;
        let options = TransferOptions { dry_run, ..TransferOptions::default() };
        meeting.push(&[source.join("small")], "", options).unwrap();
        other.exists()
    };
    let later = UNIX_EPOCH + Duration::from_secs(1 << 40);
    assert!(begin(UNIX_EPOCH, false) && begin(later, true));
    assert!(!begin(later, false));
    assert!(!partial.exists());
}

#[test]
fn standard_input_that_cannot_be_resumed_leaves_nothing_behind() {
    let content = noise(3_000_000, 1);
    for (bytes, max_bytes) in [(1_500_000, None), (i64::MAX, Some(1_000_000))] {
        let target = TestFolder::new("t");
        let mut meeting = Meeting::new(target.path(), bytes);
        meeting.folders[0].rules.max_bytes = max_bytes;
        let mut origin = PipeOrigin::new(b"f".to_vec(), 5, &content[..]);
        let options = TransferOptions::default();
        let asked = Asked::Push { folder: b"inbox".to_vec(), place: Vec::new(), options };
        let ended = meeting.run(|ends, watch| push(ends, hello(asked), &mut origin, watch)).0;
        let failed = matches!(&ended, Ok(tally) if tally.failed == 1);
        assert!(failed || matches!(ended, Err(TransferError::Interrupted(_))), "{ended:?}");
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0, "{ended:?}");
    }
}

/// Bytes on the wire of a push, and how it ended.
fn counted(target: &TestFolder, path: &Path, options: TransferOptions) -> (u64, Ended) {
    let meeting = Meeting::new(target.path(), i64::MAX);
    let ended = meeting.push(&[path.to_owned()], "", options);
    let events = meeting.events.into_inner().unwrap();
    (events.iter().map(wire).sum(), ended)
}

/// Bytes of content that moved, or were there already.
pub(super) fn content_bytes(events: &[TransferEvent]) -> u64 {
    let moved = events.iter().map(|event| match event {
        TransferEvent::Moved { bytes } | TransferEvent::Skipped { size: bytes, .. } => i128::from(*bytes),
        TransferEvent::Void { bytes } => -i128::from(*bytes),
        _ => 0,
    });
    u64::try_from(moved.sum::<i128>()).unwrap()
}

/// Bytes of an event that passed the wire.
pub(super) fn wire(event: &TransferEvent) -> u64 {
    if let TransferEvent::Wire { bytes } = event { *bytes } else { 0 }
}

/// A file of 12 MB, and the same with parts changed, moved, added and left out.
fn two_releases() -> (Vec<u8>, Vec<u8>) {
    let old = noise(12_000_000, 1);
    let new =
        [&old[..3_000_000], &noise(700, 2), &old[3_000_100..7_000_000], &old[8_000_000..], &old[..500_000]]
            .concat();
    (old, new)
}

#[test]
fn of_a_file_that_has_an_older_one_only_what_is_new_goes() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let (old, new) = two_releases();
    fs::write(target.join("f"), old).unwrap();
    fs::write(source.join("f"), &new).unwrap();
    let (wire, ended) = counted(&target, &source.join("f"), TransferOptions::default());
    whole(ended);
    assert!(fs::read(target.join("f")).unwrap() == new);
    // Ids of 730 chunks, some fine ids, and 700 bytes.
    assert!(wire < 60_000, "{wire}");
}

#[test]
fn another_file_can_be_named_as_the_older_one() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let (old, new) = two_releases();
    fs::write(target.join("f-1"), old).unwrap();
    fs::write(source.join("f-2"), &new).unwrap();
    let options = TransferOptions { like: b"f-1".to_vec(), ..TransferOptions::default() };
    let (wire, ended) = counted(&target, &source.join("f-2"), options);
    whole(ended);
    assert!(fs::read(target.join("f-2")).unwrap() == new);
    assert!(wire < 60_000, "{wire}");
}

#[test]
fn a_peer_that_may_only_write_is_told_nothing_of_what_is_there() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let secret = noise(300_000, 1);
    fs::write(target.join("f"), &secret).unwrap();
    // Of another size, so that it is not taken for the same file where clocks are coarse.
    let guessed = &secret[..290_000];
    let like = TransferOptions { like: b"f".to_vec(), ..TransferOptions::default() };
    for (name, options) in [("f", TransferOptions::default()), ("g", like)] {
        let guess = source.join(name);
        fs::write(&guess, guessed).unwrap();
        let mut meeting = Meeting::new(target.path(), i64::MAX);
        meeting.folders[0].read = false;
        whole(meeting.push(std::slice::from_ref(&guess), "", options));
        let wire: u64 = meeting.events.into_inner().unwrap().iter().map(wire).sum();
        assert!(wire >= guessed.len() as u64, "{name}: {wire}: a patch tells that the guess is right");
    }
}

#[test]
fn many_files_with_older_ones_and_holes_are_patched_side_by_side() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    for number in 0..20_u8 {
        let mut content = noise(100_000 + usize::from(number) * 40_000, number.into());
        fs::write(target.join(&format!("f{number}")), &content).unwrap();
        content[50_000..50_010].fill(number);
        content.truncate(content.len() - 1000);
        let file = File::create(source.join(&format!("f{number}"))).unwrap();
        file.set_len(3 << 20).unwrap();
        file.write_all_at(&content, 1 << 20).unwrap();
    }
    let contents = PathBuf::from(format!("{}/", source.path().display()));
    let (wire, ended) = counted(&target, &contents, TransferOptions::default());
    whole(ended);
    assert!(snapshot(target.path()) == snapshot(source.path()));
    assert!(wire < 600_000, "{wire} of 9.6 MB");
}

/// A destination whose older file changes, from an offset on, after its ids were made.
pub(super) struct Moving(pub(super) DiskDestination, pub(super) PathBuf, pub(super) u64);

impl Destination for Moving {
    type Aside = DiskAside;

    fn folder(&mut self, entry: &EntryMessage) -> Result<bool, FileFault> {
        self.0.folder(entry)
    }

    fn standing(&mut self, entry: &EntryMessage) -> Result<Standing, FileFault> {
        self.0.standing(entry)
    }

    fn older(&mut self, entry: &EntryMessage) -> Option<(File, u64)> {
        self.0.older(entry)
    }

    fn aside(&mut self, entry: &EntryMessage, resume: bool) -> Result<DiskAside, FileFault> {
        // The patch is on its way: what it refers to is no longer there.
        let older = File::options().write(true).open(&self.1).unwrap();
        older.write_all_at(&[0; 100_000], self.2).unwrap();
        self.0.aside(entry, resume)
    }

    fn discard(&mut self, aside: DiskAside) {
        self.0.discard(aside);
    }

    fn finish(&mut self, entry: &EntryMessage, content: Option<DiskAside>) -> Result<(), FileFault> {
        self.0.finish(entry, content)
    }

    fn settle(&mut self, all: bool) -> Result<Vec<Settlement>, FileFault> {
        self.0.settle(all)
    }

    fn end(&mut self) {
        self.0.end();
    }

    fn prune(
        &mut self,
        folder: &[u8],
        dry_run: bool,
        keep: &dyn Fn(&[u8]) -> bool,
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault> {
        self.0.prune(folder, dry_run, keep, removed)
    }
}

#[test]
fn a_patch_of_a_file_that_changed_meanwhile_is_void_and_the_whole_file_comes() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    let (old, new) = two_releases();
    fs::write(target.join("f"), old).unwrap();
    fs::write(source.join("f"), &new).unwrap();
    let destination =
        DiskDestination::open(target.open(), None, [7; 16], patterns(&[]).unwrap(), false).unwrap();
    let destination = Moving(destination, target.join("f"), 9_000_000);
    let meeting = Meeting::new(source.path(), i64::MAX);
    let options = TransferOptions::default();
    let asked = Asked::Pull { folder: b"inbox".to_vec(), paths: vec![b"f".to_vec()], options };
    whole(meeting.run(|ends, watch| pull(ends, hello(asked), destination, None, watch)).0);
    assert!(fs::read(target.join("f")).unwrap() == new);
}
