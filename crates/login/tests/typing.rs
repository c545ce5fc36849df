//! A person's session, replayed in virtual time at a round trip of 600 ms: what of the typing is on the screen at once.
//!
//! `typing/session.txt` has the keys with their pauses, and what bash, vim, less, menus and prompts for passwords answered;
//! `typing/record.py` recorded it. The counts do not ask the predictor: a key was shown if the terminal had the row and
//! the cursor at once that the answer brought later.

#![allow(clippy::unwrap_used)]

use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::BTreeMap;

use strait_clock::Time;
use strait_login::prediction::{PredictMode, Predictor};
use strait_login::{TerminalModes, WindowSize};
use vt100::Parser;

const ROUND_TRIP: Duration = Duration::from_millis(600);
/// From when the session has a key to the program's answer, and between the two halves of an answer.
const ANSWER: Duration = Duration::from_millis(3);

struct Recorded {
    part: String,
    pause: Duration,
    modes: TerminalModes,
    key: Vec<u8>,
    answer: Vec<u8>,
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (_, false) => byte,
            _ => match rest.next().unwrap() {
                b'e' => 0x1b,
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(core::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                other => other,
            },
        });
    }
    bytes
}

fn session() -> Vec<Recorded> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [part, pause, modes, key, answer] = fields[..] else { panic!("five fields: {line}") };
        Recorded {
            part: part.to_owned(),
            pause: Duration::from_millis(pause.parse().unwrap()),
            modes: TerminalModes { echo: modes.contains('E'), canonical: modes.contains('C') },
            key: unescape(key),
            answer: unescape(answer),
        }
    };
    include_str!("typing/session.txt").lines().map(read).collect()
}

fn terminal() -> Parser {
    Parser::new(NonZeroU16::new(24).unwrap(), NonZeroU16::new(80).unwrap(), 0)
}

/// The row of the cursor without blanks at its end, and the column of the cursor.
fn row(parser: &Parser) -> (String, u16) {
    let (row, column) = parser.screen().cursor_position();
    (parser.screen().contents_between(row, 0, row, 80).trim_end().to_owned(), column)
}

enum Event {
    Typed(usize),
    Confirmed(u64),
    Output(Vec<u8>),
    Modes(TerminalModes),
}

/// All that happens at the client, in order.
fn timeline(session: &[Recorded]) -> Vec<(Time, Event)> {
    let mut events = BTreeMap::new();
    let (mut now, mut offset, mut order) = (Time::ZERO, 0, 0);
    let mut add = |at: Time, event| {
        order += 1;
        events.insert((at, order), event);
    };
    for (index, recorded) in session.iter().enumerate() {
        now += recorded.pause;
        add(now, Event::Typed(index));
        offset += recorded.key.len() as u64;
        let back = now + ROUND_TRIP;
        add(back, Event::Confirmed(offset));
        let (front, rest) = recorded.answer.split_at(recorded.answer.len() / 2);
        add(back + ANSWER, Event::Output(front.to_vec()));
        add(back + 2 * ANSWER, Event::Output(rest.to_vec()));
        add(back + 2 * ANSWER, Event::Modes(recorded.modes));
    }
    events.into_iter().map(|((at, _), event)| (at, event)).collect()
}

#[derive(Default, Clone, Copy)]
struct Count {
    keys: u32,
    shown: u32,
    wrong: u32,
}

struct Replay {
    predictor: Predictor,
    /// The real terminal, and what it would show if answers came at once.
    terminal: Parser,
    truth: Parser,
    offset: u64,
    counts: BTreeMap<String, Count>,
}

impl Replay {
    fn new(mode: PredictMode) -> Replay {
        let size = WindowSize { columns: 80, rows: 24, width: 0, height: 0 };
        let mut predictor = Predictor::new(mode, size);
        predictor.round_trip(ROUND_TRIP);
        Replay { predictor, terminal: terminal(), truth: terminal(), offset: 0, counts: BTreeMap::new() }
    }

    fn typed(&mut self, recorded: &Recorded, now: Time) {
        let bytes = self.predictor.typed(&recorded.key, self.offset, now);
        self.offset += recorded.key.len() as u64;
        let before = row(&self.terminal);
        self.terminal.process(&bytes);
        self.truth.process(&recorded.answer);
        let after = row(&self.terminal);
        if recorded.part == "start" {
            return;
        }
        let count = self.counts.entry(recorded.part.clone()).or_default();
        count.keys += 1;
        if after != before {
            let right = after == row(&self.truth);
            count.shown += u32::from(right);
            count.wrong += u32::from(!right);
            if !right {
                println!("{now:?} {:?}: {after:?} instead of {:?}", recorded.key, row(&self.truth));
            }
        }
        if recorded.part == "password" {
            assert!(bytes.is_empty(), "a key of a password wrote {bytes:?}");
            assert!(!self.predictor.is_showing());
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.terminal.process(bytes);
        if !self.predictor.is_showing() {
            let (real, model) = (self.terminal.screen(), self.predictor.screen());
            assert_eq!(real.contents(), model.contents());
            assert_eq!(real.cursor_position(), model.cursor_position());
            assert_eq!(real.attributes_formatted(), model.attributes_formatted());
        }
    }

    fn run(&mut self, session: &[Recorded]) -> Count {
        for (now, event) in timeline(session) {
            while let Some(due) = self.predictor.deadline().filter(|due| *due <= now) {
                let bytes = self.predictor.due(due);
                self.write(&bytes);
            }
            let bytes = match event {
                Event::Typed(index) => {
                    self.typed(&session[index], now);
                    continue;
                }
                Event::Confirmed(offset) => self.predictor.confirmed(offset, now),
                Event::Output(bytes) => self.predictor.output(&bytes, now),
                Event::Modes(modes) => self.predictor.modes(modes),
            };
            self.write(&bytes);
        }
        assert!(!self.predictor.is_showing(), "all was answered");
        assert_eq!(self.terminal.screen().contents_formatted(), self.truth.screen().contents_formatted());
        let mut all = Count::default();
        for count in self.counts.values() {
            all.keys += count.keys;
            all.shown += count.shown;
            all.wrong += count.wrong;
        }
        all
    }
}

fn percent(part: u32, of: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(of)
}

#[test]
fn most_keys_are_on_the_screen_at_once() {
    let session = session();
    let mut replay = Replay::new(PredictMode::Auto);
    let all = replay.run(&session);
    println!("{:<10} {:>6} {:>8} {:>8} {:>8}", "part", "keys", "of all", "shown", "wrong");
    for (part, count) in &replay.counts {
        let (shown, wrong) = (percent(count.shown, count.keys), percent(count.wrong, count.keys));
        let of_all = percent(count.keys, all.keys);
        println!("{part:<10} {:>6} {of_all:>7.1}% {shown:>7.1}% {wrong:>7.2}%", count.keys);
    }
    let (shown, wrong) = (percent(all.shown, all.keys), percent(all.wrong, all.keys));
    println!("{:<10} {:>6} {:>8} {shown:>7.1}% {wrong:>7.2}%", "all", all.keys, "");

    assert!(all.keys >= 2000, "{} keys", all.keys);
    let share =
        |parts: &[&str]| parts.iter().map(|part| percent(replay.counts[*part].keys, all.keys)).sum::<f64>();
    for (parts, expected) in
        [(&["shell"][..], 60.0), (&["editor"], 20.0), (&["pager"], 10.0), (&["menu", "password"], 10.0)]
    {
        assert!((share(parts) - expected).abs() < 1.5, "{parts:?}: {}", share(parts));
    }
    assert!(shown >= 70.0, "{shown} percent were shown at once");
    assert!(wrong <= 1.0, "{wrong} percent were shown wrong");
    let password = replay.counts["password"];
    assert!(password.keys >= 50 && password.shown + password.wrong == 0);
}

#[test]
fn nothing_is_shown_where_that_is_not_wanted() {
    let all = Replay::new(PredictMode::Never).run(&session());
    assert_eq!((all.shown, all.wrong), (0, 0));
}

#[test]
fn a_link_that_is_slower_than_was_said_is_found_out() {
    let mut replay = Replay::new(PredictMode::Auto);
    replay.predictor.round_trip(Duration::from_millis(20));
    let all = replay.run(&session());
    println!("{:.1} percent shown, {:.2} wrong", percent(all.shown, all.keys), percent(all.wrong, all.keys));
    assert!(percent(all.shown, all.keys) >= 50.0 && percent(all.wrong, all.keys) <= 1.0);
}
