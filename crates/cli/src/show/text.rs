//! The state and counters of a running tunnel, as people read them.

mod carrier;
mod directory;
pub(crate) mod engines;
pub(crate) mod history;
pub(crate) mod leak;
pub(crate) mod manual;
mod metered;
mod path;
pub(crate) mod queue;
pub(crate) mod repair;
pub(crate) mod sessionless;

use std::time::Duration;

use jiff::tz::TimeZone;
use strait_node::report::{
    AssociationReport, DaemonReport, NodeReport, PeerReport, RepairReport, RuleReport, SessionlessReport,
    TrafficReport,
};
use strait_scheduler::Rate;

use crate::table::{Side, TextTable};
use crate::units::{self, counted};

/// The whole report; counters that are 0 are left out where they have a line of their own.
pub(crate) fn render(report: &DaemonReport) -> String {
    let mut out = node(&report.node);
    for peer in &report.peers {
        out.push('\n');
        out.push_str(&one_peer(peer));
    }
    if let Some(told) = &report.directory {
        out.push_str(&format!("\ndirectory\n{}", list(&directory::lines(told))));
    }
    let nothing = || TextTable::new([""]);
    let sessionless = |table: &dyn Fn(&SessionlessReport) -> TextTable| {
        report.sessionless.as_ref().map_or_else(nothing, table)
    };
    for (title, table) in [
        (metered::TITLE, metered::table(&report.metered, &TimeZone::system())),
        ("compression rules", rules(report)),
        (leak::TITLE, leak::table(&report.rules)),
        ("sent by service", services(report)),
        ("codecs", codecs(report)),
        ("dropped packets", drops(report)),
        ("threads", threads(report)),
        ("caches of keys without sessions", sessionless(&sessionless::caches)),
        ("datagrams refused without sessions", sessionless(&sessionless::refusals)),
    ] {
        if !table.is_empty() {
            out.push_str(&format!("\n{title}\n{}", table.render(2)));
        }
    }
    out.push_str(&format!("\ncontrol channel: {} on the wire", units::bytes(report.control.wire_bytes)));
    if report.control.dropped_messages > 0 {
        let dropped = counted(report.control.dropped_messages, "message");
        out.push_str(&format!(", {dropped} from packet threads dropped"));
    }
    if report.control.refused_connections > 0 {
        let refused = counted(report.control.refused_connections, "connection");
        out.push_str(&format!("\nmetrics: {refused} refused"));
    }
    out.push('\n');
    out
}

/// Named values, one a line, the values under each other.
fn list(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let shown = lines.iter().filter(|(_, value)| !value.is_empty());
    shown.map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

fn node(node: &NodeReport) -> String {
    let side = |name, bits: Option<u64>, auto: bool| match bits {
        Some(bits) => Some(format!("{name} {}", rate(bits))),
        None => auto.then(|| format!("{name} auto")),
    };
    let (up, down) = (node.up_bits_per_second, node.down_bits_per_second);
    let sides = [side("up", up, node.up_auto), side("down", down, node.down_auto)];
    let link: Vec<String> = sides.into_iter().flatten().collect();
    let lost = format!("{} could not be written", counted(node.lost_log_lines, "line"));
    let log: Vec<String> =
        node.log.clone().into_iter().chain(Some(lost).filter(|_| node.lost_log_lines > 0)).collect();
    let lines = [
        ("public key", node.public_key.clone().unwrap_or_default()),
        ("listening on", node.listen.clone()),
        ("addresses", node.addresses.join(", ")),
        ("inner MTU", format!("{} bytes", node.mtu)),
        ("link", if link.is_empty() { "unshaped".to_owned() } else { link.join(", ") }),
        ("forwarding", forwarding(node)),
        ("configuration", node.configuration.clone()),
        ("log", log.join("; ")),
        (
            "uptime",
            format!("{} (PID {}, version {})", units::seconds(node.uptime_seconds), node.pid, node.version),
        ),
    ];
    let (kept, limit) = (node.memory_kept_bytes, node.memory_limit_bytes);
    let memory = (kept > 0)
        .then(|| ("memory", format!("{} of {} kept for peers", units::bytes(kept), units::bytes(limit))));
    let unlisted = (node.unlisted_nodes > 0).then(|| {
        ("not listed", format!("{}, for logins with a ticket", counted(node.unlisted_nodes, "node")))
    });
    let folders = node.folders.iter().map(|it| ("folder", format!("{} ({})", it.name, it.rights())));
    let warnings = node.warnings.iter().map(|warning| ("WARNING", warning.clone()));
    let lines: Vec<_> =
        lines.into_iter().chain(folders).chain(memory).chain(unlisted).chain(warnings).collect();
    format!("{}\n{}", node.interface, list(&lines))
}

fn endpoint(peer: &PeerReport) -> String {
    let place = match (&peer.endpoint, &peer.outer_interface) {
        (None, _) => "unknown".to_owned(),
        (Some(endpoint), Some(interface)) => format!("{endpoint} by {interface}"),
        (Some(endpoint), None) => format!("{endpoint} (no route to it)"),
    };
    let heard =
        |age| format!(", heard there {} ago, before this start", units::span(Duration::from_secs(age)));
    place + &peer.endpoint_age_seconds.map_or(String::new(), heard)
}

fn forwarding(node: &NodeReport) -> String {
    let networks = node.forward_networks.join(", ");
    match (node.forward, networks.is_empty()) {
        (true, true) => "between peers (hub)".to_owned(),
        (true, false) => format!("between peers (hub), and to {networks}"),
        (false, true) => String::new(),
        (false, false) => format!("to {networks}"),
    }
}

fn one_peer(peer: &PeerReport) -> String {
    let (association, manual) = (peer.association.as_ref(), peer.manual.as_ref());
    let repair = |what: &dyn Fn(&RepairReport) -> String| peer.repair.as_ref().map(what).unwrap_or_default();
    let lines = [
        ("public key", peer.public_key.clone().unwrap_or_default()),
        ("endpoint", endpoint(peer)),
        ("allowed IPs", peer.allowed_ips.join(", ")),
        (
            "last handshake",
            if manual.is_some() || peer.sessionless.is_some() { String::new() } else { handshake(peer) },
        ),
        ("last failure", peer.last_failure().unwrap_or_default()),
        ("without session", peer.sessionless.as_ref().map(sessionless::keys).unwrap_or_default()),
        ("packet keys", peer.sessionless.as_ref().map(sessionless::packet_keys).unwrap_or_default()),
        ("manual keys", manual.map(manual::protocols).unwrap_or_default()),
        ("mode", manual.map(manual::mode).unwrap_or_default()),
        ("sequence number", manual.map(manual::sequence_number).unwrap_or_default()),
        ("SA pair", association.map(associations).unwrap_or_default()),
        ("next rekey", association.map(next_rekey).unwrap_or_default()),
        ("carrier", peer.carrier.as_ref().map(carrier::state).unwrap_or_default()),
        ("link rate", path::link_rate(peer)),
        ("queue", queue::length(&peer.queue)),
        ("aggregation", queue::aggregation(&peer.queue)),
        ("last heard", last_heard(peer)),
        ("not answered", unanswered(peer)),
        ("path", peer.path.as_ref().map(|it| path::state(it) + &age(peer)).unwrap_or_default()),
        ("repair", repair(&repair::state)),
        ("missing", repair(&repair::missing)),
        ("repair cost", repair(&|it| repair::cost(peer, it))),
        ("kept", if peer.kept_bytes > 0 { units::bytes(peer.kept_bytes) } else { String::new() }),
        ("history", peer.history.as_ref().map(history::saved).unwrap_or_default()),
        ("remembered", peer.path.as_ref().map(path::remembered).unwrap_or_default()),
        ("inner MTU", if peer.inner_mtu > 0 { format!("{} bytes", peer.inner_mtu) } else { String::new() }),
        ("sent as", sent_as(peer)),
    ];
    format!("peer {}: {}\n{}{}", peer.name, peer.condition(), list(&lines), traffic(peer).render(2))
}

fn sent_as(peer: &PeerReport) -> String {
    let sent = format!("{}, {}", counted(peer.bundles, "bundle"), counted(peer.blocks, "compressed block"));
    match peer.header_compression_saved_bytes {
        0 => sent,
        saved => format!("{sent}, {} saved by header compression", units::bytes(saved)),
    }
}

fn handshake(peer: &PeerReport) -> String {
    let last = peer
        .last_handshake_age_seconds
        .map_or("never".to_owned(), |ago| format!("{} ago", units::seconds(ago)));
    match peer.handshake_failures {
        0 => last,
        count => format!("{last}; {} failed since", counted(u64::from(count), "handshake")),
    }
}

fn last_heard(peer: &PeerReport) -> String {
    let association = peer.association.as_ref().and_then(|it| it.last_received_age_seconds);
    let manual = peer.manual.as_ref().and_then(|it| it.last_received_age_seconds);
    association.or(manual).map_or(String::new(), |ago| format!("{} ago", units::seconds(ago)))
}

/// The packets that the peer has not answered.
fn unanswered(peer: &PeerReport) -> String {
    let packets = peer.trouble.as_ref().and_then(|it| it.unanswered_packets);
    packets.map_or(String::new(), |packets| format!("at least {}", counted(packets, "packet")))
}

/// The age of the figures of the path, where the peer has not answered since.
fn age(peer: &PeerReport) -> String {
    let silent = peer.trouble.as_ref().and_then(|it| it.away_seconds);
    silent.map_or(String::new(), |since| format!("; {} old", units::seconds(since)))
}

fn associations(association: &AssociationReport) -> String {
    format!(
        "SPI in {}, out {}; {}, {} IV, {} payloads, {}",
        association.inbound_spi,
        association.outbound_spi,
        association.suite,
        association.iv,
        association.payloads,
        association.role
    )
}

fn next_rekey(association: &AssociationReport) -> String {
    format!("in {}, if in use", units::seconds(association.next_rekey_seconds))
}

fn traffic(peer: &PeerReport) -> TextTable {
    let mut table = TextTable::new(["", "packets", "inner bytes", "datagrams", "wire bytes", "ratio"]);
    let mut add = |name: &str, traffic: &TrafficReport| {
        table.row([
            name.to_owned(),
            traffic.packets.to_string(),
            units::bytes(traffic.bytes),
            traffic.datagrams.to_string(),
            units::bytes(traffic.wire_bytes),
            ratio(traffic.ratio),
        ]);
    };
    add("sent", &peer.sent);
    add("received", &peer.received);
    add("both", &both(&peer.sent, &peer.received));
    table
}

/// What both directions take together, which is what a link that is paid by the byte costs.
fn both(sent: &TrafficReport, received: &TrafficReport) -> TrafficReport {
    let (bytes, wire_bytes) = (sent.bytes + received.bytes, sent.wire_bytes + received.wire_bytes);
    TrafficReport {
        packets: sent.packets + received.packets,
        bytes,
        datagrams: sent.datagrams + received.datagrams,
        wire_bytes,
        ratio: (wire_bytes > 0).then(|| bytes as f64 / wire_bytes as f64),
    }
}

fn rules(report: &DaemonReport) -> TextTable {
    let mut table = TextTable::new([
        "from",
        "to",
        "protocol",
        "domain",
        "codec",
        "matched packets",
        "matched bytes",
        "input",
        "output",
        "ratio",
    ]);
    for column in 1..=4 {
        table = table.side(column, Side::Left);
    }
    for rule in &report.rules {
        table.row([
            rule.from.clone(),
            rule.to.clone(),
            what(rule),
            rule.domain.clone(),
            rule.codec.clone(),
            rule.matched_packets.to_string(),
            units::bytes(rule.matched_bytes),
            units::bytes(rule.input_bytes),
            units::bytes(rule.output_bytes),
            ratio(rule.ratio),
        ]);
    }
    table
}

/// A rule's protocol and ports.
fn what(rule: &RuleReport) -> String {
    let protocol = rule.protocol.as_deref().unwrap_or("any");
    if rule.ports.is_empty() { protocol.to_owned() } else { format!("{protocol} {}", rule.ports.join(",")) }
}

fn services(report: &DaemonReport) -> TextTable {
    let mut table = TextTable::new(["service", "packets", "bytes", "on the wire", "ratio"]);
    for service in &report.services {
        table.row([
            service.service.clone(),
            service.packets.to_string(),
            units::bytes(service.bytes),
            units::bytes(service.wire_bytes),
            ratio(service.ratio),
        ]);
    }
    table
}

fn codecs(report: &DaemonReport) -> TextTable {
    let mut table = TextTable::new([
        "codec",
        "tried blocks",
        "sent blocks",
        "sent packets",
        "input",
        "output",
        "ratio",
        "decompressed blocks",
    ]);
    for codec in report.codecs.iter().filter(|codec| codec.tried_blocks + codec.decompressed_blocks > 0) {
        table.row([
            codec.codec.clone(),
            codec.tried_blocks.to_string(),
            codec.sent_blocks.to_string(),
            codec.sent_packets.to_string(),
            units::bytes(codec.input_bytes),
            units::bytes(codec.output_bytes),
            ratio(codec.ratio),
            codec.decompressed_blocks.to_string(),
        ]);
    }
    table
}

fn drops(report: &DaemonReport) -> TextTable {
    let drops = || report.drops.iter().filter(|drop| drop.packets > 0);
    let advised = drops().any(|drop| drop.advice().is_some());
    let head = ["reason", "packets", "what helps"].map(str::to_owned);
    let mut table =
        TextTable::with_head(head.into_iter().take(if advised { 3 } else { 2 })).side(2, Side::Left);
    for drop in drops() {
        let advice = drop.advice().unwrap_or_default().to_owned();
        let cells = [drop.reason.clone(), drop.packets.to_string(), advice];
        table.row(cells.into_iter().take(if advised { 3 } else { 2 }));
    }
    table
}

fn threads(report: &DaemonReport) -> TextTable {
    let mut table = TextTable::new(["thread", "CPU time", "busy compressing", "queued blocks"]);
    // A machine with many cores has many workers that never had a job.
    for thread in report.threads.iter().filter(|thread| thread.cpu_seconds >= 0.005) {
        let load = thread.compression.as_ref();
        let busy = load.map_or(String::new(), |it| format!("{:.0} %", it.busy_ratio * 100.0));
        let blocks = load.map_or(String::new(), |it| it.queued_blocks.to_string());
        table.row([thread.name.clone(), format!("{:.2} s", thread.cpu_seconds), busy, blocks]);
    }
    table
}

fn rate(bits: u64) -> String {
    Rate::from_bits(bits).map_or_else(|| format!("{bits} bit/s"), |rate| rate.to_string())
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
pub(crate) mod tests;
