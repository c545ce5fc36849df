//! The first bytes of a peer's stream, which name the service, and what of it is meant.

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::PublicKey;
use strait_scheduler::Rate;
use strait_stream::{StreamKey, StreamRead, Streams};

use crate::services::StreamHead;

/// A service, its version, and the length of the name behind them.
const FIXED: usize = 3;

/// A stream that has not named its service.
#[derive(Debug)]
pub(super) struct PendingHead {
    pub(super) peer: PeerId,
    key: PublicKey,
    /// At most 258 bytes.
    read: Vec<u8>,
}

impl PendingHead {
    pub(super) const fn new(peer: PeerId, key: PublicKey) -> PendingHead {
        PendingHead { peer, key, read: Vec::new() }
    }

    /// Whether all of it is there, once that is known; `Some(false)` when the stream ended before.
    pub(super) fn read(&mut self, core: &mut Streams, key: StreamKey, now: Time) -> Option<bool> {
        loop {
            let missing = self.missing();
            if missing == 0 {
                return Some(true);
            }
            match core.read(key, missing, now) {
                Ok(StreamRead::Data(bytes)) => self.read.extend_from_slice(&bytes),
                Ok(StreamRead::Nothing) => return None,
                Ok(StreamRead::End) | Err(_) => return Some(false),
            }
        }
    }

    /// How many bytes are not there yet, as far as that is known.
    fn missing(&self) -> usize {
        let whole = FIXED + self.read.get(FIXED - 1).map_or(0, |length| usize::from(*length));
        whole.saturating_sub(self.read.len())
    }

    /// What is told of it; nothing if a part is missing.
    pub(super) fn named(&self, peer: &str, rate: Option<Rate>) -> Option<StreamHead> {
        let [service, version, _, name @ ..] = &self.read[..] else { return None };
        Some(StreamHead {
            peer: peer.to_owned(),
            key: self.key.to_string(),
            service: *service,
            version: *version,
            name: name.to_vec(),
            rate_bits: rate.map(Rate::bits),
            binding: None,
        })
    }
}
