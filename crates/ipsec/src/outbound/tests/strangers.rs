//! Control datagrams beside the packets of a tunnel: they never silence it.

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::Time;

use super::*;
use crate::Place;
use crate::outbound::Via;

const STRANGER: &str = "203.0.113.9:4000";
/// Bytes of a control datagram, and on the wire.
const LEN: usize = 1172;
const WIRE: u64 = LEN as u64 + 28;

/// A sender whose own link takes 1 Mbit/s, as does the path to its peer.
fn sender() -> Sender {
    let mut sender = Sender::new(STRAIT, 1500, slow(), Vec::new());
    sender.order(Order::Link(slow(), 0));
    sender
}

fn to() -> Place {
    STRANGER.parse::<SocketAddr>().unwrap().into()
}

fn control() -> Box<[u8]> {
    vec![0x40; LEN].into()
}

/// Runs for `span` with more packets than the link takes; the longest time in which none left.
fn longest_silence(sender: &mut Sender, span: Duration, mut each: impl FnMut(&mut Sender)) -> Duration {
    let (end, mut last, mut longest) = (sender.now + span, sender.now, Duration::ZERO);
    let mut seen = sender.wire.datagrams.len();
    while sender.now < end {
        sender.send(&noise(80, 600).packet(), &PLAIN);
        each(sender);
        sender.out.release(sender.now, &mut sender.wire);
        let new = sender.wire.datagrams.get(seen..).unwrap_or_default();
        if new.iter().any(|(bytes, _)| bytes[0] != 0x40) {
            (longest, last) = (longest.max(sender.now - last), sender.now);
        }
        seen = sender.wire.datagrams.len();
        sender.now += Duration::from_millis(1);
    }
    longest.max(end - last)
}

fn answers(sender: &Sender) -> u64 {
    sender.wire.datagrams.iter().filter(|(bytes, _)| bytes[0] == 0x40).count() as u64
}

#[test]
fn a_flood_of_answers_leaves_the_tunnel_half_of_its_link_and_no_debt() {
    let mut sender = sender();
    let flood = Duration::from_secs(2);
    let silence = longest_silence(&mut sender, flood, |sender| {
        for _ in 0..10 {
            sender.order(Order::Answer(Via::Udp, to(), control()));
        }
    });
    assert!(silence <= Duration::from_millis(40), "{silence:?}");
    let sent = answers(&sender) * WIRE;
    let half = slow().unwrap().bytes_in(flood) / 2;
    assert!(sent <= half + 2 * WIRE, "{sent} of {half}");
    assert!(sent >= half / 2, "a packet of the tunnel does not keep all out: {sent}");
    let refused = sender.counters.drops.get(Reason::AnswerOverBudget);
    assert!(refused + answers(&sender) + 16 >= 20_000, "{refused}");
    let after = longest_silence(&mut sender, Duration::from_secs(1), |_| {});
    assert!(after <= Duration::from_millis(40), "{after:?}");
}

#[test]
fn an_answer_on_an_idle_link_leaves_at_once() {
    let mut sender = sender();
    sender.order(Order::Answer(Via::Udp, to(), control()));
    assert_eq!(answers(&sender), 1);
    sender.order(Order::Answer(Via::Udp, to(), control()));
    assert_eq!(answers(&sender), 1, "the link is busy with the first");
    sender.drain();
    assert_eq!(answers(&sender), 2);
    assert!(sender.now <= Time::from_millis(1020), "{:?}", sender.now);
    assert_eq!(sender.out.poll_timeout(), None);
}

#[test]
fn many_handshakes_of_peers_at_once_leave_a_bounded_debt() {
    let mut sender = sender();
    // A hundred peers' worth: ten seconds of this link.
    for _ in 0..1000 {
        sender.order(Order::Transmit(Via::Udp, to(), control()));
    }
    assert_eq!(answers(&sender), 1000);
    let silence = longest_silence(&mut sender, Duration::from_secs(1), |_| {});
    assert!(silence <= Duration::from_millis(120), "{silence:?}");
}
