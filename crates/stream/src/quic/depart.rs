//! Datagrams out: made when the queue of their peer has room for them, and no earlier.

use strait_clock::Time;
use strait_ipsec::{PeerId, StreamTrain};
use strait_scheduler::Tin;

use super::connection::LiveConnection;
use super::peer::StreamPeer;
use super::{StreamEvent, Streams};

/// Datagrams that are made at once at most: what one call of the kernel takes in bytes (65,000), of the longest on an Ethernet.
const AT_ONCE: u64 = 44;

impl Streams {
    /// The next datagrams for the sender, as far as the queues of peers have room: to be polled until there is nothing after every
    /// other call, and whenever datagrams left a queue.
    pub fn next_train(&mut self, now: Time) -> Option<Box<StreamTrain>> {
        let peers = &mut self.peers;
        let waits = |id: &PeerId| peers.get_mut(id).is_some_and(|peer| !peer.has_left(now));
        self.pool.out.queued.retain(waits);
        let turn = self.pool.out.turn;
        let after = self.pool.out.stirred.range(turn + 1..).chain(self.pool.out.stirred.range(..=turn));
        let order: Vec<usize> = after.copied().collect();
        for handle in order {
            if let Some(train) = self.train_of(handle, now) {
                self.pool.out.turn = handle;
                return Some(train);
            }
        }
        None
    }

    fn train_of(&mut self, handle: usize, now: Time) -> Option<Box<StreamTrain>> {
        let connection = self.pool.live.get_mut(&handle);
        let peer = connection.as_ref().and_then(|connection| self.peers.get_mut(&connection.peer));
        let Some((connection, peer)) = connection.zip(peer) else {
            self.pool.out.stirred.remove(&handle);
            return None;
        };
        let unit = u64::from(connection.quic.current_mtu());
        let early = connection.early();
        if early == 0 && peer.counters.stream.sessions() == 0 {
            // The rest waits for the session.
            return None;
        }
        if peer.counters.stream.lanes()
            && let Some(packet) = connection.next_packet(peer.counters.stream.sessions(), now)
        {
            connection.note_due(self.pool.epoch);
            return Some(Box::new(inside(connection, packet)));
        }
        let mut room = peer.room(now);
        if room < unit && connection.presses() && peer.may_press() {
            room = unit;
        }
        if room == 0 || room < unit && peer.queued() > 0 {
            // It stays among those that are stirred.
            return None;
        }
        connection.rate.set(peer.counters.stream.rate(), peer.ahead());
        connection.follow_window();
        let buffer = &mut self.pool.out.buffer;
        buffer.clear();
        let at_once = if early > 0 { early } else { AT_ONCE };
        let most = if connection.is_probing() { 1 } else { (room / unit).clamp(1, at_once) };
        let transmit = connection.transmit(self.pool.epoch, now, most, buffer);
        self.pool.out.events.extend(connection.take_writable().into_iter().map(StreamEvent::Writable));
        connection.rate.set_probing(false);
        connection.note_due(self.pool.epoch);
        let Some(transmit) = transmit else {
            self.pool.out.stirred.remove(&handle);
            self.hear(handle, now);
            return None;
        };
        let bytes = buffer.get(..transmit.size).unwrap_or_default();
        let train = train(connection, peer, &transmit, bytes);
        self.pool.out.queued.insert(train.peer);
        self.hear(handle, now);
        Some(Box::new(train))
    }
}

fn train(
    connection: &mut LiveConnection,
    peer: &mut StreamPeer,
    transmit: &quinn_proto::Transmit,
    bytes: &[u8],
) -> StreamTrain {
    let segment = transmit.segment_size.unwrap_or(bytes.len());
    peer.note_made(bytes.len(), segment);
    StreamTrain {
        peer: connection.peer,
        to: transmit.destination,
        early: connection.take_early(bytes.len(), transmit.destination),
        tin: if connection.is_pressing() { Tin::Normal } else { Tin::Bulk },
        // Which of those under way: of two with one number, each would have half a turn.
        flow: (connection.handle.0 % 65_536) as u16,
        segment,
        inside: false,
        bytes: bytes.into(),
    }
}

/// A packet of a lane, for which no queue has to have room.
fn inside(connection: &LiveConnection, packet: Box<[u8]>) -> StreamTrain {
    StreamTrain {
        peer: connection.peer,
        to: connection.remote(),
        early: None,
        tin: Tin::Normal,
        flow: 0,
        segment: packet.len(),
        inside: true,
        bytes: packet,
    }
}
