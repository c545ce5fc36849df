//! Packets that leave alone and are coded against earlier ones, on links that lose, reorder, repeat and are cut, while keys are replaced
//! and nodes start anew: each packet is delivered once, or counted as lost.

use core::time::Duration;

use strait_compress::Allowed;
use strait_ipsec::{Domain, HistoryScope, LeakPolicy, Reason, Rule};
use strait_keying::{Lifetime, Start};
use strait_sim::{Conversation, Filler, LinkSettings, LinkSwitch, LossModel, NodeId, Reordering, SimNetwork};

use crate::stage::{A, B, Seed, joined, millis, seconds, v4};

/// Packets of a case, both ways together, where the variable does not say how many.
const PACKETS: u64 = 3_000;
const VARIABLE: &str = "STRAIT_LONE_PACKETS";
/// Flows each way; between two packets of a host.
const FLOWS: u16 = 3;
const PACE: Duration = millis(25);

/// What happens beside loss, after so many packets each time.
#[derive(Clone, Copy, Default)]
struct Events {
    cut: Option<u64>,
    restart: Option<u64>,
    /// A machine that is restored from a snapshot, and one whose time of day is set ahead, in turn.
    renewal: Option<u64>,
    rekey: Option<u64>,
}

/// Everything may be compressed, each flow with a history of its own.
fn rules(scope: HistoryScope) -> Vec<Rule> {
    let Ok(all) = "10.0.0.0/8".parse() else { return Vec::new() };
    let (allowed, policy) = (Allowed::Any, LeakPolicy::NONE);
    let (protocol, ports, domain, history) = (None, Vec::new(), Domain(0), Some(scope));
    vec![Rule { history, cache: None, from: all, to: all, protocol, ports, domain, allowed, policy }]
}

fn weather() -> LinkSettings {
    LinkSettings {
        delay: millis(20),
        jitter: millis(5),
        reordering: Some(Reordering { share: 0.05, by: millis(80) }),
        loss: LossModel::Uniform(0.03),
        repeated: 0.02,
        ..LinkSettings::default()
    }
}

/// Flows both ways, and what is known of packets that were not delivered.
struct Polls {
    network: SimNetwork,
    flows: Vec<(NodeId, NodeId, Conversation)>,
    /// Dropped with a reason by nodes that were restarted since, copies of what had come apart; and units that lacked their history.
    dropped: u64,
    gone: u64,
}

impl Polls {
    fn new(seed: u64, scope: HistoryScope, events: Events) -> Polls {
        let network = joined(seed, |pair| {
            pair.answer = Some(Start::Eager);
            (pair.forth, pair.back) = (weather(), weather());
            for node in [&mut pair.a, &mut pair.b] {
                node.rules = rules(scope);
                if let Some(packets) = events.rekey {
                    node.lifetime = Lifetime { packets, ..Lifetime::default() };
                }
            }
        });
        let ways =
            [(A, B), (B, A)].into_iter().flat_map(|(from, to)| (0..FLOWS).map(move |flow| (from, to, flow)));
        let flow = |(from, to, flow)| (from, to, Conversation::new(v4(from, to, 5_000 + flow), Filler::Text));
        Polls { network, flows: ways.map(flow).collect(), dropped: 0, gone: 0 }
    }

    /// Every flow sends a packet, and time passes.
    fn round(&mut self, number: u64) {
        for (from, _, flow) in &mut self.flows {
            let len = 40 + usize::try_from(number % 3).unwrap_or(0);
            self.network.send(*from, &flow.next_packet(len));
            self.network.run_for(PACE);
        }
        self.collect();
    }

    fn collect(&mut self) {
        for node in [A, B] {
            let delivered = self.network.node_mut(node).take_delivered();
            self.flows.iter_mut().filter(|(_, to, _)| *to == node).for_each(|(.., flow)| {
                flow.note(&delivered);
            });
        }
    }

    /// Takes what a node counted.
    fn count(&mut self, node: NodeId) {
        let node = self.network.node(node);
        let copies = [Reason::Replayed, Reason::TooOld];
        let drops = node.all_drops().into_iter().filter(|(reason, _)| !copies.contains(reason));
        self.dropped += drops.map(|(_, count)| count).sum::<u64>();
        self.gone += node.drops(Reason::HistoryGone);
    }

    fn restart(&mut self, node: NodeId) {
        self.network.run_for(seconds(2));
        self.collect();
        self.count(node);
        self.network.restart(node).unwrap();
    }

    fn renew(&mut self, count: u64) {
        self.network.run_for(seconds(2));
        let node = if count % 4 < 2 { A } else { B };
        self.network.renew(node, count.is_multiple_of(2));
    }

    fn cut(&mut self, down: bool) {
        let switch = if down { LinkSwitch::Down } else { LinkSwitch::Up };
        self.network.link(A, B).switch = switch;
        self.network.link(B, A).switch = switch;
    }

    /// Sends so many packets with these events between them.
    fn run(&mut self, packets: u64, events: Events) {
        let rounds = packets / u64::try_from(self.flows.len()).unwrap();
        let mut down = 0;
        for number in 1..=rounds {
            if events.restart.is_some_and(|every| number.is_multiple_of(every)) {
                self.restart(if (number / events.restart.unwrap()).is_multiple_of(2) { A } else { B });
            }
            if events.renewal.is_some_and(|every| number.is_multiple_of(every)) {
                self.renew(number / events.renewal.unwrap());
            }
            if events.cut.is_some_and(|every| number.is_multiple_of(every)) {
                down = 8;
            }
            self.cut(down > 0);
            down = u64::saturating_sub(down, 1);
            self.round(number);
        }
        self.cut(false);
        self.network.run_for(seconds(5));
        self.collect();
        self.count(A);
        self.count(B);
    }

    /// Every packet came once, or the link or a node counted it; nothing came that was not sent.
    fn settle(&mut self, name: &str) {
        let lost = [(A, B), (B, A)].map(|(from, to)| {
            let counters = self.network.link(from, to).counters();
            counters.lost + counters.cut
        });
        let mut missing = 0;
        for (.., flow) in &self.flows {
            let tally = flow.tally();
            missing += tally.missing();
            assert_eq!((tally.repeated, tally.damaged), (0, 0), "{name}: {tally:?}");
            assert!(tally.arrived * 2 > tally.sent, "{name}: {tally:?}");
        }
        let lost = lost[0] + lost[1];
        // What is counted of a peer outlives a restart.
        let units = |node, peer| self.network.node(node).peer_counters(peer).history.in_units.get();
        let units = units(A, B) + units(B, A);
        let Polls { dropped, gone, .. } = *self;
        println!(
            "{name}: {missing} missing; {lost} lost, {dropped} dropped, {gone} of {units} units without history"
        );
        assert!(missing <= lost + dropped, "{name}: {missing} missing, {lost} lost, {dropped} dropped");
        assert!(units > 0, "{name}: no lone units");
        assert!(gone * 1_000 <= units, "{name}: {gone} of {units} without history");
    }
}

fn packets() -> u64 {
    std::env::var(VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(PACKETS)
}

fn case(name: &str, seed: u64, scope: HistoryScope, events: Events) {
    let _seed = Seed(seed);
    let mut polls = Polls::new(seed, scope, events);
    polls.run(packets(), events);
    polls.settle(name);
}

#[test]
fn loss_reordering_and_repetition_cost_bytes_and_no_packet() {
    case("weather", 1, HistoryScope::Flow, Events::default());
}

#[test]
fn flows_that_share_a_history_keep_their_packets() {
    case("service", 2, HistoryScope::Service, Events::default());
}

#[test]
fn outages_and_new_keys_lose_what_the_link_loses() {
    let events = Events { cut: Some(60), rekey: Some(400), ..Events::default() };
    case("outages, rekeys", 3, HistoryScope::Flow, events);
}

#[test]
fn after_a_restart_of_either_side_nothing_refers_to_what_was_forgotten() {
    let events = Events { restart: Some(90), rekey: Some(400), cut: Some(200), ..Events::default() };
    case("restarts", 4, HistoryScope::Flow, events);
}

#[test]
fn after_new_keys_for_a_copied_machine_nothing_refers_to_what_was_forgotten() {
    let events = Events { renewal: Some(40), rekey: Some(400), ..Events::default() };
    case("copies", 5, HistoryScope::Flow, events);
}
