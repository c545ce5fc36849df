//! The person's terminal, at the client: characters as they are typed, and always put back as it was.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, Once, PoisonError};

use super::modes;
use super::pty::{PtySize, attributes};
use crate::process::checked;

/// What a terminal did before, for whatever ends the program.
static BEFORE: Mutex<Option<Saved>> = Mutex::new(None);
static HOOK: Once = Once::new();

#[derive(Clone, Copy)]
struct Saved {
    terminal: RawFd,
    termios: libc::termios,
}

/// Whether the descriptor is a terminal.
#[must_use]
pub fn is_terminal(descriptor: BorrowedFd<'_>) -> bool {
    attributes(descriptor.as_raw_fd()).is_ok()
}

/// A terminal that gives characters as they are typed; dropped, or when the program panics, it is as it was. There is one at a time.
#[derive(Debug)]
pub struct RawTerminal {
    terminal: OwnedFd,
}

impl RawTerminal {
    /// The terminal behind `descriptor`, which is left as it is until [`RawTerminal::begin`].
    ///
    /// # Errors
    /// When it is none.
    pub fn new(descriptor: BorrowedFd<'_>) -> io::Result<RawTerminal> {
        attributes(descriptor.as_raw_fd())?;
        Ok(RawTerminal { terminal: descriptor.try_clone_to_owned()? })
    }

    /// The modes that it has when it is not raw, as RFC 4254 section 8 encodes them.
    ///
    /// # Errors
    /// As `tcgetattr(3)`.
    pub fn modes(&self) -> io::Result<Vec<u8>> {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).map(|saved| saved.termios);
        let termios = before.map_or_else(|| attributes(self.terminal.as_raw_fd()), Ok)?;
        Ok(modes::encode(&termios))
    }

    /// The size of its window; zeros where that is not known.
    ///
    /// # Errors
    /// As `ioctl_tty(2)`.
    pub fn size(&self) -> io::Result<PtySize> {
        // SAFETY: all zeros is a valid winsize; the pointer is to a value that outlives the call.
        unsafe {
            let mut size: libc::winsize = std::mem::zeroed();
            checked(libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size))?;
            Ok(PtySize::of(size))
        }
    }

    /// From here on, characters come as they are typed, and are not shown; none is a signal.
    ///
    /// # Errors
    /// As `tcsetattr(3)`.
    pub fn begin(&self) -> io::Result<()> {
        let terminal = self.terminal.as_raw_fd();
        let termios = attributes(terminal)?;
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let mut saved = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.is_none() {
            *saved = Some(Saved { terminal, termios });
        }
        drop(saved);
        let mut raw = termios;
        // SAFETY: the pointers are to a whole termios that outlives the calls.
        unsafe {
            libc::cfmakeraw(&raw mut raw);
            checked(libc::tcsetattr(terminal, libc::TCSADRAIN, &raw const raw))
        }
    }

    /// Puts it back as it was.
    pub fn end(&self) {
        restore();
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was, if that has not been done.
fn restore() {
    let saved = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Saved { terminal, termios }) = saved {
        // SAFETY: the pointer is to a whole termios that outlives the call. A terminal that is gone is refused.
        unsafe { libc::tcsetattr(terminal, libc::TCSADRAIN, &raw const termios) };
    }
}

/// What the system tells a client of its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalSignal {
    /// The window has another size (SIGWINCH), or the program goes on after a stop (SIGCONT).
    Window,
    /// The program is to end, by this signal: SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    End(i32),
}

/// Signals as something to read, in place of what they do else.
#[derive(Debug)]
pub struct TerminalSignals(OwnedFd);

const ENDS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
const WINDOW: [libc::c_int; 2] = [libc::SIGWINCH, libc::SIGCONT];

impl TerminalSignals {
    /// From here on these signals are read. To be called before there is any thread.
    ///
    /// # Errors
    /// As `signalfd(2)`.
    pub fn take() -> io::Result<TerminalSignals> {
        // SAFETY: the set is a value of this function's, which outlives the calls; the descriptor made has no other owner.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in ENDS.into_iter().chain(WINDOW) {
                libc::sigaddset(&raw mut set, signal);
            }
            checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
            let made = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            checked(made)?;
            Ok(TerminalSignals(OwnedFd::from_raw_fd(made)))
        }
    }

    /// The next signal, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<TerminalSignal> {
        // SAFETY: all zeros is a valid signalfd_siginfo, of integers.
        let mut read: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let length = size_of_val(&read);
        // SAFETY: the pointer and length describe `read`, which outlives the call.
        let got = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut read).cast(), length) };
        if usize::try_from(got) != Ok(length) {
            return None;
        }
        let signal = i32::try_from(read.ssi_signo).unwrap_or(0);
        Some(if WINDOW.contains(&signal) { TerminalSignal::Window } else { TerminalSignal::End(signal) })
    }
}

impl AsFd for TerminalSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A file is opened so that reads and writes end at once where they would wait (`O_NONBLOCK`).
pub const NO_WAIT: i32 = libc::O_NONBLOCK;
/// A terminal that is opened does not become this process's own (`O_NOCTTY`).
pub const NO_CONTROLLING_TERMINAL: i32 = libc::O_NOCTTY;

/// Stops this program, as the key for it does in a shell; comes back when it goes on.
pub fn stop_self() {
    // SAFETY: takes integers.
    unsafe { libc::kill(0, libc::SIGTSTP) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::Pty;

    #[test]
    fn a_terminal_is_raw_for_a_while_and_then_as_it_was() {
        let size = PtySize { columns: 91, rows: 31, width: 0, height: 0 };
        let (pty, terminal) = Pty::open(size, &[]).unwrap();
        assert!(is_terminal(terminal.as_fd()));
        let (one, _other) = std::io::pipe().unwrap();
        assert!(!is_terminal(one.as_fd()));
        let raw = RawTerminal::new(terminal.as_fd()).unwrap();
        assert_eq!(raw.size().unwrap(), size);
        let modes = raw.modes().unwrap();
        raw.begin().unwrap();
        assert_eq!(pty.echo_and_canonical().unwrap(), (false, false));
        assert_eq!(raw.modes().unwrap(), modes, "those of before");
        raw.end();
        assert_eq!(pty.echo_and_canonical().unwrap(), (true, true));
        raw.begin().unwrap();
        drop(raw);
        assert_eq!(pty.echo_and_canonical().unwrap(), (true, true));
        let raw = RawTerminal::new(terminal.as_fd()).unwrap();
        raw.begin().unwrap();
        let panicked = std::panic::catch_unwind(|| panic!("on purpose"));
        assert!(panicked.is_err());
        assert_eq!(pty.echo_and_canonical().unwrap(), (true, true), "by the hook of panics");
        drop(raw);
    }
}
