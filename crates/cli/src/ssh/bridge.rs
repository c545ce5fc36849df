//! All channels of one `ssh`, and the one place that waits.
//!
//! One thread, one loop: move whatever can be moved until nothing moves any more, then sleep until a descriptor is ready, a stream
//! was opened or a deadline is due. Nothing in the loop waits for a particular thing, so that no order of events can stop it.

mod asked;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use strait_clock::Time;
use strait_login::Request;
use strait_node::clock::Clock;
use strait_node::interrupt::EndSignal;
use strait_node::poll::{PollFd, wait};
use strait_ssh::{ChannelNumber, SshError, SshServer};
use strait_stream::StreamPriority;

use super::forward::{Far, Forward};
use super::opener::{Opener, PartNumber};
use super::session::Session;
use crate::failure::{CommandResult, Failure};
use crate::login::road::LoginRoad;
use crate::login::wire::write_some;
use crate::output::note;
use asked::Asked;

/// How long a program whose `ssh` is gone is tried to be ended where the peer cannot be reached. The peer ends it by itself then,
/// as it does with sessions that no client comes back to. As long, connections whose `ssh` is gone may take nothing of what it said.
const GOODBYE: Duration = Duration::from_secs(60);
/// How long after an agent's stream that was lost the next one is asked for.
const AGENT_AGAIN: Duration = Duration::from_secs(2);
/// Bytes read at once.
const READ: usize = 64 * 1024;
/// Bytes that wait for `ssh` before nothing more is read from it: it asks for more than it reads.
const OUT_MAX: usize = 1 << 20;
/// Everything of one `ssh`.
pub(super) struct Bridge {
    server: SshServer,
    opener: Opener,
    /// A supervisor's wish that this ends.
    signal: EndSignal,
    clock: Clock,
    /// Standard input; none once `ssh` is gone.
    from: Option<File>,
    to: File,
    /// The account that `ssh` asks for.
    account: Vec<u8>,
    asked: BTreeMap<ChannelNumber, Asked>,
    sessions: BTreeMap<PartNumber, Session>,
    forwards: BTreeMap<PartNumber, Forward>,
    next_part: PartNumber,
    /// Before this time no stream for an agent is asked for.
    agent_after: Time,
    /// When to give up, once `ssh` is gone.
    until: Option<Time>,
    buffer: Vec<u8>,
}

impl Bridge {
    /// Between standard input and output, and a peer.
    pub(super) fn new(server: SshServer, road: LoginRoad, signal: EndSignal) -> Result<Bridge, Failure> {
        let take = |fd: io::Result<std::os::fd::OwnedFd>| {
            let file = File::from(fd?);
            fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
            Ok(file)
        };
        let doing = || Failure::doing("read and write what `ssh` says");
        let from = take(io::stdin().as_fd().try_clone_to_owned()).map_err(doing())?;
        let to = take(io::stdout().as_fd().try_clone_to_owned()).map_err(doing())?;
        Ok(Bridge {
            server,
            opener: Opener::new(road).map_err(Failure::doing("wait for streams"))?,
            signal,
            clock: Clock::start(),
            from: Some(from),
            to,
            account: Vec::new(),
            asked: BTreeMap::new(),
            sessions: BTreeMap::new(),
            forwards: BTreeMap::new(),
            next_part: 0,
            agent_after: Time::ZERO,
            until: None,
            buffer: vec![0; READ],
        })
    }

    /// Serves `ssh` until it is gone and every program was told so.
    pub(super) fn run(mut self) -> CommandResult {
        loop {
            let now = self.clock.now();
            let moved = self.step(now);
            if let Err(failure) = &moved {
                // Said once: from here on only sessions are ended.
                if self.until.is_none() {
                    let _ = failure.report("strait");
                }
                self.ssh_gone(now);
            }
            let none_left = self.sessions.is_empty() && self.forwards.is_empty();
            let over = self.until.is_some_and(|until| none_left || until <= now);
            if over {
                return moved;
            }
            self.sleep()?;
        }
    }

    /// Moves all that can be moved.
    fn step(&mut self, now: Time) -> CommandResult {
        if self.signal.came() {
            self.ssh_gone(now);
        }
        let failed = |error: SshError| Failure::new(format!("what `ssh` says cannot be served: {error}"));
        while let Some((part, opened)) = self.opener.next() {
            if let Some(session) = self.sessions.get_mut(&part) {
                session.opened(opened, now);
            } else if let Some(forward) = self.forwards.get_mut(&part) {
                forward.opened(opened, &mut self.server).map_err(failed)?;
            }
        }
        loop {
            let now = self.clock.now();
            let mut moved = self.read_ssh(now)?;
            moved |= self.read_streams(now);
            moved |= self.pump(now).map_err(failed)?;
            moved |= self.ask_streams(now);
            if self.until.is_none() {
                moved |= self.write_ssh().map_err(Failure::doing("write to `ssh`"))?;
            } else {
                self.server.out().clear();
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// `ssh` is gone, or this is to end: its programs end with it. What connections have said goes on to their far ends.
    fn ssh_gone(&mut self, now: Time) {
        if self.until.is_some() {
            return;
        }
        self.until = Some(now + GOODBYE);
        self.from = None;
        if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
            // A shell that waits for the end of what `ssh` writes does not wait for this process.
            let _ = dup2_stdout(&nothing);
            let _ = dup2_stderr(&nothing);
            self.to = nothing;
        }
        self.asked.clear();
        self.forwards.retain(|_, forward| forward.closed_by_ssh());
        self.sessions.values_mut().for_each(Session::close);
    }

    /// What is said to `ssh`. Whether it was anything.
    fn write_ssh(&mut self) -> io::Result<bool> {
        let written = write_some(&mut self.to, self.server.out())?;
        self.server.out().drain(..written);
        Ok(written > 0)
    }

    /// What `ssh` says. Whether it was anything.
    fn read_ssh(&mut self, now: Time) -> Result<bool, Failure> {
        if self.server.out().len() >= OUT_MAX {
            return Ok(false);
        }
        let Some(from) = &mut self.from else { return Ok(false) };
        let count = match from.read(&mut self.buffer) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(false);
            }
            // The other end of a pair of sockets that was closed with bytes in it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(Failure::doing("read from `ssh`")(error)),
        };
        let taken = if count == 0 { Ok(()) } else { self.server.received(&self.buffer[..count]) };
        while let Some(event) = self.server.next_event() {
            self.event(event, now).map_err(Failure::new)?;
        }
        match taken {
            Ok(()) if count > 0 => {}
            Ok(()) | Err(SshError::Disconnected(_)) => self.ssh_gone(now),
            Err(error) => {
                let _ = self.write_ssh();
                return Err(Failure::new(format!("what `ssh` says cannot be served: {error}")));
            }
        }
        Ok(true)
    }

    fn new_part(&mut self) -> PartNumber {
        self.next_part += 1;
        self.next_part
    }

    fn read_streams(&mut self, now: Time) -> bool {
        let mut moved = false;
        for session in self.sessions.values_mut() {
            moved |= session.read(&mut self.buffer, now);
        }
        for forward in self.forwards.values_mut() {
            moved |= forward.read(&mut self.buffer);
        }
        moved
    }

    fn pump(&mut self, now: Time) -> Result<bool, SshError> {
        let mut moved = false;
        for session in self.sessions.values_mut() {
            moved |= session.pump(&mut self.server, now)?;
        }
        for forward in self.forwards.values_mut() {
            let waiting = forward.waiting();
            moved |= forward.pump(&mut self.server)?;
            if forward.waiting() < waiting {
                self.until = self.until.map(|_| now + GOODBYE);
            }
            if let (true, None, Far::Agent(session)) = (forward.is_over(), forward.channel(), forward.far()) {
                self.agent_after = now + AGENT_AGAIN;
                if let (Some(session), Some(why)) = (self.sessions.get_mut(&session), forward.refusal()) {
                    session.without_agent();
                    note(format_args!("strait: programs at the peer cannot ask the agent: {why}\r"));
                }
            }
        }
        let before = self.sessions.len() + self.forwards.len();
        self.sessions.retain(|_, session| !session.is_over());
        self.forwards.retain(|_, forward| {
            let lonely =
                matches!(forward.far(), Far::Agent(session) if !self.sessions.contains_key(&session));
            !(forward.is_over() || lonely && forward.is_waiting())
        });
        Ok(moved || self.sessions.len() + self.forwards.len() != before)
    }

    /// Asks for the streams that are needed. Whether there were any.
    fn ask_streams(&mut self, now: Time) -> bool {
        let mut moved = false;
        for (part, session) in &mut self.sessions {
            if session.asks(now) {
                self.opener.open(*part, &self.account, session.priority());
                moved = true;
            }
        }
        if self.agent_after > now || self.until.is_some() {
            return moved;
        }
        // One waits at the agent's socket of each session; when it is used, the next one does.
        let waits = |part: &PartNumber| {
            self.forwards.values().any(|it| it.far() == Far::Agent(*part) && it.is_waiting())
        };
        let tickets = self.sessions.iter().filter(|(part, _)| !waits(part));
        let needed: Vec<_> = tickets
            .filter_map(|(part, it)| Some((*part, Request::Agent(it.agent_ticket()?.clone()))))
            .collect();
        for (session, request) in needed {
            let part = self.new_part();
            self.forwards.insert(part, Forward::agent(session, &request));
            self.opener.open(part, &self.account, StreamPriority::Now);
            moved = true;
        }
        moved
    }

    /// Sleeps until something can be done.
    fn sleep(&mut self) -> CommandResult {
        let reads_ssh = self.server.out().len() < OUT_MAX;
        let writes_ssh = !self.server.out().is_empty() && self.until.is_none();
        let mut fds =
            vec![PollFd::readable(self.opener.wake().as_fd()), PollFd::readable(self.signal.as_fd())];
        fds.extend(self.from.as_ref().filter(|_| reads_ssh).map(|from| PollFd::readable(from.as_fd())));
        fds.extend(writes_ssh.then(|| PollFd::writable(self.to.as_fd())));
        fds.extend(self.sessions.values().filter_map(Session::interest));
        fds.extend(self.forwards.values().filter_map(Forward::interest));
        let agent =
            (self.sessions.values().any(|it| it.agent_ticket().is_some())).then_some(self.agent_after);
        let now = self.clock.now();
        let deadlines = self.sessions.values().filter_map(Session::deadline);
        let next = deadlines.chain(self.until).chain(agent.filter(|at| *at > now)).min();
        wait(&mut fds, next.map(|at| at.since(now))).map_err(Failure::doing("wait for `ssh`"))?;
        self.opener.wake().clear();
        Ok(())
    }
}
