//! What is shown of work that takes a while: a bar on a terminal, now and then a line elsewhere; nothing of what is soon
//! over.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::colours;
use crate::output::note;

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a line says how far it is where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// Tells how far something is, on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// When something is to be shown next.
    next: Instant,
}

impl Progress {
    /// Nothing to be seen yet; `amounts` is how the bar says how much is done, in indicatif's words.
    pub fn new(amounts: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let colour = if colours(&std::io::stderr()) { ".cyan/blue" } else { "" };
        let template = format!("{{msg:34}} {{bar:30{colour}}} {amounts}  {{elapsed}} of about {{duration}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Progress { bar, next: Instant::now() + PATIENCE }
    }

    /// So much of `total` is done, and this is being done; `line` says so where there is no terminal.
    pub fn at(&mut self, done: u64, total: u64, what: &str, line: impl FnOnce() -> String) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if self.bar.message() != what {
            self.bar.set_message(what.to_owned());
        }
        if self.bar.is_hidden() && Instant::now() >= self.next {
            self.next = Instant::now() + LINES;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // No terminal: the bar stays hidden.
            if self.bar.is_hidden() {
                note(line());
            }
        }
    }

    /// All is done.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
