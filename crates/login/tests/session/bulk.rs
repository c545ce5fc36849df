//! All bytes arrive, whatever the stream is like, and both ends finish.

use std::time::Duration;

use proptest::prelude::*;
use strait_clock::{Random, Time};
use strait_login::{
    ClientEvent, ClientOptions, Exit, LoginClient, LoginServer, OutputKind, Program as Runs, ServerEvent,
    SessionNumber, SessionRequest, Terminal, Ticket, WindowSize,
};

use crate::link::LinkShape;
use crate::program::{Filter, Program};
use crate::world::{Habits, USUAL, User, World};

/// Gives input, and keeps what comes back.
#[derive(Debug, Default)]
pub(crate) struct Feeder {
    pub(crate) input: Vec<u8>,
    given: usize,
    pub(crate) out: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    pub(crate) ended: Vec<OutputKind>,
    pub(crate) exit: Option<Exit>,
    pub(crate) told: u64,
    pub(crate) started: bool,
}

impl Feeder {
    pub(crate) fn new(input: Vec<u8>) -> Feeder {
        Feeder { input, ..Feeder::default() }
    }
}

impl User for Feeder {
    fn event(&mut self, event: &ClientEvent, _client: &mut LoginClient, _now: Time) {
        match event {
            ClientEvent::Started { account } => {
                assert_eq!(account, "alice");
                self.started = true;
            }
            ClientEvent::Output { kind: OutputKind::Out, bytes } => self.out.extend(bytes),
            ClientEvent::Output { kind: OutputKind::Err, bytes } => self.errors.extend(bytes),
            ClientEvent::OutputEnded(kind) => self.ended.push(*kind),
            ClientEvent::InputTaken(bytes) => {
                assert!(*bytes > self.told && *bytes <= self.input.len() as u64);
                self.told = *bytes;
            }
            ClientEvent::Exited(exit) => {
                assert_eq!(self.ended, [OutputKind::Out, OutputKind::Err], "output comes first");
                self.exit = Some(exit.clone());
            }
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn run(&mut self, client: &mut LoginClient, _now: Time) {
        self.given += client.input(&self.input[self.given..]);
        if self.given == self.input.len() {
            client.end_input();
        }
    }
}

pub(crate) fn command() -> SessionRequest {
    SessionRequest {
        program: Runs::Command(b"cat".to_vec()),
        terminal: None,
        environment: Vec::new(),
        agent: false,
    }
}

/// Text that shrinks, noise that does not, by turns.
pub(crate) fn mixed(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(len + 4096);
    while bytes.len() < len {
        let run = random.below(20_000);
        if random.below(2) == 0 {
            (0..run).for_each(|_| bytes.push(random.next_u64() as u8));
            continue;
        }
        let end = bytes.len() as u64 + run;
        while (bytes.len() as u64) < end {
            let number = random.below(100_000);
            bytes.extend(
                format!("Nov 23 06:{:02} host daemon[{number}]: a line of a log\n", run % 60).bytes(),
            );
        }
    }
    bytes.truncate(len);
    bytes
}

fn shape() -> impl Strategy<Value = LinkShape> {
    (1_000_u64..10_000_000, 0_u64..300, 1_usize..100_000, 1_usize..3000).prop_map(
        |(rate, delay, buffer, piece)| LinkShape { rate, delay: Duration::from_millis(delay), buffer, piece },
    )
}

/// What went wrong, if anything.
fn check(user: &Feeder, input: &[u8], errors: &[u8]) {
    assert!(user.out == input, "output differs: {} of {} bytes", user.out.len(), input.len());
    assert!(user.errors == errors, "errors differ");
    assert_eq!(user.exit, Some(Exit::Status(7)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_both_ways(
        up in shape(), down in shape(),
        sizes in (0_usize..40_000, 0_usize..40_000), step in 1_usize..20_000,
        room in 1_usize..70_000, taken in 1_usize..70_000, seed in any::<u64>(),
    ) {
        let (input, errors) = (mixed(sizes.0, seed), mixed(sizes.1, seed ^ 3));
        let ends = (Filter::new(errors.clone(), step), Feeder::new(input.clone()));
        let mut world = World::new(command(), None, ends, (up, down), Habits { room, taken }, seed);
        world.finish();
        check(&world.user, &input, &errors);
    }
}

#[test]
fn much_goes_through_full_windows_both_ways() {
    let (input, errors) = (mixed(9_000_000, 1), mixed(6_000_000, 2));
    let shape = LinkShape::megabits(100.0, Duration::from_millis(40));
    let ends = (Filter::new(errors.clone(), 64 << 10), Feeder::new(input.clone()));
    let mut world = World::new(command(), Some(100_000_000), ends, (shape, shape), USUAL, 4);
    world.finish();
    check(&world.user, &input, &errors);
    println!("{:?}: {} up, {} down", world.now, world.up.carried, world.down.carried);
}

/// Reads nothing until it is told to end.
#[test]
fn a_program_that_reads_nothing_stops_its_client_and_nothing_else() {
    let input = mixed(4_000_000, 5);
    let shape = LinkShape::megabits(100.0, Duration::from_millis(10));
    let ends = (Filter::new(Vec::new(), 0), Feeder::new(input));
    let mut world = World::new(command(), None, ends, (shape, shape), USUAL, 6);
    world.run_until(|world| world.client.input_room() == 0 && world.up.next().is_none());
    assert_eq!(world.user.told, 0, "nothing was read");
    assert!((2_500_000..2_700_000).contains(&world.user.given), "{} bytes are kept", world.user.given);
    // What is thrown away counts as taken.
    world.server.input_closed();
    world.run_until(|world| world.user.told == 4_000_000);
}

/// Reads all of its input and writes all that it has, with nothing to do with each other.
struct Both {
    output: Vec<u8>,
    given: usize,
    input_ended: bool,
    done: bool,
}

impl Program for Both {
    fn event(&mut self, event: ServerEvent, server: &mut LoginServer, now: Time) {
        match event {
            ServerEvent::Input(bytes) => server.input_written(bytes.len(), now),
            ServerEvent::InputEnded => self.input_ended = true,
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn run(&mut self, server: &mut LoginServer, now: Time) {
        // As much as one read of a pipe gives.
        while let room @ 1.. = server.output_room().min(64 << 10).min(self.output.len() - self.given) {
            server.output(OutputKind::Out, &self.output[self.given..self.given + room], now);
            self.given += room;
        }
        if self.input_ended && self.given == self.output.len() && !self.done {
            self.done = true;
            server.output_ended(OutputKind::Out);
            server.output_ended(OutputKind::Err);
            server.exited(Exit::Status(7));
        }
    }
}

/// The share of a link of 10 Mbit/s and 600 ms that so many bytes of noise fill, from the first to the end of the session.
fn share(input: usize, output: usize) -> f64 {
    let mut random = Random::new(11);
    let mut noise = |len: usize| -> Vec<u8> { (0..len).map(|_| random.next_u64() as u8).collect() };
    let user = Feeder::new(noise(input));
    let program = Both { output: noise(output), given: 0, input_ended: false, done: false };
    let shape = LinkShape::megabits(10.0, Duration::from_millis(600));
    let mut world = World::new(command(), Some(10_000_000), (program, user), (shape, shape), USUAL, 12);
    world.finish();
    let World { user, program, now, .. } = world;
    assert_eq!((user.told, user.exit), (input as u64, Some(Exit::Status(7))));
    assert!(user.out == program.output);
    let took = now.since(Time::ZERO).as_secs_f64();
    input.max(output) as f64 * 8.0 / 10_000_000.0 / took
}

#[test]
fn a_command_fills_a_long_link_with_input_and_with_output() {
    const LEN: usize = 30_000_000;
    for (input, output) in [(LEN, 0), (0, LEN), (LEN, LEN)] {
        let share = share(input, output);
        println!("{input} bytes up, {output} down: {share:.3} of the link");
        assert!(share > 0.9, "{input} bytes up, {output} down: {share:.3}");
    }
}

#[test]
fn only_a_command_that_is_known_as_one_has_the_large_window() {
    let room = |terminal: bool| {
        let terminal = terminal.then(|| Terminal {
            term: b"xterm".to_vec(),
            size: WindowSize::USUAL,
            modes: Vec::new(),
        });
        let (ticket, request) =
            (Ticket::new(SessionNumber(1), [9; 32]), SessionRequest { terminal, ..command() });
        LoginClient::start(ticket, request, ClientOptions::default()).input_room()
    };
    assert_eq!((room(false), room(true)), (5 << 19, 256 << 10));
    let ticket = Ticket::new(SessionNumber(1), [9; 32]);
    let back = LoginClient::resume(ticket, None, ClientOptions::default());
    assert_eq!(back.input_room(), 256 << 10, "the session may have a terminal");
}
