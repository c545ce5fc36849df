//! What random operations found, each as short as it can be.

use strait_compress::CodecSet;
use strait_ipsec::{Payloads, RepairTerms};
use strait_scheduler::Rate;
use strait_sim::operations::data::{self, Between, DataOperation, DataSettings, DataSummary};

/// Settings and operations as bytes; what comes of them.
fn run(settings: [u8; 4], operations: &[[u8; 4]]) -> DataSummary {
    let operations = operations.iter().map(|bytes| DataOperation::read(*bytes));
    data::run_all(DataSettings::read(settings), operations).unwrap_or_else(|violation| panic!("{violation}"))
}

/// Packets for a Strait peer wait together, and leave under an association that carries no more than one packet a
/// datagram.
#[test]
fn packets_gathered_for_a_strait_peer_leave_one_by_one_for_a_standard_one() {
    let (hold, pass, becomes_standard) = ([45, 0, 3, 9], [15, 0, 3, 9], [36, 0, 5, 0]);
    // Eight packets of text in each of three classes of service: a unit for this thread, others for a worker.
    let [first, second, third] = [0, 8, 10].map(|flow| [0, 0, flow, 20]);
    let summary = run([0x11, 0, 0, 0], &[hold, first, second, third, pass, becomes_standard]);
    assert_eq!((summary.given, summary.received), (24, 24));
}

/// The peer expands no block above 4,000 bytes: a packet of 9,000 cannot go as one, compressed or not.
#[test]
fn packets_beyond_what_a_peer_expands_are_counted_as_too_big() {
    let (may_be_cut, may_not) = ([0, 0, 3, 7], [0, 0, 1, 7]);
    let summary = run([0, 4, 0, 1], &[may_be_cut, may_not, [12, 0, 0, 0]]);
    assert_eq!((summary.given, summary.dropped, summary.received), (2, 2, 0));
}

/// A link that lost its association gives up its jobs, and another link, whose turn was before, needs one.
#[test]
fn a_link_whose_jobs_another_gave_up_has_another_turn() {
    let (text, fragments, withdraw) = ([0, 0, 14, 26], [53, 2, 15, 0], [38, 0, 0, 0]);
    run([0x91, 0, 0, 0], &[text, [32, 0, 188, 0], fragments, withdraw, [12, 0, 0, 0]]);
}

/// A link has its turn and nothing left to send after it, so it leaves the round; another link is still in it.
#[test]
fn a_link_has_its_turn_when_the_one_before_it_leaves_the_round() {
    let to_gone = |flow, shape| [0, 3, flow, shape];
    let (release, withdraw, install) = ([12, 0, 0, 0], [38, 3, 0, 0], [36, 6, 0, 0]);
    let operations = [to_gone(14, 130), to_gone(8, 83), release, [0, 6, 0, 0], withdraw, install, release];
    run([0xd1, 0, 57, 6], &operations);
}

/// A site moves while datagrams are on their way to it: more of them are asked for than may be sent again.
#[test]
fn what_is_not_sent_again_had_left() {
    let settings = DataSettings {
        payloads: Payloads::Strait { codecs: CodecSet::from_bits(223), block_cap: 65_536 },
        pace: Rate::from_bits(2_048_000),
        repair: RepairTerms::Kept,
        ..DataSettings::read([0; 4])
    };
    let send = |from, flow, shape| {
        let between = Between { from, to: 1 - from };
        DataOperation::Send { between, flow, shape }
    };
    let advance = DataOperation::Advance(core::time::Duration::from_millis(100));
    let operations = [send(1, 7, 23), DataOperation::Move(0), advance, send(0, 0, 0)];
    let DataSummary { given, left, dropped, .. } = data::run_all(settings, operations).unwrap();
    assert_eq!((given, left, dropped), (9, 8, 1));
}

/// A report tells of the first of the numbers that left within 2 ms of each other, on a path without delay, after 200 ms.
#[test]
fn a_report_that_was_held_is_not_counted_as_a_drop() {
    let settings = DataSettings {
        payloads: Payloads::Strait { codecs: CodecSet::from_bits(223), block_cap: 65_536 },
        pace: Rate::from_bits(65_536_000),
        mtu: Some(1500),
        lossless: true,
        ..DataSettings::read([0; 4])
    };
    let send = |from, to, flow, shape| DataOperation::Send { between: Between { from, to }, flow, shape };
    let operations = [
        send(2, 0, 0, 16),
        send(0, 1, 0, 0),
        send(0, 2, 13, 253),
        DataOperation::Release,
        DataOperation::Rules { site: 0, form: 63 },
        DataOperation::Withdraw(Between { from: 0, to: 2 }),
        send(0, 2, 11, 214),
        send(0, 2, 3, 204),
    ];
    data::run_all(settings, operations).unwrap();
}
