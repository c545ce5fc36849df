//! Bytes of one stream that QUIC has not got yet.

use std::collections::VecDeque;

use bytes::Bytes;

/// The bytes, in order.
#[derive(Debug, Default)]
pub(super) struct UnsentBytes {
    chunks: VecDeque<Bytes>,
    pub(super) len: u64,
    /// The stream ends behind them.
    pub(super) ends: bool,
    /// QUIC takes none: the peer's window for the stream or the connection is full.
    pub(super) stuck: bool,
    /// The writer has more.
    pub(super) wanted: bool,
    /// An event has let the writer go on, and it has not yet.
    pub(super) awaited: bool,
    /// Bytes that QUIC has got since it was certain to have none.
    pub(super) given: u64,
    /// Those in front that are a record already.
    pub(super) framed: u64,
}

impl UnsentBytes {
    pub(super) fn can_go(&self) -> bool {
        self.len > 0 && !self.stuck
    }

    /// True if it has bytes, or a writer that has some.
    pub(super) fn is_in_use(&self) -> bool {
        self.len > 0 || self.wanted || self.awaited
    }

    /// True if streams that go behind it wait: it has bytes that can go, or will have them at once.
    pub(super) fn goes_first(&self) -> bool {
        !self.stuck && (self.len > 0 || self.awaited)
    }

    /// Takes what is within `share`, off the front.
    pub(super) fn take(&mut self, bytes: &mut Bytes, share: u64) -> usize {
        let room = usize::try_from(share.saturating_sub(self.len)).unwrap_or(usize::MAX);
        let taken = bytes.split_to(room.min(bytes.len()));
        (self.wanted, self.awaited) = (!bytes.is_empty(), false);
        let len = taken.len();
        self.len += len as u64;
        if len > 0 {
            self.chunks.push_back(taken);
        }
        len
    }

    /// The next bytes, at most so many.
    pub(super) fn next(&mut self, most: u64) -> Option<Bytes> {
        let front = self.chunks.front_mut()?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let next = if front.len() > most { Some(front.split_to(most)) } else { self.chunks.pop_front() };
        let len = next.as_ref().map_or(0, |next| next.len() as u64);
        (self.len, self.framed) = (self.len - len, self.framed.saturating_sub(len));
        next
    }

    /// Puts a record in front: its head, and its content, which was taken off the front.
    pub(super) fn frame(&mut self, head: Bytes, content: Bytes) {
        let len = (head.len() + content.len()) as u64;
        self.put_back(content);
        self.put_back(head);
        self.framed = len;
    }

    /// Puts back what QUIC did not take.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.len += bytes.len() as u64;
            self.chunks.push_front(bytes);
        }
    }

    /// Nothing more is taken of the stream.
    pub(super) fn clear(&mut self) {
        *self = UnsentBytes { ends: true, ..UnsentBytes::default() };
    }
}
