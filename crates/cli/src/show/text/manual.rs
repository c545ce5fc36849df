//! Manual keys, as people read them.

use strait_node::report::{ManualReport, ProtocolReport};

/// Protocols, the outermost first: `esp aes-128-gcm (SPI in 0x04000001, out 0x04000002)`.
pub(crate) fn protocols(manual: &ManualReport) -> String {
    let one = |it: &ProtocolReport| {
        format!(
            "{} {} ({} in {}, out {})",
            it.protocol,
            it.algorithms.join(" + "),
            if it.protocol == "ipcomp" { "CPI" } else { "SPI" },
            it.inbound_spi,
            it.outbound_spi
        )
    };
    let mut all: Vec<String> = manual.protocols.iter().map(one).collect();
    if manual.aggfrag {
        all.push("AGGFRAG payloads".to_owned());
    }
    all.join(", ")
}

/// Mode, carrier, local address and fragmentation.
pub(crate) fn mode(manual: &ManualReport) -> String {
    let carrier = if manual.carrier == "udp" { "in UDP" } else { "directly over IP" };
    let local = manual.local.as_ref().map(|local| format!(", local address {local}")).unwrap_or_default();
    let fragments = if manual.outer_fragmentation { ", outer fragmentation" } else { "" };
    format!("{} mode, {carrier}{local}{fragments}", manual.mode)
}

/// The last sequence number and how many bits there are.
pub(super) fn sequence_number(manual: &ManualReport) -> String {
    let bits = if manual.esn { "64-bit, ESN" } else { "32-bit" };
    match manual.last_sequence_number {
        0 => format!("none sent ({bits})"),
        last => format!("{last} sent last ({bits})"),
    }
}
