//! Marks: how far numbers are used, as it is written on disk, so that no number is sent or taken twice, whatever restarts.
//!
//! Both marks are ahead of what was used, by a slack, so that the disk is written seldom: it is written before a number above the mark
//! is sent, or delivered.

use std::sync::Arc;

use strait_ipsec::{RECEIVE_SLACK, SenderNumbers};

use super::clock::WallTime;

/// How far the sender's mark is ahead: 2^22 microseconds, some 4 s, as numbers of manual keys are reserved.
pub const SEND_SLACK: u64 = 1 << 22;

/// Why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSend {
    /// The clock has gone back: numbers that begin with it were used.
    #[error(
        "this node's clock is {behind_us} us behind the numbers that it has used: nothing is sent without a session until it is right"
    )]
    ClockBelowMark {
        /// How far it is behind, in microseconds.
        behind_us: u64,
    },
    /// The mark is being written; try again when it is.
    #[error("the mark for numbers up to {mark} is not yet on disk")]
    NotPersisted {
        /// The mark.
        mark: u64,
    },
    /// The peer's mark is ahead of this node's clock.
    #[error("the peer refuses numbers that are less than {ahead_us} us ahead of this node's clock")]
    PeerMarkAhead {
        /// How far it is ahead, in microseconds.
        ahead_us: u64,
    },
    /// The peer's key is none that a secret can be shared with, or its ML-KEM key none.
    #[error("the peer's key is not one that can be encrypted to")]
    BadPeerKey,
    /// Daily keys are required, and there is none of this day at one end.
    #[error("daily keys are required, and this node or the peer has none of this day that the other knows")]
    NoDailyKey,
    /// The algorithms have no numbers.
    #[error("the algorithms that are chosen have no numbers in headers")]
    NoSuchAlgorithm,
}

/// The node's own mark: no number above it was ever sent, to any peer.
#[derive(Debug)]
pub struct SendMark {
    /// What an earlier run may have used.
    floor: u64,
    /// The latest time of day of this run.
    seen: WallTime,
    /// What is on disk.
    persisted: u64,
    /// What the caller was asked to write.
    asked: u64,
    request: Option<u64>,
}

impl SendMark {
    /// The mark as it is on disk; 0 before there was any.
    #[must_use]
    pub const fn new(persisted: u64) -> SendMark {
        SendMark { floor: persisted, seen: WallTime(0), persisted, asked: persisted, request: None }
    }

    /// The first number of a key that begins at `wall`, above `after`, which was used with the same peer.
    ///
    /// # Errors
    /// [`CannotSend::ClockBelowMark`], or [`CannotSend::NotPersisted`] until the mark is written.
    pub fn begin(&mut self, wall: WallTime, after: u64) -> Result<u64, CannotSend> {
        // The mark on disk is ahead of a right clock by its slack, and by as much again after a restart. Numbers of this run may be
        // further ahead, where more than a million packets a second are sent.
        let before = self.floor.saturating_sub(2 * SEND_SLACK).max(self.seen.0.saturating_sub(SEND_SLACK));
        if wall.0 < before {
            return Err(CannotSend::ClockBelowMark { behind_us: self.floor.max(self.seen.0) - wall.0 });
        }
        self.seen = self.seen.max(wall);
        let first = wall.0.max(self.floor.saturating_add(1)).max(after.saturating_add(1));
        self.reserve(first)?;
        Ok(first)
    }

    /// Makes sure that numbers up to `number` may be sent, and some more.
    ///
    /// # Errors
    /// [`CannotSend::NotPersisted`] until the mark is written.
    pub fn reserve(&mut self, number: u64) -> Result<(), CannotSend> {
        if number.saturating_add(SEND_SLACK / 2) > self.asked {
            self.asked = number.saturating_add(SEND_SLACK);
            self.request = Some(self.asked);
        }
        if number <= self.persisted { Ok(()) } else { Err(CannotSend::NotPersisted { mark: self.asked }) }
    }

    /// The mark to be written now, if it is to be.
    pub fn take_request(&mut self) -> Option<u64> {
        self.request.take()
    }

    /// `mark` is on disk.
    pub fn persisted(&mut self, mark: u64) {
        self.persisted = self.persisted.max(mark);
    }

    /// The last number that may be sent now.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.persisted
    }
}

/// What becomes of an authentic packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is delivered.
    Now,
    /// It is delivered as soon as this mark is on disk: a replay after a crash would be taken for new otherwise.
    AfterPersisted(u64),
}

/// The mark of one peer at its receiver: no number above it was ever delivered.
#[derive(Debug)]
pub(crate) struct ReceiveMark {
    highest: u64,
    /// With what is on disk.
    numbers: Arc<SenderNumbers>,
    asked: u64,
}

impl ReceiveMark {
    pub(crate) fn new(persisted: u64) -> ReceiveMark {
        ReceiveMark { highest: 0, numbers: Arc::new(SenderNumbers::new(persisted)), asked: persisted }
    }

    /// What the packet path goes by.
    pub(crate) fn numbers(&self) -> Arc<SenderNumbers> {
        Arc::clone(&self.numbers)
    }

    /// What becomes of a packet with this number, and the mark that is to be written, if one is.
    pub(crate) fn admit(&mut self, number: u64) -> (Delivery, Option<u64>) {
        self.highest = self.highest.max(number);
        let mut request = None;
        if number.saturating_add(RECEIVE_SLACK / 2) > self.asked {
            self.asked = number.saturating_add(RECEIVE_SLACK);
            request = Some(self.asked);
        }
        let delivery =
            if number <= self.numbers.mark() { Delivery::Now } else { Delivery::AfterPersisted(self.asked) };
        (delivery, request)
    }

    pub(crate) fn persisted(&self, mark: u64) {
        self.numbers.persisted(mark);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: u64 = 990_000_000_000_000;

    fn written(mark: &mut SendMark, wall: u64, after: u64) -> u64 {
        if let Err(CannotSend::NotPersisted { mark: asked }) = mark.begin(WallTime(wall), after) {
            assert_eq!(mark.take_request(), Some(asked));
            mark.persisted(asked);
        }
        mark.begin(WallTime(wall), after).unwrap()
    }

    #[test]
    fn numbers_begin_with_the_clock_once_the_mark_is_written() {
        let mut mark = SendMark::new(0);
        let refused = mark.begin(WallTime(NOON), 0);
        assert_eq!(refused, Err(CannotSend::NotPersisted { mark: NOON + SEND_SLACK }));
        assert_eq!(mark.take_request(), Some(NOON + SEND_SLACK));
        assert!(mark.begin(WallTime(NOON), 0).is_err(), "not before it is on disk");
        assert_eq!(mark.take_request(), None, "and it is asked for once");
        mark.persisted(NOON + SEND_SLACK);
        assert_eq!(mark.begin(WallTime(NOON), 0), Ok(NOON));
        assert_eq!(mark.begin(WallTime(NOON), NOON + 7), Ok(NOON + 8));
    }

    #[test]
    fn after_a_restart_numbers_begin_above_the_mark_at_once() {
        let mut mark = SendMark::new(NOON + SEND_SLACK);
        assert_eq!(written(&mut mark, NOON + 1000, 0), NOON + SEND_SLACK + 1);
    }

    #[test]
    fn a_clock_that_went_back_does_not_send_and_says_how_far() {
        let mut mark = SendMark::new(NOON);
        let error = mark.begin(WallTime(NOON - 60_000_000), 0).unwrap_err();
        assert_eq!(error, CannotSend::ClockBelowMark { behind_us: 60_000_000 });
        assert_eq!(mark.take_request(), None);
        assert!(error.to_string().contains("60000000 us behind"), "{error}");
        assert_eq!(written(&mut mark, NOON + 50_000_000, 0), NOON + 50_000_000);
        let error = mark.begin(WallTime(NOON), 0).unwrap_err();
        assert_eq!(error, CannotSend::ClockBelowMark { behind_us: 50_000_000 }, "in the same run too");
    }

    #[test]
    fn a_receiver_delivers_no_number_above_what_is_on_disk() {
        let mut mark = ReceiveMark::new(0);
        let asked = NOON + RECEIVE_SLACK;
        assert_eq!(mark.admit(NOON), (Delivery::AfterPersisted(asked), Some(asked)));
        assert_eq!(mark.admit(NOON + 1), (Delivery::AfterPersisted(asked), None));
        mark.persisted(asked);
        assert_eq!(mark.admit(NOON + 2), (Delivery::Now, None));
        let (delivery, request) = mark.admit(NOON + RECEIVE_SLACK - 1);
        assert_eq!((delivery, request), (Delivery::Now, Some(NOON + 2 * RECEIVE_SLACK - 1)), "written ahead");
    }

    proptest! {
        #[test]
        fn no_number_is_sent_twice_over_restarts_and_jumps(
            steps in proptest::collection::vec((0..10_u8, 0..30_000_000_u64, any::<bool>()), 1..60),
        ) {
            let (mut disk, mut wall, mut used, mut last) = (0, NOON, 0, 0);
            let mut mark = SendMark::new(disk);
            for (what, by, crash) in steps {
                match what {
                    0 => wall = wall.saturating_sub(by),
                    1 => { mark = SendMark::new(disk); last = 0; }
                    _ => wall += by % 3_000_000,
                }
                let mut first = mark.begin(WallTime(wall), last);
                if let (Err(CannotSend::NotPersisted { .. }), false) = (first, crash) {
                    disk = mark.take_request().unwrap_or(disk);
                    mark.persisted(disk);
                    first = mark.begin(WallTime(wall), last);
                }
                if let Ok(first) = first {
                    prop_assert!(first > used && first <= disk, "{} after {}, {} on disk", first, used, disk);
                    used = first;
                    last = first;
                }
            }
        }
    }
}
