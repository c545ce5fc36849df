//! Streams are lost anywhere; a command's input and output stay exact.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use strait_clock::Time;
use strait_login::{
    ClientEvent, ClientOptions, Exit, LoginClient, LoginServer, Refusal, RefusedReason, ServerEvent, refusal,
    sessions,
};

use crate::bulk::{Feeder, command, mixed};
use crate::link::LinkShape;
use crate::program::{Filter, Program};
use crate::world::{Habits, USUAL, User, World};

/// Loses the stream whenever so many bytes more have gone up or down, for so long.
fn with_losses(world: &mut World<Filter, Feeder>, losses: &[(u64, u64)]) {
    let carried = |world: &World<Filter, Feeder>| world.up.carried + world.down.carried;
    for (bytes, millis) in losses {
        let from = carried(world);
        let ended = |world: &World<Filter, Feeder>| world.client.finished() && world.server.finished();
        world.run_until(|world| ended(world) || world.user.started && carried(world) >= from + bytes);
        if ended(world) {
            return;
        }
        world.lose_stream(world.now + Duration::from_millis(*millis));
    }
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_with_streams(
        sizes in (0_usize..60_000, 0_usize..60_000), step in 1_usize..20_000,
        habits in (1_usize..70_000, 1_usize..70_000), piece in 1_usize..3000, delay in 0_u64..200,
        losses in vec((0_u64..20_000, 0_u64..3000), 1..8), seed in any::<u64>(),
    ) {
        let shape = LinkShape { rate: 1_000_000, delay: Duration::from_millis(delay), buffer: 30_000, piece };
        let (input, errors) = (mixed(sizes.0, seed), mixed(sizes.1, seed ^ 3));
        let ends = (Filter::new(errors.clone(), step), Feeder::new(input.clone()));
        let habits = Habits { room: habits.0, taken: habits.1 };
        let mut world = World::new(command(), None, ends, (shape, shape), habits, seed);
        with_losses(&mut world, &losses);
        prop_assert!(world.user.out == input, "{} of {}", world.user.out.len(), input.len());
        prop_assert!(world.user.errors == errors);
        prop_assert_eq!(&world.user.exit, &Some(Exit::Status(7)));
    }
}

#[test]
fn another_client_gets_what_output_is_left_and_the_first_is_told_so() {
    let input = mixed(300_000, 8);
    let shape = LinkShape::megabits(10.0, Duration::from_millis(20));
    let ends = (Filter::new(Vec::new(), 4096), Feeder::new(input.clone()));
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 9);
    world.run_until(|world| world.user.out.len() > 50_000);
    world.lose_stream(world.now + Duration::from_secs(1));
    // The second has all of the input that the first had not given, and sees what the first had not taken.
    let ticket = world.client.ticket().unwrap().clone();
    let second = LoginClient::resume(ticket, None, ClientOptions::default());
    let mut first = core::mem::replace(&mut world.client, second);
    let (seen, had) = (world.user.out.len(), world.program.read.len());
    world.user = Feeder::new(Vec::new());
    world.finish();
    let out = &world.user.out;
    assert!(out.len() <= world.program.read.len() - seen + (64 << 10), "{} {seen} {had}", out.len());
    assert!(world.program.read.ends_with(out), "the end of what the program wrote");
    // The first comes back, and is refused.
    first.reconnect(world.now);
    let mut bytes = Vec::new();
    first.send(&mut bytes, 1000, world.now);
    let (request, _) = strait_login::RequestReader::new().read(&bytes).unwrap().unwrap();
    let strait_login::Request::Resume(resume) = request else { panic!("{request:?}") };
    let refused = world.server.attach(Some(&resume), world.now).unwrap_err();
    assert_eq!(refused.reason, RefusedReason::Busy);
}

#[test]
fn a_refusal_may_come_before_the_request_is_sent() {
    let why = Refusal { reason: RefusedReason::NotAllowed, text: "not here".to_owned() };
    let mut client = LoginClient::list();
    client.received(&refusal(&why), Time::ZERO).unwrap();
    assert_eq!(client.next_event(), Some(ClientEvent::Refused(why)));
    assert!(client.finished());
    // Nothing else may.
    let mut client = LoginClient::list();
    assert!(client.received(&sessions(&[]), Time::ZERO).is_err());
}

#[test]
fn a_start_that_was_not_answered_is_made_again() {
    let shape = LinkShape::megabits(1.0, Duration::from_millis(200));
    let ends = (Filter::new(Vec::new(), 4096), Feeder::new(b"hello".to_vec()));
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 10);
    world.run_until(|world| world.now >= Time::from_millis(50) || world.up.next().is_some());
    world.lose_stream(world.now + Duration::from_millis(10));
    world.finish();
    assert_eq!((world.user.out.as_slice(), world.begun), (&b"hello"[..], 1));
}

#[test]
fn a_session_whose_answer_was_lost_is_not_begun_twice() {
    let shape = LinkShape::megabits(1.0, Duration::from_millis(200));
    let ends = (Filter::new(Vec::new(), 4096), Feeder::new(b"hello".to_vec()));
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 13);
    // The program has read what was sent with the request.
    world.run_until(|world| world.program.read == b"hello");
    assert!(world.client.ticket().is_none(), "the answer is on its way");
    world.lose_stream(world.now + Duration::from_millis(10));
    world.finish();
    assert_eq!((world.user.out.as_slice(), world.program.read.as_slice()), (&b"hello"[..], &b"hello"[..]));
    assert_eq!(world.begun, 1);
}

/// A request that was late is what the server has begun with.
#[test]
fn a_session_that_has_begun_after_all_is_resumed() {
    let shape = LinkShape::megabits(1.0, Duration::from_millis(200));
    let ends = (Filter::new(Vec::new(), 4096), Feeder::new(b"hello".to_vec()));
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 14);
    world.run_until(|world| world.program.read == b"hello");
    (world.begun, world.late) = (0, true);
    world.lose_stream(world.now + Duration::from_millis(10));
    world.finish();
    assert_eq!((world.user.out.as_slice(), world.begun), (&b"hello"[..], 1));
}

/// Goes on with its input unread until it is hung up.
#[derive(Debug, Default)]
struct Deaf {
    heard: Vec<ServerEvent>,
}

impl Program for Deaf {
    fn event(&mut self, event: ServerEvent, _server: &mut LoginServer, _now: Time) {
        if !matches!(event, ServerEvent::Input(_)) {
            self.heard.push(event);
        }
    }

    fn run(&mut self, _server: &mut LoginServer, _now: Time) {}
}

/// Hears what there is.
#[derive(Debug, Default)]
struct Listener {
    started: bool,
}

impl User for Listener {
    fn event(&mut self, event: &ClientEvent, _client: &mut LoginClient, _now: Time) {
        self.started |= matches!(event, ClientEvent::Started { .. });
    }

    fn run(&mut self, _client: &mut LoginClient, _now: Time) {}
}

fn leaving(leave: fn(&mut LoginClient)) -> World<Deaf, Listener> {
    let shape = LinkShape::megabits(1.0, Duration::from_millis(200));
    let ends = (Deaf::default(), Listener::default());
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 12);
    assert_eq!(world.client.input(b"what is never read"), 18);
    leave(&mut world.client);
    world
}

#[test]
fn a_client_that_hangs_up_is_there_until_the_server_has_heard_it() {
    let mut world = leaving(LoginClient::hang_up);
    world.run_until(|world| world.client.finished());
    assert_eq!(world.program.heard, [ServerEvent::HangUp]);
    assert!(world.user.started, "what the server said before did not meet a closed stream");
}

#[test]
fn what_a_client_that_leaves_said_on_a_stream_that_is_lost_is_said_again() {
    let mut world = leaving(|_| ());
    world.run_until(|world| world.user.started);
    world.client.hang_up();
    let written = world.up.carried;
    world.run_until(|world| world.up.carried > written);
    world.lose_stream(world.now + Duration::from_secs(1));
    assert!(world.program.heard.is_empty() && !world.client.finished());
    world.run_until(|world| world.client.finished());
    assert_eq!(world.program.heard, [ServerEvent::HangUp]);
}

#[test]
fn a_client_that_leaves_before_anything_was_said_and_loses_its_stream_is_done() {
    let mut world = leaving(LoginClient::detach);
    world.run_until(|world| world.up.carried > 0);
    assert!(!world.client.finished());
    world.lose_stream(world.now + Duration::from_secs(1));
    assert!(world.client.finished());
}

#[test]
fn a_server_knows_whether_its_client_has_heard_of_the_session() {
    let mut world = leaving(|_| ());
    world.run_until(|world| world.down.carried > 0);
    world.lose_stream(world.now + Duration::from_secs(1));
    assert!(!world.server.is_known(), "the ticket is lost, and what came was sent before it was heard");
    let mut world = leaving(|_| ());
    world.run_until(|world| world.user.started && world.next_at().is_none());
    assert!(world.server.is_known(), "it says so though nothing was written");
}

#[test]
fn a_client_that_comes_back_has_heard_of_the_session() {
    let mut world = leaving(|_| ());
    world.run_until(|world| world.user.started);
    world.lose_stream(world.now + Duration::from_secs(1));
    assert!(!world.server.is_known());
    world.run_until(|world| world.server.is_known());
}
