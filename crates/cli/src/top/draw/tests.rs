use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ratatui::backend::{CrosstermBackend, TestBackend};
use ratatui::{Terminal, TerminalOptions, Viewport};
use strait_node::report::DaemonReport;

use super::super::keys::Key;
use super::super::samples::{at, decision, report};
use super::*;
use crate::output::wrapped;

/// What is on a screen of this size, a line each.
fn shown(view: &View, columns: u16, lines: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..lines).map(|y| line(y).trim_end().to_owned()).collect()
}

fn view(report: DaemonReport) -> View {
    View::new(at(0, report), Duration::from_secs(1), false)
}

/// A tunnel that has carried something between two answers.
fn busy() -> View {
    let mut first = report();
    first.node.down_bits_per_second = Some(3_000_000);
    first.decisions = Some(vec![
        decision("tcp 10.77.0.1:43210 -> 10.77.0.2:5201", 560_000),
        decision("udp 10.77.0.1:5000 -> 10.77.0.2:53", 90),
    ]);
    let mut next = first.clone();
    let mut view = view(first);
    next.peers[0].sent.wire_bytes += 93_000;
    next.peers[0].received.wire_bytes += 1_500;
    next.drops[0].packets += 4;
    view.take(Ok(at(1_000, next)));
    view
}

/// Asserts that some line has all of these words, in this order.
fn has(screen: &[String], words: &[&str]) {
    let in_order = |line: &String| {
        let mut rest = line.as_str();
        words.iter().all(|word| match rest.split_once(word) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    };
    assert!(screen.iter().any(in_order), "{words:?} is in no line of\n{}", screen.join("\n"));
}

#[test]
fn eighty_columns_have_link_queue_flows_drops_and_savings() {
    let screen = shown(&busy(), 80, 24);
    has(&screen, &["strait0  up 1 h 2 min", "peer site-b: up, 198.18.0.2:51820"]);
    has(&screen, &["sent", "[###########...........]  50 %  744 kbit/s of 1.49 Mbit/s, estimated"]);
    has(&screen, &["received", "[#....", "0 %  12.0 kbit/s of 3.00 Mbit/s, configured"]);
    has(&screen, &["queue", "2.05 kB, delay 8 ms (max 21 ms)  RTT 58.4 ms  loss 1.2 %"]);
    has(&screen, &["saved", "2.66 MB of 4.00 MB sent (66 %)", "received"]);
    has(&screen, &["dropped", "replayed 4 (+4)"]);
    has(&screen, &["flow", "bytes/s", "after", "ratio", "method", "reason"]);
    has(&screen, &["tcp 10.77.0.1", "10.77.0.2:5201", "560 kB", "224 kB", "2.5", "zstd-9", "pays"]);
    has(&screen, &["udp 10.77.0.1:", "90 B", "36 B"]);
    has(&screen, &["tcp 10.77.0.1:43210 -> 10.77.0.2:5201  zstd-9: takes the least time"]);
    has(&shown(&busy(), 100, 24), &["RTT 58.4 ms (min 50.1 ms)"]);
    assert_eq!(screen[23], "q quit  w why  s savings  j/k select  ? help");
}

#[test]
fn before_the_second_answer_nothing_is_invented() {
    let screen = shown(&view(report()), 80, 24);
    has(&screen, &["sent", "-", "of 1.49 Mbit/s"]);
    has(&screen, &["received", "-, link rate unknown"]);
    has(&screen, &["dropped", "nothing since top began"]);
    has(&screen, &["the sender did not tell its flows in time"]);
    let mut quiet = report();
    quiet.decisions = Some(Vec::new());
    has(&shown(&view(quiet), 80, 24), &["no flow matched a [[compress]] rule"]);
    let mut alone = report();
    alone.peers.clear();
    has(&shown(&view(alone), 80, 24), &["no peers"]);
}

#[test]
fn why_has_every_figure_of_the_selected_flow() {
    let mut view = busy();
    view.press(Key::Down);
    view.press(Key::Why);
    for (columns, lines) in [(80, 24), (60, 30), (200, 50)] {
        let screen = shown(&view, columns, lines);
        has(&screen, &["udp 10.77.0.1:5000 -> 10.77.0.2:53"]);
        has(&screen, &["choice", "zstd-9 since 12 s: takes the least time"]);
        has(&screen, &["estimate", "zstd-9: ratio 2.50"]);
        has(&screen, &["bottleneck", "link"]);
        has(&screen, &["runner-up", "zstd-3, 4.2 % slower"]);
        has(&screen, &["ms per block", "none", "zstd-9"]);
        has(&screen, &["link", "340.000", "120.000"]);
        has(&screen, &["total", "340.060", "121.640"]);
        assert!(screen.last().unwrap().starts_with("q quit"), "{screen:#?}");
    }
}

#[test]
fn savings_are_by_peer_source_and_codec() {
    let mut view = busy();
    view.press(Key::Savings);
    let screen = shown(&view, 80, 24);
    has(&screen, &["since the start", "sent", "on wire", "saved"]);
    has(&screen, &["site-b", "4.00 MB", "1.34 MB", "66.4 %"]);
    has(&screen, &["header compression", "150 kB"]);
    has(&screen, &["https (tcp 443)", "3.90 MB", "1.30 MB", "66.7 %", "3.00"]);
    has(&screen, &["zstd-3", "340"]);
}

#[test]
fn many_peers_are_bounded_and_counted() {
    let mut many = report();
    let one = many.peers[0].clone();
    many.peers.extend((0..9_999).map(|at| {
        let mut peer = one.clone();
        peer.name = format!("site-{at}");
        peer
    }));
    let mut view = view(many);
    view.press(Key::Savings);
    view.press(Key::NextPeer);
    let screen = shown(&view, 80, 24);
    has(&screen, &["peer site-0 (2 of 10000)"]);
    has(&screen, &["more peers"]);
    has(&screen, &["p next peer"]);
}

#[test]
fn ten_thousand_flows_are_bounded_and_the_selected_one_is_shown() {
    let mut many = report();
    many.decisions = Some((0..10_000).map(|at| decision(&format!("udp {at:05}"), 1_000)).collect());
    let mut view = view(many);
    let screen = shown(&view, 80, 24);
    let flows = screen.iter().filter(|line| line.ends_with("pays")).count();
    has(&screen, &[&format!("{} more", 10_000 - flows)]);
    for _ in 0..50 {
        view.press(Key::Down);
    }
    let screen = shown(&view, 80, 24);
    has(&screen, &["udp 00050", "1.00 kB"]);
    has(&screen, &[&format!("{} above, {} more", 51 - flows, 10_000 - 51)]);
}

#[test]
fn a_small_terminal_is_told_so_and_the_smallest_shows_a_flow() {
    for (columns, lines) in [(59, 30), (100, 11), (20, 2), (1, 1)] {
        let screen = shown(&busy(), columns, lines);
        let expected = "terminal too small";
        assert!(screen[0].starts_with(&expected[..usize::from(columns).min(expected.len())]), "{screen:?}");
    }
    let screen = shown(&busy(), 60, 12);
    has(&screen, &["10.77.0.2:5201", "560 kB", "2.5", "zstd-9"]);
    has(&screen, &["queue", "2.05 kB, delay 8 ms  RTT 58.4 ms  loss 1.2 %"]);
    let mut many = report();
    many.decisions = Some((0..5).map(|at| decision(&format!("udp {at}"), 9)).collect());
    has(&shown(&view(many), 60, 12), &["3 more"]);
    has(&screen, &["q quit  w why  s savings  j/k select", "? help"]);
    for key in [Key::Why, Key::Savings, Key::Help] {
        let mut view = busy();
        view.press(key);
        for columns in 1..=200 {
            let _ = shown(&view, columns, 12);
        }
    }
}

#[test]
fn help_names_every_key() {
    let mut view = busy();
    view.press(Key::Help);
    let screen = shown(&view, 80, 24);
    for words in
        [["q, Ctrl-C", "quit"], ["w", "why"], ["s", "saved"], ["up, down", "select"], ["p", "next peer"]]
    {
        has(&screen, &words);
    }
    has(&screen, &["This refreshes every 1 s"]);
}

#[test]
fn names_from_outside_have_no_control_characters() {
    let mut evil = report();
    evil.node.interface = "strait0\u{7}".to_owned();
    evil.peers[0].name = "site\u{1b}[2J\u{202e}b".to_owned();
    evil.peers[0].state = "up\r\n".to_owned();
    evil.peers[0].endpoint = Some("\u{9b}31m".to_owned());
    evil.drops[0].reason = "a\u{1b}]0;title\u{7}".to_owned();
    let mut flow = decision(&format!("tcp \u{1b}[31m{}", "x".repeat(100_000)), 5);
    flow.choice = "zstd\u{8}".to_owned();
    flow.domain = Some("do\u{1b}main".to_owned());
    evil.decisions = Some(vec![flow]);
    for colours in [false, true] {
        for page in [Page::Flows, Page::Why, Page::Savings] {
            let mut first = evil.clone();
            first.drops[0].packets = 0;
            let mut view = View::new(at(0, first), Duration::from_secs(1), colours);
            view.take(Ok(at(1_000, evil.clone())));
            view.page = page;
            let written = Rc::new(Cell::new(0));
            let mut out = Written { bytes: Vec::new(), count: Rc::clone(&written) };
            render(&mut out, &view);
            let text = String::from_utf8(out.bytes).unwrap();
            for bad in [
                "\u{1b}[2J",
                "\u{1b}[31m",
                "\u{1b}]0",
                "\u{9b}",
                "\u{202e}",
                "\u{7}",
                "\u{8}",
                "\r",
                "\u{1b}m",
            ] {
                // Colours that are ours are set with both grounds in one sequence.
                assert!(!text.contains(bad), "{bad:?} is in {text:?}");
            }
            view.take(Err("gone\u{1b}[2J".to_owned()));
            let mut out = Written { bytes: Vec::new(), count: written };
            render(&mut out, &view);
            assert!(!String::from_utf8(out.bytes).unwrap().contains("\u{1b}[2J"));
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    for (colours, expected) in [(false, false), (true, true)] {
        let mut view = busy();
        view.colours = colours;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &view)).unwrap();
        let coloured = terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(coloured, expected);
    }
}

#[test]
fn trouble_is_below_the_last_figures() {
    let mut view = busy();
    view.take(Err("no tunnel is running on strait0".to_owned()));
    let screen = shown(&view, 80, 24);
    has(&screen, &["trying again every 1 s: no tunnel is running on strait0"]);
    has(&screen, &["560 kB"]);
}

#[test]
fn what_is_too_long_loses_its_middle_and_words_are_wrapped() {
    assert_eq!(fitted("abcdef", 6), "abcdef");
    assert_eq!(fitted("abcdefg", 5), "ab~fg");
    assert_eq!(fitted("abc", 1), "~");
    assert_eq!(fitted("abc", 0), "");
    assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    assert_eq!(wrapped("", 7), [""]);
    assert_eq!(wrapped("abcdefgh i", 3), ["abcdefgh", "i"]);
}

/// Counts what a terminal is sent, and keeps it.
struct Written {
    bytes: Vec<u8>,
    count: Rc<Cell<usize>>,
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count.set(self.count.get() + bytes.len());
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn terminal<W: io::Write>(out: W) -> Terminal<CrosstermBackend<W>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, 80, 24));
    Terminal::with_options(CrosstermBackend::new(out), TerminalOptions { viewport }).unwrap()
}

fn render(out: &mut Written, view: &View) {
    terminal(out).draw(|frame| draw(frame, view)).unwrap();
}

/// A link of 9,600 bit/s carries 960 bytes a second (8N1); refreshes leave a third of it to keys and the rest of the session.
#[test]
fn a_refresh_of_a_quiet_tunnel_with_ten_flows_takes_less_than_600_bytes() {
    const REFRESHES: usize = 120;
    let mut told = report();
    let flows = |step: u64| {
        let one = |at: u64| {
            // Each flow varies by a fifth from second to second, as interactive traffic does: no two seconds are equal.
            let bytes = 1_000 * (at + 1) + (step * 7_919 + at * 104_729) % (200 * (at + 1));
            decision(&format!("tcp 10.77.0.1:{} -> 10.77.0.2:443", 40_000 + at), bytes)
        };
        (0..10).map(one).collect::<Vec<_>>()
    };
    told.decisions = Some(flows(0));
    let count = Rc::new(Cell::new(0));
    for colours in [false, true] {
        let mut view = View::new(at(0, told.clone()), Duration::from_secs(1), colours);
        count.set(0);
        let mut terminal = terminal(Written { bytes: Vec::new(), count: Rc::clone(&count) });
        terminal.draw(|frame| draw(frame, &view)).unwrap();
        let first = count.replace(0);
        let mut next = told.clone();
        for step in 1..=REFRESHES as u64 {
            next.node.uptime_seconds += 1.0;
            let peer = &mut next.peers[0];
            let bytes = 55_000 + step * 613 % 5_000;
            peer.sent.bytes += bytes;
            peer.sent.wire_bytes += bytes / 3;
            peer.received.bytes += bytes / 10;
            peer.received.wire_bytes += bytes / 20;
            peer.queue.bytes = step * 37 % 3_000;
            if let Some(path) = &mut peer.path {
                path.rtt_seconds = Some(0.05 + (step % 13) as f64 * 1e-3);
            }
            next.decisions = Some(flows(step));
            view.take(Ok(at(step * 1_000, next.clone())));
            terminal.draw(|frame| draw(frame, &view)).unwrap();
        }
        let each = count.get() / REFRESHES;
        println!("{each} bytes a refresh, {first} for the first screen, colours: {colours}");
        assert!(each < 600, "{each} bytes a refresh");
    }
}
