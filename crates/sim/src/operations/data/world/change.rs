//! What changes in the world: peers, associations, addresses, rates, rules.

use super::*;

impl DataWorld {
    pub(super) fn change(&mut self, operation: DataOperation) -> Held {
        let now = self.now;
        match operation {
            DataOperation::Install { between: Between { from, to }, payloads, reserved } => {
                self.install((from, to), payloads, reserved);
            }
            DataOperation::Withdraw(Between { from, to }) => {
                if let Some(spi) = self.sites[from].used[to].take() {
                    self.sites[from].order(outbound::Order::Withdraw(NodeId::of(to).peer(), spi), now);
                }
            }
            DataOperation::Forget(Between { from, to }) => self.forget(from, to),
            DataOperation::RemovePeer(Between { from, to }) => self.remove_peer(from, to)?,
            DataOperation::AddPeer(Between { from, to }) => self.add_peer(from, to),
            DataOperation::Move(site) => self.sites[site].readdress(),
            DataOperation::Pace { between: Between { from, to }, rate, estimated } => {
                let pace = if estimated { Pace::Estimated { at_most: rate } } else { rate.into() };
                self.sites[from].order(outbound::Order::Rate(NodeId::of(to).peer(), pace), now);
            }
            DataOperation::Link { site, rate } => {
                self.sites[site].order(outbound::Order::Link(rate, 0), now);
            }
            DataOperation::Queueing { site, window, wait } => {
                let queueing = Queueing { window, hold: wait, ..self.settings.queueing() };
                self.sites[site].order(outbound::Order::Queueing(queueing), now);
            }
            DataOperation::Rules { site, form } => self.sites[site].rules(form, now),
            DataOperation::Refuse { site, too_big } => {
                self.sites[site].outlets.refuses =
                    Some(if too_big { TransmitRefused::TooBig } else { TransmitRefused::Failed });
            }
            other => self.tell(other),
        }
        Ok(())
    }

    /// What the key manager, or a peer, has a sender say.
    fn tell(&mut self, operation: DataOperation) {
        let now = self.now;
        let (between, order): (Between, fn(strait_ipsec::PeerId) -> outbound::Order) = match operation {
            DataOperation::Probe(between) => (between, outbound::Order::Probe),
            DataOperation::Keepalive(between) => (between, outbound::Order::Keepalive),
            DataOperation::Condition(between) => (between, |peer| {
                outbound::Order::Report(peer, Condition { load: 300, down: 1_000_000, estimates: None })
            }),
            DataOperation::Probes { between: Between { from, to }, count } => {
                for id in 0..u16::from(count) {
                    let order = outbound::Order::AnswerProbe(NodeId::of(to).peer(), id, 1400);
                    self.sites[from].order(order, now);
                }
                return;
            }
            _ => return,
        };
        self.sites[between.from].order(order(NodeId::of(between.to).peer()), now);
    }

    /// A new association, which the receiver takes before the sender uses it.
    pub(super) fn install(&mut self, (from, to): (usize, usize), payloads: Payloads, reserved: Option<u8>) {
        if !self.sites[from].known[to] || !self.sites[to].known[from] {
            return;
        }
        let Some(spi) = self.agreed.agree((from, to), self.settings.iv) else { return };
        let spec = |peer| self.agreed.spec(spi, peer, payloads);
        let (Some(sender), Some(receiver)) = (spec(to), spec(from)) else { return };
        let strait = matches!(payloads, Payloads::Strait { .. });
        let terms = if strait { self.settings.repair } else { RepairTerms::Off };
        let inbound = || inbound::Order::Install(Box::new(InboundSa::new(&receiver).repaired(terms)));
        self.sites[to].install(inbound(), inbound());
        self.sites[to].taken[from].push(spi);
        let outbound = OutboundSa::new(&sender).repaired(terms);
        let outbound = match reserved {
            Some(last) => outbound.within(Reserve::new(1, u64::from(last))),
            None => outbound,
        };
        self.sites[from].order(outbound::Order::Install(Box::new(outbound)), self.now);
        self.sites[from].used[to] = Some(spi);
    }

    /// The receiver takes the oldest association from `from` no longer.
    fn forget(&mut self, from: usize, to: usize) {
        let site = &mut self.sites[to];
        if site.taken[from].is_empty() {
            return;
        }
        let spi: Spi = site.taken[from].remove(0);
        if site.withdraw(spi) {
            self.model.excuse((from, to));
        }
    }

    fn remove_peer(&mut self, site: usize, peer: usize) -> Held {
        if !self.sites[site].known[peer] {
            return Ok(());
        }
        self.sites[site].remove_peer(peer, self.now);
        self.collect(site)?;
        self.model.excuse((peer, site));
        Ok(())
    }

    pub(super) fn add_peer(&mut self, site: usize, peer: usize) {
        if !self.sites[site].known[peer] {
            let endpoint = self.sites[peer].outlets.address;
            self.sites[site].add_peer(peer, endpoint, self.now);
        }
    }
}
