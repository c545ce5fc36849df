//! What the behaviours have in common: two nodes, and talk between their hosts.

use core::time::Duration;

use strait_ipsec::outbound::Queueing;
use strait_ipsec::{Domain, HistoryScope, LeakPolicy, Rule};
use strait_keying::ControlEvent;
use strait_sim::{Conversation, ConversationTally, Filler, FlowShape, NodeId, PairSettings, SimNetwork};

pub(crate) const A: NodeId = NodeId(0);
pub(crate) const B: NodeId = NodeId(1);
pub(crate) const C: NodeId = NodeId(2);

/// A queue for hosts that do not slow down: it drops nothing before it is full.
pub(crate) const PATIENT: Queueing = Queueing { lossless: true, ..Queueing::NORMAL };

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Prints the seed if the test that holds this fails.
pub(crate) struct Seed(pub(crate) u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}

/// A rule for what goes to or from `port`, in domain 0, with history by flow.
pub(crate) fn rule(port: u16, method: &str) -> Rule {
    Rule {
        history: Some(HistoryScope::Flow),
        cache: None,
        from: "0.0.0.0/0".parse().unwrap(),
        to: "0.0.0.0/0".parse().unwrap(),
        protocol: None,
        ports: vec![port..=port],
        domain: Domain(0),
        allowed: method.parse().unwrap(),
        policy: LeakPolicy::NONE,
    }
}

/// Two nodes as changed from the default.
pub(crate) fn pair(seed: u64, change: impl FnOnce(&mut PairSettings)) -> SimNetwork {
    let mut settings = PairSettings::default();
    change(&mut settings);
    SimNetwork::pair(seed, settings).unwrap()
}

/// Two nodes that are up.
pub(crate) fn joined(seed: u64, change: impl FnOnce(&mut PairSettings)) -> SimNetwork {
    let mut network = pair(seed, change);
    assert!(network.run_until_up(A, B, seconds(30)), "not up: {:?} {:?}", log(&network, A), log(&network, B));
    network
}

pub(crate) fn v4(from: NodeId, to: NodeId, port: u16) -> FlowShape {
    FlowShape::new(from.inner_v4(port), to.inner_v4(port))
}

pub(crate) fn v6(from: NodeId, to: NodeId, port: u16) -> FlowShape {
    FlowShape::new(from.inner_v6(port), to.inner_v6(port))
}

/// Talk between two hosts, both ways.
pub(crate) struct Talk {
    from: NodeId,
    to: NodeId,
    pub(crate) forth: Conversation,
    pub(crate) back: Conversation,
}

impl Talk {
    pub(crate) fn new(from: NodeId, to: NodeId, port: u16) -> Talk {
        Talk {
            from,
            to,
            forth: Conversation::new(v4(from, to, port), Filler::Text),
            back: Conversation::new(v4(to, from, port), Filler::Text),
        }
    }

    /// A packet each way every `every` for `span`.
    pub(crate) fn run(&mut self, network: &mut SimNetwork, span: Duration, every: Duration) {
        let end = network.now() + span;
        while network.now() < end {
            network.send(self.from, &self.forth.next_packet(200));
            network.send(self.to, &self.back.next_packet(200));
            network.run_for(every);
            self.collect(network);
        }
    }

    /// Waits for what is on its way.
    pub(crate) fn finish(&mut self, network: &mut SimNetwork) {
        network.run_for(seconds(2));
        self.collect(network);
    }

    pub(crate) fn collect(&mut self, network: &mut SimNetwork) {
        let forth = network.node_mut(self.to).take_delivered();
        let back = network.node_mut(self.from).take_delivered();
        self.forth.note(&forth);
        self.back.note(&back);
    }

    pub(crate) fn missing(&self) -> [u64; 2] {
        [self.forth.tally().missing(), self.back.tally().missing()]
    }

    /// Nothing is missing, repeated or damaged; the order may differ.
    pub(crate) fn assert_arrived(&self) {
        for tally in [self.forth.tally(), self.back.tally()] {
            assert!(tally.sent > 0);
            assert_eq!(
                ConversationTally { overtaken: 0, ..tally },
                ConversationTally { sent: tally.sent, arrived: tally.sent, ..ConversationTally::default() }
            );
        }
    }

    /// Everything arrived once and in order.
    pub(crate) fn assert_perfect(&self) {
        for tally in [self.forth.tally(), self.back.tally()] {
            let perfect =
                ConversationTally { sent: tally.sent, arrived: tally.sent, ..ConversationTally::default() };
            assert!(tally.sent > 0);
            assert_eq!(tally, perfect);
        }
    }
}

/// What a node logged, with the times.
pub(crate) fn log(network: &SimNetwork, node: NodeId) -> Vec<String> {
    network.node(node).events().iter().map(|(at, event)| format!("{at:?} {event}")).collect()
}

pub(crate) fn count(network: &SimNetwork, node: NodeId, matches: impl Fn(&ControlEvent) -> bool) -> usize {
    network.node(node).events().iter().filter(|(_, event)| matches(event)).count()
}
