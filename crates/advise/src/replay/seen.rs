//! What became of frames before they were packets of the tunnel's.

use serde::Serialize;

/// Counts of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// All that were read.
    pub frames: u64,
    /// Their bytes on the network they were captured on.
    pub bytes: u64,
    /// Those that carry something else than IP, which no tunnel takes.
    pub not_ip: u64,
    /// Those whose packet contradicts itself, or cannot be cut.
    pub malformed: u64,
    /// Those that do not cross from the near side to the far one, or back.
    pub elsewhere: u64,
    /// Those that were cut to the longest packet.
    pub cut: u64,
    /// Those that are earlier than the one before.
    pub backwards: u64,
}
