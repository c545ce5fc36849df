//! What is remembered of one peer.

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::{Deadline, Time};
use strait_ipsec::Payloads;
use strait_scheduler::{LinkRate, Pace};
use strait_wire::Spi;

use super::backoff::Backoff;
use super::pairs::{Awaited, Fading, Pair};
use super::watch::Silence;
use crate::channel::ChannelId;
use crate::{Capabilities, Delivery, Format, PeerConfig, Where};

/// How long one attempt may take, looking up a name included.
pub(super) const ATTEMPT: Duration = Duration::from_secs(10);

/// A handshake that this node has under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) since: Time,
    pub(super) step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its name is being looked up.
    LookUp,
    /// On this channel.
    Shake(ChannelId),
}

/// What is remembered of one peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) config: PeerConfig,
    pub(super) endpoint: Option<SocketAddr>,
    /// Ask for the address of its name before the next attempt.
    pub(super) look_up: bool,
    pub(super) attempt: Option<Attempt>,
    /// Failed attempts in a row.
    pub(super) failures: u32,
    /// No attempt before then.
    pub(super) not_before: Time,
    /// Until when somebody wants new associations, if anybody does.
    pub(super) wanted_until: Option<Time>,
    /// The pair in use.
    pub(super) pair: Option<Pair>,
    /// A pair made here that its initiator has not confirmed.
    pub(super) awaited: Option<Awaited>,
    /// Inbound associations of earlier pairs, oldest first.
    pub(super) fading: Vec<Fading>,
    pub(super) silence: Silence,
    /// Handshakes on account of unknown SPIs from it.
    pub(super) unknown: Backoff,
    /// When anything but ESP was last sent to it.
    pub(super) sent_at: Time,
    pub(super) last_handshake: Option<Time>,
    pub(super) capabilities: Option<Capabilities>,
    /// How many times longer than it said its work takes.
    pub(super) load: f64,
    /// How often it is still to be told what changed here.
    pub(super) reports: u8,
    /// The pace the sending half was told.
    pub(super) paced: Pace,
    /// Whether it was said that nobody knows where it is.
    pub(super) lost: bool,
}

impl Peer {
    pub(super) fn new(config: PeerConfig, now: Time) -> Peer {
        Peer {
            config,
            endpoint: None,
            look_up: false,
            attempt: None,
            failures: 0,
            not_before: now,
            wanted_until: None,
            pair: None,
            awaited: None,
            fading: Vec::new(),
            silence: Silence::default(),
            unknown: Backoff::new(now),
            sent_at: now,
            last_handshake: None,
            capabilities: None,
            load: 1.0,
            reports: 0,
            paced: Pace::None,
            lost: false,
        }
    }

    /// Whether somebody wants new associations at `now`.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        self.wanted_until.is_some_and(|until| now < until)
    }

    /// Forgets a want that nobody has renewed.
    pub(super) fn lapse(&mut self, now: Time) {
        self.wanted_until = self.wanted_until.filter(|until| now < *until);
    }

    /// When an attempt may begin, if one may before the state changes.
    pub(super) fn may_begin_at(&self) -> Option<Time> {
        if self.attempt.is_some() {
            return None;
        }
        let answered = self.awaited.as_ref().map_or(Time::ZERO, |awaited| awaited.made + ATTEMPT);
        Some(self.not_before.max(answered))
    }

    /// Where the next handshake is tried: where the peer was last, and after a failure there where its
    /// configuration has it, in turn, as both ends may have moved while neither could hear the other.
    pub(super) fn next_place(&self, last: SocketAddr) -> SocketAddr {
        match self.config.place {
            Where::Address(home) if self.failures % 2 == 1 => home,
            _ => last,
        }
    }

    /// At the smaller of this node's rate out and the peer's rate in, given or found out; that takes a peer that tells what
    /// arrives, as any may until it is known.
    pub(super) fn pace(&self, up: LinkRate) -> Pace {
        let Some(theirs) = &self.capabilities else { return Pace::between(up, LinkRate::Unpaced) };
        let pace = Pace::between(up, theirs.down);
        let standard = self.config.format == Format::Standard
            || self.pair.as_ref().is_some_and(|pair| !matches!(pair.payloads, Payloads::Strait { .. }));
        if standard || theirs.delivery == Delivery::Untold { pace.without_reports() } else { pace }
    }

    /// When anything was last sent to it.
    pub(super) fn last_sent(&self) -> Time {
        let esp = self.pair.as_ref().and_then(|pair| pair.outbound.usage.last());
        esp.map_or(self.sent_at, |esp| esp.max(self.sent_at))
    }

    /// When a NAT keepalive is due: only towards a peer that has spoken, as another has no use for it.
    pub(super) fn keepalive_at(&self) -> Option<Time> {
        self.last_handshake?;
        self.endpoint?;
        Some(self.last_sent() + self.config.keepalive?)
    }

    /// The inbound associations that the receiving half has of it.
    pub(super) fn inbound_spis(&self) -> impl Iterator<Item = Spi> {
        let pair = self.pair.iter().map(|pair| pair.inbound.spi);
        let awaited = self.awaited.iter().map(|awaited| awaited.pair.inbound.spi);
        pair.chain(awaited).chain(self.fading.iter().map(|fading| fading.half.spi))
    }

    /// When something of it is due that the tick does not see to.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let attempt =
            self.attempt.map(|attempt| Deadline { at: attempt.since + ATTEMPT, why: "an attempt's end" });
        let begin = self.wanted_until.map(|until| match self.may_begin_at() {
            Some(at) if at < until => Deadline { at, why: "the next attempt" },
            _ => Deadline { at: until, why: "the end of trying" },
        });
        let keepalive = self.keepalive_at().map(|at| Deadline { at, why: "a NAT keepalive" });
        Deadline::earliest(Deadline::earliest(attempt, begin), keepalive)
    }
}
