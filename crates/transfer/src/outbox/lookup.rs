//! Transfers found by how their names begin, and how much room all of them take.

use super::{Outbox, OutboxDisk, OutboxError, QueuedTransfer};
use crate::TransferId;

/// Bytes that all waiting transfers may have in memory, by the length of their paths and patterns: a command that lists the outbox
/// reads all of it.
pub const WEIGHT_MAX: usize = 64 << 20;
/// What a record has beside names and patterns.
const RECORD_WEIGHT: usize = 1024;

impl<D: OutboxDisk> Outbox<D> {
    /// The transfer whose name begins with these digits.
    ///
    /// # Errors
    /// [`OutboxError::NoneBegins`] and [`OutboxError::Several`].
    pub fn find(&self, digits: &str) -> Result<TransferId, OutboxError> {
        let mut found = self
            .transfers
            .keys()
            .copied()
            .filter(|id| id.to_string().starts_with(&digits.to_ascii_lowercase()));
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (None, _) => Err(OutboxError::NoneBegins(digits.to_owned())),
            (Some(_), Some(_)) => Err(OutboxError::Several(digits.to_owned())),
        }
    }

    /// Whether one more has room.
    pub(super) fn has_room(&self, more: &QueuedTransfer) -> bool {
        self.waiting().chain([more]).map(weight).sum::<usize>() <= WEIGHT_MAX
    }
}

/// About what a transfer takes in memory and, twice, on the disk.
fn weight(transfer: &QueuedTransfer) -> usize {
    let order = &transfer.order;
    let paths = order.paths.iter().map(|path| path.0.len() + size_of::<Vec<u8>>());
    let patterns = order.patterns.iter().map(|line| line.len() + size_of::<String>());
    RECORD_WEIGHT + paths.chain(patterns).sum::<usize>()
}
