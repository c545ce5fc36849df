use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::ConnectionClose;
use strait_clock::Time;
use strait_wire::tos::Ecn;
use zeroize::Zeroizing;

use super::*;
use crate::control::tests::node::{base, key, settings};
use crate::tls::AllowList;

/// Two ends on a wire without delay.
struct ChannelPair {
    ends: [Channels; 2],
    carried: Vec<usize>,
    now: Time,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], u16::try_from(1000 + end).unwrap()))
}

fn end(node: u8, base: Instant) -> Channels {
    let allowed = AllowList::default();
    allowed.allow(key(1 - node).public());
    Channels::new(&settings(node, 1, base), Arc::new(allowed), Time::ZERO).unwrap()
}

/// What each end heard.
type HeardSignals = [Vec<(ChannelId, Signal)>; 2];

impl ChannelPair {
    fn new() -> ChannelPair {
        let base = base();
        ChannelPair { ends: [end(0, base), end(1, base)], carried: Vec::new(), now: Time::from_millis(5) }
    }

    fn carry(&mut self) -> HeardSignals {
        let mut heard = HeardSignals::default();
        let mut quiet = false;
        while !core::mem::replace(&mut quiet, true) {
            for (from, heard) in heard.iter_mut().enumerate() {
                while let Some(signal) = self.ends[from].next_signal() {
                    heard.push(signal);
                }
                self.ends[from].flush(self.now);
                while let Some(OutgoingDatagram { bytes, .. }) = self.ends[from].next_transmit() {
                    quiet = false;
                    self.carried.push(bytes.len());
                    self.ends[1 - from].datagram(address(from).into(), Ecn::NotEct, &bytes, self.now);
                }
            }
        }
        heard
    }

    /// A channel of both ends, connected.
    fn connect(&mut self) -> [ChannelId; 2] {
        let here = self.ends[0].connect(address(1).into(), key(1).public(), self.now).ok().unwrap();
        let [mine, theirs] = self.carry();
        assert!(matches!(mine[..], [(id, Signal::Connected)] if id == here), "{mine:?}");
        let [(there, Signal::Connected)] = theirs[..] else { panic!("{theirs:?}") };
        [here, there]
    }
}

#[test]
fn each_end_learns_the_key_of_the_other() {
    let mut wire = ChannelPair::new();
    let ids = wire.connect();
    for ((end, id), other) in wire.ends.iter().zip(ids).zip([key(1), key(0)]) {
        assert_eq!(end.peer_key(id), Some(other.public()));
    }
    assert_eq!(wire.ends[0].role(ids[0]), Some(Role::Initiator));
    assert_eq!(wire.ends[1].role(ids[1]), Some(Role::Responder));
}

#[test]
fn a_peers_own_words_do_not_reach_the_log() {
    let reason = bytes::Bytes::from_static(b"\x1b[2Jlogin: root\n");
    let application = ApplicationClose { error_code: VarInt::from_u32(77), reason: reason.clone() };
    let transport =
        ConnectionClose { error_code: TransportErrorCode::PROTOCOL_VIOLATION, frame_type: None, reason };
    for error in
        [ConnectionError::ApplicationClosed(application), ConnectionError::ConnectionClosed(transport)]
    {
        let Closed::Broken(words) = Closed::of(&error) else { panic!("{error:?}") };
        assert!(!words.contains("root") && !words.contains(char::is_control), "{words}");
    }
}

#[test]
fn a_key_that_is_not_allowed_never_becomes_known() {
    let mut wire = ChannelPair::new();
    let allowed = Arc::new(AllowList::default());
    allowed.allow(key(0).public());
    allowed.allow(key(5).public());
    allowed.refuse(key(0).public());
    wire.ends[1] = Channels::new(&settings(1, 1, base()), Arc::clone(&allowed), Time::ZERO).unwrap();
    wire.ends[0].connect(address(1).into(), key(1).public(), wire.now).ok().unwrap();
    let [mine, theirs] = wire.carry();
    // Its own handshake is through before the other end has judged (RFC 8446 section 4.4).
    assert!(
        matches!(mine[..], [(_, Signal::Connected), (_, Signal::Closed(Closed::RefusedThere))]),
        "{mine:?}"
    );
    assert!(matches!(theirs[..], [(_, Signal::Closed(Closed::WrongKey))]), "{theirs:?}");
    assert_eq!(allowed.take_stranger(), Some(key(0).public()));
    assert_eq!(allowed.take_stranger(), None);
}

#[test]
fn key_material_is_the_same_for_the_same_context_and_comes_once() {
    let export = |here: &[u8], there: &[u8]| {
        let mut wire = ChannelPair::new();
        let ids = wire.connect();
        let one = wire.ends[0].export(ids[0], here).unwrap();
        let other = wire.ends[1].export(ids[1], there).unwrap();
        assert_eq!(wire.ends[0].export(ids[0], here).map(|_| ()), Err(NoExport), "a second time");
        assert_ne!(one, Zeroizing::new([0; EXPORT_LEN]));
        one == other
    };
    assert!(export(b"offer accept", b"offer accept"));
    assert!(!export(b"offer accept", b"offer Accept"));
    assert!(!export(b"offer accept", b""));
}

#[test]
fn there_is_no_key_material_before_the_handshake_is_through() {
    let mut wire = ChannelPair::new();
    let id = wire.ends[0].connect(address(1).into(), key(1).public(), wire.now).ok().unwrap();
    assert_eq!(wire.ends[0].export(id, b"early").map(|_| ()), Err(NoExport));
}

#[test]
fn the_first_flight_is_hybrid_and_every_datagram_passes_a_thin_link() {
    let mut wire = ChannelPair::new();
    wire.connect();
    assert!(wire.carried.iter().all(|len| *len <= 1200), "{:?}", wire.carried);
    // An ML-KEM-768 key is 1,184 bytes (FIPS 203 table 3): the hello takes two datagrams, X25519's one.
    assert_eq!(wire.carried[..2], [1200, 1200]);
    let total: usize = wire.carried.iter().sum();
    assert!((4_000..7_000).contains(&total), "{total} bytes: {:?}", wire.carried);
}

#[test]
fn a_responders_first_flight_is_as_large_as_its_budget_says() {
    let mut wire = ChannelPair::new();
    wire.ends[0].connect(address(1).into(), key(1).public(), wire.now).ok().unwrap();
    wire.ends[0].flush(wire.now);
    while let Some(OutgoingDatagram { bytes, .. }) = wire.ends[0].next_transmit() {
        wire.ends[1].datagram(address(0).into(), Ecn::NotEct, &bytes, wire.now);
    }
    wire.ends[1].flush(wire.now);
    let mut flight = 0;
    while let Some(sent) = wire.ends[1].next_transmit() {
        assert!(sent.strange);
        flight += wire_len("[2001:db8::1]:1".parse().unwrap(), sent.bytes.len());
    }
    assert!((answers::FLIGHT - 300..=answers::FLIGHT).contains(&flight), "{flight}");
}

#[test]
fn a_closed_channel_says_why_and_says_it_once() {
    for code in CloseCode::ALL {
        let mut wire = ChannelPair::new();
        let ids = wire.connect();
        wire.ends[0].close(ids[0], code, wire.now);
        let [mine, theirs] = wire.carry();
        assert!(mine.is_empty(), "it is no news to who closed it: {mine:?}");
        let [(id, Signal::Closed(Closed::ByPeer(said)))] = &theirs[..] else { panic!("{theirs:?}") };
        assert_eq!((*id, *said), (ids[1], code));
        wire.now += core::time::Duration::from_secs(20);
        for end in &mut wire.ends {
            end.timeout(wire.now);
        }
        assert!(wire.carry().iter().all(Vec::is_empty));
        assert!(wire.ends.iter().all(|end| end.len() == 0));
    }
}

/// What would turn a terminal's title, and then look like a line of the log.
const GARBAGE: &[u8] = b"\x1b]0;owned\x07\nERROR forged\xff\r";

/// Panics where what is said of a channel's end has more than words of this program.
fn assert_own_words(closed: &Closed) {
    let said = match closed {
        Closed::Broken(said) => said.clone(),
        other => format!("{other:?}"),
    };
    assert!(said.chars().all(|letter| letter.is_ascii_graphic() || letter == ' '), "{said:?}");
    assert!(!said.contains("owned") && !said.contains("forged"), "{said}");
}

#[test]
fn garbage_that_a_peer_gives_as_its_reason_stays_out_of_what_is_logged() {
    for code in [0, 5, 8, 0x3fff_ffff] {
        let mut wire = ChannelPair::new();
        let ids = wire.connect();
        wire.ends[0].close_with_words(ids[0], code, GARBAGE, wire.now);
        let [_, theirs] = wire.carry();
        let [(_, Signal::Closed(closed))] = &theirs[..] else { panic!("{theirs:?}") };
        assert_own_words(closed);
    }
    // Before the handshake is through, QUIC has its own codes.
    let codes = [TransportErrorCode::INTERNAL_ERROR, TransportErrorCode::APPLICATION_ERROR];
    for error_code in codes.into_iter().chain([49, 120].map(TransportErrorCode::crypto)) {
        let close = ConnectionClose { error_code, frame_type: None, reason: GARBAGE.into() };
        assert_own_words(&Closed::of(&ConnectionError::ConnectionClosed(close)));
    }
}

#[test]
fn a_handshake_that_the_other_end_gives_up_is_no_failed_authentication() {
    let mut wire = ChannelPair::new();
    let id = wire.ends[0].connect(address(1).into(), key(1).public(), wire.now).ok().unwrap();
    // Its first flight is there, the answer is not back yet.
    let [mine, theirs] = &mut wire.ends;
    mine.flush(wire.now);
    while let Some(OutgoingDatagram { bytes, .. }) = mine.next_transmit() {
        theirs.datagram(address(0).into(), Ecn::NotEct, &bytes, wire.now);
    }
    wire.ends[0].close(id, CloseCode::Yield, wire.now);
    let [_, theirs] = wire.carry();
    assert!(matches!(theirs[..], [(_, Signal::Closed(Closed::GivenUp))]), "{theirs:?}");
}
