//! The way from the packet threads to the control loop: five queues, so that a flood in one takes no room in another.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use strait_ipsec::{Counter, Notice, Place};
use strait_wire::Tos;
use strait_wire::tos::Ecn;
use tokio::sync::{Notify, mpsc};

/// Notices that may wait; the packet threads make a few a second for each peer.
const NOTICES: usize = 512;
/// Datagrams from known addresses that may wait: a handshake with 40 peers at once. QUIC repeats what was lost.
const DATAGRAMS: usize = 512;
/// Datagrams of peers' streams that may wait: what comes in 10 ms at 1 Gbit/s. QUIC repeats what was lost.
const STREAMS: usize = 1024;
/// Datagrams of strangers that may wait. More would be answered late, and no more in a second.
const STRANGERS: usize = 128;

/// Datagrams with headers that may wait: what looking at them takes some 10 ms for. A sender puts its header in front of packets until
/// it is answered.
const SESSIONLESS: usize = 512;

/// What the packet threads tell the control loop.
#[derive(Debug)]
pub enum ToControl {
    /// A datagram of the control channel.
    Datagram {
        /// Who sent it.
        from: Place,
        /// The congestion mark it came with.
        ecn: Ecn,
        /// Its bytes.
        bytes: BytesMut,
    },
    /// A datagram with a header that the packet path does not know, or a key packet.
    Sessionless {
        /// Who sent it.
        from: Place,
        /// The outer header's DSCP and ECN.
        tos: Tos,
        /// Its bytes.
        bytes: BytesMut,
    },
    /// Something that the packet path cannot decide alone.
    Notice(Notice),
    /// Queues have room for more datagrams of streams.
    StreamRoom,
    /// A packet thread has ended because of this error; the node cannot go on.
    Failed(&'static str, io::Error),
}

/// A packet thread's way to the control loop: never waits; what finds no room is counted and lost.
#[derive(Clone, Debug)]
pub struct ControlSender {
    notices: mpsc::Sender<ToControl>,
    datagrams: mpsc::Sender<ToControl>,
    streams: mpsc::Sender<ToControl>,
    strangers: mpsc::Sender<ToControl>,
    sessionless: mpsc::Sender<ToControl>,
    takes_sessionless: Arc<AtomicBool>,
    room: Arc<Notify>,
    lost: Arc<Counter>,
}

/// The control loop's end of every [`ControlSender`].
#[derive(Debug)]
pub struct ControlReceiver {
    notices: mpsc::Receiver<ToControl>,
    datagrams: mpsc::Receiver<ToControl>,
    streams: mpsc::Receiver<ToControl>,
    strangers: mpsc::Receiver<ToControl>,
    sessionless: mpsc::Receiver<ToControl>,
    room: Arc<Notify>,
}

/// The way from the packet threads to the control loop.
#[must_use]
pub fn to_control() -> (ControlSender, ControlReceiver) {
    let (notices, heard) = mpsc::channel(NOTICES);
    let (datagrams, known) = mpsc::channel(DATAGRAMS);
    let (streams, streaming) = mpsc::channel(STREAMS);
    let (strangers, strange) = mpsc::channel(STRANGERS);
    let (sessionless, headers) = mpsc::channel(SESSIONLESS);
    let room = Arc::new(Notify::new());
    let receiver = ControlReceiver {
        notices: heard,
        datagrams: known,
        streams: streaming,
        strangers: strange,
        sessionless: headers,
        room: Arc::clone(&room),
    };
    let sender = ControlSender {
        notices,
        datagrams,
        streams,
        strangers,
        sessionless,
        takes_sessionless: Arc::default(),
        room,
        lost: Arc::default(),
    };
    (sender, receiver)
}

impl ControlSender {
    /// Passes a datagram of the control channel on, from an address that is known.
    pub fn datagram(&self, from: Place, ecn: Ecn, bytes: &[u8]) {
        self.pass(&self.datagrams, from, ecn, bytes);
    }

    /// Passes a datagram of a peer's stream on.
    pub fn stream(&self, from: Place, ecn: Ecn, bytes: &[u8]) {
        self.pass(&self.streams, from, ecn, bytes);
    }

    /// Says that queues have room for more datagrams of streams.
    pub fn stream_room(&self) {
        self.room.notify_one();
    }

    /// Passes a datagram of the control channel on from any other address.
    pub fn stranger(&self, from: Place, ecn: Ecn, bytes: &[u8]) {
        self.pass(&self.strangers, from, ecn, bytes);
    }

    /// Passes a datagram with a header on, or a key packet; false where none are taken.
    pub fn sessionless(&self, from: Place, tos: Tos, bytes: &[u8]) -> bool {
        let takes = self.takes_sessionless.load(Ordering::Relaxed);
        if takes {
            match self.sessionless.try_reserve() {
                Ok(place) => place.send(ToControl::Sessionless { from, tos, bytes: BytesMut::from(bytes) }),
                Err(_) => self.lost.add(1),
            }
        }
        takes
    }

    /// Datagrams with headers are taken from now on.
    pub fn take_sessionless(&self) {
        self.takes_sessionless.store(true, Ordering::Relaxed);
    }

    /// Passes a notice on.
    pub fn notice(&self, notice: Notice) {
        if self.notices.try_send(ToControl::Notice(notice)).is_err() {
            self.lost.add(1);
        }
    }

    /// Says that the thread `name` cannot go on.
    pub fn failed(&self, name: &'static str, error: io::Error) {
        // Ends the node, so waiting for room is right; the loop runs in another thread.
        if self.notices.blocking_send(ToControl::Failed(name, error)).is_err() {
            self.lost.add(1);
        }
    }

    /// Messages that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    fn pass(&self, queue: &mpsc::Sender<ToControl>, from: Place, ecn: Ecn, bytes: &[u8]) {
        // Reserved before the copy, so that a flood costs no allocation.
        match queue.try_reserve() {
            Ok(place) => place.send(ToControl::Datagram { from, ecn, bytes: BytesMut::from(bytes) }),
            Err(_) => self.lost.add(1),
        }
    }
}

impl ControlReceiver {
    /// The next message: a notice, if there is one, then a datagram from a known address, then what concerns streams, then
    /// one with a header, then a stranger's. It waits for ever when all senders are gone.
    pub async fn recv(&mut self) -> Option<ToControl> {
        tokio::select! {
            biased;
            Some(notice) = self.notices.recv() => Some(notice),
            Some(datagram) = self.datagrams.recv() => Some(datagram),
            () = self.room.notified() => Some(ToControl::StreamRoom),
            Some(datagram) = self.streams.recv() => Some(datagram),
            Some(datagram) = self.sessionless.recv() => Some(datagram),
            Some(datagram) = self.strangers.recv() => Some(datagram),
            else => None,
        }
    }

    /// The next message that is there already, but not a stranger's, as long as `left` of a burst are left: beyond it nothing is taken,
    /// as a message that is taken and not handled is lost.
    pub fn next_known(&mut self, left: &mut usize) -> Option<ToControl> {
        *left = left.checked_sub(1)?;
        let known = self.notices.try_recv().or_else(|_| self.datagrams.try_recv());
        known.or_else(|_| self.streams.try_recv()).or_else(|_| self.sessionless.try_recv()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_ipsec::PeerId;

    fn from() -> Place {
        "192.0.2.1:9".parse::<std::net::SocketAddr>().unwrap().into()
    }

    /// The next message, which is there already.
    fn next(receiver: &mut ControlReceiver) -> Option<ToControl> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ready = async { Some(receiver.recv().await) };
        runtime.block_on(async {
            tokio::select! {
                biased;
                message = ready => message.flatten(),
                () = std::future::ready(()) => None,
            }
        })
    }

    #[test]
    fn what_waits_beyond_a_burst_is_taken_in_the_next() {
        let (sender, mut receiver) = to_control();
        (0..10).for_each(|_| sender.stream(from(), Ecn::NotEct, b"data"));
        let mut taken = 0;
        while let Some(ToControl::Datagram { .. }) = next(&mut receiver) {
            taken += 1;
            let mut left = 3;
            taken += std::iter::from_fn(|| receiver.next_known(&mut left)).count();
        }
        assert_eq!(taken, 10);
    }

    #[test]
    fn a_flood_of_strangers_takes_no_room_from_notices_and_peers() {
        let (sender, mut receiver) = to_control();
        for _ in 0..10_000 {
            sender.stranger(from(), Ecn::NotEct, b"hello");
        }
        assert_eq!(sender.lost(), 10_000 - STRANGERS as u64);
        sender.datagram(from(), Ecn::NotEct, b"friend");
        sender.notice(Notice::NeedsSa(PeerId(1)));
        assert_eq!(sender.lost(), 10_000 - STRANGERS as u64);
        assert!(matches!(next(&mut receiver), Some(ToControl::Notice(_))));
        let mut strangers = 0;
        assert!(
            matches!(next(&mut receiver), Some(ToControl::Datagram { bytes, .. }) if &bytes[..] == b"friend")
        );
        while let Some(ToControl::Datagram { .. }) = next(&mut receiver) {
            strangers += 1;
        }
        assert_eq!(strangers, STRANGERS);
    }

    #[test]
    fn a_flood_from_a_peers_address_takes_no_room_from_notices() {
        let (sender, mut receiver) = to_control();
        for _ in 0..=DATAGRAMS {
            sender.datagram(from(), Ecn::NotEct, b"hello");
        }
        assert_eq!(sender.lost(), 1);
        sender.notice(Notice::NeedsSa(PeerId(1)));
        assert!(matches!(receiver.next_known(&mut 1), Some(ToControl::Notice(_))));
        assert_eq!(std::iter::from_fn(|| receiver.next_known(&mut 1)).count(), DATAGRAMS);
    }
}
