use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use strait_testdata::skip::{Need, skip};

use super::*;
use crate::arrival::ArrivalPlace;
use crate::outbox::spool::SpoolFolder;
use crate::outbox::{PathBytes, TransferLimits, TransferOrder};
use crate::scratch::ScratchFolder;
use crate::sealed::DeliveryOutcome;
use crate::sealed::gather::GatheredSource;
use crate::source::patterns::Patterns;

const NOW: i64 = 1_700_000_000;

/// A node with its outbox and its inbox.
struct Site {
    node: PrivateKey,
    peers: BTreeMap<PublicKey, String>,
    outbox: PathBuf,
    inbox: PathBuf,
    draws: u8,
}

impl Site {
    /// Node `seed` of three that know each other.
    fn new(scratch: &ScratchFolder, seed: u8) -> Site {
        let name = |seed: u8| (PrivateKey::generate(&[seed; 32]).public(), format!("node-{seed}"));
        Site {
            node: PrivateKey::generate(&[seed; 32]),
            peers: (1..=3).filter(|other| *other != seed).map(name).collect(),
            outbox: scratch.path().join(format!("outbox-{seed}")),
            inbox: scratch.folder(&format!("inbox-{seed}")),
            draws: 0,
        }
    }

    /// Bytes that differ from call to call and from site to site.
    fn random(&mut self) -> RandomBytes {
        self.draws += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[self.draws]).update(self.node.public().as_bytes());
        let mut stream = hasher.finalize_xof();
        Box::new(move || {
            let mut bytes = [0; 32];
            stream.fill(&mut bytes);
            bytes
        })
    }

    fn open(&mut self) -> Outbox<FolderDisk> {
        let random = self.random();
        Outbox::open(FolderDisk::open(&self.outbox).unwrap(), &self.node, random).unwrap()
    }

    fn send(&mut self, to: &Site, paths: &[&Path], limits: TransferLimits) -> TransferId {
        let order = TransferOrder {
            peer: to.node.public(),
            name: "b".to_owned(),
            folder: "inbox".to_owned(),
            below: PathBytes::default(),
            paths: paths.iter().map(|path| PathBytes::of(path)).collect(),
            patterns: Vec::new(),
            xattrs: false,
            spooled: false,
        };
        let mut outbox = self.open();
        let id = outbox.new_id();
        outbox.accept(id, order, limits, NOW).unwrap();
        id
    }

    fn visit(&mut self, stick: &Path) -> CarryReport {
        let inbox = self.inbox.clone();
        self.visit_with(stick, NOW, &move |_| {
            ArrivalPermission::Take(ArrivalPlace::open_to_all(inbox.clone()))
        })
    }

    fn visit_with(
        &mut self,
        stick: &Path,
        now: i64,
        permit: &dyn Fn(&Manifest) -> ArrivalPermission,
    ) -> CarryReport {
        let mut outbox = self.open();
        let random = self.random();
        StickVisit { node: &self.node, peers: &self.peers, permit, random, now }
            .run(stick, &mut outbox)
            .unwrap()
    }

    fn state(&mut self, id: TransferId) -> &'static str {
        self.open().get(id).unwrap().state.name()
    }
}

fn files(stick: &Path) -> usize {
    fs::read_dir(stick.join(FOLDER)).map_or(0, Iterator::count)
}

/// Some bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// Two sites, a stick, and a file to send.
fn setting() -> (ScratchFolder, Site, Site, PathBuf, PathBuf) {
    let scratch = ScratchFolder::new();
    let (a, b) = (Site::new(&scratch, 1), Site::new(&scratch, 2));
    let stick = scratch.folder("stick");
    let file = scratch.path().join("data");
    fs::write(&file, noise(200_000)).unwrap();
    (scratch, a, b, stick, file)
}

#[test]
fn a_transfer_goes_there_its_receipt_comes_back_and_the_stick_is_empty() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    let report = a.visit(&stick);
    assert_eq!((report.written.len(), report.written[0].0, report.problems.len()), (1, id, 0));
    assert_eq!((a.state(id), files(&stick)), ("carried", 2));
    let report = b.visit(&stick);
    assert_eq!((report.received.len(), report.received[0].outcome), (1, DeliveryOutcome::Whole));
    assert_eq!(fs::read(b.inbox.join("data")).unwrap(), noise(200_000));
    assert_eq!(files(&stick), 1, "the receipt alone");
    let report = a.visit(&stick);
    assert_eq!((report.delivered.len(), report.written.len()), (1, 0));
    assert_eq!((a.state(id), files(&stick)), ("delivered", 0));
}

#[test]
fn a_stick_that_is_read_twice_or_copied_delivers_once() {
    let (scratch, mut a, mut b, stick, file) = setting();
    a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    let copy = scratch.folder("copy/strait");
    for entry in fs::read_dir(stick.join(FOLDER)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let first = b.visit(&stick);
    fs::remove_file(b.inbox.join("data")).unwrap();
    let second = b.visit(copy.parent().unwrap());
    assert!(!b.inbox.join("data").exists(), "the user took it away");
    assert_eq!(first.received, second.received);
    assert_eq!(a.visit(copy.parent().unwrap()).delivered.len(), 1);
    assert_eq!(files(copy.parent().unwrap()), 0);
}

#[test]
fn a_lost_stick_is_written_again_and_still_delivers_once() {
    let (scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    b.visit(&stick);
    // The receipt is lost with the stick.
    let other = scratch.folder("other");
    assert_eq!(a.visit(&other).written.len(), 1);
    fs::remove_file(b.inbox.join("data")).unwrap();
    assert_eq!(b.visit(&other).received.len(), 1);
    assert!(!b.inbox.join("data").exists());
    a.visit(&other);
    assert_eq!(a.state(id), "delivered");
}

#[test]
fn the_same_stick_visited_twice_by_the_sender_is_written_once() {
    let (_scratch, mut a, b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    let report = a.visit(&stick);
    assert_eq!((report.written.len(), report.there), (0, vec![id]));
}

#[test]
fn objects_for_others_stay_as_they_are() {
    let (scratch, mut a, b, stick, file) = setting();
    let mut c = Site::new(&scratch, 3);
    a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    // The holiday pictures of the stick's owner, and what looks like ours.
    for name in ["holiday.jpg", "strait/x.manifest.age", "strait/notes.txt"] {
        fs::write(stick.join(name), "x").unwrap();
    }
    let before = files(&stick);
    let report = c.visit(&stick);
    assert_eq!((report.others, report.received.len(), report.problems.len()), (1, 0, 0));
    assert_eq!((files(&stick), fs::read_dir(&c.inbox).unwrap().count()), (before, 0));
}

#[test]
fn a_stick_pulled_out_at_any_byte_gives_nothing_half_and_is_written_again() {
    let (scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    let contents = stick.join(FOLDER).join(format!("{id}.contents.age"));
    let whole = fs::read(&contents).unwrap();
    for len in [0, 1, 100, 250, 70_000, whole.len() - 20_000, whole.len() - 1] {
        fs::write(&contents, &whole[..len]).unwrap();
        let report = b.visit(&stick);
        assert_eq!((report.received.len(), report.problems.len()), (0, 1), "{len}");
        assert!(report.problems[0].1.contains("taken off the stick"), "{:?}", report.problems);
        assert_eq!(fs::read_dir(&b.inbox).unwrap().count(), 0, "{len}");
        let report = a.visit(&stick);
        assert_eq!(report.written.len(), 1, "{len}: {report:?}");
    }
    // Pulled out before the manifest was written.
    fs::remove_file(stick.join(FOLDER).join(format!("{id}.manifest.age"))).unwrap();
    fs::write(stick.join(FOLDER).join(format!("{id}.manifest.age.part")), "half").unwrap();
    assert_eq!(b.visit(&stick), CarryReport::default());
    assert_eq!(a.visit(&stick).written.len(), 1);
    assert_eq!(b.visit(&stick).received.len(), 1);
    assert_eq!(fs::read(b.inbox.join("data")).unwrap(), noise(200_000));
    drop(scratch);
}

/// A file system of some size below `path`; taken away when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(path: &Path, kib: u32) -> Option<Mounted> {
        let size = format!("size={kib}k");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).output();
        let done = done.is_ok_and(|output| output.status.success());
        (done || skip(Need::Root, "no leave to mount a small file system")).then(|| Mounted(path.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_stick_takes_what_fits_and_the_rest_waits() {
    let (scratch, mut a, mut b, stick, file) = setting();
    let Some(_mounted) = Mounted::new(&stick, 400) else { return };
    let large = scratch.path().join("large");
    fs::write(&large, noise(600_000)).unwrap();
    let (first, second) =
        (a.send(&b, &[&large], TransferLimits::default()), a.send(&b, &[&file], TransferLimits::default()));
    let report = a.visit(&stick);
    assert_eq!(report.written.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [second]);
    assert_eq!(report.problems, [(first, "it does not fit on the stick any more".to_owned())]);
    assert_eq!((a.state(first), a.state(second), files(&stick)), ("waiting", "carried", 2));
    // Full to the last byte: the contents make room for the receipt.
    let filler = fs::write(stick.join("filler"), noise(400_000));
    assert!(filler.is_err(), "the stick is full");
    assert_eq!(b.visit(&stick).problems, []);
    a.visit(&stick);
    assert_eq!(a.state(second), "delivered");
}

#[test]
fn a_full_disk_at_the_receiver_takes_nothing_and_the_next_visit_everything() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let inbox = b.inbox.clone();
    {
        let Some(_mounted) = Mounted::new(&inbox, 100) else { return };
        a.send(&b, &[&file], TransferLimits::default());
        a.visit(&stick);
        let report = b.visit(&stick);
        assert_eq!((report.received.len(), report.problems.len()), (0, 1), "{report:?}");
        assert_eq!(fs::read_dir(&inbox).unwrap().count(), 0);
    }
    assert_eq!(b.visit(&stick).received.len(), 1);
    assert_eq!(fs::read(inbox.join("data")).unwrap(), noise(200_000));
}

#[test]
fn strangers_are_left_and_unwanted_folders_are_refused_to_the_sender() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    let peers = std::mem::take(&mut b.peers);
    let report = b.visit(&stick);
    assert!(report.problems[0].1.contains("none of the peers"), "{report:?}");
    assert_eq!(files(&stick), 2);
    b.peers = peers;
    let report = b.visit_with(&stick, NOW, &|_| ArrivalPermission::Leave("say where to".to_owned()));
    assert_eq!((report.problems, files(&stick)), (vec![(id, "say where to".to_owned())], 2));
    let report = b.visit_with(&stick, NOW, &|manifest| {
        ArrivalPermission::Refuse(format!("no folder {}", manifest.folder))
    });
    assert_eq!(report.received[0].outcome, DeliveryOutcome::Refused);
    a.visit(&stick);
    assert_eq!(a.state(id), "failed");
    let outbox = a.open();
    let said = crate::outbox::ListedTransfer::of(outbox.get(id).unwrap());
    assert_eq!(said.note, "no folder inbox");
}

#[test]
fn what_expired_by_the_receivers_clock_stays_on_the_stick() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits { expires: Some(NOW + 10), ..TransferLimits::default() });
    a.visit(&stick);
    let taken = RefCell::new(0);
    let report = b.visit_with(&stick, NOW + 10, &|_| {
        *taken.borrow_mut() += 1;
        ArrivalPermission::Leave(String::new())
    });
    assert_eq!((report.received.len(), report.problems.len(), *taken.borrow()), (0, 1, 0));
    assert!(report.problems[0].1.contains("clock"), "{report:?}");
    assert_eq!((files(&stick), a.state(id)), (2, "carried"));
    // The clock is set.
    assert_eq!(b.visit(&stick).received[0].outcome, DeliveryOutcome::Whole);
    a.visit(&stick);
    assert_eq!(a.state(id), "delivered");
}

#[test]
fn what_cannot_be_written_at_the_receiver_stays_on_the_stick_until_it_can() {
    let (scratch, mut a, mut b, stick, file) = setting();
    let tree = scratch.folder("tree");
    fs::rename(&file, tree.join("data")).unwrap();
    fs::write(scratch.path().join("other"), "other").unwrap();
    let id = a.send(&b, &[&tree, &scratch.path().join("other")], TransferLimits::default());
    a.visit(&stick);
    std::os::unix::fs::symlink(scratch.folder("elsewhere"), b.inbox.join("tree")).unwrap();
    let report = b.visit(&stick);
    assert_eq!((report.received.len(), report.problems.len()), (0, 1), "{report:?}");
    let said = &report.problems[0].1;
    assert!(
        said.starts_with("2 entries could not be written here: tree (") && said.contains("tree/data ("),
        "{said}"
    );
    assert_eq!(fs::read(b.inbox.join("other")).unwrap(), b"other", "all else is there");
    assert_eq!(files(&stick), 2);
    // Its sender hears nothing that is not so, and keeps it.
    a.visit(&stick);
    assert_eq!(a.state(id), "carried");
    fs::remove_file(b.inbox.join("tree")).unwrap();
    assert_eq!(b.visit(&stick).received[0].outcome, DeliveryOutcome::Whole);
    assert_eq!(fs::read(b.inbox.join("tree/data")).unwrap(), noise(200_000));
    a.visit(&stick);
    assert_eq!(a.state(id), "delivered");
}

#[test]
fn a_receipt_for_another_transfer_or_by_another_node_ends_nothing() {
    let (scratch, mut a, mut b, stick, file) = setting();
    let mut c = Site::new(&scratch, 3);
    let (first, second) =
        (a.send(&b, &[&file], TransferLimits::default()), a.send(&c, &[&file], TransferLimits::default()));
    a.visit(&stick);
    b.visit(&stick);
    c.visit(&stick);
    let name = |id| stick.join(FOLDER).join(format!("{id}.receipt.age"));
    // The two receipts change places; then one is of c, for a transfer to b.
    fs::rename(name(first), stick.join("x")).unwrap();
    fs::rename(name(second), name(first)).unwrap();
    fs::rename(stick.join("x"), name(second)).unwrap();
    let report = a.visit(&stick);
    assert_eq!((report.delivered.len(), report.problems.len()), (0, 2), "{report:?}");
    assert_eq!((a.state(first), a.state(second)), ("carried", "carried"));
}

#[test]
fn a_pipe_or_a_link_on_a_stick_is_no_object() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    a.visit(&stick);
    let manifest = stick.join(FOLDER).join(format!("{id}.manifest.age"));
    fs::remove_file(&manifest).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, &manifest, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Nothing hangs on the pipe.
    assert_eq!(b.visit(&stick).problems.len(), 1);
    fs::remove_file(&manifest).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &manifest).unwrap();
    assert_eq!(b.visit(&stick).problems.len(), 1);
}

#[test]
fn a_copy_in_the_outbox_goes_on_the_stick_when_its_source_is_gone() {
    let (_scratch, mut a, mut b, stick, file) = setting();
    let id = a.send(&b, &[&file], TransferLimits::default());
    // The same transfer again, as a copy.
    let mut outbox = a.open();
    let spool = SpoolFolder::open(&a.outbox).unwrap();
    let order = TransferOrder { spooled: true, ..outbox.get(id).unwrap().order.clone() };
    let copied = outbox.new_id();
    let mut source = GatheredSource::gather([file.as_path()], Patterns::default()).unwrap();
    let mut count = 100_u8;
    let random = || {
        count += 1;
        [count; 32]
    };
    spool.copy(copied, &mut source, (&order, u64::MAX), &a.node, random).unwrap();
    outbox.accept(copied, order, TransferLimits::default(), NOW).unwrap();
    drop(outbox);
    fs::remove_file(&file).unwrap();
    let report = a.visit(&stick);
    assert_eq!(report.written.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [copied]);
    assert!(report.problems[0].1.contains("is not there"), "{report:?}");
    assert_eq!(a.state(id), "waiting", "its file may come back");
    assert_eq!(b.visit(&stick).received.len(), 1);
    assert_eq!(fs::read(b.inbox.join("data")).unwrap(), noise(200_000));
}
