//! Files that have several names.

use std::collections::BTreeMap;

use crate::path::EntryPath;
use crate::stamp::Stamp;

/// Bytes of memory for the first names of files that have more; other such files are sent once for each name. A backup of many hard links
/// has some 100 bytes for each, so that 160,000 files wait for their other names.
const MAX_BYTES: usize = 16 << 20;
/// What one takes beside its path.
const EACH: usize = 80;

/// First names of files whose other names were not met yet.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    first: BTreeMap<(u64, u64), (EntryPath, u32)>,
    bytes: usize,
}

impl LinkTable {
    /// A file with so many names was met under this one: its first name, if that was another.
    pub(super) fn meet(&mut self, stamp: &Stamp, names: u32, path: &EntryPath) -> Option<EntryPath> {
        if names < 2 {
            return None;
        }
        let file = (stamp.device, stamp.inode);
        let Some((first, left)) = self.first.get_mut(&file) else {
            let bytes = EACH + path.as_bytes().len();
            if self.bytes + bytes <= MAX_BYTES {
                self.bytes += bytes;
                self.first.insert(file, (path.clone(), names - 1));
            }
            return None;
        };
        *left -= 1;
        if *left > 0 {
            return Some(first.clone());
        }
        let (first, _) = self.first.remove(&file)?;
        self.bytes -= EACH + first.as_bytes().len();
        Some(first)
    }
}
