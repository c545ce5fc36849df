//! How large a datagram the path to a peer takes, found by padded probes under traffic
//! (RFC 8899), never below what carries an inner packet of 1,280 bytes in one piece or two.

use core::time::Duration;

use strait_clock::Time;

/// What every path is taken to carry, outer IP header included: the least an IPv6 link may have
/// (RFC 8200 section 5).
pub(crate) const BASE: u16 = 1280;
/// How long an answer may take before the probe counts as lost (RFC 8899 section 5.1.1 asks for
/// more than 1 s).
const PROBE_TIMEOUT: Duration = Duration::from_millis(1100);
/// Lost probes of one size that say it does not fit (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// How often a size is confirmed while datagrams above [`BASE`] are sent, so that a black hole does not
/// last: one probe in half a minute, 0.4 kbit/s.
const CONFIRM_EVERY: Duration = Duration::from_secs(30);
/// How often a size below the ceiling is tried anew (RFC 8899 section 5.1.1, `PMTU_RAISE_TIMER`).
const RAISE_EVERY: Duration = Duration::from_secs(600);
/// The search ends when no more than this is to be gained a datagram.
const ENOUGH: u16 = 8;

/// One probe to send: its number and the size of its outer IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) id: u16,
    pub(crate) size: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The file says how large.
    Fixed,
    /// Looking between `low`, which fits, and `high`, which may.
    Searching,
    /// Found; asked again now and then.
    Settled { raise_at: Time },
    /// Found, but nothing comes back from the peer: `high` is what was found and has to prove itself.
    Doubted { raise_at: Time },
}

/// The search for one path.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    phase: Phase,
    ceiling: u16,
    low: u16,
    high: u16,
    /// Whether the ceiling itself is still to be tried, as most paths take it.
    try_ceiling: bool,
    /// The probe under way and how often it was sent.
    probe: Option<(Wanted, u8)>,
    /// Whether anything was sent since the last answer that a smaller path would lose.
    large_sent: bool,
    next_at: Time,
    last_id: u16,
}

impl PathMtu {
    /// A path of known size.
    pub(crate) const fn fixed(outer: u16) -> PathMtu {
        PathMtu {
            phase: Phase::Fixed,
            ceiling: outer,
            low: outer,
            high: outer,
            try_ceiling: false,
            probe: None,
            large_sent: false,
            next_at: Time::MAX,
            last_id: 0,
        }
    }

    /// A path of unknown size over an interface that takes `ceiling`.
    pub(crate) fn search(ceiling: u16) -> PathMtu {
        let ceiling = ceiling.max(BASE);
        PathMtu {
            phase: Phase::Searching,
            ceiling,
            low: BASE,
            high: ceiling,
            try_ceiling: true,
            probe: None,
            large_sent: false,
            next_at: Time::ZERO,
            last_id: 0,
        }
    }

    /// Largest outer IP packet that is known to pass.
    pub(crate) const fn outer(&self) -> u16 {
        self.low
    }

    /// Whether a larger size may still turn out to fit soon.
    pub(crate) const fn is_searching(&self) -> bool {
        matches!(self.phase, Phase::Searching | Phase::Doubted { .. })
    }

    /// Nothing comes back although traffic goes out, which may be because large datagrams no longer pass: they are
    /// not relied upon until one is answered again.
    pub(crate) fn doubt(&mut self, now: Time) {
        if let Phase::Settled { raise_at } = self.phase
            && self.low > BASE
            && self.large_sent
        {
            self.phase = Phase::Doubted { raise_at };
            self.high = self.low;
            self.low = BASE;
            self.probe = None;
            self.next_at = now;
        }
    }

    /// The search starts over, as on a new path.
    pub(crate) fn restart(&mut self) {
        if self.phase != Phase::Fixed {
            *self = PathMtu { last_id: self.last_id, ..PathMtu::search(self.ceiling) };
        }
    }

    /// A datagram of `size`, outer IP header included, was sent.
    pub(crate) const fn note_sent(&mut self, size: usize) {
        self.large_sent |= size > BASE as usize;
    }

    /// Asked under traffic: a probe to send at `now`, if one is due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Wanted> {
        if now < self.next_at {
            return None;
        }
        let tries = match self.probe {
            Some((wanted, MAX_PROBES)) => {
                self.lost(wanted.size, now);
                0
            }
            Some((_, tries)) => tries,
            None => 0,
        };
        let size = self.next_size(now)?;
        self.last_id = self.last_id.wrapping_add(1);
        let wanted = Wanted { id: self.last_id, size };
        self.probe = Some((wanted, tries + 1));
        self.next_at = now + PROBE_TIMEOUT;
        Some(wanted)
    }

    /// The peer answered a probe of `size`; true when the path turned out larger than known.
    pub(crate) fn answered(&mut self, size: u16, now: Time) -> bool {
        if self.phase == Phase::Fixed || size > self.ceiling || size < BASE {
            return false;
        }
        let larger = size > self.low;
        self.large_sent = false;
        self.low = self.low.max(size);
        self.high = self.high.max(self.low);
        if self.probe.is_some_and(|(wanted, _)| wanted.size <= size) {
            self.probe = None;
            self.next_at = now;
        }
        self.settle_if_found(now);
        larger
    }

    /// The system refused to send `size`: nothing that large leaves this machine.
    pub(crate) fn refused(&mut self, size: u16, now: Time) {
        if self.phase != Phase::Fixed && size > BASE {
            self.ceiling = self.ceiling.min(size - 1).max(BASE);
            self.lost(size, now);
        }
    }

    /// A size turned out not to pass.
    fn lost(&mut self, size: u16, now: Time) {
        self.try_ceiling = false;
        self.probe = None;
        self.next_at = now;
        if matches!(self.phase, Phase::Doubted { .. }) {
            self.phase = Phase::Searching;
        }
        if size <= self.low {
            // What used to pass no longer does: a black hole (RFC 8899 section 4.3).
            self.restart();
            self.try_ceiling = false;
            self.high = size.saturating_sub(1).clamp(BASE, self.ceiling);
        } else {
            self.high = self.high.min(size - 1).max(self.low);
        }
        self.settle_if_found(now);
    }

    fn settle_if_found(&mut self, now: Time) {
        if self.phase == Phase::Searching && self.high - self.low < ENOUGH {
            self.phase = Phase::Settled { raise_at: now + RAISE_EVERY };
            self.next_at = now + CONFIRM_EVERY;
        } else if let Phase::Doubted { raise_at } = self.phase
            && self.low == self.high
        {
            self.phase = Phase::Settled { raise_at };
            self.next_at = (now + CONFIRM_EVERY).min(raise_at.max(now));
        } else if matches!(self.phase, Phase::Settled { .. }) {
            self.next_at = now + CONFIRM_EVERY;
        }
    }

    /// The size to try: the largest first, as most paths take it, then by halves.
    fn next_size(&mut self, now: Time) -> Option<u16> {
        match self.phase {
            Phase::Fixed => None,
            Phase::Doubted { .. } => Some(self.high),
            Phase::Searching if self.try_ceiling => Some(self.ceiling),
            Phase::Searching => Some(self.low + (self.high - self.low).div_ceil(2)),
            Phase::Settled { raise_at } if raise_at <= now && self.low < self.ceiling => {
                self.phase = Phase::Searching;
                self.high = self.ceiling;
                self.try_ceiling = true;
                Some(self.ceiling)
            }
            Phase::Settled { .. } if self.low > BASE && self.large_sent => Some(self.low),
            Phase::Settled { .. } => {
                self.next_at = now + CONFIRM_EVERY;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search over a path of `real` bytes and says what it found and how many probes it took.
    fn found(path: &mut PathMtu, real: u16, from: Time, seconds: u64) -> (u16, usize) {
        let mut probes = 0;
        for tick in 0..seconds * 10 {
            let now = from + Duration::from_millis(tick * 100);
            path.note_sent(1500);
            if let Some(wanted) = path.poll(now) {
                probes += 1;
                if wanted.size <= real {
                    path.answered(wanted.size, now);
                }
            }
        }
        (path.outer(), probes)
    }

    #[test]
    fn finds_every_size_within_its_tolerance() {
        for real in (1280..=1500).step_by(7) {
            let mut path = PathMtu::search(1500);
            let (outer, _) = found(&mut path, real, Time::ZERO, 60);
            assert!(outer <= real && real - outer < ENOUGH, "{real} {outer}");
            assert!(!path.is_searching());
        }
    }

    #[test]
    fn an_ordinary_path_takes_one_probe() {
        let mut path = PathMtu::search(1500);
        assert_eq!(found(&mut path, 1500, Time::ZERO, 25), (1500, 1));
    }

    #[test]
    fn small_datagrams_need_no_confirmation() {
        let mut path = PathMtu::search(1500);
        found(&mut path, 1500, Time::ZERO, 10);
        path.answered(1500, Time::from_millis(10_000));
        let probes = (10..10_000).filter(|second| path.poll(Time::from_millis(second * 1000)).is_some());
        assert_eq!(probes.count(), 0);
    }

    #[test]
    fn a_path_that_shrinks_is_noticed_and_one_that_grows_is_used() {
        let mut path = PathMtu::search(1500);
        found(&mut path, 1500, Time::ZERO, 10);
        let (outer, _) = found(&mut path, 1400, Time::from_millis(10_000), 130);
        assert!((1393..=1400).contains(&outer), "{outer}");
        let (outer, _) = found(&mut path, 1500, Time::from_millis(200_000), 800);
        assert_eq!(outer, 1500);
    }

    #[test]
    fn a_doubted_size_is_not_relied_upon_until_it_is_answered() {
        let mut path = PathMtu::search(1500);
        found(&mut path, 1400, Time::ZERO, 60);
        let before = path.outer();
        let at = Time::from_millis(60_000);
        path.doubt(at);
        assert_eq!((path.outer(), path.is_searching()), (BASE, true));
        assert_eq!(found(&mut path, 1400, at, 5), (before, 1), "one probe proves it");
        assert!(!path.is_searching());

        path.doubt(at + Duration::from_secs(5));
        let (outer, _) = found(&mut path, 1320, at + Duration::from_secs(5), 60);
        assert!((1313..=1320).contains(&outer), "{outer}");
        let mut fixed = PathMtu::fixed(1400);
        fixed.doubt(Time::ZERO);
        assert_eq!(fixed.outer(), 1400);
    }

    #[test]
    fn doubts_do_not_keep_a_path_from_growing() {
        let mut path = PathMtu::search(1500);
        found(&mut path, 1400, Time::ZERO, 60);
        for second in (60..700).step_by(10) {
            let at = Time::from_millis(second * 1000);
            path.doubt(at);
            found(&mut path, 1500, at, 10);
        }
        assert_eq!(path.outer(), 1500);
    }

    #[test]
    fn what_the_system_refuses_is_not_tried_again() {
        let mut path = PathMtu::search(1500);
        assert_eq!(path.poll(Time::ZERO).map(|wanted| wanted.size), Some(1500));
        path.refused(1500, Time::ZERO);
        let (outer, probes) = found(&mut path, 1420, Time::ZERO, 60);
        assert!((1413..=1420).contains(&outer) && probes < 20, "{outer} after {probes} probes");
    }

    #[test]
    fn nonsense_answers_change_nothing() {
        let mut path = PathMtu::search(1500);
        for size in [0, 1, 1279, 1501, u16::MAX] {
            assert!(!path.answered(size, Time::ZERO));
        }
        assert_eq!(path.outer(), BASE);
        let mut fixed = PathMtu::fixed(1400);
        assert!(!fixed.answered(1500, Time::ZERO) && fixed.poll(Time::MAX).is_none());
    }
}
