//! Table 3: what a keystroke and its echo cost on a real interface, behind modems that compress.

mod mosh;
mod openssh;
mod record;
mod strait;
mod trace;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use strait_sim::{DialUpSettings, HeaderCompression};
use strait_testbed::{DialledLine, FrameDirection, Namespace, Relay, TwoHosts};

use record::{RecordAcks, RecordWrites};
use strait::LoginOptions;

use super::KloginLab;
use crate::error::Error;
use crate::steps::Effort;

/// Keystrokes that do not count: a session has seen some by the time that it is looked at.
const BEFORE: usize = 4;
/// The largest packet, as in Tables 1 and 2.
pub(super) const MTU: u32 = 296;
/// The largest packet of a line that QUIC can be used over: it wants 1,200 bytes in a datagram (RFC 9000 section 14).
const ETHERNET_MTU: u32 = 1500;
/// A keystroke is over when nothing has crossed the line for so long: twice what TCP delays an acknowledgement at most
/// (RFC 1122 section 4.2.3.2).
const QUIET: Duration = Duration::from_millis(1000);
/// And however much crosses, it is over by then.
const LONGEST: Duration = Duration::from_secs(10);

/// What a keystroke cost.
#[derive(Clone, Debug, Serialize)]
pub struct Keystroke {
    /// Packets, both ways.
    pub packets: usize,
    /// Bytes behind the headers of TCP or UDP.
    pub payload_bytes: usize,
    /// Bytes of IP.
    pub ip_bytes: usize,
    /// Octets at the serial ports that sent them, with compressed headers.
    pub port_octets: u64,
    /// Milliseconds from the first to the last packet.
    pub milliseconds: f64,
    /// The packets, a line each, as `tcpdump` on the home machine prints them.
    pub trace: Vec<String>,
}

/// A program into which keystrokes went.
#[derive(Clone, Debug, Serialize)]
pub struct KeystrokeRow {
    /// Its name.
    pub program: String,
    /// The paper's row of Table 3, if it is of the paper.
    #[serde(skip)]
    pub printed: Option<usize>,
    /// Each keystroke.
    pub keystrokes: Vec<Keystroke>,
}

impl KeystrokeRow {
    /// That in the middle by time.
    #[must_use]
    pub fn median(&self) -> Option<&Keystroke> {
        let mut all: Vec<&Keystroke> = self.keystrokes.iter().collect();
        all.sort_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds));
        all.get(all.len() / 2).copied()
    }
}

/// A program at both hosts, ready for keystrokes.
trait LoginSession {
    /// Types a character, and returns when its echo is there.
    fn press(&mut self) -> io::Result<()>;
}

/// How a program starts; nothing when it is not there.
type StartLogin = fn(&TwoHosts, &KloginLab) -> Result<Option<Box<dyn LoginSession>>, Error>;

/// The line of a program: its largest packet, and the headers that its ends compress.
type ProgramLine = (u32, HeaderCompression);

/// A program: its name, the paper's row, its line, how it starts.
type LoginProgram = (&'static str, Option<usize>, ProgramLine, StartLogin);

/// The line of Tables 1 and 2, the same for QUIC, and one with routers that compress other headers than TCP's.
const PAPERS_LINE: ProgramLine = (MTU, HeaderCompression::Tcp);
const QUIC_LINE: ProgramLine = (ETHERNET_MTU, HeaderCompression::Tcp);
const IPHC_LINE: ProgramLine = (ETHERNET_MTU, HeaderCompression::NotTcp);

/// Every program; the paper's first.
const PROGRAMS: [LoginProgram; 8] = [
    ("klogin as it was", Some(0), PAPERS_LINE, |hosts, _| {
        record::start(hosts, RecordWrites::Apart, RecordAcks::Delayed)
    }),
    ("klogin, merged", Some(1), PAPERS_LINE, |hosts, _| {
        record::start(hosts, RecordWrites::Merged, RecordAcks::Delayed)
    }),
    ("klogin as it was, Linux's acks", None, PAPERS_LINE, |hosts, _| {
        record::start(hosts, RecordWrites::Apart, RecordAcks::System)
    }),
    ("strait login", None, QUIC_LINE, |hosts, lab| strait::start(hosts, lab, LoginOptions::Usual)),
    ("strait login, short", None, QUIC_LINE, |hosts, lab| strait::start(hosts, lab, LoginOptions::Short)),
    ("strait login, short, IPHC", None, IPHC_LINE, |hosts, lab| {
        strait::start(hosts, lab, LoginOptions::Short)
    }),
    ("ssh", None, PAPERS_LINE, openssh::start),
    ("mosh", None, PAPERS_LINE, |hosts, _| mosh::start(hosts)),
];

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(name, ..)| *name)
}

/// Programs that a quick look is at: the paper's.
const QUICK: usize = 2;

/// Types into each program that there is, all at the same time, each over a line of its own.
///
/// # Errors
/// [`Error`] when hosts cannot be made, or a program that is there does not run.
pub(super) fn measured(lab: &KloginLab) -> Result<Vec<KeystrokeRow>, Error> {
    let (programs, count) = match lab.effort {
        Effort::Full => (PROGRAMS.len(), 7),
        Effort::Quick => (QUICK, 1),
    };
    thread::scope(|scope| {
        let one = |program| scope.spawn(move || row(program, count, lab));
        let threads: Vec<_> = PROGRAMS[..programs].iter().map(one).collect();
        let joined =
            threads.into_iter().map(|it| it.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        let rows: Result<Vec<Option<KeystrokeRow>>, Error> = joined.collect();
        Ok(rows?.into_iter().flatten().collect())
    })
}

/// Types into one program; nothing when it is not installed.
fn row(program: &LoginProgram, count: usize, lab: &KloginLab) -> Result<Option<KeystrokeRow>, Error> {
    let (name, printed, (mtu, headers), start) = *program;
    let line = DialledLine::new(DialUpSettings { headers, ..lab.own.settings() });
    let (hosts, _relay) = dialled(&line, mtu)?;
    let Some(mut session) = start(&hosts, lab)? else { return Ok(None) };
    // A connection's first segments are acknowledged at once; after some of them Linux waits for an answer that can carry it.
    for _ in 0..BEFORE {
        session.press().map_err(Error::doing(format!("type into {name}")))?;
    }
    settled(&line);
    let keystrokes: Result<Vec<Keystroke>, io::Error> =
        (0..count).map(|_| keystroke(&line, session.as_mut())).collect();
    let keystrokes = keystrokes.map_err(Error::doing(format!("type into {name}")))?;
    // On another line there is nothing of the paper's to compare with.
    let printed = printed.filter(|_| !lab.own.is_another_line());
    Ok(Some(KeystrokeRow { program: name.to_owned(), printed, keystrokes }))
}

/// Two hosts of 1995 at a line: no timestamps, which no compressed header would survive, and small windows.
pub(super) fn dialled(line: &DialledLine, mtu: u32) -> Result<(TwoHosts, Relay), Error> {
    let (hosts, relay) = Relay::dialled(line, mtu)?;
    for host in [&hosts.a, &hosts.b] {
        settings_of_1995(host)?;
    }
    Ok((hosts, relay))
}

fn settings_of_1995(host: &Namespace) -> Result<(), Error> {
    let set = |(name, value): (&str, &str)| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    let all = [("tcp_timestamps", "0"), ("tcp_rmem", "4096 16384 16384"), ("tcp_congestion_control", "reno")];
    Ok(host.run("set TCP up", || all.into_iter().try_for_each(set))?)
}

/// Waits until nothing crosses the line any more, and forgets what did.
fn settled(line: &DialledLine) {
    let start = Instant::now();
    while start.elapsed() < LONGEST {
        let _ = line.take_seen();
        thread::sleep(QUIET);
        if line.take_seen().is_empty() {
            return;
        }
    }
}

fn keystroke(line: &DialledLine, session: &mut dyn LoginSession) -> io::Result<Keystroke> {
    let octets = |line: &DialledLine| {
        [FrameDirection::There, FrameDirection::Back]
            .map(|way| line.tally(way).port_octets)
            .iter()
            .sum::<u64>()
    };
    let before = octets(line);
    let start = Instant::now();
    session.press()?;
    let mut seen = line.take_seen();
    loop {
        thread::sleep(QUIET);
        let more = line.take_seen();
        let over = more.is_empty() || start.elapsed() > LONGEST;
        seen.extend(more);
        if over {
            break;
        }
    }
    seen.sort_by_key(|packet| packet.at);
    let span = seen.first().zip(seen.last()).map(|(first, last)| last.at - first.at).unwrap_or_default();
    Ok(Keystroke {
        packets: seen.len(),
        payload_bytes: seen.iter().map(|it| trace::payload_len(&it.packet)).sum(),
        ip_bytes: seen.iter().map(|it| it.packet.len()).sum(),
        port_octets: octets(line) - before,
        milliseconds: span.as_secs_f64() * 1e3,
        trace: trace::lines(&seen),
    })
}
