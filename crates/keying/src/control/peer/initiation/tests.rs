use super::*;

/// What can happen to an initiation, all at one time: [`NOW`].
#[derive(Clone, Copy, Debug)]
enum Stimulus {
    Want(Time),
    /// The next attempt with a peer at an address that was heard.
    Next(KnownPlace),
    Resolved,
    ConnectingOn(ChannelId),
    Completed,
    Established,
    Failed,
    Yielded,
    GiveWay,
}

#[derive(Clone, Copy, Debug)]
enum KnownPlace {
    Address,
    Name,
    NameHeard,
    NeverHeard,
}

const NOW: Time = Time::from_millis(100_000);
const EARLIER: Time = Time::from_millis(95_000);
const PASSED: Time = Time::from_millis(99_000);
const LATER: Time = Time::from_millis(130_000);
const LATEST: Time = Time::from_millis(190_000);
const HOME: &str = "192.0.2.1:1";
const ONE: ChannelId = ChannelId::numbered(1);
const TWO: ChannelId = ChannelId::numbered(2);

fn apply(initiation: &mut Initiation, stimulus: Stimulus) -> Option<NextAttempt> {
    let heard = Some(HOME.parse().unwrap());
    let mut random = Random::new(1);
    match stimulus {
        Stimulus::Want(until) => initiation.want(until),
        Stimulus::Next(KnownPlace::Address) => {
            return initiation.next(&Where::Unknown, heard, Time::ZERO, NOW);
        }
        Stimulus::Next(KnownPlace::Name) => {
            return initiation.next(&Where::Name("b".into()), None, Time::ZERO, NOW);
        }
        Stimulus::Next(KnownPlace::NameHeard) => {
            return initiation.next(&Where::Name("b".into()), heard, Time::ZERO, NOW);
        }
        Stimulus::Next(KnownPlace::NeverHeard) => {
            return initiation.next(&Where::Unknown, None, Time::ZERO, NOW);
        }
        Stimulus::Resolved => initiation.resolved(),
        Stimulus::ConnectingOn(channel) => initiation.connecting(channel, EARLIER),
        Stimulus::Completed => initiation.completed(),
        Stimulus::Established => initiation.established(NOW),
        Stimulus::Failed => drop(initiation.failed(HandshakeFailure::TimedOut, NOW, &mut random)),
        Stimulus::Yielded => initiation.yielded(NOW, &mut random),
        Stimulus::GiveWay => drop(initiation.give_way()),
    }
    None
}

/// A state, what happens, the state after it, and what is to be done.
type Transition = (InitiationState, Stimulus, InitiationState, Option<NextAttempt>);

fn transitions() -> Vec<Transition> {
    use Stimulus::{Completed, ConnectingOn, Established, Failed, GiveWay, Next, Resolved, Want, Yielded};
    let look_up = || Some(NextAttempt::LookUp("b".into()));
    let connect = || Some(NextAttempt::Connect(HOME.parse().unwrap()));
    let wanted = Wanted { until: LATER };
    let lapsing = Wanted { until: PASSED };
    let resolving = Resolving { since: NOW, until: Some(LATER) };
    let resolving_last = Resolving { since: NOW, until: None };
    let connecting = Connecting { channel: ONE, since: EARLIER, until: Some(LATER) };
    let connecting_last = Connecting { channel: ONE, since: EARLIER, until: None };
    vec![
        (Idle, Want(LATER), wanted, None),
        (Idle, Next(KnownPlace::Address), Idle, None),
        (Idle, Established, Idle, None),
        (Idle, Failed, Idle, None),
        (Idle, GiveWay, Idle, None),
        (wanted, Want(PASSED), wanted, None),
        (wanted, Want(LATEST), Wanted { until: LATEST }, None),
        (wanted, Next(KnownPlace::Address), wanted, connect()),
        (wanted, Next(KnownPlace::Name), resolving, look_up()),
        (wanted, Next(KnownPlace::NameHeard), wanted, connect()),
        (wanted, Next(KnownPlace::NeverHeard), Idle, None),
        (lapsing, Next(KnownPlace::Address), Idle, None),
        (wanted, ConnectingOn(ONE), connecting, None),
        // Its handshake cannot even begin.
        (wanted, Failed, wanted, None),
        (wanted, Established, Idle, None),
        (wanted, GiveWay, wanted, None),
        (resolving, Want(LATEST), Resolving { since: NOW, until: Some(LATEST) }, None),
        (resolving, Next(KnownPlace::Name), resolving, None),
        (Resolving { since: NOW, until: Some(PASSED) }, Next(KnownPlace::Name), resolving_last, None),
        (resolving, Resolved, resolving, None),
        (resolving, ConnectingOn(ONE), connecting, None),
        (resolving, Failed, wanted, None),
        (resolving_last, Failed, Idle, None),
        (resolving_last, ConnectingOn(ONE), connecting_last, None),
        (resolving, Established, resolving_last, None),
        (resolving, GiveWay, wanted, None),
        (resolving_last, GiveWay, Idle, None),
        (connecting, Want(LATEST), Connecting { channel: ONE, since: EARLIER, until: Some(LATEST) }, None),
        (connecting_last, Want(LATER), connecting, None),
        (connecting, Next(KnownPlace::Address), connecting, None),
        (
            connecting,
            ConnectingOn(TWO),
            Connecting { channel: TWO, since: EARLIER, until: Some(LATER) },
            None,
        ),
        (connecting, Completed, wanted, None),
        (connecting_last, Completed, Idle, None),
        (connecting, Established, connecting_last, None),
        (connecting, Failed, wanted, None),
        (connecting_last, Failed, Idle, None),
        (connecting, Yielded, wanted, None),
        (connecting_last, Yielded, Idle, None),
        (connecting, GiveWay, wanted, None),
        (connecting_last, GiveWay, Idle, None),
    ]
}

#[test]
fn every_event_in_every_state_leads_where_the_table_says() {
    for (state, stimulus, next, action) in transitions() {
        let mut initiation = Initiation { state, ..Initiation::new(EARLIER) };
        assert_eq!(apply(&mut initiation, stimulus), action, "{state:?}, {stimulus:?}");
        assert_eq!(initiation.state(), next, "{state:?}, {stimulus:?}");
    }
}

#[test]
fn pause_doubles_with_each_failure_and_ends_with_a_pair() {
    let (mut initiation, mut random) = (Initiation::new(NOW), Random::new(2));
    for expected in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        initiation.want(LATEST);
        let pause = initiation.failed(HandshakeFailure::TimedOut, NOW, &mut random);
        let range = Duration::from_secs(expected).mul_f64(0.75)..=Duration::from_secs(expected).mul_f64(1.25);
        assert!(range.contains(&pause), "{pause:?} is not about {expected} s");
        assert_eq!(initiation.deadline(Time::ZERO).unwrap().at, (NOW + pause).min(LATEST));
        assert_eq!(
            apply(&mut initiation, Stimulus::Next(KnownPlace::Address)),
            None,
            "the pause is not over"
        );
    }
    initiation.established(NOW);
    initiation.want(LATEST);
    assert!(apply(&mut initiation, Stimulus::Next(KnownPlace::Address)).is_some());
}

#[test]
fn pause_is_short_while_packets_wait_and_ends_when_they_begin_to() {
    let (mut initiation, mut random) = (Initiation::new(NOW), Random::new(3));
    let failed = |initiation: &mut Initiation, random: &mut Random, now| {
        initiation.failed(HandshakeFailure::TimedOut, now, random)
    };
    let [mut least, mut most] = [Duration::MAX, Duration::ZERO];
    for failure in 0..40 {
        initiation.await_until(LATER);
        let pause = failed(&mut initiation, &mut random, NOW);
        if failure >= 3 {
            (least, most) = (least.min(pause), most.max(pause));
        }
        assert_eq!(initiation.deadline(Time::ZERO).unwrap().at, NOW + pause);
    }
    assert!(least >= Duration::from_secs(3) && most <= Duration::from_secs(5), "{least:?} to {most:?}");
    assert!(most - least > Duration::from_secs(1), "all at once: {least:?} to {most:?}");
    // Nothing waited, and then something does.
    let mut idle = Initiation { failures: 9, ..Initiation::new(NOW) };
    idle.want(LATEST);
    assert!(failed(&mut idle, &mut random, NOW) > Duration::from_secs(40));
    let soon = NOW + Duration::from_secs(6);
    assert_eq!(idle.next(&Where::Unknown, HOME.parse().ok(), Time::ZERO, soon), None);
    idle.await_until(soon + Duration::from_secs(30));
    assert!(idle.next(&Where::Unknown, HOME.parse().ok(), Time::ZERO, soon).is_some());
    // It waited for keys that came: that is over.
    idle.established(soon);
    idle.failures = 9;
    assert!(failed(&mut idle, &mut random, soon) > Duration::from_secs(40));
}

#[test]
fn failure_distrusts_the_address_of_a_name_until_it_is_resolved() {
    let mut initiation = Initiation { state: Wanted { until: LATER }, ..Initiation::new(EARLIER) };
    initiation.distrust_address();
    assert!(matches!(
        apply(&mut initiation, Stimulus::Next(KnownPlace::NameHeard)),
        Some(NextAttempt::LookUp(_))
    ));
    initiation.resolved();
    initiation.give_way();
    assert!(matches!(
        apply(&mut initiation, Stimulus::Next(KnownPlace::NameHeard)),
        Some(NextAttempt::Connect(_))
    ));
}

#[test]
fn failures_alternate_between_last_and_configured_address() {
    let (home, last) = (HOME.parse().unwrap(), "198.51.100.1:9".parse().unwrap());
    for (turn, expected) in [(0, last), (1, home), (2, last), (3, home)] {
        let state = Wanted { until: LATER };
        let mut initiation = Initiation { state, turn, ..Initiation::new(EARLIER) };
        let next = initiation.next(&Where::Address(home), Some(last), Time::ZERO, NOW);
        assert_eq!(next, Some(NextAttempt::Connect(expected)));
    }
}

#[test]
fn attempt_waits_for_the_handshake_that_the_peer_began() {
    let mut initiation = Initiation { state: Wanted { until: LATER }, ..Initiation::new(EARLIER) };
    let answered = NOW + Duration::from_secs(3);
    let at = Some(HOME.parse().unwrap());
    assert_eq!(initiation.next(&Where::Unknown, at, answered, NOW), None);
    assert_eq!(initiation.deadline(answered).unwrap().at, answered);
    assert!(initiation.next(&Where::Unknown, at, answered, answered).is_some());
}

#[test]
fn deadline_is_the_attempts_end_or_the_end_of_trying() {
    let table = [
        (Idle, None),
        (Wanted { until: LATER }, Some(EARLIER)),
        (Wanted { until: EARLIER }, Some(EARLIER)),
        (Resolving { since: NOW, until: Some(LATER) }, Some(NOW + ATTEMPT)),
        (Connecting { channel: ONE, since: NOW, until: Some(PASSED) }, Some(PASSED)),
        (Connecting { channel: ONE, since: NOW, until: None }, Some(NOW + ATTEMPT)),
    ];
    for (state, at) in table {
        let initiation = Initiation { state, ..Initiation::new(EARLIER) };
        assert_eq!(initiation.deadline(Time::ZERO).map(|deadline| deadline.at), at, "{state:?}");
        let late = matches!(state, Resolving { .. } | Connecting { .. });
        assert!(!initiation.is_late(NOW + (ATTEMPT - Duration::from_millis(1))));
        assert_eq!(initiation.is_late(NOW + ATTEMPT), late, "{state:?}");
    }
}
