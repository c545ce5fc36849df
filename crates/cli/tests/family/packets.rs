//! Our packet path and scapy, both ways, through every case that scapy knows.

use strait_testbed::outside::has_scapy;

use crate::agreement::{Agreement, Direction, INSIDE};
use crate::case::Mode;
use crate::echo::Echo;
use crate::matrix::chosen;
use crate::oracles::{requests, scapy_knows};
use crate::ours::Ours;
use crate::scapy::Scapy;
use crate::tried::Tried;

#[test]
fn our_packets_are_scapys_and_scapys_are_ours() {
    if !has_scapy() {
        return;
    }
    let (mut scapy, mut tried) = (Scapy::start(), Tried::default());
    // Outside addresses that are no inside ones.
    let outside = [
        ([192, 0, 2, 1].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
        ([192, 0, 2, 2].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into()),
    ];
    assert_ne!(outside, INSIDE);
    for (number, case) in chosen().into_iter().filter(|(_, case)| scapy_knows(*case)) {
        let agreement = Agreement { case, number, outside };
        tried.note(case, both_ways(&mut scapy, agreement));
    }
    tried.conclude("scapy");
}

fn both_ways(scapy: &mut Scapy, agreement: Agreement) -> Result<(), String> {
    let mut ours = Ours::new(agreement);
    let requests = requests(&agreement);
    let out: Vec<_> = requests.iter().map(Echo::packet).collect();
    let sealed = ours.seal(&out);
    let opened = scapy.open(&agreement, Direction::ToGuest, &sealed, 0)?;
    if !same(agreement, &opened.packets, &out) {
        return Err(format!(
            "scapy found other packets in ours: {:?}, dropped {:?}",
            opened.layers,
            ours.drops()
        ));
    }
    let compressed = opened.layers.iter().filter(|layers| layers.iter().any(|it| it == "ipcomp")).count();
    if agreement.case.ipcomp != (compressed > 0) {
        return Err(format!("{compressed} packets were compressed"));
    }
    let back: Vec<_> = requests.iter().map(|request| request.reply().packet()).collect();
    let sealed = scapy.seal(&agreement, Direction::FromGuest, &back, 1)?;
    let found = ours.open(&sealed);
    if same(agreement, &found, &back) {
        return Ok(());
    }
    Err(format!("{} of {} came in, dropped {:?}", found.len(), back.len(), ours.drops()))
}

/// Whether packets are those that were sent. Behind UDP a transport-mode packet gets headers made anew; what is in
/// them is the same.
fn same(agreement: Agreement, found: &[Vec<u8>], sent: &[Vec<u8>]) -> bool {
    let echoes = |packets: &[Vec<u8>]| packets.iter().map(|it| Echo::of(it)).collect::<Vec<_>>();
    match agreement.case.mode {
        Mode::Transport if agreement.case.udp => echoes(found) == echoes(sent),
        _ => found == sent,
    }
}
