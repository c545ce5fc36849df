//! Carries out the actions of the key manager.

use std::sync::Arc;

use ipnet::IpNet;
use strait_ipsec::{Policies, inbound, outbound};
use strait_keying::directory::Asker;
use strait_keying::{Action, ControlEvent};

use super::Daemon;
use super::manual::PeerOrders;
use crate::config::{DirectoryCertificates, DirectorySection, Mss};

impl Daemon {
    /// Does everything that is wanted now.
    pub(super) fn act(&mut self) {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Out(outbound::Order::Transmit(via, to, bytes)) => self.transmit(via, to, bytes),
                Action::Out(order) => self.order_out(order),
                Action::In(order) => self.order_in(order),
                Action::Resolve(peer, name) => self.look_up(peer, name),
                Action::Unlisted(peer, counters) => {
                    self.streams.add_unlisted(peer, counters, self.clock.now());
                }
                Action::LookUp(name) => self.look_up_certificate(name, Asker::Stranger),
                Action::PersistMark(owner, mark) => self.sessionless.persist(owner, mark),
                Action::Log(event) => self.log(&event),
                Action::DangerKey(key) => {
                    if let Some(log) = &mut self.key_log {
                        log.write(&key);
                    }
                }
            }
        }
    }

    /// Gives sender and receiver the addresses of each peer, and the sender the compression rules.
    pub(super) fn announce_policies(&self) {
        let mut policies = Policies::new();
        for peer in &self.config.peers {
            let Some(id) = self.roster.number(peer) else { continue };
            for prefix in &peer.allowed_ips {
                policies.allow(*prefix, id);
            }
        }
        for address in &self.config.node.address {
            policies.add_local(address.addr());
            // What is for all hosts of the interface's network is for this one too (RFC 919, RFC 3021).
            if let IpNet::V4(network) = address
                && network.prefix_len() < 31
            {
                policies.add_local(network.broadcast().into());
            }
        }
        if self.config.node.mss == Mss::Auto {
            policies.clamp_mss(self.config.node.mtu);
        }
        self.config.node.forward.networks.iter().for_each(|network| policies.name_network(*network));
        let hosts = self.config.peers.iter().filter_map(|peer| peer.manual()?.hosts());
        hosts.for_each(|hosts| policies.add_local(hosts.local));
        let on_demand = |section: &&DirectorySection| section.certificates == DirectoryCertificates::OnDemand;
        if let Some(section) = self.config.directory.as_ref().filter(on_demand) {
            section.allowed_ips.iter().for_each(|network| policies.seek(*network));
        }
        let policies = Arc::new(policies);
        self.order_out(outbound::Order::Policies(Arc::clone(&policies)));
        self.order_in(inbound::Order::Policies(policies));
        self.order_out(outbound::Order::Rules(Arc::clone(&self.rules)));
    }

    /// Tells the packet threads of a peer with manual keys.
    pub(super) fn tell(&self, told: PeerOrders) {
        told.into.into_iter().for_each(|order| self.order_in(order));
        told.out.into_iter().for_each(|order| self.order_out(order));
    }

    // A packet thread that ended has said why, and the loop ends for it.
    pub(super) fn order_out(&self, order: outbound::Order) {
        let _ = self.threads.outward.send(order);
    }

    fn order_in(&self, order: inbound::Order) {
        let _ = self.threads.inward.send(order);
    }

    fn log(&mut self, event: &ControlEvent) {
        // The endpoint may be known only now, or be elsewhere.
        if let ControlEvent::Established { peer, .. } | ControlEvent::Moved { peer, .. } = event {
            self.look_at_path(*peer);
            self.look_at_source(*peer);
        }
        if let ControlEvent::HandshakeStarted { peer, to } = event {
            self.check_source(*peer, *to);
        }
        if let Some(peer) = event.peer() {
            let control = &self.control;
            match self.lines.take(peer, event, self.clock.now(), |peer| control.status(peer).is_some()) {
                None => return,
                Some(0) => {}
                Some(skipped) => {
                    tracing::warn!("{skipped} lines on one peer were not written: too many a second")
                }
            }
        }
        let name = event.peer().and_then(|peer| self.control.status(peer)).map(|status| status.name);
        let peer = name.as_deref().unwrap_or("-");
        match event {
            ControlEvent::Failed { .. }
            | ControlEvent::Refused { .. }
            | ControlEvent::Unresolved { .. }
            | ControlEvent::CannotSend { .. }
            | ControlEvent::RefusedHeader { .. }
            | ControlEvent::NoEndpoint { .. } => {
                tracing::warn!(peer, "{event}");
            }
            _ => tracing::info!(peer, "{event}"),
        }
    }
}
