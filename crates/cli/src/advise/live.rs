//! Traffic as it passes an interface.

use std::io::{ErrorKind, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strait_advise::report::Input;
use strait_advise::{CaptureKind, CapturedFrame, LinkType, TunnelReplay, TunnelVariant};
use strait_node::clock::Clock;
use strait_node::interrupt;
use strait_node::poll::{PollFd, wait};
use strait_node::tap::{Framing, Tap};

use super::amounts::percent;
use crate::failure::{Code, Failure};
use crate::output::note;
use crate::units;

/// How often the running line is written anew on a terminal.
const EVERY: Duration = Duration::from_millis(500);
/// How often a line says how far it is where there is no terminal.
const LINES: Duration = Duration::from_secs(10);
/// Frames that are read between two looks at the clock.
const AT_ONCE: usize = 256;

/// An interface and its name.
pub(super) struct Watched {
    name: String,
    tap: Tap,
}

/// Begins to watch an interface.
pub(super) fn open(name: &str) -> Result<Watched, Failure> {
    let tap = Tap::open(name).map_err(|error| {
        let failure = Failure::new(format!("cannot capture from {name}: {error}"));
        match error.kind() {
            ErrorKind::NotFound => failure.remedy("`ip link` lists the interfaces"),
            ErrorKind::PermissionDenied => {
                failure.remedy("run it as root, or give it CAP_NET_RAW").code(Code::Environment)
            }
            _ => failure,
        }
    })?;
    Ok(Watched { name: name.to_owned(), tap })
}

/// Replays what passes for so long, or until a signal asks for the end.
pub(super) fn watch(
    watched: Watched,
    span: Option<Duration>,
    replay: &mut TunnelReplay,
) -> Result<Input, Failure> {
    let Watched { name, mut tap } = watched;
    interrupt::watch();
    let clock = Clock::start();
    let mut line = LiveLine::new(&name);
    let mut input =
        Input { name, kind: Some(CaptureKind::Interface), frames: 0, dropped_frames: 0, error: None };
    replay.begin(None);
    // A signal is how watching ends, unless there is an end to wait for.
    while interrupt::signal().is_none() {
        let passed = clock.now().since(strait_clock::Time::ZERO);
        let left = span.map_or(EVERY, |span| span.saturating_sub(passed).min(EVERY));
        if left.is_zero() {
            break;
        }
        line.tell(replay, input.frames, passed);
        wait(&mut [PollFd::readable(tap.as_fd())], Some(left)).map_err(Failure::doing("wait for frames"))?;
        if let Err(error) = take(&mut tap, &clock, replay, &mut input) {
            input.error = Some(format!("capture stopped: {error}"));
            break;
        }
    }
    input.dropped_frames = tap.missed();
    line.end();
    Ok(input)
}

/// Replays the frames that wait, up to a number.
fn take(tap: &mut Tap, clock: &Clock, replay: &mut TunnelReplay, input: &mut Input) -> std::io::Result<()> {
    let link = match tap.framing() {
        Framing::Ethernet => LinkType::ETHERNET,
        Framing::Ip => LinkType::RAW,
    };
    for _ in 0..AT_ONCE {
        let Some(frame) = tap.frame()? else { break };
        let frame = CapturedFrame { at: clock.now(), link, bytes: frame.bytes, len: frame.len };
        // Both link types are known.
        let _ = replay.frame(&frame);
        input.frames += 1;
    }
    Ok(())
}

/// What is shown while watching, on standard error.
struct LiveLine {
    bar: Option<ProgressBar>,
    next: Duration,
}

impl LiveLine {
    fn new(name: &str) -> LiveLine {
        note(format_args!("capturing from {name}; stop with Ctrl-C"));
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.with_style(ProgressStyle::with_template("{msg}").unwrap_or(ProgressStyle::default_bar()))
        });
        LiveLine { next: if bar.is_some() { EVERY } else { LINES }, bar }
    }

    fn tell(&mut self, replay: &TunnelReplay, frames: u64, passed: Duration) {
        if passed < self.next {
            return;
        }
        let [plain, both] = [TunnelVariant::Plain, TunnelVariant::History].map(|way| replay.wire(way));
        let words = format!(
            "{}: {}, {}; plain tunnel {}, with aggregation and compression {} ({} saved)",
            units::span(passed),
            units::counted(frames, "frame"),
            units::bytes(replay.bytes()),
            units::bytes(plain),
            units::bytes(both),
            percent(plain as f64 - both as f64, plain as f64)
        );
        match &self.bar {
            Some(bar) => bar.set_message(words),
            None => note(words),
        }
        self.next = passed + if self.bar.is_some() { EVERY } else { LINES };
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
