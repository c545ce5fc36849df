//! `top`: a running tunnel on the whole screen of a terminal.
//!
//! ```text
//! here      the loop: keys, signals, answers, the screen
//! polling   asks the daemon, on a thread of its own
//! figures   rates and flows from two answers
//! view      what the person looks at
//! draw      the view as text
//! keys      what a terminal sends
//! ```
//!
//! The terminal is written by ratatui, which sends what changed. It is read here: a library that reads it does not end when it is gone.

mod draw;
mod figures;
mod keys;
mod polling;
#[cfg(test)]
mod samples;
mod view;

use std::io::{self, IsTerminal, Stdout, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};
use strait_node::login::{RawTerminal, TerminalSignal, TerminalSignals};
use strait_node::poll::{self, PollFd};

use self::keys::keys;
use self::polling::Polling;
use self::view::{Step, View};
use crate::failure::{Code, CommandResult, Failure, colours};
use crate::flags;
use crate::running;

/// The screen of its own that xterm and its like have, with an invisible cursor; and back, with colours as they were.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Bytes of keys that one read takes.
const KEYS: usize = 256;
/// How soon a terminal that takes no more bytes is tried again.
const TERMINAL_FULL: Duration = Duration::from_millis(50);

/// Shows a tunnel until the person quits.
pub(crate) fn run(flags: &flags::TopFlags) -> CommandResult {
    is_terminal()?;
    let interface = running::which(&flags.which)?;
    // Before there is a thread, which would have them else.
    let signals = TerminalSignals::take().map_err(Failure::doing("hear of signals"))?;
    let (polling, first) = Polling::start(interface, flags.every)?;
    let view = View::new(first, flags.every, colours(&io::stdout()));
    // What is wrong with the terminal in the middle leaves nothing to say it on but standard error.
    let screen = Screen::enter().map_err(Failure::doing("use the terminal"))?;
    Top { screen, signals, polling, view }.run()
}

fn is_terminal() -> CommandResult {
    let missing = if !io::stdout().is_terminal() {
        "standard output is no terminal"
    } else if !io::stdin().is_terminal() {
        "standard input is no terminal"
    } else if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        "this terminal cannot move its cursor (TERM is dumb)"
    } else {
        return Ok(());
    };
    Err(Failure::new(format!("top needs a terminal: {missing}"))
        .remedy("use `strait show` for people, `strait show --json` for programs")
        .code(Code::Environment))
}

/// The terminal while it is this program's: put back when this is dropped, or on a panic.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    raw: RawTerminal,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        let raw = RawTerminal::new(io::stdin().as_fd())?;
        raw.begin()?;
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // So that it is seen what went wrong.
            let _ = leave();
            hook(panic);
        }));
        let mut out = io::stdout();
        out.write_all(ENTER)?;
        out.flush()?;
        match Terminal::new(CrosstermBackend::new(io::stdout())) {
            Ok(terminal) => Ok(Screen { terminal, raw }),
            Err(error) => leave().and(Err(error)),
        }
    }
}

impl Screen {
    /// Has every cell drawn again. `Terminal::clear` would ask the terminal where its cursor is, and wait for that.
    fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }
}

fn leave() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(LEAVE)?;
    out.flush()
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = leave();
        self.raw.end();
    }
}

struct Top {
    screen: Screen,
    signals: TerminalSignals,
    polling: Polling,
    view: View,
}

impl Top {
    fn run(mut self) -> CommandResult {
        let mut dirty = true;
        loop {
            if dirty && self.has_room()? {
                let view = &self.view;
                self.screen.terminal.draw(|frame| draw::draw(frame, view)).map_err(lost)?;
                dirty = false;
            }
            match self.wait(dirty)? {
                Some(Step::Quit) => return Ok(()),
                Some(Step::Interrupt) => return Err(ended(2)),
                Some(Step::Redraw) => {
                    self.screen.clear().map_err(lost)?;
                    dirty = true;
                }
                Some(Step::Draw) => dirty = true,
                None => {}
            }
        }
    }

    /// Whether the terminal takes bytes: what a thin link to it has not yet carried is not waited for, so that keys and signals are
    /// heard.
    fn has_room(&self) -> Result<bool, Failure> {
        let out = io::stdout();
        let mut room = [PollFd::writable(out.as_fd())];
        poll::wait(&mut room, Some(Duration::ZERO)).map_err(lost)?;
        Ok(room[0].is_ready())
    }

    /// Sleeps until there is a key, a signal or an answer; what to do then.
    fn wait(&mut self, undrawn: bool) -> Result<Option<Step>, Failure> {
        let stdin = io::stdin();
        let mut all = [
            PollFd::readable(stdin.as_fd()),
            PollFd::readable(self.signals.as_fd()),
            PollFd::readable(self.polling.as_fd()),
        ];
        poll::wait(&mut all, undrawn.then_some(TERMINAL_FULL)).map_err(lost)?;
        let [typed, signal, answer] = all.each_ref().map(PollFd::is_ready);
        let mut step = None;
        if answer {
            self.view.take(self.polling.next()?);
            step = Some(Step::Draw);
        }
        while signal && let Some(told) = self.signals.next() {
            match told {
                TerminalSignal::End(number) => return Err(ended(number)),
                TerminalSignal::Window => step = Some(Step::Redraw),
            }
        }
        if typed {
            let mut buffer = [0; KEYS];
            let got = match rustix::io::read(&stdin, &mut buffer) {
                Ok(0) => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
                Err(rustix::io::Errno::INTR) => 0,
                other => other.map_err(|error| lost(error.into()))?,
            };
            for key in keys(buffer.get(..got).unwrap_or_default()) {
                match self.view.press(key) {
                    end @ (Step::Quit | Step::Interrupt) => return Ok(Some(end)),
                    Step::Redraw => step = Some(Step::Redraw),
                    Step::Draw => step = step.or(Some(Step::Draw)),
                }
            }
        }
        Ok(step)
    }
}

fn ended(signal: i32) -> Failure {
    Failure::new(format!("ended by signal {signal}")).code(Code::Signal(signal))
}

fn lost(error: io::Error) -> Failure {
    Failure::doing("use the terminal")(error)
}

#[cfg(test)]
mod tests;
