//! Terminals: small messages, floods, interrupts, and screens after an outage.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use strait_clock::Time;
use strait_login::{
    ClientEvent, ClientOptions, Exit, LoginClient, LoginServer, OutputKind, Program as Runs, ServerEvent,
    SessionRequest, Terminal, TerminalModes, WindowSize,
};
use strait_testdata::thorough::all_or;

use crate::link::LinkShape;
use crate::program::Program;
use crate::tty::Tty;
use crate::world::{Habits, USUAL, User, World};

const SIZE: WindowSize = WindowSize { columns: 80, rows: 24, width: 0, height: 0 };

fn shell() -> SessionRequest {
    let terminal = Terminal { term: b"xterm-256color".to_vec(), size: SIZE, modes: Vec::new() };
    SessionRequest { program: Runs::Shell, terminal: Some(terminal), environment: Vec::new(), agent: false }
}

/// Echoes what is typed, and writes what it is told to at its time. An interrupt throws away what is not written, as a terminal does,
/// and brings a prompt.
struct Shell {
    echo: bool,
    /// What it has to write, and from when on.
    script: Vec<(Time, Vec<u8>)>,
    /// Everything that it wrote.
    written: Vec<u8>,
    ended: bool,
    ends: bool,
    ran: Time,
}

impl Shell {
    fn new(script: Vec<(Time, Vec<u8>)>) -> Shell {
        Shell { echo: true, script, written: Vec::new(), ended: false, ends: true, ran: Time::ZERO }
    }

    fn write(&mut self, bytes: &[u8], server: &mut LoginServer, now: Time) {
        server.output(OutputKind::Terminal, bytes, now);
        self.written.extend(bytes);
    }
}

impl Program for Shell {
    fn event(&mut self, event: ServerEvent, server: &mut LoginServer, now: Time) {
        let ServerEvent::Input(bytes) = event else {
            return assert!(matches!(event, ServerEvent::Resize(_)), "{event:?}");
        };
        server.input_written(bytes.len(), now);
        if bytes.contains(&3) {
            self.script.clear();
            self.write(b"^C\r\n$ ", server, now);
        } else if self.echo {
            self.write(&bytes, server, now);
        }
    }

    fn run(&mut self, server: &mut LoginServer, now: Time) {
        self.ran = now;
        while let Some((at, bytes)) = self.script.first_mut()
            && *at <= now
        {
            let piece: Vec<u8> = bytes.drain(..server.output_room().min(4096).min(bytes.len())).collect();
            if bytes.is_empty() {
                self.script.remove(0);
            } else if piece.is_empty() {
                return;
            }
            self.write(&piece, server, now);
        }
        if self.script.is_empty() && self.ends && !self.ended {
            self.ended = true;
            server.output_ended(OutputKind::Terminal);
            server.exited(Exit::Status(0));
        }
    }

    fn next(&self) -> Option<Time> {
        // What there was no room for waits for the client.
        self.script.first().map(|(at, _)| *at).filter(|at| *at > self.ran)
    }
}

/// A person: types at times, and has a terminal.
struct Person {
    tty: Tty,
    typed: Vec<(Time, Vec<u8>)>,
    modes: Vec<TerminalModes>,
    taken: Vec<(Time, u64)>,
    /// When output came.
    seen: Vec<(Time, Vec<u8>)>,
    screens: usize,
    scrollbacks: usize,
    exit: Option<Exit>,
}

impl Person {
    fn new(typed: Vec<(Time, Vec<u8>)>) -> Person {
        Person {
            tty: Tty::new(SIZE),
            typed,
            modes: Vec::new(),
            taken: Vec::new(),
            seen: Vec::new(),
            screens: 0,
            scrollbacks: 0,
            exit: None,
        }
    }
}

impl User for Person {
    fn event(&mut self, event: &ClientEvent, _client: &mut LoginClient, now: Time) {
        match event {
            ClientEvent::Output { kind, bytes } => {
                assert_eq!(*kind, OutputKind::Terminal);
                self.tty.write(bytes);
                self.seen.push((now, bytes.clone()));
            }
            ClientEvent::Screen(bytes) => {
                self.screens += 1;
                self.tty.write(bytes);
                self.seen.push((now, bytes.clone()));
            }
            ClientEvent::Scrollback(bytes) => {
                self.scrollbacks += 1;
                self.tty.write(bytes);
            }
            ClientEvent::Modes(modes) => self.modes.push(*modes),
            ClientEvent::InputTaken(bytes) => self.taken.push((now, *bytes)),
            ClientEvent::Exited(exit) => self.exit = Some(exit.clone()),
            ClientEvent::Started { .. } | ClientEvent::OutputEnded(OutputKind::Terminal) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn run(&mut self, client: &mut LoginClient, now: Time) {
        while self.typed.first().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = self.typed.remove(0);
            assert_eq!(client.input(&bytes), bytes.len());
        }
    }

    fn next(&self) -> Option<Time> {
        self.typed.first().map(|(at, _)| *at)
    }
}

type Terminals = World<Shell, Person>;

fn world(
    script: Vec<(Time, Vec<u8>)>,
    typed: Vec<(Time, Vec<u8>)>,
    shape: LinkShape,
    habits: Habits,
) -> Terminals {
    let ends = (Shell::new(script), Person::new(typed));
    World::new(shell(), None, ends, (shape, shape), habits, 11)
}

/// The client's terminal shows what one would that had seen all that was written, and the same has scrolled off it.
fn check(world: &Terminals) {
    let mut whole = Tty::new(SIZE);
    whole.write(&world.program.written);
    let tty = &world.user.tty;
    assert_eq!(tty.rows(), whole.rows());
    assert_eq!(tty.cursor(), whole.cursor());
    assert_eq!(tty.state(), whole.state());
    for (place, pair) in tty.scrolled().iter().zip(whole.scrolled()).enumerate() {
        assert_eq!(pair.0, pair.1, "row {place} that scrolled off");
    }
    assert_eq!(tty.scrolled().len(), whole.scrolled().len(), "rows that scrolled off");
}

fn log(lines: usize) -> Vec<u8> {
    let mut random = strait_clock::Random::new(lines as u64);
    let mut all = Vec::new();
    for line in 0..lines {
        let (pid, port, took) = (random.below(30_000), random.below(65_536), random.below(100_000));
        let text = format!(
            "Nov 23 06:{:02}:{:02} host sshd[{pid}]: line {line}: connection from 10.0.{}.{} port {port} closed after {took} us\r\n",
            line / 60 % 60,
            line % 60,
            random.below(256),
            random.below(256),
        );
        all.extend(text.bytes());
    }
    all
}

fn after(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn a_keystroke_and_its_echo_are_a_message_each_and_idle_is_silent() {
    let shape = LinkShape::megabits(10.0, Duration::from_millis(40));
    let keys = (0..10).map(|key| (after(1000 + key * 200), vec![b'a' + key as u8])).collect();
    let mut world = world(Vec::new(), keys, shape, USUAL);
    world.program.ends = false;
    world.run_until(|world| world.now >= after(900) || world.next_at().is_none_or(|at| at >= after(1000)));
    let before = (world.up.carried, world.up.writes, world.down.carried, world.down.writes);
    world.run_until(|world| world.user.taken.len() == 10 && world.next_at().is_none());
    assert_eq!((world.up.carried - before.0, world.up.writes - before.1), (160, 10), "16 bytes a keystroke");
    assert_eq!((world.down.carried - before.2, world.down.writes - before.3), (160, 10), "16 bytes an echo");
    assert_eq!(world.user.tty.rows()[0], "abcdefghij");
    // A password is not echoed, and looks the same: the server says that it was taken.
    world.program.echo = false;
    world.user.typed = vec![(world.now + Duration::from_secs(1), b"s".to_vec())];
    let before = (world.down.carried, world.down.writes);
    world.run_until(|world| world.user.taken.len() == 11 && world.next_at().is_none());
    assert_eq!((world.down.carried - before.0, world.down.writes - before.1), (16, 1));
    assert!(world.client.round_trip().unwrap() >= Duration::from_millis(40));
}

#[test]
fn output_that_comes_long_after_a_key_is_sent_as_it_is() {
    let shape = LinkShape::megabits(1.54, Duration::from_millis(100));
    let script = vec![(after(20_000), log(200)), (after(60_000), log(2_000))];
    let mut world = world(script, vec![(after(1_000), b"x".to_vec())], shape, USUAL);
    world.finish();
    check(&world);
    assert_eq!((world.user.screens, world.user.scrollbacks), (0, 0), "the client was there all the time");
    // 210 kB at 1.54 Mbit/s and a ratio of 5.
    assert!(world.now < after(61_000), "a pause says nothing of the link");
}

#[test]
fn modes_are_told_before_what_follows_them() {
    let shape = LinkShape::megabits(10.0, Duration::from_millis(40));
    let mut world = world(Vec::new(), Vec::new(), shape, USUAL);
    let hidden = TerminalModes { echo: false, canonical: true };
    world.server.modes(hidden);
    world.server.modes(hidden);
    world.server.output(OutputKind::Terminal, b"Password: ", Time::ZERO);
    world.finish();
    assert_eq!(world.user.modes, [hidden]);
}

/// The longest time from an interrupt to the prompt.
fn interrupted(megabits: f64, round_trip: u64, output: Vec<u8>, at: u64) -> (Duration, Terminals) {
    let shape = LinkShape::megabits(megabits, Duration::from_millis(round_trip));
    let mut world = world(vec![(after(500), output)], vec![(after(at), vec![3])], shape, USUAL);
    world.program.ends = false;
    world.run_until(|world| world.user.tty.rows().iter().any(|row| row == "$"));
    let took = world.now.since(after(at));
    (took, world)
}

#[test]
fn an_interrupt_in_a_flood_is_answered_within_a_round_trip_and_200_ms() {
    let noise: Vec<u8> = {
        let mut random = strait_clock::Random::new(1);
        // Printable, so that no sequence goes on for long; at a ratio of 1.3.
        (0..5_000_000).map(|at| if at % 100 == 99 { b'\n' } else { b'(' + random.below(80) as u8 }).collect()
    };
    let moments = [1_000, 3_000, 3_777, 4_104];
    let all = all_or("three of four moments at which a flood is interrupted, on each link");
    for (row, (megabits, trip, output)) in [
        (1.54, 100, log(40_000)),
        (1.54, 100, noise.clone()),
        (1.54, 600, log(40_000)),
        (0.256, 300, noise.clone()),
        (10.0, 20, noise),
        (100.0, 10, log(40_000)),
    ]
    .into_iter()
    .enumerate()
    {
        // Another one for each link, the last for the slow one.
        let few = (3 * row + 2) % 4;
        for at in if all { &moments[..] } else { &moments[few..=few] } {
            let at = *at;
            // Ten segments alone take half a second of the slowest link; nothing is known of it before they have arrived.
            if megabits < 1.0 && at < 3_000 {
                continue;
            }
            let length = output.len();
            let (took, mut world) = interrupted(megabits, trip, output.clone(), at);
            let written = world.program.written.len();
            println!("{megabits} Mbit/s, {trip} ms, after {at} ms: {took:?}, {written} of {length} written");
            // On the slow link a screen of noise alone takes 60 ms.
            let most = Duration::from_millis(trip + if megabits < 1.0 { 500 } else { 200 });
            assert!(took <= most || written == length, "{megabits} {trip} {at}: {took:?}");
            world.run_until(|world| world.next_at().is_none());
            check(&world);
        }
    }
}

#[test]
fn a_flood_fills_the_link_and_is_exact() {
    for (megabits, trip) in [(1.54, 100), (1.54, 600), (10.0, 100)] {
        let output = log(40_000);
        let shape = LinkShape::megabits(megabits, Duration::from_millis(trip));
        let mut world = world(vec![(after(500), output.clone())], Vec::new(), shape, USUAL);
        world.finish();
        let (bytes, took) = (world.down.carried as f64, world.now.since(after(500)).as_secs_f64());
        let share = bytes * 8.0 / (megabits * 1e6) / took;
        let ratio = output.len() as f64 / bytes;
        println!(
            "{megabits} Mbit/s, {trip} ms: {} bytes in {took:.2} s, ratio {ratio:.2}, {share:.2} of the link",
            output.len()
        );
        check(&world);
        assert_eq!(world.user.screens, 0, "no screen was needed");
        // In virtual time, so that this is exact.
        assert!(
            share > if megabits * (trip as f64) < 200.0 { 0.9 } else { 0.5 },
            "the window opens too slowly"
        );
    }
}

#[test]
fn after_an_outage_the_screen_comes_first_and_all_that_scrolled_off_follows() {
    let shape = LinkShape::megabits(1.54, Duration::from_millis(100));
    let mut world = world(
        vec![(after(500), log(200)), (after(5_000), log(5_000)), (after(100_000), b"done\r\n".to_vec())],
        Vec::new(),
        shape,
        USUAL,
    );
    world.run_until(|world| world.now >= after(2_000) || world.next_at().is_none_or(|at| at > after(2_000)));
    world.lose_stream(after(60_000));
    world.run_until(|world| world.user.screens > 0);
    let took = world.now.since(after(60_000));
    println!("the screen is there after {took:?}");
    assert!(took < Duration::from_millis(300));
    world.run_until(|world| world.next_at().is_none_or(|at| at > after(99_000)));
    check(&world);
    world.finish();
    check(&world);
    assert_eq!(world.user.exit, Some(Exit::Status(0)));
}

#[test]
fn a_question_asked_while_the_session_catches_up_reaches_the_terminal_once_unless_it_is_old() {
    for (away, asked) in [(8_000, 1), (60_000, 0)] {
        let shape = LinkShape::megabits(1.54, Duration::from_millis(100));
        let question = [&log(500)[..], b"\x1b[c\x1b[6n"].concat();
        let script =
            vec![(after(500), b"$ ".to_vec()), (after(5_000), question), (after(90_000), b"!".to_vec())];
        let mut world = world(script, Vec::new(), shape, USUAL);
        world.run_until(|world| {
            world.now >= after(2_000) || world.next_at().is_none_or(|at| at > after(2_000))
        });
        world.lose_stream(after(away));
        world.finish();
        check(&world);
        let seen: Vec<u8> = world.user.seen.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let times = seen.windows(7).filter(|part| part == b"\x1b[c\x1b[6n").count();
        assert_eq!(times, asked, "back after {away} ms");
        assert!(world.user.screens > 0);
    }
}

#[test]
fn what_a_client_that_is_away_for_long_cannot_get_is_said() {
    let shape = LinkShape::megabits(10.0, Duration::from_millis(20));
    let mut world = world(vec![(after(5_000), log(30_000))], Vec::new(), shape, USUAL);
    world.run_until(|world| world.client.ticket().is_some());
    world.lose_stream(after(600_000));
    world.finish();
    let scrolled = world.user.tty.scrolled();
    assert!(scrolled[0].ends_with(" lines lost]"), "{}", scrolled[0]);
    let lost: usize = scrolled[0][1..].split(' ').next().unwrap().parse().unwrap();
    let mut whole = Tty::new(SIZE);
    whole.write(&world.program.written);
    assert_eq!(&scrolled[1..], &whole.scrolled()[lost..]);
    assert_eq!(world.user.tty.rows(), whole.rows());
}

#[test]
fn another_client_gets_the_screen() {
    let shape = LinkShape::megabits(10.0, Duration::from_millis(20));
    let text = b"\x1b[?1049h\x1b[2J\x1b[5;5Hfull screen\x1b[?2004h".to_vec();
    let mut world = world(vec![(after(100), text), (after(90_000), b"!".to_vec())], Vec::new(), shape, USUAL);
    world.run_until(|world| world.user.tty.state().1);
    let ticket = world.client.ticket().unwrap().clone();
    world.lose_stream(after(10_000));
    world.client = LoginClient::resume(ticket, Some(SIZE), ClientOptions::default());
    world.user = Person::new(Vec::new());
    world.user.tty.write(b"what the terminal showed before\r\n");
    world.finish();
    let mut whole = Tty::new(SIZE);
    whole.write(&world.program.written);
    assert_eq!((world.user.tty.rows(), world.user.tty.cursor()), (whole.rows(), whole.cursor()));
    assert_eq!(world.user.tty.state(), whole.state());
    assert_eq!(world.user.tty.scrolled()[0], "what the terminal showed before");
}

/// Output of programs.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (0..60_usize).prop_map(log),
        (0..600_usize).prop_map(log),
        "[a-zé一 ]{1,300}".prop_map(String::into_bytes),
        (1..25_u16, 1..81_u16).prop_map(|(row, column)| format!("\x1b[{row};{column}H").into_bytes()),
        prop::sample::select(vec![
            "\x1b[2J",
            "\x1b[K",
            "\x1b[31;1m",
            "\x1b[m",
            "\x1b[?1049h",
            "\x1b[?1049l",
            "\x1b[5;20r",
            "\x1b[r",
            "\x1b[L",
            "\x1bM",
            "\x1b[?2004h",
            "\x1b[?1h",
            "\x1b[3S",
            "\x1b]0;a title\x07",
            "\x1b7",
            "\x1b8",
            "\r\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_the_terminal_is_right_in_the_end(
        script in vec((0_u64..30_000, output()), 0..6), losses in vec((0_u64..10_000, 10_u64..20_000), 0..5),
        rate in 3_000_u64..3_000_000, delay in 0_u64..300, piece in 1_usize..3000,
        habits in (1_usize..70_000, 1_usize..70_000),
    ) {
        let mut script: Vec<_> = script.into_iter().map(|(at, bytes)| (after(at), bytes)).collect();
        script.sort_by_key(|(at, _)| *at);
        let shape = LinkShape { rate, delay: Duration::from_millis(delay), buffer: 60_000, piece };
        let habits = Habits { room: habits.0, taken: habits.1 };
        let mut world = world(script, Vec::new(), shape, habits);
        for (wait, away) in losses {
            let at = world.now + Duration::from_millis(wait);
            let ended = |world: &Terminals| world.client.finished() && world.server.finished();
            world.run_until(|world| ended(world) || world.next_at().is_none_or(|next| next > at));
            if ended(&world) {
                break;
            }
            world.now = world.now.max(at);
            world.lose_stream(at + Duration::from_millis(away));
        }
        world.finish();
        let lost = world.user.tty.scrolled().iter().any(|row| row.ends_with(" lines lost]"));
        prop_assume!(!lost);
        check(&world);
    }
}
