//! What is on the disk below a folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A name as a transfer keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) kind: &'static str,
    pub(super) mode: u32,
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    /// Bytes of a file, or what a symlink names.
    pub(super) content: Vec<u8>,
    pub(super) names: u64,
}

/// Everything below a folder, by path, but what is unfinished.
pub(super) fn snapshot(folder: &Path) -> BTreeMap<Vec<u8>, Kept> {
    let mut all = BTreeMap::new();
    visit(folder, &[], &mut all);
    all
}

fn visit(folder: &Path, above: &[u8], all: &mut BTreeMap<Vec<u8>, Kept>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name == crate::folder::WORKING_FOLDER {
            continue;
        }
        let path =
            if above.is_empty() { name.as_bytes().to_vec() } else { [above, b"/", name.as_bytes()].concat() };
        let found = fs::symlink_metadata(entry.path()).unwrap();
        let (kind, content) = if found.is_dir() {
            ("folder", Vec::new())
        } else if found.is_symlink() {
            ("symlink", fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec())
        } else {
            ("file", fs::read(entry.path()).unwrap())
        };
        let names = if found.is_dir() { 1 } else { found.nlink() };
        let modified = (found.mtime(), found.mtime_nsec());
        all.insert(path.clone(), Kept { kind, mode: found.mode() & 0o7777, modified, content, names });
        if found.is_dir() {
            visit(&entry.path(), &path, all);
        }
    }
}
