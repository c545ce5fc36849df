//! How large a datagram the path to a peer takes, found by padded probes under traffic
//! (RFC 8899), never below what every path of its IP version carries.
//!
//! A path that becomes narrow says nothing of it (a black hole, RFC 8899 section 4.3). What makes it doubtful,
//! soonest first: TCP inside that sends the same again and again, silence, a confirmation without an answer. From
//! the first doubt on, large packets travel in pieces that pass every path, so that no packet waits for the search.
//! [`BASE`] is relied upon before any answer, and tried first after a doubt, as nearly all paths carry it.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use strait_clock::Time;

use super::direct;
use super::repeats::Repeats;
use crate::Tally;
use crate::offload::SuperPacket;

/// The size that a path is taken to carry until that is in doubt, outer IP header included: the least an IPv6 link may have
/// (RFC 8200 section 5).
pub(crate) const BASE: u16 = 1280;
/// The size that every path over IPv4 is taken to carry: links may have less (RFC 791 section 3.1), but none that hosts meet does
/// (RFC 1191 section 7.1: X.25 and ARCNET have more than 500), and the Internet's protocols are made for it (RFC 1122 section
/// 3.3.2).
const BASE_V4: u16 = 576;
/// How long an answer may take before the probe counts as lost (RFC 8899 section 5.1.1 asks for
/// more than 1 s).
const PROBE_TIMEOUT: Duration = Duration::from_millis(1100);
/// Lost probes of one size that say it does not fit (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// The same for a size that used to pass. No packet waits for the verdict, and where one probe in three gets no answer (a fifth is
/// lost each way), it is wrong once in 10,000 doubts.
const MAX_DOUBTS: u8 = 3 * MAX_PROBES;
/// The time between two confirmations of a size while datagrams above the floor are sent, so that a black hole does not
/// last: one probe in half a minute, 0.4 kbit/s.
const CONFIRM_EVERY: Duration = Duration::from_secs(30);
/// How often a size below the ceiling is tried anew (RFC 8899 section 5.1.1, `PMTU_RAISE_TIMER`).
const RAISE_EVERY: Duration = Duration::from_secs(600);
/// A probe that asks whether the peer receives anything at all.
pub(crate) const ANY_SIZE: u16 = 0;
/// Probes whose answers still count, however late: more than are sent for one size.
const ANSWERABLE: usize = 8;
/// The search ends when no more than this is to be gained a datagram.
const ENOUGH: u16 = 8;

/// Sizes that links have, the largest first (RFC 1191 section 7.1, with those of today's tunnels): what is left to try
/// when a size is refused without word of the size that fits.
const PLATEAUS: [u16; 9] = [9000, 4352, 2002, 1500, 1492, 1420, 1280, 1006, 576];

/// One probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) id: u16,
    /// Of its outer IP packet; [`ANY_SIZE`] for as small as can be.
    pub(crate) size: u16,
    /// Whether one of this size got no answer, so that the smallest goes along: if that one gets an answer, it was
    /// the size.
    pub(crate) again: bool,
}

/// The probe under way.
#[derive(Clone, Copy, Debug)]
struct PendingProbe {
    size: u16,
    /// How often it was sent.
    tries: u8,
    /// Datagrams that had come from the peer when it was last sent.
    heard: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The configuration says how large it is.
    Fixed,
    /// Taken to be so large; that yields to what the interface takes.
    Assumed,
    /// Looking between `low`, which fits, and `high`, which may.
    Searching,
    /// Found; asked again now and then.
    Settled { raise_at: Time },
    /// Found, but it seems to pass no longer: `high` is what was found and has to prove itself.
    Doubted { raise_at: Time },
}

/// The search for one path.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    phase: Phase,
    ceiling: u16,
    /// The size that every path of this IP version carries.
    floor: u16,
    /// The largest size that an answer proved, or the floor.
    low: u16,
    high: u16,
    /// True if [`BASE`] is relied upon although no answer has proved it.
    trusts_base: bool,
    /// True if a probe of [`BASE`] is due beside the others.
    base_due: bool,
    /// Whether the ceiling itself is still to be tried, as most paths take it.
    try_ceiling: bool,
    probe: Option<PendingProbe>,
    /// Id and size of the probes whose answers count, by id: none that was sent on another path, or before a doubt.
    asked: [Option<(u16, u16)>; ANSWERABLE],
    /// The largest datagram since the last answer: a smaller path would have lost it.
    largest_sent: u16,
    next_at: Time,
    last_id: u16,
    repeats: Repeats,
}

impl PathMtu {
    /// A path of known size.
    pub(crate) const fn fixed(outer: u16) -> PathMtu {
        PathMtu {
            phase: Phase::Fixed,
            ceiling: outer,
            floor: outer,
            low: outer,
            high: outer,
            trusts_base: false,
            base_due: false,
            try_ceiling: false,
            probe: None,
            asked: [None; ANSWERABLE],
            largest_sent: 0,
            next_at: Time::MAX,
            last_id: 0,
            repeats: Repeats::new(),
        }
    }

    /// A path to a peer that answers no probes, over an interface that is taken to carry `outer` until it refuses.
    pub(crate) const fn assumed(outer: u16) -> PathMtu {
        PathMtu { phase: Phase::Assumed, ..PathMtu::fixed(outer) }
    }

    /// A path of unknown size to `endpoint`, over an interface that takes `ceiling`.
    pub(crate) fn search(ceiling: u16, endpoint: Option<SocketAddr>) -> PathMtu {
        let floor = floor_of(endpoint);
        let ceiling = ceiling.max(floor);
        PathMtu {
            phase: Phase::Searching,
            ceiling,
            floor,
            low: floor,
            high: ceiling,
            trusts_base: true,
            base_due: false,
            try_ceiling: true,
            probe: None,
            asked: [None; ANSWERABLE],
            largest_sent: 0,
            next_at: Time::ZERO,
            last_id: 0,
            repeats: Repeats::new(),
        }
    }

    /// Largest outer IP packet that is relied upon to pass.
    pub(crate) fn outer(&self) -> u16 {
        if self.trusts_base { self.low.max(BASE.min(self.ceiling)) } else { self.low }
    }

    /// Whether no search finds the size out.
    const fn is_fixed(&self) -> bool {
        matches!(self.phase, Phase::Fixed | Phase::Assumed)
    }

    /// Whether a larger size may still turn out to fit soon.
    pub(crate) const fn is_searching(&self) -> bool {
        matches!(self.phase, Phase::Searching | Phase::Doubted { .. })
    }

    /// A packet is about to leave in a datagram that has `room` for it. If it is TCP sending the same for the third
    /// time although it is large, it is not relied upon that large datagrams pass.
    pub(crate) fn watch(&mut self, packet: &SuperPacket<'_>, room: usize, now: Time) {
        let around = usize::from(self.outer()).saturating_sub(room);
        let relies = !self.is_fixed() && packet.len(0) + around > usize::from(self.floor);
        if relies && self.outer() > self.floor && self.repeats.note(packet.ip()) {
            match self.phase {
                // The probe of the size in doubt goes on, and its answer counts.
                Phase::Doubted { .. } => self.rely_on_floor(),
                _ => self.doubt(now),
            }
        }
    }

    /// Large datagrams may pass no longer: they are not relied upon until one that is sent from now on is answered.
    pub(crate) fn doubt(&mut self, now: Time) {
        self.asked = [None; ANSWERABLE];
        self.distrust(now);
    }

    /// The same, while a late answer would still be believed.
    fn distrust(&mut self, now: Time) {
        if self.outer() == self.floor || self.largest_sent <= self.floor {
            return;
        }
        match self.phase {
            Phase::Fixed | Phase::Assumed | Phase::Doubted { .. } => return,
            Phase::Searching => (self.probe, self.next_at) = (None, now),
            Phase::Settled { raise_at } => {
                self.phase = Phase::Doubted { raise_at };
                self.high = self.low;
                (self.probe, self.next_at) = (None, now);
            }
        }
        self.rely_on_floor();
    }

    fn rely_on_floor(&mut self) {
        self.low = self.floor;
        self.trusts_base = false;
        self.base_due = self.may_be_base();
    }

    /// Returns true if [`BASE`] may pass, which is not known.
    const fn may_be_base(&self) -> bool {
        self.low < BASE && BASE < self.high
    }

    /// The search starts over at `begin`, as on a new path to `endpoint`.
    pub(crate) fn restart(&mut self, endpoint: Option<SocketAddr>, begin: Time) {
        if !self.is_fixed() {
            let search = PathMtu::search(self.ceiling, endpoint);
            *self = PathMtu { last_id: self.last_id, next_at: begin, ..search };
        }
    }

    /// Returns true if the least that paths to `endpoint` carry is something else.
    pub(crate) fn is_of_another_version(&self, endpoint: SocketAddr) -> bool {
        !self.is_fixed() && self.floor != floor_of(Some(endpoint))
    }

    /// A datagram of `size`, outer IP header included, was sent.
    pub(crate) fn note_sent(&mut self, size: usize) {
        self.largest_sent = self.largest_sent.max(u16::try_from(size).unwrap_or(u16::MAX));
    }

    /// Asked under traffic, until it gives none: a probe to send at `now`, if one is due. `heard` counts what comes from the
    /// peer: while nothing does, no size is to blame.
    pub(crate) fn poll(&mut self, now: Time, heard: &Tally) -> Option<Wanted> {
        if core::mem::take(&mut self.base_due) && self.may_be_base() {
            return Some(self.number(BASE));
        }
        if now < self.next_at {
            return None;
        }
        let heard = heard.get();
        let tries = match self.probe {
            Some(probe) if probe.heard == heard => return Some(self.ask(ANY_SIZE, now)),
            Some(probe) if probe.tries == self.tries_max() => {
                self.lost(probe.size, now);
                0
            }
            Some(_) if matches!(self.phase, Phase::Settled { .. }) => {
                self.distrust(now);
                0
            }
            Some(probe) => {
                if self.trusts_base {
                    self.distrust(now);
                }
                probe.tries
            }
            None => 0,
        };
        self.base_due |= tries > 0 && matches!(self.phase, Phase::Doubted { .. }) && self.may_be_base();
        let size = self.next_size(now)?;
        self.probe = Some(PendingProbe { size, tries: tries + 1, heard });
        Some(Wanted { again: tries > 0, ..self.ask(size, now) })
    }

    fn ask(&mut self, size: u16, now: Time) -> Wanted {
        self.next_at = now + PROBE_TIMEOUT;
        self.number(size)
    }

    /// A probe with the next number.
    fn number(&mut self, size: u16) -> Wanted {
        self.last_id = self.last_id.wrapping_add(1) & !direct::ID_BIT;
        if let Some(place) = self.asked.get_mut(place_of(self.last_id)) {
            *place = Some((self.last_id, size));
        }
        Wanted { id: self.last_id, size, again: false }
    }

    const fn tries_max(&self) -> u8 {
        if matches!(self.phase, Phase::Doubted { .. }) { MAX_DOUBTS } else { MAX_PROBES }
    }

    /// The peer answered the probe `id` of `size`; true when the path turned out larger than known. An answer to what was
    /// not asked changes nothing.
    pub(crate) fn answered(&mut self, id: u16, size: u16, now: Time) -> bool {
        let asked = self
            .asked
            .get_mut(place_of(id))
            .is_some_and(|asked| asked.take_if(|it| *it == (id, size)).is_some());
        if !asked || self.is_fixed() || size > self.ceiling || size < self.floor {
            return false;
        }
        let larger = size > self.outer();
        self.largest_sent = 0;
        self.low = self.low.max(size);
        self.high = self.high.max(self.low);
        if self.probe.is_some_and(|probe| probe.size <= size) {
            self.probe = None;
            self.next_at = now;
        }
        self.settle_if_found(now);
        // While a size is in doubt, no smaller one is news.
        larger && !matches!(self.phase, Phase::Doubted { .. })
    }

    /// The system refused to send `size`: nothing that large leaves this machine.
    pub(crate) fn refused(&mut self, size: u16, now: Time) {
        if self.phase == Phase::Assumed {
            let smaller = PLATEAUS.into_iter().find(|plateau| *plateau < size);
            self.low = smaller.unwrap_or(self.low);
        } else if self.phase != Phase::Fixed && size > self.floor {
            self.ceiling = self.ceiling.min(size - 1).max(self.floor);
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
            self.asked = [None; ANSWERABLE];
            (self.phase, self.largest_sent) = (Phase::Searching, 0);
            self.high = size.saturating_sub(1).clamp(self.floor, self.ceiling);
            self.rely_on_floor();
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

    /// The size to try: the largest first, as most paths take it, then the least of IPv6, then by halves.
    fn next_size(&mut self, now: Time) -> Option<u16> {
        match self.phase {
            Phase::Fixed | Phase::Assumed => None,
            Phase::Doubted { .. } => Some(self.high),
            Phase::Searching if self.try_ceiling => Some(self.ceiling),
            Phase::Searching if self.may_be_base() => Some(BASE),
            Phase::Searching => Some(self.low + (self.high - self.low).div_ceil(2)),
            Phase::Settled { raise_at } if raise_at <= now && self.low < self.ceiling => {
                self.phase = Phase::Searching;
                self.high = self.ceiling;
                self.try_ceiling = true;
                Some(self.ceiling)
            }
            // QUIC's smallest datagrams find out by themselves.
            Phase::Settled { .. } if self.low > self.floor && self.largest_sent > BASE.min(self.low - 1) => {
                Some(self.low)
            }
            Phase::Settled { .. } => {
                self.next_at = now + CONFIRM_EVERY;
                None
            }
        }
    }
}

/// Returns the size that every path to `endpoint` is taken to carry.
pub(crate) fn floor_of(endpoint: Option<SocketAddr>) -> u16 {
    match endpoint.map(|it| it.ip().to_canonical()) {
        Some(IpAddr::V4(_)) => BASE_V4,
        Some(IpAddr::V6(_)) | None => BASE,
    }
}

/// Where the probe with this id is remembered.
fn place_of(id: u16) -> usize {
    usize::from(id) % ANSWERABLE
}

#[cfg(test)]
mod tests;
