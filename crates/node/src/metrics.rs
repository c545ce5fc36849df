//! The same numbers as `show`, in the text form that Prometheus reads.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{mpsc, oneshot};

use crate::local::{Answer, Asked, Request, ask};
use crate::report::{CodecReport, NodeReport, PeerReport, Report, RuleReport};

/// The exposition format's media type (prometheus.io, "Text-based format").
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why no metrics are served.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve metrics at {address}: {source}; choose another address with `metrics = \"127.0.0.1:PORT\"`"
)]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// An open port for metrics.
#[derive(Debug)]
pub(crate) struct Metrics(std::net::TcpListener);

impl Metrics {
    /// Opens the port.
    pub(crate) fn bind(address: SocketAddr) -> Result<Metrics, MetricsError> {
        let failed = |source| MetricsError { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Metrics(listener))
    }

    /// Serves `/metrics` until the runtime ends.
    pub(crate) fn serve(self, asks: mpsc::Sender<Asked>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.0)?;
        let router = Router::new().route("/metrics", get(move || answer(asks.clone())));
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!(%error, "metrics");
            }
        });
        Ok(())
    }
}

async fn answer(asks: mpsc::Sender<Asked>) -> Response {
    let (_written, seen) = oneshot::channel();
    match ask(&asks, Request::Show, seen).await {
        Answer::Report { report } => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text(&report)).into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the tunnel is ending\n").into_response(),
    }
}

/// One metric: its name, type, help and samples.
type Family = (&'static str, &'static str, &'static str, Vec<(Labels, f64)>);
type Labels = Vec<(&'static str, String)>;

/// The report in Prometheus' text form.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let all = [node(report), peer_info(report), peers(report), queues(report), rules(report), codecs(report)];
    for (name, kind, help, samples) in all.into_iter().flatten() {
        let _ = writeln!(text, "# HELP strait_{name} {help}\n# TYPE strait_{name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "strait_{name}{labels} {value}");
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

fn node(report: &Report) -> Vec<Family> {
    let node = &report.node;
    let NodeReport { interface, version, public_key, .. } = node.clone();
    let mut labels = vec![("interface", interface), ("version", version)];
    labels.extend(public_key.map(|key| ("public_key", key)));
    let drops = report.drops.iter().map(|drop| (vec![("reason", drop.reason.clone())], number(drop.packets)));
    let threads =
        report.engines.iter().map(|engine| (vec![("thread", engine.name.clone())], engine.cpu_seconds));
    let wire = vec![(Vec::new(), number(report.control.wire_bytes))];
    let lost = vec![(Vec::new(), number(report.control.lost_messages))];
    vec![
        ("info", "gauge", "The node; always 1.", vec![(labels, 1.0)]),
        ("uptime_seconds", "gauge", "Time since the start.", vec![(Vec::new(), node.uptime_seconds)]),
        ("dropped_packets_total", "counter", "Packets and datagrams dropped, by reason.", drops.collect()),
        ("control_wire_bytes_total", "counter", "Bytes of the control channel on the wire, both ways.", wire),
        (
            "control_lost_messages_total",
            "counter",
            "Messages to the keeper of keys that found no room.",
            lost,
        ),
        ("thread_cpu_seconds_total", "counter", "CPU time of each thread.", threads.collect()),
    ]
}

/// How each peer is protected; `protocols` only where keys are in the file, since sessions change theirs.
fn peer_info(report: &Report) -> Vec<Family> {
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
    let number = |peer: &PeerReport| {
        let manual = peer.manual.as_ref()?;
        Some((vec![("peer", peer.name.clone())], number(manual.last_number)))
    };
    vec![
        ("peer_info", "gauge", "A peer; always 1.", report.peers.iter().map(sample).collect()),
        (
            "peer_last_number",
            "gauge",
            "Sequence number of the last packet sent with manual keys.",
            report.peers.iter().filter_map(number).collect(),
        ),
    ]
}

/// A number of a peer, if there is one.
type OfPeer = fn(&PeerReport) -> Option<f64>;

fn peers(report: &Report) -> Vec<Family> {
    let known: [(&str, &str, &str, OfPeer); 20] = [
        ("peer_up", "gauge", "Whether packets can flow.", |peer| {
            Some(f64::from(u8::from(peer.state == "up")))
        }),
        ("peer_sent_packets_total", "counter", "Inner packets sent.", |peer| Some(number(peer.sent.packets))),
        ("peer_sent_bytes_total", "counter", "Bytes of inner packets sent.", |peer| {
            Some(number(peer.sent.bytes))
        }),
        ("peer_sent_datagrams_total", "counter", "Datagrams sent.", |peer| Some(number(peer.sent.datagrams))),
        ("peer_sent_wire_bytes_total", "counter", "Bytes on the wire sent.", |peer| {
            Some(number(peer.sent.wire_bytes))
        }),
        ("peer_received_packets_total", "counter", "Inner packets received.", |peer| {
            Some(number(peer.received.packets))
        }),
        ("peer_received_bytes_total", "counter", "Bytes of inner packets received.", |peer| {
            Some(number(peer.received.bytes))
        }),
        ("peer_received_datagrams_total", "counter", "Datagrams received.", |peer| {
            Some(number(peer.received.datagrams))
        }),
        ("peer_received_wire_bytes_total", "counter", "Bytes on the wire received.", |peer| {
            Some(number(peer.received.wire_bytes))
        }),
        ("peer_bundles_total", "counter", "Bundles sent.", |peer| Some(number(peer.bundles))),
        ("peer_blocks_total", "counter", "Compressed blocks sent.", |peer| Some(number(peer.blocks))),
        ("peer_headers_saved_bytes_total", "counter", "Bytes that coding headers saved.", |peer| {
            Some(number(peer.headers_saved_bytes))
        }),
        ("peer_rate_bits_per_second", "gauge", "What it is paced at, given or found out.", |peer| {
            peer.rate_bits_per_second.map(number)
        }),
        ("peer_round_trip_seconds", "gauge", "Time there and back.", |peer| {
            peer.path.as_ref()?.round_trip_seconds
        }),
        ("peer_loss_ratio", "gauge", "Share of datagrams to it that is lost.", |peer| {
            Some(peer.path.as_ref()?.loss)
        }),
        ("peer_reports_sent_total", "counter", "Reports of what arrived from it.", |peer| {
            Some(number(peer.path.as_ref()?.reports_sent))
        }),
        ("peer_reports_received_total", "counter", "Reports of what arrived there.", |peer| {
            Some(number(peer.path.as_ref()?.reports_received))
        }),
        ("peer_inner_mtu_bytes", "gauge", "Largest inner packet.", |peer| Some(number(peer.inner_mtu))),
        ("peer_handshake_failures", "gauge", "Handshakes failed since the last that succeeded.", |peer| {
            Some(peer.failures.into())
        }),
        ("peer_last_handshake_seconds", "gauge", "Time since the last handshake.", |peer| {
            peer.last_handshake_seconds
        }),
    ];
    of_peers(report, &known)
}

/// Of each peer whatever `known` gets of it, under these names.
fn of_peers(report: &Report, known: &[(&'static str, &'static str, &'static str, OfPeer)]) -> Vec<Family> {
    let family = |(name, kind, help, get): &(&'static str, &'static str, &'static str, OfPeer)| {
        let sample = |peer| get(peer).map(|value| (vec![("peer", peer.name.clone())], value));
        (*name, *kind, *help, report.peers.iter().filter_map(sample).collect())
    };
    known.iter().map(family).collect()
}

fn queues(report: &Report) -> Vec<Family> {
    let known: [(&str, &str, &str, OfPeer); 9] = [
        ("peer_queued_bytes", "gauge", "Bytes that wait for the link.", |peer| {
            Some(number(peer.queue.bytes))
        }),
        ("peer_queue_delay_seconds", "gauge", "How long packets waited for the link lately.", |peer| {
            peer.queue.delay_seconds
        }),
        (
            "peer_queue_delay_worst_seconds",
            "gauge",
            "How long packets waited for the link at worst within a second or two.",
            |peer| peer.queue.worst_delay_seconds,
        ),
        ("peer_queue_window", "gauge", "Packets among which one finds company.", |peer| {
            Some(number(peer.queue.window))
        }),
        ("peer_units_total", "counter", "Packets alone or in company that left the queue.", |peer| {
            Some(number(peer.queue.units))
        }),
        ("peer_unit_packets", "gauge", "Packets that leave the queue together, on average.", |peer| {
            peer.queue.packets_per_unit
        }),
        (
            "peer_queue_marked_total",
            "counter",
            "Packets marked because their flow waited too long.",
            |peer| Some(number(peer.queue.marked)),
        ),
        ("peer_queue_late_total", "counter", "Packets dropped because their flow waited too long.", |peer| {
            Some(number(peer.queue.late))
        }),
        ("peer_queue_overflow_total", "counter", "Packets dropped because the queue was full.", |peer| {
            Some(number(peer.queue.overflow))
        }),
    ];
    of_peers(report, &known)
}

fn rules(report: &Report) -> Vec<Family> {
    type Get = fn(&RuleReport) -> u64;
    let known: [(&str, &str, Get); 4] = [
        ("rule_packets_total", "Inner packets that a compression rule covered.", |rule| rule.packets),
        ("rule_bytes_total", "Bytes of inner packets that a compression rule covered.", |rule| rule.bytes),
        ("rule_before_bytes_total", "Bytes that a compression rule compressed.", |rule| rule.before),
        ("rule_after_bytes_total", "What became of them.", |rule| rule.after),
    ];
    let family = |(name, help, get): (&'static str, &'static str, Get)| {
        let sample = |(place, rule): (usize, &RuleReport)| {
            let RuleReport { from, to, domain, codec, .. } = rule.clone();
            // Two rules may differ in nothing else that is named here.
            let place = ("rule", (place + 1).to_string());
            (vec![place, ("from", from), ("to", to), ("domain", domain), ("codec", codec)], number(get(rule)))
        };
        (name, "counter", help, report.rules.iter().enumerate().map(sample).collect())
    };
    known.into_iter().map(family).collect()
}

fn codecs(report: &Report) -> Vec<Family> {
    type Get = fn(&CodecReport) -> u64;
    let known: [(&str, &str, Get); 5] = [
        ("codec_tried_blocks_total", "Blocks that a codec tried.", |codec| codec.tried),
        ("codec_sent_blocks_total", "Blocks that shrank and were sent.", |codec| codec.blocks),
        ("codec_expanded_blocks_total", "Blocks expanded on receipt.", |codec| codec.expanded),
        ("codec_before_bytes_total", "Bytes of sent blocks before.", |codec| codec.before),
        ("codec_after_bytes_total", "Bytes of sent blocks after.", |codec| codec.after),
    ];
    let family = |(name, help, get): (&'static str, &'static str, Get)| {
        let sample = |codec: &CodecReport| (vec![("codec", codec.codec.clone())], number(get(codec)));
        (name, "counter", help, report.codecs.iter().map(sample).collect())
    };
    known.into_iter().map(family).collect()
}

#[cfg(test)]
mod tests;
