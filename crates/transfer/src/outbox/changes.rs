//! What becomes of a transfer in the outbox.

use jiff::tz::TimeZone;
use strait_keying::PublicKey;
use strait_scheduler::calendar;

use super::{
    BrokerCopy, DaySpent, FailedTries, ORDER, OrderPlace, Outbox, OutboxDisk, OutboxError, QueuedState,
    QueuedTransfer, RECORD,
};
use crate::TransferId;
use crate::sealed::DeliveryReceipt;

/// Transfers that are over and still listed.
const OVER_MAX: usize = 1_000;
/// Seconds for which they are: 30 days.
const OVER_AGE: i64 = 30 * 86_400;
/// Seconds before the second try; doubled for each further one.
const RETRY_FIRST: i64 = 30;
/// Seconds between tries at most.
pub(super) const RETRY_MAX: i64 = 3600;

impl<D: OutboxDisk> Outbox<D> {
    /// The user wants it no more.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn cancel(&mut self, id: TransferId, now: i64) -> Result<(), OutboxError> {
        self.end(id, QueuedState::Cancelled { at: now })
    }

    /// Its time is over.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn expire(&mut self, id: TransferId, now: i64) -> Result<(), OutboxError> {
        self.end(id, QueuedState::Expired { at: now })
    }

    /// It cannot be sent, now or later.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn give_up(&mut self, id: TransferId, reason: &str, now: i64) -> Result<(), OutboxError> {
        self.end(id, QueuedState::Failed { at: now, reason: reason.to_owned() })
    }

    /// It is on a stick.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn carried(&mut self, id: TransferId, now: i64) -> Result<(), OutboxError> {
        self.change(id, |transfer| transfer.state = QueuedState::Carried { at: now })
    }

    /// A broker has a copy of it, from which its receiver fetches it; it also goes straight there when the peer is there. That of
    /// a transfer which came to its end meanwhile is of no use.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn at_broker(&mut self, id: TransferId, copy: BrokerCopy) -> Result<(), OutboxError> {
        let mut transfer = self.get(id)?.clone();
        transfer.copy = Some(copy);
        transfer.tries = FailedTries::default();
        self.keep(transfer)
    }

    /// The broker has no copy of it any more.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn gone_from_broker(&mut self, id: TransferId) -> Result<(), OutboxError> {
        let mut transfer = self.get(id)?.clone();
        transfer.copy = None;
        self.keep(transfer)
    }

    /// The brokers that have copies, and whether each copy is of no use any more.
    pub fn copies(&self) -> impl Iterator<Item = (PublicKey, bool)> {
        let copy = |transfer: &QueuedTransfer| {
            Some((transfer.copy.as_ref()?.broker, transfer.state.over().is_some()))
        };
        self.transfers.values().filter_map(copy)
    }

    /// Copies at this broker that are of no use any more: of transfers that are over.
    #[must_use]
    pub fn useless_copies(&self, broker: &PublicKey) -> Vec<TransferId> {
        let useless = |transfer: &&QueuedTransfer| {
            transfer.state.over().is_some()
                && transfer.copy.as_ref().is_some_and(|copy| copy.broker == *broker)
        };
        self.transfers.values().filter(useless).map(|transfer| transfer.id).collect()
    }

    /// Its receiver says what it has; a receipt that was seen before changes nothing. The caller checked who signed it.
    ///
    /// # Errors
    /// [`OutboxError::Unknown`] also when the receipt is another peer's.
    pub fn delivered(&mut self, receipt: &DeliveryReceipt, now: i64) -> Result<(), OutboxError> {
        let id = receipt.transfer;
        let transfer = self.get(id)?;
        if transfer.order.peer != receipt.receiver {
            return Err(OutboxError::Unknown(id));
        }
        match transfer.state {
            QueuedState::Delivered { .. } => Ok(()),
            // It arrived although it was given up: the receiver's word counts.
            _ => self.finish(id, QueuedState::of(receipt, now)),
        }
    }

    /// A try failed; the next one is later each time.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn failed_try(&mut self, id: TransferId, error: &str, now: i64) -> Result<(), OutboxError> {
        self.change(id, |transfer| {
            let tries = &mut transfer.tries;
            let pause = RETRY_FIRST.saturating_mul(1 << tries.count.min(16)).min(RETRY_MAX);
            *tries = FailedTries {
                count: tries.count.saturating_add(1),
                retry_at: now.saturating_add(pause),
                error: Some(error.to_owned()),
            };
        })
    }

    /// A try goes well: the next failure counts as the first.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn went_on(&mut self, id: TransferId) -> Result<(), OutboxError> {
        if self.get(id)?.tries == FailedTries::default() {
            return Ok(());
        }
        self.change(id, |transfer| transfer.tries = FailedTries::default())
    }

    /// Takes up to `bytes` of what the transfer may send today, durably, before they are sent; so a process that is killed counts
    /// too many rather than too few. Without a limit it grants all.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn grant(
        &mut self,
        id: TransferId,
        bytes: u64,
        now: i64,
        zone: &TimeZone,
    ) -> Result<u64, OutboxError> {
        let (today, _) = calendar::day(now, zone);
        let Some(left) = self.get(id)?.allowance(today) else { return Ok(bytes) };
        let granted = bytes.min(left);
        if granted > 0 {
            self.change(id, |transfer| {
                let before = if transfer.spent.day == today { transfer.spent.bytes } else { 0 };
                transfer.spent = DaySpent { day: today, bytes: before + granted };
            })?;
        }
        Ok(granted)
    }

    /// Gives back what was granted on the same day and not sent.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn unused(
        &mut self,
        id: TransferId,
        bytes: u64,
        now: i64,
        zone: &TimeZone,
    ) -> Result<(), OutboxError> {
        let (today, _) = calendar::day(now, zone);
        if bytes == 0 || self.get(id)?.spent.day != today {
            return Ok(());
        }
        self.change(id, |transfer| transfer.spent.bytes = transfer.spent.bytes.saturating_sub(bytes))
    }

    /// Puts a transfer elsewhere in the order.
    ///
    /// # Errors
    /// [`OutboxError`]; also when the transfer before which it is put is unknown or over.
    pub fn reorder(&mut self, id: TransferId, place: OrderPlace) -> Result<(), OutboxError> {
        self.check_open(id)?;
        let mut order: Vec<_> = self.order.iter().copied().filter(|it| *it != id).collect();
        let at = match place {
            OrderPlace::First => 0,
            OrderPlace::Last => order.len(),
            OrderPlace::Before(other) if other == id => return Ok(()),
            OrderPlace::Before(other) => {
                self.check_open(other)?;
                order.iter().position(|it| *it == other).ok_or(OutboxError::Unknown(other))?
            }
        };
        order.insert(at, id);
        let bytes: Vec<u8> = order.iter().flat_map(TransferId::as_bytes).copied().collect();
        self.put(ORDER, &bytes)?;
        self.order = order;
        Ok(())
    }

    /// Forgets what is long over, but for the one with the highest number, from which the next one goes on.
    ///
    /// # Errors
    /// [`OutboxError`].
    pub fn tidy(&mut self, now: i64) -> Result<(), OutboxError> {
        let newest =
            self.transfers.values().max_by_key(|transfer| transfer.serial).map(|transfer| transfer.id);
        let old: Vec<TransferId> = self
            .over()
            .iter()
            .enumerate()
            .filter(|(place, it)| *place >= OVER_MAX || it.state.over().is_some_and(|at| now - at > OVER_AGE))
            .map(|(_, transfer)| transfer.id)
            .filter(|id| Some(*id) != newest)
            .collect();
        for id in old {
            self.disk.remove(&format!("{id}{RECORD}"))?;
            self.transfers.remove(&id);
        }
        Ok(())
    }
}
