//! Losses and their repair, as people read them.

use strait_node::report::{CORRECTED_LOSS_MIN, PeerReport, REPAIR_ROUND_MAX, RepairReport, RepairState};

use crate::units::{self, counted};

/// What is done about losses of what is sent to the peer; nothing where that is nothing, which `why` explains.
pub(super) fn state(repair: &RepairReport) -> String {
    match known(repair) {
        Some(RepairState::NotAgreed | RepairState::NotPaced) => String::new(),
        Some(RepairState::Retransmission) => "lost payloads are sent again".to_owned(),
        Some(RepairState::FewLosses) => "no repair symbols, as little is lost".to_owned(),
        Some(RepairState::ErrorCorrection) => symbols(repair),
        None => repair.state.clone(),
    }
}

/// What was lost of the peer's datagrams and what came back.
pub(super) fn missing(repair: &RepairReport) -> String {
    if repair.missing_datagrams == 0 {
        return String::new();
    }
    let came = [
        (repair.repaired_datagrams, "came by being sent again"),
        (repair.recovered_datagrams, "came back out of repair symbols"),
        (repair.empty_datagrams, "carried no payload"),
        (repair.late_datagrams, "came late"),
    ];
    let came = came.iter().filter(|(count, _)| *count > 0).map(|(count, how)| format!("{count} {how}"));
    let lost = [format!("{} stayed lost", repair.lost_datagrams)];
    let came: Vec<String> = came.chain(lost).collect();
    let twice = match repair.duplicate_payloads {
        0 => String::new(),
        count => format!("; {} came twice", counted(count, "payload")),
    };
    format!("of {}: {}{twice}", counted(repair.missing_datagrams, "datagram"), came.join(", "))
}

/// What the two nodes sent for the sake of repair, and how much of all bytes that is.
pub(crate) fn cost(peer: &PeerReport, repair: &RepairReport) -> String {
    if repair.wire_bytes == 0 && repair.received_wire_bytes == 0 {
        return String::new();
    }
    let kinds = [
        (repair.repeated_payloads, "payload"),
        (repair.symbols_sent, "repair symbol"),
        (repair.requests_sent, "request"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match *what {
        "payload" => format!("{} again", counted(*count, what)),
        what => counted(*count, what),
    });
    let kinds: Vec<String> = kinds.collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    let sent = share(repair.wire_bytes, peer.sent.wire_bytes);
    let received = share(repair.received_wire_bytes, peer.received.wire_bytes);
    format!("{sent} sent{kinds}; {received} received")
}

/// Bytes, and how much of all they are.
fn share(bytes: u64, all: u64) -> String {
    let share = if all == 0 { 0.0 } else { bytes as f64 * 100.0 / all as f64 };
    format!("{} ({share:.1} %)", units::bytes(bytes))
}

/// Why it is on or off, and by which method.
pub(crate) fn reason(peer: &PeerReport, repair: &RepairReport) -> String {
    let longest = format!("{} ms", REPAIR_ROUND_MAX.as_millis());
    let begins = format!("{:.2} %", CORRECTED_LOSS_MIN * 100.0);
    let rtt = peer.path.as_ref().and_then(|path| path.rtt_seconds);
    let rtt = rtt.map_or("a round trip that is not measured yet".to_owned(), |rtt| {
        format!("a round trip of {:.1} ms", rtt * 1e3)
    });
    match known(repair) {
        Some(RepairState::NotAgreed) => {
            "off: `repair` is \"off\" at one end, or the peer cannot repair".to_owned()
        }
        Some(RepairState::NotPaced) => "off: no rate is known; a rate is given in [link], or \"auto\" \
             repairs from a loss of some thousandths on and finds the rate once the link is full"
            .to_owned(),
        Some(RepairState::Retransmission) => {
            format!("on: lost payloads are sent again, which comes in time with {rtt} (up to {longest})")
        }
        Some(RepairState::FewLosses) => format!(
            "on, and nothing is sent: {rtt} is too long to send payloads again (above {longest}), and repair \
             symbols begin at a loss of {begins}"
        ),
        Some(RepairState::ErrorCorrection) => {
            let symbols = symbols(repair);
            format!("on: {symbols}, as {rtt} is too long to send payloads again (above {longest})")
        }
        None => repair.state.clone(),
    }
}

/// Losses on the path to the peer while no queue stands on it.
pub(crate) fn losses(repair: &RepairReport) -> String {
    if repair.loss_ratio == 0.0 {
        return "none while no queue stood on the path".to_owned();
    }
    format!(
        "{:.2} % while no queue stood on the path, {:.1} datagrams one after another on average",
        repair.loss_ratio * 100.0,
        repair.mean_burst_datagrams
    )
}

/// How many repair symbols are sent now.
fn symbols(repair: &RepairReport) -> String {
    match repair.symbols_per_payload {
        each if each > 0.0 => format!("{:.1} repair symbols for 100 payloads", each * 100.0),
        _ => "repair symbols, but none for so sparse traffic as now".to_owned(),
    }
}

fn known(repair: &RepairReport) -> Option<RepairState> {
    RepairState::ALL.into_iter().find(|state| state.name() == repair.state)
}
