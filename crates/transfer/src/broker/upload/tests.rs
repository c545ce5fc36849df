//! Uploads to a broker in this process, which are cut and go on.

mod fake;
mod resume;
mod whole;

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use strait_keying::PrivateKey;

use super::*;
use crate::outbox::RandomBytes;
use crate::sealed::frames::SizePadding;
use crate::sealed::{AgeIdentity, AgeRecipient, Contents, Manifest, SealedEntry, SealedKind, open_manifest};
use fake::FakeBroker;

/// Files in memory.
#[derive(Clone, Default)]
struct Files(BTreeMap<Vec<u8>, Vec<u8>>);

impl Contents for Files {
    fn open(&mut self, path: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(self.0.get(path).ok_or(io::ErrorKind::NotFound)?)))
    }

    fn unchanged(&mut self, _: &SealedEntry) -> io::Result<bool> {
        Ok(true)
    }
}

impl UploadSource for Files {
    fn gather(&mut self) -> io::Result<GatheredObject> {
        let entries = self.0.iter().map(|(path, bytes)| SealedEntry {
            path: path.clone(),
            mode: 0o600,
            mtime: 0,
            kind: SealedKind::File { size: bytes.len() as u64, root: [0; 32] },
        });
        Ok(GatheredObject { entries: entries.collect(), contents: Box::new(self.clone()) })
    }
}

fn files(files: &[(&str, Vec<u8>)]) -> Files {
    Files(files.iter().map(|(path, bytes)| (path.as_bytes().to_vec(), bytes.clone())).collect())
}

fn sender() -> PrivateKey {
    PrivateKey::generate(&[1; 32])
}

fn receiver() -> PrivateKey {
    PrivateKey::generate(&[2; 32])
}

/// Text that shrinks and bytes that do not, in turns.
fn bytes(len: usize, seed: u8) -> Vec<u8> {
    let mut noise = vec![0; len];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut noise);
    for (number, part) in noise.chunks_mut(300_000).enumerate() {
        if number % 2 == usize::from(seed % 2) {
            part.iter_mut().for_each(|byte| *byte = b"etaoin shrdlu\n"[usize::from(*byte) % 14]);
        }
    }
    noise
}

/// Random bytes that are others each time, in all runs of a test.
fn random() -> RandomBytes {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Box::new(|| *blake3::hash(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes()).as_bytes())
}

/// A stream that is cut after so many bytes that are written.
struct Cut(UnixStream, usize);

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.1);
        if count == 0 && !bytes.is_empty() {
            let _ = self.0.shutdown(Shutdown::Both);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = self.0.write(&bytes[..count])?;
        self.1 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a run does.
struct Run<'a> {
    folder: &'a Path,
    broker: &'a Arc<FakeBroker>,
    /// Bytes that the client writes before it is cut.
    cut: usize,
    padding: SizePadding,
    made: i64,
}

impl Run<'_> {
    /// One run of the command, as a process of its own would do it.
    fn go(&self, objects: Vec<UploadObject>) -> (Result<UploadTally, UploadError>, Vec<String>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let broker = Arc::clone(self.broker);
        let sender = sender();
        let serving = thread::spawn(move || broker.serve(theirs));
        let events = Mutex::new(Vec::new());
        let event = |event: UploadEvent| {
            let text = match event {
                UploadEvent::Read { .. } | UploadEvent::Sent { .. } => return,
                UploadEvent::Begun { held, .. } => {
                    format!("begun {}", if held > 0 { "again" } else { "anew" })
                }
                UploadEvent::Changed { .. } => "changed".to_owned(),
                UploadEvent::Stored { size, .. } => {
                    if size.is_some() { "stored" } else { "stored before" }.to_owned()
                }
                UploadEvent::Failed { why, .. } => format!("failed: {why}"),
            };
            events.lock().unwrap().push(text);
        };
        let serial = AtomicU64::new(u64::try_from(self.made).unwrap() * 1000);
        let order = UploadOrder {
            node: &sender,
            receivers: vec![receiver().public()],
            readers: Vec::new(),
            folder: "inbox".to_owned(),
            padding: self.padding,
            made: self.made,
            expires: self.made + 100,
        };
        let journal = UploadJournal::open(self.folder, "aa", &sender).unwrap();
        let hang_up = || drop(ours.shutdown(Shutdown::Both));
        let means = UploadMeans {
            random: random(),
            serial: Box::new(|| Ok(serial.fetch_add(1, Ordering::Relaxed))),
            event: &event,
            hang_up: &hang_up,
            rate: None,
        };
        let writer = Cut(ours.try_clone().unwrap(), self.cut);
        let ended = BrokerClient::begin(ours.try_clone().unwrap(), writer)
            .map_err(UploadError::from)
            .and_then(|client| upload(client, journal, &mut objects.into_iter(), &order, means));
        hang_up();
        serving.join().unwrap();
        (ended, events.into_inner().unwrap())
    }
}

fn object(place: &str, files: &Files) -> UploadObject {
    let source = Box::new(files.clone());
    UploadObject { place: place.into(), id: None, serial: None, below: Vec::new(), source }
}

/// What the receiver finds in an object: its manifest and its files.
fn opened(manifest: &[u8], contents: &[u8]) -> (Manifest, Files) {
    let (key, mut files) = (receiver(), Files::default());
    let identity = AgeIdentity::Node(&key);
    let manifest = open_manifest(manifest, &identity, &AgeRecipient::Node(key.public())).unwrap();
    let mut all = Vec::new();
    crate::sealed::object::open_stream(contents, &identity).unwrap().read_to_end(&mut all).unwrap();
    let mut rest = &all[..];
    for entry in &manifest.entries {
        let SealedKind::File { size, root } = entry.kind else { continue };
        let (file, behind) = rest.split_at(usize::try_from(size).unwrap());
        assert_eq!(root, *blake3::hash(file).as_bytes());
        files.0.insert(entry.path.clone(), file.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty());
    (manifest, files)
}
