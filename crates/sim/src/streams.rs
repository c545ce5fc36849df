//! The streams of a simulated node, and services that send and read numbered bytes on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use strait_clock::{Deadline, Time};
use strait_ipsec::{LanePacket, PeerCounters, PeerId, Place, StreamTrain};
use strait_keying::{Control, StreamTransport};
use strait_stream::{
    EXPORTED, StreamEvent, StreamKey, StreamLost, StreamPriority, StreamRead, StreamSettings, Streams,
};

/// Bytes that a service writes or reads at once.
const AT_ONCE: usize = 16 * 1024;
/// What stands at each place of a stream repeats after so many bytes, a prime.
const PERIOD: u64 = 251;
/// Bytes that answer one byte of a login: its echo.
const ECHO: u8 = 1;
/// The first byte of a stream of which the other end reads no more than a part, and answers nothing.
pub const UNREAD: u8 = 250;

/// The results of a node's streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTally {
    /// Bytes to send that were taken.
    pub sent: u64,
    /// Bytes that were read, each where it belongs.
    pub read: u64,
    /// Bytes that were read and are not those that were sent.
    pub damaged: u64,
    /// When the last was read.
    pub read_at: Option<Time>,
    /// Streams that were read to their end.
    pub ended: u64,
    /// Streams whose bytes all arrived at the other end, as that says.
    pub delivered: u64,
    /// Streams that were lost, and why.
    pub lost: Vec<StreamLost>,
}

/// The streams of a node.
#[derive(Debug)]
pub struct SimStreams {
    core: Streams,
    sending: BTreeMap<StreamKey, Sending>,
    reading: BTreeMap<StreamKey, Reading>,
    tally: StreamTally,
}

/// The bytes that a stream sends.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    /// Bytes that are still to be sent, and those that were.
    left: u64,
    sent: u64,
    /// The byte at its first place: how many bytes the other end answers for each.
    first: u8,
    /// More may follow.
    open: bool,
}

/// The bytes that a stream was read to.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    read: u64,
    /// Its first byte, once that is there.
    first: Option<u8>,
}

impl SimStreams {
    pub(crate) fn new(settings: StreamSettings) -> SimStreams {
        let (sending, reading) = (BTreeMap::new(), BTreeMap::new());
        SimStreams { core: Streams::new(settings), sending, reading, tally: StreamTally::default() }
    }

    /// Their results so far.
    #[must_use]
    pub const fn tally(&self) -> &StreamTally {
        &self.tally
    }

    /// The streams themselves.
    #[must_use]
    pub const fn core(&self) -> &Streams {
        &self.core
    }

    /// What the connection of each stream that goes on exports for `label`.
    #[must_use]
    pub fn exports(&self, label: &[u8]) -> Vec<[u8; EXPORTED]> {
        self.sending.keys().chain(self.reading.keys()).flat_map(|key| self.core.export(*key, label)).collect()
    }

    pub(crate) fn transport(&self) -> Arc<dyn StreamTransport> {
        self.core.transport()
    }

    pub(crate) fn add_peer(&mut self, id: PeerId, counters: Arc<PeerCounters>) {
        self.core.add_peer(id, counters);
    }

    pub(crate) fn remove_peer(&mut self, id: PeerId, now: Time) {
        self.core.remove_peer(id, now);
    }

    /// Forgets all connections, as the node does with its keys.
    pub(crate) fn renew(&mut self) {
        self.core.renew();
    }

    /// Closes all connections; what says so to the peers.
    pub(crate) fn close_all(&mut self, now: Time) -> Vec<(Place, Box<[u8]>)> {
        self.core.close_all(now)
    }

    pub(crate) fn send(&mut self, peer: PeerId, bytes: u64, priority: StreamPriority, now: Time) {
        match self.core.open(peer, priority, now) {
            Ok(key) => drop(self.sending.insert(key, Sending { left: bytes, ..Sending::default() })),
            Err(lost) => self.tally.lost.push(lost),
        }
    }

    /// Opens a stream whose bytes are answered with `answers` bytes for each.
    pub(crate) fn ask(
        &mut self,
        peer: PeerId,
        answers: u8,
        priority: StreamPriority,
        now: Time,
    ) -> Option<StreamKey> {
        let key = self.core.open(peer, priority, now).map_err(|lost| self.tally.lost.push(lost)).ok()?;
        self.sending.insert(key, Sending { first: answers, open: true, ..Sending::default() });
        self.reading.insert(key, Reading { first: Some(0), ..Reading::default() });
        Some(key)
    }

    /// Sends so many bytes more on a stream that is answered.
    pub(crate) fn say(&mut self, key: StreamKey, bytes: u64, now: Time) {
        if let Some(sending) = self.sending.get_mut(&key) {
            sending.left += bytes;
        }
        self.write(key, now);
    }

    /// Bytes of answers that came on a stream.
    #[must_use]
    pub fn answered(&self, key: StreamKey) -> u64 {
        self.reading.get(&key).map_or(0, |reading| reading.read)
    }

    pub(crate) fn lane(&mut self, packet: &LanePacket, now: Time) {
        self.core.lane(packet, now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.core.poll_timeout()
    }

    pub(crate) fn timeout(&mut self, now: Time) {
        self.core.timeout(now);
    }

    pub(crate) fn next_train(&mut self, now: Time) -> Option<Box<StreamTrain>> {
        self.core.next_train(now)
    }

    /// Lets streams, key manager and services say all they have to say to each other.
    pub(crate) fn drive(&mut self, control: &mut Control, now: Time) {
        self.core.drive(control, now);
        let mut any = false;
        while let Some(event) = self.core.poll_event() {
            any = true;
            self.take(event, now);
        }
        if any {
            self.core.drive(control, now);
        }
    }

    fn take(&mut self, event: StreamEvent, now: Time) {
        match event {
            StreamEvent::Accepted { stream, .. } => drop(self.reading.insert(stream, Reading::default())),
            StreamEvent::Readable(key) => self.read(key, now),
            StreamEvent::Writable(key) => self.write(key, now),
            StreamEvent::Delivered(key) => {
                self.tally.delivered += u64::from(self.sending.remove(&key).is_some());
            }
            StreamEvent::Lost(key, why) => {
                let known = self.sending.remove(&key).is_some() | self.reading.remove(&key).is_some();
                self.tally.lost.extend(known.then_some(why));
            }
        }
    }

    fn write(&mut self, key: StreamKey, now: Time) {
        let Some(sending) = self.sending.get_mut(&key) else { return };
        while sending.left > 0 {
            let len = usize::try_from(sending.left).unwrap_or(usize::MAX).min(AT_ONCE);
            let from = sending.sent + u64::from(sending.first);
            let mut bytes: Bytes = (from..from + len as u64).map(byte_at).collect();
            let Ok(taken) = self.core.write(key, &mut bytes, now) else { return };
            (sending.left, sending.sent) = (sending.left - taken as u64, sending.sent + taken as u64);
            self.tally.sent += taken as u64;
            if taken < len {
                return;
            }
        }
        if !sending.open {
            let _ = self.core.finish(key);
        }
    }

    fn read(&mut self, key: StreamKey, now: Time) {
        while self.reading.get(&key).is_none_or(|reading| reading.first != Some(UNREAD)) {
            match self.core.read(key, AT_ONCE, now) {
                Ok(StreamRead::Data(bytes)) => self.note(key, &bytes, now),
                Ok(StreamRead::End) => {
                    if self.reading.remove(&key).is_some() {
                        self.tally.ended += 1;
                        let _ = self.core.finish(key);
                    }
                    return;
                }
                Ok(StreamRead::Nothing) | Err(_) => return,
            }
        }
    }

    /// Counts what came, and answers it.
    fn note(&mut self, key: StreamKey, bytes: &[u8], now: Time) {
        let Some(reading) = self.reading.get_mut(&key) else { return };
        let known = reading.first.is_some();
        let first = *reading.first.get_or_insert(bytes.first().copied().unwrap_or(0));
        let from = reading.read + u64::from(first);
        let good = bytes.iter().zip(from..).filter(|(byte, at)| **byte == byte_at(*at)).count();
        reading.read += bytes.len() as u64;
        self.tally.read += good as u64;
        self.tally.damaged += (bytes.len() - good) as u64;
        self.tally.read_at = Some(now);
        if first > 0 && first != UNREAD {
            if !known && first == ECHO {
                // As a node does with a login.
                self.core.set_priority(key, StreamPriority::Now);
            }
            let answer = self.sending.entry(key).or_insert(Sending { open: true, ..Sending::default() });
            answer.left += bytes.len() as u64 * u64::from(first);
            self.write(key, now);
        }
    }
}

fn byte_at(place: u64) -> u8 {
    (place % PERIOD) as u8
}
