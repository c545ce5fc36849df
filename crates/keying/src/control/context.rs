//! What a node has once for all its peers: what it offers them, its SPIs, its randomness, and its queue of actions.

use core::time::Duration;
use std::collections::VecDeque;

use strait_clock::{Random, Time};
use strait_ipsec::{EspKeys, EspSpec, ReportWish, SaSpec, inbound, outbound};
use strait_scheduler::LinkRate;
use strait_wire::Spi;
use strait_wire::condition::Condition;

use super::spis::SpiPool;
use crate::keystream::Keystream;
use crate::{
    Action, Capabilities, CarrierMode, ControlEvent, ControlSettings, DangerKey, DirectEsp, KeyExport,
    Lifetime, LossRepair, PayloadFormat, PeerConfig, PublicKey, RepairMode, SaDirection,
};

/// How often associations are looked at while there are any: coarse, as all limits are seconds or more.
const TICK: Duration = Duration::from_secs(1);

/// This node, as its peers get to know it.
#[derive(Debug)]
pub(crate) struct LocalNode {
    pub(crate) public: PublicKey,
    pub(crate) capabilities: Capabilities,
    /// The rate of its own link out.
    pub(crate) up: LinkRate,
    /// How many times longer than peers were told this node's work takes, in 256ths.
    pub(crate) load: u16,
    pub(crate) lifetime: Lifetime,
    /// Whether it sends nothing unasked.
    pub(crate) quiet: bool,
    export: KeyExport,
}

/// What a node has once for all its peers.
#[derive(Debug)]
pub(crate) struct ControlContext {
    pub(crate) node: LocalNode,
    pub(crate) spis: SpiPool,
    pub(crate) random: Random,
    /// Numbers for what is kept of peers' packets.
    epochs: Random,
    /// What has to be done, in this order.
    pub(crate) actions: VecDeque<Action>,
    /// Whether certificates of nodes that are no peers are looked up.
    pub(crate) looks_up: bool,
    /// When associations are looked at next, if there are any.
    pub(crate) tick_at: Option<Time>,
}

impl LocalNode {
    /// What a peer is offered: what this node can, as far as the configuration of that peer allows it.
    pub(crate) fn offer(&self, peer: &PeerConfig) -> Capabilities {
        let mut capabilities = Capabilities { reports: self.reports(), ..self.capabilities.clone() };
        if peer.format == PayloadFormat::Standard {
            capabilities.format = PayloadFormat::Standard;
        }
        capabilities.repair = match (peer.repair, capabilities.repair, self.up.given()) {
            (RepairMode::Off, ..) | (_, LossRepair::Off, _) => LossRepair::Off,
            (.., Some(_)) => LossRepair::Paced,
            (.., None) => LossRepair::Unpaced,
        };
        if peer.carrier == CarrierMode::Udp {
            capabilities.direct = DirectEsp::Off;
        }
        capabilities
    }

    /// What it does with reports of what arrives at its peers.
    pub(crate) fn reports(&self) -> ReportWish {
        if self.up == LinkRate::Auto { ReportWish::Often } else { ReportWish::Changes }
    }
}

impl ControlContext {
    pub(crate) fn new(settings: ControlSettings) -> ControlContext {
        let [random, epochs] = randoms(&settings.seed);
        ControlContext {
            spis: SpiPool::new(&settings.seed),
            random,
            epochs,
            actions: VecDeque::new(),
            looks_up: false,
            tick_at: None,
            node: LocalNode {
                public: settings.identity.public(),
                capabilities: settings.capabilities,
                up: settings.up,
                load: Condition::USUAL,
                quiet: false,
                lifetime: settings.lifetime,
                export: settings.export,
            },
        }
    }

    /// Takes all that is unpredictable from `seed` from now on.
    pub(crate) fn renew(&mut self, seed: &[u8; 32]) {
        self.spis.renew(seed);
        [self.random, self.epochs] = randoms(seed);
    }

    /// What a peer gets that is added now.
    pub(crate) const fn next_epoch(&mut self) -> u32 {
        (self.epochs.next_u64() >> 32) as u32
    }

    pub(crate) fn log(&mut self, event: ControlEvent) {
        self.actions.push_back(Action::Log(event));
    }

    /// Orders something from the sender.
    pub(crate) fn order_out(&mut self, order: outbound::Order) {
        self.actions.push_back(Action::Out(order));
    }

    /// Orders something from the receiver.
    pub(crate) fn order_in(&mut self, order: inbound::Order) {
        self.actions.push_back(Action::In(order));
    }

    /// Withdraws an inbound association; its SPI may be handed out again.
    pub(crate) fn withdraw_inbound(&mut self, spi: Spi) {
        self.spis.release(spi);
        self.order_in(inbound::Order::Withdraw(spi));
    }

    /// Looks at associations from now on.
    pub(crate) fn tick_from(&mut self, now: Time) {
        self.tick_at.get_or_insert(now + TICK);
    }

    /// Looks at associations again a tick later if there are `any`.
    pub(crate) fn tick_again(&mut self, any: bool, now: Time) {
        self.tick_at = any.then(|| now + TICK);
    }

    /// Hands out the key of an association, if the settings are for it and one algorithm has it.
    pub(crate) fn export_key(&mut self, direction: SaDirection, spec: &SaSpec) {
        if self.node.export == KeyExport::Never {
            return;
        }
        if let Some(EspSpec { spi, keys: EspKeys::Aead { key, iv } }) = &spec.esp {
            let (peer, spi, iv, suite) = (spec.peer, *spi, *iv, key.algorithm());
            let key = DangerKey { peer, direction, spi, suite, iv, material: key.duplicate() };
            self.actions.push_back(Action::DangerKey(Box::new(key)));
        }
    }
}

/// Chance for pauses, and numbers for what is kept of peers' packets.
fn randoms(seed: &[u8; 32]) -> [Random; 2] {
    ["jitter", "history"].map(|purpose| Random::new(Keystream::new(seed, purpose).next_u64()))
}

/// `span`, up to a quarter less or more, so that two nodes that failed together do not try together.
pub(crate) fn jitter(span: Duration, random: &mut Random) -> Duration {
    span.mul_f64(0.75 + 0.5 * random.unit())
}
