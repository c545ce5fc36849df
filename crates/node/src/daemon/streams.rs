//! Streams between peers and the processes of this host: what this process does for both is to carry their bytes.
//!
//! ```text
//! a local client   asks for a stream over the local socket; then its connection is the stream        local.rs
//! a peer           opens one; its first bytes name the service, whose process gets it                services.rs
//! one stream       bytes between QUIC and a Unix socket, a bounded buffer each way                   streams/socket.rs
//! ```
//!
//! Nothing here opens a path that a client or a peer names.

mod head;
mod socket;
mod unlisted;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use strait_clock::Time;
use strait_ipsec::{LanePacket, PeerCounters, PeerId, Place, StreamTrain};
use strait_kerberos::{BINDING_LABEL, Binding};
use strait_keying::Control;
use strait_scheduler::{Budget, Rate};
use strait_stream::{StreamEvent, StreamKey, StreamLost, StreamPriority, StreamSettings, Streams};
use tokio::net::UnixStream;

use super::ServiceChannels;
use crate::config::PeerSection;
use crate::local::{Answer, KerberosWay};
use crate::services::UNLISTED;
use head::PendingHead;
use socket::RelaySocket;
use unlisted::UnlistedNodes;

/// The service of logins, by the first byte of a stream, and that of logins behind Kerberos.
const LOGIN: u8 = 2;
const KERBEROS_LOGIN: u8 = 4;

/// The service of a broker.
const BROKER: u8 = 3;

/// Streams of a peer that reach a process: so many a second, and at once as many as its connection may have. Two processes are made for a
/// login, which takes a thousandth of a second.
const GIVEN: u64 = 10;
const GIVEN_BURST: u64 = 64;

/// What a client wants: its socket, which is answered and becomes the stream.
#[derive(Debug)]
pub(super) struct OpeningStream {
    pub(super) client: UnixStream,
    /// Whether it is told what Kerberos needs.
    pub(super) kerberos: bool,
    /// The peer, once that is known.
    pub(super) peer: Option<PeerId>,
}

/// All streams of a node, and the sockets that they go to.
#[derive(Debug)]
pub(super) struct StreamRelay {
    core: Streams,
    sockets: BTreeMap<StreamKey, RelaySocket>,
    /// Clients whose streams are not open yet.
    opening: BTreeMap<StreamKey, OpeningStream>,
    /// Streams of peers that have not named a service yet, or asked nothing of it.
    heads: BTreeMap<StreamKey, PendingHead>,
    /// The time at which these are looked at.
    heads_at: Option<Time>,
    /// Streams of each peer that may reach a process.
    budgets: BTreeMap<PeerId, Budget>,
    /// The names of peers.
    names: BTreeMap<PeerId, String>,
    /// The names that their services have with Kerberos, as far as the configuration has them.
    kerberos: BTreeMap<PeerId, String>,
    unlisted: UnlistedNodes,
    /// The processes that serve peers.
    services: ServiceChannels,
}

impl StreamRelay {
    /// No streams; those of peers go to `services`, or nowhere.
    pub(super) fn new(
        settings: StreamSettings,
        services: ServiceChannels,
        control: &mut Control,
    ) -> StreamRelay {
        let core = Streams::new(settings);
        control.serve_streams(core.transport());
        StreamRelay {
            core,
            sockets: BTreeMap::new(),
            opening: BTreeMap::new(),
            heads: BTreeMap::new(),
            heads_at: None,
            budgets: BTreeMap::new(),
            names: BTreeMap::new(),
            kerberos: BTreeMap::new(),
            unlisted: UnlistedNodes::default(),
            services,
        }
    }

    pub(super) fn add_peer(&mut self, id: PeerId, peer: &PeerSection, counters: Arc<PeerCounters>) {
        self.names.insert(id, peer.name.clone());
        match &peer.kerberos {
            Some(service) => drop(self.kerberos.insert(id, service.clone())),
            None => drop(self.kerberos.remove(&id)),
        }
        self.core.add_peer(id, counters);
    }

    pub(super) fn remove_peer(&mut self, id: PeerId, now: Time) {
        self.names.remove(&id);
        self.kerberos.remove(&id);
        self.budgets.remove(&id);
        self.core.remove_peer(id, now);
    }

    /// A node that is not listed may open streams to the service that begins with Kerberos.
    pub(super) fn add_unlisted(&mut self, id: PeerId, counters: Arc<PeerCounters>, now: Time) {
        self.core.add_peer(id, counters);
        self.unlisted.add(id, now);
    }

    /// Nodes that are not listed.
    pub(super) fn unlisted(&self) -> u64 {
        self.unlisted.count()
    }

    /// Forgets those of them that had no stream for a while, or that the key manager forgot; says which.
    pub(super) fn forget_unlisted(&mut self, control: &Control, now: Time) -> Vec<PeerId> {
        let (core, sockets) = (&self.core, &self.sockets);
        // A stream that has named no service keeps no place.
        let served = |id| sockets.keys().any(|key| core.peer_of(*key) == Some(id));
        let gone = self.unlisted.look(served, |id| control.status(id).is_some(), now);
        for id in &gone {
            self.budgets.remove(id);
            self.core.remove_peer(*id, now);
        }
        gone
    }

    /// The configuration was read again.
    pub(super) fn config_changed(&self) {
        for service in self.services.all() {
            if let Err(error) = service.tell_changed() {
                tracing::warn!("a process that serves peers does not hear of the configuration: {error}");
            }
        }
    }

    /// A client wants a stream to the peer called `name`; its socket is answered and becomes the stream, or is closed.
    pub(super) fn open(&mut self, name: &str, priority: StreamPriority, wanted: OpeningStream, now: Time) {
        let found = self.names.iter().find(|(_, its)| *its == name).map(|(id, _)| *id);
        let unknown = || StreamLost::NoConnection(format!("no peer is called `{name}`"));
        match found.ok_or_else(unknown).and_then(|peer| self.core.open(peer, priority, now)) {
            Ok(key) => drop(self.opening.insert(key, OpeningStream { peer: found, ..wanted })),
            Err(lost) => answer(&wanted.client, &refused(&lost)),
        }
    }

    /// When something is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let core = self.core.poll_timeout().map(|deadline| deadline.at);
        core.into_iter().chain(self.unlisted.due()).chain(self.heads_at).min()
    }

    pub(super) fn timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.core.timeout(now);
        }
        if self.heads_at.is_some_and(|at| at <= now) {
            self.heads_at = None;
            let waiting: Vec<StreamKey> = self.heads.keys().copied().collect();
            waiting.into_iter().for_each(|key| self.read_head(key, now));
        }
    }

    /// Waits until a socket has something to be read, or takes what waits for it.
    pub(super) async fn ready(&self) {
        std::future::poll_fn(|context| {
            let mut ready = false;
            for socket in self.sockets.values() {
                ready |= socket.poll_ready(context).is_ready();
            }
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Carries what there is, both ways, as far as there is room.
    pub(super) fn carry(&mut self, control: &mut Control, now: Time) {
        loop {
            self.core.drive(control, now);
            let mut quiet = true;
            while let Some(event) = self.core.poll_event() {
                quiet = false;
                self.take(event, control, now);
            }
            let core = &mut self.core;
            self.sockets.retain(|key, socket| socket.carry(core, *key, now));
            if quiet {
                return;
            }
        }
    }

    /// Takes what came inside ESP for a stream.
    pub(super) fn lane(&mut self, packet: &LanePacket, now: Time) {
        self.core.lane(packet, now);
    }

    /// Cuts all streams without a word to the peers, together with the key manager.
    pub(super) fn renew(&mut self) {
        self.core.renew();
    }

    /// Tells peers that this node ends: datagrams that are to leave at once.
    pub(super) fn close(&mut self, now: Time) -> Vec<(Place, Box<[u8]>)> {
        self.core.close_all(now)
    }

    /// The next datagrams for the sender.
    pub(super) fn next_train(&mut self, now: Time) -> Option<Box<StreamTrain>> {
        self.core.next_train(now)
    }

    fn take(&mut self, event: StreamEvent, control: &Control, now: Time) {
        match event {
            StreamEvent::Accepted { peer, key, stream } => {
                self.heads.insert(stream, PendingHead::new(peer, key, now));
                self.read_head(stream, now);
            }
            StreamEvent::Readable(key) => self.read_head(key, now),
            StreamEvent::Writable(key) => {
                if let Some(opening) = self.opening.remove(&key) {
                    let kerberos = opening.kerberos.then(|| self.kerberos_way(key, opening.peer)).flatten();
                    let rate_bits = self.core.rate(key).map(Rate::bits);
                    answer(&opening.client, &Answer::Connected { rate_bits, kerberos });
                    self.sockets.insert(key, RelaySocket::new(opening.client, Vec::new()));
                }
            }
            StreamEvent::Delivered(_) => {}
            StreamEvent::Lost(key, lost) => {
                self.heads.remove(&key);
                if let Some(opening) = self.opening.remove(&key) {
                    let failed = opening.peer.and_then(|peer| no_session(control, peer));
                    answer(&opening.client, &refused(&failed.unwrap_or(lost.clone())));
                }
                // Closed without its end being said: what came of it is not all.
                if !self.sockets.get_mut(&key).is_some_and(|socket| socket.lost(&lost, now)) {
                    self.sockets.remove(&key);
                }
            }
        }
    }

    /// What an exchange of Kerberos on the stream is bound to.
    fn binding(&self, key: StreamKey) -> Option<Binding> {
        self.core.export(key, BINDING_LABEL).ok().map(Binding::new)
    }

    fn kerberos_way(&self, key: StreamKey, peer: Option<PeerId>) -> Option<KerberosWay> {
        let service = peer.and_then(|peer| self.kerberos.get(&peer)).cloned();
        Some(KerberosWay { binding: self.binding(key)?, service })
    }

    /// Gives a stream of a peer to the process that serves it, once it has named the service and asks something of it.
    fn read_head(&mut self, key: StreamKey, now: Time) {
        let Some(pending) = self.heads.get_mut(&key) else { return };
        let budget = self.budgets.entry(pending.peer).or_insert_with(|| Budget::new(GIVEN, GIVEN_BURST));
        let asks = match pending.read(&mut self.core, key, now) {
            Some(false) => false,
            Some(true) if budget.take(1, now) => true,
            // It says no more, or the budget of its peer is spent.
            unready if now < pending.until => {
                let at = unready.and(budget.room_at(1)).map_or(pending.until, |at| at.min(pending.until));
                self.heads_at = Some(self.heads_at.map_or(at, |other| other.min(at)));
                return;
            }
            _ => false,
        };
        let pending = self.heads.remove(&key).filter(|_| asks);
        match pending.and_then(|pending| self.give(key, &pending)) {
            Some(socket) => drop(self.sockets.insert(key, socket)),
            None => {
                tracing::debug!(
                    "a stream of a peer was refused: nothing here serves it, or it asked for nothing"
                );
                self.core.give_up_stream(key);
            }
        }
    }

    /// Gives a stream to the process that serves it.
    fn give(&mut self, key: StreamKey, pending: &PendingHead) -> Option<RelaySocket> {
        let peer = self.names.get(&pending.peer).map(String::as_str);
        let unlisted = peer.is_none() && self.unlisted.has(pending.peer);
        let peer = peer.or(unlisted.then_some(UNLISTED))?;
        let (mut named, request) = pending.named(peer, self.core.remote(key)?, self.core.rate(key))?;
        // Whatever else is served, is for peers.
        if unlisted && named.service != KERBEROS_LOGIN {
            return None;
        }
        let is_login = [LOGIN, KERBEROS_LOGIN].contains(&named.service);
        if is_login {
            // What a key brings does not wait behind files.
            self.core.set_priority(key, StreamPriority::Now);
        }
        if named.service == KERBEROS_LOGIN {
            named.binding = Some(self.binding(key)?);
        }
        let service = match named.service {
            LOGIN | KERBEROS_LOGIN => &self.services.login,
            BROKER => &self.services.broker,
            _ => &self.services.files,
        };
        let service = service.as_ref()?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().ok()?;
        ours.set_nonblocking(true).ok()?;
        service.give(&named, &theirs).ok()?;
        let socket = UnixStream::from_std(ours).ok()?;
        // A login ends when its client gave it up, and waits for one that was lost.
        Some(if is_login { RelaySocket::telling(socket, request) } else { RelaySocket::new(socket, request) })
    }
}

/// Returns why there is no session with a peer, if the last attempt says so: that is why it has no stream.
fn no_session(control: &Control, peer: PeerId) -> Option<StreamLost> {
    let status = control.status(peer).filter(|status| status.association.is_none())?;
    Some(StreamLost::NoConnection(status.last_failure?.0.to_string()))
}

fn refused(lost: &StreamLost) -> Answer {
    Answer::Refused { message: lost.to_string() }
}

/// Tells a client why it gets no stream.
pub(super) fn refuse(client: &UnixStream, why: &str) {
    answer(client, &refused(&StreamLost::NoConnection(why.to_owned())));
}

/// Answers a client, whose socket has room for a line. One that is gone changes nothing.
fn answer(client: &UnixStream, answer: &Answer) {
    if let Ok(mut text) = serde_json::to_string(answer) {
        text.push('\n');
        let _ = client.try_write(text.as_bytes());
    }
}
