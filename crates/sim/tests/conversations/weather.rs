//! Everything at once: restarts, roaming, cuts, loss, repetition and rekeys in any order; and when it clears up,
//! talk goes on as if nothing had been.

use std::net::SocketAddr;

use strait_clock::Random;
use strait_keying::{Lifetime, Start};
use strait_sim::{LinkSettings, LinkSwitch, LossModel, NodeId, Reordering, SimNetwork};

use crate::stage::{A, B, Seed, Talk, joined, log, millis, seconds};

/// One thing that happens to the network.
fn happen(network: &mut SimNetwork, random: &mut Random) {
    let node = [A, B][usize::try_from(random.below(2)).unwrap()];
    let (from, to) = if random.below(2) == 0 { (A, B) } else { (B, A) };
    match random.below(8) {
        0 => network.restart(node).unwrap(),
        1 => network
            .readdress(node, SocketAddr::from(([198, 51, 100, random.next_u64().to_be_bytes()[0]], 4000))),
        2 => network.link(from, to).switch = LinkSwitch::Down,
        3 | 4 => network.link(from, to).switch = LinkSwitch::Up,
        5 => network.link(from, to).settings.loss = LossModel::Uniform(random.unit() * 0.4),
        6 => {
            let bursts = LossModel::Bursts { begin: 0.05, end: 0.2, lost: 0.8 };
            network.link(from, to).settings =
                LinkSettings { loss: bursts, jitter: millis(50), mtu: 1300, ..LinkSettings::default() };
        }
        _ => {
            let reordering = Some(Reordering { share: 0.1, by: millis(200) });
            network.link(from, to).settings =
                LinkSettings { reordering, repeated: 0.2, delay: millis(100), ..LinkSettings::default() };
        }
    }
}

fn clear_up(network: &mut SimNetwork) {
    for (from, to, home) in [(A, B, A.outer_v4()), (B, A, B.outer_v4())] {
        network.link(from, to).switch = LinkSwitch::Up;
        network.link(from, to).settings = LinkSettings::default();
        network.readdress(from, home);
    }
}

#[test]
fn traffic_recovers_after_any_disturbance() {
    for seed in 0..24 {
        let _seed = Seed(seed);
        let mut random = Random::new(seed);
        let mut network = joined(seed, |pair| {
            pair.answer = Some(if seed % 2 == 0 { Start::Eager } else { Start::OnTraffic });
            for node in [&mut pair.a, &mut pair.b] {
                node.lifetime = Lifetime { packets: 200, ..Lifetime::default() };
                node.up = (seed % 3 == 0).then(|| "2Mbit".parse().unwrap()).into();
            }
        });
        let mut stormy = Talk::new(A, B, 5000);
        for _ in 0..40 {
            happen(&mut network, &mut random);
            stormy.run(&mut network, seconds(3), millis(100));
        }
        clear_up(&mut network);
        // The longest pause between attempts, and a quarter.
        Talk::new(A, B, 5001).run(&mut network, seconds(80), millis(500));
        let mut calm = Talk::new(A, B, 5002);
        calm.run(&mut network, seconds(20), millis(50));
        calm.finish(&mut network);
        assert_eq!(calm.missing(), [0, 0], "{:#?}\n{:#?}", log(&network, A), log(&network, B));
        calm.assert_perfect();
        for tally in [stormy.forth.tally(), stormy.back.tally()] {
            assert_eq!((tally.repeated, tally.damaged), (0, 0));
        }
        for node in [A, B] {
            assert_eq!(network.node(node).host().damaged(), 0);
            assert!(network.node(node).control().connections() <= 4);
        }
    }
}

#[test]
fn three_nodes_in_any_weather_do_not_disturb_each_other() {
    let _seed = Seed(1);
    let c = NodeId(2);
    let mut network = crate::forwarding::spokes(1, strait_ipsec::inbound::Forwarding::None);
    let mut random = Random::new(1);
    let mut steady = Talk::new(A, c, 5000);
    for _ in 0..60 {
        match random.below(4) {
            0 => network.restart(B).unwrap(),
            1 => network.link(B, c).switch = LinkSwitch::Down,
            2 => network.link(B, c).switch = LinkSwitch::Up,
            _ => network
                .readdress(B, SocketAddr::from(([198, 51, 100, random.next_u64().to_be_bytes()[0]], 4000))),
        }
        steady.run(&mut network, seconds(2), millis(100));
    }
    steady.finish(&mut network);
    steady.assert_perfect();
}
