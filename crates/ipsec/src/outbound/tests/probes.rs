//! Probes of the peer, and when they are answered.

use strait_wire::probe::{Probe, ProbeKind};

use super::*;
use crate::outbound::path_mtu::ANY_SIZE;

fn answers(sender: &Sender) -> Vec<Probe> {
    let payloads = opened(&sender.wire, STRAIT).into_iter().map(|(_, payload, _)| payload);
    payloads.filter_map(|payload| Probe::parse(&payload).ok()).collect()
}

#[test]
fn a_peer_with_an_association_hears_that_this_node_is_being_stopped() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    sender.order(Order::Goodbye(PEER));
    assert_eq!(answers(&sender), [Probe { kind: ProbeKind::Goodbye, id: 0, size: ANY_SIZE }]);
    sender.order(Order::Withdraw(PEER, SPI));
    sender.order(Order::Goodbye(PEER));
    assert_eq!(sender.wire.datagrams.len(), 1, "there is none to say it with");
    let mut sender = Sender::new(Payloads::STANDARD, 1500, None, Vec::new());
    sender.order(Order::Goodbye(PEER));
    assert_eq!(sender.wire.datagrams.len(), 0, "no such message was agreed");
}

#[test]
fn a_probe_that_comes_before_there_is_a_key_is_answered_with_the_first() {
    let mut sender = Sender::new(STRAIT, 1500, None, Vec::new());
    sender.order(Order::Withdraw(PEER, SPI));
    sender.order(Order::AnswerProbe(PEER, 6, 1500));
    sender.order(Order::AnswerProbe(PEER, 7, 1500));
    assert_eq!(sender.wire.datagrams.len(), 0);
    for _ in 0..2 {
        sender.order(Order::Install(Box::new(OutboundSa::new(&sa_spec(STRAIT)))));
        assert_eq!(answers(&sender), [Probe { kind: ProbeKind::Answer, id: 7, size: 1500 }]);
    }
}
