//! What a running tunnel does, as people read it.

pub(crate) mod manual;
mod path;
pub(crate) mod queue;

use std::time::Duration;

use strait_node::report::{AssociationReport, NodeReport, PeerReport, Report, RuleReport, TrafficReport};
use strait_scheduler::Rate;

use crate::table::{Side, Table};
use crate::units::{self, counted};

/// The whole report; what never happened is left out.
pub(crate) fn render(report: &Report) -> String {
    let mut out = node(&report.node);
    for peer in &report.peers {
        out.push('\n');
        out.push_str(&one_peer(peer));
    }
    for (title, table) in [
        ("compression rules", rules(report)),
        ("codecs", codecs(report)),
        ("dropped", drops(report)),
        ("threads", engines(report)),
    ] {
        if !table.is_empty() {
            out.push_str(&format!("\n{title}\n{}", table.render(2)));
        }
    }
    out.push_str(&format!("\ncontrol channel: {} on the wire", units::bytes(report.control.wire_bytes)));
    if report.control.lost_messages > 0 {
        out.push_str(&format!(", {} messages between threads lost", report.control.lost_messages));
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
        None => auto.then(|| format!("{name} is found out")),
    };
    let (up, down) = (node.up_bits_per_second, node.down_bits_per_second);
    let sides = [side("up", up, node.up_auto), side("down", down, node.down_auto)];
    let link: Vec<String> = sides.into_iter().flatten().collect();
    let lines = [
        ("public key", node.public_key.clone().unwrap_or_default()),
        ("listens on", node.listen.clone()),
        ("addresses", node.addresses.join(", ")),
        ("MTU", node.mtu.to_string()),
        ("link", if link.is_empty() { "unshaped".to_owned() } else { link.join(", ") }),
        ("forwards", if node.forward { "between its peers".to_owned() } else { String::new() }),
        ("configuration", node.configuration.clone()),
        (
            "runs for",
            format!("{} (process {}, version {})", span(node.uptime_seconds), node.pid, node.version),
        ),
    ];
    format!("{}\n{}", node.interface, list(&lines))
}

fn one_peer(peer: &PeerReport) -> String {
    let (association, manual) = (peer.association.as_ref(), peer.manual.as_ref());
    let found = peer.path.as_ref().map(path::estimate).unwrap_or_default();
    let given = peer.rate_bits_per_second.filter(|_| found.is_empty());
    let lines = [
        ("public key", peer.public_key.clone().unwrap_or_default()),
        ("endpoint", peer.endpoint.clone().unwrap_or_else(|| "not known yet".to_owned())),
        ("allowed IPs", peer.allowed_ips.join(", ")),
        ("last handshake", if manual.is_some() { String::new() } else { handshake(peer) }),
        ("manual keys", manual.map(manual::protocols).unwrap_or_default()),
        ("protecting", manual.map(manual::way).unwrap_or_default()),
        ("last packet", manual.map(manual::last_packet).unwrap_or_default()),
        ("associations", association.map(associations).unwrap_or_default()),
        ("next keys", association.map(next_keys).unwrap_or_default()),
        ("paced at", given.map(rate).unwrap_or_default()),
        ("queue", queue::words(&peer.queue)),
        ("link found", found),
        ("path", peer.path.as_ref().map(path::state).unwrap_or_default()),
        ("inner MTU", peer.inner_mtu.to_string()),
        ("sent as", sent_as(peer)),
    ];
    format!("peer {}: {}\n{}{}", peer.name, peer.state, list(&lines), traffic(peer).render(2))
}

fn sent_as(peer: &PeerReport) -> String {
    let sent = format!("{}, {}", counted(peer.bundles, "bundle"), counted(peer.blocks, "compressed block"));
    match peer.headers_saved_bytes {
        0 => sent,
        saved => format!("{sent}; {} saved by coded headers", units::bytes(saved)),
    }
}

fn handshake(peer: &PeerReport) -> String {
    let last = peer.last_handshake_seconds.map_or("never".to_owned(), |ago| format!("{} ago", span(ago)));
    match peer.failures {
        0 => last,
        count => format!("{last}; {} failed since", counted(u64::from(count), "attempt")),
    }
}

fn associations(association: &AssociationReport) -> String {
    format!(
        "in {}, out {}: {}, {} IV, {} payloads, as {}",
        association.inbound_spi,
        association.outbound_spi,
        association.suite,
        association.iv,
        association.payloads,
        association.role
    )
}

fn next_keys(association: &AssociationReport) -> String {
    format!("in {} if in use then", span(association.next_rekey_seconds))
}

fn traffic(peer: &PeerReport) -> Table {
    let mut table = Table::new(["", "packets", "bytes", "datagrams", "on the wire", "ratio"]);
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
    table
}

fn rules(report: &Report) -> Table {
    let mut table = Table::new([
        "from",
        "to",
        "what",
        "domain",
        "codec",
        "packets",
        "bytes",
        "compressed",
        "to bytes",
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
            rule.packets.to_string(),
            units::bytes(rule.bytes),
            units::bytes(rule.before),
            units::bytes(rule.after),
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

fn codecs(report: &Report) -> Table {
    let mut table =
        Table::new(["codec", "tried", "shrank", "packets", "bytes", "to bytes", "ratio", "expanded here"]);
    for codec in report.codecs.iter().filter(|codec| codec.tried + codec.expanded > 0) {
        table.row([
            codec.codec.clone(),
            codec.tried.to_string(),
            codec.blocks.to_string(),
            codec.packets.to_string(),
            units::bytes(codec.before),
            units::bytes(codec.after),
            ratio(codec.ratio),
            codec.expanded.to_string(),
        ]);
    }
    table
}

fn drops(report: &Report) -> Table {
    let mut table = Table::new(["reason", "packets"]);
    for drop in report.drops.iter().filter(|drop| drop.packets > 0) {
        table.row([drop.reason.clone(), drop.packets.to_string()]);
    }
    table
}

fn engines(report: &Report) -> Table {
    let mut table =
        Table::new(["thread", "processor seconds", "compresses now", "blocks in hand"]).side(2, Side::Left);
    // Workers that never had anything to do are as many as there are cores.
    for engine in report.engines.iter().filter(|engine| engine.cpu_seconds >= 0.005) {
        let now = engine.compressing.as_ref();
        let busy = now.map_or(String::new(), |it| format!("{:.0} % of its time", it.busy * 100.0));
        let jobs = now.map_or(String::new(), |it| it.jobs.to_string());
        table.row([engine.name.clone(), format!("{:.2}", engine.cpu_seconds), busy, jobs]);
    }
    table
}

fn rate(bits: u64) -> String {
    Rate::from_bits(bits).map_or_else(|| format!("{bits} bit/s"), |rate| rate.to_string())
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn span(seconds: f64) -> String {
    units::span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
pub(crate) mod tests;
