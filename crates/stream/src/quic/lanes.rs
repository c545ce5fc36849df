//! Lanes of a node's streams: which streams have one, and what goes and comes on them.

use core::time::Duration;

use bytes::{Buf, Bytes};
use quinn_proto::StreamId;
use strait_clock::Time;
use strait_ipsec::{LanePacket, PeerId};
use strait_wire::lane::{LANES, LaneHeader, LanePiece};

use super::connection::{LiveConnection, LiveStream};
use super::lane::{Lane, RECORD_MAX, Unframed};
use super::transport::THIN;
use super::{StreamEvent, StreamKey, StreamLost, StreamPriority, StreamRead, Streams};

impl Streams {
    /// Takes what came inside ESP for a stream of a peer's.
    pub fn lane(&mut self, packet: &LanePacket, now: Time) {
        let Some(peer) = self.peers.get_mut(&packet.peer) else { return };
        if !peer.lane_order.takes(packet.spi, packet.esn) {
            return;
        }
        // Of two streams the older one is lost, which this end has not heard yet.
        let of_peer = self.pool.live.iter_mut().filter(|(_, connection)| connection.peer == packet.peer);
        let on_it = of_peer.filter_map(|(handle, connection)| {
            let key = connection.streams.values().find(|stream| stream.is_on(&packet.header))?.key;
            Some((key, *handle, connection))
        });
        let Some((key, handle, connection)) = on_it.max_by_key(|(key, ..)| *key) else { return };
        if connection.hear_lane(key, packet, now) {
            self.pool.out.events.push_back(StreamEvent::Readable(key));
        }
        connection.note_due(self.pool.epoch);
        self.pool.out.stirred.insert(handle);
    }

    /// A lane for a new stream to a peer, where the link is slow and a person waits.
    pub(super) fn free_lane(&mut self, id: PeerId, priority: StreamPriority) -> Option<Lane> {
        let peer = self.peers.get_mut(&id)?;
        let link = &peer.counters.stream;
        let thin = link.rate().is_some_and(|rate| rate.bits() < THIN);
        if priority != StreamPriority::Now || !thin || !link.lanes() {
            return None;
        }
        let of_peer = self.pool.live.values().filter(|connection| connection.peer == id);
        let lanes =
            of_peer.flat_map(|connection| connection.streams.values()).filter_map(|it| it.lane.as_ref());
        let used: Vec<u8> = lanes.filter(|lane| lane.opened).map(|lane| lane.number).collect();
        // In turn, so that what is late of a stream that ended finds no other.
        let next = (1..=LANES).map(|step| (peer.last_lane + step) % LANES).find(|it| !used.contains(it))?;
        peer.last_lane = next;
        Some(Lane::new(next, true))
    }
}

impl LiveConnection {
    /// The next packet of a lane, if there is one.
    pub(super) fn next_packet(&mut self, now: Time) -> Option<Box<[u8]>> {
        let round_trip = self.quic.rtt();
        let silent = self.is_probing() || self.watch.is_still_silent(&self.quic);
        self.streams.values_mut().find_map(|stream| stream.next_packet(silent, round_trip, now))
    }

    /// Takes what came on the lane of a stream; true if there is something to be read.
    fn hear_lane(&mut self, key: StreamKey, packet: &LanePacket, now: Time) -> bool {
        let round_trip = self.quic.rtt();
        let stream = self.streams.values_mut().find(|stream| stream.key == key);
        stream.and_then(|it| it.lane.as_mut()).is_some_and(|lane| lane.hear(packet, round_trip, now))
    }

    /// The bytes that came, and whether there is something to say about them.
    pub(super) fn read(
        &mut self,
        id: StreamId,
        most: usize,
        now: Time,
    ) -> (Result<StreamRead, StreamLost>, bool) {
        self.watch.used(now);
        let mut stirs = false;
        loop {
            if let Some(bytes) = self.streams.get_mut(&id).and_then(|stream| stream.next_read(most.max(1))) {
                return (Ok(StreamRead::Data(bytes)), stirs);
            }
            let (read, more) = self.read_quic(id, most);
            stirs |= more;
            let Ok(StreamRead::Data(bytes)) = read else { return (read, stirs) };
            let Some(stream) = self.streams.get_mut(&id) else { return (Ok(StreamRead::Data(bytes)), stirs) };
            match stream.unframed(bytes, now) {
                Ok(None) => stirs = true,
                Ok(Some(bytes)) => return (Ok(StreamRead::Data(bytes)), stirs),
                Err(Unframed) => {
                    self.abandon(id);
                    return (Err(StreamLost::GivenUp), true);
                }
            }
        }
    }

    /// Gives QUIC the pieces that may be lost by now.
    pub(super) fn give_late(&mut self, now: Time) {
        let late = |stream: &&mut LiveStream| stream.lane.as_ref().is_some_and(|lane| lane.is_late(now));
        self.streams.values_mut().filter(late).for_each(LiveStream::call_back);
    }

    /// The time at which lanes have something to do.
    pub(super) fn lanes_due(&self) -> Option<Time> {
        self.streams.values().filter_map(|stream| stream.lane.as_ref()?.due()).min()
    }
}

impl LiveStream {
    /// True if what has this header is of its lane.
    fn is_on(&self, header: &LaneHeader) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.number == header.lane && lane.opened != header.opened)
    }

    fn next_packet(&mut self, silent: bool, round_trip: Duration, now: Time) -> Option<Box<[u8]>> {
        let (lane, unsent) = (self.lane.as_mut()?, &mut self.unsent);
        if !silent && !unsent.ends && unsent.framed == 0 && lane.takes(unsent.len) {
            let bytes: Vec<u8> = core::iter::from_fn(|| unsent.next(u64::MAX)).flatten().collect();
            return Some(lane.send(LanePiece::new(&bytes)?, round_trip, now));
        }
        lane.tell(now)
    }

    /// The next bytes for QUIC, at most so many; of a stream with a lane, in records.
    pub(super) fn next(&mut self, most: u64) -> Option<Bytes> {
        let (lane, unsent) = (self.lane.as_mut(), &mut self.unsent);
        let Some(lane) = lane else { return unsent.next(most) };
        if unsent.framed == 0 {
            let content = unsent.next(most.min(RECORD_MAX))?;
            unsent.frame(lane.record(content.len()), content);
        }
        unsent.next(most.min(unsent.framed))
    }

    /// Puts back what QUIC did not take.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        if self.lane.is_some() {
            self.unsent.framed += bytes.len() as u64;
        }
        self.unsent.put_back(bytes);
    }

    /// Has pieces that may be lost go by QUIC.
    pub(super) fn call_back(&mut self) {
        if let Some(lane) = self.lane.as_mut().filter(|lane| lane.has_pieces()) {
            self.unsent.frame(lane.record(0), Bytes::new());
        }
    }

    /// QUIC got so many bytes.
    pub(super) fn note_given(&mut self, bytes: u64) {
        if let Some(lane) = &mut self.lane {
            lane.note_given(bytes);
        }
    }

    /// The bytes of the stream that can be read without QUIC.
    pub(super) fn next_read(&mut self, most: usize) -> Option<Bytes> {
        self.lane.as_mut()?.next_read(most)
    }

    /// Takes what QUIC brought: bytes of the stream, or those of records, which [`LiveStream::next_read`] gives.
    pub(super) fn unframed(&mut self, mut bytes: Bytes, now: Time) -> Result<Option<Bytes>, Unframed> {
        if core::mem::take(&mut self.fresh)
            && let Some(lane) = bytes.first().and_then(|first| Lane::named(*first))
        {
            self.lane = Some(lane);
            bytes.advance(1);
        }
        let Some(lane) = &mut self.lane else { return Ok(Some(bytes)) };
        if lane.read(bytes, now)? {
            self.call_back();
        }
        Ok(None)
    }
}
