//! A sender that may write and not read: nothing that it hears depends on what is there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use strait_testdata::thorough::all_or;

use super::pair::{key, rules};
use super::real::{Ended, Meeting};
use super::snapshot::snapshot;
use crate::folder::{FolderRules, SymlinkRule};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileMessage, HowWanted, TransferOptions};
use crate::session::disk::unseen;
use crate::session::event::{TransferError, TransferEvent, Watch};
use crate::session::receiver::{ReceiverRules, ReceiverState};
use crate::session::{DiskDestination, Tally, patterns};
use crate::testing::{TestFolder, path};

/// Something under a name.
#[derive(Clone, Debug)]
enum Node {
    /// Content, by its number.
    File(usize),
    Symlink(&'static str),
    /// Another name for what has this path.
    HardLink(&'static str),
    Folder(BTreeMap<&'static str, Node>),
}

/// Lengths of contents: nothing; in memory; one that is looked for under other names; one that is patched.
const LENGTHS: [usize; 4] = [0, 10, 20_000, 70_000];
/// The time at which every file was modified, in seconds since 1970: a file with the same content is the same.
const MODIFIED: u64 = 1_000_000_000;

fn content(number: usize) -> Vec<u8> {
    vec![b'0' + number as u8; LENGTHS[number]]
}

/// Few names, one of which is what an entry gets that is in the way of another.
fn names() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&["a", "b", "a.other-1"][..])
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        4 => (0..LENGTHS.len()).prop_map(Node::File),
        1 => Just(Node::Symlink("b")),
        1 => proptest::sample::select(&["a", "b", "a/b"][..]).prop_map(Node::HardLink),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::btree_map(names(), inner, 0..3).prop_map(Node::Folder)
    })
}

fn tree() -> impl Strategy<Value = BTreeMap<&'static str, Node>> {
    proptest::collection::btree_map(names(), node(), 0..4)
}

/// Puts a tree into a folder. Other names of files are files here.
fn put(at: &Path, tree: &BTreeMap<&'static str, Node>) {
    for (name, node) in tree {
        let at = at.join(name);
        match node {
            Node::File(number) => {
                fs::write(&at, content(*number)).unwrap();
                let modified = UNIX_EPOCH + Duration::from_secs(MODIFIED);
                File::options().write(true).open(&at).unwrap().set_modified(modified).unwrap();
            }
            Node::Symlink(target) => symlink(target, &at).unwrap(),
            Node::HardLink(_) => fs::write(&at, "another").unwrap(),
            Node::Folder(inner) => {
                fs::create_dir(&at).unwrap();
                put(&at, inner);
            }
        }
    }
}

/// An action of a sender.
#[derive(Clone, Debug)]
struct Sent {
    tree: BTreeMap<&'static str, Node>,
    place: Option<&'static str>,
    delete: bool,
    dry_run: bool,
    /// After so many messages, the stream ends, and the transfer goes on over another one.
    cut: usize,
}

fn sent() -> impl Strategy<Value = Sent> {
    let place = proptest::option::of(proptest::sample::select(&["a", "a/b", "b/a/a"][..]));
    let rest = (place, any::<bool>(), proptest::bool::weighted(0.2), 0..60_usize);
    (tree(), rest).prop_map(|(tree, (place, delete, dry_run, cut))| Sent {
        tree,
        place,
        delete,
        dry_run,
        cut,
    })
}

/// A sender over one stream, and all that it hears.
struct Sender<'a> {
    state: ReceiverState<'a, DiskDestination>,
    dry_run: bool,
    next: u64,
    left: usize,
    heard: &'a mut Vec<String>,
}

impl Sender<'_> {
    /// Says one thing, and waits until what is whole is durable: no answer depends on when groups end.
    fn say(&mut self, message: FileMessage) -> Vec<FileMessage> {
        if self.left == 0 {
            return Vec::new();
        }
        self.left -= 1;
        let ended = self.state.message(message).and_then(|ended| self.state.settle(true).map(|()| ended));
        let answers = self.state.take_answers();
        self.heard.push(format!("{ended:?} {answers:?}"));
        answers
    }

    fn announce(&mut self, path: &str, kind: EntryKind) -> (u64, Vec<FileMessage>) {
        let index = self.next;
        self.next += 1;
        let modified = MODIFIED as i64 * 1_000_000_000;
        let entry = EntryMessage::new(path.as_bytes().to_vec(), kind, 0o644, modified);
        (index, self.say(FileMessage::Entry(EntryMessage { index, ..entry })))
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>) {
        let (entry, answers) = self.announce(path, EntryKind::File { size: Some(bytes.len() as u64) });
        let wanted = |answer: &FileMessage| match answer {
            FileMessage::Want { first, last, how } => {
                (*first..=*last).contains(&entry) && *how == HowWanted::Whole
            }
            _ => false,
        };
        if self.dry_run || !answers.iter().any(wanted) {
            return;
        }
        let (size, root) = (bytes.len() as u64, *blake3::hash(&bytes).as_bytes());
        if size > 0 {
            self.say(FileMessage::Data { entry, offset: 0, bytes });
        }
        self.say(FileMessage::End { entry, size, root });
    }

    fn folder(&mut self, at: &str, inner: &BTreeMap<&'static str, Node>) {
        let (folder, _) = self.announce(at, EntryKind::Folder);
        for (name, node) in inner {
            let path = if at.is_empty() { (*name).to_owned() } else { format!("{at}/{name}") };
            match node {
                Node::File(number) => self.file(&path, content(*number)),
                Node::Symlink(target) => {
                    drop(self.announce(&path, EntryKind::Symlink { target: (*target).into() }))
                }
                Node::HardLink(to) => drop(self.announce(&path, EntryKind::HardLink { to: (*to).into() })),
                Node::Folder(inner) => self.folder(&path, inner),
            }
        }
        self.say(FileMessage::Left { folder, complete: true });
    }
}

/// All that the sender hears over both streams.
fn hear(folder: &TestFolder, sent: &Sent) -> Vec<String> {
    let mut heard = Vec::new();
    for left in [sent.cut, usize::MAX] {
        let open = folder.open_with(FolderRules { hidden: true, ..FolderRules::default() });
        let place = sent.place.map(path);
        let destination = DiskDestination::open(open, place, [1; 16], patterns(&[]).unwrap(), sent.dry_run);
        let destination = match destination {
            Ok(destination) => destination,
            Err(fault) => {
                heard.push(format!("{:?}", unseen(fault)));
                continue;
            }
        };
        let cancel = AtomicBool::new(false);
        let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &|| () };
        let rules = ReceiverRules { delete: sent.delete, dry_run: sent.dry_run, ..rules() };
        let state = ReceiverState::new(destination, rules, key(), watch);
        let mut sender = Sender { state, dry_run: sent.dry_run, next: 0, left, heard: &mut heard };
        sender.folder("", &sent.tree);
        let entries = sender.next;
        sender.say(FileMessage::Finish { entries });
        sender.state.abandon();
    }
    heard
}

fn cases() -> ProptestConfig {
    let all = all_or("9,744 of 10,000 sessions of a sender that may not read");
    ProptestConfig { cases: if all { 10_000 } else { 256 }, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn who_may_not_read_hears_the_same_whatever_is_there(there in tree(), sent in sent()) {
        let (full, empty) = (TestFolder::new("full"), TestFolder::new("empty"));
        put(full.path(), &there);
        let before = snapshot(full.path());
        prop_assert_eq!(hear(&full, &sent), hear(&empty, &sent));
        let after = snapshot(full.path());
        if sent.dry_run {
            prop_assert!(before == after);
        } else if !sent.delete {
            prop_assert!(before.keys().all(|name| after.contains_key(name)), "nothing is removed");
        }
    }
}

/// The folder of the test, of which its peer may not read.
fn unread(folder: &TestFolder, delete: bool) -> Meeting {
    let mut meeting = Meeting::new(folder.path(), i64::MAX);
    (meeting.folders[0].read, meeting.folders[0].delete) = (false, delete);
    meeting
}

fn sync(meeting: &Meeting, from: &TestFolder, dry_run: bool) -> Ended {
    let contents = format!("{}/", from.path().display()).into();
    meeting.push(&[contents], "", TransferOptions { delete: true, dry_run, ..TransferOptions::default() })
}

#[test]
fn who_may_not_delete_removes_nothing_and_is_refused_before_anything_is_looked_at() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(target.join("salary-alice.txt"), "1").unwrap();
    for (read, dry_run) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut meeting = unread(&target, false);
        meeting.folders[0].read = read;
        let refused = sync(&meeting, &source, dry_run);
        let not_allowed =
            matches!(&refused, Err(TransferError::Refused(fault)) if fault.reason == FaultReason::NotAllowed);
        assert!(not_allowed, "{refused:?}");
    }
    assert!(target.join("salary-alice.txt").exists());
}

#[test]
fn who_may_delete_and_not_read_removes_without_hearing_what() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(target.join("salary-alice.txt"), "1").unwrap();
    for dry_run in [true, false] {
        let meeting = unread(&target, true);
        let Tally { removed, failed, .. } = sync(&meeting, &source, dry_run).unwrap();
        assert_eq!((removed, failed), (0, 0));
        let events = meeting.events.into_inner().unwrap();
        assert!(!events.iter().any(|event| matches!(event, TransferEvent::Removed { .. })));
        assert_eq!(target.join("salary-alice.txt").exists(), dry_run);
    }
}

#[test]
fn what_is_in_the_way_of_one_who_may_not_read_stays_and_the_entry_has_a_number() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::create_dir(source.join("d")).unwrap();
    fs::write(source.join("d/f"), "new").unwrap();
    fs::create_dir_all(target.join("d/f")).unwrap();
    fs::write(target.join("place"), "older").unwrap();
    let push = |place| unread(&target, false).push(&[source.join("d")], place, TransferOptions::default());
    for (place, expected) in [("", "d/f.other-1"), ("place", "place.other-1/d/f")] {
        assert_eq!(push(place).unwrap().failed, 0);
        assert_eq!(fs::read(target.join(expected)).unwrap(), b"new");
    }
    assert_eq!(fs::read(target.join("place")).unwrap(), b"older");
    // The same again goes to the same names.
    let before = snapshot(target.path());
    push("").unwrap();
    assert!(snapshot(target.path()).keys().eq(before.keys()));
}

#[test]
fn what_has_another_name_than_its_sender_knows_is_not_removed_at_once() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::write(source.join("f"), "new").unwrap();
    fs::create_dir(target.join("f")).unwrap();
    fs::write(target.join("gone"), "older").unwrap();
    sync(&unread(&target, true), &source, false).unwrap();
    assert_eq!(fs::read(target.join("f.other-1")).unwrap(), b"new");
    assert!(!target.join("gone").exists());
}

#[test]
fn a_hard_link_of_one_who_may_not_read_is_to_a_file_of_its_own() {
    let folder = TestFolder::new("t");
    fs::write(folder.join("there"), "secret").unwrap();
    let tree =
        BTreeMap::from([("a", Node::File(1)), ("b", Node::HardLink("a")), ("c", Node::HardLink("there"))]);
    let sent = Sent { tree, place: None, delete: false, dry_run: false, cut: 0 };
    let heard = hear(&folder, &sent).join("\n");
    assert_eq!(fs::read(folder.join("b")).unwrap(), content(1));
    assert!(heard.contains("NoFirstName") && !folder.join("c").exists(), "{heard}");
}

#[test]
fn a_transfer_that_goes_on_sends_no_file_twice_to_who_may_not_tell_what_is_there() {
    let folder = TestFolder::new("t");
    let tree = BTreeMap::from([("a", Node::File(1)), ("b", Node::File(3)), ("c", Node::File(1))]);
    // The stream ends behind the folder and two files.
    let sent = Sent { tree, place: None, delete: false, dry_run: false, cut: 7 };
    let heard = hear(&folder, &sent).join("\n");
    assert!(heard.contains("Want { first: 1, last: 1, how: Skip }"), "{heard}");
    assert!(heard.contains("Want { first: 2, last: 2, how: Skip }"), "{heard}");
    // Another transfer does not hear that they are there.
    let another = Sent { cut: 0, ..sent };
    assert!(!hear(&folder, &another).join("\n").contains("Skip"));
}

#[test]
fn what_goes_beside_another_under_the_name_of_a_later_entry_is_not_heard() {
    let inner = BTreeMap::from([("a", Node::Folder(BTreeMap::new()))]);
    let tree = BTreeMap::from([("a", Node::Folder(inner)), ("a.other-1", Node::Folder(BTreeMap::new()))]);
    let sent = Sent { tree, place: None, delete: true, dry_run: false, cut: 0 };
    let (full, empty) = (TestFolder::new("full"), TestFolder::new("empty"));
    fs::write(full.join("a"), "1").unwrap();
    assert_eq!(hear(&full, &sent), hear(&empty, &sent));
}

#[test]
fn a_symlink_that_leads_out_is_refused_and_its_sender_hears_it() {
    let (source, target) = (TestFolder::new("s"), TestFolder::new("t"));
    fs::create_dir(source.join("d")).unwrap();
    fs::write(source.join("d/f"), "1").unwrap();
    symlink("f", source.join("d/inside")).unwrap();
    symlink("/etc/shadow", source.join("d/out")).unwrap();
    let failed = |symlinks| {
        let mut meeting = Meeting::new(target.path(), i64::MAX);
        meeting.folders[0].rules.symlinks = symlinks;
        meeting.push(&[source.join("d")], "", TransferOptions::default()).unwrap();
        let events = meeting.events.into_inner().unwrap();
        let named = events.into_iter().filter_map(|event| match event {
            TransferEvent::Failed { path, fault } if fault.reason == FaultReason::SymlinkRefused => {
                Some(path)
            }
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    assert_eq!(failed(SymlinkRule::None), [&b"d/inside"[..], b"d/out"]);
    assert_eq!(failed(SymlinkRule::Inside), [b"d/out"]);
    assert!(target.join("d/inside").is_symlink() && !target.join("d/out").is_symlink());
    assert_eq!(failed(SymlinkRule::Any), Vec::<Vec<u8>>::new());
    assert!(target.join("d/out").is_symlink());
}
