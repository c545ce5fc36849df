//! Strangers with one /48 of IPv6 and as many connections to a directory as it can have.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strait_keying::directory::{LIST_MAX, Question};
use strait_testbed::{WireLink, connect_from};

use crate::error::Error;
use crate::hostile::attackers::Attackers;

/// The time after which each stranger says more, reads more, or comes again.
const ROUND: Duration = Duration::from_secs(1);
/// The time that a connection may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// Strangers with an address each, in as many /64, of as many /56 as these.
const STRANGERS: usize = 256;
const CUSTOMERS: usize = 16;
/// Questions that are said at once.
const QUESTIONS: usize = 64;
/// Bytes that a slow one reads at once.
const SIP: usize = 1024;

/// A kind of strangers, all of which do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrowdKind {
    /// Ask for the list again and again, and read nothing.
    Deaf,
    /// Ask for it, and read a little now and then.
    Slow,
    /// Watch, and read nothing.
    Watching,
    /// Say the head of a list that they put, and a part of it.
    Halves,
}

impl CrowdKind {
    pub(super) const ALL: [CrowdKind; 4] =
        [CrowdKind::Deaf, CrowdKind::Slow, CrowdKind::Watching, CrowdKind::Halves];

    pub(super) const fn name(self) -> &'static str {
        match self {
            CrowdKind::Deaf => "ask for the list, never read",
            CrowdKind::Slow => "ask for the list, read 1 KiB/s",
            CrowdKind::Watching => "watch all, never read",
            CrowdKind::Halves => "put a part of a list",
        }
    }

    /// The words of one: over and over if it asks, else once.
    fn words(self) -> Vec<u8> {
        match self {
            CrowdKind::Deaf | CrowdKind::Slow => Question::List(0).to_bytes().repeat(QUESTIONS),
            CrowdKind::Watching => Question::WatchAll.to_bytes(),
            CrowdKind::Halves => {
                let mut list = Question::PutList(vec![0; LIST_MAX].into()).to_bytes();
                list.truncate(LIST_MAX / 8);
                list
            }
        }
    }

    const fn asks_on(self) -> bool {
        matches!(self, CrowdKind::Deaf | CrowdKind::Slow)
    }
}

/// Gives the first end of a link the strangers' addresses, and the second a way to them.
pub(super) fn settle_at(link: &WireLink) -> Result<(), Error> {
    link.b.add_address(host(link, 0, 2), 48)?;
    (0..STRANGERS).try_for_each(|number| Ok(link.a.add_address(stranger(link, number), 48)?))
}

/// Starts as many connections over the link as there may be.
pub(super) fn start(kind: CrowdKind, link: &WireLink, to: SocketAddr, connections: usize) -> Attackers {
    let addresses: Vec<IpAddr> = (0..STRANGERS).map(|number| stranger(link, number)).collect();
    let host = link.a.host.clone();
    let work = move |ended: &AtomicBool| {
        // Without them the figures show it.
        let _ = host.run("press", || {
            press(kind, &addresses, to, connections, ended);
            Ok(())
        });
    };
    Attackers::start([work])
}

/// An address in the /48 of a link of the testbed, in none of the networks of the link itself.
fn host(link: &WireLink, network: u16, number: u16) -> IpAddr {
    let [a, b, c, ..] = link.a.v6.segments();
    Ipv6Addr::new(a, b, c, network | 0x8000, 0, 0, 0, number).into()
}

/// The address of the stranger with this number.
fn stranger(link: &WireLink, number: usize) -> IpAddr {
    let network = (number % CUSTOMERS) << 8 | (number / CUSTOMERS);
    host(link, u16::try_from(network).unwrap_or(0), 1)
}

/// A connection, and how much of its words is said.
struct Stranger {
    stream: TcpStream,
    said: usize,
}

impl Stranger {
    fn come(from: IpAddr, to: SocketAddr) -> io::Result<Stranger> {
        let stream = connect_from((from, 0).into(), to, PATIENCE)?;
        stream.set_nonblocking(true)?;
        Ok(Stranger { stream, said: 0 })
    }

    /// Does what its kind does once a round; fails when the connection is over.
    fn go_on(&mut self, kind: CrowdKind, words: &[u8]) -> io::Result<()> {
        let mut sip = [0; SIP];
        let heard =
            if kind == CrowdKind::Slow { self.stream.read(&mut sip) } else { self.stream.peek(&mut sip) };
        if now(heard)? == Some(0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Some(rest @ [_, ..]) = words.get(self.said..) {
            self.said += now(self.stream.write(rest))?.unwrap_or(0);
        }
        if kind.asks_on() {
            self.said %= words.len();
        }
        Ok(())
    }
}

/// The bytes that moved at once; nothing if it would have had to wait.
fn now(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

/// Keeps as many connections as it can, until it is to end.
fn press(kind: CrowdKind, from: &[IpAddr], to: SocketAddr, connections: usize, ended: &AtomicBool) {
    let words = kind.words();
    let mut all: Vec<Option<Stranger>> = Vec::new();
    all.resize_with(connections, || None);
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        for (place, from) in all.iter_mut().zip(from.iter().cycle()) {
            if place.is_none() {
                *place = Stranger::come(*from, to).ok();
            }
            if place.as_mut().is_some_and(|stranger| stranger.go_on(kind, &words).is_err()) {
                *place = None;
            }
            if ended.load(Ordering::Relaxed) {
                return;
            }
        }
        thread::sleep(ROUND.saturating_sub(begun.elapsed()));
    }
}
