//! Where a peer is: a latest value that its owner's threads share, so that no full queue loses a move.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the newest authentic packet of a peer came from, or where its last handshake was.
///
/// The receiver and the key manager set it, the last one counts. The sender looks at it before it sends. A look costs one
/// load while nothing changed; the address itself is locked only when it is set, or read after it was set.
#[derive(Debug, Default)]
pub struct LatestEndpoint {
    /// How often the address changed.
    moves: AtomicU64,
    address: Mutex<Option<SocketAddr>>,
}

impl LatestEndpoint {
    /// The peer is at `to`; returns where it was before.
    pub fn set(&self, to: SocketAddr) -> Option<SocketAddr> {
        let mut address = self.lock();
        let before = address.replace(to);
        if before != Some(to) {
            self.moves.fetch_add(1, Ordering::Release);
        }
        before
    }

    /// It is not known where the peer is.
    pub fn clear(&self) {
        if self.lock().take().is_some() {
            self.moves.fetch_add(1, Ordering::Release);
        }
    }

    /// Where the peer is, if that is known.
    #[must_use]
    pub fn get(&self) -> Option<SocketAddr> {
        *self.lock()
    }

    /// How often that changed.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// Where the peer is, if that changed since `seen` moves, which become those of now.
    pub fn news(&self, seen: &mut u64) -> Option<SocketAddr> {
        let moves = self.moves();
        if core::mem::replace(seen, moves) == moves { None } else { self.get() }
    }

    // Nothing can panic while it is locked.
    fn lock(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_address_counts_and_is_news_once() {
        let [one, other] = [9, 10].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let (endpoint, mut seen) = (LatestEndpoint::default(), 0);
        assert_eq!((endpoint.get(), endpoint.news(&mut seen)), (None, None));
        assert_eq!(
            [endpoint.set(one), endpoint.set(other), endpoint.set(other)],
            [None, Some(one), Some(other)]
        );
        assert_eq!((endpoint.get(), endpoint.moves()), (Some(other), 2));
        assert_eq!([endpoint.news(&mut seen), endpoint.news(&mut seen)], [Some(other), None]);
        endpoint.clear();
        assert_eq!((endpoint.get(), endpoint.news(&mut seen), endpoint.moves()), (None, None, 3));
    }
}
