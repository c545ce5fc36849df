//! Visits to a broker in memory.

mod fake;
mod killed;
mod lies;
mod stock;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use strait_keying::{PrivateKey, PublicKey};
use strait_testdata::skip::{Need, skip};

use super::*;
use crate::TransferId;
use crate::arrival::{ArrivalPermission, FolderOwner};
use crate::broker::message::ObjectPart;
use crate::folder::FolderRules;
use crate::outbox::{PathBytes, TransferLimits, TransferOrder};
use crate::scratch::ScratchFolder;
use crate::sealed::frames::SizePadding;
use crate::sealed::gather::GatheredSource;
use crate::sealed::{AgeRecipient, DeliveryOutcome, ObjectSealing, ObjectSeed, seal, seal_message};
use crate::source::patterns::Patterns;
use fake::{FakeBroker, FakeObject, Lie, NOW};

/// A node with its outbox and its inbox.
struct Site {
    node: PrivateKey,
    peers: BTreeMap<PublicKey, String>,
    outbox: PathBuf,
    inbox: PathBuf,
    draws: Mutex<u64>,
}

impl OutboxAccess for Site {
    fn open(&self) -> Result<Outbox<FolderDisk>, OutboxError> {
        Outbox::open(FolderDisk::open(&self.outbox)?, &self.node, self.random())
    }
}

/// What is said of a visit.
#[derive(Debug, Default)]
struct Said {
    found: Vec<String>,
    received: Vec<DeliveryReceipt>,
    delivered: Vec<DeliveryReceipt>,
    left: Vec<String>,
    failed: Vec<String>,
    held: u64,
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
            draws: Mutex::new(0),
        }
    }

    fn key(&self) -> PublicKey {
        self.node.public()
    }

    /// Bytes that differ from call to call and from site to site.
    fn random(&self) -> RandomBytes {
        let mut draws = self.draws.lock().unwrap();
        *draws += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&draws.to_be_bytes()).update(self.node.public().as_bytes());
        let mut stream = hasher.finalize_xof();
        Box::new(move || {
            let mut bytes = [0; 32];
            stream.fill(&mut bytes);
            bytes
        })
    }

    /// Leaves a transfer in the outbox and puts it to the broker, as a sender does.
    fn put(&self, broker: &FakeBroker, to: &[&Site], paths: &[&Path]) -> ObjectName {
        self.put_as(broker, to, paths, |manifest| manifest)
    }

    fn put_as(
        &self,
        broker: &FakeBroker,
        to: &[&Site],
        paths: &[&Path],
        change: impl FnOnce(Manifest) -> Manifest,
    ) -> ObjectName {
        let mut outbox = self.open().unwrap();
        let id = outbox.new_id();
        let order = TransferOrder {
            peer: to[0].key(),
            name: "b".to_owned(),
            folder: "inbox".to_owned(),
            below: PathBytes::default(),
            paths: paths.iter().map(|path| PathBytes::of(path)).collect(),
            patterns: Vec::new(),
            xattrs: false,
            spooled: false,
        };
        outbox.accept(id, order, TransferLimits::default(), NOW).unwrap();
        let recipients: Vec<AgeRecipient> = to.iter().map(|site| AgeRecipient::Node(site.key())).collect();
        let mut source = GatheredSource::gather(paths.iter().copied(), Patterns::default()).unwrap();
        let mut manifest = Manifest {
            transfer: id,
            sender: self.key(),
            serial: outbox.get(id).unwrap().serial,
            made: NOW,
            expires: i64::MAX,
            folder: "inbox".to_owned(),
            below: Vec::new(),
            recipients: recipients.clone(),
            entries: source.entries(),
        };
        let sealing = ObjectSealing { recipients: &recipients, level: 1, padding: SizePadding::Padme };
        let seed = ObjectSeed::new(outbox.random());
        let contents = seal(&mut manifest, &mut source, Vec::new(), seed, &sealing).unwrap();
        let signed = change(manifest).sign(&self.node).unwrap();
        let seed = ObjectSeed::new(outbox.random());
        let manifest = seal_message(&signed, Vec::new(), seed, &sealing).unwrap();
        let receivers = to.iter().map(|site| site.key()).collect();
        let object = FakeObject { made: NOW, expires: i64::MAX, receivers, manifest, contents };
        let name = ObjectName { sender: self.key(), id };
        broker.change(|state| state.objects.insert((LetterKind::Transfer, name), object));
        name
    }

    fn place(&self) -> ArrivalPlace {
        ArrivalPlace { replace: false, ..ArrivalPlace::open_to_all(self.inbox.clone()) }
    }

    /// Visits the broker, and takes everything into the inbox.
    fn visit(&self, broker: &FakeBroker) -> (Said, Result<FetchTally, FetchError>) {
        let place = self.place();
        self.visit_with(broker, &|_| ArrivalPermission::Take(place.clone()), false, &|| Ok(()))
    }

    fn visit_with(
        &self,
        broker: &FakeBroker,
        permit: &dyn Fn(&Manifest) -> ArrivalPermission,
        dry_run: bool,
        arrived: &dyn Fn() -> io::Result<()>,
    ) -> (Said, Result<FetchTally, FetchError>) {
        let said = Mutex::new(Said::default());
        let event = |event: FetchEvent<'_>| {
            let mut said = said.lock().unwrap();
            match event {
                FetchEvent::Found { manifest, .. } => said.found.push(manifest.folder.clone()),
                FetchEvent::Begun { held, .. } => said.held += held,
                FetchEvent::Received { receipt, .. } => said.received.push(receipt.clone()),
                FetchEvent::Delivered { receipt } => said.delivered.push(receipt.clone()),
                FetchEvent::Left { reason, .. } => said.left.push(reason.to_owned()),
                FetchEvent::Failed { reason, .. } => said.failed.push(reason.to_owned()),
                FetchEvent::Listed { .. } | FetchEvent::Moved { .. } => {}
            }
        };
        let ran = InboxVisit {
            arrivals: Arrivals { node: &self.node, peers: &self.peers, permit, now: NOW },
            outbox: self,
            spool: Some(IncomingSpool::open(&self.outbox).unwrap()),
            wanted: &|_| true,
            dry_run,
            arrived: &|_, _, _| arrived(),
            event: &event,
            random: RefCell::new(self.random()),
        }
        .run(&mut || broker.connect(self.key()));
        (said.into_inner().unwrap(), ran)
    }

    fn state(&self, id: TransferId) -> &'static str {
        self.open().unwrap().get(id).unwrap().state.name()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.inbox).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn spooled(&self) -> Vec<u64> {
        let parts = fs::read_dir(self.outbox.join("incoming")).unwrap();
        parts.map(|part| part.unwrap().metadata().unwrap().len()).collect()
    }
}

/// Bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// Two sites, a broker, and a file to send.
fn setting(len: usize) -> (ScratchFolder, Site, Site, FakeBroker, PathBuf) {
    let scratch = ScratchFolder::new();
    let (a, b) = (Site::new(&scratch, 1), Site::new(&scratch, 2));
    let file = scratch.path().join("data");
    fs::write(&file, noise(len)).unwrap();
    (scratch, a, b, FakeBroker::default(), file)
}

/// Longer than what goes without a file of its own.
const LARGE: usize = 6 << 20;

#[test]
fn a_transfer_comes_its_receipt_goes_back_and_nothing_stays_at_the_broker() {
    for len in [0, 1000, 300_000, LARGE] {
        let (_scratch, a, b, broker, file) = setting(len);
        let name = a.put(&broker, &[&b], &[&file]);
        let (said, tally) = b.visit(&broker);
        assert_eq!((said.received.len(), said.received[0].outcome), (1, DeliveryOutcome::Whole), "{said:?}");
        assert_eq!(tally.unwrap(), FetchTally { received: 1, ..FetchTally::default() });
        assert!(fs::read(b.inbox.join("data")).unwrap() == noise(len));
        assert_eq!((b.names(), b.spooled()), (vec!["data".to_owned()], vec![]));
        assert!(broker.inbox(&b.key(), LetterKind::Transfer).is_empty());
        let (said, tally) = a.visit(&broker);
        assert_eq!((said.delivered.len(), tally.unwrap().delivered), (1, 1));
        assert_eq!(a.state(name.id), "delivered");
        assert!(broker.change(|state| state.objects.is_empty()), "{len}");
    }
}

#[test]
fn many_transfers_of_many_sizes_from_two_senders_come_in_one_visit() {
    let (scratch, a, b, broker, _) = setting(1);
    let c = Site::new(&scratch, 3);
    let mut expected = Vec::new();
    for number in 0..70_usize {
        let name = format!("file-{number:02}");
        let file = scratch.path().join(&name);
        fs::write(&file, noise(number * number * 200)).unwrap();
        let from = if number % 3 == 0 { &c } else { &a };
        from.put(&broker, &[&b], &[&file]);
        expected.push(name);
    }
    let (said, tally) = b.visit(&broker);
    assert_eq!((tally.unwrap().received, said.failed.len()), (70, 0), "{said:?}");
    assert_eq!(b.names(), expected);
    assert_eq!(a.visit(&broker).0.delivered.len() + c.visit(&broker).0.delivered.len(), 70);
    assert!(broker.change(|state| state.objects.is_empty()));
}

#[test]
fn each_of_several_receivers_has_a_letter_of_its_own() {
    let (scratch, a, b, broker, file) = setting(5_000);
    let c = Site::new(&scratch, 3);
    a.put(&broker, &[&b, &c], &[&file]);
    assert_eq!(b.visit(&broker).1.unwrap().received, 1);
    assert_eq!(b.visit(&broker).1.unwrap().received, 0);
    assert_eq!(c.visit(&broker).1.unwrap().received, 1);
    let (said, _) = a.visit(&broker);
    assert_eq!((said.delivered.len(), said.failed.len()), (1, 1), "one was not its receiver: {said:?}");
    assert!(broker.change(|state| state.objects.is_empty()));
}

#[test]
fn a_dry_run_says_what_there_is_and_changes_nothing() {
    let (_scratch, a, b, broker, file) = setting(5_000);
    a.put(&broker, &[&b], &[&file]);
    let place = b.place();
    let (said, tally) = b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), true, &|| Ok(()));
    assert_eq!((said.found, tally.unwrap()), (vec!["inbox".to_owned()], FetchTally::default()));
    assert_eq!((b.names().len(), broker.inbox(&b.key(), LetterKind::Transfer).len()), (0, 1));
}

#[test]
fn what_comes_again_is_answered_with_the_same_receipt_and_changes_no_file() {
    let (_scratch, a, b, broker, file) = setting(5_000);
    let name = a.put(&broker, &[&b], &[&file]);
    let copy = broker.change(|state| state.objects[&(LetterKind::Transfer, name)].clone());
    let first = b.visit(&broker).0;
    fs::remove_file(b.inbox.join("data")).unwrap();
    broker.change(|state| state.objects.insert((LetterKind::Transfer, name), copy));
    let second = b.visit(&broker).0;
    assert_eq!((first.received, b.names().len()), (second.received, 0), "the user took it away");
    assert_eq!(a.visit(&broker).0.delivered.len(), 1);
}

#[test]
fn a_folder_that_may_not_be_written_leaves_the_transfer_at_the_broker() {
    if !(rustix::process::geteuid().is_root() || skip(Need::Root, "only root can become another")) {
        return;
    }
    for len in [5_000, LARGE] {
        let (_scratch, a, b, broker, file) = setting(len);
        let name = a.put(&broker, &[&b], &[&file]);
        // Root's folder, into which another user fetches.
        fs::set_permissions(&b.inbox, fs::Permissions::from_mode(0o755)).unwrap();
        let mut place = b.place();
        place.owner = FolderOwner::Other { user: 4321, group: 4321 };
        let visit = || b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), false, &|| Ok(()));
        let (said, tally) = visit();
        assert_eq!((tally.unwrap(), said.left.len()), (FetchTally { left: 1, ..FetchTally::default() }, 1));
        assert!(said.left[0].contains("cannot write to") && said.left[0].contains("denied"), "{said:?}");
        assert!(broker.inbox(&b.key(), LetterKind::Transfer).contains(&name));
        assert_eq!(
            (a.visit(&broker).0.delivered.len(), b.spooled().len()),
            (0, 0),
            "nothing was read in vain"
        );
        fs::set_permissions(&b.inbox, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(visit().0.received[0].outcome, DeliveryOutcome::Whole);
        assert_eq!(a.visit(&broker).0.delivered.len(), 1);
    }
}

#[test]
fn what_is_in_the_way_of_one_entry_leaves_the_transfer_at_the_broker() {
    for len in [5_000, LARGE] {
        let (scratch, a, b, broker, file) = setting(len);
        let tree = scratch.folder("tree");
        fs::rename(&file, tree.join("data")).unwrap();
        let name = a.put(&broker, &[&b], &[&tree]);
        std::os::unix::fs::symlink(scratch.folder("elsewhere"), b.inbox.join("tree")).unwrap();
        let mut place = b.place();
        place.replace = true;
        let visit = || b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), false, &|| Ok(()));
        let (said, tally) = visit();
        assert_eq!(tally.unwrap(), FetchTally { failed: 1, ..FetchTally::default() });
        assert!(said.failed[0].contains("tree/data"), "{said:?}");
        assert!(broker.inbox(&b.key(), LetterKind::Transfer).contains(&name));
        assert_eq!(a.visit(&broker).0.delivered.len(), 0);
        fs::remove_file(b.inbox.join("tree")).unwrap();
        assert_eq!(visit().0.received[0].outcome, DeliveryOutcome::Whole);
        assert!(fs::read(b.inbox.join("tree/data")).unwrap() == noise(len));
        assert!(broker.change(|state| state.objects.len()) == 1, "the receipt alone");
    }
}

#[test]
fn files_that_are_there_stay_and_so_does_the_transfer() {
    let (_scratch, a, b, broker, file) = setting(5_000);
    a.put(&broker, &[&b], &[&file]);
    fs::write(b.inbox.join("data"), "mine").unwrap();
    let (said, tally) = b.visit(&broker);
    assert_eq!((tally.unwrap().left, fs::read(b.inbox.join("data")).unwrap()), (1, b"mine".to_vec()));
    assert!(
        said.left[0].contains("data is there already") && said.left[0].contains("--overwrite"),
        "{said:?}"
    );
    assert_eq!(broker.inbox(&b.key(), LetterKind::Transfer).len(), 1);
    let place = ArrivalPlace { replace: true, ..b.place() };
    let (_, tally) = b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), false, &|| Ok(()));
    assert_eq!((tally.unwrap().received, fs::read(b.inbox.join("data")).unwrap().len()), (1, 5_000));
}

#[test]
fn what_is_refused_is_told_to_its_sender_and_what_is_left_to_no_other() {
    let (_scratch, a, b, broker, file) = setting(5_000);
    let name = a.put(&broker, &[&b], &[&file]);
    let leave = |_: &Manifest| ArrivalPermission::Leave("say where to".to_owned());
    let (said, _) = b.visit_with(&broker, &leave, false, &|| Ok(()));
    assert_eq!(
        (said.left, broker.inbox(&a.key(), LetterKind::Receipt).len()),
        (vec!["say where to".to_owned()], 0)
    );
    let refuse = |_: &Manifest| ArrivalPermission::Refuse("no such folder".to_owned());
    b.visit_with(&broker, &refuse, false, &|| Ok(())).1.unwrap();
    a.visit(&broker).1.unwrap();
    assert_eq!(a.state(name.id), "failed");
}

#[test]
fn a_folder_that_is_full_by_its_rules_leaves_the_transfer_whole() {
    let (_scratch, a, b, broker, file) = setting(5_000);
    a.put(&broker, &[&b], &[&file]);
    let rules = FolderRules { max_bytes: Some(4_999), ..FolderRules::default() };
    let place = ArrivalPlace { rules, ..b.place() };
    let (said, _) = b.visit_with(&broker, &|_| ArrivalPermission::Take(place.clone()), false, &|| Ok(()));
    assert!(said.left[0].contains("max_bytes"), "{said:?}");
    assert_eq!((b.names().len(), broker.inbox(&b.key(), LetterKind::Transfer).len()), (0, 1));
}

#[test]
fn a_receipt_that_the_broker_takes_later_keeps_the_letter_and_one_that_it_never_takes_does_not() {
    use crate::broker::message::FaultKind::{Forbidden, Full, SenderQuota};
    for (fault, letters) in [(Full, 1), (SenderQuota, 1), (Forbidden, 0)] {
        let (_scratch, a, b, broker, file) = setting(5_000);
        a.put(&broker, &[&b], &[&file]);
        broker.change(|state| state.lie = Some((None, Lie::Refuses(fault))));
        let (said, _) = b.visit(&broker);
        assert!(said.failed[0].contains("receipt was not taken"), "{said:?}");
        assert_eq!(broker.inbox(&b.key(), LetterKind::Transfer).len(), letters, "{fault:?}");
        broker.change(|state| state.lie = None);
        assert_eq!(b.visit(&broker).0.received.len(), letters);
        assert_eq!(a.visit(&broker).0.delivered.len(), letters);
    }
}
