//! The resolver: a process that asks the system for the addresses of peers that are known by name.
//!
//! The packet process may open no file and no socket, which the system's resolver has to; and what a DNS server answers is
//! no business of a process with privileges. Each query has a process of its own, so that one that hangs or crashes ends
//! alone. An answer comes as lines of text, `own ADDRESS` or `other ADDRESS`, or `error WORDS`.
#![allow(unsafe_code)]

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use strait_keying::{MOST_ADDRESSES, in_turn};
use tokio::io::AsyncReadExt;

use super::StartError;
use crate::poll::{PollFd, wait};
use crate::privileges::{self, ServiceUser};
use crate::process::{ProcessChannel, fork};

/// How long the system's resolver has: less than an attempt to reach the peer, so that the log says what failed; more than
/// the 5 s after which it asks its next server (resolv.conf(5)).
const PATIENCE: Duration = Duration::from_secs(9);
/// How long a query may take at all: it tries each server a few times.
const SECONDS_MAX: u32 = 60;
/// Most addresses in an answer: four times as many as are tried of a name, as some may be refused.
const ADDRESSES_MAX: usize = 4 * MOST_ADDRESSES;
/// Most bytes of an answer: so many lines, the longest of which has an IPv6 address with a scope and a port.
const ANSWER_MAX: u64 = 80 * ADDRESSES_MAX as u64;
/// Most queries at once: twice as many as the packet process asks.
const QUERIES_MAX: usize = 64;

/// An address that a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundAddress {
    pub(super) address: SocketAddr,
    /// Whether this host has it.
    pub(super) is_own: bool,
}

/// The other processes' end of the resolver.
#[derive(Debug)]
pub(super) struct Resolver(ProcessChannel);

impl Resolver {
    /// Starts the process. To be called before any key is in memory.
    pub(super) fn start() -> Result<Resolver, StartError> {
        let (channel, theirs) = ProcessChannel::pair().map_err(StartError::Runtime)?;
        fork(c"strait-resolver", &[channel.as_fd()], move || run(&theirs)).map_err(StartError::Runtime)?;
        Ok(Resolver(channel))
    }

    /// Has it go on as `user`, without privileges; it takes no query before.
    pub(super) fn confine(&self, user: &ServiceUser) -> io::Result<()> {
        self.0.send(user.to_string().as_bytes(), &[])
    }

    /// Asks for the addresses of `name`, a host and a port.
    pub(super) fn ask(&self, name: &str) -> io::Result<Query> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.0.send(name.as_bytes(), &[theirs.as_fd()])?;
        tokio::net::UnixStream::from_std(ours).map(Query)
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A question that was asked; the process that looks for the answer ends with it.
#[derive(Debug)]
pub(super) struct Query(tokio::net::UnixStream);

impl Query {
    /// The answer, or why there is none.
    pub(super) async fn answer(&mut self) -> Result<Vec<FoundAddress>, String> {
        let mut text = String::new();
        let mut input = (&mut self.0).take(ANSWER_MAX);
        let read = input.read_to_string(&mut text);
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(Ok(_)) => parse(&text),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the resolver did not answer in {} s", PATIENCE.as_secs())),
        }
    }

    /// Waits until the resolver is done with it, which can be long after its answer was needed.
    pub(super) async fn end(mut self) {
        while self.0.read(&mut [0; 64]).await.is_ok_and(|len| len > 0) {}
    }
}

fn parse(text: &str) -> Result<Vec<FoundAddress>, String> {
    if text.is_empty() {
        return Err("the resolver ended without an answer".to_owned());
    }
    let found = text.lines().take(ADDRESSES_MAX).map(|line| match line.split_once(' ') {
        Some((whose @ ("own" | "other"), address)) => {
            let address = address.parse().map_err(|_| format!("the resolver answered {address:?}"))?;
            Ok(FoundAddress { address, is_own: whose == "own" })
        }
        Some(("error", words)) => Err(words.to_owned()),
        _ => Err(format!("the resolver answered {line:?}")),
    });
    found.collect()
}

/// What the process does, until no process can ask any more.
fn run(channel: &ProcessChannel) -> i32 {
    let Ok((user, _)) = channel.receive() else { return 0 };
    let user = String::from_utf8_lossy(&user).parse().unwrap_or(ServiceUser::Same);
    if let Err(error) = privileges::drop_all(user) {
        tracing::error!("the resolver failed: {error}");
        return 1;
    }
    let mut queries = 0;
    while let Ok((name, mut descriptors)) = channel.receive() {
        while queries > 0 && has_buried_one() {
            queries -= 1;
        }
        let Some(answer) = descriptors.pop() else { continue };
        if queries < QUERIES_MAX && fork(c"strait-query", &[channel.as_fd()], || query(&name, answer)).is_ok()
        {
            queries += 1;
        }
    }
    0
}

/// Takes note of a query that has ended, if there is one.
fn has_buried_one() -> bool {
    // SAFETY: a null pointer means that it is of no interest how it ended.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 }
}

/// Looks one name up.
fn query(name: &[u8], answer: OwnedFd) -> i32 {
    // The system's resolver cannot be told to give up; this signal ends the process.
    // SAFETY: takes an integer.
    unsafe { libc::alarm(SECONDS_MAX) };
    let Ok(asker) = answer.try_clone() else { return 1 };
    // Without it, the alarm ends this process.
    let _ = thread::Builder::new().spawn(move || end_with(&asker));
    let text = match String::from_utf8_lossy(name).to_socket_addrs() {
        Ok(found) => emit(found.collect(), is_own),
        Err(error) => format!("error {}", error.to_string().replace('\n', " ")),
    };
    i32::from(UnixStream::from(answer).write_all(text.as_bytes()).is_err())
}

/// Ends this process when the other end of `asker` is gone.
fn end_with(asker: &OwnedFd) {
    let mut gone = [PollFd::ready_to(asker.as_fd(), false, false)];
    while wait(&mut gone, None).is_ok() {
        if gone.iter().any(PollFd::is_gone) {
            // SAFETY: takes an integer; nothing of this process is wanted any more.
            unsafe { libc::_exit(1) }
        }
    }
}

/// The answer with the addresses that were found, with both families among as many as it has room for.
fn emit(found: Vec<SocketAddr>, is_own: impl Fn(IpAddr) -> bool) -> String {
    let text = in_turn(found).into_iter().take(ADDRESSES_MAX).fold(String::new(), |mut text, address| {
        let whose = if is_own(address.ip().to_canonical()) { "own" } else { "other" };
        let _ = writeln!(text, "{whose} {address}");
        text
    });
    if text.is_empty() { "error the name has no address".to_owned() } else { text }
}

/// Whether this host has the address: what it sends there would come from there.
fn is_own(address: IpAddr) -> bool {
    let any = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    // Port 9 is discard's; nothing is sent.
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_both_families_and_room_for_the_longest_addresses() {
        let long = |host: u16| format!("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:{host:x}%4294967295]:65535");
        let mut found: Vec<SocketAddr> = (0xf000..0xf100).map(|host| long(host).parse().unwrap()).collect();
        found.push("192.0.2.7:5".parse().unwrap());
        let text = emit(found.clone(), |address| address.is_ipv4());
        assert!(text.len() as u64 <= ANSWER_MAX, "{} bytes", text.len());
        let heard = parse(&text).unwrap();
        assert_eq!(heard.len(), ADDRESSES_MAX);
        assert_eq!(heard[0], FoundAddress { address: found[0], is_own: false });
        assert_eq!(heard[1], FoundAddress { address: found[256], is_own: true });
        assert_eq!(parse(&emit(Vec::new(), |_| false)).unwrap_err(), "the name has no address");
    }

    #[test]
    fn answers_are_lines_and_anything_else_is_refused() {
        let found = parse("other 192.0.2.7:5\nown [2001:db8::1]:5\n").unwrap();
        assert_eq!(found.iter().map(|one| one.is_own).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found[1].address, "[2001:db8::1]:5".parse().unwrap());
        assert_eq!(parse("error no such host").unwrap_err(), "no such host");
        let many = "other 192.0.2.7:5\n".repeat(1_000);
        assert_eq!(parse(&many).unwrap().len(), ADDRESSES_MAX);
        for bad in ["", "other", "other here:5", "maybe 192.0.2.7:5", "own 192.0.2.7"] {
            assert!(parse(bad).unwrap_err().contains("the resolver "), "{bad}");
        }
    }
}
