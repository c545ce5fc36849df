//! When the header is in front of a packet, and when a key packet goes beside one. Nothing is ever sent for its own sake: what is due
//! goes with the next packet.

use core::time::Duration;

use strait_clock::Time;

/// Packets after which an acknowledged header is sent again, for a receiver that restarted.
pub const HEADER_PACKETS: u32 = 64;
/// The time after which it is: how long a receiver that restarted is deaf.
pub const HEADER_PAUSE: Duration = Duration::from_secs(1);

/// Pauses between key packets that are not acknowledged: from the first, doubled up to the last.
const KEY_PACKET_FIRST: Duration = Duration::from_millis(200);
const KEY_PACKET_LONGEST: Duration = Duration::from_secs(1);
/// One way, a key packet goes every so many packets, and after so long: 1.2 kB among 1,000 packets are 0.1 %.
const KEY_PACKET_PACKETS: u32 = 1000;
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

/// Whether the next packet of a key has the header.
#[derive(Clone, Debug)]
pub struct HeaderSchedule {
    path: ReturnPath,
    acknowledged: bool,
    last: Time,
    since: u32,
}

impl HeaderSchedule {
    /// For a key that is new.
    #[must_use]
    pub const fn new(path: ReturnPath) -> HeaderSchedule {
        HeaderSchedule { path, acknowledged: false, last: Time::ZERO, since: 0 }
    }

    /// The receiver has bound the key to its SPI.
    pub const fn acknowledged(&mut self) {
        self.acknowledged = true;
    }

    /// Whether the packet that is sent at `now` has the header; to be asked once for each packet.
    #[must_use]
    pub fn wants(&mut self, now: Time) -> bool {
        self.since = self.since.saturating_add(1);
        let due = self.since >= HEADER_PACKETS || now.since(self.last) >= HEADER_PAUSE;
        let wants = due || !self.acknowledged || self.path == ReturnPath::OneWay;
        if wants {
            (self.last, self.since) = (now, 0);
        }
        wants
    }
}

/// Whether a key packet goes with the next packet.
#[derive(Clone, Debug)]
pub(crate) struct KeyPacketSchedule {
    path: ReturnPath,
    taken: bool,
    last: Option<Time>,
    pause: Duration,
    since: u32,
}

impl KeyPacketSchedule {
    pub(crate) const fn new(path: ReturnPath) -> KeyPacketSchedule {
        KeyPacketSchedule { path, taken: false, last: None, pause: KEY_PACKET_FIRST, since: 0 }
    }

    /// The receiver has the secret.
    pub(crate) const fn taken(&mut self) {
        self.taken = true;
    }

    /// The receiver asks for it; its own budget limits how often.
    pub(crate) const fn wanted(&mut self) {
        (self.taken, self.last, self.pause) = (false, None, KEY_PACKET_FIRST);
    }

    /// Whether it goes with the packet that is sent at `now`; to be asked once for each packet.
    pub(crate) fn wants(&mut self, now: Time) -> bool {
        self.since = self.since.saturating_add(1);
        let passed = |pause| self.last.is_none_or(|last| now.since(last) >= pause);
        let wants = match self.path {
            ReturnPath::Answers => !self.taken && passed(self.pause),
            ReturnPath::OneWay => self.since > KEY_PACKET_PACKETS || passed(KEY_PACKET_PAUSE),
        };
        if wants {
            if self.last.is_some() {
                self.pause = (self.pause * 2).min(KEY_PACKET_LONGEST);
            }
            (self.last, self.since) = (Some(now), 0);
        }
        wants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(5_000_000 + millis)
    }

    #[test]
    fn the_header_repeats_until_acknowledged_then_every_second_or_64_packets() {
        let mut header = HeaderSchedule::new(ReturnPath::Answers);
        assert!((0..200).all(|_| header.wants(at(0))));
        header.acknowledged();
        let sent: Vec<bool> = (0..128).map(|_| header.wants(at(0))).collect();
        let with: Vec<usize> = (0..128).filter(|packet| sent[*packet]).collect();
        assert_eq!(with, [63, 127]);
        assert!(!header.wants(at(999)));
        assert!(header.wants(at(1000)));
        assert!(!header.wants(at(1999)));
        assert!(header.wants(at(2000)));
    }

    #[test]
    fn one_way_every_packet_has_it() {
        let mut header = HeaderSchedule::new(ReturnPath::OneWay);
        header.acknowledged();
        assert!((0..200).all(|_| header.wants(at(0))));
    }

    #[test]
    fn key_packets_repeat_until_taken_and_when_asked_for() {
        let mut key = KeyPacketSchedule::new(ReturnPath::Answers);
        let sent = |key: &mut KeyPacketSchedule, from: u64, to: u64| {
            (from..to).filter(|millis| key.wants(at(*millis))).collect::<Vec<u64>>()
        };
        assert_eq!(sent(&mut key, 0, 4000), [0, 200, 600, 1400, 2400, 3400]);
        key.taken();
        assert_eq!(sent(&mut key, 4000, 9000), []);
        key.wanted();
        assert_eq!(sent(&mut key, 9000, 9500), [9000, 9200]);
    }

    #[test]
    fn one_way_key_packets_come_by_time_and_by_number() {
        let mut key = KeyPacketSchedule::new(ReturnPath::OneWay);
        key.taken();
        assert!(key.wants(at(0)));
        let packets: Vec<usize> = (1..2500).filter(|_| key.wants(at(1))).collect();
        assert_eq!(packets, [1001, 2002]);
        assert!(!key.wants(at(10_000)));
        assert!(key.wants(at(10_001)));
    }
}
