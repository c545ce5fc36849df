//! What tests of folders and sources share.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use crate::folder::{Folder, FolderRules, Partial, Receiving};
use crate::path::EntryPath;
use crate::pieces::PIECE_LEN;
use crate::stamp::Attributes;

/// A folder of a test's own, removed at its end. In memory where that can be: tests sync a lot.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new(name: &str) -> TestFolder {
        let memory = Path::new("/dev/shm");
        let memory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        TestFolder::below(&memory, name)
    }

    pub(crate) fn below(parent: &Path, name: &str) -> TestFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("strait-transfer-{name}-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        TestFolder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn open(&self) -> Folder {
        self.open_with(FolderRules::default())
    }

    pub(crate) fn open_with(&self, rules: FolderRules) -> Folder {
        Folder::open(&self.0.as_path().into(), rules).unwrap()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700));
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn path(bytes: impl AsRef<[u8]>) -> EntryPath {
    EntryPath::new(bytes.as_ref()).unwrap()
}

pub(crate) fn plain() -> Attributes {
    Attributes { mode: 0o640, modified: 1_000_000_007, owner: (0, 0), xattrs: Vec::new() }
}

/// Bytes that do not repeat within a piece, and differ from piece to piece.
pub(crate) fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// The time of day as files have it.
pub(crate) fn now() -> SystemTime {
    let folder = TestFolder::new("now");
    fs::write(folder.join("now"), "").unwrap();
    fs::metadata(folder.join("now")).unwrap().modified().unwrap()
}

/// Begins a file and writes all of it.
pub(crate) fn written(receiving: &mut Receiving, name: impl AsRef<[u8]>, bytes: &[u8]) -> Partial {
    let mut partial = receiving.begin(path(name), Some(bytes.len() as u64), [1; 8], true).unwrap();
    write_missing(&mut partial, bytes);
    partial.verify(bytes.len() as u64, blake3::hash(bytes).as_bytes()).unwrap();
    partial
}

/// Writes the pieces that are not there; how many bytes that were.
pub(crate) fn write_missing(partial: &mut Partial, bytes: &[u8]) -> u64 {
    let gaps = partial.missing(crate::pieces::pieces_of(bytes.len() as u64));
    let mut written = 0;
    for gap in gaps {
        let begin = gap.start * PIECE_LEN;
        let end = (gap.end * PIECE_LEN).min(bytes.len() as u64);
        partial
            .write_at(begin, &bytes[usize::try_from(begin).unwrap()..usize::try_from(end).unwrap()])
            .unwrap();
        written += end - begin;
    }
    written
}

/// Sends one small file and ends the transfer.
pub(crate) fn send(folder: &Folder, transfer: u8, name: impl AsRef<[u8]>, bytes: &[u8]) {
    let mut receiving = folder.receive([transfer; 16]).unwrap();
    let partial = written(&mut receiving, name, bytes);
    receiving.finish(0, partial, &plain()).unwrap();
    for settled in receiving.complete().unwrap() {
        settled.result.unwrap();
    }
}
