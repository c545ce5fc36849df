//! When headers and key packets are sent. Nothing is ever sent for its own sake: what is due goes with the next packets.

use core::time::Duration;

use strait_clock::Time;

/// Packets after which an acknowledged header is sent again, for a receiver that restarted.
pub const HEADER_PACKETS: u64 = 64;
/// The time after which it is: how long a receiver that restarted is deaf.
pub const HEADER_PAUSE: Duration = Duration::from_secs(1);

/// Pauses between key packets that are not acknowledged: from the first, doubled up to the last.
const KEY_PACKET_FIRST: Duration = Duration::from_millis(200);
const KEY_PACKET_LONGEST: Duration = Duration::from_secs(1);
/// One way, a key packet goes every so many packets, and after so long: 1.2 kB among 1,000 packets are 0.1 %.
const KEY_PACKET_PACKETS: u64 = 1000;
const KEY_PACKET_PAUSE: Duration = Duration::from_secs(10);

/// Whether anything comes back from a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReturnPath {
    /// Acknowledgements do.
    #[default]
    Answers,
    /// Nothing does; every packet has its header.
    OneWay,
}

/// Whether a key packet goes with the next packets.
#[derive(Clone, Debug)]
pub struct KeyPacketSchedule {
    path: ReturnPath,
    taken: bool,
    last: Option<(Time, u64)>,
    pause: Duration,
}

impl KeyPacketSchedule {
    /// For a key packet that is new.
    #[must_use]
    pub const fn new(path: ReturnPath) -> KeyPacketSchedule {
        KeyPacketSchedule { path, taken: false, last: None, pause: KEY_PACKET_FIRST }
    }

    /// The receiver has the secret.
    pub const fn taken(&mut self) {
        self.taken = true;
    }

    /// The receiver asks for it; its own budget limits how often.
    pub const fn wanted(&mut self) {
        (self.taken, self.last, self.pause) = (false, None, KEY_PACKET_FIRST);
    }

    /// Whether it goes beside what is sent at `now`, after `packets` packets in all.
    pub fn wants(&mut self, now: Time, packets: u64) -> bool {
        let passed = |pause| self.last.is_none_or(|(last, _)| now.since(last) >= pause);
        let many = self.last.is_some_and(|(_, before)| packets.saturating_sub(before) >= KEY_PACKET_PACKETS);
        let wants = match self.path {
            ReturnPath::Answers => !self.taken && passed(self.pause),
            ReturnPath::OneWay => many || passed(KEY_PACKET_PAUSE),
        };
        if wants {
            if self.last.is_some() {
                self.pause = (self.pause * 2).min(KEY_PACKET_LONGEST);
            }
            self.last = Some((now, packets));
        }
        wants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_packet_is_repeated_more_and_more_seldom_until_it_is_taken() {
        let mut schedule = KeyPacketSchedule::new(ReturnPath::Answers);
        let sent = |schedule: &mut KeyPacketSchedule| {
            let every = (0..50_u64).map(|step| (step, Time::from_nanos(100_000_000 * step)));
            every.filter(|(step, at)| schedule.wants(*at, *step)).map(|(step, _)| step).collect::<Vec<_>>()
        };
        assert_eq!(sent(&mut schedule), [0, 2, 6, 14, 24, 34, 44]);
        schedule.taken();
        assert!(!schedule.wants(Time::from_nanos(100_000_000_000), 99));
        schedule.wanted();
        assert!(schedule.wants(Time::from_nanos(100_000_000_001), 100));
    }

    #[test]
    fn one_way_it_is_repeated_for_ever() {
        let mut schedule = KeyPacketSchedule::new(ReturnPath::OneWay);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        schedule.taken();
        assert_eq!([0, 999, 1000].map(|packets| schedule.wants(at(1), packets)), [true, false, true]);
        assert_eq!([9_000, 10_001].map(|ms| schedule.wants(at(ms), 1001)), [false, true]);
    }
}
