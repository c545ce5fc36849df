use super::*;
use crate::sample::Shape;
use strait_wire::Protocol;
use strait_wire::ip::Version;

/// One end, what came from its peer, and the time.
struct End {
    path: DirectPath,
    heard: Tally,
    direct: Tally,
    now: Time,
}

impl End {
    fn new() -> End {
        let mut path = DirectPath::new();
        path.begin(true);
        End { path, heard: Tally::default(), direct: Tally::default(), now: Time::from_millis(1000) }
    }

    /// In use, with a round trip of 20 ms.
    fn in_use() -> End {
        let mut end = End::new();
        end.answers(20);
        assert!(end.path.is_in_use());
        end
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Datagrams leave after so many milliseconds; the probe that is due then.
    fn send(&mut self, millis: u64, datagrams: usize) -> Option<DirectProbe> {
        self.wait(millis);
        self.path.check(self.now, &self.heard, &self.direct);
        if self.path.is_in_use() {
            self.path.note_sent(datagrams, &self.heard, self.now);
        }
        self.path.poll(self.now, &self.heard)
    }

    /// The same, and the peer is heard.
    fn exchange(&mut self, millis: u64, datagrams: usize) -> Option<DirectProbe> {
        let probe = self.send(millis, datagrams);
        self.heard.add(1);
        probe
    }

    /// A probe that is due now is answered after so many milliseconds.
    fn answers(&mut self, millis: u64) {
        let probe = self.path.poll(self.now, &self.heard).unwrap();
        self.wait(millis);
        self.heard.add(1);
        self.path.answered(probe.id, self.now);
    }
}

#[test]
fn nothing_goes_directly_before_a_probe_was_answered_and_nothing_is_asked_where_it_is_not_agreed() {
    let mut end = End::new();
    assert_eq!((end.path.state(), end.path.is_in_use()), (CarrierState::Trying, false));
    end.answers(20);
    assert_eq!(end.path.state(), CarrierState::InUse);
    end.path.begin(true);
    assert!(end.path.is_in_use(), "new keys change nothing of the path");
    end.path.begin(false);
    assert_eq!((end.path.state(), end.send(0, 1)), (CarrierState::NotAgreed, None));
    end.path.moved();
    assert_eq!(end.path.state(), CarrierState::NotAgreed);
}

#[test]
fn an_answer_to_what_was_not_asked_changes_nothing() {
    let mut end = End::new();
    let probe = end.path.poll(end.now, &end.heard).unwrap();
    assert_ne!(probe.id & ID_BIT, 0);
    for id in [0, probe.id & !ID_BIT, probe.id + 1] {
        end.path.answered(id, end.now);
        assert_eq!(end.path.state(), CarrierState::Trying, "{id}");
    }
}

#[test]
fn it_fails_after_three_lost_probes_while_the_peer_is_heard_and_pauses_that_double() {
    let mut end = End::new();
    for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
        let tries = (0..3).filter_map(|_| end.exchange(1100, 1)).count();
        assert_eq!((tries, end.exchange(1100, 1)), (3, None));
        assert_eq!(end.path.state(), CarrierState::NoAnswer);
        assert_eq!(end.exchange(1000 * pause - 1101, 1), None);
        end.wait(1);
    }
    end.path.begin(true);
    assert_eq!(end.path.state(), CarrierState::Trying, "new keys try it at once");
}

#[test]
fn it_is_not_to_blame_while_nothing_comes_from_the_peer() {
    let mut end = End::new();
    let asked: Vec<DirectProbe> = (0..20).filter_map(|_| end.send(1100, 1)).collect();
    assert_eq!(asked.len(), 20);
    // In UDP too, so that an answer tells.
    assert!(!asked[0].again && asked[1..].iter().all(|probe| probe.again));
    assert_eq!(end.path.state(), CarrierState::Trying);
}

#[test]
fn silence_leads_back_to_udp_at_once() {
    let mut end = End::in_use();
    for _ in 0..3 {
        end.exchange(100, 1);
    }
    let (begin, mut lost) = (end.now, 0);
    while end.path.is_in_use() {
        lost += 1;
        end.send(200, 1);
    }
    assert!(end.now.since(begin) <= Duration::from_millis(1400) && lost <= 7, "{lost}");
    assert_eq!(end.path.state(), CarrierState::Doubted);
}

#[test]
fn a_busy_path_is_proved_each_second_and_a_lost_probe_leads_back_to_udp() {
    let mut end = End::in_use();
    let mut asked = Vec::new();
    for _ in 0..300 {
        if let Some(probe) = end.exchange(10, 1) {
            asked.push(end.now);
            end.path.answered(probe.id, end.now);
        }
    }
    assert_eq!(asked.len(), 2, "{asked:?}");
    let begin = end.now;
    while end.path.is_in_use() {
        end.exchange(10, 1);
    }
    assert!(end.now.since(begin) <= Duration::from_millis(1400));
}

#[test]
fn peer_that_falls_back_is_followed() {
    let mut end = End::in_use();
    for _ in 0..20 {
        end.direct.add(1);
        end.exchange(100, 1);
    }
    let mut asked = None;
    let directly = [0; 5].map(|_| {
        asked = end.exchange(100, 1).or(asked);
        end.path.is_in_use()
    });
    assert_eq!(directly, [true, true, false, false, false]);
    // It was the other direction only.
    end.path.answered(asked.unwrap().id, end.now);
    for _ in 0..20 {
        end.exchange(100, 1);
        assert!(end.path.is_in_use());
    }
}

#[test]
fn false_alarms_make_it_patient() {
    let mut end = End::in_use();
    let mut alarms = 0;
    for _ in 0..120 {
        if let Some(probe) = end.send(1000, 1) {
            alarms += 1;
            end.wait(20);
            end.heard.add(1);
            end.path.answered(probe.id, end.now);
        }
    }
    assert!((10..=25).contains(&alarms), "{alarms}");
    assert!(end.path.is_in_use());
}

#[test]
fn third_retransmission_leads_back_to_udp() {
    let mut end = End::in_use();
    let mut shape = Shape::new(Version::V4, Protocol::TCP, vec![7; 30]);
    let mut watch = |end: &mut End, seq, bytes| {
        (shape.seq, shape.payload) = (seq, vec![7; bytes]);
        end.path.watch(&Packet::parse(&shape.packet()).unwrap());
        end.path.is_in_use()
    };
    // Acknowledgements have the same number too.
    assert!((0..10).all(|_| watch(&mut end, 5, 0)));
    assert!((6..20).all(|seq| watch(&mut end, seq, 30)));
    let kept = [0; 3].map(|_| watch(&mut end, 50, 30));
    assert_eq!(kept, [true, true, false]);
    end.answers(20);
    assert!(end.path.is_in_use(), "it was something else");
}

#[test]
fn what_the_system_refuses_is_not_tried_for_long() {
    let mut end = End::in_use();
    end.path.refused();
    assert!(!end.path.is_in_use());
    for _ in 0..4 {
        end.exchange(1100, 1);
        end.path.refused();
    }
    assert_eq!(end.path.state(), CarrierState::Refused);
}
