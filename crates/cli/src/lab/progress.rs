//! What is shown while figures are measured, once that has taken a while: a bar on a terminal, now and then a line
//! elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strait_lab::Step;

use crate::failure::colours;

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a line says how far it is where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// Tells how far a report is, on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    /// When something is to be shown next.
    next: Instant,
}

impl Progress {
    /// Nothing to be seen yet.
    pub(super) fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let template = if colours(&std::io::stderr()) {
            "{msg:34} {bar:30.cyan/blue} {pos} of {len}  {elapsed} of about {duration}"
        } else {
            "{msg:34} {bar:30} {pos} of {len}  {elapsed} of about {duration}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, next: Instant::now() + PATIENCE }
    }

    /// A step begins.
    pub(super) fn at(&mut self, step: Step<'_>) {
        self.bar.set_length(step.of as u64);
        self.bar.set_position(step.done as u64);
        self.bar.set_message(step.what.to_owned());
        if self.bar.is_hidden() && Instant::now() >= self.next {
            self.next = Instant::now() + LINES;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // No terminal: the bar stays hidden.
            if self.bar.is_hidden() {
                eprintln!("{}, {} of {}", step.what, step.done, step.of);
            }
        }
    }

    /// All is done.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
