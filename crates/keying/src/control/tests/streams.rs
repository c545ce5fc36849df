//! Connections for streams are admitted as handshakes are.

use core::time::Duration;
use std::sync::Arc;

use quinn_proto::{EndpointEvent, TransportConfig};
use strait_ipsec::{PeerId, Reason};

use super::misbehaviour::Rogue;
use super::world::{ControlWorld, FAIR, address, key, peer};
use crate::channel::admission::UNPROVEN;
use crate::{ControlEvent, LentEvent, Role, Start, StreamTransport, Where};

const SECOND: Duration = Duration::from_secs(1);

/// QUIC's own parameters.
#[derive(Debug)]
struct Usual;

impl StreamTransport for Usual {
    fn transport(&self, _: std::net::SocketAddr) -> Arc<TransportConfig> {
        Arc::new(TransportConfig::default())
    }
}

/// Node 0 with streams, and node 1 as a peer that only a rogue plays.
fn serving(seed: u64) -> ControlWorld {
    let mut world = ControlWorld::new(1, seed, FAIR);
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    world.nodes[0].control.serve_streams(Arc::new(Usual));
    world
}

fn rogue(world: &ControlWorld, node: u8) -> Rogue {
    let mut rogue = Rogue::with_key(world, node);
    rogue.channels.serve_streams(Arc::new(Usual));
    rogue
}

/// Begins `count` connections for streams with node 0.
fn begin(rogue: &mut Rogue, world: &mut ControlWorld, count: usize) {
    for _ in 0..count {
        let begun = rogue.channels.connect_streams(address(0).into(), key(0).public(), world.now);
        assert!(begun.is_some_and(|begun| begun.is_ok()));
        rogue.exchange(world, Duration::from_millis(20));
    }
}

/// The connections that node 0 lent.
fn lent(world: &mut ControlWorld) -> usize {
    let mut count = 0;
    while let Some(event) = world.nodes[0].control.poll_lent() {
        if let LentEvent::Connected(lent) = event {
            assert_eq!((lent.peer, lent.key, lent.role), (PeerId(1), key(1).public(), Role::Responder));
            count += 1;
            // Dropped at once, as a driver does with what is too many.
            let _ = world.ask(0, |control, _| control.lent_event(lent.handle, EndpointEvent::drained()));
        }
    }
    count
}

#[test]
fn a_peer_is_lent_a_connection_and_a_stranger_none() {
    let mut world = serving(1);
    let mut friend = rogue(&world, 1);
    begin(&mut friend, &mut world, 1);
    friend.exchange(&mut world, SECOND);
    assert_eq!(lent(&mut world), 1);
    let mut stranger = rogue(&world, 9);
    begin(&mut stranger, &mut world, 1);
    stranger.exchange(&mut world, SECOND);
    assert_eq!(lent(&mut world), 0);
    assert_eq!(world.count(0, |event| matches!(event, ControlEvent::Refused { .. })), 1);
}

/// Its node may have a session that this one has forgotten.
#[test]
fn one_that_is_not_listed_is_lent_a_connection_where_such_are_taken() {
    let mut world = serving(3);
    world.ask(0, |control, now| control.take_unlisted(1, now));
    for (node, lent) in [(9, true), (8, false)] {
        let mut unlisted = rogue(&world, node);
        begin(&mut unlisted, &mut world, 1);
        unlisted.exchange(&mut world, SECOND);
        match world.nodes[0].control.poll_lent() {
            Some(LentEvent::Connected(it)) => {
                assert_eq!(
                    (world.nodes[0].unlisted.as_slice(), it.key),
                    (&[it.peer][..], key(node).public())
                );
                assert!(lent);
            }
            other => assert!(!lent, "{other:?}"),
        }
    }
}

/// The peer has a session that this node forgot when it was restarted: without one, nothing that streams say would leave.
#[test]
fn a_connection_for_streams_of_a_peer_without_a_session_begins_one_where_it_is() {
    let mut world = serving(5);
    let mut friend = rogue(&world, 1);
    begin(&mut friend, &mut world, 1);
    friend.exchange(&mut world, SECOND);
    assert_eq!(lent(&mut world), 1);
    let begun = |event: &ControlEvent| matches!(event, ControlEvent::HandshakeStarted { peer: PeerId(1), to } if *to == address(1));
    assert_eq!(world.count(0, begun), 1);
    // A stranger's begins none.
    let mut stranger = rogue(&world, 9);
    begin(&mut stranger, &mut world, 1);
    stranger.exchange(&mut world, SECOND);
    assert_eq!(world.count(0, |event| matches!(event, ControlEvent::HandshakeStarted { .. })), 1);
}

#[test]
fn a_peer_begins_no_more_connections_than_a_script_needs() {
    let mut world = serving(2);
    let mut friend = rogue(&world, 1);
    let (began, mut count) = (world.now, 0);
    for _ in 0..100 {
        begin(&mut friend, &mut world, 1);
        count += lent(&mut world);
    }
    let (rate, burst) = super::super::peer::STREAM_OFFERS;
    let most = burst + rate * (world.now.since(began).as_secs() + 1);
    assert!(count > 1 && count as u64 <= most, "{count} of at most {most}");
    assert!(world.nodes[0].totals.drops.get(Reason::TooOften) > 0);
}

#[test]
fn a_node_without_streams_keeps_nothing_of_such_connections() {
    let mut world = ControlWorld::new(1, 3, FAIR);
    world.add(0, peer(1, Where::Unknown, Start::OnTraffic));
    let mut friend = rogue(&world, 1);
    begin(&mut friend, &mut world, 5);
    assert_eq!((world.nodes[0].control.connections(), lent(&mut world)), (0, 0));
}

#[test]
fn connections_for_streams_from_unproven_addresses_are_as_few_as_handshakes() {
    let mut world = serving(4);
    let mut most = 0;
    for number in 0..200_u8 {
        let mut stranger = rogue(&world, 9);
        let begun = stranger.channels.connect_streams(address(0).into(), key(0).public(), world.now);
        assert!(begun.is_some_and(|begun| begun.is_ok()));
        stranger.channels.flush(world.now);
        while let Some(datagram) = stranger.channels.next_transmit() {
            world.forge(0, ([10, 0, 1, number], 4000).into(), &datagram.bytes);
        }
        most = most.max(world.nodes[0].control.connections());
        world.run(Duration::from_millis(2));
    }
    assert!(most <= UNPROVEN + 1, "{most} connections at once");
}
