//! What these tests share: folders, and a test that runs itself again as another process.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_transfer::Attributes;
use strait_transfer::folder::{Folder, FolderRules, Receiving};
use strait_transfer::path::EntryPath;
use strait_transfer::pieces::{PIECE_LEN, pieces_of};

/// Names the folder that a child works in.
const CHILD: &str = "STRAIT_TRANSFER_CHILD";

/// The folder to work in, in the process that a test started.
pub(crate) fn child() -> Option<PathBuf> {
    env::var_os(CHILD).map(PathBuf::from)
}

/// This test again, as a child that works in a folder. `before` is the command line in front of it.
pub(crate) fn again(test: &str, program: &Path, folder: &Path, before: &[&str]) -> Command {
    let mut words: Vec<OsString> = before.iter().map(OsString::from).collect();
    words.push(program.into());
    words.extend([format!("disk::{test}"), "--exact".into(), "--nocapture".into()].map(OsString::from));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(CHILD, folder);
    command
}

/// A folder of a test's own, removed at its end.
pub(crate) struct OwnFolder(pub(crate) PathBuf);

impl OwnFolder {
    pub(crate) fn new(parent: &Path, name: &str) -> OwnFolder {
        let path = parent.join(format!("strait-transfer-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        OwnFolder(path)
    }

    /// On a file system in memory, if there is one.
    pub(crate) fn in_memory(name: &str) -> OwnFolder {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
        OwnFolder::new(&parent, name)
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn path(name: impl AsRef<[u8]>) -> EntryPath {
    EntryPath::new(name.as_ref()).unwrap()
}

pub(crate) fn plain() -> Attributes {
    Attributes { mode: 0o644, modified: 1_000_000_007, owner: (0, 0), xattrs: Vec::new() }
}

pub(crate) fn open(folder: &Path) -> Folder {
    Folder::open(&folder.into(), FolderRules::default()).unwrap()
}

/// Bytes that are another file's for another seed.
pub(crate) fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Writes what is missing of a file and hands it over to get its name; how many bytes were written.
pub(crate) fn receive(receiving: &mut Receiving, tag: u64, name: impl AsRef<[u8]>, bytes: &[u8]) -> u64 {
    let size = bytes.len() as u64;
    let mut partial = receiving.begin(path(name), Some(size), [1; 8], true).unwrap();
    let gaps: Vec<_> = partial.missing(pieces_of(size)).into_iter().flatten().collect();
    let mut written = 0;
    for piece in gaps {
        let (begin, end) = (piece * PIECE_LEN, ((piece + 1) * PIECE_LEN).min(size));
        let part = &bytes[usize::try_from(begin).unwrap()..usize::try_from(end).unwrap()];
        for (at, part) in part.chunks(100_000).enumerate() {
            partial.write_at(begin + at as u64 * 100_000, part).unwrap();
        }
        written += end - begin;
    }
    partial.verify(size, blake3::hash(bytes).as_bytes()).unwrap();
    receiving.finish(tag, partial, &plain()).unwrap();
    written
}
