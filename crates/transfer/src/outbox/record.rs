//! What the outbox keeps of a transfer.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use strait_keying::PublicKey;

use super::json::{PathBytes, as_text, as_text_or_none};
use crate::TransferId;
use crate::sealed::gather::GatheredSource;
use crate::sealed::{DeliveryOutcome, DeliveryReceipt};
use crate::session::patterns;
use strait_scheduler::calendar::DailyWindow;

/// Which transfers go first. Each class has a place of its own at each peer, so none waits for another to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferPriority {
    /// Before all others.
    Now,
    /// What is not said otherwise.
    #[default]
    Normal,
    /// With what the others leave.
    Bulk,
}

impl TransferPriority {
    /// All, the first one first.
    pub const ALL: [TransferPriority; 3] =
        [TransferPriority::Now, TransferPriority::Normal, TransferPriority::Bulk];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TransferPriority::Now => "now",
            TransferPriority::Normal => "normal",
            TransferPriority::Bulk => "bulk",
        }
    }

    /// Its part of the link beside the others: in 21 parts, 16, 4 and 1.
    #[must_use]
    pub const fn share(self) -> u32 {
        match self {
            TransferPriority::Now => 16,
            TransferPriority::Normal => 4,
            TransferPriority::Bulk => 1,
        }
    }
}

/// What is sent, and where to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferOrder {
    /// The peer's key.
    #[serde(with = "as_text")]
    pub peer: PublicKey,
    /// What the user calls it.
    pub name: String,
    /// The peer's folder, by name.
    pub folder: String,
    /// A path below it; empty for the folder itself.
    pub below: PathBytes,
    /// Absolute paths of what is sent.
    pub paths: Vec<PathBytes>,
    /// Include and exclude patterns in their order, `+ ` or `- ` before each.
    pub patterns: Vec<String>,
    /// Whether extended attributes of the namespace `user` go too.
    pub xattrs: bool,
    /// Whether the files are read when they are sent, or were copied when the transfer was accepted.
    pub spooled: bool,
}

impl TransferOrder {
    /// What is to be sent, as it is now.
    ///
    /// # Errors
    /// As [`GatheredSource::gather`], and for a pattern that cannot be one.
    pub fn gather(&self) -> io::Result<GatheredSource> {
        let lines: Vec<Vec<u8>> = self.patterns.iter().map(|line| line.clone().into_bytes()).collect();
        let patterns = patterns(&lines).map_err(|fault| io::Error::other(fault.reason.says()))?;
        let paths: Vec<PathBuf> = self.paths.iter().map(PathBytes::to_path).collect();
        GatheredSource::gather(paths.iter().map(PathBuf::as_path), patterns)
    }
}

/// When and how fast it may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferLimits {
    /// Its class.
    pub priority: TransferPriority,
    /// The time of day at which it may go.
    #[serde(with = "as_text_or_none")]
    pub between: Option<DailyWindow>,
    /// When it is no longer wanted, in seconds since 1970.
    pub expires: Option<i64>,
    /// Bytes a second.
    pub max_rate: Option<u64>,
    /// Bytes a day of the calendar.
    pub max_bytes: Option<u64>,
}

/// How far a transfer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum QueuedState {
    /// It waits, or goes at this moment.
    Waiting,
    /// It is on a stick; it also goes over the network when the peer is there, and is delivered once.
    Carried {
        /// When it was written, in seconds since 1970.
        at: i64,
    },
    /// The peer has it.
    Delivered {
        /// When the peer said so.
        at: i64,
        /// Entries there.
        entries: u64,
        /// Bytes there.
        bytes: u64,
        /// Entries that failed, and why, of the first.
        failed: u64,
        /// Why the first failed.
        reason: Option<String>,
    },
    /// The user wants it no more.
    Cancelled {
        /// Since when.
        at: i64,
    },
    /// It was not delivered in its time.
    Expired {
        /// Since when.
        at: i64,
    },
    /// It cannot be sent; the reason says why.
    Failed {
        /// Since when.
        at: i64,
        /// Why.
        reason: String,
    },
}

impl QueuedState {
    /// When it came to its end; nothing as long as it did not.
    #[must_use]
    pub const fn over(&self) -> Option<i64> {
        match self {
            QueuedState::Waiting | QueuedState::Carried { .. } => None,
            QueuedState::Delivered { at, .. }
            | QueuedState::Cancelled { at }
            | QueuedState::Expired { at }
            | QueuedState::Failed { at, .. } => Some(*at),
        }
    }

    /// Its name in a table.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            QueuedState::Waiting => "waiting",
            QueuedState::Carried { .. } => "carried",
            QueuedState::Delivered { failed: 0, .. } => "delivered",
            QueuedState::Delivered { .. } => "partly delivered",
            QueuedState::Cancelled { .. } => "cancelled",
            QueuedState::Expired { .. } => "expired",
            QueuedState::Failed { .. } => "failed",
        }
    }

    /// What a receipt makes of it.
    #[must_use]
    pub fn of(receipt: &DeliveryReceipt, now: i64) -> QueuedState {
        let reason = receipt.failures.first().map(|failure| failure.reason.clone());
        if receipt.outcome == DeliveryOutcome::Refused {
            let reason = reason.unwrap_or_else(|| "the peer refused it".to_owned());
            return QueuedState::Failed { at: now, reason };
        }
        let DeliveryReceipt { at, entries, bytes, failed, .. } = *receipt;
        QueuedState::Delivered { at, entries, bytes, failed, reason }
    }
}

/// What of a day's bytes is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySpent {
    /// The day, as [`strait_scheduler::calendar::day`] numbers it.
    pub day: i32,
    /// Bytes that were granted on it.
    pub bytes: u64,
}

/// Tries that did not end well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTries {
    /// How many, one after the other.
    pub count: u32,
    /// Before this, in seconds since 1970, there is no next one.
    pub retry_at: i64,
    /// Why the last one failed.
    pub error: Option<String>,
}

/// A sealed copy that a broker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerCopy {
    /// The broker's key.
    #[serde(with = "as_text")]
    pub broker: PublicKey,
    /// What the user calls it.
    pub name: String,
    /// Since when, in seconds since 1970.
    pub at: i64,
    /// Until when the broker keeps it, in seconds since 1970.
    pub until: i64,
}

/// A transfer in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedTransfer {
    /// The transfer.
    #[serde(with = "as_text")]
    pub id: TransferId,
    /// The sender's number for it.
    pub serial: u64,
    /// When it was accepted, in seconds since 1970.
    pub accepted: i64,
    /// What is sent, and where to.
    pub order: TransferOrder,
    /// When and how fast.
    pub limits: TransferLimits,
    /// How far it is.
    pub state: QueuedState,
    /// What it used of its bytes a day.
    pub spent: DaySpent,
    /// What failed so far.
    pub tries: FailedTries,
    /// What a broker has of it, also when it is over, until that is removed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<BrokerCopy>,
}

impl QueuedTransfer {
    /// The copy at a broker that the receiver can still fetch.
    #[must_use]
    pub fn waits_at(&self, now: i64) -> Option<&BrokerCopy> {
        self.copy.as_ref().filter(|copy| self.state.over().is_none() && copy.until > now)
    }

    /// Bytes that it may still send on this day; nothing where it has no limit.
    #[must_use]
    pub fn allowance(&self, day: i32) -> Option<u64> {
        let max = self.limits.max_bytes?;
        let spent = if self.spent.day == day { self.spent.bytes } else { 0 };
        Some(max.saturating_sub(spent))
    }
}
