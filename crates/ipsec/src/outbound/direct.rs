//! Whether ESP goes to a peer directly behind IP (protocol 50), without UDP, which saves 8 bytes a datagram.
//!
//! ```text
//!                begin           answered                  alarm, or a probe that got no answer
//!   +-----+   +--------+ -----------------> +--------+ ----------------------------------------> +---------+
//!   | Off |-->| Trying |                    | In use | <---------------------------------------- | Doubted |
//!   +-----+   +--------+                    +--------+                 answered                  +---------+
//!               ^    | three probes lost                                     three probes lost      |
//!               |    '------------------------> +--------+ <------------------------------------------'
//!               '------------------------------ | Failed |
//!                 pause over, new keys, moved   +--------+
//! ```
//!
//! Data goes directly only while that is in use; from the first doubt on it goes in UDP, so that no packet waits for the verdict.
//! Each direction decides for itself, and a peer answers in UDP, so that an answer says nothing but that the probe arrived.

use core::time::Duration;

use strait_clock::Time;

use super::repeats::Repeats;
use crate::{CarrierState, Tally};
use strait_wire::ip::Packet;

/// How long an answer may take: the most where nothing is known (as for probes of the path MTU), and the least.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1100);
const PROBE_TIMEOUT_LEAST: Duration = Duration::from_millis(300);
/// Round trips that an answer may take, where one is known: a queue may have grown since.
const ROUND_TRIPS: u32 = 3;
/// Lost probes that say that nothing passes (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// Probes whose answers still count, however late.
const ANSWERABLE: usize = 8;
/// After so many datagrams a probe is due again, whose two datagrams of some 60 bytes are a fourth of what these saved.
const PROVE_AFTER: u64 = 64;
/// But no more often than this,
const PROVE_APART: Duration = Duration::from_secs(1);
/// and after so long at the latest: as long as a node that hears nothing waits for a sign of life.
const PROVE_WITHIN: Duration = Duration::from_secs(10);
/// Datagrams without anything from the peer that are an alarm, as one may be the last of an exchange; once they had this long, which
/// doubles with each false alarm.
const SILENT: u64 = 2;
const PATIENCE_LEAST: Duration = Duration::from_secs(1);
/// Datagrams in UDP without one that came directly, from a peer that sent so, that are an alarm: it has fallen back, and what drops one
/// direction mostly drops both. Fewer may be answers to probes and signs of life, which always come in UDP.
const IN_UDP: u64 = 3;
/// How long it is not tried again: at first, and at most as long as keys serve, as new keys try it anyway.
const PAUSE_FIRST: Duration = Duration::from_secs(60);
const PAUSE_MOST: Duration = Duration::from_secs(3600);
/// What numbers of these probes have and numbers of probes of the path MTU have not.
pub(crate) const ID_BIT: u16 = 0x8000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Off,
    Trying,
    InUse,
    Doubted,
    Failed,
}

/// The probe under way.
#[derive(Clone, Copy, Debug)]
struct PendingProbe {
    tries: u8,
    /// Datagrams that had come from the peer when it was last sent.
    heard: u64,
}

/// What went directly since it last was certain that it arrives.
#[derive(Clone, Copy, Debug)]
struct Unproven {
    since: Time,
    datagrams: u64,
}

/// What went directly without a pause since the peer was heard last.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    since: Time,
    last: Time,
    datagrams: u64,
    /// Datagrams that had come from the peer by then.
    heard: u64,
}

/// The last datagram that came directly from the peer.
#[derive(Clone, Copy, Debug)]
struct LastDirect {
    /// How many had come directly,
    direct: u64,
    /// and by either carrier.
    heard: u64,
    /// Whether it was an alarm that no more came.
    alarmed: bool,
}

/// A probe to send directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectProbe {
    pub(crate) id: u16,
    /// Whether one goes along in UDP: where that gets an answer, the peer is there.
    pub(crate) again: bool,
}

/// What is known of one direction.
#[derive(Clone, Debug)]
pub(crate) struct DirectPath {
    phase: Phase,
    probe: Option<PendingProbe>,
    /// Number and time of the probes whose answers count, by number.
    asked: [Option<(u16, Time)>; ANSWERABLE],
    last_id: u16,
    /// When the answer to the probe is late; while it is not tried, when it is tried again.
    next_at: Time,
    /// How long the last answer took.
    round: Option<Duration>,
    unproven: Option<Unproven>,
    unheard: Option<Unheard>,
    last_direct: LastDirect,
    /// Whether what is doubted was silence.
    silent: bool,
    patience: Duration,
    pause: Duration,
    /// Whether the system refused it.
    refused: bool,
    /// Streams inside that send the same again; there once it was agreed.
    repeats: Option<Box<Repeats>>,
}

impl DirectPath {
    pub(crate) const fn new() -> DirectPath {
        DirectPath {
            phase: Phase::Off,
            probe: None,
            asked: [None; ANSWERABLE],
            last_id: 0,
            next_at: Time::ZERO,
            round: None,
            unproven: None,
            unheard: None,
            last_direct: LastDirect { direct: 0, heard: 0, alarmed: true },
            silent: false,
            patience: PATIENCE_LEAST,
            pause: PAUSE_FIRST,
            refused: false,
            repeats: None,
        }
    }

    /// There are new keys, with which the peer takes it or not. What is in use goes on; what failed is tried again.
    pub(crate) fn begin(&mut self, agreed: bool) {
        match (agreed, self.phase) {
            (false, _) => *self = DirectPath { last_id: self.last_id, ..DirectPath::new() },
            (true, Phase::Off | Phase::Failed) => self.restart(),
            (true, Phase::Trying | Phase::InUse | Phase::Doubted) => {}
        }
    }

    /// The path is another: it is tried there.
    pub(crate) fn moved(&mut self) {
        if self.phase != Phase::Off {
            self.restart();
        }
    }

    fn restart(&mut self) {
        let repeats = self.repeats.take().or_else(|| Some(Box::new(Repeats::new())));
        *self = DirectPath { phase: Phase::Trying, last_id: self.last_id, repeats, ..DirectPath::new() };
    }

    /// Whether data goes directly.
    pub(crate) fn is_in_use(&self) -> bool {
        self.phase == Phase::InUse
    }

    /// What can be shown.
    pub(crate) const fn state(&self) -> CarrierState {
        match (self.phase, self.refused) {
            (Phase::Off, _) => CarrierState::NotAgreed,
            (Phase::Trying, _) => CarrierState::Trying,
            (Phase::InUse, _) => CarrierState::InUse,
            (Phase::Doubted, _) => CarrierState::Doubted,
            (Phase::Failed, false) => CarrierState::NoAnswer,
            (Phase::Failed, true) => CarrierState::Refused,
        }
    }

    /// Looks, before anything is sent, whether it can still be relied upon.
    pub(crate) fn check(&mut self, now: Time, heard: &Tally, direct: &Tally) {
        if self.phase != Phase::InUse {
            return;
        }
        if self.has_fallen_back(heard.get(), direct.get()) {
            return self.doubt(false);
        }
        let late = self.probe.is_some() && self.next_at <= now;
        let silent = self.unheard.is_some_and(|unheard| {
            unheard.datagrams >= SILENT
                && unheard.last.since(unheard.since) >= self.patience
                && unheard.heard == heard.get()
        });
        if late || silent {
            self.doubt(silent && !late);
        }
    }

    /// Whether the peer, which has sent directly, does so no longer; said once.
    fn has_fallen_back(&mut self, heard: u64, direct: u64) -> bool {
        let last = &mut self.last_direct;
        if last.direct != direct {
            *last = LastDirect { direct, heard, alarmed: false };
        }
        let alarm = !last.alarmed && heard.saturating_sub(last.heard) >= IN_UDP;
        last.alarmed |= alarm;
        alarm
    }

    /// A packet is about to leave. TCP that sends the same data for the third time is an alarm.
    pub(crate) fn watch(&mut self, packet: &Packet<'_>) {
        let repeats = self.repeats.as_mut().filter(|_| self.phase == Phase::InUse);
        if repeats.is_some_and(|repeats| repeats.note(packet)) {
            self.doubt(false);
        }
    }

    fn doubt(&mut self, silent: bool) {
        self.phase = Phase::Doubted;
        self.silent = silent;
        if self.probe.is_none() {
            self.next_at = Time::ZERO;
        }
    }

    /// Asked under traffic: a probe to send at `now`, if one is due. While nothing comes from the peer at all, which `heard`
    /// counts, it is not certain that it is this.
    pub(crate) fn poll(&mut self, now: Time, heard: &Tally) -> Option<DirectProbe> {
        match self.phase {
            Phase::Off => return None,
            Phase::InUse if self.probe.is_some() || !self.is_due(now) => return None,
            Phase::Trying | Phase::Doubted | Phase::Failed if now < self.next_at => return None,
            Phase::Failed => (self.phase, self.probe, self.refused) = (Phase::Trying, None, false),
            Phase::InUse | Phase::Trying | Phase::Doubted => {}
        }
        let heard = heard.get();
        let tries = match self.probe {
            None => 1,
            Some(probe) if probe.heard == heard => probe.tries,
            Some(probe) if probe.tries >= MAX_PROBES => {
                self.fail(now);
                return None;
            }
            Some(probe) => probe.tries + 1,
        };
        let again = self.probe.is_some();
        self.probe = Some(PendingProbe { tries, heard });
        Some(DirectProbe { id: self.ask(now), again })
    }

    fn is_due(&self, now: Time) -> bool {
        self.unproven.is_some_and(|unproven| {
            let age = now.since(unproven.since);
            age >= PROVE_WITHIN || unproven.datagrams >= PROVE_AFTER && age >= PROVE_APART
        })
    }

    fn ask(&mut self, now: Time) -> u16 {
        self.last_id = self.last_id.wrapping_add(1) | ID_BIT;
        let timeout = self.round.map_or(PROBE_TIMEOUT, |round| round * ROUND_TRIPS);
        self.next_at = now + timeout.clamp(PROBE_TIMEOUT_LEAST, PROBE_TIMEOUT);
        if let Some(place) = self.asked.get_mut(place_of(self.last_id)) {
            *place = Some((self.last_id, now));
        }
        self.last_id
    }

    fn fail(&mut self, now: Time) {
        let (pause, refused, repeats) = (self.pause, self.refused, self.repeats.take());
        *self = DirectPath {
            phase: Phase::Failed,
            last_id: self.last_id,
            next_at: now + pause,
            pause: (pause * 2).min(PAUSE_MOST),
            refused,
            repeats,
            ..DirectPath::new()
        };
    }

    /// The peer answered the probe `id`, if that was sent: data goes directly from now on.
    pub(crate) fn answered(&mut self, id: u16, now: Time) {
        let asked = self.asked.get_mut(place_of(id)).and_then(|asked| asked.take_if(|it| it.0 == id));
        let Some((_, at)) = asked else { return };
        self.round = Some(now.since(at));
        let before = core::mem::replace(&mut self.phase, Phase::InUse);
        self.patience = match (before, self.silent) {
            (Phase::Doubted, true) => (self.patience * 2).min(PROVE_WITHIN),
            _ => (self.patience / 2).max(PATIENCE_LEAST),
        };
        if before == Phase::InUse {
            self.pause = PAUSE_FIRST;
        }
        (self.probe, self.unproven, self.unheard) = (None, None, None);
        (self.silent, self.refused) = (false, false);
    }

    /// Datagrams left directly.
    pub(crate) fn note_sent(&mut self, datagrams: usize, heard: &Tally, now: Time) {
        let (datagrams, heard) = (datagrams as u64, heard.get());
        let fresh = || Unproven { since: now, datagrams: 0 };
        self.unproven.get_or_insert_with(fresh).datagrams += datagrams;
        let pause = 2 * self.patience;
        let goes_on = |it: &Unheard| it.heard == heard && now.since(it.last) <= pause;
        let fresh = Unheard { since: now, last: now, datagrams: 0, heard };
        let before = self.unheard.filter(goes_on).unwrap_or(fresh);
        self.unheard = Some(Unheard { last: now, datagrams: before.datagrams + datagrams, ..before });
    }

    /// The system does not send it.
    pub(crate) fn refused(&mut self) {
        self.refused = true;
        if self.phase == Phase::InUse {
            self.doubt(false);
        }
    }
}

/// Where the probe with this number is remembered.
fn place_of(id: u16) -> usize {
    usize::from(id) % ANSWERABLE
}

#[cfg(test)]
mod tests;
