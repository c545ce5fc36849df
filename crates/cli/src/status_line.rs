//! A line on the terminal that is drawn again and goes away, as while a command waits for a peer.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use strait_node::report::DaemonReport;
use strait_stream::OPENING_MAX;

use crate::units::span;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;
/// The longest wait without a word on a terminal, and the pause before the line is drawn again.
const SECOND: Duration = Duration::from_secs(1);
/// The same where standard error is no terminal, which gets one line.
pub(crate) const ONCE: Duration = Duration::from_secs(3);

/// The last line of the terminal on standard error, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusLine {
    terminal: bool,
}

impl StatusLine {
    pub(crate) fn new() -> StatusLine {
        StatusLine { terminal: stderr().is_terminal() }
    }

    /// Returns true if there is a terminal.
    pub(crate) const fn is_shown(self) -> bool {
        self.terminal
    }

    /// Draws the line again, as much of it as the terminal is wide.
    pub(crate) fn draw(self, text: &str) {
        if self.terminal {
            // A terminal that is gone takes no line; the work goes on.
            let _ = write!(stderr(), "\r\u{1b}[K{}", cut(text, columns()));
        }
    }

    /// Removes the line.
    pub(crate) fn clear(self) {
        self.draw("");
    }

    /// Does `work`, which waits for `peer`, and says meanwhile what it waits for and how long, as `report` shows the node.
    pub(crate) fn waiting<T>(
        self,
        peer: &str,
        report: impl Fn() -> Option<DaemonReport> + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let (done, ended) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || self.say(peer, &report, &ended));
            let result = work();
            drop(done);
            result
        })
    }

    fn say(self, peer: &str, report: &dyn Fn() -> Option<DaemonReport>, ended: &Receiver<()>) {
        let begun = Instant::now();
        let every = if self.terminal { SECOND } else { ONCE };
        while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let line = waits_for(peer, report().as_ref(), begun.elapsed());
            if !self.terminal {
                let _ = writeln!(stderr(), "{line}");
                return;
            }
            self.draw(&line);
        }
        self.clear();
    }
}

/// Says for which peer a command waits, in which state that is, and how long it has waited of how long it will.
fn waits_for(peer: &str, report: Option<&DaemonReport>, waited: Duration) -> String {
    let peers = report.into_iter().flat_map(|report| &report.peers);
    let found = peers.into_iter().find(|it| it.name == peer);
    let place =
        found.and_then(|it| it.endpoint.as_ref()).map_or(String::new(), |place| format!(" at {place}"));
    let state = found.filter(|it| !it.is_up()).map_or(String::new(), |it| format!(": {}", it.condition()));
    format!("waiting for {peer}{place}{state} ({} of {})", span(waited), span(OPENING_MAX))
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Returns the beginning of `text` that fits into one column less than there are, as the cursor has one. A character that is not ASCII
/// counts twice, which is the most that it takes.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut room = columns.saturating_sub(1);
    let end = text.char_indices().find(|(_, character)| {
        let wide = if character.is_ascii() { 1 } else { 2 };
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        !fits
    });
    end.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends() {
        for (text, columns, shown) in [
            ("abcdef", 80, "abcdef"),
            ("abcdef", 7, "abcdef"),
            ("abcdef", 6, "abcde"),
            ("abcdef", 1, ""),
            ("abcdef", 0, ""),
            ("a日b", 5, "a日b"),
            ("a日b", 4, "a日"),
            ("a日b", 3, "a"),
        ] {
            assert_eq!(cut(text, columns), shown, "{text} in {columns}");
        }
    }

    #[test]
    fn a_wait_says_for_whom_and_how_long() {
        assert_eq!(waits_for("office", None, Duration::from_secs(12)), "waiting for office (12 s of 30 s)");
    }
}
