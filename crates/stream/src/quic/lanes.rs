//! Lanes of a node's streams: which streams have one, and what goes and comes on them.

use bytes::{Buf, Bytes};
use quinn_proto::StreamId;
use strait_clock::Time;
use strait_ipsec::LanePacket;
use strait_wire::lane::{LANES, LaneHeader, LanePiece};

use super::connection::{LiveConnection, LiveStream};
use super::lane::{Lane, Moment, RECORD_MAX, Unframed};
use super::peer::StreamPeer;
use super::transport::THIN;
use super::{StreamEvent, StreamKey, StreamLost, StreamPriority, StreamRead, Streams};

/// The label of the keying material that tells streams with lanes apart (RFC 8446 section 7.5).
const LABEL: &[u8] = b"EXPORTER strait lane";

/// Streams that have the lanes between two ends: the newest of those to which their opener gave one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaneHolders {
    /// Those that this end opened, and those of the peer's.
    own: [Option<StreamKey>; LANES as usize],
    theirs: [Option<StreamKey>; LANES as usize],
}

impl LaneHolders {
    /// The stream that the peer sends this for.
    fn of(&self, header: &LaneHeader) -> Option<StreamKey> {
        let holders = if header.opened { &self.theirs } else { &self.own };
        *holders.get(usize::from(header.lane))?
    }
}

impl Streams {
    /// Takes what came inside ESP for a stream of a peer's.
    pub fn lane(&mut self, packet: &LanePacket, now: Time) {
        let Some(peer) = self.peers.get(&packet.peer).filter(|peer| peer.counters.stream.lanes()) else {
            return;
        };
        let sessions = peer.counters.stream.sessions();
        let Some(key) = peer.lanes.of(&packet.header) else { return };
        let Ok((handle, id)) = self.pool.place(key) else { return };
        let Some(connection) = self.pool.live.get_mut(&handle) else { return };
        if connection.hear_lane(id, packet, sessions, now) {
            self.pool.out.events.push_back(StreamEvent::Readable(key));
        }
        connection.note_due(self.pool.epoch);
        self.pool.out.stirred.insert(handle);
    }

    /// Gives a stream that this end has just opened a lane, where the link is slow and a person waits.
    pub(super) fn give_lane(&mut self, key: StreamKey) {
        let Ok((handle, id)) = self.pool.place(key) else { return };
        let Some(connection) = self.pool.live.get(&handle) else { return };
        let (peer, base) = (connection.peer, connection.lane_base(id));
        let Some((peer, base)) = self.peers.get_mut(&peer).zip(base) else { return };
        let link = &peer.counters.stream;
        if !link.lanes() || link.rate().is_none_or(|rate| rate.bits() >= THIN) {
            return;
        }
        let is_free = |holder: &Option<StreamKey>| holder.is_none_or(|key| self.pool.place(key).is_err());
        let free = (0..LANES).zip(&mut peer.lanes.own).filter(|(_, holder)| is_free(holder));
        // The one that was free longest: what is late of the stream before hardly comes any more.
        let Some((number, holder)) = free.min_by_key(|(_, holder)| **holder) else { return };
        let stream = self.pool.live.get_mut(&handle).and_then(|connection| connection.streams.get_mut(&id));
        if let Some(stream) = stream.filter(|stream| stream.priority == StreamPriority::Now) {
            *holder = Some(key);
            stream.lane = Some(Lane::new(number, true, base));
        }
    }

    /// A stream of the peer's may have named its lane, which an earlier one has no more.
    pub(super) fn note_named(&mut self, key: StreamKey) {
        let Ok((handle, id)) = self.pool.place(key) else { return };
        let Some(connection) = self.pool.live.get(&handle) else { return };
        let lane = connection.streams.get(&id).and_then(|stream| stream.lane.as_ref());
        let peer = self.peers.get_mut(&connection.peer);
        let Some((lane, peer)) = lane.zip(peer) else { return };
        let Some(holder) = peer.lanes.theirs.get_mut(usize::from(lane.number)) else { return };
        let Some(before) = holder.replace(key) else { return };
        let Ok((handle, id)) = self.pool.place(before) else { return };
        let connection = self.pool.live.get_mut(&handle);
        if let Some(stream) = connection.and_then(|connection| connection.streams.get_mut(&id)) {
            stream.lane.iter_mut().for_each(Lane::silence);
        }
    }

    /// Connections on which a lane is to say what it read, and when; only where that can leave.
    pub(super) fn telling(&self) -> impl Iterator<Item = (usize, Time)> {
        let takes = |id| self.peers.get(id).is_some_and(|peer: &StreamPeer| peer.counters.stream.lanes());
        let all = self.pool.live.iter().filter_map(|(handle, it)| Some((*handle, it.tells_at?, &it.peer)));
        all.filter(move |(.., peer)| takes(*peer)).map(|(handle, at, _)| (handle, at))
    }
}

impl LiveConnection {
    /// The number of a stream that its lane counts from: the same at both ends, and another for each stream.
    fn lane_base(&self, id: StreamId) -> Option<u32> {
        self.export(LABEL, &u64::from(id).to_be_bytes()).map(u32::from_be_bytes)
    }

    /// True if nothing was read of a stream of the peer's yet, so that it may name a lane.
    pub(super) fn is_fresh(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.fresh)
    }

    /// The next packet of a lane, if there is one.
    pub(super) fn next_packet(&mut self, sessions: u64, now: Time) -> Option<Box<[u8]>> {
        let moment = Moment { now, round_trip: self.quic.rtt(), sessions };
        let silent = self.is_probing() || self.watch.is_still_silent(&self.quic);
        self.streams.values_mut().find_map(|stream| stream.next_packet(silent, moment))
    }

    /// Takes what came on the lane of a stream; true if there is something to be read.
    fn hear_lane(&mut self, id: StreamId, packet: &LanePacket, sessions: u64, now: Time) -> bool {
        let moment = Moment { now, round_trip: self.quic.rtt(), sessions };
        let stream = self.streams.get_mut(&id);
        stream.and_then(|it| it.lane.as_mut()).is_some_and(|lane| lane.hear(packet, moment))
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
            let base = if self.is_fresh(id) { self.lane_base(id) } else { None };
            let Some(stream) = self.streams.get_mut(&id) else { return (Ok(StreamRead::Data(bytes)), stirs) };
            match stream.unframed(bytes, base, now) {
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
        self.streams.values_mut().filter(|stream| stream.is_late(now)).for_each(LiveStream::call_back);
    }
}

impl LiveStream {
    /// True if a piece of it may be lost by now.
    fn is_late(&self, now: Time) -> bool {
        self.lane.as_ref().and_then(Lane::late_at).is_some_and(|at| at <= now)
    }

    fn next_packet(&mut self, silent: bool, moment: Moment) -> Option<Box<[u8]>> {
        let (lane, unsent) = (self.lane.as_mut()?, &mut self.unsent);
        if !silent && !unsent.ends && unsent.framed == 0 && lane.takes(unsent.len) {
            let bytes: Vec<u8> = core::iter::from_fn(|| unsent.next(u64::MAX)).flatten().collect();
            return Some(lane.send(LanePiece::new(&bytes)?, moment));
        }
        lane.tell(moment)
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
    pub(super) fn unframed(
        &mut self,
        mut bytes: Bytes,
        base: Option<u32>,
        now: Time,
    ) -> Result<Option<Bytes>, Unframed> {
        if core::mem::take(&mut self.fresh)
            && let Some((first, base)) = bytes.first().zip(base)
            && let Some(lane) = Lane::named(*first, base)
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

#[cfg(test)]
mod tests;
