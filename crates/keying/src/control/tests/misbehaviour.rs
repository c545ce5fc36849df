//! A peer with a right key and wrong manners, played by bare QUIC.

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_crypto::SuiteSet;
use strait_ipsec::{PeerId, Reason};
use strait_wire::Spi;
use strait_wire::tos::Ecn;

use super::world::{ControlWorld, FAIR, address, key, peer, settings};
use crate::channel::{ChannelId, Channels, CloseCode, Closed, OutgoingDatagram, Signal};
use crate::message::MAX_LEN;
use crate::tls::AllowList;
use crate::{
    Capabilities, ControlEvent, HandshakeFailure, Message, MessageError, SessionTerms, SetupError, Start,
    Where,
};

const SECOND: Duration = Duration::from_secs(1);

/// Node 1's key without node 1's key manager, on a wire without delay to node 0.
pub(super) struct Rogue {
    pub(super) channels: Channels,
    pub(super) signals: Vec<(ChannelId, Signal)>,
}

impl Rogue {
    fn new(world: &ControlWorld) -> Rogue {
        Rogue::with_key(world, 1)
    }

    /// The same with the key of another node.
    pub(super) fn with_key(world: &ControlWorld, node: u8) -> Rogue {
        let allowed = Arc::new(AllowList::default());
        allowed.allow(key(0).public());
        let channels = Channels::new(&settings(node, 77, world.base), allowed, world.now).unwrap();
        Rogue { channels, signals: Vec::new() }
    }

    /// Lets time pass for both ends.
    pub(super) fn exchange(&mut self, world: &mut ControlWorld, span: Duration) {
        let end = world.now + span;
        while world.now < end {
            self.channels.timeout(world.now);
            self.speak(world);
            world.run(Duration::from_millis(5));
            for bytes in core::mem::take(&mut world.stray) {
                self.channels.datagram(address(0).into(), Ecn::NotEct, &bytes, world.now);
                self.speak(world);
            }
        }
    }

    fn speak(&mut self, world: &mut ControlWorld) {
        while let Some(signal) = self.channels.next_signal() {
            self.signals.push(signal);
        }
        self.channels.flush(world.now);
        while let Some(OutgoingDatagram { bytes, .. }) = self.channels.next_transmit() {
            world.forge(0, address(1), &bytes);
        }
    }
}

/// Node 0, which knows node 1's key, and a rogue that has connected to it.
fn connected() -> (ControlWorld, Rogue, ChannelId) {
    let mut world = ControlWorld::new(1, 1, FAIR);
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    let mut rogue = Rogue::new(&world);
    let id = rogue.channels.connect(address(0).into(), key(0).public(), world.now).ok().unwrap();
    rogue.exchange(&mut world, Duration::from_millis(100));
    assert!(matches!(rogue.signals[..], [(_, Signal::Connected)]), "{:?}", rogue.signals);
    (world, rogue, id)
}

fn offer() -> Message {
    Message::Offer(SessionTerms { spi: Spi(0x0500_0001), capabilities: Capabilities::typical() })
}

fn assert_clean(world: &mut ControlWorld, rogue: &mut Rogue) {
    rogue.exchange(world, 80 * SECOND);
    let node = &world.nodes[0];
    assert!(node.inbound.is_empty() && node.outbound.is_empty());
    assert_eq!(node.control.connections(), 0);
    assert_eq!(node.control.poll_timeout(), None);
}

fn failures(world: &ControlWorld) -> Vec<HandshakeFailure> {
    let events = world.nodes[0].events.iter();
    events
        .filter_map(|(_, event)| match event {
            ControlEvent::Failed { why, .. } => Some(why.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn bytes_that_are_no_message_end_the_handshake() {
    let mut too_long = u16::try_from(MAX_LEN + 1).unwrap().to_be_bytes().to_vec();
    too_long.extend_from_slice(&[0; 100]);
    let table = [
        (vec![0, 0], MessageError::Truncated { at: 0, need: 2 }),
        (vec![0, 2, 9, 1], MessageError::Kind(9)),
        (vec![0, 2, 1, 2], MessageError::Version(2)),
        (vec![0, 2, 1, 1], MessageError::Missing { field: "spi" }),
        (vec![0xff, 0xff, 1, 1], MessageError::TooLong { given: 0xffff }),
        (too_long, MessageError::TooLong { given: MAX_LEN + 1 }),
    ];
    for (bytes, error) in table {
        let (mut world, mut rogue, id) = connected();
        rogue.channels.write(id, &bytes);
        rogue.exchange(&mut world, SECOND);
        assert_eq!(failures(&world), [HandshakeFailure::BadMessage(error)]);
        assert_clean(&mut world, &mut rogue);
    }
}

#[test]
fn messages_out_of_turn_end_the_handshake() {
    let accept =
        Message::Accept(SessionTerms { spi: Spi(0x0500_0001), capabilities: Capabilities::typical() });
    let table: [(&[Message], &str, &str); 4] = [
        (&[Message::Confirm], "a confirm", "an offer"),
        (core::slice::from_ref(&accept), "an accept", "an offer"),
        (&[offer(), offer()], "an offer", "a confirm"),
        (&[offer(), accept.clone()], "an accept", "a confirm"),
    ];
    for (messages, got, expected) in table {
        let (mut world, mut rogue, id) = connected();
        for message in messages {
            rogue.channels.write(id, &message.emit());
        }
        rogue.exchange(&mut world, SECOND);
        assert_eq!(failures(&world), [HandshakeFailure::OutOfTurn { got, expected }]);
        assert_clean(&mut world, &mut rogue);
    }
}

#[test]
fn a_peer_that_stalls_or_leaves_leaves_nothing_behind() {
    // Before its offer, with half of it, and after the accept; silent or closing.
    let half = offer().emit();
    let cases: [&[u8]; 3] = [&[], &half[..half.len() / 2], &half];
    for (stage, bytes) in cases.into_iter().enumerate() {
        for closes in [true, false] {
            let (mut world, mut rogue, id) = connected();
            rogue.channels.write(id, bytes);
            rogue.exchange(&mut world, SECOND);
            assert_eq!(world.nodes[0].inbound.len(), usize::from(stage == 2));
            if closes {
                rogue.channels.close(id, CloseCode::GaveUp, world.now);
                rogue.exchange(&mut world, SECOND);
                assert!(world.nodes[0].inbound.is_empty(), "it says that it does not use the pair");
            }
            assert_clean(&mut world, &mut rogue);
            assert!(world.nodes[0].outbound.is_empty());
        }
    }
}

#[test]
fn a_peer_that_begins_again_and_again_is_bounded() {
    let (mut world, mut rogue, first) = connected();
    rogue.channels.write(first, &offer().emit());
    for _ in 0..20 {
        rogue.exchange(&mut world, Duration::from_millis(50));
        let id = rogue.channels.connect(address(0).into(), key(0).public(), world.now).ok().unwrap();
        rogue.exchange(&mut world, Duration::from_millis(50));
        rogue.channels.write(id, &offer().emit());
    }
    rogue.exchange(&mut world, Duration::from_millis(100));
    assert!(world.nodes[0].most_inbound <= 4, "{}", world.nodes[0].most_inbound);
    assert!(world.nodes[0].outbound.is_empty(), "none was confirmed");
    rogue.exchange(&mut world, 3 * SECOND);
    assert_eq!(world.nodes[0].control.connections(), 1, "each took the place of the one before");
    assert_clean(&mut world, &mut rogue);
}

#[test]
fn a_peer_that_completes_handshakes_without_end_gets_few_keys() {
    let (mut world, mut rogue, _) = connected();
    let began = world.now;
    for _ in 0..200 {
        let id = rogue.channels.connect(address(0).into(), key(0).public(), world.now).ok().unwrap();
        rogue.exchange(&mut world, Duration::from_millis(20));
        rogue.channels.write(id, &offer().emit());
        rogue.exchange(&mut world, Duration::from_millis(30));
    }
    let accepts = |rogue: &Rogue| {
        let accepted = rogue
            .signals
            .iter()
            .filter(|(_, it)| matches!(it, Signal::Message(it, _) if matches!(**it, Message::Accept(_))));
        accepted.count() as u64
    };
    let (per_second, burst) = crate::control::peer::OFFERS;
    let most = burst + per_second * world.now.since(began).as_secs() + 1;
    assert!((burst..=most).contains(&accepts(&rogue)), "{} of 200, {most} at most", accepts(&rogue));
    assert!(world.nodes[0].totals.drops.get(Reason::TooOften) > 100);
    // An honest handshake a little later is accepted.
    rogue.exchange(&mut world, 2 * SECOND);
    let before = accepts(&rogue);
    let id = rogue.channels.connect(address(0).into(), key(0).public(), world.now).ok().unwrap();
    rogue.exchange(&mut world, Duration::from_millis(100));
    rogue.channels.write(id, &offer().emit());
    rogue.exchange(&mut world, Duration::from_millis(100));
    assert_eq!(accepts(&rogue), before + 1);
    assert_clean(&mut world, &mut rogue);
}

#[test]
fn a_responder_that_answers_wrongly_fails_the_attempt() {
    // Here node 0 begins and the rogue answers.
    let answers: [(&str, Vec<u8>); 4] = [
        ("nothing", Vec::new()),
        ("an offer", offer().emit()),
        ("a confirm", Message::Confirm.emit()),
        ("garbage", vec![0x20; 500]),
    ];
    for (what, bytes) in answers {
        let mut world = ControlWorld::new(1, 2, FAIR);
        let mut rogue = Rogue::new(&world);
        world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
        rogue.exchange(&mut world, Duration::from_millis(100));
        let id = rogue
            .signals
            .iter()
            .find_map(|(id, signal)| matches!(signal, Signal::Message(..)).then_some(*id));
        rogue.channels.write(id.expect("node 0 made an offer"), &bytes);
        rogue.exchange(&mut world, 12 * SECOND);
        let failed = failures(&world);
        let timed_out = failed.first() == Some(&HandshakeFailure::TimedOut);
        assert_eq!(timed_out, what == "nothing", "{what}: {failed:?}");
        assert!(!failed.is_empty() && world.nodes[0].inbound.is_empty(), "{what}");
        assert_eq!(world.nodes[0].control.status(PeerId(1)).unwrap().association, None);
    }
}

/// Node 0 begins, the rogue answers TLS and has the offer.
fn offered_to() -> (ControlWorld, Rogue, ChannelId) {
    let mut world = ControlWorld::new(1, 3, FAIR);
    let mut rogue = Rogue::new(&world);
    world.add(0, peer(1, Where::Address(address(1)), Start::Eager));
    rogue.exchange(&mut world, Duration::from_millis(100));
    let [(_, Signal::Connected), (id, Signal::Message(_, _))] = rogue.signals[..] else {
        panic!("{:?}", rogue.signals)
    };
    (world, rogue, id)
}

#[test]
fn a_peer_that_trickles_gets_no_more_time() {
    let head = 1000_u16.to_be_bytes();
    // As a responder: the attempt ends after its ten seconds, once.
    let (mut world, mut rogue, id) = offered_to();
    rogue.channels.write(id, &head);
    for second in 1..10 {
        rogue.channels.write(id, &[0]);
        rogue.exchange(&mut world, SECOND);
        assert!(second == 10 || failures(&world).is_empty(), "{second}");
    }
    rogue.channels.write(id, &[0]);
    rogue.exchange(&mut world, Duration::from_millis(1000));
    assert_eq!(failures(&world), [HandshakeFailure::TimedOut]);
    let told = |(of, signal): &(_, Signal)| {
        *of == id && matches!(signal, Signal::Closed(Closed::ByPeer(CloseCode::GaveUp)))
    };
    assert!(rogue.signals.iter().any(told), "{:?}", rogue.signals);
    world.ask(0, |control, now| control.remove_peer(PeerId(1), now));
    rogue.exchange(&mut world, 8 * SECOND);
    assert_eq!(failures(&world), [HandshakeFailure::TimedOut]);
    assert_eq!(world.nodes[0].control.connections(), 0);
    // As an initiator: its channel ends after fifteen.
    let (mut world, mut rogue, id) = connected();
    rogue.channels.write(id, &head);
    for _ in 0..16 {
        if rogue.signals.len() == 1 {
            rogue.channels.write(id, &[0]);
        }
        rogue.channels.renew(id, world.now);
        rogue.exchange(&mut world, SECOND);
    }
    assert_eq!(world.nodes[0].control.connections(), 0);
    assert_eq!(failures(&world), [HandshakeFailure::TimedOut]);
}

#[test]
fn yield_is_no_failure_and_gives_the_other_end_time() {
    let (mut world, mut rogue, id) = offered_to();
    rogue.channels.close(id, CloseCode::Yield, world.now);
    rogue.exchange(&mut world, 2 * SECOND);
    assert_eq!(world.count(0, |event| matches!(event, ControlEvent::Yielded { .. })), 1);
    assert_eq!(world.started(0).len(), 1, "the other end's own handshake has a moment");
    rogue.exchange(&mut world, 3 * SECOND);
    assert_eq!(world.started(0).len(), 2);
    assert!(failures(&world).is_empty());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let base = super::world::base();
    let make = |change: fn(&mut crate::ControlSettings)| {
        let mut settings = settings(0, 1, base);
        change(&mut settings);
        crate::Control::new(settings, Time::ZERO).map(|_| ())
    };
    assert_eq!(make(|_| {}), Ok(()));
    let short = Duration::from_secs(1);
    assert_eq!(
        make(|s| s.lifetime.soft = Duration::from_secs(1)),
        Err(SetupError::Lifetime { given: short })
    );
    assert!(matches!(make(|s| s.lifetime.soft = Duration::MAX), Err(SetupError::Lifetime { .. })));
    assert!(matches!(make(|s| s.lifetime.bytes = 0), Err(SetupError::Volume { .. })));
    assert_eq!(make(|s| s.capabilities.suites = SuiteSet::EMPTY), Err(SetupError::NoSuite));
}
