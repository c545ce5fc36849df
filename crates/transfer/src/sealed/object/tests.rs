use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use strait_keying::PrivateKey;

use rustix::io::Errno;

use super::*;
use crate::TransferId;
use crate::folder::FolderError;
use crate::path::PathError;
use crate::sealed::DeliveryOutcome;
use crate::sealed::manifest::MANIFEST_MAX;
use crate::sealed::recipient::AgeIdentity;

/// Files in memory, of which one may change after it was read.
#[derive(Default)]
struct Memory {
    files: BTreeMap<Vec<u8>, Vec<u8>>,
    changes: Option<Vec<u8>>,
}

impl Contents for Memory {
    fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn unchanged(&mut self, entry: &SealedEntry) -> io::Result<bool> {
        Ok(self.changes.as_ref() != Some(&entry.path))
    }
}

/// An entry that fails, and how.
type Refusal = (&'static [u8], fn() -> io::Error);

fn refusal(path: &'static [u8], error: fn() -> io::Error) -> Refusal {
    (path, error)
}

/// Takes files in memory but those that it refuses; after `room` bytes the disk is full.
struct Shelf {
    files: BTreeMap<Vec<u8>, Vec<u8>>,
    begun: Vec<u8>,
    refuses: Vec<Refusal>,
    room: usize,
    finished: bool,
}

fn shelf() -> Shelf {
    Shelf {
        files: BTreeMap::new(),
        begun: Vec::new(),
        refuses: Vec::new(),
        room: usize::MAX,
        finished: false,
    }
}

impl Landing for Shelf {
    fn begin(&mut self, entry: &SealedEntry) -> io::Result<()> {
        self.begun.clear();
        let refusal = self.refuses.iter().find(|(path, _)| *path == entry.path);
        refusal.map_or(Ok(()), |(_, error)| Err(error()))
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.begun.extend_from_slice(bytes);
        self.room = self.room.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }

    fn end(&mut self, entry: &SealedEntry) -> io::Result<()> {
        self.files.insert(entry.path.clone(), std::mem::take(&mut self.begun));
        Ok(())
    }

    fn abandon(&mut self) {
        self.begun.clear();
    }

    fn finish(&mut self, _: &[SealedEntry]) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}

fn receiver() -> PrivateKey {
    PrivateKey::generate(&[2; 32])
}

fn memory(files: &[(&str, &[u8])]) -> Memory {
    Memory {
        files: files.iter().map(|(path, bytes)| (path.as_bytes().to_vec(), bytes.to_vec())).collect(),
        changes: None,
    }
}

fn manifest(memory: &Memory) -> Manifest {
    let entry = |(path, bytes): (&Vec<u8>, &Vec<u8>)| SealedEntry {
        path: path.clone(),
        mode: 0o600,
        mtime: 0,
        kind: SealedKind::File { size: bytes.len() as u64, root: [0; 32] },
    };
    Manifest {
        transfer: TransferId::from_bytes([6; 16]),
        sender: PrivateKey::generate(&[1; 32]).public(),
        serial: 1,
        made: 0,
        expires: i64::MAX,
        folder: "inbox".to_owned(),
        below: Vec::new(),
        recipients: vec![AgeRecipient::Node(receiver().public())],
        entries: memory.files.iter().map(entry).collect(),
    }
}

fn sealed(memory: &mut Memory) -> (Manifest, Vec<u8>) {
    let mut manifest = manifest(memory);
    let recipients = manifest.recipients.clone();
    let sealing = ObjectSealing { recipients: &recipients, level: 3, padding: SizePadding::Padme };
    let bytes = seal(&mut manifest, memory, Vec::new(), ObjectSeed::new([3; 32]), &sealing).unwrap();
    (manifest, bytes)
}

fn open(bytes: &[u8], manifest: &Manifest, shelf: &mut Shelf) -> Result<LandedEntries, OpenError> {
    open_contents(bytes, &AgeIdentity::Node(&receiver()), manifest, shelf)
}

#[test]
fn files_arrive_with_the_bytes_and_the_roots_that_were_signed() {
    let mut memory = memory(&[("a", b"one"), ("b", b""), ("c", &[7; 3_000_000])]);
    let (manifest, bytes) = sealed(&mut memory);
    let roots: Vec<_> = memory.files.values().map(|bytes| *blake3::hash(bytes).as_bytes()).collect();
    let signed = manifest.entries.iter().map(|entry| match entry.kind {
        SealedKind::File { root, .. } => root,
        _ => [0; 32],
    });
    assert_eq!(signed.collect::<Vec<_>>(), roots);
    let mut shelf = shelf();
    let landed = open(&bytes, &manifest, &mut shelf).unwrap();
    assert_eq!((landed.outcome, landed.entries, landed.bytes), (DeliveryOutcome::Whole, 3, 3_000_003));
    assert!(shelf.files == memory.files && shelf.finished);
}

#[test]
fn the_size_shows_only_what_padme_lets_through() {
    let lens: Vec<usize> = [100_400, 101_000, 102_000]
        .map(|len| {
            let noise: Vec<u8> = noise(len);
            sealed(&mut memory(&[("a", &noise)])).1.len()
        })
        .to_vec();
    assert!(lens.windows(2).all(|pair| pair[0] == pair[1]), "{lens:?}");
}

/// Bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn a_source_that_changes_shrinks_grows_or_vanishes_seals_nothing() {
    let original = memory(&[("a", b"12345"), ("b", b"x")]);
    let changed = |change: &dyn Fn(&mut Memory)| {
        let mut memory = memory(&[("a", b"12345"), ("b", b"x")]);
        change(&mut memory);
        let mut manifest = manifest(&original);
        let recipients = manifest.recipients.clone();
        let sealing = ObjectSealing { recipients: &recipients, level: 3, padding: SizePadding::Exact };
        seal(&mut manifest, &mut memory, Vec::new(), ObjectSeed::new([3; 32]), &sealing).unwrap_err()
    };
    for bytes in [&b"1234"[..], b"123456"] {
        let error = changed(&|memory| drop(memory.files.insert(b"a".to_vec(), bytes.to_vec())));
        assert!(matches!(error, ObjectSealError::Changed { path } if path == b"a"));
    }
    let error = changed(&|memory| memory.changes = Some(b"b".to_vec()));
    assert!(matches!(error, ObjectSealError::Changed { path } if path == b"b"));
    let error = changed(&|memory| drop(memory.files.remove(&b"b"[..])));
    assert!(matches!(error, ObjectSealError::Read { path, .. } if path == b"b"));
}

#[test]
fn contents_of_another_manifest_get_no_name() {
    let (manifest, _) = sealed(&mut memory(&[("a", b"right"), ("b", b"right")]));
    // No key is needed to encrypt to the receiver.
    for (other, arrived) in [(["wrong", "right"], 0), (["right", "wrong"], 1)] {
        let (_, bytes) = sealed(&mut memory(&[("a", other[0].as_bytes()), ("b", other[1].as_bytes())]));
        let mut shelf = shelf();
        assert!(matches!(open(&bytes, &manifest, &mut shelf), Err(OpenError::Mismatch)));
        assert_eq!((shelf.files.len(), shelf.finished), (arrived, false));
    }
    for more in ["rightrightx", "rightrigh"] {
        let (_, bytes) = sealed(&mut memory(&[("a", more.as_bytes())]));
        let mut shelf = shelf();
        assert!(matches!(open(&bytes, &manifest, &mut shelf), Err(OpenError::Mismatch)), "{more}");
        assert!(!shelf.finished);
    }
}

#[test]
fn a_compression_bomb_ends_where_the_manifest_does() {
    let (manifest, _) = sealed(&mut memory(&[("a", b"small")]));
    let (_, bytes) = sealed(&mut memory(&[("a", &vec![0; 50_000_000])]));
    let mut shelf = shelf();
    assert!(matches!(open(&bytes, &manifest, &mut shelf), Err(OpenError::Mismatch)));
    assert!(shelf.files.is_empty() && shelf.begun.is_empty());
}

#[test]
fn a_cut_object_gives_the_files_before_the_cut_and_no_end() {
    let mut memory = memory(&[("a", b"first"), ("b", &[1; 200_000])]);
    memory.files.insert(b"b".to_vec(), noise(200_000));
    let (manifest, bytes) = sealed(&mut memory);
    for len in (0..bytes.len()).step_by(997).chain([bytes.len() - 1]) {
        let mut shelf = shelf();
        assert!(open(&bytes[..len], &manifest, &mut shelf).is_err(), "{len}");
        assert!(!shelf.finished && shelf.files.iter().all(|(path, bytes)| memory.files[path] == *bytes));
    }
}

#[test]
fn one_entry_that_will_never_be_taken_leaves_the_others_whole() {
    let (manifest, bytes) = sealed(&mut memory(&[("a", b"one"), ("b", b"two"), ("c", b"three")]));
    let refusals = [
        vec![refusal(b"b", || io::Error::other(FolderError::Reserved))],
        vec![refusal(b"b", || io::Error::other(FolderError::LeadsOut))],
        vec![refusal(b"b", || io::Error::other(PathError::TooLong))],
        vec![refusal(b"b", || Errno::NAMETOOLONG.into())],
    ];
    for refuses in refusals {
        let mut shelf = Shelf { refuses, ..shelf() };
        let landed = open(&bytes, &manifest, &mut shelf).unwrap();
        assert_eq!((landed.outcome, landed.entries, landed.failed), (DeliveryOutcome::Partly, 2, 1));
        assert_eq!(landed.failures[0].path, b"b");
        assert_eq!(shelf.files.len(), 2);
    }
}

#[test]
fn an_entry_that_may_be_taken_later_leaves_the_others_whole_and_no_receipt() {
    let (manifest, bytes) = sealed(&mut memory(&[("a", b"one"), ("b", b"two"), ("c", b"three")]));
    let refusals = [
        vec![refusal(b"b", || Errno::ACCESS.into())],
        vec![refusal(b"b", || Errno::PERM.into())],
        vec![refusal(b"b", || Errno::IO.into())],
        vec![refusal(b"b", || Errno::LOOP.into())],
        vec![refusal(b"b", || io::Error::other(FolderError::InTheWay))],
        vec![
            refusal(b"a", || io::Error::other(FolderError::Reserved)),
            refusal(b"b", || Errno::ISDIR.into()),
        ],
    ];
    for refuses in refusals {
        let mut shelf = Shelf { refuses, ..shelf() };
        let Err(OpenError::Missing(missing)) = open(&bytes, &manifest, &mut shelf) else {
            panic!("a receipt")
        };
        assert_eq!((missing.count, &missing.first[0].path[..]), (1, &b"b"[..]));
        assert!(missing.to_string().starts_with("1 entry could not be written here: b ("), "{missing}");
        assert!(shelf.files.contains_key(&b"c"[..]) && shelf.finished);
    }
}

#[test]
fn a_full_disk_ends_the_reading_and_is_no_failure_of_an_entry() {
    let (manifest, bytes) = sealed(&mut memory(&[("a", b"one"), ("b", &[2; 100_000])]));
    let mut shelf = Shelf { room: 50_000, ..shelf() };
    assert!(matches!(open(&bytes, &manifest, &mut shelf), Err(OpenError::Landing(_))));
    assert_eq!(shelf.files.len(), 1);
}

#[test]
fn a_message_is_bounded_before_it_is_kept() {
    let recipients = [AgeRecipient::Node(receiver().public())];
    let sealing = ObjectSealing { recipients: &recipients, level: 3, padding: SizePadding::Padme };
    let seal = |len| seal_message(&vec![0; len], Vec::new(), ObjectSeed::new([3; 32]), &sealing).unwrap();
    let open = |bytes: &[u8]| open_message(bytes, &AgeIdentity::Node(&receiver())).map(|bytes| bytes.len());
    assert_eq!(open(&seal(MANIFEST_MAX)).unwrap(), MANIFEST_MAX);
    assert!(matches!(open(&seal(MANIFEST_MAX + 1)), Err(OpenError::Manifest(ManifestError::TooLarge))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_files_round_trip(files in proptest::collection::btree_map("[a-z]{1,6}", proptest::collection::vec(any::<u8>(), 0..5000), 0..12)) {
        let mut memory = Memory { files: files.into_iter().map(|(path, bytes)| (path.into_bytes(), bytes)).collect(), changes: None };
        let (manifest, bytes) = sealed(&mut memory);
        let mut shelf = shelf();
        open(&bytes, &manifest, &mut shelf).unwrap();
        prop_assert_eq!(shelf.files, memory.files);
    }
}
