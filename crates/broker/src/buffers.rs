//! Memory for whole pieces: a few buffers that all uploads share, so that their number is what bounds the memory.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::names::PIECE;

/// Buffers for pieces: one that grows and one on its way to the store, of an upload at full speed, and one beside them.
const BUFFERS: usize = 3;

/// The buffers. Clones share them.
#[derive(Clone, Debug)]
pub struct Buffers {
    room: Arc<Semaphore>,
    free: Arc<Mutex<Vec<Box<[u8]>>>>,
}

/// A buffer for a piece; it goes back when it is dropped.
#[derive(Debug)]
pub struct PieceBuffer {
    bytes: Box<[u8]>,
    /// How much of it is filled.
    filled: usize,
    free: Arc<Mutex<Vec<Box<[u8]>>>>,
    _permit: OwnedSemaphorePermit,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { room: Arc::new(Semaphore::new(BUFFERS)), free: Arc::default() }
    }
}

impl Buffers {
    /// A buffer, if one is free.
    #[must_use]
    pub fn try_take(&self) -> Option<PieceBuffer> {
        Arc::clone(&self.room).try_acquire_owned().ok().map(|permit| self.made(permit))
    }

    /// A buffer, when one is free.
    pub async fn take(&self) -> Option<PieceBuffer> {
        // Never closed.
        Arc::clone(&self.room).acquire_owned().await.ok().map(|permit| self.made(permit))
    }

    fn made(&self, permit: OwnedSemaphorePermit) -> PieceBuffer {
        let kept = self.free.lock().ok().and_then(|mut free| free.pop());
        // Zeroes that the system gives: no memory until it is used.
        let bytes = kept.unwrap_or_else(|| vec![0; PIECE as usize].into_boxed_slice());
        PieceBuffer { bytes, filled: 0, free: Arc::clone(&self.free), _permit: permit }
    }
}

impl PieceBuffer {
    /// What is filled.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// What is not.
    pub fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// So many bytes of the room are filled now.
    pub fn fill(&mut self, count: usize) {
        self.filled = self.bytes.len().min(self.filled + count);
    }
}

impl AsRef<[u8]> for PieceBuffer {
    fn as_ref(&self) -> &[u8] {
        self.filled()
    }
}

impl Drop for PieceBuffer {
    fn drop(&mut self) {
        if let Ok(mut free) = self.free.lock() {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_are_no_more() {
        let buffers = Buffers::default();
        let mut all: Vec<_> = std::iter::from_fn(|| buffers.try_take()).collect();
        assert_eq!(all.len(), BUFFERS);
        all[0].room()[..3].copy_from_slice(b"abc");
        all[0].fill(3);
        assert_eq!(all[0].filled(), b"abc");
        assert_eq!(all[0].room().len(), PIECE as usize - 3);
        all.truncate(1);
        assert!(buffers.try_take().is_some_and(|buffer| buffer.filled().is_empty()));
    }
}
