//! A link that was gone for minutes is used again at once.

use strait_keying::Start;
use strait_sim::LinkSwitch;

use crate::stage::{A, B, Seed, Talk, joined, log, millis, pair, seconds};

#[test]
fn traffic_resumes_when_link_returns() {
    for (seed, away) in [(1, 3), (2, 40), (3, 400), (4, 1500)] {
        let _seed = Seed(seed);
        let mut network = joined(seed, |pair| pair.answer = Some(Start::OnTraffic));
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(10), millis(100));
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).switch = LinkSwitch::Down;
        }
        Talk::new(A, B, 5001).run(&mut network, seconds(away), millis(500));
        for (from, to) in [(A, B), (B, A)] {
            network.link(from, to).switch = LinkSwitch::Up;
        }
        let mut talk = Talk::new(A, B, 5002);
        talk.run(&mut network, seconds(20), millis(100));
        talk.finish(&mut network);
        assert_eq!(talk.missing(), [0, 0], "{:?}\n{:?}", log(&network, A), log(&network, B));
    }
}

#[test]
fn a_start_without_a_link_succeeds_when_there_is_one() {
    for seed in 10..20 {
        let _seed = Seed(seed);
        let mut network = pair(seed, |_| {});
        network.link(A, B).switch = LinkSwitch::Down;
        let mut talk = Talk::new(A, B, 5000);
        talk.run(&mut network, seconds(300), millis(1000));
        network.link(A, B).switch = LinkSwitch::Up;
        let mut later = Talk::new(A, B, 5001);
        // The pause between attempts is at most 5 s, since packets wait.
        later.run(&mut network, seconds(10), millis(1000));
        assert!(network.node(A).is_up(B) && network.node(B).is_up(A), "{:?}", log(&network, A));
    }
}
