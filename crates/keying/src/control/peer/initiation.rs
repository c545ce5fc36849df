//! The handshakes that this node begins with one peer: when one is wanted, under way, or waits after a failure. The
//! drawing is in [`peer`](super).

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::{Deadline, Random, Time};

use super::super::context::jitter;
use super::ATTEMPT;
use crate::channel::ChannelId;
use crate::{HandshakeFailure, Where};

/// The first pause after a failed attempt; it doubles with each (as the sixty-second cap, `WireGuard`'s
/// and IKE daemons' practice).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause where nothing waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause while packets or streams wait for the peer: 3 to 5 s with its jitter (as `WireGuard`'s REKEY_TIMEOUT). The peer
/// may be back any time, and within it an attempt that is not answered repeats its first flight after 1, 2 and 4 s.
const WAITED_PAUSE: Duration = Duration::from_secs(4);
/// How long the peer's handshake, which went first, has before another is begun here.
const YIELD_PAUSE: Duration = Duration::from_secs(3);

/// How far a handshake that this node begins is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitiationState {
    /// No new associations are wanted.
    Idle,
    /// New associations are wanted; an attempt begins when no pause is left.
    Wanted {
        /// Until when, unless that is said again.
        until: Time,
    },
    /// The peer's name is being looked up.
    Resolving {
        /// When the attempt began.
        since: Time,
        /// Until when another attempt follows if this one fails; none: that has passed.
        until: Option<Time>,
    },
    /// A handshake is under way.
    Connecting {
        /// On this channel.
        channel: ChannelId,
        /// When the attempt began.
        since: Time,
        /// Until when another attempt follows if this one fails; none: that has passed.
        until: Option<Time>,
    },
}

/// What an attempt begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextAttempt {
    /// Look up this name.
    LookUp(String),
    /// Begin a handshake there.
    Connect(SocketAddr),
}

/// The handshakes that this node begins with one peer.
#[derive(Debug)]
pub(crate) struct Initiation {
    state: InitiationState,
    /// Failed attempts in a row.
    failures: u32,
    /// Attempts since the places of the peer had their turns in order.
    turn: u32,
    /// The last of them: why it failed, and when.
    last_failure: Option<(HandshakeFailure, Time)>,
    pause: Pause,
    /// The end of the time in which packets or streams count as waiting, unless that is said again.
    awaited_until: Time,
    /// Ask for the address of the peer's name before the next attempt.
    look_up: bool,
}

/// The pause before the next attempt.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// Its end where packets or streams wait.
    waited: Time,
    /// Its end where nothing does.
    idle: Time,
}

impl Pause {
    const fn until(at: Time) -> Pause {
        Pause { waited: at, idle: at }
    }
}

use InitiationState::{Connecting, Idle, Resolving, Wanted};

impl Initiation {
    pub(crate) const fn new(now: Time) -> Initiation {
        Initiation {
            state: Idle,
            failures: 0,
            turn: 0,
            last_failure: None,
            pause: Pause::until(now),
            awaited_until: now,
            look_up: false,
        }
    }

    /// How far it is.
    pub(crate) const fn state(&self) -> InitiationState {
        self.state
    }

    /// Returns true if the next attempt is for the second of two places.
    pub(crate) const fn is_second_turn(&self) -> bool {
        self.turn % 2 == 1
    }

    /// Failed attempts in a row.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the reason and the time of the last failure of these.
    pub(crate) const fn last_failure(&self) -> Option<&(HandshakeFailure, Time)> {
        self.last_failure.as_ref()
    }

    /// Returns the time until which an attempt that is wanted waits, because of a failure or of the peer's own handshake, `answered`.
    pub(crate) fn waits_until(&self, answered: Time) -> Option<Time> {
        matches!(self.state, Wanted { .. }).then(|| self.not_before().max(answered))
    }

    /// Returns the time before which no attempt begins: an earlier one if something waited at that.
    fn not_before(&self) -> Time {
        if self.pause.waited < self.awaited_until { self.pause.waited } else { self.pause.idle }
    }

    /// Whether an attempt is under way.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.began().is_some()
    }

    /// Returns true if the address of the peer's name is waited for.
    pub(crate) const fn is_resolving(&self) -> bool {
        matches!(self.state, Resolving { .. })
    }

    /// The channel of the handshake that is under way, if it has come so far.
    pub(crate) const fn channel(&self) -> Option<ChannelId> {
        if let Connecting { channel, .. } = self.state { Some(channel) } else { None }
    }

    /// New associations are wanted until then.
    pub(crate) fn want(&mut self, until: Time) {
        self.set_until(self.until().max(Some(until)));
    }

    /// New associations are wanted until then, as packets or streams wait for them: the pauses are short.
    pub(crate) fn await_until(&mut self, until: Time) {
        self.awaited_until = self.awaited_until.max(until);
        self.want(until);
    }

    /// The address of the peer's name is asked for before the next attempt.
    pub(crate) const fn distrust_address(&mut self) {
        self.look_up = true;
    }

    /// The attempt that is due at `now`: one is wanted, none is under way, the pause is over, and so is what the peer's
    /// own handshake has, `answered`. Looking up begins with this; a handshake with [`Initiation::connecting`].
    pub(crate) fn next(
        &mut self,
        place: &Where,
        endpoint: Option<SocketAddr>,
        answered: Time,
        now: Time,
    ) -> Option<NextAttempt> {
        self.lapse(now);
        let Wanted { until } = self.state else { return None };
        if self.not_before().max(answered) > now {
            return None;
        }
        match (place, endpoint) {
            (Where::Name(name), endpoint) if self.look_up || endpoint.is_none() => {
                self.state = Resolving { since: now, until: Some(until) };
                Some(NextAttempt::LookUp(name.clone()))
            }
            // Where the peer was last, and after a failure there where its configuration has it, in turn, as both
            // ends may have moved while neither could hear the other.
            (Where::Address(home), Some(_)) if self.is_second_turn() => Some(NextAttempt::Connect(*home)),
            (_, Some(last)) => Some(NextAttempt::Connect(last)),
            // It has to speak first.
            (_, None) => {
                self.state = Idle;
                None
            }
        }
    }

    /// Forgets a want that was not renewed.
    fn lapse(&mut self, now: Time) {
        self.set_until(self.until().filter(|until| now < *until));
    }

    /// The name was resolved, or need not be before the next attempt.
    pub(crate) const fn resolved(&mut self) {
        self.look_up = false;
    }

    /// A handshake is under way on `channel`, in an attempt that began at `since`.
    pub(crate) fn connecting(&mut self, channel: ChannelId, since: Time) {
        self.state = Connecting { channel, since, until: self.until() };
    }

    /// The peer accepted.
    pub(crate) fn completed(&mut self) {
        self.rest();
    }

    /// There is a new pair in use, whichever end began: nothing more is wanted.
    pub(crate) fn established(&mut self, now: Time) {
        self.set_until(None);
        (self.failures, self.turn) = (0, 0);
        self.last_failure = None;
        (self.pause, self.awaited_until) = (Pause::until(now), now);
        self.look_up = false;
    }

    /// The attempt failed; returns how long no other may begin.
    pub(crate) fn failed(&mut self, why: HandshakeFailure, now: Time, random: &mut Random) -> Duration {
        self.rest();
        self.look_up = true;
        self.last_failure = Some((why, now));
        self.failures = self.failures.saturating_add(1);
        self.turn = self.turn.wrapping_add(1);
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failures - 1).min(6)).min(LONGEST_PAUSE);
        let idle = now + jitter(pause, random);
        let waited = now + jitter(WAITED_PAUSE, random);
        self.pause = Pause { waited: waited.min(idle), idle };
        self.not_before().since(now)
    }

    /// The peer dropped this attempt for its own, which does not count as a failure.
    pub(crate) fn yielded(&mut self, now: Time, random: &mut Random) {
        self.rest();
        self.pause = Pause::until(now + jitter(YIELD_PAUSE, random));
    }

    /// Forgets the failures before, which were elsewhere: the next attempt does not wait for them.
    pub(crate) fn hurry(&mut self, now: Time) {
        (self.failures, self.turn) = (0, 0);
        (self.pause, self.last_failure) = (Pause::until(now), None);
    }

    /// No attempt begins before `at`, unless something waits for it.
    pub(crate) const fn put_off(&mut self, now: Time, at: Time) {
        self.pause = Pause { waited: now, idle: at };
    }

    /// The next attempt does not wait for the failures before, whose reason may be gone, and is where the peer should be; if it
    /// fails too, pauses begin anew.
    pub(crate) fn resume(&mut self, now: Time) {
        (self.failures, self.turn, self.pause) = (self.failures.min(1), 0, Pause::until(now));
    }

    /// No attempt begins for a while, though none failed: the peer is being stopped.
    pub(crate) fn pause(&mut self, now: Time, random: &mut Random) {
        self.pause = Pause::until(now + jitter(FIRST_PAUSE, random));
    }

    /// Drops the attempt in favour of another; returns the channel that is to be closed.
    pub(crate) fn give_way(&mut self) -> Option<ChannelId> {
        let channel = self.channel();
        self.rest();
        channel
    }

    /// Whether the attempt takes too long.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.began().is_some_and(|since| since + ATTEMPT <= now)
    }

    /// When something is due: the attempt's end, the next attempt, or the end of trying.
    pub(crate) fn deadline(&self, answered: Time) -> Option<Deadline> {
        let end = self.began().map(|since| Deadline { at: since + ATTEMPT, why: "an attempt's end" });
        let begin = self.not_before().max(answered);
        let trying = self.until().map(|until| match self.state {
            Wanted { .. } if begin < until => Deadline { at: begin, why: "the next attempt" },
            _ => Deadline { at: until, why: "the end of trying" },
        });
        Deadline::earliest(end, trying)
    }

    /// When the attempt began that is under way.
    const fn began(&self) -> Option<Time> {
        match self.state {
            Idle | Wanted { .. } => None,
            Resolving { since, .. } | Connecting { since, .. } => Some(since),
        }
    }

    /// Until when new associations are wanted.
    const fn until(&self) -> Option<Time> {
        match self.state {
            Idle => None,
            Wanted { until } => Some(until),
            Resolving { until, .. } | Connecting { until, .. } => until,
        }
    }

    fn set_until(&mut self, wanted: Option<Time>) {
        match &mut self.state {
            Idle | Wanted { .. } => self.state = wanted.map_or(Idle, |until| Wanted { until }),
            Resolving { until, .. } | Connecting { until, .. } => *until = wanted,
        }
    }

    /// No attempt is under way any more.
    fn rest(&mut self) {
        self.state = self.until().map_or(Idle, |until| Wanted { until });
    }
}

#[cfg(test)]
mod tests;
