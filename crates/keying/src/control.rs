//! The control plane of one node: every session with every peer.
//!
//! ```text
//! Control       what a node calls; routes everything                              here
//! Handshakes    one channel each, begun here or by the peer                       control/handshakes.rs
//! Sessions      all peers: where they are, what they are told                     control/sessions.rs
//! PeerRecord    one peer: its two state machines, drawn there                     control/peer.rs
//! every second  limits, silence                                                   control/peer/silence.rs
//! ```

mod backoff;
mod context;
mod handshakes;
mod peer;
mod peer_table;
mod sessionless;
mod sessions;
mod spis;
mod streams;
#[cfg(test)]
pub(crate) mod tests;
mod unlisted;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use strait_clock::{Deadline, Time};
use strait_ipsec::{Notice, PeerId, Place, inbound, outbound};
use strait_scheduler::LinkRate;
use strait_wire::sessionless::Name;
use strait_wire::tos::Ecn;
use strait_wire::{Spi, Tos};

use crate::channel::{Channels, CloseCode};
use crate::directory::LookUpEnd;
use crate::sessionless::{DailyKeys, DailyRing, DailySlotWrite, KemKey, ReceiverCounts};
use crate::tls::{AllowList, draw_anew};
use crate::{Action, ControlSettings, Lifetime, PeerConfig, PeerStatus, PublicKey, SetupError, Start, Where};
pub use sessionless::{MarkOwner, SessionlessSettings, SessionlessStatus, SessionlessTerms, WallClock};

pub use peer::race::{ATTEMPT_DELAY, MOST_ADDRESSES, in_turn};

use context::ControlContext;
use handshakes::Handshakes;
use peer::{PERSEVERANCE, PeerRecord};
use peer_table::PeerTable;
use sessionless::SessionlessPeers;
use sessions::Sessions;

/// The key manager of one node.
///
/// Put in datagrams, notices, answers and time; after each, poll actions until there are none and ask
/// when it wants time next.
#[derive(Debug)]
pub struct Control {
    handshakes: Handshakes,
    sessions: Sessions,
    sessionless: Option<Box<SessionlessPeers>>,
}

impl Control {
    /// A key manager without peers.
    ///
    /// # Errors
    /// [`SetupError`] when the settings make no sense or TLS cannot be set up.
    pub fn new(settings: ControlSettings, now: Time) -> Result<Control, SetupError> {
        let lifetime = settings.lifetime;
        if !(Lifetime::SHORTEST..=Lifetime::LONGEST).contains(&lifetime.soft) {
            return Err(SetupError::Lifetime { given: lifetime.soft });
        }
        if lifetime.bytes == 0 || lifetime.packets == 0 {
            return Err(SetupError::Volume { bytes: lifetime.bytes, packets: lifetime.packets });
        }
        if settings.capabilities.suites.is_empty() {
            return Err(SetupError::NoSuite);
        }
        let allowed = Arc::new(AllowList::default());
        let channels = Channels::new(&settings, Arc::clone(&allowed), now)?;
        let mut context = ControlContext::new(settings);
        if let Some(gate) = channels.gate() {
            context.order_in(inbound::Order::Gate(gate));
        }
        Ok(Control {
            handshakes: Handshakes::new(channels),
            sessions: Sessions::new(PeerTable::new(allowed), context),
            sessionless: None,
        })
    }

    /// From now on, this node may have peers with keys that need no session; to be called once.
    pub fn begin_sessionless(&mut self, settings: SessionlessSettings) {
        let peers = self.sessionless.insert(Box::new(SessionlessPeers::new(settings)));
        self.sessions.context.order_in(inbound::Order::HeaderGate(peers.gate()));
    }

    /// Takes this node's ML-KEM key, if it has none yet.
    pub fn take_kem_key(&mut self, kem: KemKey) {
        if let Some(peers) = &mut self.sessionless {
            peers.take_kem_key(kem);
        }
    }

    /// This node's public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.sessions.public()
    }

    /// Adds a peer, in place of one with the same number or key if there is one.
    pub fn add_peer(&mut self, mut config: PeerConfig, now: Time) {
        let id = config.spec.id;
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.is(id, &config.key)) {
            peers.leave(id, now);
            let epoch = self.sessions.context.next_epoch();
            self.sessions.add_beside(PeerRecord::new(config, now, epoch));
            self.persevere(id, now);
            return self.handshakes.pump(&mut self.sessions, now);
        }
        self.make_room_for(&config, now);
        let endpoint = match config.place {
            Where::Address(address) => Some(address),
            Where::Unknown | Where::Name(_) => None,
        };
        config.spec.endpoint = endpoint;
        let eager = config.start == Start::Eager && config.place != Where::Unknown;
        let epoch = self.sessions.context.next_epoch();
        self.sessions.add(PeerRecord::new(config, now, epoch), endpoint);
        if eager {
            self.persevere(id, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Takes where a peer was heard in an earlier run. One whose place nothing else tells is tried there, once; to others it is the second
    /// place, which is tried where the first does not answer. It counts until there is a session. Packets to a peer with which keys need no
    /// session go there until it is heard elsewhere.
    pub fn remember_place(&mut self, id: PeerId, at: SocketAddr, now: Time) {
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.has(id)) {
            return peers.remember_place(&mut self.sessions.context, id, at);
        }
        self.sessions.remember_place(id, at, now);
        self.handshakes.begin(&mut self.sessions, id, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Changes what a peer was told; its associations stay unless its key or MTU changes.
    pub fn update_peer(&mut self, mut config: PeerConfig, now: Time) {
        let id = config.spec.id;
        // It was to do without a session, and is not any more.
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.stays(id)) {
            if self.sessions.peers.get(id).is_none() {
                return self.add_peer(config, now);
            }
            peers.forget(&mut self.sessions.context, id, now);
        }
        let Some((peer, _)) = self.sessions.with(id) else { return self.add_peer(config, now) };
        if peer.config.key != config.key || peer.config.spec.mtu != config.spec.mtu {
            return self.add_peer(config, now);
        }
        let moved = peer.config.place != config.place;
        let joined = peer.pairs.in_use().is_some();
        let eager = moved && !joined && config.start == Start::Eager;
        // Sender and receiver have these.
        config.spec.counters = Arc::clone(&peer.config.spec.counters);
        peer.config = config;
        // What the resolver says of the former name is not waited for.
        if moved && peer.initiation.channel().is_none() {
            peer.initiation.give_way();
        }
        match peer.config.place {
            Where::Address(address) if moved => self.sessions.move_to(id, address),
            Where::Name(_) if moved => peer.initiation.distrust_address(),
            _ => {}
        }
        if moved && !joined {
            self.handshakes.begin_elsewhere(&mut self.sessions, id, now);
        }
        if eager {
            self.persevere(id, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Adds a peer with which keys need no session, in place of one with the same number or key if there is one. There are none before
    /// [`Control::begin_sessionless`].
    ///
    /// A peer that has a session keeps it until it is known to do without one.
    pub fn add_sessionless(&mut self, config: PeerConfig, terms: SessionlessTerms, now: Time) {
        let has_session = self.sessions.peers.get(config.spec.id).is_some_and(|peer| {
            let same = (peer.config.key, peer.config.spec.mtu) == (config.key, config.spec.mtu);
            same && peer.pairs.in_use().is_some()
        });
        if let Some(peers) =
            self.sessionless.as_mut().filter(|peers| has_session && !peers.has(config.spec.id))
        {
            peers.take_over(&mut self.sessions.context, config, terms, now);
            return self.handshakes.pump(&mut self.sessions, now);
        }
        self.make_room_for(&config, now);
        if let Some(peers) = &mut self.sessionless {
            peers.add(&mut self.sessions.context, config, terms, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Changes what is said of such a peer.
    pub fn update_sessionless(&mut self, config: PeerConfig, terms: SessionlessTerms, now: Time) {
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.stays(config.spec.id)) {
            peers.update(&mut self.sessions.context, config, terms, now);
            return self.handshakes.pump(&mut self.sessions, now);
        }
        self.add_sessionless(config, terms, now);
    }

    /// Takes a datagram of a peer without a session, which begins with a header or is a key packet; false where this node has no such
    /// peers, so that it is an unknown datagram.
    #[must_use]
    pub fn sessionless_datagram(&mut self, from: impl Into<Place>, tos: Tos, data: &[u8], now: Time) -> bool {
        match &mut self.sessionless {
            Some(peers) => {
                peers.datagram(&mut self.sessions.context, from.into(), tos, data, now);
                true
            }
            None => false,
        }
    }

    /// Takes that a mark is on disk, as [`Action::PersistMark`] asked.
    pub fn mark_persisted(&mut self, owner: MarkOwner, mark: u64, now: Time) {
        if let Some(peers) = &mut self.sessionless {
            peers.persisted(&mut self.sessions.context, owner, mark, now);
        }
    }

    /// Takes daily keys that a node published, from where they were verified.
    pub fn learn_daily_keys(&mut self, keys: DailyKeys, now: Time) {
        if let Some(peers) = &mut self.sessionless {
            peers.learn_daily_keys(&mut self.sessions.context, keys, now);
        }
    }

    /// Forgets the daily keys of a node.
    pub fn forget_daily_keys(&mut self, node: &PublicKey) {
        if let Some(peers) = &mut self.sessionless {
            peers.forget_daily_keys(node);
        }
    }

    /// Wipes secrets of days that are over and makes those of days to come, if it is time; to be called every minute. Gives what is to be
    /// on disk before anything is published; nothing where nothing has changed. `seed` is 32 bytes of the system's randomness that serve
    /// nothing else.
    pub fn roll_daily_keys(&mut self, seed: &[u8; 32], now: Time) -> Vec<DailySlotWrite> {
        self.sessionless.as_mut().map(|peers| peers.roll_daily_keys(seed, now)).unwrap_or_default()
    }

    /// What this node is to publish, signed now; nothing of one that has no daily keys.
    pub fn sign_daily_keys(&mut self, now: Time) -> Option<DailyKeys> {
        self.sessionless.as_mut()?.sign_daily_keys(now)
    }

    /// Daily keys, as they are.
    #[must_use]
    pub fn daily_keys(&self) -> Option<&DailyRing> {
        self.sessionless.as_ref().map(|peers| peers.daily())
    }

    /// What can be shown of a peer with which keys need no session.
    #[must_use]
    pub fn sessionless_status(&self, peer: PeerId) -> Option<SessionlessStatus> {
        self.sessionless.as_ref()?.status(&self.sessions.context, peer)
    }

    /// What such peers share; nothing of a node that has none.
    #[must_use]
    pub fn sessionless_counts(&self) -> Option<ReceiverCounts> {
        self.sessionless.as_ref().map(|peers| peers.counts())
    }

    /// Whether peers are asked nothing and told nothing unasked from now on: silence is no reason for a probe or a handshake.
    pub const fn be_quiet(&mut self, quiet: bool) {
        self.sessions.context.node.quiet = quiet;
    }

    /// Another link: peers are paced by its rate out from now on, and told its rate in.
    pub fn set_link(&mut self, up: LinkRate, down: LinkRate, now: Time) {
        self.sessions.set_link(up, down);
        if let Some(peers) = &self.sessionless {
            peers.set_link(&mut self.sessions.context);
        }
        self.handshakes.channels.set_link(up, self.sessions.estimate(), now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Forgets all keys, since another copy of this machine may go on with them: associations are withdrawn, connections dropped without a
    /// word, which would be sealed with their keys, and what is made from now on comes from `seed`, 32 bytes of the system's randomness
    /// that no other copy has and that serve nothing else. Peers with keys get others at once.
    pub fn renew(&mut self, seed: &[u8; 32], now: Time) {
        draw_anew();
        self.handshakes.renew(&mut self.sessions.context, seed);
        self.sessions.context.renew(seed);
        for id in self.sessions.ids() {
            self.with_peer(id, now, |peer, context| peer.renew(now, context));
        }
        if let Some(peers) = &mut self.sessionless {
            peers.renew(&mut self.sessions.context, seed, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Removes a peer: its associations go and its key is refused from now on.
    pub fn remove_peer(&mut self, peer: PeerId, now: Time) {
        self.remove(peer, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Takes so many nodes at once that are no peers, from now on: each becomes a peer without addresses, of which
    /// [`Action::Unlisted`] tells. With 0, those that are there go.
    pub fn take_unlisted(&mut self, most: usize, now: Time) {
        self.sessions.unlisted.take_at_most(most);
        self.sessions.peers.allow_any(most > 0 || self.sessions.context.looks_up);
        if most == 0 {
            let all: Vec<PeerId> =
                self.sessions.peers.ids().filter(|id| unlisted::is_unlisted(*id)).collect();
            all.into_iter().for_each(|id| self.remove_peer(id, now));
        }
    }

    /// Has the certificates of nodes that are no peers looked up from now on, once they have shown what costs them something: a handshake
    /// waits for [`Control::looked_up`], and so do packets under a header.
    pub fn look_up_strangers(&mut self) {
        self.sessions.context.looks_up = true;
        self.sessions.peers.allow_any(true);
    }

    /// Takes how the look-up ended that [`Action::LookUp`] asked for. A good certificate has made a peer before this is called.
    pub fn looked_up(&mut self, name: Name, end: LookUpEnd, now: Time) {
        if let Some(peers) = &mut self.sessionless {
            peers.looked_up(name, end, now);
        }
        self.handshakes.certificate_answer(&mut self.sessions, name, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Forgets which senders are not known: something newer was heard of certificates.
    pub fn forget_unknown(&mut self) {
        if let Some(peers) = &mut self.sessionless {
            peers.forget_unknown();
        }
    }

    /// Keeps `spis`, which others receive with, out of what is handed out from now on; says which of them a session
    /// has, in which case nothing changes.
    pub fn set_aside(&mut self, spis: BTreeSet<Spi>) -> Option<Spi> {
        self.sessions.context.spis.set_aside(spis)
    }

    /// Takes a QUIC datagram from the network.
    pub fn datagram(&mut self, from: impl Into<Place>, ecn: Ecn, data: &[u8], now: Time) {
        self.handshakes.channels.datagram(from.into(), ecn, data, now);
        self.handshakes.pump(&mut self.sessions, now);
        self.change_keying(now);
    }

    /// Takes that the handshake which this node began with a peer at `to` cannot leave: this host has no address for that but one of the
    /// tunnel's.
    pub fn no_source(&mut self, peer: PeerId, to: SocketAddr, tunnel: IpAddr, now: Time) {
        self.handshakes.cannot_leave(&mut self.sessions, (peer, to), tunnel, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Takes what the data plane noticed.
    pub fn notice(&mut self, notice: Notice, now: Time) {
        let notice = match &mut self.sessionless {
            Some(peers) => peers.notice(&mut self.sessions.context, notice, now),
            None => Some(notice),
        };
        let Some(notice) = notice else { return self.change_keying(now) };
        match notice {
            Notice::Moved(id) => self.sessions.note_endpoint(id, now),
            Notice::Slower(times) => self.sessions.slowed(times),
            Notice::UnknownSpi(from, _) => {
                if let Some(id) = self.sessions.unknown_spi(from, now) {
                    self.handshakes.begin(&mut self.sessions, id, now);
                }
            }
            Notice::NeedsSa(id) => self.with_peer(id, now, |peer, context| peer.packets_wait(now, context)),
            Notice::Confirmed(id, spi) => {
                self.handshakes.confirmed(&mut self.sessions, id, spi, now);
                self.handshakes.begin(&mut self.sessions, id, now);
            }
            Notice::Exhausted(id, spi) => self.with_peer(id, now, |peer, _| peer.exhausted(spi, now)),
            Notice::Reported(id, condition) => {
                self.with_peer(id, now, |peer, context| peer.reported(condition, context));
            }
            Notice::Stopped(id, spi) => self.hear_goodbye(id, spi, now),
            Notice::NeedsPeer(_)
            | Notice::Lane(_)
            | Notice::InnerMtu(..)
            | Notice::Explained(_)
            | Notice::Decided(_)
            | Notice::Acknowledged(..)
            | Notice::HeaderRepeats(..)
            | Notice::MarkLow(..) => {}
        }
        self.handshakes.pump(&mut self.sessions, now);
        self.change_keying(now);
    }

    /// Ends sessions that are not needed any more, and packet keys where there is a session again.
    fn change_keying(&mut self, now: Time) {
        let Some(peers) = &mut self.sessionless else { return };
        for id in peers.take_freed() {
            let spis = self.sessions.let_go(id);
            self.handshakes.close_all(id, CloseCode::Stranger, now);
            peers.fade(id, spis.into_iter(), now);
        }
        for id in peers.leaving() {
            let session = self.sessions.peers.get(id);
            if session.is_some_and(|peer| peer.pairs.in_use().is_some()) {
                peers.retire(id, now);
            }
        }
    }

    /// Tells all peers that there is a session with, or a handshake under way, that this node is being stopped.
    pub fn say_goodbye(&mut self, now: Time) {
        for id in self.sessions.ids() {
            if self.sessions.peers.get(id).is_some_and(|peer| peer.pairs.in_use().is_some()) {
                self.sessions.context.order_out(outbound::Order::Goodbye(id));
            } else {
                self.handshakes.close_all(id, CloseCode::GaveUp, now);
            }
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Takes the answer to [`Action::Resolve`] for `name`: its addresses, of which [`MOST_ADDRESSES`] are tried, in
    /// [turn](in_turn); the error is what the resolver said. An answer that no attempt [waits for](Control::is_looking_up) changes
    /// nothing.
    ///
    /// # Errors
    /// None of its own: an `answer` that is an error counts as a failed attempt.
    pub fn resolved(&mut self, peer: PeerId, name: &str, answer: Result<Vec<SocketAddr>, String>, now: Time) {
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.is_looking_up(peer, name)) {
            peers.resolved(&mut self.sessions.context, peer, name, answer);
        } else if self.is_looking_up(peer, name) {
            self.handshakes.looked_up(&mut self.sessions, peer, answer, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// This host has other links, addresses or routes, or asks another resolver: no attempt waits for the failures before.
    pub fn outside_changed(&mut self, now: Time) {
        self.handshakes.resume(&mut self.sessions, now);
        if let Some(peers) = &mut self.sessionless {
            peers.resume(&mut self.sessions.context);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// The last [`Action::Resolve`] for `peer` will have no answer: if that is waited for, the name is looked up again.
    pub fn look_up_again(&mut self, peer: PeerId, now: Time) {
        if let Some(peers) = &mut self.sessionless {
            peers.look_up_again(&mut self.sessions.context, peer);
        }
        self.handshakes.look_up_again(&mut self.sessions, peer, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Datagrams to `peer` take another way from now on: a handshake that is under way begins anew, and one that waits at once.
    pub fn route_changed(&mut self, peer: PeerId, now: Time) {
        if self.sessions.peers.get(peer).is_some_and(|peer| !peer.initiation.is_resolving()) {
            self.handshakes.begin_elsewhere(&mut self.sessions, peer, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Whether an attempt to reach `peer` waits for the address of `name`. It does not once the attempt took too long, or
    /// the peer has another name or an address.
    #[must_use]
    pub fn is_looking_up(&self, peer: PeerId, name: &str) -> bool {
        self.sessions.peers.get(peer).is_some_and(|peer| peer.is_looking_up(name))
            || self.sessionless.as_ref().is_some_and(|peers| peers.is_looking_up(peer, name))
    }

    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Time) {
        self.handshakes.channels.timeout(now);
        self.handshakes.pump(&mut self.sessions, now);
        self.handshakes.give_up(&mut self.sessions, now);
        self.handshakes.connect_further(&mut self.sessions, now);
        if self.sessions.context.tick_at.is_some_and(|at| at <= now) {
            self.watch(now);
        }
        for id in self.sessions.ids() {
            self.with_peer(id, now, |peer, context| peer.keep_alive(now, context));
        }
        if let Some(peers) = &mut self.sessionless {
            peers.timeout(&mut self.sessions.context, now);
        }
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// When [`Control::timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let sessionless = self.sessionless.as_ref().and_then(|peers| peers.poll_timeout());
        Deadline::earliest(
            Deadline::earliest(self.handshakes.poll_timeout(), self.sessions.deadline()),
            sessionless,
        )
    }

    /// What has to be done next, to be polled until there is nothing after every other call.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.sessions.context.actions.pop_front()
    }

    /// What can be shown of a peer.
    #[must_use]
    pub fn status(&self, peer: PeerId) -> Option<PeerStatus> {
        let sessionless = || self.sessionless.as_ref()?.peer_status(&self.sessions.context, peer);
        let session = self.sessions.peers.get(peer).map(|peer| peer.status(self.sessions.context.node.up));
        session.or_else(sessionless)
    }

    /// The peers there are: those with sessions by number, then the others.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        let sessionless = self.sessionless.iter().flat_map(|peers| peers.ids());
        self.sessions.peers.ids().chain(sessionless)
    }

    /// Connections of the control channel that have not faded yet.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.handshakes.channels.len()
    }

    /// Looks at the associations of all peers.
    fn watch(&mut self, now: Time) {
        for id in self.sessions.ids() {
            self.with_peer(id, now, |peer, context| {
                peer.pairs.fade_out(now, context);
                peer.check_limits(now, context);
            });
            self.with_peer(id, now, |peer, context| {
                if !context.node.quiet {
                    peer.check_silence(now, context);
                    peer.check_unanswered(now, context);
                }
                peer.report(context);
            });
            self.sessions.note_endpoint(id, now);
        }
        if self.sessions.context.node.up == LinkRate::Auto {
            self.handshakes.channels.set_link(LinkRate::Auto, self.sessions.estimate(), now);
        }
        self.sessions.tick_again(now);
    }

    /// Changes a peer, then begins the attempt that is due for it, if one is.
    fn with_peer(
        &mut self,
        id: PeerId,
        now: Time,
        change: impl FnOnce(&mut PeerRecord, &mut ControlContext),
    ) {
        if let Some((peer, context)) = self.sessions.with(id) {
            change(peer, context);
            self.handshakes.begin(&mut self.sessions, id, now);
        }
    }

    /// Tries to reach a peer that is new or has a new address.
    fn persevere(&mut self, id: PeerId, now: Time) {
        self.with_peer(id, now, |peer, _| peer.initiation.want(now + PERSEVERANCE));
    }

    /// Removes whom a peer that is added replaces.
    fn make_room_for(&mut self, config: &PeerConfig, now: Time) {
        let by_key = self.sessionless.as_ref().and_then(|peers| peers.by_key(&config.key));
        for taken in
            [Some(config.spec.id), self.sessions.peers.by_key(config.key), by_key].into_iter().flatten()
        {
            self.remove(taken, now);
        }
    }

    fn remove(&mut self, id: PeerId, now: Time) {
        if let Some(peers) = self.sessionless.as_mut().filter(|peers| peers.has(id)) {
            peers.remove(&mut self.sessions.context, id, now);
        }
        if self.sessions.remove(id) {
            self.handshakes.close_all(id, CloseCode::Stranger, now);
        }
    }
}
