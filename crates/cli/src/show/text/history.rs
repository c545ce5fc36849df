//! History of packets that leave alone, as people read it.

use strait_node::report::HistoryReport;

use crate::units::{self, counted};

/// What history saved on packets to the peer, and what receipts to the peer took; nothing where there was neither.
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
    if history.receipts_sent > 0 {
        let datagrams = counted(history.receipts_sent, "datagram");
        said.push(format!("{datagrams} of receipts took {}", units::bytes(history.receipts_sent_wire_bytes)));
    }
    said.join("; ")
}
