//! A terminal that is painted shows what it would show if it had seen everything, and its scrollback is the same.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What a terminal shows and has shown, as far as a person or a program could tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) rows: Vec<String>,
    /// Where positions count from a region, no sequence leads to a row outside of it.
    pub(crate) cursor: Option<(u16, u16)>,
    alternate: bool,
    modes: String,
    main: Vec<String>,
    region: ((u16, u16), bool),
}

pub(crate) fn shown(screen: &SessionScreen) -> Shown {
    let snapshot = screen.snapshot();
    let shown = &snapshot.shown;
    let (region, cursor) = (snapshot.hidden.region, shown.cursor_position());
    let reachable = !snapshot.hidden.origin || (region.0..=region.1).contains(&cursor.0);
    Shown {
        rows: rows_of(shown),
        cursor: Some(cursor).filter(|_| reachable),
        alternate: shown.alternate_screen(),
        modes: format!(
            "{}{}{}",
            shown.input_mode_formatted(),
            shown.hide_cursor(),
            shown.attributes_formatted()
        ),
        main: snapshot.main.as_ref().map(rows_of).unwrap_or_default(),
        region: (region, snapshot.hidden.origin),
    }
}

/// The bytes that would make the modes of a terminal those of the session.
fn modes_lacking(terminal: &SessionScreen, session: &SessionScreen) -> String {
    let (terminal, session) = (terminal.snapshot(), session.snapshot());
    let mut bytes = Vec::new();
    session.modes.paint_keys(&terminal.modes, session.is_alternate(), &mut bytes);
    session.modes.paint(&terminal.modes, &mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// What both show; where no sequence leads to the session's cursor, that of the terminal does not matter.
fn both(terminal: &SessionScreen, session: &SessionScreen) -> (Shown, Shown) {
    let (mut terminal, session) = (shown(terminal), shown(session));
    terminal.cursor = terminal.cursor.filter(|_| session.cursor.is_some());
    (terminal, session)
}

fn rows_of(screen: &vt100::Screen) -> Vec<String> {
    let (rows, columns) = screen.size();
    let look = |row, column| {
        let cell = screen.cell(row, column).unwrap();
        let contents = if cell.has_contents() { cell.contents() } else { " " };
        let half = if cell.is_wide_continuation() { "" } else { contents };
        let style = [cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse()];
        let colors = (cell.fgcolor(), cell.bgcolor());
        let plain = style == [false; 5] && colors == <(vt100::Color, vt100::Color)>::default();
        if plain { half.to_owned() } else { format!("<{half}{style:?}{colors:?}>") }
    };
    (0..rows.get()).map(|row| (0..columns.get()).map(|column| look(row, column)).collect()).collect()
}

/// Output of programs: text, and sequences that move, erase, scroll, colour and switch.
pub(crate) fn output() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(String::new()), (0..30_u16).prop_map(|number| number.to_string())];
    let letter = prop::sample::select("@ABCDEFGHJKLMPSTXbdf`".chars().collect::<Vec<_>>());
    let csi = (number.clone(), number.clone(), letter)
        .prop_map(|(one, two, letter)| format!("\x1b[{one};{two}{letter}"));
    let mode = prop::sample::select(vec![1, 6, 7, 25, 47, 1000, 1004, 1006, 1049, 2004, 2048]);
    let mode =
        (mode, any::<bool>()).prop_map(|(mode, on)| format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }));
    let region = (1..9_u16, 1..12_u16).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r"));
    let sgr =
        prop::sample::select(vec!["0", "1", "2", "3", "4", "7", "31", "44", "95", "38;5;200", "48;2;1;2;3"])
            .prop_map(|code| format!("\x1b[{code}m"));
    let plain = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r",
        "\t",
        "\x08",
        "\x1b7",
        "\x1b8",
        "\x1bM",
        "\x1b=",
        "\x1b>",
        "\x1b[r",
        "\x1b(0",
        "\x1b(B",
        "\x1b[3 q",
        "\x1b[>1u",
        "\x1b[<u",
        "\x1b[=5u",
        "\x1b[>4;2m",
        "\x1b]11;#102030\x07",
        "\x1b]111\x07",
        "\x1b]2;title\x07",
        "\x1b]0;other\x1b\\",
        "\x07",
        "\x1bc",
        "\x18",
        "\x0e",
        "\x0f",
        "\x1b)0",
    ])
    .prop_map(str::to_owned);
    let text = prop_oneof!["[a-z ]{1,30}", "[a-zé一二▒ -]{1,12}", Just("e\u{301}".to_owned())];
    let lines = vec("[a-zA-Z0-9 ]{0,40}", 1..20).prop_map(|lines| lines.join("\r\n"));
    vec(prop_oneof![4 => text, 3 => lines, 3 => csi, 2 => mode, 2 => sgr, 1 => region, 3 => plain], 0..24)
        .prop_map(|all| all.concat().into_bytes())
}

fn size() -> impl Strategy<Value = WindowSize> {
    (1..40_u16, 1..12_u16).prop_map(|(columns, rows)| WindowSize { columns, rows, width: 0, height: 0 })
}

/// Rows that scroll off a terminal, all of them.
pub(crate) fn history(screen: &mut SessionScreen) -> Vec<String> {
    screen.take_rows(usize::MAX).iter().map(plain).collect()
}

/// A row without its looks.
fn plain(row: &ScrolledRow) -> String {
    rows::unstyled(&row.text).trim_end().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_difference_leads_to_the_same_screen(size in size(), before in output(), after in output()) {
        let (mut session, mut terminal) = (SessionScreen::new(size), SessionScreen::new(size));
        session.process(&before);
        terminal.process(&before);
        let base = session.snapshot();
        session.process(&after);
        let mut bytes = Vec::new();
        terminal.keep_rows(true);
        difference(Known::Same(&base), &session.snapshot(), &mut bytes);
        // What was unfinished is cut off, as a terminal does it.
        terminal.process(b"\x18");
        terminal.process(&bytes);
        let (painted, meant) = both(&terminal, &session);
        prop_assert_eq!(painted, meant, "{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(modes_lacking(&terminal, &session), "", "{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(history(&mut terminal), Vec::<String>::new(), "nothing scrolls");
        // Then there is no difference.
        bytes.clear();
        let there = session.snapshot();
        difference(Known::Same(&there), &there, &mut bytes);
        prop_assert_eq!(String::from_utf8_lossy(&bytes), "");
    }

    #[test]
    fn any_terminal_comes_to_the_screen(size in size(), before in output(), after in output()) {
        let (mut session, mut terminal) = (SessionScreen::new(size), SessionScreen::new(size));
        terminal.process(&before);
        session.process(&after);
        let alternate = terminal.snapshot().is_alternate();
        let mut bytes = Vec::new();
        difference(Known::Unsure { alternate, modes: None }, &session.snapshot(), &mut bytes);
        terminal.process(&bytes);
        let (painted, meant) = both(&terminal, &session);
        prop_assert_eq!(painted, meant, "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn rows_come_into_the_scrollback_and_the_screen_stays(size in size(), before in output(), lines in output()) {
        let (mut rows, mut terminal) = (SessionScreen::new(size), SessionScreen::new(size));
        terminal.process(&before);
        rows.keep_rows(true);
        rows.process(&lines);
        let rows = rows.take_rows(usize::MAX);
        let coded = decode_rows(&encode_rows(&rows)).unwrap();
        prop_assert_eq!(&coded, &rows);
        let was = shown(&terminal);
        terminal.keep_rows(true);
        let bytes = terminal.scroll_off(&rows);
        let mut now = shown(&terminal);
        now.cursor = now.cursor.filter(|_| was.cursor.is_some());
        prop_assert_eq!(now, was, "{:?}", String::from_utf8_lossy(&bytes));
        let expected: Vec<_> = rows.iter().map(plain).collect();
        prop_assert_eq!(history(&mut terminal), expected);
    }

    #[test]
    fn it_does_not_matter_where_output_is_cut(size in size(), bytes in output(), step in 1..5_usize) {
        let (mut whole, mut cut) = (SessionScreen::new(size), SessionScreen::new(size));
        whole.process(&bytes);
        bytes.chunks(step).for_each(|piece| cut.process(piece));
        prop_assert_eq!(shown(&whole), shown(&cut));
        prop_assert_eq!(whole.unfinished(), cut.unfinished());
    }
}

/// Anything: sequences with any numbers and any letters, strings, bytes, and the window's size between.
fn anything() -> impl Strategy<Value = Vec<(Vec<u8>, Option<WindowSize>)>> {
    let number = prop_oneof![Just(0_u16), 1..20_u16, any::<u16>(), Just(u16::MAX)];
    let intermediate = prop::sample::select(vec!["", "?", ">", "!", " ", "$"]);
    let csi =
        (intermediate, vec(number, 0..5), prop_oneof![0x40..0x7f_u8, Just(b'r'), Just(b'h'), Just(b'l')])
            .prop_map(|(intermediate, numbers, letter)| {
                let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
                format!("\x1b[{intermediate}{}{}", numbers.join(";"), char::from(letter)).into_bytes()
            });
    let escape = (0x20..0x7f_u8).prop_map(|letter| vec![0x1b, letter]);
    let piece = prop_oneof![
        output(),
        csi,
        escape,
        vec(any::<u8>(), 0..40),
        "[\\PC]{0,60}".prop_map(String::into_bytes),
        "[a一\u{301}\u{200d}👩\u{fe0f}\u{1f1e6}\u{0}-\u{1f}]{0,40}".prop_map(String::into_bytes),
    ];
    let window = prop::option::weighted(0.15, (1..30_u16, 1..10_u16));
    let window = window
        .prop_map(|window| window.map(|(columns, rows)| WindowSize { columns, rows, width: 0, height: 0 }));
    vec((piece, window), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_output_harms_the_model(size in size(), all in anything()) {
        let mut screen = SessionScreen::new(size);
        let mut terminal = SessionScreen::new(size);
        screen.keep_rows(true);
        let mut base = screen.snapshot();
        for (bytes, window) in all {
            screen.process(&bytes);
            terminal.process(&bytes);
            if let Some(window) = window {
                screen.resize(window);
                terminal.resize(window);
            }
            let (mut painted, now) = (Vec::new(), screen.snapshot());
            difference(Known::Same(&base), &now, &mut painted);
            difference(Known::Unsure { alternate: base.is_alternate(), modes: None }, &now, &mut painted);
            terminal.process(&painted);
            let rows = decode_rows(&encode_rows(&screen.take_rows(5000)));
            prop_assert!(rows.is_ok(), "rows have no control characters");
            terminal.scroll_off(&rows.unwrap_or_default());
            base = now;
        }
    }
}

#[test]
fn rows_are_bounded_and_what_is_lost_is_said() {
    let mut screen = SessionScreen::new(WindowSize::USUAL);
    screen.keep_rows(true);
    (0..10_000).for_each(|line| screen.process(format!("line {line}\r\n").as_bytes()));
    screen.bound_rows(10_000);
    assert!(screen.kept_bytes() <= 10_000);
    let rows = screen.take_rows(usize::MAX);
    let first: usize = 10_000 - 24 + 1 - (rows.len() - 1);
    assert_eq!(rows[0].text, format!("[{first} lines lost]"));
    assert_eq!(rows[1].text, format!("line {first}"));
    assert_eq!(rows.last().unwrap().text, "line 9976");
}

#[test]
fn another_terminal_comes_to_all_modes_that_a_program_switched_on() {
    let all = "\x1b[>3u\x1b[?1049h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>1u\x1b[>5u\
               \x1b[>4;2m\x1b[?1007h\x1b[?2048h\x1b[?1h\x1b=\x1b[5 q\x1b]11;#102030\x07";
    let mut session = SessionScreen::new(WindowSize::USUAL);
    session.process(all.as_bytes());
    let (mut terminal, mut bytes) = (SessionScreen::new(WindowSize::USUAL), Vec::new());
    let unsure = Known::Unsure { alternate: false, modes: None };
    difference(unsure, &session.snapshot(), &mut bytes);
    terminal.process(&bytes);
    assert_eq!(modes_lacking(&terminal, &session), "");
    // Each by itself, in the order in which they were switched on.
    let painted = String::from_utf8(bytes).unwrap();
    let mut rest = painted.as_str();
    for part in
        ["\x1b[>3u", "\x1b[?1049h", "\x1b[>1u", "\x1b[>5u", "\x1b[?1000h", "\x1b[?1002h", "\x1b[?1003h"]
    {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part:?} in {painted:?}")).1;
    }
    // The program ends.
    session.process(b"\x1b[<2u\x1b[?1049l\x1b[<u");
    let (base, mut bytes) = (terminal.snapshot(), Vec::new());
    difference(Known::Same(&base), &session.snapshot(), &mut bytes);
    terminal.process(&bytes);
    assert_eq!(modes_lacking(&terminal, &session), "");
    // A terminal whose window changed is in the modes that it was in: keys are not put on top of each other.
    session.process(b"\x1b[>1u");
    let modes = session.snapshot().modes;
    let (mut again, unsure) = (Vec::new(), Known::Unsure { alternate: false, modes: Some(&modes) });
    difference(unsure, &session.snapshot(), &mut again);
    assert!(!String::from_utf8(again).unwrap().contains('u'));
}

#[test]
fn lines_are_drawn_as_programs_mean_them() {
    let mut screen = SessionScreen::new(WindowSize::USUAL);
    screen.process(b"\x1b(0lqk\x1b(B x\x1b)0\x0eqx\x0fq");
    assert_eq!(shown(&screen).rows[0].trim_end(), "┌─┐ x─│q");
}

#[test]
fn a_sequence_that_repeats_without_end_is_cut_short() {
    let mut screen = SessionScreen::new(WindowSize::USUAL);
    for _ in 0..200 {
        screen.process(b"x\x1b[65535b\x1b[65535;65535;65535b");
    }
    assert_eq!(screen.unfinished(), Some(&[][..]));
    // A string without end is not kept.
    screen.process(&[&b"\x1b]52;c;"[..], &[b'A'; 10_000]].concat());
    assert_eq!(screen.unfinished(), None);
    screen.process(b"\x07y");
    assert_eq!(screen.unfinished(), Some(&[][..]));
}
