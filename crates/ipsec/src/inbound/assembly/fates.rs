//! What happened to the latest blocks of an association, by number: as a replay window, for blocks.

use strait_wire::Esn;

/// Blocks that are remembered: what the 8,192 numbers of the replay window are with four parts a block. An association takes 8 KiB
/// for them.
pub(super) const REMEMBERED: u16 = 2_048;
/// Parts that lie further apart than this, in sequence numbers, are of two blocks with the same number, which comes again after
/// 2^16 blocks.
const SPREAD_MAX: u64 = 1 << 15;

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockFate {
    /// No part of it has come.
    Unseen,
    /// It is in the making, in this slot.
    InSlot(u16),
    /// It was delivered, refused or given up; or it is so old that nothing is known of it.
    Over,
}

/// The fates of the latest blocks; without memory until there is one.
#[derive(Debug)]
pub(super) struct BlockFates {
    fates: Vec<BlockFate>,
    /// The newest block.
    newest: u16,
    /// The number of the datagram that brought the newest block first.
    at: Esn,
    /// How far behind the newest the oldest one in the making is at most.
    oldest: u16,
}

impl BlockFates {
    pub(super) const fn new() -> BlockFates {
        BlockFates { fates: Vec::new(), newest: 0, at: Esn(0), oldest: 0 }
    }

    /// Whether block `id`, a part of which came in datagram `esn`, lies too far from those that are remembered.
    pub(super) fn is_another_run(&self, id: u16, esn: Esn) -> bool {
        self.fates.is_empty() || self.at.0.abs_diff(esn.0) > SPREAD_MAX || self.ahead(id) > REMEMBERED
    }

    /// Begins again with block `id`; nothing is in the making.
    pub(super) fn restart(&mut self, id: u16, esn: Esn) {
        self.fates.clear();
        self.fates.resize(REMEMBERED.into(), BlockFate::Unseen);
        (self.newest, self.at, self.oldest) = (id, esn, 0);
    }

    /// How many blocks newer than the newest this one is; 0 when it is not.
    pub(super) const fn ahead(&self, id: u16) -> u16 {
        let ahead = id.wrapping_sub(self.newest);
        if ahead < 1 << 15 { ahead } else { 0 }
    }

    /// The slot of the block that the next one has its place of, if that is in the making.
    pub(super) fn make_way(&self) -> Option<u16> {
        match self.get(self.newest.wrapping_sub(REMEMBERED - 1)) {
            BlockFate::InSlot(at) => Some(at),
            _ => None,
        }
    }

    /// The next block becomes the newest, by datagram `esn`.
    pub(super) fn advance(&mut self, esn: Esn) {
        (self.newest, self.at) = (self.newest.wrapping_add(1), esn);
        self.oldest = (self.oldest + 1).min(REMEMBERED - 1);
        self.set(self.newest, BlockFate::Unseen);
    }

    /// What happened to block `id`, which is not newer than the newest.
    pub(super) fn get(&self, id: u16) -> BlockFate {
        if self.newest.wrapping_sub(id) >= REMEMBERED {
            return BlockFate::Over;
        }
        self.fates.get(usize::from(id % REMEMBERED)).copied().unwrap_or(BlockFate::Over)
    }

    /// Notes what happened to block `id`.
    pub(super) fn set(&mut self, id: u16, fate: BlockFate) {
        let behind = self.newest.wrapping_sub(id);
        let entry = self.fates.get_mut(usize::from(id % REMEMBERED)).filter(|_| behind < REMEMBERED);
        if let Some(entry) = entry {
            *entry = fate;
            self.oldest =
                if matches!(fate, BlockFate::InSlot(_)) { self.oldest.max(behind) } else { self.oldest };
        }
    }

    /// The slot of the oldest block in the making.
    pub(super) fn oldest(&mut self) -> Option<u16> {
        loop {
            if let BlockFate::InSlot(at) = self.get(self.newest.wrapping_sub(self.oldest)) {
                return Some(at);
            }
            self.oldest = self.oldest.checked_sub(1)?;
        }
    }
}
