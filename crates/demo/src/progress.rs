//! What is shown while files move: a bar on a terminal, a line a file elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strait_terminal::colours;
use strait_terminal::output::note;
use strait_terminal::units;
use strait_testbed::sample::SampleFile;

use crate::path::DemoPath;
use crate::result::Moved;
use crate::stage::DemoVariant;

/// Tells how far the demonstration is, on standard error.
#[derive(Debug)]
pub(crate) struct DemoProgress {
    bar: ProgressBar,
    /// Bytes of files that have arrived before the present one.
    before: u64,
    name_width: usize,
}

impl DemoProgress {
    /// Says what is about to happen.
    pub(crate) fn new(files: &[SampleFile], path: DemoPath) -> DemoProgress {
        let total: u64 = files.iter().map(|file| file.bytes.len() as u64).sum();
        let passes = (DemoVariant::ALL.len() * path.link.passes()) as u64;
        note(format_args!(
            "two hosts, {} between them, {} files of {} together, moved {passes} times",
            path.words(),
            files.len(),
            units::bytes(total)
        ));
        let bar = ProgressBar::with_draw_target(Some(total * passes), ProgressDrawTarget::stderr());
        let template = if colours(&std::io::stderr()) {
            "{msg:34} {bar:30.cyan/blue} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {elapsed} of about {duration}"
        } else {
            "{msg:34} {bar:30} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {elapsed} of about {duration}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let name_width = files.iter().map(|file| file.name.chars().count()).max().unwrap_or(0);
        DemoProgress { bar, before: 0, name_width }
    }

    /// A way is being prepared.
    pub(crate) fn prepare(&self, way: DemoVariant) {
        let text = match way {
            DemoVariant::Plain => "plain link".to_owned(),
            DemoVariant::Tunnel | DemoVariant::Compressed => {
                format!("{}: two daemons shake hands", way.words())
            }
        };
        self.say(&text);
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// A file starts.
    pub(crate) fn begin(&self, way: DemoVariant, file: &SampleFile) {
        self.bar.set_message(format!("{}: {}", way.words(), file.name));
    }

    /// So many bytes of the present file have arrived.
    pub(crate) fn at(&self, bytes: u64) {
        self.bar.set_position(self.before + bytes);
    }

    /// A file has arrived.
    pub(crate) fn end(&mut self, file: &SampleFile, moved: &Moved) {
        self.before += file.bytes.len() as u64;
        self.bar.set_position(self.before);
        self.say(&format!(
            "  {:width$}  {:>8} in {:6.2} s, {:>8} on the wire",
            file.name,
            units::bytes(file.bytes.len() as u64),
            moved.took.as_secs_f64(),
            units::bytes(moved.wire.bytes()),
            width = self.name_width,
        ));
    }

    /// All is done.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// A line that stays, above the bar where there is one.
    fn say(&self, text: &str) {
        if self.bar.is_hidden() {
            note(text);
        } else {
            self.bar.println(text);
        }
    }
}
