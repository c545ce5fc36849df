//! Datagrams that wait for a card or a key packet, bounded for each sender and for all.

use std::collections::VecDeque;

use strait_clock::Time;
use strait_ipsec::Place;

/// Most datagrams that wait for one sender: the first flight of a TCP connection (RFC 6928: ten segments) and a key packet's delay.
const DATAGRAMS: usize = 16;
/// Most bytes that wait for one sender.
const BYTES: usize = 16 * 1024;
/// Most bytes that wait for all senders.
const BYTES_IN_ALL: usize = 4 << 20;

/// A datagram that waits, or that has waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDatagram {
    /// From where it came.
    pub from: Place,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

/// How many bytes wait for all senders.
#[derive(Debug, Default)]
pub(super) struct WaitingBytes(usize);

/// The datagrams of one sender.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    datagrams: VecDeque<WaitingDatagram>,
    bytes: usize,
    /// When the first of them came.
    pub(super) since: Option<Time>,
}

impl Waiting {
    /// Keeps a copy of a datagram; false when there is no room.
    pub(super) fn push(&mut self, all: &mut WaitingBytes, now: Time, from: Place, bytes: &[u8]) -> bool {
        let full = self.datagrams.len() >= DATAGRAMS || self.bytes + bytes.len() > BYTES;
        if full || all.0 + bytes.len() > BYTES_IN_ALL {
            return false;
        }
        all.0 += bytes.len();
        self.bytes += bytes.len();
        self.since.get_or_insert(now);
        self.datagrams.push_back(WaitingDatagram { from, bytes: bytes.into() });
        true
    }

    /// Gives all of them back.
    pub(super) fn take(&mut self, all: &mut WaitingBytes) -> Vec<WaitingDatagram> {
        all.0 -= self.bytes;
        (self.bytes, self.since) = (0, None);
        self.datagrams.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_for_each_and_for_all() {
        let (mut all, from, now) = (
            WaitingBytes::default(),
            "192.0.2.1:1".parse::<std::net::SocketAddr>().unwrap().into(),
            Time::ZERO,
        );
        let mut one = Waiting::default();
        let kept = (0..40).filter(|_| one.push(&mut all, now, from, &[0; 100])).count();
        assert_eq!(kept, DATAGRAMS);
        let mut large = Waiting::default();
        let kept = (0..40).filter(|_| large.push(&mut all, now, from, &[0; 1500])).count();
        assert_eq!(kept, BYTES / 1500);
        let mut many: Vec<Waiting> = (0..1000).map(|_| Waiting::default()).collect();
        for waiting in &mut many {
            while waiting.push(&mut all, now, from, &[0; 1500]) {}
        }
        assert!(all.0 <= BYTES_IN_ALL && all.0 > BYTES_IN_ALL - 2000);
        assert_eq!(one.take(&mut all).len(), DATAGRAMS);
        large.take(&mut all);
        for waiting in &mut many {
            waiting.take(&mut all);
        }
        assert_eq!(all.0, 0);
    }
}
