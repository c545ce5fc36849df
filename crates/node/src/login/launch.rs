//! The start of an account's program: a process that has become the account waits for what it is to run, and becomes that.
//!
//! What it is told comes from the keeper, which read it from a peer. This process has no privilege any more when it reads it.

use std::ffi::{CString, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use super::account::{Account, checked};
use crate::process::ProcessChannel;

/// How this process ends when the program cannot be started, as shells do.
const NOT_STARTED: libc::c_int = 127;
/// Where programs are found, as sshd of distributions has it.
const PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";
const ROOT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where letters are (hier(7)).
const MAIL: &[u8] = b"/var/mail/";
/// The real-time signals end here (signal(7)).
const SIGNAL_MAX: libc::c_int = 64;

/// What is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Given to the login shell with `-c`; nothing for the shell itself.
    pub command: Option<Vec<u8>>,
    /// Whether its first descriptor is a terminal, for all three; else there are three: input, output, errors.
    pub terminal: bool,
    /// Variables, of which those of the account and of PAM go before.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Launch {
    /// As one message: parts behind their lengths.
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.terminal), u8::from(self.command.is_some())];
        put(&mut out, self.command.as_deref().unwrap_or_default());
        for (name, value) in &self.environment {
            put(&mut out, name);
            put(&mut out, value);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Launch> {
        let [terminal, has_command, rest @ ..] = bytes else { return None };
        let mut rest = rest;
        let command = part(&mut rest)?;
        let mut environment = Vec::new();
        while !rest.is_empty() {
            environment.push((part(&mut rest)?, part(&mut rest)?));
        }
        Some(Launch {
            command: (*has_command == 1).then_some(command),
            terminal: *terminal == 1,
            environment,
        })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn part(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(part.to_vec())
}

/// A process of the account that waits for what it is to run.
#[derive(Debug)]
pub struct Launcher {
    channel: ProcessChannel,
}

impl Launcher {
    pub(super) const fn new(channel: ProcessChannel) -> Launcher {
        Launcher { channel }
    }

    /// Has it run that, with these descriptors: a terminal, or input, output and errors.
    ///
    /// # Errors
    /// What kept it from being started, in words.
    pub fn launch(self, launch: &Launch, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.channel.send(&launch.encode(), descriptors)?;
        match self.channel.receive() {
            // The channel closes when the program is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(error),
            Ok((said, _)) => Err(io::Error::other(String::from_utf8_lossy(&said).into_owned())),
        }
    }
}

/// What a program gets beside what the keeper says.
pub(super) struct Surroundings {
    /// Variables that PAM's modules set, as NAME=VALUE.
    pub(super) environment: Vec<Vec<u8>>,
    /// What PAM's modules said, for a person.
    pub(super) said: Vec<u8>,
    /// The peer's name.
    pub(super) peer: String,
    /// Its principal, if a ticket said who it is.
    pub(super) principal: Option<String>,
    /// Where the ticket is that it passed on, as NAME=VALUE.
    pub(super) cache: Option<Vec<u8>>,
}

/// Becomes the account and then what the keeper says; comes back only when it cannot, with the status to end with.
pub(super) fn run(channel: &ProcessChannel, account: &Account, with: &Surroundings) -> libc::c_int {
    let Err(error) = prepare(account).and_then(|()| become_program(channel, account, with)) else {
        return NOT_STARTED;
    };
    let _ = channel.send(error.to_string().as_bytes(), &[]);
    NOT_STARTED
}

/// A session of its own, the account's user, signals as programs expect them.
fn prepare(account: &Account) -> io::Result<()> {
    // SAFETY: takes nothing. It fails for the leader of a group, which a process that was just made is not.
    checked(unsafe { libc::setsid() })?;
    account.become_user()?;
    for signal in 1..=SIGNAL_MAX {
        // SAFETY: the default is no handler of this program's. For two signals it is refused, which changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is a value of this function's, which outlives the calls.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))
    }
}

fn become_program(channel: &ProcessChannel, account: &Account, with: &Surroundings) -> io::Result<()> {
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
    if let Some(principal) = &with.principal {
        set(b"STRAIT_PRINCIPAL", principal.as_bytes());
    }
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

/// Sends a signal to all processes of a group.
///
/// # Errors
/// As `kill(2)`.
pub fn signal_group(group: i32, signal: i32) -> io::Result<()> {
    if group <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes integers.
    checked(unsafe { libc::kill(-group, signal) })
}

/// The name of a signal, without `SIG`; of one without a name, its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    known.map_or_else(|| signal.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let (home, shell) = ("/home/a".into(), "/usr/bin/zsh".into());
        Account { name: "a".to_owned(), user: 7, group: 9, home, shell }
    }

    #[test]
    fn what_is_to_run_comes_back_from_its_message_and_no_part_of_one_is_taken() {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        for launch in [
            Launch::default(),
            Launch { command: Some(Vec::new()), ..Launch::default() },
            Launch {
                command: Some(b"ls \xff".to_vec()),
                terminal: true,
                environment: vec![pair("A", ""), pair("B", "c")],
            },
        ] {
            let bytes = launch.encode();
            assert_eq!(Launch::decode(&bytes), Some(launch.clone()));
            for cut in 0..bytes.len() {
                let part = Launch::decode(&bytes[..cut]);
                assert!(part.is_none_or(|part| part != launch), "{cut}");
            }
        }
        assert_eq!(Launch::decode(&[0, 1, 255, 255, 255, 255, 0]), None);
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
        assert_eq!(
            (signal_name(15), signal_name(9), signal_name(64)),
            ("TERM".into(), "KILL".into(), "64".into())
        );
    }
}
