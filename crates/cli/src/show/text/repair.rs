//! Losses and their repair, as people read them.

use strait_node::report::RepairReport;

use crate::units;

/// What was lost of the peer's datagrams and what came back; then what this node sent for the sake of repair.
pub(super) fn state(repair: &RepairReport) -> String {
    let RepairReport { missing_datagrams: missing, repaired_datagrams: repaired, .. } = repair;
    let mut parts = Vec::new();
    if *missing > 0 {
        let (late, lost) = (repair.late_datagrams, repair.lost_datagrams);
        parts.push(format!(
            "of {missing} missing datagrams {repaired} were sent again, {late} came late, {lost} were lost"
        ));
    }
    let (again, requests) = (repair.repeated_payloads, repair.requests_sent);
    let bytes = units::bytes(repair.wire_bytes);
    parts.push(format!("sent: {again} payloads again, {requests} requests, {bytes}"));
    parts.join("; ")
}
