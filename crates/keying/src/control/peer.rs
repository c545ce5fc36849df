//! What is remembered of one peer: two state machines, and what surrounds them.
//!
//! Handshakes that this node begins ([`Initiation`]); each arrow names the method that makes it:
//!
//! ```text
//!                want                    next: Connect, address known
//!   +------+ ------------> +--------+ ------------------------------> +------------+
//!   | Idle |               | Wanted |                                 | Connecting |
//!   +------+ <------------ +--------+ <------------------------------ +------------+
//!      ^        lapse,       |    ^      failed, yielded, give_way      ^      |
//!      |     established     |    |                                     |      |
//!      |                     |    | failed: no address; give_way        |      |
//!      |      next: LookUp,  |    |                                     |      |
//!      |      name unknown   v    |                                     |      |
//!      |       or doubtful +-----------+           connecting           |      |
//!      |                   | Resolving | -------------------------------+      |
//!      |                   +-----------+                                       |
//!      +------------------------------------------- completed: Accept came ----+
//! ```
//!
//! `Wanted` waits until the pause after a failure is over, and the peer's own handshake, if one is under way. The want
//! may lapse, or be satisfied by the peer's handshake, while this node's attempt goes on: that attempt then ends in
//! `Idle` where the drawing says `Wanted`.
//!
//! The pairs of security associations ([`SaPairs`]), at most one unconfirmed, one in use, two fading:
//!
//! ```text
//!                    accept                 confirm                 replace            60 s
//!   peer began      --------> unconfirmed ---------> in use ----------------> fading -------> withdrawn
//!                               |     |               ^  |                      ^
//!                               |     |    replace    |  | take_expired: idle   |
//!   this node began ------------|-----|---------------+  | until 1.5 times soft |
//!                               |     |                  v                      |
//!                               |     |              withdrawn                  |
//!                               |     +---- accept: the peer began another -----+
//!                               v
//!                           withdrawn: reject, or not confirmed for 60 s
//! ```

pub(crate) mod condition;
pub(crate) mod initiation;
pub(crate) mod pairs;
mod processes;
pub(crate) mod race;
mod silence;
mod status;

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::{Deadline, Time};
use strait_ipsec::{HistoryTerms, OutboundSa, Payloads, PeerId, Place, ReportWish, inbound, outbound};
use strait_scheduler::{Budget, LinkRate, Pace};
use strait_wire::Spi;
use strait_wire::condition::Condition;

use super::backoff::Backoff;
use super::context::{ControlContext, LocalNode};
use crate::{
    Capabilities, ControlEvent, DeliveryReporting, HandshakeFailure, MoveLog, PayloadFormat, PeerConfig,
    Role, Start, Where,
};
use condition::TIMES;
use initiation::{Initiation, InitiationState, NextAttempt};
use pairs::{SaPair, SaPairs, UnconfirmedPair};
use processes::PeerProcesses;
use race::Race;
use silence::{Silence, Unanswered};

/// How long one attempt may take, looking up a name included.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(10);
/// How long a node that has just started, or lost its keys, goes on trying: as long as `WireGuard`'s
/// REKEY_ATTEMPT_TIME.
pub(crate) const PERSEVERANCE: Duration = Duration::from_secs(90);
/// The time after a packet waited for keys in which the next attempt is still made, after a short pause; the data plane says it
/// again every second while packets come.
const WAITING: Duration = Duration::from_secs(30);

/// How long after new keys a packet thread may still speak of the time before them: until it has done what was ordered
/// and what it said before has been read. What is still true then, it says again.
const SETTLING: Duration = Duration::from_secs(1);
/// Handshakes begun by a peer that are accepted: one a second, and so many at once, some 30 ms of a processor. An honest
/// peer begins one for each lifetime, and one when it restarts or is not understood.
pub(crate) const OFFERS: (u64, u64) = (1, 32);
/// Connections for streams begun by a peer that are accepted, a second and at once. Each command of a user without a daemon begins one beside
/// its handshake, and a script runs several a second; a few datagrams need no session. The key is proved by then, which is what costs.
pub(crate) const STREAM_OFFERS: (u64, u64) = (4, 64);

/// What is remembered of one peer.
#[derive(Debug)]
pub(crate) struct PeerRecord {
    pub(crate) config: PeerConfig,
    /// Where datagrams to it go, as far as is known here: the [latest endpoint](strait_ipsec::PeerCounters::endpoint) as it was
    /// when this node last looked.
    pub(crate) endpoint: Option<SocketAddr>,
    /// Its place in an earlier run, if there was no session in this one.
    pub(crate) remembered: Option<SocketAddr>,
    /// Which of its moves are in the log.
    pub(crate) moves: MoveLog,
    pub(crate) initiation: Initiation,
    pub(crate) race: Race,
    pub(crate) pairs: SaPairs,
    processes: PeerProcesses,
    silence: Silence,
    unanswered: Unanswered,
    /// Handshakes in a row after which nothing came under ESP, but for the last.
    fruitless: u32,
    /// Handshakes on account of unknown SPIs from it.
    pub(crate) unknown_spis: Backoff,
    /// Handshakes that it begins and this node accepts.
    offers: Budget,
    stream_offers: Budget,
    /// When anything but ESP was last sent to it.
    pub(crate) sent_at: Time,
    last_handshake: Option<Time>,
    /// The time of its goodbye, if there was no session since.
    stopped: Option<Time>,
    pub(crate) theirs: RemoteEnd,
    announced: Announced,
    /// Under which number this node keeps history of it.
    epoch: u32,
}

/// What a peer said of itself.
#[derive(Debug)]
pub(crate) struct RemoteEnd {
    /// In the last handshake; the rate in as it is now.
    pub(crate) capabilities: Option<Capabilities>,
    /// How many times longer than it said its work takes.
    load: f64,
}

/// What others were told of a peer, or are still to be told.
#[derive(Debug)]
struct Announced {
    /// How often the peer is still to be told what changed here.
    reports_left: u8,
    /// The pace that the sender was told.
    pace: Pace,
    /// What the receiver was told that the peer does with reports.
    reports: ReportWish,
    /// Whether the log has it that packets wait for a peer without an endpoint.
    no_endpoint_logged: bool,
}

impl PeerRecord {
    /// `epoch` is random: the receiver of another process, or of a peer that was removed meanwhile, has kept nothing.
    pub(crate) fn new(config: PeerConfig, now: Time, epoch: u32) -> PeerRecord {
        PeerRecord {
            config,
            endpoint: None,
            remembered: None,
            moves: MoveLog::default(),
            initiation: Initiation::new(now),
            race: Race::default(),
            pairs: SaPairs::default(),
            processes: PeerProcesses::default(),
            silence: Silence::default(),
            unanswered: Unanswered::default(),
            fruitless: 0,
            unknown_spis: Backoff::new(now),
            offers: Budget::new(OFFERS.0, OFFERS.1),
            stream_offers: Budget::new(STREAM_OFFERS.0, STREAM_OFFERS.1),
            sent_at: now,
            last_handshake: None,
            stopped: None,
            theirs: RemoteEnd { capabilities: None, load: 1.0 },
            announced: Announced {
                reports_left: 0,
                pace: Pace::None,
                reports: ReportWish::default(),
                no_endpoint_logged: false,
            },
            epoch,
        }
    }

    /// Forgets all keys, and those that are being made; wants others if there were any.
    pub(crate) fn renew(&mut self, now: Time, context: &mut ControlContext) {
        let pairs = core::mem::take(&mut self.pairs);
        pairs.inbound_spis().for_each(|spi| context.withdraw_inbound(spi));
        if let Some(pair) = pairs.in_use() {
            context.order_out(outbound::Order::Withdraw(self.id(), pair.outbound.spi));
        }
        let wants = pairs.inbound_spis().next().is_some() || self.initiation.state() != InitiationState::Idle;
        (self.initiation, self.race) = (Initiation::new(now), Race::default());
        if wants {
            self.initiation.want(now + PERSEVERANCE);
        }
        (self.silence, self.unanswered, self.fruitless) = (Silence::default(), Unanswered::default(), 0);
        self.epoch = context.next_epoch();
    }

    /// What this node offers it in a handshake.
    pub(crate) fn offer(&self, node: &LocalNode) -> Capabilities {
        let history = HistoryTerms {
            contexts: HistoryTerms::CONTEXTS,
            epoch: self.epoch,
            caches: node.capabilities.history.caches,
        };
        Capabilities { history, ..node.offer(&self.config) }
    }

    pub(crate) const fn id(&self) -> PeerId {
        self.config.spec.id
    }

    /// Returns the time of the last handshake that succeeded.
    pub(crate) const fn last_handshake(&self) -> Option<Time> {
        self.last_handshake
    }

    /// The place of a handshake at `to`: it leaves with the address that the peer is used to, as long as that answers. After a failure the
    /// routing table chooses in turn, as the host may have another way out by now.
    pub(crate) fn place_at(&self, to: SocketAddr) -> Place {
        if self.initiation.is_second_turn() {
            to.into()
        } else {
            self.config.spec.counters.endpoint.place_at(to)
        }
    }

    /// Whether it may have new keys at `now`; if so, that is one of its handshakes.
    pub(crate) fn may_offer(&mut self, now: Time) -> bool {
        self.offers.take(1, now)
    }

    /// Takes a connection for streams at `now` off those that it may begin. Returns false if it may not.
    pub(crate) fn may_begin_streams(&mut self, now: Time) -> bool {
        self.stream_offers.take(1, now)
    }

    /// The attempt that is due at `now`, if one is.
    pub(crate) fn next_attempt(&mut self, now: Time) -> Option<NextAttempt> {
        // A name may lead astray. Where the peer was heard is tried in turn with where its name leads.
        if self.pairs.in_use().is_some() && self.initiation.is_second_turn() {
            self.initiation.resolved();
        }
        // The configuration comes first, and in turn with it the place of an earlier run. An attempt whose name gives no address
        // has been there already.
        if let Some(at) = self.remembered
            && self.endpoint.is_some_and(|endpoint| endpoint != at)
            && self.pairs.in_use().is_none()
            && self.initiation.is_second_turn()
        {
            return self.initiation.next(&Where::Address(at), Some(at), self.answered_until(), now);
        }
        self.initiation.next(&self.config.place, self.endpoint, self.answered_until(), now)
    }

    /// Whether an attempt waits for the address of `name`.
    pub(crate) fn is_looking_up(&self, name: &str) -> bool {
        let named = matches!(&self.config.place, Where::Name(its) if its == name);
        named && self.initiation.is_resolving()
    }

    /// Until when the handshake that the peer began has, if it has one under way.
    fn answered_until(&self) -> Time {
        self.pairs.unconfirmed().map_or(Time::ZERO, |unconfirmed| unconfirmed.made + ATTEMPT)
    }

    /// Whether it has new keys that the packet threads may not have had yet when they last said something.
    pub(crate) fn is_settling(&self, now: Time) -> bool {
        self.pairs.in_use().is_some() && self.last_handshake.is_some_and(|at| now < at + SETTLING)
    }

    /// Packets wait for an association.
    pub(crate) fn packets_wait(&mut self, now: Time, context: &mut ControlContext) {
        if self.is_settling(now) {
            return;
        }
        if self.endpoint.is_some() || matches!(self.config.place, Where::Name(_)) {
            self.initiation.await_until(now + WAITING);
        } else if !core::mem::replace(&mut self.announced.no_endpoint_logged, true) {
            context.log(ControlEvent::NoEndpoint { peer: self.id() });
        }
    }

    /// This host has other links, addresses or routes: what did not help may help now.
    pub(crate) const fn network_changed(&mut self) {
        self.fruitless = 0;
    }

    /// The sequence numbers of an association are used up.
    pub(crate) fn exhausted(&mut self, spi: Spi, now: Time) {
        if self.pairs.in_use().is_some_and(|pair| pair.outbound.spi == spi) {
            self.initiation.want(now + PERSEVERANCE);
        }
    }

    /// An attempt failed: the next waits longer, and asks anew where the peer is.
    pub(crate) fn attempt_failed(&mut self, why: HandshakeFailure, now: Time, context: &mut ControlContext) {
        let retry = Some(self.initiation.failed(why.clone(), now, &mut context.random));
        let failures = self.initiation.failures();
        context.log(ControlEvent::Failed { peer: self.id(), role: Role::Initiator, why, failures, retry });
    }

    /// A handshake that the peer began failed.
    pub(crate) fn answer_failed(&self, why: HandshakeFailure, context: &mut ControlContext) {
        let failures = self.initiation.failures();
        context.log(ControlEvent::Failed {
            peer: self.id(),
            role: Role::Responder,
            why,
            failures,
            retry: None,
        });
    }

    /// Takes what the peer said of itself in a handshake, in which it was at `from`; returns that place if another process of it was there
    /// before, and is gone.
    pub(crate) fn introduced(
        &mut self,
        capabilities: Capabilities,
        from: Option<SocketAddr>,
    ) -> Option<SocketAddr> {
        let follows = from.filter(|from| self.processes.note(*from, capabilities.process()));
        self.theirs.capabilities = Some(capabilities);
        follows
    }

    /// Sends with `pair` from now on; the inbound half of the one before fades.
    pub(crate) fn use_pair(
        &mut self,
        pair: SaPair,
        outbound: Box<OutboundSa>,
        now: Time,
        context: &mut ControlContext,
    ) {
        let event = ControlEvent::Established {
            peer: self.id(),
            role: pair.role,
            suite: pair.suite,
            inbound: pair.inbound.spi,
            outbound: pair.outbound.spi,
            replaces: self.pairs.in_use().map(|before| before.outbound.spi),
        };
        // In a handshake both ends say what they do at their best; what differs from that is said afterwards.
        self.theirs.load = 1.0;
        self.announced.reports_left = if context.node.load == Condition::USUAL { 0 } else { TIMES };
        self.announced.no_endpoint_logged = false;
        self.initiation.established(now);
        self.race.succeeded();
        self.count_fruitless();
        self.last_handshake = Some(now);
        self.stopped = None;
        let theirs = self.theirs.capabilities.as_ref();
        let lanes = theirs.is_some_and(Capabilities::takes_lanes) && self.offer(&context.node).takes_lanes();
        self.config.spec.counters.stream.note_session(lanes);
        self.pairs.replace(pair, now, context);
        self.update_pace(context);
        self.tell_ends(context);
        context.order_out(outbound::Order::Install(outbound));
        context.log(event);
        context.tick_from(now);
    }

    /// This process of it is being stopped, and none goes on beside it: if the pair is its own, that is of no use any more, and a handshake
    /// none at once. A node that begins unasked, where it is configured to be, goes on trying for a while: the peer may only be restarted,
    /// and not know where this one is.
    pub(crate) fn stopped(&mut self, process: u32, now: Time, context: &mut ControlContext) {
        if self.pairs.in_use().is_none_or(|pair| pair.process != process) {
            return;
        }
        let Some(spi) = self.pairs.stop(now, context) else { return };
        self.initiation.pause(now, &mut context.random);
        if self.config.start == Start::Eager && self.config.place != Where::Unknown {
            self.initiation.want(now + PERSEVERANCE);
        }
        self.stopped = Some(now);
        context.order_out(outbound::Order::Withdraw(self.id(), spi));
        context.log(ControlEvent::Stopped { peer: self.id() });
        context.tick_from(now);
    }

    /// The initiator uses the pair with this inbound SPI, if it is the unconfirmed one. Returns its place as [`PeerRecord::introduced`].
    pub(crate) fn confirm(
        &mut self,
        spi: Spi,
        now: Time,
        context: &mut ControlContext,
    ) -> Option<SocketAddr> {
        let UnconfirmedPair { pair, outbound, capabilities, from, .. } = self.pairs.take_unconfirmed(spi)?;
        let follows = self.introduced(capabilities, from);
        self.use_pair(pair, outbound, now, context);
        follows
    }

    /// Paces the peer at what is known of both links, and reports to it as it needs, if that is news.
    pub(crate) fn update_pace(&mut self, context: &mut ControlContext) {
        let pace = self.pace(context.node.up);
        if core::mem::replace(&mut self.announced.pace, pace) != pace {
            context.order_out(outbound::Order::Rate(self.id(), pace));
        }
        let reports = self.reports(context);
        if core::mem::replace(&mut self.announced.reports, reports) != reports {
            context.order_in(inbound::Order::Reports(self.id(), reports));
        }
    }

    /// What the peer does with reports of what arrives from it: it estimates its rate because of its own link or of this node's.
    fn reports(&self, context: &ControlContext) -> ReportWish {
        let theirs = self.theirs.capabilities.as_ref().map_or(ReportWish::Changes, |theirs| theirs.reports);
        if context.node.capabilities.down == LinkRate::Auto { ReportWish::Often } else { theirs }
    }

    /// At the smaller of this node's rate out and the peer's rate in, given or found out; that takes a peer that tells what
    /// arrives, as any may until it is known.
    fn pace(&self, up: LinkRate) -> Pace {
        let Some(theirs) = &self.theirs.capabilities else { return Pace::between(up, LinkRate::Unpaced) };
        let pace = Pace::between(up, theirs.down);
        let standard = self.config.format == PayloadFormat::Standard
            || self.pairs.in_use().is_some_and(|pair| !matches!(pair.payloads, Payloads::Strait { .. }));
        if standard || theirs.delivery == DeliveryReporting::Untold { pace.without_reports() } else { pace }
    }

    /// Sends a NAT keepalive if nothing else was sent for so long: an authentic one, which shows the peer where this node is, also
    /// behind a NAT that has forgotten it or has another address.
    pub(crate) fn keep_alive(&mut self, now: Time, context: &mut ControlContext) {
        if self.keepalive_at().is_none_or(|at| at > now) {
            return;
        }
        self.sent_at = now;
        if self.pairs.in_use().is_some() {
            return context.order_out(outbound::Order::Alive(self.id()));
        }
        context.order_out(outbound::Order::Keepalive(self.id()));
        // One that said that it is being stopped begins by itself, where it knows this node's place, which the mapping keeps.
        if self.stopped.is_none() && !context.node.quiet {
            self.initiation.want(now + ATTEMPT);
        }
    }

    /// When a NAT keepalive is due: only towards a peer that has spoken, as another has no use for it.
    fn keepalive_at(&self) -> Option<Time> {
        self.last_handshake?;
        self.endpoint?;
        let esp = self.pairs.in_use().and_then(|pair| pair.outbound.usage.last());
        let last_sent = esp.map_or(self.sent_at, |esp| esp.max(self.sent_at));
        Some(last_sent + self.config.keepalive?)
    }

    /// When something of it is due that the tick does not see to.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let keepalive = self.keepalive_at().map(|at| Deadline { at, why: "a NAT keepalive" });
        let initiation =
            Deadline::earliest(self.initiation.deadline(self.answered_until()), self.race.deadline());
        Deadline::earliest(initiation, keepalive)
    }
}
