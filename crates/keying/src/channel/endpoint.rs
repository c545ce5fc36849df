//! All QUIC connections of a node: datagrams in, signals and datagrams out.

mod guests;
mod streams;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointEvent, Event, ServerConfig, Transmit,
    TransportConfig, VarInt,
};
use strait_clock::{Deadline, Time};
use strait_ipsec::inbound::{DatagramGate, GateVerdict};
use strait_ipsec::outbound::Via;
use strait_ipsec::{Place, Reason, Source};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::tos::Ecn;
use zeroize::Zeroizing;

use super::admission;
use super::answers::AnswerBudgets;
use super::lent::StreamService;
use super::table::ChannelTable;
use super::transport::{self, CidMark, Epoch, HANDSHAKE_CID, TokenClock};
use super::{Channel, ChannelId, CloseCode, Closed, NoExport, Signal, Voice};
use crate::agreement::EXPORT_LEN;
use crate::keystream::Keystream;
use crate::tls::{AllowList, HANDSHAKE, SERVER_NAME, STREAMS, Tls};
use crate::token::TokenGate;
use crate::{ControlSettings, Message, PublicKey, Role, SetupError};

/// How long a channel lives at most, whatever its peer does: an attempt's 10 s and time to close.
const LIFE: Duration = Duration::from_secs(15);

/// Age of a channel from which routers may fragment its datagrams: the first of them, sent again, would be lost on a path over IPv4
/// that takes no 1,200 bytes (RFC 9002 section 6.2.2: the first is sent again after 1 s).
const LAST_RESORT: Duration = Duration::from_millis(900);

/// Why a connection cannot even be begun.
#[derive(Debug)]
pub(crate) enum CannotConnect {
    /// QUIC has something against the address.
    Address,
    /// TLS cannot be set up.
    Tls(SetupError),
}

/// A datagram to send.
#[derive(Debug)]
pub(crate) struct OutgoingDatagram {
    pub(crate) to: Place,
    pub(crate) bytes: Box<[u8]>,
    pub(crate) via: Via,
    /// Whether it goes to a sender that has not proved a key.
    pub(crate) strange: bool,
}

/// All QUIC connections of a node.
pub(crate) struct Channels {
    epoch: Epoch,
    clock: Arc<TokenClock>,
    endpoint: Endpoint,
    tls: Tls,
    /// That of handshakes that begin elsewhere, and of connections for streams.
    servers: [Arc<QuicServerConfig>; 2],
    cids: Keystream,
    mark: Arc<CidMark>,
    streams: StreamService,
    table: ChannelTable,
    signals: VecDeque<(ChannelId, Signal)>,
    answers: AnswerBudgets,
    gate: Option<Arc<TokenGate>>,
    /// Whether a handshake was let in whose sender's datagrams are expected from now on.
    admitted: bool,
    transmits: VecDeque<OutgoingDatagram>,
    buffer: Vec<u8>,
}

impl core::fmt::Debug for Channels {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Channels").field("open", &self.table.len()).finish_non_exhaustive()
    }
}

impl Channels {
    pub(crate) fn new(
        settings: &ControlSettings,
        allowed: Arc<AllowList>,
        now: Time,
    ) -> Result<Channels, SetupError> {
        let tls = Tls::new(&settings.identity)?;
        let clock = Arc::new(TokenClock::default());
        clock.set(now);
        let servers =
            [tls.server(Arc::clone(&allowed), HANDSHAKE)?, tls.server(Arc::clone(&allowed), STREAMS)?];
        let mark = Arc::new(CidMark::default());
        let (endpoint, streams) = ends(&servers, &clock, &mark, &settings.seed);
        let gate =
            settings.token.clone().map(|token| TokenGate { token, public: settings.identity.public() });
        Ok(Channels {
            epoch: Epoch::new(settings.base),
            clock,
            endpoint,
            tls,
            servers,
            mark,
            streams: StreamService::new(streams),
            cids: Keystream::new(&settings.seed, "first connection id"),
            table: ChannelTable::default(),
            signals: VecDeque::new(),
            gate: gate.map(Arc::new),
            answers: AnswerBudgets::new(settings.up, Arc::clone(&settings.counters)),
            admitted: false,
            transmits: VecDeque::new(),
            buffer: Vec::new(),
        })
    }

    /// Forgets all connections without a word to their other ends; those to come are made from `seed`.
    pub(crate) fn begin_anew(&mut self, seed: &[u8; 32]) {
        self.mark = Arc::new(CidMark::default());
        let (endpoint, streams) = ends(&self.servers, &self.clock, &self.mark, seed);
        self.endpoint = endpoint;
        self.streams.renew(streams);
        self.cids = Keystream::new(seed, "first connection id");
        self.table.clear();
        self.signals.clear();
        self.transmits.clear();
    }

    /// Begins a handshake with the node that has `key`, at `to`.
    pub(crate) fn connect(
        &mut self,
        to: Place,
        key: PublicKey,
        now: Time,
    ) -> Result<ChannelId, CannotConnect> {
        let tls = self.tls.client(key, HANDSHAKE).map_err(CannotConnect::Tls)?;
        self.connect_with(to, key, (tls, transport::transport(Role::Initiator), HANDSHAKE_CID), now)
    }

    /// Begins a connection with this TLS and transport, whose first destination id has so many bytes.
    fn connect_with(
        &mut self,
        to: Place,
        key: PublicKey,
        (tls, transport, cid): (Arc<QuicClientConfig>, Arc<TransportConfig>, usize),
        now: Time,
    ) -> Result<ChannelId, CannotConnect> {
        let prove = |first: &[u8]| {
            let proof = self.gate.as_ref().map(|gate| gate.token.proof(key, first));
            proof.map_or_else(Bytes::new, |proof| Bytes::copy_from_slice(&proof))
        };
        let first = self.cids.next_block();
        let config = transport::client(tls, transport, first.get(..cid).unwrap_or_default(), prove);
        let mark = self.begin_mark();
        let connected = self.endpoint.connect(self.epoch.instant(now), config, to.remote, SERVER_NAME);
        let (handle, connection) = connected.map_err(|_| CannotConnect::Address)?;
        Ok(self.table.add(Channel::new(handle, connection, None, to.local, now), mark))
    }

    /// What the ids of the next connection begin with.
    fn begin_mark(&mut self) -> u32 {
        loop {
            let mark = self.cids.next_u64() as u32;
            if !self.table.has_mark(mark) {
                self.mark.set(mark);
                return mark;
            }
        }
    }

    /// Takes a datagram from the network.
    pub(crate) fn datagram(&mut self, from: Place, ecn: Ecn, data: &[u8], now: Time) {
        self.clock.set(now);
        let look = self.gate.as_ref().map(|gate| gate.look(data));
        if look == Some(GateVerdict::Refused) {
            return self.answers.refuse(Reason::NoToken);
        }
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let at = self.epoch.instant(now);
        let mut buffer = core::mem::take(&mut self.buffer);
        buffer.clear();
        match self.endpoint.handle(at, from.remote, from.local, ecn, BytesMut::from(data), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(ConnectionHandle(handle), event)) => {
                if let Some((id, channel)) = self.table.by_handle(handle) {
                    // The rest of the handshake stays where the first answer came.
                    channel.local = channel.local.or(from.local);
                    channel.connection.handle_event(event);
                    if channel.voice == Voice::Abandoned {
                        // It is there, and would go on answering.
                        self.close(id, CloseCode::GaveUp, now);
                    }
                    self.hear(id);
                } else if self.table.is_lent(handle) {
                    self.streams.hear(handle, event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => match look {
                Some(GateVerdict::Unclear | GateVerdict::Refused) => {
                    self.answers.refuse(Reason::NoToken);
                    self.endpoint.ignore(incoming);
                }
                Some(GateVerdict::Expected) | None => self.admit(incoming, &mut buffer, now),
            },
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, &buffer, now),
            None => {}
        }
        self.buffer = buffer;
    }

    /// Runs the timers that are due at `now`.
    pub(crate) fn timeout(&mut self, now: Time) {
        let at = self.epoch.instant(now);
        let due: Vec<ChannelId> =
            self.table.iter().filter(|(_, channel)| channel.due_at() <= now).map(|(id, _)| id).collect();
        for id in due {
            let Some(channel) = self.table.get_mut(id) else { continue };
            if channel.opened + LIFE <= now {
                self.end(id, now);
                continue;
            }
            channel.connection.handle_timeout(at);
            self.hear(id);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.table.iter().map(|(_, channel)| channel.due_at()).min()?;
        Some(Deadline { at, why: "a control connection's timer" })
    }

    pub(crate) fn next_signal(&mut self) -> Option<(ChannelId, Signal)> {
        self.signals.pop_front()
    }

    pub(crate) fn has_signals(&self) -> bool {
        !self.signals.is_empty()
    }

    pub(crate) fn next_transmit(&mut self) -> Option<OutgoingDatagram> {
        self.transmits.pop_front()
    }

    /// What looks at datagrams from unknown sources first.
    pub(crate) fn gate(&self) -> Option<Arc<dyn DatagramGate>> {
        self.gate.clone().map(|gate| gate as Arc<dyn DatagramGate>)
    }

    /// The link out is another, or its rate has been estimated anew.
    pub(crate) fn set_link(&mut self, up: LinkRate, estimate: Option<Rate>, now: Time) {
        self.answers.set_link(up, estimate, now);
    }

    /// Peers are there from now on, and nowhere else.
    pub(crate) fn know(&mut self, sources: impl Iterator<Item = Source>) {
        self.answers.know(sources);
    }

    /// Counts what a peer asked for and does not get.
    pub(crate) fn refuse(&self, reason: Reason) {
        self.answers.refuse(reason);
    }

    /// Puts into datagrams what the channels have to send, and forgets those that are over.
    pub(crate) fn flush(&mut self, now: Time) {
        while let Some(id) = self.table.next_stirred() {
            self.flush_one(id, now);
        }
    }

    pub(crate) fn role(&self, id: ChannelId) -> Option<Role> {
        self.table.get(id).map(|channel| channel.role)
    }

    pub(crate) fn remote(&self, id: ChannelId) -> Option<SocketAddr> {
        self.table.get(id).map(Channel::remote)
    }

    /// The same, and the address of this host that the other end sends to.
    pub(crate) fn place(&self, id: ChannelId) -> Option<Place> {
        self.table.get(id).map(Channel::place)
    }

    pub(crate) fn peer_key(&self, id: ChannelId) -> Option<PublicKey> {
        self.table.get(id)?.peer_key()
    }

    /// Channels that exist, those that are only fading included.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Sends a message and returns its bytes; it cannot fail on a channel that lives, as its flow-control
    /// window is larger than all messages of a handshake.
    pub(crate) fn send(&mut self, id: ChannelId, message: &Message) -> Vec<u8> {
        let frame = message.emit();
        if let Some(channel) = self.table.get_mut(id)
            && let Some(stream) = channel.stream
        {
            let mut stream = channel.connection.send_stream(stream);
            // An error here means that the connection is over, which a signal says.
            let _ = stream.write(&frame);
            if *message == Message::Confirm {
                let _ = stream.finish();
            }
            self.table.stir(id);
        }
        frame
    }

    /// Lets a channel live on, as a peer without an end to its patience would.
    #[cfg(test)]
    pub(crate) fn renew(&mut self, id: ChannelId, now: Time) {
        if let Some(channel) = self.table.get_mut(id) {
            channel.opened = now;
        }
    }

    /// Writes any bytes, as a peer without manners would.
    #[cfg(test)]
    pub(crate) fn write(&mut self, id: ChannelId, bytes: &[u8]) {
        let Some(channel) = self.table.get_mut(id) else { return };
        let Some(stream) = channel.stream else { return };
        let mut stream = channel.connection.send_stream(stream);
        assert_eq!(stream.write(bytes).unwrap_or(0), bytes.len());
        self.table.stir(id);
    }

    /// Key material bound to `context`, once.
    pub(crate) fn export(
        &mut self,
        id: ChannelId,
        context: &[u8],
    ) -> Result<Zeroizing<[u8; EXPORT_LEN]>, NoExport> {
        self.table.get_mut(id).ok_or(NoExport)?.export(context)
    }

    /// Closes a channel; it says nothing more to its owner.
    pub(crate) fn close(&mut self, id: ChannelId, code: CloseCode, now: Time) {
        let at = self.epoch.instant(now);
        if let Some(channel) = self.table.get_mut(id) {
            channel.connection.close(at, VarInt::from_u32(code.number()), Bytes::new());
            self.silence(id);
            self.table.stir(id);
        }
    }

    /// Closes a channel as another program could: with any code, and any bytes as a reason.
    #[cfg(test)]
    pub(crate) fn close_with_words(&mut self, id: ChannelId, code: u32, reason: &'static [u8], now: Time) {
        let at = self.epoch.instant(now);
        let channel = self.table.get_mut(id).into_iter();
        channel.for_each(|channel| channel.connection.close(at, VarInt::from_u32(code), Bytes::from(reason)));
        self.table.stir(id);
    }

    /// Forgets a handshake that began here. Where nothing answers, nothing more is sent, as each datagram would be one of 1,200
    /// bytes. If an answer comes, its sender hears that this was given up.
    pub(crate) fn abandon(&mut self, id: ChannelId) {
        self.silence(id);
        if let Some(channel) = self.table.get_mut(id) {
            (channel.voice, channel.due) = (Voice::Abandoned, None);
        }
    }

    /// A channel says nothing more to its owner, nor does what it has said already.
    pub(crate) fn silence(&mut self, id: ChannelId) {
        if let Some(channel) = self.table.get_mut(id) {
            channel.voice = Voice::Silent;
        }
        self.signals.retain(|(of, _)| *of != id);
    }

    /// The end of a channel that lived too long: a stranger's is dropped, a peer's is closed as well.
    fn end(&mut self, id: ChannelId, now: Time) {
        let Some(channel) = self.table.get_mut(id) else { return };
        if channel.voice == Voice::Speaking {
            channel.voice = Voice::Silent;
            self.signals.push_back((id, Signal::Closed(Closed::TimedOut)));
        }
        let known = !channel.connection.is_handshaking();
        if known && !channel.connection.is_closed() {
            channel.connection.close(
                self.epoch.instant(now),
                VarInt::from_u32(CloseCode::GaveUp.number()),
                Bytes::new(),
            );
            self.flush_one(id, now);
        }
        if let Some(channel) = self.table.get(id) {
            let handle = channel.handle;
            self.endpoint.handle_event(handle, EndpointEvent::drained());
            self.table.remove(id);
        }
    }

    /// Turns what the connection has to say into signals.
    fn hear(&mut self, id: ChannelId) {
        let Some(channel) = self.table.get_mut(id) else { return };
        let (handle, for_streams) = (channel.handle.0, self.table.is_for_streams(id));
        if let Some(mark) = self.table.mark(handle) {
            self.mark.set(mark);
        }
        let Some(channel) = self.table.get_mut(id) else { return };
        while let Some(event) = channel.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(channel.handle, event) {
                channel.connection.handle_event(answer);
            }
        }
        let (signals, mut voice) = (&mut self.signals, channel.voice);
        while let Some(event) = channel.connection.poll() {
            if for_streams && matches!(event, Event::Connected) {
                signals.extend((voice == Voice::Speaking).then_some((id, Signal::Connected)));
                // What follows is for those whom the connection is lent to.
                break;
            }
            channel.interpret(event, &mut |signal| {
                if voice != Voice::Speaking {
                    return;
                }
                if matches!(signal, Signal::Closed(_)) {
                    voice = Voice::Silent;
                }
                signals.push_back((id, signal));
            });
        }
        channel.voice = voice;
        self.table.stir(id);
    }

    fn flush_one(&mut self, id: ChannelId, now: Time) {
        let at = self.epoch.instant(now);
        let mut buffer = core::mem::take(&mut self.buffer);
        loop {
            buffer.clear();
            let sends = |channel: &&mut Channel| channel.voice != Voice::Abandoned;
            let Some(channel) = self.table.get_mut(id).filter(sends) else { break };
            let Some(mut transmit) = channel.connection.poll_transmit(at, 1, &mut buffer) else { break };
            transmit.src_ip = channel.local;
            let via = if now < channel.opened + LAST_RESORT { Via::Udp } else { Via::UdpInFragments };
            let strange = channel.is_strangers();
            if strange && !self.pays(id, &transmit, now) {
                // Lost, as on any network: QUIC sends it again when there is something to pay it with.
                self.answers.refuse(Reason::AnswerOverBudget);
                continue;
            }
            if !self.table.get_mut(id).is_some_and(|channel| channel.restraint.lets_go(now)) {
                self.answers.refuse(Reason::AnswerOverBudget);
                continue;
            }
            self.transmit(&transmit, &buffer, via, strange);
        }
        self.buffer = buffer;
        self.hear(id);
        self.table.calm(id);
        let Some(channel) = self.table.get_mut(id) else { return };
        let due = channel.connection.poll_timeout().filter(|_| channel.voice != Voice::Abandoned);
        channel.due = due.map(|due| self.epoch.time(due));
        if channel.connection.is_drained() {
            self.table.remove(id);
        }
    }

    fn transmit(&mut self, transmit: &Transmit, buffer: &[u8], via: Via, strange: bool) {
        if let Some(bytes) = buffer.get(..transmit.size) {
            let to = Place { remote: transmit.destination, local: transmit.src_ip };
            let via = if to.remote.ip().to_canonical().is_ipv4() { via } else { Via::Udp };
            self.transmits.push_back(OutgoingDatagram { to, bytes: bytes.into(), via, strange });
        }
    }
}

/// The end of all connections, and how those for streams are taken; all that is unpredictable about them comes from `seed`.
fn ends(
    [handshakes, streams]: &[Arc<QuicServerConfig>; 2],
    clock: &Arc<TokenClock>,
    mark: &Arc<CidMark>,
    seed: &[u8; 32],
) -> (Endpoint, ServerConfig) {
    let server = |tls: &Arc<QuicServerConfig>| {
        transport::server(Arc::<QuicServerConfig>::clone(tls), seed, Arc::clone(clock), admission::MOST)
    };
    let config = Arc::new(transport::endpoint(seed, mark));
    // Connections that carry streams may search for the path's MTU; their transport parameters say whether they do.
    (Endpoint::new(config, Some(Arc::new(server(handshakes))), true, None), server(streams))
}

impl Channel {
    /// When it next wants its timers run.
    fn due_at(&self) -> Time {
        let end = self.opened + LIFE;
        self.due.map_or(end, |due| due.min(end))
    }
}
