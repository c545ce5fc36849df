//! What is typed and what a program answers, in any order: predictions leave the terminal as the session has it.

use core::num::NonZeroU16;
use core::time::Duration;

use strait_clock::Time;
use strait_login::prediction::{PredictMode, Predictor};
use strait_login::{TerminalModes, WindowSize};
use vt100::Parser;

/// The size, then steps: a byte with the kind in its lower three bits and a length above, and so many bytes.
pub fn check(data: &[u8]) {
    let [columns, rows, steps @ ..] = data else { return };
    let size = size(*columns, *rows);
    let mut predictor = Predictor::new(PredictMode::Always, size);
    let shown = parser(size);
    let mut terminals = Terminals { shown, plain: parser(size) };
    let (mut offset, mut now) = (0, Time::ZERO);
    let mut rest = steps;
    while let [step, following @ ..] = rest {
        let (bytes, others) = following.split_at(usize::from(step >> 3).min(following.len()));
        rest = others;
        now += Duration::from_millis(u64::from(*step));
        let out = match step & 7 {
            0 | 1 => {
                let mut out = predictor.typed(bytes, offset, now);
                offset += bytes.len() as u64;
                if step & 7 == 1 {
                    // An echo, at once.
                    out.extend(predictor.output(&answer(bytes), now));
                    terminals.plain.process(&answer(bytes));
                }
                out
            }
            2 => {
                terminals.plain.process(&answer(bytes));
                predictor.output(&answer(bytes), now)
            }
            3 => predictor.confirmed(offset, now),
            4 => {
                let front = bytes.first().copied().unwrap_or(0);
                predictor.modes(TerminalModes { echo: front & 1 != 0, canonical: front & 2 != 0 })
            }
            5 => {
                predictor.round_trip(Duration::from_millis(bytes.len() as u64 * 10));
                predictor.due(now)
            }
            6 => {
                terminals.plain.process(&answer(bytes));
                predictor.redrawn(&answer(bytes), now)
            }
            _ => terminals.resize(&mut predictor, bytes),
        };
        terminals.shown.process(&out);
        if !predictor.is_showing() {
            terminals.compare();
        }
        // What was due was done, so that a caller does not turn in a circle.
        terminals.shown.process(&predictor.due(now));
        assert!(predictor.deadline().is_none_or(|at| at > now), "{:?} at {now:?}", predictor.deadline());
    }
}

/// The real terminal, and one that has what the session sends alone.
struct Terminals {
    shown: Parser,
    plain: Parser,
}

impl Terminals {
    fn resize(&mut self, predictor: &mut Predictor, bytes: &[u8]) -> Vec<u8> {
        let [columns, rows, ..] = bytes else { return Vec::new() };
        let size = size(*columns, *rows);
        let out = predictor.resize(size);
        // The terminal has its new size before the client hears of it; here the row is taken back before.
        self.shown.process(&out);
        let (rows, columns) = cells(size);
        self.shown.set_size(rows, columns);
        self.plain.set_size(rows, columns);
        Vec::new()
    }

    fn compare(&self) {
        let (shown, plain) = (self.shown.screen(), self.plain.screen());
        assert_eq!(shown.contents_formatted(), plain.contents_formatted());
        assert_eq!(shown.attributes_formatted(), plain.attributes_formatted());
        assert_eq!(shown.cursor_position(), plain.cursor_position());
    }
}

/// `b` ends REP, which repeats what was written last, also what was written to take a prediction back; 0x8f ends U+FE0F, on which the
/// terminals here break off.
fn answer(bytes: &[u8]) -> Vec<u8> {
    let other = |byte: &u8| if [b'b', 0x8f].contains(byte) { byte + 1 } else { *byte };
    bytes.iter().map(other).collect()
}

/// Small, so that many inputs are tried.
fn size(columns: u8, rows: u8) -> WindowSize {
    WindowSize { columns: 1 + u16::from(columns % 50), rows: 1 + u16::from(rows % 8), width: 0, height: 0 }
}

fn parser(size: WindowSize) -> Parser {
    let (rows, columns) = cells(size);
    Parser::new(rows, columns, 0)
}

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let size = size.clamped();
    (NonZeroU16::new(size.rows).unwrap(), NonZeroU16::new(size.columns).unwrap())
}
