//! What a receiver keeps of each sender that it knows.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_crypto::SuiteSet;
use strait_ipsec::{HEADER_PACKETS, HEADER_PAUSE, KeyNumbers, PeerId};
use strait_wire::sessionless::Name;
use strait_wire::{Esn, Spi};

use super::waiting::Waiting;
use crate::PublicKey;
use crate::sessionless::algorithms::{KijAlgorithm, PacketAlgorithms, Protection};
use crate::sessionless::clock::{EpochLength, WallTime};
use crate::sessionless::marks::ReceiveMark;
use crate::sessionless::shared::EpochSecret;

/// Packet keys of one sender that are kept at the same time: the one in use, the one before it, and two of an earlier run of the sender.
pub(super) const KEYS_A_SENDER: usize = 4;
/// Secrets of key packets of one sender and epoch: a sender that restarts within an epoch makes another.
const SECRETS_AN_EPOCH: usize = 4;
/// Pause between acknowledgements, of one kind, to one sender.
pub(super) const ANSWER_PAUSE: Duration = Duration::from_millis(100);

/// A sender, as its card and the configuration say.
#[derive(Clone, Debug)]
pub struct KnownSender {
    /// Its number at the data plane.
    pub peer: PeerId,
    /// Its key.
    pub key: PublicKey,
    /// Other names that it may use in headers: addresses, the hash of its name.
    pub names: Vec<Name>,
    /// How long its epochs are.
    pub epoch: EpochLength,
    /// Suites that are taken from it.
    pub suites: SuiteSet,
    /// Whether a cipher with an integrity algorithm apart is taken: for the lab.
    pub separate: bool,
    /// Whether the secret of a key packet has to be in its keys.
    pub hybrid: bool,
    /// From when to when its card is valid.
    pub valid: (WallTime, WallTime),
    /// Its mark as it is on disk; 0 when there is none.
    pub mark: u64,
    /// Whether everything of it stays in the caches.
    pub pinned: bool,
}

impl KnownSender {
    pub(super) fn allows(&self, algorithms: PacketAlgorithms) -> bool {
        match algorithms.protection {
            Protection::Aead(suite) => self.suites.contains(suite),
            Protection::Separate(..) => self.separate,
        }
    }
}

/// A packet key of a sender, under which at least one packet was authentic.
#[derive(Debug)]
pub(super) struct InboundKey {
    pub(super) spi: Spi,
    pub(super) first: u64,
    /// The highest number, shared with the packet path.
    pub(super) numbers: Arc<KeyNumbers>,
    pub(super) header: Box<[u8]>,
    /// Whether the SPI alone finds it; not so where another association has that SPI.
    pub(super) bound: bool,
    /// Whether the sender wants answers.
    pub(super) answer: bool,
    pub(super) expires: Time,
    acknowledged: Option<Time>,
    /// The last packet that had a header: when it came, its number.
    with_header: Option<(Time, u64)>,
}

impl InboundKey {
    pub(super) fn new(
        spi: Spi,
        first: u64,
        header: Box<[u8]>,
        bound: bool,
        answer: bool,
        expires: Time,
    ) -> InboundKey {
        let (acknowledged, with_header) = (None, None);
        let numbers = Arc::new(KeyNumbers::new(first));
        InboundKey { spi, first, numbers, header, bound, answer, expires, acknowledged, with_header }
    }

    /// Whether the packet with this number, which had a header, is to be acknowledged: its sender still puts one in front of each.
    pub(super) fn wants_acknowledgement(&mut self, now: Time, number: u64) -> bool {
        let repeated = self.with_header.is_none_or(|(at, before)| {
            now.since(at) < HEADER_PAUSE && number.abs_diff(before) < HEADER_PACKETS
        });
        self.with_header = Some((now, number));
        repeated && self.may_acknowledge(now)
    }

    /// Whether it is acknowledged at `now`, because its sender needs not put a header in front of packets and does.
    pub(super) fn may_acknowledge(&mut self, now: Time) -> bool {
        let may = self.bound && self.answer && passed(self.acknowledged, now);
        if may {
            self.acknowledged = Some(now);
        }
        may
    }
}

/// Whether a further answer is allowed at `now`.
pub(super) fn passed(last: Option<Time>, now: Time) -> bool {
    last.is_none_or(|last| now.since(last) >= ANSWER_PAUSE)
}

/// The secret of a key packet.
#[derive(Debug)]
pub(super) struct ReceivedSecret {
    pub(super) epoch: u32,
    /// By what the ciphertext is known again.
    pub(super) id: [u8; 16],
    pub(super) secret: EpochSecret,
}

/// What a Kijn is found by: the sender, the epoch, the algorithm, whether it is of a day's keys, the secret of a key packet.
pub(super) type EpochKeyId = (Name, u32, KijAlgorithm, bool, Option<[u8; 16]>);

/// A sender and its state.
#[derive(Debug)]
pub(super) struct SenderState {
    pub(super) known: KnownSender,
    pub(super) mark: ReceiveMark,
    /// Numbers up to here are refused under keys that are new.
    pub(super) floor: u64,
    pub(super) keys: Vec<InboundKey>,
    pub(super) secrets: Vec<ReceivedSecret>,
    pub(super) waiting: Waiting,
    pub(super) refused: Option<Time>,
    pub(super) wanted: Option<Time>,
    pub(super) taken: Option<Time>,
    pub(super) undated: Option<Time>,
}

impl SenderState {
    pub(super) fn new(known: KnownSender) -> SenderState {
        SenderState {
            mark: ReceiveMark::new(known.mark),
            floor: known.mark,
            known,
            keys: Vec::new(),
            secrets: Vec::new(),
            waiting: Waiting::default(),
            refused: None,
            wanted: None,
            taken: None,
            undated: None,
        }
    }

    pub(super) fn key(&mut self, spi: Spi) -> Option<&mut InboundKey> {
        self.keys.iter_mut().find(|key| key.spi == spi)
    }

    /// Forgets a key. What came under it, and before, is refused from now on: its replay window is gone.
    pub(super) fn forget(&mut self, spi: Spi) -> Option<InboundKey> {
        let at = self.keys.iter().position(|key| key.spi == spi)?;
        let key = self.keys.remove(at);
        // The packet path may hold a packet that it has opened: what it delivers is at or below this number.
        self.floor = self.floor.max(key.numbers.end());
        Some(key)
    }

    /// The oldest key, once there are as many as may be.
    pub(super) fn surplus(&self) -> Option<Spi> {
        if self.keys.len() < KEYS_A_SENDER {
            return None;
        }
        self.keys.iter().min_by_key(|key| key.first).map(|key| key.spi)
    }

    /// Keeps the secret of a key packet, and of secrets of its epoch only the newest; those of epochs that are over go.
    pub(super) fn keep(&mut self, secret: ReceivedSecret, now: u32) {
        self.secrets.retain(|known| known.epoch.abs_diff(now) <= 1);
        let same: Vec<[u8; 16]> =
            self.secrets.iter().filter(|known| known.epoch == secret.epoch).map(|known| known.id).collect();
        if let (Some(oldest), true) = (same.first(), same.len() >= SECRETS_AN_EPOCH) {
            self.secrets.retain(|known| known.id != *oldest);
        }
        self.secrets.push(secret);
    }

    /// The whole number whose low half is in an ESP packet that follows a header.
    pub(super) fn number(first: Esn, low: u32) -> u64 {
        first.0.saturating_add(u64::from(low.wrapping_sub(first.low().0)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_sender_that_repeats_its_header_is_answered() {
        let at = Time::from_millis;
        let mut key = InboundKey::new(Spi(1), 100, Box::default(), true, true, Time::MAX);
        assert!(key.wants_acknowledgement(at(0), 100));
        assert!(!key.wants_acknowledgement(at(50), 101), "not at once again");
        assert!(key.wants_acknowledgement(at(150), 102), "it did not hear");
        assert!(!key.wants_acknowledgement(at(300), 170), "64 packets later");
        assert!(!key.wants_acknowledgement(at(1300), 171), "a second later");
        key.bound = false;
        assert!(!key.wants_acknowledgement(at(1500), 172), "the header has to stay on");
    }

    proptest! {
        #[test]
        fn the_low_half_says_which_number_is_meant(first in 0..u64::MAX - (1 << 33), ahead: u32) {
            let number = first + u64::from(ahead);
            prop_assert_eq!(SenderState::number(Esn(first), Esn(number).low().0), number);
        }
    }
}
