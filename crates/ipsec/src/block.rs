//! How large Strait blocks get, at both ends.

/// Most bytes of a block before it is compressed, and the most that any block may expand to, whatever was agreed. On the wire it is
/// never longer, compressed or not.
pub(crate) const BLOCK_MAX: usize = 65_536;
/// Most packets of a block: what a sender finds in the largest window.
pub(crate) const PACKETS_MAX: usize = strait_compress::headers::PACKETS_MAX;
/// Most parts of a block: 64 KiB over a path of 1,280 bytes takes 54.
pub(crate) const PARTS_MAX: usize = 64;
