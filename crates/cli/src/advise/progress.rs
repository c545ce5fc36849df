//! What is shown while files are read, once that has taken a while: a bar on a terminal, now and then a line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::colours;
use crate::units;

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a line says how far it is where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// Tells how far reading is, on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    name: String,
    /// Bytes of files before the present one.
    before: u64,
    total: u64,
    /// When something is to be shown next.
    next: Instant,
}

impl Progress {
    /// Nothing to be seen yet of `total` bytes.
    pub(super) fn new(total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = if colours(&std::io::stderr()) {
            "{msg:34} {bar:30.cyan/blue} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {elapsed} of about {duration}"
        } else {
            "{msg:34} {bar:30} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {elapsed} of about {duration}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, name: String::new(), before: 0, total, next: Instant::now() + PATIENCE }
    }

    /// A file begins.
    pub(super) fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.bar.set_message(self.name.clone());
    }

    /// So many bytes of the present file have been read.
    pub(super) fn at(&mut self, bytes: u64) {
        let done = self.before + bytes;
        self.bar.set_position(done);
        if self.bar.is_hidden() && Instant::now() >= self.next {
            self.next = Instant::now() + LINES;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // No terminal: the bar stays hidden.
            if self.bar.is_hidden() {
                eprintln!("{}: {} of {} read", self.name, units::bytes(done), units::bytes(self.total));
            }
        }
    }

    /// A file of so many bytes is read.
    pub(super) fn end(&mut self, len: u64) {
        self.before += len;
        self.bar.set_position(self.before);
    }

    /// All is done.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
