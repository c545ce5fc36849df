//! What a transfer may send on one day.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::tz::TimeZone;
use strait_transfer::TransferId;

use crate::outbox::{self, OutboxHome};

/// Bytes that are granted at once: each grant is a record that is made durable, and a process that is killed has used all of it.
const GRANT_MAX: u64 = 16 << 20;
/// Grants of a day at least: what a kill costs is a small part of it.
const GRANTS: u64 = 16;

/// Asks the outbox for the bytes of a day.
pub(super) struct DayAllowance<'a> {
    home: &'a OutboxHome,
    id: TransferId,
    /// Bytes that are asked for at once; none where the transfer has no limit.
    step: Option<u64>,
}

impl<'a> DayAllowance<'a> {
    /// Of a transfer that may send so many bytes a day.
    pub(super) fn new(home: &'a OutboxHome, id: TransferId, max: Option<u64>) -> DayAllowance<'a> {
        let step = max.map(|max| (max / GRANTS).clamp(1, GRANT_MAX));
        DayAllowance { home, id, step }
    }

    /// Some more bytes; none when those of the day are used up.
    fn more(&self, step: u64) -> io::Result<u64> {
        let mut outbox = self.home.open().map_err(|failure| io::Error::other(failure.to_string()))?;
        outbox.grant(self.id, step, outbox::now(), &TimeZone::system()).map_err(io::Error::other)
    }
}

/// Passes what is granted. When nothing is any more, the transfer is ended as if it had been stopped.
pub(super) struct Allowed<'a, W> {
    inner: W,
    day: DayAllowance<'a>,
    left: &'a AtomicU64,
    cancel: &'a AtomicBool,
}

impl<'a, W> Allowed<'a, W> {
    /// Passes bytes to `inner`; what is granted and not passed is in `left`.
    pub(super) fn new(
        inner: W,
        day: DayAllowance<'a>,
        left: &'a AtomicU64,
        cancel: &'a AtomicBool,
    ) -> Allowed<'a, W> {
        Allowed { inner, day, left, cancel }
    }
}

impl<W: Write> Write for Allowed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(step) = self.day.step else { return self.inner.write(bytes) };
        let mut left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            left = self.day.more(step)?;
            self.left.store(left, Ordering::Relaxed);
        }
        if left == 0 {
            self.cancel.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the bytes of this day are used up"));
        }
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.inner.write(&bytes[..count])?;
        self.left.store(left - count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
