//! Blocks of the file. Each has a number, slots and a checksum, and lies within one sector, which disks write whole or not at all.

use super::{NAME_MAX, SavedKind, SavedName};

/// Bytes of a block: two are a sector.
pub(super) const BLOCK: usize = 256;
/// Where the slots begin, behind the number, and where the checksum is.
const SLOTS_AT: usize = 4;
const SUM_AT: usize = BLOCK - 4;

/// The numbers of the blocks with names.
const KINDS: [(u64, SavedKind); 5] = [
    (1, SavedKind::Peer),
    (2, SavedKind::Rule),
    (3, SavedKind::Control),
    (4, SavedKind::Service),
    (5, SavedKind::Class),
];

/// A block, and whether it is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    bytes: [u8; BLOCK],
    changed: bool,
}

impl Default for Block {
    /// Without a number.
    fn default() -> Block {
        Block { bytes: [0; BLOCK], changed: false }
    }
}

impl Block {
    /// As it is in the file; nothing where it is damaged or was never written.
    pub(super) fn stored(bytes: &[u8]) -> Option<Block> {
        let stored = bytes.first_chunk().map(|bytes| Block { bytes: *bytes, changed: false });
        stored.filter(|block| block.number().is_some() && block.bytes[SUM_AT..] == block.sum())
    }

    /// Its bytes, with the checksum, if it changed since they were taken last.
    pub(super) fn take_changed(&mut self) -> Option<&[u8; BLOCK]> {
        if !core::mem::take(&mut self.changed) {
            return None;
        }
        self.bytes = self.to_bytes();
        Some(&self.bytes)
    }

    /// Its bytes, with the checksum.
    pub(super) fn to_bytes(&self) -> [u8; BLOCK] {
        let mut bytes = self.bytes;
        bytes[SUM_AT..].copy_from_slice(&self.sum());
        bytes
    }

    /// It was not written after all.
    pub(super) const fn changed_again(&mut self) {
        self.changed = true;
    }

    fn sum(&self) -> [u8; 4] {
        crc32fast::hash(&self.bytes[..SUM_AT]).to_be_bytes()
    }

    /// The number, which is stored with 1 added: 0 stands for none.
    fn number(&self) -> Option<u64> {
        let number = self.bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        u64::from(number).checked_sub(1)
    }

    /// A slot of `LEN` bytes of the block with this number, to be changed: one with another number begins anew.
    pub(super) fn slot<const LEN: usize>(&mut self, number: u64, at: u64) -> Option<&mut [u8; LEN]> {
        let stored = u32::try_from(number.checked_add(1)?).ok()?;
        if self.number() != Some(number) {
            self.bytes = [0; BLOCK];
            self.bytes[..SLOTS_AT].copy_from_slice(&stored.to_be_bytes());
        }
        self.changed = true;
        let from = SLOTS_AT + usize::try_from(at).ok()? * LEN;
        self.bytes.get_mut(from..SUM_AT)?.first_chunk_mut()
    }

    /// The same as it is.
    pub(super) fn get<const LEN: usize>(&self, number: u64, at: u64) -> Option<&[u8; LEN]> {
        let from = SLOTS_AT + usize::try_from(at).ok()? * LEN;
        let is_it = self.number() == Some(number);
        self.bytes.get(from..SUM_AT).filter(|_| is_it)?.first_chunk()
    }

    /// Makes it the first of a series.
    pub(super) fn put_name(&mut self, SavedName { kind, name }: &SavedName) {
        let Some((number, _)) = KINDS.into_iter().find(|(_, it)| it == kind) else { return };
        let len = name.len().min(NAME_MAX);
        if let Some(room) = self.slot::<{ NAME_MAX + 1 }>(number, 0) {
            room[0] = len as u8;
            room[1..=len].copy_from_slice(&name.as_bytes()[..len]);
        }
    }

    /// What the first of a series says.
    pub(super) fn name(&self) -> Option<SavedName> {
        let number = self.number()?;
        let kind = KINDS.into_iter().find(|(it, _)| *it == number)?.1;
        let stored = self.get::<{ NAME_MAX + 1 }>(number, 0)?;
        let (len, name) = stored.split_first()?;
        let name = core::str::from_utf8(name.get(..usize::from(*len))?).ok()?;
        Some(SavedName { kind, name: name.to_owned() })
    }
}
