//! A link in virtual time that loses, delays, reorders and repeats, and keeps a capture of all that was sent.

use std::collections::BTreeMap;

use strait_clock::{Random, Time};

/// What a link does to datagrams, in hundredths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    pub(super) lost: u64,
    pub(super) repeated: u64,
    /// Most microseconds that a datagram is late.
    pub(super) jitter: u64,
}

impl Quality {
    pub(super) const PERFECT: Quality = Quality { lost: 0, repeated: 0, jitter: 0 };
    pub(super) const BAD: Quality = Quality { lost: 20, repeated: 15, jitter: 80_000 };
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) quality: Quality,
    delay: u64,
    random: Random,
    under_way: BTreeMap<(Time, u64), Vec<u8>>,
    sent: u64,
    pub(super) capture: Vec<Vec<u8>>,
}

impl Link {
    /// A link with a delay in milliseconds.
    pub(super) fn new(quality: Quality, delay: u64, seed: u64) -> Link {
        let random = Random::new(seed);
        Link { quality, delay, random, under_way: BTreeMap::new(), sent: 0, capture: Vec::new() }
    }

    pub(super) fn send(&mut self, now: Time, datagram: Vec<u8>) {
        self.capture.push(datagram.clone());
        let copies = 1 + u64::from(self.random.below(100) < self.quality.repeated);
        for _ in 0..copies {
            self.sent += 1;
            let late = self.random.below(self.quality.jitter.max(1)) * 1000;
            let at = Time::from_nanos(now.as_nanos() + self.delay * 1_000_000 + late);
            if self.random.below(100) >= self.quality.lost {
                self.under_way.insert((at, self.sent), datagram.clone());
            }
        }
    }

    /// What has arrived by `now`.
    pub(super) fn arrived(&mut self, now: Time) -> Vec<Vec<u8>> {
        let later = self.under_way.split_off(&(Time::from_nanos(now.as_nanos() + 1), 0));
        std::mem::replace(&mut self.under_way, later).into_values().collect()
    }
}
