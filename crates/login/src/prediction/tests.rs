//! Programs that answer in a known way, and what the terminal shows meanwhile.

use core::time::Duration;

use proptest::prelude::*;

use super::*;

const SIZE: WindowSize = WindowSize { columns: 40, rows: 5, width: 0, height: 0 };
const RAW: TerminalModes = TerminalModes { echo: false, canonical: false };
const COOKED: TerminalModes = TerminalModes { echo: true, canonical: true };
/// Characters that terminals join in different ways.
const JOINERS: [char; 6] = ['\u{200d}', '\u{fe0f}', '🏽', '🇩', '🇪', '\u{3099}'];
const SECRET: TerminalModes = TerminalModes { echo: false, canonical: true };

/// A terminal. One that joins nothing gives each character its own cells. One that joins has a cell more for VARIATION SELECTOR-16, and one picture for what ZERO WIDTH JOINER joins, for two regional
/// indicators, and for a skin tone with what is before it.
struct Terminal {
    parser: Parser,
    position: Position,
    joins: bool,
    partial: Vec<u8>,
    /// The last character that was not ASCII.
    last: Option<char>,
}

impl Terminal {
    fn new(size: WindowSize, joins: bool) -> Terminal {
        let (rows, columns) = cells(size);
        Terminal {
            parser: Parser::new(rows, columns, 0),
            position: Position::default(),
            joins,
            partial: Vec::new(),
            last: None,
        }
    }

    fn process(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.partial.push(*byte);
            let whole = match core::str::from_utf8(&self.partial) {
                Ok(text) => text.chars().next(),
                Err(error) if error.error_len().is_none() => continue,
                Err(_) => None,
            };
            let bytes = core::mem::take(&mut self.partial);
            self.position.advance(&bytes);
            let before = self.last.take();
            self.last = whole.filter(|character| !character.is_ascii());
            let is_flag = |character: Option<char>| matches!(character, Some('\u{1f1e6}'..='\u{1f1ff}'));
            match whole {
                Some('\u{fe0f}') if self.joins && self.position.is_plain() => self.parser.process(b"+"),
                Some('\u{fe0f}') => {}
                _ if !self.joins => self.parser.process(&bytes),
                Some('\u{200d}' | '\u{1f3fb}'..='\u{1f3ff}') => {}
                _ if before == Some('\u{200d}') && self.last.is_some() => {}
                _ if is_flag(before) && is_flag(whole) => self.last = None,
                _ => self.parser.process(&bytes),
            }
        }
    }

    fn screen(&self) -> &Screen {
        self.parser.screen()
    }
}

/// A predictor and the real terminal that it writes to, at a round trip of 200 ms.
struct Seat {
    predictor: Predictor,
    terminal: Terminal,
    /// A terminal without predictions.
    plain: Terminal,
    offset: u64,
    now: Time,
}

impl Seat {
    fn new(modes: TerminalModes) -> Seat {
        Seat::at(SIZE, false, modes)
    }

    fn at(size: WindowSize, joins: bool, modes: TerminalModes) -> Seat {
        let mut predictor = Predictor::new(PredictMode::Auto, size);
        predictor.round_trip(Duration::from_millis(200));
        predictor.modes(modes);
        let terminal = || Terminal::new(size, joins);
        Seat { predictor, terminal: terminal(), plain: terminal(), offset: 0, now: Time::ZERO }
    }

    fn typed(&mut self, keys: &str) {
        self.typed_bytes(keys.as_bytes());
    }

    fn typed_bytes(&mut self, keys: &[u8]) {
        let bytes = self.predictor.typed(keys, self.offset, self.now);
        self.offset += keys.len() as u64;
        self.terminal.process(&bytes);
    }

    fn output(&mut self, output: &str) {
        self.output_bytes(output.as_bytes());
    }

    fn output_bytes(&mut self, output: &[u8]) {
        let bytes = self.predictor.output(output, self.now);
        self.terminal.process(&bytes);
        self.plain.process(output);
    }

    /// Without predictions on it, the terminal shows what it would without us.
    fn is_left_as_it_was(&self) -> Result<(), TestCaseError> {
        let (shown, plain) = (self.terminal.screen(), self.plain.screen());
        if self.predictor.is_showing() {
            // In a row in which all columns are sure.
            let model = self.predictor.screen();
            let (row, _) = model.cursor_position();
            let row = model.contents_between(row, 0, row, model.size().1.get());
            prop_assert!(!row.contains(JOINERS), "{:?}", row);
        } else {
            prop_assert_eq!(shown.contents_formatted(), plain.contents_formatted());
            prop_assert_eq!(shown.attributes_formatted(), plain.attributes_formatted());
            prop_assert_eq!(shown.cursor_position(), plain.cursor_position());
        }
        Ok(())
    }

    fn modes(&mut self, modes: TerminalModes) {
        let bytes = self.predictor.modes(modes);
        self.terminal.process(&bytes);
    }

    /// The session has all that was typed.
    fn confirmed(&mut self) {
        let bytes = self.predictor.confirmed(self.offset, self.now);
        self.terminal.process(&bytes);
    }

    fn wait(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(at) = self.predictor.deadline().filter(|at| *at <= until) {
            self.now = at;
            let bytes = self.predictor.due(at);
            self.terminal.process(&bytes);
        }
        self.now = until;
    }

    /// The terminal's row of the cursor without blanks at its end, and the cursor's column.
    fn row(&self) -> (String, u16) {
        let (row, column) = self.terminal.screen().cursor_position();
        (self.terminal.screen().contents_between(row, 0, row, 40).trim_end().to_owned(), column)
    }

    fn shows(&self, text: &str) {
        let (row, column) = self.row();
        let before: String = row.chars().take(usize::from(column)).collect();
        assert_eq!(before.trim_end(), text.trim_end(), "cursor at {column} of {row:?}");
    }

    /// Types and has it answered by its echo.
    fn echoed(&mut self, keys: &str) {
        self.typed(keys);
        self.wait(200);
        self.output(keys);
        self.confirmed();
    }

    /// At a prompt of a line editor that was seen to echo.
    fn at_known_prompt() -> Seat {
        let mut seat = Seat::new(RAW);
        seat.knows_prompt();
        seat
    }

    fn knows_prompt(&mut self) {
        self.output("$ ");
        self.echoed("ls");
        self.typed("\r");
        self.output("\r\nfile\r\n$ ");
        self.confirmed();
        assert!(self.predictor.guesses.is_empty());
    }
}

#[test]
fn an_epoch_is_hidden_until_one_of_its_keys_was_echoed() {
    let mut seat = Seat::new(RAW);
    seat.output("> ");
    seat.typed("abc");
    seat.shows(">");
    seat.output("a");
    seat.shows("> abc");
    assert!(seat.terminal.screen().cell(0, 4).unwrap().underline(), "not confirmed");
    assert!(!seat.terminal.screen().cell(0, 2).unwrap().underline(), "confirmed");
    seat.output("bc");
    assert!(!seat.predictor.is_showing());
    assert!(!seat.terminal.screen().cell(0, 4).unwrap().underline());
}

#[test]
fn a_known_prompt_is_trusted_at_once() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("é中x");
    seat.shows("$ é中x");
    seat.typed("\x7f\x7f");
    seat.shows("$ é");
    seat.output("é");
    seat.output("中x\x08\x1b[K\x08\x08\x1b[K");
    seat.confirmed();
    assert!(seat.predictor.guesses.is_empty());
    seat.shows("$ é");
}

#[test]
fn keys_move_and_change_the_middle_of_a_line() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("acd\x1b[D\x1b[Db");
    assert_eq!(seat.row(), ("$ abcd".to_owned(), 4));
    seat.typed("\x05");
    assert_eq!(seat.row().1, 6);
    seat.typed("\x01\x7f\x1b[D");
    assert_eq!(seat.row(), ("$ abcd".to_owned(), 2), "the prompt is not the editor's");
}

#[test]
fn what_was_typed_ahead_is_shown_when_the_prompt_comes() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("ls\r");
    seat.typed("cd");
    seat.shows("$ ls");
    seat.output("ls\r\nfile\r\n$ ");
    let bytes = seat.predictor.confirmed(seat.offset - 2, seat.now);
    seat.terminal.process(&bytes);
    seat.shows("$ cd");
}

#[test]
fn a_password_is_never_shown() {
    // The terminal says that it takes a line without echo.
    let mut seat = Seat::at_known_prompt();
    seat.typed("su\r");
    seat.output("su\r\nPassword: ");
    seat.modes(SECRET);
    seat.confirmed();
    seat.wait(200);
    for key in ["s", "e", "\x7f", "\x1b[D", "c"] {
        seat.typed(key);
        seat.shows("Password:");
        assert!(!seat.predictor.is_showing());
    }
    seat.confirmed();
    seat.wait(200);
    seat.typed("\r");
    seat.output("\r\n");
    seat.modes(RAW);
    seat.output("$ ");
    seat.confirmed();
    seat.typed("id");
    seat.shows("$ id");
}

#[test]
fn a_password_is_not_shown_where_the_modes_say_nothing_of_it() {
    for modes in [RAW, COOKED] {
        let mut seat = Seat::new(modes);
        seat.output("login: ");
        seat.echoed("eve");
        seat.typed("\r");
        seat.typed("early");
        seat.output("\r\nPassword: ");
        seat.confirmed();
        seat.shows("Password:");
        seat.wait(200);
        for _ in 0..20 {
            seat.typed("x");
            seat.shows("Password:");
            seat.wait(70);
            seat.confirmed();
        }
        assert_eq!(seat.predictor.counts().wrong, 0);
    }
}

#[test]
fn what_was_wrong_is_taken_back_and_its_prompt_forgotten() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("rm");
    seat.shows("$ rm");
    seat.confirmed();
    seat.wait(49);
    seat.shows("$ rm");
    seat.wait(1);
    seat.shows("$");
    assert_eq!(seat.predictor.counts().wrong, 1);
    seat.typed("\r");
    seat.output("\r\n$ ");
    seat.confirmed();
    seat.typed("x");
    seat.shows("$");
}

#[test]
fn output_of_others_leaves_the_line_whole() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("abc");
    seat.output("\r\nmail for you\r\n$ ");
    seat.shows("$");
    assert_eq!(seat.terminal.screen().contents(), seat.predictor.screen().contents());
}

#[test]
fn nothing_is_written_into_a_sequence_of_the_program() {
    let mut seat = Seat::at_known_prompt();
    seat.output("\x1b[3");
    assert!(seat.predictor.typed(b"a", seat.offset, seat.now).is_empty());
    seat.offset += 1;
    seat.output("1m");
    seat.shows("$ a");
    seat.output("a");
    assert!(!seat.predictor.is_showing());
    let cell = seat.terminal.screen().cell(2, 2).unwrap();
    assert_eq!((cell.contents(), cell.fgcolor()), ("a", vt100::Color::Idx(1)));
}

/// In the last two columns, it can neither be moved nor be written again.
#[test]
fn a_wide_character_at_the_edge_stays_whole() {
    let mut seat = Seat::at_known_prompt();
    seat.output("\x1b[39G中\x1b[3G");
    let whole = seat.terminal.screen().contents_formatted();
    seat.typed("ab");
    seat.shows("$ ab");
    assert_eq!(seat.terminal.screen().cell(2, 38).unwrap().contents(), "中");
    seat.typed("\x7f\x7f");
    seat.confirmed();
    seat.wait(50);
    assert!(!seat.predictor.is_showing());
    assert_eq!(seat.terminal.screen().contents_formatted(), whole);
}

#[test]
fn what_is_pasted_and_what_an_unknown_terminal_gets_is_not_predicted() {
    let mut seat = Seat::at_known_prompt();
    seat.typed(&"x".repeat(PASTED + 1));
    seat.shows("$");
    let mut seat = Seat::new(RAW);
    seat.predictor.guesses = Guesses::new();
    seat.output("$ ");
    seat.echoed("l");
    seat.typed("s");
    seat.shows("$ l");
}

#[test]
fn a_resize_and_a_new_screen_forget_what_was_predicted() {
    let mut seat = Seat::at_known_prompt();
    seat.typed("abc");
    let bytes = seat.predictor.redrawn(b"\x1b[H\x1b[Jnew", seat.now);
    seat.terminal.process(&bytes);
    assert!(!seat.predictor.is_showing());
    assert_eq!(seat.terminal.screen().contents(), "new");
    let mut seat = Seat::at_known_prompt();
    seat.typed("abc");
    let bytes = seat.predictor.resize(WindowSize { columns: 20, ..SIZE });
    seat.terminal.process(&bytes);
    seat.shows("$");
    assert_eq!(seat.predictor.deadline(), None);
}

#[test]
fn a_late_answer_is_not_waited_for() {
    let mut seat = Seat::at_known_prompt();
    seat.predictor.round_trip(Duration::from_millis(10));
    seat.typed("a");
    seat.shows("$");
    seat.wait(249);
    seat.shows("$");
    seat.wait(1);
    seat.shows("$ a");
    seat.output("a");
    seat.typed("b");
    seat.shows("$ a");
}

/// Also where predictions are shown that an answer in time would have confirmed before they are underlined.
#[test]
fn what_has_no_answer_in_time_is_underlined() {
    let mut seat = Seat::at_known_prompt();
    seat.predictor.round_trip(Duration::from_millis(45));
    let is_underlined = |seat: &Seat| seat.terminal.screen().cell(2, 2).unwrap().underline();
    seat.typed("a");
    seat.shows("$ a");
    assert!(!is_underlined(&seat));
    seat.wait(250);
    seat.shows("$ a");
    assert!(is_underlined(&seat));
    seat.output("a");
    assert!(!is_underlined(&seat));
}

/// Keys one after the other, each answered after the next was typed, then as many backspaces as bash takes.
#[test]
fn characters_that_terminals_join_are_left_as_they_came() {
    for text in [
        "a 日 b 👩\u{200d}🚀 c",
        "a 👩\u{200d}👩\u{200d}👧 b c",
        "☺\u{fe0f} a",
        "👍🏽 a",
        "🇩🇪 a",
        "日\u{3099} a",
    ] {
        for joins in [false, true] {
            let mut seat = Seat::at(SIZE, joins, RAW);
            seat.knows_prompt();
            let keys: Vec<String> = text.chars().map(String::from).collect();
            seat.typed(&keys[0]);
            assert_eq!(seat.predictor.is_showing(), !text.starts_with("🇩"), "{text}");
            for (at, key) in keys.iter().enumerate() {
                if let Some(next) = keys.get(at + 1) {
                    seat.typed(next);
                }
                seat.wait(10);
                seat.output(key);
                seat.is_left_as_it_was().unwrap();
            }
            seat.confirmed();
            seat.wait(100);
            assert!(!seat.predictor.is_showing(), "{text}");
            seat.is_left_as_it_was().unwrap();
            for key in keys.iter().rev() {
                seat.typed("\x7f");
                seat.is_left_as_it_was().unwrap();
                seat.output(&format!("{}\x1b[K", "\x08".repeat(columns_of(key))));
                seat.confirmed();
                seat.wait(100);
                seat.is_left_as_it_was().unwrap();
            }
            seat.typed("\r");
            seat.output("\r\n$ ");
            seat.confirmed();
            seat.wait(100);
            seat.typed("x");
            seat.shows("$ x");
        }
    }
}

/// The columns that bash counts for a character.
fn columns_of(character: &str) -> usize {
    let mut terminal = Terminal::new(SIZE, false);
    terminal.process(character.as_bytes());
    usize::from(terminal.screen().cursor_position().1)
}

/// The place at which a character at the edge would become wide after it was there.
#[test]
fn no_output_breaks_the_model() {
    let outputs = [
        "中\x1b[C\x1b[K\x1b[2;3H中☺\u{fe0f}\x1b[A\x1b[2;4H\x1b[2;4H☺\x1b[2;2r",
        "中\x1b[K\x1b[2;3H\u{200d}\n\x1b[X☺\u{fe0f}\x1b[2;3H☺\x1b[2;3H\u{fe0f}",
        "\u{fe0f}\x1b[2;3H中☺\u{fe0f}\x1b[2;3H\u{fe0f}a\x1b[L\x1b[H\x1b[2;2r\x1b[X",
    ];
    for output in outputs {
        let mut seat = Seat::at(WindowSize { columns: 3, rows: 3, ..SIZE }, false, RAW);
        seat.output(output);
        assert!(!seat.predictor.screen().state_formatted().is_empty());
    }
}

#[test]
fn the_row_is_drawn_again_where_columns_are_in_doubt() {
    for joins in [false, true] {
        let mut seat = Seat::at(SIZE, joins, RAW);
        seat.output("above\r\n\x1b[1m$ \x1b[ma 👩\u{200d}🚀 \x1b[31mc d\x1b[2D");
        let again = format!("\x1b[m\r\x1b[2K{}", seat.predictor.row_again());
        seat.terminal.process(again.as_bytes());
        seat.is_left_as_it_was().unwrap();
    }
}

/// What happens at a client.
#[derive(Clone, Debug)]
enum Step {
    Type(Vec<u8>),
    /// A key that is echoed at once.
    Echoed(Vec<u8>),
    Output(Vec<u8>),
    Confirm,
    Wait(u64),
    Modes(TerminalModes),
}

fn step_of() -> impl Strategy<Value = Step> {
    // Without the letter b: CSI b (REP) repeats the last character that the terminal got, which may be one of ours
    // (docs/design/login-prediction.md).
    let byte = any::<u8>().prop_map(|byte| if byte == b'b' { b'a' } else { byte });
    let piece = prop_oneof![
        4 => "[acd ]{1,3}".prop_map(String::into_bytes),
        1 => prop::sample::select(vec!["中é", "👩", "👩\u{200d}🚀", "\u{200d}", "☺", "\u{fe0f}", "👍🏽", "🇩🇪", "日\u{3099}", "u\u{308}"])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::sample::select(vec![
            &b"\x7f"[..], b"\x1b[D", b"\x1b[C", b"\r\n", b"\x08 \x08", b"\x01", b"\x1b[H", b"\x1b[K", b"\x1b[4m",
            b"\x1b[2J", b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[", b"\xe4\xb8", b"$ ",
        ]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(byte, 1..6),
    ];
    prop_oneof![
        4 => piece.clone().prop_map(Step::Type),
        3 => piece.clone().prop_map(Step::Echoed),
        4 => piece.prop_map(Step::Output),
        2 => Just(Step::Confirm),
        2 => (1u64..100).prop_map(Step::Wait),
        1 => prop::sample::select(vec![RAW, RAW, COOKED, SECRET]).prop_map(Step::Modes),
    ]
}

/// Has this happen at a terminal.
fn happens(mut seat: Seat, steps: Vec<Step>) -> Result<(), TestCaseError> {
    for step in steps {
        match step {
            Step::Type(keys) => seat.typed_bytes(&keys),
            Step::Echoed(keys) => {
                seat.typed_bytes(&keys);
                seat.output_bytes(&keys);
            }
            Step::Output(output) => seat.output_bytes(&output),
            Step::Confirm => seat.confirmed(),
            Step::Wait(millis) => seat.wait(millis),
            Step::Modes(modes) => seat.modes(modes),
        }
        seat.is_left_as_it_was()?;
    }
    Ok(())
}

proptest! {
    /// Whatever is typed and answered.
    #[test]
    fn the_terminal_is_left_as_the_session_has_it(steps in prop::collection::vec(step_of(), 1..60)) {
        happens(Seat::new(RAW), steps)?;
    }

    /// The same where the terminal has other columns than the model. So wide that no row is wrapped: rows of a screen without a prompt
    /// may be others then.
    #[test]
    fn a_row_in_doubt_is_never_predicted(steps in prop::collection::vec(step_of(), 1..60)) {
        happens(Seat::at(WindowSize { columns: 600, ..SIZE }, true, RAW), steps)?;
    }
}
