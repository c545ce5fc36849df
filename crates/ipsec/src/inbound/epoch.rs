//! Finds the upper half of 64-bit sequence numbers again, which is not sent (RFC 4303 appendix A3).
//!
//! A receiver with manual keys that restarts knows nothing of the numbers before. If its peer has sent 2^32 packets, no packet
//! passes the integrity check with the upper half that the receiver infers. So a packet that fails is tried with other upper
//! halves, and the integrity check is the judge: only the number that the peer has used passes.

use strait_clock::Time;
use strait_scheduler::Budget;

use crate::layers::Inside;
use crate::{InboundSa, Reason};

/// Trials a second: at some microseconds each, half a percent of a processor for all senders together.
const TRIALS: u64 = 1000;
/// Trials at once.
const BURST: u64 = 64;
/// Upper halves that one packet is tried with.
const PER_PACKET: u64 = 16;
/// Upper halves of the first sweep. Each sweep is twice as long as the one before, so that small halves, which are likelier,
/// come soon again: a forged packet may have been tried with the right one.
const FIRST_SWEEP: u32 = 64;
/// Upper halves of the longest sweep: nine years at a million packets a second, and 65 s of trials.
const LONGEST_SWEEP: u32 = 1 << 16;
/// A longer packet is not tried; some packet is shorter.
const KEPT_MAX: usize = 2048;
/// Packets that pass the check after one that failed until trials end. More than one, as an attacker may replay old packets
/// between those of the peer.
const DOUBT: u8 = 8;

/// The search for the upper half on one association.
#[derive(Debug)]
pub(super) struct EpochSearch {
    trials: Budget,
    /// Above zero: packets failed of late.
    doubt: u8,
    /// Where in the sweep the next trial is, counted from the upper half of the highest number.
    next: u32,
    sweep: u32,
    /// The packet that is tried: opening destroys it.
    kept: Box<[u8; KEPT_MAX]>,
}

impl EpochSearch {
    pub(super) fn new() -> EpochSearch {
        EpochSearch {
            trials: Budget::new(TRIALS, BURST),
            doubt: 0,
            next: 0,
            sweep: FIRST_SWEEP,
            kept: Box::new([0; KEPT_MAX]),
        }
    }

    /// Opens a packet as [`InboundSa::open`] does, and where it fails with other upper halves. A packet is kept for that only
    /// when one before it has failed, so the first one that fails is lost.
    // Apart from the way of all other associations, whose code stays in one piece without it.
    #[cold]
    #[inline(never)]
    pub(super) fn open(
        &mut self,
        sa: &mut InboundSa,
        bytes: &mut [u8],
        inside: Inside,
        now: Time,
    ) -> Result<Inside, Reason> {
        let kept = self.doubt > 0 && self.keep(bytes.get(inside.range()).unwrap_or_default(), now);
        match sa.open(bytes, inside) {
            Err(why @ (Reason::Forged | Reason::TooOld | Reason::Replayed)) => {
                self.doubt = DOUBT;
                kept.then(|| self.search(sa, bytes, inside)).flatten().ok_or(why)
            }
            opened => {
                self.doubt = self.doubt.saturating_sub(1);
                opened
            }
        }
    }

    /// Copies a packet if it may be tried, and pays for that.
    fn keep(&mut self, packet: &[u8], now: Time) -> bool {
        let Some(kept) = self.kept.get_mut(..packet.len()) else { return false };
        let may = self.trials.take(PER_PACKET, now);
        if may {
            kept.copy_from_slice(packet);
        }
        may
    }

    /// Tries the packet that was kept with the next upper halves.
    fn search(&mut self, sa: &mut InboundSa, bytes: &mut [u8], inside: Inside) -> Option<Inside> {
        for _ in 0..PER_PACKET {
            let range = inside.range();
            if let (Some(packet), Some(kept)) = (bytes.get_mut(range.clone()), self.kept.get(..range.len())) {
                packet.copy_from_slice(kept);
            }
            if let Ok(opened) = sa.open_in_epoch(bytes, inside, self.next) {
                (self.doubt, self.next, self.sweep) = (0, 0, FIRST_SWEEP);
                return Some(opened);
            }
            self.advance();
        }
        None
    }

    const fn advance(&mut self) {
        self.next += 1;
        if self.next == self.sweep {
            self.next = 0;
            self.sweep = if self.sweep < LONGEST_SWEEP { 2 * self.sweep } else { LONGEST_SWEEP };
        }
    }
}

#[cfg(test)]
mod tests;
