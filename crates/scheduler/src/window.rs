//! A sliding window over packets that wait: those of one kind leave as one aggregate.
//!
//! The algorithm is that of A. V. Taddeo, A. Ferrante and V. Piuri, *Scheduling Small Packets in IPSec-based Systems*, section
//! III-B; a bound in bytes and one in time are what its section V leaves to do.

mod tuned;

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::Time;

pub use tuned::Tuned;

/// When a window has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets that it holds: the paper's W. With 1 every packet goes by itself.
    pub packets: usize,
    /// Bytes with which it is full: it takes no packet more, and may hold the last one's bytes beyond this.
    pub bytes: usize,
    /// The hold time: how long its first packet waits for others of its kind at most. With zero it does not wait; with
    /// [`Duration::MAX`] the window has to fill.
    pub wait: Duration,
}

/// Packets of type `T` in the order in which they came, each of a kind `K`: its security association and whatever else
/// must be the same for packets to share a job.
#[derive(Debug)]
pub struct Window<K, T> {
    limits: Limits,
    entries: VecDeque<WindowEntry<K, T>>,
    /// Where entries of other kinds stay while later ones are taken; empty otherwise.
    passed: Vec<WindowEntry<K, T>>,
    bytes: usize,
}

#[derive(Debug)]
struct WindowEntry<K, T> {
    key: K,
    item: T,
    bytes: usize,
    since: Time,
}

impl<K: Copy + Eq, T> Window<K, T> {
    /// An empty window. It allocates here, when [`Window::set_limits`] lets it hold more packets than ever before, and when an
    /// aggregate passes more packets of other kinds than any before it.
    #[must_use]
    pub fn new(limits: Limits) -> Window<K, T> {
        let entries = VecDeque::with_capacity(limits.packets.max(1));
        Window { limits, entries, passed: Vec::new(), bytes: 0 }
    }

    /// When it has seen enough.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Goes by other limits from now on. What it holds it keeps, though it be more than they allow.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.entries.reserve(limits.packets.max(1).saturating_sub(self.entries.len()));
    }

    /// Packets in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes in it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it takes no packet more. An empty one takes any, whatever its limits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.is_empty() && (self.len() >= self.limits.packets || self.bytes >= self.limits.bytes)
    }

    /// Adds a packet that comes in at `now`.
    ///
    /// # Errors
    /// The packet itself, when the window is full.
    pub fn push(&mut self, key: K, item: T, bytes: usize, now: Time) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries.push_back(WindowEntry { key, item, bytes, since: now });
        Ok(())
    }

    /// Adds a packet that comes in at `now` in front of all but the first `behind`, though the window be full.
    pub fn push_ahead(&mut self, behind: usize, key: K, item: T, bytes: usize, now: Time) {
        self.bytes = self.bytes.saturating_add(bytes);
        let place = behind.min(self.entries.len());
        self.entries.insert(place, WindowEntry { key, item, bytes, since: now });
    }

    /// The packet that names the reference, and its kind.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &T)> {
        self.entries.front().map(|entry| (&entry.key, &entry.item))
    }

    /// All packets with their kinds and bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T, usize)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.item, entry.bytes))
    }

    /// The aggregate as it stands (the paper's multi-packet): the first packet and all of its kind, with their bytes, in order.
    pub fn aggregate(&self) -> impl Iterator<Item = (&T, usize)> {
        let reference = self.entries.front().map(|first| first.key);
        let alike = self.entries.iter().filter(move |entry| Some(entry.key) == reference);
        alike.map(|entry| (&entry.item, entry.bytes))
    }

    /// Whether the aggregate is to go at `now`.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        self.is_full() || self.waits_until().is_some_and(|at| at <= now)
    }

    /// When the first packet has waited long enough; nothing without one. A full window is due before.
    #[must_use]
    pub fn waits_until(&self) -> Option<Time> {
        self.entries.front().map(|first| first.since + self.limits.wait)
    }

    /// Removes the first packet, due or not.
    pub fn pop(&mut self) -> Option<T> {
        let entry = self.entries.pop_front()?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry.item)
    }

    /// Removes the aggregate, due or not, or its first `most` packets; says how many packets that were.
    ///
    /// The first packet names the reference. It and every later one of its kind are given to `send` with their bytes, in order.
    /// `send` returns what stays of a packet, if there was no room for all of it: then no later one goes, so that packets of a
    /// kind never overtake each other. What remains keeps its order and its time. It takes time for the packets up to the last one
    /// that goes, not for the whole window.
    pub fn take(&mut self, most: usize, mut send: impl FnMut(T, usize) -> Option<(T, usize)>) -> usize {
        let Some(reference) = self.entries.front().map(|first| first.key) else { return 0 };
        let mut sent = 0;
        while sent < most
            && let Some(entry) = self.entries.pop_front()
        {
            if entry.key != reference {
                self.passed.push(entry);
                continue;
            }
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            if let Some((item, bytes)) = send(entry.item, entry.bytes) {
                self.bytes = self.bytes.saturating_add(bytes);
                self.entries.push_front(WindowEntry { item, bytes, ..entry });
                break;
            }
            sent += 1;
        }
        while let Some(entry) = self.passed.pop() {
            self.entries.push_front(entry);
        }
        sent
    }
}

#[cfg(test)]
mod tests;
