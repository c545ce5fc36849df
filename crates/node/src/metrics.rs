//! The counters of `show` in the text exposition format of Prometheus.

mod server;

use std::fmt::Write;

use crate::report::{
    AttackerReport, CacheReport, CodecReport, DaemonReport, MeteredReport, NodeReport, OffloadReport,
    PeerReport, RuleReport, ServiceReport,
};
pub use server::{Metrics, MetricsError, MetricsSource};

/// One metric: its name behind `strait_`, type, help and samples.
pub type MetricFamily = (&'static str, &'static str, &'static str, Vec<(Labels, f64)>);
/// The labels of a sample.
pub type Labels = Vec<(&'static str, String)>;

/// The report in the text exposition format of Prometheus.
#[must_use]
pub fn text(report: &DaemonReport) -> String {
    let all = [
        node(report),
        offload(&report.offload),
        memory(&report.node),
        peer_info(report),
        peers(report),
        paths(report),
        repairs(report),
        carriers(report),
        histories(report),
        queues(report),
        metered(report),
        rules(report),
        services(report),
        codecs(report),
        sessionless(report),
        daily_keys(report),
        directory(report),
    ];
    exposition(all.into_iter().flatten())
}

/// Metrics in the text exposition format of Prometheus. Samples of a histogram have the label `le` last, and its `_sum` and `_count`
/// are the samples without it, in this order.
#[must_use]
pub fn exposition(families: impl IntoIterator<Item = MetricFamily>) -> String {
    let mut text = String::new();
    for (name, kind, help, samples) in families {
        let _ = writeln!(text, "# HELP strait_{name} {help}\n# TYPE strait_{name} {kind}");
        let mut is_sum = false;
        for (labels, value) in samples {
            let is_bucket = labels.last().is_some_and(|(label, _)| *label == "le");
            let suffix = if kind != "histogram" {
                ""
            } else if is_bucket {
                "_bucket"
            } else {
                is_sum = !is_sum;
                if is_sum { "_sum" } else { "_count" }
            };
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "strait_{name}{suffix}{labels} {value}");
        }
    }
    text
}

/// Inside a label's value, backslash, quote and line feed are written with a backslash.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus' samples are doubles")]
const fn number(value: u64) -> f64 {
    value as f64
}

/// A sample without labels.
fn one(value: u64) -> Vec<(Labels, f64)> {
    vec![(Vec::new(), number(value))]
}

fn offload(offload: &OffloadReport) -> Vec<MetricFamily> {
    let refused = [("trains", offload.refused_trains), ("joined", offload.refused_joined)];
    let samples = refused.map(|(way, refused)| (vec![("way", way.to_owned())], number(refused)));
    let help = "Calls with several packets that the system refused; they then went one by one.";
    vec![("offload_refusals_total", "counter", help, samples.to_vec())]
}

fn memory(node: &NodeReport) -> Vec<MetricFamily> {
    vec![
        (
            "memory_limit_bytes",
            "gauge",
            "Memory that what is kept of peers' data may take.",
            one(node.memory_limit_bytes),
        ),
        (
            "memory_kept_bytes",
            "gauge",
            "Memory that history and byte caches of all peers take.",
            one(node.memory_kept_bytes),
        ),
    ]
}

fn node(report: &DaemonReport) -> Vec<MetricFamily> {
    let node = &report.node;
    let NodeReport { interface, version, public_key, .. } = node.clone();
    let mut labels = vec![("interface", interface), ("version", version)];
    labels.extend(public_key.map(|key| ("public_key", key)));
    let drops = report.drops.iter().map(|drop| (vec![("reason", drop.reason.clone())], number(drop.packets)));
    let threads =
        report.threads.iter().map(|thread| (vec![("thread", thread.name.clone())], thread.cpu_seconds));
    vec![
        ("info", "gauge", "Interface, version and public key of the node; always 1.", vec![(labels, 1.0)]),
        (
            "uptime_seconds",
            "gauge",
            "Time since the daemon started.",
            vec![(Vec::new(), node.uptime_seconds)],
        ),
        ("dropped_packets_total", "counter", "Packets and datagrams dropped, by reason.", drops.collect()),
        (
            "control_wire_bytes_total",
            "counter",
            "Control channel bytes on the wire, both directions.",
            one(report.control.wire_bytes),
        ),
        (
            "control_dropped_messages_total",
            "counter",
            "Messages from packet threads to the control plane dropped because its queue was full.",
            one(report.control.dropped_messages),
        ),
        (
            "machine_copies_total",
            "counter",
            "Times that the machine was restored from a snapshot or cloned, so that all keys were made anew.",
            one(report.control.machine_copies),
        ),
        (
            "metrics_refused_connections_total",
            "counter",
            "Connections for metrics closed unanswered because too many were open.",
            one(report.control.refused_connections),
        ),
        (
            "lost_log_lines_total",
            "counter",
            "Lines that could not be written to the log.",
            one(node.lost_log_lines),
        ),
        (
            "warnings",
            "gauge",
            "Insecure options in use, files that cannot be written, and what is wrong with the network.",
            one(node.warnings.len() as u64),
        ),
        ("thread_cpu_seconds_total", "counter", "CPU time used, by thread.", threads.collect()),
    ]
}

/// Caps of the link, whose label `peer` is empty, and of peers.
fn metered(report: &DaemonReport) -> Vec<MetricFamily> {
    if report.metered.is_empty() {
        return Vec::new();
    }
    let of = |value: &dyn Fn(&MeteredReport) -> Option<f64>| -> Vec<(Labels, f64)> {
        let one = |metered: &MeteredReport| {
            Some((vec![("peer", metered.peer.clone().unwrap_or_default())], value(metered)?))
        };
        report.metered.iter().filter_map(one).collect()
    };
    let admission = |metered: &MeteredReport| match metered.admission.as_str() {
        "all" => 0.0,
        "without-bulk" => 1.0,
        _ => 2.0,
    };
    vec![
        (
            "cap_bytes",
            "gauge",
            "Wire bytes of both directions that may cross in a period.",
            of(&|metered| metered.cap_bytes.map(number)),
        ),
        (
            "cap_used_bytes",
            "gauge",
            "Wire bytes of both directions that crossed in this period.",
            of(&|metered| metered.used_bytes.map(number)),
        ),
        (
            "cap_forecast_bytes",
            "gauge",
            "Wire bytes that will have crossed at the end of the period, if it goes on as in the last days.",
            of(&|metered| metered.forecast_bytes.map(number)),
        ),
        (
            "cap_period_end_seconds",
            "gauge",
            "When the period of the cap ends, in seconds since 1970.",
            of(&|metered| metered.period_end.and_then(|at| u64::try_from(at).ok()).map(number)),
        ),
        (
            "cap_restriction",
            "gauge",
            "What may leave: 0 everything, 1 all but bulk traffic, 2 interactive traffic only.",
            of(&|metered| Some(admission(metered))),
        ),
    ]
}

/// Keys without sessions.
fn sessionless(report: &DaemonReport) -> Vec<MetricFamily> {
    let Some(shared) = &report.sessionless else { return Vec::new() };
    let refused = shared
        .refusals
        .iter()
        .map(|refusal| (vec![("reason", refusal.reason.clone())], number(refusal.datagrams)));
    let caches = |value| by_cache(&shared.caches, value);
    vec![
        (
            "sessionless_refused_datagrams_total",
            "counter",
            "Datagrams without a session refused, by reason.",
            refused.collect(),
        ),
        (
            "sessionless_cache_entries",
            "gauge",
            "Entries of the caches of keys without sessions.",
            caches(&|cache| Some(number(cache.entries as u64))),
        ),
        (
            "sessionless_cache_hits_total",
            "counter",
            "Look-ups in these caches that found something.",
            caches(&|cache| Some(number(cache.hits))),
        ),
        (
            "sessionless_cache_misses_total",
            "counter",
            "Look-ups in these caches that found nothing.",
            caches(&|cache| Some(number(cache.misses))),
        ),
        (
            "sessionless_cache_miss_seconds_total",
            "counter",
            "What deriving or fetching took of what these caches did not have.",
            caches(&|cache| cache.miss_seconds),
        ),
    ]
}

/// Daily keys, where they are used.
fn daily_keys(report: &DaemonReport) -> Vec<MetricFamily> {
    let told = report.directory.as_ref().and_then(|told| told.daily_keys.as_ref());
    let Some(told) = told else { return Vec::new() };
    let under = report.peers.iter().filter_map(|peer| peer.sessionless.as_ref()?.daily_key.as_ref());
    let one = |value: usize| one(value as u64);
    vec![
        (
            "daily_keys_published_servers",
            "gauge",
            "Servers of the directory that have taken this node's daily keys.",
            one(told.published),
        ),
        (
            "daily_keys_known_peers",
            "gauge",
            "Peers with which there is a daily key of today at both ends.",
            one(told.peers),
        ),
        (
            "daily_keys_used_peers",
            "gauge",
            "Peers towards which the packet key in use has daily keys in it.",
            one(under.count()),
        ),
    ]
}

/// A figure of each cache that has it.
fn by_cache(caches: &[CacheReport], value: &dyn Fn(&CacheReport) -> Option<f64>) -> Vec<(Labels, f64)> {
    let one = |cache: &CacheReport| Some((vec![("cache", cache.cache.clone())], value(cache)?));
    caches.iter().filter_map(one).collect()
}

/// Certificates that are looked up.
fn directory(report: &DaemonReport) -> Vec<MetricFamily> {
    let Some(told) = &report.directory else { return Vec::new() };
    let Some(look_ups) = &told.look_ups else { return Vec::new() };
    let ends = look_ups.ends.iter().map(|one| (vec![("end", one.end.clone())], number(one.count)));
    let caches = |value| by_cache(&told.caches, value);
    vec![
        (
            "directory_look_ups_total",
            "counter",
            "Look-ups of certificates, by how they ended.",
            ends.collect(),
        ),
        (
            "directory_look_ups_under_way",
            "gauge",
            "Look-ups of certificates under way.",
            vec![(Vec::new(), number(look_ups.under_way as u64))],
        ),
        (
            "directory_look_up_seconds_total",
            "counter",
            "What answered look-ups took together.",
            vec![(Vec::new(), look_ups.seconds)],
        ),
        (
            "directory_longest_look_up_seconds",
            "gauge",
            "What the longest look-up took.",
            vec![(Vec::new(), look_ups.longest_seconds)],
        ),
        (
            "directory_cache_entries",
            "gauge",
            "Peers, certificates on disk and unknown names that are kept.",
            caches(&|cache| Some(number(cache.entries as u64))),
        ),
        (
            "directory_cache_hits_total",
            "counter",
            "Look-ups in these caches that found something.",
            caches(&|cache| Some(number(cache.hits))),
        ),
        (
            "directory_cache_misses_total",
            "counter",
            "Look-ups in these caches that found nothing.",
            caches(&|cache| Some(number(cache.misses))),
        ),
        (
            "directory_cache_miss_seconds_total",
            "counter",
            "What deriving or fetching took of what these caches did not have.",
            caches(&|cache| cache.miss_seconds),
        ),
        (
            "directory_cache_evicted_total",
            "counter",
            "Entries of these caches that made room for others.",
            caches(&|cache| Some(number(cache.evicted))),
        ),
    ]
}

/// How each peer is protected; `protocols` only where keys are in the file, since sessions change theirs.
fn peer_info(report: &DaemonReport) -> Vec<MetricFamily> {
    let sample = |peer: &PeerReport| {
        let mut labels = vec![("peer", peer.name.clone()), ("keys", peer.keys.clone())];
        if let Some(manual) = &peer.manual {
            let protocols =
                manual.protocols.iter().map(|it| format!("{} {}", it.protocol, it.algorithms.join("+")));
            labels.push(("mode", manual.mode.clone()));
            labels.push(("carrier", manual.carrier.clone()));
            labels.push(("protocols", protocols.collect::<Vec<_>>().join(", ")));
        }
        (labels, 1.0)
    };
    let last = |peer: &PeerReport| {
        let manual = peer.manual.as_ref()?;
        Some((vec![("peer", peer.name.clone())], number(manual.last_sequence_number)))
    };
    vec![
        (
            "peer_info",
            "gauge",
            "Keys, mode, carrier and protocols of a peer; always 1.",
            report.peers.iter().map(sample).collect(),
        ),
        (
            "peer_last_sequence_number",
            "gauge",
            "Sequence number of the last packet sent with manual keys.",
            report.peers.iter().filter_map(last).collect(),
        ),
    ]
}

/// A figure of a peer, if it has one.
type OfPeer = fn(&PeerReport) -> Option<f64>;
/// Its name, kind and meaning before it.
type NamedOfPeer = (&'static str, &'static str, &'static str, OfPeer);

fn peers(report: &DaemonReport) -> Vec<MetricFamily> {
    let state: [NamedOfPeer; 6] = [
        ("peer_up", "gauge", "1 if packets can be sent to the peer and it answers, else 0.", |peer| {
            Some(f64::from(u8::from(peer.is_up())))
        }),
        (
            "peer_unanswered_packets",
            "gauge",
            "Packets that the peer has not answered, 0 while it answers.",
            |peer| Some(number(peer.trouble.as_ref().and_then(|it| it.unanswered_packets).unwrap_or(0))),
        ),
        ("peer_kept_bytes", "gauge", "Memory that its history and byte caches take.", |peer| {
            Some(number(peer.kept_bytes))
        }),
        ("peer_inner_mtu_bytes", "gauge", "Inner MTU towards the peer.", |peer| Some(number(peer.inner_mtu))),
        ("peer_handshake_failures", "gauge", "Handshakes failed since the last successful one.", |peer| {
            Some(peer.handshake_failures.into())
        }),
        ("peer_last_handshake_age_seconds", "gauge", "Time since the last successful handshake.", |peer| {
            peer.last_handshake_age_seconds
        }),
    ];
    of_peers(report, &state).into_iter().chain(peer_traffic(report)).collect()
}

fn peer_traffic(report: &DaemonReport) -> Vec<MetricFamily> {
    let traffic: [NamedOfPeer; 11] = [
        ("peer_sent_packets_total", "counter", "Inner packets sent.", |peer| Some(number(peer.sent.packets))),
        (
            "peer_sent_bytes_total",
            "counter",
            "Inner bytes sent, and those of datagrams of files and logins.",
            |peer| Some(number(peer.sent.bytes)),
        ),
        ("peer_sent_datagrams_total", "counter", "Outer datagrams sent.", |peer| {
            Some(number(peer.sent.datagrams))
        }),
        (
            "peer_sent_wire_bytes_total",
            "counter",
            "Bytes sent on the wire, outer IP headers included.",
            |peer| Some(number(peer.sent.wire_bytes)),
        ),
        ("peer_received_packets_total", "counter", "Inner packets received.", |peer| {
            Some(number(peer.received.packets))
        }),
        ("peer_received_bytes_total", "counter", "Inner bytes received.", |peer| {
            Some(number(peer.received.bytes))
        }),
        ("peer_received_datagrams_total", "counter", "Outer datagrams received.", |peer| {
            Some(number(peer.received.datagrams))
        }),
        (
            "peer_received_wire_bytes_total",
            "counter",
            "Bytes received on the wire, outer IP headers included.",
            |peer| Some(number(peer.received.wire_bytes)),
        ),
        (
            "peer_bundles_total",
            "counter",
            "Bundles sent: datagrams with several packets, not compressed.",
            |peer| Some(number(peer.bundles)),
        ),
        ("peer_blocks_total", "counter", "Compressed blocks sent.", |peer| Some(number(peer.blocks))),
        (
            "peer_header_compression_saved_bytes_total",
            "counter",
            "Bytes saved by header compression.",
            |peer| Some(number(peer.header_compression_saved_bytes)),
        ),
    ];
    of_peers(report, &traffic)
}

/// The metrics of `known`, with a sample for each peer that has the figure.
fn of_peers(report: &DaemonReport, known: &[NamedOfPeer]) -> Vec<MetricFamily> {
    let family = |(name, kind, help, get): &(&'static str, &'static str, &'static str, OfPeer)| {
        let sample = |peer| get(peer).map(|value| (vec![("peer", peer.name.clone())], value));
        (*name, *kind, *help, report.peers.iter().filter_map(sample).collect())
    };
    known.iter().map(family).collect()
}

fn paths(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [(&str, &str, &str, OfPeer); 10] = [
        ("peer_link_rate_bits_per_second", "gauge", "Link rate, configured or estimated.", |peer| {
            peer.link_rate_bits_per_second.map(number)
        }),
        ("peer_pacing_rate_bits_per_second", "gauge", "Current pacing rate on an estimated link.", |peer| {
            peer.path.as_ref()?.pacing_rate_bits_per_second.map(number)
        }),
        ("peer_rtt_seconds", "gauge", "Smoothed round-trip time.", |peer| peer.path.as_ref()?.rtt_seconds),
        ("peer_min_rtt_seconds", "gauge", "Minimum round-trip time of the last seconds.", |peer| {
            peer.path.as_ref()?.min_rtt_seconds
        }),
        ("peer_loss_ratio", "gauge", "Share of sent datagrams that were lost, 0 to 1.", |peer| {
            Some(peer.path.as_ref()?.loss_ratio)
        }),
        ("peer_ecn_cleared", "gauge", "Whether the path to the peer clears ECN marks.", |peer| {
            Some(peer.path.as_ref()?.ecn_cleared.into())
        }),
        ("peer_delivery_reports_sent_total", "counter", "Delivery reports sent.", |peer| {
            Some(number(peer.path.as_ref()?.delivery_reports_sent))
        }),
        (
            "peer_delivery_reports_sent_wire_bytes_total",
            "counter",
            "Bytes on the wire that delivery reports took: whole datagrams, or what they made others longer.",
            |peer| Some(number(peer.path.as_ref()?.delivery_reports_sent_wire_bytes)),
        ),
        ("peer_delivery_reports_received_total", "counter", "Delivery reports received.", |peer| {
            Some(number(peer.path.as_ref()?.delivery_reports_received))
        }),
        (
            "peer_delivery_reports_rejected_total",
            "counter",
            "Delivery reports received and rejected as inconsistent.",
            |peer| Some(number(peer.path.as_ref()?.delivery_reports_rejected)),
        ),
    ];
    of_peers(report, &known)
}

fn repairs(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [(&str, &str, &str, OfPeer); 15] = [
        ("peer_missing_datagrams_total", "counter", "Datagrams missing when later ones came.", |peer| {
            Some(number(peer.repair.as_ref()?.missing_datagrams))
        }),
        ("peer_repaired_datagrams_total", "counter", "Missing datagrams whose payload came again.", |peer| {
            Some(number(peer.repair.as_ref()?.repaired_datagrams))
        }),
        ("peer_recovered_datagrams_total", "counter", "Missing datagrams out of repair symbols.", |peer| {
            Some(number(peer.repair.as_ref()?.recovered_datagrams))
        }),
        ("peer_empty_datagrams_total", "counter", "Missing datagrams without a payload.", |peer| {
            Some(number(peer.repair.as_ref()?.empty_datagrams))
        }),
        ("peer_late_datagrams_total", "counter", "Missing datagrams that came late.", |peer| {
            Some(number(peer.repair.as_ref()?.late_datagrams))
        }),
        ("peer_lost_datagrams_total", "counter", "Missing datagrams that were given up.", |peer| {
            Some(number(peer.repair.as_ref()?.lost_datagrams))
        }),
        (
            "peer_duplicate_payloads_total",
            "counter",
            "Payloads that came again although they had come.",
            |peer| Some(number(peer.repair.as_ref()?.duplicate_payloads)),
        ),
        ("peer_held_payloads_total", "counter", "Payloads held back to keep the order.", |peer| {
            Some(number(peer.repair.as_ref()?.held_payloads))
        }),
        ("peer_repair_requests_total", "counter", "Requests sent for missing datagrams.", |peer| {
            Some(number(peer.repair.as_ref()?.requests_sent))
        }),
        ("peer_repeated_payloads_total", "counter", "Payloads sent again.", |peer| {
            Some(number(peer.repair.as_ref()?.repeated_payloads))
        }),
        ("peer_repair_symbols_received_total", "counter", "Repair symbols received.", |peer| {
            Some(number(peer.repair.as_ref()?.symbols_received))
        }),
        ("peer_repair_symbols_sent_total", "counter", "Repair symbols sent.", |peer| {
            Some(number(peer.repair.as_ref()?.symbols_sent))
        }),
        ("peer_repair_symbols_per_payload", "gauge", "Repair symbols for each payload.", |peer| {
            Some(peer.repair.as_ref()?.symbols_per_payload)
        }),
        ("peer_repair_wire_bytes_total", "counter", "Wire bytes sent for the sake of repair.", |peer| {
            Some(number(peer.repair.as_ref()?.wire_bytes))
        }),
        (
            "peer_repair_received_wire_bytes_total",
            "counter",
            "Wire bytes received for the sake of repair.",
            |peer| Some(number(peer.repair.as_ref()?.received_wire_bytes)),
        ),
    ];
    of_peers(report, &known)
}

/// What carries ESP, where that can be IP itself.
fn carriers(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [(&str, &str, &str, OfPeer); 3] = [
        ("peer_direct", "gauge", "1 if ESP to the peer goes directly behind IP, 0 if in UDP.", |peer| {
            Some(if peer.carrier.as_ref()?.sending == "ip" { 1.0 } else { 0.0 })
        }),
        (
            "peer_direct_datagrams_sent_total",
            "counter",
            "Datagrams sent directly behind IP with session keys.",
            |peer| Some(number(peer.carrier.as_ref()?.sent_datagrams)),
        ),
        (
            "peer_direct_datagrams_received_total",
            "counter",
            "Datagrams received directly behind IP with session keys.",
            |peer| Some(number(peer.carrier.as_ref()?.received_datagrams)),
        ),
    ];
    of_peers(report, &known)
}

fn histories(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [(&str, &str, &str, OfPeer); 15] = [
        ("peer_history_packets_sent_total", "counter", "Packets sent coded against earlier ones.", |peer| {
            Some(number(peer.history.as_ref()?.coded_packets))
        }),
        ("peer_history_before_bytes_total", "counter", "Bytes of ESP of these without history.", |peer| {
            Some(number(peer.history.as_ref()?.bytes_before))
        }),
        ("peer_history_after_bytes_total", "counter", "Bytes of ESP of these as they were sent.", |peer| {
            Some(number(peer.history.as_ref()?.bytes_after))
        }),
        (
            "peer_history_packets_received_total",
            "counter",
            "Packets received coded against earlier ones.",
            |peer| Some(number(peer.history.as_ref()?.received_packets)),
        ),
        ("peer_history_blocks_sent_total", "counter", "Blocks sent behind earlier ones.", |peer| {
            Some(number(peer.history.as_ref()?.sent_blocks))
        }),
        (
            "peer_history_compared_alone_bytes_total",
            "counter",
            "Bytes of blocks compressed both ways, without earlier ones.",
            |peer| Some(number(peer.history.as_ref()?.compared_bytes_alone)),
        ),
        (
            "peer_history_compared_behind_bytes_total",
            "counter",
            "Bytes of the same blocks behind earlier ones.",
            |peer| Some(number(peer.history.as_ref()?.compared_bytes_behind)),
        ),
        ("peer_history_blocks_received_total", "counter", "Blocks received behind earlier ones.", |peer| {
            Some(number(peer.history.as_ref()?.received_blocks))
        }),
        ("peer_history_copies_sent_total", "counter", "Blocks sent with copies from a byte cache.", |peer| {
            Some(number(peer.history.as_ref()?.sent_copies))
        }),
        ("peer_history_copied_bytes_total", "counter", "Bytes of payloads that were copied so.", |peer| {
            Some(number(peer.history.as_ref()?.copied_bytes))
        }),
        ("peer_history_copies_received_total", "counter", "Blocks received with such copies.", |peer| {
            Some(number(peer.history.as_ref()?.received_copies))
        }),
        ("peer_history_held_there_bytes", "gauge", "Bytes in byte caches at the peer.", |peer| {
            Some(number(peer.history.as_ref()?.held_bytes_there))
        }),
        ("peer_history_held_here_bytes", "gauge", "Bytes in byte caches for the peer.", |peer| {
            Some(number(peer.history.as_ref()?.held_bytes_here))
        }),
        ("peer_history_receipts_sent_total", "counter", "Datagrams sent with receipts alone.", |peer| {
            Some(number(peer.history.as_ref()?.receipts_sent))
        }),
        (
            "peer_history_receipts_sent_wire_bytes_total",
            "counter",
            "Wire bytes of datagrams with receipts alone.",
            |peer| Some(number(peer.history.as_ref()?.receipts_sent_wire_bytes)),
        ),
    ];
    of_peers(report, &known)
}

fn queues(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [(&str, &str, &str, OfPeer); 11] = [
        ("peer_queue_bytes", "gauge", "Bytes in the queue.", |peer| Some(number(peer.queue.bytes))),
        ("peer_queue_mean_delay_seconds", "gauge", "Mean queueing delay.", |peer| {
            peer.queue.mean_delay_seconds
        }),
        (
            "peer_queue_max_delay_seconds",
            "gauge",
            "Largest queueing delay within the last second or two.",
            |peer| peer.queue.max_delay_seconds,
        ),
        ("peer_aggregation_window_packets", "gauge", "Aggregation window, in packets.", |peer| {
            Some(number(peer.queue.window_packets))
        }),
        (
            "peer_aggregates_total",
            "counter",
            "Aggregates of one or more packets taken from the queue.",
            |peer| Some(number(peer.queue.aggregates)),
        ),
        ("peer_packets_per_aggregate", "gauge", "Mean number of packets in an aggregate.", |peer| {
            peer.queue.packets_per_aggregate
        }),
        (
            "peer_queue_ecn_marked_packets_total",
            "counter",
            "Packets marked with ECN congestion experienced by CoDel.",
            |peer| Some(number(peer.queue.ecn_marked_packets)),
        ),
        ("peer_queue_aqm_dropped_packets_total", "counter", "Packets dropped by CoDel.", |peer| {
            Some(number(peer.queue.aqm_dropped_packets))
        }),
        (
            "peer_queue_overflow_dropped_packets_total",
            "counter",
            "Packets dropped because the queue was full.",
            |peer| Some(number(peer.queue.overflow_dropped_packets)),
        ),
        (
            "peer_queue_thinned_acks_total",
            "counter",
            "TCP acknowledgements that were not sent because a newer one replaced them.",
            |peer| Some(number(peer.queue.thinned_acks)),
        ),
        (
            "peer_queue_resent_segments_total",
            "counter",
            "TCP segments that were sent again at the end of an outage.",
            |peer| Some(number(peer.queue.resent_segments)),
        ),
    ];
    of_peers(report, &known)
}

/// A counter of each part of a report, such as each rule: its name, help and figure.
type PartCounter<T> = (&'static str, &'static str, fn(&T) -> u64);

/// These counters, with a sample for each part.
fn counters<T>(
    known: &[PartCounter<T>],
    parts: &[T],
    labels: impl Fn(usize, &T) -> Labels,
) -> Vec<MetricFamily> {
    let family = |(name, help, get): &PartCounter<T>| {
        let sample = |(place, part)| (labels(place, part), number(get(part)));
        (*name, "counter", *help, parts.iter().enumerate().map(sample).collect())
    };
    known.iter().map(family).collect()
}

fn rules(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [PartCounter<RuleReport>; 6] = [
        ("rule_matched_packets_total", "Inner packets that matched the rule.", |rule| rule.matched_packets),
        ("rule_matched_bytes_total", "Inner bytes that matched the rule.", |rule| rule.matched_bytes),
        ("rule_input_bytes_total", "Input bytes of blocks sent compressed.", |rule| rule.input_bytes),
        ("rule_output_bytes_total", "Compressed output bytes.", |rule| rule.output_bytes),
        ("rule_pauses_total", "Pauses of compression that packets of the rule began.", |rule| {
            rule.leak.pauses
        }),
        ("rule_paused_packets_total", "Packets not compressed because of a pause.", |rule| {
            rule.leak.paused_packets
        }),
    ];
    counters(&known, &report.rules, rule_labels).into_iter().chain(leaks(report)).collect()
}

fn rule_labels(place: usize, rule: &RuleReport) -> Labels {
    let RuleReport { from, to, domain, codec, .. } = rule.clone();
    // The labels below may be equal for two rules.
    let place = ("rule", (place + 1).to_string());
    vec![place, ("from", from), ("to", to), ("domain", domain), ("codec", codec)]
}

/// What lengths tell, by rule and attacker.
fn leaks(report: &DaemonReport) -> Vec<MetricFamily> {
    type Get = fn(&AttackerReport) -> Option<f64>;
    let known: [(&str, &str, Get); 4] = [
        (
            "rule_leak_bound_bits_per_block",
            "Upper bound of what the size of a block tells an attacker who sees the link, mean over blocks.",
            |it| it.bound_bits_per_block,
        ),
        (
            "rule_leak_bound_bits_per_1000_packets",
            "The same for 1,000 packets that matched the rule.",
            |it| it.bound_bits_per_1000_packets,
        ),
        (
            "rule_measured_yield_bits_per_1000_packets",
            "What a scripted attack learned under the rule's policy when this version was measured.",
            |it| it.measured_yield,
        ),
        (
            "rule_measured_yield_upper_bits_per_1000_packets",
            "One-sided 95 % upper limit of the measured yield.",
            |it| it.measured_yield_upper,
        ),
    ];
    let family = |(name, help, get): (&'static str, &'static str, Get)| {
        let samples = report.rules.iter().enumerate().flat_map(|(place, rule)| {
            let attackers = [("same-flow", &rule.leak.same_flow), ("other-flow", &rule.leak.other_flow)];
            attackers.into_iter().filter_map(move |(attacker, leak)| {
                let mut labels = rule_labels(place, rule);
                labels.push(("attacker", attacker.to_owned()));
                Some((labels, get(leak)?))
            })
        });
        (name, "gauge", help, samples.collect())
    };
    known.into_iter().map(family).collect()
}

fn services(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [PartCounter<ServiceReport>; 3] = [
        (
            "service_sent_packets_total",
            "Inner packets and datagrams of files and logins sent, by service.",
            |service| service.packets,
        ),
        ("service_sent_bytes_total", "Bytes of these before the tunnel, by service.", |service| {
            service.bytes
        }),
        ("service_sent_wire_bytes_total", "Bytes sent on the wire, by service.", |service| {
            service.wire_bytes
        }),
    ];
    counters(&known, &report.services, |_, service| vec![("service", service.service.clone())])
}

fn codecs(report: &DaemonReport) -> Vec<MetricFamily> {
    let known: [PartCounter<CodecReport>; 5] = [
        ("codec_tried_blocks_total", "Blocks compressed on trial or to be sent.", |codec| codec.tried_blocks),
        ("codec_sent_blocks_total", "Blocks that became smaller and were sent.", |codec| codec.sent_blocks),
        ("codec_decompressed_blocks_total", "Received blocks decompressed.", |codec| {
            codec.decompressed_blocks
        }),
        ("codec_input_bytes_total", "Input bytes of sent blocks.", |codec| codec.input_bytes),
        ("codec_output_bytes_total", "Output bytes of sent blocks.", |codec| codec.output_bytes),
    ];
    counters(&known, &report.codecs, |_, codec| vec![("codec", codec.codec.clone())])
}

#[cfg(test)]
pub(crate) mod tests;
