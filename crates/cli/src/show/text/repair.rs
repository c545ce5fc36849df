//! Losses and their repair, as people read them.

use strait_node::report::RepairReport;

use crate::units;

/// What was lost of the peer's datagrams and what came back; then what this node sent for the sake of repair.
pub(super) fn state(repair: &RepairReport) -> String {
    let mut parts = Vec::new();
    if repair.missing_datagrams > 0 {
        let came = [
            (repair.repaired_datagrams, "were sent again"),
            (repair.recovered_datagrams, "came back out of repair symbols"),
            (repair.empty_datagrams, "carried no payload"),
            (repair.late_datagrams, "came late"),
        ];
        let mut came: Vec<String> = came
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, how)| format!("{count} {how}"))
            .collect();
        came.push(format!("{} were lost", repair.lost_datagrams));
        parts.push(format!("of {} missing datagrams {}", repair.missing_datagrams, came.join(", ")));
    }
    let (again, requests) = (repair.repeated_payloads, repair.requests_sent);
    let bytes = units::bytes(repair.wire_bytes);
    let symbols = match repair.symbols_sent {
        0 => String::new(),
        sent => format!("{sent} repair symbols, "),
    };
    parts.push(format!("sent: {again} payloads again, {requests} requests, {symbols}{bytes}"));
    if repair.symbols_per_payload > 0.0 {
        parts.push(format!("now {:.1} repair symbols for 100 payloads", repair.symbols_per_payload * 100.0));
    }
    parts.join("; ")
}
