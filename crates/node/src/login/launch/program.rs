//! What a process does to become the account's program: user, signals, variables, descriptors.

use std::ffi::{CString, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use super::super::account::Account;
use super::super::signals::unblock;
use super::{Launch, Surroundings};
use crate::process::{ProcessChannel, checked};

/// Where programs are found, as sshd of distributions has it.
const PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";
const ROOT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where letters are (hier(7)).
const MAIL: &[u8] = b"/var/mail/";
/// The real-time signals end here (signal(7)).
const SIGNAL_MAX: libc::c_int = 64;

/// A session of its own, the account's user, signals as programs expect them.
pub(super) fn prepare(account: &Account) -> io::Result<()> {
    // SAFETY: takes nothing. It fails for the leader of a group, which a process that was just made is not.
    checked(unsafe { libc::setsid() })?;
    account.become_user()?;
    for signal in 1..=SIGNAL_MAX {
        // SAFETY: the default is no handler of this program's. For two signals it is refused, which changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock()
}

pub(super) fn become_program(
    channel: &ProcessChannel,
    account: &Account,
    with: &Surroundings,
) -> io::Result<()> {
    let (message, descriptors) = channel.receive()?;
    let launch = Launch::decode(&message).ok_or(io::ErrorKind::InvalidData)?;
    let arguments = arguments(account, &launch)?;
    let environment = environment(account, &launch, with);
    let environment: Vec<CString> = environment.into_iter().filter_map(|it| CString::new(it).ok()).collect();
    let shell = CString::new(account.shell.as_os_str().as_bytes())?;
    // Said before standard error is the program's.
    if std::env::set_current_dir(&account.home).is_err() {
        std::env::set_current_dir("/")?;
    }
    take_over(&launch, &descriptors)?;
    if launch.terminal && launch.command.is_none() && !with.said.is_empty() {
        let _ = io::stdout().write_all(&with.said).and_then(|()| io::stdout().flush());
    }
    close_the_rest();
    let pointers =
        |all: &[CString]| all.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
    let (arguments, environment) = (pointers(&arguments), pointers(&environment));
    // SAFETY: texts that end in zero bytes, and arrays of pointers to such that end with a null pointer; all outlive the call.
    unsafe { libc::execve(shell.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    let error = io::Error::last_os_error();
    Err(io::Error::other(format!("cannot run the shell {}: {error}", account.shell.display())))
}

/// A login shell has a dash before its name (bash(1), login(1)); a command is given to the shell.
fn arguments(account: &Account, launch: &Launch) -> io::Result<Vec<CString>> {
    let name = account.shell.file_name().unwrap_or(OsStr::new("sh")).as_bytes();
    let texts = match &launch.command {
        None => vec![[&b"-"[..], name].concat()],
        Some(command) => vec![name.to_vec(), b"-c".to_vec(), command.clone()],
    };
    texts.into_iter().map(|text| CString::new(text).map_err(io::Error::other)).collect()
}

/// Variables as NAME=VALUE: what the client wished, then what the account has, then what PAM's modules set; the later one counts.
fn environment(account: &Account, launch: &Launch, with: &Surroundings) -> Vec<Vec<u8>> {
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut set = |name: &[u8], value: &[u8]| {
        if name.is_empty() || name.contains(&b'=') {
            return;
        }
        all.retain(|(other, _)| other != name);
        all.push((name.to_vec(), value.to_vec()));
    };
    for (name, value) in &launch.environment {
        set(name, value);
    }
    set(b"USER", account.name.as_bytes());
    set(b"LOGNAME", account.name.as_bytes());
    set(b"HOME", account.home.as_os_str().as_bytes());
    set(b"SHELL", account.shell.as_os_str().as_bytes());
    set(b"PATH", if account.user == 0 { ROOT_PATH } else { PATH });
    set(b"MAIL", &[MAIL, account.name.as_bytes()].concat());
    set(b"STRAIT_PEER", with.peer.as_bytes());
    set(b"STRAIT_PRINCIPAL", with.principal.as_deref().unwrap_or_default().as_bytes());
    for variable in with.environment.iter().chain(&with.cache) {
        if let Some(at) = variable.iter().position(|byte| *byte == b'=') {
            set(&variable[..at], &variable[at + 1..]);
        }
    }
    all.into_iter().map(|(name, value)| [name, b"=".to_vec(), value].concat()).collect()
}

/// Makes the descriptors standard input, output and error, and the terminal that of the session.
fn take_over(launch: &Launch, descriptors: &[OwnedFd]) -> io::Result<()> {
    let all: [BorrowedFd<'_>; 3] = match descriptors {
        [terminal] if launch.terminal => [terminal.as_fd(); 3],
        [input, output, errors] if !launch.terminal => [input.as_fd(), output.as_fd(), errors.as_fd()],
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    if launch.terminal {
        let [terminal, ..] = all;
        // SAFETY: takes integers.
        checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
    }
    for (number, descriptor) in (0..).zip(all) {
        // SAFETY: takes integers; received descriptors are above these three, which nothing here owns.
        checked(unsafe { libc::dup2(descriptor.as_raw_fd(), number) })?;
    }
    Ok(())
}

/// Has the kernel close all descriptors but the first three when the program starts.
fn close_the_rest() {
    let (first, last, flags): (libc::c_uint, libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX, CLOEXEC);
    // SAFETY: takes integers (Linux 5.11); by number, as older C libraries lack it.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0 {
        return;
    }
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<libc::c_int>().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<_>>() {
        // SAFETY: takes integers.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// `CLOSE_RANGE_CLOEXEC` (`linux/close_range.h`).
const CLOEXEC: libc::c_uint = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let (home, shell) = ("/home/a".into(), "/usr/bin/zsh".into());
        Account { name: "a".to_owned(), user: 7, group: 9, home, shell }
    }

    #[test]
    fn a_client_cannot_set_what_the_account_or_pam_has() {
        let variable = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let launch = Launch {
            environment: vec![
                variable("LANG", "C"),
                variable("PATH", "/tmp"),
                variable("X", "1"),
                variable("KRB5CCNAME", "FILE:/tmp/other"),
                variable("STRAIT_PRINCIPAL", "root@R"),
                variable("A=B", "x"),
            ],
            ..Launch::default()
        };
        let with = Surroundings {
            environment: vec![b"X=2".to_vec(), b"nothing".to_vec()],
            said: Vec::new(),
            peer: "b".to_owned(),
            principal: Some("alice@R".to_owned()),
            cache: Some(b"KRB5CCNAME=FILE:/run/x".to_vec()),
        };
        let all = environment(&account(), &launch, &with);
        let all: Vec<_> = all.iter().map(|it| String::from_utf8_lossy(it)).collect();
        let path = format!("PATH={}", String::from_utf8_lossy(PATH));
        let expected = [
            "LANG=C",
            "USER=a",
            "LOGNAME=a",
            "HOME=/home/a",
            "SHELL=/usr/bin/zsh",
            &path,
            "MAIL=/var/mail/a",
            "STRAIT_PEER=b",
            "STRAIT_PRINCIPAL=alice@R",
            "X=2",
            "KRB5CCNAME=FILE:/run/x",
        ];
        assert_eq!(all, expected);
        let with = Surroundings { principal: None, ..with };
        assert!(environment(&account(), &launch, &with).contains(&b"STRAIT_PRINCIPAL=".to_vec()));
    }

    #[test]
    fn shells_are_started_as_login_shells_and_commands_are_given_to_them() {
        let texts = |launch: &Launch| {
            let all = arguments(&account(), launch).unwrap();
            all.into_iter().map(|it| it.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&Launch::default()), ["-zsh"]);
        let command = Launch { command: Some(b"ls -l".to_vec()), ..Launch::default() };
        assert_eq!(texts(&command), ["zsh", "-c", "ls -l"]);
    }
}
