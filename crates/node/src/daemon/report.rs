//! What is shown of a running node.

mod decision;
mod engine;
mod leak;
mod manual;
mod sessionless;

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use strait_clock::Time;
use strait_compress::Codec;
use strait_crypto::Suite;
use strait_ipsec::{
    Explanation, IvMode, Payloads, PeerCounters, Rule, RuleCounters, ServiceClass, ServiceTally,
};
use strait_keying::AssociationStatus;
use strait_scheduler::{LinkRate, Occupation, Pace, Rate};

use super::Daemon;
use super::key_log::KeyLog;
use crate::config::{PeerSection, Price};
use crate::cpu_time;
use crate::report::{
    AssociationReport, CarrierReport, CodecReport, CompressionLoadReport, ControlReport, DaemonReport,
    DirectoryReport, DropReport, FolderReport, HistoryReport, NodeReport, OffloadReport, PathReport,
    PeerReport, QueueReport, RepairReport, RuleReport, ServiceReport, SuiteReport, ThreadReport,
    TrafficReport, TroubleReport, ratio, trouble,
};
use crate::{logging, outward};

impl Daemon {
    /// Everything that can be shown, with the decisions and engines that the sender reported, if it has.
    pub(super) fn report(&self, said: Option<&Explanation>) -> DaemonReport {
        let now = self.clock.now();
        let drops = self.counters.drops.iter();
        DaemonReport {
            node: self.node_report(),
            peers: self.config.peers.iter().filter_map(|peer| self.peer_report(peer)).collect(),
            directory: self
                .directory
                .as_ref()
                .map(|directory| DirectoryReport { daily_keys: self.daily_report(), ..directory.report() }),
            rules: self.rule_reports(),
            metered: self.metered_report(),
            decisions: said.map(|said| {
                said.decisions.iter().map(|decision| self.decision_report(decision, now)).collect()
            }),
            services: self.service_reports(),
            codecs: Codec::ALL.iter().filter_map(|codec| self.codec_report(*codec)).collect(),
            drops: drops
                .map(|(reason, packets)| DropReport { reason: reason.name().to_owned(), packets })
                .collect(),
            control: ControlReport {
                wire_bytes: self.counters.control_wire.get(),
                dropped_messages: self.threads.control.lost(),
                refused_connections: self.refused_connections.load(Ordering::Relaxed),
                machine_copies: self.counters.generations.get(),
            },
            offload: OffloadReport {
                refused_trains: self.socket.refused_trains(),
                refused_joined: self.threads.joined.refused(),
            },
            sessionless: self.control.sessionless_counts().as_ref().map(sessionless::shared),
            threads: threads(said.map_or(&[], |said| &said.engines)),
            engines: engine::engines(said.map_or(&[], |said| &said.engines)),
            suites: Suite::ALL.iter().map(|suite| self.suite_report(*suite)).collect(),
        }
    }

    fn node_report(&self) -> NodeReport {
        let node = &self.config.node;
        NodeReport {
            interface: node.interface.clone(),
            public_key: self.public_key(),
            listen: self.socket.local().to_string(),
            addresses: node.address.iter().map(ToString::to_string).collect(),
            mtu: node.mtu,
            up_bits_per_second: self.config.link.up.given().map(Rate::bits),
            down_bits_per_second: self.config.link.down.given().map(Rate::bits),
            price_per_gigabyte: self.config.link.price.map(Price::of_gigabyte),
            up_auto: self.config.link.up == LinkRate::Auto,
            down_auto: self.config.link.down == LinkRate::Auto,
            forward: node.forward.peers,
            forward_networks: node.forward.networks.iter().map(ToString::to_string).collect(),
            unlisted_nodes: self.streams.unlisted(),
            memory_limit_bytes: self.counters.memory.bytes() as u64,
            memory_kept_bytes: self.counters.memory.used() as u64,
            // Those who read it are in other folders.
            configuration: std::path::absolute(&self.path)
                .unwrap_or_else(|_| self.path.clone())
                .display()
                .to_string(),
            uptime_seconds: self.clock.now().since(Time::ZERO).as_secs_f64(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warnings: self.warnings(),
            log: logging::place(),
            lost_log_lines: logging::lost_lines(),
            folders: self.config.folders.iter().map(FolderReport::of).collect(),
        }
    }

    /// Returns what is insecure and allowed, what is wrong with the host's network around the tunnel, what cannot be written now, and what the
    /// system does only slowly now.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.config.warnings(&self.path);
        warnings.extend(self.watch.warnings.clone());
        warnings.extend(self.manual.warnings());
        warnings.extend(self.sessionless.warning());
        warnings.extend(self.daily_warning());
        warnings.extend(self.key_log.as_ref().and_then(KeyLog::warning));
        warnings.extend(self.unlocked.clone());
        warnings.extend(self.no_direct.clone());
        warnings.extend(self.socket.warning());
        warnings.extend(self.threads.joined.warning(self.threads.joined.now()));
        warnings
    }

    fn peer_report(&self, peer: &PeerSection) -> Option<PeerReport> {
        let id = self.roster.number(peer)?;
        let now = self.clock.now();
        let outer_interface = self.watch.outer_interface(id).map(str::to_owned);
        let kept_bytes = self.roster.kept_bytes(peer) as u64;
        let report =
            PeerReport { outer_interface, kept_bytes, ..common(peer, self.roster.counters(peer)?, now) };
        if let Some(manual) = peer.manual() {
            return Some(manual::report(report, manual, self.manual.get(id)?, now));
        }
        let status = self.control.status(id)?;
        let mut report = report;
        if let Some(remembered) = self.paths.report(id) {
            report.path.get_or_insert_default().remembered = Some(remembered);
        }
        Some(PeerReport {
            keys: if peer.sessionless.is_some() { "sessionless" } else { "session" }.to_owned(),
            sessionless: self.control.sessionless_status(id).map(|status| sessionless::peer(&status, now)),
            public_key: peer.public_key().map(ToString::to_string),
            endpoint: status.endpoint.map(|endpoint| endpoint.to_string()),
            endpoint_age_seconds: self.paths.place_age(&status),
            state: trouble::state(&status, report.outer_interface.is_some()).to_owned(),
            trouble: TroubleReport::of(&status, now),
            carrier: carrier(
                peer,
                self.direct.is_some(),
                self.roster.counters(peer)?,
                status.association.is_some(),
            ),
            association: status.association.as_ref().map(|pair| association(pair, now)),
            last_handshake_age_seconds: status.last_handshake.map(|at| now.since(at).as_secs_f64()),
            handshake_failures: status.failures,
            link_rate_bits_per_second: link_rate(status.pace, report.path.as_ref()),
            ..report
        })
    }

    pub(super) fn rule_reports(&self) -> Vec<RuleReport> {
        let rules = self.rules.rules().iter().enumerate();
        rules.filter_map(|(index, rule)| Some(self.rule_report(rule, self.rules.counters(index)?))).collect()
    }

    fn rule_report(&self, rule: &Rule, counters: &RuleCounters) -> RuleReport {
        let (input_bytes, output_bytes) = (counters.before.get(), counters.after.get());
        let domain = self.config.domains.get(usize::from(rule.domain.0)).cloned();
        let range = |range: &strait_ipsec::PortRange| match (range.start(), range.end()) {
            (one, other) if one == other => one.to_string(),
            (one, other) => format!("{one}-{other}"),
        };
        RuleReport {
            from: rule.from.to_string(),
            to: rule.to.to_string(),
            protocol: rule.protocol.map(|protocol| {
                protocol.name().map_or_else(|| protocol.0.to_string(), |name| name.to_ascii_lowercase())
            }),
            ports: rule.ports.iter().map(range).collect(),
            domain: domain.unwrap_or_default(),
            codec: rule.allowed.to_string(),
            matched_packets: counters.packets.get(),
            matched_bytes: counters.bytes.get(),
            input_bytes,
            output_bytes,
            ratio: ratio(input_bytes, output_bytes),
            leak: leak::report(rule, counters),
        }
    }

    /// Services of which anything was sent, the most wire bytes first.
    fn service_reports(&self) -> Vec<ServiceReport> {
        let report = |(class, tally): (ServiceClass, &ServiceTally)| {
            let (bytes, wire_bytes) = (tally.bytes.get(), tally.wire.get());
            let (packets, ratio) = (tally.packets.get(), ratio(bytes, wire_bytes));
            ServiceReport { service: class.to_string(), packets, bytes, wire_bytes, ratio }
        };
        let all = self.counters.services.all().map(report);
        let mut sent: Vec<ServiceReport> = all.filter(|service| service.packets > 0).collect();
        sent.sort_by_key(|service| Reverse(service.wire_bytes));
        sent
    }

    fn codec_report(&self, codec: Codec) -> Option<CodecReport> {
        let counters = self.counters.codecs.get(usize::from(codec.id()))?;
        let (input_bytes, output_bytes) = (counters.before.get(), counters.after.get());
        Some(CodecReport {
            codec: codec.name().to_owned(),
            tried_blocks: counters.tried.get(),
            sent_blocks: counters.blocks.get(),
            sent_packets: counters.packets.get(),
            input_bytes,
            output_bytes,
            ratio: ratio(input_bytes, output_bytes),
            decompressed_blocks: counters.expanded.get(),
        })
    }

    fn suite_report(&self, suite: Suite) -> SuiteReport {
        SuiteReport { suite: suite.name().to_owned(), nanoseconds_per_packet: self.ranking.cost(suite) }
    }
}

/// The link rate to a peer, configured or estimated.
fn link_rate(pace: Pace, path: Option<&PathReport>) -> Option<u64> {
    let estimated = path.and_then(|path| path.estimated_rate_bits_per_second);
    match pace {
        Pace::Estimated { .. } if estimated.is_some() => estimated,
        pace => pace.given().map(Rate::bits),
    }
}

/// What carries ESP, with keys of sessions.
fn carrier(
    peer: &PeerSection,
    has_sockets: bool,
    counters: &PeerCounters,
    has_session: bool,
) -> Option<CarrierReport> {
    let has_sessions = peer.manual().is_none() && peer.sessionless.is_none();
    has_sessions.then(|| CarrierReport::of(peer.wants_direct(), has_sockets, has_session, &counters.carrier))
}

/// What is shown of any peer.
fn common(peer: &PeerSection, counters: &PeerCounters, now: Time) -> PeerReport {
    PeerReport {
        name: peer.name.clone(),
        keys: String::new(),
        public_key: None,
        endpoint: None,
        endpoint_age_seconds: None,
        outer_interface: None,
        state: String::new(),
        trouble: None,
        kept_bytes: 0,
        allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        association: None,
        carrier: None,
        manual: None,
        sessionless: None,
        last_handshake_age_seconds: None,
        handshake_failures: 0,
        link_rate_bits_per_second: None,
        path: PathReport::of(counters),
        repair: RepairReport::of(counters).filter(|_| peer.manual().is_none()),
        history: peer.manual().is_none().then(|| HistoryReport::of(counters)),
        sent: sent(counters),
        received: received(counters),
        bundles: counters.out_bundles.get(),
        blocks: counters.out_blocks.get(),
        header_compression_saved_bytes: counters.out_headers.get(),
        queue: queue(counters, now),
        inner_mtu: counters.inner_mtu.load(Ordering::Relaxed),
    }
}

fn queue(counters: &PeerCounters, now: Time) -> QueueReport {
    let (queue, delay) = (&counters.queue, counters.queue.delay(now));
    let (aggregates, packets) = (queue.units.get(), queue.in_units.get());
    QueueReport {
        bytes: counters.queued.load(Ordering::Relaxed),
        mean_delay_seconds: delay.map(|delay| delay.mean.as_secs_f64()),
        max_delay_seconds: delay.map(|delay| delay.worst.as_secs_f64()),
        window_packets: queue.window.load(Ordering::Relaxed),
        aggregates,
        packets_per_aggregate: (aggregates > 0).then(|| packets as f64 / aggregates as f64),
        ecn_marked_packets: queue.marked.get(),
        aqm_dropped_packets: queue.late.get(),
        overflow_dropped_packets: queue.overflow.get(),
        thinned_acks: queue.thinned.get(),
        resent_segments: queue.resent.get(),
    }
}

fn association(pair: &AssociationStatus, now: Time) -> AssociationReport {
    let ago = |at: Time| now.since(at).as_secs_f64();
    AssociationReport {
        suite: pair.suite.name().to_owned(),
        iv: match pair.iv {
            IvMode::Implicit => "implicit",
            IvMode::Explicit => "explicit",
        }
        .to_owned(),
        payloads: match pair.payloads {
            Payloads::Strait { .. } => "strait",
            Payloads::Standard(_) => "standard",
            Payloads::Aggfrag => "aggfrag",
        }
        .to_owned(),
        role: pair.role.to_string(),
        inbound_spi: pair.inbound.spi.to_string(),
        outbound_spi: pair.outbound.spi.to_string(),
        age_seconds: ago(pair.established),
        next_rekey_seconds: pair.next_rekey.since(now).as_secs_f64(),
        inbound_packets: pair.inbound.packets,
        inbound_bytes: pair.inbound.bytes,
        outbound_packets: pair.outbound.packets,
        outbound_bytes: pair.outbound.bytes,
        last_received_age_seconds: pair.inbound.last.map(ago),
        last_sent_age_seconds: pair.outbound.last.map(ago),
    }
}

fn sent(counters: &PeerCounters) -> TrafficReport {
    let (bytes, wire_bytes) = (counters.sent_bytes(), counters.out_wire.get());
    TrafficReport {
        packets: counters.out_packets.get(),
        bytes,
        datagrams: counters.out_datagrams.get(),
        wire_bytes,
        ratio: ratio(bytes, wire_bytes),
    }
}

fn received(counters: &PeerCounters) -> TrafficReport {
    let (bytes, wire_bytes) = (counters.in_bytes.get(), counters.in_wire.get());
    TrafficReport {
        packets: counters.in_packets.get(),
        bytes,
        datagrams: counters.in_datagrams.get(),
        wire_bytes,
        ratio: ratio(bytes, wire_bytes),
    }
}

/// CPU time of each thread, as far as the system says, and its compression load.
fn threads(occupations: &[Occupation]) -> Vec<ThreadReport> {
    cpu_time::all()
        .into_iter()
        .map(|(name, time)| {
            let compresses = compresses(&name).and_then(|engine| occupations.get(engine));
            let compression = compresses.map(|it| CompressionLoadReport {
                busy_ratio: it.busy,
                queue_delay_seconds: it.waits.as_secs_f64(),
                queued_blocks: it.jobs,
            });
            ThreadReport { name, cpu_seconds: time.as_secs_f64(), compression }
        })
        .collect()
}

/// Which engine of the sender the thread of this name is.
fn compresses(name: &str) -> Option<usize> {
    match name.strip_prefix(outward::NAME)?.strip_prefix('-') {
        None => Some(0),
        Some(number) => number.parse().ok(),
    }
}
