//! The first bytes of a peer's stream, which name the service, and what of it is meant. A stream has a limited time for them and for the
//! first byte of a request: no process is made for one that is silent.

use std::net::SocketAddr;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::PublicKey;
use strait_scheduler::Rate;
use strait_stream::{StreamKey, StreamRead, Streams};

use crate::services::StreamHead;

/// A service, its version, and the length of the name behind them.
const FIXED: usize = 3;

/// The time that a stream has to come so far: as long as a login has for its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The service whose process speaks first.
const SPEAKS_FIRST: u8 = super::BROKER;

/// A stream that has not named its service, or asked nothing of it.
#[derive(Debug)]
pub(super) struct PendingHead {
    pub(super) peer: PeerId,
    key: PublicKey,
    /// The time at which it is given up.
    pub(super) until: Time,
    /// At most 259 bytes.
    read: Vec<u8>,
}

impl PendingHead {
    pub(super) fn new(peer: PeerId, key: PublicKey, now: Time) -> PendingHead {
        PendingHead { peer, key, until: now + PATIENCE, read: Vec::new() }
    }

    /// Reads on: `Some(true)` when all of it is there and the request begins, `Some(false)` when the stream ended before.
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
        let request = usize::from(self.read.first() != Some(&SPEAKS_FIRST));
        let whole = FIXED + self.read.get(FIXED - 1).map_or(0, |length| usize::from(*length) + request);
        whole.saturating_sub(self.read.len())
    }

    /// The head for the service, and the beginning of the request; nothing if a part is missing.
    pub(super) fn named(
        &self,
        peer: &str,
        from: SocketAddr,
        rate: Option<Rate>,
    ) -> Option<(StreamHead, Vec<u8>)> {
        let [service, version, length, rest @ ..] = &self.read[..] else { return None };
        let (name, request) = rest.split_at_checked(usize::from(*length))?;
        let head = StreamHead {
            peer: peer.to_owned(),
            key: self.key.to_string(),
            from,
            service: *service,
            version: *version,
            name: name.to_vec(),
            rate_bits: rate.map(Rate::bits),
            binding: None,
        };
        Some((head, request.to_vec()))
    }
}
