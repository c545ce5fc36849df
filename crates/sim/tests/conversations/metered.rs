//! Links that are paid for: what a quiet node sends, and what a cap lets leave.

use strait_ipsec::Reason;
use strait_keying::Start;
use strait_scheduler::metering::Admission;
use strait_sim::{Conversation, Filler, LinkSettings, SimNetwork};
use strait_stream::StreamPriority;
use strait_wire::Tos;

use crate::stage::{A, B, Seed, joined, millis, pair, seconds, v4};

const HOUR: u64 = 3600;
/// CS1, for bulk traffic, and EF, for what is interactive.
const BULK: Tos = Tos(8 << 2);
const INTERACTIVE: Tos = Tos(46 << 2);

fn entered(network: &mut SimNetwork) -> [u64; 2] {
    [(A, B), (B, A)].map(|(from, to)| network.link(from, to).counters().entered)
}

/// Two nodes that begin nothing by themselves.
fn waiting(seed: u64, quiet: bool) -> SimNetwork {
    pair(seed, |pair| {
        (pair.start, pair.answer) = (Start::OnTraffic, Some(Start::OnTraffic));
        (pair.a.quiet, pair.b.quiet) = (quiet, quiet);
        pair.forth = LinkSettings { delay: millis(30), ..LinkSettings::default() };
        pair.back = pair.forth;
    })
}

/// Datagrams of A and of B that carry ESP, and wire bytes of all, for an hour of a question each 20 s; B answers or says nothing.
fn questions(seed: u64, quiet: bool, answered: bool) -> ([u64; 2], u64) {
    let mut network = waiting(seed, quiet);
    let mut talks = [v4(A, B, 502), v4(B, A, 502)].map(|shape| Conversation::new(shape, Filler::Random));
    network.start_capture();
    for _ in 0..HOUR / 20 {
        network.send(A, &talks[0].next_packet(100));
        network.run_for(seconds(1));
        if answered {
            network.send(B, &talks[1].next_packet(100));
        }
        network.run_for(seconds(19));
    }
    for (talk, to) in talks.iter_mut().zip([B, A]) {
        talk.note(&network.node_mut(to).take_delivered());
        assert!(talk.tally().missing() <= 1, "{:?}", talk.tally());
    }
    let home = network.node(A).address();
    let captured = network.take_capture();
    let esp =
        |of_a: bool| captured.iter().filter(|one| one.is_esp() && (one.from == home) == of_a).count() as u64;
    ([esp(true), esp(false)], captured.iter().map(|one| one.outer_len()).sum())
}

#[test]
fn a_quiet_node_sends_what_hosts_send_and_nothing_else() {
    let _seed = Seed(1);
    let mut network = waiting(1, true);
    network.run_for(seconds(24 * HOUR));
    assert_eq!(entered(&mut network), [0, 0], "nothing was asked for");
    let count = HOUR / 20;
    let (answered, bytes) = questions(2, true, true);
    assert_eq!(answered, [count, count]);
    let (one_way, _) = questions(3, true, false);
    assert_eq!(one_way, [count, 0], "no probe and no handshake because nothing answers");
    let (usual, usual_bytes) = questions(2, false, true);
    assert!(
        usual[0] > count && bytes < usual_bytes,
        "{bytes} bytes quiet, {usual_bytes} and {usual:?} as usual"
    );
}

#[test]
fn a_quiet_node_wakes_for_nothing() {
    let _seed = Seed(4);
    let mut network = joined(4, |pair| {
        (pair.a.quiet, pair.b.quiet) = (true, true);
        pair.forth = LinkSettings { delay: millis(5), ..LinkSettings::default() };
        pair.back = pair.forth;
    });
    let mut talk = Conversation::new(v4(A, B, 9), Filler::Text);
    for _ in 0..500 {
        network.send(A, &talk.next_packet(1_000));
        network.run_for(millis(1));
    }
    network.run_for(seconds(10));
    // What is not sent must not be due either, or a thread would turn without end.
    let mut steps = 0;
    let end = network.now() + seconds(60);
    while network.now() < end && steps < 1_000 {
        network.run_for(millis(500));
        steps += 1;
    }
    assert_eq!(steps, 120);
    let [forth, back] = entered(&mut network);
    assert!(back < 40 && forth >= 500, "{forth} {back}");
}

#[test]
fn a_class_that_may_not_leave_is_dropped_with_its_reason_and_comes_back() {
    let _seed = Seed(5);
    let mut network = joined(5, |_| {});
    let mut talks = [Tos(0), BULK, INTERACTIVE].map(|tos| {
        let mut talk = Conversation::new(v4(A, B, 1000 + u16::from(tos.0)), Filler::Text);
        talk.set_tos(tos);
        talk
    });
    let mut arrived = |network: &mut SimNetwork| {
        for talk in &mut talks {
            (0..10).for_each(|_| network.send(A, &talk.next_packet(300)));
        }
        network.run_for(seconds(5));
        let delivered = network.node_mut(B).take_delivered();
        [Tos(0), BULK, INTERACTIVE].map(|tos| {
            let of_class = |one: &&strait_sim::Delivered| {
                strait_wire::ip::Packet::parse(&one.packet)
                    .is_ok_and(|packet| packet.tos().dscp() == tos.dscp())
            };
            delivered.iter().filter(of_class).count()
        })
    };
    assert_eq!(arrived(&mut network), [10, 10, 10]);
    network.admit(A, None, Admission::WithoutBulk);
    assert_eq!(arrived(&mut network), [10, 0, 10]);
    network.admit(A, Some(B), Admission::InteractiveOnly);
    assert_eq!(arrived(&mut network), [0, 0, 10], "the stricter of both");
    network.admit(A, Some(B), Admission::All);
    assert_eq!(arrived(&mut network), [10, 0, 10]);
    network.admit(A, None, Admission::All);
    assert_eq!(arrived(&mut network), [10, 10, 10]);
    assert_eq!(network.node(A).drops(Reason::Metered), 10 + 20 + 10);
}

#[test]
fn files_wait_where_bulk_may_not_leave_and_urgent_ones_go() {
    let _seed = Seed(6);
    let mut network = joined(6, |_| {});
    network.admit(A, None, Admission::InteractiveOnly);
    network.send_stream(A, B, 200_000, StreamPriority::Normal);
    network.run_for(seconds(5));
    assert_eq!(network.node(B).streams().tally().read, 0);
    network.send_stream(A, B, 100_000, StreamPriority::Now);
    network.run_for(seconds(5));
    // The streams to a peer share a connection; beside an urgent one, its other streams get what that leaves of a datagram.
    let read = network.node(B).streams().tally().read;
    assert!((100_000..110_000).contains(&read), "{read}");
    network.admit(A, None, Admission::All);
    network.run_for(seconds(20));
    assert_eq!(network.node(B).streams().tally().read, 300_000);
}
