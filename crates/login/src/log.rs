//! What one end sends, until the other has taken it.
//!
//! Positions count what a message costs: a byte of a channel one, anything else [`CONTROL`]. Both ends count the same.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

use crate::message::{Channel, MAX_UNIT};
use crate::{Exit, LoginError, SessionSignal, TerminalModes, WindowSize};

/// What a message without bytes of a channel counts: about what it takes in memory, so that windows bound these, too.
pub(crate) const CONTROL: u64 = 64;

/// Bytes that come within this time are kept as one, so that the age of what waits is known.
const TOGETHER: Duration = Duration::from_millis(50);

/// A message without bytes of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    End(Channel),
    Resize(WindowSize),
    Signal(SessionSignal),
    Detach,
    HangUp,
    Modes(TerminalModes),
    Exited(Exit),
}

#[derive(Debug)]
enum Said {
    /// `alone`: a keystroke or its echo, which is with nothing else. `whole`: not to be cut.
    Bytes {
        channel: Channel,
        bytes: Vec<u8>,
        alone: bool,
        whole: bool,
    },
    Control(Control),
}

#[derive(Debug)]
struct Entry {
    start: u64,
    /// Bytes of channels before it.
    bytes_before: u64,
    /// When its first byte came.
    at: Time,
    said: Said,
}

impl Entry {
    fn cost(&self) -> u64 {
        match &self.said {
            Said::Bytes { bytes, .. } => bytes.len() as u64,
            Said::Control(_) => CONTROL,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.cost()
    }
}

/// What is next to be sent.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Bytes { channel: Channel, bytes: &'a [u8], alone: bool, whole: bool },
    Control(&'a Control),
}

/// What one end sends.
#[derive(Debug, Default)]
pub(crate) struct SendLog {
    entries: VecDeque<Entry>,
    /// The first entry that is not sent whole.
    next: usize,
    acked: u64,
    sent: u64,
    end: u64,
    /// Bytes of channels in all, and those that are acknowledged.
    bytes: u64,
    bytes_acked: u64,
}

impl SendLog {
    /// An empty log that goes on from a position of another.
    pub(crate) fn at(position: u64) -> SendLog {
        SendLog { acked: position, sent: position, end: position, ..SendLog::default() }
    }

    pub(crate) fn push(&mut self, channel: Channel, bytes: &[u8], alone: bool, now: Time) {
        if bytes.is_empty() {
            return;
        }
        let (all_sent, last_entry) = (self.sent == self.end, self.entries.len().saturating_sub(1));
        if let Some(Entry {
            at,
            said: Said::Bytes { channel: last, bytes: there, alone: false, whole: false },
            ..
        }) = self.entries.back_mut()
            && *last == channel
            && !alone
            && (all_sent || now.since(*at) <= TOGETHER)
            && there.len() + bytes.len() <= MAX_UNIT
        {
            if all_sent {
                *at = now;
                self.next = last_entry;
            }
            there.extend_from_slice(bytes);
            self.end += bytes.len() as u64;
            self.bytes += bytes.len() as u64;
            return;
        }
        self.add(Said::Bytes { channel, bytes: bytes.to_vec(), alone, whole: false }, now);
    }

    /// Bytes that go in one message: 1 byte to 64 KiB.
    pub(crate) fn push_whole(&mut self, channel: Channel, bytes: Vec<u8>, now: Time) {
        self.add(Said::Bytes { channel, bytes, alone: false, whole: true }, now);
    }

    pub(crate) fn control(&mut self, control: Control, now: Time) {
        // Of two sizes that wait only the later one matters.
        if let (Control::Resize(size), Some(Entry { said: Said::Control(Control::Resize(last)), start, .. })) =
            (&control, self.entries.back_mut())
            && *start >= self.sent
        {
            *last = *size;
            return;
        }
        self.add(Said::Control(control), now);
    }

    fn add(&mut self, said: Said, now: Time) {
        // No bytes follow in the one before: all that was room for more would be kept with it.
        if let Some(Entry { said: Said::Bytes { bytes, .. }, .. }) = self.entries.back_mut() {
            bytes.shrink_to_fit();
        }
        let entry = Entry { start: self.end, bytes_before: self.bytes, at: now, said };
        self.end = entry.end();
        if let Said::Bytes { bytes, .. } = &entry.said {
            self.bytes += bytes.len() as u64;
        }
        self.entries.push_back(entry);
    }

    /// What is next, if anything waits.
    pub(crate) fn peek(&self) -> Option<Piece<'_>> {
        let entry = self.entries.get(self.next)?;
        Some(match &entry.said {
            Said::Control(control) => Piece::Control(control),
            Said::Bytes { channel, bytes, alone, whole } => {
                let from = (self.sent - entry.start) as usize;
                Piece::Bytes { channel: *channel, bytes: &bytes[from..], alone: *alone, whole: *whole }
            }
        })
    }

    /// So much of what [`SendLog::peek`] gave is sent.
    pub(crate) fn advance(&mut self, cost: u64) {
        self.sent += cost;
        while self.entries.get(self.next).is_some_and(|entry| entry.end() <= self.sent) {
            self.next += 1;
        }
    }

    /// The other end has taken what the lowest 24 bits of this position say. Says whether that is news.
    pub(crate) fn acknowledge(&mut self, low: u32) -> Result<bool, LoginError> {
        const MASK: u64 = (1 << crate::message::ACK_BITS) - 1;
        let ahead = u64::from(low).wrapping_sub(self.acked) & MASK;
        // An older one: of a client before this one, or from before what is known since.
        if ahead > MASK / 2 {
            return Ok(false);
        }
        let position = self.acked + ahead;
        if position > self.sent {
            return Err(LoginError::Acknowledged);
        }
        self.free(position);
        Ok(ahead > 0)
    }

    fn free(&mut self, position: u64) {
        self.acked = position;
        while let Some(entry) = self.entries.front()
            && entry.end() <= position
        {
            self.entries.pop_front();
            self.next = self.next.saturating_sub(1);
        }
        self.bytes_acked = match self.entries.front() {
            None => self.bytes,
            Some(entry) => {
                let inside = matches!(entry.said, Said::Bytes { .. });
                entry.bytes_before + if inside { position.saturating_sub(entry.start) } else { 0 }
            }
        };
    }

    /// The other end has everything up to this position, which was not lost with a stream: what follows is sent again.
    pub(crate) fn rewind(&mut self, received: u64) -> bool {
        if received < self.acked || received > self.end {
            return false;
        }
        self.sent = received;
        self.next = self.entries.partition_point(|entry| entry.end() <= received);
        true
    }

    /// Takes what there is of a channel from a position on, which is not sent, out of the log. What there is of others stays, in its
    /// order.
    pub(crate) fn take_after(&mut self, from: u64, channel: Channel, now: Time) -> Vec<u8> {
        let from = from.max(self.sent);
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        let first = self.entries.partition_point(|entry| entry.end() <= from);
        self.end = self.end.min(from);
        for mut entry in self.entries.split_off(first) {
            let begun = from.saturating_sub(entry.start) as usize;
            if let Said::Bytes { channel: of, bytes, .. } = &mut entry.said {
                if *of == channel {
                    let waiting = bytes.split_off(begun);
                    self.bytes -= waiting.len() as u64;
                    taken.extend(waiting);
                } else if begun == 0 {
                    self.bytes -= bytes.len() as u64;
                }
            }
            match entry.said {
                Said::Bytes { channel: of, .. } if of == channel && begun == 0 => {}
                _ if begun > 0 => {
                    self.end = entry.end();
                    self.entries.push_back(entry);
                }
                said => kept.push(said),
            }
        }
        for said in kept {
            self.add(said, now);
        }
        self.next = self.entries.partition_point(|entry| entry.end() <= self.sent);
        taken
    }

    /// What is kept of a channel, message by message.
    pub(crate) fn bytes_of(&self, channel: Channel) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter_map(move |entry| match &entry.said {
            Said::Bytes { channel: of, bytes, .. } if *of == channel => Some(bytes.as_slice()),
            _ => None,
        })
    }

    /// Appends what was not acknowledged to another log.
    pub(crate) fn move_waiting_to(self, other: &mut SendLog, now: Time) {
        for entry in self.entries {
            other.add(entry.said, now);
        }
    }

    /// Whether anything waits.
    pub(crate) fn has_more(&self) -> bool {
        self.next < self.entries.len()
    }

    /// When the first byte that waits came.
    pub(crate) fn waiting_since(&self) -> Option<Time> {
        self.entries.get(self.next).map(|entry| entry.at)
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> u64 {
        self.end - self.sent
    }

    /// What is kept, with what keeping it takes.
    pub(crate) fn kept(&self) -> u64 {
        self.end - self.acked + self.entries.len() as u64 * CONTROL
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of channels that are acknowledged.
    pub(crate) fn bytes_acked(&self) -> u64 {
        self.bytes_acked
    }
}
