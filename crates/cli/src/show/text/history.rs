//! History of packets that leave alone, and of blocks, as people read it.

use strait_node::report::HistoryReport;

use crate::units::{self, counted};

/// What history saved on packets and blocks to the peer, and what receipts to the peer took; nothing where there was neither.
pub(crate) fn saved(history: &HistoryReport) -> String {
    let mut said = Vec::new();
    if history.coded_packets > 0 {
        let saved = history.bytes_before.saturating_sub(history.bytes_after);
        let share = saved as f64 * 100.0 / history.bytes_before.max(1) as f64;
        said.push(format!(
            "{} alone, {share:.1} % shorter for earlier ones: {} saved",
            counted(history.coded_packets, "packet"),
            units::bytes(saved)
        ));
    }
    if history.sent_blocks > 0 {
        let blocks = counted(history.sent_blocks, "block");
        said.push(match history.compared_bytes_alone {
            0 => format!("{blocks} behind earlier ones"),
            alone => {
                let saved = alone as f64 - history.compared_bytes_behind as f64;
                let share = saved * 100.0 / alone as f64;
                format!("{blocks} behind earlier ones, {share:.1} % shorter for them (measured on one in 64)")
            }
        });
    }
    if history.sent_copies > 0 {
        let blocks = counted(history.sent_copies, "block");
        let copied = units::bytes(history.copied_bytes);
        said.push(format!("{blocks} with copies of what was sent before: {copied} not sent again"));
    }
    let (there, here) = (history.held_bytes_there, history.held_bytes_here);
    if there + here > 0 {
        said.push(format!(
            "byte caches hold {} there and {} here, which all flows of their domains can be guessed by",
            units::bytes(there),
            units::bytes(here)
        ));
    }
    if history.receipts_sent > 0 {
        let datagrams = counted(history.receipts_sent, "datagram");
        said.push(format!("{datagrams} of receipts took {}", units::bytes(history.receipts_sent_wire_bytes)));
    }
    said.join("; ")
}
