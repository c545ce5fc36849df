//! A pseudo-terminal (pty(7)), from the side of the program that serves it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::modes;
use crate::process::checked;

/// Columns, rows, and what a screen has in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtySize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
    /// Pixels across; 0 if they are not known.
    pub width: u16,
    /// Pixels down; 0 if they are not known.
    pub height: u16,
}

impl PtySize {
    pub(super) const fn system(self) -> libc::winsize {
        libc::winsize {
            ws_row: self.rows,
            ws_col: self.columns,
            ws_xpixel: self.width,
            ws_ypixel: self.height,
        }
    }

    pub(super) const fn of(size: libc::winsize) -> PtySize {
        PtySize { columns: size.ws_col, rows: size.ws_row, width: size.ws_xpixel, height: size.ws_ypixel }
    }
}

/// The side of a pseudo-terminal that a program serves. Reads and writes do not wait.
#[derive(Debug)]
pub struct Pty(File);

impl Pty {
    /// A new one, and the descriptor that programs have as their terminal. It belongs to this process's user.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn open(size: PtySize, terminal_modes: &[u8]) -> io::Result<(Pty, OwnedFd)> {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: takes an integer; the descriptor it makes has no other owner.
        let pty = unsafe {
            let opened = libc::posix_openpt(flags | libc::O_NONBLOCK);
            checked(opened)?;
            Pty(File::from(OwnedFd::from_raw_fd(opened)))
        };
        let fd = pty.0.as_raw_fd();
        // SAFETY: takes a descriptor.
        unsafe {
            checked(libc::grantpt(fd))?;
            checked(libc::unlockpt(fd))?;
        }
        // By the descriptor, so that it is this one whatever is mounted at /dev/pts (TIOCGPTPEER, Linux 4.13).
        // SAFETY: takes integers; the descriptor it makes has no other owner.
        let terminal = unsafe {
            let opened = libc::ioctl(fd, libc::TIOCGPTPEER, flags);
            checked(opened)?;
            OwnedFd::from_raw_fd(opened)
        };
        pty.resize(size)?;
        set_modes(&terminal, terminal_modes)?;
        Ok((pty, terminal))
    }

    /// What it is called, such as `/dev/pts/3`.
    ///
    /// # Errors
    /// When it is none.
    pub fn name(&self) -> io::Result<PathBuf> {
        name_of(self.0.as_fd())
    }

    /// Gives it another size, of which the programs in front are told (SIGWINCH).
    ///
    /// # Errors
    /// As `ioctl_tty(2)`.
    pub fn resize(&self, size: PtySize) -> io::Result<()> {
        let size = size.system();
        // SAFETY: the pointer is to a whole winsize that outlives the call.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })
    }

    /// Whether what is typed is shown, and whether lines are edited before programs get them.
    ///
    /// # Errors
    /// As `tcgetattr(3)`.
    pub fn echo_and_canonical(&self) -> io::Result<(bool, bool)> {
        let termios = attributes(self.0.as_raw_fd())?;
        Ok((termios.c_lflag & libc::ECHO != 0, termios.c_lflag & libc::ICANON != 0))
    }

    /// The character that ends a line of input without one, as a person types it at the end of a file; nothing where programs get
    /// characters as they are typed.
    #[must_use]
    pub fn end_of_file(&self) -> Option<u8> {
        let termios = attributes(self.0.as_raw_fd()).ok()?;
        let character = termios.c_cc.get(libc::VEOF).copied()?;
        (termios.c_lflag & libc::ICANON != 0 && character != 0).then_some(character)
    }

    /// The process group in front.
    ///
    /// # Errors
    /// When there is none.
    pub fn foreground(&self) -> io::Result<i32> {
        let mut group: libc::pid_t = 0;
        // SAFETY: the pointer is to an integer that outlives the call.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) })?;
        if group > 1 { Ok(group) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Sends a signal to the programs in front. By the terminal where that can be, so that it also reaches those of other users, such as
    /// `sudo`.
    ///
    /// # Errors
    /// As `ioctl(2)` and `kill(2)`.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP].contains(&signal) {
            // SAFETY: takes integers (TIOCSIG, Linux 2.6.36).
            return checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCSIG, signal) });
        }
        super::signals::signal_group(self.foreground()?, signal)
    }
}

impl io::Read for &Pty {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(bytes)
    }
}

impl io::Write for &Pty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The name of the terminal of a pseudo-terminal's serving side.
pub(super) fn name_of(pty: BorrowedFd<'_>) -> io::Result<PathBuf> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the pointer is to an integer that outlives the call.
    checked(unsafe { libc::ioctl(pty.as_raw_fd(), libc::TIOCGPTN, &raw mut number) })?;
    Ok(PathBuf::from(format!("/dev/pts/{number}")))
}

/// Whether the terminal of this name is the user's.
pub(super) fn check_owner(terminal: &Path, user: u32) -> io::Result<()> {
    let found = std::fs::symlink_metadata(terminal)?;
    if found.file_type().is_char_device() && found.uid() == user {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the terminal is another user's"))
    }
}

/// What a terminal does.
pub(super) fn attributes(terminal: RawFd) -> io::Result<libc::termios> {
    // SAFETY: all zeros is a valid termios; the pointer is to a value that outlives the call.
    unsafe {
        let mut termios: libc::termios = std::mem::zeroed();
        checked(libc::tcgetattr(terminal, &raw mut termios))?;
        Ok(termios)
    }
}

/// Has reads and writes of a descriptor end at once where they would wait.
///
/// # Errors
/// As `fcntl(2)`.
pub fn do_not_wait(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes integers.
    unsafe {
        let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
        checked(flags)?;
        checked(libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))
    }
}

fn set_modes(terminal: &OwnedFd, terminal_modes: &[u8]) -> io::Result<()> {
    let mut termios = attributes(terminal.as_raw_fd())?;
    modes::apply(terminal_modes, &mut termios);
    // SAFETY: the pointer is to a whole termios that outlives the call.
    checked(unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const termios) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    const SIZE: PtySize = PtySize { columns: 80, rows: 24, width: 0, height: 0 };

    #[test]
    fn what_is_written_is_echoed_until_the_terminal_is_told_otherwise() {
        let (pty, terminal) = Pty::open(SIZE, &[]).unwrap();
        assert!(pty.name().unwrap().starts_with("/dev/pts"));
        assert_eq!(pty.echo_and_canonical().unwrap(), (true, true));
        assert_eq!(pty.end_of_file(), Some(4));
        let mut bytes = [0; 16];
        assert_eq!((&pty).read(&mut bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        (&pty).write_all(b"a").unwrap();
        let start = std::time::Instant::now();
        while (&pty).read(&mut bytes).is_err() {
            assert!(start.elapsed().as_secs() < 60);
        }
        assert_eq!(bytes[0], b'a');
        // ECHO and ICANON off.
        set_modes(&terminal, &[53, 0, 0, 0, 0, 51, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(pty.echo_and_canonical().unwrap(), (false, false));
        assert_eq!(pty.end_of_file(), None);
    }

    #[test]
    fn a_terminal_of_another_user_is_told_from_ones_own() {
        let (pty, _terminal) = Pty::open(SIZE, &[]).unwrap();
        let (name, own) = (pty.name().unwrap(), crate::privileges::user());
        check_owner(&name, own).unwrap();
        assert!(check_owner(&name, own + 1).is_err());
        assert!(check_owner(Path::new("/dev/pts/nothing"), own).is_err());
        assert!(check_owner(Path::new("/"), 0).is_err(), "no terminal");
    }

    #[test]
    fn sizes_reach_the_terminal() {
        let (pty, terminal) = Pty::open(SIZE, &[]).unwrap();
        let size = PtySize { columns: 1000, rows: 1, width: 7, height: 9 };
        pty.resize(size).unwrap();
        // SAFETY: the pointer is to a whole winsize that outlives the call.
        let told = unsafe {
            let mut told: libc::winsize = std::mem::zeroed();
            checked(libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut told)).unwrap();
            PtySize::of(told)
        };
        assert_eq!(told, size);
        assert!(pty.foreground().is_err(), "no session has it");
    }
}
