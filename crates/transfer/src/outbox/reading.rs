//! The outbox as it is found on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::vault::Vault;
use super::{ORDER, OutboxDisk, OutboxError, QueuedTransfer, RECORD_MAX, SERIAL, WAITING_MAX};
use crate::TransferId;

/// The record in a file; nothing where the file is no such record.
pub(super) fn record(
    disk: &impl OutboxDisk,
    vault: &Vault,
    name: &str,
) -> Result<Option<QueuedTransfer>, OutboxError> {
    let bytes = match disk.read(name, RECORD_MAX) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(None),
        result => result?,
    };
    let content = vault.open(name, &bytes);
    Ok(content.and_then(|content| serde_json::from_slice(&content).ok()))
}

/// What is not over: first as the user ordered it, then as it was accepted.
pub(super) fn order(
    disk: &impl OutboxDisk,
    vault: &Vault,
    transfers: &BTreeMap<TransferId, QueuedTransfer>,
) -> Result<Vec<TransferId>, OutboxError> {
    let max = 16 * WAITING_MAX as u64 + 64;
    let bytes = match disk.read(ORDER, max) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge) => None,
        result => vault.open(ORDER, &result?),
    };
    let bytes = bytes.unwrap_or_default();
    let open = |id: &TransferId| transfers.get(id).is_some_and(|transfer| transfer.state.over().is_none());
    let mut order: Vec<TransferId> =
        bytes.as_chunks::<16>().0.iter().map(|id| TransferId::from_bytes(*id)).filter(open).collect();
    let placed: BTreeSet<TransferId> = order.iter().copied().collect();
    let mut rest: Vec<&QueuedTransfer> =
        transfers.values().filter(|transfer| open(&transfer.id) && !placed.contains(&transfer.id)).collect();
    rest.sort_by_key(|transfer| transfer.serial);
    order.extend(rest.iter().map(|transfer| transfer.id));
    Ok(order)
}

/// The last serial number that was taken for what is not in the outbox. One that cannot be read is as one that was lost with a disk.
pub(super) fn taken(disk: &impl OutboxDisk, vault: &Vault) -> Result<u64, OutboxError> {
    let bytes = match disk.read(SERIAL, 128) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge) => None,
        result => vault.open(SERIAL, &result?),
    };
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes))
}
