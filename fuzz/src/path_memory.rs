//! The file of what was found on paths: what is read can be written, and is the same when it is read again.

use strait_node::path_memory::{PATH_FILE_MAX, PathMemory};

/// When the file is read: the age of what stands in it depends on it.
const NOW: u64 = 1_790_000_000;

/// The file.
pub fn check(data: &[u8]) {
    let Ok(memory) = PathMemory::parse(data, NOW) else { return };
    let bytes = memory.render();
    assert!(bytes.len() <= PATH_FILE_MAX, "{} bytes from {}", bytes.len(), data.len());
    let again = PathMemory::parse(&bytes, NOW).expect("what was written is read");
    assert_eq!(again, memory);
}
