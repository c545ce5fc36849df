//! Manual keys, as people read them.

use strait_node::report::{ManualReport, ProtocolReport};

/// What protects and compresses, the outermost first: `esp aes-128-gcm (in 0x04000001, out 0x04000002)`.
pub(crate) fn protocols(manual: &ManualReport) -> String {
    let one = |it: &ProtocolReport| {
        format!(
            "{} {} (in {}, out {})",
            it.protocol,
            it.algorithms.join(" + "),
            it.inbound_spi,
            it.outbound_spi
        )
    };
    let mut all: Vec<String> = manual.protocols.iter().map(one).collect();
    if manual.aggfrag {
        all.push("aggfrag payloads".to_owned());
    }
    all.join(", ")
}

/// What of the traffic, and how it travels.
pub(crate) fn way(manual: &ManualReport) -> String {
    let what = if manual.mode == "transport" { "traffic between two hosts" } else { "whole packets" };
    let how = if manual.carrier == "udp" { "in UDP" } else { "directly behind IP" };
    let from = manual.local.as_ref().map(|local| format!(" from {local}")).unwrap_or_default();
    let cut = if manual.fragment { ", in fragments where it is too large" } else { "" };
    format!("{what} ({} mode), {how}{from}{cut}", manual.mode)
}

/// How far the numbers are used.
pub(super) fn last_packet(manual: &ManualReport) -> String {
    match manual.last_number {
        0 => "none was sent".to_owned(),
        last => format!("has number {last}, of {} bits", manual.sequence_bits),
    }
}
