//! The peers of a node that it never shakes hands with: what is sent to them under packet keys, and what comes from them.
//!
//! ```text
//! this file     settings, peers, what comes in from outside, time
//! outward       packet keys of this node: begun, replaced, acknowledged
//! inward        headers of peers: known, new, refused; what waits for the disk
//! daily         daily keys
//! change        a peer whose keying changes while packets flow
//! status        what is shown
//! ```

mod change;
mod daily;
mod inward;
mod outward;
mod status;

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::{Deadline, Stopwatch, Time};
use strait_crypto::{Suite, choose};
use strait_ipsec::inbound::HeaderGate;
use strait_ipsec::{Notice, Payloads, PeerId, ReportWish, ReturnPath, inbound, outbound};
use strait_scheduler::{Budget, LinkRate, Pace};
use strait_wire::Spi;
use strait_wire::sessionless::Name;
use zeroize::Zeroizing;

use super::context::ControlContext;
use crate::keystream::Keystream;
use crate::sessionless::{
    Compression, EpochLength, HeaderScreen, KemKey, KeyCard, KijAlgorithm, KnownSender, NodeKeys, Now,
    PacketAlgorithms, PacketKeyLimits, Protection, Receiver, ReceiverSettings, SendMark, Sender,
    SenderSettings, WallTime,
};
use crate::{
    Action, Capabilities, ControlEvent, DeliveryReporting, MoveLog, PayloadFormat, PeerConfig, PublicKey,
    Where,
};
use change::Change;
use inward::KeysHere;
use outward::OutboundState;

pub use status::SessionlessStatus;

/// How often keys that are in use are looked at: as the limits of a packet key are seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time of day, which is not the node's own to keep.
pub struct WallClock(Box<dyn Fn() -> WallTime + Send>);

impl WallClock {
    /// A clock that is read by this function.
    #[must_use]
    pub fn new(read: impl Fn() -> WallTime + Send + 'static) -> WallClock {
        WallClock(Box::new(read))
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[clock]")
    }
}

/// What a node is told once of keys without sessions.
#[derive(Debug)]
pub struct SessionlessSettings {
    /// Its keys.
    pub keys: NodeKeys,
    /// The time of day.
    pub clock: WallClock,
    /// Its mark as a sender, as it is on disk; 0 for none.
    pub mark: u64,
    /// How much is kept.
    pub receiver: ReceiverSettings,
    /// Measures what misses of the caches take.
    pub stopwatch: Stopwatch,
    /// 32 bytes of the system's randomness that serve nothing else.
    pub seed: Zeroizing<[u8; 32]>,
}

/// What the configuration says of a peer with which keys need no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionlessTerms {
    /// Whether anything comes back from it.
    pub path: ReturnPath,
    /// How long an epoch of this node is, and of the peer where there is no card.
    pub epoch: EpochLength,
    /// Whether everything of it stays in the caches.
    pub pinned: bool,
    /// What it says of itself; without one it is taken for a node that can what this one can.
    pub card: Option<Box<KeyCard>>,
    /// Its mark as it is on disk; 0 for none.
    pub mark: u64,
}

/// Whose mark it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOwner {
    /// This node, as a sender.
    Own,
    /// The sender with this key.
    Peer(PublicKey),
}

/// All peers with keys that need no session.
#[derive(Debug)]
pub(crate) struct SessionlessPeers {
    own: NodeKeys,
    clock: WallClock,
    mark: SendMark,
    receiver: Receiver,
    /// The part of it that is on the packet path.
    screen: Arc<HeaderScreen>,
    peers: BTreeMap<PeerId, SessionlessPeer>,
    by_key: BTreeMap<PublicKey, PeerId>,
    keys: KeysHere,
    seeds: Keystream,
    look_at: Option<Time>,
    /// Lines on datagrams that are refused.
    refusal_lines: Budget,
    /// Peers whose session is not needed any more, until the key manager is told.
    freed: Vec<PeerId>,
    /// Associations of sessions that are not needed any more, and until when packets of them are taken.
    fading: Vec<(Time, PeerId, Spi)>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct SessionlessPeer {
    config: PeerConfig,
    terms: SessionlessTerms,
    sender: Sender,
    suite: Suite,
    out: OutboundState,
    /// Which keys it is sent to with.
    change: Change,
    moves: MoveLog,
    heard: bool,
    resolves: bool,
    kept_alive: Time,
}

impl SessionlessPeers {
    pub(crate) fn new(settings: SessionlessSettings) -> SessionlessPeers {
        let SessionlessSettings { keys, clock, mark, receiver, stopwatch, seed } = settings;
        let screen = Arc::new(HeaderScreen::new(&keys.identity.public()));
        SessionlessPeers {
            own: keys,
            clock,
            mark: SendMark::new(mark),
            receiver: Receiver::new(&receiver).timed(stopwatch),
            screen,
            peers: BTreeMap::new(),
            by_key: BTreeMap::new(),
            keys: KeysHere::default(),
            seeds: Keystream::new(&seed, "sessionless peers"),
            look_at: None,
            refusal_lines: Budget::new(1, 4),
            freed: Vec::new(),
            fading: Vec::new(),
        }
    }

    /// Takes this node's ML-KEM key, if it has none yet.
    pub(crate) fn take_kem_key(&mut self, kem: KemKey) {
        self.own.kem.get_or_insert(kem);
    }

    /// What the packet path asks before it passes a header on.
    pub(crate) fn gate(&self) -> Arc<dyn HeaderGate> {
        Arc::<HeaderScreen>::clone(&self.screen)
    }

    fn now(&self, time: Time) -> Now {
        Now { time, wall: (self.clock.0)() }
    }

    pub(crate) fn has(&self, id: PeerId) -> bool {
        self.peers.contains_key(&id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// The peer with this key.
    pub(crate) fn by_key(&self, key: &PublicKey) -> Option<PeerId> {
        self.by_key.get(key).copied()
    }

    /// Adds a peer that is new to the data plane as well.
    pub(crate) fn add(
        &mut self,
        context: &mut ControlContext,
        mut config: PeerConfig,
        terms: SessionlessTerms,
        time: Time,
    ) {
        let id = config.spec.id;
        config.spec.endpoint = None;
        let (counters, caches) = (Arc::clone(&config.spec.counters), Arc::clone(&config.spec.caches));
        counters.endpoint.clear();
        context.order_out(outbound::Order::AddPeer(Box::new(config.spec.clone())));
        context.order_in(inbound::Order::AddPeer(id, counters, caches));
        self.enter(context, config, terms, time);
        self.place(context, id);
    }

    /// Adds a peer that the data plane has.
    fn enter(
        &mut self,
        context: &mut ControlContext,
        config: PeerConfig,
        terms: SessionlessTerms,
        time: Time,
    ) {
        let id = config.spec.id;
        let sender = self.sender(context, &config, &terms);
        let known = self.known(context, &config, &terms);
        let mut moves = MoveLog::default();
        moves.skip(config.spec.counters.endpoint.moves());
        let suite = suite(&context.node.capabilities, terms.card.as_deref());
        context.order_out(outbound::Order::Rate(id, pace(context.node.up, &config, &terms)));
        context.order_in(inbound::Order::Reports(id, wish(context, &terms)));
        if let Some(at) = config.spec.counters.endpoint.get() {
            context.order_in(inbound::Order::Place(id, at));
        }
        let peer = SessionlessPeer {
            config,
            terms,
            sender,
            suite,
            out: OutboundState::default(),
            change: Change::Done,
            moves,
            heard: false,
            resolves: false,
            kept_alive: time,
        };
        self.by_key.insert(peer.config.key, id);
        self.peers.insert(id, peer);
        let now = self.now(time);
        for waited in self.receiver.know(known) {
            self.look_at(context, now, waited);
        }
        self.take_events(context, now, None);
    }

    fn sender(&mut self, context: &ControlContext, config: &PeerConfig, terms: &SessionlessTerms) -> Sender {
        let node = &context.node.capabilities;
        let theirs = terms.card.as_ref().map(|card| &card.capabilities);
        let compression = compression(config, theirs);
        let cap = theirs.map_or(node.block_cap, |theirs| theirs.block_cap.min(node.block_cap));
        let settings = SenderSettings {
            peer: config.spec.id,
            path: terms.path,
            kij: KijAlgorithm::default(),
            algorithms: PacketAlgorithms {
                protection: Protection::Aead(suite(node, terms.card.as_deref())),
                compression,
            },
            payloads: compression.payloads(theirs.map_or(node.codecs, |theirs| theirs.codecs), cap),
            limits: PacketKeyLimits::default(),
            epoch: terms.epoch,
            kem: terms.card.as_ref().and_then(|card| card.kem.clone()),
            destination: Name::NONE,
        };
        Sender::new(settings, &config.key, &self.seeds.next_block())
    }

    fn known(&self, context: &ControlContext, config: &PeerConfig, terms: &SessionlessTerms) -> KnownSender {
        let card = terms.card.as_deref();
        KnownSender {
            peer: config.spec.id,
            key: config.key,
            names: card.map(|card| card.header_names().to_vec()).unwrap_or_default(),
            epoch: card.map_or(terms.epoch, |card| card.epoch),
            suites: context.node.capabilities.suites,
            separate: false,
            // Who gave its card has this node's, and can do so.
            hybrid: self.own.kem.is_some() && card.is_some(),
            valid: card.map_or((WallTime(0), WallTime(u64::MAX)), KeyCard::valid_wall),
            mark: terms.mark,
            pinned: terms.pinned,
        }
    }

    /// Sends datagrams to a peer where the configuration says that it is, or has that looked up.
    fn place(&mut self, context: &mut ControlContext, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        match &peer.config.place {
            Where::Unknown => {}
            Where::Address(address) => {
                let address = *address;
                peer.go_to(context, address);
            }
            Where::Name(name) if !peer.resolves => {
                peer.resolves = true;
                context.actions.push_back(Action::Resolve(id, name.clone()));
            }
            Where::Name(_) => {}
        }
    }

    /// A peer was heard at `at` in an earlier run.
    pub(crate) fn remember_place(&mut self, context: &mut ControlContext, id: PeerId, at: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(&id)
            && peer.config.spec.counters.endpoint.get().is_none()
        {
            peer.go_to(context, at);
        }
    }

    /// Has names looked up again that led nowhere.
    pub(crate) fn resume(&mut self, context: &mut ControlContext) {
        let nowhere = |peer: &SessionlessPeer| peer.config.spec.counters.endpoint.get().is_none();
        let all: Vec<_> = self.peers.iter().filter(|(_, peer)| nowhere(peer)).map(|(id, _)| *id).collect();
        all.into_iter().for_each(|id| self.place(context, id));
    }

    /// Has the name of a peer looked up again if its address is waited for, which will not come.
    pub(crate) fn look_up_again(&mut self, context: &mut ControlContext, id: PeerId) {
        if self.peers.get_mut(&id).is_some_and(|peer| core::mem::take(&mut peer.resolves)) {
            self.place(context, id);
        }
    }

    /// Whether the address of `name` is waited for.
    pub(crate) fn is_looking_up(&self, id: PeerId, name: &str) -> bool {
        let named =
            |peer: &SessionlessPeer| peer.resolves && peer.config.place == Where::Name(name.to_owned());
        self.peers.get(&id).is_some_and(named)
    }

    /// Takes the answer of the resolver.
    pub(crate) fn resolved(
        &mut self,
        context: &mut ControlContext,
        id: PeerId,
        name: &str,
        answer: Result<Vec<SocketAddr>, String>,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.resolves = false;
        // Without a handshake, no address proves itself before others.
        let answer = answer
            .and_then(|found| found.first().copied().ok_or_else(|| "the name has no address".to_owned()));
        match answer {
            Ok(address) => peer.go_to(context, address),
            Err(why) => context.log(ControlEvent::Unresolved { peer: id, name: name.to_owned(), why }),
        }
    }

    /// Changes what is said of a peer; its keys stay unless that changes them.
    pub(crate) fn update(
        &mut self,
        context: &mut ControlContext,
        mut config: PeerConfig,
        terms: SessionlessTerms,
        time: Time,
    ) {
        let id = config.spec.id;
        let Some(peer) = self.peers.get(&id) else { return self.add(context, config, terms, time) };
        let same = SessionlessTerms { mark: terms.mark, ..peer.terms.clone() } == terms;
        if !same
            || (peer.config.key, peer.config.spec.mtu, peer.config.format)
                != (config.key, config.spec.mtu, config.format)
        {
            self.remove(context, id, time);
            return self.add(context, config, terms, time);
        }
        let moved = peer.config.place != config.place;
        config.spec.counters = Arc::clone(&peer.config.spec.counters);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.config = config;
        }
        if moved {
            self.place(context, id);
        }
    }

    /// Removes a peer with its keys, from the data plane too.
    pub(crate) fn remove(&mut self, context: &mut ControlContext, id: PeerId, time: Time) {
        if self.forget(context, id, time) {
            context.order_out(outbound::Order::RemovePeer(id));
            context.order_in(inbound::Order::RemovePeer(id));
        }
    }

    /// Removes a peer with its inbound keys; says whether there was one.
    pub(crate) fn forget(&mut self, context: &mut ControlContext, id: PeerId, time: Time) -> bool {
        let gone = self.peers.remove(&id);
        if let Some(gone) = &gone
            && self.by_key.get(&gone.config.key) == Some(&id)
        {
            self.by_key.remove(&gone.config.key);
        }
        self.fading.retain(|(_, of, spi)| {
            if *of == id {
                context.withdraw_inbound(*spi);
            }
            *of != id
        });
        self.receiver.remove(id);
        let now = self.now(time);
        self.take_events(context, now, None);
        gone.is_some()
    }

    /// Another rate of this node's link.
    pub(crate) fn set_link(&self, context: &mut ControlContext) {
        for (id, peer) in &self.peers {
            let pace = pace(context.node.up, &peer.config, &peer.terms);
            context.order_out(outbound::Order::Rate(*id, pace));
            context.order_in(inbound::Order::Reports(*id, wish(context, &peer.terms)));
        }
    }

    /// Takes a notice about one of them, and gives back any other.
    pub(crate) fn notice(
        &mut self,
        context: &mut ControlContext,
        notice: Notice,
        time: Time,
    ) -> Option<Notice> {
        let about = match notice {
            Notice::NeedsSa(id)
            | Notice::Confirmed(id, _)
            | Notice::Moved(id)
            | Notice::Exhausted(id, _)
            | Notice::Acknowledged(id, _)
            | Notice::HeaderRepeats(id, ..)
            | Notice::MarkLow(id, ..) => id,
            _ => return Some(notice),
        };
        let Some(peer) = self.peers.get_mut(&about) else { return Some(notice) };
        let now = Now { time, wall: (self.clock.0)() };
        match notice {
            Notice::NeedsSa(_) if peer.change.has_session() => return Some(notice),
            Notice::NeedsSa(id) => self.packets_wait(context, now, id),
            Notice::Confirmed(_, spi) if !self.keys.has((about, spi)) => return Some(notice),
            Notice::Confirmed(id, _) => self.heard_from(context, now, id),
            Notice::Moved(id) => peer.log_moves(context, id, time),
            Notice::Exhausted(id, spi) if peer.out.is(spi) => self.begin(context, now, id),
            Notice::Exhausted(..) => return Some(notice),
            Notice::Acknowledged(id, acknowledgement) => {
                self.acknowledged(context, now, id, acknowledgement);
            }
            Notice::HeaderRepeats(id, spi, _) => self.receiver.header_repeats(time, id, spi),
            Notice::MarkLow(id, spi, number) => {
                let _ = self.receiver.received(now, id, spi, number, false);
            }
            _ => {}
        }
        self.take_events(context, now, None);
        None
    }

    /// A mark is on disk.
    pub(crate) fn persisted(
        &mut self,
        context: &mut ControlContext,
        owner: MarkOwner,
        mark: u64,
        time: Time,
    ) {
        let now = self.now(time);
        match owner {
            MarkOwner::Own => {
                self.mark.persisted(mark);
                self.announce_all(context, now);
                let waits = |peer: &SessionlessPeer| peer.out.waits_for_mark() && !peer.change.has_session();
                let waiting: Vec<PeerId> =
                    self.peers.iter().filter(|(_, peer)| waits(peer)).map(|(id, _)| *id).collect();
                waiting.into_iter().for_each(|id| self.begin(context, now, id));
                self.raise_reserves(context);
            }
            MarkOwner::Peer(key) => {
                let Some(id) = self.by_key(&key) else { return };
                self.receiver.persisted(id, mark);
                for (acknowledgement, elsewhere) in self.keys.persisted(context, id, mark) {
                    self.tell(context, now, id, acknowledgement, elsewhere);
                }
            }
        }
        self.take_events(context, now, None);
    }

    /// Does what is due.
    pub(crate) fn timeout(&mut self, context: &mut ControlContext, time: Time) {
        let now = self.now(time);
        self.receiver.expire(time);
        if self.look_at.is_some_and(|at| at <= time) {
            self.look(context, now);
        }
        self.take_events(context, now, None);
    }

    /// When [`SessionlessPeers::timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let look = self.look_at.map(|at| Deadline { at, why: "limits of packet keys" });
        Deadline::earliest(look, self.receiver.deadline())
    }

    /// Looks at keys from now on.
    fn look_from(&mut self, time: Time) {
        self.look_at.get_or_insert(time + LOOK_EVERY);
    }
}

impl SessionlessPeer {
    /// Datagrams go there from now on, as this node decided.
    fn go_to(&mut self, context: &mut ControlContext, to: SocketAddr) {
        let latest = &self.config.spec.counters.endpoint;
        if latest.set(to) != Some(to) {
            self.moves.skip(latest.moves());
            context.order_out(outbound::Order::Endpoint(self.config.spec.id));
            context.order_in(inbound::Order::Place(self.config.spec.id, to));
        }
    }

    fn log_moves(&mut self, context: &mut ControlContext, id: PeerId, time: Time) {
        let latest = &self.config.spec.counters.endpoint;
        if let Some(to) = latest.get()
            && let Some(unlogged) = self.moves.line(latest.moves(), time)
        {
            context.log(ControlEvent::Moved { peer: id, to, unlogged });
        }
    }
}

/// What seals packets to a peer: what costs both ends least, as their cards say; AES-256-GCM where there is no card.
fn suite(mine: &Capabilities, card: Option<&KeyCard>) -> Suite {
    let agreed = card.and_then(|card| {
        let theirs = &card.capabilities;
        choose(&mine.ranking, &theirs.ranking, mine.suites.intersect(theirs.suites))
    });
    let usual = Suite::Aes256Gcm;
    let own = if mine.suites.contains(usual) { Some(usual) } else { mine.suites.iter().next() };
    agreed.or(own).unwrap_or(usual)
}

/// What payloads to a peer may be: the standard's if either end wants that.
fn compression(config: &PeerConfig, theirs: Option<&Capabilities>) -> Compression {
    let standard = config.format == PayloadFormat::Standard
        || theirs.is_some_and(|theirs| theirs.format == PayloadFormat::Standard);
    if standard { Compression::Deflate } else { Compression::Strait }
}

/// At the smaller of this node's rate out and the peer's rate in; found out only where reports come back.
fn pace(up: LinkRate, config: &PeerConfig, terms: &SessionlessTerms) -> Pace {
    let theirs = terms.card.as_ref().map(|card| &card.capabilities);
    let pace = Pace::between(up, theirs.map_or(LinkRate::Unpaced, |theirs| theirs.down));
    let untold = theirs.is_some_and(|theirs| theirs.delivery == DeliveryReporting::Untold);
    let standard = compression(config, theirs) != Compression::Strait;
    if untold || standard || terms.path == ReturnPath::OneWay { pace.without_reports() } else { pace }
}

fn wish(context: &ControlContext, terms: &SessionlessTerms) -> ReportWish {
    let theirs = terms.card.as_ref().map_or(ReportWish::Changes, |card| card.capabilities.reports);
    if context.node.capabilities.down == LinkRate::Auto { ReportWish::Often } else { theirs }
}

/// What this node reads from peers.
fn own_payloads(context: &ControlContext, compression: Compression) -> Payloads {
    let node = &context.node.capabilities;
    compression.payloads(node.codecs, node.block_cap)
}
