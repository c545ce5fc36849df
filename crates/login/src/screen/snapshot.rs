//! A state of a terminal.

use vt100::Screen;

use super::modes::ChangedModes;
use super::sifter::Charsets;

/// What the model does not tell, but shows when it is asked by escape sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    /// The first and the last row of the region that scrolls.
    pub(super) region: (u16, u16),
    /// Whether positions count from the region.
    pub(super) origin: bool,
    /// Where the saved cursor is.
    pub(super) saved: (u16, u16),
}

/// A state of a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// What it shows.
    pub(super) shown: Screen,
    /// The main screen, if it shows the alternate one.
    pub(super) main: Option<Screen>,
    pub(super) hidden: Hidden,
    pub(super) charsets: Charsets,
    pub(super) modes: ChangedModes,
    pub(super) title: String,
    pub(super) bells: u64,
}

impl Snapshot {
    pub(super) fn new(
        screen: &Screen,
        charsets: Charsets,
        modes: ChangedModes,
        (title, bells): (&str, u64),
    ) -> Snapshot {
        let main = screen.alternate_screen().then(|| asked(screen, b"\x1b[?47l"));
        Snapshot {
            shown: screen.clone(),
            main,
            hidden: hidden(screen),
            charsets,
            modes,
            title: title.to_owned(),
            bells,
        }
    }

    pub(crate) fn modes(&self) -> &ChangedModes {
        &self.modes
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.main.is_some()
    }

    /// The main screen.
    pub(super) fn main(&self) -> &Screen {
        self.main.as_ref().unwrap_or(&self.shown)
    }
}

/// The screen after these bytes.
fn asked(screen: &Screen, bytes: &[u8]) -> Screen {
    let (rows, columns) = screen.size();
    let mut parser = vt100::Parser::new(rows, columns, 0);
    *parser.screen_mut() = screen.clone();
    parser.process(bytes);
    parser.screen().clone()
}

fn hidden(screen: &Screen) -> Hidden {
    let row = |bytes: &[u8]| asked(screen, bytes).cursor_position().0;
    let region = (row(b"\x1b[?6h\x1b[H"), row(b"\x1b[?6h\x1b[65535;1H"));
    // With fewer rows every region is the whole screen, where both ways to count are the same.
    let origin = screen.size().0.get() > 2 && row(b"\x1b[2;3r\x1b[H") == 1;
    Hidden { region, origin, saved: asked(screen, b"\x1b8").cursor_position() }
}
